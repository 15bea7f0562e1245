/* flows.c - sums per pair and slice of time (flows.h). */
#include "adapters/otlp/flows.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/spans/idmap.h"
#include "model/base/mem.h"

#define MIN_SLICE_MS 1000
#define NO_SLICE INT64_MIN

struct row {
    int64_t count;
    int64_t bytes; /* of those whose size is known; -1: of none */
    int64_t n_timed;
    double total_us;
};

struct slice {
    int64_t number; /* time / length; NO_SLICE: empty */
    struct row *rows; /* by pair */
    size_t n_rows;
    struct span_counts counts;
};

struct pair {
    int32_t src, dst;
};

struct flows {
    int64_t keep_ms, length_ms; /* of a slice */
    struct slice slices[FLOWS_SLICES];
    size_t n_rows; /* of all slices */
    struct pair *pairs;
    size_t n_pairs;
    struct idmap index; /* src, dst → pair */
};

static int64_t wanted_length(int64_t keep_ms)
{
    int64_t length = (keep_ms + FLOWS_SLICES - 2) / (FLOWS_SLICES - 1);
    return length < MIN_SLICE_MS ? MIN_SLICE_MS : length;
}

struct flows *flows_new(int64_t keep_ms)
{
    struct flows *flows = mem_alloc(sizeof *flows);
    flows->keep_ms = keep_ms;
    flows->length_ms = wanted_length(keep_ms);
    for (size_t i = 0; i < FLOWS_SLICES; i++)
        flows->slices[i].number = NO_SLICE;
    return flows;
}

void flows_free(struct flows *flows)
{
    if (!flows)
        return;
    for (size_t i = 0; i < FLOWS_SLICES; i++)
        free(flows->slices[i].rows);
    free(flows->pairs);
    idmap_wipe(&flows->index);
    free(flows);
}

/* --- slices --- */

static int64_t capped(int64_t a, int64_t b)
{
    return a > MODEL_MAX_NUMBER - b ? MODEL_MAX_NUMBER : a + b;
}

static void add_row(struct row *to, const struct row *more)
{
    if (!to->count)
        to->bytes = -1;
    to->count = capped(to->count, more->count);
    if (more->count && more->bytes >= 0)
        to->bytes = capped(to->bytes < 0 ? 0 : to->bytes, more->bytes);
    to->n_timed += more->n_timed;
    to->total_us += more->total_us;
}

void flows_add_counts(struct span_counts *to, const struct span_counts *more)
{
    to->spans += more->spans;
    to->traces += more->traces;
    to->duplicates += more->duplicates;
    to->late += more->late;
    to->late_messages += more->late_messages;
    to->external += more->external;
    to->no_caller += more->no_caller;
    to->no_callee += more->no_callee;
    to->no_broker += more->no_broker;
}

static void slice_clear(struct flows *flows, struct slice *slice)
{
    flows->n_rows -= slice->n_rows;
    free(slice->rows);
    *slice = (struct slice){.number = NO_SLICE};
}

/* Floor, so that numbers halve rightly. */
static int64_t number_of(const struct flows *flows, int64_t at_ms)
{
    return at_ms < 0 ? -1 : at_ms / flows->length_ms;
}

static struct slice *slice_at(struct flows *flows, int64_t at_ms)
{
    int64_t number = number_of(flows, at_ms);
    struct slice *slice = &flows->slices[(uint64_t)number % FLOWS_SLICES];
    if (slice->number != number) { /* what was there is too old */
        slice_clear(flows, slice);
        slice->number = number;
    }
    return slice;
}

/* Room for the row of this pair. */
static struct row *slice_row(struct flows *flows, struct slice *slice, size_t pair)
{
    if (pair >= slice->n_rows) {
        size_t n = pair + 1 + pair / 4;
        slice->rows = mem_resize(slice->rows, n, sizeof *slice->rows);
        memset(slice->rows + slice->n_rows, 0, (n - slice->n_rows) * sizeof *slice->rows);
        flows->n_rows += n - slice->n_rows;
        slice->n_rows = n;
    }
    return &slice->rows[pair];
}

/* Slices of another length: each old one goes into the new one that holds its beginning. */
static void stretch(struct flows *flows, int64_t length_ms)
{
    struct slice old[FLOWS_SLICES];
    int64_t old_ms = flows->length_ms;
    memcpy(old, flows->slices, sizeof old);
    for (size_t i = 0; i < FLOWS_SLICES; i++)
        flows->slices[i] = (struct slice){.number = NO_SLICE};
    flows->n_rows = 0;
    flows->length_ms = length_ms;
    for (size_t i = 0; i < FLOWS_SLICES; i++) {
        if (old[i].number == NO_SLICE)
            continue;
        struct slice *to = slice_at(flows, old[i].number * old_ms);
        for (size_t r = 0; r < old[i].n_rows; r++)
            if (old[i].rows[r].count)
                add_row(slice_row(flows, to, r), &old[i].rows[r]);
        flows_add_counts(&to->counts, &old[i].counts);
        free(old[i].rows);
    }
}

void flows_keep(struct flows *flows, int64_t keep_ms)
{
    flows->keep_ms = keep_ms;
    /* Never shorter: what was added up cannot be told apart again. */
    if (wanted_length(keep_ms) > flows->length_ms)
        stretch(flows, wanted_length(keep_ms));
}

void flows_tick(struct flows *flows, int64_t now_ms)
{
    int64_t newest = number_of(flows, now_ms);
    int64_t oldest = number_of(flows, now_ms - flows->keep_ms);
    for (size_t i = 0; i < FLOWS_SLICES; i++) {
        struct slice *slice = &flows->slices[i];
        if (slice->number != NO_SLICE && (slice->number < oldest || slice->number > newest))
            slice_clear(flows, slice);
    }
}

/* --- messages --- */

static size_t pair_of(struct flows *flows, int32_t src, int32_t dst, int32_t other)
{
    uint64_t key = (uint64_t)(uint32_t)src << 32 | (uint32_t)dst;
    uint32_t at = idmap_get(&flows->index, 0, key);
    if (at != IDMAP_NONE)
        return at;
    bool is_other = src == other && dst == other;
    if (!is_other && flows->n_pairs >= FLOWS_MAX_EDGES)
        return pair_of(flows, other, other, other);
    *ARRAY_PUSH(flows->pairs, flows->n_pairs) = (struct pair){src, dst};
    idmap_add(&flows->index, 0, key, (uint32_t)flows->n_pairs - 1);
    return flows->n_pairs - 1;
}

void flows_message(struct flows *flows, int64_t at_ms, int32_t src, int32_t dst, int64_t bytes,
                     int64_t duration_us, int32_t other)
{
    const struct row one = {.count = 1,
                            .bytes = bytes,
                            .n_timed = duration_us >= 0,
                            .total_us = duration_us >= 0 ? (double)duration_us : 0};
    size_t pair = pair_of(flows, src, dst, other);
    add_row(slice_row(flows, slice_at(flows, at_ms), pair), &one);
    if (flows->n_rows > FLOWS_MAX_ROWS)
        stretch(flows, 2 * flows->length_ms);
}

struct span_counts *flows_counts(struct flows *flows, int64_t at_ms)
{
    return &slice_at(flows, at_ms)->counts;
}

/* --- reading --- */

static bool slice_in_window(const struct flows *flows, int64_t number, const struct window *window)
{
    int64_t begin = number * flows->length_ms;
    return begin >= window->from_ms && begin < window->to_ms;
}

bool flows_in_window(const struct flows *flows, int64_t at_ms, const struct window *window)
{
    return slice_in_window(flows, number_of(flows, at_ms), window);
}

int flows_add(struct span_table *table, struct span_edge sums, int64_t *left, struct err *err)
{
    if (sums.bytes > *left)
        sums.bytes = -1;
    else if (sums.bytes > 0)
        *left -= sums.bytes;
    return span_table_sums(table, &sums, err);
}

int flows_window(const struct flows *flows, const struct window *window,
                   struct span_table *table, int64_t *left, struct err *err)
{
    for (size_t i = 0; i < FLOWS_SLICES; i++) {
        const struct slice *slice = &flows->slices[i];
        if (slice->number == NO_SLICE || !slice_in_window(flows, slice->number, window))
            continue;
        flows_add_counts(span_table_counts(table), &slice->counts);
        for (size_t r = 0; r < slice->n_rows && r < flows->n_pairs; r++) {
            const struct row *row = &slice->rows[r];
            const struct span_edge sums = {.src = flows->pairs[r].src,
                                           .dst = flows->pairs[r].dst,
                                           .count = row->count,
                                           .bytes = row->bytes,
                                           .n_timed = row->n_timed,
                                           .total_us = row->total_us};
            if (row->count && flows_add(table, sums, left, err))
                return -1;
        }
    }
    return 0;
}

size_t flows_edges(const struct flows *flows)
{
    return flows->n_pairs;
}

/* --- forgetting --- */

void flows_mark(struct flows *flows, bool *used)
{
    AUTO_FREE bool *alive = mem_array(flows->n_pairs + 1, sizeof *alive);
    AUTO_FREE size_t *to = mem_array(flows->n_pairs + 1, sizeof *to);
    for (size_t i = 0; i < FLOWS_SLICES; i++)
        for (size_t r = 0; r < flows->slices[i].n_rows && r < flows->n_pairs; r++)
            alive[r] = alive[r] || flows->slices[i].rows[r].count;
    size_t n = 0;
    for (size_t p = 0; p < flows->n_pairs; p++) {
        if (!alive[p])
            continue;
        to[p] = n;
        used[flows->pairs[p].src] = used[flows->pairs[p].dst] = true;
        flows->pairs[n++] = flows->pairs[p];
    }
    for (size_t i = 0; i < FLOWS_SLICES; i++) {
        struct slice *slice = &flows->slices[i];
        for (size_t r = 0; r < slice->n_rows; r++) {
            struct row row = slice->rows[r];
            slice->rows[r] = (struct row){.count = 0};
            if (r < flows->n_pairs && alive[r])
                slice->rows[to[r]] = row;
        }
    }
    flows->n_pairs = n;
}

void flows_renumber(struct flows *flows, const int32_t *map)
{
    idmap_clear(&flows->index);
    for (size_t p = 0; p < flows->n_pairs; p++) {
        struct pair *pair = &flows->pairs[p];
        *pair = (struct pair){map[pair->src], map[pair->dst]};
        idmap_add(&flows->index, 0,
                  (uint64_t)(uint32_t)pair->src << 32 | (uint32_t)pair->dst, (uint32_t)p);
    }
}
