/* pages.c - windows of traces, slice by slice (pages.h). */
#include "adapters/spans/pages.h"

#include "adapters/http/gather.h"
#include "adapters/http/source_http.h"
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

/* --- slices that were asked for, oldest first --- */

struct slot {
    struct window slice;
    size_t walk;
    struct gathered *page; /* NULL: not asked for yet */
};

struct ahead {
    struct span_pages *pages;
    const struct span_walk *walks;
    size_t n_walks;
    struct gather *gather;
    size_t page_bytes;
    struct slot *slots; /* the first is read next */
    size_t n_slots;
    size_t walk;    /* the next slice is of this one */
    int64_t at_ms;  /* it begins here */
    int64_t length; /* and is so long */
};

static void walk_begin(struct ahead *ahead, size_t walk)
{
    ahead->walk = walk;
    ahead->length = ahead->pages->first_ms > 0 ? ahead->pages->first_ms : 1;
    ahead->at_ms = walk < ahead->n_walks ? ahead->walks[walk].part.from_ms : 0;
}

/* The next slice goes behind the others. */
static void slice_next(struct ahead *ahead)
{
    int64_t from_ms = ahead->at_ms, end_ms = ahead->walks[ahead->walk].part.to_ms;
    int64_t to_ms = end_ms - from_ms < ahead->length ? end_ms : from_ms + ahead->length;
    *ARRAY_PUSH(ahead->slots, ahead->n_slots) =
        (struct slot){.slice = {from_ms, to_ms}, .walk = ahead->walk};
    ahead->at_ms = to_ms;
    if (to_ms >= end_ms)
        walk_begin(ahead, ahead->walk + 1);
}

static void slice_path(const struct ahead *ahead, const struct slot *slot, struct buf *out)
{
    struct span_pages *pages = ahead->pages;
    pages->pages++;
    pages->path(pages->ctx, &ahead->walks[slot->walk], &slot->slice, pages->limit, out);
}

static void slot_ask(struct ahead *ahead, struct slot *slot)
{
    AUTO_BUF struct buf path = BUF_INIT;
    slice_path(ahead, slot, &path);
    slot->page = gather_get(ahead->gather, path.data, ahead->page_bytes);
}

/* As many as may be are asked for; the first always. */
static void ask(struct ahead *ahead)
{
    size_t asked = 0, parallel = (size_t)ahead->pages->parallel;
    while (ahead->n_slots < parallel && ahead->walk < ahead->n_walks)
        slice_next(ahead);
    for (size_t i = 0; i < ahead->n_slots; i++)
        asked += ahead->slots[i].page != NULL;
    for (size_t i = 0; i < ahead->n_slots; i++)
        if (!ahead->slots[i].page && (i == 0 || asked < parallel)) {
            slot_ask(ahead, &ahead->slots[i]);
            asked++;
        }
}

static void slot_drop(struct ahead *ahead)
{
    gathered_free(ahead->slots[0].page);
    memmove(ahead->slots, ahead->slots + 1, --ahead->n_slots * sizeof *ahead->slots);
}

/* Both halves are asked for instead; those that wait behind stay as they are. */
static void slot_split(struct ahead *ahead)
{
    struct slot first = ahead->slots[0];
    int64_t half = (first.slice.to_ms - first.slice.from_ms) / 2;
    gathered_free(first.page);
    (void)ARRAY_PUSH(ahead->slots, ahead->n_slots);
    memmove(ahead->slots + 1, ahead->slots, (ahead->n_slots - 1) * sizeof *ahead->slots);
    ahead->slots[0].page = ahead->slots[1].page = NULL;
    ahead->slots[0].slice.to_ms = ahead->slots[1].slice.from_ms = first.slice.from_ms + half;
    if (first.walk == ahead->walk && half < ahead->length)
        ahead->length = half;
}

static void ahead_wipe(struct ahead *ahead)
{
    while (ahead->n_slots)
        slot_drop(ahead);
    free(ahead->slots);
    gather_free(ahead->gather);
}

/* --- reading --- */

static void range(const struct ahead *ahead, const struct slot *slot)
{
    const struct window *window = &ahead->pages->window;
    const struct span_range range = {.before_us = (window->from_ms - PAGE_STRADDLE_MS) * 1000,
                                     .from_us = window->from_ms * 1000,
                                     .to_us = window->to_ms * 1000,
                                     .service = ahead->walks[slot->walk].service};
    span_reader_range(ahead->pages->reader, &range);
}

static int take_span_bytes(void *ctx, const char *data, size_t size, struct err *err)
{
    return span_reader_feed(ctx, data, size, err);
}

/* A slice that cannot be made smaller: whatever comes is taken, as it comes. */
static int read_unsplit(struct ahead *ahead, const struct slot *slot, struct err *err)
{
    struct span_pages *pages = ahead->pages;
    AUTO_BUF struct buf path = BUF_INIT;
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    slice_path(ahead, slot, &path);
    pages->cut++;
    gather_settle(ahead->gather);
    if (http_stream(pages->http, path.data, take_span_bytes, pages->reader, &answer, err))
        return -1;
    return span_reader_end(pages->reader, err);
}

static int read_page(struct ahead *ahead, const struct slot *slot, const struct buf *body,
                     struct err *err)
{
    struct span_pages *pages = ahead->pages;
    const char *text = body->data ? body->data : "";
    if (pages->page)
        pages->page(pages->ctx, &ahead->walks[slot->walk], text);
    if (span_reader_feed(pages->reader, text, body->size, err))
        return -1;
    return span_reader_end(pages->reader, err);
}

/* Of the length after a page that held this part of what a page may hold. */
static int64_t next_length(int64_t length, double full)
{
    if (full < 1.0 / 8)
        return length * 4;
    return full < 1.0 / 3 ? length * 2 : length;
}

/* The first slice: read, or split. */
static int take(struct ahead *ahead, struct err *err)
{
    struct span_pages *pages = ahead->pages;
    const struct slot slot = ahead->slots[0];
    int64_t length = slot.slice.to_ms - slot.slice.from_ms;
    const struct http_answer *answer;
    struct page_scan scan = {.level = pages->level};
    bool whole = !gather_wait(slot.page, &answer, err);
    if (!whole && (err->kind != ERR_TOO_LARGE || answer->body.size < ahead->page_bytes / 2))
        return -1;
    page_scan_feed(&scan, answer->body.data ? answer->body.data : "", answer->body.size);
    bool cut = !whole || scan.traces >= pages->limit;
    if (cut && length > 1) {
        slot_split(ahead);
        return 0;
    }
    double traces = (double)scan.traces / (double)pages->limit;
    double bytes = (double)answer->body.size / (double)ahead->page_bytes;
    if (slot.walk == ahead->walk)
        ahead->length = next_length(length, traces > bytes ? traces : bytes);
    range(ahead, &slot);
    int rc = cut ? read_unsplit(ahead, &slot, err) : read_page(ahead, &slot, &answer->body, err);
    slot_drop(ahead);
    return rc;
}

static int take_all(struct ahead *ahead, struct err *err)
{
    const struct window *window = &ahead->pages->window;
    for (ask(ahead); ahead->n_slots; ask(ahead)) {
        const struct slot *slot = &ahead->slots[0];
        const char *name = ahead->walks[slot->walk].name;
        if (clock_mono_ms() > ahead->pages->deadline_ms)
            return err_set(err, ERR_TIMEOUT, "%lld of %lld s of traces read within the time limit",
                           (long long)(slot->slice.from_ms - window->from_ms) / 1000,
                           (long long)(window->to_ms - window->from_ms) / 1000);
        if (take(ahead, err))
            return name ? err_prefix(err, "service %.100s", name) : -1;
    }
    return 0;
}

int span_pages_read(struct span_pages *pages, const struct span_walk *walks, size_t n_walks,
                    struct err *err)
{
    struct ahead ahead = {.pages = pages, .walks = walks, .n_walks = n_walks};
    ahead.gather = gather_new(pages->http, (int)pages->parallel, err);
    if (!ahead.gather)
        return -1;
    ahead.page_bytes = PAGES_MAX_BYTES / (size_t)pages->parallel;
    if (ahead.page_bytes > PAGE_MAX_BYTES)
        ahead.page_bytes = PAGE_MAX_BYTES;
    walk_begin(&ahead, 0);
    int rc = take_all(&ahead, err);
    ahead_wipe(&ahead);
    return rc;
}

/* --- settings --- */

int span_pages_settings(const struct source *source, const char *limit,
                        struct span_pages_settings *out, struct err *err)
{
    return source_number(source, "limit", limit, 1, 1000000, &out->limit, err) ||
                   source_number(source, "parallel", "4", 1, 16, &out->parallel, err) ||
                   source_duration(source, "time_limit", "45s", &out->time_limit_ms, err) ||
                   span_pages_others(source, &out->count_others, err)
               ? -1
               : 0;
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
