/* bound_counts.h - a bound of the score where rows are between replicated services.
 *
 * Fractions of replicas, evenly spread, would keep every degree on any cluster: only what whole replicas
 * and whole hosts allow says anything. The linear program here tells hosts apart by the heavy service
 * that they hold (roots.h): beside one of few replicas there is not more than its hosts have room for,
 * however the rest is spread. It knows of each pair what one host can keep of it at most (room, rules,
 * whole replicas), and of each service what its partners share beside it. */
#ifndef REMAP_PLANNER_BOUND_COUNTS_H
#define REMAP_PLANNER_BOUND_COUNTS_H

#include "planner/anneal.h"

/* No placement of all instances scores more; INFINITY where the form does not fit, or nothing came of
 * it. `score`: of a known placement, at which no better bound is looked for. Works in a child
 * (contain.h) until the effort's deadline; each of some rounds, with more and more roots, is one
 * iteration of the effort. */
double bound_counts(const struct space *space, const struct plan_options *options, double score,
                    struct effort *effort);

/* The first of these rounds alone, some 0.1 s that no clock cuts: the same bound whenever it is asked
 * for. INFINITY also where the program is too large for that. */
double bound_counts_first(const struct space *space, const struct plan_options *options);

#endif
