/* affinity.c - rows of affinities and the score of a placement (design.md 7, Eq. 2). */
#include "model/affinity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/pairs.h"
#include "model/spread.h"

struct analysis *analysis_new(void)
{
    struct analysis *analysis = mem_alloc(sizeof *analysis);

    analysis->bytes = -1;
    return analysis;
}

void analysis_free(struct analysis *analysis)
{
    if (!analysis)
        return;
    free(analysis->rows);
    free(analysis->service_rows);
    free(analysis);
}

void affinity_order(const struct model *model, struct affinity *row)
{
    if (strcmp(model_end_name(model, row->level, row->a),
               model_end_name(model, row->level, row->b)) > 0) {
        int a = row->a;
        row->a = row->b;
        row->b = a;
    }
}

/* Adds `row` to the row of the same pair, which `seen` knows (index + 1), or at the end. */
static void row_merge(struct affinity **rows, size_t *n, struct pairs *seen,
                      const struct affinity *row)
{
    int lo = row->a < row->b ? row->a : row->b, hi = row->a < row->b ? row->b : row->a;
    int64_t *at = pairs_at(seen, lo, hi);

    if (*at == 0) {
        struct affinity *added = ARRAY_PUSH(*rows, *n);
        *added = *row;
        *at = (int64_t)*n;
        return;
    }
    struct affinity *sum = &(*rows)[*at - 1];
    sum->degree += row->degree;
    sum->count += row->count;
    if (row->bytes >= 0)
        sum->bytes = (sum->bytes < 0 ? 0 : sum->bytes) + row->bytes;
}

void affinity_add_up(const struct model *model, const struct affinity *rows, size_t n,
                     struct analysis *out)
{
    struct pairs seen[2] = {PAIRS_INIT, PAIRS_INIT}, types = PAIRS_INIT;

    for (size_t i = 0; i < n; i++) {
        struct affinity row = rows[i];
        if (row.a == row.b) {
            out->ignored++;
            continue;
        }
        affinity_order(model, &row);
        row_merge(&out->rows, &out->n_rows, &seen[row.level], &row);
    }
    affinity_sort(model, out->rows, out->n_rows);
    for (size_t i = 0; i < out->n_rows; i++) {
        struct affinity row = out->rows[i];
        if (row.level == LEVEL_INSTANCE) {
            row.level = LEVEL_SERVICE;
            row.a = model->instances[row.a].service;
            row.b = model->instances[row.b].service;
        }
        if (row.a == row.b)
            continue;
        affinity_order(model, &row);
        row_merge(&out->service_rows, &out->n_service_rows, &types, &row);
    }
    affinity_sort(model, out->service_rows, out->n_service_rows);
    pairs_wipe(&seen[0]);
    pairs_wipe(&seen[1]);
    pairs_wipe(&types);
}

struct analysis *analysis_from_given(const struct model *model)
{
    struct analysis *analysis = analysis_new();

    affinity_add_up(model, model->affinities, model->n_affinities, analysis);
    return analysis;
}

/* algorithms.md 6.1; 10^15 · 10^12 leaves llround's range, so large degrees keep their value */
static double degree_key(double degree)
{
    return degree < 1e6 ? round(degree * 1e12) : degree * 1e12;
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct affinity *x = a, *y = b;
    const struct model *model = context;
    double p = degree_key(x->degree), q = degree_key(y->degree);

    if (p != q)
        return p > q ? -1 : 1;
    int order = strcmp(model_end_name(model, x->level, x->a), model_end_name(model, y->level, y->a));
    if (order == 0)
        order = strcmp(model_end_name(model, x->level, x->b), model_end_name(model, y->level, y->b));
    return order ? order : (int)x->level - (int)y->level;
}

/* What compare_rows looks at, side by side: many rows are sorted without touching their names. */
struct row_key {
    double degree;
    int a, b; /* ranks of the names */
    int level;
    uint32_t row;
};

static int compare_keys(const void *a, const void *b)
{
    const struct row_key *x = a, *y = b;

    if (x->degree != y->degree)
        return x->degree > y->degree ? -1 : 1;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    if (x->b != y->b)
        return x->b < y->b ? -1 : 1;
    return x->level - y->level;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(**(const char *const *const *)a, **(const char *const *const *)b);
}

/* Place of every name in the order of all, equal names sharing it: instances, then services. */
static int *name_ranks(const struct model *model)
{
    size_t n = model->n_instances + model->n_services;
    int *ranks = mem_array(n + 1, sizeof *ranks), rank = 0;
    AUTO_FREE const char **names = mem_array(n + 1, sizeof *names);
    AUTO_FREE const char ***order = mem_array(n + 1, sizeof *order);

    for (size_t i = 0; i < n; i++) {
        names[i] = i < model->n_instances ? model->instances[i].name
                                          : model->services[i - model->n_instances].name;
        order[i] = &names[i];
    }
    qsort(order, n, sizeof *order, compare_names);
    for (size_t i = 0; i < n; i++) {
        rank += i > 0 && strcmp(*order[i - 1], *order[i]) != 0;
        ranks[order[i] - names] = rank;
    }
    return ranks;
}

static void sort_by_keys(const struct model *model, struct affinity *rows, size_t n)
{
    AUTO_FREE int *ranks = name_ranks(model);
    AUTO_FREE struct row_key *keys = mem_array(n, sizeof *keys);
    AUTO_FREE struct affinity *sorted = mem_array(n, sizeof *sorted);

    for (size_t i = 0; i < n; i++) {
        const int *rank = rows[i].level == LEVEL_SERVICE ? ranks + model->n_instances : ranks;
        keys[i] = (struct row_key){degree_key(rows[i].degree), rank[rows[i].a], rank[rows[i].b],
                                   (int)rows[i].level, (uint32_t)i};
    }
    qsort(keys, n, sizeof *keys, compare_keys);
    for (size_t i = 0; i < n; i++)
        sorted[i] = rows[keys[i].row];
    memcpy(rows, sorted, n * sizeof *rows);
}

void affinity_sort(const struct model *model, struct affinity *rows, size_t n)
{
    if (n > 64 && n >= (model->n_instances + model->n_services) / 4)
        sort_by_keys(model, rows, n);
    else if (n > 1)
        qsort_r(rows, n, sizeof *rows, compare_rows, (void *)model);
}

/* What share of the row's traffic stays on a host. */
static double row_share(const struct spread *spread, const struct affinity *row,
                        const int *placement)
{
    if (row->level == LEVEL_SERVICE)
        return spread_share(spread, row->a, row->b);
    return placement[row->a] >= 0 && placement[row->a] == placement[row->b] ? 1 : 0;
}

static struct spread *spread_if_needed(const struct model *model, const struct affinity *rows,
                                       size_t n, const int *placement)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].level == LEVEL_SERVICE)
            return spread_new(model, placement);
    return NULL;
}

double placement_score(const struct model *model, const struct affinity *rows, size_t n,
                       const int *placement)
{
    AUTO(spread) struct spread *spread = spread_if_needed(model, rows, n, placement);
    double score = 0;

    for (size_t i = 0; i < n; i++)
        score += rows[i].degree * row_share(spread, &rows[i], placement);
    return score;
}

double placement_local_share(const struct model *model, const struct affinity *rows, size_t n,
                             const int *placement)
{
    AUTO(spread) struct spread *spread = spread_if_needed(model, rows, n, placement);
    double local = 0, total = 0;

    for (size_t i = 0; i < n; i++) {
        if (model_pair_weight(model, rows[i].level, rows[i].a, rows[i].b) <= 0)
            continue;
        local += (double)rows[i].count * row_share(spread, &rows[i], placement);
        total += (double)rows[i].count;
    }
    return total > 0 ? local / total : 0;
}

int64_t affinity_messages(const struct model *model, const struct affinity *rows, size_t n)
{
    int64_t count = 0;

    for (size_t i = 0; i < n; i++)
        if (model_pair_weight(model, rows[i].level, rows[i].a, rows[i].b) > 0)
            count += rows[i].count; /* at most the total */
    return count;
}

int placement_hosts_used(const struct model *model, const int *placement)
{
    AUTO_FREE bool *used = mem_array(model->n_hosts, sizeof *used);
    int n = 0;

    for (size_t i = 0; i < model->n_instances; i++) {
        if (placement[i] >= 0 && !used[placement[i]]) {
            used[placement[i]] = true;
            n++;
        }
    }
    return n;
}

int *model_placement(const struct model *model)
{
    int *placement = mem_array(model->n_instances, sizeof *placement);

    for (size_t i = 0; i < model->n_instances; i++)
        placement[i] = model->instances[i].host;
    return placement;
}

/* Round trip of a row in µs under a placement; < 0 when a latency on its way is unknown. */
static double row_rtt_us(const struct model *model, const struct spread *spread,
                         const struct message *row, const int *placement)
{
    if (row->level == LEVEL_SERVICE)
        return spread_rtt_us(spread, row->src, row->dst);
    int a = placement[row->src], b = placement[row->dst];
    return a >= 0 && b >= 0 ? (double)model_rtt_us(model, a, b) : -1;
}

double placement_response_ms(const struct model *model, const int *placement)
{
    AUTO_FREE int *now = model_placement(model);
    AUTO(spread) struct spread *before = spread_new(model, now);
    AUTO(spread) struct spread *after = spread_new(model, placement);
    double sum = 0, count = 0;

    for (size_t i = 0; i < model->n_messages; i++) {
        const struct message *row = &model->messages[i];
        if (row->mean_ms < 0 || row->count == 0 ||
            model_pair_weight(model, row->level, row->src, row->dst) <= 0)
            continue;
        double from = row_rtt_us(model, before, row, now);
        double to = row_rtt_us(model, after, row, placement);
        double ms = row->mean_ms;
        if (from >= 0 && to >= 0)
            ms = fmax(0, ms + (to - from) / 1000);
        sum += ms * (double)row->count;
        count += (double)row->count;
    }
    return count > 0 ? sum / count : -1;
}
