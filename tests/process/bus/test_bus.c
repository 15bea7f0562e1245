/* The bus and the supervisor with real processes and real ZeroMQ (design.md 3). The stages are
 * scripted_stage.c under the four names, in the folder of this program. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/manager/filter.h"
#include "model/manager/supervisor.h"
#include "model/wire/bus.h"
#include "model/wire/rundir.h"

#define PATIENCE_MS 300000 /* of a test, for something that must happen */
#define MAX_SEEN 512

struct seen {
    enum party from;
    struct envelope env;
    char peer[40];
    char text[200]; /* the beginning of the body */
    size_t size;
};

struct manager {
    char *dir;
    int lock;
    struct loop *loop;
    struct bus *bus;
    struct supervisor *supervisor;
    struct seen seen[MAX_SEEN];
    size_t n_seen;
    int64_t hello_pid[PARTY_N];
    int hellos[PARTY_N], deaths[PARTY_N];
    char how[PARTY_N][96], refused[200], gave_up[300];
    bool stopped;
};

static void on_hello(void *ctx, enum party stage, int64_t pid)
{
    struct manager *m = ctx;
    m->hello_pid[stage] = pid;
    m->hellos[stage]++;
}

static void on_received(void *ctx, enum party from, const char *peer, const struct envelope *env,
                        const char *body, size_t size)
{
    struct manager *m = ctx;
    assert_true(m->n_seen < MAX_SEEN);
    struct seen *s = &m->seen[m->n_seen++];
    *s = (struct seen){.from = from, .env = *env, .size = size};
    snprintf(s->peer, sizeof s->peer, "%s", peer);
    snprintf(s->text, sizeof s->text, "%.*s", (int)(size < 150 ? size : 150), body);
}

static void on_refused(void *ctx, const char *peer, const char *why)
{
    struct manager *m = ctx;
    snprintf(m->refused, sizeof m->refused, "%s: %s", peer, why);
}

static void on_started(void *ctx, enum party stage, int64_t pid)
{
    (void)ctx;
    (void)stage;
    (void)pid;
}

static void on_died(void *ctx, enum party stage, int64_t pid, const char *how)
{
    struct manager *m = ctx;
    (void)pid;
    m->deaths[stage]++;
    snprintf(m->how[stage], sizeof m->how[stage], "%s", how);
}

static void on_gave_up(void *ctx, enum party stage, const char *line)
{
    struct manager *m = ctx;
    (void)stage;
    snprintf(m->gave_up, sizeof m->gave_up, "%s", line);
}

static void on_stopped(void *ctx)
{
    struct manager *m = ctx;
    m->stopped = true;
}

static const struct bus_events bus_events = {on_hello, on_received, on_refused};
static const struct supervisor_events supervisor_events = {on_started, on_died, on_gave_up,
                                                           on_stopped};

static bool all_here(const struct manager *m)
{
    return m->hellos[PARTY_MONITOR] && m->hellos[PARTY_ANALYZER] && m->hellos[PARTY_PLANNER] &&
           m->hellos[PARTY_EXECUTOR];
}

/* Turns the loop until the condition holds. */
#define UNTIL(m, condition)                                                                        \
    do {                                                                                           \
        int64_t until_ = clock_mono_ms() + PATIENCE_MS;                                            \
        while (!(condition)) {                                                                     \
            struct err err_ = ERR_INIT;                                                            \
            assert_true(clock_mono_ms() < until_);                                                 \
            assert_int_equal(loop_turn((m)->loop, 100, &err_), 0);                                 \
        }                                                                                          \
    } while (0)

static struct manager *manager_start(void)
{
    struct manager *m = mem_alloc(sizeof *m);
    struct err err = ERR_INIT;
    m->dir = mem_strdup("/tmp/remap-bus-XXXXXX");
    assert_non_null(mkdtemp(m->dir));
    m->loop = loop_new();
    assert_int_equal(rundir_lock(m->dir, 0, &m->lock, &err), 0);
    assert_int_equal(
        supervisor_open(m->loop, m->dir, NULL, &supervisor_events, m, &m->supervisor, &err), 0);
    assert_int_equal(bus_open(m->loop, m->dir, &bus_events, m, &m->bus, &err), 0);
    UNTIL(m, all_here(m));
    return m;
}

static void dir_drop(char *dir)
{
    static const char *const names[] = {"bus", "lock", "stages.lock"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *path = mem_printf("%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    free(dir);
}

static int setup(void **state)
{
    *state = manager_start();
    return 0;
}

static int teardown(void **state)
{
    struct manager *m = *state;
    supervisor_free(m->supervisor);
    bus_free(m->bus);
    loop_free(m->loop);
    close(m->lock);
    dir_drop(m->dir);
    free(m);
    return 0;
}

static void ask(struct manager *m, enum party stage, enum message_type type, int64_t attempt,
                const char *body)
{
    struct err err = ERR_INIT;
    struct envelope env = {.type = type, .cycle = 7, .attempt = attempt};
    struct buf text = BUF_INIT;
    buf_puts(&text, body);
    assert_int_equal(bus_send(m->bus, stage, &env, &text, &err), 0);
    assert_null(text.data);
}

static const struct seen *last_seen(const struct manager *m)
{
    return m->n_seen ? &m->seen[m->n_seen - 1] : NULL;
}

static bool answered(const struct manager *m)
{
    const struct seen *s = last_seen(m);
    return s && (s->env.type == MSG_RESULT || s->env.type == MSG_FAILURE);
}

static void test_stages_when_started_say_hello_with_their_pid(void **state)
{
    struct manager *m = *state;
    for (enum party p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++) {
        assert_int_equal(m->hello_pid[p], supervisor_pid(m->supervisor, p));
        assert_int_equal(m->hellos[p], 1);
    }
    assert_string_equal(m->refused, "");
}

static void test_result_when_handled_carries_cycle_and_attempt(void **state)
{
    struct manager *m = *state;
    ask(m, PARTY_PLANNER, MSG_PLAN, 3, "{\"do\":\"note\"}");
    UNTIL(m, answered(m));
    assert_int_equal(m->n_seen, 2);
    assert_int_equal(m->seen[0].env.type, MSG_PROGRESS);
    assert_string_equal(
        m->seen[0].text,
        "{\"v\":1,\"done\":0,\"note\":{\"kind\":\"odd\",\"text\":\"a \\\"note\\\"\"}}");
    assert_int_equal(m->seen[1].env.type, MSG_RESULT);
    assert_int_equal(m->seen[1].env.cycle, 7);
    assert_int_equal(m->seen[1].env.attempt, 3);
    assert_int_equal(m->seen[1].from, PARTY_PLANNER);
    assert_string_equal(m->seen[1].text, "{\"done\":true}");
}

static void test_failure_when_a_handler_fails_carries_kind_and_text(void **state)
{
    struct manager *m = *state;
    char body[64];
    snprintf(body, sizeof body, "{\"do\":\"fly\",\"n\":%d}", ERR_UNREACHABLE);
    ask(m, PARTY_ANALYZER, MSG_ANALYZE, 1, body);
    UNTIL(m, answered(m));
    assert_int_equal(last_seen(m)->env.type, MSG_FAILURE);
    assert_string_equal(last_seen(m)->text,
                        "{\"v\":1,\"kind\":\"unreachable\",\"text\":\"cannot fly\"}");
}

static void check_events_of_a_leaving_stage(struct manager *m, const char *request, size_t n,
                                            size_t size)
{
    struct envelope stop = {.type = MSG_STOP};
    struct err err = ERR_INIT;
    /* The stage leaves as soon as it has handed in everything, most of it still unsent. */
    ask(m, PARTY_MONITOR, MSG_COLLECT, 1, request);
    UNTIL(m, m->n_seen >= 1);
    assert_int_equal(bus_send(m->bus, PARTY_MONITOR, &stop, NULL, &err), 0);
    UNTIL(m, answered(m));
    assert_int_equal(m->n_seen, n + 1);
    for (size_t i = 0; i < n; i++) {
        char head[40];
        snprintf(head, sizeof head, "{\"v\":1,\"n\":%zu,", i + 1);
        assert_int_equal(m->seen[i].env.type, MSG_EVENT);
        assert_int_equal(m->seen[i].env.id, i + 1);
        assert_int_equal(m->seen[i].size, size);
        assert_memory_equal(m->seen[i].text, head, strlen(head));
    }
    UNTIL(m, m->deaths[PARTY_MONITOR] == 1);
    assert_string_equal(m->how[PARTY_MONITOR], "exit code 0");
}

static void test_large_messages_when_a_stage_leaves_at_once_all_arrive(void **state)
{
    check_events_of_a_leaving_stage(*state, "{\"do\":\"events\",\"n\":20,\"size\":20000000}", 20,
                                    20000000);
}

/* More than both high-water marks: most wait in the outbox. */
static void test_many_messages_when_a_stage_leaves_at_once_all_arrive(void **state)
{
    check_events_of_a_leaving_stage(*state, "{\"do\":\"events\",\"n\":500,\"size\":100000}", 500,
                                    100000);
}

static void test_event_when_stored_tells_its_sender(void **state)
{
    struct manager *m = *state;
    ask(m, PARTY_MONITOR, MSG_COLLECT, 1, "{\"do\":\"event\"}");
    UNTIL(m, m->n_seen == 1);
    assert_int_equal(m->seen[0].env.type, MSG_EVENT);
    struct envelope stored = {.type = MSG_STORED, .id = m->seen[0].env.id};
    struct buf body = BUF_INIT;
    struct err err = ERR_INIT;
    buf_puts(&body, "{\"v\":1,\"id\":4711}");
    assert_int_equal(bus_send(m->bus, PARTY_MONITOR, &stored, &body, &err), 0);
    UNTIL(m, answered(m));
    assert_string_equal(last_seen(m)->text, "{\"row\":4711}");
}

static void test_intent_when_another_is_granted_still_waits_for_its_own(void **state)
{
    struct manager *m = *state;
    struct err err = ERR_INIT;
    ask(m, PARTY_EXECUTOR, MSG_EXECUTE, 2, "{\"do\":\"intent\",\"n\":5}");
    UNTIL(m, m->n_seen == 1);
    assert_int_equal(m->seen[0].env.type, MSG_INTENT);
    assert_int_equal(m->seen[0].env.seq, 5);
    struct envelope wrong[] = {
        {.type = MSG_PROCEED, .cycle = 7, .attempt = 2, .seq = 4},
        {.type = MSG_PROCEED, .cycle = 7, .attempt = 1, .seq = 5},
        {.type = MSG_PROCEED, .cycle = 6, .attempt = 2, .seq = 5},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(bus_send(m->bus, PARTY_EXECUTOR, &wrong[i], NULL, &err), 0);
    }
    for (int64_t until = clock_mono_ms() + 200; clock_mono_ms() < until;) {
        assert_int_equal(loop_turn(m->loop, 50, &err), 0);
    }
    assert_int_equal(m->n_seen, 1);
    struct envelope right = {.type = MSG_PROCEED, .cycle = 7, .attempt = 2, .seq = 5};
    assert_int_equal(bus_send(m->bus, PARTY_EXECUTOR, &right, NULL, &err), 0);
    UNTIL(m, answered(m));
    assert_int_equal(last_seen(m)->env.type, MSG_RESULT);
}

static void test_stop_when_of_a_request_ends_it_and_the_stage_stays(void **state)
{
    struct manager *m = *state;
    struct err err = ERR_INIT;
    struct envelope other = {.type = MSG_STOP, .cycle = 7, .attempt = 1};
    struct envelope stop = {.type = MSG_STOP, .cycle = 7, .attempt = 2};
    ask(m, PARTY_PLANNER, MSG_PLAN, 2, "{\"do\":\"work\",\"n\":1000000,\"size\":50}");
    UNTIL(m, m->n_seen >= 3);
    assert_int_equal(bus_send(m->bus, PARTY_PLANNER, &other, NULL, &err), 0);
    size_t before = m->n_seen;
    UNTIL(m, m->n_seen >= before + 3);
    assert_int_equal(last_seen(m)->env.type, MSG_PROGRESS);
    assert_int_equal(bus_send(m->bus, PARTY_PLANNER, &stop, NULL, &err), 0);
    UNTIL(m, answered(m));
    assert_string_equal(last_seen(m)->text, "{\"v\":1,\"kind\":\"refused\",\"text\":\"stopped\"}");
    m->n_seen = 0;
    ask(m, PARTY_PLANNER, MSG_PLAN, 3, "{\"do\":\"work\",\"n\":1,\"size\":1}");
    UNTIL(m, answered(m));
    assert_int_equal(last_seen(m)->env.type, MSG_RESULT);
    assert_int_equal(m->deaths[PARTY_PLANNER], 0);
}

static void test_stop_when_right_behind_its_request_still_ends_it(void **state)
{
    struct manager *m = *state;
    struct err err = ERR_INIT;
    struct envelope stop = {.type = MSG_STOP, .cycle = 7, .attempt = 2};
    ask(m, PARTY_PLANNER, MSG_PLAN, 2, "{\"do\":\"work\",\"n\":1000000,\"size\":50}");
    assert_int_equal(bus_send(m->bus, PARTY_PLANNER, &stop, NULL, &err), 0);
    UNTIL(m, answered(m));
    assert_int_equal(last_seen(m)->env.type, MSG_FAILURE);
}

static void test_supervisor_when_stopped_lets_a_move_finish(void **state)
{
    struct manager *m = *state;
    ask(m, PARTY_EXECUTOR, MSG_EXECUTE, 1, "{\"do\":\"finish-move\"}");
    UNTIL(m, m->n_seen == 1); /* it is at work */
    supervisor_stop(m->supervisor, PATIENCE_MS);
    UNTIL(m, m->stopped);
    UNTIL(m, answered(m));
    assert_string_equal(last_seen(m)->text, "{\"done\":true}");
    for (enum party p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++) {
        assert_int_equal(m->deaths[p], 1);
        assert_int_equal(supervisor_pid(m->supervisor, p), 0);
    }
    assert_string_equal(m->how[PARTY_EXECUTOR], "exit code 0");
}

static void test_supervisor_when_a_stage_will_not_stop_kills_it(void **state)
{
    struct manager *m = *state;
    ask(m, PARTY_PLANNER, MSG_PLAN, 1, "{\"do\":\"work\",\"n\":1,\"size\":1}");
    UNTIL(m, answered(m));
    m->n_seen = 0;
    ask(m, PARTY_PLANNER, MSG_PLAN, 2, "{\"do\":\"hang\"}");
    UNTIL(m, m->n_seen == 1); /* it hangs */
    supervisor_stop(m->supervisor, 200);
    UNTIL(m, m->stopped);
    assert_string_equal(m->how[PARTY_PLANNER], "signal 9 (Killed)");
}

static void test_supervisor_when_a_stage_hangs_kills_it_and_the_next_life_answers(void **state)
{
    struct manager *m = *state;
    int64_t first = m->hello_pid[PARTY_PLANNER];
    supervisor_set_busy(m->supervisor, PARTY_PLANNER, true);
    ask(m, PARTY_PLANNER, MSG_PLAN, 1, "{\"do\":\"hang\"}");
    supervisor_kill(m->supervisor, PARTY_PLANNER);
    UNTIL(m, m->hellos[PARTY_PLANNER] == 2);
    assert_int_equal(m->deaths[PARTY_PLANNER], 1);
    assert_string_equal(m->how[PARTY_PLANNER], "signal 9 (Killed)");
    assert_true(m->hello_pid[PARTY_PLANNER] != first);
    assert_int_equal(supervisor_restarts(m->supervisor, PARTY_PLANNER), 1);
    ask(m, PARTY_PLANNER, MSG_PLAN, 2, "{\"do\":\"big\",\"n\":1,\"size\":100}");
    UNTIL(m, answered(m));
    assert_int_equal(last_seen(m)->env.attempt, 2);
}

static void test_supervisor_when_a_stage_dies_idle_three_times_gives_up(void **state)
{
    struct manager *m = *state;
    for (int i = 1; !m->gave_up[0]; i++) { /* thrice, unless the machine takes 30 s for that */
        UNTIL(m, m->hellos[PARTY_ANALYZER] == i);
        kill((pid_t)m->hello_pid[PARTY_ANALYZER], SIGKILL);
        UNTIL(m, m->deaths[PARTY_ANALYZER] == i);
        assert_true(i >= 3 || !m->gave_up[0]);
        assert_true(i < 30);
    }
    assert_non_null(strstr(m->gave_up, "remap-analyzer died 3 times within 30 s without a request "
                                       "(last: signal 9 (Killed))"));
}

/* A manager in a process of its own: writes 'x' once its stages live and one of them hangs. */
static void manager_process(int ready, const char *dir)
{
    struct manager *m = mem_alloc(sizeof *m);
    struct err err = ERR_INIT;
    m->loop = loop_new();
    m->dir = mem_strdup(dir);
    if (rundir_lock(dir, 0, &m->lock, &err) < 0 ||
        supervisor_open(m->loop, dir, NULL, &supervisor_events, m, &m->supervisor, &err) < 0 ||
        bus_open(m->loop, dir, &bus_events, m, &m->bus, &err) < 0) {
        _exit(3);
    }
    while (!all_here(m)) {
        loop_turn(m->loop, 100, &err);
    }
    ask(m, PARTY_PLANNER, MSG_PLAN, 1, "{\"do\":\"hang\"}");
    ask(m, PARTY_MONITOR, MSG_COLLECT, 1, "{\"do\":\"work\",\"n\":1000000,\"size\":1000}");
    while (!m->n_seen) {
        loop_turn(m->loop, 100, &err);
    }
    if (write(ready, "x", 1) != 1) {
        _exit(4);
    }
    for (;;) {
        pause();
    }
}

static void test_stages_when_their_manager_is_killed_end(void **state)
{
    (void)state;
    int ready[2], lock, status;
    char c, *dir = mem_strdup("/tmp/remap-bus-XXXXXX");
    struct err err = ERR_INIT;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(pipe(ready), 0);
    pid_t manager = fork();
    if (manager == 0) {
        manager_process(ready[1], dir);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(rundir_lock(dir, 0, &lock, &err), -1); /* it lives */
    kill(manager, SIGKILL);
    assert_int_equal(waitpid(manager, &status, 0), manager);
    assert_int_equal(rundir_lock(dir, PATIENCE_MS, &lock, &err), 0);
    close(lock);
    close(ready[0]);
    dir_drop(dir);
}

/* Runs bus_command in a child; the exit status tells what came of it. */
static pid_t command_process(const char *dir)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct err err = ERR_INIT;
        struct buf result = BUF_INIT;
        const char *body = "{\"v\":1,\"command\":\"pause\"}";
        if (bus_command(dir, body, strlen(body), PATIENCE_MS, &result, &err) == 0) {
            _exit(strcmp(result.data, "{\"v\":1,\"ok\":true}") == 0 ? 0 : 10);
        }
        _exit(err.kind == ERR_CONFLICT && strcmp(err.text, "no") == 0 ? 1 : 11);
    }
    return pid;
}

static void check_command(struct manager *m, enum message_type answer, const char *body, int exits)
{
    int status;
    struct buf text = BUF_INIT;
    m->n_seen = 0;
    pid_t pid = command_process(m->dir);
    UNTIL(m, m->n_seen == 1);
    assert_int_equal(m->seen[0].from, PARTY_CLI);
    assert_int_equal(m->seen[0].env.type, MSG_COMMAND);
    assert_string_equal(m->seen[0].text, "{\"v\":1,\"command\":\"pause\"}");
    buf_puts(&text, body);
    bus_answer(m->bus, m->seen[0].peer, answer, &text);
    buf_wipe(&text);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), exits);
}

static void test_command_when_answered_gets_the_document_or_the_error(void **state)
{
    check_command(*state, MSG_RESULT, "{\"v\":1,\"ok\":true}", 0);
    check_command(*state, MSG_FAILURE, "{\"v\":1,\"kind\":\"conflict\",\"text\":\"no\"}", 1);
}

static void test_command_when_nobody_answers_times_out(void **state)
{
    struct manager *m = *state;
    struct err err = ERR_INIT;
    AUTO_BUF struct buf result = BUF_INIT;
    assert_int_equal(bus_command(m->dir, "{}", 2, 50, &result, &err), -1);
    assert_int_equal(err_exit_code(err.kind), 1); /* 4 is a planner's time limit */
    assert_non_null(strstr(err.text, "did not answer"));
}

static void test_command_when_no_daemon_runs_says_so(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_BUF struct buf result = BUF_INIT;
    assert_int_equal(bus_command("/nonexistent/run", "{}", 2, 1000, &result, &err), -1);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_string_equal(err.text, "/nonexistent/run: no daemon runs here");
}

static void test_send_when_the_stage_is_unknown_is_unreachable_and_keeps_the_body(void **state)
{
    struct manager *m = *state;
    struct err err = ERR_INIT;
    struct envelope env = {.type = MSG_PLAN, .cycle = 1, .attempt = 1};
    struct manager *other = mem_alloc(sizeof *other);
    AUTO_FREE char *dir = mem_printf("%s/x", m->dir);
    AUTO_BUF struct buf body = BUF_INIT;
    assert_int_equal(rundir_lock(dir, 0, &other->lock, &err), 0);
    assert_int_equal(bus_open(m->loop, dir, &bus_events, other, &other->bus, &err), 0);
    buf_puts(&body, "{}");
    assert_int_equal(bus_send(other->bus, PARTY_PLANNER, &env, &body, &err), -1);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_string_equal(body.data, "{}");
    bus_free(other->bus);
    close(other->lock);
    free(other);
    dir_drop(steal(dir));
}

/* --- as filters --- */

struct filter_case {
    const char *request;
    int done, exit_code;
    enum err_kind kind;
    const char *text; /* of the result or the error */
};

static void test_filter_when_run_gives_result_or_error(void **state)
{
    (void)state;
    static const struct filter_case cases[] = {
        {"{\"do\":\"work\",\"n\":1,\"size\":1}", 0, 0, ERR_NONE, "{\"done\":true}"},
        {"{\"do\":\"intent\",\"n\":1}", 0, 0, ERR_NONE, "{\"done\":true}"},
        {"{\"do\":\"exit-code\",\"n\":3}", 0, 3, ERR_NONE, "{\"done\":true}"},
        {"{\"do\":\"fly\",\"n\":2}", -1, 0, ERR_INPUT, "cannot fly"},
        {"{\"do\":\"fly\",\"n\":5}", -1, 0, ERR_INFEASIBLE, "cannot fly"},
        {"{\"do\":\"fly\",\"n\":10}", -1, 0, ERR_IO, "cannot fly"},
        {"{\"do\":\"fly\",\"m\":10}", -1, 0, ERR_INPUT, NULL},
        {"", -1, 0, ERR_INPUT, NULL},
        {"{\"do\":\"die\"}", -1, 0, ERR_INTERNAL, "remap-planner: signal 6 (Aborted)"},
    };
    assert_int_equal(ERR_CONFIG, 2);
    assert_int_equal(ERR_INFEASIBLE, 5);
    assert_int_equal(ERR_REFUSED, 9);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;
        AUTO_BUF struct buf result = BUF_INIT;
        int exit_code = 0;
        assert_int_equal(stage_filter_run(PARTY_PLANNER, MSG_PLAN, cases[i].request,
                                          strlen(cases[i].request), false, &result, &exit_code,
                                          &err),
                         cases[i].done);
        assert_int_equal(exit_code, cases[i].exit_code);
        assert_int_equal(err.kind, cases[i].kind);
        if (cases[i].text) {
            assert_string_equal(cases[i].done < 0 ? err.text : result.data, cases[i].text);
        }
    }
}

static void test_filter_when_both_documents_are_large_does_not_lock_up(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_BUF struct buf request = BUF_INIT, result = BUF_INIT;
    int exit_code = 0;
    buf_puts(&request, "{\"do\":\"big\",\"n\":1,\"size\":3000000}");
    for (int i = 0; i < 3000000; i++) {
        buf_puts(&request, " ");
    }
    assert_int_equal(stage_filter_run(PARTY_PLANNER, MSG_PLAN, request.data, request.size, false,
                                      &result, &exit_code, &err),
                     0);
    assert_int_equal(result.size, 3000000);
}

static void test_filter_when_it_does_not_know_the_request_is_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_BUF struct buf result = BUF_INIT;
    int exit_code = 0;
    assert_int_equal(
        stage_filter_run(PARTY_PLANNER, MSG_IMPORT, "{}", 2, false, &result, &exit_code, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    assert_non_null(strstr(err.text, "--filter import: no such request here"));
}

int main(void)
{
#define WITH_MANAGER(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_MANAGER(test_stages_when_started_say_hello_with_their_pid),
        WITH_MANAGER(test_result_when_handled_carries_cycle_and_attempt),
        WITH_MANAGER(test_failure_when_a_handler_fails_carries_kind_and_text),
        WITH_MANAGER(test_large_messages_when_a_stage_leaves_at_once_all_arrive),
        WITH_MANAGER(test_many_messages_when_a_stage_leaves_at_once_all_arrive),
        WITH_MANAGER(test_event_when_stored_tells_its_sender),
        WITH_MANAGER(test_intent_when_another_is_granted_still_waits_for_its_own),
        WITH_MANAGER(test_stop_when_of_a_request_ends_it_and_the_stage_stays),
        WITH_MANAGER(test_stop_when_right_behind_its_request_still_ends_it),
        WITH_MANAGER(test_supervisor_when_stopped_lets_a_move_finish),
        WITH_MANAGER(test_supervisor_when_a_stage_will_not_stop_kills_it),
        WITH_MANAGER(test_supervisor_when_a_stage_hangs_kills_it_and_the_next_life_answers),
        WITH_MANAGER(test_supervisor_when_a_stage_dies_idle_three_times_gives_up),
        WITH_MANAGER(test_command_when_answered_gets_the_document_or_the_error),
        WITH_MANAGER(test_command_when_nobody_answers_times_out),
        WITH_MANAGER(test_send_when_the_stage_is_unknown_is_unreachable_and_keeps_the_body),
        cmocka_unit_test(test_stages_when_their_manager_is_killed_end),
        cmocka_unit_test(test_command_when_no_daemon_runs_says_so),
        cmocka_unit_test(test_filter_when_run_gives_result_or_error),
        cmocka_unit_test(test_filter_when_both_documents_are_large_does_not_lock_up),
        cmocka_unit_test(test_filter_when_it_does_not_know_the_request_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
