/* pool.c - patterns by the sum of their items' hashes, which knows no order. */
#include "planner/pool.h"

#include <math.h>
#include <stdlib.h>
#include "planner/rng.h"

static uint64_t set_hash(int kind, const int *items, int n)
{
    uint64_t sum = (uint64_t)kind * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int k = 0; k < n; k++) {
        struct rng rng = {(uint64_t)items[k] + 1};
        sum += rng_next(&rng);
    }
    return sum ? sum : 1;
}

static size_t slot_of(const uint64_t *slots, size_t n, uint64_t hash)
{
    size_t at = hash & (n - 1);
    while (slots[at] && slots[at] != hash)
        at = (at + 1) & (n - 1);
    return at;
}

/* True when the hash was there already; then it is. */
static bool seen_before(struct pool *pool, uint64_t hash)
{
    if (pool->n_hashes * 2 >= pool->n_slots) {
        size_t n = pool->n_slots ? pool->n_slots * 2 : 256;
        uint64_t *slots = mem_array(n, sizeof *slots);
        for (size_t k = 0; k < pool->n_slots; k++)
            if (pool->slots[k])
                slots[slot_of(slots, n, pool->slots[k])] = pool->slots[k];
        free(pool->slots);
        pool->slots = slots;
        pool->n_slots = n;
    }
    size_t at = slot_of(pool->slots, pool->n_slots, hash);
    if (pool->slots[at])
        return true;
    pool->slots[at] = hash;
    pool->n_hashes++;
    return false;
}

bool pool_add(struct pool *pool, int kind, const int *items, int n, double value)
{
    if (seen_before(pool, set_hash(kind, items, n)))
        return false;
    struct pattern *pattern = ARRAY_PUSH(pool->patterns, pool->n);
    *pattern = (struct pattern){kind, n, mem_dup(items, (size_t)n * sizeof *items), value};
    return true;
}

void pool_wipe(struct pool *pool)
{
    for (size_t k = 0; k < pool->n; k++)
        free(pool->patterns[k].items);
    free(pool->patterns);
    free(pool->slots);
    *pool = (struct pool){0};
}

double pattern_value(const struct parts *parts, int kind, const int *items, int n)
{
    const struct kind *host = &parts->kinds[kind];
    double value = 0, used[LOAD_DIMS] = {0};
    for (int k = 0; k < n; k++) {
        int i = items[k];
        if (host->allowed && !host->allowed[i])
            return -INFINITY;
        value += host->bonus ? host->bonus[i] : 0;
        for (int d = 0; d < parts->dims; d++)
            used[d] += parts->size[i * parts->dims + d];
        for (int l = 0; l < k; l++) {
            for (size_t a = parts->first[i]; a < parts->first[i + 1]; a++)
                if (parts->arcs[a].item == items[l])
                    value += parts->arcs[a].degree;
            for (size_t a = parts->first_conflict[i]; a < parts->first_conflict[i + 1]; a++)
                if (parts->conflicts[a] == items[l])
                    return -INFINITY;
        }
    }
    for (int d = 0; d < parts->dims; d++)
        if (used[d] > host->cap[d])
            return -INFINITY;
    return value;
}
