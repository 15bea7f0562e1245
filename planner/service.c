/* service.c - the search over the host sets of services: annealing with soft capacities to a
 * placement that holds, large steps from there, all placements where they are few and nothing was
 * found. */
#include "planner/service.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "planner/teams.h"

/* Proposals per service and round; a proposal moves all replicas and costs some µs. */
#define ROUND_PER_SERVICE 300
#define ROUNDS 8
/* Steps of pulling per service, and per ms of the time limit: a step costs some 100 µs at a few
 * thousand replicas. */
#define PULLS_PER_SERVICE 220
#define PULLS_PER_MS 10
#define PULLS_MORE_MS 10000

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
static void set_propose(struct teams *teams, const struct team *team, struct rng *rng)
{
    const struct space *space = teams->space;
    uint32_t kind = rng_below(rng, 8);
    const struct team *partner = partner_of(teams, team, rng);
    set_clear(teams);
    if (kind < 3 && partner) {
        set_of(teams, partner);
        while (teams->n_set > team->n)
            set_drop(teams, (int)rng_below(rng, (uint32_t)teams->n_set));
        return;
    }
    set_of(teams, team);
    int host = (int)rng_below(rng, (uint32_t)space->n_hosts);
    if (partner && rng_below(rng, 4))
        host = teams->puller->place
                   ->at[teams->members[partner->first + (int)rng_below(rng, (uint32_t)partner->n)]];
    if (kind == 7)
        set_clear(teams);
    else if (kind < 6 && teams->n_set > 0 && (kind == 3 || teams->n_set == team->n || kind == 4))
        set_drop(teams, (int)rng_below(rng, (uint32_t)teams->n_set));
    if ((kind != 3 || teams->n_set == 0) && teams->n_set < team->n)
        set_add(teams, host);
}

struct energy {
    double over, host, move;
};

static double energy_of(const struct teams *teams, const struct energy *prices,
                        const struct plan_options *options)
{
    const struct place *place = teams->puller->place;
    double extra = options->max_moves >= 0 && teams->asked > options->max_moves
                       ? (double)(teams->asked - options->max_moves)
                       : 0;
    return place->score - teams->paid -
           prices->over * (place->over + 0.06 * ((double)place->excess + extra)) -
           prices->host * place->n_used - prices->move * (double)teams->restarts;
}

static void team_step(struct teams *teams, const struct energy *prices,
                      const struct plan_options *options, double temperature, struct rng *rng)
{
    struct team *team = &teams->teams[teams->movable[rng_below(rng, (uint32_t)teams->n_movable)]];
    bool home = team->moved && team->placed == team->n && rng_below(rng, 12) == 0;
    double before = energy_of(teams, prices, options);
    teams->puller->n_undo = 0;
    set_propose(teams, team, rng);
    if (home)
        team_home(teams, team);
    else if (teams->n_set > 0)
        team_spread(teams, team);
    double gain = energy_of(teams, prices, options) - before;
    if (gain >= 0 || rng_real(rng) < exp(gain / temperature))
        return;
    puller_back(teams->puller, 0);
    team_refresh(teams, team);
}

/* Services with replicas that are nowhere go to the emptiest hosts first; annealing finds better
 * ones. */
static void pending_place(struct teams *teams)
{
    const struct space *space = teams->space;
    const struct place *place = teams->puller->place;
    for (int k = 0; k < teams->n_movable; k++) {
        struct team *team = &teams->teams[teams->movable[k]];
        if (team->placed == team->n)
            continue;
        set_clear(teams);
        set_of(teams, team);
        for (int h = 0; h < space->n_hosts && teams->n_set < team->n; h++)
            if (place->n_residents[(h + k) % space->n_hosts] <= 2 * space->n / space->n_hosts + 1)
                set_add(teams, (h + k) % space->n_hosts);
        for (int h = 0; h < space->n_hosts && teams->n_set == 0; h++)
            set_add(teams, h);
        teams->puller->n_undo = 0;
        if (teams->n_set > 0)
            team_spread(teams, team);
    }
}

static void anneal_round(struct teams *teams, const struct plan_options *options, double hot,
                         struct effort *effort, int *best_at, struct value *best)
{
    const struct space *space = teams->space;
    bool hosts = options->objective == OBJECTIVE_HOSTS;
    int64_t batches = (int64_t)teams->n_movable * ROUND_PER_SERVICE / 64 + 16;
    double price = (double)space->n / space->n_hosts * space->mean;
    for (int64_t b = 0; b < batches && !effort->cut; b++) {
        double part = (double)b / (double)batches;
        struct energy prices = {.over = price * pow(400, part),
                                .host = (hosts ? 3 : 0.02) * space->mean,
                                .move = 1e-4 * space->mean};
        for (int k = 0; k < 64; k++)
            team_step(teams, &prices, options, space->mean * hot * pow(0.005, part),
                      teams->puller->rng);
        teams->puller->place->score = place_score_exact(teams->puller->place);
        teams_keep(teams, options, best_at, best);
        effort_spend(effort, 64);
    }
}

/* Until something holds, and breaks no rule that could be kept. */
static void rounds(struct teams *teams, const struct plan_options *options, struct effort *effort,
                   int *best_at, struct value *best)
{
    double hot = 2;
    for (int round = 0;
         round < ROUNDS && (!best->valid || best->excess > 0) && !effort->cut; round++) {
        anneal_round(teams, options, hot, effort, best_at, best);
        hot = round % 2 ? 2 : 0.5;
    }
}

void service_search(struct space *space, const struct plan_options *options, struct effort *effort,
                    int *best_at, struct value *best)
{
    struct teams teams;
    struct puller puller;
    struct rng rng = {options->seed * UINT64_C(0x9e3779b97f4a7c15) + 7};
    AUTO(place) struct place *place = place_new(space, space->start);
    *best = (struct value){.objective = options->objective};
    memcpy(best_at, space->start, sizeof *best_at * (size_t)space->n);
    place->score = place_score_exact(place);
    puller_init(&puller, place, &rng);
    teams_init(&teams, &puller);
    teams_keep(&teams, options, best_at, best);
    if (teams.n_movable > 0 && space->n_hosts > 0) {
        pending_place(&teams);
        teams_keep(&teams, options, best_at, best);
        rounds(&teams, options, effort, best_at, best);
        if (!best->valid)
            best->none = service_exhaust(space, options, true, effort, best_at, best,
                                         &(double){0}) == EXHAUST_NONE;
        int64_t in_time = options->time_limit_ms * PULLS_PER_MS;
        int64_t steps = (int64_t)PULLS_PER_SERVICE * teams.n_movable *
                        (1 + (options->time_limit_ms - 1) / PULLS_MORE_MS);
        if (best->valid && !effort->cut)
            teams_pull(&teams, options, steps < in_time ? steps : in_time, effort, best_at, best);
    } else if (!best->valid) {
        best->none = true; /* nothing may move, and what is there does not hold */
    }
    teams_ease(&teams, options, best_at, best);
    set_clear(&teams);
    teams_wipe(&teams);
    puller_wipe(&puller);
}

void service_homeward(struct space *space, const struct plan_options *options, const int *at,
                      int *best_at, struct value *best)
{
    struct teams teams;
    struct puller puller;
    struct rng rng = {1};
    struct value here = {.objective = options->objective};
    AUTO_FREE int *here_at = mem_dup(at, (size_t)space->n * sizeof *here_at);
    AUTO(place) struct place *place = place_new(space, space->start);
    puller_init(&puller, place, &rng);
    teams_init(&teams, &puller);
    teams_set(&teams, at);
    place->score = place_score_exact(place);
    teams_keep(&teams, options, here_at, &here);
    for (int k = 0; here.valid && k < teams.n_movable; k++) {
        struct team *team = &teams.teams[teams.movable[k]];
        struct value before = here;
        if (!team->moved || team->placed < team->n)
            continue;
        puller.n_undo = 0;
        team_home(&teams, team);
        teams_keep(&teams, options, here_at, &here);
        if (!value_better(&here, &before)) {
            puller_back(&puller, 0);
            team_refresh(&teams, team);
        }
    }
    if (here.valid && (!best->valid || value_better(&here, best))) {
        *best = here;
        memcpy(best_at, here_at, (size_t)space->n * sizeof *best_at);
    }
    set_clear(&teams);
    teams_wipe(&teams);
    puller_wipe(&puller);
}

/* ---- all placements ---- */

/* Each spreads some replicas, about 1 µs: a second in all. */
#define MAX_NODES 500000
#define MAX_CHOICES 20000 /* of one service */
#define MAX_TEAMS 64

struct choices { /* sets of hosts of one service, those with a replica more first; -1 ends each */
    int *hosts;
    size_t n, cap;
    int width;
};

struct trial {
    struct teams *teams;
    const struct plan_options *options;
    struct effort *effort;
    struct choices of[MAX_TEAMS];
    double potential[MAX_TEAMS + 1]; /* degrees of rows that are open before this depth */
    int order[MAX_TEAMS], n;
    int64_t nodes;
    bool first, open, done;
    int *best_at;
    struct value *best;
    double top;
};

/* All ways to give `k` of the hosts from `host` on a replica less than the first `extra`. */
static bool choices_fill(struct choices *c, const struct space *space, int *pick, int host,
                         int plain, int extra, int n_plain, int n_extra)
{
    if (plain == n_plain && extra == n_extra) {
        if (c->n == MAX_CHOICES)
            return false;
        if (c->n == c->cap) {
            c->cap = c->cap ? 2 * c->cap : 64;
            c->hosts = mem_resize(c->hosts, c->cap * (size_t)c->width, sizeof *c->hosts);
        }
        int *out = &c->hosts[c->n++ * (size_t)c->width];
        for (int h = 0, e = 0, q = n_extra; h < space->n_hosts; h++) {
            if (pick[h] == 2)
                out[e++] = h;
            else if (pick[h] == 1)
                out[q++] = h;
        }
        out[n_plain + n_extra] = -1;
        return true;
    }
    if (host == space->n_hosts)
        return true;
    bool ok = true;
    for (int what = space->open[host] ? 2 : 0; what >= 0 && ok; what--) {
        if ((what == 2 && extra == n_extra) || (what == 1 && plain == n_plain))
            continue;
        pick[host] = what;
        ok = choices_fill(c, space, pick, host + 1, plain + (what == 1), extra + (what == 2),
                          n_plain, n_extra);
    }
    pick[host] = 0;
    return ok;
}

static bool choices_make(struct choices *c, const struct space *space, const struct team *team)
{
    AUTO_FREE int *pick = mem_array((size_t)space->n_hosts, sizeof *pick);
    bool ok = true;
    c->width = space->n_hosts + 1;
    for (int k = 1; k <= team->n && k <= space->n_hosts && ok; k++)
        ok = choices_fill(c, space, pick, 0, 0, 0, k - team->n % k, team->n % k);
    return ok;
}

/* More services never mend it: a host above capacity with a replica of a service that moves. */
static bool spoiled(const struct teams *teams, const struct team *team)
{
    const struct place *place = teams->puller->place;
    for (int k = 0; k < team->n; k++) {
        int host = place->at[teams->members[team->first + k]];
        if (!host_full(place, host))
            continue;
        if (team->moved || teams->space->strict)
            return true;
        for (int r = 0; r < place->n_residents[host]; r++)
            if (teams->teams[teams->space->model->instances[place->residents[host][r]].service]
                    .moved)
                return true;
    }
    return false;
}

static void leaf(struct trial *t)
{
    struct teams *teams = t->teams;
    struct place *place = teams->puller->place;
    place->score = place_score_exact(place); /* no drift over many moves */
    if (!teams_hold(teams, t->options))
        return;
    t->top = place->score > t->top ? place->score : t->top;
    teams_keep(teams, t->options, t->best_at, t->best);
    t->done = t->first;
}

/* No placement below this node can be better. */
static bool hopeless(const struct trial *t, int depth)
{
    const struct place *place = t->teams->puller->place;
    if (t->options->max_moves >= 0 && t->teams->asked > t->options->max_moves)
        return true;
    if (!t->best->valid || t->first)
        return false;
    if (t->options->objective == OBJECTIVE_HOSTS)
        return place->n_used > t->best->hosts;
    return place->score - t->teams->paid + t->potential[depth] <
           t->best->score - t->best->paid - 1e-9;
}

/* A service that is nowhere counts as one that does not move. */
static void team_forget(struct teams *teams, struct team *team)
{
    teams->paid -= team->moved ? team->price : 0;
    teams->restarts -= team->moved ? team->placed : 0;
    teams->asked -= team->moved ? team->n : 0;
    team->moved = false;
}

static void try_from(struct trial *t, int depth)
{
    struct teams *teams = t->teams;
    if (depth == t->n) {
        leaf(t);
        return;
    }
    struct team *team = &teams->teams[t->order[depth]];
    const struct choices *c = &t->of[depth];
    for (size_t k = 0; k <= c->n && !t->open && !t->done; k++) {
        if (k == 0 && team->placed < team->n)
            continue; /* cannot stay */
        if (++t->nodes > MAX_NODES || effort_spend(t->effort, 1)) {
            t->open = true;
            return;
        }
        size_t from = teams->puller->n_undo;
        if (k == 0) {
            team_home(teams, team);
        } else {
            const int *hosts = &c->hosts[(k - 1) * (size_t)c->width];
            set_clear(teams);
            for (int h = 0; hosts[h] >= 0; h++)
                set_add(teams, hosts[h]);
            team_spread(teams, team);
        }
        bool stays = k > 0 && !team->moved && team->placed == team->n; /* is k == 0 again */
        if (!stays && !hopeless(t, depth + 1) && !spoiled(teams, team))
            try_from(t, depth + 1);
        puller_back(teams->puller, from);
        team_forget(teams, team);
    }
}

static double team_size(const struct teams *teams, const struct team *team)
{
    const struct space *space = teams->space;
    double most = 0;
    for (int d = 0; d < space->dims; d++) {
        double sum = 0;
        for (int k = 0; k < team->n; k++)
            sum += (double)space->need[teams->members[team->first + k] * space->dims + d] *
                   space->scale[d];
        most = sum > most ? sum : most;
    }
    return most;
}

static int by_size(const void *left, const void *right, void *ctx)
{
    const struct teams *teams = ctx;
    int a = *(const int *)left, b = *(const int *)right;
    double x = team_size(teams, &teams->teams[a]), y = team_size(teams, &teams->teams[b]);
    return x != y ? (x > y ? -1 : 1) : a - b;
}

static void potential_init(struct trial *t)
{
    const struct space *space = t->teams->space;
    AUTO_FREE int *depth = mem_array(space->model->n_services, sizeof *depth);
    for (int k = 0; k < t->n; k++)
        depth[t->order[k]] = k + 1;
    for (size_t e = 0; e < t->teams->puller->n_edges; e++) {
        const struct pull_edge *edge = &t->teams->puller->edges[e];
        int a = space->members[space->first_member[edge->a]];
        int b = space->members[space->first_member[edge->b]];
        int x = depth[space->model->instances[a].service];
        int y = depth[space->model->instances[b].service];
        for (int k = 0; k < (x > y ? x : y); k++)
            t->potential[k] += edge->degree;
    }
}

enum exhaust_verdict service_exhaust(struct space *space, const struct plan_options *options,
                                     bool first, struct effort *effort, int *best_at,
                                     struct value *best, double *top)
{
    struct teams teams;
    struct puller puller;
    struct rng rng = {1};
    AUTO(place) struct place *place = place_new(space, space->start);
    struct trial *t = mem_alloc(sizeof *t);
    bool ok = true;
    puller_init(&puller, place, &rng);
    teams_init(&teams, &puller);
    *t = (struct trial){.teams = &teams,
                        .options = options,
                        .effort = effort,
                        .first = first,
                        .best_at = best_at,
                        .best = best,
                        .top = -INFINITY};
    t->n = teams.n_movable;
    ok = t->n <= MAX_TEAMS && !effort->cut;
    for (int k = 0; k < t->n && ok; k++)
        t->order[k] = teams.movable[k];
    if (ok)
        qsort_r(t->order, (size_t)t->n, sizeof *t->order, by_size, &teams);
    for (int k = 0; k < t->n && ok; k++)
        ok = choices_make(&t->of[k], space, &teams.teams[t->order[k]]);
    if (ok) {
        potential_init(t);
        for (int k = 0; k < space->n_movable; k++)
            if (!teams.teams[space->model->instances[space->movable[k]].service].fixed)
                place_move(place, space->movable[k], -1);
        try_from(t, 0);
    }
    enum exhaust_verdict verdict = !ok || t->open ? EXHAUST_OPEN
                                   : best->valid  ? EXHAUST_FOUND
                                                  : EXHAUST_NONE;
    *top = t->top;
    for (int k = 0; k < t->n && k < MAX_TEAMS; k++)
        free(t->of[k].hosts);
    free(t);
    set_clear(&teams);
    teams_wipe(&teams);
    puller_wipe(&puller);
    return verdict;
}
