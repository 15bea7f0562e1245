/* standing.h - what stands against moving a workload as it is, by the rules of conduct that the
 * orchestrator itself goes by (conduct.h): what it would refuse is not planned. Inside
 * adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_STANDING_H
#define REMAP_KUBERNETES_STANDING_H

#include "adapters/kubernetes/conduct.h"
#include "adapters/kubernetes/kube.h"

struct standing {
    enum pin_kind pin;
    struct conduct_options options;
    bool replicas; /* moves are of single replicas: what concerns templates and rollouts does not count */
};

/* Fills digest, why, pin_terms, user_terms, pin_spreads, changed_by, changed_ms, unavailable, surges. `object` needs no kind of its own. */
void standing_judge(const struct standing *standing, const char *kind, const json_t *object,
                    struct kube_workload *out);

#endif
