/* explain.c - the reasons of plan->discarded for planners that search. */
#include "planner/explain.h"

#include <stdlib.h>
#include <string.h>
#include "model/spread.h"
#include "planner/teams.h"

static const char *instance_name(const struct place *place, int i)
{
    return place->space->model->instances[i].name;
}

static void say_short(const struct space *space, int d, double need, double room, struct buf *out)
{
    char needs[LOAD_TEXT_SIZE], has[LOAD_TEXT_SIZE];
    buf_printf(out, "%s (needs %s, %s free)", load_dim_names[space->dim[d]],
               load_text(space->dim[d], need, needs),
               load_text(space->dim[d], room > 0 ? room : 0, has));
}

static void explain_total(const struct place *place, const struct plan_options *options, int i,
                          int host, struct buf *out)
{
    double gain = place_gain(place, i, host);
    buf_printf(out, "changes the total by %.6g%s", gain,
               gain > 0 && options->min_gain > 0 ? ", less than the restart costs" : "");
}

/* What --max-moves leaves for one instance: nothing. */
static const char *no_moves(const struct place *place, const struct plan_options *options)
{
    if (options->max_moves == 0)
        return "no moves are allowed";
    return place->n_moved == 0 ? "no moves left beside those that place what is nowhere"
                               : "no moves left";
}

/* Why this instance is not on that host: text to *out. */
static void explain_one(const struct place *place, const struct plan_options *options, int i,
                        int host, struct buf *out)
{
    const struct space *space = place->space;
    const struct host *target = &space->model->hosts[host];
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
            say_short(space, d, (double)need, (double)room, out);
            return;
        }
    }
    const char *why =
        rules_problem(place->rules, space->model->instances[i].service, place->at[i], host);
    if (why)
        buf_puts(out, why);
    else if (place->n_moved >= place_budget(space, options) && place->at[i] == space->start[i])
        buf_puts(out, no_moves(place, options));
    else if (options->objective == OBJECTIVE_HOSTS)
        buf_puts(out, "would not keep the hosts fewest or the total best");
    else
        explain_total(place, options, i, host, out);
}

/* Says where the service, spread over the set, would be too much; false: nowhere. */
static bool explain_full(const struct teams *teams, const struct team *team, struct buf *out)
{
    const struct place *place = teams->puller->place;
    const struct space *space = teams->space;
    for (int k = 0; k < teams->n_set; k++) {
        int host = teams->set[k];
        for (int d = 0; d < space->dims; d++) {
            int at = host * space->dims + d;
            int64_t need = 0, over = place->used[at] - space->cap[at];
            for (int m = 0; m < team->n; m++) {
                int i = teams->members[team->first + m];
                need += place->at[i] == host ? space->need[i * space->dims + d] : 0;
            }
            if (over <= 0)
                continue;
            buf_printf(out, "host %s: ", space->model->hosts[host].name);
            say_short(space, d, (double)need, (double)(need - over), out);
            return true;
        }
    }
    return false;
}

/* Why the service does not spread over the hosts of the other one: that is tried, and taken back.
 */
static void explain_team(struct teams *teams, const struct plan_options *options, int service,
                         int other, struct buf *out)
{
    const struct model *model = teams->space->model;
    struct place *place = teams->puller->place;
    struct team *team = &teams->teams[service];
    double score = place->score, paid = teams->paid;
    int64_t excess = place->excess, asked = teams->asked;
    buf_printf(out, "%s to the hosts of %s: ", model->services[service].name,
               model->services[other].name);
    for (int k = 0; k < team->n; k++) {
        int i = teams->members[team->first + k];
        if (!teams->space->fixed[i])
            continue;
        buf_puts(out, teams->space->fixed_why[i]);
        return;
    }
    set_clear(teams);
    set_of(teams, &teams->teams[other]);
    while (teams->n_set > team->n)
        set_drop(teams, teams->n_set - 1);
    if (teams->n_set == 0) {
        buf_puts(out, "the host is not schedulable");
        return;
    }
    teams->puller->n_undo = 0;
    team_spread(teams, team);
    bool full = explain_full(teams, team, out);
    if (!full && place->excess > excess)
        buf_puts(out, "a rule would be broken");
    else if (!full && options->max_moves >= 0 && teams->asked > options->max_moves)
        buf_printf(out, "takes %d moves, of %lld allowed %lld are left", team->n,
                   (long long)options->max_moves, (long long)(options->max_moves - asked));
    else if (!full && options->objective == OBJECTIVE_HOSTS)
        buf_puts(out, "would not keep the hosts fewest or the total best");
    else if (!full)
        buf_printf(out, "changes the total by %.6g%s", place->score - score,
                   teams->paid > paid ? ", less than the restarts cost" : "");
    puller_back(teams->puller, 0);
    team_refresh(teams, team);
    place->score = score;
}

static void explain_services(struct teams *teams, const struct plan_options *options,
                             const struct affinity *row, struct buf *out)
{
    const struct model *model = teams->space->model;
    bool whole = row->level == LEVEL_SERVICE;
    int a = whole ? row->a : model->instances[row->a].service;
    int b = whole ? row->b : model->instances[row->b].service;
    for (int side = 0; side < 2; side++)
        if (teams->teams[side ? b : a].n == 0) {
            buf_printf(out, "%s has no instance", model->services[side ? b : a].name);
            return;
        }
    if (a == b) {
        buf_puts(out, "both are of one service, which moves as a whole");
        return;
    }
    explain_team(teams, options, b, a, out);
    buf_puts(out, "; ");
    explain_team(teams, options, a, b, out);
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
            buf_printf(out, "%s has no instance", model->services[a < 0 ? row->a : row->b].name);
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

/* What of the row the placement keeps, 0 … 1. */
static double row_share(const struct spread *spread, const struct place *place,
                        const struct affinity *row)
{
    if (row->level == LEVEL_SERVICE)
        return row->a == row->b ? 1 : spread_share(spread, row->a, row->b);
    return row->a == row->b || (place->at[row->a] >= 0 && place->at[row->a] == place->at[row->b]);
}

void explain_discarded(struct plan *plan, struct place *place, const struct plan_options *options)
{
    const struct space *space = place->space;
    bool whole = options->granularity == PER_SERVICE;
    struct puller puller;
    struct teams teams;
    struct rng rng = {1};
    AUTO(spread) struct spread *spread = spread_new(space->model, place->at);
    if (whole) {
        puller_init(&puller, place, &rng);
        teams_init(&teams, &puller);
        for (size_t s = 0; s < space->model->n_services; s++)
            team_refresh(&teams, &teams.teams[s]);
    }
    for (size_t r = 0; r < space->n_rows; r++) {
        const struct affinity *row = &space->rows[r];
        if (row->degree <= 0 || row_share(spread, place, row) >= 1 - 1e-9)
            continue;
        struct buf why = BUF_INIT;
        if (whole)
            explain_services(&teams, options, row, &why);
        else
            explain_row(place, options, row, &why);
        struct discarded *d = ARRAY_PUSH(plan->discarded, plan->n_discarded);
        *d = (struct discarded){row->level, row->a, row->b, row->degree, buf_take(&why)};
    }
    if (whole) {
        set_clear(&teams);
        teams_wipe(&teams);
        puller_wipe(&puller);
    }
}
