/* settle.c - best fit, largest first, then exchanges of one (planning.md 5: packing by GRC, without
 * affinity). */
#include "planner/settle.h"

#include <stdlib.h>

/* Trials of exchanges: about 1 µs each. */
#define TRIALS 20000

/* Instances times hosts: some 0.1 s. */
#define MOST_LOOKS 5000000

struct settled {
    int instance;
    bool ruled;
    double size;
};

static int by_need(const void *left, const void *right)
{
    const struct settled *x = left, *y = right;
    if (x->ruled != y->ruled)
        return x->ruled ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->instance - y->instance;
}

static void mark_ruled(const struct model *model, bool *ruled)
{
    for (size_t r = 0; r < model->n_rules; r++)
        for (size_t k = 0; k < model->rules[r].n_services; k++)
            ruled[model->rules[r].services[k]] = true;
}

/* What is used of the host, in its fullest dimension. */
static double fullness(const struct place *place, int host)
{
    const struct space *space = place->space;
    double most = 0;
    for (int d = 0; d < space->dims; d++) {
        int64_t cap = space->cap[host * space->dims + d];
        double part = cap > 0 ? (double)place->used[host * space->dims + d] / (double)cap : 0;
        most = part > most ? part : most;
    }
    return most;
}

/* The fullest host that takes it, but `not`; the first among equals. -1: none. */
static int fullest(const struct place *place, int instance, int not)
{
    int best = -1;
    double most = -1;
    for (int h = 0; h < place->space->n_hosts; h++) {
        double full = h == not ? -1 : fullness(place, h);
        if (full > most && place_allows(place, instance, h)) {
            best = h;
            most = full;
        }
    }
    return best;
}

/* `other` leaves the host for the instance, and goes where it fits; else all is as before. */
static bool exchange_for(struct place *place, int instance, int other, int host)
{
    place_move(place, other, -1);
    if (place_allows(place, instance, host)) {
        place_move(place, instance, host);
        int to = fullest(place, other, host);
        if (to >= 0) {
            place_move(place, other, to);
            return true;
        }
        place_move(place, instance, -1);
    }
    place_move(place, other, host);
    return false;
}

static bool exchange(struct place *place, int instance, bool all_move, int *trials)
{
    const struct space *space = place->space;
    for (int h = 0; h < space->n_hosts; h++) {
        int n = space->open[h] ? place->n_residents[h] : 0; /* in another order after each trial */
        AUTO_FREE int *residents = mem_dup(place->residents[h], (size_t)n * sizeof *residents);
        for (int k = 0; k < n; k++) {
            int other = residents[k];
            if (space->fixed[other] || (space->start[other] >= 0 && !all_move))
                continue;
            if (--*trials < 0)
                return false;
            if (exchange_for(place, instance, other, h))
                return true;
        }
    }
    return false;
}

bool settle(struct place *place, int64_t budget)
{
    const struct space *space = place->space;
    AUTO_FREE bool *ruled = mem_array(space->model->n_services, sizeof *ruled);
    AUTO_FREE struct settled *order = mem_array((size_t)space->n, sizeof *order);
    int n = 0, trials = TRIALS;
    if ((int64_t)space->n_new * space->n_hosts > MOST_LOOKS)
        return false;
    mark_ruled(space->model, ruled);
    for (int i = 0; i < space->n; i++)
        if (place->at[i] < 0)
            order[n++] = (struct settled){i, ruled[space->model->instances[i].service],
                                          space_size(space, i)};
    if (n > 0)
        qsort(order, (size_t)n, sizeof *order, by_need);
    for (int k = 0; k < n; k++) {
        int host = fullest(place, order[k].instance, -1);
        if (host >= 0)
            place_move(place, order[k].instance, host);
    }
    for (int k = 0; k < n && place->n_unplaced > 0; k++)
        if (place->at[order[k].instance] < 0 &&
            !exchange(place, order[k].instance, budget >= space->n_movable, &trials))
            return false;
    return place->n_unplaced == 0;
}
