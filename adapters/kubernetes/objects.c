/* objects.c - the decoded objects of a cluster as one model (objects.h; names and rules:
 * interfaces.md 1.9, 4 and 13). */
#include "adapters/kubernetes/objects.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/mem.h"
#include "adapters/identity.h"

struct kube_objects *kube_objects_new(void)
{
    return mem_alloc(sizeof(struct kube_objects));
}

void kube_objects_free(struct kube_objects *objects)
{
    if (!objects)
        return;
    for (size_t i = 0; i < objects->n_nodes; i++)
        kube_node_wipe(&objects->nodes[i]);
    for (size_t i = 0; i < objects->n_workloads; i++)
        kube_workload_wipe(&objects->workloads[i]);
    for (size_t i = 0; i < objects->n_pods; i++)
        kube_pod_wipe(&objects->pods[i]);
    free(objects->nodes);
    free(objects->workloads);
    free(objects->pods);
    names_wipe(&objects->by_uid);
    free(objects);
}

/* --- taking in --- */

static bool is_workload(const char *kind)
{
    static const char *const kinds[] = {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i], kind) == 0)
            return true;
    return false;
}

static int add_by_kind(struct kube_objects *objects, const char *kind, const json_t *object,
                       struct err *err)
{
    if (strcmp(kind, "Node") == 0) {
        struct kube_node node;
        if (kube_node_decode(object, &node, err))
            return -1;
        *ARRAY_PUSH(objects->nodes, objects->n_nodes) = node;
    } else if (strcmp(kind, "Pod") == 0) {
        struct kube_pod pod;
        if (kube_pod_decode(object, &pod, err))
            return -1;
        *ARRAY_PUSH(objects->pods, objects->n_pods) = pod;
    } else if (is_workload(kind)) {
        struct kube_workload workload;
        if (kube_workload_decode(object, kind, &workload, err))
            return -1;
        *ARRAY_PUSH(objects->workloads, objects->n_workloads) = workload;
    }
    return 0;
}

static int add_one(struct kube_objects *objects, const char *kind, const json_t *object,
                   struct err *err)
{
    if (!json_is_object(object))
        return err_set(err, ERR_INPUT, "must be an object");
    if (!kind)
        return err_set(err, ERR_INPUT, "kind must be a text");
    if (!add_by_kind(objects, kind, object, err))
        return 0;
    const char *space = kube_text(kube_get(object, "metadata"), "namespace");
    const char *name = kube_text(kube_get(object, "metadata"), "name");
    return err_prefix(err, "%s %s%s%s", kind, space ? space : "", space ? "/" : "",
                      name ? name : "?");
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

/* --- scope and names --- */

static bool is_listed(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

static bool space_in_scope(const struct app_scope *app, const char *space)
{
    return !app || !app->namespaces || !app->namespaces[0] ||
           (space && is_listed(app->namespaces, space));
}

static bool service_in_scope(const struct app_scope *app, const char *full)
{
    if (!app || !app->services || !app->services[0] || is_listed(app->services, full))
        return true;
    const char *slash = strrchr(full, '/');
    return slash && is_listed(app->services, slash + 1);
}

/* What a pod belongs to in the end. */
struct top {
    const struct kube_workload *workload; /* NULL: not among the objects */
    const char *kind, *name;
};

static struct kube_workload *find_workload(const struct kube_objects *objects, const char *uid)
{
    int at = uid ? names_get(&objects->by_uid, uid) : -1;
    return at < 0 ? NULL : &objects->workloads[at];
}

/* Up the controller references, by uid; chains are short, circles end. */
static struct top find_top(const struct kube_objects *objects, const struct kube_pod *pod)
{
    struct top top = {NULL, pod->meta.owner.kind, pod->meta.owner.name};
    const char *uid = pod->meta.owner.uid;
    for (int steps = 0; steps < 8; steps++) {
        const struct kube_workload *workload = find_workload(objects, uid);
        if (!workload)
            break;
        top = (struct top){workload, workload->kind, workload->meta.name};
        /* A ReplicaSet belongs to its Deployment, or to what its operator has instead. */
        if (!workload->meta.owner.uid || strcmp(workload->kind, "ReplicaSet") != 0)
            break;
        if (!find_workload(objects, workload->meta.owner.uid)) {
            top = (struct top){NULL, workload->meta.owner.kind, workload->meta.owner.name};
            break;
        }
        uid = workload->meta.owner.uid;
    }
    return top;
}

struct builder {
    struct kube_objects *objects;
    const struct app_scope *app;
    struct inspection *in;
    struct names kinds;   /* "space/name" → index in kind_of */
    const char **kind_of; /* the first kind of that name; NULL when several */
    char **names;
    size_t n_names;
    int64_t n_no_node;
};

static char *plain_name(const char *space, const char *name)
{
    return mem_printf("%s%s%s", space ? space : "", space ? "/" : "", name);
}

static void count_kind(struct builder *builder, const char *space, const char *kind,
                       const char *name)
{
    AUTO_FREE char *full = plain_name(space, name);
    int at = names_get(&builder->kinds, full);
    if (at >= 0) {
        if (builder->kind_of[at] && strcmp(builder->kind_of[at], kind) != 0)
            builder->kind_of[at] = NULL;
        return;
    }
    size_t n = builder->n_names;
    char **owned = ARRAY_PUSH(builder->names, builder->n_names);
    builder->kind_of = mem_resize(builder->kind_of, n + 1, sizeof *builder->kind_of);
    *owned = steal(full);
    builder->kind_of[n] = kind;
    names_add(&builder->kinds, *owned, (int)n);
}

/* "namespace/name", or "namespace/kind/name" where two kinds share it. */
static char *service_name(const struct builder *builder, const char *space, const char *kind,
                          const char *name)
{
    char *full = plain_name(space, name);
    int at = names_get(&builder->kinds, full);
    if (at < 0 || builder->kind_of[at])
        return full;
    free(full);
    AUTO_FREE char *lower = mem_strdup(kind);
    for (char *c = lower; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    return mem_printf("%s%s%s/%s", space ? space : "", space ? "/" : "", lower, name);
}

/* --- hosts --- */

static int by_node_name(const void *left, const void *right)
{
    return strcmp(((const struct kube_node *)left)->meta.name,
                  ((const struct kube_node *)right)->meta.name);
}

/* A hostname label that two nodes bear says of neither where a pod would land (rule 13). */
static void close_doubled(struct kube_objects *objects)
{
    struct names hostnames = NAMES_INIT;
    for (size_t i = 0; i < objects->n_nodes; i++) {
        int other = objects->nodes[i].hostname
                        ? names_add(&hostnames, objects->nodes[i].hostname, (int)i)
                        : -1;
        if (other >= 0)
            objects->nodes[i].schedulable = objects->nodes[other].schedulable = false;
    }
    names_wipe(&hostnames);
}

static int add_hosts(struct builder *builder, struct err *err)
{
    struct kube_objects *objects = builder->objects;
    struct model *model = builder->in->model;
    if (objects->n_nodes > 1)
        qsort(objects->nodes, objects->n_nodes, sizeof *objects->nodes, by_node_name);
    close_doubled(objects);
    for (size_t i = 0; i < objects->n_nodes; i++) {
        struct kube_node *node = &objects->nodes[i];
        node->host = model_add_host(model, node->meta.name, err);
        if (node->host < 0)
            return -1;
        struct host *host = &model->hosts[node->host];
        host->cpu_cap_millis = node->cpu_cap_millis;
        host->mem_cap_bytes = node->mem_cap_bytes;
        host->pods_cap = node->pods_cap;
        host->schedulable = node->schedulable;
        host->region = mem_strdup(node->region);
        host->zone = mem_strdup(node->zone);
        host->labels = steal(node->labels);
        host->n_labels = node->n_labels;
        node->n_labels = 0;
        if (builder->in->identity && node->address)
            identity_add(builder->in->identity, IDENTITY_HOST, node->address, host->name);
        if (builder->in->identity && node->hostname)
            identity_add(builder->in->identity, IDENTITY_HOST, node->hostname, host->name);
    }
    return 0;
}

/* --- services --- */

/* Index; -1 and ERR_INPUT; -2 when the service is not in scope. */
static int need_service(struct builder *builder, const char *space, const struct top *top,
                        struct err *err)
{
    struct model *model = builder->in->model;
    AUTO_FREE char *name = service_name(builder, space, top->kind, top->name);
    int service = model_service(model, name);
    if (service >= 0)
        return service;
    if (!service_in_scope(builder->app, name))
        return -2;
    service = model_add_service(model, name, err);
    if (service < 0)
        return -1;
    struct service *added = &model->services[service];
    added->app = mem_strdup(builder->app ? builder->app->name : space);
    if (top->workload) {
        added->version = mem_strdup(top->workload->meta.version);
        added->rollout = top->workload->rollout;
        added->movable = !top->workload->meta.never;
    }
    added->stateful = strcmp(top->kind, "StatefulSet") == 0;
    return service;
}

static int by_workload_name(const void *left, const void *right)
{
    const struct kube_workload *a = left, *b = right;
    int order = strcmp(a->meta.space ? a->meta.space : "", b->meta.space ? b->meta.space : "");
    if (order == 0)
        order = strcmp(a->meta.name, b->meta.name);
    return order ? order : strcmp(a->kind, b->kind);
}

/* Deployments and StatefulSets are services even while they have no pod. */
static int add_services(struct builder *builder, struct err *err)
{
    struct kube_objects *objects = builder->objects;
    for (size_t i = 0; i < objects->n_workloads; i++) {
        const struct kube_workload *workload = &objects->workloads[i];
        if (strcmp(workload->kind, "Deployment") != 0 && strcmp(workload->kind, "StatefulSet") != 0)
            continue;
        if (!space_in_scope(builder->app, workload->meta.space))
            continue;
        struct top top = {workload, workload->kind, workload->meta.name};
        if (need_service(builder, workload->meta.space, &top, err) == -1)
            return -1;
    }
    return 0;
}

/* --- instances --- */

/* Why no orchestrator of ours may move this pod (interfaces.md 1.2 "Never move", 1.9 rule 11). */
static char *pinned_why(const struct kube_pod *pod, const struct top *top)
{
    if (pod->meta.mirror || (top->kind && strcmp(top->kind, "Node") == 0))
        return mem_strdup("static pod of its node");
    if (pod->meta.never)
        return mem_strdup("annotated remap/move: never");
    if (!top->kind)
        return mem_strdup("bare pod");
    if (strcmp(top->kind, "DaemonSet") == 0 || strcmp(top->kind, "Job") == 0)
        return mem_printf("pod of a %s", top->kind);
    if (!top->workload || strcmp(top->kind, "ReplicaSet") == 0)
        return mem_printf("owned by %s %s, which remap does not steer", top->kind, top->name);
    if (top->workload->meta.owner.kind)
        return mem_printf("its %s is owned by %s %s", top->kind, top->workload->meta.owner.kind,
                          top->workload->meta.owner.name ? top->workload->meta.owner.name : "?");
    if (top->workload->paused)
        return mem_printf("its %s is paused", top->kind);
    return NULL;
}

static void add_foreign(struct model *model, int host, const struct kube_pod *pod)
{
    if (host < 0)
        return;
    model->hosts[host].cpu_requested_millis += pod->cpu_request_millis;
    model->hosts[host].mem_requested_bytes += pod->mem_request_bytes;
    model->hosts[host].pods_used++;
}

static int add_instance(struct builder *builder, const struct kube_pod *pod, const struct top *top,
                        int service, int host, struct err *err)
{
    struct model *model = builder->in->model;
    AUTO_FREE char *name = plain_name(pod->meta.space, pod->meta.name);
    int index = model_add_instance(model, name, service, host, err);
    if (index < 0)
        return -1;
    struct instance *instance = &model->instances[index];
    instance->cpu_request_millis = pod->cpu_request_millis;
    instance->mem_request_bytes = pod->mem_request_bytes;
    instance->pinned_why = pinned_why(pod, top);
    if (pod->volumes.claim || pod->volumes.local)
        model->services[service].stateful = true;
    if (builder->in->identity && pod->address)
        identity_add(builder->in->identity, IDENTITY_INSTANCE, pod->address, name);
    return 0;
}

static int add_pod(struct builder *builder, const struct kube_pod *pod, struct err *err)
{
    struct model *model = builder->in->model;
    if (pod->finished)
        return 0;
    int host = pod->node ? model_host(model, pod->node) : -1;
    if (pod->node && host < 0)
        builder->n_no_node++;
    if (pod->meta.ending || !space_in_scope(builder->app, pod->meta.space)) {
        add_foreign(model, host, pod);
        return 0;
    }
    struct top top = find_top(builder->objects, pod);
    struct top bare = top;
    if (!bare.kind || !bare.name || strcmp(bare.kind, "Node") == 0)
        bare = (struct top){NULL, "Pod", pod->meta.name}; /* a service of its own */
    int service = need_service(builder, pod->meta.space, &bare, err);
    if (service == -2)
        add_foreign(model, host, pod);
    return service < 0 ? service == -1 ? -1 : 0 : add_instance(builder, pod, &top, service, host, err);
}

static int by_pod_name(const void *left, const void *right)
{
    const struct kube_pod *a = left, *b = right;
    int order = strcmp(a->meta.space ? a->meta.space : "", b->meta.space ? b->meta.space : "");
    return order ? order : strcmp(a->meta.name, b->meta.name);
}

static int add_pods(struct builder *builder, struct err *err)
{
    struct kube_objects *objects = builder->objects;
    for (size_t i = 0; i < objects->n_pods; i++)
        if (add_pod(builder, &objects->pods[i], err))
            return -1;
    if (builder->n_no_node)
        inspection_note(builder->in, "unmapped", builder->n_no_node,
                        "%lld pods run on nodes that are not among the objects",
                        (long long)builder->n_no_node);
    return 0;
}

static void index_objects(struct builder *builder)
{
    struct kube_objects *objects = builder->objects;
    if (objects->n_workloads > 1)
        qsort(objects->workloads, objects->n_workloads, sizeof *objects->workloads,
              by_workload_name);
    if (objects->n_pods > 1)
        qsort(objects->pods, objects->n_pods, sizeof *objects->pods, by_pod_name);
    names_wipe(&objects->by_uid);
    for (size_t i = 0; i < objects->n_workloads; i++)
        if (objects->workloads[i].meta.uid)
            names_add(&objects->by_uid, objects->workloads[i].meta.uid, (int)i);
    for (size_t i = 0; i < objects->n_workloads; i++) {
        const struct kube_workload *workload = &objects->workloads[i];
        if (strcmp(workload->kind, "ReplicaSet") != 0) /* only as a step to the Deployment */
            count_kind(builder, workload->meta.space, workload->kind, workload->meta.name);
    }
    for (size_t i = 0; i < objects->n_pods; i++) {
        const struct kube_meta *meta = &objects->pods[i].meta;
        struct top top = find_top(objects, &objects->pods[i]);
        if (top.kind && top.name && strcmp(top.kind, "Node") != 0)
            count_kind(builder, meta->space, top.kind, top.name);
        /* An instance may bear a service's name only as its only one (contract.md 2). */
        count_kind(builder, meta->space, "Pod", meta->name);
    }
}

int kube_objects_model(struct kube_objects *objects, const struct app_scope *app,
                       struct inspection *in, struct err *err)
{
    struct builder builder = {.objects = objects, .app = app, .in = in};
    index_objects(&builder);
    int rc = add_hosts(&builder, err) || add_services(&builder, err) || add_pods(&builder, err);
    if (rc == 0)
        kube_rules_add(objects, in->model);
    names_wipe(&builder.kinds);
    for (size_t i = 0; i < builder.n_names; i++)
        free(builder.names[i]);
    free(builder.names);
    free(builder.kind_of);
    return rc ? -1 : 0;
}
