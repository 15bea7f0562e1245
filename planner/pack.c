/* pack.c - clusters of partners as items of bin packing. */
#include "planner/pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct clusters {
    const struct space *space;
    int *parent;   /* union-find over instances */
    int64_t *need; /* of each root, × dims */
    int *home;     /* host that a root is tied to; -1 free */
    int64_t *most; /* the largest room in each dimension */
    int *next, *last; /* members of a root as a list */
};

static int cluster_root(struct clusters *clusters, int i)
{
    while (clusters->parent[i] != i)
        i = clusters->parent[i] = clusters->parent[clusters->parent[i]];
    return i;
}

static void clusters_init(struct clusters *clusters, const struct space *space)
{
    size_t n = (size_t)space->n;
    clusters->space = space;
    clusters->parent = mem_array(n, sizeof *clusters->parent);
    clusters->home = mem_array(n, sizeof *clusters->home);
    clusters->next = mem_array(n, sizeof *clusters->next);
    clusters->last = mem_array(n, sizeof *clusters->last);
    clusters->need = mem_array(n * LOAD_DIMS, sizeof *clusters->need);
    clusters->most = mem_array(LOAD_DIMS, sizeof *clusters->most);
    memcpy(clusters->need, space->need, n * (size_t)space->dims * sizeof *space->need);
    for (int i = 0; i < space->n; i++) {
        clusters->parent[i] = clusters->last[i] = i;
        clusters->next[i] = -1;
        clusters->home[i] = space->fixed[i] ? space->start[i] : -1;
    }
    for (int h = 0; h < space->n_hosts; h++)
        for (int d = 0; d < space->dims; d++)
            if (space->open[h] && space->cap[h * space->dims + d] > clusters->most[d])
                clusters->most[d] = space->cap[h * space->dims + d];
}

static void clusters_wipe(struct clusters *clusters)
{
    free(clusters->parent);
    free(clusters->home);
    free(clusters->next);
    free(clusters->last);
    free(clusters->need);
    free(clusters->most);
}

static void clusters_merge(struct clusters *clusters, int a, int b)
{
    const struct space *space = clusters->space;
    a = cluster_root(clusters, a);
    b = cluster_root(clusters, b);
    if (a == b)
        return;
    if (clusters->home[a] >= 0 && clusters->home[b] >= 0 &&
        clusters->home[a] != clusters->home[b])
        return;
    int home = clusters->home[a] >= 0 ? clusters->home[a] : clusters->home[b];
    if (home >= 0 && !space->open[home])
        return;
    const int64_t *cap = home >= 0 ? &space->cap[home * space->dims] : clusters->most;
    for (int d = 0; d < space->dims; d++)
        if (clusters->need[a * space->dims + d] + clusters->need[b * space->dims + d] > cap[d])
            return;
    for (int d = 0; d < space->dims; d++)
        clusters->need[a * space->dims + d] += clusters->need[b * space->dims + d];
    clusters->home[a] = home;
    clusters->parent[b] = a;
    clusters->next[clusters->last[a]] = b;
    clusters->last[a] = clusters->last[b];
}

struct pair_item {
    double degree;
    int a, b;
};

static int by_degree(const void *left, const void *right)
{
    const struct pair_item *x = left, *y = right;
    if (x->degree != y->degree)
        return x->degree < y->degree ? 1 : -1;
    return x->a != y->a ? (x->a < y->a ? -1 : 1) : (x->b < y->b ? -1 : x->b > y->b);
}

static void clusters_grow(struct clusters *clusters)
{
    const struct space *space = clusters->space;
    size_t n = 0, all = space->n_groups ? space->first_link[space->n_groups] : 0;
    AUTO_FREE struct pair_item *pairs = mem_array(all, sizeof *pairs);
    for (int g = 0; g < space->n_groups; g++)
        for (size_t l = space->first_link[g]; l < space->first_link[g + 1]; l++) {
            const struct link *link = &space->links[l];
            if (link->group > g && space->size[g] == 1 && space->size[link->group] == 1)
                pairs[n++] =
                    (struct pair_item){link->degree, space->only[g], space->only[link->group]};
        }
    qsort(pairs, n, sizeof *pairs, by_degree);
    for (size_t k = 0; k < n; k++)
        clusters_merge(clusters, pairs[k].a, pairs[k].b);
}

struct root_item {
    double size;
    int root;
};

static int by_size(const void *left, const void *right)
{
    const struct root_item *x = left, *y = right;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->root < y->root ? -1 : 1;
}

/* How full the host would be, in its fullest dimension; above 1 where it does not fit. */
static double fullness(const struct place *place, int host, const int64_t *need)
{
    const struct space *space = place->space;
    double most = 0;
    for (int d = 0; d < space->dims; d++) {
        int64_t used = place->used[host * space->dims + d] + need[d];
        int64_t cap = space->cap[host * space->dims + d];
        if (used > cap)
            return 2;
        if (cap > 0 && (double)used / (double)cap > most)
            most = (double)used / (double)cap;
    }
    return most;
}

/* The fullest host that fits, empty ones last, by index among equals; -1 when none does. */
static int best_fit(const struct place *place, const int64_t *need, int service, int not)
{
    const struct space *space = place->space;
    int best = -1;
    double best_full = -1;
    bool tried_empty = false;
    for (int h = 0; h < space->n_hosts; h++) {
        if (!space->open[h] || h == not)
            continue;
        bool empty = place->n_residents[h] == 0;
        double full = fullness(place, h, need);
        if (full > 1 || rules_problem(place->rules, service, -1, h))
            continue;
        if (empty) {
            if (!tried_empty && best < 0) {
                best = h;
                best_full = -0.5;
            }
            tried_empty = true;
        } else if (full > best_full) {
            best = h;
            best_full = full;
        }
    }
    return best;
}

/* Any host that receives, spread by instance: it will be over, and annealing mends that. */
static int open_host(const struct space *space, int instance)
{
    for (int k = 0; k < space->n_hosts; k++) {
        int h = (int)(((int64_t)instance + k) % space->n_hosts);
        if (space->open[h])
            return h;
    }
    return -1;
}

static void pack_cluster(struct place *place, struct clusters *clusters, int root)
{
    const struct space *space = place->space;
    int service = space->model->instances[root].service;
    int host = best_fit(place, &clusters->need[root * space->dims], service, -1);
    for (int i = root; i >= 0; i = clusters->next[i]) {
        int to = host;
        if (to < 0)
            to = best_fit(place, &space->need[i * space->dims],
                          space->model->instances[i].service, -1);
        if (to < 0)
            to = space->start[i] >= 0 ? space->start[i] : open_host(space, i);
        if (to >= 0)
            place_move(place, i, to);
    }
}

void pack_merge(struct place *place)
{
    const struct space *space = place->space;
    struct clusters clusters = {0};
    clusters_init(&clusters, space);
    clusters_grow(&clusters);
    AUTO_FREE struct root_item *roots = mem_array((size_t)space->n, sizeof *roots);
    size_t n = 0;
    for (int k = 0; k < space->n_movable; k++)
        if (place->at[space->movable[k]] >= 0)
            place_move(place, space->movable[k], -1);
    for (int i = 0; i < space->n; i++) {
        int root = cluster_root(&clusters, i);
        if (clusters.home[root] >= 0) {
            if (!space->fixed[i])
                place_move(place, i, clusters.home[root]);
            continue;
        }
        if (root != i)
            continue;
        double size = 0;
        for (int d = 0; d < space->dims; d++)
            if (clusters.most[d] > 0) {
                double part =
                    (double)clusters.need[i * space->dims + d] / (double)clusters.most[d];
                size = part > size ? part : size;
            }
        roots[n++] = (struct root_item){size, i};
    }
    qsort(roots, n, sizeof *roots, by_size);
    for (size_t k = 0; k < n && space->n_hosts > 0; k++)
        pack_cluster(place, &clusters, roots[k].root);
    clusters_wipe(&clusters);
    place->score = place_score_exact(place);
}

int pack_unplaced(struct place *place)
{
    const struct space *space = place->space;
    int missed = -1;
    for (int i = 0; i < space->n; i++) {
        int best = -1;
        double best_gain = -INFINITY;
        if (place->at[i] >= 0)
            continue;
        for (int h = 0; h < space->n_hosts; h++) {
            if (!place_allows(place, i, h))
                continue;
            double gain = place_gain(place, i, h);
            if (gain > best_gain + 1e-12) {
                best = h;
                best_gain = gain;
            }
        }
        if (best >= 0)
            place_move(place, i, best);
        else if (missed < 0)
            missed = i;
    }
    return missed;
}

/* ---- mending ---- */

static bool host_is_over(const struct place *place, int host)
{
    const struct space *space = place->space;
    for (int d = 0; d < space->dims; d++)
        if (place->used[host * space->dims + d] > space->cap[host * space->dims + d])
            return true;
    return false;
}

/* The resident that costs least to move away; those that came before those that were there. */
static int cheapest(const struct place *place, int host)
{
    const struct space *space = place->space;
    int best = -1;
    double best_gain = -INFINITY;
    bool best_came = false;
    for (int k = 0; k < place->n_residents[host]; k++) {
        int i = place->residents[host][k];
        bool came = space->start[i] != host;
        double gain = space->fixed[i] ? -INFINITY : place_gain(place, i, -1);
        if (!space->fixed[i] && (came > best_came || (came == best_came && gain > best_gain))) {
            best = i;
            best_gain = gain;
            best_came = came;
        }
    }
    return best;
}

bool pack_mend(struct place *place)
{
    for (int h = 0; h < place->space->n_hosts && place->n_over > 0; h++)
        while (host_is_over(place, h)) {
            int i = cheapest(place, h);
            if (i < 0 || (place->space->start[i] == h && !place->space->strict))
                break; /* what only keeps what it had is not held against the plan */
            place_move(place, i, -1);
        }
    if (place->n_unplaced > 0)
        pack_unplaced(place);
    place->score = place_score_exact(place);
    return place_holds(place);
}

/* ---- emptying hosts ---- */

int pack_component(const struct place *place, int from, int *list, bool *seen)
{
    const struct space *space = place->space;
    int host = place->at[from], n = 0;
    list[n++] = from;
    seen[from] = true;
    for (int k = 0; k < n; k++)
        for (int side = 0; side < 2; side++) {
            int g = space->groups[list[k]][side];
            if (g < 0)
                continue;
            for (size_t l = space->first_link[g]; l < space->first_link[g + 1]; l++) {
                int other = space->links[l].group;
                for (int m = space->first_member[other]; m < space->first_member[other + 1]; m++) {
                    int i = space->members[m];
                    if (place->at[i] == host && !seen[i]) {
                        seen[i] = true;
                        list[n++] = i;
                    }
                }
            }
        }
    return n;
}

/* Moves a component to the fullest other used host that takes it. */
static bool component_move(struct place *place, const int *list, int n, int64_t *need)
{
    const struct space *space = place->space;
    int from = place->at[list[0]], best = -1;
    double best_full = -1;
    memset(need, 0, sizeof *need * LOAD_DIMS);
    for (int k = 0; k < n; k++)
        for (int d = 0; d < space->dims; d++)
            need[d] += space->need[list[k] * space->dims + d];
    for (int h = 0; h < space->n_hosts; h++) {
        if (h == from || place->n_residents[h] == 0 || !space->open[h])
            continue;
        double full = fullness(place, h, need);
        if (full <= 1 && full > best_full &&
            !rules_problem(place->rules, space->model->instances[list[0]].service, from, h)) {
            best = h;
            best_full = full;
        }
    }
    for (int k = 0; best >= 0 && k < n; k++)
        place_move(place, list[k], best);
    return best >= 0;
}

static bool host_empty(struct place *place, const struct plan_options *options, int host,
                       int *list, bool *seen, int *undo)
{
    const struct space *space = place->space;
    struct value before = value_of(place, options);
    int64_t need[LOAD_DIMS];
    int n_undo = place->n_residents[host];
    bool done = true;
    for (int k = 0; k < n_undo; k++) {
        undo[k] = place->residents[host][k];
        seen[undo[k]] = false;
        if (space->fixed[undo[k]])
            return false;
    }
    while (done && place->n_residents[host] > 0) {
        int n = pack_component(place, place->residents[host][0], list, seen);
        done = component_move(place, list, n, need);
    }
    struct value after = value_of(place, options);
    if (done && value_better(&after, &before))
        return true;
    for (int k = 0; k < n_undo; k++)
        place_move(place, undo[k], host);
    return false;
}

void pack_empty(struct place *place, const struct plan_options *options, struct effort *effort)
{
    const struct space *space = place->space;
    AUTO_FREE struct root_item *hosts = mem_array((size_t)space->n_hosts, sizeof *hosts);
    AUTO_FREE int *list = mem_array((size_t)space->n, sizeof *list);
    AUTO_FREE int *undo = mem_array((size_t)space->n, sizeof *undo);
    AUTO_FREE bool *seen = mem_array((size_t)space->n, sizeof *seen);
    int64_t nothing[LOAD_DIMS] = {0};
    size_t n = 0;
    for (int h = 0; h < space->n_hosts; h++)
        if (place->n_residents[h] > 0)
            hosts[n++] = (struct root_item){-fullness(place, h, nothing), h};
    qsort(hosts, n, sizeof *hosts, by_size);
    for (size_t k = 0; k < n; k++) {
        if (place->n_residents[hosts[k].root] == 0)
            continue;
        host_empty(place, options, hosts[k].root, list, seen, undo);
        if (effort_spend(effort, 16))
            break;
    }
    place->score = place_score_exact(place);
}

/* ---- renaming hosts ---- */

static int started(const struct place *place, int host, int start)
{
    int n = 0;
    for (int k = 0; k < place->n_residents[host]; k++)
        n += place->space->start[place->residents[host][k]] == start;
    return n;
}

static bool host_free(const struct place *place, int host)
{
    if (!place->space->open[host])
        return false;
    for (int k = 0; k < place->n_residents[host]; k++)
        if (place->space->fixed[place->residents[host][k]])
            return false;
    return true;
}

/* Exchanges all residents; back again when the result does not hold or is not better. */
static bool hosts_exchange(struct place *place, const struct plan_options *options, int a, int b,
                           int *list)
{
    struct value before = value_of(place, options);
    int n_a = place->n_residents[a], n_b = place->n_residents[b];
    for (int k = 0; k < n_a; k++)
        list[k] = place->residents[a][k];
    for (int k = 0; k < n_b; k++)
        list[n_a + k] = place->residents[b][k]; /* NULL where nothing ever was: memcpy may not */
    for (int k = 0; k < n_a + n_b; k++)
        place_move(place, list[k], k < n_a ? b : a);
    place->score = before.score; /* hosts are alike to the score */
    struct value after = value_of(place, options);
    if (value_better(&after, &before))
        return true;
    for (int k = 0; k < n_a + n_b; k++)
        place_move(place, list[k], k < n_a ? a : b);
    place->score = before.score;
    return false;
}

void pack_relabel(struct place *place, const struct plan_options *options)
{
    const struct space *space = place->space;
    AUTO_FREE int *list = mem_array((size_t)space->n, sizeof *list);
    bool better = true;
    for (int round = 0; better && round < 4; round++) {
        better = false;
        for (int i = 0; i < space->n; i++) {
            int here = place->at[i], home = space->start[i];
            if (home < 0 || here < 0 || here == home || !host_free(place, here) ||
                !host_free(place, home))
                continue;
            int stay = started(place, here, here) + started(place, home, home);
            int gain = started(place, here, home) + started(place, home, here);
            if (gain > stay)
                better |= hosts_exchange(place, options, here, home, list);
        }
    }
}
