/* recombine.c - rounds of prices and tabu search, and dives among them. Prices start from what those
 * of the optimum look like rather than from nothing: on 40 instances of 200 services they are 0.2 of an
 * item's degrees and half of its largest (94 % of their variance), which spares ten rounds. */
#include "planner/recombine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "planner/dive.h"
#include "planner/hubs.h"
#include "planner/warm.h"

/* Of first prices: all degrees of the item, and the largest of them. */
#define OF_ALL 0.2
#define OF_LARGEST 0.5
/* First prices are strewn by so much of themselves, or equal degrees would make one choice of all. */
#define JITTER 0.2
/* The sum of prices is the bound of patterns, some 5 % above a placement annealed for a few ms. */
#define ABOVE_BEST 1.05
/* Weight of first prices in the first round, and what is left of it in each later one. */
#define FIRST_WEIGHT 0.7
#define FIRST_DECAY 0.6
/* Moves of a tabu search that begins with one item (two for each of the 16 services that a host holds
 * on average), and of one that begins with a pattern. */
#define SINGLE_STEPS 40
#define TABU_STEPS 20
#define PRICE_STEPS 40
/* Patterns that each round looks around. */
#define SEARCHES 40
#define ITEMS_PER_SEARCH 5
/* Rounds before the first dive and before each later one: prices are within 1 % after 14. */
#define FIRST_ROUNDS 8
#define ROUNDS 4
/* Dives at most, and those in a row that find nothing after which no more are made. */
#define DIVES 12
#define FAILED_DIVES 3
/* Up to the end of the first dive, and from one to the next, on one slow core: 24 and 16 ms for 200
 * items, 0.13 and 0.08 s for 1000. */
#define FIRST_US_PER_ITEM 130
#define MORE_US_PER_ITEM 85
/* Below this mean square of degrees over the square of their mean they are nearly equal; it takes so
 * many times as long then until annealing is outdone (equal degrees, 200 services: 0.3 s). */
#define FLAT 1.1
#define SLOWER 8
/* Above 16 kinds of hosts a pattern is rarely found for the kind that it suits. */
#define MOST_KINDS 16

struct recombination {
    struct place *place;
    const struct plan_options *options;
    struct effort *effort;
    const struct parts *parts;
    int *best_at, *at;
    struct value *best;
    struct work *work;
    double *first; /* prices */
};

/* Where all degrees are nearly equal, patterns are worth the same in many ways and prices tell little
 * for long; where one group has half of all, only its host counts. Neither pays soon. */
static bool degrees_vary(const struct space *space)
{
    double squares = 0, most = 0;
    size_t n = space->n_groups ? space->first_link[space->n_groups] : 0;
    for (int g = 0; g < space->n_groups; g++) {
        double sum = 0;
        for (size_t l = space->first_link[g]; l < space->first_link[g + 1]; l++) {
            sum += space->links[l].degree;
            squares += space->links[l].degree * space->links[l].degree;
        }
        most = sum > most ? sum : most;
    }
    double mean = 2 * space->total / (double)n;
    return squares / (double)n > FLAT * mean * mean && most < space->total / 2;
}

/* How many dives there is time for. */
static int dives_in_time(const struct space *space, const struct plan_options *options)
{
    int64_t items = (int64_t)space->n_movable * (degrees_vary(space) ? 1 : SLOWER);
    int64_t left = options->time_limit_ms * 1000 - items * FIRST_US_PER_ITEM;
    int64_t more = left / (items * MORE_US_PER_ITEM);
    return left < 0 ? 0 : more < DIVES - 1 ? 1 + (int)more : DIVES;
}

bool recombine_suits(const struct space *space, const struct plan_options *options)
{
    bool plain = options->objective == OBJECTIVE_AFFINITY && options->granularity == PER_INSTANCE &&
                 options->min_gain <= 0;
    return plain && space->n_slots == 0 && space->n_movable > 1 && space->total > 0 &&
           place_budget(space, options) >= space->n_movable &&
           dives_in_time(space, options) > 0;
}

static double scaled_best(const struct recombination *r)
{
    return r->best->valid ? r->best->score * r->parts->scale : -INFINITY;
}

/* The patterns of the best placement, polished as it is now. */
static void best_add(const struct recombination *r)
{
    const struct space *space = r->place->space;
    struct search *search = r->work->search;
    AUTO_FREE int *host = mem_array((size_t)r->parts->n, sizeof *host);
    size_t known = search->pool.n;
    for (int i = 0; i < space->n; i++)
        if (r->parts->item_of[i] >= 0)
            host[r->parts->item_of[i]] = r->best_at[i];
    search_add_placement(search, host);
    for (size_t k = known; r->work->packing && k < search->pool.n; k++) {
        const struct pattern *pattern = &search->pool.patterns[k];
        work_add(r->work, pattern->kind, pattern->items, pattern->n, pattern->value);
    }
}

static double found(void *ctx, const int *host_of_item)
{
    struct recombination *r = ctx;
    const struct space *space = r->place->space;
    struct value before = *r->best;
    for (int i = 0; i < space->n; i++)
        r->at[i] = space->fixed[i] ? space->start[i] : host_of_item[r->parts->item_of[i]];
    place_set(r->place, r->at);
    hubs_candidate(r->place, r->options, r->effort, r->best_at, r->best);
    if (value_better(r->best, &before))
        best_add(r);
    return scaled_best(r);
}

static void bound_told(void *ctx, double bound)
{
    (void)ctx;
    (void)bound;
}

static void prices_first(struct recombination *r)
{
    const struct parts *parts = r->parts;
    double sum = 0, wanted = ABOVE_BEST * (scaled_best(r) - parts->constant);
    r->first = mem_array((size_t)parts->n, sizeof *r->first);
    for (int i = 0; i < parts->n; i++) {
        double all = 0, most = 0;
        for (size_t k = parts->first[i]; k < parts->first[i + 1]; k++) {
            double degree = parts->arcs[k].degree;
            all += degree;
            most = degree > most ? degree : most;
        }
        for (int k = 0; k < parts->n_kinds; k++)
            if (parts->kinds[k].bonus && parts->kinds[k].bonus[i] > most)
                most = parts->kinds[k].bonus[i];
        r->first[i] = OF_ALL * all + OF_LARGEST * most;
        sum += r->first[i];
    }
    struct rng rng = {r->options->seed * UINT64_C(0x9e3779b97f4a7c15) + 7};
    for (int i = 0; i < parts->n && sum > 0 && wanted > 0; i++)
        r->first[i] *= wanted / sum * (1 - JITTER / 2 + JITTER * rng_real(&rng));
}

/* Looks around a set; adds what is worth more than the price of its host. */
static int look(struct recombination *r, int steps, int kind, const int *items, int n)
{
    struct work *work = r->work;
    double least = work->kind_prices[kind] + 1e-6 * PARTS_TOTAL / r->parts->n;
    memmove(work->items, items, (size_t)n * sizeof *items);
    double value = columns_improve(work->columns, steps, work->items, &n);
    return value > least && n > 0 && work_found(work, kind, work->items, n);
}

/* The kind on which an item begins: where most of it is fixed, else each in turn. */
static int kind_of_single(const struct parts *parts, int item)
{
    int kind = -1;
    double most = 0;
    for (int k = 0; k < parts->n_kinds; k++)
        if (parts->kinds[k].bonus && parts->kinds[k].bonus[item] > most) {
            most = parts->kinds[k].bonus[item];
            kind = k;
        }
    for (int k = 0; k < parts->n_kinds && kind < 0; k++) {
        int turn = (item + k) % parts->n_kinds;
        if (isfinite(pattern_value(parts, turn, &item, 1)))
            kind = turn;
    }
    return kind;
}

/* Patterns around every single item, at first prices. */
static void singles_look(struct recombination *r)
{
    const struct parts *parts = r->parts;
    for (int kind = 0; kind < parts->n_kinds; kind++) {
        columns_start(r->work->columns, kind, r->first);
        for (int i = 0; i < parts->n; i++)
            if (kind_of_single(parts, i) == kind &&
                isfinite(pattern_value(parts, kind, &i, 1))) {
                look(r, SINGLE_STEPS, kind, &i, 1);
                if (effort_spend(r->effort, 1))
                    return;
            }
    }
}

/* Prices of the patterns so far, mixed with `weight` of the first ones, and what tabu search finds
 * at them: how much. */
static int round_run(struct recombination *r, double weight)
{
    struct work *work = r->work;
    const struct parts *parts = r->parts;
    AUTO_FREE double *mixed = mem_array((size_t)parts->n, sizeof *mixed);
    warm_purge(work);
    packing_run(work->packing, PRICE_STEPS, work->prices, work->kind_prices);
    for (int i = 0; i < parts->n; i++)
        mixed[i] = weight * r->first[i] + (1 - weight) * work->prices[i];
    AUTO_FREE struct scored *order = pool_scores(&work->pool, mixed, NULL);
    size_t all = work->pool.n, most = SEARCHES + (size_t)parts->n / ITEMS_PER_SEARCH;
    int n = 0;
    for (int kind = 0; kind < parts->n_kinds; kind++) {
        columns_start(work->columns, kind, mixed);
        for (size_t k = 0; k < all && k < most; k++) {
            struct pattern pattern = work->pool.patterns[order[k].pattern]; /* the pool grows */
            if (pattern.kind != kind)
                continue;
            n += look(r, TABU_STEPS, kind, pattern.items, pattern.n);
            if (effort_spend(r->effort, 1))
                return n;
        }
    }
    return n;
}

static void rounds_run(struct recombination *r)
{
    double weight = FIRST_WEIGHT;
    int failed = 0, most = dives_in_time(r->place->space, r->options);
    for (int round = 1, dives = 0; dives < most && failed < FAILED_DIVES; round++) {
        round_run(r, weight);
        weight *= FIRST_DECAY;
        if (r->effort->cut)
            return;
        if (round < FIRST_ROUNDS || (round - FIRST_ROUNDS) % ROUNDS != 0)
            continue;
        double before = r->best->score;
        dive(r->work, r->options->seed * 64 + (uint64_t)dives++);
        failed = r->best->score > before + 1e-9 ? 0 : failed + 1;
        if (r->effort->cut)
            return;
    }
}

bool recombine(struct place *place, const struct plan_options *options, struct effort *effort,
               int *best_at, struct value *best)
{
    const struct space *space = place->space;
    struct err err = ERR_INIT;
    struct value before = *best;
    AUTO(parts) struct parts *parts = parts_new(space, &err);
    if (!parts || parts->n_kinds > MOST_KINDS)
        return false;
    AUTO_FREE int *at = mem_array((size_t)space->n, sizeof *at);
    AUTO_WORK struct work work = {0};
    struct recombination r = {.place = place, .options = options, .effort = effort,
                              .parts = parts, .best_at = best_at, .at = at, .best = best,
                              .work = &work};
    struct tree_report report = {found, bound_told, &r};
    struct search search = {.root = parts, .effort = effort, .report = &report,
                            .best = scaled_best(&r), .margin = 1e-9 * PARTS_TOTAL};
    work.search = &search;
    best_add(&r);
    if (work_init(&work, &search, NULL, 0, INFINITY, NULL)) {
        prices_first(&r);
        work.packing = packing_new(work.parts, r.first);
        for (size_t k = 0; k < work.pool.n; k++)
            packing_add(work.packing, &work.pool.patterns[k], 0);
        singles_look(&r);
        if (!effort->cut)
            rounds_run(&r);
    }
    free(r.first);
    pool_wipe(&search.pool);
    return value_better(best, &before);
}
