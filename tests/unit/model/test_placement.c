/* test_placement.c - rows that add up, their order, the score of a placement, response time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/small.h"

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-12)

static void test_analysis_from_given_when_pairs_repeat_adds_them_up(void **state)
{
    AUTO(model) struct model *model = model_new();

    (void)state;
    small_instance(model, "a-0", "a", NULL, 1, 1);
    small_instance(model, "a-1", "a", NULL, 1, 1);
    small_instance(model, "b", "b", NULL, 1, 1);
    small_affinity(model, "a-0", "b", 0.25);
    small_affinity(model, "b", "a-0", 0.25);
    small_affinity(model, "a-1", "b", 0.5);
    small_affinity(model, "a-1", "a-0", 0.125);
    small_affinity(model, "b", "b", 9);
    AUTO(analysis) struct analysis *analysis = analysis_from_given(model);
    assert_int_equal(analysis->n_rows, 3);
    assert_int_equal(analysis->ignored, 1);
    /* 0.5 twice: by name */
    assert_int_equal(analysis->rows[0].a, 0);
    assert_int_equal(analysis->rows[0].b, 2);
    assert_near(analysis->rows[0].degree, 0.5);
    assert_int_equal(analysis->rows[1].a, 1);
    assert_near(analysis->rows[2].degree, 0.125);
    /* the pair inside service a is not among services */
    assert_int_equal(analysis->n_service_rows, 1);
    assert_near(analysis->service_rows[0].degree, 1);
}

static void test_affinity_sort_when_degrees_differ_by_rounding_orders_by_name(void **state)
{
    AUTO(model) struct model *model = model_new();

    (void)state;
    small_instance(model, "P10", "P10", NULL, 1, 1);
    small_instance(model, "P2", "P2", NULL, 1, 1);
    small_instance(model, "P3", "P3", NULL, 1, 1);
    struct affinity rows[] = {
        {LEVEL_INSTANCE, 1, 2, 0.1 + 0.2, 0, -1},
        {LEVEL_INSTANCE, 0, 2, 0.3, 0, -1},
        {LEVEL_INSTANCE, 0, 1, 0.4, 0, -1},
    };
    affinity_sort(model, rows, 3);
    assert_near(rows[0].degree, 0.4);
    assert_int_equal(rows[1].a, 0); /* P10 before P2 in strcmp order */
    assert_int_equal(rows[2].a, 1);
}

static void test_placement_score_when_rows_are_of_instances_sums_shared_hosts(void **state)
{
    AUTO(model) struct model *model = model_new();
    int together[] = {0, 0, 1}, apart[] = {0, 1, -1};

    (void)state;
    small_host(model, "h1", 10);
    small_host(model, "h2", 10);
    small_instance(model, "a", "a", "h1", 1, 1);
    small_instance(model, "b", "b", "h1", 1, 1);
    small_instance(model, "c", "c", "h2", 1, 1);
    small_affinity(model, "a", "b", 0.6);
    small_affinity(model, "b", "c", 0.4);
    assert_near(placement_score(model, model->affinities, 2, together), 0.6);
    assert_near(placement_score(model, model->affinities, 2, apart), 0);
    assert_int_equal(placement_hosts_used(model, together), 2);
    apart[0] = apart[1] = -1; /* unplaced ones share nothing */
    assert_near(placement_score(model, model->affinities, 2, apart), 0);
    assert_int_equal(placement_hosts_used(model, apart), 0);
}

/* Service a has 2 replicas, b has 4. */
static struct model *replicated(void)
{
    static const char *const names[] = {"a-0", "a-1", "b-0", "b-1", "b-2", "b-3"};
    struct model *model = model_new();

    small_host(model, "h1", 100);
    small_host(model, "h2", 100);
    small_host(model, "h3", 100);
    for (int i = 0; i < 6; i++)
        small_instance(model, names[i], i < 2 ? "a" : "b", "h1", 1, 1);
    small_affinity(model, "a", "b", 0.8);
    return model;
}

static void test_placement_score_when_rows_are_of_services_takes_min_shares(void **state)
{
    AUTO(model) struct model *model = replicated();
    static const struct {
        int placement[6];
        double share;
    } rows[] = {
        {{0, 0, 0, 0, 0, 0}, 1},
        {{0, 1, 0, 0, 1, 1}, 1},
        {{0, 1, 0, 0, 0, 1}, 0.75},
        {{0, 0, 1, 1, 1, 1}, 0},
        {{0, -1, 0, 1, 2, 2}, 0.25},
        {{-1, -1, -1, -1, -1, -1}, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_near(placement_score(model, model->affinities, 1, rows[i].placement),
                    0.8 * rows[i].share);
        model->affinities[0].count = 10;
        assert_near(placement_local_share(model, model->affinities, 1, rows[i].placement),
                    rows[i].share);
    }
    model->affinities[0].count = 0;
    assert_near(placement_local_share(model, model->affinities, 1, rows[0].placement), 0);
}

static void test_placement_score_when_a_service_has_no_instances_is_zero(void **state)
{
    AUTO(model) struct model *model = replicated();
    struct err err = ERR_INIT;
    int all[6] = {0};

    (void)state;
    assert_int_equal(model_add_service(model, "ghost", &err), 2);
    small_affinity(model, "a", "ghost", 1);
    assert_near(placement_score(model, model->affinities, 2, all), 0.8);
}

static struct model *talking(double mean_ms)
{
    struct model *model = model_new();

    small_host(model, "h1", 100);
    small_host(model, "h2", 100);
    small_host(model, "h3", 100);
    small_instance(model, "a", "a", "h1", 1, 1);
    small_instance(model, "b", "b", "h2", 1, 1);
    *ARRAY_PUSH(model->latencies, model->n_latencies) = (struct latency){0, 1, 4000};
    *ARRAY_PUSH(model->latencies, model->n_latencies) = (struct latency){0, 2, 1000};
    model->has_messages = true;
    *ARRAY_PUSH(model->messages, model->n_messages) =
        (struct message){LEVEL_INSTANCE, 0, 1, 10, -1, mean_ms};
    return model;
}

static void test_placement_response_when_hosts_change_swaps_round_trips(void **state)
{
    AUTO(model) struct model *model = talking(10);
    static const struct {
        int placement[2];
        double ms;
    } rows[] = {
        {{0, 1}, 10}, {{0, 0}, 6}, {{0, 2}, 7}, {{1, 2}, 10 /* h2 to h3 is unknown */},
        {{0, -1}, 10},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_near(placement_response_ms(model, rows[i].placement), rows[i].ms);
}

static void test_placement_response_when_below_round_trip_stays_above_zero(void **state)
{
    AUTO(model) struct model *fast = talking(1), *unknown = talking(-1);
    int together[] = {0, 0};

    (void)state;
    assert_near(placement_response_ms(fast, together), 0);
    assert_true(placement_response_ms(unknown, together) < 0);
}

static void test_placement_response_when_replicas_prefer_their_host_averages(void **state)
{
    AUTO(model) struct model *model = replicated();
    int half[] = {0, 1, 0, 0, 1, 1}, apart[] = {0, 0, 1, 1, 1, 1}, odd[] = {0, 1, 0, 0, 0, 1};

    (void)state;
    model->n_affinities = 0;
    model->has_affinities = false;
    model->has_messages = true;
    *ARRAY_PUSH(model->latencies, model->n_latencies) = (struct latency){0, 1, 4000};
    *ARRAY_PUSH(model->messages, model->n_messages) =
        (struct message){LEVEL_SERVICE, 0, 1, 1, -1, 10};
    assert_near(placement_response_ms(model, half), 10);
    assert_near(placement_response_ms(model, apart), 14);
    assert_near(placement_response_ms(model, odd), 11); /* a quarter goes across */
}

static void test_model_coverage_when_traffic_is_given_is_the_known_share(void **state)
{
    AUTO(model) struct model *model = talking(1);

    (void)state;
    assert_true(model_coverage(model) < 0);
    model->traffic.given = true;
    assert_near(model_coverage(model), 1);
    model->traffic.unmapped_count = 30;
    assert_near(model_coverage(model), 0.25);
    *ARRAY_PUSH(model->messages, model->n_messages) =
        (struct message){LEVEL_INSTANCE, 0, 0, 1000, -1, -1}; /* itself: ignored */
    assert_near(model_coverage(model), 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_analysis_from_given_when_pairs_repeat_adds_them_up),
        cmocka_unit_test(test_affinity_sort_when_degrees_differ_by_rounding_orders_by_name),
        cmocka_unit_test(test_placement_score_when_rows_are_of_instances_sums_shared_hosts),
        cmocka_unit_test(test_placement_score_when_rows_are_of_services_takes_min_shares),
        cmocka_unit_test(test_placement_score_when_a_service_has_no_instances_is_zero),
        cmocka_unit_test(test_placement_response_when_hosts_change_swaps_round_trips),
        cmocka_unit_test(test_placement_response_when_below_round_trip_stays_above_zero),
        cmocka_unit_test(test_placement_response_when_replicas_prefer_their_host_averages),
        cmocka_unit_test(test_model_coverage_when_traffic_is_given_is_the_known_share),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
