/* test_kill.c - kill -9 of each process in each state of a cycle (design.md 3, the table): the
 * store stays whole, no move happens twice, cluster and store agree, and the cycle ends as the
 * table says.
 *
 * States that last a moment are held by stopping the stage that works in them (SIGSTOP: a process
 * that hangs), the others last by the cluster's own start-up times. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "tests/process/daemon/rig.h"

struct scene {
    const char *state;
    const char *held; /* the stage that is stopped to stay in it; NULL: lasts by itself */
    const char *mode;
    const char *reached;   /* SELECT: the moment to kill; NULL: as soon as the state is reached */
    const char *end;       /* how the cycle ends when a stage is killed … */
    const char *end_remap; /* … and when `remap` is */
};

static const struct scene scenes[] = {
    {"collecting", "monitor", "act", NULL, "done", "failed"},
    {"analyzing", "analyzer", "act", NULL, "done", "failed"},
    {"planning", "planner", "act", NULL, "done", "failed"},
    {"proposed", NULL, "propose", NULL, "done", "done"},
    {"executing", NULL, "act", "SELECT count(*) FROM v_moves WHERE state = 'intended' AND seq > 1",
     "done", "done"},
    {"settling", NULL, "act", NULL, "done", "done"},
    {"verifying", "monitor", "act", NULL, "done", "done"},
    {"undoing", NULL, "act",
     "SELECT count(*) FROM v_moves WHERE state = 'intended' AND undo_of IS NOT NULL", "undone",
     "undone"},
};

static void command(struct rig *rig, const char *json)
{
    AUTO_BUF struct buf answer = BUF_INIT;
    if (rig_ask(rig, json, &answer) < 0)
        fail_msg("%s: %s", json, answer.data);
}

/* Brings cycle 1 into the scene's state; *out is the pid that is stopped there, or 0. False: the state
 * was over before it was seen. */
static bool reach(struct rig *rig, const struct scene *scene, pid_t *out)
{
    bool late = strcmp(scene->state, "verifying") == 0;
    pid_t held = scene->held && !late ? rig_pid(rig, scene->held) : 0;
    if (held)
        rig_signal(held, SIGSTOP);
    command(rig, "{\"v\":1,\"command\":\"trigger\",\"app\":\"rig\"}");
    if (late) {
        if (!rig_catch_state(rig, "settling"))
            return false;
        held = rig_pid(rig, scene->held);
        rig_signal(held, SIGSTOP);
    }
    *out = held;
    if (strcmp(scene->state, "undoing") == 0) {
        rig_until_state(rig, 1, "done");
        command(rig, "{\"v\":1,\"command\":\"undo\",\"cycle\":1}");
        rig_until(rig, "SELECT count(*) FROM v_cycles WHERE state IN ('undoing', 'undone')");
    }
    return rig_catch_state(rig, scene->state) && (!scene->reached || rig_catch(rig, scene->reached));
}

struct act {
    const struct scene *scene;
    const char *victim;
};

static bool play(double speed, const void *ctx)
{
    const struct scene *scene = ((const struct act *)ctx)->scene;
    const char *victim = ((const struct act *)ctx)->victim;
    pid_t held;
    struct rig rig;
    AUTO_FREE char *mode = mem_printf("    mode: %s\n", scene->mode);
    bool remap = strcmp(victim, "remap") == 0;
    int64_t began = clock_mono_ms();
    rig_open(&rig, speed, mode, "");
    rig_start(&rig, true);
    if (!reach(&rig, scene, &held)) {
        rig_close(&rig);
        return false;
    }
    rig_signal(rig_pid(&rig, victim), SIGKILL);
    if (remap) {
        rig_wait_daemon(&rig);
        rig_start(&rig, true); /* what was stopped has been killed with its parent */
    } else if (held) {
        rig_signal(held, SIGCONT);
    }
    if (strcmp(scene->state, "proposed") == 0) {
        rig_until_state(&rig, 1, "proposed");
        command(&rig, "{\"v\":1,\"command\":\"apply\",\"cycle\":1}");
    }
    rig_until(&rig, "SELECT count(*) FROM v_cycles WHERE cycle_id = 1 AND ended_ms IS NOT NULL "
                    "AND state NOT IN ('undoing')");
    AUTO_FREE char *state = rig_text(&rig, "SELECT state FROM v_cycles WHERE cycle_id = 1");
    AUTO_FREE char *reason = rig_text(&rig, "SELECT reason FROM v_cycles WHERE cycle_id = 1");
    print_message("%-10s kill %-8s → %s (%s) %lld ms\n", scene->state, victim, state, reason,
                  (long long)(clock_mono_ms() - began));
    assert_string_equal(state, remap ? scene->end_remap : scene->end);
    if (remap && strcmp(state, "failed") == 0)
        assert_string_equal(reason, "interrupted: remap was restarted");
    rig_check(&rig);
    rig_stop(&rig);
    rig_close(&rig);
    return true;
}

static void walk(const char *victim)
{
    for (size_t i = 0; i < ARRAY_LEN(scenes); i++)
        rig_play(play, &(const struct act){&scenes[i], victim});
}

static void test_remap_when_killed_in_each_state_then_next_start_takes_up(void **state)
{
    (void)state;
    walk("remap");
}

static void test_monitor_when_killed_in_each_state_then_cycle_goes_on(void **state)
{
    (void)state;
    walk("monitor");
}

static void test_analyzer_when_killed_in_each_state_then_cycle_goes_on(void **state)
{
    (void)state;
    walk("analyzer");
}

static void test_planner_when_killed_in_each_state_then_cycle_goes_on(void **state)
{
    (void)state;
    walk("planner");
}

static void test_executor_when_killed_in_each_state_then_no_move_twice(void **state)
{
    (void)state;
    walk("executor");
}

/* The executor again and again, at a different moment of each move. */
static void test_executor_when_killed_during_every_move_then_plan_is_completed(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 50, "    mode: act\n    max_moves: 2\n", "");
    rig_start(&rig, true);
    command(&rig, "{\"v\":1,\"command\":\"trigger\",\"app\":\"rig\"}");
    for (int move = 1; move <= 2; move++) {
        AUTO_FREE char *intended =
            mem_printf("SELECT count(*) FROM v_moves WHERE seq = %d AND intended_ms > 0", move);
        rig_until(&rig, intended);
        clock_sleep_ms(60 * move); /* a replica takes 200 ms to start: early, then in its middle */
        rig_signal(rig_pid(&rig, "executor"), SIGKILL);
    }
    rig_until_state(&rig, 1, "done");
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE state = 'applied'"), 2);
    rig_check(&rig);
    rig_stop(&rig);
    rig_close(&rig);
}

/* A request is out at the executor, and it has begun: deaths before that are not charged. */
static void until_executor_works(struct rig *rig)
{
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;;) {
        AUTO_BUF struct buf answer = BUF_INIT;
        assert_int_equal(rig_ask(rig, "{\"v\":1,\"command\":\"status\"}", &answer), 0);
        const char *at = strstr(answer.data, "\"name\":\"executor\"");
        if (at && strstr(at, "\"up\":true,\"cycle\":1"))
            return;
        assert_true(clock_mono_ms() < until);
        clock_sleep_ms(10);
    }
}

/* Three deaths charged to one cycle end it; the daemon and the next cycle live. */
static void test_executor_when_killed_three_times_then_cycle_fails(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 1, "    mode: act\n    max_moves: 1\n", ""); /* a start takes 10 s */
    rig_start(&rig, true);
    /* Else the move would be over when the executor comes back after 2 s, and nobody would be busy.
     */
    rig_fault(&rig, "{\"kind\":\"stuck-start\",\"service\":\"b\",\"host\":\"n-1\",\"times\":9}");
    rig_fault(&rig, "{\"kind\":\"stuck-start\",\"service\":\"a\",\"host\":\"n-2\",\"times\":9}");
    command(&rig, "{\"v\":1,\"command\":\"trigger\",\"app\":\"rig\"}");
    for (int death = 1; death <= 3; death++) {
        AUTO_FREE char *sent = mem_printf(
            "SELECT count(*) FROM v_events WHERE kind = 'stage' HAVING count(*) >= %d", death);
        until_executor_works(&rig);
        rig_signal(rig_pid(&rig, "executor"), SIGKILL);
        rig_until(&rig, sent);
    }
    rig_until_state(&rig, 1, "failed");
    AUTO_FREE char *reason = rig_text(&rig, "SELECT reason FROM v_cycles WHERE cycle_id = 1");
    assert_non_null(strstr(reason, "executor died 3 times"));
    AUTO_FREE char *move = rig_text(&rig, "SELECT reason FROM v_moves WHERE state = 'failed'");
    assert_string_equal(move, "not known what became of it");
    rig_stop(&rig);
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remap_when_killed_in_each_state_then_next_start_takes_up),
        cmocka_unit_test(test_monitor_when_killed_in_each_state_then_cycle_goes_on),
        cmocka_unit_test(test_analyzer_when_killed_in_each_state_then_cycle_goes_on),
        cmocka_unit_test(test_planner_when_killed_in_each_state_then_cycle_goes_on),
        cmocka_unit_test(test_executor_when_killed_in_each_state_then_no_move_twice),
        cmocka_unit_test(test_executor_when_killed_during_every_move_then_plan_is_completed),
        cmocka_unit_test(test_executor_when_killed_three_times_then_cycle_fails),
    };
    if (argc > 1) /* a pattern of test names */
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
