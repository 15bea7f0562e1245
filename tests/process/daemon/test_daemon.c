/* test_daemon.c - the daemon among other processes: two on one run directory, a full disk, signals,
 * configuration read again, a deployment on the wire. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/mem.h"
#include "tests/process/daemon/rig.h"

static void command(struct rig *rig, const char *json)
{
    AUTO_BUF struct buf answer = BUF_INIT;
    if (rig_ask(rig, json, &answer) < 0)
        fail_msg("%s: %s", json, answer.data);
}

static void trigger(struct rig *rig)
{
    command(rig, "{\"v\":1,\"command\":\"trigger\",\"app\":\"rig\"}");
}

static size_t lines(const char *text)
{
    size_t n = 0;
    for (; text && *text; text++)
        n += *text == '\n';
    return n;
}

static void test_second_daemon_on_the_run_directory_then_refuses_with_one_line(void **state)
{
    (void)state;
    struct rig rig;
    AUTO_BUF struct buf out = BUF_INIT;
    rig_open(&rig, 50, "", "");
    rig_start(&rig, true);
    assert_int_equal(rig_remap(&rig, &out, (const char *const[]){"run", NULL}), 1);
    assert_non_null(strstr(out.data, "another remap"));
    assert_int_equal(lines(out.data), 1);
    trigger(&rig); /* the first one is unharmed */
    rig_until_state(&rig, 1, "done");
    rig_stop(&rig);
    rig_close(&rig);
}

/* A limit on the size of files stands for the disk: every write beyond it fails, as on a full one.
 */
static void disk(const struct rig *rig, bool full)
{
    struct rlimit limit = {full ? 4096 : RLIM_INFINITY, RLIM_INFINITY};
    assert_int_equal(prlimit(rig->daemon, RLIMIT_FSIZE, &limit, NULL), 0);
}

static void test_disk_full_while_saving_then_cycle_fails_daemon_lives_and_recovers(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 50, "    mode: act\n", "");
    rig_start(&rig, true);
    pid_t analyzer = rig_pid(&rig, "analyzer");
    rig_signal(analyzer, SIGSTOP);
    trigger(&rig);
    rig_until_state(&rig, 1, "analyzing");
    disk(&rig, true);
    rig_signal(analyzer, SIGCONT);
    rig_until_status(&rig, "\"store\":\"cannot be written\""); /* the result has come */
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_affinity"), 0);
    assert_true(rig_pid(&rig, "analyzer") > 0); /* answers: it lives */
    disk(&rig, false);
    rig_until_state(&rig, 1, "failed");
    AUTO_FREE char *reason = rig_text(&rig, "SELECT reason FROM v_cycles WHERE cycle_id = 1");
    assert_non_null(strstr(reason, "store: "));
    rig_until(&rig, "SELECT count(*) FROM v_events WHERE kind = 'store'");
    trigger(&rig);
    rig_until_state(&rig, 2, "done");
    rig_check(&rig);
    rig_stop(&rig);
    rig_close(&rig);
}

/* The end of a scene that came too late. */
static bool too_late(struct rig *rig)
{
    rig_close(rig);
    return false;
}

static bool disk_full_while_executing(double speed, const void *ctx)
{
    (void)ctx;
    struct rig rig;
    rig_open(&rig, speed, "    mode: act\n", "");
    rig_start(&rig, true);
    trigger(&rig);
    if (!rig_catch(&rig, "SELECT count(*) FROM v_moves WHERE state = 'intended' AND seq > 1"))
        return too_late(&rig);
    disk(&rig, true);
    if (rig_number(&rig, "SELECT count(*) FROM v_cycles WHERE state = 'executing'") == 0)
        return too_late(&rig);
    rig_until_status(&rig, "\"store\":\"cannot be written\""); /* the outcome of the move has come */
    assert_true(rig_pid(&rig, "executor") > 0);
    disk(&rig, false);
    rig_until(&rig, "SELECT count(*) FROM v_cycles WHERE cycle_id = 1 AND ended_ms IS NOT NULL");
    rig_check(&rig);
    if (rig_number(&rig, "SELECT count(*) FROM v_cycles WHERE state = 'failed'") == 0)
        return too_late(&rig); /* it was the outcome of the last move */
    trigger(&rig); /* and the next cycle makes the rest */
    rig_until_state(&rig, 2, "done");
    rig_check(&rig);
    rig_stop(&rig);
    rig_close(&rig);
    return true;
}

static void test_disk_full_while_executing_then_intended_moves_are_cleared_up(void **state)
{
    (void)state;
    rig_play(disk_full_while_executing, NULL);
}

static bool sigterm_while_executing(double speed, const void *ctx)
{
    (void)ctx;
    struct rig rig;
    rig_open(&rig, speed, "    mode: act\n    max_parallel: 1\n", "");
    rig_start(&rig, true);
    trigger(&rig);
    if (!rig_catch(&rig, "SELECT count(*) FROM v_moves WHERE state = 'intended'"))
        return too_late(&rig);
    rig_stop(&rig);
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE state = 'intended'"), 0);
    if (rig_number(&rig, "SELECT count(*) FROM v_moves WHERE state = 'applied'") != 1)
        return too_late(&rig);
    AUTO_FREE char *between = rig_text(&rig, "SELECT state FROM v_cycles WHERE cycle_id = 1");
    assert_string_equal(between, "executing");
    rig_start(&rig, true);
    rig_until_state(&rig, 1, "done");
    assert_true(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE state = 'applied'") > 1);
    rig_check(&rig);
    rig_stop(&rig);
    rig_close(&rig);
    return true;
}

static void test_sigterm_while_executing_then_move_is_finished_and_next_start_goes_on(void **state)
{
    (void)state;
    rig_play(sigterm_while_executing, NULL);
}

static void test_pause_survives_a_restart(void **state)
{
    (void)state;
    struct rig rig;
    AUTO_BUF struct buf answer = BUF_INIT;
    rig_open(&rig, 50, "", "");
    rig_start(&rig, true);
    command(&rig, "{\"v\":1,\"command\":\"pause\"}");
    rig_stop(&rig);
    rig_start(&rig, true);
    assert_int_equal(rig_ask(&rig, "{\"v\":1,\"command\":\"trigger\",\"app\":\"rig\"}", &answer),
                     -1);
    assert_non_null(strstr(answer.data, "paused by `remap pause`; `remap resume` goes on"));
    command(&rig, "{\"v\":1,\"command\":\"resume\",\"app\":\"rig\"}");
    trigger(&rig);
    rig_until_state(&rig, 1, "done");
    rig_stop(&rig);
    rig_close(&rig);
}

static void test_sighup_with_a_bad_file_then_old_configuration_stays_and_says_so(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 50, "", "");
    rig_start(&rig, true);
    rig_configure(&rig, "    modus: act\n", "");
    rig_signal(rig.daemon, SIGHUP);
    rig_until(&rig, "SELECT count(*) FROM v_events WHERE kind = 'config' AND text LIKE '%modus%'");
    trigger(&rig);
    rig_until_state(&rig, 1, "done");
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE intended_ms"), 0);
    rig_configure(&rig, "    mode: act\n", "");
    rig_signal(rig.daemon, SIGHUP);
    rig_until(&rig, "SELECT count(*) FROM v_events WHERE text = 'read again'");
    trigger(&rig);
    rig_until_state(&rig, 2, "done");
    assert_true(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE state = 'applied'") > 0);
    rig_check(&rig);
    rig_stop(&rig);
    rig_close(&rig);
}

static void test_observed_plan_when_applied_later_then_moves_as_planned(void **state)
{
    (void)state;
    struct rig rig;
    AUTO_BUF struct buf answer = BUF_INIT;
    rig_open(&rig, 50, "", "");
    rig_start(&rig, true);
    trigger(&rig);
    rig_until_state(&rig, 1, "done");
    command(&rig, "{\"v\":1,\"command\":\"apply\",\"cycle\":1}");
    rig_until_state(&rig, 2, "done");
    assert_true(rig_number(&rig, "SELECT moves_applied FROM v_cycles WHERE cycle_id = 2") > 0);
    assert_int_equal(rig_ask(&rig, "{\"v\":1,\"command\":\"apply\",\"cycle\":1}", &answer), 0);
    rig_until_state(&rig, 3, "failed"); /* what it started from is not there any more */
    AUTO_FREE char *reason = rig_text(&rig, "SELECT reason FROM v_cycles WHERE cycle_id = 3");
    assert_non_null(strstr(reason, "base has changed"));
    rig_stop(&rig);
    rig_close(&rig);
}

static bool slower_while_settling(double speed, const void *ctx)
{
    (void)ctx;
    struct rig rig;
    rig_open(&rig, speed, "    mode: act\n    worse_tolerance: 0.1\n", "");
    rig_start(&rig, true);
    trigger(&rig);
    if (!rig_catch_state(&rig, "settling"))
        return too_late(&rig);
    rig_fault(&rig, "{\"kind\":\"load\",\"factor\":70}"); /* a host that holds all is overrun */
    rig_until(&rig, "SELECT count(*) FROM v_cycles WHERE state IN ('done', 'undone')");
    if (rig_number(&rig, "SELECT count(*) FROM v_cycles WHERE state = 'done'"))
        return too_late(&rig); /* the time that is measured was nearly over */
    AUTO_FREE char *reason = rig_text(&rig, "SELECT reason FROM v_cycles WHERE cycle_id = 1");
    print_message("%s\n", reason);
    assert_non_null(strstr(reason, "slower than before: "));
    rig_check(&rig);
    rig_stop(&rig);
    rig_close(&rig);
    return true;
}

static void test_verification_when_the_application_got_slower_then_undone_with_numbers(void **state)
{
    (void)state;
    rig_play(slower_while_settling, NULL);
}

static void test_move_that_never_gets_ready_then_put_back_and_the_plan_stops(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 50, "    mode: act\n    max_parallel: 1\n    ready_timeout: 40s\n", "");
    rig_start(&rig, true);
    rig_fault(&rig, "{\"kind\":\"stuck-start\",\"service\":\"c\",\"host\":\"n-1\",\"times\":9}");
    trigger(&rig);
    rig_until_state(&rig, 1, "done");
    AUTO_FREE char *reason = rig_text(&rig, "SELECT reason FROM v_cycles WHERE cycle_id = 1");
    print_message("%s\n", reason);
    assert_non_null(strstr(reason, "failed"));
    AUTO_FREE char *move = rig_text(&rig, "SELECT state FROM v_moves WHERE service = 'c'");
    assert_string_equal(move, "failed");
    assert_true(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE state = 'applied'") > 0);
    assert_true(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE state = 'discarded'") > 0);
    rig_check(&rig);
    rig_stop(&rig);
    rig_close(&rig);
}

static void test_source_that_refuses_then_asked_again(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 50, "", "");
    rig_start(&rig, true);
    rig_fault(&rig, "{\"kind\":\"refuse\",\"times\":4}"); /* its client asks four times */
    trigger(&rig);
    rig_until_state(&rig, 1, "done"); /* two seconds later, with the second attempt */
    assert_true(rig_number(&rig, "SELECT ended_ms - started_ms FROM v_cycles") >= 1900);
    rig_stop(&rig);
    rig_close(&rig);
}

static void test_two_apps_then_nothing_moves_where_the_other_is_not_verified(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 50,
             "    mode: act\n    services: [a, b, c]\n    settle: 10h\n    min_coverage: 0\n"
             "  - name: rug\n    cluster: cluster\n    metrics: [cluster]\n"
             "    messages: [cluster]\n    planner: hba\n    mode: act\n    soak: 0\n"
             "    services: [e, f]\n    settle: 1s\n    cooldown: 0\n    interval: 1000h\n    min_coverage: 0\n",
             "");
    rig_start(&rig, true);
    trigger(&rig);
    rig_until_state(&rig, 1, "settling");
    command(&rig, "{\"v\":1,\"command\":\"trigger\",\"app\":\"rug\"}");
    rig_until_state(&rig, 2, "done"); /* meanwhile: settling does not hold the token */
    AUTO_FREE char *first = rig_text(&rig, "SELECT state FROM v_cycles WHERE cycle_id = 1");
    assert_string_equal(first, "settling");
    assert_true(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE cycle_id = 1 AND "
                                 "state = 'applied' AND target = 'n-1'") > 0);
    assert_true(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE cycle_id = 2 AND "
                                 "reason LIKE '%under verification by another cycle%'") > 0);
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE cycle_id = 2 AND "
                                      "state = 'applied' AND 'n-1' IN (source, target)"),
                     0);
    rig_stop(&rig);
    rig_close(&rig);
}

static void test_release_then_counts_first_and_takes_the_marks_off(void **state)
{
    (void)state;
    struct rig rig;
    AUTO_BUF struct buf answer = BUF_INIT;
    AUTO_BUF struct buf out = BUF_INIT;
    rig_open(&rig, 50, "    mode: act\n", "");
    rig_start(&rig, true);
    trigger(&rig);
    rig_until_state(&rig, 1, "done");
    assert_int_equal(rig_ask(&rig, "{\"v\":1,\"command\":\"release\",\"app\":\"rug\"}", &answer),
                     -1);
    assert_string_equal(answer.data, "rug: no such app");
    assert_int_equal(rig_remap(&rig, &out, (const char *const[]){"release", "rig", "b", NULL}), 0);
    assert_string_equal(out.data, "0 replicas restart, one service after the other\n");
    rig_until(&rig, "SELECT count(*) FROM v_events WHERE kind = 'release' AND text = 'released'");
    AUTO_BUF struct buf journal = BUF_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(file_read(rig.journal, 1 << 20, &journal, &err), 0);
    const char *line = strstr(journal.data, "\"do\":\"release\"");
    assert_non_null(line);
    assert_non_null(strstr(line, "\"service\":\"b\""));
    assert_null(strstr(line + 1, "\"do\":\"release\"")); /* counting takes nothing off */
    rig_stop(&rig);
    rig_close(&rig);
}

static void test_plan_that_does_not_hold_then_cycle_fails_and_nothing_moves(void **state)
{
    (void)state;
    struct rig rig;
    AUTO_FREE char *stages = mem_printf("libexec_dir: %s\n", REMAP_TEST_LIARS);
    rig_open(&rig, 50, "    mode: act\n", stages);
    rig_start(&rig, true);
    trigger(&rig);
    rig_until_state(&rig, 1, "failed");
    AUTO_FREE char *reason = rig_text(&rig, "SELECT reason FROM v_cycles WHERE cycle_id = 1");
    assert_non_null(strstr(reason, "planner: move 1 (b-"));
    assert_non_null(strstr(reason, "is not on its source"));
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_moves"), 0);
    rig_stop(&rig);
    rig_close(&rig);
}

/* Without what its progress adds to the deadline (of 3 s) no attempt of the three would end by itself. */
static void test_progress_of_a_planner_then_its_deadline_is_put_off(void **state)
{
    (void)state;
    struct rig rig;
    AUTO_FREE char *global =
        mem_printf("stage_deadline: 2s\nlibexec_dir: %s\n", REMAP_TEST_SLOW);
    rig_open(&rig, 50, "    mode: act\n    time_limit: 1s\n    planner_min_gain: 0.25\n", global);
    rig_start(&rig, true);
    trigger(&rig);
    rig_until_state(&rig, 1, "planning");
    rig_until_state(&rig, 1, "done");
    AUTO_FREE char *reason = rig_text(&rig, "SELECT reason FROM v_cycles WHERE cycle_id = 1");
    assert_string_equal(reason, "no moves: worked for two deadlines, a restart costs 0.25");
    rig_stop(&rig);
    rig_close(&rig);
}

static void test_deploy_event_on_the_wire_then_cycle_superseded_and_timer_reset(void **state)
{
    (void)state;
    struct rig rig;
    AUTO_FREE char *stages = mem_printf("libexec_dir: %s\n", REMAP_TEST_STAGES);
    rig_open(&rig, 1, "    mode: act\n", stages);
    rig_start(&rig, true);
    int64_t before = rig_number(&rig, "SELECT next_due_ms FROM apps WHERE app = 'rig'");
    trigger(&rig); /* the monitor of this test announces a deployment before it answers */
    rig_until_state(&rig, 1, "superseded");
    AUTO_FREE char *reason = rig_text(&rig, "SELECT reason FROM v_cycles WHERE cycle_id = 1");
    assert_string_equal(reason, "a deployment: release 7");
    rig_until(&rig, "SELECT count(*) FROM v_events WHERE kind = 'deploy' AND app = 'rig'");
    AUTO_FREE char *changed = mem_printf(
        "SELECT count(*) FROM apps WHERE app = 'rig' AND next_due_ms <> %lld", (long long)before);
    rig_until(&rig, changed);
    int64_t after = rig_number(&rig, "SELECT next_due_ms FROM apps WHERE app = 'rig'");
    int64_t at = rig_number(&rig, "SELECT at_ms FROM v_events WHERE kind = 'deploy'");
    assert_in_range(after, at + 1800000, at + 1800000 + RIG_PATIENCE_MS); /* the event's: 30 min */
    rig_stop(&rig);
    rig_close(&rig);
}

/* A second process with the name of a stage, of the same user: the bus hands the name over to it. */
static pid_t impostor(const struct rig *rig, int lifeline)
{
    AUTO_FREE char *bus = mem_printf("ipc://%s/bus", rig->run_dir);
    AUTO_FREE char *fd = mem_printf("%d", lifeline);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        execl(REMAP_BIN_DIR "/remap-monitor", "remap-monitor", "--bus", bus, "--lifeline", fd,
              "--run-dir", rig->run_dir, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

static void test_stage_when_its_name_was_taken_on_the_bus_then_restarted(void **state)
{
    (void)state;
    struct rig rig;
    int lifeline[2];
    rig_open(&rig, 50, "", "");
    rig_start(&rig, true);
    assert_int_equal(pipe(lifeline), 0);
    pid_t pid = impostor(&rig, lifeline[0]);
    int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;
    for (bool heard = false; !heard;) {
        struct err err = ERR_INIT;
        AUTO_BUF struct buf log = BUF_INIT;
        assert_int_equal(file_read(rig.log, 1 << 20, &log, &err), 0);
        heard = strstr(log.data, "is not the monitor") != NULL;
        assert_true(clock_mono_ms() < until);
        clock_sleep_ms(10);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(lifeline[0]);
    close(lifeline[1]);
    trigger(&rig);
    rig_until_state(&rig, 1, "done");
    rig_stop(&rig);
    rig_close(&rig);
}

static void test_proposal_when_the_next_plan_is_the_same_then_it_stays(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 50, "    mode: propose\n", "");
    rig_start(&rig, true);
    trigger(&rig);
    rig_until_state(&rig, 1, "proposed");
    trigger(&rig);
    rig_until_state(&rig, 2, "done");
    AUTO_FREE char *reason = rig_text(&rig, "SELECT reason FROM v_cycles WHERE cycle_id = 2");
    assert_string_equal(reason, "the same moves as cycle 1 proposes");
    rig_until_state(&rig, 1, "proposed");
    command(&rig, "{\"v\":1,\"command\":\"apply\",\"cycle\":1}");
    rig_until_state(&rig, 1, "done");
    assert_true(rig_number(&rig, "SELECT moves_applied > 0 FROM v_cycles WHERE cycle_id = 1"));
    rig_check(&rig);
    rig_stop(&rig);
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_daemon_on_the_run_directory_then_refuses_with_one_line),
        cmocka_unit_test(test_disk_full_while_saving_then_cycle_fails_daemon_lives_and_recovers),
        cmocka_unit_test(test_disk_full_while_executing_then_intended_moves_are_cleared_up),
        cmocka_unit_test(test_sigterm_while_executing_then_move_is_finished_and_next_start_goes_on),
        cmocka_unit_test(test_pause_survives_a_restart),
        cmocka_unit_test(test_sighup_with_a_bad_file_then_old_configuration_stays_and_says_so),
        cmocka_unit_test(test_observed_plan_when_applied_later_then_moves_as_planned),
        cmocka_unit_test(
            test_verification_when_the_application_got_slower_then_undone_with_numbers),
        cmocka_unit_test(test_move_that_never_gets_ready_then_put_back_and_the_plan_stops),
        cmocka_unit_test(test_source_that_refuses_then_asked_again),
        cmocka_unit_test(test_two_apps_then_nothing_moves_where_the_other_is_not_verified),
        cmocka_unit_test(test_release_then_counts_first_and_takes_the_marks_off),
        cmocka_unit_test(test_plan_that_does_not_hold_then_cycle_fails_and_nothing_moves),
        cmocka_unit_test(test_stage_when_its_name_was_taken_on_the_bus_then_restarted),
        cmocka_unit_test(test_progress_of_a_planner_then_its_deadline_is_put_off),
        cmocka_unit_test(test_deploy_event_on_the_wire_then_cycle_superseded_and_timer_reset),
        cmocka_unit_test(test_proposal_when_the_next_plan_is_the_same_then_it_stays),
    };
    if (argc > 1) /* a pattern of test names */
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
