/* fewest.c - annealing of a packing after one host is taken away (soft capacities, as anneal.h). */
#include "planner/fewest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "planner/hubs.h"

/* Trials to do without one more host; each is longer than the last. */
#define TRIALS 6
/* Moves per instance of the first trial: 0.1 µs each. */
#define TRIAL_PER_INSTANCE 3000
/* All of them together, per ms of the time limit: a quarter of it, on a slow core. */
#define TRIALS_PER_MS 1000
/* Counts of a packing that comes first, per ms of the time limit: a tenth of it, or on a busy machine a half. */
#define PACK_PER_MS 10000
/* Fillings of so many hosts before one more is taken; what is left over costs that much to look at. */
#define FILLS 16
#define FILL_COST 20

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

static int64_t trial_iterations(const struct space *space, int trial)
{
    return (int64_t)TRIAL_PER_INSTANCE * space->n_movable * (trial + 1);
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
                         .iterations = trial_iterations(blind, trial)};
    struct value before = *best;
    struct narrowed whole = narrow(blind, chosen, at);
    AUTO(place) struct place *place = n > 0 ? place_new(blind, at) : NULL;
    if (place)
        anneal_run(place, &how, options, rng, effort, best_at, best);
    widen(&whole);
    return value_better(best, &before);
}

static bool alike(const struct space *space, int a, int b)
{
    return space->model->instances[a].service == space->model->instances[b].service &&
           memcmp(&space->need[a * space->dims], &space->need[b * space->dims],
                  (size_t)space->dims * sizeof *space->need) == 0;
}

/* What the instance would take of what the host has left: large where both are (Panigrahy et al. 2011,
 * dot products). */
static double suits(const struct place *place, const double *scarce, int instance, int host)
{
    const struct space *space = place->space;
    const int64_t *need = &space->need[instance * space->dims];
    double sum = 0;
    for (int d = 0; d < space->dims; d++) {
        double cap = (double)space->cap[host * space->dims + d];
        double left = cap - (double)place->used[host * space->dims + d];
        sum += cap > 0 ? scarce[d] * space->scale[d] * (double)need[d] * left / cap : 0;
    }
    return sum;
}

/* Fills the host with what suits it best, one after the other. `left` are instances, those that are
 * alike in a row; those that came are taken out. Returns how many remain. */
static int fill(struct place *place, const double *scarce, int host, int *left, int n)
{
    const struct space *space = place->space;
    for (;;) {
        double most = -1;
        int best = -1;
        for (int k = 0; k < n; k++) {
            if (k > 0 && alike(space, left[k], left[k - 1]))
                continue;
            double suit = suits(place, scarce, left[k], host);
            if (suit > most && place_allows(place, left[k], host)) {
                most = suit;
                best = k;
            }
        }
        if (best < 0)
            return n;
        place_move(place, left[best], host);
        memmove(&left[best], &left[best + 1], (size_t)(--n - best) * sizeof *left);
    }
}

/* One trial on the chosen hosts, each with its own weights of what is scarce; false when something is
 * left over. */
static bool fill_hosts(struct place *place, const bool *chosen, int trial, struct rng *rng,
                       struct effort *effort, int *left)
{
    const struct space *space = place->space;
    double scarce[LOAD_DIMS];
    int rest = space->n_movable;
    scarcity(space, scarce);
    for (int d = 0; d < space->dims && trial > 0; d++)
        scarce[d] *= 0.25 + 2 * rng_real(rng);
    memcpy(left, space->movable, (size_t)rest * sizeof *left);
    for (int k = 0; k < space->n_hosts && rest > 0; k++) {
        int h = trial % 2 ? space->n_hosts - 1 - k : k;
        if (chosen[h])
            rest = fill(place, scarce, h, left, rest);
        if (effort_spend(effort, FILL_COST * (rest + 1)))
            return false;
    }
    return rest == 0;
}

/* Fills hosts anew with all that can move, as few as sums of sizes allow: many small instances fill
 * them so well that nothing is left to search for. */
static void fill_all(struct place *place, const struct plan_options *options, int64_t bound,
                     struct rng *rng, struct effort *effort, int *best_at, struct value *best)
{
    const struct space *space = place->space;
    AUTO_FREE bool *chosen = mem_array((size_t)space->n_hosts, sizeof *chosen);
    AUTO_FREE int *bare = mem_dup(space->start, (size_t)space->n * sizeof *bare);
    AUTO_FREE int *left = mem_array((size_t)space->n_movable, sizeof *left);
    for (int k = 0; k < space->n_movable; k++)
        bare[space->movable[k]] = -1;
    /* Once each, so that something is there soon, then in earnest. */
    for (int fills = 1; fills <= FILLS; fills += FILLS - 1)
        for (int n = (int)bound, found = false; n < best->hosts && !found && !effort->cut; n++)
            for (int trial = 0; trial < fills && !found && !effort->cut; trial++) {
                place_set(place, bare);
                if (!hosts_choose(place, n, 0, rng, chosen) ||
                    !fill_hosts(place, chosen, trial, rng, effort, left))
                    continue;
                struct value value = value_of(place, options);
                if (!value.valid || !value_better(&value, best))
                    continue;
                *best = value;
                memcpy(best_at, place->at, (size_t)space->n * sizeof *best_at);
                found = true;
            }
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
    if (fewer)
        fill_all(place, &packing, bound, &rng, effort, at, &least);
    int64_t last = effort->done + options->time_limit_ms * TRIALS_PER_MS;
    while (fewer && least.hosts > bound && !effort->cut) {
        fewer = false;
        place_set(place, at);
        for (int trial = 0; trial < TRIALS && !fewer && !effort->cut; trial++)
            fewer = effort->done + trial_iterations(space, trial) <= last &&
                    hosts_choose(place, least.hosts - 1, trial, &rng, chosen) &&
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

/* Hosts come first: the start is packed, and what is left of the time is for affinity on these. False
 * where fewer hosts may do; *best is what was found. */
static bool pack_first(struct space *space, const struct plan_options *options,
                       const struct plan_options *packing, int64_t bound, struct effort *effort,
                       int *best_at, struct value *best)
{
    AUTO_FREE int *at = mem_array((size_t)space->n, sizeof *at);
    AUTO(place) struct place *place = place_new(space, space->start);
    place->score = place_score_exact(place);
    memcpy(best_at, space->start, (size_t)space->n * sizeof *best_at);
    *best = value_of(place, options);
    if (!best->valid || best->hosts <= bound)
        return false;
    int before = best->hosts;
    struct share share;
    struct effort part = share_of_counts(&share, effort, options->time_limit_ms * PACK_PER_MS);
    fewest_pack(space, packing, bound, &part, best_at, best);
    share_join(effort, &part);
    if (best->hosts == before || effort->cut)
        return best->hosts < before;
    fewest_search(space, best->hosts > bound ? packing : options, effort, at, best_at, best);
    return best->hosts <= bound;
}

void fewest_hubs(struct space *space, const struct plan_options *options, struct effort *effort,
                 int *best_at, struct value *best)
{
    struct plan_options part = *options;
    struct value packed = {.objective = options->objective};
    bool hosts = options->objective == OBJECTIVE_HOSTS;
    int64_t bound = hosts ? bound_hosts(space->model, options->move_stateful, true) : 0;
    AUTO_FREE int *packed_at = mem_array((size_t)space->n, sizeof *packed_at);
    if (hosts && space->n_slots > 0) { /* sizes its rounds; what comes after takes as much */
        part.time_limit_ms = options->time_limit_ms / 4 + 1;
        if (pack_first(space, options, &part, bound, effort, packed_at, &packed)) {
            *best = packed;
            memcpy(best_at, packed_at, (size_t)space->n * sizeof *best_at);
            return;
        }
    }
    hubs_search(space, &part, effort, best_at, best);
    if (packed.valid && (!best->valid || value_better(&packed, best))) {
        *best = packed;
        memcpy(best_at, packed_at, (size_t)space->n * sizeof *best_at);
    }
    if (!hosts || !best->valid || effort->cut || best->hosts <= bound)
        return;
    int before = best->hosts;
    AUTO_FREE int *at = mem_array((size_t)space->n, sizeof *at);
    fewest_pack(space, &part, bound, effort, best_at, best);
    if (best->hosts < before && !effort->cut)
        fewest_search(space, options, effort, at, best_at, best);
}
