/* joiner.c - the window of open traces (joiner.h). What happens to a closed trace: trace.c. */
#include "adapters/spans/joiner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/spans/idmap.h"
#include "adapters/spans/trace.h"

#define NOTHING UINT32_MAX

/* Closed traces that are remembered, to know late spans: 2^18 buckets of four 8-byte hashes are
 * 8 MB and some 10^6 traces, about 100 windows of ten-span traces. Older ones count as new. */
#define CLOSED_BUCKETS ((size_t)1 << 18)
#define LIVE_BUCKETS ((size_t)1 << 16) /* live: 2 MB, 250,000 traces */
#define LEAST_BUCKETS ((size_t)1 << 10) /* live, with a small window */
#define CLOSED_WAYS 4
/* Looking whether a trace is settled costs a sorting of its spans, each time some of them come:
 * larger ones wait. */
#define MAX_SETTLED 512

struct open_span {
    struct trace_span span;
    uint32_t next; /* of the same trace, or of the free list */
};

struct open_trace {
    uint64_t hi, lo;
    int64_t start_us; /* of its first span; -1 none said */
    uint32_t first, n_spans;
    uint32_t newer; /* the next to be closed, or of the free list */
    uint32_t older;
    uint32_t came_s;  /* after the joiner's beginning */
    bool touched;     /* is in that list */
};

struct joiner {
    struct span_table *table;
    size_t window;
    struct open_span *spans; /* `window` of them; untouched pages cost nothing */
    uint32_t free_span;
    size_t n_open, n_open_traces, n_used_spans; /* used: ever handed out */
    struct open_trace *traces;
    uint32_t free_trace, oldest, newest;
    size_t n_used_traces;
    struct idmap index; /* trace id → open_trace */
    uint64_t (*closed)[CLOSED_WAYS]; /* made when the first trace has to make room */
    size_t n_buckets;
    struct trace_scratch *scratch;
    struct span_range range;
    bool ranged, live;
    joiner_before_f *before;
    void *before_ctx;
    int64_t began_ms, now_ms;
    uint32_t *touched; /* traces */
    size_t n_touched;
};

struct joiner *joiner_new(struct span_table *table, size_t window)
{
    struct joiner *joiner = mem_alloc(sizeof *joiner);
    joiner->table = table;
    joiner->window = window;
    joiner->spans = mem_array(window, sizeof *joiner->spans);
    joiner->traces = mem_array(window, sizeof *joiner->traces);
    joiner->free_span = joiner->free_trace = joiner->oldest = joiner->newest = NOTHING;
    joiner->scratch = trace_scratch_new();
    joiner->range = (struct span_range){INT64_MIN, INT64_MIN, INT64_MAX, -1};
    joiner->n_buckets = CLOSED_BUCKETS;
    return joiner;
}

void joiner_free(struct joiner *joiner)
{
    if (!joiner)
        return;
    free(joiner->spans);
    free(joiner->traces);
    free(joiner->closed);
    free(joiner->touched);
    idmap_wipe(&joiner->index);
    trace_scratch_free(joiner->scratch);
    free(joiner);
}

/* --- traces that had to make room --- */

static uint64_t *closed_bucket(const struct joiner *joiner, uint64_t hi, uint64_t lo,
                               uint64_t *hash)
{
    *hash = idmap_hash(&joiner->index, hi, lo) | 1; /* 0: an empty way */
    return joiner->closed[(*hash >> 20) & (joiner->n_buckets - 1)];
}

static void closed_remember(struct joiner *joiner, uint64_t hi, uint64_t lo)
{
    if (!joiner->closed)
        joiner->closed = mem_array(joiner->n_buckets, sizeof *joiner->closed);
    uint64_t hash, *ways = closed_bucket(joiner, hi, lo, &hash);
    memmove(ways + 1, ways, (CLOSED_WAYS - 1) * sizeof *ways);
    ways[0] = hash;
}

static bool closed_knows(const struct joiner *joiner, uint64_t hi, uint64_t lo)
{
    if (!joiner->closed)
        return false;
    uint64_t hash, *ways = closed_bucket(joiner, hi, lo, &hash);
    for (int i = 0; i < CLOSED_WAYS; i++)
        if (ways[i] == hash)
            return true;
    return false;
}

/* --- the window --- */

static uint32_t span_slot(struct joiner *joiner)
{
    joiner->n_open++;
    uint32_t at = joiner->free_span;
    if (at == NOTHING)
        return (uint32_t)joiner->n_used_spans++;
    joiner->free_span = joiner->spans[at].next;
    return at;
}

static uint32_t trace_open(struct joiner *joiner, uint64_t hi, uint64_t lo)
{
    uint32_t at = joiner->free_trace;
    if (at == NOTHING)
        at = (uint32_t)joiner->n_used_traces++;
    else
        joiner->free_trace = joiner->traces[at].newer;
    joiner->traces[at] = (struct open_trace){
        .hi = hi,
        .lo = lo,
        .start_us = -1,
        .first = NOTHING,
        .newer = NOTHING,
        .older = joiner->newest,
        .came_s = (uint32_t)((joiner->now_ms - joiner->began_ms) / 1000)};
    if (joiner->newest == NOTHING)
        joiner->oldest = at;
    else
        joiner->traces[joiner->newest].newer = at;
    joiner->newest = at;
    idmap_add(&joiner->index, hi, lo, at);
    joiner->n_open_traces++;
    span_table_counts(joiner->table)->traces++;
    return at;
}

/* The spans of a trace, where trace_join() wants them. */
static size_t trace_copy(struct joiner *joiner, const struct open_trace *trace)
{
    struct trace_span *spans = trace_scratch_spans(joiner->scratch, trace->n_spans);
    size_t n = 0;
    for (uint32_t s = trace->first; s != NOTHING; s = joiner->spans[s].next)
        spans[n++] = joiner->spans[s].span;
    return n;
}

static int trace_count(struct joiner *joiner, const struct open_trace *trace, size_t n,
                       struct err *err)
{
    if (joiner->before)
        joiner->before(joiner->before_ctx, trace->start_us,
                       joiner->began_ms + (int64_t)trace->came_s * 1000);
    return trace_join(joiner->scratch, n, joiner->table, err);
}

static int trace_close(struct joiner *joiner, uint32_t at, struct err *err)
{
    struct open_trace *trace = &joiner->traces[at];
    size_t n = trace_copy(joiner, trace);
    for (uint32_t s = trace->first, next; s != NOTHING; s = next) {
        next = joiner->spans[s].next;
        joiner->spans[s].next = joiner->free_span;
        joiner->free_span = s;
    }
    joiner->n_open -= n;
    joiner->n_open_traces--;
    idmap_remove(&joiner->index, trace->hi, trace->lo);
    *(trace->older == NOTHING ? &joiner->oldest : &joiner->traces[trace->older].newer) =
        trace->newer;
    *(trace->newer == NOTHING ? &joiner->newest : &joiner->traces[trace->newer].older) =
        trace->older;
    trace->newer = joiner->free_trace;
    trace->touched = false;
    joiner->free_trace = at;
    return trace_count(joiner, trace, n, err);
}

static int make_room(struct joiner *joiner, struct err *err)
{
    while (joiner->n_open >= joiner->window) {
        const struct open_trace *oldest = &joiner->traces[joiner->oldest];
        closed_remember(joiner, oldest->hi, oldest->lo);
        if (trace_close(joiner, joiner->oldest, err))
            return -1;
    }
    return 0;
}

static void count_span(struct span_counts *counts, const struct span *span)
{
    counts->spans++;
    if (span->start_us >= 0 && (counts->from_us < 0 || span->start_us < counts->from_us))
        counts->from_us = span->start_us;
    int64_t end_us = span->end_us > span->start_us ? span->end_us : span->start_us;
    if (end_us > counts->to_us)
        counts->to_us = end_us;
}

void joiner_range(struct joiner *joiner, const struct span_range *range)
{
    joiner->range = *range;
    joiner->ranged = true;
}

static bool in_range(const struct joiner *joiner, const struct span *span)
{
    const struct span_range *range = &joiner->range;
    if (span->start_us >= 0 && (span->start_us < range->before_us || span->start_us >= range->to_us))
        return false;
    if (range->service < 0 || (span->start_us >= 0 && span->start_us < range->from_us))
        return true;
    return span->node >= 0 &&
           span_table_nodes(joiner->table, NULL)[span->node].service == range->service;
}

int joiner_add(struct joiner *joiner, const struct span *span, struct err *err)
{
    struct span_counts *counts = span_table_counts(joiner->table);
    if (!in_range(joiner, span))
        return 0;
    count_span(counts, span);
    if (span->node >= 0)
        span_table_reports(joiner->table, span->node);
    assert(!joiner->live || joiner->n_open < joiner->window);
    if (make_room(joiner, err))
        return -1;
    uint32_t at = idmap_get(&joiner->index, span->trace_hi, span->trace_lo);
    if (at == IDMAP_NONE && closed_knows(joiner, span->trace_hi, span->trace_lo)) {
        if (joiner->ranged) {
            counts->duplicates++;
            return 0;
        }
        counts->late++;
        if (span->kind != SPAN_LOCAL && span->kind != SPAN_CLIENT)
            counts->late_messages++;
        return 0;
    }
    if (at == IDMAP_NONE)
        at = trace_open(joiner, span->trace_hi, span->trace_lo);
    uint32_t slot = span_slot(joiner);
    struct open_trace *trace = &joiner->traces[at];
    if (span->start_us >= 0 && (trace->start_us < 0 || span->start_us < trace->start_us))
        trace->start_us = span->start_us;
    if (joiner->live && !trace->touched) {
        trace->touched = true;
        *ARRAY_PUSH(joiner->touched, joiner->n_touched) = at;
    }
    joiner->spans[slot].span = (struct trace_span){
        .id = span->id,
        .parent = span->parent,
        .duration_us = span->duration_us,
        .bytes = span->bytes,
        .node = span->node,
        .remote = span->remote,
        .kind = span->kind,
        .shared = span->shared,
    };
    joiner->spans[slot].next = trace->first;
    trace->first = slot;
    trace->n_spans++;
    return 0;
}

int joiner_finish(struct joiner *joiner, struct err *err)
{
    while (joiner->oldest != NOTHING)
        if (trace_close(joiner, joiner->oldest, err))
            return -1;
    return 0;
}

/* --- live --- */

void joiner_live(struct joiner *joiner, joiner_before_f *before, void *ctx)
{
    joiner->live = true;
    joiner->before = before;
    joiner->before_ctx = ctx;
    joiner->n_buckets = LIVE_BUCKETS;
    while (joiner->n_buckets > LEAST_BUCKETS && joiner->n_buckets / 2 * CLOSED_WAYS >= joiner->window)
        joiner->n_buckets /= 2;
}

void joiner_tick(struct joiner *joiner, int64_t now_ms)
{
    if (!joiner->began_ms)
        joiner->began_ms = now_ms;
    if (now_ms > joiner->now_ms)
        joiner->now_ms = now_ms;
}

size_t joiner_room(const struct joiner *joiner)
{
    return joiner->window - joiner->n_open;
}

size_t joiner_waiting(const struct joiner *joiner)
{
    return joiner->n_open;
}

static int close_remembered(struct joiner *joiner, uint32_t at, struct err *err)
{
    closed_remember(joiner, joiner->traces[at].hi, joiner->traces[at].lo);
    return trace_close(joiner, at, err);
}

int64_t joiner_expire(struct joiner *joiner, int64_t before_ms, size_t room, struct err *err)
{
    int64_t closed = 0;
    while (joiner->oldest != NOTHING && joiner_room(joiner) < room &&
           joiner->began_ms + (int64_t)joiner->traces[joiner->oldest].came_s * 1000 < before_ms) {
        if (close_remembered(joiner, joiner->oldest, err))
            return -1;
        closed++;
    }
    return closed;
}

int joiner_settle(struct joiner *joiner, bool close, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < joiner->n_touched; i++) {
        struct open_trace *trace = &joiner->traces[joiner->touched[i]];
        if (!trace->touched) /* closed meanwhile */
            continue;
        trace->touched = false;
        if (close && rc == 0 && trace->n_spans <= MAX_SETTLED &&
            trace_settled(joiner->scratch, trace_copy(joiner, trace), joiner->table))
            rc = close_remembered(joiner, joiner->touched[i], err);
    }
    joiner->n_touched = 0;
    return rc;
}

int joiner_peek(struct joiner *joiner, struct err *err)
{
    for (uint32_t at = joiner->oldest; at != NOTHING; at = joiner->traces[at].newer) {
        const struct open_trace *trace = &joiner->traces[at];
        if (trace_count(joiner, trace, trace_copy(joiner, trace), err))
            return -1;
    }
    return 0;
}

void joiner_nodes(struct joiner *joiner, void (*fn)(void *ctx, int32_t *node), void *ctx)
{
    for (uint32_t at = joiner->oldest; at != NOTHING; at = joiner->traces[at].newer)
        for (uint32_t s = joiner->traces[at].first; s != NOTHING; s = joiner->spans[s].next) {
            struct trace_span *span = &joiner->spans[s].span;
            if (span->node >= 0)
                fn(ctx, &span->node);
            if (span->remote >= 0)
                fn(ctx, &span->remote);
        }
}
