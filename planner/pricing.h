/* pricing.h - the best pattern for given prices of items: max Σ degrees inside + bonus − Σ prices
 * under a host's capacities. An exact depth-first search whose bound splits the degree of every
 * undecided edge between its ends (subgradient on the split) and then solves a fractional knapsack
 * (planning.md 6). */
#ifndef REMAP_PLANNER_PRICING_H
#define REMAP_PLANNER_PRICING_H

#include "planner/parts.h"

struct pricer;

struct pricer *pricer_new(const struct parts *parts);
void pricer_free(struct pricer *pricer);
AUTO_DEFINE(pricer)

/* The best pattern of `kind` that holds `root` (-1: any items) and nothing of lower rank. Looks only
 * for values above `least`; *items (parts->n long) and *n get the best found, n = 0 for none.
 * Returns an upper bound of the value of every such pattern (at least `least`); exact unless
 * max_nodes ended the search. */
double pricer_exact(struct pricer *pricer, int kind, int root, const double *prices, double least,
                    int max_nodes, int *items, int *n, double *best);

#endif
