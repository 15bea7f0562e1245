/* client.c - asking a Prometheus (interfaces.md 3): credentials, the window, what an empty answer
 * means. */
#include "adapters/prometheus/prometheus.h"

#include "model/base/clock.h"
#include "model/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECENT_MS 300000 /* `remap check` looks so far back: Prometheus' own look-back */
#define STEPS 4          /* points per resolution in a percentile or a mean of gauges */

int prom_open(const struct source *source, struct prom *out, struct err *err)
{
    memset(out, 0, sizeof *out);
    const char *matchers = source_option(source, "matchers", "");
    if (prom_matchers_check(matchers, err))
        return err_prefix(err, "%s", source->name);
    if (source_http_open(source, &out->http, err))
        return -1;
    out->name = mem_strdup(source->name);
    out->matchers = mem_strdup(matchers);
    return 0;
}

void prom_close(struct prom *prom)
{
    http_free(prom->http);
    free(prom->name);
    free(prom->matchers);
}

int prom_query_option(const struct prom *prom, const struct source *source, const char *name,
                      const char *fallback, char **out, struct err *err)
{
    const char *query = source_option(source, name, fallback);
    if (query && !*query)
        query = NULL;
    if (query && prom->matchers[0] && !prom_uses(query, "matchers"))
        return err_set(err, ERR_CONFIG, "%s: %s must hold $matchers in every selector", prom->name,
                       name);
    *out = mem_strdup(query);
    return 0;
}

int64_t prom_range_ms(const struct window *window)
{
    int64_t ms = window->to_ms - window->from_ms;
    return (ms + 999) / 1000 * 1000 + 500;
}

/* --- one request --- */

static int on_body(void *ctx, const char *data, size_t size, struct err *err)
{
    return prom_answer_feed(ctx, data, size, err);
}

/* Errors come as JSON too: its words instead of the status line with a piece of it. */
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
    if (http->status == 400 || http->status == 422) /* the query itself */
        err->kind = ERR_CONFIG;
    err_set(err, err->kind, "status %ld: %.300s", http->status, text);
}

static int ask_text(struct prom *prom, const char *query, int64_t at_ms, struct prom_answer *answer,
                    struct err *err)
{
    AUTO_BUF struct buf body = BUF_INIT;
    AUTO_HTTP_ANSWER struct http_answer http = HTTP_ANSWER_INIT;
    buf_puts(&body, "query=");
    http_escape(&body, query);
    buf_printf(&body, "&time=%lld.%03d", (long long)(at_ms / 1000), (int)(at_ms % 1000));
    prom_answer_begin(answer);
    int rc = http_query(prom->http, "/api/v1/query", "application/x-www-form-urlencoded", body.data,
                        body.size, on_body, answer, &http, err);
    if (rc)
        own_words(&http, err);
    else
        rc = prom_answer_end(answer, err);
    prom_answer_wipe(answer);
    return rc;
}

static int take_value(void *ctx, const char *const values[], double value, struct err *err)
{
    double *out = ctx;
    (void)values, (void)err;
    *out = value;
    return 0;
}

/* --- queries of an inspection --- */

static int expand(const struct prom *prom, const struct prom_ask *ask, struct buf *out,
                  struct err *err)
{
    char window[32], tenth[32], tenth_s[32], resolution[32], step[32], step_s[32], quantile[32];
    int64_t range_ms = prom_range_ms(&ask->window), step_ms = ask->resolution_ms / STEPS;
    snprintf(window, sizeof window, "%lldms", (long long)range_ms);
    snprintf(tenth, sizeof tenth, "%lldms", (long long)(range_ms / 10));
    snprintf(resolution, sizeof resolution, "%lldms", (long long)ask->resolution_ms);
    snprintf(tenth_s, sizeof tenth_s, "%g", (double)(range_ms / 10) / 1000);
    snprintf(step, sizeof step, "%lldms", (long long)step_ms);
    snprintf(step_s, sizeof step_s, "%g", (double)step_ms / 1000);
    snprintf(quantile, sizeof quantile, "%g", ask->quantile);
    const struct prom_var vars[] = {
        {"window", window},   {"tenth", tenth},       {"tenth_s", tenth_s},
        {"by", ask->by},      {"matchers", prom->matchers}, {"resolution", resolution},
        {"step", step},       {"step_s", step_s},     {"quantile", quantile}};
    size_t n = ARRAY_LEN(vars) - (ask->quantile < 0 ? 1 : 0);
    return prom_expand(ask->query, vars, n, out, err);
}

/* An empty answer: does the server know the metrics at all? */
static int probe(struct prom *prom, const struct prom_ask *ask, struct inspection *in,
                 struct err *err)
{
    AUTO_BUF struct buf names = BUF_INIT;
    prom_metric_names(ask->query, &names);
    if (!names.size)
        return 0;
    double count = 0;
    struct prom_answer answer = {.row = take_value, .ctx = &count};
    AUTO_FREE char *query =
        mem_printf("count(last_over_time({__name__=~\"%s\"%s%s}[%lldms]))", names.data,
                   prom->matchers[0] ? "," : "", prom->matchers,
                   (long long)prom_range_ms(&ask->window));
    if (ask_text(prom, query, ask->window.to_ms, &answer, err))
        return -1;
    if (count > 0)
        inspection_note(in, "no-data", 0, "%s: no %s in the window, though there are %s",
                        prom->name, ask->what, names.data);
    else
        inspection_note(in, "unknown-metric", 1, "%s: no %s: the server has no %s", prom->name,
                        ask->what, names.data);
    return 0;
}

static void note_flaws(const struct prom *prom, const struct prom_ask *ask,
                       const struct prom_answer *answer, struct inspection *in)
{
    if (answer->partial)
        inspection_note(in, "partial", answer->warnings, "%s: %s may be partial%s%s", prom->name,
                        ask->what, answer->warning[0] ? ": " : "", answer->warning);
    if (answer->not_numbers)
        inspection_note(in, "not-a-number", answer->not_numbers,
                        "%s: %s: %lld values that are no numbers are left out", prom->name,
                        ask->what, (long long)answer->not_numbers);
    if (answer->histograms)
        inspection_note(in, "not-a-number", answer->histograms,
                        "%s: %s: %lld histograms are left out: the query must give numbers",
                        prom->name, ask->what, (long long)answer->histograms);
}

int prom_ask(struct prom *prom, const struct prom_ask *ask, struct inspection *in, int64_t *rows,
             struct err *err)
{
    size_t n_labels;
    AUTO_FREE char *owned = NULL;
    AUTO_FREE const char **labels = prom_list(ask->by, &n_labels, &owned);
    AUTO_BUF struct buf query = BUF_INIT;
    if (n_labels > PROM_MAX_LABELS)
        return err_set(err, ERR_CONFIG, "%s: more than %d labels", ask->what, PROM_MAX_LABELS);
    struct prom_answer answer = {
        .labels = labels, .n_labels = n_labels, .row = ask->row, .ctx = ask->ctx};
    if (expand(prom, ask, &query, err) ||
        ask_text(prom, query.data, ask->window.to_ms, &answer, err))
        return err_prefix(err, "%s", ask->what);
    if (rows)
        *rows = answer.rows;
    note_flaws(prom, ask, &answer, in);
    if (!answer.rows && !answer.not_numbers && probe(prom, ask, in, err))
        return err_prefix(err, "%s", ask->what);
    return 0;
}

/* --- check --- */

/* Thanos, Mimir and others may not have it: no version then. */
static int read_version(struct prom *prom, struct source_report *out, struct err *err)
{
    AUTO_HTTP_ANSWER struct http_answer http = HTTP_ANSWER_INIT;
    struct err ignored = ERR_INIT;
    if (http_get(prom->http, "/api/v1/status/buildinfo", &http, err)) {
        if (err->kind != ERR_NOT_FOUND)
            return -1;
        out->reachable = true;
        return 0;
    }
    out->reachable = true;
    AUTO_JSON json_t *tree =
        json_parse(http.body.data ? http.body.data : "", http.body.size, &json_limits_header,
                   &ignored);
    const char *version =
        json_string_value(json_object_get(json_object_get(tree, "data"), "version"));
    snprintf(out->version, sizeof out->version, "%.60s", version ? version : "");
    return 0;
}

int prom_check(struct prom *prom, const char *query, struct source_report *out, struct err *err)
{
    *out = (struct source_report){.newest_ms = -1};
    if (read_version(prom, out, err))
        return -1;
    AUTO_BUF struct buf names = BUF_INIT;
    prom_metric_names(query, &names);
    if (!names.size)
        return 0;
    double newest = -1;
    struct prom_answer answer = {.row = take_value, .ctx = &newest};
    AUTO_FREE char *text =
        mem_printf("max(timestamp({__name__=~\"%s\"%s%s}))", names.data,
                   prom->matchers[0] ? "," : "", prom->matchers);
    if (ask_text(prom, text, clock_wall_ms(), &answer, err))
        return -1;
    if (newest < 0)
        return err_set(err, ERR_NOT_FOUND, "no sample of %s in the last %d minutes%s%s%s",
                       names.data, RECENT_MS / 60000, prom->matchers[0] ? " with {" : "",
                       prom->matchers, prom->matchers[0] ? "}" : "");
    out->newest_ms = (int64_t)(newest * 1000.0);
    return 0;
}
