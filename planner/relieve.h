/* relieve.h - what is taken off hosts that are over their capacity, whatever it costs in affinity: the last
 * step of a search that leaves such hosts as they are where nothing is gained. */
#ifndef REMAP_PLANNER_RELIEVE_H
#define REMAP_PLANNER_RELIEVE_H

#include "planner/anneal.h"

/* Moves the smallest instances that are enough to where they fit and break no rule, while moves are left; a
 * host that cannot be brought down to its capacity so keeps all. */
void relieve(struct place *place, const struct plan_options *options);

#endif
