/* kube_shop.h - workloads on a test cluster, and the orchestrator's calls on them, for the tests of
 * label kubernetes. */
#ifndef REMAP_TESTS_KUBE_SHOP_H
#define REMAP_TESTS_KUBE_SHOP_H

#include "adapters/adapter.h"
#include "adapters/kubernetes/api.h"
#include "tests/support/kube_cluster.h"

#define SHOP_WAIT_MS 300000 /* a rollout on fake nodes takes a second or two on a quiet machine */

struct shop {
    struct kube_cluster *cluster;
    struct kube_api *api; /* as admin */
    const char *space;
};

/* Connects, makes the namespace. */
void shop_open(struct shop *shop, struct kube_cluster *cluster, const char *space);
void shop_close(struct shop *shop);

/* The manifest of a Deployment of one container that requests 100m; `more` goes into its pod spec as
 * JSON members behind a comma ("" for none), `spec` into its own. Caller frees. */
char *shop_manifest(const struct shop *shop, const char *name, int replicas, const char *spec,
                    const char *more);
/* `kubectl apply -f -` with further arguments. */
bool shop_apply(const struct shop *shop, const char *manifest, const char *const *arguments);
/* Waits until its rollout is complete. */
bool shop_ready(const struct shop *shop, const char *name);
/* Manifest, apply, ready. */
bool shop_deploy(const struct shop *shop, const char *name, int replicas, const char *more);

/* The object as it is now; caller json_decref()s. */
json_t *shop_get(const struct shop *shop, const char *plural, const char *name);
/* The JSON text of its template's affinity, "absent" where there is none; caller frees. */
char *shop_affinity(const struct shop *shop, const char *name);
int64_t shop_generation(const struct shop *shop, const char *name);
/* How many of its pods (label app) run on the node, ending ones not counted. */
int shop_pods_on(const struct shop *shop, const char *name, const char *node);
/* The node of its first pod; caller frees; NULL without. */
char *shop_node_of(const struct shop *shop, const char *name);
/* A node of fake-1 … fake-n that has no pod of it. Caller frees. */
char *shop_other_node(const struct shop *shop, const char *name, int n);

/* Cordons the node and waits until the scheduler knows: a pod for it alone finds no place. */
bool shop_cordon(const struct shop *shop, const char *node);

/* An orchestrator `kubernetes` for it; options are pairs of name and value, ended by NULL, besides
 * the kubeconfig and what would keep a young cluster quiet. */
void *shop_orchestrator(const struct shop *shop, const char *const *options);
/* Places the service's replicas, one on each of the nodes or, with a single node, all of them; asks
 * again for as long as the orchestrator says that it does not know yet. */
int shop_place(void *ctx, const struct shop *shop, int64_t seq, const char *name,
               const char *const *nodes, int64_t each, char **saved, struct err *err);
/* Looks until it is final. */
struct settle_report shop_settle(void *ctx, const struct shop *shop, int64_t seq, const char *name);
int shop_undo(void *ctx, const struct shop *shop, int64_t seq, const char *name, const char *saved,
              struct err *err);

#endif
