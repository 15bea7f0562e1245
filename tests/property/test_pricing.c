/* test_pricing.c - pricing against all subsets of up to 12 items, and the bounds that come of it when
 * the clock ends a search anywhere: never below what a placement reaches. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "analyzer/affinity.h"
#include "planner/planner.h"
#include "planner/pool.h"
#include "planner/pricing.h"
#include "tests/bench/brute.h"
#include "tests/bench/instances.h"

#define PARTS_RUNS 1500
#define PRICES_PER_PARTS 4
#define CUT_RUNS 1200

/* Hosts that hold a part of all: otherwise nothing is left to decide. */
static void hosts_narrow(struct model *model, struct rng *rng)
{
    int64_t cpu = 0, mem = 0;
    for (size_t i = 0; i < model->n_instances; i++) {
        cpu += instance_load(&model->instances[i]).cpu_millis;
        mem += instance_load(&model->instances[i]).mem_bytes;
    }
    double part = 0.2 + 0.5 * rng_real(rng);
    for (size_t h = 0; h < model->n_hosts; h++) {
        model->hosts[h].cpu_cap_millis = (int64_t)(part * (double)cpu);
        model->hosts[h].mem_cap_bytes = (int64_t)((0.9 + 0.4 * rng_real(rng)) * part * (double)mem);
    }
}

/* Stars, sparse graphs with conflicts and bonuses: whatever the form can say. */
static struct model *items_model(uint64_t seed, struct rng *rng)
{
    struct wild wild = wild_all;
    struct mock mock = {.topology = seed % 4 == 1 ? TOPOLOGY_STAR : TOPOLOGY_P2P,
                        .services = 5 + (int)rng_below(rng, 8),
                        .messages = 1000,
                        .equal = seed % 8 == 3,
                        .seed = seed};
    wild.instances = 12;
    wild.hosts = 4;
    wild.replicas = wild.service_rows = false;
    struct model *model = seed % 2 ? mock_model(&mock) : wild_model(&wild, seed);
    if (seed % 2)
        hosts_narrow(model, rng);
    return model;
}

static double subset_best(const struct parts *parts, int kind, int root, const double *prices)
{
    double best = -INFINITY;
    for (uint32_t set = 1; set < UINT32_C(1) << parts->n; set++) {
        int items[32], n = 0;
        bool wanted = root < 0 || (set >> root & 1);
        for (int i = 0; i < parts->n && wanted; i++)
            if (set >> i & 1) {
                wanted = root < 0 || parts->rank[i] >= parts->rank[root];
                items[n++] = i;
            }
        double value = wanted ? pattern_value(parts, kind, items, n) : -INFINITY;
        for (int k = 0; k < n; k++)
            value -= prices[items[k]];
        best = value > best ? value : best;
    }
    return best;
}

/* One pricing, whole and cut. True when something better than `least` exists. */
static bool price(const struct parts *parts, struct rng *rng, const double *prices)
{
    AUTO(pricer) struct pricer *pricer = pricer_new(parts);
    AUTO_FREE int *items = mem_array((size_t)parts->n, sizeof *items);
    int kind = (int)rng_below(rng, (uint32_t)parts->n_kinds), n;
    int root = rng_below(rng, 4) ? parts->by_rank[rng_below(rng, (uint32_t)parts->n)] : -1;
    double value, least = rng_below(rng, 2) ? 0 : 0.05 * PARTS_TOTAL * rng_real(rng);
    double best = subset_best(parts, kind, root, prices), real = 0;
    double top = pricer_exact(pricer, kind, root, prices, least, 1 + (int)rng_below(rng, 3), items,
                              &n, &value);
    assert_true(top >= best - 1e-6 && top >= least);
    top = pricer_exact(pricer, kind, root, prices, least, 1000000, items, &n, &value);
    if (fabs(top - fmax(best, least)) > 1e-5)
        fail_msg("priced at %f, best of all is %f (least %f)", top, best, least);
    for (int k = 0; k < n; k++)
        real -= prices[items[k]];
    if (n > 0)
        assert_true(fabs(real + pattern_value(parts, kind, items, n) - value) < 1e-5);
    return best > least;
}

static void test_pricing_when_few_items_then_the_best_of_all_subsets(void **state)
{
    (void)state;
    int paid = 0;
    for (uint64_t seed = 0; seed < PARTS_RUNS; seed++) {
        struct err err = ERR_INIT;
        struct rng rng = {seed * 7919 + 5};
        AUTO(model) struct model *model = items_model(seed, &rng);
        AUTO(analysis) struct analysis *analysis = NULL;
        if (affinity_analyzer.analyze(model, 0.5, &analysis, &err) < 0)
            fail_msg("%s", err.text);
        AUTO(space) struct space *space =
            space_new(model, analysis->rows, analysis->n_rows, false, &err);
        AUTO(parts) struct parts *parts = space ? parts_new(space, &err) : NULL;
        if (!parts || parts->n == 0 || parts->n > 12)
            continue;
        double prices[12];
        for (int k = 0; k < PRICES_PER_PARTS; k++) {
            for (int i = 0; i < parts->n; i++) {
                double half = 0;
                for (size_t a = parts->first[i]; a < parts->first[i + 1]; a++)
                    half += parts->arcs[a].degree / 2;
                prices[i] = k == 0 ? 0 : half * 1.4 * rng_real(&rng);
            }
            paid += price(parts, &rng, prices);
        }
    }
    print_message("%d pricings with something to find\n", paid);
    assert_true(paid > PARTS_RUNS);
}

/* Whatever ends the search, a bound is at least the plan's own value and that of the best. */
static void test_oa_when_the_clock_cuts_then_no_bound_below_a_placement(void **state)
{
    (void)state;
    int open = 0, runs = 0;
    for (uint64_t seed = 0; seed < CUT_RUNS; seed++) {
        struct err err = ERR_INIT;
        struct wild wild = wild_all;
        wild.replicas = wild.service_rows = seed % 5 == 0;
        wild.rules = seed % 2;
        wild.instances = 7;
        AUTO(model) struct model *model = wild_model(&wild, seed);
        AUTO(analysis) struct analysis *analysis = analysis_from_given(model);
        AUTO(plan) struct plan *plan = NULL;
        struct plan_options options = plan_options_default;
        options.planner = "oa";
        options.time_limit_ms = 1 + (int64_t)(seed * seed % 50);
        options.iterations = seed % 3 ? -1 : (int64_t)(seed % 4001);
        options.objective = seed % 7 == 0 ? OBJECTIVE_HOSTS : OBJECTIVE_AFFINITY;
        if (planner_run(model, analysis, &options, &plan, &err) < 0)
            fail_msg("seed %d: %s", (int)seed, err.text);
        struct brute best = brute_force(model, analysis->rows, analysis->n_rows, false, -1, true);
        if (plan->status != PLAN_OPTIMAL && plan->status != PLAN_FEASIBLE)
            continue;
        runs++;
        open += plan->status == PLAN_FEASIBLE;
        assert_true(best.feasible && plan->has_bound);
        if (plan->affinity_bound < best.score - 1e-12 ||
            plan->affinity_bound < plan->affinity_after)
            fail_msg("seed %d: bound %.12f, plan %.12f, best %.12f", (int)seed,
                     plan->affinity_bound, plan->affinity_after, best.score);
        assert_true(plan->hosts_bound <= best.fewest_hosts);
        if (plan->status == PLAN_OPTIMAL && options.objective == OBJECTIVE_AFFINITY)
            assert_true(plan->affinity_after >= best.score - 1e-9);
        if (plan->status == PLAN_OPTIMAL && options.objective == OBJECTIVE_HOSTS)
            assert_int_equal(plan->hosts_after, best.fewest_hosts);
    }
    print_message("%d of %d left open\n", open, runs);
    assert_true(runs > CUT_RUNS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pricing_when_few_items_then_the_best_of_all_subsets),
        cmocka_unit_test(test_oa_when_the_clock_cuts_then_no_bound_below_a_placement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
