/* test_engine.c - the engine's rules of cycles, one fact each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/engine_rig.h"

static void test_cycle_when_all_goes_well_then_every_stage_is_asked_once(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    int64_t id = rig_to_executing(&rig);
    assert_state(&rig, id, CYCLE_EXECUTING);
    rig_answer(&rig, id, VERDICT_OK, 2, NULL);
    assert_state(&rig, id, CYCLE_SETTLING);
    rig_at(&rig, 49);
    assert_state(&rig, id, CYCLE_SETTLING);
    rig_at(&rig, 50);
    assert_state(&rig, id, CYCLE_VERIFYING);
    rig_answer(&rig, id, VERDICT_OK, 0, NULL);
    rig_answer(&rig, id, VERDICT_OK, 0, NULL);
    assert_ended(&rig, id);
    assert_int_equal(rig.sends[MSG_COLLECT], 2);
    assert_int_equal(rig.sends[MSG_ANALYZE], 2);
    assert_int_equal(rig.sends[MSG_PLAN], 1);
    assert_int_equal(rig.sends[MSG_EXECUTE], 1);
    assert_true(engine_idle(&rig.engine));
    engine_wipe(&rig.engine);
}

static void test_timer_when_due_then_cycle_starts_and_rearms_at_its_end(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_at(&rig, 999);
    assert_int_equal(rig.sends[MSG_COLLECT], 0);
    assert_int_equal(engine_next_ms(&rig.engine), 1000);
    rig_at(&rig, 1000);
    assert_int_equal(rig.sends[MSG_COLLECT], 1);
    rig.now_ms = 1050;
    rig_answer_failure(&rig, 1, false);
    assert_ended(&rig, 1);
    assert_int_equal(rig.engine.apps[0].due_ms, 2050);
    engine_wipe(&rig.engine);
}

static void test_modes_when_planned_then_observe_ends_and_propose_waits(void **state)
{
    (void)state;
    static const struct {
        enum app_mode mode;
        bool dry_run;
        enum verdict verdict;
        bool ends;
        enum cycle_state then;
    } rows[] = {
        {MODE_OBSERVE, false, VERDICT_OK, true, CYCLE_DONE},
        {MODE_PROPOSE, false, VERDICT_OK, false, CYCLE_PROPOSED},
        {MODE_PROPOSE, true, VERDICT_OK, true, CYCLE_DONE},
        {MODE_ACT, false, VERDICT_OK, false, CYCLE_EXECUTING},
        {MODE_ACT, true, VERDICT_OK, true, CYCLE_DONE},
        {MODE_ACT, false, VERDICT_NOTHING, true, CYCLE_DONE},
        {MODE_ACT, false, VERDICT_DRY, true, CYCLE_DONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        rig_open(&rig);
        rig.engine.apps[0].config.mode = rows[i].mode;
        rig_event(&rig, (struct engine_event){.type = EV_TRIGGER,
                                              .app = "shop",
                                              .trigger = "manual",
                                              .dry_run = rows[i].dry_run});
        rig_act(&rig);
        rig_answer(&rig, 1, VERDICT_OK, 0, NULL);
        rig_answer(&rig, 1, VERDICT_OK, 0, NULL);
        rig_answer(&rig, 1, rows[i].verdict, 2, "why");
        if (rows[i].ends)
            assert_ended(&rig, 1);
        else
            assert_state(&rig, 1, rows[i].then);
        assert_int_equal(rig.sends[MSG_EXECUTE], rows[i].then == CYCLE_EXECUTING);
        engine_wipe(&rig.engine);
    }
}

static void test_proposal_when_applied_then_base_is_checked_before_it_moves(void **state)
{
    (void)state;
    for (int holds = 0; holds < 2; holds++) {
        struct rig rig;
        rig_open(&rig);
        rig.engine.apps[0].config.mode = MODE_PROPOSE;
        rig_to_executing(&rig);
        assert_state(&rig, 1, CYCLE_PROPOSED);
        assert_true(engine_idle(&rig.engine));
        rig_event(&rig, (struct engine_event){.type = EV_APPLY, .app = "shop", .cycle = 1});
        rig_act(&rig);
        assert_int_equal(rig.sends[MSG_COLLECT], 2);
        rig_answer(&rig, 1, holds ? VERDICT_OK : VERDICT_BAD, 2, holds ? NULL : "base changed");
        if (holds)
            assert_state(&rig, 1, CYCLE_EXECUTING);
        else
            assert_ended(&rig, 1);
        engine_wipe(&rig.engine);
    }
}

/* It is what the newer cycle finds that counts, not that there is one. */
static void
test_proposal_when_a_newer_cycle_has_planned_then_superseded_unless_the_same(void **state)
{
    (void)state;
    static const struct {
        enum verdict verdict;
        bool dry_run, stays;
    } rows[] = {{VERDICT_OK, false, false},      {VERDICT_SAME, false, true},
                {VERDICT_NOTHING, false, false}, {VERDICT_NOTHING, true, true},
                {VERDICT_DRY, false, true},      {VERDICT_OK, true, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        rig_open(&rig);
        rig.engine.apps[0].config.mode = MODE_PROPOSE;
        rig_to_executing(&rig);
        rig_event(&rig, (struct engine_event){.type = EV_TRIGGER,
                                              .app = "shop",
                                              .trigger = "manual",
                                              .dry_run = rows[i].dry_run});
        rig_act(&rig);
        assert_state(&rig, 1, CYCLE_PROPOSED);
        assert_state(&rig, 2, CYCLE_COLLECTING);
        rig_answer(&rig, 2, VERDICT_OK, 0, NULL);
        rig_answer(&rig, 2, VERDICT_OK, 0, NULL);
        rig_answer(&rig, 2, rows[i].verdict, 2, NULL);
        assert_int_equal(engine_cycle(&rig.engine, 1) != NULL, rows[i].stays);
        assert_int_equal(engine_cycle(&rig.engine, 2) != NULL,
                         rows[i].verdict == VERDICT_OK && !rows[i].dry_run);
        engine_wipe(&rig.engine);
    }
}

/* A proposal that nobody looks at must not be the last one. */
static void test_proposal_when_the_timer_is_due_then_a_newer_cycle_starts(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.engine.apps[0].config.mode = MODE_PROPOSE;
    rig_at(&rig, 1000);
    for (int step = 0; step < 3; step++)
        rig_answer(&rig, 1, VERDICT_OK, 2, NULL);
    assert_state(&rig, 1, CYCLE_PROPOSED);
    assert_int_equal(rig.engine.apps[0].due_ms, 2000);
    rig_at(&rig, 2000);
    assert_state(&rig, 2, CYCLE_COLLECTING);
    engine_wipe(&rig.engine);
}

static void test_apply_of_an_ended_cycle_then_new_cycle_executes_its_plan(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.next_id = 8;
    rig_event(&rig, (struct engine_event){.type = EV_APPLY, .app = "shop", .cycle = 5});
    rig_act(&rig);
    assert_int_equal(engine_cycle(&rig.engine, 8)->base, 5);
    rig_answer(&rig, 8, VERDICT_OK, 2, NULL);
    assert_state(&rig, 8, CYCLE_EXECUTING);
    assert_int_equal(rig.sends[MSG_PLAN], 0);
    engine_wipe(&rig.engine);
}

static void test_stage_when_it_dies_then_same_request_with_next_attempt_until_three(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_trigger(&rig, "shop");
    for (int death = 1; death <= 3; death++) {
        assert_state(&rig, 1, CYCLE_COLLECTING);
        assert_int_equal(engine_cycle(&rig.engine, 1)->attempt, death);
        rig_event(&rig, (struct engine_event){.type = EV_STAGE_DOWN, .stage = PARTY_MONITOR});
        rig_act(&rig);
        assert_int_equal(rig.sends[MSG_COLLECT], death);
        rig_event(&rig, (struct engine_event){.type = EV_STAGE_UP, .stage = PARTY_MONITOR});
        rig_act(&rig);
    }
    assert_ended(&rig, 1);
    assert_int_equal(rig.sends[MSG_COLLECT], 3);
    engine_wipe(&rig.engine);
}

static void test_result_of_an_older_attempt_then_ignored(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_trigger(&rig, "shop");
    rig_event(&rig, (struct engine_event){.type = EV_STAGE_UP, .stage = PARTY_MONITOR});
    rig_act(&rig);
    assert_int_equal(engine_cycle(&rig.engine, 1)->attempt, 2);
    rig_event(&rig, (struct engine_event){
                        .type = EV_RESULT, .stage = PARTY_MONITOR, .cycle = 1, .attempt = 1});
    rig_act(&rig);
    assert_state(&rig, 1, CYCLE_COLLECTING);
    assert_true(engine_awaits(&rig.engine, PARTY_MONITOR, 1, 2));
    engine_wipe(&rig.engine);
}

static void test_deadline_when_progress_grows_then_extended_up_to_ten_times(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_trigger(&rig, "shop");
    for (int64_t t = 90; t < 1000; t += 90) { /* the timer is 1000, the allowance 100 */
        rig_at(&rig, t);
        rig_event(
            &rig,
            (struct engine_event){
                .type = EV_PROGRESS, .stage = PARTY_MONITOR, .cycle = 1, .attempt = 1, .value = t});
        assert_int_equal(rig.kills, 0);
    }
    rig_at(&rig, 999);
    assert_int_equal(rig.kills, 0);
    rig_at(&rig, 1000);
    assert_int_equal(rig.kills, 1);
    engine_wipe(&rig.engine);
}

static void test_deadline_when_counter_stands_still_then_killed(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_trigger(&rig, "shop");
    rig_at(&rig, 90);
    for (int i = 0; i < 2; i++)
        rig_event(
            &rig,
            (struct engine_event){
                .type = EV_PROGRESS, .stage = PARTY_MONITOR, .cycle = 1, .attempt = 1, .value = 0});
    rig_at(&rig, 100);
    assert_int_equal(rig.kills, 1);
    assert_int_equal(rig.sends[MSG_COLLECT], 1); /* nothing to a stage that is being killed */
    engine_wipe(&rig.engine);
}

static void test_deploy_when_before_executing_then_superseded_and_timer_reset(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_trigger(&rig, "shop");
    rig.now_ms = 500;
    rig_event(&rig, (struct engine_event){.type = EV_DEPLOY, .app = "shop", .interval_ms = 70000});
    rig_act(&rig);
    assert_ended(&rig, 1);
    assert_int_equal(rig.engine.apps[0].due_ms, 60500); /* clamped to the longest interval */
    engine_wipe(&rig.engine);
}

static void test_deploy_when_executing_then_executor_stops_and_nothing_is_verified(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    int64_t id = rig_to_executing(&rig);
    rig_event(&rig,
              (struct engine_event){
                  .type = EV_DEPLOY, .app = "shop", .interval_ms = -1, .reason = "release 2"});
    rig_act(&rig);
    assert_state(&rig, id, CYCLE_EXECUTING);
    assert_int_equal(rig.stops, 1);
    rig_answer(&rig, id, VERDICT_STOPPED, 1, "stopped");
    assert_ended(&rig, id);
    engine_wipe(&rig.engine);
}

static void test_verification_when_worse_then_undone(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    int64_t id = rig_to_executing(&rig);
    rig_answer(&rig, id, VERDICT_OK, 2, NULL);
    rig_at(&rig, 60);
    rig_answer(&rig, id, VERDICT_OK, 0, NULL);
    rig_answer(&rig, id, VERDICT_WORSE, 0, "response time 12 ms, was 8 ms");
    assert_state(&rig, id, CYCLE_UNDOING);
    assert_int_equal(rig.sends[MSG_EXECUTE], 2);
    assert_string_equal(engine_cycle(&rig.engine, id)->reason, "response time 12 ms, was 8 ms");
    rig_answer(&rig, id, VERDICT_OK, 0, NULL);
    assert_ended(&rig, id);
    engine_wipe(&rig.engine);
}

static void test_undo_when_cycle_is_done_then_it_goes_on_with_new_attempts(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_event(&rig, (struct engine_event){.type = EV_UNDO,
                                          .app = "shop",
                                          .cycle = 4,
                                          .state = CYCLE_DONE,
                                          .attempt = 7,
                                          .value = 3});
    rig_act(&rig);
    assert_state(&rig, 4, CYCLE_UNDOING);
    assert_int_equal(engine_cycle(&rig.engine, 4)->attempt, 8);
    rig_answer(&rig, 4, VERDICT_OK, 0, NULL);
    assert_ended(&rig, 4);
    engine_wipe(&rig.engine);
}

static void test_two_apps_when_both_due_then_one_cycle_at_a_time_in_order(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_event(
        &rig,
        (struct engine_event){
            .type = EV_APP, .app = "blog", .config = &rig_shop, .value = -1, .interval_ms = -1});
    rig_trigger(&rig, "blog");
    rig.now_ms = 1;
    rig_trigger(&rig, "shop");
    assert_int_equal(rig.engine.n_cycles, 1);
    assert_int_equal(rig.engine.token, 1);
    rig_answer_failure(&rig, 1, false);
    assert_int_equal(rig.engine.token, 2);
    assert_int_equal(engine_cycle(&rig.engine, 2)->app, 0);
    engine_wipe(&rig.engine);
}

static void test_settling_when_another_app_is_due_then_it_runs_meanwhile(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_event(
        &rig,
        (struct engine_event){
            .type = EV_APP, .app = "blog", .config = &rig_shop, .value = -1, .interval_ms = -1});
    int64_t id = rig_to_executing(&rig);
    rig_answer(&rig, id, VERDICT_OK, 1, NULL);
    rig_trigger(&rig, "blog");
    assert_state(&rig, id, CYCLE_SETTLING);
    assert_state(&rig, id + 1, CYCLE_COLLECTING);
    rig_at(&rig, 60); /* verifying has to wait for the monitor, which works for blog */
    assert_state(&rig, id, CYCLE_VERIFYING);
    assert_false(engine_cycle(&rig.engine, id)->sent);
    rig_answer(&rig, id + 1, VERDICT_OK, 0, NULL);
    assert_true(engine_cycle(&rig.engine, id)->sent);
    engine_wipe(&rig.engine);
}

static void test_restore_when_remap_was_killed_then_table_of_the_design_holds(void **state)
{
    (void)state;
    static const struct {
        enum cycle_state was;
        bool ended;
        int executes;
    } rows[] = {
        {CYCLE_COLLECTING, true, 0}, {CYCLE_ANALYZING, true, 0},  {CYCLE_PLANNING, true, 0},
        {CYCLE_PROPOSED, false, 0},  {CYCLE_EXECUTING, false, 1}, {CYCLE_SETTLING, false, 0},
        {CYCLE_VERIFYING, false, 0}, {CYCLE_UNDOING, false, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        rig_open(&rig);
        rig_event(&rig, (struct engine_event){.type = EV_RESTORE,
                                              .app = "shop",
                                              .cycle = 9,
                                              .state = rows[i].was,
                                              .attempt = 3,
                                              .value = 77});
        rig_act(&rig);
        if (rows[i].ended)
            assert_ended(&rig, 9);
        else
            assert_state(&rig, 9, rows[i].was);
        assert_int_equal(rig.sends[MSG_EXECUTE], rows[i].executes);
        if (rows[i].was == CYCLE_SETTLING) {
            rig_at(&rig, 76);
            assert_state(&rig, 9, CYCLE_SETTLING);
            rig_at(&rig, 77);
            assert_state(&rig, 9, CYCLE_VERIFYING);
        }
        engine_wipe(&rig.engine);
    }
}

static void test_execute_when_a_move_is_left_open_then_asked_again(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    int64_t id = rig_to_executing(&rig);
    const struct engine_cycle *c = engine_cycle(&rig.engine, id);
    rig_event(&rig, (struct engine_event){.type = EV_RESULT,
                                          .stage = PARTY_EXECUTOR,
                                          .cycle = id,
                                          .attempt = c->attempt,
                                          .flag = true,
                                          .value = 1});
    rig_act(&rig);
    assert_state(&rig, id, CYCLE_EXECUTING);
    rig_at(&rig, ENGINE_RETRY_MS);
    assert_int_equal(rig.sends[MSG_EXECUTE], 2);
    engine_wipe(&rig.engine);
}

static void test_restore_when_paused_while_executing_then_only_clears_up(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_event(&rig, (struct engine_event){.type = EV_PAUSE, .app = "shop"});
    rig_event(
        &rig,
        (struct engine_event){
            .type = EV_RESTORE, .app = "shop", .cycle = 9, .state = CYCLE_EXECUTING, .attempt = 3});
    rig_act(&rig);
    assert_int_equal(engine_cycle(&rig.engine, 9)->stop, STOP_PAUSE);
    assert_int_equal(rig.sends[MSG_EXECUTE], 1);
    assert_int_equal(rig.stops, 0); /* the request knows */
    rig_answer(&rig, 9, VERDICT_OK, 0, NULL);
    assert_ended(&rig, 9);
    engine_wipe(&rig.engine);
}

static void test_store_when_full_while_planning_then_cycle_fails_once_it_works(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_trigger(&rig, "shop");
    const struct engine_cycle *c = engine_cycle(&rig.engine, 1);
    rig_event(&rig,
              (struct engine_event){
                  .type = EV_RESULT, .stage = PARTY_MONITOR, .cycle = 1, .attempt = c->attempt});
    rig_event(&rig, (struct engine_event){.type = EV_STORE_FAILED, .reason = "disk full"});
    rig_act(&rig);
    assert_state(&rig, 1, CYCLE_FAILED); /* not saved yet */
    assert_string_equal(engine_cycle(&rig.engine, 1)->reason, "store: disk full");
    assert_int_equal(engine_next_ms(&rig.engine), 1000);
    rig_at(&rig, ENGINE_STORE_RETRY_MS);
    assert_ended(&rig, 1);
    engine_wipe(&rig.engine);
}

static void test_store_when_full_while_executing_then_cleared_up_then_failed(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    int64_t id = rig_to_executing(&rig);
    rig_event(&rig, (struct engine_event){.type = EV_STORE_FAILED, .reason = "disk full"});
    rig_act(&rig);
    assert_int_equal(rig.stops, 1);
    rig_answer(&rig, id, VERDICT_STOPPED, 1, "stopped");
    assert_state(&rig, id, CYCLE_FAILED); /* waits for the disk */
    rig_at(&rig, ENGINE_STORE_RETRY_MS);
    assert_ended(&rig, id);
    engine_wipe(&rig.engine);
}

static void test_pause_when_executing_then_stops_and_verifies_what_moved(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    int64_t id = rig_to_executing(&rig);
    rig_event(&rig, (struct engine_event){.type = EV_PAUSE, .app = "shop"});
    rig_act(&rig);
    assert_int_equal(rig.stops, 1);
    rig_answer(&rig, id, VERDICT_STOPPED, 1, NULL);
    assert_state(&rig, id, CYCLE_SETTLING);
    struct engine_event ev = {.type = EV_TRIGGER, .app = "shop", .trigger = "manual"};
    assert_string_equal(engine_refuses(&rig.engine, &ev),
                        "paused by `remap pause`; `remap resume` goes on");
    rig_event(&rig, (struct engine_event){.type = EV_RESUME, .app = "shop"});
    assert_null(engine_refuses(&rig.engine, &ev));
    engine_wipe(&rig.engine);
}

static void test_shutdown_when_executing_then_state_stays_for_the_next_start(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    int64_t id = rig_to_executing(&rig);
    rig_event(&rig, (struct engine_event){.type = EV_SHUTDOWN});
    rig_act(&rig);
    assert_int_equal(rig.stops, 1);
    assert_false(engine_quiet(&rig.engine));
    rig_answer(&rig, id, VERDICT_STOPPED, 1, "stopped");
    assert_state(&rig, id, CYCLE_EXECUTING);
    assert_true(engine_quiet(&rig.engine));
    assert_int_equal(rig.sends[MSG_EXECUTE], 1);
    engine_wipe(&rig.engine);
}

static void test_app_when_no_longer_configured_then_its_cycle_is_superseded(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_trigger(&rig, "shop");
    rig_event(&rig, (struct engine_event){.type = EV_APP_GONE, .app = "shop"});
    rig_act(&rig);
    assert_ended(&rig, 1);
    rig_at(&rig, 100000);
    assert_int_equal(rig.sends[MSG_COLLECT], 1);
    engine_wipe(&rig.engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cycle_when_all_goes_well_then_every_stage_is_asked_once),
        cmocka_unit_test(test_timer_when_due_then_cycle_starts_and_rearms_at_its_end),
        cmocka_unit_test(test_modes_when_planned_then_observe_ends_and_propose_waits),
        cmocka_unit_test(test_proposal_when_applied_then_base_is_checked_before_it_moves),
        cmocka_unit_test(
            test_proposal_when_a_newer_cycle_has_planned_then_superseded_unless_the_same),
        cmocka_unit_test(test_proposal_when_the_timer_is_due_then_a_newer_cycle_starts),
        cmocka_unit_test(test_apply_of_an_ended_cycle_then_new_cycle_executes_its_plan),
        cmocka_unit_test(test_stage_when_it_dies_then_same_request_with_next_attempt_until_three),
        cmocka_unit_test(test_result_of_an_older_attempt_then_ignored),
        cmocka_unit_test(test_deadline_when_progress_grows_then_extended_up_to_ten_times),
        cmocka_unit_test(test_deadline_when_counter_stands_still_then_killed),
        cmocka_unit_test(test_deploy_when_before_executing_then_superseded_and_timer_reset),
        cmocka_unit_test(test_deploy_when_executing_then_executor_stops_and_nothing_is_verified),
        cmocka_unit_test(test_verification_when_worse_then_undone),
        cmocka_unit_test(test_undo_when_cycle_is_done_then_it_goes_on_with_new_attempts),
        cmocka_unit_test(test_two_apps_when_both_due_then_one_cycle_at_a_time_in_order),
        cmocka_unit_test(test_settling_when_another_app_is_due_then_it_runs_meanwhile),
        cmocka_unit_test(test_restore_when_remap_was_killed_then_table_of_the_design_holds),
        cmocka_unit_test(test_execute_when_a_move_is_left_open_then_asked_again),
        cmocka_unit_test(test_restore_when_paused_while_executing_then_only_clears_up),
        cmocka_unit_test(test_store_when_full_while_planning_then_cycle_fails_once_it_works),
        cmocka_unit_test(test_store_when_full_while_executing_then_cleared_up_then_failed),
        cmocka_unit_test(test_pause_when_executing_then_stops_and_verifies_what_moved),
        cmocka_unit_test(test_shutdown_when_executing_then_state_stays_for_the_next_start),
        cmocka_unit_test(test_app_when_no_longer_configured_then_its_cycle_is_superseded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
