/* nearest.h - what stands in the way where a tiny model has no placement. */
#ifndef REMAP_PLANNER_NEAREST_H
#define REMAP_PLANNER_NEAREST_H

#include "planner/space.h"

/* The rule that the nearest placement breaks, the budget it exceeds, or the instance that is hardest
 * to put; caller frees. NULL where there are too many placements to look at, or one holds. */
char *nearest_why(const struct space *space, const struct plan_options *options);

#endif
