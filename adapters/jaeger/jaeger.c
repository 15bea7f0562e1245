/* jaeger.c - traces of the window from Jaeger's query service (interfaces.md 5.3). It is asked for
 * one service at a time and gives whole traces, so a trace comes once for each of its services: of
 * each answer only the spans of the service that was asked for are taken. The window is read in
 * parts, so that the halves of a call come soon after each other. */
#include "adapters/jaeger/jaeger.h"

#include "adapters/http/source_http.h"
#include "adapters/spans/pages.h"
#include "model/base/clock.h"
#include "model/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 10             /* of the window; 10^6 spans of a window are 10^5 open ones then */
#define MAX_SERVICES 10000   /* each is asked for PARTS times: nobody waits for more */
#define CHECK_LOOKBACK_MS INT64_C(86400000)

struct jaeger {
    struct http *http;
    char *name;
    struct span_pages_settings pages;
};

static const struct option_spec options[] = {
    SOURCE_HTTP_OPTIONS,
    {"limit", "traces per request; a slice of the window that holds more is asked for in parts",
     "500", false},
    SPAN_PAGES_OPTIONS,
    {NULL, NULL, NULL, false}};

static void jaeger_close(void *ctx)
{
    struct jaeger *jaeger = ctx;
    http_free(jaeger->http);
    free(jaeger->name);
    free(jaeger);
}

static int jaeger_open(const struct source *source, void **ctx, struct err *err)
{
    struct jaeger *jaeger = mem_alloc(sizeof *jaeger);
    if (source_check(source, options, err) ||
        span_pages_settings(source, "500", &jaeger->pages, err) ||
        source_http_open(source, &jaeger->http, err)) {
        jaeger_close(jaeger);
        return -1;
    }
    jaeger->name = mem_strdup(source->name);
    *ctx = jaeger;
    return 0;
}

/* --- services --- */

/* The list of names, {"data": […]} or {"data": null}; NULL on error. */
static json_t *get_services(struct jaeger *jaeger, json_t **list, struct err *err)
{
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    if (http_get(jaeger->http, "/api/services", &answer, err))
        return NULL;
    json_t *tree = json_parse(answer.body.data ? answer.body.data : "", answer.body.size,
                              &json_limits_document, err);
    *list = json_object_get(tree, "data");
    if (tree && *list && (json_is_array(*list) || json_is_null(*list)))
        return tree;
    json_decref(tree);
    if (tree)
        err_set(err, ERR_INPUT, "no list of services: not a Jaeger query service");
    err_prefix(err, "answer to /api/services");
    return NULL;
}

/* --- traces --- */

struct reading {
    struct jaeger *jaeger;
    struct inspection *in;
};

static void put_path(void *ctx, const struct span_walk *walk, const struct window *slice,
                     int64_t limit, struct buf *out)
{
    (void)ctx;
    buf_puts(out, "/api/traces?service=");
    http_escape(out, walk->name);
    buf_printf(out, "&start=%lld&end=%lld&limit=%lld", (long long)slice->from_ms * 1000,
               (long long)slice->to_ms * 1000, (long long)limit);
}

/* Errors stand beside the data of a status 200. Inside a text the quotes would be escaped. */
static void look_for_errors(void *ctx, const struct span_walk *walk, const char *text)
{
    struct reading *reading = ctx;
    const char *errors = strstr(text, "\"errors\":[{");
    const char *message = errors ? strstr(errors, "\"msg\":\"") : NULL;
    if (!errors)
        return;
    message = message ? message + 7 : "";
    inspection_note(reading->in, "partial", 1, "%s: traces of %s may be missing: %.*s",
                    reading->jaeger->name, walk->name, (int)strcspn(message, "\""), message);
}

/* One walk for each service of each part. Names that could be nothing of ours have none. */
static int add_walks(const json_t *services, const struct window *part, struct span_table *table,
                     struct span_walk **walks, size_t *n_walks, struct err *err)
{
    size_t i;
    json_t *service;
    json_array_foreach(services, i, service)
    {
        const char *name = json_string_value(service);
        int32_t id = name ? span_table_name(table, name, strlen(name), true, err) : -1;
        if (id == -2)
            return err_prefix(err, "service %.100s", name);
        if (id >= 0)
            *ARRAY_PUSH(*walks, *n_walks) =
                (struct span_walk){.part = *part, .name = name, .service = id};
    }
    return 0;
}

static int read_parts(struct span_pages *pages, const json_t *services, struct span_table *table,
                      struct err *err)
{
    AUTO_FREE struct span_walk *walks = NULL;
    size_t n_walks = 0;
    const struct window *window = &pages->window;
    struct window part = *window;
    for (; part.from_ms < window->to_ms; part.from_ms = part.to_ms) {
        part.to_ms = part.from_ms + pages->first_ms < window->to_ms
                         ? part.from_ms + pages->first_ms
                         : window->to_ms;
        if (add_walks(services, &part, table, &walks, &n_walks, err))
            return -1;
    }
    return span_pages_read(pages, walks, n_walks, err);
}

static int read_window(struct jaeger *jaeger, const json_t *services, const struct window *window,
                       struct span_reader *reader, struct span_table *table, struct inspection *in,
                       struct err *err)
{
    struct reading reading = {.jaeger = jaeger, .in = in};
    struct span_pages pages = {.http = jaeger->http,
                               .reader = reader,
                               .level = 2,
                               .limit = jaeger->pages.limit,
                               .parallel = jaeger->pages.parallel,
                               .first_ms = (window->to_ms - window->from_ms + PARTS - 1) / PARTS,
                               .window = *window,
                               .deadline_ms = clock_mono_ms() + jaeger->pages.time_limit_ms,
                               .path = put_path,
                               .page = look_for_errors,
                               .ctx = &reading};
    if (read_parts(&pages, services, table, err))
        return -1;
    if (pages.cut)
        inspection_note(in, "partial", pages.cut,
                        "%s: %lld times more than %lld traces in one millisecond: some are missing",
                        jaeger->name, (long long)pages.cut, (long long)jaeger->pages.limit);
    return 0;
}

static int jaeger_trace(void *ctx, const struct app_scope *app, const struct window *window,
                        struct inspection *in, struct err *err)
{
    struct jaeger *jaeger = ctx;
    json_t *list = NULL;
    (void)app; /* names that are not of the model are unmapped traffic */
    AUTO_JSON json_t *services = get_services(jaeger, &list, err);
    if (!services)
        return -1;
    if (json_array_size(list) > MAX_SERVICES)
        return err_set(err, ERR_TOO_LARGE, "more than %d services", MAX_SERVICES);
    AUTO(span_table) struct span_table *table = span_table_new();
    AUTO(span_reader) struct span_reader *reader = span_reader_new(table, JOINER_WINDOW);
    if (read_window(jaeger, list, window, reader, table, in, err))
        return -1;
    return span_pages_finish(reader, table, jaeger->pages.count_others, in, err);
}

/* --- check --- */

/* No API tells it; the page of the user interface does: "gitVersion":"v1.62.0". */
static void read_version(struct jaeger *jaeger, struct source_report *out)
{
    struct err ignored = ERR_INIT;
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    static const char key[] = "\"gitVersion\":\"";
    if (http_get(jaeger->http, "/", &answer, &ignored) || !answer.body.data)
        return;
    const char *at = strstr(answer.body.data, key);
    if (!at)
        return;
    snprintf(out->version, sizeof out->version, "%.60s", at + strlen(key));
    out->version[strcspn(out->version, "\"<")] = '\0';
}

static int read_newest(struct jaeger *jaeger, const char *service, int64_t *newest_ms,
                       struct err *err)
{
    AUTO(span_table) struct span_table *table = span_table_new();
    AUTO(span_reader) struct span_reader *reader = span_reader_new(table, JOINER_WINDOW);
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    AUTO_BUF struct buf path = BUF_INIT;
    int64_t now = clock_wall_ms();
    const struct window day = {now - CHECK_LOOKBACK_MS, now};
    const struct span_walk walk = {.name = service, .service = -1};
    put_path(NULL, &walk, &day, 1, &path);
    if (http_get(jaeger->http, path.data, &answer, err) ||
        span_reader_feed(reader, answer.body.data ? answer.body.data : "", answer.body.size, err) ||
        span_reader_end(reader, err))
        return -1;
    int64_t newest_us = span_table_counts(table)->to_us;
    if (newest_us >= 0 && newest_us / 1000 > *newest_ms)
        *newest_ms = newest_us / 1000;
    return 0;
}

static int jaeger_check(void *ctx, const struct app_scope *app, struct source_report *out,
                        struct err *err)
{
    struct jaeger *jaeger = ctx;
    json_t *list = NULL, *service;
    size_t i;
    (void)app;
    *out = (struct source_report){.newest_ms = -1};
    AUTO_JSON json_t *services = get_services(jaeger, &list, err);
    if (!services)
        return -1;
    out->reachable = true;
    read_version(jaeger, out);
    snprintf(out->seen, sizeof out->seen, "traces of %zu services", json_array_size(list));
    json_array_foreach(list, i, service) if (json_is_string(service) && i < 10 &&
                                             read_newest(jaeger, json_string_value(service),
                                                         &out->newest_ms, err)) return -1;
    if (out->newest_ms < 0)
        return err_set(err, ERR_NOT_FOUND, "no trace of the last 24 hours");
    return 0;
}

const struct message_adapter jaeger_messages = {
    .name = "jaeger",
    .summary = "messages from the traces of a Jaeger query service",
    .options = options,
    .open = jaeger_open,
    .trace = jaeger_trace,
    .check = jaeger_check,
    .close = jaeger_close,
};
