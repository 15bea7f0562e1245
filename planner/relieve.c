/* relieve.c - host by host; of the smallest instances that are enough and fit elsewhere, the one that loses
 * least. */
#include "planner/relieve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* So many that fit elsewhere are compared. */
#define COMPARED 8

struct relief {
    struct place *place;
    const struct plan_options *options;
    int host;     /* over its capacity */
    int *off;     /* movable residents, smallest first */
    double *size; /* by instance: in mean hosts, of the resources that the host lacks */
    int n;
};

static bool is_over(const struct place *place, int host)
{
    const struct space *space = place->space;
    for (int d = 0; d < space->dims && place->n_residents[host] > 0; d++)
        if (place->used[host * space->dims + d] > space->cap[host * space->dims + d])
            return true;
    return false;
}

/* True when the host is within its capacity without the instance. */
static bool is_enough(const struct relief *relief, int instance)
{
    const struct place *place = relief->place;
    const struct space *space = place->space;
    for (int d = 0; d < space->dims && place->n_residents[relief->host] > 1; d++) {
        int at = relief->host * space->dims + d;
        if (place->used[at] - space->need[instance * space->dims + d] > space->cap[at])
            return false;
    }
    return true;
}

static int by_size(const void *left, const void *right, void *ctx)
{
    const struct relief *relief = ctx;
    int a = *(const int *)left, b = *(const int *)right;
    double x = relief->size[a], y = relief->size[b];
    return x != y ? (x < y ? -1 : 1) : a - b;
}

static void relief_find(struct relief *relief)
{
    const struct place *place = relief->place;
    const struct space *space = place->space;
    relief->n = 0;
    for (int k = 0; k < place->n_residents[relief->host]; k++) {
        int i = place->residents[relief->host][k];
        if (space->fixed[i])
            continue;
        relief->size[i] = 0;
        for (int d = 0; d < space->dims; d++) {
            int at = relief->host * space->dims + d;
            if (place->used[at] > space->cap[at])
                relief->size[i] += (double)space->need[i * space->dims + d] * space->scale[d];
        }
        relief->off[relief->n++] = i;
    }
    if (relief->n > 1)
        qsort_r(relief->off, (size_t)relief->n, sizeof *relief->off, by_size, relief);
}

/* The host where the instance fits and that loses least, with hosts as objective one in use if any is;
 * -1: none. */
static int target_find(const struct relief *relief, int instance, double *worth)
{
    const struct place *place = relief->place;
    const struct space *space = place->space;
    int best = -1, moved = place->n_moved + (space->start[instance] == place->at[instance]);
    for (int h = 0; h < space->n_hosts; h++) {
        if (h == relief->host || !place_allows(place, instance, h))
            continue;
        if (h != space->start[instance] && moved > place_budget(space, relief->options))
            continue;
        double gain = place_gain(place, instance, h);
        if (relief->options->objective == OBJECTIVE_HOSTS && place->n_residents[h] == 0)
            gain -= 4 * space->total + space->mean;
        if (best < 0 || gain > *worth) {
            best = h;
            *worth = gain;
        }
    }
    return best;
}

/* Moves one instance: the first that is enough, with the next ones as choice; where none is, the largest. */
static bool one_off(struct relief *relief)
{
    int who = -1, target = -1, compared = 0;
    double most = 0;
    relief_find(relief);
    for (int pass = 0; pass < 2 && who < 0; pass++)
        for (int k = 0; k < relief->n && compared < (pass ? 1 : COMPARED); k++) {
            int i = relief->off[pass ? relief->n - 1 - k : k];
            double worth = 0;
            if ((pass == 0) != is_enough(relief, i) || (pass && relief->size[i] <= 0))
                continue;
            int host = target_find(relief, i, &worth);
            compared += host >= 0;
            if (host < 0 || (who >= 0 && worth <= most))
                continue;
            who = i;
            target = host;
            most = worth;
        }
    if (who < 0)
        return false;
    place_move(relief->place, who, target);
    return true;
}

void relieve(struct place *place, const struct plan_options *options)
{
    const struct space *space = place->space;
    if (place->n_over == 0 || space->strict)
        return;
    AUTO_FREE int *off = mem_array((size_t)space->n, sizeof *off);
    AUTO_FREE double *size = mem_array((size_t)space->n, sizeof *size);
    struct relief relief = {.place = place, .options = options, .off = off, .size = size};
    for (int h = 0; h < space->n_hosts && place->n_over > 0; h++) {
        if (!is_over(place, h))
            continue;
        AUTO_FREE int *before = mem_dup(place->at, (size_t)space->n * sizeof *before);
        relief.host = h;
        while (is_over(place, h) && one_off(&relief))
            continue;
        if (is_over(place, h) || !place_holds(place))
            place_set(place, before);
    }
    place->score = place_score_exact(place);
}
