/* joiner.c - the window of open traces (joiner.h). What happens to a closed trace: trace.c. */
#include "adapters/spans/joiner.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/spans/idmap.h"
#include "adapters/spans/trace.h"

#define NOTHING UINT32_MAX

/* Closed traces that are remembered, to know late spans: 2^18 buckets of four 8-byte hashes are
 * 8 MB and some 10^6 traces, about 100 windows of ten-span traces. Older ones count as new. */
#define CLOSED_BUCKETS ((size_t)1 << 18)
#define CLOSED_WAYS 4

struct open_span {
    struct trace_span span;
    uint32_t next; /* of the same trace, or of the free list */
};

struct open_trace {
    uint64_t hi, lo;
    uint32_t first, n_spans;
    uint32_t newer; /* the next to be closed, or of the free list */
};

struct joiner {
    struct span_table *table;
    size_t window;
    struct open_span *spans; /* `window` of them; untouched pages cost nothing */
    uint32_t free_span;
    size_t n_open, n_used_spans; /* used: ever handed out */
    struct open_trace *traces;
    uint32_t free_trace, oldest, newest;
    size_t n_used_traces;
    struct idmap index; /* trace id → open_trace */
    uint64_t (*closed)[CLOSED_WAYS]; /* made when the first trace has to make room */
    struct trace_scratch *scratch;
    struct span_range range;
    bool ranged;
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
    return joiner;
}

void joiner_free(struct joiner *joiner)
{
    if (!joiner)
        return;
    free(joiner->spans);
    free(joiner->traces);
    free(joiner->closed);
    idmap_wipe(&joiner->index);
    trace_scratch_free(joiner->scratch);
    free(joiner);
}

/* --- traces that had to make room --- */

static uint64_t *closed_bucket(const struct joiner *joiner, uint64_t hi, uint64_t lo,
                               uint64_t *hash)
{
    *hash = idmap_hash(&joiner->index, hi, lo) | 1; /* 0: an empty way */
    return joiner->closed[(*hash >> 20) & (CLOSED_BUCKETS - 1)];
}

static void closed_remember(struct joiner *joiner, uint64_t hi, uint64_t lo)
{
    if (!joiner->closed)
        joiner->closed = mem_array(CLOSED_BUCKETS, sizeof *joiner->closed);
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
    joiner->traces[at] = (struct open_trace){hi, lo, NOTHING, 0, NOTHING};
    if (joiner->newest == NOTHING)
        joiner->oldest = at;
    else
        joiner->traces[joiner->newest].newer = at;
    joiner->newest = at;
    idmap_add(&joiner->index, hi, lo, at);
    span_table_counts(joiner->table)->traces++;
    return at;
}

static int close_oldest(struct joiner *joiner, struct err *err)
{
    uint32_t at = joiner->oldest;
    struct open_trace *trace = &joiner->traces[at];
    struct trace_span *spans = trace_scratch_spans(joiner->scratch, trace->n_spans);
    size_t n = 0;
    for (uint32_t s = trace->first, next; s != NOTHING; s = next) {
        spans[n++] = joiner->spans[s].span;
        next = joiner->spans[s].next;
        joiner->spans[s].next = joiner->free_span;
        joiner->free_span = s;
    }
    joiner->n_open -= n;
    idmap_remove(&joiner->index, trace->hi, trace->lo);
    joiner->oldest = trace->newer;
    if (joiner->oldest == NOTHING)
        joiner->newest = NOTHING;
    trace->newer = joiner->free_trace;
    joiner->free_trace = at;
    return trace_join(joiner->scratch, n, joiner->table, err);
}

static int make_room(struct joiner *joiner, struct err *err)
{
    while (joiner->n_open >= joiner->window) {
        const struct open_trace *oldest = &joiner->traces[joiner->oldest];
        closed_remember(joiner, oldest->hi, oldest->lo);
        if (close_oldest(joiner, err))
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
        span_table_nodes(joiner->table, NULL)[span->node].reports = true;
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
        if (close_oldest(joiner, err))
            return -1;
    return 0;
}
