/* replica.c - orchestrator `kubernetes-replica`: moves single replicas on a stock Kubernetes,
 * without touching any template. Opt-in per namespace (etc/kubernetes/replica).
 *
 * The nine ways to do that (interfaces.md 1.6), and why this one:
 *   A, B  pin the template to a host set: what orchestrator.c does; all replicas restart for one
 *   C     scheduling gates in the template: exact, but every new pod of the workload waits for us,
 *         at every scale-out and after every crash; if we are down, it waits for ever
 *   D     a scheduler of our own: the same dependence, and no fit checks
 *   E     deletion cost: says which replica goes, not where the next one comes; counts on
 *         scale-down only, so it would write spec.replicas, which is the HPA's
 *   F     StatefulSet partitions: stop-first, in order of ordinals only
 *   G     a Deployment per host: changes the user's objects
 *   H     nodeName in the template: no fit check, all replicas on one node
 *   I     this: a mutating webhook on CREATE of pods that fails open, and an eviction under the PDB
 * With I the template stays as it is: no rollout to pin or to unpin, no revision used up, nothing
 * for GitOps to revert, and only the moved replica restarts. It is soft: where the preferred node
 * has no room, or we are not asked in time (failurePolicy Ignore, one second), the pod is made as
 * ever, elsewhere, and the move is told as missed. Its price is that it stops first: so it is done
 * only with at least two ready replicas, and only as far as the disruption budget lets it.
 *
 * A move: a wish (admission.h) for the next pod of the owner, then the eviction of this very pod
 * (precondition uid). The new pod bears the mark CYCLE/SEQ/POD as annotation, by which all else is
 * found again; POD is the evicted one, whose name never comes again, so that no mark of a store
 * that was lost is taken for ours. An undo is the same the other way round, its mark ends in /undo.
 * Only pods of ReplicaSets: those of StatefulSets have an identity that others wait for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/http/http.h"
#include "adapters/kubernetes/admission_check.h"
#include "adapters/kubernetes/event.h"
#include "adapters/kubernetes/evict.h"
#include "adapters/kubernetes/keeper.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/replica.h"
#include "model/base/clock.h"
#include "model/base/json.h"

#define MARK "remap/intent"
#define OPTED_IN                                                                                   \
    "remap/replica" /* label of a namespace, value "enabled": the webhook's selector               \
                     */
/* The controller makes the replacement within a second or so of the eviction; a pod that comes
 * later than this is somebody else's. */
#define WISH_MS 60000
/* A budget counts ready pods, and its controller is some tenths of a second behind. */
#define BUDGET_TRIES 5
#define BUDGET_WAIT_MS 1000

struct replica {
    struct kube_api *api;
    struct kube_keeper *keeper; /* NULL until attached */
    char *webhook, *cert_file, *listen;
};

static void replica_close(void *ctx)
{
    struct replica *r = ctx;
    if (!r)
        return;
    kube_api_close(r->api);
    free(r->webhook);
    free(r->cert_file);
    free(r->listen);
    free(r);
}

static int replica_open(const struct source *source, void **ctx, struct err *err)
{
    struct replica *r = mem_alloc(sizeof *r);
    r->webhook = mem_strdup(source_option(source, "webhook", REPLICA_WEBHOOK));
    r->cert_file = mem_strdup(source_option(source, "tls_cert_file", REPLICA_CERT_FILE));
    r->listen = mem_strdup(source_option(source, "listen", REPLICA_LISTEN));
    if (kube_api_open(source, &r->api, err)) {
        replica_close(r);
        return -1;
    }
    *ctx = r;
    return 0;
}

static void replica_attach(void *ctx, void *keeper)
{
    struct replica *r = ctx;
    r->keeper = keeper;
    kube_api_guard(r->api, kube_keeper_may_write, keeper);
}

/* --- pods --- */

static const char *meta_text(const json_t *object, const char *key)
{
    return kube_text(kube_get(object, "metadata"), key);
}

static bool is_ending(const json_t *pod)
{
    return meta_text(pod, "deletionTimestamp") != NULL;
}

static const char *node_of(const json_t *pod)
{
    return kube_text(kube_get(pod, "spec"), "nodeName");
}

static bool bears(const json_t *pod, const char *mark)
{
    const char *text = kube_text(kube_path(pod, "metadata", "annotations"), MARK);
    return text && strcmp(text, mark) == 0;
}

/* The owner that will make another one; NULL where nobody will. */
static const json_t *owner_of(const json_t *pod)
{
    size_t i;
    const json_t *owner;
    json_array_foreach(kube_path(pod, "metadata", "ownerReferences"), i, owner)
    {
        const char *kind = kube_text(owner, "kind");
        if (json_is_true(kube_get(owner, "controller")) && kind && strcmp(kind, "ReplicaSet") == 0)
            return owner;
    }
    return NULL;
}

/* "space/name" apart; caller frees both. */
static int split(const char *instance, char **space, char **name, struct err *err)
{
    const char *slash = instance ? strchr(instance, '/') : NULL;
    if (!slash || slash == instance || !slash[1])
        return err_set(err, ERR_NOT_FOUND, "%s is no namespace/pod",
                       instance ? instance : "(none)");
    *space = mem_strndup(instance, (size_t)(slash - instance));
    *name = mem_strdup(slash + 1);
    return 0;
}

/* ERR_NOT_FOUND. Caller decrefs. */
static json_t *pod_get(struct replica *r, const char *instance, struct err *err)
{
    AUTO_FREE char *space = NULL;
    AUTO_FREE char *name = NULL;
    json_t *pod = NULL;
    if (split(instance, &space, &name, err))
        return NULL;
    AUTO_FREE char *path = kube_api_path("v1", space, "pods", name);
    return kube_api_find(r->api, path, &pod, err) == 0 ? pod : NULL;
}

struct search {
    const char *mark, *rather; /* what bears `rather` beats what bears `mark`; NULL: none */
    bool is_rather;
    json_t *found; /* the youngest that bears it */
    int64_t ready; /* pods of the workload that are ready and stay */
};

static bool is_ready(const json_t *pod)
{
    return kube_condition(kube_get(pod, "status"), "Ready");
}

static int search_page(void *ctx, const json_t *list, bool again, struct err *err)
{
    struct search *search = ctx;
    size_t i;
    json_t *pod;
    (void)err;
    if (again) {
        json_decref(search->found);
        search->found = NULL;
        search->ready = 0;
        search->is_rather = false;
    }
    json_array_foreach(kube_get(list, "items"), i, pod)
    {
        const char *born = meta_text(pod, "creationTimestamp");
        const char *than = meta_text(search->found, "creationTimestamp");
        search->ready += !is_ending(pod) && is_ready(pod);
        bool rather = search->rather && bears(pod, search->rather);
        if (!rather && (search->is_rather || !bears(pod, search->mark)))
            continue;
        if (rather == search->is_rather && than && !(born && strcmp(born, than) > 0))
            continue;
        json_decref(search->found);
        search->found = json_incref(pod);
        search->is_rather = rather;
    }
    return 0;
}

/* Appends "app%3Dcart%2Ctier%3Dweb". */
static void put_selector(const json_t *workload, struct buf *out)
{
    const char *key;
    json_t *value;
    AUTO_BUF struct buf text = BUF_INIT;
    json_t *labels = json_object_get(kube_path(workload, "spec", "selector"), "matchLabels");
    json_object_foreach(labels, key, value)
    {
        buf_printf(&text, "%s%s=%s", text.size ? "," : "", key,
                   json_is_string(value) ? json_string_value(value) : "");
    }
    http_escape(out, text.data ? text.data : "");
}

/* The pod of the service that bears the mark: *found (may stay NULL), caller decrefs; *want:
 * replicas wanted, *ready: those that are ready. */
static int find_either(struct replica *r, const char *service, const char *rather, const char *mark,
                       json_t **found, bool *is_rather, int64_t *want, int64_t *ready,
                       struct err *err)
{
    AUTO_JSON json_t *workload = NULL;
    const char *plural;
    if (event_workload(r->api, service, false, &workload, &plural, err))
        return -1;
    AUTO_BUF struct buf path = BUF_INIT;
    AUTO_FREE char *pods = kube_api_path("v1", meta_text(workload, "namespace"), "pods", NULL);
    struct search search = {.mark = mark, .rather = rather};
    buf_printf(&path, "%s?labelSelector=", pods);
    put_selector(workload, &path);
    if (kube_api_list(r->api, path.data, search_page, &search, NULL, NULL, err)) {
        json_decref(search.found);
        return -1;
    }
    *found = search.found;
    *is_rather = search.is_rather;
    *want = kube_number(kube_get(workload, "spec"), "replicas", 1);
    *ready = search.ready;
    return 0;
}

static int find_marked(struct replica *r, const char *service, const char *mark, json_t **found,
                       int64_t *want, int64_t *ready, struct err *err)
{
    bool is_rather;
    return find_either(r, service, NULL, mark, found, &is_rather, want, ready, err);
}

/* --- place --- */

static char *mark_text(const struct placement *p, bool undo)
{
    const char *slash = p->instance ? strchr(p->instance, '/') : NULL;
    return mem_printf("%" PRId64 "/%" PRId64 "/%s%s", p->cycle, p->seq, slash ? slash + 1 : "",
                      undo ? "/undo" : "");
}

/* Will the webhook be asked at all? Else the eviction would only cost. */
static int check_opted_in(struct replica *r, const char *space, struct err *err)
{
    AUTO_JSON json_t *object = NULL;
    AUTO_FREE char *path = kube_api_path("v1", NULL, "namespaces", space);
    if (kube_api_get(r->api, path, &object, NULL, err))
        return -1;
    const char *label = kube_text(kube_path(object, "metadata", "labels"), OPTED_IN);
    return label && strcmp(label, "enabled") == 0
               ? 0
               : err_set(err, ERR_CONFLICT, "namespace %s has no label " OPTED_IN "=enabled",
                         space);
}

/* The others carry the load meanwhile. */
static int check_others(struct replica *r, const char *space, const json_t *owner, struct err *err)
{
    AUTO_JSON json_t *object = NULL;
    const char *name = kube_text(owner, "name");
    AUTO_FREE char *path = kube_api_path("apps/v1", space, "replicasets", name ? name : "");
    if (kube_api_get(r->api, path, &object, NULL, err))
        return -1;
    int64_t ready = kube_number(kube_get(object, "status"), "readyReplicas", 0);
    int64_t want = kube_number(kube_get(object, "spec"), "replicas", 1);
    if (ready < 2 || ready < want)
        return err_set(err, ERR_CONFLICT,
                       "%s has %" PRId64 " of %" PRId64 " replicas ready; one may go when all are, "
                       "and at least two",
                       name, ready, want);
    return 0;
}

/* 0: it goes, or has gone. ERR_CONFLICT: not now; nothing was changed. */
static int evict(struct replica *r, const char *space, const json_t *pod, struct err *err)
{
    const char *name = meta_text(pod, "name");
    for (int tries = 1;; tries++) {
        struct kube_status status;
        struct err why = ERR_INIT;
        if (kube_evict(r->api, pod, &status, &why) == 0)
            return 0;
        bool budget = status.code == 429 && strcmp(status.cause, "DisruptionBudget") == 0;
        if (budget && tries < BUDGET_TRIES) {
            http_wait(BUDGET_WAIT_MS);
            continue;
        }
        if (budget)
            return err_set(err, ERR_CONFLICT, "a disruption budget lets %s/%s not go", space, name);
        if (status.code == 500) /* more than one budget matches: the API server's own words */
            return err_set(err, ERR_CONFLICT, "%s/%s cannot be evicted: %s", space, name,
                           status.message);
        *err = why;
        return -1;
    }
}

/* Evicts the pod, and wishes for where its replacement goes. */
static int send_away(struct replica *r, const json_t *pod, const char *target, const char *mark,
                     struct err *err)
{
    const char *space = meta_text(pod, "namespace");
    const json_t *owner = owner_of(pod);
    struct wishes *wishes = r->keeper ? kube_keeper_wishes(r->keeper) : NULL;
    if (!wishes)
        return err_set(err, ERR_REFUSED, "there is no webhook to steer single replicas");
    if (!owner || is_ending(pod))
        return err_set(err, ERR_CONFLICT, "%s/%s %s", space, meta_text(pod, "name"),
                       owner ? "is ending" : "is of no ReplicaSet");
    if (check_opted_in(r, space, err) || check_others(r, space, owner, err))
        return -1;
    const struct wish wish = {space, kube_text(owner, "uid"), target, mark,
                              clock_mono_ms() + WISH_MS};
    wishes_add(wishes, &wish);
    if (evict(r, space, pod, err) == 0)
        return 0;
    if (err->kind != ERR_UNREACHABLE) /* else it may go all the same */
        wishes_drop(wishes, mark);
    return -1;
}

static int replica_place(void *ctx, const struct placement *p, char **saved, struct err *err)
{
    struct replica *r = ctx;
    AUTO_FREE char *mark = mark_text(p, false);
    AUTO_JSON json_t *done = NULL;
    int64_t want, ready;
    if (!p->instance || !p->target)
        return err_set(err, ERR_REFUSED, "kubernetes-replica moves single replicas to one host");
    if (find_marked(r, p->service, mark, &done, &want, &ready, err))
        return -1;
    if (done)
        return 0; /* asked before */
    AUTO_JSON json_t *pod = pod_get(r, p->instance, err);
    if (!pod)
        return -1;
    const char *node = node_of(pod);
    if (node && p->source && strcmp(node, p->source) != 0)
        return err_set(err, ERR_CONFLICT, "%s is on %s by now", p->instance, node);
    if (send_away(r, pod, p->target, mark, err))
        return -1;
    AUTO_JSON json_t *keep =
        json_pack("{s:i, s:s?, s:s?}", "v", 1, "node", node, "uid", meta_text(pod, "uid"));
    *saved = json_dumps(keep, JSON_COMPACT);
    return 0;
}

/* --- settled --- */

static void report_marked(const json_t *pod, const char *target, struct settle_report *out)
{
    const char *node = node_of(pod), *phase = kube_text(kube_get(pod, "status"), "phase");
    const char *space = meta_text(pod, "namespace"), *name = meta_text(pod, "name");
    snprintf(out->instance_now, sizeof out->instance_now, "%s/%s", space, name);
    if (is_ending(pod)) {
        out->state = SETTLE_DISPLACED;
        snprintf(out->detail, sizeof out->detail, "%s is ending again", name);
    } else if (node && target && strcmp(node, target) != 0) {
        out->state = is_ready(pod) ? SETTLE_MISSED : SETTLE_WAITING;
        snprintf(out->detail, sizeof out->detail, "the scheduler put it on %s", node);
    } else if (phase && strcmp(phase, "Failed") == 0) {
        out->state = SETTLE_FAILED;
        snprintf(out->detail, sizeof out->detail, "%s failed", name);
    } else {
        out->state = node && is_ready(pod) ? SETTLE_APPLIED : SETTLE_WAITING;
        if (out->state == SETTLE_WAITING)
            snprintf(out->detail, sizeof out->detail, node ? "not ready yet" : "no node takes it");
    }
}

/* No pod bears the mark: was the webhook not asked, or is the eviction still to come? */
static int report_unmarked(struct replica *r, const struct placement *p, int64_t want,
                           int64_t ready, struct settle_report *out, struct err *err)
{
    AUTO_JSON json_t *old = pod_get(r, p->instance, err);
    if (!old && err->kind != ERR_NOT_FOUND)
        return -1;
    *err = (struct err)ERR_INIT;
    if (old || ready < want) {
        snprintf(out->detail, sizeof out->detail, old ? "it is still there" : "no replacement yet");
        return 0;
    }
    out->state = SETTLE_MISSED;
    snprintf(out->detail, sizeof out->detail,
             "its replacement was made without asking us: is the webhook reached?");
    return 0;
}

static int replica_settled(void *ctx, const struct placement *p, struct settle_report *out,
                           struct err *err)
{
    struct replica *r = ctx;
    int64_t want, ready;
    *out = (struct settle_report){.state = SETTLE_WAITING};
    bool undone;
    AUTO_FREE char *mark = mark_text(p, false);
    AUTO_FREE char *back = mark_text(p, true);
    AUTO_JSON json_t *pod = NULL;
    /* One list for both marks: between two of them a replica may have been put back unseen. */
    if (find_either(r, p->service, back, mark, &pod, &undone, &want, &ready, err))
        return -1;
    if (pod) {
        report_marked(pod, undone ? p->source : p->target, out);
        return 0;
    }
    return report_unmarked(r, p, want, ready, out, err);
}

/* --- undo, release --- */

static int replica_undo(void *ctx, const struct placement *p, const char *saved, struct err *err)
{
    struct replica *r = ctx;
    AUTO_FREE char *mark = mark_text(p, false);
    AUTO_FREE char *back = mark_text(p, true);
    AUTO_JSON json_t *there = NULL;
    AUTO_JSON json_t *pod = NULL;
    int64_t want, ready;
    (void)saved; /* the source is in the placement; saved tells people what it was */
    if (find_marked(r, p->service, back, &there, &want, &ready, err) ||
        find_marked(r, p->service, mark, &pod, &want, &ready, err))
        return -1;
    if (there)
        return 0;
    if (!pod || !p->source)
        return err_set(err, ERR_NOT_FOUND, "no replica of %s bears the mark %s", p->service, mark);
    return send_away(r, pod, p->source, back, err);
}

/* Wishes and marks go with their pods: there is nothing that stays. */
static int replica_release(void *ctx, const struct app_scope *app, const char *service,
                           bool dry_run, int64_t *restarts, struct err *err)
{
    (void)ctx;
    (void)app;
    (void)service;
    (void)dry_run;
    (void)err;
    *restarts = 0;
    return 0;
}

static void replica_check(void *ctx, void (*tell)(void *arg, const struct check_line *line),
                          void *arg)
{
    struct replica *r = ctx;
    admission_check(r->api, r->webhook, r->cert_file, r->listen, tell, arg);
}

static const struct option_spec options[] = {
    KUBE_API_OPTIONS,
    KUBE_KEEPER_OPTIONS,
    {"listen", "where the API server reaches the webhook", REPLICA_LISTEN, false},
    {"tls_cert_file", "its certificate, read again when it changes", REPLICA_CERT_FILE, false},
    {"tls_key_file", "and key", REPLICA_KEY_FILE, false},
    {"webhook", "name of its MutatingWebhookConfiguration, for `remap check`", REPLICA_WEBHOOK, false},
    {NULL, NULL, NULL, false},
};

const struct orchestrator kubernetes_replica_orchestrator = {
    .name = "kubernetes-replica",
    .summary = "moves single replicas on Kubernetes: eviction, and a webhook that steers",
    .options = options,
    .granularity = PER_INSTANCE,
    .start_first = false,
    .marks = true,
    .open = replica_open,
    .place = replica_place,
    .settled = replica_settled,
    .undo = replica_undo,
    .release = replica_release,
    .check = replica_check,
    .close = replica_close,
    .keeper = &kubernetes_replica_keeper,
    .attach = replica_attach,
};
