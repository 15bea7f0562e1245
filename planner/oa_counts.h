/* oa_counts.h - the steps of oa's ladder that need counts instead of patterns (counts.h): whole
 * services, rows between replicas, rules that patterns cannot say, budgets of moves, fewest hosts.
 */
#ifndef REMAP_PLANNER_OA_COUNTS_H
#define REMAP_PLANNER_OA_COUNTS_H

#include "planner/space.h"

/* True when patterns of single hosts (parts.h) say all that is asked. */
bool patterns_say_all(const struct space *space, const struct plan_options *options);
/* Kinds of hosts that patterns are priced for; 0: the model has no form as patterns. */
int patterns_kinds(const struct space *space);

/* 1: *out is the answer (always at service granularity, or where patterns have no form); 0: nothing
 * is proven, patterns may do better in the time that is left (*clocked: it was the clock that ended this);
 * -1: *err. The space must be strict. */
int oa_by_counts(struct space *space, const struct plan_options *options, bool *clocked,
                 struct plan *out, struct err *err);

/* Counts from here on are of what comes after a whole answer of oa_by_counts(): the bound is refined. */
#define OA_COUNTS_WHOLE (INT64_C(1) << 49)
/* From here on they are of a whole answer after parts that the clock ended: the heuristic's mark (share.h),
 * and SHARE_MARKS more where it ended the trials. */
#define OA_COUNTS_MARKED (OA_COUNTS_WHOLE + OA_COUNTS_WHOLE / 2)

#endif
