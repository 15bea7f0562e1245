/* pull.c - one step of an instance-wise search: an edge, sometimes a path of edges, is drawn; a
 * host and a share; replicas of all its groups come to that host up to the share; residents that
 * are not of them leave, cheapest first, each to where it fits and gains most. Now and then two
 * hosts exchange what has partners, which is how clusters come to hosts of their size. */
#include "planner/pull.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Replicas of which the one is taken that loses least; of 200 the best of six does as well. */
#define SAMPLE 6
/* Hosts looked at for one that leaves. */
#define HOSTS 96
/* Temperatures, in the grain of the space; from 0.3 to 10 at the start makes no difference. */
#define HOT 3
#define COLD 0.01
/* Of 1000 steps so many exchange two hosts. */
#define EXCHANGES 30
/* With a budget of moves: so many of 1000 send a group home. */
#define HOMEWARD 120

static int count_on(const struct place *place, int group, int host)
{
    const struct space *space = place->space;
    if (space->slot[group] < 0)
        return place->at[space->only[group]] == host;
    return place->counts[(size_t)space->slot[group] * (size_t)space->n_hosts + (size_t)host];
}

static double share_on(const struct place *place, int group, int host)
{
    return (double)count_on(place, group, host) / place->space->size[group];
}

void puller_init(struct puller *p, struct place *place, struct rng *rng)
{
    const struct space *space = place->space;
    size_t halves = space->n_groups ? space->first_link[space->n_groups] : 0;
    *p = (struct puller){.place = place, .rng = rng};
    p->stamp = mem_array((size_t)space->n, sizeof *p->stamp);
    p->edges = mem_array(halves / 2, sizeof *p->edges);
    for (int g = 0; g < space->n_groups; g++)
        for (size_t l = space->first_link[g]; l < space->first_link[g + 1]; l++) {
            const struct link *link = &space->links[l];
            if (link->group <= g)
                continue;
            p->edges[p->n_edges++] = (struct pull_edge){g, link->group, link->degree, p->weights};
            p->weights += sqrt(link->degree);
        }
}

void puller_wipe(struct puller *p)
{
    free(p->edges);
    free(p->stamp);
    free(p->undo);
}

static void undo_push(struct puller *p, int instance)
{
    if (p->n_undo == p->cap_undo) {
        p->cap_undo = p->cap_undo ? 2 * p->cap_undo : 256;
        p->undo = mem_resize(p->undo, p->cap_undo, sizeof *p->undo);
    }
    p->undo[p->n_undo++] = (struct pull_undo){instance, p->place->at[instance]};
}

void puller_move(struct puller *p, int instance, int host)
{
    if (p->place->at[instance] == host)
        return;
    undo_push(p, instance);
    place_move(p->place, instance, host);
    p->cost++;
}

void puller_back(struct puller *p, size_t from)
{
    while (p->n_undo > from) {
        p->n_undo--;
        place_move(p->place, p->undo[p->n_undo].instance, p->undo[p->n_undo].from);
    }
}

/* Half of them evenly, half by the root of the degree. */
static const struct pull_edge *edge_draw(struct puller *p)
{
    size_t low = 0, high = p->n_edges;
    if (rng_below(p->rng, 2))
        return &p->edges[rng_below(p->rng, (uint32_t)p->n_edges)];
    double at = rng_real(p->rng) * p->weights;
    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if (p->edges[mid].before <= at)
            low = mid;
        else
            high = mid;
    }
    return &p->edges[low];
}

static double edge_share(const struct place *place, const struct pull_edge *edge)
{
    const struct space *space = place->space;
    bool swap = space->size[edge->a] > space->size[edge->b];
    int a = swap ? edge->b : edge->a, b = swap ? edge->a : edge->b;
    double share = 0;
    for (int m = space->first_member[a]; m < space->first_member[a + 1]; m++) {
        int host = place->at[space->members[m]];
        if (host < 0)
            continue;
        /* each replica of a on the host brings its part */
        double u = share_on(place, a, host), v = share_on(place, b, host);
        share += (u < v ? u : v) / count_on(place, a, host);
    }
    return share;
}

/* One more of the neighbours, the heaviest of three. */
static int cluster_grow(struct puller *p, int *groups, int n)
{
    const struct space *space = p->place->space;
    int g = groups[rng_below(p->rng, (uint32_t)n)];
    size_t first = space->first_link[g], links = space->first_link[g + 1] - first;
    const struct link *best = NULL;
    for (int k = 0; k < 3; k++) {
        const struct link *link = &space->links[first + rng_below(p->rng, (uint32_t)links)];
        bool known = false;
        for (int j = 0; j < n; j++)
            known |= groups[j] == link->group;
        if (!known && (!best || link->degree > best->degree))
            best = link;
    }
    if (best)
        groups[n++] = best->group;
    return n;
}

int puller_cluster(struct puller *p, int groups[PULL_GROUPS])
{
    const struct pull_edge *edge = edge_draw(p);
    int n = 2;
    for (int k = 0; k < 3 && edge_share(p->place, edge) > 1 - 1e-9; k++)
        edge = edge_draw(p);
    groups[0] = edge->a;
    groups[1] = edge->b;
    while (n < PULL_GROUPS && rng_below(p->rng, 2) == 0) {
        int more = cluster_grow(p, groups, n);
        if (more == n)
            break;
        n = more;
    }
    return n;
}

static int any_member(struct puller *p, int group)
{
    const struct space *space = p->place->space;
    int first = space->first_member[group], n = space->first_member[group + 1] - first;
    return space->members[first + (int)rng_below(p->rng, (uint32_t)n)];
}

int puller_host(struct puller *p, const int *groups)
{
    int g = groups[rng_below(p->rng, 2)];
    if (rng_below(p->rng, 8) == 0)
        return (int)rng_below(p->rng, (uint32_t)p->place->space->n_hosts);
    return p->place->at[any_member(p, g)];
}

static bool can_host(const struct space *space, int instance, int host)
{
    return space->open[host] || space->start[instance] == host;
}

/* The replica, of some, that loses least by coming to the host; -1 when none can. */
static int replica_pick(struct puller *p, int group, int host)
{
    const struct place *place = p->place;
    const struct space *space = place->space;
    int first = space->first_member[group], size = space->first_member[group + 1] - first;
    int from = (int)rng_below(p->rng, (uint32_t)size), best = -1;
    int stride = size <= SAMPLE ? 1 : 1 + (int)rng_below(p->rng, (uint32_t)size / SAMPLE);
    double best_gain = 0;
    for (int k = 0; k < size && (k < SAMPLE || best < 0); k++) {
        int i = space->members[first + (from + (best < 0 ? k : k * stride)) % size];
        if (place->at[i] == host || space->fixed[i] || !can_host(space, i, host))
            continue;
        double gain = place_gain(place, i, host);
        p->cost++;
        if (best < 0 || gain > best_gain) {
            best = i;
            best_gain = gain;
        }
    }
    return best;
}

/* Brings replicas of the group to the host until `want` are there. */
static bool group_pull(struct puller *p, int group, int host, int want)
{
    struct place *place = p->place;
    const struct space *space = place->space;
    for (int m = space->first_member[group]; m < space->first_member[group + 1]; m++)
        if (place->at[space->members[m]] == host)
            p->stamp[space->members[m]] = p->now;
    for (int have = count_on(place, group, host); have < want; have++) {
        int i = replica_pick(p, group, host);
        if (i < 0)
            return false;
        puller_move(p, i, host);
        p->stamp[i] = p->now;
    }
    return true;
}

bool host_full(const struct place *place, int host)
{
    const struct space *space = place->space;
    for (int d = 0; d < space->dims; d++)
        if (place->used[host * space->dims + d] > space->cap[host * space->dims + d])
            return true;
    return false;
}

/* What the instance takes of the dimensions that are over on the host, in mean hosts. */
static double relief(const struct place *place, int instance, int host)
{
    const struct space *space = place->space;
    double sum = 0;
    for (int d = 0; d < space->dims; d++)
        if (place->used[host * space->dims + d] > space->cap[host * space->dims + d])
            sum += (double)space->need[instance * space->dims + d] * space->scale[d];
    return sum;
}

/* How full the host is in its fullest dimension. */
static double fill(const struct place *place, int host)
{
    const struct space *space = place->space;
    double most = 0;
    for (int d = 0; d < space->dims; d++) {
        double cap = (double)space->cap[host * space->dims + d];
        double used = (double)place->used[host * space->dims + d];
        if (cap > 0 && used / cap > most)
            most = used / cap;
    }
    return most;
}

/* Where the instance fits and gains most; among equals the fullest. */
static int refuge(struct puller *p, int instance, int not )
{
    const struct place *place = p->place;
    const struct space *space = place->space;
    int best = -1, n = space->n_hosts, from = (int)rng_below(p->rng, (uint32_t)n);
    double best_gain = 0, best_fill = 0;
    for (int k = 0; k < n && k < HOSTS; k++) {
        int h = (from + k) % n;
        if (h == not || !place_allows(place, instance, h))
            continue;
        double gain = place_gain(place, instance, h), full = fill(place, h);
        if (place->n_residents[h] == 0)
            gain -= p->price_host;
        if (space->start[instance] == h)
            gain += p->price_move;
        p->cost++;
        if (best < 0 || gain > best_gain + 1e-12 ||
            (gain > best_gain - 1e-12 && full > best_fill)) {
            best = h;
            best_gain = gain;
            best_fill = full;
        }
    }
    return best;
}

/* Who of the host's residents loses least for the room it makes; -1: none may leave. */
static int leaver(struct puller *p, int host)
{
    const struct place *place = p->place;
    const struct space *space = place->space;
    int best = -1;
    double best_loss = INFINITY;
    for (int k = 0; k < place->n_residents[host]; k++) {
        int i = place->residents[host][k];
        double part = relief(place, i, host);
        if (space->fixed[i] || p->stamp[i] == p->now || part <= 0)
            continue;
        /* Among equals those go that are not at home. */
        double noise = 0.02 * space->grain * (rng_real(p->rng) + (space->start[i] == host));
        double loss = (noise - place_gain(place, i, -1)) / part;
        p->cost++;
        if (loss < best_loss) {
            best_loss = loss;
            best = i;
        }
    }
    return best;
}

static bool host_relieve(struct puller *p, int host)
{
    while (host_full(p->place, host)) {
        int i = leaver(p, host), to = i >= 0 ? refuge(p, i, host) : -1;
        if (to < 0)
            return false;
        puller_move(p, i, to);
    }
    return true;
}

/* The share that the cluster is to have on the host: what the better of two partners has there or
 * a replica more, any larger one, or all. */
static double share_draw(struct puller *p, const int *groups, int host)
{
    const struct place *place = p->place;
    int small =
        place->space->size[groups[0]] < place->space->size[groups[1]] ? groups[0] : groups[1];
    int size = place->space->size[small], have = count_on(place, small, host);
    double u = share_on(place, groups[0], host), v = share_on(place, groups[1], host);
    double least = fmin(u, v), most = fmax(u, v);
    switch (rng_below(p->rng, 4)) {
    case 0:
        return 1;
    case 1:
        return have == size ? 1 : (have + 1.0 + rng_below(p->rng, (uint32_t)(size - have))) / size;
    default:
        return fmin(1, most > least ? most : most + 1.0 / size);
    }
}

static bool step_pull(struct puller *p)
{
    int groups[PULL_GROUPS], n = puller_cluster(p, groups), host = puller_host(p, groups);
    if (host < 0)
        return false;
    double share = share_draw(p, groups, host);
    p->now++;
    for (int k = 0; k < n; k++) {
        int want = (int)ceil(share * p->place->space->size[groups[k]] - 1e-9);
        if (!group_pull(p, groups[k], host, want))
            return false;
    }
    return p->n_undo > 0 && host_relieve(p, host);
}

static void host_list(struct puller *p, int host)
{
    const struct place *place = p->place;
    const struct space *space = place->space;
    for (int k = 0; k < place->n_residents[host]; k++) {
        int i = place->residents[host][k];
        if (!space->fixed[i] && (space->groups[i][0] >= 0 || space->groups[i][1] >= 0))
            undo_push(p, i);
    }
}

/* All that has partners and can leave changes places between two hosts. */
static bool step_exchange(struct puller *p)
{
    struct place *place = p->place;
    int a = (int)rng_below(p->rng, (uint32_t)place->space->n_hosts);
    int b = place->at[any_member(p, edge_draw(p)->a)];
    if (a == b || b < 0 || !place->space->open[a] || !place->space->open[b])
        return false;
    p->now++;
    host_list(p, b);
    size_t mid = p->n_undo;
    host_list(p, a);
    for (size_t k = 0; k < p->n_undo; k++)
        place_move(place, p->undo[k].instance, k < mid ? a : b);
    p->cost += (int64_t)p->n_undo;
    return p->n_undo > 0 && host_relieve(p, a) && host_relieve(p, b);
}

/* All of a cluster that are elsewhere go back. */
static bool step_home(struct puller *p)
{
    const struct space *space = p->place->space;
    int groups[PULL_GROUPS], n = 1 + (int)rng_below(p->rng, 2);
    const struct pull_edge *edge = edge_draw(p);
    groups[0] = rng_below(p->rng, 2) ? edge->a : edge->b;
    groups[1] = groups[0] == edge->a ? edge->b : edge->a;
    p->now++;
    for (int k = 0; k < n; k++)
        for (int m = space->first_member[groups[k]]; m < space->first_member[groups[k] + 1]; m++) {
            int i = space->members[m];
            if (space->start[i] >= 0)
                puller_move(p, i, space->start[i]);
            p->stamp[i] = p->now;
        }
    size_t moved = p->n_undo;
    for (size_t k = 0; k < moved; k++)
        if (!host_relieve(p, p->place->at[p->undo[k].instance]))
            return false;
    return moved > 0;
}

static double energy(const struct puller *p)
{
    const struct place *place = p->place;
    return place->score - place->paid - p->price_host * place->n_used -
           p->price_move * place->n_moved;
}

static void keep(struct place *place, const struct plan_options *options, int *best_at,
                 struct value *best)
{
    struct value value = value_of(place, options);
    if (!value.valid || !value_better(&value, best))
        return;
    *best = value;
    memcpy(best_at, place->at, sizeof *best_at * (size_t)place->space->n);
}

static bool step(struct puller *p, bool limited)
{
    int64_t excess = p->place->excess;
    uint32_t kind = rng_below(p->rng, 1000);
    bool done = kind < EXCHANGES                         ? step_exchange(p)
                : limited && kind < EXCHANGES + HOMEWARD ? step_home(p)
                                                         : step_pull(p);
    return done && p->place->excess <= excess;
}

void pull_run(struct place *place, const struct plan_options *options, int64_t steps,
              struct rng *rng, struct effort *effort, int *best_at, struct value *best)
{
    const struct space *space = place->space;
    int64_t budget = place_budget(space, options);
    bool limited = budget < space->n_movable;
    struct puller p;
    puller_init(&p, place, rng);
    place_set(place, best_at);
    p.price_host = (options->objective == OBJECTIVE_HOSTS ? 3 : 0.01) * space->mean;
    p.price_move = limited ? 0.2 * space->total / (double)(budget + 1) : 1e-4 * space->mean;
    for (int64_t s = 0; s < steps && p.n_edges > 0; s++) {
        double part = (double)s / (double)steps;
        double temperature = HOT * pow(COLD / HOT, part) * space->grain;
        double before = energy(&p);
        p.n_undo = 0;
        p.cost = 4;
        bool done = step(&p, limited);
        double gain = done ? energy(&p) - before : 0;
        if (!done || (gain < 0 && rng_real(rng) >= exp(gain / temperature)))
            puller_back(&p, 0);
        else if (gain != 0)
            keep(place, options, best_at, best);
        if (s % 4096 == 0) /* all rows anew cost as much as some ten steps */
            place->score = place_score_exact(place); /* no drift of roundings */
        if (s % 64 == 0 && limited)
            p.price_move *= place->n_moved > budget ? 1.05 : 0.96;
        if (effort_spend(effort, p.cost))
            break;
    }
    puller_wipe(&p);
    place_set(place, best_at);
}
