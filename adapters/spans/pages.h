/* pages.h - reading a window of traces from a server that has no cursor, only a limit (Zipkin,
 * Jaeger; interfaces.md 5.1, 5.3): the window is walked from its old end in slices that are made
 * smaller until fewer traces come than were asked for. A trace belongs to the slice of its root, or to
 * every slice that it has a span in: servers differ. It comes whole each time; the joiner knows what
 * it has seen. */
#ifndef REMAP_SPANS_PAGES_H
#define REMAP_SPANS_PAGES_H

#include "adapters/adapter.h"
#include "adapters/http/http.h"
#include "adapters/spans/reader.h"

/* An answer above this is asked for in smaller slices; one page is in memory at a time. */
#define PAGE_MAX_BYTES ((size_t)8 << 20)
/* Of traces that reach into the window, spans that start so long before it still tell who called. */
#define PAGE_STRADDLE_MS 10000

struct span_pages {
    struct http *http;
    struct span_reader *reader;
    int level;         /* containers open around a trace in the answer: [[span…]…] 1, {"data":[…]} 2 */
    int64_t limit;     /* traces per page */
    int64_t first_ms;  /* length of the first slice */
    struct window window; /* the app's: only spans that start in it count */
    int64_t deadline_ms; /* clock_mono_ms() at which it is given up: ERR_TIMEOUT */
    /* The path that asks for `slice`, both of its ends included. */
    void (*path)(void *ctx, const struct window *slice, int64_t limit, struct buf *out);
    void *ctx;
    /* Looks at the whole page; may be NULL. */
    void (*page)(void *ctx, const char *text);
    int64_t cut; /* out: slices of one ms that hold more traces than the limit */
    int64_t pages; /* out: requests made */
};

/* Traces of a part of the window into the reader. `service`: only spans of this name (table id); -1: all. */
int span_pages_read(struct span_pages *pages, const struct window *part, int32_t service,
                    struct err *err);

/* Joins what is open, then span_rows_finish(). */
int span_pages_finish(struct span_reader *reader, struct span_table *table, bool count_others,
                      struct inspection *in, struct err *err);

/* Rows of an option_spec array, and the reading of `others`. */
#define SPAN_PAGES_OPTIONS                                                                         \
    {"time_limit", "for all requests of one window", "45s", false},                                \
        {"others", "messages between two unknown names: count (as not mapped), or ignore, where "  \
                   "applications share the tracer", "count", false}
int span_pages_others(const struct source *source, bool *count_others, struct err *err);

/* How many traces stand in a piece of an answer; feed piece by piece. */
struct page_scan {
    int level, depth;
    bool in_text, escaped;
    int64_t traces;
};
void page_scan_feed(struct page_scan *scan, const char *data, size_t size);

#endif
