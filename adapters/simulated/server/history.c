/* history.c - windows over the past as sums over stretches of steady flow. */
#include "adapters/simulated/server/history.h"

#include "adapters/simulated/server/flow.h"
#include "adapters/simulated/server/rng.h"

#include <math.h>
#include <stdlib.h>

#define MOST 1e15 /* no number in a model is larger, contract.md 2 */

/* The times within a window at which flow changes, its ends included, in order. */
struct stretches {
    int64_t *at;
    size_t n;
};

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void add_within(struct stretches *s, int64_t from, int64_t to, int64_t at)
{
    if (at > from && at < to)
        *ARRAY_PUSH(s->at, s->n) = at;
}

static struct stretches stretches_of(const struct cluster *c, int64_t from, int64_t to)
{
    struct stretches s = {NULL, 0};
    *ARRAY_PUSH(s.at, s.n) = from;
    *ARRAY_PUSH(s.at, s.n) = to;
    for (size_t i = 0; i < c->n_replicas; i++) {
        add_within(&s, from, to, c->replicas[i].ready_ms);
        add_within(&s, from, to, c->replicas[i].ended_ms);
    }
    for (size_t i = 0; i < c->n_loads; i++)
        add_within(&s, from, to, c->loads[i].at_ms);
    qsort(s.at, s.n, sizeof *s.at, by_time);
    size_t kept = 1;
    for (size_t i = 1; i < s.n; i++)
        if (s.at[i] != s.at[kept - 1])
            s.at[kept++] = s.at[i];
    s.n = kept;
    return s;
}

/* 1 ± the scenario's noise, for a thing and a window. */
static double noisy(const struct cluster *c, uint64_t thing, int64_t from)
{
    if (c->scenario->noise <= 0)
        return 1;
    uint64_t h = rng_hash(c->scenario->seed, thing, (uint64_t)from);
    return 1 + c->scenario->noise * (2 * ((double)(h >> 11) * 0x1p-53) - 1);
}

static bool clip(const struct cluster *c, int64_t *from, int64_t *to)
{
    if (*from < 0)
        *from = 0;
    if (*to > c->last_ms)
        *to = c->last_ms;
    return *from < *to;
}

static double overlap(int64_t from, int64_t to, int64_t a, int64_t b)
{
    int64_t start = from > a ? from : a, end = to < b ? to : b;
    return end > start ? (double)(end - start) : 0;
}

double *history_usage(const struct cluster *c, int64_t from, int64_t to)
{
    double *mean = mem_array(c->n_replicas, sizeof *mean);
    AUTO_FREE double *alive = mem_array(c->n_replicas, sizeof *alive);
    if (clip(c, &from, &to)) {
        struct stretches s = stretches_of(c, from, to);
        for (size_t k = 0; k + 1 < s.n; k++) {
            AUTO(flow) struct flow *f = flow_new(c, s.at[k]);
            double ms = (double)(s.at[k + 1] - s.at[k]);
            for (size_t i = 0; i < f->n_ready; i++) {
                mean[f->ready[i]] += f->cpu_millis[i] * ms;
                alive[f->ready[i]] += ms;
            }
        }
        free(s.at);
    }
    for (size_t i = 0; i < c->n_replicas; i++) {
        const struct replica *r = &c->replicas[i];
        int64_t end = r->ended_ms < 0 ? to : r->ended_ms;
        int64_t ready = r->ready_ms < 0 ? end : r->ready_ms;
        double starting = r->host < 0 ? 0 : overlap(from, to, r->created_ms, ready);
        mean[i] += starting * (double)c->scenario->services[r->service].cpu_base_millis;
        alive[i] += starting;
        mean[i] = alive[i] > 0 ? mean[i] / alive[i] * noisy(c, rng_text(r->name), from) : -1;
    }
    return mean;
}

struct sums { /* open addressing by pair of replicas; power of two, at most half full */
    struct sum {
        int call, src, dst; /* call -1: free */
        double count, ms;   /* ms: count · mean */
    } * slots;
    size_t n_slots, n_used;
};

static struct sum *sums_slot(const struct sums *s, int src, int dst)
{
    size_t i = rng_hash(0, (uint64_t)src, (uint64_t)dst) & (s->n_slots - 1);
    while (s->slots[i].call >= 0 && (s->slots[i].src != src || s->slots[i].dst != dst))
        i = (i + 1) & (s->n_slots - 1);
    return &s->slots[i];
}

static void sums_grow(struct sums *s)
{
    struct sums old = *s;
    s->n_slots = old.n_slots ? old.n_slots * 2 : 1024;
    s->slots = mem_array(s->n_slots, sizeof *s->slots);
    for (size_t i = 0; i < s->n_slots; i++)
        s->slots[i].call = -1;
    for (size_t i = 0; i < old.n_slots; i++)
        if (old.slots[i].call >= 0)
            *sums_slot(s, old.slots[i].src, old.slots[i].dst) = old.slots[i];
    free(old.slots);
}

static void sums_add(struct sums *s, const struct flow_edge *e, double count)
{
    if (s->n_used * 2 >= s->n_slots)
        sums_grow(s);
    struct sum *slot = sums_slot(s, e->src, e->dst);
    if (slot->call < 0) {
        *slot = (struct sum){e->call, e->src, e->dst, 0, 0};
        s->n_used++;
    }
    slot->count += count;
    slot->ms += count * e->mean_ms;
}

static int by_pair(const void *a, const void *b)
{
    const struct traffic_row *x = a, *y = b;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return (x->dst > y->dst) - (x->dst < y->dst);
}

static int64_t bytes_of(const struct sim_call *call, int64_t count)
{
    double bytes = (double)call->bytes * (double)count;
    if (call->bytes < 0)
        return -1;
    return bytes < MOST ? call->bytes * count : (int64_t)MOST;
}

struct traffic_row *history_traffic(const struct cluster *c, int64_t from, int64_t to, size_t *n)
{
    struct sums sums = {NULL, 0, 0};
    *n = 0;
    if (clip(c, &from, &to)) {
        struct stretches s = stretches_of(c, from, to);
        for (size_t k = 0; k + 1 < s.n; k++) {
            AUTO(flow) struct flow *f = flow_new(c, s.at[k]);
            double seconds = (double)(s.at[k + 1] - s.at[k]) / 1000;
            for (size_t e = 0; e < f->n_edges; e++)
                sums_add(&sums, &f->edges[e], f->edges[e].per_s * seconds);
        }
        free(s.at);
    }
    struct traffic_row *rows = mem_array(sums.n_used, sizeof *rows);
    for (size_t i = 0; i < sums.n_slots; i++) {
        const struct sum *sum = &sums.slots[i];
        if (sum->call < 0)
            continue;
        uint64_t pair = rng_hash(c->scenario->seed, rng_text(c->replicas[sum->src].name),
                                 rng_text(c->replicas[sum->dst].name));
        double phase = (double)(pair >> 11) * 0x1p-53;
        /* 1e-6 against sums of doubles that end just below an integer */
        double whole = floor(sum->count + 1e-6 + phase * (1 - 2e-6));
        int64_t count = whole < MOST ? (int64_t)whole : (int64_t)MOST;
        if (count <= 0 || sum->count <= 0)
            continue;
        int64_t bytes = bytes_of(&c->scenario->calls[sum->call], count);
        rows[(*n)++] =
            (struct traffic_row){sum->call, sum->src, sum->dst,
                                 count,     bytes,    sum->ms / sum->count * noisy(c, pair, from)};
    }
    free(sums.slots);
    if (*n)
        qsort(rows, *n, sizeof *rows, by_pair);
    return rows;
}
