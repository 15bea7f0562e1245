/* test_effort.c - where parts of a search end, and how much sooner a search ends on a busy machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "planner/anneal.h"

static const struct effort endless = {.limit = -1, .deadline_ms = INT64_MAX / 200};

/* The count at which a part ends that spends so much each time; -1: it does not within 10^6. */
static int64_t spend_all(struct effort *part, int64_t each)
{
    while (part->done < 1000000)
        if (effort_spend(part, each))
            return part->done;
    return -1;
}

static void test_share_when_its_time_is_over_then_ends_at_the_next_mark_and_there_again(void **state)
{
    static const struct {
        int64_t each, before, at;
    } cases[] = {{1, 0, 1}, {1, 7, 8}, {16, 5, 21}, {300, 1000, 1300}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct share share;
        struct effort whole = endless;
        whole.done = cases[k].before;
        struct effort part = share_of_time(&share, &whole, 0, -1);
        assert_int_equal(spend_all(&part, cases[k].each), cases[k].at);
        int mark = share_join(&whole, &part);
        assert_true(mark > 0 && mark < SHARE_MARKS && !whole.cut);
        whole = endless;
        whole.done = cases[k].before;
        part = share_of_time(&share, &whole, 100, mark);
        assert_int_equal(spend_all(&part, cases[k].each), cases[k].at);
        assert_int_equal(share_join(&whole, &part), mark);
    }
}

static void test_share_when_all_marks_are_tried_then_each_ends_at_a_count_of_its_own(void **state)
{
    int64_t last = 0;
    (void)state;
    for (int until = 1; last < 500000; until++) {
        struct share share;
        struct effort whole = endless, part = share_of_time(&share, &whole, 0, until);
        int64_t at = spend_all(&part, 1);
        assert_true(at > last && at <= last + last / 8 + 1);
        last = at;
    }
}

static void test_share_when_no_mark_ended_it_then_none_does(void **state)
{
    struct share share;
    struct effort whole = endless, part = share_of_time(&share, &whole, 0, 0);
    (void)state;
    assert_int_equal(spend_all(&part, 100), -1);
    assert_int_equal(share_join(&whole, &part), 0);
    assert_int_equal(whole.done, 1000000);
}

static void test_share_when_of_counts_then_ends_after_so_many(void **state)
{
    struct share share;
    struct effort whole = endless;
    whole.done = 40;
    struct effort part = share_of_counts(&share, &whole, 100);
    (void)state;
    assert_int_equal(spend_all(&part, 7), 145);
    assert_int_equal(share_join(&whole, &part), 0);
    assert_false(whole.cut);
}

static void test_share_when_the_whole_ends_within_then_cut(void **state)
{
    struct share share;
    struct effort whole = {.limit = 50}, part = share_of_counts(&share, &whole, 100);
    (void)state;
    assert_int_equal(spend_all(&part, 10), 50);
    assert_int_equal(share_join(&whole, &part), 0);
    assert_true(whole.cut);
}

static void test_effort_when_the_machine_is_busy_then_what_comes_after_takes_longer(void **state)
{
    static const struct {
        int64_t after_ms, wall_ms, used_us, longer_ms;
    } cases[] = {{10, 500, 500000, 0}, {10, 500, 600000, 0}, {10, 500, 250000, 10},
                 {10, 1000, 100000, 90}, {36, 300, 100000, 72}, {0, 1000, 1, 0},
                 {10, 100, 0, 1000}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_int_equal(
            effort_longer_ms(cases[k].after_ms, cases[k].wall_ms, cases[k].used_us),
            cases[k].longer_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share_when_its_time_is_over_then_ends_at_the_next_mark_and_there_again),
        cmocka_unit_test(test_share_when_all_marks_are_tried_then_each_ends_at_a_count_of_its_own),
        cmocka_unit_test(test_share_when_no_mark_ended_it_then_none_does),
        cmocka_unit_test(test_share_when_of_counts_then_ends_after_so_many),
        cmocka_unit_test(test_share_when_the_whole_ends_within_then_cut),
        cmocka_unit_test(test_effort_when_the_machine_is_busy_then_what_comes_after_takes_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
