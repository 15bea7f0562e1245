/* teams_pull.c - large steps over whole services: a cluster of partners gets a set of hosts in
 * common; blocks of other services leave what is too full then, cheapest first. With a budget of
 * moves every step keeps to it: services that are worth their moves least go home. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/teams_step.h"

/* As in pull.c. */
#define HOT 3
#define COLD 0.01
#define EXCHANGES 30
#define HOMEWARD 120
/* A step that moves and looks more than that is given up; cheaper ones where moves are few. */
#define STEP_COST 2000
#define STEP_COST_LIMITED 1500
/* Searches that begin anew, each of so many steps at least; one more goes on from the best. */
#define STARTS 4
#define START_STEPS 4000

struct team *teams_of(const struct teams *teams, int instance)
{
    return &teams->teams[teams->space->model->instances[instance].service];
}

struct team *teams_of_group(const struct teams *teams, int group)
{
    return teams_of(teams, teams->space->members[teams->space->first_member[group]]);
}

bool team_stamped(const struct teams *teams, const struct team *team)
{
    return teams->puller->stamp[teams->members[team->first]] == teams->puller->now;
}

void team_stamp(const struct teams *teams, const struct team *team)
{
    teams->puller->stamp[teams->members[team->first]] = teams->puller->now;
}

int team_on(const struct teams *teams, const struct team *team, int host)
{
    int n = 0;
    for (int k = 0; k < team->n; k++)
        n += teams->puller->place->at[teams->members[team->first + k]] == host;
    return n;
}

/* Room that `n` times the need of the instance would make in the dimensions that are over. */
static double relief(const struct place *place, int instance, int host)
{
    const struct space *space = place->space;
    double sum = 0;
    for (int d = 0; d < space->dims; d++)
        if (place->used[host * space->dims + d] > space->cap[host * space->dims + d])
            sum += (double)space->need[instance * space->dims + d] * space->scale[d];
    return sum;
}

/* A replica of the block that leaves: least loss for the room; -1: none may. */
static int block_pick(struct teams *teams, int host)
{
    struct puller *p = teams->puller;
    const struct place *place = p->place;
    const struct space *space = teams->space;
    double best_loss = INFINITY;
    int best = -1;
    for (int k = 0; k < place->n_residents[host]; k++) {
        int i = place->residents[host][k];
        const struct team *team = teams_of(teams, i);
        double part = relief(place, i, host);
        if (team->fixed || team_stamped(teams, team) || part <= 0)
            continue;
        double noise = 0.02 * space->grain * (rng_real(p->rng) + !team->moved);
        double price = team->moved ? 0 : p->price_move * team->placed;
        double loss = (noise + price - place_gain(place, i, -1)) / part;
        p->cost++;
        if (loss < best_loss) {
            best_loss = loss;
            best = i;
        }
    }
    return best;
}

static bool block_fits(const struct place *place, int instance, int n, int host)
{
    const struct space *space = place->space;
    for (int d = 0; d < space->dims; d++)
        if (place->used[host * space->dims + d] + n * space->need[instance * space->dims + d] >
            space->cap[host * space->dims + d])
            return false;
    return !rules_problem(place->rules, space->model->instances[instance].service,
                          place->at[instance], host);
}

/* The host outside the set that takes the block and gives it most; -1: none. */
static int block_refuge(struct teams *teams, int instance, int n)
{
    struct puller *p = teams->puller;
    const struct place *place = p->place;
    const struct space *space = teams->space;
    int best = -1, from = (int)rng_below(p->rng, (uint32_t)space->n_hosts);
    double best_gain = 0;
    for (int k = 0; k < space->n_hosts && k < 96; k++) {
        int h = (from + k) % space->n_hosts;
        if (!space->open[h] || teams->chosen[h] || !block_fits(place, instance, n, h))
            continue;
        double gain = n * place_gain(place, instance, h);
        if (place->n_residents[h] == 0)
            gain -= p->price_host;
        p->cost++;
        if (best < 0 || gain > best_gain) {
            best = h;
            best_gain = gain;
        }
    }
    return best;
}

bool teams_relieve(struct teams *teams, int host)
{
    for (int round = 0; host_full(teams->puller->place, host); round++) {
        int i = round < 64 ? block_pick(teams, host) : -1;
        if (i < 0)
            return false;
        struct team *team = teams_of(teams, i);
        set_clear(teams);
        set_of(teams, team);
        int to = block_refuge(teams, i, team_on(teams, team, host)), at = 0;
        while (at < teams->n_set && teams->set[at] != host)
            at++;
        if (at == teams->n_set)
            return false; /* it stays where nothing may come: not in any set */
        if (to >= 0) {
            teams->chosen[host] = false;
            teams->chosen[to] = true;
            teams->set[at] = to;
        } else if (teams->n_set > 1) {
            set_drop(teams, at);
        } else {
            return false;
        }
        team_spread(teams, team);
        team_stamp(teams, team);
    }
    return true;
}

/* What a step made must hold on all hosts that it touched; who leaves one touches others. */
bool teams_mend(struct teams *teams)
{
    const struct puller *p = teams->puller;
    for (size_t k = 0; k < p->n_undo; k++)
        if (p->cost > teams->step_cost || !teams_relieve(teams, p->place->at[p->undo[k].instance]))
            return false;
    return true;
}

static int any_replica(struct teams *teams, const struct team *team)
{
    return teams->members[team->first + (int)rng_below(teams->puller->rng, (uint32_t)team->n)];
}

/* Up to `most` hosts for all services of the cluster: some of what one of them has, or any. */
static int base_draw(struct teams *teams, struct team *const *cluster, int n, int *base, int most)
{
    struct puller *p = teams->puller;
    int n_base = 0;
    const struct team *anchor = cluster[rng_below(p->rng, (uint32_t)n)];
    bool own = rng_below(p->rng, 4) > 0;
    for (int tries = 0; n_base < most && tries < 3 * most; tries++) {
        int host = own ? p->place->at[any_replica(teams, anchor)]
                       : (int)rng_below(p->rng, (uint32_t)teams->space->n_hosts);
        bool known = host < 0 || !teams->space->open[host];
        for (int k = 0; k < n_base; k++)
            known |= base[k] == host;
        if (!known)
            base[n_base++] = host;
        if (tries == 2 * most && rng_below(p->rng, 2))
            own = false;
    }
    return n_base;
}

static bool step_pull(struct teams *teams)
{
    struct puller *p = teams->puller;
    int groups[PULL_GROUPS], n_groups = puller_cluster(p, groups), n = 0, n_movable = 0;
    struct team *cluster[PULL_GROUPS];
    int small = teams->space->n, base[16];
    for (int k = 0; k < n_groups; k++) {
        cluster[n] = teams_of_group(teams, groups[k]);
        n_movable += !cluster[n]->fixed;
        small = cluster[n]->n < small ? cluster[n]->n : small;
        n++;
    }
    int most = rng_below(p->rng, 3) == 0
                   ? 1
                   : 1 + (int)rng_below(p->rng, (uint32_t)(small < 12 ? small : 12));
    if (rng_below(p->rng, 4) == 0)
        most = small < 16 ? small : 16;
    int n_base = n_movable ? base_draw(teams, cluster, n, base, most) : 0;
    if (n_base == 0)
        return false;
    p->now++;
    for (int k = 0; k < n; k++) {
        struct team *team = cluster[k];
        if (team->fixed)
            continue;
        set_clear(teams);
        for (int h = 0; h < n_base && teams->n_set < team->n; h++)
            set_add(teams, base[h]);
        /* One of many replicas mostly keeps its other hosts. */
        if (team->n > small && rng_below(p->rng, 2))
            set_of(teams, team);
        while (teams->n_set > team->n)
            set_drop(teams, teams->n_set - 1);
        team_spread(teams, team);
        team_stamp(teams, team);
    }
    for (int h = 0; h < n_base; h++)
        if (!teams_relieve(teams, base[h]))
            return false;
    return p->n_undo > 0 && teams_mend(teams);
}

/* One host of one service for another one, or one more, or one less. */
static bool step_single(struct teams *teams)
{
    struct puller *p = teams->puller;
    struct team *team =
        &teams->teams[teams->movable[rng_below(p->rng, (uint32_t)teams->n_movable)]];
    int groups[PULL_GROUPS], n = puller_cluster(p, groups);
    int host = (int)rng_below(p->rng, (uint32_t)teams->space->n_hosts);
    if (rng_below(p->rng, 4)) {
        team = teams_of_group(teams, groups[0]);
        const struct team *other = teams_of_group(teams, groups[n - 1]);
        host = p->place->at[any_replica(teams, other)];
    }
    if (team->fixed || host < 0)
        return false;
    p->now++;
    set_clear(teams);
    set_of(teams, team);
    uint32_t kind = rng_below(p->rng, 3);
    if (kind > 0 && teams->n_set > 0)
        set_drop(teams, (int)rng_below(p->rng, (uint32_t)teams->n_set));
    if (kind < 2 && teams->n_set < team->n)
        set_add(teams, host);
    if (teams->n_set == 0)
        return false;
    team_spread(teams, team);
    team_stamp(teams, team);
    return p->n_undo > 0 && (teams->chosen[host] ? teams_relieve(teams, host) : true) &&
           teams_mend(teams);
}

/* All services with partners that are on one of two hosts go to the other one instead. */
static bool step_exchange(struct teams *teams)
{
    struct puller *p = teams->puller;
    const struct place *place = p->place;
    const struct space *space = teams->space;
    int groups[PULL_GROUPS];
    int a = (int)rng_below(p->rng, (uint32_t)space->n_hosts);
    puller_cluster(p, groups);
    int b = place->at[any_replica(teams, teams_of_group(teams, groups[0]))], n = 0;
    if (a == b || b < 0 || !space->open[a] || !space->open[b])
        return false;
    p->now++;
    for (int side = 0; side < 2; side++) {
        int host = side ? b : a;
        for (int k = 0; k < place->n_residents[host]; k++) {
            int i = place->residents[host][k];
            struct team *team = teams_of(teams, i);
            if (team->fixed || team_stamped(teams, team) ||
                (space->groups[i][0] < 0 && space->groups[i][1] < 0))
                continue;
            team_stamp(teams, team);
            teams->listed[n++] = space->model->instances[i].service;
        }
    }
    for (int k = 0; k < n; k++) {
        struct team *team = &teams->teams[teams->listed[k]];
        set_clear(teams);
        set_of(teams, team);
        if (teams->n_set == 0 || (teams->chosen[a] && teams->chosen[b]))
            continue;
        for (int j = 0; j < teams->n_set; j++)
            if (teams->set[j] == a || teams->set[j] == b) {
                int to = teams->set[j] == a ? b : a;
                teams->chosen[teams->set[j]] = false;
                teams->chosen[to] = true;
                teams->set[j] = to;
                break;
            }
        team_spread(teams, team);
    }
    return p->n_undo > 0 && teams_relieve(teams, a) && teams_relieve(teams, b) && teams_mend(teams);
}

static bool step_home(struct teams *teams)
{
    struct puller *p = teams->puller;
    int groups[PULL_GROUPS], n = 1 + (int)rng_below(p->rng, 2);
    puller_cluster(p, groups);
    p->now++;
    for (int k = 0; k < n; k++) {
        struct team *team = teams_of_group(teams, groups[k]);
        if (!team->moved || team->placed < team->n)
            continue;
        team_home(teams, team);
        team_stamp(teams, team);
    }
    size_t moved = p->n_undo;
    for (size_t k = 0; k < moved; k++)
        if (!teams_relieve(teams, p->place->at[p->undo[k].instance]))
            return false;
    return moved > 0 && teams_mend(teams);
}

static bool step(struct teams *teams)
{
    struct puller *p = teams->puller;
    int64_t excess = p->place->excess;
    uint32_t kind = rng_below(p->rng, 1000);
    bool done = kind < EXCHANGES                                     ? step_exchange(teams)
                : teams->budget >= 0 && kind < EXCHANGES + HOMEWARD ? step_home(teams)
                : teams->budget >= 0 && kind < 500                  ? teams_step_room(teams)
                : kind < (teams->budget >= 0 ? 750 : 500)           ? step_single(teams)
                                                                     : step_pull(teams);
    return done && teams_keep_budget(teams) && p->place->excess <= excess;
}

static double energy(const struct teams *teams)
{
    const struct puller *p = teams->puller;
    return p->place->score - teams->paid - p->price_host * p->place->n_used -
           1e-4 * teams->space->mean * (double)teams->asked;
}

static void step_back(struct teams *teams)
{
    struct puller *p = teams->puller;
    size_t n = p->n_undo;
    puller_back(p, 0);
    for (size_t k = 0; k < n; k++)
        if (k == 0 ||
            teams_of(teams, p->undo[k].instance) != teams_of(teams, p->undo[k - 1].instance))
            team_refresh(teams, teams_of(teams, p->undo[k].instance));
}

/* Services that need not have moved go home. */
static void trim(struct teams *teams, const struct plan_options *options, struct effort *effort,
                 int *best_at, struct value *best)
{
    for (int k = 0; k < teams->n_movable && !effort->cut; k++) {
        struct team *team = &teams->teams[teams->movable[k]];
        double score = teams->puller->place->score;
        if (!team->moved || team->placed < team->n)
            continue;
        struct value before = *best;
        teams->puller->n_undo = 0;
        team_home(teams, team);
        teams_keep(teams, options, best_at, best);
        if (!value_better(best, &before)) {
            step_back(teams);
            teams->puller->place->score = score;
        }
        effort_spend(effort, team->n);
    }
}

static void pass(struct teams *teams, const struct plan_options *options, int64_t steps,
                 struct effort *effort, int *best_at, struct value *best)
{
    const struct space *space = teams->space;
    struct puller *p = teams->puller;
    bool limited = options->max_moves >= 0 && options->max_moves < space->n;
    teams_set(teams, best_at);
    teams->budget = limited ? options->max_moves : -1;
    teams->step_cost = limited ? STEP_COST_LIMITED : STEP_COST;
    p->price_host = (options->objective == OBJECTIVE_HOSTS ? 3 : 0.01) * space->mean;
    double at_home = p->place->score;
    p->price_move = 1e-4 * space->mean;
    for (int64_t s = 0; s < steps && p->n_edges > 0 && teams->n_movable > 0; s++) {
        double temperature = HOT * pow(COLD / HOT, (double)s / (double)steps) * space->grain;
        double before = energy(teams);
        p->n_undo = 0;
        p->cost = 4;
        /* What a move is worth on average: who makes room should not be dearer. */
        if (s % 256 == 0 && limited)
            p->price_move = 0.5 * fmax(p->place->score - at_home, 0) / (double)(teams->budget + 1);
        bool done = step(teams);
        double gain = done ? energy(teams) - before : 0;
        if (!done || (gain < 0 && rng_real(p->rng) >= exp(gain / temperature)))
            step_back(teams);
        else if (gain != 0)
            teams_keep(teams, options, best_at, best);
        if (s % 4096 == 0) /* all rows anew cost as much as some ten steps */
            p->place->score = place_score_exact(p->place); /* no drift of roundings */
        if (effort_spend(effort, p->cost))
            break;
    }
    set_clear(teams);
    teams_set(teams, best_at);
    trim(teams, options, effort, best_at, best);
}

void teams_pull(struct teams *teams, const struct plan_options *options, int64_t steps,
                struct effort *effort, int *best_at, struct value *best)
{
    bool limited = options->max_moves >= 0 && options->max_moves < teams->space->n;
    if (!limited) {
        pass(teams, options, steps, effort, best_at, best);
        return;
    }
    /* Which host a cluster comes to is settled early, by chance: several begin anew. */
    AUTO_FREE int *start = mem_dup(best_at, sizeof *start * (size_t)teams->space->n);
    AUTO_FREE int *at = mem_array((size_t)teams->space->n, sizeof *at);
    struct value first = *best;
    int64_t starts = steps / START_STEPS < STARTS ? steps / START_STEPS + 1 : STARTS;
    for (int64_t k = 0; k < starts && !effort->cut; k++) {
        struct value value = first;
        memcpy(at, start, sizeof *at * (size_t)teams->space->n);
        pass(teams, options, steps / (starts + 1), effort, at, &value);
        if (value_better(&value, best)) {
            *best = value;
            memcpy(best_at, at, sizeof *at * (size_t)teams->space->n);
        }
    }
    if (!effort->cut)
        pass(teams, options, steps / (starts + 1), effort, best_at, best);
}
