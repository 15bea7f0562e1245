/* test_faults.c - what an orchestrator can do wrong while a plan is carried out, each fault shown
 * by the embedded cluster to a real daemon (paper §5.6, §6.5). The plan takes every replica to n-1.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "model/base/mem.h"
#include "tests/process/daemon/rig.h"

/* A replica takes 10 s to start; all times are divided by the speed. */
static void start_at(struct rig *rig, double speed)
{
    rig_open(rig, speed,
             "    mode: act\n    max_parallel: 1\n    ready_timeout: 60s\n    settle: 5s\n"
             "    worse_tolerance: 9\n",
             "");
    rig_start(rig, true);
}

static void start(struct rig *rig)
{
    start_at(rig, 50);
}

static void trigger(struct rig *rig)
{
    AUTO_BUF struct buf answer = BUF_INIT;
    assert_int_equal(rig_ask(rig, "{\"v\":1,\"command\":\"trigger\",\"app\":\"rig\"}", &answer), 0);
}

static void stop(struct rig *rig)
{
    rig_stop(rig);
    rig_close(rig);
}

static int64_t moves(struct rig *rig, const char *state)
{
    AUTO_FREE char *sql = mem_printf("SELECT count(*) FROM v_moves WHERE state = '%s'", state);
    return rig_number(rig, sql);
}

static void is_state(struct rig *rig, const char *service, const char *state)
{
    AUTO_FREE char *sql = mem_printf("SELECT state || coalesce(': ' || reason, '') FROM v_moves "
                                     "WHERE service = '%s' AND undo_of IS NULL",
                                     service);
    AUTO_FREE char *text = rig_text(rig, sql);
    print_message("%s %s\n", service, text);
    assert_memory_equal(text, state, strlen(state));
}

/* Faults after which every move is made all the same, once. */
static void test_faults_that_can_be_waited_out_then_every_move_is_applied_once(void **state)
{
    (void)state;
    static const char *const faults[] = {
        "{\"kind\":\"forget\",\"service\":\"c\",\"times\":1}",
        "{\"kind\":\"lose-answer\",\"times\":9}",
        "{\"kind\":\"slow\",\"delay_ms\":150}",
        "{\"kind\":\"refuse\",\"status\":503,\"writes_only\":true,\"for_ms\":20000}",
    };
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct rig rig;
        print_message("%s\n", faults[i]);
        start(&rig);
        rig_fault(&rig, faults[i]);
        trigger(&rig);
        rig_until_state(&rig, 1, "done");
        assert_true(moves(&rig, "applied") > 3);
        assert_int_equal(rig_number(&rig, "SELECT moves_applied = moves_planned FROM v_cycles"), 1);
        rig_check(&rig);
        stop(&rig);
    }
}

static void test_replica_that_lands_elsewhere_then_missed_and_the_plan_goes_on(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    rig_fault(&rig, "{\"kind\":\"stray\",\"service\":\"c\",\"times\":1}");
    trigger(&rig);
    rig_until_state(&rig, 1, "done");
    is_state(&rig, "c", "missed: ready on another host");
    assert_true(moves(&rig, "applied") > 2);
    assert_int_equal(moves(&rig, "discarded"), 0);
    stop(&rig);
}

/* Both leave n-2 to free it: the first because of its traffic too, the second for nothing else. */
static void test_replica_that_lands_elsewhere_then_its_host_is_freed_of_nobody_else(void **state)
{
    static const char scenario[] =
        "name: rig\n"
        "seed: 3\n"
        "hosts:\n"
        "  - {name: n, count: 3, cpu: 4, memory: 4Gi}\n"
        "network: {same_zone: 2ms}\n"
        "services:\n"
        "  - {name: a, hosts: [n-2], work: 1ms, start_up: 5s, entry_rate: 50}\n"
        "  - {name: b, hosts: [n-2], work: 1ms, start_up: 5s, entry_rate: 1}\n"
        "  - {name: k, hosts: [n-1], work: 1ms, start_up: 5s, stateful: true}\n"
        "calls:\n"
        "  - {from: a, to: k, per_request: 2, bytes: 1Ki}\n";
    struct rig rig;
    (void)state;
    rig_open_scenario(&rig, scenario, 50,
                      "    mode: act\n    planner: auto\n    objective: hosts\n    max_parallel: 1\n"
                      "    ready_timeout: 60s\n    settle: 5s\n    worse_tolerance: 9\n",
                      "");
    rig_start(&rig, true);
    rig_fault(&rig, "{\"kind\":\"stray\",\"service\":\"a\",\"times\":1}");
    trigger(&rig);
    rig_until(&rig, "SELECT ended_ms IS NOT NULL FROM v_cycles WHERE cycle_id = 1");
    AUTO_FREE char *why = rig_text(&rig, "SELECT state || ' ' || reason FROM v_cycles");
    print_message("%s\n", why);
    is_state(&rig, "a", "missed: ready on another host");
    is_state(&rig, "b",
             "discarded: gains 0.0000 per restarted replica, less than 0.005, now that move 1 (a) "
             "was missed");
    stop(&rig);
}

static void test_replica_that_is_taken_back_then_displaced_and_the_plan_goes_on(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    rig_fault(&rig, "{\"kind\":\"lose-effect\",\"service\":\"c\",\"times\":1}");
    trigger(&rig);
    rig_until_state(&rig, 1, "done");
    is_state(&rig, "c", "displaced");
    assert_int_equal(moves(&rig, "failed"), 0);
    stop(&rig);
}

/* Does something to the cluster after the first move; has the plan come to its end before that? */
static bool disturb(struct rig *rig, double speed, const char *fault)
{
    start_at(rig, speed);
    trigger(rig);
    rig_until(rig, "SELECT count(*) FROM v_moves WHERE state = 'applied'");
    rig_fault(rig, fault);
    bool late = rig_number(rig, "SELECT count(*) >= (SELECT moves_planned FROM v_cycles) - 1 FROM "
                                "v_moves WHERE state IN ('applied', 'intended')");
    rig_until(rig, "SELECT ended_ms IS NOT NULL FROM v_cycles WHERE cycle_id = 1");
    return !late;
}

static bool target_dies(double speed, const void *ctx)
{
    (void)ctx;
    struct rig rig;
    bool in_time = disturb(&rig, speed, "{\"kind\":\"host-down\",\"host\":\"n-1\"}");
    assert_true(!in_time || moves(&rig, "discarded") > 0);
    assert_int_equal(moves(&rig, "intended"), 0);
    assert_int_equal(moves(&rig, "planned"), 0);
    stop(&rig);
    return in_time;
}

static void test_target_that_dies_while_moving_then_the_rest_is_discarded(void **state)
{
    (void)state;
    rig_play(target_dies, NULL);
}

static bool replica_born(double speed, const void *ctx)
{
    (void)ctx;
    struct rig rig;
    if (!disturb(&rig, speed, "{\"kind\":\"scale\",\"service\":\"a\",\"replicas\":2}")) {
        rig_close(&rig);
        return false;
    }
    rig_until_state(&rig, 1, "done");
    AUTO_FREE char *born = rig_text(
        &rig, "SELECT service || ' ' || state || ' ' || target || ' ' || detour FROM v_moves "
              "WHERE seq > (SELECT moves_planned FROM v_cycles)");
    assert_string_equal(born, "a applied n-1 0");
    stop(&rig);
    return true;
}

static void test_replica_born_while_moving_then_steered_to_its_partner(void **state)
{
    (void)state;
    rig_play(replica_born, NULL);
}

static void test_executor_killed_again_and_again_then_each_move_is_made_once(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    rig_fault(&rig, "{\"kind\":\"lose-answer\",\"times\":9}");
    trigger(&rig);
    /* Two deaths: a third one charged to the cycle would fail it. */
    for (int made = 1; made <= 2; made++) {
        AUTO_FREE char *sql = mem_printf("SELECT count(*) >= %d FROM v_moves "
                                         "WHERE state IN ('applied', 'intended')",
                                         made);
        rig_until(&rig, sql);
        rig_signal(rig_pid(&rig, "executor"), SIGKILL);
    }
    rig_until_state(&rig, 1, "done");
    assert_int_equal(rig_number(&rig, "SELECT moves_applied = moves_planned FROM v_cycles"), 1);
    rig_check(&rig);
    stop(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults_that_can_be_waited_out_then_every_move_is_applied_once),
        cmocka_unit_test(test_replica_that_lands_elsewhere_then_missed_and_the_plan_goes_on),
        cmocka_unit_test(test_replica_that_lands_elsewhere_then_its_host_is_freed_of_nobody_else),
        cmocka_unit_test(test_replica_that_is_taken_back_then_displaced_and_the_plan_goes_on),
        cmocka_unit_test(test_target_that_dies_while_moving_then_the_rest_is_discarded),
        cmocka_unit_test(test_replica_born_while_moving_then_steered_to_its_partner),
        cmocka_unit_test(test_executor_killed_again_and_again_then_each_move_is_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
