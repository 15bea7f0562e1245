/* fit.c - resources only: the search of hubs without a single row, fewest hosts first. */
#include "planner/fit.h"

#include <stdlib.h>
#include "model/base/clock.h"
#include "planner/hubs.h"

static int fit_plan(const struct model *model, const struct analysis *analysis,
                    const struct plan_options *options, struct plan *out, struct err *err)
{
    struct plan_options packing = *options;
    AUTO(space) struct space *blind = space_new(model, NULL, 0, options->move_stateful, err);
    AUTO(space) struct space *space =
        blind ? space_new(model, analysis->rows, analysis->n_rows, options->move_stateful, err)
              : NULL;
    if (!space)
        return -1;
    struct effort effort = {.limit = options->iterations,
                            .deadline_ms = plan_deadline_ms(options, model->n_instances, 0),
                            .progress = options->progress,
                            .progress_ctx = options->progress_ctx};
    effort_begins(&effort, plan_after_ms(options, model));
    AUTO_FREE int *best_at = mem_array(model->n_instances, sizeof *best_at);
    struct value best = {.objective = OBJECTIVE_HOSTS};
    packing.objective = OBJECTIVE_HOSTS;
    blind->strict = space->strict = true;
    AUTO_FREE char *impossible = hubs_impossible(blind, &packing); /* nothing to search for */
    if (!impossible)
        hubs_search(blind, &packing, &effort, best_at, &best);
    out->planner = mem_strdup("oa-modified");
    if (best.valid)
        out->why = mem_printf("resources only, %d hosts", best.hosts);
    space_price_moves(space, options->min_gain);
    return hubs_finish(space, &packing, &effort, best_at, &best, out, err);
}

const struct planner oa_modified_planner = {
    .name = "oa-modified",
    .summary = "resources only: a packing onto few hosts, blind to affinity",
    .takes = TAKES_HOSTS_OBJECTIVE | TAKES_MAX_MOVES | TAKES_MOVE_STATEFUL | TAKES_MIN_GAIN,
    .plan = fit_plan,
};
