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

/* "rule apart (rules[0], of A and others)" */
static void say_rule(const struct model *model, const char *problem, int which, struct buf *out)
{
    const struct rule *rule = &model->rules[which];
    buf_printf(out, "%s (rules[%d], of %s%s)", problem, which,
               model->services[rule->services[0]].name, rule->n_services > 1 ? " and others" : "");
}

/* Which rule a placement breaks that the one before did not: "rules[0] (apart, of A and others) would not
 * hold on h1". */
static void say_broken(const struct model *model, const int *before, const int *after,
                       struct buf *out)
{
    static const char is[] = "does not hold";
    struct err err = ERR_INIT;
    char *at = NULL;
    if (model_rules_kept(model, before, after, &err) < 0)
        at = strstr(err.text, is);
    if (at)
        buf_printf(out, "%.*swould not hold%s", (int)(at - err.text), err.text,
                   at + strlen(is));
    else
        buf_puts(out, "a rule would be broken");
}

/* A partner's host is in use: to go there makes no host more. So it is the total that was in the way,
 * whatever the objective. */
static void explain_total(const struct plan_options *options, double gain, bool dear,
                          const char *cost, struct buf *out)
{
    bool blind = strcmp(options->planner, "oa-modified") == 0;
    buf_printf(out, "changes the total by %.6g%s", gain,
               gain <= 0 ? ""
               : blind   ? ", which is not looked at (resources only)"
               : dear    ? cost
                         : "");
}

/* The move costs at least what it gains. */
static bool is_dear(const struct place *place, int i, int host)
{
    int start = place->space->start[i];
    bool restarts = start >= 0 && place->at[i] == start && host != start;
    return restarts && place_gain(place, i, host) <= place->space->price[i] + 1e-9;
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
    int service = space->model->instances[i].service;
    const char *why = rules_problem(place->rules, service, place->at[i], host);
    if (why)
        say_rule(space->model, why,
                 rules_problem_rule(place->rules, service, place->at[i], host), out);
    else if (place->n_moved >= place_budget(space, options) && place->at[i] == space->start[i])
        buf_puts(out, no_moves(place, options));
    else
        explain_total(options, place_gain(place, i, host), is_dear(place, i, host),
                      ", less than the restart costs", out);
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
    bool full = explain_full(teams, team, out), broken = !full && place->excess > excess;
    AUTO_FREE int *after =
        broken ? mem_dup(place->at, (size_t)teams->space->n * sizeof *after) : NULL;
    if (broken)
        ; /* said below: that is asked of the placement before */
    else if (!full && options->max_moves >= 0 && teams->asked > options->max_moves)
        buf_printf(out, "takes %d moves, of %lld allowed %lld are left", team->n,
                   (long long)options->max_moves, (long long)(options->max_moves - asked));
    else if (!full)
        explain_total(options, place->score - score,
                      teams->paid > paid && place->score - score <= teams->paid - paid + 1e-9,
                      ", less than the restarts cost", out);
    puller_back(teams->puller, 0);
    team_refresh(teams, team);
    if (broken)
        say_broken(model, place->at, after, out);
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

/* Of two services, replicas on hosts where each has a larger part of its own than the other has: what
 * would have to come together. Those that can leave first. -1 where a service has no instance. */
static void replicas_apart(const struct place *place, const struct affinity *row, int pick[2])
{
    const struct space *space = place->space;
    const int service[2] = {row->a, row->b};
    int64_t n[2] = {0, 0};
    AUTO_FREE int64_t *there = mem_array((size_t)space->n_hosts * 2, sizeof *there);
    for (int i = 0; i < space->n; i++)
        for (int side = 0; side < 2; side++)
            if (space->model->instances[i].service == service[side]) {
                n[side]++;
                if (place->at[i] >= 0)
                    there[place->at[i] * 2 + side]++;
            }
    double most[2] = {-1, -1};
    pick[0] = pick[1] = -1;
    for (int i = 0; i < space->n; i++)
        for (int side = 0; side < 2; side++) {
            int host = place->at[i];
            if (space->model->instances[i].service != service[side])
                continue;
            double more = host < 0 ? 0
                                   : (double)there[host * 2 + side] / (double)n[side] -
                                         (double)there[host * 2 + !side] / (double)(n[!side] ? n[!side] : 1);
            more = more > 0 && !space->fixed[i] ? more + 2 : more; /* parts are at most 1 */
            if (pick[side] < 0 || more > most[side]) {
                pick[side] = i;
                most[side] = more;
            }
        }
}

/* An instance of the row's end, best one that is apart from the other end. */
static void explain_row(const struct place *place, const struct plan_options *options,
                        const struct affinity *row, struct buf *out)
{
    const struct space *space = place->space;
    const struct model *model = space->model;
    int a = row->a, b = row->b;
    if (row->level == LEVEL_SERVICE) {
        int pick[2];
        replicas_apart(place, row, pick);
        a = pick[0];
        b = pick[1];
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
