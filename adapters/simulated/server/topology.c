/* topology.c - the paper's mock applications (algorithms.md 6.5, planning.md 2), at any size.
 *
 * The graph is grown as networkx grows barabasi_albert_graph(n, m): a star of m + 1 nodes around
 * node 0, then each new node joins m different nodes, drawn in proportion to their degree. Edges
 * point from the older to the newer node, so node 0 is the only entry and there is no cycle. */
#include "adapters/simulated/server/scenario.h"

#include "adapters/simulated/server/rng.h"

#include <stdlib.h>

struct edge {
    int from, to;
};

static struct edge *grow(const struct generator *g, struct rng *rng, size_t *count)
{
    int n = (int)g->services;
    int m = g->star || n <= 3 ? n - 1 : 2;
    struct edge *edges =
        mem_array((size_t)m + (size_t)(n > m ? (n - m - 1) : 0) * 2 + 1, sizeof *edges);
    size_t e = 0;
    for (int i = 1; i <= m; i++)
        edges[e++] = (struct edge){0, i};
    for (int v = m + 1; v < n; v++) {
        /* Both ends of every edge so far are the list to draw from by degree. */
        size_t known = e;
        int first = -1;
        while (e < known + 2) {
            uint64_t pick = rng_below(rng, known * 2);
            int to = pick % 2 ? edges[pick / 2].to : edges[pick / 2].from;
            if (to == first)
                continue;
            edges[e++] = (struct edge){to, v};
            first = to;
        }
    }
    *count = e;
    return edges;
}

struct share {
    double rest;
    size_t edge;
};

static int by_rest(const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    if (x->rest != y->rest)
        return x->rest > y->rest ? -1 : 1;
    return (x->edge > y->edge) - (x->edge < y->edge);
}

/* Splits `messages` over the edges: one each first, the rest by uniform random weights with the
 * largest remainders rounded up, so that the sum is exact. With fewer messages than edges the
 * first ones in a random order get one. */
static int64_t *split(int64_t messages, size_t edges, struct rng *rng)
{
    int64_t *counts = mem_array(edges, sizeof *counts);
    AUTO_FREE double *weight = mem_array(edges, sizeof *weight);
    AUTO_FREE struct share *shares = mem_array(edges, sizeof *shares);
    double sum = 0;
    int64_t left = messages - (int64_t)edges;
    for (size_t i = 0; i < edges; i++)
        sum += weight[i] = rng_unit(rng) + 1e-6;
    for (size_t i = 0; i < edges; i++) {
        double part = left > 0 ? (double)left * weight[i] / sum : 0;
        counts[i] = left >= 0 ? 1 + (int64_t)part : 0;
        shares[i] = (struct share){left > 0 ? part - (double)(int64_t)part : weight[i], i};
    }
    int64_t given = 0;
    for (size_t i = 0; i < edges; i++)
        given += counts[i];
    qsort(shares, edges, sizeof *shares, by_rest);
    for (size_t i = 0; given < messages; i = (i + 1) % edges, given++)
        counts[shares[i].edge]++;
    return counts;
}

/* CPU 1…500 in all, at most half of it from requests. */
static void draw_usage(struct sim_service *v, double arrivals_per_s, double work_ms,
                       struct rng *rng)
{
    int64_t cpu = 1 + (int64_t)rng_below(rng, 500);
    v->mem_bytes = (10 + (int64_t)rng_below(rng, 491)) << 20;
    v->cpu_request_millis = 0;
    if (arrivals_per_s > 0) {
        double most = (double)cpu / 2 / arrivals_per_s;
        v->work_ms = most < work_ms ? most : work_ms;
        v->cpu_base_millis = cpu - (int64_t)(v->work_ms * arrivals_per_s + 0.5);
    } else {
        v->cpu_base_millis = cpu;
    }
}

void scenario_generate(struct scenario *s, const struct generator *g)
{
    struct rng rng = {g->seed};
    size_t n_edges = 0;
    AUTO_FREE struct edge *edges = g->services > 1 ? grow(g, &rng, &n_edges) : NULL;
    AUTO_FREE int64_t *counts = n_edges ? split(g->messages, n_edges, &rng) : NULL;
    AUTO_FREE double *arrivals = mem_array((size_t)g->services, sizeof *arrivals);
    double seconds = (double)g->per_ms / 1000;
    int base = (int)s->n_services, host = (int)s->n_hosts;
    for (size_t i = 0; i < n_edges; i++) {
        struct sim_call *c = ARRAY_PUSH(s->calls, s->n_calls);
        *c = (struct sim_call){base + edges[i].from, base + edges[i].to, -1,
                               (double)counts[i] / seconds,
                               counts[i] ? 100 + (int64_t)rng_below(&rng, 9901) : -1};
        arrivals[edges[i].to] += c->per_s;
        arrivals[0] += edges[i].from ? 0 : c->per_s;
    }
    for (int i = 0; i < g->services; i++) {
        struct sim_host *h = ARRAY_PUSH(s->hosts, s->n_hosts);
        *h = (struct sim_host){.name = mem_printf("host-%04d", i),
                               .cpu_millis = 4000,
                               .mem_bytes = INT64_C(8) << 30,
                               .pods = -1,
                               .schedulable = true};
        struct sim_service *v = ARRAY_PUSH(s->services, s->n_services);
        *v = (struct sim_service){.name = mem_printf("service-%04d", i),
                                  .namespace = mem_strdup("default"),
                                  .replicas = 1,
                                  .n_hosts = 1,
                                  .start_up_ms = 1000,
                                  .movable = true};
        v->hosts = mem_alloc(sizeof *v->hosts);
        v->hosts[0] = host + i;
        names_add(&s->host_names, h->name, host + i);
        names_add(&s->service_names, v->name, base + i);
        v->entry_per_s = i ? 0 : arrivals[0]; /* one call outwards per request, on average */
        draw_usage(v, arrivals[i], g->work_ms, &rng);
    }
}
