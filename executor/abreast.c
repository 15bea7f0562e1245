/* abreast.c - moves of different services side by side (design.md 4): only if neither needs room that
 * the other frees. So a move that is begun while others are under way must fit beside all of them, as
 * if each of their replicas were at both its places; and it must keep off the hosts that a move
 * before it in the plan waits for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/ask.h"
#include "executor/run.h"
#include "executor/validate.h"
#include "model/affinity.h"
#include "model/base/clock.h"

bool run_may_begin(const struct run *run)
{
    return run->n_flights == 0 ||
           (run->landed && (int64_t)run->n_flights < run->request->max_parallel);
}

int run_begin(struct run *run, const struct step *step, const struct view *view, struct err *err)
{
    struct flight flight;
    if (run->request->max_parallel <= 1) {
        return run_after(run, drive_step(&run->drive, step, view, err));
    }
    enum driven driven = drive_intend(&run->drive, step, view, &flight);
    if (driven != DRIVEN_FLYING) {
        return run_after(run, driven);
    }
    *ARRAY_PUSH(run->flights, run->n_flights) = flight;
    run->acted++;
    return run->drive.orchestrator->place_all ? 0 : run_ask(run, err);
}

static void flight_drop(struct run *run, size_t at)
{
    flight_wipe(&run->flights[at]);
    run->n_flights--;
    memmove(&run->flights[at], &run->flights[at + 1], (run->n_flights - at) * sizeof *run->flights);
}

/* Those that were not asked for are the last. */
static void begin_together(struct run *run, size_t first)
{
    size_t n = run->n_flights - first;
    AUTO_FREE struct step *steps = mem_array(n + 1, sizeof *steps);
    AUTO_FREE bool *begun = mem_array(n + 1, sizeof *begun);
    for (size_t i = 0; i < n; i++) {
        steps[i] = run->flights[first + i].step;
    }
    ask_place_all(&run->drive, steps, n, begun);
    for (size_t i = 0; i < n; i++) {
        run->flights[first + i].begun = begun[i];
    }
}

/* The plan stopped while others were asked for; of this one there is only the intent. */
static enum driven flight_forgo(struct run *run, const struct flight *flight)
{
    char why[1300];
    snprintf(why, sizeof why, "plan stopped: %s", run->stopped);
    if (!stage_leaving(run->drive.stage)) { /* else the next attempt finds the intent */
        drive_discard(&run->drive, &flight->step, why);
    }
    return DRIVEN_ON;
}

int run_ask(struct run *run, struct err *err)
{
    size_t first = 0;
    while (first < run->n_flights && run->flights[first].asked) {
        first++;
    }
    if (run->n_flights - first > 1) {
        begin_together(run, first);
    }
    for (size_t i = first, n = 0; i < run->n_flights; n++) {
        struct flight *flight = &run->flights[i];
        bool forgo = n > 0 && !flight->begun && run_told_to_stop(run);
        enum driven driven = forgo ? flight_forgo(run, flight)
                                   : drive_ask(&run->drive, flight, err);
        if (driven == DRIVEN_FLYING) {
            i++;
            continue;
        }
        flight_drop(run, i);
        if (driven != DRIVEN_ON && run_after(run, driven) < 0) { /* it was counted when it began */
            return -1;
        }
    }
    return 0;
}

/* --- what those under way hold --- */

static int64_t most(const struct flight *flight, const char *host)
{
    int64_t n = 0;
    for (size_t i = 0; i < flight->n_before; i++) {
        n = strcmp(flight->before[i].host, host) == 0 && flight->before[i].count > n
                ? flight->before[i].count
                : n;
    }
    for (size_t i = 0; i < flight->n_after; i++) {
        n = strcmp(flight->after[i].host, host) == 0 && flight->after[i].count > n
                ? flight->after[i].count
                : n;
    }
    return n;
}

/* One more replica like `like` on the host, which no inspection shows. */
static void hold_one(struct model *model, const struct instance *like, int host)
{
    struct err taken = ERR_INIT;
    AUTO_FREE char *name = mem_printf("remap-held-%zu", model->n_instances);
    struct instance copy = *like; /* adding moves the array */
    int i = model_add_instance(model, name, copy.service, host, &taken);
    if (i < 0) {
        return; /* somebody's instance is called that: then it is there, and counts */
    }
    model->instances[i].cpu_used_millis = copy.cpu_used_millis;
    model->instances[i].mem_used_bytes = copy.mem_used_bytes;
    model->instances[i].cpu_request_millis = copy.cpu_request_millis;
    model->instances[i].mem_request_bytes = copy.mem_request_bytes;
}

static void hold_flight(struct model *model, const struct flight *flight)
{
    int service = model_service(model, flight->step.service);
    size_t n = model->n_instances, like = n;
    AUTO_FREE int64_t *on = mem_array(model->n_hosts + 1, sizeof *on);
    for (size_t i = 0; i < n; i++) {
        if (model->instances[i].service == service) {
            like = i;
            if (model->instances[i].host >= 0) {
                on[model->instances[i].host]++;
            }
        }
    }
    for (size_t h = 0; like < n && h < model->n_hosts; h++) {
        for (int64_t held = most(flight, model->hosts[h].name); held > on[h]; held--) {
            hold_one(model, &model->instances[like], (int)h);
        }
    }
}

struct model *run_held(const struct run *run, const struct view *view)
{
    struct model *model = model_copy(view->model);
    for (size_t i = 0; i < run->n_flights; i++) {
        hold_flight(model, &run->flights[i]);
    }
    return model;
}

/* --- may it begin? --- */

static bool goes_to(const struct move *move, int host)
{
    bool goes = move->target == host;
    for (size_t i = 0; i < move->n_targets; i++) {
        goes |= move->targets[i].host == host;
    }
    return goes;
}

static bool share_target(const struct move *a, const struct move *b)
{
    bool share = a->target >= 0 && goes_to(b, a->target);
    for (size_t i = 0; i < a->n_targets; i++) {
        share |= goes_to(b, a->targets[i].host);
    }
    return share;
}

static bool is_flying(const struct run *run, const char *service)
{
    for (size_t i = 0; i < run->n_flights; i++) {
        if (strcmp(run->flights[i].step.service, service) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_valid(const struct run *run, const struct move *move, const struct model *model)
{
    const struct lineage *lineage = &run->drive.lineage;
    struct step step = run_step(run, move, NULL);
    bool stateful = run->request->move_stateful;
    if (step.instance) {
        int here = model_instance(model, lineage->now[move->instance]);
        return validate_instance(model, here, step.source, step.target, stateful).kind ==
               MOVE_VALID;
    }
    AUTO_FREE struct replica_count *sources = run_counts(run, move->sources, move->n_sources);
    AUTO_FREE struct replica_count *targets = run_counts(run, move->targets, move->n_targets);
    return validate_service(model, step.service, sources, move->n_sources, targets,
                            move->n_targets, stateful)
               .kind == MOVE_VALID;
}

bool run_fits_beside(const struct run *run, size_t at, const struct model *held)
{
    const struct move *move = run->queue[at];
    if (is_flying(run, run->request->model->services[move->service].name)) {
        return false;
    }
    for (size_t i = 0; i < at; i++) {
        if (run->queue[i]->service == move->service || share_target(run->queue[i], move)) {
            return false;
        }
    }
    return is_valid(run, move, held);
}

/* --- looking at them --- */

/* What comes by itself is read so often: a quarter of what a small rollout takes. */
#define TURN_MS 20

static void wait_for_news(struct run *run)
{
    int64_t now = clock_mono_ms(), wait = run->request->poll_ms;
    if (run->drive.cluster->rolls) {
        wait = wait < TURN_MS ? wait : TURN_MS;
    }
    for (size_t i = 0; i < run->n_flights; i++) {
        int64_t left = run->flights[i].look_ms - now;
        bool over = left <= 0 && run->drive.cluster->rolls; /* it is seen to be on its way */
        wait = left < wait && !over ? left : wait;
    }
    ask_wait_for(&run->drive, wait > 1 ? wait : 1);
}

/* Which are to be looked at now; the orchestrator may read for all of them at the same time. */
static size_t find_due(struct run *run)
{
    size_t n = 0;
    AUTO_FREE struct step *steps = mem_array(run->n_flights + 1, sizeof *steps);
    for (size_t i = 0; i < run->n_flights; i++) {
        struct flight *flight = &run->flights[i];
        flight->due = drive_is_due(&run->drive, flight);
        if (flight->due) {
            steps[n++] = flight->step;
        }
    }
    if (n > 1) {
        ask_looks_ahead(&run->drive, steps, n);
    }
    return n;
}

static int look_at_due(struct run *run, struct err *err)
{
    for (size_t i = 0; i < run->n_flights;) {
        if (!run->flights[i].due) {
            i++;
            continue;
        }
        run->flights[i].due = false;
        enum driven driven = drive_look(&run->drive, &run->flights[i], err);
        if (driven == DRIVEN_FLYING) {
            i++;
            continue;
        }
        flight_drop(run, i);
        run->landed = true;
        if (driven == DRIVEN_ON) {
            continue; /* it was counted when it began */
        }
        if (run_after(run, driven) < 0) {
            return -1;
        }
    }
    return 0;
}

int run_look(struct run *run, struct err *err)
{
    wait_for_news(run);
    size_t n = find_due(run);
    int rc = look_at_due(run, err);
    if (n > 1) {
        ask_looks_ahead(&run->drive, NULL, 0);
    }
    return rc;
}

void run_wipe_flights(struct run *run)
{
    for (size_t i = 0; i < run->n_flights; i++) {
        flight_wipe(&run->flights[i]);
    }
    free(run->flights);
    run->flights = NULL;
    run->n_flights = 0;
}

/* --- what was built on a move that went elsewhere --- */

static const struct move *move_of(const struct run *run, int64_t seq)
{
    for (size_t i = 0; i < run->request->plan->n_moves; i++) {
        if (run->request->plan->moves[i].seq == seq) {
            return &run->request->plan->moves[i];
        }
    }
    return NULL;
}

static int service_at(const struct model *model, const struct affinity *row, int end)
{
    return row->level == LEVEL_SERVICE ? end : model->instances[end].service;
}

static bool comes_from(const struct move *move, int host)
{
    bool comes = move->source == host;
    for (size_t i = 0; i < move->n_sources; i++) {
        comes |= move->sources[i].host == host;
    }
    return comes;
}

/* Is a replica of the service on a host of the move when the plan is through: where it goes to, or
 * where it comes from? */
static bool is_with(const struct run *run, int service, const struct move *move, bool target)
{
    const struct plan *plan = run->request->plan;
    const struct model *model = run->request->model;
    for (size_t i = 0; i < model->n_instances; i++) {
        int host = i < plan->n_placement ? plan->placement[i] : model->instances[i].host;
        if (model->instances[i].service == service && host >= 0 &&
            (target ? goes_to(move, host) : comes_from(move, host))) {
            return true;
        }
    }
    return false;
}

/* What draws a service to the move's targets, less what holds it back, if `gone` counts for nothing;
 * *built: `gone` was part of it. */
static double pull_without(const struct run *run, const struct move *move, int gone, bool *built)
{
    const struct analysis *analysis = run->request->analysis;
    const struct model *model = run->request->model;
    double pull = 0;
    *built = false;
    for (size_t i = 0; i < analysis->n_service_rows; i++) {
        const struct affinity *row = &analysis->service_rows[i];
        int a = service_at(model, row, row->a), b = service_at(model, row, row->b);
        if (row->degree <= 0 || a == b || (a != move->service && b != move->service)) {
            continue;
        }
        int other = a == move->service ? b : a;
        *built |= other == gone;
        if (other != gone) {
            pull += is_with(run, other, move, true) ? row->degree : 0;
            pull -= is_with(run, other, move, false) ? row->degree : 0;
        }
    }
    return pull;
}

static void discard_built_on(struct run *run, const struct move *gone, const struct outcome *why)
{
    const struct model *model = run->request->model;
    char text[300];
    snprintf(text, sizeof text, "base changed: move %lld (%.100s) was %s", (long long)why->seq,
             model->services[gone->service].name, outcome_state_name(why->state));
    for (size_t i = 0; i < run->n_queue;) {
        const struct move *move = run->queue[i];
        bool built = false;
        if (!share_target(move, gone) || pull_without(run, move, gone->service, &built) > 0 ||
            !built) {
            i++;
            continue;
        }
        struct step step = run_step(run, move, NULL);
        drive_discard(&run->drive, &step, text);
        run->n_queue--;
        memmove(&run->queue[i], &run->queue[i + 1], (run->n_queue - i) * sizeof *run->queue);
    }
}

void run_rebase(struct run *run)
{
    for (; run->n_judged < run->drive.told.n; run->n_judged++) {
        const struct outcome o = run->drive.told.list[run->n_judged];
        const struct move *gone = o.undo_of < 0 ? move_of(run, o.seq) : NULL;
        bool elsewhere = o.state == OUTCOME_MISSED || o.state == OUTCOME_PARTIAL ||
                         o.state == OUTCOME_DISPLACED;
        if (gone && o.state != OUTCOME_APPLIED && o.state != OUTCOME_PARTIAL) {
            snprintf(run->lost, sizeof run->lost, "move %lld (%.100s) was %s", (long long)o.seq,
                     run->request->model->services[gone->service].name,
                     outcome_state_name(o.state));
        }
        if (gone && elsewhere && run->request->analysis) {
            discard_built_on(run, gone, &o);
        }
    }
}
