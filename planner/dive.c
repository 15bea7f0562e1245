/* dive.c - one placement from prices and amounts. */
#include "planner/dive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps of prices after patterns were taken, and moves of a tabu search for the rest. */
#define STEPS 80
#define TABU_STEPS 15
/* One tabu search per so many items left: with twice as many a dive of 200 items costs half as much
 * again and ends no higher. */
#define ITEMS_PER_SEARCH 4
/* One more pattern is taken at a time per so many items left: the dive of 1000 items in 0.1 s. */
#define ITEMS_PER_TAKE 250
/* More than all degrees together: never worth it. */
#define TAKEN_PRICE (1e3 * PARTS_TOTAL)

struct dive {
    struct work *work;
    const struct parts *parts;
    struct rng rng;
    bool *taken;      /* items */
    int *hosts_left;  /* by kind */
    int items_left;
    struct pool chosen, rest;
    struct packing *packing; /* of the rest */
    double *prices, *kind_prices, *search_prices;
    int *items;
};

static bool is_free(const struct dive *d, const struct pattern *pattern)
{
    for (int k = 0; k < pattern->n; k++)
        if (d->taken[pattern->items[k]])
            return false;
    return d->hosts_left[pattern->kind] > 0;
}

static void rest_add(struct dive *d, const struct pattern *pattern, double amount)
{
    if (pool_add(&d->rest, pattern->kind, pattern->items, pattern->n, pattern->value))
        packing_add(d->packing, &d->rest.patterns[d->rest.n - 1], amount);
}

/* What is left of the patterns after some were taken. */
static void rest_renew(struct dive *d)
{
    struct pool old = d->rest;
    AUTO(packing) struct packing *packing = steal(d->packing);
    d->rest = (struct pool){0};
    d->packing = packing_new(d->parts, d->prices);
    for (int k = 0; k < d->parts->n_kinds; k++)
        packing_limit(d->packing, k, d->hosts_left[k]);
    for (size_t k = 0; k < old.n; k++)
        if (is_free(d, &old.patterns[k]))
            rest_add(d, &old.patterns[k], packing_amount(packing, k));
    pool_wipe(&old);
}

/* Patterns of what is not taken, around the best of the rest. */
static void rest_search(struct dive *d)
{
    AUTO_FREE struct scored *order = pool_scores(&d->rest, d->prices, d->kind_prices);
    size_t all = d->rest.n, most = (size_t)d->items_left / ITEMS_PER_SEARCH + 5;
    for (int i = 0; i < d->parts->n; i++)
        d->search_prices[i] = d->taken[i] ? TAKEN_PRICE : d->prices[i];
    for (int kind = 0; kind < d->parts->n_kinds; kind++) {
        columns_start(d->work->columns, kind, d->search_prices);
        for (size_t k = 0; k < all && k < most && d->hosts_left[kind] > 0; k++) {
            struct pattern pattern = d->rest.patterns[order[k].pattern];
            if (pattern.kind != kind)
                continue;
            if (effort_spend(d->work->search->effort, 1))
                return;
            memcpy(d->items, pattern.items, (size_t)pattern.n * sizeof *d->items);
            pattern.items = d->items;
            double value = columns_improve(d->work->columns, TABU_STEPS, d->items, &pattern.n);
            if (value <= d->kind_prices[kind])
                continue;
            pattern.value = pattern_value(d->parts, kind, d->items, pattern.n);
            if (isfinite(pattern.value))
                rest_add(d, &pattern, 0);
        }
    }
}

static void take(struct dive *d, const struct pattern *pattern)
{
    pool_add(&d->chosen, pattern->kind, pattern->items, pattern->n, pattern->value);
    d->hosts_left[pattern->kind]--;
    d->items_left -= pattern->n;
    for (int k = 0; k < pattern->n; k++)
        d->taken[pattern->items[k]] = true;
}

/* Takes what is used nearly whole, or else what is used most. False when nothing is. */
static bool take_most(struct dive *d)
{
    AUTO_FREE struct scored *order = mem_array(d->rest.n, sizeof *order);
    size_t n = 0, some = 1 + (size_t)d->items_left / ITEMS_PER_TAKE;
    bool any = false;
    for (size_t k = 0; k < d->rest.n; k++) {
        double amount = packing_amount(d->packing, k), turn = 0.9 + 0.2 * rng_real(&d->rng);
        if (d->rest.patterns[k].n < 2 || !is_free(d, &d->rest.patterns[k]))
            continue;
        if (amount > 0.95) {
            take(d, &d->rest.patterns[k]);
            any = true;
        } else if (amount > 1e-6) {
            order[n++] = (struct scored){amount * turn, k};
        }
    }
    if (n > 1)
        qsort(order, n, sizeof *order, scored_compare);
    for (size_t k = 0; k < n && some > 0 && (!any || order[k].score > 0.5); k++)
        if (is_free(d, &d->rest.patterns[order[k].pattern])) {
            take(d, &d->rest.patterns[order[k].pattern]);
            any = true;
            some--;
        }
    return any;
}

static void dive_place(struct dive *d)
{
    AUTO_FREE int *picks = mem_array(d->chosen.n, sizeof *picks);
    for (size_t k = 0; k < d->chosen.n; k++) {
        const struct pattern *pattern = &d->chosen.patterns[k];
        picks[k] = 1;
        work_found(d->work, pattern->kind, pattern->items, pattern->n);
    }
    work_place(d->work, picks, d->chosen.patterns, d->chosen.n);
}

void dive(struct work *work, uint64_t seed)
{
    const struct parts *parts = work->parts;
    struct dive d = {.work = work, .parts = parts, .rng = {seed + 1}, .items_left = parts->n};
    d.taken = mem_array((size_t)parts->n, sizeof *d.taken);
    d.items = mem_array((size_t)parts->n, sizeof *d.items);
    d.hosts_left = mem_array((size_t)parts->n_kinds, sizeof *d.hosts_left);
    d.prices = mem_dup(work->prices, (size_t)parts->n * sizeof *d.prices);
    d.kind_prices = mem_dup(work->kind_prices, (size_t)parts->n_kinds * sizeof *d.kind_prices);
    d.search_prices = mem_array((size_t)parts->n, sizeof *d.search_prices);
    d.packing = packing_new(parts, d.prices);
    for (int k = 0; k < parts->n_kinds; k++)
        d.hosts_left[k] = parts->kinds[k].count;
    for (size_t k = 0; k < work->pool.n; k++)
        rest_add(&d, &work->pool.patterns[k],
                 work->packing ? packing_amount(work->packing, k) : 0);
    bool more = true;
    while (more && d.items_left > 1 && !effort_spend(work->search->effort, 1)) {
        packing_run(d.packing, STEPS, d.prices, d.kind_prices);
        more = take_most(&d);
        rest_renew(&d);
        rest_search(&d);
    }
    if (d.chosen.n > 0 && !work->search->effort->cut)
        dive_place(&d);
    pool_wipe(&d.chosen);
    pool_wipe(&d.rest);
    packing_free(d.packing);
    free(d.taken);
    free(d.items);
    free(d.hosts_left);
    free(d.prices);
    free(d.kind_prices);
    free(d.search_prices);
}
