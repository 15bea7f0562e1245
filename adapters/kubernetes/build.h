/* build.h - one model under construction from the objects, inside adapters/kubernetes: what build.c
 * has found out and rules.c, neighbours.c need. */
#ifndef REMAP_KUBERNETES_BUILD_H
#define REMAP_KUBERNETES_BUILD_H

#include "adapters/kubernetes/kube.h"
#include "model/model.h"

/* What a pod belongs to in the end. */
struct kube_top {
    const struct kube_workload *workload; /* NULL: not among the objects */
    const char *kind, *name;              /* NULL: a bare pod */
};

struct kube_foreign { /* a pod on a host of ours that is no instance of the model */
    const struct kube_pod *pod;
    int host;
};

struct kube_build {
    const struct kube_objects *objects;
    const struct kube_choice *choice;
    struct inspection *in;
    struct model *model;
    const struct kube_node **nodes;   /* of each host */
    const struct kube_pod **pods;     /* of each instance */
    size_t n_pods;
    struct kube_top *tops;            /* of each service */
    const struct kube_spec **specs;   /* of each service: its newest pod's; NULL: has none */
    const char **spaces;              /* of each service with a spec: its namespace */
    size_t n_services;
    struct kube_foreign *foreign;
    size_t n_foreign;
    bool **allowed; /* of each service, per host; NULL: no limit so far */
};

/* "namespace/name". Caller frees. */
char *kube_full_name(const struct kube_meta *meta);

/* --- pinned.c --- */

/* Why nobody may move this pod, in words an operator can act on (interfaces.md 1.2 "Never move", 1.9
 * rules 1, 7, 11); NULL: it may. Caller frees. */
char *kube_pinned_why(const struct kube_build *build, const struct kube_pod *pod,
                      const struct kube_top *top);

/* The autoscaler that scales it; NULL: none. */
const struct kube_scaler *kube_scaler_of(const struct kube_objects *objects,
                                         const struct kube_workload *workload);

/* --- rules.c, neighbours.c: once hosts and instances are in the model --- */

/* Hosts that receive nothing because of taints; rules `allowed` of what pods ask of nodes and of
 * their volumes; `spread` (rule 4). */
void kube_rules_add(struct kube_build *build);
/* (Anti-)affinity between pods, host ports, spread constraints, and annotations of contract.md 7. */
void kube_neighbours_add(struct kube_build *build);
/* The service may not run on this host. */
void kube_forbid(struct kube_build *build, int service, int host);
/* Pins all its instances that are not pinned yet. */
void kube_pin_service(struct kube_build *build, int service, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
