/* test_price.c - moves with a price (--min-gain): none is made that is not worth it, and the best of
 * score less prices is the best of all placements. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "model/base/clock.h"
#include "planner/counts.h"
#include "planner/exhaust.h"
#include "planner/homeward.h"
#include "planner/service.h"
#include "tests/bench/brute.h"
#include "tests/property/given.h"
#include "tests/support/runs.h"

#define RUNS RUNS_OF(1000)

/* What moves cost, by their start-up times, never exceeds what they gain. */
static void test_hubs_when_moves_have_a_price_then_worth_it(void **state)
{
    (void)state;
    struct wild wild = wild_all;
    int moves = 0, fewer = 0;
    wild.instances = 12;
    wild.unplaced = false;
    for (uint64_t seed = 0; seed < RUNS / 4; seed++) {
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        struct rng rng = {seed};
        double sum = 0, paid = 0;
        int known = 0;
        bool whole = true;
        given.options.objective = OBJECTIVE_AFFINITY;
        given.options.max_moves = -1;
        for (size_t i = 0; i < given.model->n_instances; i++) {
            int64_t start_ms = rng_below(&rng, 3) ? 1 + (int64_t)rng_below(&rng, 9000) : -1;
            given.model->instances[i].start_ms = start_ms;
            sum += start_ms > 0 ? (double)start_ms : 0;
            known += start_ms > 0;
            whole &= given.model->instances[i].host >= 0;
        }
        AUTO(plan) struct plan *dear = plan_by(&given, "hubs");
        given.options.min_gain = rng_real(&rng);
        AUTO(plan) struct plan *plan = plan_by(&given, "hubs");
        for (size_t m = 0; m < plan->n_moves; m++) {
            int64_t start_ms = given.model->instances[plan->moves[m].instance].start_ms;
            paid += given.options.min_gain * (start_ms > 0 ? (double)start_ms * known / sum : 1);
        }
        AUTO_FREE int *before = model_placement(given.model);
        AUTO_FREE bool *mended = model_rules_mended(given.model, before, plan->placement);
        if (whole && !mended) /* what mends a rule is worth its price */
            if (plan->affinity_after - paid < plan->affinity_before - 1e-9)
                fail_msg("seed %d: %g to %g for %g", (int)seed, plan->affinity_before,
                         plan->affinity_after, paid);
        moves += (int)plan->n_moves;
        fewer += plan->n_moves < dear->n_moves;
    }
    print_message("%d moves, fewer in %d plans\n", moves, fewer);
    assert_true(moves > RUNS / 25 && fewer > RUNS / 125);
}

/* No move is left that is better taken back, by whichever planner. */
static void test_planners_when_moves_have_a_price_then_none_is_wasted(void **state)
{
    (void)state;
    static const char *const names[] = {"hba", "oa", "oa-modified", "hubs", "auto"};
    struct wild wild = wild_all;
    int moves = 0, stayed = 0;
    wild.unplaced = false;
    for (uint64_t seed = 0; seed < RUNS / 2; seed++) {
        struct err err = ERR_INIT;
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        const char *name = names[seed % ARRAY_LEN(names)];
        if (seed % ARRAY_LEN(names) == 0) {
            given.options.objective = OBJECTIVE_AFFINITY;
            given.options.move_stateful = false;
        }
        given.options.max_moves = -1;
        AUTO(plan) struct plan *free_moves = plan_by(&given, name);
        given.options.min_gain = 0.01 + 0.2 * (double)(seed / ARRAY_LEN(names) % 4);
        AUTO(plan) struct plan *plan = plan_by(&given, name);
        if (plan_check(plan, given.model, given.options.move_stateful, &err) < 0)
            fail_msg("seed %d, %s: %s", (int)seed, name, err.text);
        if (plan->status == PLAN_INFEASIBLE || plan->status == PLAN_TIMEOUT)
            continue;
        assert_true(plan->affinity_bound >= free_moves->affinity_after - 1e-9);
        AUTO(space) struct space *space =
            space_new(given.model, given.analysis->rows, given.analysis->n_rows,
                      given.options.move_stateful, &err);
        space->strict = strcmp(plan->planner, "oa") == 0;
        space_price_moves(space, given.options.min_gain);
        AUTO(place) struct place *place = place_new(space, plan->placement);
        if (strcmp(name, "oa-modified") == 0)
            given.options.objective = OBJECTIVE_HOSTS;
        if (homeward(place, &given.options))
            fail_msg("seed %d, %s: a move is not worth %g", (int)seed, name,
                     given.options.min_gain);
        moves += (int)plan->n_moves;
        stayed += (int)free_moves->n_moves - (int)plan->n_moves;
    }
    print_message("%d moves, %d fewer than without\n", moves, stayed);
    assert_true(moves > RUNS / 10 && stayed > RUNS / 50);
}

/* Fewest hosts first, whatever the moves cost; then the price, which keeps what need not move. */
static void test_planners_when_hosts_are_the_objective_then_the_price_comes_after(void **state)
{
    static const char *const names[] = {"hubs", "oa", "auto"};
    static const double gains[] = {0.05, 0.5, 1000};
    int reached = 0, feasible = 0, dear = 0, cheap = 0;
    (void)state;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        struct wild wild = seed % 4 == 3 ? wild_services() : wild_all;
        wild.fixed = wild.unplaced = false;
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        bool whole = seed % 4 == 3;
        given.options.objective = OBJECTIVE_HOSTS;
        given.options.granularity = whole ? PER_SERVICE : PER_INSTANCE;
        given.options.max_moves = -1;
        given.options.leave_broken = true;
        const char *name = names[seed / 4 % ARRAY_LEN(names)];
        bool strict = strcmp(name, "hubs") != 0;
        struct brute best = (whole ? brute_services : brute_force)(
            given.model, given.analysis->rows, given.analysis->n_rows,
            given.options.move_stateful, -1, strict);
        AUTO(plan) struct plan *free_moves = plan_by(&given, name);
        given.options.min_gain = gains[seed / 12 % ARRAY_LEN(gains)];
        AUTO(plan) struct plan *plan = plan_by(&given, name);
        if (!best.feasible || (plan->status != PLAN_FEASIBLE && plan->status != PLAN_OPTIMAL))
            continue;
        feasible++;
        reached += plan->hosts_after <= best.fewest_hosts;
        dear += (int)plan->restarts;
        cheap += (int)free_moves->restarts;
    }
    print_message("fewest hosts in %d of %d, %d restarts, %d without a price\n", reached, feasible,
                  dear, cheap);
    assert_true(reached >= feasible * 99 / 100);
    assert_true(dear <= cheap);
}

/* What could be kept on so few hosts is a bound of the score, not of the score less what moves cost. */
static void test_oa_when_moves_have_a_price_then_the_bound_of_few_hosts_has_none(void **state)
{
    int bounded = 0, above = 0;
    (void)state;
    for (uint64_t seed = 0; seed < RUNS / 2; seed++) {
        struct wild wild = wild_all;
        wild.unplaced = false;
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        given.options.objective = OBJECTIVE_HOSTS;
        given.options.max_moves = 6; /* all may move */
        given.options.min_gain = 0.5;
        given.options.iterations = 1000000; /* patterns, not counts */
        AUTO(plan) struct plan *plan = plan_by(&given, "oa");
        struct brute truth = brute_force(given.model, given.analysis->rows, given.analysis->n_rows,
                                         given.options.move_stateful, 6, true);
        if (!truth.feasible || isnan(plan->affinity_bound_hosts) ||
            plan->hosts_after != truth.fewest_hosts)
            continue;
        bounded++;
        above += truth.fewest_hosts_score > plan->affinity_after + 1e-9;
        assert_true(plan->hosts_bound <= truth.fewest_hosts);
        if (plan->affinity_bound_hosts < truth.fewest_hosts_score - 1e-9)
            fail_msg("seed %d: at most %g, but %g can be", (int)seed, plan->affinity_bound_hosts,
                     truth.fewest_hosts_score);
    }
    print_message("%d bounded, %d kept less for the price\n", bounded, above);
    assert_true(above > 0);
}

/* The program with prices, against all placements one by one. */
static void priced_sweep(enum granularity granularity)
{
    struct wild wild = wild_services();
    int proven = 0;
    wild.instances = 7;
    for (uint64_t seed = 0; seed < RUNS / 4; seed++) {
        struct err err = ERR_INIT;
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        struct effort effort = {.limit = -1, .deadline_ms = INT64_MAX};
        given.options.granularity = granularity;
        given.options.min_gain = 0.02 * (double)(1 + seed % 9);
        for (size_t i = 0; i < given.model->n_instances; i++)
            given.model->instances[i].start_ms = seed % 2 ? 100 * (int64_t)(1 + i % 3) : -1;
        AUTO(space) struct space *space =
            space_new(given.model, given.analysis->rows, given.analysis->n_rows,
                      given.options.move_stateful, &err);
        space->strict = true;
        space_price_moves(space, given.options.min_gain);
        if (!counts_suit(space, &given.options))
            continue;
        struct value best = {.objective = given.options.objective}, truth = best;
        AUTO_FREE int *at = model_placement(given.model), *all = model_placement(given.model);
        AUTO(place) struct place *place = place_new(space, space->start);
        double top;
        struct counts_end end =
            counts_solve(space, &given.options, clock_mono_ms() + 5000, -1, at, &best);
        enum exhaust_verdict verdict =
            granularity == PER_SERVICE
                ? service_exhaust(space, &given.options, false, &effort, all, &truth, &top)
                : exhaust_best(place, &given.options, &effort, all, &truth, &top);
        if (verdict == EXHAUST_OPEN || !end.proven)
            continue;
        proven++;
        if (best.valid != truth.valid)
            fail_msg("seed %d: proven %d, all placements %d", (int)seed, best.valid, truth.valid);
        if (!best.valid)
            continue;
        assert_true(end.hosts_bound <= truth.hosts || given.options.objective != OBJECTIVE_HOSTS);
        double worth = best.score - best.paid, most = truth.score - truth.paid;
        bool as_few = given.options.objective != OBJECTIVE_HOSTS || best.hosts == truth.hosts;
        if (!as_few || fabs(worth - most) > 1e-6)
            fail_msg("seed %d: proves %g on %d, best is %g on %d", (int)seed, worth, best.hosts,
                     most, truth.hosts);
    }
    print_message("%d proven\n", proven);
    assert_true(proven > RUNS / 10);
}

static void test_counts_when_instances_have_a_price_then_the_best_of_all(void **state)
{
    (void)state;
    priced_sweep(PER_INSTANCE);
}

static void test_counts_when_services_have_a_price_then_the_best_of_all(void **state)
{
    (void)state;
    priced_sweep(PER_SERVICE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hubs_when_moves_have_a_price_then_worth_it),
        cmocka_unit_test(test_planners_when_moves_have_a_price_then_none_is_wasted),
        cmocka_unit_test(test_planners_when_hosts_are_the_objective_then_the_price_comes_after),
        cmocka_unit_test(test_oa_when_moves_have_a_price_then_the_bound_of_few_hosts_has_none),
        cmocka_unit_test(test_counts_when_instances_have_a_price_then_the_best_of_all),
        cmocka_unit_test(test_counts_when_services_have_a_price_then_the_best_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
