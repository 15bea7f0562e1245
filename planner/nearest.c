/* nearest.c - depth-first over instances, cut where a host is over capacity; of what is left the
 * placement that breaks least by rules. */
#include "planner/nearest.h"

#include <stdlib.h>
#include <string.h>
#include "planner/anneal.h"

#define STEPS 200000
/* More than that are not finished within the steps in all but the simplest cases. */
#define MOVABLE 12

struct trial {
    const struct space *space;
    const struct plan_options *options;
    struct place *place;
    int64_t steps;
    bool found, over_budget;
    int64_t least;     /* excess of the nearest placement that keeps capacities; -1: none does */
    struct err broken; /* the rule that it breaks */
};

/* All instances are placed. */
static void trial_leaf(struct trial *trial)
{
    const struct place *place = trial->place;
    if (place_holds(place)) {
        trial->found = value_of(place, trial->options).valid;
        trial->over_budget |= !trial->found;
        return;
    }
    struct err err = ERR_INIT;
    if (place->excess > 0 && (trial->least < 0 || place->excess < trial->least) &&
        model_rules_hold(trial->space->model, place->at, &err) < 0) {
        trial->least = place->excess;
        trial->broken = err;
    }
}

/* False when the steps are used up. */
static bool trial_place(struct trial *trial, int i)
{
    const struct space *space = trial->space;
    while (i < space->n && space->fixed[i])
        i++;
    if (i == space->n) {
        trial_leaf(trial);
        return true;
    }
    for (int h = 0; h < space->n_hosts; h++) {
        bool stays = h == space->start[i];
        if (!space->open[h] && !stays)
            continue;
        if (++trial->steps > STEPS)
            return false;
        if (place_over_change(trial->place, i, h) > 0 && (space->strict || !stays))
            continue;
        place_move(trial->place, i, h);
        bool more = trial_place(trial, i + 1);
        if (trial->found || !more)
            return more;
        place_move(trial->place, i, -1);
    }
    return true;
}

/* The instance that is hardest to put: the largest share of a mean host in any dimension. */
static const char *hardest(const struct space *space)
{
    int which = 0;
    double most = -1;
    for (int i = 0; i < space->n; i++)
        for (int d = 0; !space->fixed[i] && d < space->dims; d++)
            if ((double)space->need[i * space->dims + d] * space->scale[d] > most) {
                most = (double)space->need[i * space->dims + d] * space->scale[d];
                which = i;
            }
    return space->model->instances[which].name;
}

char *nearest_why(const struct space *space, const struct plan_options *options)
{
    if (space->n_movable > MOVABLE || space->n == 0)
        return NULL;
    struct trial trial = {.space = space, .options = options, .least = -1};
    AUTO_FREE int *at = mem_array((size_t)space->n, sizeof *at);
    for (int i = 0; i < space->n; i++)
        at[i] = space->fixed[i] ? space->start[i] : -1;
    AUTO(place) struct place *place = place_new(space, at);
    trial.place = place;
    if (!trial_place(&trial, 0) || trial.found)
        return NULL;
    if (trial.over_budget)
        return mem_printf("every placement that keeps capacities and rules takes more than "
                          "%lld moves",
                          (long long)options->max_moves);
    if (trial.least >= 0)
        return mem_printf("no placement keeps capacities and rules: the nearest breaks one (%s)",
                          trial.broken.text);
    return mem_printf("no placement keeps all capacities (every one was tried; hardest to put: %s)",
                      hardest(space));
}
