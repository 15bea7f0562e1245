/* moves.c - the plan's moves in their order, each validated on a fresh inspection just before it
 * (§5.6); in plans that no order makes possible, with detours (contract.md 3 `unordered`). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "executor/ask.h"
#include "executor/run.h"
#include "executor/validate.h"
#include "model/base/clock.h"

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

void moves_queue(struct run *run)
{
    const struct plan *plan = run->request->plan;
    run->queue = mem_array(plan->n_moves + 1, sizeof *run->queue);
    for (size_t i = 0; i < plan->n_moves; i++) {
        if (!run_knows(run, plan->moves[i].seq)) {
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
    int host =
        detour_host(m, instance, model_host(m, step->target), avoid, run->request->move_stateful);
    *made = host >= 0;
    if (host < 0) {
        return 0;
    }
    struct step aside = *step;
    aside.seq = run->drive.next_seq++;
    aside.target = m->hosts[host].name;
    aside.detour = true;
    run->drive.total++;
    return run_after(run, drive_step(&run->drive, &aside, view, err));
}

/* Pods that leave hold room until they are gone: a move waits for that, but no longer than a replica
 * may take to get ready. */
static bool room_will_come(struct run *run, const struct move *move, const struct model *now)
{
    const struct model *planned = run->request->model;
    bool leaving = false;
    for (size_t i = 0; i < move->n_targets + (move->target >= 0); i++) {
        int host = move->target >= 0 ? move->target : move->targets[i].host;
        int here = model_host(now, planned->hosts[host].name);
        leaving |= here >= 0 && now->hosts[here].ending > 0;
    }
    if (!leaving)
        return false;
    if (run->waiting_seq != move->seq) {
        run->waiting_seq = move->seq;
        run->waiting_ms = clock_mono_ms() + run->request->ready_timeout_ms;
    }
    run->waits = clock_mono_ms() < run->waiting_ms;
    run->drive.work += run->waits; /* nobody hangs: the wait has an end of its own */
    return run->waits;
}

/* Even after its detour there is no room: the move is off, the instance goes back. */
static int detour_back(struct run *run, const struct step *step, const struct outcome *aside,
                       const char *why, struct err *err)
{
    const struct intent *intent = request_intent(run->request, aside->seq);
    drive_discard(&run->drive, step, why);
    return intent ? run_after(run, drive_undo(&run->drive, intent, false, err)) : 0;
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
    if (!cycle && room_will_come(run, run->queue[at], view->model)) {
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
    struct step step = run_step(run, move, NULL);
    const struct outcome *aside = detour_of(run, step.instance);
    step.source = aside ? aside->target : step.source;
    int here = view_find(view, &run->drive.lineage, move->instance, step.source);
    AUTO_FREE char *name =
        here < 0 ? mem_strdup(step.instance) : mem_strdup(view->model->instances[here].name);
    step.instance = name; /* perhaps another replica's by now */
    struct verdict v =
        validate_instance(view->model, here, step.source, step.target, run->request->move_stateful);
    switch (v.kind) {
    case MOVE_VALID:
        return run_begin(run, &step, view, err);
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
    AUTO_FREE struct replica_count *sources = run_counts(run, move->sources, move->n_sources);
    AUTO_FREE struct replica_count *targets = run_counts(run, move->targets, move->n_targets);
    struct step step = run_step(run, move, targets);
    struct verdict v = validate_service(view->model, step.service, sources, move->n_sources,
                                        targets, move->n_targets, run->request->move_stateful);
    if (v.kind == MOVE_NO_ROOM && room_will_come(run, move, view->model)) {
        return 1;
    }
    if (v.kind != MOVE_VALID) {
        drive_discard(&run->drive, &step, v.why);
        return 0;
    }
    return run_begin(run, &step, view, err);
}

/* Deals with queue[at] and takes it out of the queue unless it stays. -1: the request fails. */
static int move_one(struct run *run, size_t at, struct view *view, struct err *err)
{
    const struct move *move = run->queue[at];
    run->waits = false;
    int stays = move->instance >= 0 ? move_instance(run, at, view, err)
                                    : move_service(run, move, view, err);
    if (stays == 0 && !(run_stopped(run) && !run_knows(run, move->seq))) {
        memmove(&run->queue[at], &run->queue[at + 1],
                (--run->n_queue - at) * sizeof *run->queue);
    }
    return stays < 0 ? -1 : stays;
}

/* What the outcomes told since mean for the moves that are still queued. */
static void moves_judge(struct run *run)
{
    run_rebase(run);
    run_reconsider(run);
}

#define AHEAD_MOVES 16 /* told at once: each is begun within some 20 ms */

/* Tells the orchestrator what is begun next: queue[at], and what fits beside it now. */
static void moves_tell(struct run *run, size_t at, const struct model *held, size_t *told)
{
    struct step steps[AHEAD_MOVES] = {{0}};
    struct replica_count *targets[AHEAD_MOVES];
    size_t n = 0, room = (size_t)run->request->max_parallel - run->n_flights;
    for (size_t i = at; i < run->n_queue && n < room && n < AHEAD_MOVES; i++) {
        const struct move *move = run->queue[i];
        if (i > at && !run_fits_beside(run, i, held)) {
            continue;
        }
        targets[n] = run_counts(run, move->targets, move->n_targets);
        steps[n] = run_step(run, move, targets[n]);
        n++;
    }
    ask_ahead(&run->drive, steps, n);
    for (size_t i = 0; i < n; i++) {
        free(targets[i]);
    }
    *told = n;
}

/* The first move, and what can be begun beside it. With some under way the first may wait as well:
 * room that it lacks may be what they free. */
static int moves_begin(struct run *run, struct err *err)
{
    struct view view;
    if (drive_inspect(&run->drive, &view, err) < 0) {
        return -1;
    }
    int done = 0;
    size_t at = 0, told = 0;
    struct model *held = NULL;
    run->landed = true; /* as long as this pass goes on */
    if (run->n_flights == 0) {
        if (run->request->max_parallel > 1) {
            moves_tell(run, 0, view.model, &told);
            told--;
        }
        done = move_one(run, 0, &view, err);
    }
    while (done >= 0 && run->n_flights > 0 && at < run->n_queue && run_may_begin(run) &&
           !run_stopped(run) && !run_limit_reached(run)) {
        held = held ? held : run_held(run, &view);
        if (run_fits_beside(run, at, held)) {
            if (told == 0) {
                moves_tell(run, at, held, &told);
            }
            told -= told > 0;
            done = move_one(run, at, &view, err);
            at += run->waits;
            model_free(held);
            held = NULL;
            if (run->n_judged < run->drive.told.n) { /* discarded: is the rest still worth it? */
                moves_judge(run);
                at = 0;
            }
        } else {
            at++;
        }
    }
    model_free(held);
    done = done < 0 || run_ask(run, err) < 0 ? -1 : done;
    ask_ahead(&run->drive, NULL, 0);
    run->landed = false;
    view_wipe(&view);
    return done < 0 ? -1 : 0;
}

void moves_discard(struct run *run, const char *why)
{
    for (size_t i = 0; i < run->n_queue; i++) {
        struct step step = run_step(run, run->queue[i], NULL);
        if (!run_knows(run, step.seq)) {
            drive_discard(&run->drive, &step, why);
        }
    }
    run->n_queue = 0;
}

/* Nothing more is begun; those under way come to their ends. */
static int moves_land(struct run *run, struct err *err)
{
    while (run->n_flights > 0) {
        if (run_look(run, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Begins what can be begun, and looks at what is under way. */
static int moves_step(struct run *run, struct err *err)
{
    if (run_may_begin(run) && moves_begin(run, err) < 0) {
        return -1;
    }
    if (run->n_flights > 0) {
        if (run_look(run, err) < 0) {
            return -1;
        }
    } else if (run->waits) {
        ask_wait(&run->drive);
    }
    moves_judge(run);
    return 0;
}

int moves_make(struct run *run, struct err *err)
{
    if (run->request->lost) {
        snprintf(run->lost, sizeof run->lost, "moves of it were discarded in an earlier attempt");
        run_reconsider(run);
    }
    while (run->n_queue > 0 && !run_told_to_stop(run)) {
        if (run_limit_reached(run)) {
            char text[80];
            snprintf(text, sizeof text, "the limit of %lld moves is reached",
                     (long long)run->request->max_moves);
            moves_discard(run, text);
        } else if (moves_step(run, err) < 0) {
            return -1;
        }
    }
    return moves_land(run, err);
}
