/* Plans carried out on a scripted cluster (§5.6, §6.5; design.md 3 "executor mid-plan"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "tests/unit/executor/worlds.h"

static void test_plan_when_all_is_well_is_applied_and_told(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 2, "applied");
    assert_string_equal(w.s->stopped, "");
    assert_int_equal(scripted_count(w.s, "b", "h1"), 1);
    assert_int_equal(scripted_count(w.s, "c", "h1"), 1);
    const struct outcome *o = scripted_outcome(w.s, 1);
    assert_string_equal(o->instance, "b-1");
    assert_string_not_equal(o->instance_now, "b-1");
    assert_string_equal(o->source, "h2");
    assert_string_equal(o->target, "h1");
    assert_true(o->intended_ms > 0 && o->settled_ms >= o->intended_ms);
    assert_null(o->reason);
    assert_int_equal(w.s->n_intents, 2);
    assert_int_equal(intent_count_on(&w.s->intents[0], "h2"), 1);
    assert_string_equal(w.s->intents[0].saved, "saved 1"); /* committed again with it */
    check_once(&w);
    world_free(&w);
}

static void end_b(struct scripted *s)
{
    if (s->inspections == 1) {
        scripted_end(s, "b", "h2");
    }
}

static void test_move_when_its_instance_is_gone_is_discarded_and_the_plan_goes_on(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->on_inspect = end_b;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "discarded");
    CHECK_REASON(w, 1, "the instance is gone");
    CHECK_STATE(w, 2, "applied");
    assert_string_equal(w.s->stopped, "");
    world_free(&w);
}

static void replace_b(struct scripted *s)
{
    if (s->inspections == 1) {
        scripted_end(s, "b", "h2");
        scripted_scale_out(s, "b", "h2");
    }
}

static void test_move_when_its_instance_was_replaced_takes_the_replacement(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->on_inspect = replace_b;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    assert_string_not_equal(scripted_outcome(w.s, 1)->instance, "b-1");
    assert_int_equal(scripted_count(w.s, "b", "h1"), 1);
    world_free(&w);
}

static void crowd_h1(struct scripted *s)
{
    if (s->inspections == 1) {
        scripted_scale_out(s, "a", "h1");
        scripted_scale_out(s, "a", "h1");
    }
}

static void test_move_when_the_target_is_full_now_is_discarded(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->on_inspect = crowd_h1;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "discarded");
    CHECK_REASON(w, 1, "h1 has no room: cpu");
    CHECK_STATE(w, 2, "discarded");
    check_once(&w);
    world_free(&w);
}

static void test_move_when_pods_that_leave_hold_its_room_waits_for_it_in_vain_only_so_long(
    void **state)
{
    (void)state;
    static const struct {
        int64_t parallel, leaving_ms;
        const char *outcome;
    } rows[] = {{1, 20, "applied"}, {4, 20, "applied"}, {1, INT64_MAX, "discarded"},
                {4, INT64_MAX, "discarded"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world w = three_to_h1();
        w.s->max_parallel = rows[i].parallel;
        w.s->leaving_ms = rows[i].leaving_ms == INT64_MAX ? INT64_MAX : w.s->now_ms + 20;
        int64_t start_ms = w.s->now_ms;
        assert_int_equal(scripted_attempt(w.s), 0);
        CHECK_STATE(w, 1, rows[i].outcome);
        CHECK_STATE(w, 2, rows[i].outcome);
        if (rows[i].leaving_ms == INT64_MAX) {
            CHECK_REASON(w, 1, "h1 has no room: pod slots");
            assert_true(w.s->now_ms - start_ms <= 3 * w.s->ready_timeout_ms); /* each its time */
        }
        check_once(&w);
        world_free(&w);
    }
}

static void test_move_when_it_never_gets_ready_is_undone_and_stops_the_plan(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->faults.stuck = 1;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "failed");
    CHECK_REASON(w, 1, "not ready within 100ms: no sign of it; undone");
    CHECK_STATE(w, 2, "discarded");
    assert_memory_equal(w.s->stopped, "move 1 (b-1 to h1) failed: not ready", 36);
    assert_memory_equal(scripted_outcome(w.s, 2)->reason, "plan stopped: move 1 ", 21);
    CHECK_STATE(w, 4, "applied"); /* the undo, behind the numbers of three instances */
    assert_int_equal(scripted_outcome(w.s, 4)->undo_of, 1);
    assert_string_equal(scripted_outcome(w.s, 4)->source, "h1");
    assert_string_equal(scripted_outcome(w.s, 4)->target, "h2");
    assert_int_equal(scripted_count(w.s, "b", "h2"), 1);
    assert_int_equal(scripted_count(w.s, "b", "h1"), 0);
    world_free(&w);
}

static void test_move_when_refused_fails_and_stops_the_plan(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->faults.refuse = 1;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "failed");
    CHECK_REASON(w, 1, "h1 refuses; undone");
    CHECK_STATE(w, 2, "discarded");
    world_free(&w);
}

/* Nothing has changed, so nothing is left to put back: nobody need look after it. */
static void test_move_when_it_and_its_undo_are_refused_counts_as_undone(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->faults.refuse = 1;
    w.s->faults.refuse_undo = 1;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "failed");
    CHECK_REASON(w, 1, "h1 refuses; undone");
    CHECK_STATE(w, 4, "applied");
    world_free(&w);
}

static void test_undo_when_refused_is_told(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    assert_int_equal(scripted_attempt(w.s), 0);
    w.s->undo = true;
    w.s->faults.refuse_undo = 1;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 4, "failed");
    assert_string_equal(w.s->stopped, "2 of 2 moves could not be put back");
    world_free(&w);
}

static void test_move_when_the_orchestrator_forgets_is_asked_for_again(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->faults.forget = 0.5;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 2, "applied");
    check_once(&w);
    world_free(&w);
}

static void test_move_when_answers_get_lost_is_not_applied_twice(void **state)
{
    (void)state;
    for (int marks = 0; marks <= 1; marks++) {
        struct world w = three_to_h1();
        w.s->marks = marks;
        w.s->faults.lost_answer = 1;
        assert_int_equal(scripted_attempt(w.s), 0);
        CHECK_STATE(w, 1, "applied");
        CHECK_STATE(w, 2, "applied");
        check_once(&w);
        world_free(&w);
    }
}

static void take_b_away(struct scripted *s)
{
    if (scripted_count(s, "b", "h1") && !scripted_count(s, "b", "h2")) { /* it has arrived */
        scripted_end(s, "b", "h1");
    }
}

static void test_move_when_taken_away_before_the_plan_ends_is_displaced(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->on_inspect = take_b_away;
    assert_int_equal(scripted_attempt(w.s), 0);
    for (size_t i = 0; i < w.s->plan->n_moves; i++) {
        const struct move *move = &w.s->plan->moves[i];
        CHECK_STATE(w, move->seq, move->service == 1 ? "displaced" : "applied");
    }
    assert_string_equal(w.s->stopped, "");
    world_free(&w);
}

/* --- death --- */

static void die_everywhere(bool marks, bool start_first, double lost_answer)
{
    int64_t calls = 0;
    for (bool died = true; died; calls++) {
        struct world w = three_to_h1();
        w.s->marks = marks;
        w.s->start_first = start_first;
        w.s->faults.lost_answer = lost_answer;
        w.s->calls_left = calls;
        died = scripted_attempt(w.s) < 0;
        w.s->calls_left = -1;
        if (died) {
            assert_int_equal(scripted_run(w.s, 2), 0);
        }
        check_done(&w);
        world_free(&w);
    }
    assert_true(calls > 20); /* it was killed at each of so many points */
}

static void test_executor_when_killed_at_any_call_applies_each_move_once(void **state)
{
    (void)state;
    die_everywhere(true, true, 0);
    die_everywhere(true, false, 0);
    die_everywhere(false, true, 0);
    die_everywhere(false, false, 0);
    die_everywhere(true, true, 1);
    die_everywhere(false, true, 1);
}

static void test_executor_when_killed_during_a_failure_still_fails_and_undoes(void **state)
{
    (void)state;
    int64_t calls = 0;
    for (bool died = true; died; calls++) {
        struct world w = three_to_h1();
        w.s->faults.stuck = 1;
        w.s->calls_left = calls;
        died = scripted_attempt(w.s) < 0;
        w.s->calls_left = -1;
        if (died) {
            assert_int_equal(scripted_run(w.s, 2), 0);
        }
        check_once(&w);
        CHECK_STATE(w, 1, "failed");
        CHECK_STATE(w, 2, "discarded");
        assert_int_equal(scripted_count(w.s, "b", "h2"), 1);
        assert_int_equal(scripted_count(w.s, "b", "h1"), 0);
        world_free(&w);
    }
    assert_true(calls > 50);
}

/* --- replicas born during the plan --- */

static void birth_of_c(struct scripted *s)
{
    if (s->inspections == 1) {
        scripted_scale_out(s, "c", "h3");
    }
}

static void test_newborn_when_a_partner_has_room_is_steered_to_it(void **state)
{
    (void)state;
    struct model *m = three_on_three();
    static const int placement[] = {0, 0, 2}; /* b goes to a on h1 */
    struct world w = world_of(m, placement);
    w.s->on_inspect = birth_of_c;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 4, "applied"); /* c's second replica joins b */
    assert_string_equal(scripted_outcome(w.s, 4)->target, "h1");
    assert_int_equal(scripted_count(w.s, "c", "h1"), 1);
    assert_int_equal(scripted_count(w.s, "c", "h3"), 1);
    check_once(&w);
    world_free(&w);
}

static void birth_of_big_crowd(struct scripted *s)
{
    if (s->inspections == 1) {
        scripted_scale_out(s, "c", "h3");
        scripted_scale_out(s, "a", "h1");
    }
}

static void test_newborn_when_no_partner_has_room_stays(void **state)
{
    (void)state;
    struct model *m = three_on_three();
    static const int placement[] = {0, 0, 2};
    struct world w = world_of(m, placement);
    w.s->on_inspect = birth_of_big_crowd; /* h1: a, a, and b: full */
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 4, "planned");
    assert_int_equal(scripted_count(w.s, "c", "h3"), 2);
    assert_string_equal(w.s->stopped, "");
    world_free(&w);
}

/* --- stop and limits --- */

static void stop_at_second(struct scripted *s)
{
    s->stop = scripted_count(s, "b", "h1") > 0; /* while the first move is under way */
}

static void leave_at_second(struct scripted *s)
{
    s->leave = scripted_count(s, "b", "h1") > 0;
}

static void test_stop_when_a_move_is_under_way_finishes_it_and_discards_the_rest(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->on_inspect = stop_at_second;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 2, "discarded");
    CHECK_REASON(w, 2, "plan stopped: stopped on request");
    assert_string_equal(w.s->stopped, "stopped on request");
    world_free(&w);
}

static void test_stop_when_remap_leaves_keeps_the_rest_for_later(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->on_inspect = leave_at_second;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    assert_string_equal(w.s->stopped, "stopped on request");
    assert_true(strcmp(scripted_state(w.s, 2), "planned") == 0 ||
                strcmp(scripted_state(w.s, 2), "intended") == 0);
    w.s->on_inspect = NULL;
    w.s->leave = false;
    assert_int_equal(scripted_attempt(w.s), 0);
    check_done(&w);
    world_free(&w);
}

static void pause_now(struct scripted *s)
{
    s->paused = "paused by somebody"; /* the look before the first move: that one is begun */
}

static void test_pause_when_a_move_is_begun_finishes_it_and_discards_the_rest(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->on_inspect = pause_now;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 2, "discarded");
    CHECK_REASON(w, 2, "plan stopped: paused by somebody");
    world_free(&w);
}

static void test_lock_when_another_holds_it_fails_the_request_and_moves_nothing(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->locked_out = true;
    assert_int_equal(scripted_attempt(w.s), -1);
    assert_string_equal(w.s->stopped, "the lock is held by another");
    CHECK_STATE(w, 1, "planned");
    world_free(&w);
}

static void test_lock_when_it_is_gone_for_a_while_the_move_waits_for_it(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->lock_gone = 3;
    assert_int_equal(scripted_attempt(w.s), 0);
    check_done(&w);
    world_free(&w);
}

static void test_plan_when_moves_are_limited_discards_those_beyond(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->max_moves = 1;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 2, "discarded");
    CHECK_REASON(w, 2, "the limit of 1 moves is reached");
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_when_all_is_well_is_applied_and_told),
        cmocka_unit_test(test_move_when_its_instance_is_gone_is_discarded_and_the_plan_goes_on),
        cmocka_unit_test(test_move_when_its_instance_was_replaced_takes_the_replacement),
        cmocka_unit_test(test_move_when_the_target_is_full_now_is_discarded),
        cmocka_unit_test(
            test_move_when_pods_that_leave_hold_its_room_waits_for_it_in_vain_only_so_long),
        cmocka_unit_test(test_move_when_it_never_gets_ready_is_undone_and_stops_the_plan),
        cmocka_unit_test(test_move_when_refused_fails_and_stops_the_plan),
        cmocka_unit_test(test_move_when_it_and_its_undo_are_refused_counts_as_undone),
        cmocka_unit_test(test_undo_when_refused_is_told),
        cmocka_unit_test(test_move_when_the_orchestrator_forgets_is_asked_for_again),
        cmocka_unit_test(test_move_when_answers_get_lost_is_not_applied_twice),
        cmocka_unit_test(test_move_when_taken_away_before_the_plan_ends_is_displaced),
        cmocka_unit_test(test_executor_when_killed_at_any_call_applies_each_move_once),
        cmocka_unit_test(test_executor_when_killed_during_a_failure_still_fails_and_undoes),
        cmocka_unit_test(test_newborn_when_a_partner_has_room_is_steered_to_it),
        cmocka_unit_test(test_newborn_when_no_partner_has_room_stays),
        cmocka_unit_test(test_stop_when_a_move_is_under_way_finishes_it_and_discards_the_rest),
        cmocka_unit_test(test_stop_when_remap_leaves_keeps_the_rest_for_later),
        cmocka_unit_test(test_pause_when_a_move_is_begun_finishes_it_and_discards_the_rest),
        cmocka_unit_test(test_lock_when_another_holds_it_fails_the_request_and_moves_nothing),
        cmocka_unit_test(test_lock_when_it_is_gone_for_a_while_the_move_waits_for_it),
        cmocka_unit_test(test_plan_when_moves_are_limited_discards_those_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
