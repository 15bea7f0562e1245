/* anneal.c - annealing and descent on a struct place. */
#include "planner/anneal.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "model/base/clock.h"

static int64_t cpu_us(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void effort_begins(struct effort *effort, int64_t after_ms)
{
    effort->after_ms = after_ms;
    effort->began_ms = clock_mono_ms();
    effort->began_cpu_us = cpu_us();
}

int64_t effort_longer_ms(int64_t after_ms, int64_t wall_ms, int64_t used_us)
{
    int64_t waited_us = wall_ms * 1000 - used_us;
    return waited_us > 0 ? after_ms * waited_us / (used_us > 1000 ? used_us : 1000) : 0;
}

/* At least half of the time is for the search. */
static bool effort_late(struct effort *effort, int64_t now)
{
    int64_t left = effort->deadline_ms - now, passed = now - effort->began_ms;
    if (left <= 0 || effort->after_ms == 0 || left > passed || now == effort->looked_ms)
        return left <= 0;
    effort->looked_ms = now;
    return effort_longer_ms(effort->after_ms, passed, cpu_us() - effort->began_cpu_us) >= left;
}

bool effort_spend(struct effort *effort, int64_t n)
{
    if (effort->cut)
        return true; /* what is finished after the cut does not count, or replay would cut later */
    effort->done += n;
    if (effort->count)
        atomic_store(effort->count, effort->done);
    if (effort->limit >= 0 && effort->done >= effort->limit)
        return effort->cut = true;
    int64_t now = clock_mono_ms();
    if (effort->limit < 0 && effort_late(effort, now))
        return effort->cut = true;
    if (effort->share && share_ends(effort->share, effort->done))
        return effort->cut = true;
    if (effort->progress && now - effort->reported_ms >= 500) {
        effort->reported_ms = now;
        if (effort->progress(effort->progress_ctx, effort->done, "searching") < 0)
            return effort->cut = true;
    }
    return false;
}

void effort_found(struct effort *effort, const int *at, const struct value *value)
{
    if (effort->found)
        effort->found(effort->found_ctx, at, value);
}

struct value value_of(const struct place *place, const struct plan_options *options)
{
    struct value value = {.objective = options->objective, .valid = place_holds(place)};
    value.score = place->score;
    value.paid = place->paid;
    value.hosts = place->n_used;
    value.moves = place->n_moved;
    value.excess = place->excess > 0 ? place->excess : 0;
    if (value.moves > place_budget(place->space, options))
        value.valid = false;
    return value;
}

bool value_better(const struct value *a, const struct value *b)
{
    if (a->valid != b->valid)
        return a->valid;
    if (a->valid && a->excess != b->excess)
        return a->excess < b->excess;
    if (a->objective == OBJECTIVE_HOSTS && a->hosts != b->hosts)
        return a->hosts < b->hosts;
    double gain = (a->score - a->paid) - (b->score - b->paid);
    if (fabs(gain) > 1e-9)
        return gain > 0;
    if (a->hosts != b->hosts)
        return a->hosts < b->hosts;
    return a->moves < b->moves;
}

/* Change of everything that has a price, for one move. */
struct prices {
    double over, excess, host, move;
    int max_moves;
};

static double extra_moves(const struct prices *prices, int moved)
{
    int above = prices->max_moves < 0 ? 0 : moved - prices->max_moves;
    return above > 0 ? above : 0;
}

static double move_cost(const struct place *place, const struct prices *prices, int instance,
                        int host)
{
    const struct space *space = place->space;
    int from = place->at[instance], start = space->start[instance];
    double cost = prices->over * place_over_change(place, instance, host);
    if (place->rules)
        cost += prices->excess * rules_excess_change(place->rules,
                                                     space->model->instances[instance].service,
                                                     from, host);
    cost += prices->host * ((place->n_residents[host] == 0) -
                            (from >= 0 && place->n_residents[from] == 1));
    if (start >= 0) {
        int change = (host != start) - (from >= 0 && from != start);
        cost += (prices->move + space->price[instance]) * change;
        if (prices->max_moves >= 0 && change)
            cost += prices->over * (extra_moves(prices, place->n_moved + change) -
                                    extra_moves(prices, place->n_moved));
    }
    return cost;
}

static bool may_host(const struct space *space, int instance, int host)
{
    return space->open[host] || space->start[instance] == host;
}

/* Mostly a host of a partner, sometimes any used one, any at all, or the start. */
static int target_pick(const struct place *place, int instance, struct rng *rng)
{
    const struct space *space = place->space;
    uint32_t kind = rng_below(rng, 64);
    if (kind < 48) {
        int g = space->groups[instance][0];
        if (space->groups[instance][1] >= 0 && (g < 0 || rng_below(rng, 2)))
            g = space->groups[instance][1];
        size_t n = g < 0 ? 0 : space->first_link[g + 1] - space->first_link[g];
        if (n > 0) {
            const struct link *link =
                &space->links[space->first_link[g] + rng_below(rng, (uint32_t)n)];
            int k = space->first_member[link->group];
            int size = space->first_member[link->group + 1] - k;
            return place->at[space->members[k + (size == 1 ? 0 : (int)rng_below(rng, (uint32_t)size))]];
        }
    }
    if (kind < 60)
        return place->at[rng_below(rng, (uint32_t)space->n)];
    if (kind < 62 && space->start[instance] >= 0)
        return space->start[instance];
    return (int)rng_below(rng, (uint32_t)space->n_hosts);
}

static bool accepts(double gain, double temperature, struct rng *rng)
{
    if (gain >= 0)
        return true;
    if (gain < -25 * temperature)
        return false;
    return rng_real(rng) < exp(gain / temperature);
}

/* A resident of the host that would go the other way; -1 when there is none. */
static int partner_pick(const struct place *place, int instance, int host, struct rng *rng)
{
    int n = place->n_residents[host], from = place->at[instance];
    if (n == 0 || from < 0)
        return -1;
    int other = place->residents[host][rng_below(rng, (uint32_t)n)];
    if (place->space->fixed[other] || !may_host(place->space, other, from))
        return -1;
    return other;
}

static void try_swap(struct place *place, const struct prices *prices, int instance, int other,
                     double temperature, struct rng *rng)
{
    int from = place->at[instance], to = place->at[other];
    double gain = place_gain(place, instance, to) - move_cost(place, prices, instance, to);
    place_move(place, instance, to);
    gain += place_gain(place, other, from) - move_cost(place, prices, other, from);
    if (accepts(gain, temperature, rng))
        place_move(place, other, from);
    else
        place_move(place, instance, from);
}

static void step(struct place *place, const struct prices *prices, double temperature,
                 struct rng *rng)
{
    const struct space *space = place->space;
    int instance = space->movable[rng_below(rng, (uint32_t)space->n_movable)];
    int host = target_pick(place, instance, rng);
    if (host < 0 || host == place->at[instance] || !may_host(space, instance, host))
        return;
    if (rng_below(rng, 4) == 0) {
        int other = partner_pick(place, instance, host, rng);
        if (other >= 0) {
            try_swap(place, prices, instance, other, temperature, rng);
            return;
        }
    }
    double gain = place_gain(place, instance, host) - move_cost(place, prices, instance, host);
    if (accepts(gain, temperature, rng))
        place_move(place, instance, host);
}

static void keep_best(struct place *place, const struct plan_options *options,
                      struct effort *effort, int *best_at, struct value *best)
{
    struct value value = value_of(place, options);
    if (!value.valid || !value_better(&value, best))
        return;
    *best = value;
    memcpy(best_at, place->at, sizeof *best_at * (size_t)place->space->n);
    effort_found(effort, best_at, best);
}

/* How many average hosts all instances fill, in the fullest dimension. */
static double hosts_needed(const struct space *space)
{
    double most = 1;
    for (int d = 0; d < space->dims; d++) {
        double sum = 0;
        for (int i = 0; i < space->n; i++)
            sum += (double)space->need[i * space->dims + d] * space->scale[d];
        most = sum > most ? sum : most;
    }
    return most;
}

/* From 1 to 2 over the first 70 % of a run, then to 400. */
static double over_price(double part)
{
    return part < 0.7 ? pow(2, part / 0.7) : 2 * pow(200, (part - 0.7) / 0.3);
}

void anneal_run(struct place *place, const struct anneal *how, const struct plan_options *options,
                struct rng *rng, struct effort *effort, int *best_at, struct value *best)
{
    const struct space *space = place->space;
    double mean = space->mean;
    /* What a whole host's worth above capacity costs. `base` is the degree that a full host keeps at
     * most on average, so about what capacity is worth; prices near it while the temperature decides
     * let clusters cross full hosts, the last part ends with no gain outweighing anything. */
    double worth = space->total > 0 ? space->total : space->mean * space->n;
    double base = worth / hosts_needed(space);
    /* From what whole rows are worth down to what single replicas are. */
    double hot = how->hot * sqrt(mean * space->grain), cold = how->cold * space->grain;
    int64_t batch = 256, batches = how->iterations / batch + 1;
    if (space->n_movable == 0)
        return;
    for (int64_t b = 0; b < batches; b++) {
        double part = (double)b / (double)batches;
        double temperature = hot * pow(cold / hot, part);
        struct prices prices = {.over = base * over_price(part),
                                .host = how->price_host * mean,
                                .move = how->price_move * mean,
                                .max_moves = how->max_moves};
        prices.excess = prices.over / 16;
        for (int k = 0; k < batch; k++)
            step(place, &prices, temperature, rng);
        if (b % 64 == 0)
            place->score = place_score_exact(place); /* no drift of roundings */
        if (part > 0.5)
            keep_best(place, options, effort, best_at, best);
        if (effort_spend(effort, batch))
            break;
    }
    place->score = place_score_exact(place);
    keep_best(place, options, effort, best_at, best);
}

/* What a change is worth under the objective, in one number: ties of score go to hosts, then
 * moves. The weights are far below any difference of scores that counts (1e-9 of a mean degree
 * is none). */
static double worth(const struct place *place, const struct plan_options *options, double gain,
                    int hosts, int moves)
{
    double mean = place->space->mean;
    double host = options->objective == OBJECTIVE_HOSTS ? 4 * place->space->total + mean
                                                        : 1e-4 * mean;
    return gain - host * hosts - 1e-7 * mean * moves;
}

static double move_worth(const struct place *place, const struct plan_options *options,
                         int instance, int host)
{
    int from = place->at[instance], start = place->space->start[instance];
    int hosts = (place->n_residents[host] == 0) - (place->n_residents[from] == 1);
    int moves = start < 0 ? 0 : (host != start) - (from != start);
    if (place->n_moved + moves > place_budget(place->space, options))
        return -INFINITY;
    double gain = place_gain(place, instance, host) - place->space->price[instance] * moves;
    return worth(place, options, gain, hosts, moves);
}

/* The better of the hosts of partners and the start. */
static bool descend_one(struct place *place, const struct plan_options *options, int instance)
{
    const struct space *space = place->space;
    double best = 1e-12 * space->mean;
    int best_host = -1;
    for (int k = 0; k < 2; k++) {
        int g = space->groups[instance][k];
        if (g < 0)
            continue;
        for (size_t l = space->first_link[g]; l < space->first_link[g + 1]; l++) {
            int other = space->links[l].group;
            for (int m = space->first_member[other]; m < space->first_member[other + 1]; m++) {
                int host = place->at[space->members[m]];
                if (host == best_host || host == place->at[instance] ||
                    !place_allows(place, instance, host))
                    continue;
                double gain = move_worth(place, options, instance, host);
                if (gain > best) {
                    best = gain;
                    best_host = host;
                }
            }
        }
    }
    int start = space->start[instance];
    if (start >= 0 && start != place->at[instance] && place_allows(place, instance, start) &&
        move_worth(place, options, instance, start) > best)
        best_host = start;
    if (best_host < 0)
        return false;
    place_move(place, instance, best_host);
    return true;
}

void descend(struct place *place, const struct plan_options *options, struct effort *effort)
{
    const struct space *space = place->space;
    bool better = true;
    for (int round = 0; better && round < 50; round++) {
        better = false;
        for (int k = 0; k < space->n_movable; k++) {
            better |= descend_one(place, options, space->movable[k]);
            if (k % 256 == 255 && effort_spend(effort, 256))
                return;
        }
    }
    place->score = place_score_exact(place);
}
