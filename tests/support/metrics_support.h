/* metrics_support.h - metrics of a known history, one of each kind. */
#ifndef REMAP_TESTS_METRICS_SUPPORT_H
#define REMAP_TESTS_METRICS_SUPPORT_H

#include "model/manager/metrics.h"

static inline struct metrics *metrics_support_history(void)
{
    struct metrics *metrics = metrics_new();
    metrics_cycle(metrics, "shop", "done");
    metrics_cycle(metrics, "shop", "done");
    metrics_cycle(metrics, "shop", "failed");
    metrics_phase(metrics, "plan", 4);
    metrics_phase(metrics, "plan", 5);
    metrics_phase(metrics, "plan", 600);
    metrics_phase(metrics, "plan", 4000000);
    metrics_phase(metrics, "plan", -5); /* a clock that was set back */
    metrics_move(metrics, "shop", "applied", "act");
    metrics_move_rejected(metrics, "cool-down");
    metrics_rollback(metrics, "undone");
    metrics_stage_restart(metrics, "planner");
    metrics_local_ratio(metrics, "shop", 0.25);
    metrics_local_ratio(metrics, "shop", 0.5);
    metrics_coverage(metrics, "shop", 1);
    metrics_gap(metrics, "hba", 0.125);
    metrics_model_taken(metrics, "shop", 1000);
    metrics_receiver(metrics, "spans", &(struct metrics_receiver){.requests = 9});
    metrics_receiver(metrics, "spans",
                     &(struct metrics_receiver){
                         .requests = 12, .spans = 500, .refused = 2, .early = 3, .waiting = 40});
    return metrics;
}

#endif
