/* test_search.c - the searching planners against exhaustive search on tiny random models with every
 * feature of contract.md 2 switched on at random. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "analyzer/affinity.h"
#include "model/model_json.h"
#include "model/base/clock.h"
#include "planner/bound.h"
#include "planner/counts.h"
#include "planner/planner.h"
#include "planner/teams.h"
#include "tests/bench/brute.h"
#include "tests/bench/instances.h"
#include "tests/property/given.h"
#include "tests/support/runs.h"

/* Mock services, analyzed, with the usual options. */
static struct given given_mock(const struct mock *mock)
{
    struct given given = {.model = mock_model(mock), .options = plan_options_default};
    struct err err = ERR_INIT;
    assert_int_equal(affinity_analyzer.analyze(given.model, 0.5, &given.analysis, &err), 0);
    return given;
}

#define RUNS RUNS_OF(1000)

static struct brute brute(const struct given *given, bool strict)
{
    return brute_force(given->model, given->analysis->rows, given->analysis->n_rows,
                       given->options.move_stateful, given->options.max_moves, strict);
}

/* How often `planner` reached the best; checks everything that must hold always. */
static int sweep(const char *planner, const struct wild *wild, bool strict, uint64_t runs,
                 int *feasible)
{
    int reached = 0;
    for (uint64_t seed = 0; seed < runs; seed++) {
        struct err err = ERR_INIT;
        AUTO_GIVEN struct given given = given_make(wild, seed);
        given.options.leave_broken = !strict;
        AUTO(plan) struct plan *plan = plan_by(&given, planner);
        struct brute best = brute(&given, strict);
        bool found = plan->status == PLAN_OPTIMAL || plan->status == PLAN_FEASIBLE;
        if (plan_check(plan, given.model, given.options.move_stateful, &err) < 0)
            fail_msg("seed %d: %s", (int)seed, err.text);
        if (found && !best.feasible)
            fail_msg("seed %d: found what does not exist", (int)seed);
        if (plan->status == PLAN_INFEASIBLE && best.feasible)
            fail_msg("seed %d: said infeasible: %s", (int)seed, plan->why);
        *feasible += best.feasible;
        if (!found)
            continue;
        assert_true(plan->affinity_bound >= best.score - 1e-12);
        assert_true(plan->hosts_bound <= best.fewest_hosts);
        assert_true(given.options.max_moves < 0 ||
                    (int64_t)plan->n_moves <= given.options.max_moves);
        bool at_best = given.options.objective == OBJECTIVE_HOSTS
                           ? plan->hosts_after == best.fewest_hosts
                           : fabs(plan->affinity_after - best.score) <= 1e-9;
        if (plan->status == PLAN_OPTIMAL && !at_best)
            fail_msg("seed %d: optimal at %g / %d, best is %g / %d", (int)seed,
                     plan->affinity_after, (int)plan->hosts_after, best.score,
                     best.fewest_hosts);
        reached += at_best;
    }
    return reached;
}

static void test_hubs_when_tiny_then_promises_kept_and_mostly_best(void **state)
{
    (void)state;
    int feasible = 0, reached = sweep("hubs", &wild_all, false, RUNS, &feasible);
    print_message("hubs: best in %d of %d\n", reached, feasible);
    assert_true(feasible > RUNS / 2);
    assert_true(reached >= feasible * 97 / 100);
}

static void test_hubs_when_start_is_broken_then_promises_kept(void **state)
{
    (void)state;
    struct wild wild = wild_all;
    wild.broken = true;
    int feasible = 0, reached = sweep("hubs", &wild, false, RUNS, &feasible);
    print_message("hubs: best in %d of %d\n", reached, feasible);
    assert_true(reached >= feasible * 90 / 100);
}

static void test_oa_when_tiny_then_never_wrong(void **state)
{
    (void)state;
    int feasible = 0, reached = sweep("oa", &wild_all, true, RUNS, &feasible);
    print_message("oa: best in %d of %d\n", reached, feasible);
    assert_true(reached >= feasible * 97 / 100);
}

/* Everything that patterns can say: the proof must come. */
static void test_oa_when_no_replicas_or_zones_then_proven(void **state)
{
    (void)state;
    struct wild wild = wild_all;
    wild.replicas = wild.service_rows = wild.rules = false;
    for (uint64_t seed = 0; seed < RUNS / 4; seed++) {
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        given.options.max_moves = -1;
        given.options.objective = OBJECTIVE_AFFINITY;
        AUTO(plan) struct plan *plan = plan_by(&given, "oa");
        struct brute best = brute(&given, true);
        if (plan->status != (best.feasible ? PLAN_OPTIMAL : PLAN_INFEASIBLE))
            fail_msg("seed %d: status %d: %s", (int)seed, (int)plan->status, plan->why);
        if (best.feasible)
            assert_true(fabs(plan->affinity_after - best.score) <= 1e-9);
    }
}

static void test_oa_modified_when_tiny_then_promises_kept(void **state)
{
    (void)state;
    int feasible = 0;
    sweep("oa-modified", &wild_all, true, RUNS / 3, &feasible);
    assert_true(feasible > RUNS / 6);
}

static void test_auto_when_tiny_then_never_wrong(void **state)
{
    (void)state;
    struct wild wild = wild_all;
    wild.fixed = false; /* oa is strict, hubs is not: the same only without what cannot leave */
    wild.rules = false;
    int feasible = 0, reached = sweep("auto", &wild, true, RUNS / 5, &feasible);
    assert_true(reached >= feasible * 97 / 100);
}

/* Whole services against all ways to spread them: never infeasible or timeout where there is one. */
static int sweep_services(const char *planner, const struct wild *wild, bool strict, uint64_t runs,
                          int *feasible)
{
    int reached = 0;
    for (uint64_t seed = 0; seed < runs; seed++) {
        struct err err = ERR_INIT;
        AUTO_GIVEN struct given given = given_make(wild, seed);
        given.options.granularity = PER_SERVICE;
        given.options.leave_broken = !strict;
        if (given.options.max_moves > 0)
            given.options.max_moves *= 3;
        AUTO(plan) struct plan *plan = plan_by(&given, planner);
        struct brute best = brute_services(given.model, given.analysis->rows,
                                           given.analysis->n_rows, given.options.move_stateful,
                                           given.options.max_moves, strict);
        if (plan_check(plan, given.model, given.options.move_stateful, &err) < 0)
            fail_msg("seed %d: %s", (int)seed, err.text);
        bool found = plan->status == PLAN_OPTIMAL || plan->status == PLAN_FEASIBLE;
        if (found != best.feasible || plan->status == PLAN_TIMEOUT)
            fail_msg("seed %d: status %d, feasible %d: %s", (int)seed, (int)plan->status,
                     best.feasible, plan->why);
        if (!found)
            continue;
        int64_t asked = 0;
        for (size_t m = 0; m < plan->n_moves; m++)
            for (size_t t = 0; t < plan->moves[m].n_targets; t++)
                asked += plan->moves[m].targets[t].count;
        assert_true(given.options.max_moves < 0 || asked <= given.options.max_moves);
        assert_true(plan->affinity_bound >= best.score - 1e-12);
        assert_true(plan->hosts_bound <= best.fewest_hosts);
        bool at_best = given.options.objective == OBJECTIVE_HOSTS
                           ? plan->hosts_after == best.fewest_hosts
                           : fabs(plan->affinity_after - best.score) <= 1e-9;
        if (plan->status == PLAN_OPTIMAL && !at_best)
            fail_msg("seed %d: optimal at %g / %d, best is %g / %d", (int)seed,
                     plan->affinity_after, (int)plan->hosts_after, best.score,
                     best.fewest_hosts);
        *feasible += 1;
        reached += at_best;
    }
    return reached;
}

static void test_hubs_when_services_move_then_found_if_there_is_one(void **state)
{
    (void)state;
    struct wild wild = wild_services();
    int feasible = 0, reached = sweep_services("hubs", &wild, false, RUNS, &feasible);
    print_message("hubs, services: best in %d of %d\n", reached, feasible);
    assert_true(feasible > RUNS / 2);
    assert_true(reached >= feasible * 95 / 100);
}

static void test_hubs_when_services_are_over_at_the_start_then_found_all_the_same(void **state)
{
    (void)state;
    struct wild wild = wild_services();
    wild.broken = true;
    int feasible = 0, reached = sweep_services("hubs", &wild, false, RUNS / 2, &feasible);
    print_message("hubs, services: best in %d of %d\n", reached, feasible);
    assert_true(reached >= feasible * 90 / 100);
}

static void test_oa_when_services_move_then_proven(void **state)
{
    (void)state;
    struct wild wild = wild_services();
    int feasible = 0, reached = sweep_services("oa", &wild, true, RUNS, &feasible);
    print_message("oa, services: best in %d of %d\n", reached, feasible);
    assert_int_equal(reached, feasible);
}

/* A move that may be made, breaks nothing, and brings the host down to its capacity; false: none. */
static bool one_move_relieves(struct place *place, const struct plan_options *options, int host)
{
    const struct space *space = place->space;
    for (int i = 0; i < space->n; i++)
        for (int h = 0; h < space->n_hosts && place->at[i] == host && !space->fixed[i]; h++) {
            if (h == host || !place_allows(place, i, h))
                continue;
            int over = place->n_over;
            place_move(place, i, h);
            bool better = place->n_over < over && value_of(place, options).valid;
            place_move(place, i, host);
            if (better)
                return true;
        }
    return false;
}

static void test_hubs_when_a_host_is_over_then_no_move_would_relieve_it(void **state)
{
    static const char *const names[] = {"hubs", "auto"};
    struct wild wild = wild_all;
    int over = 0, relieved = 0;
    (void)state;
    wild.broken = true;
    wild.instances = 12;
    wild.hosts = 5;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        struct err err = ERR_INIT;
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        given.options.leave_broken = true;
        given.options.min_gain = seed % 7 == 3 ? 0.1 : 0;
        given.options.time_limit_ms = 200;
        AUTO(plan) struct plan *plan = plan_by(&given, names[seed % 2]);
        if (plan->status != PLAN_FEASIBLE && plan->status != PLAN_OPTIMAL)
            continue;
        if (plan_check(plan, given.model, given.options.move_stateful, &err) < 0)
            fail_msg("seed %d: %s", (int)seed, err.text);
        AUTO(space) struct space *space =
            space_new(given.model, given.analysis->rows, given.analysis->n_rows,
                      given.options.move_stateful, &err);
        AUTO(place) struct place *start = place_new(space, space->start);
        AUTO(place) struct place *end = place_new(space, plan->placement);
        over += start->n_over > 0;
        relieved += start->n_over > 0 && end->n_over == 0;
        for (int h = 0; h < space->n_hosts && strcmp(plan->planner, "hba") != 0; h++)
            if (end->n_over > 0 && one_move_relieves(end, &given.options, h))
                fail_msg("seed %d: %s leaves host %s over its capacity for nothing", (int)seed,
                         plan->planner, given.model->hosts[h].name);
    }
    print_message("%d of %d relieved\n", relieved, over);
    assert_true(over > RUNS / 4 && relieved > 0);
}

/* The same of whole services: one gives up the host, for another one or none. */
static bool one_service_relieves(struct teams *teams, const struct plan_options *options, int host)
{
    struct place *place = teams->puller->place;
    for (int k = 0; k < teams->n_movable; k++) {
        struct team *team = &teams->teams[teams->movable[k]];
        for (int h = -1; h < teams->space->n_hosts; h++) {
            set_clear(teams);
            set_of(teams, team);
            int there = -1;
            for (int at = 0; at < teams->n_set; at++)
                there = teams->set[at] == host ? at : there;
            if (there < 0)
                continue;
            set_drop(teams, there);
            if ((h >= 0 && !set_add(teams, h)) || teams->n_set == 0 || teams->n_set > team->n)
                continue;
            teams->puller->n_undo = 0;
            team_spread(teams, team);
            bool better = !host_full(place, host) && teams_hold(teams, options);
            puller_back(teams->puller, 0);
            team_refresh(teams, team);
            if (better)
                return true;
        }
    }
    return false;
}

static void test_hubs_when_a_host_is_over_then_no_service_would_relieve_it(void **state)
{
    struct wild wild = wild_services();
    int over = 0, relieved = 0;
    (void)state;
    wild.broken = true;
    wild.instances = 12;
    wild.hosts = 5;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        struct err err = ERR_INIT;
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        given.options.leave_broken = true;
        given.options.granularity = PER_SERVICE;
        given.options.time_limit_ms = 200;
        AUTO(plan) struct plan *plan = plan_by(&given, "hubs");
        if (plan->status != PLAN_FEASIBLE && plan->status != PLAN_OPTIMAL)
            continue;
        if (plan_check(plan, given.model, given.options.move_stateful, &err) < 0)
            fail_msg("seed %d: %s", (int)seed, err.text);
        AUTO(space) struct space *space =
            space_new(given.model, given.analysis->rows, given.analysis->n_rows,
                      given.options.move_stateful, &err);
        struct puller puller;
        struct teams teams;
        struct rng rng = {1};
        AUTO(place) struct place *place = place_new(space, space->start);
        bool was_over = place->n_over > 0;
        over += was_over;
        puller_init(&puller, place, &rng);
        teams_init(&teams, &puller);
        teams_set(&teams, plan->placement);
        for (int h = 0; h < space->n_hosts; h++)
            if (place->n_residents[h] > 0 && host_full(place, h) &&
                one_service_relieves(&teams, &given.options, h))
                fail_msg("seed %d: host %s stays over its capacity for nothing", (int)seed,
                         given.model->hosts[h].name);
        relieved += was_over && place->n_over == 0;
        set_clear(&teams);
        teams_wipe(&teams);
        puller_wipe(&puller);
    }
    print_message("%d of %d relieved\n", relieved, over);
    assert_true(over > RUNS / 4 && relieved > 0);
}

/* The program alone, which oa asks only where there are too many placements to try. */
static void counts_sweep(enum granularity granularity)
{
    struct wild wild = wild_services();
    int proven = 0, infeasible = 0;
    wild.instances = 7;
    for (uint64_t seed = 0; seed < RUNS / 2; seed++) {
        struct err err = ERR_INIT;
        wild.uneven = wild.foreign = wild.unschedulable = seed % 2; /* else hosts are alike */
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        given.options.granularity = granularity;
        AUTO(space) struct space *space =
            space_new(given.model, given.analysis->rows, given.analysis->n_rows,
                      given.options.move_stateful, &err);
        space->strict = true;
        if (!counts_suit(space, &given.options))
            continue;
        struct value best = {.objective = given.options.objective};
        AUTO_FREE int *at = model_placement(given.model);
        struct counts_end end =
            counts_solve(space, &given.options, clock_mono_ms() + 5000, -1, at, &best);
        struct brute truth =
            granularity == PER_SERVICE
                ? brute_services(given.model, given.analysis->rows, given.analysis->n_rows,
                                 given.options.move_stateful, given.options.max_moves, true)
                : brute(&given, true);
        if (best.valid && !truth.feasible)
            fail_msg("seed %d: found what does not exist", (int)seed);
        if (truth.feasible && end.bound < truth.score - 1e-9)
            fail_msg("seed %d: bound %g below %g", (int)seed, end.bound, truth.score);
        if (truth.feasible && end.hosts_bound > truth.fewest_hosts)
            fail_msg("seed %d: bound %d hosts above %d", (int)seed, (int)end.hosts_bound,
                     truth.fewest_hosts);
        proven += end.proven;
        infeasible += end.proven && !best.valid;
        if (!end.proven)
            continue;
        if (best.valid != truth.feasible)
            fail_msg("seed %d: proven without a placement", (int)seed);
        bool at_best = given.options.objective == OBJECTIVE_HOSTS
                           ? best.hosts == truth.fewest_hosts
                           : fabs(best.score - truth.score) <= 1e-6;
        if (best.valid && !at_best)
            fail_msg("seed %d: proves %g / %d, best is %g / %d", (int)seed, best.score, best.hosts,
                     truth.score, truth.fewest_hosts);
    }
    print_message("%d proven, %d of them infeasible\n", proven, infeasible);
    assert_true(proven > RUNS / 4);
}

static void test_counts_when_instances_move_then_the_optimum(void **state)
{
    (void)state;
    counts_sweep(PER_INSTANCE);
}

static void test_counts_when_services_move_then_the_optimum(void **state)
{
    (void)state;
    counts_sweep(PER_SERVICE);
}

static void test_frontier_when_asked_then_ascending_to_the_plan(void **state)
{
    (void)state;
    struct wild wild = wild_all;
    wild.instances = 20;
    wild.hosts = 6;
    wild.unplaced = false;
    int points = 0;
    for (uint64_t seed = 0; seed < 30; seed++) {
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        given.options.max_moves = -1;
        given.options.objective = OBJECTIVE_AFFINITY;
        given.options.frontier = given.options.leave_broken = true;
        AUTO(plan) struct plan *plan = plan_by(&given, "hubs");
        assert_true(plan->n_frontier > 0);
        assert_int_equal(plan->frontier[0].restarts, 0);
        for (size_t k = 1; k < plan->n_frontier; k++) {
            assert_true(plan->frontier[k].restarts > plan->frontier[k - 1].restarts);
            assert_true(plan->frontier[k].affinity >= plan->frontier[k - 1].affinity);
            assert_true(plan->frontier[k].affinity <= plan->affinity_bound + 1e-12);
        }
        points += (int)plan->n_frontier;
    }
    print_message("%d points\n", points);
    assert_true(points > 30);
}

static void test_hubs_when_repeated_then_same_bytes(void **state)
{
    (void)state;
    struct wild wild = wild_all;
    wild.instances = 30;
    wild.hosts = 8;
    for (uint64_t seed = 0; seed < 20; seed++) {
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        struct buf texts[2] = {BUF_INIT, BUF_INIT};
        for (int k = 0; k < 2; k++) {
            AUTO(plan) struct plan *plan = plan_by(&given, "hubs");
            plan_encode(plan, given.model, false, &texts[k]);
        }
        assert_string_equal(texts[0].data, texts[1].data);
        buf_wipe(&texts[0]);
        buf_wipe(&texts[1]);
    }
}

static void test_hubs_when_cut_then_repeats_by_iterations(void **state)
{
    (void)state;
    struct mock mock = {.topology = TOPOLOGY_P2P, .services = 300, .messages = 3000, .seed = 2};
    AUTO(model) struct model *model = mock_model(&mock);
    model->has_messages = false;
    model->has_affinities = true;
    for (size_t m = 0; m < model->n_messages; m++) {
        struct affinity *row = ARRAY_PUSH(model->affinities, model->n_affinities);
        *row = (struct affinity){.a = model->messages[m].src, .b = model->messages[m].dst,
                                 .degree = (double)model->messages[m].count, .bytes = -1};
    }
    model->n_messages = 0;
    struct given given = {model, analysis_from_given(model), plan_options_default};
    given.options.time_limit_ms = 30;
    AUTO(plan) struct plan *cut = plan_by(&given, "hubs");
    assert_true(cut->cut);
    given.options.iterations = cut->iterations;
    AUTO(plan) struct plan *again = plan_by(&given, "hubs");
    assert_int_equal(again->iterations, cut->iterations);
    assert_memory_equal(again->placement, cut->placement,
                        cut->n_placement * sizeof *cut->placement);
    analysis_free(given.analysis);
}

/* However early the clock ends a search, or the process that it runs in, the counts of its plan repeat
 * it to the byte. */
static void cut_repeats(struct given *given, const char *planner, int64_t limit_ms, int *cuts)
{
    struct buf texts[2] = {BUF_INIT, BUF_INIT};
    given->options.time_limit_ms = limit_ms;
    given->options.iterations = -1;
    AUTO(plan) struct plan *cut = plan_by(given, planner);
    plan_encode(cut, given->model, false, &texts[0]);
    if (!cut->cut) { /* another time the clock might be sooner */
        buf_wipe(&texts[0]);
        return;
    }
    ++*cuts;
    given->options.iterations = cut->iterations;
    AUTO(plan) struct plan *again = plan_by(given, planner);
    plan_encode(again, given->model, false, &texts[1]);
    if (strcmp(texts[0].data, texts[1].data) != 0)
        print_error("%s in %d ms:\n%s\n%s\n", planner, (int)limit_ms, texts[0].data,
                    texts[1].data);
    assert_string_equal(texts[0].data, texts[1].data);
    buf_wipe(&texts[0]);
    buf_wipe(&texts[1]);
}

static void test_search_when_cut_then_same_bytes_by_its_counts(void **state)
{
    (void)state;
    static const int64_t limits_ms[] = {1, 5, 10, 20, 50};
    static const char *const names[] = {"oa", "hubs", "auto"};
    int cuts = 0;
    struct wild wild = wild_all;
    wild.instances = 40;
    wild.hosts = 10;
    wild.replicas = wild.service_rows = false;
    for (uint64_t seed = 0; seed < 24; seed++) {
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        given.options.max_moves = -1;
        given.options.objective = OBJECTIVE_AFFINITY;
        cut_repeats(&given, names[seed % 3], limits_ms[seed % ARRAY_LEN(limits_ms)], &cuts);
    }
    for (int services = 60; services <= 240; services += 30) {
        struct mock mock = {.topology = TOPOLOGY_P2P, .services = services, .messages = 3000,
                            .seed = (uint64_t)services};
        AUTO_GIVEN struct given given = given_mock(&mock);
        for (size_t k = 0; k < ARRAY_LEN(limits_ms); k++)
            for (size_t p = 0; p < ARRAY_LEN(names); p++)
                cut_repeats(&given, names[p], limits_ms[k], &cuts);
        cut_repeats(&given, "oa", 400, &cuts);
    }
    print_message("%d searches cut\n", cuts);
    assert_true(cuts > 20);
}

/* What the clock ended on the way to a proof is a cut, too: a plan that says it is none is the same every time,
 * its counts included. */
static void test_oa_when_ended_on_the_way_to_a_proof_then_cut_or_the_same_bytes(void **state)
{
    static const int64_t limits_ms[] = {3, 8, 20};
    struct wild wild = wild_all;
    int cuts = 0, whole = 0;
    (void)state;
    wild.instances = 8;
    wild.hosts = 4;
    wild.unplaced = false;
    for (uint64_t seed = 0; seed < RUNS / 20; seed++) {
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        given.options.max_moves = seed % 2 ? 6 : -1;
        given.options.objective = seed % 2 ? OBJECTIVE_AFFINITY : OBJECTIVE_HOSTS;
        AUTO_FREE char *first = NULL;
        for (int k = 0; k < 4; k++) {
            struct buf text = BUF_INIT;
            cut_repeats(&given, "oa", limits_ms[seed % ARRAY_LEN(limits_ms)], &cuts);
            given.options.iterations = -1;
            AUTO(plan) struct plan *plan = plan_by(&given, "oa");
            plan_encode(plan, given.model, false, &text);
            if (!plan->cut && first)
                assert_string_equal(text.data, first);
            if (!plan->cut && !first)
                first = mem_strdup(text.data);
            whole += !plan->cut;
            buf_wipe(&text);
        }
    }
    print_message("%d searches cut, %d whole\n", cuts, whole);
    assert_true(cuts + whole > 0);
}

/* Fewest hosts: packing, prices of the covering problem, two trees; parts of it end by the clock too. */
static void test_oa_when_fewest_hosts_are_cut_then_same_bytes_by_its_counts(void **state)
{
    static const int64_t limits_ms[] = {20, 60, 150, 400, 900};
    int cuts = 0;
    (void)state;
    for (int services = 40; services <= 160; services += 40)
        for (size_t k = 0; k < ARRAY_LEN(limits_ms); k++) {
            struct mock mock = {.topology = TOPOLOGY_P2P, .services = services, .messages = 3000,
                                .tight = k % 2, .mem_factor = k % 3 == 2 ? 2.4 : 0,
                                .seed = (uint64_t)services + k};
            AUTO_GIVEN struct given given = given_mock(&mock);
            given.options.objective = OBJECTIVE_HOSTS;
            cut_repeats(&given, "oa", limits_ms[k], &cuts);
        }
    print_message("%d searches cut\n", cuts);
    assert_true(cuts > 5);
}

/* Whole services: the heuristic, the trials or the integer program ended by the clock. */
static void test_oa_when_services_are_cut_then_same_bytes_by_its_counts(void **state)
{
    static const int64_t limits_ms[] = {2, 10, 40, 150};
    struct wild wild = wild_services();
    int cuts = 0;
    (void)state;
    wild.fixed = wild.unplaced = false;
    for (uint64_t seed = 0; seed < RUNS / 10; seed++) {
        wild.instances = 8 + (int)(seed % 5) * 6;
        wild.hosts = 4 + (int)(seed % 3) * 3;
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        given.options.granularity = PER_SERVICE;
        given.options.max_moves = -1;
        cut_repeats(&given, "oa", limits_ms[seed % ARRAY_LEN(limits_ms)], &cuts);
    }
    print_message("%d searches cut\n", cuts);
    assert_true(cuts > 0);
}

/* Too large for an exact form: the clock ends the heuristic or, once that is through, its bound. */
static void test_planners_when_their_bound_is_cut_then_same_bytes_by_its_counts(void **state)
{
    static const char *const names[] = {"oa", "hubs"};
    struct given given = {.model = production_model(3), .options = plan_options_default};
    int cuts = 0;
    (void)state;
    given.analysis = analysis_from_given(given.model);
    for (size_t p = 0; p < ARRAY_LEN(names); p++)
        cut_repeats(&given, names[p], 1500, &cuts);
    given_wipe(&given);
    assert_true(cuts > 0);
}

/* A search that ended early is one, though what it found is proven. */
static void test_oa_when_ended_early_at_its_bound_then_optimal_and_cut(void **state)
{
    struct mock mock = {.topology = TOPOLOGY_P2P, .services = 10, .messages = 1000, .seed = 1};
    (void)state;
    AUTO_GIVEN struct given given = given_mock(&mock);
    given.options.iterations = 2;
    AUTO(plan) struct plan *plan = plan_by(&given, "oa");
    assert_int_equal(plan->status, PLAN_OPTIMAL);
    assert_true(plan->cut && !strstr(plan->why, "before the proof"));
    given.options.iterations = plan->iterations;
    AUTO(plan) struct plan *again = plan_by(&given, "oa");
    assert_true(again->cut && again->iterations == plan->iterations);
    assert_memory_equal(again->placement, plan->placement,
                        plan->n_placement * sizeof *plan->placement);
}

/* What the bound of the room proves before the first count is not what a search had that was killed before
 * it: `iterations` 1 repeats that one. */
static void test_oa_when_killed_before_it_counted_then_repeats_without_a_proof(void **state)
{
    struct mock mock = {.topology = TOPOLOGY_STAR, .services = 5, .messages = 100, .seed = 1};
    (void)state;
    AUTO_GIVEN struct given given = given_mock(&mock);
    AUTO(plan) struct plan *whole = plan_by(&given, "oa");
    assert_false(whole->cut);
    given.options.iterations = 1;
    AUTO(plan) struct plan *plan = plan_by(&given, "oa");
    assert_true(plan->cut);
    assert_int_equal(plan->iterations, 1);
}

/* The time is over before the search begins: packed greedily all the same. */
static void test_oa_when_time_is_over_then_better_than_nothing(void **state)
{
    struct mock mock = {.topology = TOPOLOGY_P2P, .services = 300, .messages = 3000, .seed = 4};
    (void)state;
    AUTO_GIVEN struct given given = given_mock(&mock);
    given.options.time_limit_ms = 1;
    given.options.start_ms = clock_mono_ms() - 1000;
    AUTO(plan) struct plan *plan = plan_by(&given, "oa");
    assert_true(plan->cut && plan->n_moves > 0);
    assert_true(plan->affinity_after > plan->affinity_before + 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hubs_when_tiny_then_promises_kept_and_mostly_best),
        cmocka_unit_test(test_hubs_when_start_is_broken_then_promises_kept),
        cmocka_unit_test(test_oa_when_tiny_then_never_wrong),
        cmocka_unit_test(test_oa_when_no_replicas_or_zones_then_proven),
        cmocka_unit_test(test_oa_modified_when_tiny_then_promises_kept),
        cmocka_unit_test(test_auto_when_tiny_then_never_wrong),
        cmocka_unit_test(test_hubs_when_a_host_is_over_then_no_move_would_relieve_it),
        cmocka_unit_test(test_hubs_when_a_host_is_over_then_no_service_would_relieve_it),
        cmocka_unit_test(test_hubs_when_services_move_then_found_if_there_is_one),
        cmocka_unit_test(test_hubs_when_services_are_over_at_the_start_then_found_all_the_same),
        cmocka_unit_test(test_oa_when_services_move_then_proven),
        cmocka_unit_test(test_counts_when_instances_move_then_the_optimum),
        cmocka_unit_test(test_counts_when_services_move_then_the_optimum),
        cmocka_unit_test(test_frontier_when_asked_then_ascending_to_the_plan),
        cmocka_unit_test(test_hubs_when_repeated_then_same_bytes),
        cmocka_unit_test(test_hubs_when_cut_then_repeats_by_iterations),
        cmocka_unit_test(test_search_when_cut_then_same_bytes_by_its_counts),
        cmocka_unit_test(test_oa_when_ended_on_the_way_to_a_proof_then_cut_or_the_same_bytes),
        cmocka_unit_test(test_oa_when_fewest_hosts_are_cut_then_same_bytes_by_its_counts),
        cmocka_unit_test(test_oa_when_services_are_cut_then_same_bytes_by_its_counts),
        cmocka_unit_test(test_planners_when_their_bound_is_cut_then_same_bytes_by_its_counts),
        cmocka_unit_test(test_oa_when_ended_early_at_its_bound_then_optimal_and_cut),
        cmocka_unit_test(test_oa_when_killed_before_it_counted_then_repeats_without_a_proof),
        cmocka_unit_test(test_oa_when_time_is_over_then_better_than_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
