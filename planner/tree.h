/* tree.h - branch and price over patterns (planning.md 6): column generation at every node, branching
 * on a pair of items together or apart, bounds from the prices (never from the solver's objective),
 * restricted integer masters for placements. Anytime: reports every better placement and bound. */
#ifndef REMAP_PLANNER_TREE_H
#define REMAP_PLANNER_TREE_H

#include "planner/anneal.h"
#include "planner/parts.h"

struct tree_report {
    /* A placement as patterns of items (host by item, -1: anywhere); returns the best scaled value
     * known after it was checked and polished. */
    double (*found)(void *ctx, const int *host_of_item);
    /* A better proven upper bound, scaled. */
    void (*bound)(void *ctx, double bound);
    void *ctx;
};

struct tree_start {
    const int *const *placements; /* each the host of every item: first patterns */
    size_t n_placements;
    double known;   /* scaled value of the best placement */
    double margin;  /* scaled difference of values that counts as none */
};

/* 0 when the bound reached the best value within the margin, 1 when the effort ended first, -1 when
 * the solver failed. */
int tree_search(const struct parts *parts, const struct tree_start *start,
                const struct tree_report *report, struct effort *effort);

#endif
