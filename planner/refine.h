/* refine.h - a better bound for plans of heuristics: the cheap one of bound.h splits degrees between
 * services, this one prices whole hosts (warm.h), or what replicas leave room for (bound_counts.h). Some tenths
 * of a second at 200 services, some seconds at 3500 replicas. */
#ifndef REMAP_PLANNER_REFINE_H
#define REMAP_PLANNER_REFINE_H

#include "planner/anneal.h"

/* No placement of all instances that keeps capacities and rules scores more; INFINITY where the form
 * does not fit (too many kinds of hosts or instances, a start that is over its capacity or breaks rules
 * and may stay so; rows of replicated services and of their single instances at once). `placement`: of a plan, gives first patterns
 * and its score the level below which no bound is wanted. */
double refine_bound(const struct model *model, const struct affinity *rows, size_t n,
                    const struct plan_options *options, const int *placement, double score,
                    struct effort *effort);

/* What of that is had in some 0.1 s, by a count and not by the clock: for a search that was cut. */
double refine_first(const struct model *model, const struct affinity *rows, size_t n,
                    const struct plan_options *options);

#endif
