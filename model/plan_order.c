/* plan_order.c - the order of moves of single instances. Of the moves that are possible now, the
 * first in name order is taken. Each host keeps its arrivals in a tree of least needs, so that the
 * first that fits is found without looking at all; a tree over the hosts finds the first of these.
 * n moves cost about n·log n. */
#include <stdlib.h>
#include <string.h>

#include "model/plan_internal.h"

#define NO_RANK SIZE_MAX
/* Above every offer, and far enough below INT64_MAX that a used load can be added. */
#define NEED_NONE (INT64_MAX / 2)

struct arrival {
    const char *name;
    int instance;
    int source, target;
    bool taken;
    size_t slot; /* leaf in its target's tree */
};

struct order {
    struct plan_walk *walk;
    struct arrival *arrivals; /* in name order: the index is the rank */
    size_t n, left;
    size_t *first;     /* by host: its leaves begin at leaf_rank[first[h]], first[h + 1] ends them */
    size_t *leaf_rank; /* rank of the arrival in a leaf */
    struct load *least; /* by host: a tree at 2 · first[h], root at 1, leaves at width … */
    size_t *best;      /* tree over the hosts: rank of the first possible arrival */
    size_t width;      /* leaves of best: a power of two */
    size_t *leave_first, *leave; /* by host: ranks that leave it, ascending */
    size_t *leave_at;            /* by host: none before it is still there */
    size_t rank_at;              /* the same over all */
};

static int compare_arrivals(const void *a, const void *b)
{
    return strcmp(((const struct arrival *)a)->name, ((const struct arrival *)b)->name);
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct load load_least(const struct load *a, const struct load *b)
{
    return (struct load){
        .cpu_millis = least_of(a->cpu_millis, b->cpu_millis),
        .mem_bytes = least_of(a->mem_bytes, b->mem_bytes),
        .cpu_request_millis = least_of(a->cpu_request_millis, b->cpu_request_millis),
        .mem_request_bytes = least_of(a->mem_request_bytes, b->mem_request_bytes),
        .pods = least_of(a->pods, b->pods),
    };
}

/* A tree of n leaves has nodes 1 … 2n - 1; any n works, but only a power of two keeps the leaves in
 * order under every node. Padding costs at most as much again. */
static size_t tree_width(size_t n)
{
    size_t width = 1;

    while (width < n)
        width *= 2;
    return width;
}

static void arrivals_collect(struct order *o, const int *placement)
{
    const struct model *model = o->walk->model;

    for (size_t i = 0; i < model->n_instances; i++) {
        const struct instance *it = &model->instances[i];
        if (placement[i] == it->host || placement[i] < 0)
            continue;
        o->arrivals[o->n++] = (struct arrival){
            .name = it->name, .instance = (int)i, .source = it->host, .target = placement[i]};
    }
    if (o->n > 1)
        qsort(o->arrivals, o->n, sizeof *o->arrivals, compare_arrivals);
    o->left = o->n;
}

/* Lists ranks by source, ascending. */
static void leavers_index(struct order *o)
{
    size_t n_hosts = o->walk->model->n_hosts;

    o->leave_first = mem_array(n_hosts + 2, sizeof *o->leave_first);
    o->leave = mem_array(o->n, sizeof *o->leave);
    for (size_t r = 0; r < o->n; r++)
        if (o->arrivals[r].source >= 0)
            o->leave_first[o->arrivals[r].source + 2]++;
    for (size_t h = 2; h <= n_hosts; h++)
        o->leave_first[h] += o->leave_first[h - 1];
    for (size_t r = 0; r < o->n; r++)
        if (o->arrivals[r].source >= 0)
            o->leave[o->leave_first[o->arrivals[r].source + 1]++] = r;
    o->leave_at = mem_dup(o->leave_first, n_hosts * sizeof *o->leave_at);
}

static void trees_build(struct order *o)
{
    const struct load none = {NEED_NONE, NEED_NONE, NEED_NONE, NEED_NONE, NEED_NONE};
    size_t n_hosts = o->walk->model->n_hosts, total = 0;
    AUTO_FREE size_t *count = mem_array(n_hosts, sizeof *count);

    for (size_t r = 0; r < o->n; r++)
        o->arrivals[r].slot = count[o->arrivals[r].target]++;
    o->first = mem_array(n_hosts + 1, sizeof *o->first);
    for (size_t h = 0; h < n_hosts; h++) {
        o->first[h] = total;
        total += count[h] ? tree_width(count[h]) : 0;
    }
    o->first[n_hosts] = total;
    o->leaf_rank = mem_array(total, sizeof *o->leaf_rank);
    o->least = mem_array(total * 2, sizeof *o->least);
    for (size_t i = 0; i < total * 2; i++)
        o->least[i] = none;
    for (size_t r = 0; r < o->n; r++) {
        const struct arrival *a = &o->arrivals[r];
        size_t base = o->first[a->target], width = o->first[a->target + 1] - base;
        o->leaf_rank[base + a->slot] = r;
        o->least[2 * base + width + a->slot] =
            instance_load(&o->walk->model->instances[a->instance]);
    }
    for (size_t h = 0; h < n_hosts; h++) {
        struct load *tree = &o->least[2 * o->first[h]];
        for (size_t i = o->first[h + 1] - o->first[h]; i-- > 1;)
            tree[i] = load_least(&tree[2 * i], &tree[2 * i + 1]);
    }
}

static struct move arrival_move(const struct order *o, size_t rank)
{
    const struct arrival *a = &o->arrivals[rank];

    return (struct move){.instance = a->instance,
                         .service = o->walk->model->instances[a->instance].service,
                         .source = a->source,
                         .target = a->target};
}

/* First arrival under the node that the host takes now; NO_RANK when none. Depth is log2 of the
 * arrivals. */
static size_t host_first(const struct order *o, size_t host, size_t node)
{
    size_t base = o->first[host], width = o->first[host + 1] - base;
    const struct load *need = &o->least[2 * base + node];

    if (!load_fits(&o->walk->offers[host], &o->walk->used[host], need, NULL))
        return NO_RANK;
    if (node >= width) {
        size_t rank = o->leaf_rank[base + node - width];
        struct move move = arrival_move(o, rank);
        int refuser;
        return plan_walk_problem(o->walk, &move, &refuser) ? NO_RANK : rank;
    }
    size_t rank = host_first(o, host, 2 * node);
    return rank != NO_RANK ? rank : host_first(o, host, 2 * node + 1);
}

static void host_refresh(struct order *o, size_t host)
{
    size_t i = o->width + host;
    bool any = o->first[host + 1] > o->first[host];

    o->best[i] = any ? host_first(o, host, 1) : NO_RANK;
    for (i /= 2; i >= 1; i /= 2)
        o->best[i] = o->best[2 * i] < o->best[2 * i + 1] ? o->best[2 * i] : o->best[2 * i + 1];
}

static void hosts_refresh(struct order *o)
{
    for (size_t h = 0; h < o->walk->model->n_hosts; h++)
        host_refresh(o, h);
}

static void arrival_take(struct order *o, struct plan *plan, size_t rank)
{
    struct arrival *a = &o->arrivals[rank];
    size_t base = o->first[a->target], width = o->first[a->target + 1] - base;
    struct load *tree = &o->least[2 * base];
    struct move *move = ARRAY_PUSH(plan->moves, plan->n_moves);

    *move = arrival_move(o, rank);
    move->seq = (int)plan->n_moves;
    plan_walk_apply(o->walk, move);
    a->taken = true;
    o->left--;
    tree[width + a->slot] = (struct load){NEED_NONE, NEED_NONE, NEED_NONE, NEED_NONE, NEED_NONE};
    for (size_t i = (width + a->slot) / 2; i >= 1; i /= 2)
        tree[i] = load_least(&tree[2 * i], &tree[2 * i + 1]);
    host_refresh(o, (size_t)a->target);
    if (a->source >= 0)
        host_refresh(o, (size_t)a->source);
}

/* Takes what is possible until nothing is. */
static void order_run(struct order *o, struct plan *plan)
{
    while (o->left > 0 && o->best[1] != NO_RANK) {
        size_t rank = o->best[1];
        struct move move = arrival_move(o, rank);
        int refuser;
        /* A move elsewhere in the zone may have taken its place under a spread rule. */
        if (plan_walk_problem(o->walk, &move, &refuser))
            host_refresh(o, (size_t)move.target);
        else
            arrival_take(o, plan, rank);
    }
}

/* First that still has to leave the host; NO_RANK when none. */
static size_t host_leaver(struct order *o, int host)
{
    size_t *at = &o->leave_at[host], end = o->leave_first[host + 1];

    while (*at < end && o->arrivals[o->leave[*at]].taken)
        (*at)++;
    return *at < end ? o->leave[*at] : NO_RANK;
}

/* Nothing fits: from the first in name order, follows who must leave for whom until that closes a
 * ring, and takes the ring. */
static void order_break(struct order *o, struct plan *plan, size_t *place)
{
    AUTO_FREE size_t *path = NULL;
    AUTO_FREE int *seqs = NULL;
    size_t n = 0, n_seqs = 0;

    while (o->arrivals[o->rank_at].taken)
        o->rank_at++;
    size_t rank = o->rank_at;
    while (rank != NO_RANK && !place[rank]) {
        *ARRAY_PUSH(path, n) = rank;
        place[rank] = n;
        rank = host_leaver(o, o->arrivals[rank].target);
    }
    for (size_t i = rank == NO_RANK ? n - 1 : place[rank] - 1; i < n; i++) {
        arrival_take(o, plan, path[i]);
        *ARRAY_PUSH(seqs, n_seqs) = (int)plan->n_moves;
    }
    for (size_t i = 0; i < n; i++)
        place[path[i]] = 0;
    plan_add_cycle(plan, seqs, n_seqs);
}

static void order_wipe(struct order *o)
{
    free(o->arrivals);
    free(o->first);
    free(o->leaf_rank);
    free(o->least);
    free(o->best);
    free(o->leave_first);
    free(o->leave);
    free(o->leave_at);
}

int plan_order_instances(struct plan *plan, const struct model *model, const int *placement,
                         struct err *err)
{
    AUTO(plan_walk) struct plan_walk *walk = plan_walk_new(model);
    struct order o = {.walk = walk};

    for (size_t i = 0; i < model->n_instances; i++)
        if (placement[i] < 0 && model->instances[i].host >= 0)
            return err_set(err, ERR_INFEASIBLE, "instance %s would lose its host",
                           model->instances[i].name);
    o.arrivals = mem_array(model->n_instances, sizeof *o.arrivals);
    arrivals_collect(&o, placement);
    leavers_index(&o);
    trees_build(&o);
    o.width = tree_width(model->n_hosts);
    o.best = mem_array(o.width * 2, sizeof *o.best);
    for (size_t i = 0; i < o.width * 2; i++)
        o.best[i] = NO_RANK;
    AUTO_FREE size_t *place = mem_array(o.n, sizeof *place);
    hosts_refresh(&o);
    while (order_run(&o, plan), o.left > 0) {
        /* A zone rule may have been freed from another host. */
        if (model->n_rules > 0)
            hosts_refresh(&o);
        if (o.best[1] == NO_RANK)
            order_break(&o, plan, place);
    }
    order_wipe(&o);
    return 0;
}
