/* drift.c - the distance between two distributions of traffic over pairs of services: both sorted
 * by name, one merge (§9 of the paper; drift.h says why this distance). */
#include "analyzer/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the shares of one side are shares of. */
struct total {
    double degree, count, bytes;
};

static int by_names(const void *x, const void *y)
{
    const struct drift_pair *p = x, *q = y;
    int order = strcmp(p->a, q->a);
    return order ? order : strcmp(p->b, q->b);
}

static struct total total_of(const struct drift_pair *pairs, size_t n)
{
    struct total total = {0};
    for (size_t i = 0; i < n; i++) {
        total.degree += pairs[i].degree;
        total.count += (double)pairs[i].count;
        total.bytes += pairs[i].bytes > 0 ? (double)pairs[i].bytes : 0;
    }
    return total;
}

/* weight < 0: by given degrees. */
static double share(const struct drift_pair *pair, const struct total *total, double weight)
{
    if (!pair)
        return 0;
    if (weight < 0)
        return total->degree > 0 ? pair->degree / total->degree : 0;
    double out = weight * (double)pair->count / total->count;
    if (weight < 1 && pair->bytes > 0)
        out += (1 - weight) * (double)pair->bytes / total->bytes;
    return out;
}

static void top_add(struct drift_result *out, struct drift_change change)
{
    size_t at = out->n_top;
    double size = fabs(change.now - change.before);
    while (at > 0 && size > fabs(out->top[at - 1].now - out->top[at - 1].before))
        at--;
    if (at == DRIFT_TOP || size == 0)
        return;
    size_t keep = out->n_top < DRIFT_TOP ? out->n_top : DRIFT_TOP - 1;
    memmove(&out->top[at + 1], &out->top[at], (keep - at) * sizeof *out->top);
    out->top[at] = change;
    out->n_top = keep + 1;
}

/* Mean absolute deviation of the difference of two binomial shares, by the normal approximation:
 * E|X| = σ·sqrt(2/π) with σ² = p(1 − p)·(1/n + 1/m). */
static double sampled(double p, double inverse_n)
{
    return p > 0 && p < 1 ? sqrt(2 / M_PI * p * (1 - p) * inverse_n) : 0;
}

struct drift_result drift_measure(struct drift_pair *before, size_t n_before,
                                  struct drift_pair *now, size_t n_now, double weight)
{
    struct drift_result out = {.messages = -1, .distance = -1};
    struct total was = total_of(before, n_before), is = total_of(now, n_now);
    double inverse_n = 0;
    if (was.count > 0 && is.count > 0) {
        out.messages = (int64_t)(was.count < is.count ? was.count : is.count);
        inverse_n = DRIFT_MESSAGES_PER_REQUEST * (1 / was.count + 1 / is.count);
        weight = was.bytes > 0 && is.bytes > 0 ? weight : 1;
    } else {
        weight = -1;
    }
    if (weight < 0 ? was.count > 0 || is.count > 0 || was.degree <= 0 || is.degree <= 0
                   : out.messages < DRIFT_MIN_MESSAGES)
        return out;
    if (n_before > 1)
        qsort(before, n_before, sizeof *before, by_names);
    if (n_now > 1)
        qsort(now, n_now, sizeof *now, by_names);
    out.distance = 0;
    for (size_t i = 0, k = 0; i < n_before || k < n_now;) {
        int order = i == n_before ? 1 : k == n_now ? -1 : by_names(&before[i], &now[k]);
        const struct drift_pair *p = order <= 0 ? &before[i++] : NULL;
        const struct drift_pair *q = order >= 0 ? &now[k++] : NULL;
        struct drift_change change = {.a = p ? p->a : q->a,
                                      .b = p ? p->b : q->b,
                                      .before = share(p, &was, weight),
                                      .now = share(q, &is, weight)};
        out.distance += fabs(change.now - change.before) / 2;
        out.noise += sampled((change.now + change.before) / 2, inverse_n) / 2;
        top_add(&out, change);
    }
    return out;
}

struct drift_pair *drift_pairs(const struct model *model, const struct analysis *analysis,
                               size_t *n)
{
    struct drift_pair *out = mem_array(analysis->n_service_rows + 1, sizeof *out);
    *n = analysis->n_service_rows;
    for (size_t i = 0; i < *n; i++) {
        const struct affinity *row = &analysis->service_rows[i];
        out[i] = (struct drift_pair){model_end_name(model, LEVEL_SERVICE, row->a),
                                     model_end_name(model, LEVEL_SERVICE, row->b), row->degree,
                                     row->count, row->bytes};
    }
    return out;
}
