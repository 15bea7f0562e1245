/* pool.h - patterns, and growing sets of them with each in it once. */
#ifndef REMAP_PLANNER_POOL_H
#define REMAP_PLANNER_POOL_H

#include "planner/parts.h"

struct pattern {
    int kind;
    int n;
    int *items;
    double value; /* without prices */
};

/* Value of a set without prices, -INFINITY where it breaks capacity, conflicts or allowed items. */
double pattern_value(const struct parts *parts, int kind, const int *items, int n);

struct pool { /* {0} is empty */
    struct pattern *patterns;
    size_t n;
    uint64_t *slots; /* hashes, open addressing; 0 free */
    size_t n_slots, n_hashes;
};

/* Copies the items. False when the set is there already (or, once in some 10^12, one of equal hash). */
bool pool_add(struct pool *pool, int kind, const int *items, int n, double value);
void pool_wipe(struct pool *pool);

#endif
