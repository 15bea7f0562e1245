/* holes.c - Dinic's algorithm: source, kinds, zones of kinds, hosts, sink. */
#include "planner/holes.h"

#include <stdlib.h>
#include <string.h>

struct edge {
    int to;
    int next; /* of the same node; -1: the last. Edge e ^ 1 goes back */
    int64_t left;
};

struct holes {
    size_t n_hosts;
    struct edge *edges;
    size_t n_edges;
    int *first; /* edge of each node; -1: none */
    size_t n_nodes;
    int *level, *at, *queue;
};

/* Nodes: source, sink, hosts, kinds, then zones of kinds as they come. */
enum { SOURCE, SINK, FIRST_HOST };

static int node_new(struct holes *holes)
{
    *ARRAY_PUSH(holes->first, holes->n_nodes) = -1;
    return (int)holes->n_nodes - 1;
}

static void edge_new(struct holes *holes, int from, int to, int64_t room)
{
    int ends[2] = {from, to};
    for (int side = 0; side < 2; side++) {
        struct edge *edge = ARRAY_PUSH(holes->edges, holes->n_edges);
        *edge = (struct edge){ends[!side], holes->first[ends[side]], side ? 0 : room};
        holes->first[ends[side]] = (int)holes->n_edges - 1;
    }
}

struct holes *holes_new(size_t n_kinds, size_t n_hosts, int64_t per_host)
{
    struct holes *holes = mem_alloc(sizeof *holes);
    holes->n_hosts = n_hosts;
    for (size_t k = 0; k < FIRST_HOST + n_hosts + n_kinds; k++)
        node_new(holes);
    for (size_t h = 0; h < n_hosts; h++)
        edge_new(holes, FIRST_HOST + (int)h, SINK, per_host);
    return holes;
}

void holes_free(struct holes *holes)
{
    if (!holes)
        return;
    free(holes->edges);
    free(holes->first);
    free(holes->level);
    free(holes->at);
    free(holes->queue);
    free(holes);
}

void holes_put(struct holes *holes, size_t kind, int64_t count, const bool *allowed,
               int64_t per_host, const int *zones, int64_t per_zone)
{
    int node = FIRST_HOST + (int)(holes->n_hosts + kind);
    AUTO_FREE int *zone_node = mem_array(holes->n_hosts, sizeof *zone_node);
    edge_new(holes, SOURCE, node, count);
    for (size_t h = 0; h < holes->n_hosts; h++) {
        int from = node;
        if (!allowed[h])
            continue;
        if (zones) {
            if (zone_node[zones[h]] == 0) {
                zone_node[zones[h]] = node_new(holes);
                edge_new(holes, node, zone_node[zones[h]], per_zone);
            }
            from = zone_node[zones[h]];
        }
        edge_new(holes, from, FIRST_HOST + (int)h, per_host < count ? per_host : count);
    }
}

/* Levels from the source; false when the sink is out of reach. */
static bool levels_find(struct holes *holes)
{
    size_t head = 0, tail = 0;
    memset(holes->level, -1, holes->n_nodes * sizeof *holes->level);
    holes->level[SOURCE] = 0;
    holes->queue[tail++] = SOURCE;
    while (head < tail) {
        int node = holes->queue[head++];
        for (int e = holes->first[node]; e >= 0; e = holes->edges[e].next) {
            int to = holes->edges[e].to;
            if (holes->edges[e].left <= 0 || holes->level[to] >= 0)
                continue;
            holes->level[to] = holes->level[node] + 1;
            holes->queue[tail++] = to;
        }
    }
    return holes->level[SINK] >= 0;
}

/* Sends up to `most` from the node to the sink. Paths may go back and forth between kinds and hosts, so
 * depth is at most the number of nodes. */
static int64_t push(struct holes *holes, int node, int64_t most)
{
    if (node == SINK)
        return most;
    for (; holes->at[node] >= 0; holes->at[node] = holes->edges[holes->at[node]].next) {
        int e = holes->at[node];
        struct edge *edge = &holes->edges[e];
        if (edge->left <= 0 || holes->level[edge->to] != holes->level[node] + 1)
            continue;
        int64_t sent = push(holes, edge->to, most < edge->left ? most : edge->left);
        if (sent == 0)
            continue;
        edge->left -= sent;
        holes->edges[e ^ 1].left += sent;
        return sent;
    }
    return 0;
}

int64_t holes_fill(struct holes *holes)
{
    int64_t all = 0;
    holes->level = mem_array(holes->n_nodes, sizeof *holes->level);
    holes->at = mem_array(holes->n_nodes, sizeof *holes->at);
    holes->queue = mem_array(holes->n_nodes, sizeof *holes->queue);
    while (levels_find(holes)) {
        memcpy(holes->at, holes->first, holes->n_nodes * sizeof *holes->at);
        for (int64_t sent; (sent = push(holes, SOURCE, INT64_MAX)) > 0;)
            all += sent;
    }
    return all;
}
