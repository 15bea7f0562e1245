/* world.c - what a move has to know, read at the moment of the move (interfaces.md 1.2). */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "adapters/http/http.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/orchestrator.h"
#include "adapters/kubernetes/rollout.h"
#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/mem.h"

/* From the server's watch cache, some milliseconds old: without it the server reads and decodes all of
 * the namespace from etcd for each of these lists. */
#define RECENT "&resourceVersion=0"

static const struct {
    const char *kind, *plural;
} kinds[] = {{"Deployment", "deployments"}, {"StatefulSet", "statefulsets"}};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = kube_text(kube_get(object, "metadata"), key);
    return text ? text : "";
}

/* --- one workload --- */

static void say_kind(json_t *workload, size_t kind)
{
    json_object_set_new(workload, "kind", json_string(kinds[kind].kind));
    json_object_set_new(workload, "apiVersion", json_string("apps/v1"));
}

static int get_kind(struct kube_orchestrator *o, size_t kind, const char *space, const char *name,
                    bool recent, json_t **out, struct err *err)
{
    AUTO_FREE char *plain = kube_api_path("apps/v1", space, kinds[kind].plural, name);
    AUTO_FREE char *path = mem_printf("%s%s", plain, recent ? "?resourceVersion=0" : "");
    if (kube_api_find(o->api, path, out, err))
        return -1;
    say_kind(*out, kind);
    return 0;
}

int world_workload(struct kube_orchestrator *o, const char *service, bool recent, json_t **out,
                   struct err *err)
{
    AUTO_FREE char *space = mem_strdup(service);
    char *first = strchr(space, '/');
    if (!first)
        return err_set(err, ERR_NOT_FOUND, "%s is no namespace/name", service);
    *first++ = '\0';
    char *name = strchr(first, '/');
    if (name)
        *name++ = '\0';
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct err why = ERR_INIT;
        if (name && strcasecmp(first, kinds[i].kind) != 0)
            continue;
        if (get_kind(o, i, space, name ? name : first, recent, out, &why) == 0)
            return 0;
        if (why.kind != ERR_NOT_FOUND) {
            *err = why;
            return -1;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "there is no Deployment or StatefulSet %s", service);
}

char *world_path(const json_t *workload)
{
    const char *kind = kube_text(workload, "kind");
    size_t i = kind && strcmp(kind, kinds[1].kind) == 0;
    return kube_api_path("apps/v1", text_of(workload, "namespace"), kinds[i].plural,
                         text_of(workload, "name"));
}

/* --- lists --- */

static int take_page(void *ctx, const json_t *list, bool again, struct err *err)
{
    json_t *items = ctx;
    const json_t *page = json_object_get(list, "items");
    size_t i;
    json_t *item;
    (void)err;
    if (again)
        json_array_clear(items);
    json_array_foreach((json_t *)page, i, item)
        json_array_append(items, item);
    return 0;
}

json_t *world_items(struct kube_orchestrator *o, const char *path, bool optional, struct err *err)
{
    AUTO_JSON json_t *items = json_array();
    struct kube_status status = {0};
    struct err why = ERR_INIT;
    if (kube_api_list(o->api, path, take_page, items, NULL, &status, &why)) {
        if (!optional || (status.code != 404 && status.code != 403)) {
            *err = why;
            return NULL;
        }
        json_array_clear(items);
    }
    return steal(items);
}

/* --- what many moves of one plan ask for --- */

/* Nodes and what others may change of them, autoscalers, services: of a plan's moves one begins right
 * after the other, and two seconds are as good as now. Who has which hostname label does not change
 * while a node lives. */
#define KNOWN_MS 2000
#define NAMES_MS 60000
#define MAX_KNOWN 1000 /* in 60 s at most one for each node of a plan, and some per namespace */

static void known_drop(struct kube_orchestrator *o, size_t at)
{
    free(o->known[at].path);
    json_decref(o->known[at].items);
    o->known[at] = o->known[--o->n_known];
}

void world_forget(struct kube_orchestrator *o)
{
    while (o->n_known > 0)
        known_drop(o, o->n_known - 1);
    free(o->known);
    o->known = NULL;
}

static json_t *known_find(struct kube_orchestrator *o, const char *path)
{
    int64_t now = clock_mono_ms();
    json_t *found = NULL;
    for (size_t i = 0; i < o->n_known;) {
        if (o->known[i].until_ms <= now) {
            known_drop(o, i);
            continue;
        }
        if (strcmp(o->known[i].path, path) == 0)
            found = o->known[i].items;
        i++;
    }
    return found;
}

static void known_keep(struct kube_orchestrator *o, const char *path, json_t *items, int64_t ms)
{
    if (o->n_known >= MAX_KNOWN)
        return;
    *ARRAY_PUSH(o->known, o->n_known) =
        (struct world_known){mem_strdup(path), json_incref(items), clock_mono_ms() + ms};
}

/* As world_items(), perhaps read a moment ago. */
static json_t *items_known(struct kube_orchestrator *o, const char *path, bool optional, int64_t ms,
                           struct err *err)
{
    json_t *items = known_find(o, path);
    if (items)
        return json_incref(items);
    items = world_items(o, path, optional, err);
    if (items)
        known_keep(o, path, items, ms);
    return items;
}

static char *recent_in_space(const json_t *workload, const char *group, const char *plural)
{
    AUTO_FREE char *plain = kube_api_path(group, text_of(workload, "namespace"), plural, NULL);
    return mem_printf("%s?%s", plain, &RECENT[1]);
}

static json_t *known_in_space(struct kube_orchestrator *o, const json_t *workload,
                              const char *group, const char *plural, struct err *err)
{
    AUTO_FREE char *path = recent_in_space(workload, group, plural);
    return items_known(o, path, true, KNOWN_MS, err);
}

/* Quotas, which our own moves use up. Where there are none there is nothing to. */
static char *quotas_path(const json_t *workload)
{
    return kube_api_path("v1", text_of(workload, "namespace"), "resourcequotas", NULL);
}

static json_t *read_quotas(struct kube_orchestrator *o, const json_t *workload, struct err *err)
{
    AUTO_FREE char *path = quotas_path(workload);
    json_t *items = known_find(o, path);
    if (items)
        return json_incref(items);
    items = world_items(o, path, true, err);
    if (items && json_array_size(items) == 0)
        known_keep(o, path, items, KNOWN_MS);
    return items;
}

/* Budgets are other people's promises: read as they are now, and they must be readable. */
static char *budgets_path(const json_t *workload)
{
    return kube_api_path("policy/v1", text_of(workload, "namespace"), "poddisruptionbudgets", NULL);
}

/* A rollout that takes no pod down needs nothing of them: then it is enough that they were readable a
 * moment ago. */
static bool needs_budgets(const json_t *workload)
{
    return rollout_pace(workload).unavailable > 0;
}

static json_t *read_budgets(struct kube_orchestrator *o, const json_t *workload, struct err *err)
{
    AUTO_FREE char *path = budgets_path(workload);
    return needs_budgets(workload) ? world_items(o, path, false, err)
                                   : items_known(o, path, false, KNOWN_MS, err);
}

/* --- selectors as the API takes them in a query --- */

static void add_values(struct buf *out, const json_t *values)
{
    size_t i;
    const json_t *value;
    buf_puts(out, "(");
    json_array_foreach(values, i, value)
        buf_printf(out, "%s%s", i ? "," : "", json_is_string(value) ? json_string_value(value) : "");
    buf_puts(out, ")");
}

static void add_expression(struct buf *out, const json_t *expression)
{
    const char *key = kube_text(expression, "key"), *operator = kube_text(expression, "operator");
    const json_t *values = kube_get(expression, "values");
    if (!key || !operator)
        return;
    buf_puts(out, out->size ? "," : "");
    if (strcmp(operator, "DoesNotExist") == 0)
        buf_puts(out, "!");
    buf_puts(out, key);
    if (strcmp(operator, "In") == 0 || strcmp(operator, "NotIn") == 0) {
        buf_puts(out, operator[0] == 'I' ? " in " : " notin ");
        add_values(out, values);
    }
}

static char *selector_query(const json_t *selector)
{
    AUTO_BUF struct buf text = BUF_INIT;
    struct buf query = BUF_INIT;
    const char *name;
    json_t *value;
    size_t i;
    json_object_foreach((json_t *)kube_get(selector, "matchLabels"), name, value)
        buf_printf(&text, "%s%s=%s", text.size ? "," : "", name,
                   json_is_string(value) ? json_string_value(value) : "");
    json_array_foreach((json_t *)kube_get(selector, "matchExpressions"), i, value)
        add_expression(&text, value);
    buf_puts(&query, "labelSelector=");
    http_escape(&query, text.data ? text.data : "");
    return buf_take(&query);
}

static char *selected_path(const json_t *workload, const char *group, const char *plural,
                           bool recent)
{
    AUTO_FREE char *path = kube_api_path(group, text_of(workload, "namespace"), plural, NULL);
    AUTO_FREE char *query = selector_query(kube_path(workload, "spec", "selector"));
    return mem_printf("%s?%s%s", path, query, recent ? RECENT : "");
}

static json_t *selected(struct kube_orchestrator *o, const json_t *workload, const char *group,
                        const char *plural, bool recent, struct err *err)
{
    AUTO_FREE char *path = selected_path(workload, group, plural, recent);
    return world_items(o, path, false, err);
}

/* A StatefulSet's pods are its own, without sets. */
static bool has_sets(const json_t *workload)
{
    const char *kind = kube_text(workload, "kind");
    return !kind || strcmp(kind, "Deployment") == 0;
}

void world_pods_ahead(struct kube_orchestrator *o, const json_t *workload, bool recent)
{
    if (has_sets(workload)) {
        AUTO_FREE char *sets = selected_path(workload, "apps/v1", "replicasets", recent);
        kube_api_ahead_list(o->api, sets);
    }
    AUTO_FREE char *pods = selected_path(workload, "v1", "pods", recent);
    kube_api_ahead_list(o->api, pods);
}

int world_pods(struct kube_orchestrator *o, const json_t *workload, bool recent, json_t **sets,
               json_t **pods, struct err *err)
{
    AUTO_JSON json_t *list = has_sets(workload)
                                 ? selected(o, workload, "apps/v1", "replicasets", recent, err)
                                 : json_array();
    json_t *found = list ? selected(o, workload, "v1", "pods", recent, err) : NULL;
    if (!found)
        return -1;
    *sets = steal(list);
    *pods = found;
    return 0;
}

/* --- nodes --- */

static char *node_path(const char *name)
{
    AUTO_FREE char *plain = kube_api_path("v1", NULL, "nodes", name);
    return mem_printf("%s?%s", plain, &RECENT[1]);
}

static int read_node(struct kube_orchestrator *o, const char *name, json_t *list, struct err *err)
{
    AUTO_FREE char *path = node_path(name);
    json_t *node = known_find(o, path);
    if (node) {
        json_array_append(list, node);
        return 0;
    }
    if (kube_api_get(o->api, path, &node, NULL, err))
        return err->kind == ERR_NOT_FOUND ? err_set(err, ERR_NOT_FOUND, "host %s is gone", name)
                                          : -1;
    known_keep(o, path, node, KNOWN_MS);
    json_array_append_new(list, node);
    return 0;
}

static const char *hostname_of(const json_t *node)
{
    return kube_text(kube_path(node, "metadata", "labels"), "kubernetes.io/hostname");
}

/* The label tells a node only where no other one has the same. */
static int read_hostname(struct kube_orchestrator *o, struct pin_host *host, const json_t *node,
                         struct err *err)
{
    const char *label = hostname_of(node);
    AUTO_BUF struct buf path = BUF_INIT;
    free(steal(host->hostname));
    if (!label || !label[0])
        return 0;
    buf_puts(&path, "/api/v1/nodes?labelSelector=");
    AUTO_FREE char *selector = mem_printf("kubernetes.io/hostname=%s", label);
    http_escape(&path, selector);
    buf_puts(&path, RECENT);
    AUTO_JSON json_t *same = items_known(o, path.data, false, NAMES_MS, err);
    if (!same)
        return -1;
    if (json_array_size(same) == 1)
        host->hostname = mem_strdup(label);
    return 0;
}

static char *target_pods_path(const char *node)
{
    struct buf path = BUF_INIT;
    AUTO_FREE char *selector =
        mem_printf("spec.nodeName=%s,status.phase!=Succeeded,status.phase!=Failed", node);
    buf_puts(&path, "/api/v1/pods?fieldSelector=");
    http_escape(&path, selector);
    buf_puts(&path, RECENT);
    return buf_take(&path);
}

static int read_target_pods(struct kube_orchestrator *o, const char *node, json_t *list,
                            struct err *err)
{
    AUTO_FREE char *path = target_pods_path(node);
    AUTO_JSON json_t *pods = world_items(o, path, false, err);
    if (!pods)
        return -1;
    json_array_extend(list, pods);
    return 0;
}

static int read_targets(struct kube_orchestrator *o, struct pin *pin, struct world *w,
                        struct err *err)
{
    for (size_t i = 0; i < pin->n_hosts; i++)
        if (read_node(o, pin->hosts[i].node, w->targets, err) ||
            read_hostname(o, &pin->hosts[i], json_array_get(w->targets, i), err) ||
            read_target_pods(o, pin->hosts[i].node, w->target_pods, err))
            return -1;
    return 0;
}

/* The nodes it runs on now; one that has gone meanwhile says nothing. */
static int read_sources(struct kube_orchestrator *o, struct world *w, struct err *err)
{
    size_t i, j;
    const json_t *pod, *node;
    json_array_foreach(w->own, i, pod)
    {
        const char *name = kube_text(kube_get(pod, "spec"), "nodeName");
        bool known = !name;
        json_array_foreach(w->sources, j, node)
            known |= name && strcmp(text_of(node, "name"), name) == 0;
        struct err why = ERR_INIT;
        if (!known && read_node(o, name, w->sources, &why) && why.kind != ERR_NOT_FOUND) {
            *err = why;
            return -1;
        }
    }
    return 0;
}

/* Who provides the nodes: Karpenter has an API group, Cluster Autoscaler leaves its status. */
static int find_scaler(struct kube_orchestrator *o, struct err *err)
{
    static const struct {
        const char *path, *name;
    } signs[] = {{"/apis/karpenter.sh", "Karpenter"},
                 {"/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status",
                  "Cluster Autoscaler"}};
    for (size_t i = 0; !o->scaler_known && i < ARRAY_LEN(signs); i++) {
        struct kube_status status = {0};
        AUTO_JSON json_t *found = NULL;
        struct err why = ERR_INIT;
        if (kube_api_get(o->api, signs[i].path, &found, &status, &why) == 0) {
            o->scaler = signs[i].name;
            break;
        }
        if (status.code != 404 && status.code != 403) {
            *err = why;
            return -1;
        }
    }
    o->scaler_known = true;
    return 0;
}

static json_t *read_rollouts(struct kube_orchestrator *o, const json_t *workload, struct err *err)
{
    if (o->no_rollouts)
        return json_array();
    AUTO_FREE char *path = kube_api_path("argoproj.io/v1alpha1", text_of(workload, "namespace"),
                                         "rollouts", NULL);
    AUTO_JSON json_t *items = json_array();
    struct kube_status status = {0};
    struct err why = ERR_INIT;
    if (kube_api_list(o->api, path, take_page, items, NULL, &status, &why) == 0)
        return steal(items);
    o->no_rollouts = status.code == 404;
    if (status.code == 404 || status.code == 403)
        return json_array();
    *err = why;
    return NULL;
}

static const json_t *pod_spec(const json_t *workload)
{
    return kube_get(kube_path(workload, "spec", "template"), "spec");
}

static bool has_claims(const json_t *workload)
{
    size_t i;
    const json_t *volume;
    json_array_foreach(kube_get(pod_spec(workload), "volumes"), i, volume)
        if (kube_get(volume, "persistentVolumeClaim"))
            return true;
    return false;
}

/* All its containers: then it does not matter whether a Service leads to them. */
static bool has_probes(const json_t *workload)
{
    size_t i;
    const json_t *container;
    json_array_foreach(kube_get(pod_spec(workload), "containers"), i, container)
        if (!kube_get(container, "readinessProbe"))
            return false;
    return true;
}

/* What concerns any rollout. */
static int read_around(struct kube_orchestrator *o, const json_t *workload, struct world *w,
                       struct err *err)
{
    if (world_pods(o, workload, true, &w->sets, &w->pods, err))
        return -1;
    w->own = rollout_pods(workload, w->sets, w->pods);
    w->budgets = read_budgets(o, workload, err);
    if (!w->budgets)
        return -1;
    w->autoscalers =
        known_in_space(o, workload, "autoscaling/v2", "horizontalpodautoscalers", err);
    if (!w->autoscalers)
        return -1;
    if (has_claims(workload)) {
        w->claims = known_in_space(o, workload, "v1", "persistentvolumeclaims", err);
        if (!w->claims)
            return -1;
    }
    if (!o->conduct.any_probe && !has_probes(workload)) {
        w->services = known_in_space(o, workload, "v1", "services", err);
        if (!w->services)
            return -1;
    }
    return 0;
}

static void list_ahead(struct kube_orchestrator *o, const char *path)
{
    if (!known_find(o, path))
        kube_api_ahead_list(o->api, path);
}

/* What world_read() is certain to read, all at the same time: one after the other, the ways to the
 * server and back are most of what a move takes. */
static void read_ahead(struct kube_orchestrator *o, const json_t *workload, const struct pin *pin)
{
    AUTO_FREE char *budgets = budgets_path(workload), *quotas = quotas_path(workload);
    AUTO_FREE char *autoscalers =
        recent_in_space(workload, "autoscaling/v2", "horizontalpodautoscalers");
    world_pods_ahead(o, workload, true);
    if (needs_budgets(workload))
        kube_api_ahead_list(o->api, budgets);
    else
        list_ahead(o, budgets);
    list_ahead(o, autoscalers);
    if (!pin)
        return;
    list_ahead(o, quotas);
    for (size_t i = 0; i < pin->n_hosts; i++) {
        AUTO_FREE char *node = node_path(pin->hosts[i].node);
        AUTO_FREE char *pods = target_pods_path(pin->hosts[i].node);
        if (!known_find(o, node))
            kube_api_ahead_get(o->api, node);
        kube_api_ahead_list(o->api, pods);
    }
}

static int read_all(struct kube_orchestrator *o, const json_t *workload, struct pin *pin,
                    struct world *out, struct err *err)
{
    if (read_around(o, workload, out, err))
        return -1;
    if (!pin)
        return 0;
    out->targets = json_array();
    out->sources = json_array();
    out->target_pods = json_array();
    out->quotas = read_quotas(o, workload, err);
    out->rollouts = out->quotas ? read_rollouts(o, workload, err) : NULL;
    if (!out->rollouts || read_targets(o, pin, out, err) || read_sources(o, out, err))
        return -1;
    return pin->kind == PIN_REQUIRED ? find_scaler(o, err) : 0;
}

int world_read(struct kube_orchestrator *o, const json_t *workload, struct pin *pin,
               struct world *out, struct err *err)
{
    read_ahead(o, workload, pin);
    int rc = read_all(o, workload, pin, out, err);
    kube_api_ahead_end(o->api);
    return rc;
}

/* --- several moves --- */

/* The path of what a service most likely is: a Deployment, where its name does not say. Caller frees;
 * NULL: no name of a service. */
static char *likely_path(const char *service, bool recent, size_t *kind)
{
    AUTO_FREE char *space = mem_strdup(service);
    char *first = strchr(space, '/');
    if (!first)
        return NULL;
    *first++ = '\0';
    char *name = strchr(first, '/');
    *kind = 0;
    if (name) {
        *name++ = '\0';
        *kind = strcasecmp(first, kinds[1].kind) == 0;
    }
    AUTO_FREE char *path =
        kube_api_path("apps/v1", space, kinds[*kind].plural, name ? name : first);
    return mem_printf("%s%s", path, recent ? "?resourceVersion=0" : "");
}

static void ask_workloads(struct kube_orchestrator *o, const char *const *services, size_t n,
                          bool recent)
{
    size_t kind;
    for (size_t i = 0; i < n; i++) {
        AUTO_FREE char *path = likely_path(services[i], recent, &kind);
        if (path)
            kube_api_ahead_get(o->api, path);
    }
}

/* What ask_workloads() asked for, once it is there; NULL: it is told in earnest. Caller decrefs. */
static json_t *asked_workload(struct kube_orchestrator *o, const char *service, bool recent)
{
    size_t kind;
    json_t *workload = NULL;
    AUTO_FREE char *path = likely_path(service, recent, &kind);
    if (path && kube_api_ahead_peek(o->api, path, &workload))
        say_kind(workload, kind);
    return workload;
}

void world_moves_ahead(struct kube_orchestrator *o, const char *const *services,
                       const struct pin *pins, size_t n)
{
    kube_api_ahead_keep(o->api, true);
    ask_workloads(o, services, n, false);
    for (size_t i = 0; i < n; i++) {
        AUTO_JSON json_t *workload = asked_workload(o, services[i], false);
        if (workload)
            read_ahead(o, workload, &pins[i]);
    }
    kube_api_ahead_keep(o->api, false);
}

void world_looks_ahead(struct kube_orchestrator *o, const char *const *services, size_t n)
{
    char why[200];
    kube_api_ahead_keep(o->api, true);
    ask_workloads(o, services, n, true);
    for (size_t i = 0; i < n; i++) {
        AUTO_JSON json_t *workload = asked_workload(o, services[i], true);
        if (workload && rollout_state(workload, why, sizeof why) == ROLLOUT_DONE)
            world_pods_ahead(o, workload, true);
    }
    kube_api_ahead_keep(o->api, false);
}

void world_wipe(struct world *w)
{
    json_t *all[] = {w->sets,     w->pods,     w->own,    w->budgets, w->quotas,  w->autoscalers,
                     w->services, w->rollouts, w->claims, w->targets, w->sources, w->target_pods};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        json_decref(all[i]);
    *w = (struct world){0};
}

bool world_targets_taken(struct kube_orchestrator *o, const struct pin *pin)
{
    for (size_t i = 0; i < pin->n_hosts; i++) {
        AUTO_JSON json_t *nodes = json_array();
        struct err why = ERR_INIT;
        if (read_node(o, pin->hosts[i].node, nodes, &why)) {
            if (why.kind == ERR_NOT_FOUND)
                return true;
        } else if (conduct_node_leaves(json_array_get(nodes, 0))) {
            return true;
        }
    }
    return false;
}
