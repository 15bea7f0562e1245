/* affinity.c - Eq. 1 (paper §5.4) with the edge cases of contract.md 2: one pass over the messages
 * into a hash table of pairs, one over the pairs for the degrees, one sort. */
#include "analyzer/affinity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Pairs in order of appearance, and an open-addressing index over them. */
struct pairs {
    struct affinity *rows;
    size_t n_rows, cap_rows;
    uint32_t *slots; /* row + 1; 0 is free */
    size_t n_slots;  /* a power of two, at most half full */
};

static uint64_t pair_hash(enum level level, int a, int b)
{
    uint64_t key = ((uint64_t)level << 62) ^ ((uint64_t)(uint32_t)a << 31) ^ (uint32_t)b;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    key ^= key >> 32;
    key *= UINT64_C(0xd6e8feb86659fd93);
    return key ^ (key >> 32);
}

static void pairs_wipe(struct pairs *pairs)
{
    free(pairs->rows);
    free(pairs->slots);
}
#define AUTO_PAIRS __attribute__((cleanup(pairs_wipe)))

static size_t pairs_slot(const struct pairs *pairs, enum level level, int a, int b)
{
    size_t mask = pairs->n_slots - 1, at = pair_hash(level, a, b) & mask;
    while (pairs->slots[at]) {
        const struct affinity *row = &pairs->rows[pairs->slots[at] - 1];
        if (row->a == a && row->b == b && row->level == level)
            break;
        at = (at + 1) & mask;
    }
    return at;
}

static void pairs_grow(struct pairs *pairs)
{
    free(pairs->slots);
    pairs->n_slots = pairs->n_slots ? pairs->n_slots * 2 : 64;
    pairs->slots = mem_array(pairs->n_slots, sizeof *pairs->slots);
    for (size_t i = 0; i < pairs->n_rows; i++) {
        const struct affinity *row = &pairs->rows[i];
        pairs->slots[pairs_slot(pairs, row->level, row->a, row->b)] = (uint32_t)i + 1;
    }
}

/* The row of the pair, new with nothing counted where it is seen first. */
static struct affinity *pairs_at(struct pairs *pairs, enum level level, int a, int b)
{
    if (pairs->n_rows * 2 >= pairs->n_slots)
        pairs_grow(pairs);
    size_t at = pairs_slot(pairs, level, a, b);
    if (!pairs->slots[at]) {
        if (pairs->n_rows == pairs->cap_rows) {
            pairs->cap_rows = pairs->cap_rows ? pairs->cap_rows * 2 : 64;
            pairs->rows = mem_resize(pairs->rows, pairs->cap_rows, sizeof *pairs->rows);
        }
        pairs->rows[pairs->n_rows++] =
            (struct affinity){.level = level, .a = a, .b = b, .bytes = -1};
        pairs->slots[at] = (uint32_t)pairs->n_rows;
    }
    return &pairs->rows[pairs->slots[at] - 1];
}

/* Rows carry their pair by index until the end, when names decide which side is `a`. */
static struct affinity *pairs_of(struct pairs *pairs, enum level level, int a, int b)
{
    return a < b ? pairs_at(pairs, level, a, b) : pairs_at(pairs, level, b, a);
}

static int total_add(int64_t *total, int64_t what, const char *name, struct err *err)
{
    if (__builtin_add_overflow(*total, what, total))
        return err_set(err, ERR_INPUT, "messages: the sum of %s leaves 63 bits", name);
    return 0;
}

static int pairs_count(struct pairs *pairs, const struct model *model, struct analysis *out,
                       struct err *err)
{
    out->bytes = -1;
    for (size_t i = 0; i < model->n_messages; i++) {
        const struct message *m = &model->messages[i];
        if (m->src == m->dst) {
            if (total_add(&out->ignored, m->count, "counts", err) < 0)
                return -1;
            continue;
        }
        if (total_add(&out->count, m->count, "counts", err) < 0)
            return -1;
        struct affinity *row = pairs_of(pairs, m->level, m->src, m->dst);
        row->count += m->count; /* at most the total */
        if (m->bytes < 0)
            continue;
        if (out->bytes < 0)
            out->bytes = 0;
        if (total_add(&out->bytes, m->bytes, "bytes", err) < 0)
            return -1;
        row->bytes = (row->bytes < 0 ? 0 : row->bytes) + m->bytes;
    }
    return 0;
}

/* m and d of Eq. 1 as far as they count: those of services with a weight count so often, those
 * between tenants not at all (interfaces.md 1.9 rule 14). */
struct totals {
    double count, bytes;
};

static bool is_plain(const struct model *model)
{
    for (size_t s = 0; s < model->n_services; s++)
        if (model->services[s].tenant || model->services[s].weight != 1)
            return false;
    return true;
}

static struct totals totals_of(const struct model *model, const struct pairs *pairs,
                               const struct analysis *all)
{
    struct totals totals = {(double)all->count, (double)all->bytes};
    if (is_plain(model))
        return totals;
    totals = (struct totals){0, 0};
    for (size_t i = 0; i < pairs->n_rows; i++) {
        const struct affinity *row = &pairs->rows[i];
        double weight = model_pair_weight(model, row->level, row->a, row->b);
        totals.count += weight * (double)row->count;
        totals.bytes += row->bytes > 0 ? weight * (double)row->bytes : 0;
    }
    return totals;
}

static double degree_of(const struct model *model, const struct affinity *row,
                        const struct totals *totals, double w)
{
    double weight = model_pair_weight(model, row->level, row->a, row->b), degree = 0;
    if (totals->count > 0)
        degree += weight * (double)row->count / totals->count * w;
    if (totals->bytes > 0 && row->bytes > 0)
        degree += weight * (double)row->bytes / totals->bytes * (1 - w);
    return degree;
}

/* The level above: instance pairs add up to pairs of their services (traffic inside one service is
 * none), service rows join as they are. Rows come in their final order, so that sums of doubles
 * are the same every time. */
static void services_add(struct pairs *services, const struct model *model,
                         const struct affinity *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int a = rows[i].a, b = rows[i].b;
        if (rows[i].level == LEVEL_INSTANCE) {
            a = model->instances[a].service;
            b = model->instances[b].service;
        }
        if (a == b)
            continue;
        struct affinity *sum = pairs_of(services, LEVEL_SERVICE, a, b);
        sum->degree += rows[i].degree;
        sum->count += rows[i].count;
        if (rows[i].bytes >= 0)
            sum->bytes = (sum->bytes < 0 ? 0 : sum->bytes) + rows[i].bytes;
    }
}

/* Hands the rows out, each with the smaller name first, sorted. */
static void pairs_take(struct pairs *pairs, const struct model *model, struct affinity **rows,
                       size_t *n)
{
    for (size_t i = 0; i < pairs->n_rows; i++) {
        struct affinity *row = &pairs->rows[i];
        if (strcmp(model_end_name(model, row->level, row->a),
                   model_end_name(model, row->level, row->b)) > 0) {
            int a = row->a;
            row->a = row->b;
            row->b = a;
        }
    }
    affinity_sort(model, pairs->rows, pairs->n_rows);
    free(*rows);
    *n = pairs->n_rows;
    *rows = steal(pairs->rows);
    pairs->n_rows = 0;
}

static int affinity_analyze(const struct model *model, double weight, struct analysis **out,
                            struct err *err)
{
    if (!(weight >= 0 && weight <= 1))
        return err_set(err, ERR_USAGE, "weight: must be from 0 to 1, not %g", weight);
    AUTO(analysis) struct analysis *result = NULL;
    if (model->has_affinities) {
        result = analysis_from_given(model);
        result->weight_used = weight;
    } else {
        AUTO_PAIRS struct pairs pairs = {0};
        result = analysis_new();
        if (pairs_count(&pairs, model, result, err) < 0)
            return -1;
        result->weight_used = result->bytes < 0 ? 1 : weight;
        const struct totals totals = totals_of(model, &pairs, result);
        for (size_t i = 0; i < pairs.n_rows; i++)
            pairs.rows[i].degree =
                degree_of(model, &pairs.rows[i], &totals, result->weight_used);
        pairs_take(&pairs, model, &result->rows, &result->n_rows);
    }
    AUTO_PAIRS struct pairs services = {0};
    services_add(&services, model, result->rows, result->n_rows);
    pairs_take(&services, model, &result->service_rows, &result->n_service_rows);
    *out = steal(result);
    return 0;
}

const struct analyzer affinity_analyzer = {
    .name = "affinity",
    .summary = "Eq. 1: weighted shares of messages and bytes",
    .analyze = affinity_analyze,
};
