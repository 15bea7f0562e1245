/* packing.h - prices for a large pool of patterns without a simplex: the linear set packing problem
 * solved by first-order steps (primal-dual hybrid gradient with averages and diagonal steps;
 * Chambolle and Pock 2011, Pock and Chambolle 2011). Some 1e-3 off after a few hundred steps, each as
 * cheap as reading the pool once; prices lie amid the best ones, which makes patterns found at them
 * good ones. */
#ifndef REMAP_PLANNER_PACKING_H
#define REMAP_PLANNER_PACKING_H

#include "planner/pool.h"

struct packing;

/* Begins at the given prices of items. */
struct packing *packing_new(const struct parts *parts, const double *prices);
void packing_free(struct packing *packing);
AUTO_DEFINE(packing)

/* Adds a pattern (items copied), in use by `amount` at first. */
void packing_add(struct packing *packing, const struct pattern *pattern, double amount);
/* So many hosts of the kind instead of those in `parts`. */
void packing_limit(struct packing *packing, int kind, int hosts);
double packing_amount(const struct packing *packing, size_t pattern);
/* Takes `steps` steps from where the last call ended; prices of items and of kinds. */
void packing_run(struct packing *packing, int steps, double *prices, double *kind_prices);

#endif
