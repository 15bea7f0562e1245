/* fewest.c - annealing of a packing after one host is taken away (soft capacities, as anneal.h). */
#include "planner/fewest.h"

#include <stdlib.h>
#include <string.h>
#include "planner/hubs.h"

/* Trials to do without one more host; each is longer than the last. */
#define TRIALS 6
/* Moves per instance of the first trial: 0.1 µs each. */
#define TRIAL_PER_INSTANCE 3000

struct sized {
    double size;
    int host;
};

static int by_size(const void *left, const void *right)
{
    const struct sized *x = left, *y = right;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->host < y->host ? -1 : x->host > y->host;
}

/* How much a host holds, of what is scarce: dimensions weigh as much as all instances take of what
 * all hosts have. */
static double host_size(const struct space *space, const double *scarce, int host)
{
    double sum = 0;
    for (int d = 0; d < space->dims; d++)
        sum += scarce[d] * (double)space->cap[host * space->dims + d] * space->scale[d];
    return sum;
}

static void scarcity(const struct space *space, double *scarce)
{
    for (int d = 0; d < space->dims; d++) {
        double need = 0, room = 0;
        for (int i = 0; i < space->n; i++)
            need += (double)space->need[i * space->dims + d];
        for (int h = 0; h < space->n_hosts; h++)
            room += space->open[h] ? (double)space->cap[h * space->dims + d] : 0;
        scarce[d] = room > 0 ? need / room : 0;
        scarce[d] *= scarce[d] * scarce[d];
    }
}

/* Chooses `n` hosts: those that cannot be emptied, then, by turns, the largest or those in use. False
 * when there are none to choose. */
static bool hosts_choose(const struct place *place, int n, int trial, struct rng *rng, bool *chosen)
{
    const struct space *space = place->space;
    AUTO_FREE struct sized *order = mem_array((size_t)space->n_hosts, sizeof *order);
    double scarce[LOAD_DIMS];
    int taken = 0, m = 0;
    scarcity(space, scarce);
    memset(chosen, 0, (size_t)space->n_hosts * sizeof *chosen);
    for (int i = 0; i < space->n; i++)
        if (space->fixed[i] && !chosen[space->start[i]]) {
            chosen[space->start[i]] = true;
            taken++;
        }
    for (int h = 0; h < space->n_hosts; h++) {
        if (chosen[h] || !space->open[h])
            continue;
        double size = host_size(space, scarce, h);
        if (trial % 2)
            size = size * (0.9 + 0.2 * rng_real(rng));
        else if (place->n_residents[h] > 0)
            size *= 1 + 1e-9; /* the same room, less to move */
        order[m++] = (struct sized){size, h};
    }
    if (m > 0)
        qsort(order, (size_t)m, sizeof *order, by_size);
    for (int k = 0; k < m && taken < n; k++, taken++)
        chosen[order[k].host] = true;
    return taken == n;
}

/* Nothing but the chosen hosts is open, and all begin there. */
struct narrowed {
    struct space *space;
    bool *open;
    int *start;
};

static struct narrowed narrow(struct space *space, const bool *chosen, const int *at)
{
    struct narrowed before = {space, space->open, space->start};
    space->open = mem_dup(before.open, (size_t)space->n_hosts * sizeof *space->open);
    space->start = mem_dup(at, (size_t)space->n * sizeof *space->start);
    for (int h = 0; h < space->n_hosts; h++)
        space->open[h] &= chosen[h];
    return before;
}

static void widen(struct narrowed *before)
{
    free(before->space->open);
    free(before->space->start);
    before->space->open = before->open;
    before->space->start = before->start;
}

/* One trial on the chosen hosts: those of others go anywhere, which may be over capacity at first. */
static bool pack_on(struct space *blind, const bool *chosen, const struct plan_options *options,
                    int trial, struct rng *rng, struct effort *effort, int *best_at,
                    struct value *best)
{
    AUTO_FREE int *at = mem_dup(best_at, (size_t)blind->n * sizeof *at);
    AUTO_FREE int *hosts = mem_array((size_t)blind->n_hosts, sizeof *hosts);
    int n = 0;
    for (int h = 0; h < blind->n_hosts; h++)
        if (chosen[h] && blind->open[h])
            hosts[n++] = h;
    for (int i = 0; i < blind->n; i++)
        if (!chosen[at[i]] && n > 0)
            at[i] = hosts[rng_below(rng, (uint32_t)n)];
    struct anneal how = {.hot = 0.9, .cold = 0.1, .max_moves = -1,
                         .iterations = (int64_t)TRIAL_PER_INSTANCE * blind->n_movable * (trial + 1)};
    struct value before = *best;
    struct narrowed whole = narrow(blind, chosen, at);
    AUTO(place) struct place *place = n > 0 ? place_new(blind, at) : NULL;
    if (place)
        anneal_run(place, &how, options, rng, effort, best_at, best);
    widen(&whole);
    return value_better(best, &before);
}

void fewest_pack(const struct space *space, const struct plan_options *options, int64_t bound,
                 struct effort *effort, int *best_at, struct value *best)
{
    struct err err = ERR_INIT;
    struct rng rng = {options->seed * UINT64_C(0x9e3779b97f4a7c15) + 11};
    struct plan_options packing = *options;
    AUTO(space) struct space *blind =
        space_new(space->model, NULL, 0, options->move_stateful, &err);
    AUTO_FREE bool *chosen = mem_array((size_t)space->n_hosts, sizeof *chosen);
    if (!blind || !best->valid || space->n_movable == 0 || options->max_moves >= 0)
        return;
    blind->strict = true;
    packing.objective = OBJECTIVE_HOSTS;
    AUTO_FREE int *at = mem_dup(best_at, (size_t)space->n * sizeof *at);
    AUTO(place) struct place *place = place_new(blind, at);
    struct value least = value_of(place, &packing);
    bool fewer = least.valid;
    while (fewer && least.hosts > bound && !effort->cut) {
        fewer = false;
        place_set(place, at);
        for (int trial = 0; trial < TRIALS && !fewer && !effort->cut; trial++)
            fewer = hosts_choose(place, least.hosts - 1, trial, &rng, chosen) &&
                    pack_on(blind, chosen, &packing, trial, &rng, effort, at, &least);
    }
    if (least.hosts >= best->hosts)
        return;
    memcpy(best_at, at, (size_t)space->n * sizeof *at);
    place_free(steal(place));
    place = place_new(space, at);
    *best = value_of(place, options);
}

void fewest_search(struct space *space, const struct plan_options *options, struct effort *effort,
                   int *at, int *best_at, struct value *best)
{
    AUTO_FREE bool *chosen = mem_array((size_t)space->n_hosts, sizeof *chosen);
    struct effort none = {.limit = -1, .deadline_ms = INT64_MAX};
    struct value found;
    for (int i = 0; i < space->n; i++)
        chosen[best_at[i]] = true;
    struct narrowed whole = narrow(space, chosen, best_at);
    hubs_search(space, options, effort, at, &found);
    widen(&whole);
    AUTO(place) struct place *place = place_new(space, at);
    hubs_candidate(place, options, &none, best_at, best);
}
