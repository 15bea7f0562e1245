/* ask.c - see ask.h. Waiting goes on through `stop`: it belongs to a move that is under way. */
#include "executor/ask.h"

#include <stdlib.h>
#include <string.h>
#include "model/base/clock.h"

/* An orchestrator that knows marks is asked again this often within the time to get ready: one that
 * forgot gets a second chance, the others lose nothing. */
#define ASK_SHARES 4
/* A small rollout takes 70 ms on an idle machine; a look costs the server 1 ms. */
#define FIRST_PAUSE_MS 50

struct intent *ask_intent_new(struct drive *d, const struct step *step)
{
    struct intent *intent = mem_alloc(sizeof *intent);
    *ARRAY_PUSH(d->request->base, d->request->n_base) = intent;
    *intent = (struct intent){.seq = step->seq,
                              .service = mem_strdup(step->service),
                              .instance = mem_strdup(step->instance),
                              .source = mem_strdup(step->source),
                              .target = mem_strdup(step->target),
                              .undo_of = -1,
                              .detour = step->detour};
    return intent;
}

static struct placement placement_of(const struct drive *d, const struct step *step,
                                     struct placement_count *counts)
{
    for (size_t i = 0; i < step->n_targets; i++) {
        counts[i] = (struct placement_count){step->targets[i].host, step->targets[i].count};
    }
    return (struct placement){.cycle = d->request->cycle,
                              .seq = step->seq,
                              .service = step->service,
                              .instance = step->instance,
                              .source = step->source,
                              .target = step->target,
                              .targets = counts,
                              .n_targets = step->n_targets};
}

int ask_intent(struct drive *d, const struct intent *intent, struct err *err)
{
    AUTO_BUF struct buf body = BUF_INIT;
    intent_encode(intent, &body);
    return stage_intent(d->stage, intent->seq, body.data, body.size, err);
}

/* What the undo needs is known only now: the intent is committed once more with it. */
static int intent_save(struct drive *d, int64_t seq, char *saved, struct err *err)
{
    for (size_t i = 0; saved && i < d->request->n_base; i++) {
        struct intent *intent = d->request->base[i];
        if (intent->seq == seq) {
            free(intent->saved);
            intent->saved = saved;
            return ask_intent(d, intent, err);
        }
    }
    free(saved);
    return 0;
}

bool ask_unsure(const struct err *err)
{
    return err->kind == ERR_UNREACHABLE || err->kind == ERR_TIMEOUT || err->kind == ERR_IO;
}

bool ask_overtaken(const struct err *err)
{
    return err->kind == ERR_CONFLICT || err->kind == ERR_NOT_FOUND;
}

static void tell_ahead(const struct drive *d, const struct step *steps, size_t n,
                       void (*tell)(void *ctx, const struct placement *placements, size_t n),
                       void *ctx)
{
    if (!tell) {
        return;
    }
    AUTO_FREE struct placement *placements = mem_array(n + 1, sizeof *placements);
    AUTO_FREE struct placement_count **counts = mem_array(n + 1, sizeof *counts);
    for (size_t i = 0; i < n; i++) {
        counts[i] = mem_array(steps[i].n_targets + 1, sizeof **counts);
        placements[i] = placement_of(d, &steps[i], counts[i]);
    }
    tell(ctx, placements, n);
    for (size_t i = 0; i < n; i++) {
        free(counts[i]);
    }
}

void ask_ahead(struct drive *d, const struct step *steps, size_t n)
{
    tell_ahead(d, steps, n, d->orchestrator->ahead, d->orchestrator_ctx);
}

void ask_looks_ahead(struct drive *d, const struct step *steps, size_t n)
{
    tell_ahead(d, steps, n, d->orchestrator->look_ahead, d->orchestrator_ctx);
}

struct placing {
    const struct drive *drive;
    bool *begun;
};

static void place_all(void *ctx, const struct placement *placements, size_t n)
{
    const struct placing *placing = ctx;
    const struct drive *d = placing->drive;
    d->orchestrator->place_all(d->orchestrator_ctx, placements, n, placing->begun);
}

void ask_place_all(struct drive *d, const struct step *steps, size_t n, bool *begun)
{
    struct err later = ERR_INIT; /* each is told when it is asked for alone */
    struct placing placing = {d, begun};
    if (kept_may_write(d->kept, &later) < 0) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        kept_own(d->kept, d->request->cycle, steps[i].seq);
    }
    tell_ahead(d, steps, n, d->orchestrator->place_all ? place_all : NULL, &placing);
}

int ask_place(struct drive *d, const struct step *step, struct err *err)
{
    char *saved = NULL;
    AUTO_FREE struct placement_count *counts = mem_array(step->n_targets + 1, sizeof *counts);
    struct placement placement = placement_of(d, step, counts);
    if (kept_may_write(d->kept, err) < 0) {
        return -1;
    }
    kept_own(d->kept, placement.cycle, placement.seq);
    if (d->orchestrator->place(d->orchestrator_ctx, &placement, &saved, err) < 0) {
        free(saved);
        return -1;
    }
    struct err unsaved = ERR_INIT; /* `stop`: the move is finished all the same, saved or not */
    (void)intent_save(d, step->seq, saved, &unsaved);
    return 0;
}

int ask_report(struct drive *d, const struct step *step, struct settle_report *out, struct err *err)
{
    AUTO_FREE struct placement_count *counts = mem_array(step->n_targets + 1, sizeof *counts);
    struct placement placement = placement_of(d, step, counts);
    *out = (struct settle_report){.state = SETTLE_WAITING};
    return d->orchestrator->settled(d->orchestrator_ctx, &placement, out, err);
}

void ask_wait(struct drive *d)
{
    ask_wait_for(d, d->request->poll_ms);
}

void ask_wait_for(struct drive *d, int64_t ms)
{
    struct err stopped = ERR_INIT;
    int64_t now = clock_mono_ms();
    if (now - d->sign_ms >= d->request->poll_ms) {
        (void)stage_progress(d->stage, d->work, NULL, &stopped);
        d->sign_ms = now;
    }
    stage_wait_through(d->stage, ms);
}

int64_t ask_pause_ms(const struct drive *d, int64_t start_ms)
{
    int64_t pause = (clock_mono_ms() - start_ms) / 2, poll = d->request->poll_ms;
    pause = pause < FIRST_PAUSE_MS ? FIRST_PAUSE_MS : pause;
    return pause < poll ? pause : poll;
}

struct ask_watch ask_watch_begin(const struct drive *d)
{
    int64_t now = clock_mono_ms();
    return (struct ask_watch){now, now + d->request->ready_timeout_ms / ASK_SHARES};
}

bool ask_look(struct drive *d, const struct step *step, struct ask_watch *watch,
              struct settle_report *out, struct err *err)
{
    int64_t timeout = d->request->ready_timeout_ms;
    struct err why = ERR_INIT;
    if (ask_report(d, step, out, &why) < 0) {
        *out = (struct settle_report){.state = SETTLE_WAITING};
    }
    *err = why;
    bool waiting = out->state == SETTLE_WAITING || out->state == SETTLE_PARTIAL;
    int64_t now = clock_mono_ms();
    if (!waiting || now - watch->start_ms >= timeout) {
        return true;
    }
    if (d->orchestrator->marks && out->state == SETTLE_WAITING && now >= watch->ask_ms) {
        struct err ignored = ERR_INIT; /* the next look tells more */
        (void)ask_place(d, step, &ignored);
        watch->ask_ms = now + timeout / ASK_SHARES;
    }
    return false;
}

struct settle_report ask_settle(struct drive *d, const struct step *step, struct err *err)
{
    struct ask_watch watch = ask_watch_begin(d);
    struct settle_report report;
    while (!ask_look(d, step, &watch, &report, err)) {
        ask_wait_for(d, ask_pause_ms(d, watch.start_ms));
    }
    return report;
}
