/* explain.c - the reasons of plan->discarded for planners that search. */
#include "planner/explain.h"

#include <stdlib.h>
#include <string.h>

static const char *instance_name(const struct place *place, int i)
{
    return place->space->model->instances[i].name;
}

/* Why this instance is not on that host: text to *out. */
static void explain_one(const struct place *place, const struct plan_options *options, int i,
                        int host, struct buf *out)
{
    const struct space *space = place->space;
    const struct host *target = &space->model->hosts[host];
    char needs[LOAD_TEXT_SIZE], has[LOAD_TEXT_SIZE];
    buf_printf(out, "%s to %s: ", instance_name(place, i), target->name);
    if (space->fixed[i]) {
        buf_puts(out, space->fixed_why[i]);
        return;
    }
    if (!space->open[host] && space->start[i] != host) {
        buf_puts(out, "the host is not schedulable");
        return;
    }
    for (int d = 0; d < space->dims; d++) {
        int at = host * space->dims + d;
        int64_t room = space->cap[at] - place->used[at], need = space->need[i * space->dims + d];
        if (need > room) {
            buf_printf(out, "%s (needs %s, %s free)", load_dim_names[space->dim[d]],
                       load_text(space->dim[d], (double)need, needs),
                       load_text(space->dim[d], room > 0 ? (double)room : 0, has));
            return;
        }
    }
    const char *why = rules_problem(place->rules, space->model->instances[i].service,
                                    place->at[i], host);
    if (why)
        buf_puts(out, why);
    else if (place->n_moved >= place_budget(space, options) &&
             place->at[i] == space->start[i])
        buf_puts(out, "no moves left");
    else if (options->objective == OBJECTIVE_HOSTS)
        buf_puts(out, "would not keep the hosts fewest or the total best");
    else
        buf_printf(out, "changes the total by %.6g", place_gain(place, i, host));
}

/* An instance of the row's end, best one that is apart from the other end. */
static void explain_row(const struct place *place, const struct plan_options *options,
                        const struct affinity *row, struct buf *out)
{
    const struct space *space = place->space;
    const struct model *model = space->model;
    int a = row->a, b = row->b;
    if (row->level == LEVEL_SERVICE) {
        a = b = -1;
        for (int i = 0; i < space->n; i++) {
            if (a < 0 && model->instances[i].service == row->a)
                a = i;
            else if (model->instances[i].service == row->b &&
                     (b < 0 || (a >= 0 && place->at[b] == place->at[a])))
                b = i;
        }
        if (a < 0 || b < 0) {
            buf_printf(out, "%s has no instance",
                       model->services[a < 0 ? row->a : row->b].name);
            return;
        }
    }
    if (place->at[a] < 0 || place->at[b] < 0) {
        buf_printf(out, "%s is not placed", instance_name(place, place->at[a] < 0 ? a : b));
        return;
    }
    if (place->at[a] == place->at[b]) {
        buf_puts(out, "replicas do not all have a partner beside them");
        return;
    }
    explain_one(place, options, b, place->at[a], out);
    buf_puts(out, "; ");
    explain_one(place, options, a, place->at[b], out);
}

void explain_discarded(struct plan *plan, struct place *place, const struct plan_options *options)
{
    const struct space *space = place->space;
    for (size_t r = 0; r < space->n_rows; r++) {
        const struct affinity *row = &space->rows[r];
        if (row->degree <= 0 ||
            placement_score(space->model, row, 1, place->at) >= row->degree * (1 - 1e-9))
            continue;
        struct buf why = BUF_INIT;
        explain_row(place, options, row, &why);
        struct discarded *d = ARRAY_PUSH(plan->discarded, plan->n_discarded);
        *d = (struct discarded){row->level, row->a, row->b, row->degree, buf_take(&why)};
    }
}
