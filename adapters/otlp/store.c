/* store.c - spans as they come, into traffic (store.h). */
#include "adapters/otlp/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/identity.h"
#include "adapters/otlp/flows.h"
#include "adapters/spans/rows.h"

/* One message of a tebibyte, or that takes a day, is a mistake. */
#define MAX_BYTES (INT64_C(1) << 40)
#define MAX_DURATION_US (INT64_C(86400) * 1000000)
#define AHEAD_US (INT64_C(60) * 1000000) /* clocks of senders may be ahead of ours */
#define FORGET_EVERY_MS 60000
/* Names that nobody uses are looked for when so much of a limit is taken. */
#define NEARLY(limit) ((limit) / 4 * 3)

struct otlp_store {
    struct span_table *table;
    struct joiner *joiner;
    struct flows *flows;
    size_t waiting; /* spans at most */
    int64_t keep_ms, now_ms, forgot_ms;
    int64_t life_ms; /* the joiner's time: as now_ms, but never set back */
    struct otlp_totals totals;

    struct span *staged; /* of the request under way */
    size_t n_staged;

    /* The trace whose messages are being counted: */
    int64_t at_ms;
    bool stale;

    /* While traces that wait are read, not closed: */
    const struct window *peek; /* NULL: they are closed */
    struct span_counts peeked;
    int64_t bytes_left;
};

/* --- counting a trace --- */

/* Does the trace being counted belong to the window that is read? */
static bool in_window(const struct otlp_store *store)
{
    return flows_in_window(store->flows, store->at_ms, store->peek);
}

/* What the table counted belongs to the trace or the request before. */
static void harvest(struct otlp_store *store)
{
    struct span_counts *counts = span_table_counts(store->table);
    if (!store->peek) {
        flows_count(store->flows, store->at_ms, counts);
    } else if (in_window(store)) {
        flows_add_counts(&store->peeked, counts);
        store->peeked.messages += counts->messages;
        store->peeked.sized += counts->sized;
    }
    span_table_counts_clear(store->table);
}

static void before_trace(void *ctx, int64_t start_us, int64_t came_ms)
{
    struct otlp_store *store = ctx;
    harvest(store);
    came_ms += store->now_ms - store->life_ms;
    int64_t at = start_us >= 0 && start_us / 1000 < came_ms ? start_us / 1000 : came_ms;
    store->stale = at <= store->now_ms - store->keep_ms;
    store->at_ms = store->stale || at > store->now_ms ? store->now_ms : at;
}

static int on_message(void *ctx, int32_t src, int32_t dst, int64_t bytes, int64_t duration_us,
                      struct err *err)
{
    struct otlp_store *store = ctx;
    if (store->stale) {
        if (!store->peek) {
            span_table_counts(store->table)->late_messages++;
            store->totals.stale++;
        }
        return 0;
    }
    if (!store->peek) {
        flows_message(store->flows, store->at_ms, src, dst, bytes, duration_us,
                        span_table_other(store->table));
        return 0;
    }
    if (!in_window(store))
        return 0;
    const struct span_edge one = {.src = src,
                                  .dst = dst,
                                  .count = 1,
                                  .bytes = bytes,
                                  .n_timed = duration_us >= 0,
                                  .total_us = duration_us >= 0 ? (double)duration_us : 0};
    return flows_add(store->table, one, &store->bytes_left, err);
}

/* --- life --- */

static void join_live(struct otlp_store *store)
{
    static const struct span_limits limits = {OTLP_MAX_NAMES, OTLP_MAX_SERVICES, OTLP_MAX_NODES};
    store->table = span_table_new();
    span_table_limit(store->table, &limits);
    span_table_divert(store->table, on_message, store);
    store->joiner = joiner_new(store->table, store->waiting);
    joiner_live(store->joiner, before_trace, store);
    joiner_tick(store->joiner, store->life_ms);
}

struct otlp_store *otlp_store_new(size_t waiting, int64_t keep_ms, int64_t now_ms)
{
    struct otlp_store *store = mem_alloc(sizeof *store);
    store->waiting = waiting;
    store->keep_ms = keep_ms;
    store->now_ms = store->life_ms = store->at_ms = store->forgot_ms = now_ms;
    store->totals.since_ms = now_ms;
    store->totals.newest_ms = -1;
    store->flows = flows_new(keep_ms);
    join_live(store);
    return store;
}

void otlp_store_free(struct otlp_store *store)
{
    if (!store)
        return;
    joiner_free(store->joiner);
    flows_free(store->flows);
    span_table_free(store->table);
    free(store->staged);
    free(store);
}

void otlp_store_keep(struct otlp_store *store, int64_t keep_ms)
{
    store->keep_ms = keep_ms;
    flows_keep(store->flows, keep_ms);
}

static void mark_node(void *ctx, int32_t *node)
{
    bool *used = ctx;
    used[*node] = true;
}

static void map_node(void *ctx, int32_t *node)
{
    const int32_t *map = ctx;
    *node = map[*node];
}

/* Services and pods come and go; the limits are for those that are there. */
static void forget_names(struct otlp_store *store)
{
    struct span_limits size = span_table_size(store->table);
    if (store->life_ms - store->forgot_ms < FORGET_EVERY_MS ||
        (size.names < NEARLY(OTLP_MAX_NAMES) && size.services < NEARLY(OTLP_MAX_SERVICES) &&
         size.nodes < NEARLY(OTLP_MAX_NODES) &&
         flows_edges(store->flows) < NEARLY(FLOWS_MAX_EDGES)))
        return;
    store->forgot_ms = store->life_ms;
    AUTO_FREE bool *used = mem_array(size.nodes + 1, sizeof *used);
    AUTO_FREE int32_t *map = mem_array(size.nodes + 1, sizeof *map);
    flows_mark(store->flows, used);
    joiner_nodes(store->joiner, mark_node, used);
    span_table_keep(store->table, used, map);
    joiner_nodes(store->joiner, map_node, map);
    flows_renumber(store->flows, map);
}

/* Our own clock may be set back: the store's does not, up to a minute; then it follows. */
static void set_now(struct otlp_store *store, int64_t now_ms)
{
    if (now_ms > store->now_ms)
        store->life_ms += now_ms - store->now_ms;
    if (now_ms > store->now_ms || now_ms < store->now_ms - 60000)
        store->now_ms = now_ms;
    joiner_tick(store->joiner, store->life_ms);
    flows_tick(store->flows, store->now_ms);
}

void otlp_store_tick(struct otlp_store *store, int64_t now_ms)
{
    struct err ignored = ERR_INIT; /* on_message() has none when it counts */
    set_now(store, now_ms);
    joiner_expire(store->joiner, store->life_ms - OTLP_WAIT_MS, SIZE_MAX, &ignored);
    harvest(store);
    forget_names(store);
}

/* --- a request --- */

static int stage_span(void *ctx, const struct span *span, struct err *err)
{
    struct otlp_store *store = ctx;
    if (store->n_staged >= OTLP_MAX_SPANS)
        return err_set(err, ERR_TOO_LARGE, "more than %d spans in one request", OTLP_MAX_SPANS);
    struct span *staged = ARRAY_PUSH(store->staged, store->n_staged);
    *staged = *span;
    if (staged->bytes > MAX_BYTES)
        staged->bytes = -1;
    if (staged->duration_us > MAX_DURATION_US)
        staged->duration_us = -1;
    if (staged->start_us > store->now_ms * 1000 + AHEAD_US)
        staged->start_us = staged->end_us = -1;
    return 0;
}

static void refuse(struct otlp_result *out, unsigned status, const char *text)
{
    out->status = status;
    snprintf(out->text, sizeof out->text, "%s", text);
}

/* Traces that could have waited longer go. */
static bool make_room(struct otlp_store *store)
{
    struct err ignored = ERR_INIT;
    if (joiner_room(store->joiner) >= store->n_staged)
        return true;
    int64_t early = joiner_expire(store->joiner, store->life_ms - OTLP_MIN_WAIT_MS, store->n_staged,
                                  &ignored);
    harvest(store);
    store->totals.early += early;
    return joiner_room(store->joiner) >= store->n_staged;
}

static void take(struct otlp_store *store)
{
    struct err ignored = ERR_INIT; /* neither the table nor on_message() has any here */
    store->at_ms = store->now_ms;
    for (size_t i = 0; i < store->n_staged; i++) {
        const struct span *span = &store->staged[i];
        int64_t start_ms = span->start_us / 1000;
        if (span->start_us >= 0 && start_ms > store->totals.newest_ms)
            store->totals.newest_ms = start_ms;
        joiner_add(store->joiner, span, &ignored);
    }
    harvest(store);
    joiner_settle(store->joiner, joiner_room(store->joiner) < store->waiting / 2, &ignored);
    harvest(store);
    store->totals.spans += (int64_t)store->n_staged;
}

static void unstage(struct otlp_store *store)
{
    store->n_staged = 0;
    free(store->staged);
    store->staged = NULL;
}

void otlp_store_post(struct otlp_store *store, const struct otlp_body *body, int64_t now_ms,
                     struct otlp_result *out)
{
    struct err err = ERR_INIT;
    *out = (struct otlp_result){.status = 200};
    otlp_store_tick(store, now_ms);
    store->totals.requests++;
    if (otlp_decode(body, store->table, stage_span, store, &out->rejected, &err)) {
        refuse(out, err.kind == ERR_TOO_LARGE ? 413 : 400, err.text);
    } else if (!make_room(store)) {
        store->totals.refused++;
        refuse(out, 429, "too many spans wait for the other halves of their calls");
        out->retry_after_s = OTLP_MIN_WAIT_MS / 1000;
    } else {
        take(store);
        store->totals.rejected += out->rejected;
        if (out->rejected)
            snprintf(out->text, sizeof out->text,
                     "spans without valid ids, or with too many attributes");
    }
    unstage(store);
}

void otlp_store_refuse(struct otlp_store *store)
{
    store->totals.requests++;
    store->totals.refused++;
}

/* --- a window --- */

static void note_gap(const struct otlp_store *store, const struct window *window,
                     struct inspection *in)
{
    int64_t since = store->totals.since_ms;
    if (window->from_ms >= since)
        return;
    int64_t end = window->to_ms < since ? window->to_ms : since;
    int64_t missing = end - window->from_ms, there = window->to_ms - end;
    int64_t seen = span_table_counts(store->table)->messages;
    inspection_note(in, "receiver-began", missing / 1000,
                    "spans are received since %lld s only: of %lld s of this window nothing is "
                    "known; that time counts as traffic of unknown ends",
                    (long long)(store->now_ms - since) / 1000, (long long)missing / 1000);
    /* Nothing seen in a part of the window is nothing known of it, not a quiet application. */
    int64_t unknown = seen ? (int64_t)((double)seen * (double)missing / (double)(there > 0 ? there : 1))
                           : 1;
    identity_unmapped(in->identity, NULL, unknown, -1);
}

static void note_total(struct inspection *in, const char *kind, int64_t count, const char *what)
{
    if (count)
        inspection_note(in, kind, count, "%lld %s", (long long)count, what);
}

static void note_totals(const struct otlp_totals *totals, struct inspection *in)
{
    note_total(in, "early", totals->early,
               "traces since the start could not wait for all of their spans: there were too many");
    note_total(in, "refused", totals->refused,
               "requests since the start were told to come again later: there were too many spans");
    note_total(in, "rejected", totals->rejected, "spans since the start had no valid ids");
    note_total(in, "stale", totals->stale,
               "messages since the start were too old for any window; are the senders' clocks right?");
}

int otlp_store_trace(struct otlp_store *store, const struct window *window, bool count_others,
                     int64_t now_ms, struct inspection *in, struct err *err)
{
    otlp_store_tick(store, now_ms);
    store->bytes_left = MODEL_MAX_NUMBER;
    store->peeked = (struct span_counts){0};
    store->peek = window;
    store->at_ms = -1; /* nothing to harvest yet */
    int rc = joiner_peek(store->joiner, err);
    harvest(store);
    store->peek = NULL;
    store->at_ms = store->now_ms;
    if (rc == 0)
        rc = flows_window(store->flows, window, store->table, &store->bytes_left, err);
    struct span_counts *counts = span_table_counts(store->table);
    flows_add_counts(counts, &store->peeked);
    counts->messages += store->peeked.messages;
    counts->sized += store->peeked.sized;
    if (rc == 0)
        note_gap(store, window, in);
    if (rc == 0)
        rc = span_rows_finish(store->table, count_others, in, err);
    note_totals(&store->totals, in);
    span_table_clear(store->table);
    return rc;
}

struct otlp_totals otlp_store_totals(const struct otlp_store *store)
{
    struct otlp_totals totals = store->totals;
    totals.services = span_table_size(store->table).services - 1; /* without SPAN_OTHER */
    totals.edges = flows_edges(store->flows);
    totals.waiting = joiner_waiting(store->joiner);
    return totals;
}
