/* execute.c - the order of things: what earlier attempts left open, the plan's moves, replicas born
 * meanwhile; or, for an undo, the moves made, newest first. */
#include "executor/execute.h"

#include <stdio.h>
#include <stdlib.h>
#include "executor/run.h"
#include "model/base/clock.h"

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

/* The forward move of an undo that was begun by a failure: it has failed, whatever the undo does.
 */
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
                               : drive_undo(&run->drive, intent, false, err);
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
        move ? run_counts(run, move->targets, move->n_targets) : NULL;
    return run_after(run, drive_resume(&run->drive, intent, targets, move ? move->n_targets : 0,
                                       move != NULL && !run_stopped(run), err));
}

/* All of them, also when one has failed: several may have been under way side by side. */
static int resume_all(struct run *run, struct err *err)
{
    size_t n = run->request->n_base; /* those of this attempt come behind */
    for (size_t i = 0; i < n && !stage_leaving(run->drive.stage); i++) {
        const struct intent *intent = run->request->base[i];
        if (intent->undo_of < 0 && !run_knows(run, intent->seq) &&
            resume_intent(run, intent, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Does the service run as the move said? Then the orchestrator need not be asked. */
static bool is_as_planned(const struct run *run, const struct outcome *o, const struct model *now)
{
    const struct move *move = plan_move(run, o->seq);
    int service = model_service(now, o->service);
    if (!move || o->instance || service < 0) {
        return false;
    }
    for (size_t i = 0; i < move->n_targets; i++) {
        int host = model_host(now, run->request->model->hosts[move->targets[i].host].name);
        int64_t on = 0;
        for (size_t k = 0; host >= 0 && k < now->n_instances; k++) {
            on += now->instances[k].service == service && now->instances[k].host == host;
        }
        if (on < move->targets[i].count) {
            return false;
        }
    }
    return true;
}

/* Others may take a replica away while later moves are made. An instance that made a detour has
 * left that host on purpose. */
static void moves_recheck(struct run *run)
{
    struct view view;
    struct err unseen = ERR_INIT;
    bool whole = run->request->plan->granularity == PER_SERVICE;
    bool seen =
        whole && run->request->plan->n_moves > 0 && drive_inspect(&run->drive, &view, &unseen) == 0;
    const struct outcomes *lists[] = {&run->request->done, &run->drive.told};
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        size_t n = lists[l]->n; /* telling adds to the second */
        for (size_t i = 0; i < n; i++) {
            const struct outcome *o = &lists[l]->list[i];
            if (o->state == OUTCOME_APPLIED && o->undo_of < 0 && !o->detour &&
                !(seen && is_as_planned(run, o, view.model))) {
                drive_recheck(&run->drive, o);
            }
        }
    }
    if (seen) {
        view_wipe(&view);
    }
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
    moves_queue(run);
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
        moves_discard(run, why);
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
        struct step step = run_step(run, &r->plan->moves[i], NULL);
        drive_assume(&run->drive, &step);
    }
    for (size_t i = 0; i < r->n_base; i++) {
        const struct intent *intent = r->base[i];
        const struct outcome *o = outcomes_find(&r->done, intent->seq);
        bool made = o ? o->state == OUTCOME_APPLIED || o->state == OUTCOME_PARTIAL ||
                            o->state == OUTCOME_MISSED
                      : !history;
        if (intent->undo_of < 0 && made && !is_undone(r, intent->seq)) {
            *ARRAY_PUSH(list, *n) = (struct past){intent, o ? o->settled_ms : 0};
        }
    }
    if (*n) {
        qsort(list, *n, sizeof *list, past_newest_first);
    }
    return list;
}

/* One round over what is not back yet. What is refused goes to the front of the list, for the next
 * round, when the others have made room; `last`: there is none. -1: *err. */
static int undo_round(struct run *run, struct past *list, size_t *n, bool last, size_t *failed,
                      struct err *err)
{
    size_t later = 0;
    for (size_t i = 0; i < *n && !run_stopped(run); i++) {
        enum driven driven = stage_stopping(run->drive.stage)
                                 ? DRIVEN_STOPPED
                                 : drive_undo(&run->drive, list[i].intent, !last, err);
        if (driven == DRIVEN_ERROR) {
            return -1;
        }
        if (driven == DRIVEN_STOPPED) {
            run_stop(run, "stopped on request");
        }
        if (driven == DRIVEN_LATER) {
            list[later++] = list[i];
        }
        *failed += driven == DRIVEN_FAILED; /* the others are put back all the same */
    }
    *n = later;
    return 0;
}

static int run_undo(struct run *run, struct err *err)
{
    size_t n, failed = 0;
    AUTO_FREE struct past *list = past_collect(run, &n);
    run->drive.total = (int64_t)n;
    for (size_t before = n + 1; n > 0 && !run_stopped(run);) {
        bool last = n == before; /* a whole round has changed nothing */
        before = n;
        if (undo_round(run, list, &n, last, &failed, err) < 0) {
            return -1;
        }
    }
    if (failed && !run_stopped(run)) {
        run_stop(run, "%zu of %zu moves could not be put back", failed, (size_t)run->drive.total);
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
    int done = kept_await(run.drive.kept, err);
    if (done == 0) {
        done = r->undo ? run_undo(&run, err) : run_plan(&run, err);
    }
    if (done == 0) {
        result_encode(&run, result);
    }
    run_wipe_flights(&run);
    drive_close(&run.drive);
    free(run.queue);
    return done;
}
