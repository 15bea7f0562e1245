/* teams.c - counts of services on hosts, and who of the replicas goes where. */
#include "planner/teams.h"

#include <stdlib.h>
#include <string.h>
#include "model/rules.h"

static int by_name(const void *left, const void *right, void *ctx)
{
    const struct model *model = ctx;
    return strcmp(model->instances[*(const int *)left].name,
                  model->instances[*(const int *)right].name);
}

static bool team_uniform(const struct teams *teams, const struct team *team)
{
    const struct space *space = teams->space;
    const int *members = &teams->members[team->first];
    for (int k = 1; k < team->n; k++)
        if (memcmp(&space->need[members[k] * space->dims], &space->need[members[0] * space->dims],
                   (size_t)space->dims * sizeof *space->need) != 0 ||
            memcmp(space->groups[members[k]], space->groups[members[0]], sizeof space->groups[0]) !=
                0)
            return false;
    return true;
}

void teams_init(struct teams *teams, struct puller *puller)
{
    const struct space *space = puller->place->space;
    const struct model *model = space->model;
    size_t n_services = model->n_services;
    AUTO_FREE int *at = mem_array(n_services + 1, sizeof *at);
    *teams = (struct teams){.space = space, .puller = puller};
    teams->teams = mem_array(n_services, sizeof *teams->teams);
    teams->members = mem_array((size_t)space->n, sizeof *teams->members);
    teams->movable = mem_array(n_services, sizeof *teams->movable);
    teams->set = mem_array((size_t)space->n_hosts + 1, sizeof *teams->set);
    teams->chosen = mem_array((size_t)space->n_hosts, sizeof *teams->chosen);
    teams->to_base = mem_array((size_t)space->n_hosts + 1, sizeof *teams->to_base);
    teams->left = mem_array((size_t)space->n_hosts + 1, sizeof *teams->left);
    teams->tally = mem_array((size_t)space->n_hosts + 1, sizeof *teams->tally);
    teams->listed = mem_array(n_services, sizeof *teams->listed);
    teams->to = mem_array((size_t)space->n, sizeof *teams->to);
    for (int i = 0; i < space->n; i++)
        at[model->instances[i].service + 1]++;
    for (size_t s = 0; s < n_services; s++) {
        at[s + 1] += at[s];
        teams->teams[s].first = at[s];
    }
    for (int i = 0; i < space->n; i++) {
        struct team *team = &teams->teams[model->instances[i].service];
        teams->members[team->first + team->n++] = i;
        team->fixed |= space->fixed[i];
        team->placed += space->start[i] >= 0;
        team->price += space->start[i] >= 0 ? space->price[i] : 0;
    }
    for (size_t s = 0; s < n_services; s++) {
        struct team *team = &teams->teams[s];
        team->uniform = team_uniform(teams, team);
        qsort_r(&teams->members[team->first], (size_t)team->n, sizeof *teams->members, by_name,
                (void *)(uintptr_t)model);
        if (team->n > 0 && !team->fixed)
            teams->movable[teams->n_movable++] = (int)s;
    }
}

void teams_wipe(struct teams *teams)
{
    free(teams->teams);
    free(teams->members);
    free(teams->movable);
    free(teams->set);
    free(teams->chosen);
    free(teams->to_base);
    free(teams->left);
    free(teams->to);
    free(teams->tally);
    free(teams->listed);
}

bool set_add(struct teams *teams, int host)
{
    if (host < 0 || teams->chosen[host] || !teams->space->open[host])
        return false;
    teams->chosen[host] = true;
    teams->set[teams->n_set++] = host;
    return true;
}

void set_drop(struct teams *teams, int position)
{
    teams->chosen[teams->set[position]] = false;
    teams->set[position] = teams->set[--teams->n_set];
}

void set_clear(struct teams *teams)
{
    while (teams->n_set > 0)
        teams->chosen[teams->set[--teams->n_set]] = false;
}

void set_of(struct teams *teams, const struct team *team)
{
    const int *at = teams->puller->place->at;
    int from = teams->n_set;
    for (int k = 0; k < team->n; k++) {
        int host = at[teams->members[team->first + k]];
        if (host < 0)
            continue;
        set_add(teams, host);
        teams->tally[host]++;
    }
    for (int k = from + 1; k < teams->n_set; k++) {
        int host = teams->set[k], j = k;
        for (; j > from && teams->tally[teams->set[j - 1]] < teams->tally[host]; j--)
            teams->set[j] = teams->set[j - 1];
        teams->set[j] = host;
    }
    for (int k = 0; k < team->n; k++)
        if (at[teams->members[team->first + k]] >= 0)
            teams->tally[at[teams->members[team->first + k]]] = 0;
}

/* Whether counts are those of the start; for replicas that are not alike, who is where counts. */
static bool team_differs(struct teams *teams, const struct team *team)
{
    const int *at = teams->puller->place->at, *start = teams->space->start;
    bool differs = false;
    for (int k = 0; k < team->n && team->uniform; k++) {
        int i = teams->members[team->first + k];
        differs |= start[i] < 0 && at[i] >= 0;
        if (start[i] >= 0)
            teams->tally[start[i]]++;
        if (at[i] >= 0)
            teams->tally[at[i]]--;
    }
    for (int k = 0; k < team->n; k++) {
        int i = teams->members[team->first + k];
        if (!team->uniform) {
            differs |= at[i] != start[i];
            continue;
        }
        for (int side = 0; side < 2; side++) {
            int host = side ? at[i] : start[i];
            differs |= host >= 0 && teams->tally[host] != 0;
        }
    }
    for (int k = 0; k < team->n && team->uniform; k++) {
        int i = teams->members[team->first + k];
        if (start[i] >= 0)
            teams->tally[start[i]] = 0;
        if (at[i] >= 0)
            teams->tally[at[i]] = 0;
    }
    return differs;
}

void team_refresh(struct teams *teams, struct team *team)
{
    bool moved = team_differs(teams, team);
    int by = (int)moved - (int)team->moved;
    teams->paid += by * team->price;
    teams->restarts += by * team->placed;
    teams->asked += by * team->n;
    team->moved = moved;
}

/* Gives replicas in name order the hosts with something left: first who is at `home` already, then
 * the others in host order, as service_assign() of plan_service.c does. Results in teams->to. */
static void replicas_assign(struct teams *teams, const struct team *team, const int *home)
{
    int at = 0;
    for (int k = 0; k < team->n; k++) {
        int host = home[teams->members[team->first + k]];
        bool stays = host >= 0 && teams->left[host] > 0;
        teams->to[k] = stays ? host : -1;
        teams->left[stays ? host : 0] -= stays;
    }
    for (int k = 0; k < team->n; k++) {
        if (teams->to[k] >= 0)
            continue;
        while (teams->left[at] == 0)
            at++;
        teams->to[k] = at;
        teams->left[at]--;
    }
}

/* Of replicas that are alike those stay that are there now, which is less work; who it will be is
 * settled in teams_keep(). */
void team_spread(struct teams *teams, struct team *team)
{
    int share = team->n / teams->n_set, extra = team->n % teams->n_set;
    for (int k = 0; k < teams->n_set; k++)
        teams->left[teams->set[k]] = share + (k < extra);
    replicas_assign(teams, team, team->uniform ? teams->puller->place->at : teams->space->start);
    for (int k = 0; k < team->n; k++)
        puller_move(teams->puller, teams->members[team->first + k], teams->to[k]);
    team_refresh(teams, team);
}

void team_home(struct teams *teams, struct team *team)
{
    for (int k = 0; k < team->n; k++) {
        int i = teams->members[team->first + k];
        puller_move(teams->puller, i, teams->space->start[i]);
    }
    team_refresh(teams, team);
}

void teams_set(struct teams *teams, const int *at)
{
    place_set(teams->puller->place, at);
    for (size_t s = 0; s < teams->space->model->n_services; s++)
        team_refresh(teams, &teams->teams[s]);
}

void teams_set_counts(struct teams *teams, const int *at)
{
    for (int k = 0; k < teams->n_movable; k++) {
        struct team *team = &teams->teams[teams->movable[k]];
        for (int m = 0; m < team->n; m++)
            teams->left[at[teams->members[team->first + m]]]++;
        replicas_assign(teams, team, teams->space->start);
        for (int m = 0; m < team->n; m++)
            puller_move(teams->puller, teams->members[team->first + m], teams->to[m]);
        team_refresh(teams, team);
    }
}

bool teams_hold(const struct teams *teams, const struct plan_options *options)
{
    const struct place *place = teams->puller->place;
    const struct space *space = teams->space;
    struct err err = ERR_INIT;
    if (place->n_unplaced > 0 || (options->max_moves >= 0 && teams->asked > options->max_moves))
        return false;
    if (place->excess > 0 &&
        (space->strict || model_rules_kept(space->model, space->start, place->at, &err) < 0))
        return false;
    for (int h = 0; place->n_over > 0 && h < space->n_hosts; h++)
        for (int k = 0; host_full(place, h) && k < place->n_residents[h]; k++)
            if (space->strict ||
                teams->teams[space->model->instances[place->residents[h][k]].service].moved)
                return false;
    return true;
}

void teams_keep(struct teams *teams, const struct plan_options *options, int *best_at,
                struct value *best)
{
    const struct place *place = teams->puller->place;
    struct value value = {.objective = options->objective,
                          .score = place->score,
                          .paid = teams->paid,
                          .hosts = place->n_used,
                          .moves = (int)teams->restarts,
                          .excess = place->excess > 0 ? place->excess : 0,
                          .valid = true};
    if ((best->valid && !value_better(&value, best)) || !teams_hold(teams, options))
        return;
    *best = value;
    memcpy(best_at, place->at, sizeof *best_at * (size_t)place->space->n);
    for (size_t s = 0; s < place->space->model->n_services; s++) {
        const struct team *team = &teams->teams[s];
        if (!team->uniform)
            continue;
        for (int k = 0; k < team->n; k++)
            teams->left[place->at[teams->members[team->first + k]]]++;
        replicas_assign(teams, team, place->space->start);
        for (int k = 0; k < team->n; k++)
            best_at[teams->members[team->first + k]] = teams->to[k];
    }
}
