/* objects.h - Kubernetes API objects into the model (interfaces.md 1.2, 1.9): nodes are hosts,
 * workloads are services "namespace/name", pods are instances "namespace/pod". The objects come
 * from the API, where lists and watches keep them up to date, or from `kubectl get … -o json`. */
#ifndef REMAP_KUBERNETES_OBJECTS_H
#define REMAP_KUBERNETES_OBJECTS_H

#include <jansson.h>
#include "adapters/adapter.h"

struct kube_objects;

struct kube_objects *kube_objects_new(void);
void kube_objects_free(struct kube_objects *objects);
AUTO_DEFINE(kube_objects)

/* Takes in an object, or each item of a list ("List", "PodList", …: items of the latter carry no
 * kind of their own). Kinds used are in objects.c; others are ignored. Keeps nothing of the tree.
 * ERR_INPUT names object and field, or the object that is there twice. */
int kube_objects_add(struct kube_objects *objects, const json_t *object, struct err *err);

/* The same one by one, as the API tells them: a newer one takes the place of the older. What is not
 * understood is left out and counted (a note of kube_objects_model). */
void kube_objects_put(struct kube_objects *objects, const char *kind, const json_t *object);
void kube_objects_remove(struct kube_objects *objects, const char *kind, const json_t *object);
/* A list begins (`first`: what it holds is no news), or has ended: what it did not hold is gone.
 * `space` NULL: of all namespaces. */
void kube_objects_renew(struct kube_objects *objects, const char *kind, bool first);
void kube_objects_sweep(struct kube_objects *objects, const char *kind, const char *space);

/* Is the rollout of that service under way, as far as was put in? */
bool kube_objects_rolls(const struct kube_objects *objects, const char *service);

struct kube_workload;

/* Deployments and StatefulSets are put in with what `judge` adds: their digest, which changes with
 * every new template, and what stands against moving them. Where the digest changes, and for those
 * that were not there, `released` is called, but not before their kind was listed once. */
void kube_objects_judge(struct kube_objects *objects,
                        void (*judge)(void *ctx, const char *kind, const json_t *object,
                                      struct kube_workload *out),
                        void (*released)(void *ctx, const char *kind, const json_t *object),
                        void *ctx);

struct kube_choice { /* how much of the cluster is ours, and how its wishes are taken */
    const struct app_scope *app; /* NULL: everything */
    const char *const *excluded; /* namespaces, ended by NULL; NULL: none */
    const json_t *selector;      /* label selector of pods; NULL: any */
    bool ignore_soft;            /* preferred (anti-)affinity and soft spread make no rules */
    int64_t soak_ms;             /* workloads whose template was changed since stay */
    bool any_pool;               /* also nodes of another architecture, system, pool, capacity type */
    int64_t min_node_age_ms;     /* younger nodes receive nothing */
    bool placed_only;            /* pods without a node are the scheduler's: left out, noted */
    int64_t scaling_ms;          /* quiet after an autoscaler's change of the replicas */
    int64_t peak_ms;             /* its most replicas within that time are given room */
    int64_t now_ms;              /* wall */
};

/* Fills hosts, services, instances and rules of the part that is chosen; pods outside of it, and
 * those that are ending, count as foreign use of their hosts. Pod and host addresses go to
 * in->identity where there is one. Notes tell what did not fit. */
int kube_objects_model(const struct kube_objects *objects, const struct kube_choice *choice,
                       struct inspection *in, struct err *err);

#endif
