/* Restarts and deadlines on a clock of the test's own (design.md 3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "model/manager/policy.h"

struct death {
    int64_t started_ms, died_ms;
    bool busy, give_up;
    int64_t delay_ms;
};

static void check_deaths(const struct death *deaths, size_t n)
{
    struct restarts restarts = {0};
    for (size_t i = 0; i < n; i++) {
        struct restart_decision d =
            restarts_died(&restarts, deaths[i].started_ms, deaths[i].died_ms, deaths[i].busy);
        assert_int_equal(d.give_up, deaths[i].give_up);
        assert_int_equal(d.delay_ms, deaths[i].delay_ms);
    }
}

#define CHECK(...)                                                                                 \
    do {                                                                                           \
        static const struct death deaths[] = {__VA_ARGS__};                                        \
        check_deaths(deaths, sizeof deaths / sizeof *deaths);                                      \
    } while (0)

static void test_restarts_when_busy_wait_0_2_4_4_and_never_give_up(void **state)
{
    (void)state;
    CHECK({0, 10, true, false, 0}, {10, 20, true, false, 2000}, {2020, 2030, true, false, 4000},
          {6030, 6040, true, false, 4000}, {10040, 10050, true, false, 4000});
}

static void test_restarts_when_idle_three_times_in_30_s_give_up(void **state)
{
    (void)state;
    CHECK({0, 10, false, false, 0}, {10, 20, false, false, 2000}, {2020, 2030, false, true, 0});
}

static void test_restarts_when_idle_deaths_are_further_apart_go_on(void **state)
{
    (void)state;
    CHECK({0, 10, false, false, 0}, {10, 16000, false, false, 2000},
          {18000, 30011, false, false, 4000}, {34011, 46000, false, true, 0});
}

static void test_restarts_when_healthy_for_30_s_are_forgotten(void **state)
{
    (void)state;
    CHECK({0, 10, false, false, 0}, {10, 20, false, false, 2000}, {2020, 32020, false, false, 0},
          {32020, 32030, false, false, 2000}, {34030, 34040, false, true, 0});
}

static void test_restarts_when_busy_deaths_lie_between_count_only_idle_ones(void **state)
{
    (void)state;
    CHECK({0, 10, false, false, 0}, {10, 20, true, false, 2000}, {2020, 2030, true, false, 4000},
          {6030, 6040, false, false, 4000}, {10040, 10050, false, true, 0});
}

static void test_deadline_when_nothing_grows_ends_after_its_length(void **state)
{
    (void)state;
    struct deadline d;
    deadline_start(&d, 1000, 60000);
    assert_int_equal(deadline_left_ms(&d, 1000), 60000);
    deadline_progress(&d, 30000, 0);
    assert_int_equal(deadline_left_ms(&d, 60999), 1);
    assert_int_equal(deadline_left_ms(&d, 61000), 0);
    assert_int_equal(deadline_left_ms(&d, 99999), 0);
}

static void test_deadline_when_work_grows_is_extended(void **state)
{
    (void)state;
    struct deadline d;
    deadline_start(&d, 0, 100);
    deadline_progress(&d, 90, 1);
    assert_int_equal(deadline_left_ms(&d, 90), 100);
    deadline_progress(&d, 150, 1); /* the same count again */
    assert_int_equal(deadline_left_ms(&d, 150), 40);
}

static void test_deadline_when_extended_for_ever_ends_after_ten_lengths(void **state)
{
    (void)state;
    struct deadline d;
    deadline_start(&d, 0, 100);
    for (int64_t now = 50, done = 1; now < 1000; now += 50, done++) {
        deadline_progress(&d, now, done);
        assert_true(deadline_left_ms(&d, now) > 0);
    }
    deadline_progress(&d, 999, 1000);
    assert_int_equal(deadline_left_ms(&d, 999), 1);
    assert_int_equal(deadline_left_ms(&d, 1000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restarts_when_busy_wait_0_2_4_4_and_never_give_up),
        cmocka_unit_test(test_restarts_when_idle_three_times_in_30_s_give_up),
        cmocka_unit_test(test_restarts_when_idle_deaths_are_further_apart_go_on),
        cmocka_unit_test(test_restarts_when_healthy_for_30_s_are_forgotten),
        cmocka_unit_test(test_restarts_when_busy_deaths_lie_between_count_only_idle_ones),
        cmocka_unit_test(test_deadline_when_nothing_grows_ends_after_its_length),
        cmocka_unit_test(test_deadline_when_work_grows_is_extended),
        cmocka_unit_test(test_deadline_when_extended_for_ever_ends_after_ten_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
