/* keeper.h - what the Kubernetes orchestrators keep up between requests (struct keeper of
 * adapters/adapter.h): the lease, the ConfigMap that pauses, Events, the marks of earlier leaders,
 * and for single replicas the admission webhook. */
#ifndef REMAP_KUBERNETES_KEEPER_H
#define REMAP_KUBERNETES_KEEPER_H

#include "adapters/kubernetes/admission.h"
#include "adapters/kubernetes/api.h"

/* Rows of an option_spec array. */
#define KUBE_KEEPER_OPTIONS                                                                        \
    {"lease", "name of the Lease by which of several daemons only one writes; none: no lease",     \
     "remap", false},                                                                              \
        {"lease_namespace", "where it is, and the ConfigMap of `pause`; our own namespace", NULL,  \
         false},                                                                                   \
        {"lease_duration",                                                                         \
         "how long a hold lasts; a leader that cannot renew it for two thirds "                    \
         "of that writes no more",                                                                 \
         "15s", false},                                                                            \
        {"pause", "name of a ConfigMap: as long as it is there, no move is begun; none: no such",  \
         "remap-pause", false},                                                                    \
        {"adopt_after",                                                                            \
         "a move of an earlier daemon that is not ready after so long is put back", "10m", false}, \
    {                                                                                              \
        "events", "false: no Events on what was moved", "true", false                              \
    }

struct kube_keeper;

extern const struct keeper kubernetes_keeper;         /* of orchestrator `kubernetes` */
extern const struct keeper kubernetes_replica_keeper; /* of `kubernetes-replica`: a webhook too */

/* struct keeper's may_write(), for kube_api_guard(). */
int kube_keeper_may_write(void *keeper, struct err *err);
/* This is the workload that a service name means: who is told of its move need not look for it. Only its
 * kind, name, namespace and uid are kept. */
void kube_keeper_knows(void *keeper, const char *service, const json_t *workload);
/* NULL for kubernetes_keeper. */
struct wishes *kube_keeper_wishes(struct kube_keeper *keeper);

#endif
