/* influxdb.c - asking an InfluxDB 1.x, one statement per request: a statement that fails takes those
 * after it along without a word (interfaces.md 4). */
#include "adapters/influxdb/influxdb.h"

#include "adapters/http/source_http.h"
#include "adapters/usage.h"
#include "model/base/clock.h"
#include "model/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct group { /* pods, or hosts */
    char *cpu, *cpu_other, *memory; /* queries; NULL: not asked */
    double cpu_per_core;
    char *tags; /* owned text of tag_list */
    const char **tag_list;
    size_t n_tags;
    bool spaced, hosts;
};

struct influx {
    struct http *http;
    char *name, *db, *policy;
    struct group pods, hosts;
    char more[32]; /* ", 95"; "" for the mean */
};

static const struct option_spec options[] = {
    SOURCE_HTTP_OPTIONS,
    {"db", "database", "k8s", false},
    {"policy", "retention policy, where it is not the database's default", "", false},
    {"preset", "pods: heapster, heapster-fields, telegraf-docker, telegraf-kubernetes, none",
     "heapster", false},
    {"hosts", "nodes: the same presets", "as preset", false},
    {"statistic", "mean, or a percentile of the window such as p95", "mean", false},
    {"cpu_query", "own query: CPU of each pod", NULL, false},
    {"cpu_unit", "of its values: cores, millicores, nanocores, percent (of one core)", NULL, false},
    {"memory_query", "own query: bytes of each pod", NULL, false},
    {"host_cpu_query", "own query: CPU of each node", NULL, false},
    {"host_cpu_unit", "as cpu_unit, or percent-of-host", NULL, false},
    {"host_memory_query", "own query: bytes of each node", NULL, false},
    {"namespace_tag", "tag with a pod's namespace", NULL, false},
    {"pod_tag", "tags with a pod's name, first that is one", NULL, false},
    {"node_tag", "tags with a node's name, first that is one", NULL, false},
    {NULL, NULL, NULL, false}};

static void group_wipe(struct group *group)
{
    free(group->cpu);
    free(group->cpu_other);
    free(group->memory);
    free(group->tags);
    free(group->tag_list);
}

static void influx_close(void *ctx)
{
    struct influx *influx = ctx;
    http_free(influx->http);
    free(influx->name);
    free(influx->db);
    free(influx->policy);
    group_wipe(&influx->pods);
    group_wipe(&influx->hosts);
    free(influx);
}

/* --- configuration --- */

static int statistic(const struct source *source, char more[32], struct err *err)
{
    const char *text = source_option(source, "statistic", "mean");
    char *end = NULL;
    more[0] = '\0';
    if (!strcmp(text, "mean"))
        return 0;
    double percent = text[0] == 'p' ? strtod(text + 1, &end) : 0;
    if (!end || *end || !(percent > 0 && percent < 100))
        return err_set(err, ERR_CONFIG, "%s: statistic must be mean or p1 to p99, not %.40s",
                       source->name, text);
    snprintf(more, 32, ", %g", percent);
    return 0;
}

static const struct influx_preset *preset_find(const struct source *source, const char *option,
                                               const char *name,
                                               const struct influx_preset *presets, struct err *err)
{
    for (; presets->name; presets++)
        if (!strcmp(presets->name, name))
            return presets;
    err_set(err, ERR_CONFIG, "%s: %s: there is no preset %.60s", source->name, option, name);
    return NULL;
}

/* One statement: a ';' that is not within quotes would begin another. */
static int one_statement(const struct source *source, const char *option, const char *query,
                         struct err *err)
{
    char quote = 0;
    for (const char *at = query; *at; at++) {
        if (*at == '\\' && quote && at[1])
            at++;
        else if (quote)
            quote = *at == quote ? 0 : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else if (*at == ';')
            return err_set(err, ERR_CONFIG, "%s: %s must be one statement", source->name, option);
    }
    if (!strstr(query, "$time"))
        return err_set(err, ERR_CONFIG, "%s: %s must hold $time in its WHERE", source->name,
                       option);
    return 0;
}

static int query_option(const struct source *source, const char *option, const char *fallback,
                        char **out, struct err *err)
{
    const char *query = source_option(source, option, NULL);
    if (query && one_statement(source, option, query, err))
        return -1;
    *out = mem_strdup(query ? query : fallback);
    return 0;
}

static int cpu_unit(const struct source *source, const char *option, double *per_core,
                    struct err *err)
{
    static const struct {
        const char *name;
        double per_core;
    } units[] = {{"cores", 1},     {"millicores", 1e3},     {"nanocores", 1e9},
                 {"percent", 100}, {"percent-of-host", 0}};
    const char *unit = source_option(source, option, NULL);
    for (size_t i = 0; unit && i < ARRAY_LEN(units); i++)
        if (!strcmp(unit, units[i].name)) {
            *per_core = units[i].per_core;
            if (*per_core > 0 || !strncmp(option, "host_", 5))
                return 0;
        }
    return unit ? err_set(err, ERR_CONFIG, "%s: there is no %s %.40s", source->name, option, unit)
                : 0;
}

struct group_options {
    const char *preset, *cpu, *unit, *memory, *space, *thing;
};

static int group_open(const struct source *source, const char *preset_name,
                      const struct influx_preset *presets, const struct group_options *names,
                      struct group *out, struct err *err)
{
    const struct influx_preset *preset =
        preset_find(source, names->preset, preset_name, presets, err);
    if (!preset || query_option(source, names->cpu, preset->cpu, &out->cpu, err) ||
        query_option(source, names->memory, preset->memory, &out->memory, err))
        return -1;
    if (!source_option(source, names->cpu, NULL))
        out->cpu_other = mem_strdup(preset->cpu_other);
    out->cpu_per_core = preset->cpu_per_core;
    if (cpu_unit(source, names->unit, &out->cpu_per_core, err))
        return -1;
    const char *space = names->space ? source_option(source, names->space, preset->space) : "";
    const char *thing = source_option(source, names->thing, preset->thing);
    if ((out->cpu || out->memory) && !*thing)
        return err_set(err, ERR_CONFIG, "%s: own queries need %s", source->name, names->thing);
    out->spaced = *space;
    out->tags = mem_printf("%s%s%s", space, *space ? "," : "", thing);
    char *rest = out->tags;
    for (char *tag; (tag = strsep(&rest, ","));)
        *ARRAY_PUSH(out->tag_list, out->n_tags) = tag;
    return out->n_tags <= INFLUX_MAX_TAGS
               ? 0
               : err_set(err, ERR_CONFIG, "%s: more than %d tags", source->name, INFLUX_MAX_TAGS);
}

static int influx_open(const struct source *source, void **ctx, struct err *err)
{
    static const struct group_options pods = {"preset",       "cpu_query",     "cpu_unit",
                                              "memory_query", "namespace_tag", "pod_tag"};
    static const struct group_options hosts = {"hosts",             "host_cpu_query", "host_cpu_unit",
                                               "host_memory_query", NULL,             "node_tag"};
    const char *preset = source_option(source, "preset", "heapster");
    struct influx *influx = mem_alloc(sizeof *influx);
    influx->hosts.hosts = true;
    if (source_check(source, options, err) || statistic(source, influx->more, err) ||
        group_open(source, preset, influx_pod_presets, &pods, &influx->pods, err) ||
        group_open(source, source_option(source, "hosts", preset), influx_host_presets, &hosts,
                   &influx->hosts, err) ||
        source_http_open(source, &influx->http, err)) {
        influx_close(influx);
        return -1;
    }
    influx->name = mem_strdup(source->name);
    influx->db = mem_strdup(source_option(source, "db", "k8s"));
    influx->policy = mem_strdup(source_option(source, "policy", ""));
    *ctx = influx;
    return 0;
}

/* --- one request --- */

static int on_body(void *ctx, const char *data, size_t size, struct err *err)
{
    return influx_answer_feed(ctx, data, size, err);
}

/* {"error": "…"} with the status: its words instead of the status line with a piece of it. */
static void own_words(const struct http_answer *http, struct err *err)
{
    struct err ignored = ERR_INIT;
    if (http->status < 400 || !http->body.size)
        return;
    AUTO_JSON json_t *tree =
        json_parse(http->body.data, http->body.size, &json_limits_header, &ignored);
    const char *text = json_string_value(json_object_get(tree, "error"));
    if (!text)
        return;
    if (http->status == 400) /* the query itself */
        err->kind = ERR_CONFIG;
    err_set(err, err->kind, "status %ld: %.300s", http->status, text);
}

static int ask_text(struct influx *influx, const char *query, struct influx_answer *answer,
                    struct err *err)
{
    AUTO_BUF struct buf body = BUF_INIT;
    AUTO_HTTP_ANSWER struct http_answer http = HTTP_ANSWER_INIT;
    buf_puts(&body, "epoch=ms&db=");
    http_escape(&body, influx->db);
    if (*influx->policy) {
        buf_puts(&body, "&rp=");
        http_escape(&body, influx->policy);
    }
    buf_puts(&body, "&q=");
    http_escape(&body, query);
    influx_answer_begin(answer);
    int rc = http_query(influx->http, "/query", "application/x-www-form-urlencoded", body.data,
                        body.size, on_body, answer, &http, err);
    if (rc)
        own_words(&http, err);
    else
        rc = influx_answer_end(answer, err);
    influx_answer_wipe(answer);
    return rc;
}

static void put_replaced(struct buf *out, const char *query, const char *word, const char *value)
{
    size_t size = strlen(word);
    for (const char *hit; (hit = strstr(query, word)); query = hit + size) {
        buf_add(out, query, (size_t)(hit - query));
        buf_puts(out, value);
    }
    buf_puts(out, query);
}

static char *expand(const struct influx *influx, const char *query, const struct window *window)
{
    AUTO_BUF struct buf timed = BUF_INIT;
    AUTO_BUF struct buf called = BUF_INIT;
    struct buf out = BUF_INIT;
    AUTO_FREE char *time = mem_printf("time >= %lldms AND time < %lldms",
                                      (long long)window->from_ms, (long long)window->to_ms);
    put_replaced(&timed, query, "$time", time);
    put_replaced(&called, timed.data, "$function", influx->more[0] ? "percentile" : "mean");
    put_replaced(&out, called.data, "$more", influx->more);
    return buf_take(&out);
}

/* The innermost measurement of a query, FROM "name"; caller frees; NULL when it is not so. */
static char *measurement_of(const char *query)
{
    const char *last = NULL;
    for (const char *at = query; (at = strstr(at, "FROM \"")); at += 6)
        last = at + 6;
    return last ? mem_strndup(last, strcspn(last, "\"")) : NULL;
}

/* An empty answer: is there such a measurement at all? */
static int probe(struct influx *influx, const char *what, const char *query, struct inspection *in,
                 struct err *err)
{
    AUTO_FREE char *name = measurement_of(query);
    if (!name)
        return 0;
    struct influx_answer answer = {0};
    AUTO_FREE char *text = mem_printf("SHOW MEASUREMENTS WITH MEASUREMENT = \"%s\"", name);
    if (ask_text(influx, text, &answer, err))
        return -1;
    if (answer.series)
        inspection_note(in, "no-data", 0, "%s: no %s in the window, though there is %s",
                        influx->name, what, name);
    else
        inspection_note(in, "unknown-metric", 1, "%s: no %s: the database has no %s", influx->name,
                        what, name);
    return 0;
}

/* --- measuring --- */

static int ask_once(struct influx *influx, const struct group *group, const char *what,
                    const char *query, const struct app_scope *app, const struct window *window,
                    struct inspection *in, double **out, int64_t *rows, struct err *err)
{
    struct usage_sums sums;
    usage_sums_begin(&sums, app, in, group->hosts, group->spaced, group->n_tags);
    struct influx_answer answer = {
        .tags = group->tag_list, .n_tags = group->n_tags, .row = usage_sums_row, .ctx = &sums};
    AUTO_FREE char *text = expand(influx, query, window);
    if (ask_text(influx, text, &answer, err)) {
        free(sums.total);
        return err_prefix(err, "%s", what);
    }
    if (answer.partial)
        inspection_note(in, "partial", 1, "%s: %s: the server cut its answer (max-row-limit)",
                        influx->name, what);
    if (answer.not_numbers)
        inspection_note(in, "not-a-number", answer.not_numbers,
                        "%s: %s: %lld values that are no numbers are left out", influx->name, what,
                        (long long)answer.not_numbers);
    usage_sums_note(&sums, influx->name, what);
    *rows = answer.rows;
    *out = sums.total;
    return 0;
}

/* *out: a value per instance or host, -1 without a sample; NULL when not asked. */
static int ask(struct influx *influx, const struct group *group, const char *what,
               const char *query, const char *other, const struct app_scope *app,
               const struct window *window, struct inspection *in, double **out, struct err *err)
{
    int64_t rows = 0;
    *out = NULL;
    if (!query)
        return 0;
    if (ask_once(influx, group, what, query, app, window, in, out, &rows, err))
        return -1;
    if (!rows && other) {
        free(steal(*out));
        if (ask_once(influx, group, what, other, app, window, in, out, &rows, err))
            return -1;
    }
    if (!rows && probe(influx, what, query, in, err)) {
        free(steal(*out));
        return -1;
    }
    return 0;
}

static void into_cores(const struct group *group, const struct inspection *in, double *cpu)
{
    size_t n = group->hosts ? in->model->n_hosts : in->model->n_instances;
    for (size_t i = 0; cpu && i < n; i++) {
        if (cpu[i] < 0)
            continue;
        cpu[i] = group->cpu_per_core > 0
                     ? cpu[i] / group->cpu_per_core
                     : cpu[i] / 100 * (double)in->model->hosts[i].cpu_cap_millis / 1000;
    }
}

static int measure_group(struct influx *influx, const struct group *group,
                         const struct app_scope *app, const struct window *window,
                         struct inspection *in, struct err *err)
{
    AUTO_FREE double *cpu = NULL;
    AUTO_FREE double *memory = NULL;
    const char *cpu_text = group->hosts ? "CPU of hosts" : "CPU of pods";
    const char *memory_text = group->hosts ? "memory of hosts" : "memory of pods";
    if (ask(influx, group, cpu_text, group->cpu, group->cpu_other, app, window, in, &cpu, err) ||
        ask(influx, group, memory_text, group->memory, NULL, app, window, in, &memory, err))
        return -1;
    into_cores(group, in, cpu);
    if (group->hosts)
        usage_set_hosts(in, cpu, memory);
    else
        usage_set_pods(in, influx->name, cpu, memory);
    return 0;
}

static int influx_measure(void *ctx, const struct app_scope *app, const struct window *window,
                          struct inspection *in, struct err *err)
{
    struct influx *influx = ctx;
    return measure_group(influx, &influx->pods, app, window, in, err) ||
                   measure_group(influx, &influx->hosts, app, window, in, err)
               ? -1
               : 0;
}

/* --- check --- */

static int read_version(struct influx *influx, struct source_report *out, struct err *err)
{
    AUTO_HTTP_ANSWER struct http_answer http = HTTP_ANSWER_INIT;
    http.wanted = "X-Influxdb-Version:";
    if (http_get(influx->http, "/ping", &http, err))
        return -1;
    out->reachable = true;
    snprintf(out->version, sizeof out->version, "%s", http.header);
    return 0;
}

/* The last point of what the first query reads. */
static int read_newest(struct influx *influx, const char *query, struct source_report *out,
                       struct err *err)
{
    AUTO_FREE char *name = measurement_of(query);
    if (!name)
        return 0;
    struct influx_answer answer = {0};
    AUTO_FREE char *text =
        mem_printf("SELECT * FROM \"%s\" ORDER BY time DESC LIMIT 1", name);
    if (ask_text(influx, text, &answer, err))
        return -1;
    out->newest_ms = answer.newest_ms < 0 ? -1 : (int64_t)answer.newest_ms;
    return out->newest_ms < 0 ? err_set(err, ERR_NOT_FOUND, "%s has no points in %s", name,
                                        influx->db)
                              : 0;
}

struct counter {
    const struct app_scope *app;
    bool spaced;
    int64_t n;
};

static int count_row(void *ctx, const char *const tags[], double value, struct err *err)
{
    struct counter *counter = ctx;
    (void)value, (void)err;
    counter->n += usage_in_scope(counter->app, counter->spaced ? tags[0] : "");
    return 0;
}

static int count(struct influx *influx, const struct group *group, const char *query,
                 const struct app_scope *app, int64_t *out, struct err *err)
{
    struct counter counter = {app, group->spaced, 0};
    struct influx_answer answer = {
        .tags = group->tag_list, .n_tags = group->n_tags, .row = count_row, .ctx = &counter};
    int64_t now = clock_wall_ms();
    const struct window recent = {now - 600000, now};
    AUTO_FREE char *text = query ? expand(influx, query, &recent) : NULL;
    int rc = query ? ask_text(influx, text, &answer, err) : 0;
    *out = counter.n;
    return rc;
}

static int influx_check(void *ctx, const struct app_scope *app, struct source_report *out,
                        struct err *err)
{
    struct influx *influx = ctx;
    const struct group *pods = &influx->pods, *hosts = &influx->hosts;
    int64_t n[3];
    const char *first = pods->cpu ? pods->cpu : pods->memory ? pods->memory : hosts->cpu;
    *out = (struct source_report){.newest_ms = -1};
    if (read_version(influx, out, err) || (first && read_newest(influx, first, out, err)) ||
        count(influx, pods, pods->cpu, app, &n[0], err) ||
        count(influx, pods, pods->memory, app, &n[1], err) ||
        count(influx, hosts, hosts->cpu, app, &n[2], err))
        return -1;
    snprintf(out->seen, sizeof out->seen, "CPU of %lld pods and %lld hosts, memory of %lld pods",
             (long long)n[0], (long long)n[2], (long long)n[1]);
    return 0;
}

const struct metrics_adapter influxdb_metrics = {
    .name = "influxdb",
    .summary = "CPU and memory of pods and nodes (InfluxDB 1.x: Heapster, Telegraf)",
    .options = options,
    .open = influx_open,
    .measure = influx_measure,
    .check = influx_check,
    .close = influx_close,
};
