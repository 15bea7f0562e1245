/* exhaust.h - the last word on whether any placement holds, or which is best: every one is tried,
 * where they are few enough. For searches that came back with nothing, or without a proof. */
#ifndef REMAP_PLANNER_EXHAUST_H
#define REMAP_PLANNER_EXHAUST_H

#include "planner/anneal.h"

enum exhaust_verdict {
    EXHAUST_FOUND, /* `place` holds a valid placement */
    EXHAUST_NONE,  /* proven: there is none */
    EXHAUST_OPEN   /* too many to try, or the time was over */
};

/* Depth first, largest instances first; a branch ends where a host is above capacity by what came.
 * Leaves `place` as it was unless a placement was found. */
enum exhaust_verdict exhaust(struct place *place, const struct plan_options *options,
                             struct effort *effort);

/* The best of all placements by value_better(), for objectives that no faster search proves. Starts
 * from *best (valid or not) and keeps what is better there. EXHAUST_FOUND: *best is the optimum and *top
 * the highest score of all (ties within 1e-9 go to fewer hosts);
 * EXHAUST_OPEN: too many to try (decided beforehand, at no cost), or the time was over. */
enum exhaust_verdict exhaust_best(struct place *place, const struct plan_options *options,
                                  struct effort *effort, int *best_at, struct value *best,
                                  double *top);

#endif
