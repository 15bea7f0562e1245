/* warm.c - rounds of prices, tabu search, exact pricing and dives. */
#include "planner/warm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "planner/dive.h"

/* Rounds of tabu search before the first exact pricing, and steps of prices between them. */
#define ROUNDS 60
#define STEPS 200
/* Patterns that are kept, per item. */
#define PATTERNS_PER_ITEM 10
/* Rounds of exact pricing, and of tabu search after each. */
#define EXACT_ROUNDS 40
#define AFTER_ROUNDS 8
/* Nodes of one pricing: where few, a single open one spoils the bound; where many, the first bound
 * comes late. */
#define NODES_FIRST 2000
#define NODES_MOST 100000

void warm_purge(struct work *work)
{
    size_t n = work->pool.n, most = (size_t)work->parts->n * PATTERNS_PER_ITEM + 50;
    if (n < most * 3 / 2)
        return;
    AUTO_FREE struct scored *order = pool_scores(&work->pool, work->prices, work->kind_prices);
    struct pool old = work->pool;
    AUTO(packing) struct packing *packing = steal(work->packing);
    work->pool = (struct pool){0};
    work->packing = packing_new(work->parts, work->prices);
    for (size_t k = 0; k < n; k++) {
        const struct pattern *pattern = &old.patterns[order[k].pattern];
        double amount = packing_amount(packing, order[k].pattern);
        bool alone = !work->parts->alone && pattern->n == 1;
        if ((k < most || amount > 1e-3 || alone) &&
            pool_add(&work->pool, pattern->kind, pattern->items, pattern->n, pattern->value))
            packing_add(work->packing, &work->pool.patterns[work->pool.n - 1], amount);
    }
    pool_wipe(&old);
}

/* Prices, then tabu search at them: how much it found. */
static int warm_round(struct work *work)
{
    packing_run(work->packing, STEPS, work->prices, work->kind_prices);
    warm_purge(work);
    return work_tabu(work);
}

static void warm_start(struct work *work)
{
    const struct parts *parts = work->parts;
    AUTO_FREE double *first = mem_array((size_t)parts->n, sizeof *first);
    for (int i = 0; i < parts->n; i++)
        first[i] = 0.7 * work->best_prices[i];
    work->packing = packing_new(parts, first);
    for (size_t k = 0; k < work->pool.n; k++)
        packing_add(work->packing, &work->pool.patterns[k], 0);
    for (int round = 0, few = 0; round < ROUNDS && few < 2; round++) {
        few += warm_round(work) < parts->n / 20;
        if (work->search->effort->cut)
            return;
    }
}

/* What the prices alone would allow: where the bound is near, more rounds bring little. */
static double prices_sum(const struct work *work)
{
    double sum = work->parts->constant;
    for (int i = 0; i < work->parts->n; i++)
        sum += work->prices[i];
    for (int k = 0; k < work->parts->n_kinds; k++)
        sum += work->kind_prices[k] * work->parts->kinds[k].count;
    return sum;
}

/* Rounds of exact pricing, each with tabu search around what it found. */
static void warm_exact(struct work *work, int rounds, int max_nodes)
{
    const struct search *search = work->search;
    for (int round = 0; round < rounds && !search->effort->cut; round++) {
        bool ended;
        packing_run(work->packing, STEPS, work->prices, work->kind_prices);
        int found = work_exact(work, work->prices, &ended);
        double left = work->bound - prices_sum(work);
        if (ended || work_closed(work) || (found == 0 && work->n_cut == 0) ||
            left < 0.1 * (work->bound - search->best))
            break;
        if (work->n_cut > 0 && work->max_nodes < max_nodes)
            work->max_nodes *= 4;
        for (int k = 0; k < AFTER_ROUNDS && found > 0 && !search->effort->cut; k++)
            found = warm_round(work);
    }
}

void warm_up(struct work *work)
{
    const struct search *search = work->search;
    warm_start(work);
    if (!search->effort->cut)
        dive(work, 0);
    work->max_nodes = NODES_FIRST;
    warm_exact(work, EXACT_ROUNDS, NODES_MOST);
    if (!search->effort->cut && !work_closed(work))
        dive(work, 1);
    packing_free(steal(work->packing));
}

void warm_bound(struct work *work, int rounds, int max_nodes)
{
    warm_start(work);
    work->max_nodes = max_nodes;
    warm_exact(work, rounds, max_nodes);
    packing_free(steal(work->packing));
}
