/* zipkin.c - traces of the window from a Zipkin v2 server, streamed into the joiner (interfaces.md
 * 5.1: no cursor, a limit, whole traces; ends of a window are included). */
#include "adapters/zipkin/zipkin.h"

#include "adapters/http/source_http.h"
#include "adapters/spans/pages.h"
#include "model/base/clock.h"
#include "model/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLICES 64 /* the first slice is so small a part of the window; then they grow */
#define CHECK_LOOKBACK_MS INT64_C(86400000)

struct zipkin {
    struct http *http;
    char *name;
    struct span_pages_settings pages;
};

static const struct option_spec options[] = {
    SOURCE_HTTP_OPTIONS,
    {"limit", "traces per request; a slice of the window that holds more is asked for in parts",
     "1000", false},
    SPAN_PAGES_OPTIONS,
    {NULL, NULL, NULL, false}};

static void zipkin_close(void *ctx)
{
    struct zipkin *zipkin = ctx;
    http_free(zipkin->http);
    free(zipkin->name);
    free(zipkin);
}

static int zipkin_open(const struct source *source, void **ctx, struct err *err)
{
    struct zipkin *zipkin = mem_alloc(sizeof *zipkin);
    if (source_check(source, options, err) ||
        span_pages_settings(source, "1000", &zipkin->pages, err) ||
        source_http_open(source, &zipkin->http, err)) {
        zipkin_close(zipkin);
        return -1;
    }
    zipkin->name = mem_strdup(source->name);
    *ctx = zipkin;
    return 0;
}

static void put_path(void *ctx, const struct span_walk *walk, const struct window *slice,
                     int64_t limit, struct buf *out)
{
    (void)ctx, (void)walk;
    buf_printf(out, "/api/v2/traces?endTs=%lld&lookback=%lld&limit=%lld", (long long)slice->to_ms,
               (long long)(slice->to_ms - slice->from_ms), (long long)limit);
}

static int zipkin_trace(void *ctx, const struct app_scope *app, const struct window *window,
                        struct inspection *in, struct err *err)
{
    struct zipkin *zipkin = ctx;
    (void)app; /* names that are not of the model are unmapped traffic */
    AUTO(span_table) struct span_table *table = span_table_new();
    AUTO(span_reader) struct span_reader *reader = span_reader_new(table, JOINER_WINDOW);
    struct span_pages pages = {.http = zipkin->http,
                               .reader = reader,
                               .level = 1,
                               .limit = zipkin->pages.limit,
                               .parallel = zipkin->pages.parallel,
                               .window = *window,
                               .first_ms = (window->to_ms - window->from_ms) / FIRST_SLICES,
                               .deadline_ms = clock_mono_ms() + zipkin->pages.time_limit_ms,
                               .path = put_path};
    const struct span_walk walk = {.part = *window, .service = -1};
    if (span_pages_read(&pages, &walk, 1, err))
        return -1;
    if (pages.cut)
        inspection_note(in, "partial", pages.cut,
                        "%s: %lld times more than %lld traces in one millisecond: some are missing",
                        zipkin->name, (long long)pages.cut, (long long)zipkin->pages.limit);
    return span_pages_finish(reader, table, zipkin->pages.count_others, in, err);
}

/* --- check --- */

static json_t *get_json(struct zipkin *zipkin, const char *path, struct err *err)
{
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    if (http_get(zipkin->http, path, &answer, err))
        return NULL;
    json_t *tree = json_parse(answer.body.data ? answer.body.data : "", answer.body.size,
                              &json_limits_document, err);
    if (!tree)
        err_prefix(err, "answer to %.*s", (int)strcspn(path, "?"), path);
    return tree;
}

static void read_version(struct zipkin *zipkin, struct source_report *out)
{
    struct err ignored = ERR_INIT;
    AUTO_JSON json_t *info = get_json(zipkin, "/info", &ignored);
    const char *version =
        json_string_value(json_object_get(json_object_get(info, "zipkin"), "version"));
    snprintf(out->version, sizeof out->version, "%.60s", version ? version : "");
}

static int read_newest(struct zipkin *zipkin, struct source_report *out, struct err *err)
{
    AUTO(span_table) struct span_table *table = span_table_new();
    AUTO(span_reader) struct span_reader *reader = span_reader_new(table, JOINER_WINDOW);
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    AUTO_BUF struct buf path = BUF_INIT;
    int64_t now = clock_wall_ms();
    const struct window day = {now - CHECK_LOOKBACK_MS, now};
    put_path(NULL, NULL, &day, 1, &path);
    if (http_get(zipkin->http, path.data, &answer, err) ||
        span_reader_feed(reader, answer.body.data ? answer.body.data : "", answer.body.size, err) ||
        span_reader_end(reader, err))
        return -1;
    int64_t newest_us = span_table_counts(table)->to_us;
    out->newest_ms = newest_us < 0 ? -1 : newest_us / 1000;
    return 0;
}

static int zipkin_check(void *ctx, const struct app_scope *app, struct source_report *out,
                        struct err *err)
{
    struct zipkin *zipkin = ctx;
    (void)app;
    *out = (struct source_report){.newest_ms = -1};
    AUTO_JSON json_t *services = get_json(zipkin, "/api/v2/services", err);
    if (!services)
        return -1;
    if (!json_is_array(services))
        return err_set(err, ERR_INPUT, "/api/v2/services is no list: not a Zipkin v2");
    out->reachable = true;
    read_version(zipkin, out);
    snprintf(out->seen, sizeof out->seen, "traces of %zu services", json_array_size(services));
    if (read_newest(zipkin, out, err))
        return -1;
    if (!json_array_size(services) || out->newest_ms < 0)
        return err_set(err, ERR_NOT_FOUND, "no trace of the last 24 hours");
    return 0;
}

const struct message_adapter zipkin_messages = {
    .name = "zipkin",
    .summary = "messages from the traces of a Zipkin v2 server",
    .options = options,
    .open = zipkin_open,
    .trace = zipkin_trace,
    .check = zipkin_check,
    .close = zipkin_close,
};
