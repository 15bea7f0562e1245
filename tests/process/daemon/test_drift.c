/* test_drift.c - looks between cycles on a running cluster: noise and growth start nothing, traffic
 * that goes another way starts one cycle, a deployment silences until the next. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "tests/process/daemon/rig.h"

/* In the cluster's time, which runs 50 times as fast: a look every 100 ms of ours. */
#define DRIFT                                                                                      \
    "    drift: {every: 5s, window: 30s, for: 30s, quiet: 2m, affinity: 0.15, response: 0.8}\n"

/* Requests come in at two places, whose load changes apart. */
static const char two_entries[] =
    "name: two-entries\n"
    "seed: 3\n"
    "hosts:\n"
    "  - {name: n, count: 4, cpu: 4, memory: 4Gi}\n"
    "network: {same_zone: 2ms}\n"
    "services:\n"
    "  - {name: a, hosts: [n-1], work: 1ms, start_up: 10s, entry_rate: 50}\n"
    "  - {name: b, hosts: [n-2], work: 1ms, start_up: 10s}\n"
    "  - {name: c, hosts: [n-3], work: 1ms, start_up: 10s}\n"
    "  - {name: d, hosts: [n-4], work: 1ms, start_up: 10s, entry_rate: 1}\n"
    "  - {name: e, hosts: [n-1], work: 1ms, start_up: 10s}\n"
    "calls:\n"
    "  - {from: a, to: b, per_request: 2, bytes: 1Ki}\n"
    "  - {from: b, to: c, per_request: 1, bytes: 1Ki}\n"
    "  - {from: c, to: d, per_request: 1, bytes: 1Ki}\n"
    "  - {from: d, to: e, per_request: 1, bytes: 1Ki}\n";

static void trigger(struct rig *rig)
{
    AUTO_BUF struct buf answer = BUF_INIT;
    if (rig_ask(rig, "{\"v\":1,\"command\":\"trigger\",\"app\":\"rig\"}", &answer) < 0)
        fail_msg("%s", answer.data);
}

/* Until so many looks have been made from now on. */
static void looks(struct rig *rig, int n)
{
    for (int i = 0; i < n; i++) {
        AUTO_FREE char *sql =
            mem_printf("SELECT count(*) FROM v_drift WHERE at_ms > %lld",
                       (long long)rig_number(rig, "SELECT coalesce(max(at_ms), 0) FROM v_drift"));
        rig_until(rig, sql);
    }
}

static int64_t drift_cycles(struct rig *rig)
{
    return rig_number(rig, "SELECT count(*) FROM v_cycles WHERE trigger = 'drift'");
}

static void open_planned(struct rig *rig, double speed)
{
    rig_open_scenario(rig, two_entries, speed, "    mode: act\n" DRIFT, "");
    rig_start(rig, true);
    trigger(rig);
    rig_until_state(rig, 1, "done");
}

/* Looks that come later than every 30 s of the cluster's time know nothing of what was in between: a
 * machine that falls behind starts no cycle. */
static bool drifts(struct rig *rig)
{
    rig_fault(rig, "{\"kind\":\"load\",\"service\":\"d\",\"factor\":250}");
    if (rig_within(rig, "SELECT count(*) FROM v_cycles WHERE trigger = 'drift' AND state = 'done'"))
        return true;
    rig_close(rig);
    return false;
}

static bool noise_then_drift(double speed, const void *ctx)
{
    (void)ctx;
    static const char *const noise[] = {
        "{\"kind\":\"load\",\"service\":\"a\",\"factor\":1.3}",
        "{\"kind\":\"load\",\"service\":\"d\",\"factor\":4}",
        "{\"kind\":\"load\",\"service\":\"a\",\"factor\":0.8}",
        "{\"kind\":\"load\",\"factor\":2}",
        "{\"kind\":\"load\",\"service\":\"d\",\"factor\":1}",
    };
    struct rig rig;
    AUTO_BUF struct buf status = BUF_INIT;
    open_planned(&rig, speed);
    for (size_t i = 0; i < ARRAY_LEN(noise); i++) {
        rig_fault(&rig, noise[i]);
        looks(&rig, 8);
    }
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_cycles"), 1);
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_events WHERE kind = 'drift'"
                                      " AND text NOT LIKE 'settings: every 5s%'"), 0);
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_events WHERE kind = 'drift'"), 1);
    if (!drifts(&rig))
        return false;
    looks(&rig, 40); /* the quiet time and more */
    assert_int_equal(drift_cycles(&rig), 1);
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_events WHERE kind = 'drift'"
                                      " AND text LIKE 'beyond the level of affinity%'"), 1);
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_events WHERE kind = 'drift'"
                                      " AND text LIKE 'starts a cycle: %d – e %'"), 1);
    rig_until(&rig, "SELECT count(*) FROM v_drift WHERE state = 'calm' AND reference_cycle = 2"
                    " AND distance < 0.05");
    assert_int_equal(rig_remap(&rig, &status, (const char *const[]){"status", NULL}), 0);
    assert_non_null(strstr(status.data, "drift of"));
    assert_non_null(strstr(status.data, "calm"));
    rig_check(&rig);
    rig_stop(&rig);
    rig_close(&rig);
    return true;
}

static void test_drift_when_noise_and_growth_then_nothing_when_calls_change_then_one_cycle(
    void **state)
{
    (void)state;
    rig_play(noise_then_drift, NULL);
}

static bool restart_then_drift(double speed, const void *ctx)
{
    (void)ctx;
    struct rig rig;
    open_planned(&rig, speed);
    looks(&rig, 3);
    rig_signal(rig_pid(&rig, "remap"), SIGKILL);
    rig_wait_daemon(&rig);
    rig_start(&rig, true);
    looks(&rig, 3);
    assert_int_equal(rig_number(&rig, "SELECT reference_cycle FROM v_drift"), 1);
    if (!drifts(&rig))
        return false;
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_events WHERE kind = 'drift'"
                                      " AND text LIKE 'settings: %'"), 1); /* said once */
    rig_stop(&rig);
    rig_close(&rig);
    return true;
}

static void test_drift_when_remap_starts_again_then_same_reference_and_still_found(void **state)
{
    (void)state;
    rig_play(restart_then_drift, NULL);
}

static void test_drift_when_cluster_does_not_answer_then_said_once_and_seen_again(void **state)
{
    (void)state;
    struct rig rig;
    open_planned(&rig, 50);
    looks(&rig, 1);
    rig_fault(&rig, "{\"kind\":\"refuse\"}");
    rig_until(&rig, "SELECT count(*) FROM v_events WHERE kind = 'drift' AND text LIKE 'not seen%'");
    rig_clear_faults(&rig);
    looks(&rig, 3);
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_events WHERE kind = 'drift'"
                                      " AND text LIKE 'not seen%'"), 1);
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_cycles"), 1);
    rig_stop(&rig);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_drift_when_noise_and_growth_then_nothing_when_calls_change_then_one_cycle),
        cmocka_unit_test(test_drift_when_remap_starts_again_then_same_reference_and_still_found),
        cmocka_unit_test(test_drift_when_cluster_does_not_answer_then_said_once_and_seen_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
