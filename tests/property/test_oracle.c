/* test_oracle.c - oa against an integer program that shares nothing with it (compact.h), on mock
 * applications of up to 14 services that need several hosts: sizes where brute force has no end. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "analyzer/affinity.h"
#include "planner/planner.h"
#include "tests/bench/compact.h"
#include "tests/bench/instances.h"

#define ORACLE_MS 2000
#define OA_MS 1500
/* Where every proof must come, however slow the machine: none is waited for in vain. */
#define PROOF_MS 20000

struct sweep {
    int runs, proven, infeasible, several_hosts;
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* So that two to four are needed. */
static void hosts_shrink(struct model *model, struct rng *rng)
{
    struct load all = {0}, largest = {0};
    double part = 0.25 + 0.5 * rng_real(rng);
    for (size_t i = 0; i < model->n_instances; i++) {
        struct load need = instance_load(&model->instances[i]);
        load_add(&all, &need);
        largest.cpu_millis = larger(largest.cpu_millis, need.cpu_millis);
        largest.mem_bytes = larger(largest.mem_bytes, need.mem_bytes);
    }
    for (size_t h = 0; h < model->n_hosts; h++) {
        model->hosts[h].cpu_cap_millis =
            larger(largest.cpu_millis, (int64_t)(part * (double)all.cpu_millis));
        model->hosts[h].mem_cap_bytes =
            larger(largest.mem_bytes, (int64_t)(1.1 * part * (double)all.mem_bytes));
    }
}

/* Some pinned, to one of three hosts where there is room. */
static void some_pinned(struct model *model, struct rng *rng)
{
    for (size_t i = 0; i < model->n_instances; i++) {
        struct instance *one = &model->instances[i];
        struct load need = instance_load(one), offer = host_offer(&model->hosts[0]);
        int host = (int)rng_below(rng, 3);
        AUTO_FREE struct load *used = model_host_loads(model);
        if (rng_below(rng, 5) > 0)
            continue;
        if (host != one->host && load_fits(&offer, &used[host], &need, NULL))
            one->host = host;
        one->pinned_why = mem_strdup("pinned");
    }
}

static void some_rules(struct model *model, struct rng *rng)
{
    for (uint32_t left = rng_below(rng, 4); left > 0; left--) {
        struct rule *rule = ARRAY_PUSH(model->rules, model->n_rules);
        uint32_t n = (uint32_t)model->n_services, a = rng_below(rng, n);
        rule->kind = rng_below(rng, 3) ? RULE_APART : RULE_TOGETHER;
        rule->max_per_host = 1;
        rule->n_services = 2;
        rule->services = mem_array(2, sizeof *rule->services);
        rule->services[0] = (int)a;
        rule->services[1] = (int)((a + 1 + rng_below(rng, n - 1)) % n);
    }
}

static struct model *small_model(uint64_t seed, bool pins, bool rules)
{
    struct rng rng = {seed * 104729 + 11};
    struct mock mock = {.topology = seed % 4 == 3 ? TOPOLOGY_STAR : TOPOLOGY_P2P,
                        .services = 4 + (int)rng_below(&rng, seed % 10 == 0 ? 11 : 7),
                        .messages = 1000,
                        .equal = seed % 5 == 2,
                        .mem_factor = seed % 3 == 1 ? 2.4 : 0,
                        .seed = seed};
    struct model *model = mock_model(&mock);
    hosts_shrink(model, &rng);
    if (pins)
        some_pinned(model, &rng);
    if (rules)
        some_rules(model, &rng);
    return model;
}

static struct plan *plan_oa(const struct model *model, const struct analysis *analysis,
                            enum objective objective, int64_t limit_ms)
{
    struct err err = ERR_INIT;
    struct plan *plan = NULL;
    struct plan_options options = plan_options_default;
    options.planner = "oa";
    options.objective = objective;
    options.time_limit_ms = limit_ms;
    if (planner_run(model, analysis, &options, &plan, &err) < 0)
        fail_msg("%s", err.text);
    return plan;
}

static void compare(struct sweep *sweep, uint64_t seed, bool pins, bool rules)
{
    struct err err = ERR_INIT;
    struct compact_options options = {.form = COMPACT_REPRESENTATIVES,
                                      .limit_ms = rules ? ORACLE_MS : PROOF_MS};
    AUTO(model) struct model *model = small_model(seed, pins, rules);
    AUTO(analysis) struct analysis *analysis = NULL;
    if (affinity_analyzer.analyze(model, 0.5, &analysis, &err) < 0)
        fail_msg("%s", err.text);
    AUTO(plan) struct plan *plan = plan_oa(model, analysis, OBJECTIVE_AFFINITY, rules ? OA_MS : PROOF_MS);
    struct compact best = compact_solve(model, analysis->rows, analysis->n_rows, &options);
    bool found = plan->status == PLAN_OPTIMAL || plan->status == PLAN_FEASIBLE;
    sweep->runs++;
    if ((plan->status == PLAN_INFEASIBLE && best.placement) ||
        (found && best.status == COMPACT_INFEASIBLE))
        fail_msg("seed %d: oa says %d, the oracle %d: %s", (int)seed, (int)plan->status,
                 (int)best.status, plan->why);
    if (best.placement) {
        assert_true(best.sound);
        if (plan->has_bound && plan->affinity_bound < best.value - 1e-12)
            fail_msg("seed %d: bound %.12f below a value, %.12f", (int)seed, plan->affinity_bound,
                     best.value);
        assert_true(!found || plan->affinity_after <= best.bound + 1e-9);
        sweep->several_hosts += best.hosts > 1;
    }
    if (best.status == COMPACT_INFEASIBLE && plan->status == PLAN_INFEASIBLE) {
        sweep->infeasible++;
        sweep->proven++;
    }
    if (best.status == COMPACT_PROVEN && plan->status == PLAN_OPTIMAL) {
        if (fabs(plan->affinity_after - best.value) > 1e-9 * best.value)
            fail_msg("seed %d: oa proves %.12f, the oracle %.12f", (int)seed, plan->affinity_after,
                     best.value);
        sweep->proven++;
    }
    free(best.placement);
}

static void test_oa_when_hosts_equal_then_the_oracles_optimum(void **state)
{
    (void)state;
    struct sweep sweep = {0};
    for (uint64_t seed = 0; seed < 200; seed++)
        compare(&sweep, seed, false, false);
    print_message("%d of %d proven by both\n", sweep.proven, sweep.runs);
    assert_true(sweep.proven >= 196);
    assert_true(sweep.several_hosts > 150);
}

static void test_oa_when_pinned_then_the_oracles_optimum(void **state)
{
    (void)state;
    struct sweep sweep = {0};
    for (uint64_t seed = 1000; seed < 1100; seed++)
        compare(&sweep, seed, true, false);
    print_message("%d of %d proven by both\n", sweep.proven, sweep.runs);
    assert_true(sweep.proven >= 98);
}

/* Rules widen what oa leaves open; what it claims must hold all the same. */
static void test_oa_when_pins_and_rules_then_no_claim_refuted(void **state)
{
    (void)state;
    struct sweep sweep = {0};
    for (uint64_t seed = 1000; seed < 1060; seed++)
        compare(&sweep, seed, true, true);
    print_message("%d of %d proven by both, %d infeasible\n", sweep.proven, sweep.runs,
                  sweep.infeasible);
    assert_true(sweep.proven >= 30);
}

/* Fewest hosts, then the most affinity with so many. */
static void test_oa_when_fewest_hosts_then_the_oracles(void **state)
{
    (void)state;
    int proven = 0, runs = 60;
    for (uint64_t seed = 0; seed < (uint64_t)runs; seed++) {
        struct err err = ERR_INIT;
        struct compact_options options = {
            .form = COMPACT_REPRESENTATIVES, .goal = COMPACT_HOSTS, .limit_ms = ORACLE_MS};
        AUTO(model) struct model *model = small_model(seed, false, false);
        AUTO(analysis) struct analysis *analysis = NULL;
        if (affinity_analyzer.analyze(model, 0.5, &analysis, &err) < 0)
            fail_msg("%s", err.text);
        AUTO(plan) struct plan *plan = plan_oa(model, analysis, OBJECTIVE_HOSTS, OA_MS);
        struct compact fewest = compact_solve(model, analysis->rows, analysis->n_rows, &options);
        options.goal = COMPACT_AFFINITY;
        options.max_hosts = fewest.hosts;
        struct compact best = compact_solve(model, analysis->rows, analysis->n_rows, &options);
        free(fewest.placement);
        free(best.placement);
        if (fewest.status != COMPACT_PROVEN || best.status != COMPACT_PROVEN)
            continue;
        assert_true(plan->hosts_bound <= fewest.hosts && plan->hosts_after >= fewest.hosts);
        if (plan->hosts_after == fewest.hosts)
            assert_true(plan->affinity_after <= best.value + 1e-9);
        if (plan->hosts_after == fewest.hosts && !isnan(plan->affinity_bound_hosts))
            assert_true(plan->affinity_bound_hosts >= best.value - 1e-9);
        if (plan->status != PLAN_OPTIMAL)
            continue;
        if (plan->hosts_after != fewest.hosts)
            fail_msg("seed %d: oa proves %d hosts, the oracle %d", (int)seed,
                     (int)plan->hosts_after, fewest.hosts);
        proven++;
    }
    print_message("%d of %d proven by both\n", proven, runs);
    assert_true(proven >= runs / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oa_when_hosts_equal_then_the_oracles_optimum),
        cmocka_unit_test(test_oa_when_pinned_then_the_oracles_optimum),
        cmocka_unit_test(test_oa_when_pins_and_rules_then_no_claim_refuted),
        cmocka_unit_test(test_oa_when_fewest_hosts_then_the_oracles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
