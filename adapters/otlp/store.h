/* store.h - what a receiver of spans holds: traces that wait for their other halves, and the traffic
 * of those that are complete. No sockets, no clock of its own: every call says how late it is (wall
 * time), so a test decides.
 *
 * A trace is kept as a whole, and its calls are joined by the rules of every other tracer
 * (adapters/spans). It waits OTLP_WAIT_MS, since the halves of a call come from different senders, each
 * with a delay of its own. Spans that wait are at most OTLP_MAX_WAITING, which with their index are
 * 33 MB (32 MiB). Once half of them are there, traces that nothing is missing of are counted at once;
 * once all are, the oldest ones are, incomplete as they may be, after OTLP_MIN_WAIT_MS; and when that
 * does not help either, senders are told to come again later. */
#ifndef REMAP_OTLP_STORE_H
#define REMAP_OTLP_STORE_H

#include "adapters/adapter.h"
#include "adapters/otlp/decode.h"

#define OTLP_WAIT_MS 60000
#define OTLP_MIN_WAIT_MS 5000 /* an SDK sends every 5 s */
#define OTLP_MAX_WAITING JOINER_WINDOW
/* Spans of one request: with 88 bytes each 6 MB. Collectors send 8,192 unless told otherwise. */
#define OTLP_MAX_SPANS 65536
#define OTLP_MAX_SERVICES 1000
#define OTLP_MAX_NODES 20000 /* pods of services: as many as there may be edges */
#define OTLP_MAX_NAMES 24000

struct otlp_store;

/* Traffic is kept for keep_ms. Nothing before now_ms is known to it. `waiting`: OTLP_MAX_WAITING, or
 * less for tests. */
struct otlp_store *otlp_store_new(size_t waiting, int64_t keep_ms, int64_t now_ms);
void otlp_store_free(struct otlp_store *store);
AUTO_DEFINE(otlp_store)
void otlp_store_keep(struct otlp_store *store, int64_t keep_ms);

struct otlp_result {
    unsigned status;   /* of HTTP: 200, 400, 413, 429 */
    int64_t rejected;  /* spans that were not taken, of a 200 */
    char text[300];    /* why not, or why some not */
    int retry_after_s; /* of a 429 */
};

/* A request: all of its spans are taken, or none (but those without valid ids). */
void otlp_store_post(struct otlp_store *store, const struct otlp_body *body, int64_t now_ms,
                     struct otlp_result *out);
/* A request that was told to come again (429) before it was whole. */
void otlp_store_refuse(struct otlp_store *store);
/* From time to time: counts traces that have waited long enough. */
void otlp_store_tick(struct otlp_store *store, int64_t now_ms);

/* Adds the window's messages to the inspection, those of traces that still wait among them, with
 * notes of what is missing. Time in which nothing was received counts as traffic that is not known. */
int otlp_store_trace(struct otlp_store *store, const struct window *window, bool count_others,
                     int64_t now_ms, struct inspection *in, struct err *err);

struct otlp_totals {
    int64_t since_ms, newest_ms; /* newest span; -1 none */
    int64_t requests, spans;
    int64_t refused;  /* requests answered 429 */
    int64_t rejected; /* spans without valid ids */
    int64_t early;    /* traces that did not wait their time */
    int64_t stale;    /* messages too old for any window */
    size_t services, edges, waiting;
};
struct otlp_totals otlp_store_totals(const struct otlp_store *store);

#endif
