/* fewest.h - placements on few hosts (objective hosts): packings that look at room and rules alone,
 * then affinity among the hosts of one. */
#ifndef REMAP_PLANNER_FEWEST_H
#define REMAP_PLANNER_FEWEST_H

#include "planner/anneal.h"

/* Fills the largest hosts anew, then empties one host after the other, from the valid *best, until only
 * `bound` are in use or several trials fail. Blind to affinity; without a limit of moves. */
void fewest_pack(const struct space *space, const struct plan_options *options, int64_t bound,
                 struct effort *effort, int *best_at, struct value *best);

/* The search of hubs with no hosts but those of *best (valid), which it begins with; `at` gets its
 * placement, *best what is better. The space is as before afterwards. */
void fewest_search(struct space *space, const struct plan_options *options, struct effort *effort,
                   int *at, int *best_at, struct value *best);

/* The search of hubs; where the objective is hosts and more are in use than bound_hosts() says, both
 * of these after it. */
void fewest_hubs(struct space *space, const struct plan_options *options, struct effort *effort,
                 int *best_at, struct value *best);

#endif
