/* cluster.c - the inspection of a Kubernetes cluster (paper §6.1; interfaces.md 1.2, 1.9). */
#include "adapters/kubernetes/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/api.h"
#include "adapters/kubernetes/feeds.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/kubernetes.h"
#include "adapters/kubernetes/orchestrator.h"
#include "adapters/kubernetes/owners.h"
#include "adapters/kubernetes/rights.h"
#include "adapters/kubernetes/rivals.h"
#include "adapters/kubernetes/standing.h"
#include "model/base/clock.h"
#include "model/base/json.h"

#define TEND_MS 1000 /* the server keeps some hundred events for a slow watch */
#define ROLLS_MS 10  /* asked about several services, the watches are read once */

struct cluster {
    struct kube_api *api;
    struct tidings tidings; /* released NULL: nobody listens */
    struct kube_objects *objects;
    struct feeds *feeds;
    int64_t turned_ms; /* monotonic: when cluster_rolls() read them last */
    char *excluded_text;
    const char **excluded; /* into it; ended by NULL */
    json_t *selector;      /* NULL: any */
    bool ignore_soft;
    int64_t peak_ms;
    struct standing standing;
    char *lease, *pause, *lease_space; /* lease, pause: NULL: none is wanted */
};

static void cluster_close(void *ctx)
{
    struct cluster *cluster = ctx;
    if (!cluster)
        return;
    feeds_free(cluster->feeds);
    kube_objects_free(cluster->objects);
    kube_api_close(cluster->api);
    free(cluster->excluded_text);
    free(cluster->excluded);
    free(cluster->lease);
    free(cluster->pause);
    free(cluster->lease_space);
    json_decref(cluster->selector);
    free(cluster);
}

static int read_bool(const struct source *source, const char *name, const char *fallback,
                     bool *out, struct err *err)
{
    const char *value = source_option(source, name, fallback);
    *out = strcmp(value, "true") == 0;
    return *out || strcmp(value, "false") == 0
               ? 0
               : err_set(err, ERR_CONFIG, "%s: %s must be true or false, not %.40s", source->name,
                         name, value);
}

static void read_excluded(const struct source *source, struct cluster *cluster)
{
    size_t n = 0;
    cluster->excluded_text = mem_strdup(source_option(source, "exclude_namespaces", ""));
    char *rest = cluster->excluded_text;
    for (char *name; (name = strsep(&rest, ", "));)
        if (*name)
            *ARRAY_PUSH(cluster->excluded, n) = name;
    *ARRAY_PUSH(cluster->excluded, n) = NULL;
}

/* "app=shop,tier=web" as {matchLabels: …}. */
static int read_selector(const struct source *source, struct cluster *cluster, struct err *err)
{
    AUTO_FREE char *text = mem_strdup(source_option(source, "selector", ""));
    json_t *labels = json_object();
    char *rest = text;
    int rc = 0;
    for (char *pair; rc == 0 && (pair = strsep(&rest, ", "));) {
        char *sign = strchr(pair, '=');
        if (!*pair)
            continue;
        if (!sign || sign == pair || pair[strlen(pair) - 1] == '!' || strchr(sign + 1, '='))
            rc = err_set(err, ERR_CONFIG, "%s: selector must be like name=value, not %.60s",
                         source->name, pair);
        else
            *sign = 0, json_object_set_new(labels, pair, json_string(sign + 1));
    }
    if (rc == 0 && json_object_size(labels))
        cluster->selector = json_pack("{s:O}", "matchLabels", labels);
    json_decref(labels);
    return rc;
}

/* --- releases (interfaces.md 1.9: a template that somebody else than us has changed) --- */

static void on_released(void *ctx, const char *kind, const json_t *object)
{
    const struct cluster *cluster = ctx;
    const json_t *meta = kube_get(object, "metadata");
    const char *space = kube_text(meta, "namespace"), *name = kube_text(meta, "name");
    const char *uid = kube_text(meta, "uid");
    const owners_path template = {"spec", "template", NULL};
    struct owner owner;
    if (!cluster->tidings.released || !space || !name)
        return;
    bool known = owners_newest(object, template, &owner);
    AUTO_FREE char *service = mem_printf("%s/%s", space, name);
    AUTO_FREE char *text =
        mem_printf("%s %s has a new template%s%s", kind, service, known ? ", by " : "",
                   known ? owner.manager : "");
    AUTO_FREE char *delivery =
        mem_printf("kubernetes/%s/%lld", uid ? uid : service,
                   (long long)kube_number(meta, "generation", 0));
    const struct revision revision = {space, service, text, delivery};
    cluster->tidings.released(cluster->tidings.arg, &revision);
}

static void on_judge(void *ctx, const char *kind, const json_t *object, struct kube_workload *out)
{
    const struct cluster *cluster = ctx;
    standing_judge(&cluster->standing, kind, object, out);
}

static int64_t cluster_tend(void *ctx, const struct tidings *tidings)
{
    struct cluster *cluster = ctx;
    cluster->tidings = *tidings;
    feeds_turn(cluster->feeds);
    return TEND_MS;
}

static bool cluster_rolls(void *ctx, const char *service)
{
    struct cluster *cluster = ctx;
    int64_t now = clock_mono_ms();
    if (now - cluster->turned_ms >= ROLLS_MS) {
        feeds_turn(cluster->feeds);
        cluster->turned_ms = now;
    }
    return kube_objects_rolls(cluster->objects, service);
}

/* As the orchestrator of this source goes by. */
static int read_standing(const struct source *source, struct standing *out, struct err *err)
{
    struct kube_orchestrator orchestrator = {0};
    const char *moves = source_option(source, "moves", "workloads");
    out->replicas = strcmp(moves, "replicas") == 0;
    if (!out->replicas && strcmp(moves, "workloads") != 0)
        return err_set(err, ERR_CONFIG, "%s: moves must be workloads or replicas, not %.40s",
                       source->name, moves);
    if (orchestrator_read(source, &orchestrator, err))
        return -1;
    out->pin = orchestrator.kind;
    out->options = orchestrator.conduct;
    return 0;
}

static int cluster_open(const struct source *source, void **ctx, struct err *err)
{
    struct cluster *cluster = mem_alloc(sizeof *cluster);
    bool respect_soft;
    read_excluded(source, cluster);
    if (read_selector(source, cluster, err) ||
        read_bool(source, "respect_soft", "true", &respect_soft, err) ||
        read_standing(source, &cluster->standing, err) ||
        duration_parse(source_option(source, "scaling_window", "1h"), &cluster->peak_ms, err) ||
        kube_api_open(source, &cluster->api, err)) {
        cluster_close(cluster);
        return -1;
    }
    cluster->ignore_soft = !respect_soft;
    const char *lease = source_option(source, "lease", "remap");
    const char *pause = source_option(source, "pause", "remap-pause");
    cluster->lease = strcmp(lease, "none") == 0 ? NULL : mem_strdup(lease);
    cluster->pause = strcmp(pause, "none") == 0 ? NULL : mem_strdup(pause);
    cluster->lease_space =
        mem_strdup(source_option(source, "lease_namespace", kube_api_space(cluster->api)));
    cluster->objects = kube_objects_new();
    kube_objects_judge(cluster->objects, on_judge, on_released, cluster);
    cluster->feeds = feeds_new(cluster->api, cluster->objects);
    *ctx = cluster;
    return 0;
}

static int cluster_inspect(void *ctx, const struct app_scope *app, struct inspection *in,
                           struct err *err)
{
    struct cluster *cluster = ctx;
    const struct standing *standing = &cluster->standing;
    const struct conduct_options *options = &standing->options;
    const struct kube_choice choice = {.app = app,
                                       .excluded = cluster->excluded,
                                       .selector = cluster->selector,
                                       .ignore_soft = cluster->ignore_soft,
                                       .soak_ms = standing->replicas ? 0 : options->soak_ms,
                                       .any_pool = options->any_pool,
                                       .min_node_age_ms = options->min_node_age_ms,
                                       .placed_only = true,
                                       .scaling_ms = options->scaling_ms,
                                       .peak_ms = cluster->peak_ms,
                                       .now_ms = clock_wall_ms()};
    if (feeds_update(cluster->feeds, app->namespaces, err))
        return -1;
    feeds_note(cluster->feeds, in);
    return kube_objects_model(cluster->objects, &choice, in, err);
}

static int read_version(struct kube_api *api, struct source_report *out, struct err *err)
{
    AUTO_JSON json_t *version = NULL;
    if (kube_api_get(api, "/version", &version, NULL, err))
        return -1;
    const char *text = kube_text(version, "gitVersion");
    snprintf(out->version, sizeof out->version, "%s", text ? text : "");
    out->reachable = true;
    return 0;
}

static int cluster_check(void *ctx, const struct app_scope *app, struct source_report *out,
                         struct err *err)
{
    struct cluster *cluster = ctx;
    AUTO(model) struct model *model = model_new();
    struct inspection in = {.model = model};
    if (read_version(cluster->api, out, err))
        return -1;
    int rc = cluster_inspect(cluster, app, &in, err);
    inspection_wipe(&in);
    if (rc)
        return -1;
    int pinned = 0;
    for (size_t i = 0; i < model->n_instances; i++)
        pinned += model->instances[i].pinned_why != NULL;
    AUTO_BUF struct buf more = BUF_INIT;
    if (cluster->lease)
        rights_tell_lease(cluster->api, cluster->lease_space, cluster->lease, &more);
    if (cluster->pause)
        rights_tell_pause(cluster->api, cluster->lease_space, cluster->pause, &more);
    rivals_tell(cluster->api, cluster->objects, &more);
    snprintf(out->seen, sizeof out->seen, "%zu nodes, %zu services, %zu pods (%d of them stay)%s",
             model->n_hosts, model->n_services, model->n_instances, pinned,
             more.data ? more.data : "");
    return 0;
}

const struct cluster_adapter kubernetes_cluster = {
    .name = "kubernetes",
    .summary = "the Kubernetes API: nodes, workloads, pods, and what may not move",
    .options = kubernetes_options,
    .open = cluster_open,
    .inspect = cluster_inspect,
    .tend = cluster_tend,
    .rolls = cluster_rolls,
    .check = cluster_check,
    .close = cluster_close,
};
