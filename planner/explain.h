/* explain.h - why a pair's affinity is not (wholly) honoured by a placement: what stays, what does
 * not fit where, which rule, or what would be lost elsewhere. */
#ifndef REMAP_PLANNER_EXPLAIN_H
#define REMAP_PLANNER_EXPLAIN_H

#include "model/base/buf.h"
#include "planner/space.h"

/* Adds a row to plan->discarded for every row of positive degree that keeps less than all of it. */
void explain_discarded(struct plan *plan, struct place *place, const struct plan_options *options);

#endif
