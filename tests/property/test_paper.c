/* test_paper.c - the paper's evaluation as properties (algorithms 6.5): shares of hosts saved by HBA
 * on its mock topologies, and ΣA = 1. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "analyzer/affinity.h"
#include "planner/planner.h"
#include "tests/bench/instances.h"

static struct analysis *analyze(const struct model *model)
{
    struct err err = ERR_INIT;
    struct analysis *analysis = NULL;
    if (affinity_analyzer.analyze(model, 0.5, &analysis, &err) < 0)
        fail_msg("%s", err.text);
    return analysis;
}

/* Mean share of hosts saved over seeds. */
static double saved(enum topology topology, int n, int seeds)
{
    double sum = 0;
    for (int seed = 1; seed <= seeds; seed++) {
        struct err err = ERR_INIT;
        struct mock mock = {.topology = topology, .services = n, .messages = 10000,
                            .seed = (uint64_t)seed};
        struct plan_options options = plan_options_default;
        AUTO(model) struct model *model = mock_model(&mock);
        AUTO(analysis) struct analysis *analysis = analyze(model);
        AUTO(plan) struct plan *plan = NULL;
        options.planner = "hba";
        if (planner_run(model, analysis, &options, &plan, &err) < 0)
            fail_msg("%s", err.text);
        sum += (double)(plan->hosts_before - plan->hosts_after) / (double)plan->hosts_before;
    }
    return sum / seeds;
}

static void test_degrees_when_counts_and_bytes_then_sum_to_one(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct mock mock = {.topology = seed % 2 ? TOPOLOGY_STAR : TOPOLOGY_P2P,
                            .services = 3 + (int)seed,
                            .messages = 5000,
                            .seed = seed};
        AUTO(model) struct model *model = mock_model(&mock);
        AUTO(analysis) struct analysis *analysis = analyze(model);
        double sum = 0;
        for (size_t r = 0; r < analysis->n_rows; r++)
            sum += analysis->rows[r].degree;
        assert_true(fabs(sum - 1) < 1e-9);
    }
}

static void test_saved_when_star_of_ten_then_ninety_percent(void **state)
{
    (void)state;
    assert_true(fabs(saved(TOPOLOGY_STAR, 10, 10) - 0.9) < 1e-9);
}

static void test_saved_when_star_then_one_host_of_services(void **state)
{
    static const int sizes[] = {50, 100, 200, 500, 1000};
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        double share = saved(TOPOLOGY_STAR, sizes[k], sizes[k] < 500 ? 10 : 3);
        double one = 16.0 / sizes[k];
        if (share < 0.6 * one || share > 1.8 * one)
            fail_msg("n=%d: %.4f", sizes[k], share);
    }
}

static void test_saved_when_point_to_point_then_three_quarters(void **state)
{
    static const int sizes[] = {50, 100, 200, 500, 1000};
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        double share = saved(TOPOLOGY_P2P, sizes[k], sizes[k] < 500 ? 10 : 3);
        if (share < 0.70 || share > 0.85)
            fail_msg("n=%d: %.4f", sizes[k], share);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_degrees_when_counts_and_bytes_then_sum_to_one),
        cmocka_unit_test(test_saved_when_star_of_ten_then_ninety_percent),
        cmocka_unit_test(test_saved_when_star_then_one_host_of_services),
        cmocka_unit_test(test_saved_when_point_to_point_then_three_quarters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
