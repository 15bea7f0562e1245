/* teams_ease.c - hosts that are over their capacity and got nothing: a whole service spreads over its
 * other hosts, or over another one instead, where that is all it takes. */
#include "planner/teams.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Services that could go are compared, the smallest first; trials are limited by the time limit, as each
 * moves all replicas of a service, up to 0.1 ms. */
#define COMPARED 8
#define TRIALS 50
#define MS_PER_TRIAL 4

struct relief {
    struct teams *teams;
    const struct plan_options *options;
    int host;       /* over its capacity */
    int *off, n;    /* services that may leave it */
    double *weight; /* by service: of its replicas there, in mean hosts */
    int64_t trials;
};

static void relief_find(struct relief *relief)
{
    const struct place *place = relief->teams->puller->place;
    const struct space *space = place->space;
    relief->n = 0;
    for (int k = 0; k < relief->teams->n_movable; k++)
        relief->weight[relief->teams->movable[k]] = 0;
    for (int k = 0; k < place->n_residents[relief->host]; k++) {
        int i = place->residents[relief->host][k], s = space->model->instances[i].service;
        if (relief->teams->teams[s].fixed)
            continue;
        if (relief->weight[s] == 0)
            relief->off[relief->n++] = s;
        relief->weight[s] += 1e-12; /* also where it needs nothing that lacks */
        for (int d = 0; d < space->dims; d++)
            relief->weight[s] += (double)space->need[i * space->dims + d] * space->scale[d];
    }
}

static int by_weight(const void *left, const void *right, void *ctx)
{
    const struct relief *relief = ctx;
    int a = *(const int *)left, b = *(const int *)right;
    double x = relief->weight[a], y = relief->weight[b];
    return x != y ? (x < y ? -1 : 1) : a - b;
}

/* True where one replica of the team would fit on the host. */
static bool has_room(const struct relief *relief, const struct team *team, int host)
{
    const struct place *place = relief->teams->puller->place;
    const struct space *space = place->space;
    int i = relief->teams->members[team->first];
    for (int d = 0; d < space->dims; d++)
        if (place->used[host * space->dims + d] + space->need[i * space->dims + d] >
            space->cap[host * space->dims + d])
            return false;
    return true;
}

/* Spreads the team over its hosts less the one that is over, and `target` if it is any; false where that
 * does not hold or does not relieve. */
static bool spread_off(struct relief *relief, struct team *team, int target)
{
    struct teams *teams = relief->teams;
    set_clear(teams);
    set_of(teams, team);
    for (int k = 0; k < teams->n_set; k++)
        if (teams->set[k] == relief->host)
            set_drop(teams, k);
    if ((target >= 0 && !set_add(teams, target)) || teams->n_set == 0 || teams->n_set > team->n)
        return false;
    relief->trials--;
    team_spread(teams, team);
    return !host_full(teams->puller->place, relief->host) && teams_hold(teams, relief->options);
}

/* What a trial is worth; -INFINITY: does not do. Everything is as before afterwards. */
static double trial(struct relief *relief, struct team *team, int target)
{
    struct teams *teams = relief->teams;
    struct place *place = teams->puller->place;
    double before = place->score, worth = -INFINITY;
    int hosts = place->n_used;
    teams->puller->n_undo = 0;
    if (spread_off(relief, team, target)) {
        worth = place->score - before;
        if (relief->options->objective == OBJECTIVE_HOSTS)
            worth -= (place->n_used - hosts) * (4 * place->space->total + place->space->mean);
    }
    puller_back(teams->puller, 0);
    team_refresh(teams, team);
    return worth;
}

static void host_relieve(struct relief *relief)
{
    struct teams *teams = relief->teams;
    struct team *who = NULL;
    double most = -INFINITY;
    int where = -1, compared = 0;
    relief_find(relief);
    if (relief->n > 1)
        qsort_r(relief->off, (size_t)relief->n, sizeof *relief->off, by_weight, relief);
    for (int k = 0; k < relief->n && compared < COMPARED; k++) {
        struct team *team = &teams->teams[relief->off[k]];
        double best = -INFINITY;
        for (int h = -1; h < teams->space->n_hosts && relief->trials > 0; h++) {
            if (h >= 0 && (!teams->space->open[h] || !has_room(relief, team, h)))
                continue;
            double worth = trial(relief, team, h);
            best = worth > best ? worth : best;
            if (worth > most) {
                most = worth;
                who = team;
                where = h;
            }
        }
        compared += best > -INFINITY;
    }
    teams->puller->n_undo = 0;
    if (who)
        spread_off(relief, who, where);
}

void teams_ease(struct teams *teams, const struct plan_options *options, int *best_at,
                   struct value *best)
{
    const struct space *space = teams->space;
    struct place *place = teams->puller->place;
    if (!best->valid || space->strict)
        return;
    teams_set(teams, best_at);
    if (place->n_over == 0)
        return;
    AUTO_FREE int *off = mem_array(space->model->n_services, sizeof *off);
    AUTO_FREE double *weight = mem_array(space->model->n_services, sizeof *weight);
    struct relief relief = {.teams = teams, .options = options, .off = off, .weight = weight,
                            .trials = TRIALS + options->time_limit_ms / MS_PER_TRIAL};
    for (int h = 0; h < space->n_hosts && relief.trials > 0; h++)
        if (place->n_residents[h] > 0 && host_full(place, h)) {
            relief.host = h;
            host_relieve(&relief);
        }
    place->score = place_score_exact(place);
    struct value relieved = {.objective = best->objective};
    teams_keep(teams, options, best_at, &relieved);
    if (relieved.valid)
        *best = relieved;
}
