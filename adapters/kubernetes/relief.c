/* relief.c - pins that do harm (interfaces.md 1.9 rule 3). Taking one out is a rollout, so it is done
 * for two reasons only, and to required pins: a pod waits because of it, or none of its nodes has
 * been ready for a long time. A node that is cordoned runs what it has: no reason. A preferred pin
 * does no harm; one whose nodes are gone or not ready is marked as stale, and the workload's next
 * move replaces it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/event.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/orchestrator.h"
#include "adapters/kubernetes/rollout.h"
#include "adapters/kubernetes/scope.h"
#include "adapters/kubernetes/when.h"
#include "model/base/clock.h"
#include "model/base/json.h"

struct relieving {
    struct kube_orchestrator *o;
    struct relief_budget *budget;
    void (*told)(void *arg, const struct relief *relief);
    void *arg;
    json_t *nodes; /* NULL: not read yet */
};

static bool is(const char *text, const char *wanted)
{
    return text && strcmp(text, wanted) == 0;
}

static const char *meta_text(const json_t *object, const char *key)
{
    const char *text = kube_text(kube_get(object, "metadata"), key);
    return text ? text : "";
}

static const char *node_of(const json_t *pod)
{
    return kube_text(kube_get(pod, "spec"), "nodeName");
}

/* Since when it has its status; `otherwise` where it does not say. */
static int64_t condition_since(const json_t *item, int64_t otherwise)
{
    const char *text = kube_text(item, "lastTransitionTime");
    int64_t at = otherwise;
    if (text)
        when_parse(text, &at);
    return at;
}

/* --- a pod that waits --- */

/* For long enough that it is no moment of a rollout, and with the terms that we wrote. */
static bool is_waiting(const struct relieving *r, const json_t *pod, const struct mark *mark)
{
    const json_t *scheduled = kube_condition_of(pod, "PodScheduled");
    const json_t *affinity = kube_get(kube_get(pod, "spec"), "affinity");
    const json_t *terms = pin_leaf_get(affinity, PIN_REQUIRED);
    int64_t now = clock_wall_ms();
    return !node_of(pod) && is(kube_text(scheduled, "status"), "False") &&
           is(kube_text(scheduled, "reason"), "Unschedulable") && terms &&
           json_equal(terms, mark->leaf) &&
           now - condition_since(scheduled, now) >= r->o->unschedulable_ms;
}

/* Would the node take the pod if the pin were not? Room is the scheduler's. */
static bool takes(const json_t *object, const struct kube_fit *fit)
{
    struct kube_node node;
    struct err odd = ERR_INIT;
    if (kube_node_decode(object, &node, &odd))
        return false;
    bool open = node.schedulable && !node.leaving &&
                kube_fit_selects(fit, node.meta.name, node.labels, node.n_labels);
    for (size_t i = 0; i < node.taints.n; i++)
        open = open && kube_fit_tolerates(fit, &node.taints.items[i]);
    kube_node_drop(&node);
    return open;
}

static bool has_other_node(const struct relieving *r, const json_t *pod, const struct mark *mark)
{
    struct kube_fit fit;
    size_t i;
    const json_t *node, *user = pin_leaf_get(mark->original.affinity, PIN_REQUIRED);
    bool found = false;
    kube_fit_decode(kube_get(pod, "spec"), &fit);
    json_t *pinned = fit.terms;
    fit.terms = (json_t *)(uintptr_t)kube_get(user, "nodeSelectorTerms");
    json_array_foreach(r->nodes, i, node)
        found = found || (!pin_has_host(&mark->pin, meta_text(node, "name")) && takes(node, &fit));
    fit.terms = pinned;
    kube_fit_wipe(&fit);
    return found;
}

static bool keeps_waiting(const struct relieving *r, const json_t *pods, const struct mark *mark,
                          char *why, size_t size)
{
    size_t i;
    const json_t *pod;
    json_array_foreach(pods, i, pod)
    {
        if (!is_waiting(r, pod, mark) || !has_other_node(r, pod, mark))
            continue;
        snprintf(why, size, "%.100s waits for one of its nodes, and others would take it",
                 meta_text(pod, "name"));
        return true;
    }
    return false;
}

/* --- nodes that are not there --- */

static int64_t first_seen(struct kube_orchestrator *o, const char *uid)
{
    for (size_t i = 0; i < o->n_down; i++)
        if (strcmp(o->down[i].uid, uid) == 0)
            return o->down[i].seen_ms;
    *ARRAY_PUSH(o->down, o->n_down) = (struct pin_down){mem_strdup(uid), clock_wall_ms()};
    return o->down[o->n_down - 1].seen_ms;
}

static void forget(struct kube_orchestrator *o, const char *uid)
{
    for (size_t i = 0; i < o->n_down; i++) {
        if (strcmp(o->down[i].uid, uid) != 0)
            continue;
        free(o->down[i].uid);
        o->down[i] = o->down[--o->n_down];
        return;
    }
}

void relief_forget(struct kube_orchestrator *o)
{
    while (o->n_down > 0)
        free(o->down[--o->n_down].uid);
    free(o->down);
    o->down = NULL;
}

/* Since when none of its nodes was ready; -1: one is. Of a node that is gone nobody knows since
 * when, so it counts from our first look. */
static int64_t down_since(struct relieving *r, const struct mark *mark)
{
    int64_t since = -1;
    for (size_t h = 0; h < mark->pin.n_hosts; h++) {
        const json_t *node, *found = NULL;
        size_t i;
        json_array_foreach(r->nodes, i, node)
            if (is(meta_text(node, "name"), mark->pin.hosts[h].node))
                found = node;
        if (found && kube_condition(kube_get(found, "status"), "Ready")) {
            forget(r->o, mark->uid);
            return -1;
        }
        int64_t seen = first_seen(r->o, mark->uid);
        int64_t at = found ? condition_since(kube_condition_of(found, "Ready"), seen) : seen;
        since = at > since ? at : since;
    }
    return since;
}

static bool has_no_node(struct relieving *r, const struct mark *mark, char *why, size_t size)
{
    char text[CLOCK_TEXT_SIZE];
    int64_t since = down_since(r, mark);
    if (since < 0 || clock_wall_ms() - since < r->o->unready_ms)
        return false;
    snprintf(why, size, "none of its nodes has been ready since %s", clock_iso(since, text));
    return true;
}

/* --- taking off, and marking --- */

static int64_t running(const json_t *pods)
{
    size_t i;
    const json_t *pod;
    int64_t n = 0;
    json_array_foreach(pods, i, pod)
        n += node_of(pod) != NULL;
    return n;
}

/* Somebody who was faster is looked at again the next time. */
static int take_off(struct relieving *r, const json_t *workload, const struct mark *mark,
                    const json_t *pods, const char *why, struct err *err)
{
    AUTO_PIN_FIELDS struct pin_fields now = pin_fields_of(workload), then = {NULL, NULL};
    AUTO_FREE char *service = service_name_of(r->o->api, meta_text(workload, "namespace"),
                                              kube_text(workload, "kind"), meta_text(workload, "name"));
    struct relief relief = {.cycle = mark->cycle,
                            .seq = mark->seq,
                            .service = service,
                            .restarts = running(pods),
                            .why = why};
    struct relief_budget *b = r->budget;
    if (!pin_take_out(&now, mark->pin.kind, mark->leaf, mark->constraint, &mark->original, &then))
        return 0;
    relief.done = !b->look_only && (b->restarts < 0 || relief.restarts <= b->restarts) &&
                  (b->per_service < 0 || relief.restarts <= b->per_service);
    int rc = relief.done ? write_patch(r->o, workload, &then, NULL, false, NULL, err) : 0;
    if (rc)
        return rc < 0 ? -1 : 0;
    if (relief.done && b->restarts >= 0)
        b->restarts -= relief.restarts;
    if (relief.done)
        forget(r->o, mark->uid);
    r->told(r->arg, &relief);
    return 0;
}

/* Nobody follows it: the annotation says so, which restarts nothing. */
static int mark_stale(struct relieving *r, const json_t *workload, struct mark *mark,
                      struct err *err)
{
    bool down = down_since(r, mark) >= 0;
    if (down == (mark->stale != NULL) || r->budget->look_only)
        return 0;
    free(steal(mark->stale));
    mark->stale = down ? mem_strdup("none of its nodes is ready") : NULL;
    AUTO_PIN_FIELDS struct pin_fields now = pin_fields_of(workload);
    AUTO_FREE char *text = mark_encode(mark);
    return write_patch(r->o, workload, &now, text, false, NULL, err) < 0 ? -1 : 0;
}

static int read_nodes(struct relieving *r, struct err *err)
{
    if (!r->nodes)
        r->nodes = world_items(r->o, "/api/v1/nodes?resourceVersion=0", false, err);
    return r->nodes ? 0 : -1;
}

/* Do pods of it wait, or might they? Most workloads are whole: of these no pods are read. */
static bool is_whole(const json_t *workload)
{
    const json_t *status = kube_get(workload, "status");
    int64_t replicas = rollout_replicas(workload);
    return kube_number(status, "readyReplicas", 0) >= replicas &&
           kube_number(status, "replicas", 0) == replicas;
}

static int look_at_required(struct relieving *r, const json_t *workload, const struct mark *mark,
                            struct err *err)
{
    char why[240];
    AUTO_JSON json_t *sets = NULL, *pods = NULL;
    bool down = has_no_node(r, mark, why, sizeof why);
    if (!down && is_whole(workload))
        return 0;
    if (world_pods(r->o, workload, true, &sets, &pods, err))
        return -1;
    AUTO_JSON json_t *own = rollout_pods(workload, sets, pods);
    if (!down && !keeps_waiting(r, own, mark, why, sizeof why))
        return 0;
    return take_off(r, workload, mark, own, why, err);
}

/* One whose rollout is not over is looked at too: that is how one looks that waits. */
static int look(struct relieving *r, const json_t *workload, struct err *err)
{
    struct err odd = ERR_INIT;
    AUTO(mark) struct mark *mark = mark_of(workload, &odd);
    if (!mark || !mark_holds(mark, workload) || rollout_replicas(workload) == 0 ||
        json_is_true(json_object_get(kube_get(workload, "spec"), "paused")))
        return 0;
    if (read_nodes(r, err))
        return -1;
    return mark->pin.kind == PIN_PREFERRED ? mark_stale(r, workload, mark, err)
                                           : look_at_required(r, workload, mark, err);
}

static int look_at_kind(struct relieving *r, const struct app_scope *app, const char *plural,
                        const char *kind, struct err *err)
{
    /* One namespace is asked for alone: it may be all that we may see. */
    bool single = app->namespaces && app->namespaces[0] && !app->namespaces[1];
    AUTO_FREE char *plain =
        kube_api_path("apps/v1", single ? app->namespaces[0] : NULL, plural, NULL);
    AUTO_FREE char *path = mem_printf("%s?resourceVersion=0", plain);
    AUTO_JSON json_t *items = world_items(r->o, path, false, err);
    size_t i;
    json_t *item;
    if (!items)
        return -1;
    json_array_foreach(items, i, item)
    {
        const char *space = meta_text(item, "namespace");
        AUTO_FREE char *service = mem_printf("%s/%s", space, meta_text(item, "name"));
        if (!kube_text(kube_path(item, "metadata", "annotations"), MARK_ANNOTATION) ||
            !scope_has_space(app, space) || !scope_has_service(app, service))
            continue;
        json_object_set_new(item, "kind", json_string(kind));
        json_object_set_new(item, "apiVersion", json_string("apps/v1"));
        if (look(r, item, err))
            return -1;
    }
    return 0;
}

int relief_run(void *orchestrator, const struct app_scope *app, struct relief_budget *budget,
               void (*told)(void *arg, const struct relief *relief), void *arg, struct err *err)
{
    struct relieving r = {
        .o = orchestrator, .budget = budget, .told = told, .arg = arg};
    int rc = look_at_kind(&r, app, "deployments", "Deployment", err);
    if (rc == 0)
        rc = look_at_kind(&r, app, "statefulsets", "StatefulSet", err);
    json_decref(r.nodes);
    return rc;
}
