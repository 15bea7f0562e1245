/* history.h - what monitors would have seen in a window of the past: mean usage and message counts,
 * summed over the stretches of time between which nothing changed. Deterministic: the same journal
 * and window give the same numbers. */
#ifndef REMAP_SIMULATED_HISTORY_H
#define REMAP_SIMULATED_HISTORY_H

#include "adapters/simulated/server/cluster.h"

/* Mean measured CPU of every replica over the part of the window in which it existed, by replica
 * number (n_replicas); -1 for those that did not. One that is not ready yet uses its base. With the
 * scenario's noise. The caller frees. Windows are simulated ms, cut at the last change. */
double *history_usage(const struct cluster *cluster, int64_t from_ms, int64_t to_ms);

struct traffic_row {
    int call, src, dst; /* replicas, maybe ended */
    int64_t count;
    int64_t bytes;  /* -1 unknown */
    double mean_ms; /* with the scenario's noise */
};
/* Calls per pair of replicas. The count is rate · seconds, summed and rounded down after adding
 * a number of 0 … 1 that belongs to the pair: totals come out right also where rates are small.
 * Rows with count 0 are left out. The caller frees. */
struct traffic_row *history_traffic(const struct cluster *cluster, int64_t from_ms, int64_t to_ms,
                                    size_t *n);

#endif
