/* kube.h - decoded objects, inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_KUBE_H
#define REMAP_KUBERNETES_KUBE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "adapters/kubernetes/fit.h"
#include "adapters/kubernetes/objects.h"
#include "adapters/kubernetes/table.h"

struct kube_owner { /* the owner reference with controller: true */
    char *kind, *name, *uid; /* NULL: none */
};

struct kube_wish { /* annotations of contract.md 7; NULL: not given */
    char *keep_with, *keep_apart, *window, *weight;
};

struct kube_meta {
    struct table_head head;
    char *space, *name, *uid; /* space NULL for nodes */
    struct kube_owner owner;
    struct kube_wish *wish; /* NULL: none */
    int64_t created_ms;     /* wall; -1 unknown */
    bool never;   /* annotation remap/move: never */
    bool mirror;  /* annotation kubernetes.io/config.mirror */
    bool ending;  /* deletionTimestamp */
    char *version; /* label app.kubernetes.io/version, or NULL */
};

struct kube_node {
    struct kube_meta meta;
    int64_t cpu_cap_millis, mem_cap_bytes, pods_cap; /* allocatable; pods -1: not given */
    bool schedulable;         /* as far as every pod is concerned */
    bool leaving;             /* an autoscaler is about to take it away */
    struct kube_taints taints; /* these concern those that do not tolerate them */
    char *region, *zone, *hostname, *address;
    struct label *labels;
    size_t n_labels;
};

struct kube_workload {
    struct kube_meta meta;
    const char *kind; /* static */
    int64_t replicas, generation;
    bool paused, rollout;
    char *digest; /* of its template; NULL: nobody asked */
    char *why;    /* what forbids every rollout of it as it is; NULL: nothing, or nobody asked */
    /* A required pin of ours in force: the node selector terms that it wrote, and those that the
     * user had before (NULL: none). The next move replaces the pin, so only his count. */
    json_t *pin_terms, *user_terms;
    bool pin_spreads; /* its constraint over hosts is there as well */
    char *changed_by; /* who has changed its template last, but us; NULL: not known */
    int64_t changed_ms;  /* when; -1 */
    int64_t unavailable; /* pods that a rollout of it may take down at a time; 0 where not asked */
    bool surges;         /* a new pod comes before the old one goes */
    int64_t surge;       /* how many; 0 where not asked */
    json_t *pod_spec;    /* containers: their resources alone; NULL where not asked */
};

struct kube_port { /* taken on the host */
    int port;
    char protocol[8], address[48];
};

/* What pods of one template have in common, shared by them all: a cluster of 10,000 pods needs no
 * more of it than it has templates. */
struct kube_spec {
    size_t users;
    json_t *labels; /* without those that number the pods of a StatefulSet */
    json_t *pod_affinity, *pod_anti_affinity, *spread; /* NULL: absent */
    struct kube_fit fit;
    struct kube_port *ports;
    size_t n_ports;
    char *host_path; /* the first that it writes to; NULL: none */
};

struct kube_pod {
    struct kube_meta meta;
    char *node, *address; /* NULL: not scheduled, not known */
    bool finished;        /* Succeeded or Failed */
    int64_t cpu_request_millis, mem_request_bytes;
    char **claims; /* names of PersistentVolumeClaims */
    size_t n_claims;
    struct kube_spec *spec; /* of the same kube_objects */
};

struct kube_claim {
    struct kube_meta meta;
    char *volume; /* PersistentVolume; NULL: not bound */
    bool shared;  /* several nodes may use it at a time */
};

struct kube_volume { /* a PersistentVolume */
    struct kube_meta meta;
    bool local;   /* local or hostPath */
    json_t *terms; /* node selector terms; NULL: any node */
};

struct kube_budget { /* a PodDisruptionBudget */
    struct kube_meta meta;
    json_t *selector;
    int64_t allowed; /* disruptions now */
};

struct kube_scaler { /* a HorizontalPodAutoscaler */
    struct kube_meta meta;
    char *kind, *target; /* of the same namespace */
    int64_t current, desired, max;
    int64_t scaled_ms;   /* wall: when it changed the replicas last; -1 */
    struct kube_sample { /* how many it had or wanted, from that time (wall) on; oldest first */
        int64_t at_ms, replicas;
    } * samples;
    size_t n_samples;
};

struct kube_space_rule { /* a ResourceQuota or a LimitRange, as it is */
    struct kube_meta meta;
    json_t *object;
};

struct kube_reference { /* an Argo Rollout: the Deployment whose pods it has taken over */
    struct kube_meta meta;
    char *kind, *target;
};

enum kube_kind {
    KUBE_NODE,
    KUBE_POD,
    KUBE_DEPLOYMENT,
    KUBE_REPLICA_SET,
    KUBE_STATEFUL_SET,
    KUBE_DAEMON_SET,
    KUBE_CLAIM,
    KUBE_VOLUME,
    KUBE_BUDGET,
    KUBE_SCALER,
    KUBE_ROLLOUT,
    KUBE_QUOTA,
    KUBE_LIMITS,
    KUBE_N_KINDS
};

struct kube_objects {
    struct table tables[KUBE_N_KINDS];
    struct table specs; /* of struct kube_spec_entry: by text */
    bool listed[KUBE_N_KINDS];
    void (*judge)(void *ctx, const char *kind, const json_t *object, struct kube_workload *out);
    void (*released)(void *ctx, const char *kind, const json_t *object);
    void *released_ctx;
    int64_t n_refused;  /* objects that were not understood, of which the first is: */
    char refused[200];
};

struct kube_spec_entry {
    struct table_head head;
    struct kube_spec *spec;
};

/* The item i < kube_places() of a kind, NULL where that place is empty. */
static inline size_t kube_places(const struct kube_objects *objects, enum kube_kind kind)
{
    return objects->tables[kind].n;
}
static inline void *kube_at(const struct kube_objects *objects, enum kube_kind kind, size_t i)
{
    return table_at(&objects->tables[kind], i);
}

/* --- members.c --- */

/* Members on the way down, NULL where one is missing or null. */
const json_t *kube_get(const json_t *object, const char *key);
const json_t *kube_path(const json_t *object, const char *first, const char *second);
/* The text of a member, NULL where missing or no text. */
const char *kube_text(const json_t *object, const char *key);
int64_t kube_number(const json_t *object, const char *key, int64_t fallback);
/* Whole labels and annotations are texts; true where the condition `type` has status True. */
bool kube_condition(const json_t *status, const char *type);
/* The condition of that type among the object's, or NULL. */
const json_t *kube_condition_of(const json_t *object, const char *type);
/* A quantity, text or number; absent leaves *out. `need` rounds up, else down. */
int kube_quantity(const json_t *object, const char *key, int64_t per, bool need, int64_t *out,
                  struct err *err);

/* --- one decoder per kind; nothing to wipe on failure. What was decoded a table takes, or it is
 * dropped (the wipes leave the key, which is the table's). --- */

int kube_meta_decode(const json_t *object, struct kube_meta *out, struct err *err);
void kube_meta_wipe(struct kube_meta *meta);

int kube_node_decode(const json_t *object, struct kube_node *out, struct err *err);
void kube_node_wipe(void *node);
void kube_node_drop(struct kube_node *node);
/* `specs` gets or shares the pod's spec; NULL: the pod has none. */
int kube_pod_decode(const json_t *object, struct table *specs, struct kube_pod *out,
                    struct err *err);
void kube_pod_wipe(void *pod);
void kube_pod_drop(struct kube_pod *pod);
/* Shares the one of equal text. */
struct kube_spec *kube_spec_share(const json_t *pod, struct table *specs);
void kube_spec_entry_wipe(void *entry);
int kube_workload_decode(const json_t *object, const char *kind, struct kube_workload *out,
                         struct err *err);
void kube_workload_wipe(void *workload);
int kube_claim_decode(const json_t *object, struct kube_claim *out, struct err *err);
void kube_claim_wipe(void *claim);
int kube_volume_decode(const json_t *object, struct kube_volume *out, struct err *err);
void kube_volume_wipe(void *volume);
int kube_budget_decode(const json_t *object, struct kube_budget *out, struct err *err);
void kube_budget_wipe(void *budget);
int kube_scaler_decode(const json_t *object, struct kube_scaler *out, struct err *err);
void kube_scaler_wipe(void *scaler);
/* The samples of the one whose place it takes, and one of now. */
void kube_scaler_follow(struct kube_scaler *scaler, struct kube_scaler *old, int64_t now_ms);
/* The most replicas it had or wanted since then. */
int64_t kube_scaler_peak(const struct kube_scaler *scaler, int64_t since_ms);
int kube_space_rule_decode(const json_t *object, struct kube_space_rule *out, struct err *err);
void kube_space_rule_wipe(void *rule);
int kube_reference_decode(const json_t *object, struct kube_reference *out, struct err *err);
void kube_reference_wipe(void *reference);

#endif
