/* run.c - what all parts of a run need: when to stop, and moves as steps in names of now. */
#include "executor/run.h"

#include <stdarg.h>
#include <stdio.h>

void run_stop(struct run *run, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(run->stopped, sizeof run->stopped, fmt, args);
    va_end(args);
}

bool run_stopped(const struct run *run)
{
    return run->stopped[0] != '\0';
}

bool run_told_to_stop(struct run *run)
{
    const char *paused;
    if (!run_stopped(run) && kept_paused(run->drive.kept, &paused)) {
        run_stop(run, "%s", paused);
    } else if (!run_stopped(run) && stage_stopping(run->drive.stage)) {
        run_stop(run, "stopped on request");
    }
    return run_stopped(run);
}

int run_after(struct run *run, enum driven driven)
{
    const struct drive *d = &run->drive;
    switch (driven) {
    case DRIVEN_ON:
        run->acted++;
        return 0;
    case DRIVEN_LATER:
    case DRIVEN_FLYING: /* counted when it began */
        return 0;
    case DRIVEN_FAILED: {
        const struct outcome *o = &d->told.list[d->told.n - 1];
        run_stop(run, "move %lld (%s to %s) failed: %s", (long long)o->seq,
                 o->instance ? o->instance : o->service, o->target ? o->target : "its hosts",
                 o->reason ? o->reason : "unknown");
        return 0;
    }
    case DRIVEN_STOPPED:
        run_stop(run, "stopped on request");
        return 0;
    case DRIVEN_ERROR:
        return -1;
    }
    return -1;
}

bool run_knows(const struct run *run, int64_t seq)
{
    return outcomes_find(&run->request->done, seq) || outcomes_find(&run->drive.told, seq);
}

bool run_limit_reached(const struct run *run)
{
    return run->request->max_moves >= 0 && run->acted >= run->request->max_moves;
}

struct replica_count *run_counts(const struct run *run, const struct host_count *counts, size_t n)
{
    const struct model *model = run->request->model;
    struct replica_count *named = mem_array(n + 1, sizeof *named);
    for (size_t i = 0; i < n; i++) {
        named[i] = (struct replica_count){model->hosts[counts[i].host].name, counts[i].count};
    }
    return named;
}

static const char *host_name(const struct model *model, int host)
{
    return host < 0 ? NULL : model->hosts[host].name;
}

struct step run_step(const struct run *run, const struct move *move,
                     const struct replica_count *targets)
{
    const struct model *m = run->request->model;
    bool single = move->instance >= 0;
    return (struct step){.seq = move->seq,
                         .service = m->services[move->service].name,
                         .instance = single ? run->drive.lineage.now[move->instance] : NULL,
                         .source = single ? host_name(m, move->source) : NULL,
                         .target = single ? host_name(m, move->target) : NULL,
                         .targets = targets,
                         .n_targets = single ? 0 : move->n_targets};
}
