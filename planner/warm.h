/* warm.h - the first patterns and bounds of the root, without a simplex: prices from packing.h, patterns
 * from tabu search and then from exact pricing, placements from dives. At 500 items and more this is
 * all that there is time for. */
#ifndef REMAP_PLANNER_WARM_H
#define REMAP_PLANNER_WARM_H

#include "planner/generate.h"

/* The work must have no master yet. Ends when the bound meets the best or falls no more, or with
 * the effort. */
void warm_up(struct work *work);
/* The same for a bound alone, and at most `rounds` of exact pricing of `max_nodes`: no dives. */
void warm_bound(struct work *work, int rounds, int max_nodes);

/* Keeps of the patterns what is in use and the best of the rest, where there are too many. */
void warm_purge(struct work *work);

#endif
