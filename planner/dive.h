/* dive.h - placements from prices: takes the pattern that is used most, drops what overlaps, solves
 * and searches patterns for the rest, and so on (diving; Joncour et al. 2010). */
#ifndef REMAP_PLANNER_DIVE_H
#define REMAP_PLANNER_DIVE_H

#include "planner/generate.h"

/* One dive from the patterns of the work; tells of the placement unless the effort ends before. The
 * seed turns choices that are nearly even. */
void dive(struct work *work, uint64_t seed);

#endif
