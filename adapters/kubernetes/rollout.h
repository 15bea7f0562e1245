/* rollout.h - has a rollout come to its end, and where do the pods run then (interfaces.md 1.7, 1.9
 * rule 6)? Pure. Inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_ROLLOUT_H
#define REMAP_KUBERNETES_ROLLOUT_H

#include <jansson.h>
#include "adapters/adapter.h"
#include "adapters/kubernetes/pin.h"

enum rollout_state {
    ROLLOUT_WAITING,
    ROLLOUT_DONE,  /* the controller has seen the newest template, all pods are of it and available */
    ROLLOUT_FAILED /* it says so itself */
};

/* Of a Deployment or StatefulSet as just read; `why` gets a line unless done. */
enum rollout_state rollout_state(const json_t *workload, char *why, size_t size);

/* Has the controller seen the newest generation? For a moment after every write it has not: of a
 * Deployment its annotations count too (kubernetes/kubernetes:pkg/registry/apps/deployment/strategy.go),
 * so also when no rollout follows. */
bool rollout_seen(const json_t *workload);

/* `maxSurge` and `maxUnavailable` of a Deployment in pods (kubernetes/kubectl:pkg/util/deployment:
 * percentages of the replicas, surge rounded up, unavailable down, never both 0). Recreate, and
 * StatefulSets, stop first: surge 0. */
struct rollout_pace {
    int64_t surge, unavailable;
};
struct rollout_pace rollout_pace(const json_t *workload);
/* spec.replicas; 1 where it is not given. */
int64_t rollout_replicas(const json_t *workload);

/* The pods of the list (a JSON array) that are the workload's and are to stay: owned by it or by one
 * of its ReplicaSets, not ending, not finished. New array of borrowed objects. */
json_t *rollout_pods(const json_t *workload, const json_t *replica_sets, const json_t *pods);

/* The pod that nobody will take as things are ("0/15 nodes are available: …"): its name, and the
 * scheduler's message through *message; NULL when there is none. */
const char *rollout_unschedulable(const json_t *pods, const char **message);

/* Why no more pods of a Deployment are made (condition ReplicaFailure: a quota, an admission), NULL where
 * they are. */
const char *rollout_refused(const json_t *workload);

/* Of a StatefulSet whose template was put back: the pod of another revision that is not ready, which
 * its controller would wait for for ever (kubernetes/website:content/en/docs/concepts/workloads/
 * controllers/statefulset.md, "Forced rollback"). NULL: none, or the controller has not seen it yet.
 * Borrowed from `pods`. */
const json_t *rollout_blocking(const json_t *workload, const json_t *pods);

/* Is one of the workload's pods, ending ones too, being evicted (condition DisruptionTarget)? */
bool rollout_disrupted(const json_t *workload, const json_t *replica_sets, const json_t *pods);

/* Where the pods of a finished rollout are, against what was wanted. Replicas that came later are no
 * misses: of r = min(wanted, running), k run where they were wanted. `taken`: others have taken pods
 * or targets away. */
void rollout_outcome(const struct pin *pin, const json_t *pods, bool taken,
                     struct settle_report *out);

#endif
