/* kube.h - decoded objects, inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_KUBE_H
#define REMAP_KUBERNETES_KUBE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "adapters/kubernetes/fit.h"
#include "adapters/kubernetes/objects.h"
#include "model/base/names.h"

struct kube_owner { /* the owner reference with controller: true */
    char *kind, *name, *uid; /* NULL: none */
};

struct kube_meta {
    char *space, *name, *uid; /* space NULL for nodes */
    struct kube_owner owner;
    bool never;   /* annotation remap/move: never */
    bool mirror;  /* annotation kubernetes.io/config.mirror */
    bool ending;  /* deletionTimestamp */
    char *version; /* label app.kubernetes.io/version, or NULL */
};

struct kube_node {
    struct kube_meta meta;
    int64_t cpu_cap_millis, mem_cap_bytes, pods_cap; /* allocatable; pods -1: not given */
    bool schedulable;         /* as far as every pod is concerned */
    struct kube_taints taints; /* these concern those that do not tolerate them */
    char *region, *zone, *hostname, *address;
    struct label *labels;
    size_t n_labels;
    int host; /* in the model */
};

struct kube_workload {
    char *kind;
    struct kube_meta meta;
    int64_t replicas;
    bool paused, rollout;
    int service; /* in the model; -1: not (yet) */
};

struct kube_volume_use {
    bool claim;    /* a PersistentVolumeClaim */
    bool local;    /* a writable hostPath */
};

struct kube_pod {
    struct kube_meta meta;
    char *node, *address; /* NULL: not scheduled, not known */
    bool finished;        /* Succeeded or Failed */
    int64_t cpu_request_millis, mem_request_bytes;
    struct kube_volume_use volumes;
    struct kube_fit fit;
};

struct kube_objects {
    struct kube_node *nodes;
    size_t n_nodes;
    struct kube_workload *workloads;
    size_t n_workloads;
    struct kube_pod *pods;
    size_t n_pods;
    struct names by_uid; /* workloads */
};

/* Members on the way down, NULL where one is missing or null. */
const json_t *kube_get(const json_t *object, const char *key);
const json_t *kube_path(const json_t *object, const char *first, const char *second);
/* The text of a member, NULL where missing or no text. */
const char *kube_text(const json_t *object, const char *key);
int64_t kube_number(const json_t *object, const char *key, int64_t fallback);
/* Whole labels and annotations are texts; true where the condition `type` has status True. */
bool kube_condition(const json_t *status, const char *type);
/* A quantity, text or number; absent leaves *out. `need` rounds up, else down. */
int kube_quantity(const json_t *object, const char *key, int64_t per, bool need, int64_t *out,
                  struct err *err);

int kube_meta_decode(const json_t *object, struct kube_meta *out, struct err *err);
void kube_meta_wipe(struct kube_meta *meta);

int kube_node_decode(const json_t *object, struct kube_node *out, struct err *err);
void kube_node_wipe(struct kube_node *node);
int kube_pod_decode(const json_t *object, struct kube_pod *out, struct err *err);
void kube_pod_wipe(struct kube_pod *pod);
int kube_workload_decode(const json_t *object, const char *kind, struct kube_workload *out,
                         struct err *err);
void kube_workload_wipe(struct kube_workload *workload);

/* Rules `allowed` and `spread`, and hosts that receive nothing because of taints, once hosts and
 * instances are in the model. */
void kube_rules_add(const struct kube_objects *objects, struct model *model);

#endif
