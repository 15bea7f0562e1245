/* homeward.c - single instances first, then groups of partners, until none is better at home. */
#include "planner/homeward.h"

#include <stdlib.h>
#include <string.h>
#include "planner/explain.h"
#include "planner/pack.h"

/* Each gives back some move, so that few are ever needed. */
#define ROUNDS 20

static bool moved(const struct place *place, int instance)
{
    int start = place->space->start[instance];
    return !place->space->fixed[instance] && start >= 0 && place->at[instance] >= 0 &&
           place->at[instance] != start;
}

static bool one_goes(struct place *place, const struct plan_options *options, int instance)
{
    int here = place->at[instance], home = place->space->start[instance];
    if (!moved(place, instance) || !place_allows(place, instance, home))
        return false;
    struct value before = value_of(place, options);
    place_move(place, instance, home);
    struct value after = value_of(place, options);
    if (value_better(&after, &before))
        return true;
    place_move(place, instance, here);
    return false;
}

/* All of the group at once: a place that one leaves another may need. */
static bool group_goes(struct place *place, const struct plan_options *options, const int *list,
                       int n)
{
    int here = place->at[list[0]];
    struct value before = value_of(place, options);
    for (int k = 0; k < n; k++)
        place_move(place, list[k], place->space->start[list[k]]);
    struct value after = value_of(place, options);
    if (after.valid && value_better(&after, &before))
        return true;
    for (int k = 0; k < n; k++)
        place_move(place, list[k], here);
    return false;
}

bool homeward(struct place *place, const struct plan_options *options)
{
    const struct space *space = place->space;
    AUTO_FREE int *list = mem_array((size_t)space->n, sizeof *list);
    AUTO_FREE bool *seen = mem_array((size_t)space->n, sizeof *seen);
    bool any = false, better = true;
    for (int round = 0; better && round < ROUNDS; round++) {
        better = false;
        for (int k = 0; k < space->n_movable; k++)
            better |= one_goes(place, options, space->movable[k]);
        for (int i = 0; i < space->n; i++)
            seen[i] = !moved(place, i);
        for (int k = 0; k < space->n_movable; k++) {
            int i = space->movable[k];
            int n = seen[i] ? 0 : pack_component(place, i, list, seen);
            better |= n > 1 && group_goes(place, options, list, n);
        }
        place->score = place_score_exact(place);
        any |= better;
    }
    return any;
}

int homeward_plan(struct plan *plan, const struct model *model, const struct analysis *analysis,
                  const struct plan_options *options, struct err *err)
{
    AUTO(space) struct space *space =
        space_new(model, analysis->rows, analysis->n_rows, options->move_stateful, err);
    if (!space)
        return -1;
    space_price_moves(space, options->min_gain);
    AUTO(place) struct place *place = place_new(space, plan->placement);
    place->score = place_score_exact(place);
    if (!homeward(place, options))
        return 0;
    for (size_t k = 0; k < plan->n_discarded; k++)
        free(plan->discarded[k].why);
    plan->n_discarded = 0;
    explain_discarded(plan, place, options);
    return plan_fill(plan, model, analysis->rows, analysis->n_rows, place->at, err);
}
