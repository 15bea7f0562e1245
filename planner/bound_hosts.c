/* bound_hosts.c - lower bounds of the hosts of any plan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/rules.h"
#include "planner/bound.h"

__extension__ typedef __int128 wide; /* sums of 10^6 numbers of 10^15 leave int64 */

/* Above that many instances no sets of conflicting ones are looked for: pairs cost their product. */
#define MOST_CLIQUE 20000
/* Mixtures of two resources that are tried, evenly from one to the other. */
#define MIXES 6

struct packed {
    const struct model *model;
    size_t n; /* instances that take room */
    int *who; /* instance of each */
    int64_t (*need)[LOAD_DIMS];
    int64_t (*room)[LOAD_DIMS]; /* of hosts */
    int64_t (*fixed)[LOAD_DIMS]; /* of what cannot leave */
    bool *used;                  /* by host: something cannot leave */
    bool *stays;                 /* by instance */
    int64_t most[LOAD_DIMS];     /* largest room */
};

static void packed_init(struct packed *p, const struct model *model, bool move_stateful,
                        bool place_all)
{
    *p = (struct packed){.model = model};
    p->who = mem_array(model->n_instances, sizeof *p->who);
    p->need = mem_array(model->n_instances, sizeof *p->need);
    p->stays = mem_array(model->n_instances, sizeof *p->stays);
    p->room = mem_array(model->n_hosts, sizeof *p->room);
    p->fixed = mem_array(model->n_hosts, sizeof *p->fixed);
    p->used = mem_array(model->n_hosts, sizeof *p->used);
    host_rooms(model, p->room);
    for (size_t i = 0; i < model->n_instances; i++) {
        const struct instance *one = &model->instances[i];
        struct load load = instance_load(one);
        if (one->host < 0 && !place_all)
            continue;
        load_dims(&load, p->need[p->n]);
        p->stays[i] = one->host >= 0 && instance_fixed_why(model, (int)i, move_stateful);
        for (int d = 0; d < LOAD_DIMS && p->stays[i]; d++)
            p->fixed[one->host][d] += p->need[p->n][d];
        if (p->stays[i])
            p->used[one->host] = true;
        p->who[p->n++] = (int)i;
    }
    for (size_t h = 0; h < model->n_hosts; h++)
        for (int d = 0; d < LOAD_DIMS; d++)
            if (p->room[h][d] > p->most[d])
                p->most[d] = p->room[h][d];
}

static void packed_wipe(struct packed *p)
{
    free(p->who);
    free(p->need);
    free(p->stays);
    free(p->room);
    free(p->fixed);
    free(p->used);
}

/* ---- sums ---- */

static int ascending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

/* Martello and Toth's L2: for a threshold k, items above cap − k are alone, those above cap / 2 have
 * a host each, those of k and more must fill the rest. */
static int64_t bound_l2(int64_t *need, size_t n, int64_t cap)
{
    int64_t best = 0;
    if (cap <= 0 || n == 0)
        return 0;
    qsort(need, n, sizeof *need, ascending);
    size_t half = 0; /* first item above cap / 2 */
    while (half < n && need[half] <= cap / 2)
        half++;
    wide small = 0, large = 0; /* sums of items in [k, cap/2], (cap/2, cap − k] */
    size_t top = n;                /* first item above cap − k */
    size_t next = half;
    for (size_t i = half + 1; i-- > 0;) { /* k = need[i], and k = cap / 2 + 1 for i = half */
        int64_t k = i < half ? need[i] : cap / 2 + 1;
        if (i < half)
            small += need[i];
        while (next < n && need[next] <= cap - k)
            large += need[next++];
        top = next;
        wide rest = small - ((wide)(top - half) * cap - large);
        int64_t hosts = (int64_t)(n - half);
        if (rest > 0)
            hosts += (int64_t)((rest + cap - 1) / cap);
        if (hosts > best)
            best = hosts;
    }
    return best;
}

static int64_t best_l2(const struct packed *p)
{
    AUTO_FREE int64_t *need = mem_array(p->n, sizeof *need);
    int64_t best = 0;
    for (int d = 0; d < LOAD_DIMS; d++) {
        for (size_t k = 0; k < p->n; k++)
            need[k] = p->need[k][d];
        int64_t hosts = bound_l2(need, p->n, p->most[d]);
        best = hosts > best ? hosts : best;
    }
    return best;
}

static int descending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? 1 : a > b ? -1 : 0;
}

/* The fewest hosts whose rooms, with those of hosts that are in use anyway, add up to what all need:
 * in one resource, or `part` of it and the rest of another, each in shares of the largest room. */
static int64_t bound_sum(const struct packed *p, int a, int b, double part)
{
    size_t n_hosts = p->model->n_hosts, n = 0;
    AUTO_FREE double *rooms = mem_array(n_hosts, sizeof *rooms);
    double of_a = p->most[a] > 0 ? part / (double)p->most[a] : 0;
    double of_b = p->most[b] > 0 ? (1 - part) / (double)p->most[b] : 0, total = 0;
    wide sum_a = 0, sum_b = 0;
    int64_t hosts = 0;
    for (size_t k = 0; k < p->n; k++) {
        sum_a += p->need[k][a];
        sum_b += p->need[k][b];
    }
    total = (double)sum_a * of_a + (double)sum_b * of_b;
    total -= 1e-9 * total; /* roundings; a host's worth is far more */
    for (size_t h = 0; h < n_hosts; h++) {
        double room = fmax(0, (double)p->room[h][a]) * of_a + fmax(0, (double)p->room[h][b]) * of_b;
        if (p->used[h]) {
            total -= room;
            hosts++;
        } else {
            rooms[n++] = room;
        }
    }
    if (n > 0)
        qsort(rooms, n, sizeof *rooms, descending);
    for (size_t k = 0; k < n && total > 0 && rooms[k] > 0; k++, hosts++)
        total -= rooms[k];
    return hosts;
}

static int64_t best_sum(const struct packed *p)
{
    int64_t best = 0;
    for (int a = 0; a < LOAD_DIMS; a++)
        for (int b = a; b < LOAD_DIMS; b++)
            for (int k = 1; k <= (a == b ? 1 : MIXES - 1); k++) {
                int64_t hosts = bound_sum(p, a, b, a == b ? 1 : (double)k / MIXES);
                best = hosts > best ? hosts : best;
            }
    return best;
}

/* ---- rules and conflicts ---- */

int64_t rule_most(const struct model *model, const struct rule *rule, const int *replicas)
{
    if (rule->kind != RULE_APART && rule->kind != RULE_SPREAD)
        return -1;
    int64_t most = rule->kind == RULE_APART
                       ? rule->max_per_host
                       : rule_spread_max(rule, replicas[rule->services[0]]);
    AUTO_FREE int64_t *there = mem_array(model->n_hosts, sizeof *there);
    AUTO_FREE int *zones = model_zones(model);
    for (size_t i = 0; i < model->n_instances; i++) {
        int host = model->instances[i].host;
        for (size_t k = 0; k < rule->n_services && host >= 0; k++)
            if (rule->services[k] == model->instances[i].service) {
                there[rule->kind == RULE_SPREAD && rule->per_zone ? zones[host] : host]++;
                break;
            }
    }
    for (size_t h = 0; h < model->n_hosts; h++)
        if (there[h] > most)
            return -1;
    return most;
}

/* Marks of services: bit r where rule r keeps all of them one to a host. Also what a single rule
 * asks for: its services over what may share a host. */
static int64_t rules_bound(const struct packed *p, uint64_t *apart)
{
    const struct model *model = p->model;
    AUTO_FREE int *replicas = model_replicas(model);
    int64_t best = 0;
    for (size_t r = 0; r < model->n_rules; r++) {
        const struct rule *rule = &model->rules[r];
        int64_t most = rule_most(model, rule, replicas), n = 0;
        if (most < 1)
            continue;
        for (size_t k = 0; k < p->n; k++)
            for (size_t s = 0; s < rule->n_services; s++)
                if (rule->services[s] == model->instances[p->who[k]].service) {
                    n++;
                    break;
                }
        best = (n + most - 1) / most > best ? (n + most - 1) / most : best;
        for (size_t s = 0; s < rule->n_services && most == 1 && r < 64; s++)
            apart[rule->services[s]] |= UINT64_C(1) << r;
    }
    return best;
}

static bool conflict(const struct packed *p, const uint64_t *apart, size_t i, size_t j)
{
    if (apart[p->model->instances[p->who[i]].service] &
        apart[p->model->instances[p->who[j]].service])
        return true;
    for (int d = 0; d < LOAD_DIMS; d++)
        if (p->need[i][d] > p->most[d] - p->need[j][d])
            return true;
    return false;
}

/* True when the host, beside what cannot leave it, has room for one of the set. */
static bool host_takes(const struct packed *p, size_t host, const size_t *set, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const struct instance *one = &p->model->instances[p->who[set[k]]];
        bool fits = !p->stays[p->who[set[k]]];
        for (int d = 0; d < LOAD_DIMS && fits; d++)
            fits = p->fixed[host][d] + p->need[set[k]][d] <= p->room[host][d];
        if (fits || (p->stays[p->who[set[k]]] && one->host == (int)host))
            return true;
    }
    return false;
}

struct sized {
    double size;
    size_t item;
};

static int by_size(const void *left, const void *right)
{
    const struct sized *x = left, *y = right;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* Instances of which no two share a host, largest first: each has one, and hosts in use that none of
 * them fits on count beside. */
static int64_t clique_bound(const struct packed *p, const uint64_t *apart)
{
    AUTO_FREE struct sized *order = mem_array(p->n, sizeof *order);
    AUTO_FREE size_t *set = mem_array(p->n, sizeof *set);
    size_t n = 0;
    for (size_t k = 0; k < p->n; k++) {
        order[k].item = k;
        for (int d = 0; d < LOAD_DIMS; d++)
            if (p->most[d] > 0)
                order[k].size = fmax(order[k].size, (double)p->need[k][d] / (double)p->most[d]);
        if (order[k].size <= 0.5 && apart[p->model->instances[p->who[k]].service])
            order[k].size += 0.25; /* what rules keep apart before what size might */
    }
    qsort(order, p->n, sizeof *order, by_size);
    for (size_t k = 0; k < p->n; k++) {
        bool fits = true;
        for (size_t m = 0; m < n && fits; m++)
            fits = conflict(p, apart, order[k].item, set[m]);
        if (fits)
            set[n++] = order[k].item;
    }
    int64_t hosts = (int64_t)n;
    for (size_t h = 0; h < p->model->n_hosts; h++)
        hosts += p->used[h] && !host_takes(p, h, set, n);
    return hosts;
}

int64_t bound_hosts(const struct model *model, bool move_stateful, bool place_all)
{
    struct packed p;
    packed_init(&p, model, move_stateful, place_all);
    int64_t best = 0;
    if (p.n > 0) {
        AUTO_FREE uint64_t *apart = mem_array(model->n_services, sizeof *apart);
        int64_t found[] = {1, best_sum(&p), best_l2(&p), rules_bound(&p, apart),
                           p.n <= MOST_CLIQUE ? clique_bound(&p, apart) : 0};
        for (size_t k = 0; k < ARRAY_LEN(found); k++)
            best = found[k] > best ? found[k] : best;
    }
    packed_wipe(&p);
    return best;
}
