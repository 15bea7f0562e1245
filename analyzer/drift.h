/* drift.h - how far the traffic between services has moved since a placement was planned (the
 * triggers beyond timers that §9 of the paper asks for). Pure.
 *
 * The distance is the total variation of the two distributions over pairs of services,
 *
 *     TV(p, q) = 1/2 · Σ |p_ab − q_ab|            0: the same, 1: nothing in common
 *
 * and not another one (Jensen–Shannon, χ²), because of what it says here: the score of a placement is
 * a sum of degrees, each times a share of 0 … 1 that stays on a host, so TV is exactly the most by
 * which the score of any placement can have changed. A placement that was the best one is at most
 * 2·TV away from the best of today; below half of what a plan must gain nothing is worth a look. It
 * is also the share of the traffic that goes another way now, which people can read.
 *
 * Shares are those of Eq. 1 between different services, both sides by the same weight: where one
 * side knows no bytes, by messages alone, so that a source which forgets sizes is no drift. */
#ifndef REMAP_ANALYZER_DRIFT_H
#define REMAP_ANALYZER_DRIFT_H

#include "model/affinity.h"

/* Fewer messages than these tell nothing of a distribution. */
#define DRIFT_MIN_MESSAGES 30
/* Messages of one request come together, so they are no independent samples: a request of the
 * recorded applications makes 2 to 20. */
#define DRIFT_MESSAGES_PER_REQUEST 10
#define DRIFT_TOP 3

struct drift_pair {
    const char *a, *b;
    double degree; /* used where nothing was counted (given affinities) */
    int64_t count, bytes; /* bytes -1: unknown */
};

struct drift_change { /* names borrowed from either side */
    const char *a, *b;
    double before, now; /* shares */
};

struct drift_result {
    int64_t messages; /* of the side that has fewer; -1: not counted */
    double distance;  /* < 0: too little traffic to tell */
    double noise;     /* the distance to be expected had nothing changed but the sample */
    struct drift_change top[DRIFT_TOP]; /* the largest changes first */
    size_t n_top;
};

/* Sorts both sides (by their names, a < b in each row). */
struct drift_result drift_measure(struct drift_pair *before, size_t n_before,
                                  struct drift_pair *now, size_t n_now, double weight);

/* The service rows of an analysis; caller frees, names are the model's. */
struct drift_pair *drift_pairs(const struct model *model, const struct analysis *analysis,
                               size_t *n);

#endif
