/* pages.h - reading a window of traces from a server that has no cursor, only a limit (Zipkin,
 * Jaeger; interfaces.md 5.1, 5.3): the window is walked from its old end in slices that are made
 * smaller until fewer traces come than were asked for. Some slices are asked for ahead, so that the
 * server works while we read; they are read in the order of time, and which are asked for depends on
 * what came before and never on the clock: the same traces make the same requests. A trace belongs to the slice of its root, or to
 * every slice that it has a span in: servers differ. It comes whole each time; the joiner knows what
 * it has seen. */
#ifndef REMAP_SPANS_PAGES_H
#define REMAP_SPANS_PAGES_H

#include "adapters/adapter.h"
#include "adapters/http/http.h"
#include "adapters/spans/reader.h"

/* Pages that are in memory at the same time, each of them whole: one above its share is asked for in
 * smaller slices. With the joiner's 31 MB and the rest of a monitor below its 64 MB. */
#define PAGES_MAX_BYTES ((size_t)16 << 20)
#define PAGE_MAX_BYTES (PAGES_MAX_BYTES / 2) /* and of one */
/* Of traces that reach into the window, spans that start so long before it still tell who called. */
#define PAGE_STRADDLE_MS 10000

struct span_walk { /* through a part of the window */
    struct window part;
    const char *name; /* of the service whose spans alone are taken; NULL: all */
    int32_t service;  /* its table id; -1 */
};

struct span_pages {
    struct http *http;
    struct span_reader *reader;
    int level;         /* containers open around a trace in the answer: [[span…]…] 1, {"data":[…]} 2 */
    int64_t limit;     /* traces per page */
    int64_t parallel;  /* requests at the same time, 1 or more */
    int64_t first_ms;  /* length of the first slice of each walk */
    struct window window; /* the app's: only spans that start in it count */
    int64_t deadline_ms; /* clock_mono_ms() at which it is given up: ERR_TIMEOUT */
    /* The path that asks for `slice`, both of its ends included. */
    void (*path)(void *ctx, const struct span_walk *walk, const struct window *slice,
                 int64_t limit, struct buf *out);
    void *ctx;
    /* Looks at the whole page; may be NULL. */
    void (*page)(void *ctx, const struct span_walk *walk, const char *text);
    int64_t cut; /* out: slices of one ms that hold more traces than the limit */
    int64_t pages; /* out: requests made */
};

/* Traces of all walks, one after the other, into the reader. */
int span_pages_read(struct span_pages *pages, const struct span_walk *walks, size_t n_walks,
                    struct err *err);

/* Joins what is open, then span_rows_finish(). */
int span_pages_finish(struct span_reader *reader, struct span_table *table, bool count_others,
                      struct inspection *in, struct err *err);

/* Rows of an option_spec array, and the reading of `others`. */
#define SPAN_PAGES_OPTIONS                                                                         \
    {"time_limit", "for all requests of one window", "45s", false},                                \
        {"parallel", "requests at the same time, 1 to 16", "4", false},                            \
        {"others", "messages between two unknown names: count (as not mapped), or ignore, where "  \
                   "applications share the tracer", "count", false}
struct span_pages_settings {
    int64_t limit, time_limit_ms, parallel;
    bool count_others;
};
/* Also of `limit`, whose default is the server's own. */
int span_pages_settings(const struct source *source, const char *limit,
                        struct span_pages_settings *out, struct err *err);
int span_pages_others(const struct source *source, bool *count_others, struct err *err);

/* How many traces stand in a piece of an answer; feed piece by piece. */
struct page_scan {
    int level, depth;
    bool in_text, escaped;
    int64_t traces;
};
void page_scan_feed(struct page_scan *scan, const char *data, size_t size);

#endif
