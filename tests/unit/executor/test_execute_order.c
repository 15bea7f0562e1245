/* Moves that need each other's room, that go side by side, that take whole services, on a scripted
 * cluster (contract.md 3; design.md 4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "tests/unit/executor/worlds.h"
#include "tests/support/small.h"

/* --- unordered plans --- */

static void test_swap_when_a_host_is_free_takes_a_detour_with_its_own_row(void **state)
{
    (void)state;
    struct world w = swap(true);
    assert_true(w.s->plan->unordered);
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 2, "applied");
    CHECK_STATE(w, 3, "applied");
    const struct outcome *aside = scripted_outcome(w.s, 3);
    assert_true(aside->detour);
    assert_string_equal(aside->target, "h3");
    assert_int_equal(aside->undo_of, -1);
    assert_int_equal(scripted_count(w.s, "a", "h2"), 1);
    assert_int_equal(scripted_count(w.s, "b", "h1"), 1);
    check_once(&w);
    world_free(&w);
}

static void test_swap_when_no_host_is_free_is_discarded(void **state)
{
    (void)state;
    struct world w = swap(false);
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "discarded");
    CHECK_STATE(w, 2, "discarded");
    assert_non_null(strstr(scripted_outcome(w.s, 1)->reason, "no free host for a detour"));
    assert_int_equal(scripted_count(w.s, "a", "h1"), 1);
    world_free(&w);
}

static void test_swap_when_killed_at_any_call_ends_the_same(void **state)
{
    (void)state;
    int64_t calls = 0;
    for (bool died = true; died; calls++) {
        struct world w = swap(true);
        w.s->calls_left = calls;
        died = scripted_attempt(w.s) < 0;
        w.s->calls_left = -1;
        if (died) {
            assert_int_equal(scripted_run(w.s, 2), 0);
        }
        check_once(&w);
        CHECK_STATE(w, 1, "applied");
        CHECK_STATE(w, 2, "applied");
        assert_int_equal(scripted_count(w.s, "a", "h2"), 1);
        assert_int_equal(scripted_count(w.s, "b", "h1"), 1);
        world_free(&w);
    }
    assert_true(calls > 30);
}

static void crowd_h2_after_detour(struct scripted *s)
{
    if (scripted_count(s, "a", "h3") && scripted_count(s, "a", "h2") == 0 &&
        scripted_count(s, "b", "h1")) {
        scripted_scale_out(s, "b", "h2");
    }
}

static void test_detour_when_the_target_stays_full_tries_to_go_back(void **state)
{
    (void)state;
    struct world w = swap(true);
    w.s->on_inspect = crowd_h2_after_detour;
    int64_t a = w.s->plan->moves[0].instance == 0 ? 1 : 2;
    assert_int_equal(a, 1); /* a steps aside, b moves, then h2 is taken by somebody else */
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "discarded");
    CHECK_STATE(w, 2, "applied");
    CHECK_STATE(w, 3, "applied");
    CHECK_STATE(w, 4, "failed"); /* h1 is b's now: a cannot go back and stays aside */
    CHECK_REASON(w, 4, "h1 refuses");
    assert_int_equal(scripted_outcome(w.s, 4)->undo_of, 3);
    assert_int_equal(scripted_count(w.s, "a", "h3"), 1);
    world_free(&w);
}

/* --- side by side --- */

static void test_moves_when_they_need_nothing_of_each_other_go_side_by_side(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    w.s->max_parallel = 4;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 2, "applied");
    assert_int_equal(w.s->most_at_once, 2);
    assert_int_equal(scripted_count(w.s, "a", "h1") + scripted_count(w.s, "b", "h1") +
                         scripted_count(w.s, "c", "h1"),
                     3);
    check_once(&w);
    world_free(&w);
}

static void test_moves_when_begun_together_are_told_ahead(void **state)
{
    (void)state;
    static const struct {
        int64_t parallel;
        size_t foretold;
    } rows[] = {{1, 0}, {2, 2}, {4, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world w = three_to_h1();
        w.s->max_parallel = rows[i].parallel;
        assert_int_equal(scripted_attempt(w.s), 0);
        assert_true(w.s->foretold >= rows[i].foretold);
        assert_true(rows[i].parallel > 1 || w.s->foretold == 0);
        assert_false(w.s->foretelling);
        check_done(&w);
        check_once(&w);
        world_free(&w);
    }
}

/* Those that may go side by side are begun by one call, behind the intents of all of them. */
static void test_moves_when_the_orchestrator_takes_several_are_sent_together(void **state)
{
    (void)state;
    size_t sent = 0;
    for (int round = 0; round < 8; round++) {
        struct world w = three_to_h1();
        w.s->marks = true;
        w.s->max_parallel = 4;
        w.s->rng = (struct rng){(uint64_t)round};
        assert_int_equal(scripted_attempt(w.s), 0);
        sent += w.s->sent_together;
        assert_int_equal(w.s->n_sent, 0); /* each was asked about */
        assert_int_equal(w.s->most_at_once, 2);
        check_done(&w);
        check_once(&w);
        world_free(&w);
    }
    assert_true(sent > 0);
}

static void pause_at_second(struct scripted *s)
{
    s->paused = s->inspections == 2 ? "paused by somebody" : s->paused;
}

/* The first is asked for again, and meanwhile somebody pauses: what is only intended is not made. */
static void test_moves_when_paused_while_one_is_asked_for_leave_what_was_not_begun(void **state)
{
    (void)state;
    for (int together = 0; together < 2; together++) {
        struct world w = three_to_h1();
        w.s->max_parallel = 4;
        w.s->together = together;
        w.s->later = 1;
        w.s->on_inspect = pause_at_second;
        assert_int_equal(scripted_attempt(w.s), 0);
        CHECK_STATE(w, 1, "applied");
        CHECK_STATE(w, 2, together ? "applied" : "discarded");
        if (!together) {
            CHECK_REASON(w, 2, "plan stopped: paused by somebody");
        }
        check_once(&w);
        world_free(&w);
    }
}

/* An orchestrator that cannot tell yet is asked again after some 50 ms, however long the pause between two
 * looks; what is begun is looked at as soon. */
static void test_move_when_it_is_to_be_asked_again_is_asked_soon_and_made_once(void **state)
{
    (void)state;
    static const int64_t parallel[] = {1, 4};
    for (size_t i = 0; i < sizeof parallel / sizeof *parallel; i++) {
        struct world w = three_to_h1();
        w.s->max_parallel = parallel[i];
        w.s->poll_ms = 2000;
        w.s->ready_timeout_ms = 600000;
        w.s->later = 2;
        int64_t start_ms = w.s->now_ms;
        assert_int_equal(scripted_attempt(w.s), 0);
        assert_int_equal(w.s->later, 0);
        assert_true(w.s->effect_ms - start_ms <= 1000);
        assert_true(w.s->now_ms - start_ms <= 2000);
        check_done(&w);
        check_once(&w);
        world_free(&w);
    }
}

/* b can go to h2 only when a has left it. */
static struct world one_makes_room(void)
{
    struct model *m = model_new();
    small_host(m, "h1", 100);
    small_host(m, "h2", 100);
    small_host(m, "h3", 100);
    small_instance(m, "a-1", "a", "h2", 60, 60);
    small_instance(m, "b-1", "b", "h1", 60, 60);
    small_instance(m, "c-1", "c", "h3", 30, 30);
    small_affinity(m, "a-1", "c-1", 0.6);
    small_affinity(m, "b-1", "c-1", 0.1);
    static const int placement[] = {2, 1, 2};
    return world_of(m, placement);
}

static void test_move_when_it_needs_room_that_another_frees_waits_for_it(void **state)
{
    (void)state;
    struct world w = one_makes_room();
    w.s->max_parallel = 4;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 2, "applied");
    assert_int_equal(w.s->most_at_once, 1); /* held on its source until it is settled */
    world_free(&w);
}

static void test_moves_of_one_service_never_go_side_by_side(void **state)
{
    (void)state;
    struct model *m = model_new();
    small_host(m, "h1", 100);
    small_host(m, "h2", 100);
    small_instance(m, "a-1", "a", "h1", 20, 20);
    small_instance(m, "a-2", "a", "h1", 20, 20);
    small_instance(m, "b-1", "b", "h2", 20, 20);
    small_affinity(m, "a-1", "b-1", 0.5);
    small_affinity(m, "a-2", "b-1", 0.5);
    static const int placement[] = {1, 1, 1};
    struct world w = world_of(m, placement);
    w.s->max_parallel = 4;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 2, "applied");
    assert_false(w.s->twice_at_once);
    assert_int_equal(w.s->most_at_once, 1);
    world_free(&w);
}

static void test_moves_side_by_side_when_killed_at_any_call_are_each_made_once(void **state)
{
    (void)state;
    int64_t calls = 0;
    for (bool died = true; died; calls++) {
        struct world w = three_to_h1();
        w.s->max_parallel = 4;
        w.s->calls_left = calls;
        died = scripted_attempt(w.s) < 0;
        w.s->calls_left = -1;
        if (died) {
            assert_int_equal(scripted_run(w.s, 2), 0);
        }
        CHECK_STATE(w, 1, "applied");
        CHECK_STATE(w, 2, "applied");
        assert_int_equal(scripted_count(w.s, "b", "h1"), 1);
        assert_int_equal(scripted_count(w.s, "c", "h1"), 1);
        check_once(&w);
        world_free(&w);
    }
    assert_true(calls > 8);
}

static void divert_first_move(struct scripted *s)
{
    for (size_t i = 0; i < s->n_replicas; i++) {
        if (s->replicas[i].seq == 1 && s->replicas[i].ready_ms <= s->now_ms) {
            s->replicas[i].host = 2; /* it came up elsewhere */
        }
    }
}

static void test_move_when_it_goes_elsewhere_takes_those_built_on_it_off_the_plan(void **state)
{
    (void)state;
    struct world w = three_to_h1(); /* c follows b there */
    w.s->marks = true;
    w.s->on_look = divert_first_move;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "missed");
    CHECK_STATE(w, 2, "discarded");
    CHECK_REASON(w, 2, "base changed: move 1 (b) was missed");
    world_free(&w);
}

/* --- what is left when a move is not made --- */

/* The plan frees h2 of a and b, for which b moves at no gain; and c goes to k, which it is for. */
static struct world two_leave_h2(void)
{
    struct model *m = model_new();
    small_host(m, "h1", 100);
    small_host(m, "h2", 100);
    small_host(m, "h3", 100);
    small_instance(m, "a-1", "a", "h2", 50, 50);
    small_instance(m, "b-1", "b", "h2", 10, 10);
    small_instance(m, "c-1", "c", "h3", 10, 10);
    small_instance(m, "d-1", "d", "h3", 10, 10);
    small_instance(m, "k-1", "k", "h1", 20, 20);
    small_affinity(m, "a-1", "k-1", 0.5);
    small_affinity(m, "c-1", "k-1", 0.3);
    small_affinity(m, "b-1", "d-1", 0.2);
    static const int placement[] = {0, 0, 0, 2, 0};
    struct world w = world_of(m, placement);
    w.s->min_gain = 0.005;
    w.s->min_plan_gain = 0.01;
    return w;
}

/* There is no room for a on h1 any more. */
static void crowd_h1(struct scripted *s)
{
    if (scripted_count(s, "k", "h1") == 1) {
        scripted_scale_out(s, "k", "h1");
        scripted_scale_out(s, "k", "h1");
    }
}

static void test_plan_when_the_move_that_frees_a_host_is_off_then_others_for_it_are_too(void **state)
{
    (void)state;
    for (int64_t parallel = 1; parallel <= 4; parallel += 3) {
        struct world w = two_leave_h2();
        w.s->on_inspect = crowd_h1;
        w.s->max_parallel = parallel;
        assert_int_equal(scripted_attempt(w.s), 0);
        CHECK_STATE(w, 1, "discarded"); /* a */
        CHECK_STATE(w, 2, "discarded"); /* b */
        CHECK_REASON(w, 2,
                     "gains 0.0000 per restarted replica, less than 0.005, now that move 1 (a) was "
                     "discarded");
        CHECK_STATE(w, 3, "applied"); /* c is worth it as ever */
        assert_int_equal(scripted_count(w.s, "b", "h2"), 1);
        world_free(&w);
    }
}

static void test_plan_when_the_move_that_frees_a_host_is_made_then_others_for_it_are(void **state)
{
    (void)state;
    struct world w = two_leave_h2();
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    CHECK_STATE(w, 2, "applied");
    CHECK_STATE(w, 3, "applied");
    world_free(&w);
}

static void test_plan_when_what_is_left_gains_too_little_in_all_then_it_ends(void **state)
{
    (void)state;
    struct world w = two_leave_h2();
    w.s->on_inspect = crowd_h1;
    w.s->min_gain = 0; /* b would do no harm */
    w.s->min_plan_gain = 0.4;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 2, "discarded");
    CHECK_STATE(w, 3, "discarded");
    CHECK_REASON(w, 3, "the plan gains 0.3000 in all, less than 0.4, now that move 1 (a) was discarded");
    world_free(&w);
}

static void test_plan_when_killed_at_any_call_makes_no_move_for_a_host_that_stays(void **state)
{
    (void)state;
    int64_t calls = 0;
    for (bool died = true; died; calls++) {
        struct world w = two_leave_h2();
        w.s->on_inspect = crowd_h1;
        w.s->calls_left = calls;
        died = scripted_attempt(w.s) < 0;
        w.s->calls_left = -1;
        if (died) {
            assert_int_equal(scripted_run(w.s, 2), 0);
        }
        check_once(&w);
        CHECK_STATE(w, 3, "applied");
        assert_int_equal(scripted_count(w.s, "b", "h2"), 1);
        world_free(&w);
    }
    assert_true(calls > 8);
}

/* --- whole services --- */

static struct world service_world(void)
{
    struct model *m = model_new();
    small_host(m, "h1", 100);
    small_host(m, "h2", 100);
    small_host(m, "h3", 100);
    small_instance(m, "a-1", "a", "h1", 20, 20);
    small_instance(m, "a-2", "a", "h2", 20, 20);
    small_instance(m, "b-1", "b", "h3", 20, 20);
    small_affinity(m, "a", "b", 1);
    static const int placement[] = {2, 2, 2};
    struct world w = {m, scripted_new(m)};
    w.s->granularity = PER_SERVICE;
    scripted_plan(w.s, placement);
    return w;
}

static void test_service_when_moved_takes_all_replicas(void **state)
{
    (void)state;
    struct world w = service_world();
    assert_int_equal(w.s->plan->n_moves, 1);
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "applied");
    assert_int_equal(scripted_count(w.s, "a", "h3"), 2);
    assert_null(scripted_outcome(w.s, 1)->instance);
    world_free(&w);
}

static void test_service_when_it_was_scaled_is_discarded(void **state)
{
    (void)state;
    struct world w = service_world();
    scripted_scale_out(w.s, "a", "h2");
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "discarded");
    CHECK_REASON(w, 1, "a has 2 replicas on h2, not 1");
    world_free(&w);
}

static void test_service_when_it_gets_stuck_is_put_back(void **state)
{
    (void)state;
    struct world w = service_world();
    w.s->faults.stuck = 1;
    assert_int_equal(scripted_attempt(w.s), 0);
    CHECK_STATE(w, 1, "failed");
    CHECK_STATE(w, 4, "applied");
    assert_int_equal(scripted_count(w.s, "a", "h1"), 1);
    assert_int_equal(scripted_count(w.s, "a", "h2"), 1);
    assert_int_equal(scripted_count(w.s, "a", "h3"), 0);
    world_free(&w);
}

static void test_service_when_killed_at_any_call_ends_the_same(void **state)
{
    (void)state;
    int64_t calls = 0;
    for (bool died = true; died; calls++) {
        struct world w = service_world();
        w.s->calls_left = calls;
        died = scripted_attempt(w.s) < 0;
        w.s->calls_left = -1;
        if (died) {
            assert_int_equal(scripted_run(w.s, 2), 0);
        }
        CHECK_STATE(w, 1, "applied");
        assert_int_equal(scripted_count(w.s, "a", "h3"), 2);
        world_free(&w);
    }
    assert_true(calls > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_swap_when_a_host_is_free_takes_a_detour_with_its_own_row),
        cmocka_unit_test(test_swap_when_no_host_is_free_is_discarded),
        cmocka_unit_test(test_swap_when_killed_at_any_call_ends_the_same),
        cmocka_unit_test(test_detour_when_the_target_stays_full_tries_to_go_back),
        cmocka_unit_test(test_moves_when_they_need_nothing_of_each_other_go_side_by_side),
        cmocka_unit_test(test_moves_when_begun_together_are_told_ahead),
        cmocka_unit_test(test_moves_when_the_orchestrator_takes_several_are_sent_together),
        cmocka_unit_test(test_moves_when_paused_while_one_is_asked_for_leave_what_was_not_begun),
        cmocka_unit_test(test_move_when_it_is_to_be_asked_again_is_asked_soon_and_made_once),
        cmocka_unit_test(test_move_when_it_needs_room_that_another_frees_waits_for_it),
        cmocka_unit_test(test_moves_of_one_service_never_go_side_by_side),
        cmocka_unit_test(test_moves_side_by_side_when_killed_at_any_call_are_each_made_once),
        cmocka_unit_test(test_move_when_it_goes_elsewhere_takes_those_built_on_it_off_the_plan),
        cmocka_unit_test(
            test_plan_when_the_move_that_frees_a_host_is_off_then_others_for_it_are_too),
        cmocka_unit_test(test_plan_when_the_move_that_frees_a_host_is_made_then_others_for_it_are),
        cmocka_unit_test(test_plan_when_what_is_left_gains_too_little_in_all_then_it_ends),
        cmocka_unit_test(test_plan_when_killed_at_any_call_makes_no_move_for_a_host_that_stays),
        cmocka_unit_test(test_service_when_moved_takes_all_replicas),
        cmocka_unit_test(test_service_when_it_was_scaled_is_discarded),
        cmocka_unit_test(test_service_when_it_gets_stuck_is_put_back),
        cmocka_unit_test(test_service_when_killed_at_any_call_ends_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
