/* test_fewest.c - lower bounds of hosts and packings against all placements of small models, large
 * instances on unequal hosts among them, where sums say little. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "planner/bound.h"
#include "planner/cover.h"
#include "planner/fewest.h"
#include "planner/pack.h"
#include "planner/planner.h"
#include "planner/tree.h"
#include "tests/bench/brute.h"
#include "tests/bench/instances.h"
#include "tests/support/runs.h"

#define RUNS RUNS_OF(600)

/* Some instances take 40 to 80 % of the largest host. */
static void some_large(struct model *model, struct rng *rng)
{
    int64_t cpu = 1, mem = 1;
    for (size_t h = 0; h < model->n_hosts; h++) {
        struct load offer = host_offer(&model->hosts[h]);
        cpu = offer.cpu_millis > cpu ? offer.cpu_millis : cpu;
        mem = offer.mem_bytes > mem ? offer.mem_bytes : mem;
    }
    for (size_t i = 0; i < model->n_instances; i++) {
        struct instance *one = &model->instances[i];
        bool by_cpu = rng_below(rng, 2);
        int64_t part = 40 + (int64_t)rng_below(rng, 41);
        if (one->host >= 0 || rng_below(rng, 3) == 0)
            continue;
        if (by_cpu)
            one->cpu_used_millis = cpu * part / 100;
        else
            one->mem_used_bytes = mem / 100 * part;
    }
}

static struct model *large_model(uint64_t seed)
{
    struct wild wild = wild_all;
    struct rng rng = {seed * 31 + 7};
    wild.instances = 7;
    wild.hosts = 4;
    wild.rules = seed % 2;
    wild.replicas = wild.service_rows = seed % 4 == 3;
    struct model *model = wild_model(&wild, seed);
    for (size_t i = 0; i < model->n_instances; i++)
        if (seed % 3 && model->instances[i].host >= 0 && !model->instances[i].pinned_why)
            model->instances[i].host = -1; /* else what is placed must fit where it is */
    some_large(model, &rng);
    return model;
}

static int64_t cover_of(const struct model *model, const int *placement, int64_t enough)
{
    struct err err = ERR_INIT;
    struct effort effort = {.limit = -1, .deadline_ms = INT64_MAX};
    AUTO(space) struct space *blind = space_new(model, NULL, 0, false, &err);
    AUTO(parts) struct parts *parts = blind ? parts_new(blind, &err) : NULL;
    if (!parts)
        fail_msg("%s", err.text);
    AUTO_FREE int *used = mem_array((size_t)parts->n_kinds + 1, sizeof *used);
    AUTO_FREE int *at = mem_array((size_t)parts->n + 1, sizeof *at);
    for (int i = 0; i < blind->n; i++)
        if (!blind->fixed[i])
            at[parts->item_of[i]] = placement[i];
    for (int k = 0; k < parts->n_kinds; k++)
        for (int h = 0; h < parts->kinds[k].count; h++) {
            bool stays = false;
            for (int i = 0; i < blind->n; i++)
                stays |= blind->fixed[i] && blind->start[i] == parts->kinds[k].hosts[h];
            used[k] += stays;
        }
    return cover_bound(parts, used, at, enough, &effort);
}

static void test_bounds_when_small_then_none_above_the_fewest(void **state)
{
    (void)state;
    int feasible = 0, cheap = 0, dear = 0;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        AUTO(model) struct model *model = large_model(seed);
        struct brute truth = brute_force(model, NULL, 0, false, -1, true);
        AUTO_FREE int *placement = model_placement(model);
        if (!truth.feasible || model->n_instances == 0)
            continue;
        int64_t sums = bound_hosts(model, false, true);
        int64_t cover = cover_of(model, placement, (int64_t)model->n_hosts + 1);
        if (sums > truth.fewest_hosts || cover > truth.fewest_hosts)
            fail_msg("seed %d: bounds %d and %d above %d", (int)seed, (int)sums, (int)cover,
                     truth.fewest_hosts);
        feasible++;
        cheap += sums == truth.fewest_hosts;
        dear += sums == truth.fewest_hosts || cover == truth.fewest_hosts;
    }
    print_message("%d models: %d met by sums, %d by these or prices\n", feasible, cheap, dear);
    assert_true(feasible > RUNS / 4);
    assert_true(cheap >= feasible * 70 / 100);
    assert_true(dear >= feasible * 90 / 100);
}

static void test_oa_when_fewest_hosts_then_what_all_placements_say(void **state)
{
    (void)state;
    int feasible = 0, proven = 0, within = 0;
    for (uint64_t seed = 0; seed < RUNS / 2; seed++) {
        struct err err = ERR_INIT;
        AUTO(model) struct model *model = large_model(seed);
        AUTO(analysis) struct analysis *analysis = analysis_from_given(model);
        AUTO(plan) struct plan *plan = NULL;
        struct plan_options options = plan_options_default;
        options.planner = "oa";
        options.objective = OBJECTIVE_HOSTS;
        if (planner_run(model, analysis, &options, &plan, &err) < 0)
            fail_msg("%s", err.text);
        struct brute truth =
            brute_force(model, analysis->rows, analysis->n_rows, false, -1, true);
        if (!truth.feasible || plan->status == PLAN_TIMEOUT)
            continue;
        feasible++;
        assert_true(plan->hosts_bound <= truth.fewest_hosts);
        assert_true(plan->hosts_after >= truth.fewest_hosts);
        if (plan->status == PLAN_OPTIMAL)
            assert_int_equal(plan->hosts_after, truth.fewest_hosts);
        assert_true(plan->affinity_bound >= truth.score - 1e-9);
        if (plan->hosts_after == truth.fewest_hosts && !isnan(plan->affinity_bound_hosts)) {
            assert_true(plan->affinity_bound_hosts >= truth.fewest_hosts_score - 1e-9);
            within++;
        }
        proven += plan->status == PLAN_OPTIMAL;
    }
    print_message("%d of %d proven, %d bounded on so few hosts\n", proven, feasible, within);
    assert_true(feasible > RUNS / 8);
    assert_true(proven >= feasible * 95 / 100);
}

/* ---- affinity on so many hosts ---- */

struct limited {
    struct space *space;
    struct parts *parts;
    int most;
    double best, bound;
};

static double limited_found(void *ctx, const int *host_of_item)
{
    struct limited *l = ctx;
    AUTO(place) struct place *place = place_new(l->space, l->space->start);
    for (int i = 0; i < l->space->n; i++)
        if (l->parts->item_of[i] >= 0)
            place_move(place, i, host_of_item[l->parts->item_of[i]]);
    pack_unplaced(place);
    if (place_holds(place) && place->n_used <= l->most && place->score * l->parts->scale > l->best)
        l->best = place->score * l->parts->scale;
    return l->best;
}

static void limited_bound(void *ctx, double bound)
{
    struct limited *l = ctx;
    l->bound = bound < l->bound ? bound : l->bound;
}

static void test_tree_when_hosts_are_limited_then_the_best_on_so_many(void **state)
{
    (void)state;
    int closed = 0, tighter = 0, runs = 0;
    for (uint64_t seed = 0; seed < RUNS / 3; seed++) {
        struct err err = ERR_INIT;
        struct wild wild = {.instances = 7, .hosts = 4, .requests = true, .uneven = seed % 2,
                            .fixed = seed % 3 == 0};
        struct effort effort = {.limit = 200000, .deadline_ms = INT64_MAX};
        AUTO(model) struct model *model = wild_model(&wild, seed);
        AUTO(analysis) struct analysis *analysis = analysis_from_given(model);
        struct brute truth =
            brute_force(model, analysis->rows, analysis->n_rows, false, -1, true);
        AUTO(space) struct space *space =
            space_new(model, analysis->rows, analysis->n_rows, false, &err);
        space->strict = true;
        AUTO(parts) struct parts *parts = parts_new(space, &err);
        if (!truth.feasible || !parts || parts->n == 0)
            continue;
        struct limited l = {space, parts, truth.fewest_hosts, -INFINITY, INFINITY};
        struct tree_start start = {.known = -INFINITY, .margin = 1e-9 * PARTS_TOTAL};
        struct tree_report report = {limited_found, limited_bound, &l};
        double value = truth.fewest_hosts_score * parts->scale;
        parts_limit(parts, truth.fewest_hosts);
        int result = tree_search(parts, &start, &report, &effort);
        if (l.bound < value - 1e-6 * PARTS_TOTAL)
            fail_msg("seed %d: bound %g below %g on %d hosts", (int)seed, l.bound, value,
                     truth.fewest_hosts);
        assert_true(l.best <= value + 1e-6 * PARTS_TOTAL);
        closed += result == 0 && l.best >= value - 1e-6 * PARTS_TOTAL;
        tighter += truth.score > truth.fewest_hosts_score + 1e-9;
        runs++;
    }
    print_message("%d of %d closed; %d do better on more hosts\n", closed, runs, tighter);
    assert_true(runs > RUNS / 8);
    assert_true(closed >= runs * 95 / 100);
    assert_true(tighter > 0);
}

/* From any start: what holds stays so, and no host more is in use. */
static void test_packing_when_hosts_go_then_all_still_holds(void **state)
{
    (void)state;
    int fewer = 0;
    for (uint64_t seed = 0; seed < RUNS / 10; seed++) {
        struct err err = ERR_INIT;
        struct mock mock = {.topology = TOPOLOGY_P2P, .services = 12 + (int)(seed % 30),
                            .messages = 1000, .mem_factor = seed % 2 ? 2.4 : 0, .seed = seed};
        AUTO(model) struct model *model = mock_model(&mock);
        AUTO(analysis) struct analysis *analysis = analysis_from_given(model);
        AUTO(space) struct space *space =
            space_new(model, analysis->rows, analysis->n_rows, false, &err);
        struct plan_options options = plan_options_default;
        options.objective = OBJECTIVE_HOSTS;
        space->strict = true;
        AUTO_FREE int *at = model_placement(model);
        AUTO(place) struct place *start = place_new(space, at);
        struct effort effort = {.limit = 2000000, .deadline_ms = INT64_MAX};
        struct value best = value_of(start, &options);
        int before = best.hosts;
        int64_t bound = bound_hosts(model, false, true);
        assert_true(best.valid);
        fewest_pack(space, &options, bound, &effort, at, &best);
        AUTO(place) struct place *end = place_new(space, at);
        assert_true(place_holds(end) && end->n_used == best.hosts && best.hosts >= bound);
        fewer += best.hosts < before;
        if (best.hosts > bound + 1)
            fail_msg("seed %d: %d hosts where %d may do", (int)seed, best.hosts, (int)bound);
    }
    assert_true(fewer > RUNS / 20);
}

/* 3500 replicas on hosts of ten sizes, four resources: as few hosts as the largest ones add up to. */
static void test_packing_when_production_then_as_few_as_the_bound(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct err err = ERR_INIT;
        AUTO(model) struct model *model = production_model(seed);
        AUTO(space) struct space *space = space_new(model, NULL, 0, false, &err);
        struct plan_options options = plan_options_default;
        options.objective = OBJECTIVE_HOSTS;
        AUTO_FREE int *at = model_placement(model);
        AUTO(place) struct place *start = place_new(space, at);
        struct effort effort = {.limit = -1, .deadline_ms = INT64_MAX};
        struct value best = value_of(start, &options);
        int64_t bound = bound_hosts(model, false, true);
        assert_true(best.valid && best.hosts > bound);
        fewest_pack(space, &options, bound, &effort, at, &best);
        AUTO(place) struct place *end = place_new(space, at);
        assert_true(place_holds(end) && end->n_over == 0);
        assert_int_equal(end->n_used, bound);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_when_small_then_none_above_the_fewest),
        cmocka_unit_test(test_oa_when_fewest_hosts_then_what_all_placements_say),
        cmocka_unit_test(test_tree_when_hosts_are_limited_then_the_best_on_so_many),
        cmocka_unit_test(test_packing_when_hosts_go_then_all_still_holds),
        cmocka_unit_test(test_packing_when_production_then_as_few_as_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
