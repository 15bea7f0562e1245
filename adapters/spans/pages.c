/* pages.c - windows of traces, slice by slice (pages.h). */
#include "adapters/spans/pages.h"

#include "adapters/spans/rows.h"
#include "model/base/clock.h"

#include <stdlib.h>
#include <string.h>

void page_scan_feed(struct page_scan *scan, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char c = data[i];
        if (scan->in_text) {
            if (scan->escaped)
                scan->escaped = false;
            else if (c == '\\')
                scan->escaped = true;
            else if (c == '"')
                scan->in_text = false;
        } else if (c == '"') {
            scan->in_text = true;
        } else if (c == '[' || c == '{') {
            scan->traces += scan->depth++ == scan->level;
        } else if (c == ']' || c == '}') {
            scan->depth--;
        }
    }
}

struct page {
    struct page_scan scan;
    struct buf text;
    int64_t limit;
    bool cut; /* there is or may be more than this */
};

static int take_page(void *ctx, const char *data, size_t size, struct err *err)
{
    struct page *page = ctx;
    page_scan_feed(&page->scan, data, size);
    if (page->text.size + size > PAGE_MAX_BYTES) {
        page->cut = true;
        return err_set(err, ERR_TOO_LARGE, "page above %zu bytes", PAGE_MAX_BYTES);
    }
    buf_add(&page->text, data, size);
    return 0;
}

static int take_span_bytes(void *ctx, const char *data, size_t size, struct err *err)
{
    return span_reader_feed(ctx, data, size, err);
}

static void slice_path(const struct span_pages *pages, const struct window *slice, struct buf *out)
{
    pages->path(pages->ctx, slice, pages->limit, out);
}

/* *cut: the page is not complete; nothing was read then. *traces: how many it held. */
static int read_page(struct span_pages *pages, const struct window *slice, bool *cut,
                     int64_t *traces, struct err *err)
{
    AUTO_BUF struct buf path = BUF_INIT;
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    struct page page = {.scan = {.level = pages->level}, .limit = pages->limit};
    slice_path(pages, slice, &path);
    pages->pages++;
    int rc = http_stream(pages->http, path.data, take_page, &page, &answer, err);
    *traces = page.scan.traces;
    *cut = page.cut || page.scan.traces >= pages->limit;
    if (page.cut)
        rc = 0;
    if (rc == 0 && !*cut && pages->page)
        pages->page(pages->ctx, page.text.data ? page.text.data : "");
    if (rc == 0 && !*cut)
        rc = span_reader_feed(pages->reader, page.text.data ? page.text.data : "", page.text.size,
                              err) ||
                     span_reader_end(pages->reader, err)
                 ? -1
                 : 0;
    buf_wipe(&page.text);
    return rc;
}

/* A slice that cannot be made smaller: whatever comes is taken, as it comes. */
static int read_unsplit(struct span_pages *pages, const struct window *slice, struct err *err)
{
    AUTO_BUF struct buf path = BUF_INIT;
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    slice_path(pages, slice, &path);
    pages->pages++;
    pages->cut++;
    if (http_stream(pages->http, path.data, take_span_bytes, pages->reader, &answer, err))
        return -1;
    return span_reader_end(pages->reader, err);
}

static int64_t next_length(int64_t length, int64_t traces, int64_t limit)
{
    if (traces < limit / 8)
        return length * 4;
    return traces < limit / 3 ? length * 2 : length;
}

int span_pages_read(struct span_pages *pages, const struct window *part, int32_t service,
                    struct err *err)
{
    int64_t length = pages->first_ms > 0 ? pages->first_ms : 1;
    const struct span_range range = {.before_us = (pages->window.from_ms - PAGE_STRADDLE_MS) * 1000,
                                     .from_us = pages->window.from_ms * 1000,
                                     .to_us = pages->window.to_ms * 1000,
                                     .service = service};
    span_reader_range(pages->reader, &range);
    for (int64_t at = part->from_ms; at < part->to_ms;) {
        struct window slice = {at, part->to_ms - at < length ? part->to_ms : at + length};
        bool cut = false;
        int64_t traces = 0;
        if (clock_mono_ms() > pages->deadline_ms)
            return err_set(err, ERR_TIMEOUT, "%lld of %lld s of traces read within the time limit",
                           (long long)(at - part->from_ms) / 1000,
                           (long long)(part->to_ms - part->from_ms) / 1000);
        if (read_page(pages, &slice, &cut, &traces, err))
            return -1;
        if (cut && slice.to_ms - slice.from_ms > 1) {
            length = (slice.to_ms - slice.from_ms) / 2;
            continue;
        }
        if (cut && read_unsplit(pages, &slice, err))
            return -1;
        at = slice.to_ms;
        length = next_length(slice.to_ms - slice.from_ms, traces, pages->limit);
    }
    return 0;
}

int span_pages_others(const struct source *source, bool *count_others, struct err *err)
{
    const char *text = source_option(source, "others", "count");
    *count_others = !strcmp(text, "count");
    if (*count_others || !strcmp(text, "ignore"))
        return 0;
    return err_set(err, ERR_CONFIG, "%s: others must be count or ignore, not %.40s", source->name,
                   text);
}

int span_pages_finish(struct span_reader *reader, struct span_table *table, bool count_others,
                      struct inspection *in, struct err *err)
{
    if (span_reader_finish(reader, err))
        return -1;
    return span_rows_finish(table, count_others, in, err);
}
