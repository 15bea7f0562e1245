/* conduct.h - may this workload be moved there, now (interfaces.md 1.9)? The last look before a
 * rollout, on objects that were just read: what the inspection said when the plan was made may be
 * an hour old. Pure. Inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_CONDUCT_H
#define REMAP_KUBERNETES_CONDUCT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "adapters/kubernetes/mark.h"
#include "adapters/kubernetes/pin.h"

struct conduct_options {
    int64_t soak_ms;         /* quiet after somebody's change of the template */
    int64_t scaling_ms;      /* quiet after an autoscaler's change of the replicas */
    int64_t min_node_age_ms; /* younger nodes are no targets */
    bool merge_foreign;      /* foreign_affinity: merge */
    bool force_required;     /* required pins also where they may hurt */
    bool any_pool;           /* targets of another architecture, OS, pool or capacity type */
    bool any_probe;          /* containers that serve need no readiness probe */
};

/* Everything that is looked at. Arrays of objects, NULL where nothing could or need be read. */
struct conduct {
    const json_t *workload; /* with its kind */
    const struct mark *mark; /* that it bears, or NULL */
    const struct pin *pin;   /* wanted; NULL: a pin is taken out, only what concerns any rollout */
    const json_t *pods;     /* its own, that are to stay */
    const json_t *budgets, *quotas, *autoscalers, *services, *rollouts, *claims;
    const json_t *targets, *sources; /* nodes */
    const json_t *target_pods;       /* all pods on the targets */
    const char *scaler; /* a cluster autoscaler that was seen ("Karpenter"); NULL: none */
    int64_t now_ms;     /* wall */
    struct conduct_options options;
};

/* NULL: go ahead. Else the name of the rule that forbids it (static), and the reason. */
const char *conduct_problem(const struct conduct *conduct, char *why, size_t size);

/* Is the node about to be taken away by an autoscaler? */
bool conduct_node_leaves(const json_t *node);

/* room.c: does what a rollout takes for a while (surge) fit the targets by requests and pod slots,
 * and the namespace's quota? */
bool room_fits(const struct conduct *conduct, char *why, size_t size);

#endif
