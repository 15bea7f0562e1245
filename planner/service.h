/* service.h - hubs at service granularity: a move gives a whole service a set of hosts, its replicas
 * spread evenly over them (contract.md 3), as a patch of a Deployment's template does. */
#ifndef REMAP_PLANNER_SERVICE_H
#define REMAP_PLANNER_SERVICE_H

#include "planner/anneal.h"

/* As hubs_search(). Every replica counts with the largest need of its service, so that it does not
 * matter which replica lands where. */
void service_search(struct space *space, const struct plan_options *options,
                    struct effort *effort, int *best_at, struct value *best);

#endif
