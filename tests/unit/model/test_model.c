/* test_model.c - the graph: names, ends, loads, latencies, copies, invariants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/small.h"

static struct model *two_hosts(void)
{
    struct model *model = model_new();

    small_host(model, "h1", 1000);
    small_host(model, "h2", 1000);
    small_instance(model, "a", "a", "h1", 100, 200);
    small_instance(model, "b-0", "b", "h1", 10, 20);
    small_instance(model, "b-1", "b", NULL, 10, 20);
    return model;
}

static void test_model_add_when_name_is_taken_or_bad_refuses(void **state)
{
    AUTO(model) struct model *model = two_hosts();
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(model_add_host(model, "h1", &err), -1);
    assert_string_equal(err.text, "host h1 is there twice");
    assert_int_equal(model_add_service(model, "", &err), -1);
    assert_int_equal(model_add_instance(model, "a", 0, -1, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    /* unique within their kind only */
    assert_int_equal(model_add_host(model, "a", &err), 2);
    assert_int_equal(model->n_hosts, 3);
}

static void test_model_ends_when_kinds_differ_counts_at_service_level(void **state)
{
    AUTO(model) struct model *model = two_hosts();
    enum level level;
    int a, b;

    (void)state;
    assert_int_equal(model_ends(model, "a", "b-1", &level, &a, &b), 0);
    assert_true(level == LEVEL_INSTANCE && a == 0 && b == 2);
    assert_int_equal(model_ends(model, "b-1", "b", &level, &a, &b), 0);
    assert_true(level == LEVEL_SERVICE && a == 1 && b == 1);
    assert_int_equal(model_ends(model, "b", "a", &level, &a, &b), 0);
    assert_true(level == LEVEL_SERVICE && a == 1 && b == 0);
    assert_int_equal(model_ends(model, "a", "nobody", &level, &a, &b), -1);
}

static void test_load_fits_when_one_dimension_is_short_names_it(void **state)
{
    const struct load offer = {100, 100, 100, 100, 2}, used = {50, 50, 50, 50, 1};
    const struct {
        struct load need;
        const char *why;
    } rows[] = {
        {{50, 50, 50, 50, 1}, NULL},
        {{51, 50, 50, 50, 1}, "cpu"},
        {{50, 51, 50, 50, 1}, "memory"},
        {{50, 50, 51, 50, 1}, "cpu requests"},
        {{50, 50, 50, 51, 1}, "memory requests"},
        {{50, 50, 50, 50, 2}, "pod slots"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *why = NULL;
        assert_int_equal(load_fits(&offer, &used, &rows[i].need, &why), rows[i].why == NULL);
        if (rows[i].why)
            assert_string_equal(why, rows[i].why);
    }
}

static void test_host_offer_when_reserved_and_used_takes_both_away(void **state)
{
    AUTO(model) struct model *model = two_hosts();
    struct host *host = &model->hosts[0];

    (void)state;
    host->cpu_used_millis = 100;
    host->cpu_requested_millis = 300;
    host->mem_used_bytes = 1;
    host->mem_requested_bytes = 2;
    host->reserve_cpu_millis = 50;
    host->reserve_mem_bytes = 10;
    struct load offer = host_offer(host);
    assert_int_equal(offer.cpu_millis, 850);
    assert_int_equal(offer.cpu_request_millis, 650);
    assert_int_equal(offer.mem_bytes, 989);
    assert_int_equal(offer.mem_request_bytes, 988);
    assert_int_equal(offer.pods, INT64_MAX / 4);
    host->pods_cap = 110;
    host->pods_used = 7;
    assert_int_equal(host_offer(host).pods, 103);
}

static void test_model_host_loads_when_unplaced_counts_only_placed(void **state)
{
    AUTO(model) struct model *model = two_hosts();
    AUTO_FREE struct load *loads = model_host_loads(model);

    (void)state;
    assert_int_equal(loads[0].cpu_millis, 110);
    assert_int_equal(loads[0].mem_bytes, 220);
    assert_int_equal(loads[0].pods, 2);
    assert_int_equal(loads[1].pods, 0);
}

static void test_model_members_when_listed_are_in_index_order(void **state)
{
    AUTO(model) struct model *model = two_hosts();
    AUTO_MEMBERS struct members members = model_members(model);

    (void)state;
    assert_int_equal(members.first[0], 0);
    assert_int_equal(members.first[1], 1);
    assert_int_equal(members.first[2], 3);
    assert_int_equal(members.of[0], 0);
    assert_int_equal(members.of[1], 1);
    assert_int_equal(members.of[2], 2);
}

static void test_model_rtt_when_given_one_way_counts_both_ways(void **state)
{
    AUTO(model) struct model *model = two_hosts();
    int h3 = small_host(model, "h3", 1);

    (void)state;
    assert_int_equal(model_rtt_us(model, 0, 1), -1);
    *ARRAY_PUSH(model->latencies, model->n_latencies) = (struct latency){0, 1, 250};
    assert_int_equal(model_rtt_us(model, 0, 1), 250);
    assert_int_equal(model_rtt_us(model, 1, 0), 250);
    assert_int_equal(model_rtt_us(model, h3, h3), 0);
    *ARRAY_PUSH(model->latencies, model->n_latencies) = (struct latency){1, 0, 300};
    assert_int_equal(model_rtt_us(model, 1, 0), 300);
    assert_int_equal(model_rtt_us(model, 0, 1), 250);
    model->latencies[0].rtt_us = 9;
    model_index_drop(model);
    assert_int_equal(model_rtt_us(model, 0, 1), 9);
}

static void test_instance_fixed_why_when_fixed_gives_first_reason(void **state)
{
    AUTO(model) struct model *model = two_hosts();

    (void)state;
    assert_null(instance_fixed_why(model, 0, false));
    model->services[0].rollout = true;
    assert_string_equal(instance_fixed_why(model, 0, false), "rollout in progress");
    model->services[0].stateful = true;
    assert_string_equal(instance_fixed_why(model, 0, false), "stateful");
    assert_string_equal(instance_fixed_why(model, 0, true), "rollout in progress");
    model->services[0].movable = false;
    assert_string_equal(instance_fixed_why(model, 0, true), "service is not movable");
    model->instances[0].pinned_why = mem_strdup("a volume");
    assert_string_equal(instance_fixed_why(model, 0, true), "a volume");
}

static void test_model_copy_when_original_is_gone_stands_alone(void **state)
{
    struct model *model = two_hosts();

    (void)state;
    *ARRAY_PUSH(model->latencies, model->n_latencies) = (struct latency){0, 1, 250};
    assert_int_equal(model_rtt_us(model, 0, 1), 250);
    AUTO(model) struct model *copy = model_copy(model);
    model_free(model);
    assert_int_equal(model_host(copy, "h2"), 1);
    assert_int_equal(model_instance(copy, "b-1"), 2);
    assert_int_equal(model_rtt_us(copy, 1, 0), 250);
    /* arrays of a copy may grow */
    small_instance(copy, "c", "c", "h2", 1, 1);
    assert_int_equal(model_instance(copy, "c"), 3);
    model_free(NULL);
}

static void test_model_check_when_name_means_two_things_refuses(void **state)
{
    AUTO(model) struct model *model = two_hosts();
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(model_check(model, &err), 0);
    small_instance(model, "b", "b", NULL, 1, 1);
    assert_int_equal(model_check(model, &err), -1);
    assert_string_equal(err.text,
                        "instance b: bears its service's name but is not its only instance");
}

static void test_model_check_when_instance_bears_foreign_service_name_refuses(void **state)
{
    AUTO(model) struct model *model = model_new();
    struct err err = ERR_INIT;

    (void)state;
    small_instance(model, "x", "y", NULL, 1, 1);
    assert_int_equal(model_check(model, &err), 0);
    assert_int_equal(model_add_service(model, "x", &err), 1);
    assert_int_equal(model_check(model, &err), -1);
    assert_string_equal(err.text, "instance x: bears the name of a service that is not its own");
}

static void test_model_check_when_sums_leave_int64_refuses(void **state)
{
    AUTO(model) struct model *model = two_hosts();
    struct err err = ERR_INIT;

    (void)state;
    /* 2306 · 10^15 is above 2^61 */
    model->has_messages = true;
    for (int i = 0; i < 2305; i++)
        *ARRAY_PUSH(model->messages, model->n_messages) =
            (struct message){LEVEL_INSTANCE, 0, 1, MODEL_MAX_NUMBER, -1, -1};
    assert_int_equal(model_check(model, &err), 0);
    *ARRAY_PUSH(model->messages, model->n_messages) =
        (struct message){LEVEL_INSTANCE, 0, 1, MODEL_MAX_NUMBER, -1, -1};
    assert_int_equal(model_check(model, &err), -1);
    assert_string_equal(err.text, "messages[2305]: the sum of all rows is above 2^61");
}

static void test_model_check_when_both_kinds_of_rows_refuses(void **state)
{
    AUTO(model) struct model *model = two_hosts();
    struct err err = ERR_INIT;

    (void)state;
    model->has_messages = true;
    small_affinity(model, "a", "b-0", 0.5);
    assert_int_equal(model_check(model, &err), -1);
    assert_string_equal(err.text, "both messages and affinities are given");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_add_when_name_is_taken_or_bad_refuses),
        cmocka_unit_test(test_model_ends_when_kinds_differ_counts_at_service_level),
        cmocka_unit_test(test_load_fits_when_one_dimension_is_short_names_it),
        cmocka_unit_test(test_host_offer_when_reserved_and_used_takes_both_away),
        cmocka_unit_test(test_model_host_loads_when_unplaced_counts_only_placed),
        cmocka_unit_test(test_model_members_when_listed_are_in_index_order),
        cmocka_unit_test(test_model_rtt_when_given_one_way_counts_both_ways),
        cmocka_unit_test(test_instance_fixed_why_when_fixed_gives_first_reason),
        cmocka_unit_test(test_model_copy_when_original_is_gone_stands_alone),
        cmocka_unit_test(test_model_check_when_name_means_two_things_refuses),
        cmocka_unit_test(test_model_check_when_instance_bears_foreign_service_name_refuses),
        cmocka_unit_test(test_model_check_when_sums_leave_int64_refuses),
        cmocka_unit_test(test_model_check_when_both_kinds_of_rows_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
