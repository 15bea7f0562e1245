/* service.c - annealing over the host sets of services. */
#include "planner/service.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "planner/pack.h"

/* Proposals per service and round; a proposal moves all replicas and costs some µs. */
#define ROUND_PER_SERVICE 300
#define ROUNDS 5

struct team { /* the replicas of a service */
    int first, n; /* in `members` */
    bool fixed;   /* some replica stays: all do */
    bool pending; /* some replica is placed nowhere */
    bool moved;
};

struct teams {
    const struct space *space;
    struct team *teams;
    int *members;
    int *movable, n_movable;
    int restarts; /* placed replicas of services that are moved */
    int *set, n_set; /* hosts of a proposal */
    int *old, *order;
    bool *chosen;
};

static void teams_init(struct teams *teams, struct space *space)
{
    const struct model *model = space->model;
    size_t n_services = model->n_services;
    AUTO_FREE int *at = mem_array(n_services + 1, sizeof *at);
    teams->space = space;
    teams->teams = mem_array(n_services, sizeof *teams->teams);
    teams->members = mem_array((size_t)space->n, sizeof *teams->members);
    teams->movable = mem_array(n_services, sizeof *teams->movable);
    teams->set = mem_array((size_t)space->n_hosts + 1, sizeof *teams->set);
    teams->chosen = mem_array((size_t)space->n_hosts, sizeof *teams->chosen);
    teams->old = mem_array((size_t)space->n, sizeof *teams->old);
    teams->order = mem_array((size_t)space->n, sizeof *teams->order);
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
        team->pending |= space->start[i] < 0;
    }
    for (size_t s = 0; s < n_services; s++)
        if (teams->teams[s].n > 0 && !teams->teams[s].fixed)
            teams->movable[teams->n_movable++] = (int)s;
}

static void teams_wipe(struct teams *teams)
{
    free(teams->teams);
    free(teams->members);
    free(teams->movable);
    free(teams->set);
    free(teams->chosen);
    free(teams->old);
    free(teams->order);
}

/* Every replica with the largest need of its service. */
static void needs_level(struct teams *teams, struct space *space)
{
    for (size_t s = 0; s < space->model->n_services; s++) {
        const struct team *team = &teams->teams[s];
        for (int d = 0; d < space->dims; d++) {
            int64_t most = 0;
            for (int k = 0; k < team->n; k++) {
                int64_t need = space->need[teams->members[team->first + k] * space->dims + d];
                most = need > most ? need : most;
            }
            for (int k = 0; k < team->n; k++)
                space->need[teams->members[team->first + k] * space->dims + d] = most;
        }
    }
}

/* Spreads the replicas evenly over teams->set; who is on a host of the set stays while there is
 * room in its share. */
static void team_spread(struct teams *teams, struct place *place, const struct team *team)
{
    int share = team->n / teams->n_set, extra = team->n % teams->n_set, n_left = 0, at = 0;
    AUTO_FREE int *room = mem_array((size_t)teams->n_set, sizeof *room);
    for (int h = 0; h < teams->n_set; h++)
        room[h] = share + (h < extra);
    for (int k = 0; k < team->n; k++) {
        int i = teams->members[team->first + k], h = 0;
        while (h < teams->n_set && (teams->set[h] != place->at[i] || room[h] == 0))
            h++;
        if (h < teams->n_set)
            room[h]--;
        else
            teams->order[n_left++] = i;
    }
    for (int k = 0; k < n_left; k++) {
        while (room[at] == 0)
            at++;
        place_move(place, teams->order[k], teams->set[at]);
        room[at]--;
    }
}

static bool set_add(struct teams *teams, int host)
{
    if (host < 0 || teams->chosen[host] || !teams->space->open[host])
        return false;
    teams->chosen[host] = true;
    teams->set[teams->n_set++] = host;
    return true;
}

static void set_clear(struct teams *teams)
{
    while (teams->n_set > 0)
        teams->chosen[teams->set[--teams->n_set]] = false;
}

static void set_of(struct teams *teams, const struct place *place, const struct team *team)
{
    for (int k = 0; k < team->n; k++)
        set_add(teams, place->at[teams->members[team->first + k]]);
}

/* A partner's team by a random link of the service; NULL when it has none. */
static const struct team *partner_of(const struct teams *teams, const struct team *team,
                                     struct rng *rng)
{
    const struct space *space = teams->space;
    int i = teams->members[team->first + (int)rng_below(rng, (uint32_t)team->n)];
    int g = space->groups[i][0];
    if (space->groups[i][1] >= 0 && (g < 0 || rng_below(rng, 2)))
        g = space->groups[i][1];
    size_t n = g < 0 ? 0 : space->first_link[g + 1] - space->first_link[g];
    if (n == 0)
        return NULL;
    const struct link *link = &space->links[space->first_link[g] + rng_below(rng, (uint32_t)n)];
    int other = space->members[space->first_member[link->group]];
    return &teams->teams[space->model->instances[other].service];
}

/* Hosts of a proposal: those of a partner, one more, one less, another one, or one alone. */
static void set_propose(struct teams *teams, const struct place *place, const struct team *team,
                        struct rng *rng)
{
    const struct space *space = teams->space;
    uint32_t kind = rng_below(rng, 8);
    const struct team *partner = partner_of(teams, team, rng);
    set_clear(teams);
    if (kind < 3 && partner) {
        set_of(teams, place, partner);
        while (teams->n_set > team->n) {
            int drop = (int)rng_below(rng, (uint32_t)teams->n_set);
            teams->chosen[teams->set[drop]] = false;
            teams->set[drop] = teams->set[--teams->n_set];
        }
        return;
    }
    set_of(teams, place, team);
    int host = (int)rng_below(rng, (uint32_t)space->n_hosts);
    if (partner && rng_below(rng, 4))
        host = place->at[teams->members[partner->first +
                                        (int)rng_below(rng, (uint32_t)partner->n)]];
    if (kind == 7)
        set_clear(teams);
    else if (kind < 6 && teams->n_set > 0 && (kind == 3 || teams->n_set == team->n || kind == 4)) {
        int drop = (int)rng_below(rng, (uint32_t)teams->n_set);
        teams->chosen[teams->set[drop]] = false;
        teams->set[drop] = teams->set[--teams->n_set];
    }
    if ((kind != 3 || teams->n_set == 0) && teams->n_set < team->n)
        set_add(teams, host);
}

struct energy {
    double over, host, move;
};

static double energy_of(const struct place *place, const struct teams *teams,
                        const struct energy *prices, const struct plan_options *options)
{
    double extra = options->max_moves >= 0 && teams->restarts > options->max_moves
                       ? (double)(teams->restarts - options->max_moves)
                       : 0;
    return place->score - prices->over * (place->over + 0.06 * ((double)place->excess + extra)) -
           prices->host * place->n_used - prices->move * teams->restarts;
}

static bool team_moved(const struct teams *teams, const struct place *place,
                       const struct team *team)
{
    for (int k = 0; k < team->n; k++) {
        int i = teams->members[team->first + k];
        if (place->at[i] != teams->space->start[i])
            return true;
    }
    return false;
}

static int team_placed(const struct teams *teams, const struct team *team)
{
    int n = 0;
    for (int k = 0; k < team->n; k++)
        n += teams->space->start[teams->members[team->first + k]] >= 0;
    return n;
}

/* Back to where its replicas were at the start, if that is asked; else the proposed set. */
static void team_apply(struct teams *teams, struct place *place, struct team *team, bool home)
{
    for (int k = 0; home && k < team->n; k++) {
        int i = teams->members[team->first + k];
        place_move(place, i, teams->space->start[i]);
    }
    if (!home)
        team_spread(teams, place, team);
    bool moved = team_moved(teams, place, team);
    teams->restarts += ((int)moved - (int)team->moved) * team_placed(teams, team);
    team->moved = moved;
}

static void team_step(struct teams *teams, struct place *place, const struct energy *prices,
                      const struct plan_options *options, double temperature, struct rng *rng)
{
    struct team *team =
        &teams->teams[teams->movable[rng_below(rng, (uint32_t)teams->n_movable)]];
    bool home = team->moved && !team->pending && rng_below(rng, 12) == 0;
    double before = energy_of(place, teams, prices, options);
    set_propose(teams, place, team, rng);
    if (!home && teams->n_set == 0)
        return;
    for (int k = 0; k < team->n; k++)
        teams->old[k] = place->at[teams->members[team->first + k]];
    team_apply(teams, place, team, home);
    double gain = energy_of(place, teams, prices, options) - before;
    if (gain >= 0 || rng_real(rng) < exp(gain / temperature))
        return;
    for (int k = 0; k < team->n; k++)
        place_move(place, teams->members[team->first + k], teams->old[k]);
    bool moved = team_moved(teams, place, team);
    teams->restarts += ((int)moved - (int)team->moved) * team_placed(teams, team);
    team->moved = moved;
}

static void keep(struct teams *teams, struct place *place, const struct plan_options *options,
                 int *best_at, struct value *best)
{
    if (options->max_moves >= 0 && teams->restarts > options->max_moves)
        return;
    if (place->n_over > 0 || place->excess > 0 || place->n_unplaced > 0) {
        if (!place_holds(place))
            return;
    }
    struct value value = value_of(place, options);
    value.valid = true;
    value.moves = teams->restarts;
    if (best->valid && !value_better(&value, best))
        return;
    *best = value;
    memcpy(best_at, place->at, sizeof *best_at * (size_t)place->space->n);
}

/* Pending services go to the emptiest hosts first; annealing finds better ones. */
static void pending_place(struct teams *teams, struct place *place)
{
    const struct space *space = teams->space;
    for (int k = 0; k < teams->n_movable; k++) {
        struct team *team = &teams->teams[teams->movable[k]];
        if (!team->pending)
            continue;
        set_clear(teams);
        set_of(teams, place, team);
        for (int h = 0; h < space->n_hosts && teams->n_set < team->n; h++)
            if (place->n_residents[(h + k) % space->n_hosts] <= 2 * space->n / space->n_hosts + 1)
                set_add(teams, (h + k) % space->n_hosts);
        if (teams->n_set > 0)
            team_apply(teams, place, team, false);
    }
}

static void teams_from(struct teams *teams, struct place *place, const int *at)
{
    place_set(place, at);
    teams->restarts = 0;
    for (size_t s = 0; s < teams->space->model->n_services; s++) {
        struct team *team = &teams->teams[s];
        team->moved = team_moved(teams, place, team);
        teams->restarts += team->moved ? team_placed(teams, team) : 0;
    }
}

void service_search(struct space *space, const struct plan_options *options,
                    struct effort *effort, int *best_at, struct value *best)
{
    struct teams teams = {0};
    struct rng rng = {options->seed * UINT64_C(0x9e3779b97f4a7c15) + 7};
    teams_init(&teams, space);
    needs_level(&teams, space);
    AUTO(place) struct place *place = place_new(space, space->start);
    *best = (struct value){.objective = options->objective};
    memcpy(best_at, space->start, sizeof *best_at * (size_t)space->n);
    place->score = place_score_exact(place);
    teams_from(&teams, place, space->start);
    keep(&teams, place, options, best_at, best);
    bool hosts = options->objective == OBJECTIVE_HOSTS;
    int64_t batches = (int64_t)teams.n_movable * ROUND_PER_SERVICE / 64 + 16;
    double hot = 2;
    if (space->n_hosts > 0)
        pending_place(&teams, place);
    for (int round = 0; round < ROUNDS && teams.n_movable > 0 && space->n_hosts > 0; round++) {
        if (round > 0 && best->valid)
            teams_from(&teams, place, best_at);
        for (int64_t b = 0; b < batches && !effort->cut; b++) {
            double part = (double)b / (double)batches;
            double price = (double)space->n / space->n_hosts * space->mean;
            struct energy prices = {.over = price * pow(400, part),
                                    .host = (hosts ? 3 : 0.02) * space->mean,
                                    .move = 1e-4 * space->mean};
            for (int k = 0; k < 64; k++)
                team_step(&teams, place, &prices, options, space->mean * hot * pow(0.005, part),
                          &rng);
            place->score = place_score_exact(place);
            keep(&teams, place, options, best_at, best);
            effort_spend(effort, 64);
        }
        hot = round % 2 ? 2 : 0.5;
    }
    set_clear(&teams);
    teams_wipe(&teams);
}
