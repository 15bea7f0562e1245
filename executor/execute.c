/* execute.c - the order of things: what earlier attempts left open, the plan's moves, replicas born
 * meanwhile; or, for an undo, the moves made, newest first. */
#include "executor/execute.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "executor/drive.h"
#include "executor/validate.h"
#include "model/base/clock.h"

struct run {
    struct drive drive;
    struct request *request;   /* the drive's */
    const struct move **queue; /* the plan's moves not yet told, in order */
    size_t n_queue;
    int64_t acted;      /* moves of this cycle that were begun */
    char stopped[1200]; /* why the plan stopped; empty: it did not */
};

static void run_stop(struct run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void run_stop(struct run *run, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(run->stopped, sizeof run->stopped, fmt, args);
    va_end(args);
}

static bool run_stopped(const struct run *run)
{
    return run->stopped[0] != '\0';
}

/* What a driven move means for the rest. -1: the request fails. */
static int run_after(struct run *run, const struct drive *d, enum driven driven)
{
    switch (driven) {
    case DRIVEN_ON:
        run->acted++;
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

/* --- moves as steps --- */

static struct replica_count *counts_named(const struct model *model,
                                          const struct host_count *counts, size_t n)
{
    struct replica_count *named = mem_array(n + 1, sizeof *named);
    for (size_t i = 0; i < n; i++) {
        named[i] = (struct replica_count){model->hosts[counts[i].host].name, counts[i].count};
    }
    return named; /* the names stay the model's */
}

static const char *host_name(const struct model *model, int host)
{
    return host < 0 ? NULL : model->hosts[host].name;
}

/* The move in names of now; `targets` must outlive it. */
static struct step step_of(const struct run *run, const struct move *move,
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

/* The detour by which the instance came to where it is, or NULL. */
static const struct outcome *detour_of(const struct run *run, const char *instance)
{
    const struct outcomes *lists[] = {&run->drive.told, &run->request->done};
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        for (size_t i = lists[l]->n; i > 0; i--) {
            const struct outcome *o = &lists[l]->list[i - 1];
            const char *now = o->instance_now ? o->instance_now : o->instance;
            if (o->detour && o->state == OUTCOME_APPLIED && o->undo_of < 0 && now &&
                strcmp(now, instance) == 0) {
                return o;
            }
        }
    }
    return NULL;
}

/* --- what earlier attempts left --- */

static const struct move *plan_move(const struct run *run, int64_t seq)
{
    for (size_t i = 0; i < run->request->plan->n_moves; i++) {
        if (run->request->plan->moves[i].seq == seq) {
            return &run->request->plan->moves[i];
        }
    }
    return NULL;
}

static bool known(const struct run *run, int64_t seq)
{
    return outcomes_find(&run->request->done, seq) || outcomes_find(&run->drive.told, seq);
}

/* The forward move of an undo that was begun by a failure: it has failed, whatever the undo does. */
static void tell_failed(struct run *run, const struct intent *intent, bool back)
{
    struct outcome o = {.seq = intent->seq,
                        .state = OUTCOME_FAILED,
                        .reason = mem_strdup(back ? "failed in an earlier attempt; undone"
                                                  : "failed in an earlier attempt; not undone"),
                        .service = mem_strdup(intent->service),
                        .instance = mem_strdup(intent->instance),
                        .source = mem_strdup(intent->source),
                        .target = mem_strdup(intent->target),
                        .intended_ms = -1,
                        .settled_ms = clock_wall_ms(),
                        .undo_of = -1,
                        .detour = intent->detour};
    drive_tell(&run->drive, o);
    run_stop(run, "move %lld failed in an earlier attempt", (long long)intent->seq);
}

/* 1: there was an undo of this move, which is finished now; 0: none; -1: *err. */
static int resume_undo(struct run *run, const struct intent *intent, struct err *err)
{
    for (size_t i = 0; i < run->request->n_base; i++) {
        const struct intent *undo = run->request->base[i];
        if (undo->undo_of != intent->seq) {
            continue;
        }
        const struct outcome *o = outcomes_find(&run->request->done, undo->seq);
        enum driven driven = o ? o->state == OUTCOME_APPLIED ? DRIVEN_ON : DRIVEN_FAILED
                               : drive_undo(&run->drive, intent, err);
        if (driven == DRIVEN_ERROR) {
            return -1;
        }
        if (driven == DRIVEN_STOPPED) {
            run_stop(run, "stopped on request");
            return 1;
        }
        tell_failed(run, intent, driven == DRIVEN_ON);
        return 1;
    }
    return 0;
}

/* An intent without an outcome, of a plan's move or of one of our own (detour, steering). */
static int resume_intent(struct run *run, const struct intent *intent, struct err *err)
{
    int undone = resume_undo(run, intent, err);
    if (undone != 0) {
        return undone < 0 ? -1 : 0;
    }
    const struct move *move = plan_move(run, intent->seq);
    AUTO_FREE struct replica_count *targets =
        move ? counts_named(run->request->model, move->targets, move->n_targets) : NULL;
    return run_after(run, &run->drive,
                     drive_resume(&run->drive, intent, targets, move ? move->n_targets : 0,
                                  move != NULL, err));
}

static int resume_all(struct run *run, struct err *err)
{
    size_t n = run->request->n_base; /* those of this attempt come behind */
    for (size_t i = 0; i < n && !run_stopped(run); i++) {
        const struct intent *intent = run->request->base[i];
        if (intent->undo_of < 0 && !known(run, intent->seq) &&
            resume_intent(run, intent, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* --- the plan --- */

static void queue_fill(struct run *run)
{
    const struct plan *plan = run->request->plan;
    run->queue = mem_array(plan->n_moves + 1, sizeof *run->queue);
    for (size_t i = 0; i < plan->n_moves; i++) {
        if (!known(run, plan->moves[i].seq)) {
            run->queue[run->n_queue++] = &plan->moves[i];
        }
    }
}

/* The cycle (contract.md 3 `cycles`) that a move is in, or NULL. */
static const int *cycle_of(const struct plan *plan, int64_t seq)
{
    for (size_t c = 0; c < plan->n_cycles; c++) {
        for (const int *s = plan->cycles[c]; *s; s++) {
            if (*s == seq) {
                return plan->cycles[c];
            }
        }
    }
    return NULL;
}

static bool cycle_has(const int *cycle, int64_t seq)
{
    for (; *cycle; cycle++) {
        if (*cycle == seq) {
            return true;
        }
    }
    return false;
}

/* Puts queue[at] behind the last later move of its cycle that has not stepped aside itself (two
 * that have would wait for each other for ever); false when there is none. */
static bool queue_defer(struct run *run, size_t at, const int *cycle)
{
    size_t last = at;
    for (size_t i = at + 1; i < run->n_queue; i++) {
        const struct move *move = run->queue[i];
        if (cycle_has(cycle, move->seq) && move->instance >= 0 &&
            !detour_of(run, run->drive.lineage.now[move->instance])) {
            last = i;
        }
    }
    const struct move *move = run->queue[at];
    memmove(&run->queue[at], &run->queue[at + 1], (last - at) * sizeof *run->queue);
    run->queue[last] = move;
    return last > at;
}

/* Takes the instance to a host that is free meanwhile, as a row of its own. 0: *made says whether
 * there was such a host. */
static int detour(struct run *run, const struct step *step, struct view *view, int instance,
                  bool *made, struct err *err)
{
    struct model *m = view->model;
    AUTO_FREE bool *avoid = mem_array(m->n_hosts + 1, sizeof *avoid);
    for (size_t i = 0; i < run->n_queue; i++) {
        int host = run->queue[i]->target;
        host = host < 0 ? -1 : model_host(m, run->request->model->hosts[host].name);
        if (host >= 0) {
            avoid[host] = true;
        }
    }
    int host = detour_host(m, instance, model_host(m, step->target), avoid,
                           run->request->move_stateful);
    *made = host >= 0;
    if (host < 0) {
        return 0;
    }
    struct step aside = *step;
    aside.seq = run->drive.next_seq++;
    aside.target = m->hosts[host].name;
    aside.detour = true;
    run->drive.total++;
    return run_after(run, &run->drive, drive_step(&run->drive, &aside, view, err));
}

/* Even after its detour there is no room: the move is off, the instance goes back. */
static int detour_back(struct run *run, const struct step *step, const struct outcome *aside,
                       const char *why, struct err *err)
{
    const struct intent *intent = request_intent(run->request, aside->seq);
    drive_discard(&run->drive, step, why);
    return intent ? run_after(run, &run->drive, drive_undo(&run->drive, intent, err)) : 0;
}

/* A move whose target has no room now: in a cycle of moves that wait for each other it steps aside
 * and comes again when the others have moved. 1: it stays in the queue; 0: it is told; -1. */
static int make_way(struct run *run, size_t at, const struct step *step, struct view *view,
                    int instance, const char *why, struct err *err)
{
    const int *cycle = cycle_of(run->request->plan, step->seq);
    const struct outcome *aside = detour_of(run, step->instance);
    bool made = false;
    if (aside && cycle && queue_defer(run, at, cycle)) {
        return 1; /* aside since an earlier attempt */
    }
    if (aside) {
        return detour_back(run, step, aside, why, err);
    }
    if (cycle && detour(run, step, view, instance, &made, err) < 0) {
        return -1;
    }
    if (made) {
        (void)queue_defer(run, at, cycle);
        return 1;
    }
    char text[500];
    snprintf(text, sizeof text, "%s%s", why, cycle ? "; no free host for a detour" : "");
    drive_discard(&run->drive, step, text);
    return 0;
}

/* Validates on the fresh view and acts. 1: the move stays in the queue; 0: it is told; -1. */
static int move_instance(struct run *run, size_t at, struct view *view, struct err *err)
{
    const struct move *move = run->queue[at];
    struct step step = step_of(run, move, NULL);
    const struct outcome *aside = detour_of(run, step.instance);
    step.source = aside ? aside->target : step.source;
    int here = view_find(view, &run->drive.lineage, move->instance, step.source);
    AUTO_FREE char *name = here < 0 ? mem_strdup(step.instance)
                                    : mem_strdup(view->model->instances[here].name);
    step.instance = name; /* perhaps another replica's by now */
    struct verdict v = validate_instance(view->model, here, step.source, step.target,
                                         run->request->move_stateful);
    switch (v.kind) {
    case MOVE_VALID:
        return run_after(run, &run->drive, drive_step(&run->drive, &step, view, err));
    case MOVE_NO_ROOM:
        return make_way(run, at, &step, view, here, v.why, err);
    case MOVE_INVALID:
        drive_discard(&run->drive, &step, v.why);
        return 0;
    }
    return 0;
}

static int move_service(struct run *run, const struct move *move, struct view *view,
                        struct err *err)
{
    const struct model *m = run->request->model;
    AUTO_FREE struct replica_count *sources = counts_named(m, move->sources, move->n_sources);
    AUTO_FREE struct replica_count *targets = counts_named(m, move->targets, move->n_targets);
    struct step step = step_of(run, move, targets);
    struct verdict v =
        validate_service(view->model, step.service, sources, move->n_sources, targets,
                         move->n_targets, run->request->move_stateful);
    if (v.kind != MOVE_VALID) {
        drive_discard(&run->drive, &step, v.why);
        return 0;
    }
    return run_after(run, &run->drive, drive_step(&run->drive, &step, view, err));
}

static bool limit_reached(const struct run *run)
{
    return run->request->max_moves >= 0 && run->acted >= run->request->max_moves;
}

static int move_next(struct run *run, struct err *err)
{
    struct view view;
    if (drive_inspect(&run->drive, &view, err) < 0) {
        return -1;
    }
    const struct move *move = run->queue[0];
    int stays = move->instance >= 0 ? move_instance(run, 0, &view, err)
                                    : move_service(run, move, &view, err);
    view_wipe(&view);
    if (stays == 0 && !(run_stopped(run) && !known(run, move->seq))) {
        memmove(&run->queue[0], &run->queue[1], --run->n_queue * sizeof *run->queue);
    }
    return stays < 0 ? -1 : 0;
}

/* The rest is not made: told so, unless the request comes again. */
static void discard_rest(struct run *run, const char *why)
{
    for (size_t i = 0; i < run->n_queue; i++) {
        struct step step = step_of(run, run->queue[i], NULL);
        if (!known(run, step.seq)) {
            drive_discard(&run->drive, &step, why);
        }
    }
    run->n_queue = 0;
}

static int moves_make(struct run *run, struct err *err)
{
    while (run->n_queue > 0 && !run_stopped(run)) {
        if (stage_stopping(run->drive.stage)) {
            run_stop(run, "stopped on request");
        } else if (limit_reached(run)) {
            char text[80];
            snprintf(text, sizeof text, "the limit of %lld moves is reached",
                     (long long)run->request->max_moves);
            discard_rest(run, text);
        } else if (move_next(run, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Others may take a replica away while later moves are made. An instance that made a detour has left
 * that host on purpose. */
static void moves_recheck(struct run *run)
{
    const struct outcomes *lists[] = {&run->request->done, &run->drive.told};
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        size_t n = lists[l]->n; /* telling adds to the second */
        for (size_t i = 0; i < n; i++) {
            const struct outcome *o = &lists[l]->list[i];
            if (o->state == OUTCOME_APPLIED && o->undo_of < 0 && !o->detour && o->instance) {
                drive_recheck(&run->drive, o);
            }
        }
    }
}

/* --- replicas born during the plan (§5.6) --- */

/* Steers the first newborn that wants to and can. *more: look again (one was steered, or one is
 * still starting and there is time). */
static int steer_one(struct run *run, int64_t until_ms, bool *more, struct err *err)
{
    struct view view;
    const struct request *r = run->request;
    *more = false;
    if (drive_inspect(&run->drive, &view, err) < 0) {
        return -1;
    }
    AUTO_FREE int *born = NULL;
    size_t n = view_newborn(&view, &run->drive.lineage, &born);
    bool starting = false;
    int result = 0;
    for (size_t i = 0; i < n && !*more && result == 0; i++) {
        const struct instance *x = &view.model->instances[born[i]];
        if (x->pinned_why || x->host < 0) {
            starting = true;
            continue;
        }
        int host = steer_host(view.model, born[i], r->model, r->analysis->service_rows,
                              r->analysis->n_service_rows, r->move_stateful);
        if (host < 0) {
            lineage_rename(&run->drive.lineage, x->name, x->name); /* stays where it came up */
            continue;
        }
        struct step step = {.seq = run->drive.next_seq++,
                            .service = view.model->services[x->service].name,
                            .instance = x->name,
                            .source = view.model->hosts[x->host].name,
                            .target = view.model->hosts[host].name};
        run->drive.total++;
        result = run_after(run, &run->drive, drive_step(&run->drive, &step, &view, err));
        lineage_rename(&run->drive.lineage, x->name, x->name); /* once, whatever came of it */
        *more = true;
    }
    view_wipe(&view);
    if (result == 0 && !*more && starting && clock_mono_ms() < until_ms) {
        *more = true;
        (void)stage_wait(run->drive.stage, r->poll_ms);
    }
    return result;
}

static int newborn_steer(struct run *run, struct err *err)
{
    if (run->drive.orchestrator->granularity != PER_INSTANCE || !run->request->analysis) {
        return 0;
    }
    int64_t until = clock_mono_ms() + run->request->start_wait_ms;
    for (bool more = true; more && !run_stopped(run) && !limit_reached(run);) {
        if (stage_stopping(run->drive.stage)) {
            return 0; /* the plan is through; newcomers stay where they are */
        }
        if (steer_one(run, until, &more, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* A plan that failed in an earlier attempt stays stopped. */
static void stop_after_failure(struct run *run)
{
    for (size_t i = 0; i < run->request->done.n; i++) {
        const struct outcome *o = &run->request->done.list[i];
        if (o->undo_of < 0 && o->state == OUTCOME_FAILED) {
            run_stop(run, "move %lld failed in an earlier attempt", (long long)o->seq);
        }
    }
}

static int run_plan(struct run *run, struct err *err)
{
    for (size_t i = 0; i < run->request->done.n; i++) {
        run->acted += run->request->done.list[i].undo_of < 0 &&
                      run->request->done.list[i].state != OUTCOME_DISCARDED;
    }
    stop_after_failure(run);
    if (resume_all(run, err) < 0) {
        return -1;
    }
    queue_fill(run);
    if (moves_make(run, err) < 0) {
        return -1;
    }
    moves_recheck(run);
    if (!run_stopped(run) && newborn_steer(run, err) < 0) {
        return -1;
    }
    if (run_stopped(run) && !stage_leaving(run->drive.stage)) {
        char why[1300];
        snprintf(why, sizeof why, "plan stopped: %s", run->stopped);
        discard_rest(run, why);
    }
    return 0;
}

/* --- undo --- */

struct past { /* a move that was made */
    const struct intent *intent;
    int64_t settled_ms;
};

static int past_newest_first(const void *a, const void *b)
{
    const struct past *x = a, *y = b;
    if (x->settled_ms != y->settled_ms) {
        return x->settled_ms > y->settled_ms ? -1 : 1;
    }
    return (y->intent->seq > x->intent->seq) - (y->intent->seq < x->intent->seq);
}

static bool is_undone(const struct request *r, int64_t seq)
{
    for (size_t i = 0; i < r->done.n; i++) {
        const struct outcome *o = &r->done.list[i];
        if (o->undo_of == seq && o->state == OUTCOME_APPLIED) {
            return true;
        }
    }
    return false;
}

/* Moves made in this cycle and not yet put back: detours and steered newcomers as well. Without a
 * history (a filter) the plan's moves count as made, in their order. */
static struct past *past_collect(struct run *run, size_t *n)
{
    struct request *r = run->request;
    struct past *list = NULL;
    *n = 0;
    bool history = r->n_base > 0 || r->done.n > 0;
    for (size_t i = 0; !history && i < r->plan->n_moves; i++) {
        struct step step = step_of(run, &r->plan->moves[i], NULL);
        drive_assume(&run->drive, &step);
    }
    for (size_t i = 0; i < r->n_base; i++) {
        const struct intent *intent = r->base[i];
        const struct outcome *o = outcomes_find(&r->done, intent->seq);
        bool made = o ? o->state == OUTCOME_APPLIED || o->state == OUTCOME_PARTIAL : !history;
        if (intent->undo_of < 0 && made && !is_undone(r, intent->seq)) {
            *ARRAY_PUSH(list, *n) = (struct past){intent, o ? o->settled_ms : 0};
        }
    }
    if (*n) {
        qsort(list, *n, sizeof *list, past_newest_first);
    }
    return list;
}

static int run_undo(struct run *run, struct err *err)
{
    size_t n, failed = 0;
    AUTO_FREE struct past *list = past_collect(run, &n);
    run->drive.total = (int64_t)n;
    for (size_t i = 0; i < n && !run_stopped(run); i++) {
        enum driven driven = stage_stopping(run->drive.stage)
                                 ? DRIVEN_STOPPED
                                 : drive_undo(&run->drive, list[i].intent, err);
        if (driven == DRIVEN_ERROR) {
            return -1;
        }
        if (driven == DRIVEN_STOPPED) {
            run_stop(run, "stopped on request");
        }
        failed += driven == DRIVEN_FAILED; /* the others are put back all the same */
    }
    if (failed && !run_stopped(run)) {
        run_stop(run, "%zu of %zu moves could not be put back", failed, n);
    }
    return 0;
}

/* --- the request --- */

static void result_encode(const struct run *run, struct buf *out)
{
    buf_puts(out, "{\"v\":1,\"stopped\":");
    json_put_text(out, run_stopped(run) ? run->stopped : NULL);
    buf_puts(out, ",\"outcomes\":[");
    for (size_t i = 0; i < run->drive.told.n; i++) {
        buf_puts(out, i ? "," : "");
        outcome_encode(&run->drive.told.list[i], out);
    }
    buf_puts(out, "]}");
}

int execute_handle(struct stage *stage, const struct stage_request *request, struct buf *result,
                   int *exit_code, struct err *err)
{
    (void)exit_code;
    AUTO(request) struct request *r = request_decode(request->body, request->size, err);
    if (!r) {
        return -1;
    }
    struct run run = {.request = r};
    if (drive_open(&run.drive, stage, r, err) < 0) {
        return -1;
    }
    int done = r->undo ? run_undo(&run, err) : run_plan(&run, err);
    if (done == 0) {
        result_encode(&run, result);
    }
    drive_close(&run.drive);
    free(run.queue);
    return done;
}
