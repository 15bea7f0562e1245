/* usage.c - CPU and memory of pods and nodes from a Prometheus (paper §6.1; interfaces.md 3.1), and
 * the latency between hosts. */
#include "adapters/prometheus/prometheus.h"

#include "model/base/clock.h"
#include "monitor/identity.h"

#include <assert.h>
#include <math.h>
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

/* --- one quantity of all pods, or of all hosts --- */

#define NAMED 5 /* names in a note; the rest is a number */

struct sums {
    const struct app_scope *app;
    struct inspection *in;
    bool hosts, spaced;
    size_t n_labels;
    double *total; /* per instance or host; negative: no sample */
    size_t n_total;
    int64_t unmapped;
    char names[NAMED][PROM_LABEL_BYTES];
};

static int find_pod(struct sums *sums, const char *space, const char *name)
{
    AUTO_FREE char *full = mem_printf("%s/%s", space, name);
    int found = *space ? identity_find(sums->in->identity, IDENTITY_INSTANCE, full) : -1;
    if (found >= 0)
        return found;
    /* Not "shop/db-0" for another namespace's db-0: only a thing that is called just so. */
    return *space ? model_instance(sums->in->model, name)
                  : identity_find(sums->in->identity, IDENTITY_INSTANCE, name);
}

static int take_usage(void *ctx, const char *const values[], double value, struct err *err)
{
    struct sums *sums = ctx;
    const char *space = sums->spaced ? values[0] : "", *name = "";
    int found = -1;
    (void)err;
    for (size_t i = sums->spaced; i < sums->n_labels && found < 0; i++) {
        if (!*values[i])
            continue;
        if (!*name)
            name = values[i];
        found = sums->hosts ? identity_find(sums->in->identity, IDENTITY_HOST, values[i])
                            : find_pod(sums, space, values[i]);
    }
    if (found < 0) {
        if (!*name || !prom_in_scope(sums->app, space))
            return 0; /* of nothing we manage */
        if (sums->unmapped < NAMED)
            snprintf(sums->names[sums->unmapped], PROM_LABEL_BYTES, "%s", name);
        sums->unmapped++;
        return 0;
    }
    if (value < 0)
        value = 0;
    sums->total[found] = (sums->total[found] < 0 ? 0 : sums->total[found]) + value;
    return 0;
}

/* Rows of nothing we know: other apps on the same cluster are no flaw, so only with a scope. */
static void note_unmapped(const struct sums *sums, const struct prom_usage *usage, const char *what)
{
    const struct app_scope *app = sums->app;
    AUTO_BUF struct buf names = BUF_INIT;
    if (!sums->unmapped || (!sums->hosts && !(app->namespaces && app->namespaces[0])))
        return;
    for (int64_t i = 0; i < sums->unmapped && i < NAMED; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", sums->names[i]);
    inspection_note(sums->in, "unmapped", sums->unmapped, "%s: %s of %lld unknown %s: %s%s",
                    usage->prom.name, what, (long long)sums->unmapped,
                    sums->hosts ? "hosts" : "pods", names.data,
                    sums->unmapped > NAMED ? ", …" : "");
}

/* *out: a new array with a value per instance or host, -1 without a sample; NULL when not asked. */
static int measure_one(struct prom_usage *usage, const struct usage_query *group, const char *query,
                       const char *what, const struct app_scope *app, const struct window *window,
                       struct inspection *in, double **out, struct err *err)
{
    bool hosts = group == &usage->hosts;
    size_t n = hosts ? in->model->n_hosts : in->model->n_instances;
    struct sums sums = {.app = app, .in = in, .hosts = hosts, .spaced = group->spaced};
    *out = NULL;
    if (!query)
        return 0;
    AUTO_FREE char *owned = NULL;
    free(prom_list(group->by, &sums.n_labels, &owned)); /* only their number */
    sums.total = mem_array(n + 1, sizeof *sums.total);
    for (size_t i = 0; i < n; i++)
        sums.total[i] = -1;
    const struct prom_ask ask = {.what = what,
                                 .query = query,
                                 .by = group->by,
                                 .window = *window,
                                 .quantile = usage->quantile,
                                 .resolution_ms = usage->resolution_ms,
                                 .row = take_usage,
                                 .ctx = &sums};
    int64_t rows;
    if (prom_ask(&usage->prom, &ask, in, &rows, err)) {
        free(sums.total);
        return -1;
    }
    note_unmapped(&sums, usage, what);
    *out = sums.total;
    return 0;
}

static int64_t rounded(double value, double unit)
{
    double scaled = ceil(value * unit - 1e-6);
    return scaled < (double)MODEL_MAX_NUMBER ? (int64_t)scaled : MODEL_MAX_NUMBER;
}

static void note_missing(struct inspection *in, const struct prom_usage *usage, const char *what,
                         const double *values)
{
    AUTO_BUF struct buf names = BUF_INIT;
    int64_t missing = 0;
    for (size_t i = 0; values && i < in->model->n_instances; i++)
        if (values[i] < 0 && missing++ < NAMED)
            buf_printf(&names, "%s%s", missing > 1 ? ", " : "", in->model->instances[i].name);
    if (missing)
        inspection_note(in, "no-sample", missing, "%s: no %s of %lld instances: %s%s",
                        usage->prom.name, what, (long long)missing, names.data,
                        missing > NAMED ? ", …" : "");
}

static int measure_pods(struct prom_usage *usage, const struct app_scope *app,
                        const struct window *window, struct inspection *in, struct err *err)
{
    static const char cpu_text[] = "CPU of pods", memory_text[] = "memory of pods";
    AUTO_FREE double *cpu = NULL;
    AUTO_FREE double *memory = NULL;
    const struct usage_query *q = &usage->pods;
    if (measure_one(usage, q, q->cpu, cpu_text, app, window, in, &cpu, err) ||
        measure_one(usage, q, q->memory, memory_text, app, window, in, &memory, err))
        return -1;
    for (size_t i = 0; i < in->model->n_instances; i++) {
        if (cpu && cpu[i] >= 0)
            in->model->instances[i].cpu_used_millis = rounded(cpu[i], 1000);
        if (memory && memory[i] >= 0)
            in->model->instances[i].mem_used_bytes = rounded(memory[i], 1);
    }
    note_missing(in, usage, cpu_text, cpu);
    note_missing(in, usage, memory_text, memory);
    return 0;
}

/* A host's own use is what the node uses less what our instances on it use. */
static int measure_hosts(struct prom_usage *usage, const struct app_scope *app,
                         const struct window *window, struct inspection *in, struct err *err)
{
    AUTO_FREE double *cpu = NULL;
    AUTO_FREE double *memory = NULL;
    const struct usage_query *q = &usage->hosts;
    struct model *model = in->model;
    if (measure_one(usage, q, q->cpu, "CPU of hosts", app, window, in, &cpu, err) ||
        measure_one(usage, q, q->memory, "memory of hosts", app, window, in, &memory, err))
        return -1;
    AUTO_FREE struct load *own = model_host_loads(model);
    for (size_t i = 0; i < model->n_hosts; i++) {
        int64_t cpu_rest = cpu ? rounded(cpu[i], 1000) - own[i].cpu_millis : 0;
        int64_t memory_rest = memory ? rounded(memory[i], 1) - own[i].mem_bytes : 0;
        if (cpu && cpu[i] >= 0)
            model->hosts[i].cpu_used_millis = cpu_rest > 0 ? cpu_rest : 0;
        if (memory && memory[i] >= 0)
            model->hosts[i].mem_used_bytes = memory_rest > 0 ? memory_rest : 0;
    }
    return 0;
}

static int usage_measure(void *ctx, const struct app_scope *app, const struct window *window,
                         struct inspection *in, struct err *err)
{
    struct prom_usage *usage = ctx;
    assert(in->identity);
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
    counter->n += prom_in_scope(counter->app, counter->spaced ? values[0] : "");
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
