/* refine.c - column generation for its bound alone. */
#include "planner/refine.h"

#include <math.h>
#include "planner/bound_counts.h"
#include "planner/generate.h"
#include "planner/parts.h"
#include "planner/warm.h"

/* Beyond, a round takes seconds. */
#define MOST_ITEMS 400
#define EXACT_ROUNDS 2
#define NODES 300

struct refined {
    double bound;
};

static double refine_found(void *ctx, const int *host_of_item)
{
    (void)ctx;
    (void)host_of_item;
    return -INFINITY;
}

static void refine_told(void *ctx, double bound)
{
    struct refined *refined = ctx;
    refined->bound = bound < refined->bound ? bound : refined->bound;
}

/* Heuristics leave what is over at the start as it is; patterns do not know of that. */
static bool start_holds(const struct space *space)
{
    AUTO(place) struct place *place = place_new(space, space->start);
    return place->n_over == 0 && place->excess <= 0;
}

static double bound_of_parts(const struct parts *parts, const struct space *space,
                             const int *placement, double score, struct effort *effort)
{
    struct refined refined = {INFINITY};
    struct tree_report report = {refine_found, refine_told, &refined};
    struct search search = {.root = parts, .effort = effort, .report = &report,
                            .best = score * parts->scale, .margin = 1e-9 * PARTS_TOTAL};
    AUTO_FREE int *host = mem_array((size_t)parts->n, sizeof *host);
    AUTO_WORK struct work work = {0};
    for (int i = 0; i < space->n; i++)
        if (parts->item_of[i] >= 0)
            host[parts->item_of[i]] = placement[i];
    search_add_placement(&search, host);
    if (work_init(&work, &search, NULL, 0, INFINITY, NULL))
        warm_bound(&work, EXACT_ROUNDS, NODES);
    pool_wipe(&search.pool);
    return refined.bound / parts->scale;
}

double refine_bound(const struct model *model, const struct affinity *rows, size_t n,
                    const struct plan_options *options, const int *placement, double score,
                    struct effort *effort)
{
    struct err err = ERR_INIT;
    AUTO(space) struct space *space = space_new(model, rows, n, options->move_stateful, &err);
    if (!space || space->n_movable == 0)
        return INFINITY;
    if (space->n_slots > 0)
        return bound_counts(space, options, score, effort);
    if (space->n_movable > MOST_ITEMS || !start_holds(space))
        return INFINITY;
    AUTO(parts) struct parts *parts = parts_new(space, &err);
    return parts ? bound_of_parts(parts, space, placement, score, effort) : INFINITY;
}

double refine_first(const struct model *model, const struct affinity *rows, size_t n,
                    const struct plan_options *options)
{
    struct err err = ERR_INIT;
    AUTO(space) struct space *space = space_new(model, rows, n, options->move_stateful, &err);
    return space && space->n_movable > 0 && space->n_slots > 0
               ? bound_counts_first(space, options)
               : INFINITY;
}
