/* plan_service.c - moves of whole services (design.md 7): grouping, who of the replicas goes where,
 * and their order. */
#include <stdlib.h>
#include <string.h>

#include "model/plan_internal.h"

struct named {
    const char *name;
    int index;
};

static int compare_named(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int compare_counts(const void *a, const void *b)
{
    const struct host_count *x = a, *y = b;

    return (x->host > y->host) - (x->host < y->host);
}

/* Members of the service in name order: their places among the members, n long; caller frees. */
static int *members_by_name(const struct plan_walk *walk, int service, int n)
{
    int first = walk->members.first[service];
    AUTO_FREE struct named *names = mem_array((size_t)n, sizeof *names);
    int *order = mem_array((size_t)n, sizeof *order);

    for (int i = 0; i < n; i++)
        names[i] = (struct named){walk->model->instances[walk->members.of[first + i]].name, i};
    if (n > 1)
        qsort(names, (size_t)n, sizeof *names, compare_named);
    for (int i = 0; i < n; i++)
        order[i] = names[i].index;
    return order;
}

bool service_assign(const struct plan_walk *walk, const struct move *move, int *out)
{
    int first = walk->members.first[move->service];
    int n = walk->members.first[move->service + 1] - first;
    size_t n_left = move->n_targets, at = 0;
    AUTO_FREE struct host_count *left = mem_array(n_left, sizeof *left);
    AUTO_FREE int *order = members_by_name(walk, move->service, n);
    int64_t sum = 0;

    for (size_t t = 0; t < n_left; t++) {
        left[t] = move->targets[t];
        sum += left[t].count;
    }
    if (sum != n)
        return false;
    for (int i = 0; i < n; i++) {
        struct host_count here = {walk->placement[walk->members.of[first + order[i]]], 0};
        struct host_count *stay =
            n_left ? bsearch(&here, left, n_left, sizeof *left, compare_counts) : NULL;
        out[order[i]] = -1;
        if (stay && stay->count > 0) {
            out[order[i]] = here.host;
            stay->count--;
        }
    }
    for (int i = 0; i < n; i++) {
        if (out[order[i]] >= 0)
            continue;
        while (at < n_left && left[at].count == 0)
            at++;
        if (at == n_left)
            return false;
        out[order[i]] = left[at].host;
        left[at].count--;
    }
    return true;
}

/* Counts per host of a service under a placement, in host order. */
static struct host_count *service_counts(const struct members *members, int service,
                                         const int *placement, size_t *n)
{
    struct host_count *counts = NULL;
    size_t kept = 0;

    *n = 0;
    for (int m = members->first[service]; m < members->first[service + 1]; m++) {
        int host = placement[members->of[m]];
        if (host >= 0)
            *ARRAY_PUSH(counts, *n) = (struct host_count){host, 1};
    }
    if (*n == 0)
        return counts;
    qsort(counts, *n, sizeof *counts, compare_counts);
    for (size_t i = 1; i < *n; i++) {
        if (counts[i].host == counts[kept].host)
            counts[kept].count++;
        else
            counts[++kept] = counts[i];
    }
    *n = kept + 1;
    return counts;
}

static bool counts_equal(const struct move *move)
{
    if (move->n_sources != move->n_targets)
        return false;
    for (size_t i = 0; i < move->n_sources; i++)
        if (move->sources[i].host != move->targets[i].host ||
            move->sources[i].count != move->targets[i].count)
            return false;
    return true;
}

/* The service's move; false when its counts do not change. */
static bool service_move(const struct plan_walk *walk, int service, const int *placement,
                         struct move *move)
{
    *move = (struct move){.service = service, .instance = -1, .source = -1, .target = -1};
    move->sources =
        service_counts(&walk->members, service, walk->placement, &move->n_sources);
    move->targets = service_counts(&walk->members, service, placement, &move->n_targets);
    if (!counts_equal(move))
        return true;
    move_wipe(move);
    return false;
}

static int targets_even(const struct plan_walk *walk, const struct move *move, struct err *err)
{
    const char *name = walk->model->services[move->service].name;
    int64_t n = walk->members.first[move->service + 1] - walk->members.first[move->service];
    int64_t least = INT64_MAX, most = 0;

    for (size_t i = 0; i < move->n_targets; i++) {
        least = move->targets[i].count < least ? move->targets[i].count : least;
        most = move->targets[i].count > most ? move->targets[i].count : most;
        n -= move->targets[i].count;
    }
    if (n != 0)
        return err_set(err, ERR_INFEASIBLE, "service %s would move with replicas left unplaced",
                       name);
    if (most - least > 1)
        return err_set(err, ERR_INFEASIBLE, "service %s would be spread unevenly over its hosts",
                       name);
    return 0;
}

/* The moves still to be put in order, in name order. */
struct queue {
    struct plan_walk *walk;
    struct move *moves; /* a taken one has service -1 */
    size_t n, left;
    size_t *waiting; /* by host: first move that waits for it, n: none */
    size_t *next;    /* by move */
    size_t *ready;   /* heap of indices, smallest first */
    size_t n_ready;
    int *refuser; /* by move */
};

static void ready_push(struct queue *q, size_t move)
{
    size_t i = q->n_ready++;

    for (; i > 0 && q->ready[(i - 1) / 2] > move; i = (i - 1) / 2)
        q->ready[i] = q->ready[(i - 1) / 2];
    q->ready[i] = move;
}

static size_t ready_pop(struct queue *q)
{
    size_t top = q->ready[0], last = q->ready[--q->n_ready], i = 0;

    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= q->n_ready)
            break;
        child += child + 1 < q->n_ready && q->ready[child + 1] < q->ready[child];
        if (q->ready[child] >= last)
            break;
        q->ready[i] = q->ready[child];
        i = child;
    }
    q->ready[i] = last;
    return top;
}

static void wake_host(struct queue *q, int host)
{
    while (q->waiting[host] < q->n) {
        size_t move = q->waiting[host];
        q->waiting[host] = q->next[move];
        ready_push(q, move);
    }
}

static void queue_take(struct queue *q, struct plan *plan, size_t k)
{
    struct move *move = ARRAY_PUSH(plan->moves, plan->n_moves);

    *move = q->moves[k];
    move->seq = (int)plan->n_moves;
    q->moves[k] = (struct move){.service = -1};
    q->left--;
    plan_walk_apply(q->walk, move);
    for (size_t i = 0; i < move->n_sources; i++)
        wake_host(q, move->sources[i].host);
}

/* Takes all that fit, in name order; what does not waits for the host that refused it. */
static void queue_run(struct queue *q, struct plan *plan)
{
    while (q->n_ready > 0) {
        size_t k = ready_pop(q);
        int host;
        if (q->moves[k].service < 0)
            continue;
        if (!plan_walk_problem(q->walk, &q->moves[k], &host)) {
            queue_take(q, plan, k);
            continue;
        }
        q->refuser[k] = host;
        q->next[k] = q->waiting[host];
        q->waiting[host] = k;
    }
}

/* First waiting move that has replicas on the host to take away; n when none has. */
static size_t queue_leaver(const struct queue *q, int host)
{
    for (size_t k = 0; k < q->n; k++)
        for (size_t i = 0; q->moves[k].service >= 0 && i < q->moves[k].n_sources; i++)
            if (q->moves[k].sources[i].host == host)
                return k;
    return q->n;
}

/* Nothing fits: follows who waits for whom to a ring, and takes that. */
static void queue_break(struct queue *q, struct plan *plan)
{
    AUTO_FREE size_t *path = mem_array(q->n + 1, sizeof *path);
    AUTO_FREE size_t *place = mem_array(q->n + 1, sizeof *place); /* in the path, from 1 */
    AUTO_FREE int *seqs = mem_array(q->n + 1, sizeof *seqs);
    size_t n = 0, k = 0, n_seqs = 0;

    while (q->moves[k].service < 0)
        k++;
    while (k < q->n && !place[k]) {
        path[n++] = k;
        place[k] = n;
        k = queue_leaver(q, q->refuser[k]);
    }
    size_t from = k < q->n ? place[k] - 1 : n - 1;
    for (size_t i = from; i < n; i++) {
        queue_take(q, plan, path[i]);
        seqs[n_seqs++] = (int)plan->n_moves;
    }
    plan_add_cycle(plan, seqs, n_seqs);
}

static void queue_order(struct queue *q, struct plan *plan)
{
    while (q->left > 0) {
        /* All that wait are looked at once more: a zone rule may be freed from another host. */
        size_t before = q->left;
        for (size_t h = 0; h < q->walk->model->n_hosts; h++)
            q->waiting[h] = q->n;
        q->n_ready = 0;
        for (size_t k = 0; k < q->n; k++)
            if (q->moves[k].service >= 0)
                ready_push(q, k);
        queue_run(q, plan);
        if (q->left == before)
            queue_break(q, plan);
    }
}

int plan_order_services(struct plan *plan, const struct model *model, const int *placement,
                        struct err *err)
{
    AUTO(plan_walk) struct plan_walk *walk = plan_walk_new(model);
    AUTO_FREE struct named *names = mem_array(model->n_services, sizeof *names);
    AUTO_FREE struct move *moves = mem_array(model->n_services, sizeof *moves);
    AUTO_FREE size_t *waiting = mem_array(model->n_hosts, sizeof *waiting);
    struct queue q = {.walk = walk, .moves = moves, .waiting = waiting};
    int rc = 0;

    for (size_t s = 0; s < model->n_services; s++)
        names[s] = (struct named){model->services[s].name, (int)s};
    if (model->n_services > 1)
        qsort(names, model->n_services, sizeof *names, compare_named);
    for (size_t s = 0; s < model->n_services && rc == 0; s++)
        if (service_move(walk, names[s].index, placement, &moves[q.n]))
            rc = targets_even(walk, &moves[q.n++], err);
    if (rc < 0) {
        for (size_t k = 0; k < q.n; k++)
            move_wipe(&moves[k]);
        return -1;
    }
    AUTO_FREE size_t *next = mem_array(q.n, sizeof *next);
    AUTO_FREE size_t *ready = mem_array(q.n * 2, sizeof *ready);
    AUTO_FREE int *refuser = mem_array(q.n, sizeof *refuser);
    q.next = next;
    q.ready = ready;
    q.refuser = refuser;
    q.left = q.n;
    queue_order(&q, plan);
    return 0;
}
