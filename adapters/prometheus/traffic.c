/* traffic.c - messages between workloads from a Prometheus (paper §6.1; interfaces.md 3.2, 3.3):
 * service meshes and service graphs. Rows of all queries become one table of ends and sums. */
#include "adapters/prometheus/prometheus.h"

#include "adapters/spans/idmap.h"
#include "adapters/spans/rows.h"
#include "adapters/usage.h"
#include "model/base/clock.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT, BYTES, REPLY_BYTES, MEAN_MS, N_ROLES };

struct traffic_query {
    const char *name; /* of the preset */
    char *queries[N_ROLES]; /* NULL: not asked */
    char *by;
    bool src_spaced, dst_spaced; /* the first label of an end is its namespace */
    size_t n_src, n_labels;      /* labels of the source, of both */
};

struct prom_traffic {
    struct prom prom;
    struct traffic_query *queries;
    size_t n_queries;
};

static const struct option_spec options[] = {
    PROM_OPTIONS,
    {"preset", "istio-http, istio-tcp, linkerd, hubble, servicegraph, own; several: with commas",
     "istio-http,istio-tcp", false},
    {"count_query", "own query: messages of each pair in the window", NULL, false},
    {"bytes_query", "own query: bytes of their requests (or of both ways)", NULL, false},
    {"reply_bytes_query", "own query: bytes of the answers", NULL, false},
    {"mean_ms_query", "own query: mean response time in ms", NULL, false},
    {"source_namespace_label", "label with the caller's namespace", NULL, false},
    {"source_label", "labels with the caller, first that is not empty", NULL, false},
    {"target_namespace_label", "label with the callee's namespace", NULL, false},
    {"target_label", "labels with the callee, first that is not empty", NULL, false},
    {NULL, NULL, NULL, false}};

static void traffic_close(void *ctx)
{
    struct prom_traffic *traffic = ctx;
    for (size_t i = 0; i < traffic->n_queries; i++) {
        for (int role = 0; role < N_ROLES; role++)
            free(traffic->queries[i].queries[role]);
        free(traffic->queries[i].by);
    }
    free(traffic->queries);
    prom_close(&traffic->prom);
    free(traffic);
}

/* --- configuration --- */

static bool any_own(const struct source *source)
{
    for (size_t i = 0; i < source->n_options; i++) {
        const char *name = source->options[i].name;
        if (strstr(name, "_query") || strstr(name, "_label"))
            return true;
    }
    return false;
}

static size_t count_labels(const char *text)
{
    size_t n;
    AUTO_FREE char *owned = NULL;
    free(prom_list(text, &n, &owned));
    return n;
}

static int add_query(struct prom_traffic *traffic, const struct source *source,
                     const struct traffic_preset *preset, struct err *err)
{
    static const char *const names[N_ROLES] = {"count_query", "bytes_query", "reply_bytes_query",
                                               "mean_ms_query"};
    const char *const fallbacks[N_ROLES] = {preset->count, preset->bytes, preset->reply_bytes,
                                            preset->mean_ms};
    struct traffic_query *query = ARRAY_PUSH(traffic->queries, traffic->n_queries);
    query->name = preset->name;
    for (int role = 0; role < N_ROLES; role++)
        if (prom_query_option(&traffic->prom, source, names[role], fallbacks[role],
                              &query->queries[role], err))
            return -1;
    if (!query->queries[COUNT])
        return err_set(err, ERR_CONFIG, "%s: preset own needs count_query", source->name);
    const char *src_space = source_option(source, "source_namespace_label", preset->src_space);
    const char *src = source_option(source, "source_label", preset->src);
    const char *dst_space = source_option(source, "target_namespace_label", preset->dst_space);
    const char *dst = source_option(source, "target_label", preset->dst);
    query->src_spaced = *src_space;
    query->dst_spaced = *dst_space;
    query->by = mem_printf("%s%s%s,%s%s%s", src_space, *src_space ? "," : "", src, dst_space,
                           *dst_space ? "," : "", dst);
    query->n_src = count_labels(src_space) + count_labels(src);
    query->n_labels = count_labels(query->by);
    if (!*src || !*dst)
        return err_set(err, ERR_CONFIG, "%s: source_label and target_label must not be empty",
                       source->name);
    return 0;
}

static int add_presets(struct prom_traffic *traffic, const struct source *source, struct err *err)
{
    size_t n;
    AUTO_FREE char *owned = NULL;
    AUTO_FREE const char **names =
        prom_list(source_option(source, "preset", "istio-http,istio-tcp"), &n, &owned);
    if (n != 1 && any_own(source))
        return err_set(err, ERR_CONFIG, "%s: own queries and labels go with one preset, not %zu",
                       source->name, n);
    for (size_t i = 0; i < n; i++) {
        const struct traffic_preset *preset = prom_traffic_presets;
        while (preset->name && strcmp(preset->name, names[i]) != 0)
            preset++;
        if (!preset->name)
            return err_set(err, ERR_CONFIG, "%s: preset: there is no %.60s", source->name,
                           names[i]);
        if (add_query(traffic, source, preset, err))
            return -1;
    }
    return 0;
}

static int traffic_open(const struct source *source, void **ctx, struct err *err)
{
    struct prom_traffic *traffic = mem_alloc(sizeof *traffic);
    if (source_check(source, options, err) || prom_open(source, &traffic->prom, err) ||
        add_presets(traffic, source, err)) {
        traffic_close(traffic);
        return -1;
    }
    *ctx = traffic;
    return 0;
}

/* --- rows --- */

struct pair {
    int32_t src, dst; /* nodes of the table */
    double sums[N_ROLES]; /* negative: no row; MEAN_MS: a mean */
};

struct reading {
    const struct traffic_query *query;
    const struct app_scope *app;
    struct inspection *in;
    struct span_table *table;
    struct pair *pairs;
    size_t n_pairs;
    struct idmap index;
    int role;
    double scale; /* from the range that was asked for to the window */
};

enum { END_NONE = -1, END_FAILED = -2, END_FOREIGN = -3 };

/* The node of an end, as the model may know it: "namespace/workload", else the workload alone. */
static int32_t end_node(struct reading *r, bool spaced, const char *const values[], size_t n,
                        bool *known, struct err *err)
{
    const char *space = spaced ? values[0] : "", *name = "";
    for (size_t i = spaced; i < n && !*name; i++)
        if (strcmp(values[i], "unknown") != 0)
            name = values[i];
    *known = false;
    if (!*name)
        return END_NONE;
    AUTO_FREE char *full = mem_printf("%s%s%s", space, *space ? "/" : "", name);
    enum level level;
    const struct identity_end whole = {.service = full};
    const char *text = full;
    *known = identity_resolve(r->in->identity, &whole, &level) >= 0;
    if (!*known && *space && model_service(r->in->model, name) >= 0) {
        text = name;
        *known = true;
    }
    if (!*known && !usage_in_scope(r->app, space))
        return END_FOREIGN;
    int32_t id = span_table_name(r->table, text, strlen(text), false, err);
    if (id < 0)
        return id == -2 ? END_FAILED : END_NONE;
    return span_table_node(r->table, id, -1, HINT_NONE);
}

static struct pair *pair_of(struct reading *r, int32_t src, int32_t dst)
{
    uint32_t at = idmap_get(&r->index, (uint64_t)src, (uint64_t)dst);
    if (at == IDMAP_NONE) {
        at = (uint32_t)r->n_pairs;
        *ARRAY_PUSH(r->pairs, r->n_pairs) =
            (struct pair){.src = src, .dst = dst, .sums = {-1, -1, -1, -1}};
        idmap_add(&r->index, (uint64_t)src, (uint64_t)dst, at);
    }
    return &r->pairs[at];
}

static int take_row(void *ctx, const char *const values[], double value, struct err *err)
{
    struct reading *r = ctx;
    const struct traffic_query *q = r->query;
    bool src_known, dst_known;
    if (value < 0 || (value == 0 && r->role != BYTES && r->role != REPLY_BYTES))
        return 0;
    int32_t src = end_node(r, q->src_spaced, values, q->n_src, &src_known, err);
    int32_t dst = src == END_FAILED ? END_FAILED
                                    : end_node(r, q->dst_spaced, values + q->n_src,
                                               q->n_labels - q->n_src, &dst_known, err);
    if (src == END_FAILED || dst == END_FAILED)
        return -1;
    if (!src_known && !dst_known && r->app->services && r->app->services[0])
        return 0; /* between others */
    if (src < 0 || dst < 0) {
        if (r->role == COUNT && (src_known || dst_known))
            span_table_counts(r->table)->external += llround(value * r->scale);
        return 0;
    }
    double *sum = &pair_of(r, src, dst)->sums[r->role];
    if (r->role == MEAN_MS)
        *sum = value;
    else
        *sum = (*sum < 0 ? 0 : *sum) + value * r->scale;
    return 0;
}

static int ask_role(struct prom_traffic *traffic, struct reading *r, int role,
                    const struct window *window, struct err *err)
{
    static const char *const what[N_ROLES] = {"messages", "bytes of requests", "bytes of answers",
                                              "response times"};
    if (!r->query->queries[role])
        return 0;
    r->role = role;
    AUTO_FREE char *text = mem_printf("%s (%s)", what[role], r->query->name);
    const struct prom_ask ask = {.what = text,
                                 .query = r->query->queries[role],
                                 .by = r->query->by,
                                 .window = *window,
                                 .quantile = -1,
                                 .resolution_ms = 60000,
                                 .row = take_row,
                                 .ctx = r};
    return prom_ask(&traffic->prom, &ask, r->in, NULL, err);
}

static int64_t whole(double value)
{
    return value < (double)MODEL_MAX_NUMBER ? llround(value) : MODEL_MAX_NUMBER;
}

/* The pairs of one preset go into the table; sizes count only where messages do. */
static int add_pairs(struct reading *r, struct err *err)
{
    for (size_t i = 0; i < r->n_pairs; i++) {
        const struct pair *p = &r->pairs[i];
        const double *sums = p->sums;
        int64_t count = sums[COUNT] < 0 ? 0 : whole(sums[COUNT]);
        double bytes = sums[BYTES] < 0 && sums[REPLY_BYTES] < 0
                           ? -1
                           : fmax(sums[BYTES], 0) + fmax(sums[REPLY_BYTES], 0);
        if (count == 0 && bytes <= 0)
            continue;
        const struct span_edge edge = {.src = p->src,
                                       .dst = p->dst,
                                       .count = count,
                                       .bytes = bytes < 0 ? -1 : whole(bytes),
                                       .n_timed = sums[MEAN_MS] < 0 ? 0 : count,
                                       .total_us = sums[MEAN_MS] < 0
                                                       ? 0
                                                       : sums[MEAN_MS] * 1000 * (double)count};
        if (span_table_sums(r->table, &edge, err))
            return -1;
    }
    return 0;
}

static int read_preset(struct prom_traffic *traffic, const struct traffic_query *query,
                       const struct app_scope *app, const struct window *window,
                       struct span_table *table, struct inspection *in, struct err *err)
{
    struct reading r = {.query = query, .app = app, .in = in, .table = table};
    r.scale = (double)(window->to_ms - window->from_ms) / (double)prom_range_ms(window);
    int rc = 0;
    for (int role = 0; role < N_ROLES && rc == 0; role++)
        rc = ask_role(traffic, &r, role, window, err);
    if (rc == 0)
        rc = add_pairs(&r, err);
    free(r.pairs);
    idmap_wipe(&r.index);
    return rc;
}

static int traffic_trace(void *ctx, const struct app_scope *app, const struct window *window,
                         struct inspection *in, struct err *err)
{
    struct prom_traffic *traffic = ctx;
    AUTO(span_table) struct span_table *table = span_table_new();
    assert(in->identity);
    for (size_t i = 0; i < traffic->n_queries; i++)
        if (read_preset(traffic, &traffic->queries[i], app, window, table, in, err))
            return -1;
    AUTO_FREE struct span_end *ends = span_ends_join(table, in->identity);
    return span_rows(table, ends, in, err);
}

/* --- check --- */

struct pair_count {
    const struct traffic_query *query;
    const struct app_scope *app;
    int64_t pairs;
};

static int count_pair(void *ctx, const char *const values[], double value, struct err *err)
{
    struct pair_count *count = ctx;
    const struct traffic_query *q = count->query;
    (void)err;
    count->pairs += value > 0 && (usage_in_scope(count->app, q->src_spaced ? values[0] : "") ||
                                  usage_in_scope(count->app, q->dst_spaced ? values[q->n_src] : ""));
    return 0;
}

static int traffic_check(void *ctx, const struct app_scope *app, struct source_report *out,
                         struct err *err)
{
    struct prom_traffic *traffic = ctx;
    AUTO_BUF struct buf all = BUF_INIT;
    struct inspection scratch = {0};
    int64_t now = clock_wall_ms();
    struct pair_count count = {.app = app};
    for (size_t i = 0; i < traffic->n_queries; i++)
        buf_puts(&all, traffic->queries[i].queries[COUNT]);
    int rc = prom_check(&traffic->prom, all.data ? all.data : "", out, err);
    for (size_t i = 0; i < traffic->n_queries && rc == 0; i++) {
        count.query = &traffic->queries[i];
        const struct prom_ask ask = {.what = "messages",
                                     .query = count.query->queries[COUNT],
                                     .by = count.query->by,
                                     .window = {now - 600000, now},
                                     .quantile = -1,
                                     .resolution_ms = 60000,
                                     .row = count_pair,
                                     .ctx = &count};
        rc = prom_ask(&traffic->prom, &ask, &scratch, NULL, err);
    }
    inspection_wipe(&scratch);
    if (out->newest_ms >= 0)
        snprintf(out->seen, sizeof out->seen, "messages of %lld pairs in ten minutes",
                 (long long)count.pairs);
    return rc;
}

const struct message_adapter prometheus_messages = {
    .name = "prometheus",
    .summary = "messages between workloads (Istio, Linkerd, Hubble, service graphs, own queries)",
    .options = options,
    .open = traffic_open,
    .trace = traffic_trace,
    .check = traffic_check,
    .close = traffic_close,
};
