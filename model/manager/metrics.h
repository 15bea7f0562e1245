/* metrics.h - what `remap` counts about itself (contract.md 6), kept in memory since the start and
 * written as Prometheus text format 0.0.4. The engine counts, http.c writes.
 *
 * Label values are copied. A metric keeps at most METRICS_MAX_SERIES label sets; more are counted
 * under "other", so that no input can grow it. */
#ifndef REMAP_MANAGER_METRICS_H
#define REMAP_MANAGER_METRICS_H

#include <stdint.h>
#include "model/base/buf.h"
#include "model/base/mem.h"

#define METRICS_MAX_SERIES 1000 /* apps × results: 100 apps with ten results each */

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);
AUTO_DEFINE(metrics)

/* remap_cycles_total{app,result}: a cycle ended; result: its last state (done, failed, …). */
void metrics_cycle(struct metrics *metrics, const char *app, const char *result);
/* remap_cycle_duration_seconds{phase}, a histogram; phase: collect, analyze, plan, execute, settle,
 * verify, or cycle for the whole. */
void metrics_phase(struct metrics *metrics, const char *phase, int64_t ms);
/* remap_moves_total{app,result,mode}: an outcome; result: its state, mode: observe, propose, act. */
void metrics_move(struct metrics *metrics, const char *app, const char *result, const char *mode);
/* remap_move_rejected_total{reason}: left out before execution; reason: a short fixed word. */
void metrics_move_rejected(struct metrics *metrics, const char *reason);
/* remap_rollbacks_total{result}: a plan or move was undone; result: undone, failed. */
void metrics_rollback(struct metrics *metrics, const char *result);
/* remap_stage_restarts_total{stage}. */
void metrics_stage_restart(struct metrics *metrics, const char *stage);

/* What a receiver of spans has counted since the monitor's start, in place of what it told before:
 * remap_receiver_…_total{source}, and what waits now as the gauge
 * remap_receiver_waiting_spans{source}. */
struct metrics_receiver {
    int64_t requests;
    int64_t spans;    /* taken */
    int64_t refused;  /* requests answered 429 */
    int64_t rejected; /* spans without valid ids */
    int64_t early;    /* traces that could not wait their time */
    int64_t stale;    /* messages too old for any window */
    int64_t waiting;  /* spans, now */
};
void metrics_receiver(struct metrics *metrics, const char *source,
                      const struct metrics_receiver *counted);

/* Gauges; a negative value takes the series away (unknown). */
void metrics_local_ratio(struct metrics *metrics, const char *app, double ratio);
void metrics_coverage(struct metrics *metrics, const char *app, double ratio);
void metrics_gap(struct metrics *metrics, const char *planner, double ratio);
/* remap_model_age_seconds{app} counts from here. */
void metrics_model_taken(struct metrics *metrics, const char *app, int64_t taken_ms);

/* Looks between cycles (model/manager/drift.h). remap_drift_looks_total{app,result}: seen, failed,
 * too_little (traffic). The others are gauges as above. */
void metrics_look(struct metrics *metrics, const char *app, const char *result);
void metrics_drift(struct metrics *metrics, const char *app, double ratio, double noise,
                   double response);
void metrics_drift_levels(struct metrics *metrics, const char *app, double affinity,
                          double response);

/* Appends everything; now_ms is wall time, for ages. */
void metrics_write(const struct metrics *metrics, int64_t now_ms, struct buf *out);

#endif
