/* merge.c - one table of traffic from several sources (merge.h). */
#include "monitor/merge.h"

#include "adapters/identity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct told { /* what one source says of one pair */
    int src, dst; /* services */
    size_t source;
    int64_t count, bytes, sized; /* bytes of `sized` messages */
    double total_ms;             /* of `timed` messages */
    int64_t timed;
    size_t row; /* until they are added up: of the model */
};

void merge_begin(struct merge *merge, struct inspection *in)
{
    *merge = (struct merge){.in = in, .unmapped_bytes = -1};
}

void merge_wipe(struct merge *merge)
{
    free(merge->ends);
    memset(merge, 0, sizeof *merge);
}

static size_t begin_of(const struct merge *merge, size_t source)
{
    return source ? merge->ends[source - 1] : 0;
}

void merge_source(struct merge *merge, bool ok)
{
    struct model *model = merge->in->model;
    struct traffic *traffic = &model->traffic;
    size_t begin = begin_of(merge, merge->n_ends);
    if (!ok)
        model->n_messages = begin;
    *ARRAY_PUSH(merge->ends, merge->n_ends) = model->n_messages;
    merge->n_spoke += model->n_messages > begin;
    if (ok && traffic->unmapped_count > merge->unmapped_count) {
        merge->unmapped_count = traffic->unmapped_count;
        merge->unmapped_bytes = traffic->unmapped_bytes;
    }
    traffic->unmapped_count = 0;
    traffic->unmapped_bytes = 0;
    identity_unmapped_source(merge->in->identity, ok);
}

static int compare_told(const void *left, const void *right)
{
    const struct told *a = left, *b = right;
    if (a->src != b->src)
        return a->src < b->src ? -1 : 1;
    if (a->dst != b->dst)
        return a->dst < b->dst ? -1 : 1;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

static int service_of(const struct model *model, enum level level, int index)
{
    return level == LEVEL_SERVICE ? index : model->instances[index].service;
}

static struct told *tell(const struct merge *merge, size_t n)
{
    const struct model *model = merge->in->model;
    struct told *told = mem_array(n + 1, sizeof *told);
    size_t source = 0;
    for (size_t i = 0; i < n; i++) {
        const struct message *m = &model->messages[i];
        while (i >= merge->ends[source])
            source++;
        told[i] = (struct told){.src = service_of(model, m->level, m->src),
                                .dst = service_of(model, m->level, m->dst),
                                .source = source,
                                .count = m->count,
                                .bytes = m->bytes < 0 ? 0 : m->bytes,
                                .sized = m->bytes < 0 ? 0 : m->count,
                                .total_ms = m->mean_ms < 0 ? 0 : m->mean_ms * (double)m->count,
                                .timed = m->mean_ms < 0 ? 0 : m->count,
                                .row = i};
    }
    if (n > 1)
        qsort(told, n, sizeof *told, compare_told);
    return told;
}

/* The rows [from, to) are of one pair; sums by source to `sums`, which has room. Returns how many. */
static size_t add_up(const struct told *told, size_t from, size_t to, struct told *sums)
{
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        if (n == 0 || sums[n - 1].source != told[i].source) {
            sums[n++] = told[i];
            continue;
        }
        struct told *sum = &sums[n - 1];
        sum->count += told[i].count;
        sum->bytes += told[i].bytes;
        sum->sized += told[i].sized;
        sum->total_ms += told[i].total_ms;
        sum->timed += told[i].timed;
    }
    return n;
}

/* The most by one of the counts; the first of equals. */
static const struct told *most(const struct told *sums, size_t n, size_t offset)
{
    const struct told *best = &sums[0];
    for (size_t i = 1; i < n; i++)
        if (*(const int64_t *)((const char *)&sums[i] + offset) >
            *(const int64_t *)((const char *)best + offset))
            best = &sums[i];
    return best;
}

static void fill_in(struct message *row, const struct told *sized, const struct told *timed)
{
    if (row->bytes < 0 && sized->sized > 0) {
        double bytes = (double)sized->bytes / (double)sized->sized * (double)row->count;
        row->bytes = bytes < (double)MODEL_MAX_NUMBER ? llround(bytes) : MODEL_MAX_NUMBER;
    }
    if (row->mean_ms < 0 && timed->timed > 0)
        row->mean_ms = timed->total_ms / (double)timed->timed;
}

void merge_finish(struct merge *merge)
{
    struct model *model = merge->in->model;
    size_t n = model->n_messages, to, kept = 0;
    int64_t chosen = 0;
    model->traffic.unmapped_count = merge->unmapped_count;
    model->traffic.unmapped_bytes = merge->unmapped_count ? merge->unmapped_bytes : 0;
    if (merge->n_spoke < 2)
        return;
    AUTO_FREE struct told *told = tell(merge, n);
    AUTO_FREE struct told *sums = mem_array(merge->n_ends, sizeof *sums);
    AUTO_FREE bool *keep = mem_array(n + 1, sizeof *keep);
    for (size_t from = 0; from < n; from = to) {
        for (to = from + 1;
             to < n && told[to].src == told[from].src && told[to].dst == told[from].dst;)
            to++;
        size_t n_sums = add_up(told, from, to, sums);
        const struct told *best = most(sums, n_sums, offsetof(struct told, count));
        const struct told *sized = most(sums, n_sums, offsetof(struct told, sized));
        const struct told *timed = most(sums, n_sums, offsetof(struct told, timed));
        chosen += n_sums > 1;
        for (size_t i = from; i < to; i++) {
            if (told[i].source != best->source)
                continue;
            keep[told[i].row] = true;
            fill_in(&model->messages[told[i].row], sized, timed);
        }
    }
    for (size_t i = 0; i < n; i++)
        if (keep[i])
            model->messages[kept++] = model->messages[i];
    model->n_messages = kept;
    if (chosen)
        inspection_note(merge->in, "several-sources", chosen,
                        "%lld pairs are told by several sources: the one with most messages counts",
                        (long long)chosen);
}
