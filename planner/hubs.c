/* hubs.c - rounds of annealing from merged clusters and from the best so far. */
#include "planner/hubs.h"

#include <stdlib.h>
#include <string.h>
#include "model/base/clock.h"
#include "planner/exhaust.h"
#include "planner/explain.h"
#include "planner/fewest.h"
#include "planner/hba.h"
#include "planner/homeward.h"
#include "planner/nearest.h"
#include "planner/pack.h"
#include "planner/pull.h"
#include "planner/recombine.h"
#include "planner/relieve.h"
#include "planner/service.h"
#include "planner/settle.h"

/* Measured on one core: about 0.1 µs per iteration on sparse graphs, up to 0.5 µs with hundreds of
 * replicas. */
#define ROUND_PER_INSTANCE 600
#define ROUNDS 6
/* Iterations per ms on one slow core; caches hold no more than some 2000 instances. Where the time is
 * short one round takes nearly all of it, after a brief one that leaves something to return: rounds
 * of a sixth end 1 % lower, and one that is cut may end with nothing that holds. */
#define ROUND_PER_MS 5000
#define ROUND_PER_MS_LARGE 2500
#define LARGE 2000
#define BRIEF 6
/* Before placements are put together anew, and of each of the rounds after that. */
#define ROUND_BEFORE 100
#define ROUND_AFTER 400
#define ROUNDS_AFTER 2
/* Where rows are between many replicas annealing only makes a start for pulling. */
#define ROUND_REPLICATED 60
/* Steps of pulling per instance, and per ms of the time limit: 3500 replicas take 70,000 steps, some
 * 3 s, and ten times as many gain 0.2 %: who gives more than 10 s gets them. */
#define PULLS_PER_INSTANCE 20
#define PULLS_PER_MS 8
#define PULLS_MORE_MS 10000

void hubs_candidate(struct place *place, const struct plan_options *options,
                    struct effort *effort, int *best_at, struct value *best)
{
    struct value value;
    if (place->n_unplaced > 0)
        pack_unplaced(place);
    value = value_of(place, options);
    if (!value.valid)
        return;
    descend(place, options, effort);
    pack_empty(place, options, effort);
    descend(place, options, effort);
    pack_relabel(place, options);
    value = value_of(place, options);
    if (value.valid && (!best->valid || value_better(&value, best))) {
        *best = value;
        memcpy(best_at, place->at, sizeof *best_at * (size_t)place->space->n);
        effort_found(effort, best_at, best);
    }
}

/* HBA's own plan: never return less. */
static void candidate_hba(struct place *place, const struct plan_options *options,
                          struct effort *effort, int *best_at, struct value *best)
{
    const struct space *space = place->space;
    struct err err = ERR_INIT;
    struct analysis analysis = {.rows = (struct affinity *)(uintptr_t)space->rows,
                                .n_rows = space->n_rows};
    AUTO(plan) struct plan *plan = plan_new();
    if (hba_planner.plan(space->model, &analysis, options, plan, &err) < 0)
        return;
    place_set(place, plan->placement);
    hubs_candidate(place, options, effort, best_at, best);
}

/* Anneals, and polishes both the end (mended where a host is over) and the best on the way. Says how
 * many had moved at the end. */
static int anneal_round(struct place *place, const struct anneal *how,
                        const struct plan_options *options, struct rng *rng,
                        struct effort *effort, int *best_at, struct value *best)
{
    bool had = best->valid;
    struct value before = *best;
    anneal_run(place, how, options, rng, effort, best_at, best);
    int moved = place->n_moved;
    bool found = best->valid && (!had || value_better(best, &before));
    if (!found && place->excess <= 0 && pack_mend(place))
        hubs_candidate(place, options, effort, best_at, best);
    if (best->valid)
        place_set(place, best_at);
    if (found || !best->valid)
        hubs_candidate(place, options, effort, best_at, best);
    return moved;
}

/* Anneals a little, puts the patterns of hosts together anew, and anneals again where there is time.
 * True when patterns found more than annealing. */
static bool patterns(struct place *place, const struct plan_options *options,
                     struct effort *effort, int *best_at, struct value *best)
{
    const struct space *space = place->space;
    struct rng rng = {options->seed * UINT64_C(0x9e3779b97f4a7c15) + 3};
    struct anneal how = {.hot = 0.9,
                         .cold = 0.1,
                         .price_host = 0.05,
                         .price_move = 1e-4,
                         .max_moves = -1,
                         .iterations = (int64_t)ROUND_BEFORE * space->n_movable};
    anneal_round(place, &how, options, &rng, effort, best_at, best);
    if (!best->valid || effort->cut || !recombine(place, options, effort, best_at, best))
        return false;
    how.iterations = (int64_t)ROUND_AFTER * space->n_movable;
    bool enough = options->time_limit_ms * ROUND_PER_MS > 16 * how.iterations;
    for (int round = 0; enough && round < ROUNDS_AFTER && !effort->cut; round++) {
        how.hot = round % 2 ? 0.35 : 0.2;
        place_set(place, best_at);
        anneal_round(place, &how, options, &rng, effort, best_at, best);
    }
    return true;
}

static void rounds(struct place *place, const struct plan_options *options,
                   struct effort *effort, int *best_at, struct value *best)
{
    const struct space *space = place->space;
    struct rng rng = {options->seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    int64_t budget = place_budget(space, options);
    bool limited = budget < space->n_movable;
    int64_t iterations = (int64_t)ROUND_PER_INSTANCE * space->n_movable;
    if (space->n_slots > 0)
        iterations = (int64_t)ROUND_REPLICATED * space->n_movable;
    int64_t in_time = options->time_limit_ms *
                      (space->n_movable > LARGE ? ROUND_PER_MS_LARGE : ROUND_PER_MS);
    bool brief = space->n_slots == 0 && in_time < 16 * iterations; /* all are 21 times the first */
    if (brief)
        iterations = in_time * 9 / 10 / BRIEF;
    /* Where moves are few each is worth its share of all degrees; rounds find the price at which as
     * many move as may. */
    double price = limited ? 0.2 * space->total / (space->mean * (double)(budget + 1))
                           : 1e-4;
    struct anneal how = {
        .hot = 0.9,
        .cold = 0.1,
        .price_host = options->objective == OBJECTIVE_HOSTS ? 3 : 0.05,
        .price_move = price,
        .max_moves = limited ? (int)budget : -1,
        .iterations = iterations,
    };
    bool found = false; /* enough where pulling comes after */
    for (int round = 0; round < ROUNDS && !effort->cut && !found; round++) {
        if (round > 0 && best->valid)
            place_set(place, best_at);
        int moved = anneal_round(place, &how, options, &rng, effort, best_at, best);
        if (limited)
            how.price_move *= moved > budget ? 2 : 0.6;
        bool first = brief && round == 0;
        how.iterations = first ? how.iterations * (BRIEF - 1) : how.iterations * 3 / 2;
        found = space->n_slots > 0 && best->valid;
        /* A warm restart keeps most clusters, a hot one few. */
        how.hot = first || round % 2 ? 0.9 : 0.35;
    }
}

/* Rows between services of many replicas: clusters are pulled together. */
static void pulls(struct place *place, const struct plan_options *options, struct effort *effort,
                  int *best_at, struct value *best)
{
    const struct space *space = place->space;
    struct rng rng = {options->seed * UINT64_C(0x9e3779b97f4a7c15) + 5};
    int64_t in_time = options->time_limit_ms * PULLS_PER_MS;
    int64_t longer = 1 + (options->time_limit_ms - 1) / PULLS_MORE_MS;
    int64_t steps = (int64_t)PULLS_PER_INSTANCE * space->n_movable * longer;
    pull_run(place, options, steps < in_time ? steps : in_time, &rng, effort, best_at, best);
    hubs_candidate(place, options, effort, best_at, best);
}

/* Nothing was found: all placements are tried where they are few; one that holds is polished. */
static void last_resort(struct place *place, const struct plan_options *options,
                        struct effort *effort, int *best_at, struct value *best)
{
    switch (exhaust(place, options, effort)) {
    case EXHAUST_FOUND:
        hubs_candidate(place, options, effort, best_at, best);
        rounds(place, options, effort, best_at, best);
        break;
    case EXHAUST_NONE:
        best->none = true;
        break;
    case EXHAUST_OPEN:
        break;
    }
}

void hubs_search(struct space *space, const struct plan_options *options, struct effort *effort,
                 int *best_at, struct value *best)
{
    AUTO(place) struct place *place = place_new(space, space->start);
    *best = (struct value){.objective = options->objective};
    memcpy(best_at, space->start, sizeof *best_at * (size_t)space->n);
    place->score = place_score_exact(place);
    struct value start = value_of(place, options);
    if (start.valid) {
        *best = start;
        effort_found(effort, best_at, best);
    }
    if (space->n == 0 || space->n_hosts == 0)
        return;
    hubs_candidate(place, options, effort, best_at, best);
    if (!best->valid && space->n_new > 0) {
        place_set(place, space->start);
        if (settle(place, place_budget(space, options)))
            hubs_candidate(place, options, effort, best_at, best);
    }
    candidate_hba(place, options, effort, best_at, best);
    place_set(place, space->start);
    int64_t budget = place_budget(space, options);
    if (budget < 0) {
        best->none = true; /* not even what is placed nowhere can be */
        return;
    }
    if (budget >= space->n_movable) {
        pack_merge(place);
        AUTO_FREE int *merged = mem_dup(place->at, sizeof *place->at * (size_t)space->n);
        hubs_candidate(place, options, effort, best_at, best);
        place_set(place, merged);
    } else if (place->n_unplaced > 0) {
        pack_unplaced(place);
    }
    if (space->n_movable > 0 && place->n_unplaced == 0) {
        AUTO_FREE int *from = mem_dup(place->at, sizeof *place->at * (size_t)space->n);
        if (!recombine_suits(space, options) ||
            !patterns(place, options, effort, best_at, best)) {
            place_set(place, from);
            rounds(place, options, effort, best_at, best);
        }
    }
    if (!best->valid)
        last_resort(place, options, effort, best_at, best);
    if (best->valid && space->n_slots > 0 && space->n_movable > 0 && !effort->cut)
        pulls(place, options, effort, best_at, best);
}

/* What keeps an instance off a host that holds only what cannot leave; NULL: nothing. */
static const char *obstacle(const struct place *place, int instance, int host)
{
    const struct space *space = place->space;
    if (!space->open[host] && space->start[instance] != host)
        return "the host is not schedulable";
    for (int d = 0; d < space->dims; d++)
        if (place->used[host * space->dims + d] + space->need[instance * space->dims + d] >
            space->cap[host * space->dims + d])
            return load_dim_names[space->dim[d]];
    /* "together" depends on who else comes; the others do not. */
    const char *why = rules_problem(place->rules, space->model->instances[instance].service, -1,
                                    host);
    return why && strcmp(why, "rule together") != 0 ? why : NULL;
}

/* At most so many texts of obstacle() are there. */
#define OBSTACLES (LOAD_DIMS + 5)

/* The different obstacles of all hosts in one text; NULL where a host has none. */
static char *obstacles(const struct place *place, int instance)
{
    const char *seen[OBSTACLES];
    size_t n = 0;
    struct buf text = BUF_INIT;
    for (int h = 0; h < place->space->n_hosts; h++) {
        const char *why = obstacle(place, instance, h);
        size_t k = 0;
        if (!why) {
            buf_wipe(&text);
            return NULL;
        }
        while (k < n && strcmp(seen[k], why) != 0)
            k++;
        if (k < n || n == OBSTACLES)
            continue;
        seen[n++] = why;
        AUTO_FREE char *which =
            rules_which(place->space->model, place->space->model->instances[instance].service, why);
        buf_printf(&text, "%s%s", n > 1 ? ", " : "", which);
    }
    if (place->space->n_hosts == 0)
        buf_puts(&text, "there is no host");
    return buf_take(&text);
}

/* How much the instance needs of what no host has enough of, and where it is now. */
static void misfit_more(const struct place *place, int instance, struct buf *out)
{
    const struct space *space = place->space;
    char needs[LOAD_TEXT_SIZE], has[LOAD_TEXT_SIZE];
    for (int d = 0; d < space->dims; d++) {
        int64_t need = space->need[instance * space->dims + d], most = 0;
        for (int h = 0; h < space->n_hosts; h++) {
            int64_t room = space->cap[h * space->dims + d] - place->used[h * space->dims + d];
            most = room > most ? room : most;
        }
        if (need > most && space->n_hosts > 0)
            buf_printf(out, "; it needs %s of %s, no host has more than %s",
                       load_text(space->dim[d], (double)need, needs),
                       load_dim_names[space->dim[d]], load_text(space->dim[d], (double)most, has));
    }
    if (space->start[instance] >= 0)
        buf_printf(out, "; it is on %s", space->model->hosts[space->start[instance]].name);
}

/* Names an instance that no host could hold even beside nothing but what cannot leave, and all that is in
 * its way. */
static char *misfit(const struct space *space)
{
    AUTO_FREE int *at = mem_array((size_t)space->n, sizeof *at);
    for (int i = 0; i < space->n; i++)
        at[i] = space->fixed[i] ? space->start[i] : -1;
    AUTO(place) struct place *place = place_new(space, at);
    for (int i = 0; i < space->n; i++) {
        if (space->fixed[i] || (space->start[i] >= 0 && !space->strict))
            continue; /* where it is it may stay */
        AUTO_FREE char *why = obstacles(place, i);
        if (!why)
            continue;
        struct buf text = BUF_INIT;
        buf_printf(&text, "%s fits on no host, even beside nothing that could leave (%s)",
                   space->model->instances[i].name, why);
        misfit_more(place, i, &text);
        return buf_take(&text);
    }
    return NULL;
}

/* What a host can hold at most of a dimension, where instances that begin there take `used` of it: that
 * may stay, though it be too much, and nothing else comes where the host is closed. */
static double room_at_most(const struct space *space, int host, int d, double used)
{
    double cap = (double)space->cap[host * space->dims + d], most = cap > 0 ? cap : 0;
    if (!space->open[host] && used < most)
        most = used;
    return space->strict || most > used ? most : used;
}

/* Says where all hosts together have less room in some dimension than all instances need; NULL
 * where they have enough. */
static char *overfull(const struct space *space)
{
    char needed[LOAD_TEXT_SIZE], had[LOAD_TEXT_SIZE];
    AUTO_FREE double *used = mem_array((size_t)space->n_hosts, sizeof *used);
    for (int d = 0; d < space->dims; d++) {
        double need = 0, room = 0;
        bool closed = false;
        for (int h = 0; h < space->n_hosts; h++)
            used[h] = 0;
        for (int i = 0; i < space->n; i++) {
            double one = (double)space->need[i * space->dims + d];
            need += one;
            if (space->start[i] >= 0)
                used[space->start[i]] += one;
        }
        for (int h = 0; h < space->n_hosts; h++) {
            room += room_at_most(space, h, d, used[h]);
            closed |= !space->open[h];
        }
        if (need > room * (1 + 1e-12))
            return mem_printf("all instances need %s of %s, all hosts have %s%s",
                              load_text(space->dim[d], need, needed),
                              load_dim_names[space->dim[d]], load_text(space->dim[d], room, had),
                              closed ? " (those not schedulable no more than is on them)" : "");
    }
    return NULL;
}

/* Every placement was tried: names a host that is over now and one instance on
 * it, or what stands in the way. */
static char *tried_all(const struct space *space, const struct plan_options *options)
{
    const char *text =
        options->granularity == PER_SERVICE
            ? "no placement of whole services, evenly spread, keeps all capacities and rules (every "
              "one was tried)"
            : "no placement keeps all capacities and rules (every one was tried)";
    AUTO(place) struct place *place = place_new(space, space->start);
    for (int h = 0; h < space->n_hosts; h++)
        for (int d = 0; d < space->dims && place->n_residents[h] > 0; d++)
            if (place->used[h * space->dims + d] > space->cap[h * space->dims + d])
                return mem_printf("%s; host %s is over its %s now, with %s on it", text,
                                  space->model->hosts[h].name, load_dim_names[space->dim[d]],
                                  space->model->instances[place->residents[h][0]].name);
    char *nearest = options->granularity == PER_SERVICE ? NULL : nearest_why(space, options);
    return nearest ? nearest : mem_strdup(text);
}

char *hubs_impossible(const struct space *space, const struct plan_options *options)
{
    char *why = misfit(space);
    if (!why && place_budget(space, options) < 0)
        why = mem_printf("%d instances are placed nowhere, more than the %lld moves allowed",
                         space->n_new, (long long)options->max_moves);
    return why ? why : overfull(space);
}

static void finish_without(struct space *space, const struct plan_options *options,
                           const struct effort *effort, bool none, struct plan *out)
{
    out->why = hubs_impossible(space, options);
    if (!out->why && none)
        out->why = tried_all(space, options);
    out->status = out->why ? PLAN_INFEASIBLE : PLAN_TIMEOUT;
    if (!out->why)
        out->why = mem_printf("no placement that keeps capacities and rules was found in %lld "
                              "iterations",
                              (long long)effort->done);
}

int hubs_finish(struct space *space, const struct plan_options *options,
                const struct effort *effort, const int *best_at, const struct value *best,
                struct plan *out, struct err *err)
{
    const struct model *model = space->model;
    const int *at = best->valid ? best_at : space->start;
    AUTO(place) struct place *place = place_new(space, at);
    place->score = place_score_exact(place);
    if (best->valid && options->granularity == PER_INSTANCE) {
        if (options->min_gain > 0) /* less what is not worth its moves */
            homeward(place, options);
        relieve(place, options);
    }
    AUTO_FREE int *last = mem_dup(place->at, (size_t)space->n * sizeof *last);
    out->cut = effort->cut;
    out->iterations = effort->done;
    if (plan_fill(out, model, space->rows, space->n_rows, last, err) < 0)
        return -1;
    if (!best->valid) {
        finish_without(space, options, effort, best->none, out);
        return 0;
    }
    /* plan_fill() decides anew which replica goes where: what did not hold then would not be offered. */
    struct err broken = ERR_INIT;
    if (options->granularity == PER_SERVICE &&
        plan_check(out, model, options->move_stateful, &broken) < 0) {
        if (plan_fill(out, model, space->rows, space->n_rows, space->start, err) < 0)
            return -1;
        out->status = PLAN_FEASIBLE;
        free(out->why);
        out->why = mem_printf("the best placement found cannot be reached: %s", broken.text);
        return 0;
    }
    explain_discarded(out, place, options);
    out->status = PLAN_FEASIBLE;
    return 0;
}

static void search(struct space *space, const struct plan_options *options, struct effort *effort,
                   int *best_at, struct value *best)
{
    if (options->granularity == PER_SERVICE)
        service_search(space, options, effort, best_at, best);
    else
        fewest_hubs(space, options, effort, best_at, best);
}

/* Where hosts come first the price of moves must not keep any in use: half of the time goes to a search
 * without, of which goes home what the hosts do not need. */
static void search_hosts_first(struct space *space, const struct plan_options *options,
                               struct effort *effort, int *best_at, struct value *best)
{
    struct plan_options half = *options;
    AUTO_FREE double *price = space->price;
    AUTO_FREE int *at = mem_array((size_t)space->n, sizeof *at);
    struct value value;
    half.time_limit_ms = options->time_limit_ms / 2 + 1;
    space->price = mem_array((size_t)space->n, sizeof *space->price);
    search(space, &half, effort, at, &value);
    free(space->price);
    space->price = steal(price);
    search(space, &half, effort, best_at, best);
    if (!value.valid)
        return;
    if (options->granularity == PER_SERVICE) {
        service_homeward(space, options, at, best_at, best);
        return;
    }
    AUTO(place) struct place *place = place_new(space, at);
    place->score = place_score_exact(place);
    homeward(place, options);
    value = value_of(place, options);
    if (value.valid && (!best->valid || value_better(&value, best))) {
        *best = value;
        memcpy(best_at, place->at, sizeof *best_at * (size_t)space->n);
    }
}

void hubs_answer(struct space *space, const struct plan_options *options, struct effort *effort,
                 int *best_at, struct value *best)
{
    if (options->objective == OBJECTIVE_HOSTS && options->min_gain > 0)
        search_hosts_first(space, options, effort, best_at, best);
    else
        search(space, options, effort, best_at, best);
}

static int hubs_plan(const struct model *model, const struct analysis *analysis,
                     const struct plan_options *options, struct plan *out, struct err *err)
{
    AUTO(space) struct space *space =
        space_new(model, analysis->rows, analysis->n_rows, options->move_stateful, err);
    if (!space)
        return -1;
    space_price_moves(space, options->min_gain);
    struct effort effort = {.limit = options->iterations,
                            .deadline_ms = plan_deadline_ms(options, model->n_instances, 5),
                            .progress = options->progress,
                            .progress_ctx = options->progress_ctx};
    effort_begins(&effort, plan_after_ms(options, model));
    AUTO_FREE int *best_at = mem_array(model->n_instances, sizeof *best_at);
    struct value best = {.objective = options->objective};
    AUTO_FREE char *impossible = hubs_impossible(space, options); /* nothing to search for */
    if (!impossible)
        hubs_answer(space, options, &effort, best_at, &best);
    out->planner = mem_strdup("hubs");
    if (best.valid)
        out->why = mem_printf("groups of partners packed, annealed and put together anew, %lld iterations",
                              (long long)effort.done);
    return hubs_finish(space, options, &effort, best_at, &best, out, err);
}

const struct planner hubs_planner = {
    .name = "hubs",
    .summary = "groups of partners together: merge, pack, anneal; any size, every rule",
    .takes = TAKES_HOSTS_OBJECTIVE | TAKES_SERVICES | TAKES_MAX_MOVES | TAKES_MOVE_STATEFUL |
             TAKES_FRONTIER | TAKES_MIN_GAIN,
    .plan = hubs_plan,
};
