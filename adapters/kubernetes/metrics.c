/* metrics.c - usage from metrics.k8s.io (metrics-server; interfaces.md 1.4). It knows the present
 * only, so it is sampled as long as the source is open, and the mean over a window is that of the
 * samples in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/api.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/kubernetes.h"
#include "adapters/kubernetes/quantity.h"
#include "adapters/kubernetes/samples.h"
#include "adapters/kubernetes/when.h"
#include "adapters/usage.h"
#include "model/base/clock.h"
#include "model/base/json.h"

#define GROUP "metrics.k8s.io/v1beta1"
#define AFTER_FAILURE_MS 60000
#define FRESH_MS 120000 /* a present sample: metrics-server's are at most a minute old */

static const struct option_spec metrics_options[] = {KUBE_API_OPTIONS, {NULL, NULL, NULL, false}};

struct metrics {
    char *name; /* of the source */
    struct kube_api *api;
    struct samples *pods, *nodes; /* by "namespace/pod" and node */
    char **spaces;                /* looked at, where all together are refused; NULL: all */
    size_t n_spaces;
    int64_t window_ms; /* the longest that was asked for */
};

static void metrics_close(void *ctx)
{
    struct metrics *metrics = ctx;
    if (!metrics)
        return;
    kube_api_close(metrics->api);
    samples_free(metrics->pods);
    samples_free(metrics->nodes);
    for (size_t i = 0; i < metrics->n_spaces; i++)
        free(metrics->spaces[i]);
    free(metrics->spaces);
    free(metrics->name);
    free(metrics);
}

static int metrics_open(const struct source *source, void **ctx, struct err *err)
{
    struct metrics *metrics = mem_alloc(sizeof *metrics);
    if (kube_api_open(source, &metrics->api, err)) {
        metrics_close(metrics);
        return -1;
    }
    metrics->name = mem_strdup(source->name);
    metrics->pods = samples_new();
    metrics->nodes = samples_new();
    *ctx = metrics;
    return 0;
}

/* --- answers --- */

static double amount(const json_t *usage, const char *key)
{
    struct quantity quantity;
    struct err ignored = ERR_INIT;
    const char *text = kube_text(usage, key);
    if (!text || quantity_parse(text, &quantity, &ignored) || quantity.negative)
        return -1;
    return (double)quantity.whole + (double)quantity.nanos / 1e9;
}

/* false where one of the two is missing. */
static bool add_usage(const json_t *usage, double *cores, double *bytes)
{
    double cpu = amount(usage, "cpu"), memory = amount(usage, "memory");
    if (cpu < 0 || memory < 0)
        return false;
    *cores += cpu;
    *bytes += memory;
    return true;
}

void kube_metrics_take(const json_t *item, struct samples *pods, struct samples *nodes)
{
    const json_t *meta = kube_get(item, "metadata"), *containers = kube_get(item, "containers");
    const char *space = kube_text(meta, "namespace"), *name = kube_text(meta, "name");
    const char *at = kube_text(item, "timestamp");
    double cores = 0, bytes = 0;
    int64_t at_ms;
    size_t i;
    const json_t *container;
    bool whole = json_array_size(containers) > 0 || kube_get(item, "usage");
    if (!name || !at || when_parse(at, &at_ms))
        return;
    json_array_foreach(containers, i, container)
        whole &= add_usage(kube_get(container, "usage"), &cores, &bytes);
    if (kube_get(item, "usage"))
        whole &= add_usage(kube_get(item, "usage"), &cores, &bytes);
    if (!whole)
        return;
    AUTO_FREE char *full = mem_printf("%s%s%s", space ? space : "", space ? "/" : "", name);
    samples_add(space ? pods : nodes, full, at_ms, cores, bytes);
}

static int take_list(struct metrics *metrics, const char *space, const char *plural,
                     struct kube_status *status, struct err *err)
{
    AUTO_FREE char *path = kube_api_path(GROUP, space, plural, NULL);
    AUTO_JSON json_t *list = NULL;
    size_t i;
    const json_t *item;
    if (kube_api_get(metrics->api, path, &list, status, err) || kube_api_listed(list, path, err))
        return -1;
    json_array_foreach(kube_get(list, "items"), i, item)
        kube_metrics_take(item, metrics->pods, metrics->nodes);
    return 0;
}

/* What the operator can do about it. */
static int explain(const struct kube_status *status, struct err *err)
{
    if (status->code == 404)
        return err_set(err, ERR_NOT_FOUND,
                       "the cluster has no metrics.k8s.io: install metrics-server, or take usage "
                       "from another source");
    if (status->code == 503)
        return err_set(err, ERR_UNREACHABLE,
                       "metrics.k8s.io is registered but does not answer: see `kubectl get "
                       "apiservice v1beta1.metrics.k8s.io` and the pods of metrics-server");
    return -1;
}

static int take_pods(struct metrics *metrics, struct kube_status *status, struct err *err)
{
    if (!metrics->spaces)
        return take_list(metrics, NULL, "pods", status, err);
    for (size_t i = 0; i < metrics->n_spaces; i++)
        if (take_list(metrics, metrics->spaces[i], "pods", status, err))
            return -1;
    return 0;
}

/* One sample of everything. */
static int take(struct metrics *metrics, struct err *err)
{
    struct kube_status status;
    struct err refused = ERR_INIT;
    if (take_pods(metrics, &status, err))
        return explain(&status, err);
    /* Nodes say what our pods do not: without, their other use is not known. */
    if (take_list(metrics, NULL, "nodes", &status, &refused) && status.code != 403) {
        *err = refused;
        return explain(&status, err);
    }
    int64_t kept = samples_pause_ms(metrics->window_ms) * SAMPLES_KEPT;
    samples_forget(metrics->pods, clock_wall_ms() - kept);
    samples_forget(metrics->nodes, clock_wall_ms() - kept);
    return 0;
}

static int64_t metrics_tend(void *ctx)
{
    struct metrics *metrics = ctx;
    struct err ignored = ERR_INIT; /* the next inspection meets it again */
    return take(metrics, &ignored) ? AFTER_FAILURE_MS : samples_pause_ms(metrics->window_ms);
}

/* --- measuring --- */

struct reading { /* of one window */
    const struct metrics *metrics;
    const struct samples *samples;
    struct usage_sums cpu, memory;
    int64_t from_ms, to_ms;
    size_t most; /* samples of one thing */
};

static void read_one(void *ctx, const char *name)
{
    struct reading *reading = ctx;
    double cores, bytes;
    struct err ignored = ERR_INIT;
    /* What has ended since has no sample of now. */
    int64_t alive_ms = clock_wall_ms() - FRESH_MS - samples_pause_ms(reading->metrics->window_ms);
    if (!samples_mean(reading->samples, name, alive_ms, INT64_MAX, &cores, &bytes))
        return;
    size_t n = samples_mean(reading->samples, name, reading->from_ms, reading->to_ms, &cores, &bytes);
    if (n == 0)
        return;
    if (n > reading->most)
        reading->most = n;
    const char *slash = strchr(name, '/');
    AUTO_FREE char *space = slash ? mem_strndup(name, (size_t)(slash - name)) : mem_strdup("");
    const char *const values[] = {reading->cpu.spaced ? space : name, slash ? slash + 1 : ""};
    usage_sums_row(&reading->cpu, values, cores, &ignored);
    usage_sums_row(&reading->memory, values, bytes, &ignored);
}

static struct reading read_all(const struct metrics *metrics, const struct samples *samples,
                               const struct app_scope *app, const struct window *window,
                               struct inspection *in)
{
    bool hosts = samples == metrics->nodes;
    int64_t now = clock_wall_ms();
    /* A window that ends now has its newest sample a little before or, by their clock, after. */
    struct reading reading = {.metrics = metrics,
                              .samples = samples,
                              .from_ms = window->from_ms < now - FRESH_MS ? window->from_ms
                                                                          : now - FRESH_MS,
                              .to_ms = window->to_ms > now - FRESH_MS ? now + FRESH_MS
                                                                      : window->to_ms};
    usage_sums_begin(&reading.cpu, app, in, hosts, !hosts, hosts ? 1 : 2);
    usage_sums_begin(&reading.memory, app, in, hosts, !hosts, hosts ? 1 : 2);
    samples_each(samples, read_one, &reading);
    return reading;
}

static void note_few(const struct metrics *metrics, const struct window *window, size_t most,
                     struct inspection *in)
{
    int64_t span = window->to_ms - window->from_ms;
    size_t wanted = (size_t)(span / samples_pause_ms(metrics->window_ms));
    char text[CLOCK_TEXT_SIZE];
    if (most * 2 < wanted)
        inspection_note(in, "partial", (int64_t)most,
                        "%s: %zu samples of the last %s, since it has no history and was not asked "
                        "before",
                        metrics->name, most, duration_text(span, text));
}

static void use_spaces(struct metrics *metrics, const struct app_scope *app)
{
    for (const char *const *space = app->namespaces; space && *space; space++)
        *ARRAY_PUSH(metrics->spaces, metrics->n_spaces) = mem_strdup(*space);
}

static int sample_now(struct metrics *metrics, const struct app_scope *app, struct err *err)
{
    if (!take(metrics, err))
        return 0;
    if (err->kind != ERR_REFUSED || metrics->spaces)
        return -1;
    use_spaces(metrics, app); /* in all namespaces it is forbidden; in ours it may be allowed */
    return metrics->spaces ? take(metrics, err) : -1;
}

static int metrics_measure(void *ctx, const struct app_scope *app, const struct window *window,
                           struct inspection *in, struct err *err)
{
    struct metrics *metrics = ctx;
    if (window->to_ms - window->from_ms > metrics->window_ms)
        metrics->window_ms = window->to_ms - window->from_ms;
    if (sample_now(metrics, app, err))
        return -1;
    struct reading pods = read_all(metrics, metrics->pods, app, window, in);
    usage_sums_note(&pods.cpu, metrics->name, "usage");
    usage_set_pods(in, metrics->name, pods.cpu.total, pods.memory.total);
    struct reading nodes = read_all(metrics, metrics->nodes, app, window, in);
    usage_set_hosts(in, nodes.cpu.total, nodes.memory.total);
    note_few(metrics, window, pods.most, in);
    free(pods.cpu.total);
    free(pods.memory.total);
    free(nodes.cpu.total);
    free(nodes.memory.total);
    return 0;
}

/* --- check --- */

static void count_one(void *ctx, const char *name)
{
    (void)name;
    (*(int64_t *)ctx)++;
}

static int metrics_check(void *ctx, const struct app_scope *app, struct source_report *out,
                         struct err *err)
{
    struct metrics *metrics = ctx;
    int64_t pods = 0, nodes = 0;
    if (sample_now(metrics, app, err))
        return -1;
    out->reachable = true;
    out->newest_ms = samples_newest_ms(metrics->pods);
    samples_each(metrics->pods, count_one, &pods);
    samples_each(metrics->nodes, count_one, &nodes);
    snprintf(out->version, sizeof out->version, "v1beta1");
    snprintf(out->seen, sizeof out->seen, "CPU and memory of %lld pods and %lld nodes",
             (long long)pods, (long long)nodes);
    return 0;
}

const struct metrics_adapter kubernetes_metrics = {
    .name = "kubernetes-metrics",
    .summary = "CPU and memory of pods and nodes by metrics-server, sampled",
    .options = metrics_options,
    .open = metrics_open,
    .measure = metrics_measure,
    .tend = metrics_tend,
    .check = metrics_check,
    .close = metrics_close,
};
