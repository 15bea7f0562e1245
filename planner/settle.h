/* settle.h - a place for all that is nowhere, whatever it gains: for an answer where greed leaves
 * something over and there is no time to search. */
#ifndef REMAP_PLANNER_SETTLE_H
#define REMAP_PLANNER_SETTLE_H

#include "planner/space.h"

/* Those that rules speak of first, then the largest, each on the fullest host that takes it; for what is left
 * something else goes to another host: of what is placed at the start only where `budget` is for all.
 * By counts, not by the clock; not tried where instances times hosts are millions. True when nothing is left. */
bool settle(struct place *place, int64_t budget);

#endif
