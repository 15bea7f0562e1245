/* teams_budget.c - steps of teams_pull.c where moves are limited: services that are worth their moves least
 * give them back, and clusters go where there is room for them. */
#include <math.h>

#include "planner/teams_step.h"

/* With a budget of moves: services looked at for one that goes home, and how many go in a step. */
#define HOME_SAMPLE 8
#define HOME_ROUNDS 8

/* What the score loses for each move that the budget needs back, when the service goes home. */
static double home_loss(struct teams *teams, struct team *team)
{
    struct puller *p = teams->puller;
    int64_t over = teams->asked - teams->budget;
    double before = p->place->score;
    size_t from = p->n_undo;
    team_home(teams, team);
    double loss = before - p->place->score;
    puller_back(p, from);
    team_refresh(teams, team);
    p->place->score = before;
    return loss / (double)(team->n < over ? team->n : over);
}

/* The service that is worth its moves least, of some that this step has not touched. */
static struct team *home_pick(struct teams *teams)
{
    struct team *best = NULL;
    double least = INFINITY;
    int from = (int)rng_below(teams->puller->rng, (uint32_t)teams->n_movable), seen = 0;
    for (int k = 0; k < teams->n_movable && seen < HOME_SAMPLE; k++) {
        struct team *team = &teams->teams[teams->movable[(from + k) % teams->n_movable]];
        if (!team->moved || team->placed < team->n || team_stamped(teams, team))
            continue;
        double loss = home_loss(teams, team);
        seen++;
        if (loss < least) {
            least = loss;
            best = team;
        }
    }
    return best;
}

/* A step may take more moves than there are: others give theirs back. */
bool teams_keep_budget(struct teams *teams)
{
    struct puller *p = teams->puller;
    for (int round = 0; teams->budget >= 0 && teams->asked > teams->budget; round++) {
        struct team *team = round < HOME_ROUNDS && p->cost <= teams->step_cost ? home_pick(teams)
                                                                               : NULL;
        if (!team)
            return false;
        size_t from = p->n_undo;
        team_home(teams, team);
        team_stamp(teams, team);
        for (size_t k = from; k < p->n_undo; k++)
            if (!teams_relieve(teams, p->place->at[p->undo[k].instance]))
                return false;
    }
    return true;
}

/* How many times over the host has room for such a part of the cluster, beside who is not of it. */
static double host_room(const struct teams *teams, struct team *const *cluster, int n, int hosts,
                        int host)
{
    const struct place *place = teams->puller->place;
    const struct space *space = teams->space;
    double least = INFINITY;
    for (int d = 0; d < space->dims; d++) {
        int64_t room = space->cap[host * space->dims + d] - place->used[host * space->dims + d];
        double need = 0;
        for (int k = 0; k < n; k++) {
            int first = teams->members[cluster[k]->first];
            int64_t each = space->need[first * space->dims + d];
            room += each * team_on(teams, cluster[k], host);
            need += (double)each * cluster[k]->n / hosts;
        }
        if (need > 0 && (double)room / need < least)
            least = (double)room / need;
    }
    return least;
}

/* Hosts that have room for the cluster when it is spread over so many; drawn, the roomier of four. */
static int roomy_hosts(struct teams *teams, struct team *const *cluster, int n, int hosts, int *base)
{
    struct puller *p = teams->puller;
    int n_base = 0;
    for (int tries = 0; n_base < hosts && tries < 4 * hosts; tries++) {
        int best = -1;
        double most = 0.5 + rng_real(p->rng) * 0.5; /* of its part at least so much fits */
        for (int k = 0; k < 4; k++) {
            int host = (int)rng_below(p->rng, (uint32_t)teams->space->n_hosts);
            bool known = !teams->space->open[host] || teams->chosen[host];
            double room = known ? 0 : host_room(teams, cluster, n, hosts, host);
            p->cost += n;
            if (room > most) {
                most = room;
                best = host;
            }
        }
        if (best >= 0 && set_add(teams, best))
            base[n_base++] = best;
    }
    return n_base;
}

/* Hosts of the service, as they are. */
static int hosts_of(struct teams *teams, const struct team *team, int *base)
{
    int n = 0;
    set_of(teams, team);
    for (; n < teams->n_set; n++)
        base[n] = teams->set[n];
    return n;
}

/* Where moves are few nobody else should have to leave: the cluster goes to hosts that have room for it,
 * or joins one of its services where that is. */
bool teams_step_room(struct teams *teams)
{
    struct puller *p = teams->puller;
    int groups[PULL_GROUPS], n = puller_cluster(p, groups), small = teams->space->n_hosts;
    struct team *cluster[PULL_GROUPS];
    for (int k = 0; k < n; k++) {
        cluster[k] = teams_of_group(teams, groups[k]);
        small = cluster[k]->n < small ? cluster[k]->n : small;
        if (cluster[k]->fixed)
            return false;
    }
    struct team *anchor = cluster[rng_below(p->rng, (uint32_t)n)];
    bool joins = anchor->moved && rng_below(p->rng, 2);
    int hosts = 1 + (int)rng_below(p->rng, (uint32_t)small), *base = teams->to_base;
    set_clear(teams);
    int n_base = joins ? hosts_of(teams, anchor, base) : roomy_hosts(teams, cluster, n, hosts, base);
    p->now++;
    for (int k = 0; k < n && n_base > 0; k++) {
        team_stamp(teams, cluster[k]);
        if (joins && cluster[k] == anchor)
            continue;
        set_clear(teams);
        for (int h = 0; h < n_base && teams->n_set < cluster[k]->n; h++)
            set_add(teams, base[h]);
        if (teams->n_set == 0)
            return false;
        team_spread(teams, cluster[k]);
    }
    for (int h = 0; h < n_base; h++)
        if (!teams_relieve(teams, base[h]))
            return false;
    return p->n_undo > 0 && teams_mend(teams);
}
