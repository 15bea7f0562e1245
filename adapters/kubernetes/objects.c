/* objects.c - takes API objects in, of the kinds that say something about placement (objects.h). */
#include "adapters/kubernetes/objects.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/clock.h"
#include "model/base/mem.h"

static int decode_node(struct kube_objects *objects, const json_t *object, void *out,
                       struct err *err)
{
    (void)objects;
    return kube_node_decode(object, out, err);
}

static int decode_pod(struct kube_objects *objects, const json_t *object, void *out,
                      struct err *err)
{
    return kube_pod_decode(object, &objects->specs, out, err);
}

#define DECODE_WORKLOAD(function, kind)                                                        \
    static int function(struct kube_objects *objects, const json_t *object, void *out,        \
                        struct err *err)                                                       \
    {                                                                                          \
        (void)objects;                                                                         \
        return kube_workload_decode(object, kind, out, err);                                   \
    }
DECODE_WORKLOAD(decode_deployment, "Deployment")
DECODE_WORKLOAD(decode_replica_set, "ReplicaSet")
DECODE_WORKLOAD(decode_stateful_set, "StatefulSet")
DECODE_WORKLOAD(decode_daemon_set, "DaemonSet")

#define DECODE_OTHER(function, decoder)                                                        \
    static int function(struct kube_objects *objects, const json_t *object, void *out,        \
                        struct err *err)                                                       \
    {                                                                                          \
        (void)objects;                                                                         \
        return decoder(object, out, err);                                                      \
    }
DECODE_OTHER(decode_claim, kube_claim_decode)
DECODE_OTHER(decode_volume, kube_volume_decode)
DECODE_OTHER(decode_budget, kube_budget_decode)
DECODE_OTHER(decode_scaler, kube_scaler_decode)
DECODE_OTHER(decode_reference, kube_reference_decode)
DECODE_OTHER(decode_space_rule, kube_space_rule_decode)

static const struct kind {
    const char *name;
    size_t size;
    int (*decode)(struct kube_objects *objects, const json_t *object, void *out, struct err *err);
    void (*wipe)(void *item);
} kinds[KUBE_N_KINDS] = {
    [KUBE_NODE] = {"Node", sizeof(struct kube_node), decode_node, kube_node_wipe},
    [KUBE_POD] = {"Pod", sizeof(struct kube_pod), decode_pod, kube_pod_wipe},
    [KUBE_DEPLOYMENT] = {"Deployment", sizeof(struct kube_workload), decode_deployment,
                         kube_workload_wipe},
    [KUBE_REPLICA_SET] = {"ReplicaSet", sizeof(struct kube_workload), decode_replica_set,
                          kube_workload_wipe},
    [KUBE_STATEFUL_SET] = {"StatefulSet", sizeof(struct kube_workload), decode_stateful_set,
                           kube_workload_wipe},
    [KUBE_DAEMON_SET] = {"DaemonSet", sizeof(struct kube_workload), decode_daemon_set,
                         kube_workload_wipe},
    [KUBE_CLAIM] = {"PersistentVolumeClaim", sizeof(struct kube_claim), decode_claim,
                    kube_claim_wipe},
    [KUBE_VOLUME] = {"PersistentVolume", sizeof(struct kube_volume), decode_volume,
                     kube_volume_wipe},
    [KUBE_BUDGET] = {"PodDisruptionBudget", sizeof(struct kube_budget), decode_budget,
                     kube_budget_wipe},
    [KUBE_SCALER] = {"HorizontalPodAutoscaler", sizeof(struct kube_scaler), decode_scaler,
                     kube_scaler_wipe},
    [KUBE_ROLLOUT] = {"Rollout", sizeof(struct kube_reference), decode_reference,
                      kube_reference_wipe},
    [KUBE_QUOTA] = {"ResourceQuota", sizeof(struct kube_space_rule), decode_space_rule,
                    kube_space_rule_wipe},
    [KUBE_LIMITS] = {"LimitRange", sizeof(struct kube_space_rule), decode_space_rule,
                     kube_space_rule_wipe},
};

union item { /* any of them */
    struct table_head head;
    struct kube_node node;
    struct kube_pod pod;
    struct kube_workload workload;
    struct kube_claim claim;
    struct kube_volume volume;
    struct kube_budget budget;
    struct kube_scaler scaler;
    struct kube_reference reference;
    struct kube_space_rule space_rule;
};

struct kube_objects *kube_objects_new(void)
{
    struct kube_objects *objects = mem_alloc(sizeof *objects);
    for (size_t k = 0; k < KUBE_N_KINDS; k++)
        table_init(&objects->tables[k], kinds[k].size, kinds[k].wipe);
    table_init(&objects->specs, sizeof(struct kube_spec_entry), kube_spec_entry_wipe);
    return objects;
}

void kube_objects_free(struct kube_objects *objects)
{
    if (!objects)
        return;
    for (size_t k = 0; k < KUBE_N_KINDS; k++)
        table_wipe(&objects->tables[k]);
    table_wipe(&objects->specs); /* after the pods, which count there */
    free(objects);
}

static int kind_of(const char *name)
{
    for (int k = 0; k < KUBE_N_KINDS; k++)
        if (strcmp(kinds[k].name, name) == 0)
            return k;
    return -1;
}

/* Specs that no pod has any more. */
static void drop_specs(struct kube_objects *objects)
{
    for (size_t i = 0; i < objects->specs.n;) {
        struct kube_spec_entry *entry = table_at(&objects->specs, i);
        size_t before = objects->specs.n;
        if (entry && entry->spec->users == 0)
            table_remove(&objects->specs, entry->head.key);
        i = objects->specs.n == before ? i + 1 : 0;
    }
}

/* --- one by one --- */

static void refuse(struct kube_objects *objects, const struct err *why)
{
    if (objects->n_refused++ == 0)
        snprintf(objects->refused, sizeof objects->refused, "%.*s", (int)sizeof objects->refused - 1,
                 why->text);
}

static int decode_named(struct kube_objects *objects, int kind, const json_t *object,
                        union item *out, struct err *err)
{
    if (!json_is_object(object))
        return err_set(err, ERR_INPUT, "must be an object");
    memset(out, 0, sizeof *out);
    if (!kinds[kind].decode(objects, object, out, err))
        return 0;
    const char *space = kube_text(kube_get(object, "metadata"), "namespace");
    const char *name = kube_text(kube_get(object, "metadata"), "name");
    return err_prefix(err, "%s %s%s%s", kinds[kind].name, space ? space : "", space ? "/" : "",
                      name ? name : "?");
}

void kube_objects_judge(struct kube_objects *objects,
                        void (*judge)(void *ctx, const char *kind, const json_t *object,
                                      struct kube_workload *out),
                        void (*released)(void *ctx, const char *kind, const json_t *object),
                        void *ctx)
{
    objects->judge = judge;
    objects->released = released;
    objects->released_ctx = ctx;
}

/* Before the new one takes the place of the old one. */
static void look_for_release(struct kube_objects *objects, int kind, struct kube_workload *workload,
                             const json_t *object)
{
    if (!objects->judge || (kind != KUBE_DEPLOYMENT && kind != KUBE_STATEFUL_SET))
        return;
    const struct kube_workload *old = table_find(&objects->tables[kind], workload->meta.head.key);
    objects->judge(objects->released_ctx, kinds[kind].name, object, workload);
    bool same = old && old->digest && workload->digest && strcmp(old->digest, workload->digest) == 0;
    if (objects->listed[kind] && !same)
        objects->released(objects->released_ctx, kinds[kind].name, object);
}

void kube_objects_put(struct kube_objects *objects, const char *kind, const json_t *object)
{
    int k = kind_of(kind);
    union item item;
    struct err err = ERR_INIT;
    if (k < 0)
        return;
    if (decode_named(objects, k, object, &item, &err)) {
        kube_objects_remove(objects, kind, object);
        refuse(objects, &err);
        return;
    }
    look_for_release(objects, k, &item.workload, object);
    if (k == KUBE_SCALER)
        kube_scaler_follow(&item.scaler, table_find(&objects->tables[k], item.head.key),
                           clock_wall_ms());
    table_put(&objects->tables[k], &item);
}

/* "namespace/name", or "namespace/kind/name" */
static bool is_called(const struct kube_workload *workload, const char *service)
{
    const char *space = workload->meta.space, *name = workload->meta.name;
    size_t size = space ? strlen(space) : 0, kind = strlen(workload->kind);
    if (!space || strncmp(service, space, size) != 0 || service[size] != '/')
        return false;
    const char *rest = service + size + 1;
    return strcmp(rest, name) == 0 || (strncasecmp(rest, workload->kind, kind) == 0 &&
                                       rest[kind] == '/' && strcmp(rest + kind + 1, name) == 0);
}

bool kube_objects_rolls(const struct kube_objects *objects, const char *service)
{
    static const enum kube_kind placed[] = {KUBE_DEPLOYMENT, KUBE_STATEFUL_SET};
    for (size_t k = 0; k < ARRAY_LEN(placed); k++)
        for (size_t i = 0; i < kube_places(objects, placed[k]); i++) {
            const struct kube_workload *workload = kube_at(objects, placed[k], i);
            if (workload && workload->rollout && is_called(workload, service))
                return true;
        }
    return false;
}

void kube_objects_remove(struct kube_objects *objects, const char *kind, const json_t *object)
{
    int k = kind_of(kind);
    const char *uid = kube_text(kube_get(object, "metadata"), "uid");
    if (k >= 0 && uid)
        table_remove(&objects->tables[k], uid);
}

void kube_objects_renew(struct kube_objects *objects, const char *kind, bool first)
{
    int k = kind_of(kind);
    if (k < 0)
        return;
    table_renew(&objects->tables[k]);
    objects->listed[k] = !first;
}

static bool is_of_space(const void *item, const void *space)
{
    const struct kube_meta *meta = item; /* every item begins with it */
    return meta->space && strcmp(meta->space, space) == 0;
}

void kube_objects_sweep(struct kube_objects *objects, const char *kind, const char *space)
{
    int k = kind_of(kind);
    if (k >= 0)
        table_sweep(&objects->tables[k], space ? is_of_space : NULL, space);
    if (k >= 0)
        objects->listed[k] = true;
    if (k == KUBE_POD)
        drop_specs(objects);
}

/* --- recordings --- */

static int add_one(struct kube_objects *objects, const char *kind, const json_t *object,
                   struct err *err)
{
    union item item;
    if (!json_is_object(object))
        return err_set(err, ERR_INPUT, "must be an object");
    if (!kind)
        return err_set(err, ERR_INPUT, "kind must be a text");
    int k = kind_of(kind);
    if (k < 0)
        return 0;
    if (decode_named(objects, k, object, &item, err))
        return -1;
    struct table *table = &objects->tables[k];
    bool twice = table_find(table, item.head.key) != NULL;
    const struct kube_meta *meta = table_put(table, &item);
    return twice ? err_set(err, ERR_INPUT, "%s %s%s%s is there twice", kind,
                           meta->space ? meta->space : "", meta->space ? "/" : "", meta->name)
                 : 0;
}

static int add_items(struct kube_objects *objects, const char *list_kind, const json_t *items,
                     struct err *err)
{
    size_t i, size = strlen(list_kind) - strlen("List");
    const json_t *item;
    AUTO_FREE char *kind = size ? mem_strndup(list_kind, size) : NULL; /* "PodList": of pods */
    json_array_foreach(items, i, item)
    {
        const char *own = kube_text(item, "kind");
        if (add_one(objects, own ? own : kind, item, err))
            return err_prefix(err, "items[%zu]", i);
    }
    return 0;
}

int kube_objects_add(struct kube_objects *objects, const json_t *object, struct err *err)
{
    const char *kind = kube_text(object, "kind");
    const json_t *items = kube_get(object, "items");
    size_t size = kind ? strlen(kind) : 0;
    if (size < 4 || strcmp(kind + size - 4, "List") != 0)
        return add_one(objects, kind, object, err);
    if (items && !json_is_array(items))
        return err_set(err, ERR_INPUT, "items must be an array");
    return add_items(objects, kind, items, err);
}
