/* flows.c - sums per pair and slice of time, in layers (flows.h). A layer is a ring of slices of equal
 * length; every message goes to all layers that reach back to it. */
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

struct layer {
    int64_t keep_ms, length_ms; /* of a slice */
    int64_t since_ms;           /* nothing before is in it */
    size_t max_rows;
    struct slice slices[FLOWS_SLICES];
    size_t n_rows; /* of all slices */
    struct pair *pairs;
    size_t n_pairs;
    struct idmap index; /* src, dst → pair */
};

/* Spans of the finer layers: 2 min, 17 min, 2.3 h, 18 h and 6 days. */
#define FINEST_MS INT64_C(128000)
#define FINER 8
#define MAX_LAYERS 6

struct flows {
    struct layer *layers[MAX_LAYERS]; /* the first reaches back furthest */
    size_t n;
    int64_t now_ms;
};

static int64_t wanted_length(int64_t keep_ms)
{
    int64_t length = (keep_ms + FLOWS_SLICES - 2) / (FLOWS_SLICES - 1);
    return length < MIN_SLICE_MS ? MIN_SLICE_MS : length;
}

static struct layer *layer_new(int64_t keep_ms, int64_t since_ms)
{
    struct layer *layer = mem_alloc(sizeof *layer);
    layer->keep_ms = keep_ms;
    layer->since_ms = since_ms;
    layer->length_ms = wanted_length(keep_ms);
    for (size_t i = 0; i < FLOWS_SLICES; i++)
        layer->slices[i].number = NO_SLICE;
    return layer;
}

static void layer_free(struct layer *layer)
{
    if (!layer)
        return;
    for (size_t i = 0; i < FLOWS_SLICES; i++)
        free(layer->slices[i].rows);
    free(layer->pairs);
    idmap_wipe(&layer->index);
    free(layer);
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

static void slice_clear(struct layer *layer, struct slice *slice)
{
    layer->n_rows -= slice->n_rows;
    free(slice->rows);
    *slice = (struct slice){.number = NO_SLICE};
}

/* Floor, so that numbers halve rightly. */
static int64_t number_of(const struct layer *layer, int64_t at_ms)
{
    return at_ms < 0 ? -1 : at_ms / layer->length_ms;
}

static struct slice *slice_at(struct layer *layer, int64_t at_ms)
{
    int64_t number = number_of(layer, at_ms);
    struct slice *slice = &layer->slices[(uint64_t)number % FLOWS_SLICES];
    if (slice->number != number) { /* what was there is too old */
        slice_clear(layer, slice);
        slice->number = number;
    }
    return slice;
}

/* Room for the row of this pair. */
static struct row *slice_row(struct layer *layer, struct slice *slice, size_t pair)
{
    if (pair >= slice->n_rows) {
        size_t n = pair + 1 + pair / 4;
        slice->rows = mem_resize(slice->rows, n, sizeof *slice->rows);
        memset(slice->rows + slice->n_rows, 0, (n - slice->n_rows) * sizeof *slice->rows);
        layer->n_rows += n - slice->n_rows;
        slice->n_rows = n;
    }
    return &slice->rows[pair];
}

/* Slices of another length: each old one goes into the new one that holds its beginning. */
static void stretch(struct layer *layer, int64_t length_ms)
{
    struct slice old[FLOWS_SLICES];
    int64_t old_ms = layer->length_ms;
    memcpy(old, layer->slices, sizeof old);
    for (size_t i = 0; i < FLOWS_SLICES; i++)
        layer->slices[i] = (struct slice){.number = NO_SLICE};
    layer->n_rows = 0;
    layer->length_ms = length_ms;
    for (size_t i = 0; i < FLOWS_SLICES; i++) {
        if (old[i].number == NO_SLICE)
            continue;
        struct slice *to = slice_at(layer, old[i].number * old_ms);
        for (size_t r = 0; r < old[i].n_rows; r++)
            if (old[i].rows[r].count)
                add_row(slice_row(layer, to, r), &old[i].rows[r]);
        flows_add_counts(&to->counts, &old[i].counts);
        free(old[i].rows);
    }
}

static void layer_keep(struct layer *layer, int64_t keep_ms)
{
    layer->keep_ms = keep_ms;
    /* Never shorter: what was added up cannot be told apart again. */
    if (wanted_length(keep_ms) > layer->length_ms)
        stretch(layer, wanted_length(keep_ms));
}

static void layer_tick(struct layer *layer, int64_t now_ms)
{
    int64_t newest = number_of(layer, now_ms);
    int64_t oldest = number_of(layer, now_ms - layer->keep_ms);
    for (size_t i = 0; i < FLOWS_SLICES; i++) {
        struct slice *slice = &layer->slices[i];
        if (slice->number != NO_SLICE && (slice->number < oldest || slice->number > newest))
            slice_clear(layer, slice);
    }
}

/* --- messages --- */

static size_t pair_of(struct layer *layer, int32_t src, int32_t dst, int32_t other)
{
    uint64_t key = (uint64_t)(uint32_t)src << 32 | (uint32_t)dst;
    uint32_t at = idmap_get(&layer->index, 0, key);
    if (at != IDMAP_NONE)
        return at;
    bool is_other = src == other && dst == other;
    if (!is_other && layer->n_pairs >= FLOWS_MAX_EDGES)
        return pair_of(layer, other, other, other);
    *ARRAY_PUSH(layer->pairs, layer->n_pairs) = (struct pair){src, dst};
    idmap_add(&layer->index, 0, key, (uint32_t)layer->n_pairs - 1);
    return layer->n_pairs - 1;
}

static void layer_message(struct layer *layer, int64_t at_ms, int32_t src, int32_t dst, int64_t bytes,
                     int64_t duration_us, int32_t other)
{
    const struct row one = {.count = 1,
                            .bytes = bytes,
                            .n_timed = duration_us >= 0,
                            .total_us = duration_us >= 0 ? (double)duration_us : 0};
    size_t pair = pair_of(layer, src, dst, other);
    add_row(slice_row(layer, slice_at(layer, at_ms), pair), &one);
    if (layer->n_rows > layer->max_rows)
        stretch(layer, 2 * layer->length_ms);
}

static struct span_counts *layer_counts(struct layer *layer, int64_t at_ms)
{
    return &slice_at(layer, at_ms)->counts;
}

/* --- reading --- */

static bool slice_in_window(const struct layer *layer, int64_t number, const struct window *window)
{
    int64_t begin = number * layer->length_ms;
    return begin >= window->from_ms && begin < window->to_ms;
}

static bool layer_in_window(const struct layer *layer, int64_t at_ms, const struct window *window)
{
    return slice_in_window(layer, number_of(layer, at_ms), window);
}

int flows_add(struct span_table *table, struct span_edge sums, int64_t *left, struct err *err)
{
    if (sums.bytes > *left)
        sums.bytes = -1;
    else if (sums.bytes > 0)
        *left -= sums.bytes;
    return span_table_sums(table, &sums, err);
}

static int layer_window(const struct layer *layer, const struct window *window,
                   struct span_table *table, int64_t *left, struct err *err)
{
    for (size_t i = 0; i < FLOWS_SLICES; i++) {
        const struct slice *slice = &layer->slices[i];
        if (slice->number == NO_SLICE || !slice_in_window(layer, slice->number, window))
            continue;
        flows_add_counts(span_table_counts(table), &slice->counts);
        for (size_t r = 0; r < slice->n_rows && r < layer->n_pairs; r++) {
            const struct row *row = &slice->rows[r];
            const struct span_edge sums = {.src = layer->pairs[r].src,
                                           .dst = layer->pairs[r].dst,
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

/* --- forgetting --- */

static void layer_mark(struct layer *layer, bool *used)
{
    AUTO_FREE bool *alive = mem_array(layer->n_pairs + 1, sizeof *alive);
    AUTO_FREE size_t *to = mem_array(layer->n_pairs + 1, sizeof *to);
    for (size_t i = 0; i < FLOWS_SLICES; i++)
        for (size_t r = 0; r < layer->slices[i].n_rows && r < layer->n_pairs; r++)
            alive[r] = alive[r] || layer->slices[i].rows[r].count;
    size_t n = 0;
    for (size_t p = 0; p < layer->n_pairs; p++) {
        if (!alive[p])
            continue;
        to[p] = n;
        used[layer->pairs[p].src] = used[layer->pairs[p].dst] = true;
        layer->pairs[n++] = layer->pairs[p];
    }
    for (size_t i = 0; i < FLOWS_SLICES; i++) {
        struct slice *slice = &layer->slices[i];
        for (size_t r = 0; r < slice->n_rows; r++) {
            struct row row = slice->rows[r];
            slice->rows[r] = (struct row){.count = 0};
            if (r < layer->n_pairs && alive[r])
                slice->rows[to[r]] = row;
        }
    }
    layer->n_pairs = n;
}

static void layer_renumber(struct layer *layer, const int32_t *map)
{
    idmap_clear(&layer->index);
    for (size_t p = 0; p < layer->n_pairs; p++) {
        struct pair *pair = &layer->pairs[p];
        *pair = (struct pair){map[pair->src], map[pair->dst]};
        idmap_add(&layer->index, 0,
                  (uint64_t)(uint32_t)pair->src << 32 | (uint32_t)pair->dst, (uint32_t)p);
    }
}

/* --- layers --- */

/* Half of the rows for the whole time, the rest in equal shares. */
static void share_rows(struct flows *flows)
{
    for (size_t i = 0; i < flows->n; i++)
        flows->layers[i]->max_rows =
            flows->n == 1 ? FLOWS_MAX_ROWS : FLOWS_MAX_ROWS / 2 / (i ? flows->n - 1 : 1);
}

/* Every finer layer that is shorter than the first; those that are there stay. */
static void add_layers(struct flows *flows, int64_t keep_ms, int64_t since_ms)
{
    int64_t span_ms = FINEST_MS;
    for (size_t i = 1; i < MAX_LAYERS && span_ms < keep_ms; i++, span_ms *= FINER)
        if (i >= flows->n)
            flows->layers[flows->n++] = layer_new(span_ms, since_ms);
    share_rows(flows);
}

struct flows *flows_new(int64_t keep_ms)
{
    struct flows *flows = mem_alloc(sizeof *flows);
    flows->layers[flows->n++] = layer_new(keep_ms, INT64_MIN);
    flows->now_ms = INT64_MIN / 2; /* not known yet */
    add_layers(flows, keep_ms, INT64_MIN);
    return flows;
}

void flows_free(struct flows *flows)
{
    if (!flows)
        return;
    for (size_t i = 0; i < flows->n; i++)
        layer_free(flows->layers[i]);
    free(flows);
}

void flows_keep(struct flows *flows, int64_t keep_ms)
{
    layer_keep(flows->layers[0], keep_ms);
    add_layers(flows, keep_ms, flows->now_ms);
}

void flows_tick(struct flows *flows, int64_t now_ms)
{
    flows->now_ms = now_ms;
    for (size_t i = 0; i < flows->n; i++)
        layer_tick(flows->layers[i], now_ms);
}

/* What is older than a finer layer reaches is in the others. */
static bool reaches(const struct flows *flows, const struct layer *layer, int64_t at_ms)
{
    return layer == flows->layers[0] ||
           (at_ms >= layer->since_ms && at_ms > flows->now_ms - layer->keep_ms);
}

void flows_message(struct flows *flows, int64_t at_ms, int32_t src, int32_t dst, int64_t bytes,
                   int64_t duration_us, int32_t other)
{
    for (size_t i = 0; i < flows->n; i++)
        if (reaches(flows, flows->layers[i], at_ms))
            layer_message(flows->layers[i], at_ms, src, dst, bytes, duration_us, other);
}

void flows_count(struct flows *flows, int64_t at_ms, const struct span_counts *more)
{
    for (size_t i = 0; i < flows->n; i++)
        if (reaches(flows, flows->layers[i], at_ms))
            flows_add_counts(layer_counts(flows->layers[i], at_ms), more);
}

/* The finest that holds all of the window: the slice at its beginning too. */
static const struct layer *layer_of(const struct flows *flows, const struct window *window)
{
    const struct layer *best = flows->layers[0];
    for (size_t i = 1; i < flows->n; i++) {
        const struct layer *layer = flows->layers[i];
        if (layer->length_ms < best->length_ms &&
            reaches(flows, layer, window->from_ms - layer->length_ms))
            best = layer;
    }
    return best;
}

bool flows_in_window(const struct flows *flows, int64_t at_ms, const struct window *window)
{
    return layer_in_window(layer_of(flows, window), at_ms, window);
}

int flows_window(const struct flows *flows, const struct window *window, struct span_table *table,
                 int64_t *left, struct err *err)
{
    return layer_window(layer_of(flows, window), window, table, left, err);
}

size_t flows_edges(const struct flows *flows)
{
    return flows->layers[0]->n_pairs;
}

void flows_mark(struct flows *flows, bool *used)
{
    for (size_t i = 0; i < flows->n; i++)
        layer_mark(flows->layers[i], used);
}

void flows_renumber(struct flows *flows, const int32_t *map)
{
    for (size_t i = 0; i < flows->n; i++)
        layer_renumber(flows->layers[i], map);
}
