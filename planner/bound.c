/* bound.c - upper bounds of the affinity of any plan. */
#include "planner/bound.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const load_dim_names[LOAD_DIMS] = {"cpu", "memory", "cpu requests",
                                               "memory requests", "pod slots"};

const char *load_text(int dim, double amount, char out[LOAD_TEXT_SIZE])
{
    const double mib = 1024 * 1024;
    bool memory = dim == 1 || dim == 3;
    if (memory && amount >= mib)
        snprintf(out, LOAD_TEXT_SIZE, "%.*f MiB", amount < 100 * mib ? 1 : 0, amount / mib);
    else
        snprintf(out, LOAD_TEXT_SIZE, "%.0f%s", amount, memory ? " bytes" : dim == 4 ? "" : "m");
    return out;
}

void load_dims(const struct load *load, int64_t out[LOAD_DIMS])
{
    out[0] = load->cpu_millis;
    out[1] = load->mem_bytes;
    out[2] = load->cpu_request_millis;
    out[3] = load->mem_request_bytes;
    out[4] = load->pods;
}

void host_rooms(const struct model *model, int64_t (*room)[LOAD_DIMS])
{
    AUTO_FREE struct load *used = model_host_loads(model);
    for (size_t h = 0; h < model->n_hosts; h++) {
        struct load offer = host_offer(&model->hosts[h]);
        int64_t now[LOAD_DIMS];
        load_dims(&offer, room[h]);
        load_dims(&used[h], now);
        for (int d = 0; d < LOAD_DIMS; d++)
            if (room[h][d] < now[d] || !model->hosts[h].schedulable)
                room[h][d] = now[d];
    }
}

/* ---- affinity ---- */

/* A vertex is an instance (instance rows) or a service (service rows): `count` copies, each with at
 * least `need`; `host` where all of them are fixed on one host, else -1. */
struct vertex {
    double need[LOAD_DIMS];
    double room[LOAD_DIMS]; /* for partners, beside one copy each on `count` hosts */
    int count, host;
    int taking; /* copies that take room: those that are placed, or will be */
    bool fixed; /* all copies, wherever */
};

struct half { /* one end of an edge */
    int edge, other;
};

struct edge {
    int u, v;
    double degree;
    double share; /* of u; v has the rest */
    double kept_u, kept_v; /* fraction that the end could keep */
};

struct star {
    struct vertex *vertices;
    size_t n_vertices;
    struct edge *edges;
    size_t n_edges;
    struct half *halves; /* of vertex v: halves[first[v]] … halves[first[v + 1]] */
    size_t *first;
    double constant; /* edges that are decided */
};

static void vertices_init(struct star *star, const struct model *model, bool move_stateful,
                          bool place_all)
{
    size_t n = model->n_instances, base = n;
    star->n_vertices = n + model->n_services;
    star->vertices = mem_array(star->n_vertices, sizeof *star->vertices);
    for (size_t s = 0; s < model->n_services; s++)
        star->vertices[base + s] = (struct vertex){.host = -2, .fixed = true};
    for (size_t i = 0; i < n; i++) {
        const struct instance *who = &model->instances[i];
        struct vertex *v = &star->vertices[i], *s = &star->vertices[base + (size_t)who->service];
        struct load load = instance_load(who);
        int64_t need[LOAD_DIMS];
        load_dims(&load, need);
        v->count = 1;
        v->taking = place_all || who->host >= 0;
        s->taking += v->taking;
        v->fixed = who->host >= 0 && instance_fixed_why(model, (int)i, move_stateful);
        v->host = v->fixed ? who->host : -1;
        for (int d = 0; d < LOAD_DIMS; d++) {
            v->need[d] = (double)need[d];
            if (s->count == 0 || s->need[d] > v->need[d])
                s->need[d] = v->need[d];
        }
        s->count++;
        s->fixed &= v->fixed;
        s->host = s->host == -2 || s->host == v->host ? v->host : -1;
    }
}

static int descending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? 1 : a > b ? -1 : 0;
}

/* Room for partners: the count largest hosts (or the fixed one), less the copies themselves. */
static void vertices_room(struct star *star, const struct model *model,
                          int64_t (*room)[LOAD_DIMS])
{
    AUTO_FREE double *top = mem_array(model->n_hosts + 1, sizeof *top); /* sums of the largest */
    AUTO_FREE int64_t *caps = mem_array(model->n_hosts, sizeof *caps);
    for (int d = 0; d < LOAD_DIMS; d++) {
        for (size_t h = 0; h < model->n_hosts; h++)
            caps[h] = room[h][d] > 0 ? room[h][d] : 0;
        qsort(caps, model->n_hosts, sizeof *caps, descending);
        for (size_t h = 0; h < model->n_hosts; h++)
            top[h + 1] = top[h] + (double)caps[h];
        for (size_t k = 0; k < star->n_vertices; k++) {
            struct vertex *v = &star->vertices[k];
            size_t hosts = (size_t)v->count < model->n_hosts ? (size_t)v->count : model->n_hosts;
            double all = v->fixed && v->host >= 0 ? (double)room[v->host][d] : top[hosts];
            v->room[d] = all - v->need[d] * v->taking;
        }
    }
}

static int vertex_of(const struct model *model, const struct affinity *row, int end)
{
    return row->level == LEVEL_INSTANCE ? end : (int)model->n_instances + end;
}

/* True when the pair can never keep anything: single copies that are fixed apart, or too large to
 * share the largest host. */
static bool edge_dead(const struct star *star, int u, int v)
{
    const struct vertex *a = &star->vertices[u], *b = &star->vertices[v];
    if (a->fixed && b->fixed && a->host >= 0 && b->host >= 0)
        return a->host != b->host;
    if (a->count != 1 || b->count != 1)
        return a->count == 0 || b->count == 0;
    for (int d = 0; d < LOAD_DIMS; d++)
        if (b->need[d] > a->room[d] + 1e-6 || a->need[d] > b->room[d] + 1e-6)
            return true;
    return false;
}

static void edges_init(struct star *star, const struct model *model, const struct affinity *rows,
                       size_t n)
{
    AUTO_FREE int *placement = model_placement(model);
    star->edges = mem_array(n, sizeof *star->edges);
    star->first = mem_array(star->n_vertices + 2, sizeof *star->first);
    for (size_t r = 0; r < n; r++) {
        int u = vertex_of(model, &rows[r], rows[r].a), v = vertex_of(model, &rows[r], rows[r].b);
        if (rows[r].degree <= 0 || u == v)
            continue;
        if (star->vertices[u].fixed && star->vertices[v].fixed) {
            star->constant += placement_score(model, &rows[r], 1, placement);
            continue;
        }
        if (edge_dead(star, u, v))
            continue;
        star->edges[star->n_edges++] =
            (struct edge){.u = u, .v = v, .degree = rows[r].degree, .share = 0.5};
        star->first[u + 2]++;
        star->first[v + 2]++;
    }
    for (size_t k = 0; k < star->n_vertices; k++)
        star->first[k + 2] += star->first[k + 1];
    star->halves = mem_array(2 * star->n_edges, sizeof *star->halves);
    for (size_t e = 0; e < star->n_edges; e++) {
        int u = star->edges[e].u, v = star->edges[e].v;
        star->halves[star->first[u + 1]++] = (struct half){(int)e, v};
        star->halves[star->first[v + 1]++] = (struct half){(int)e, u};
    }
}

struct item {
    double value, size, ratio;
    int half;
};

static int by_ratio(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->ratio != b->ratio)
        return a->ratio < b->ratio ? 1 : -1;
    return a->half < b->half ? -1 : 1;
}

static double *kept_of(struct star *star, int vertex, int edge)
{
    struct edge *e = &star->edges[edge];
    return e->u == vertex ? &e->kept_u : &e->kept_v;
}

static double weight_of(const struct star *star, int vertex, int edge)
{
    const struct edge *e = &star->edges[edge];
    return e->degree * (e->u == vertex ? e->share : 1 - e->share);
}

/* Fractional knapsack of one vertex in one dimension; writes what was kept of each half. */
static double knapsack(struct star *star, int vertex, int dim, struct item *items, double *kept)
{
    size_t from = star->first[vertex], n = star->first[vertex + 1] - from;
    double left = star->vertices[vertex].room[dim], sum = 0;
    int home = star->vertices[vertex].host;
    for (size_t k = 0; k < n; k++) {
        const struct half *half = &star->halves[from + k];
        const struct vertex *other = &star->vertices[half->other];
        /* A partner fixed on the same host is in the room already taken or not: count no size. */
        bool here = home >= 0 && other->fixed && other->host == home;
        items[k].value = weight_of(star, vertex, half->edge);
        items[k].size = here ? 0 : other->need[dim] * other->taking;
        items[k].ratio = items[k].size > 0 ? items[k].value / items[k].size : INFINITY;
        items[k].half = (int)k;
    }
    qsort(items, n, sizeof *items, by_ratio);
    if (left < 0)
        left = 0;
    for (size_t k = 0; k < n; k++) {
        double part = items[k].size <= left ? 1 : left / items[k].size;
        kept[items[k].half] = part;
        sum += part * items[k].value;
        left -= part * items[k].size;
    }
    return sum;
}

/* The best that a vertex can keep: the tightest of its dimensions. */
static double vertex_bound(struct star *star, int vertex, struct item *items, double *kept,
                           double *best)
{
    size_t from = star->first[vertex], n = star->first[vertex + 1] - from;
    double all = 0, bound;
    for (size_t k = 0; k < n; k++) {
        all += weight_of(star, vertex, star->halves[from + k].edge);
        best[k] = 1;
    }
    bound = all;
    for (int d = 0; d < LOAD_DIMS; d++) {
        double size = 0;
        for (size_t k = 0; k < n; k++) {
            const struct vertex *other = &star->vertices[star->halves[from + k].other];
            size += other->need[d] * other->taking;
        }
        if (size <= star->vertices[vertex].room[d])
            continue;
        double value = knapsack(star, vertex, d, items, kept);
        if (value < bound) {
            bound = value;
            memcpy(best, kept, n * sizeof *best);
        }
    }
    for (size_t k = 0; k < n; k++)
        *kept_of(star, vertex, star->halves[from + k].edge) = best[k];
    return bound;
}

/* True when the partners of a vertex are more than its room, in some dimension. */
static bool vertex_crowded(const struct star *star, size_t vertex)
{
    const struct vertex *v = &star->vertices[vertex];
    for (int d = 0; d < LOAD_DIMS; d++) {
        double size = 0;
        for (size_t k = star->first[vertex]; k < star->first[vertex + 1]; k++) {
            const struct vertex *other = &star->vertices[star->halves[k].other];
            size += other->need[d] * other->taking;
        }
        if (size > v->room[d])
            return true;
    }
    return false;
}

/* A crowded end next to one that keeps all it has decides alone: in a star that is the optimum of
 * the split. */
static void shares_init(struct star *star)
{
    AUTO_FREE bool *crowded = mem_array(star->n_vertices, sizeof *crowded);
    for (size_t v = 0; v < star->n_vertices; v++)
        crowded[v] = star->first[v] < star->first[v + 1] && vertex_crowded(star, v);
    for (size_t e = 0; e < star->n_edges; e++) {
        struct edge *edge = &star->edges[e];
        if (crowded[edge->u] != crowded[edge->v])
            edge->share = crowded[edge->u] ? 1 : 0;
    }
}

/* Moves degree from ends that keep a pair to ends that do not. */
static void shares_step(struct star *star, double step)
{
    for (size_t e = 0; e < star->n_edges; e++) {
        struct edge *edge = &star->edges[e];
        edge->share -= step * (edge->kept_u - edge->kept_v);
        edge->share = edge->share < 0 ? 0 : edge->share > 1 ? 1 : edge->share;
    }
}

static double star_bound(struct star *star)
{
    size_t widest = 0;
    for (size_t v = 0; v < star->n_vertices; v++)
        if (star->first[v + 1] - star->first[v] > widest)
            widest = star->first[v + 1] - star->first[v];
    AUTO_FREE struct item *items = mem_array(widest, sizeof *items);
    AUTO_FREE double *kept = mem_array(widest, sizeof *kept);
    AUTO_FREE double *best = mem_array(widest, sizeof *best);
    /* About 100 ns per pair and step: 2·10^5 pair-steps keep it below 20 ms. */
    int steps = star->n_edges ? (int)(200000 / star->n_edges) : 1;
    steps = steps < 1 ? 1 : steps > 60 ? 60 : steps;
    double lowest = INFINITY;
    shares_init(star);
    for (int k = 0; k < steps; k++) {
        double sum = 0;
        for (size_t v = 0; v < star->n_vertices; v++)
            if (star->first[v] < star->first[v + 1])
                sum += vertex_bound(star, (int)v, items, kept, best);
        if (sum < lowest)
            lowest = sum;
        shares_step(star, 0.5 / (1 + k * 0.25));
    }
    return lowest;
}

double bound_affinity(const struct model *model, const struct affinity *rows, size_t n,
                      bool move_stateful, bool place_all)
{
    double total = 0, live = 0;
    struct star star = {0};
    int64_t(*room)[LOAD_DIMS] = mem_array(model->n_hosts, sizeof *room);
    host_rooms(model, room);
    vertices_init(&star, model, move_stateful, place_all);
    vertices_room(&star, model, room);
    edges_init(&star, model, rows, n);
    for (size_t r = 0; r < n; r++)
        total += rows[r].degree > 0 ? rows[r].degree : 0;
    for (size_t e = 0; e < star.n_edges; e++)
        live += star.edges[e].degree;
    double bound = star_bound(&star);
    if (bound > live)
        bound = live;
    /* Margin: sums of at most 10^7 doubles err by less than 10^7 · 2^-53 ≈ 1.1e-9 of what is summed.
     * Where nothing can be kept that is nothing: the bound is 0, and no gap is left to a plan of 0. */
    bound = star.constant + bound + 2e-9 * (star.constant + live);
    free(star.vertices);
    free(star.edges);
    free(star.halves);
    free(star.first);
    free(room);
    return bound < total ? bound : total;
}
