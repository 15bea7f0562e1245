/* counts.h - the placement problem as one integer program over counts: how many of the instances
 * that are alike each host has, one row per service and host however many replicas there are. Says
 * exactly what patterns of hosts cannot (parts.h): rows between replicated services, every rule,
 * budgets of moves, fewest hosts, whole services evenly spread. For models of some thousand
 * columns. */
#ifndef REMAP_PLANNER_COUNTS_H
#define REMAP_PLANNER_COUNTS_H

#include "planner/anneal.h"

struct counts_end {
    bool proven;  /* *best is the optimum of the first objective, or (invalid) there is none */
    double bound; /* of the score, INFINITY: none */
    int64_t hosts_bound; /* -1: none */
    int64_t nodes;       /* looked at, for a repetition */
};

/* True when the program is small enough to be worth a try. */
bool counts_suit(const struct space *space, const struct plan_options *options);

/* Solves with GLPK in a child (contain.h) until deadline_ms (or for `limit` nodes, -1: any), from
 * the known *best (may be invalid), and keeps what is better there. The space must be strict.
 * Failures of the child leave everything as it was. */
struct counts_end counts_solve(struct space *space, const struct plan_options *options,
                               int64_t deadline_ms, int64_t limit, int *best_at,
                               struct value *best);

#endif
