/* service.h - hubs at service granularity: a move gives a whole service a set of hosts, its
 * replicas spread evenly over them (contract.md 3), as a patch of a Deployment's template does. */
#ifndef REMAP_PLANNER_SERVICE_H
#define REMAP_PLANNER_SERVICE_H

#include "planner/exhaust.h"

/* As hubs_search(). */
void service_search(struct space *space, const struct plan_options *options, struct effort *effort,
                    int *best_at, struct value *best);

/* Keeps the placement `at`, which must be one that holds, in *best where it is better, less the services
 * that are better off where they were. */
void service_homeward(struct space *space, const struct plan_options *options, const int *at,
                      int *best_at, struct value *best);

/* As exhaust_best(), over the sets of hosts of all services; `first`: ends at the first that holds.
 */
enum exhaust_verdict service_exhaust(struct space *space, const struct plan_options *options,
                                     bool first, struct effort *effort, int *best_at,
                                     struct value *best, double *top);

#endif
