/* usage.c - CPU and memory of pods and nodes from a Prometheus (paper §6.1; interfaces.md 3.1), and
 * the latency between hosts. */
#include "adapters/prometheus/prometheus.h"

#include "adapters/usage.h"
#include "model/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct usage_query {
    char *cpu, *memory, *by; /* queries NULL: not asked */
    bool spaced;             /* the first label is the namespace */
};

struct prom_usage {
    struct prom prom;
    struct usage_query pods, hosts;
    struct prom_latency latency;
    double quantile; /* < 0: mean */
    int64_t resolution_ms;
};

static const struct option_spec options[] = {
    PROM_OPTIONS,
    {"preset", "pods: cadvisor, cadvisor-pods (pod-level series only), cadvisor-old, swarm, none",
     "cadvisor", false},
    {"hosts", "nodes: cadvisor, node-exporter, none", "cadvisor", false},
    {"latency", "between hosts: none, goldpinger, kubenurse, ping-exporter", "none", false},
    {"statistic", "mean, or a percentile of the window such as p95", "mean", false},
    {"resolution", "of percentiles and of means of memory; at least 4 scrape intervals", "2m", false},
    {"cpu_query", "own query: cores of each pod", NULL, false},
    {"memory_query", "own query: bytes of each pod", NULL, false},
    {"host_cpu_query", "own query: cores used on each node", NULL, false},
    {"host_memory_query", "own query: bytes used on each node", NULL, false},
    {"namespace_label", "label with a pod's namespace", NULL, false},
    {"pod_label", "labels with a pod's name, first that is not empty", NULL, false},
    {"node_label", "labels with a node's name or address, first that is one", NULL, false},
    {"latency_query", "own query: round trips", NULL, false},
    {"latency_unit", "of its values: s, ms or us", NULL, false},
    {"latency_source_label", "labels with the host that measured", NULL, false},
    {"latency_target_label", "labels with the host that answered", NULL, false},
    {NULL, NULL, NULL, false}};

static void query_wipe(struct usage_query *query)
{
    free(query->cpu);
    free(query->memory);
    free(query->by);
}

static void usage_close(void *ctx)
{
    struct prom_usage *usage = ctx;
    prom_close(&usage->prom);
    query_wipe(&usage->pods);
    query_wipe(&usage->hosts);
    prom_latency_wipe(&usage->latency);
    free(usage);
}

static const struct usage_preset *preset_find(const struct source *source, const char *option,
                                              const struct usage_preset *presets, struct err *err)
{
    const char *name = source_option(source, option, "cadvisor");
    for (; presets->name; presets++)
        if (!strcmp(presets->name, name))
            return presets;
    err_set(err, ERR_CONFIG, "%s: %s: there is no preset %.60s", source->name, option, name);
    return NULL;
}

static int statistic(const struct source *source, double *quantile, struct err *err)
{
    const char *text = source_option(source, "statistic", "mean");
    char *end;
    *quantile = -1;
    if (!strcmp(text, "mean"))
        return 0;
    double percent = text[0] == 'p' ? strtod(text + 1, &end) : 0;
    if (text[0] != 'p' || *end || !(percent > 0 && percent < 100))
        return err_set(err, ERR_CONFIG, "%s: statistic must be mean or p1 to p99, not %.40s",
                       source->name, text);
    *quantile = percent / 100;
    return 0;
}

struct query_options {
    const char *preset, *cpu, *memory, *space, *thing;
};

static int query_open(const struct prom_usage *usage, const struct source *source,
                      const struct usage_preset *presets, const struct query_options *names,
                      struct usage_query *out, struct err *err)
{
    const struct usage_preset *preset = preset_find(source, names->preset, presets, err);
    bool high = usage->quantile >= 0;
    if (!preset ||
        prom_query_option(&usage->prom, source, names->cpu, high ? preset->cpu_high : preset->cpu,
                          &out->cpu, err) ||
        prom_query_option(&usage->prom, source, names->memory,
                          high ? preset->memory_high : preset->memory, &out->memory, err))
        return -1;
    const char *space = names->space ? source_option(source, names->space, preset->space) : "";
    const char *thing = source_option(source, names->thing, preset->thing);
    if ((out->cpu || out->memory) && !*thing)
        return err_set(err, ERR_CONFIG, "%s: own queries need %s", source->name, names->thing);
    out->spaced = *space;
    out->by = mem_printf("%s%s%s", space, *space ? "," : "", thing);
    return 0;
}

static int usage_open(const struct source *source, void **ctx, struct err *err)
{
    static const struct query_options pods = {"preset", "cpu_query", "memory_query",
                                              "namespace_label", "pod_label"};
    static const struct query_options hosts = {"hosts", "host_cpu_query", "host_memory_query", NULL,
                                               "node_label"};
    struct prom_usage *usage = mem_alloc(sizeof *usage);
    if (source_check(source, options, err) || statistic(source, &usage->quantile, err) ||
        source_duration(source, "resolution", "2m", &usage->resolution_ms, err) ||
        prom_open(source, &usage->prom, err) ||
        query_open(usage, source, prom_pod_presets, &pods, &usage->pods, err) ||
        query_open(usage, source, prom_host_presets, &hosts, &usage->hosts, err) ||
        prom_latency_open(&usage->prom, source, &usage->latency, err)) {
        usage_close(usage);
        return -1;
    }
    *ctx = usage;
    return 0;
}

/* --- measuring --- */

/* *out: a new array with a value per instance or host, -1 without a sample; NULL when not asked. */
static int measure_one(struct prom_usage *usage, const struct usage_query *group, const char *query,
                       const char *what, const struct app_scope *app, const struct window *window,
                       struct inspection *in, double **out, struct err *err)
{
    size_t n_labels;
    struct usage_sums sums;
    *out = NULL;
    if (!query)
        return 0;
    AUTO_FREE char *owned = NULL;
    free(prom_list(group->by, &n_labels, &owned));
    usage_sums_begin(&sums, app, in, group == &usage->hosts, group->spaced, n_labels);
    const struct prom_ask ask = {.what = what,
                                 .query = query,
                                 .by = group->by,
                                 .window = *window,
                                 .quantile = usage->quantile,
                                 .resolution_ms = usage->resolution_ms,
                                 .row = usage_sums_row,
                                 .ctx = &sums};
    if (prom_ask(&usage->prom, &ask, in, NULL, err)) {
        free(sums.total);
        return -1;
    }
    usage_sums_note(&sums, usage->prom.name, what);
    *out = sums.total;
    return 0;
}

static int measure_pods(struct prom_usage *usage, const struct app_scope *app,
                        const struct window *window, struct inspection *in, struct err *err)
{
    AUTO_FREE double *cpu = NULL;
    AUTO_FREE double *memory = NULL;
    const struct usage_query *q = &usage->pods;
    if (measure_one(usage, q, q->cpu, "CPU of pods", app, window, in, &cpu, err) ||
        measure_one(usage, q, q->memory, "memory of pods", app, window, in, &memory, err))
        return -1;
    usage_set_pods(in, usage->prom.name, cpu, memory);
    return 0;
}

static int measure_hosts(struct prom_usage *usage, const struct app_scope *app,
                         const struct window *window, struct inspection *in, struct err *err)
{
    AUTO_FREE double *cpu = NULL;
    AUTO_FREE double *memory = NULL;
    const struct usage_query *q = &usage->hosts;
    if (measure_one(usage, q, q->cpu, "CPU of hosts", app, window, in, &cpu, err) ||
        measure_one(usage, q, q->memory, "memory of hosts", app, window, in, &memory, err))
        return -1;
    usage_set_hosts(in, cpu, memory);
    return 0;
}

static int usage_measure(void *ctx, const struct app_scope *app, const struct window *window,
                         struct inspection *in, struct err *err)
{
    struct prom_usage *usage = ctx;
    return measure_pods(usage, app, window, in, err) || measure_hosts(usage, app, window, in, err) ||
                   prom_latency_measure(&usage->prom, &usage->latency, window, in, err)
               ? -1
               : 0;
}

/* --- check --- */

struct counter {
    const struct app_scope *app;
    bool spaced;
    int64_t n;
};

static int count_row(void *ctx, const char *const values[], double value, struct err *err)
{
    struct counter *counter = ctx;
    (void)value, (void)err;
    counter->n += usage_in_scope(counter->app, counter->spaced ? values[0] : "");
    return 0;
}

static int count_rows(struct prom_usage *usage, const struct usage_query *group, const char *query,
                      const struct app_scope *app, int64_t *out, struct err *err)
{
    struct counter counter = {app, group->spaced, 0};
    struct inspection scratch = {0};
    int64_t now = clock_wall_ms();
    const struct prom_ask ask = {.what = "usage",
                                 .query = query,
                                 .by = group->by,
                                 .window = {now - 600000, now},
                                 .quantile = usage->quantile,
                                 .resolution_ms = usage->resolution_ms,
                                 .row = count_row,
                                 .ctx = &counter};
    int rc = query ? prom_ask(&usage->prom, &ask, &scratch, NULL, err) : 0;
    inspection_wipe(&scratch);
    *out = counter.n;
    return rc;
}

static int usage_check(void *ctx, const struct app_scope *app, struct source_report *out,
                       struct err *err)
{
    struct prom_usage *usage = ctx;
    const struct usage_query *pods = &usage->pods, *hosts = &usage->hosts;
    int64_t n[4];
    const char *first = pods->cpu      ? pods->cpu
                        : pods->memory ? pods->memory
                        : hosts->cpu   ? hosts->cpu
                        : hosts->memory ? hosts->memory
                                        : usage->latency.query;
    if (prom_check(&usage->prom, first ? first : "", out, err) ||
        count_rows(usage, pods, pods->cpu, app, &n[0], err) ||
        count_rows(usage, pods, pods->memory, app, &n[1], err) ||
        count_rows(usage, hosts, hosts->cpu, app, &n[2], err) ||
        count_rows(usage, hosts, hosts->memory, app, &n[3], err))
        return -1;
    snprintf(out->seen, sizeof out->seen,
             "CPU of %lld pods and %lld hosts, memory of %lld pods and %lld hosts", (long long)n[0],
             (long long)n[2], (long long)n[1], (long long)n[3]);
    if (pods->cpu && !n[0])
        return err_set(err, ERR_NOT_FOUND, "no CPU of pods: see preset, pod_label and matchers");
    return 0;
}

const struct metrics_adapter prometheus_metrics = {
    .name = "prometheus",
    .summary = "CPU and memory of pods and nodes, latency between hosts (cAdvisor and others)",
    .options = options,
    .open = usage_open,
    .measure = usage_measure,
    .check = usage_check,
    .close = usage_close,
};
