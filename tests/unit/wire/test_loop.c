/* The loop: order of timers, removal inside callbacks, nesting, signals. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "model/base/clock.h"
#include "model/wire/loop.h"

struct trace {
    struct loop *loop;
    char text[64];
    int fds[2], more[2];
    int64_t other;
};

static void trace_add(struct trace *t, const char *what)
{
    strncat(t->text, what, sizeof t->text - strlen(t->text) - 1);
}

static void on_a(void *ctx)
{
    trace_add(ctx, "a");
}

static void on_b(void *ctx)
{
    trace_add(ctx, "b");
}

static void on_cancel(void *ctx)
{
    struct trace *t = ctx;
    trace_add(t, "c");
    loop_timer_cancel(t->loop, t->other);
}

static void on_renew(void *ctx)
{
    struct trace *t = ctx;
    trace_add(t, "r");
    loop_timer(t->loop, 0, on_renew, t);
}

static void turn(struct trace *t, int64_t max_ms)
{
    struct err err = ERR_INIT;
    assert_int_equal(loop_turn(t->loop, max_ms, &err), 0);
}

static void test_timers_when_due_together_run_in_order(void **state)
{
    (void)state;
    struct trace t = {.loop = NULL};
    for (int64_t began = -1; began != clock_mono_ms();) { /* all within the same millisecond */
        loop_free(t.loop);
        t.loop = loop_new();
        began = clock_mono_ms();
        loop_timer(t.loop, 2, on_b, &t);
        loop_timer(t.loop, 0, on_a, &t);
        loop_timer(t.loop, 0, on_b, &t);
        loop_timer(t.loop, 1, on_a, &t);
    }
    while (strlen(t.text) < 4) {
        turn(&t, 50);
    }
    assert_string_equal(t.text, "abab");
    loop_free(t.loop);
}

static void test_timer_when_cancelled_by_another_does_not_run(void **state)
{
    (void)state;
    struct trace t = {.loop = loop_new()};
    loop_timer(t.loop, 0, on_cancel, &t);
    t.other = loop_timer(t.loop, 0, on_a, &t);
    turn(&t, 0);
    turn(&t, 0);
    assert_string_equal(t.text, "c");
    loop_free(t.loop);
}

static void test_timer_when_it_renews_itself_runs_once_a_turn(void **state)
{
    (void)state;
    struct trace t = {.loop = loop_new()};
    loop_timer(t.loop, 0, on_renew, &t);
    turn(&t, 0);
    assert_string_equal(t.text, "r");
    turn(&t, 0);
    assert_string_equal(t.text, "rr");
    loop_free(t.loop);
}

static void on_nested(void *ctx, int fd, short events)
{
    struct trace *t = ctx;
    char c;
    assert_true(events & POLLIN);
    assert_int_equal(read(fd, &c, 1), 1);
    trace_add(t, "n");
    if (strcmp(t->text, "n") == 0) {
        loop_unwatch(t->loop, t->more[0]); /* ready in this very turn */
        turn(t, 0);
    }
}

static void on_more(void *ctx, int fd, short events)
{
    (void)fd;
    (void)events;
    trace_add(ctx, "m");
}

static void test_watch_when_removed_in_a_callback_is_not_called(void **state)
{
    (void)state;
    struct trace t = {.loop = loop_new()};
    assert_int_equal(pipe(t.fds) | pipe(t.more), 0);
    assert_int_equal(write(t.fds[1], "xy", 2), 2);
    assert_int_equal(write(t.more[1], "z", 1), 1);
    loop_watch(t.loop, t.fds[0], POLLIN, on_nested, &t);
    loop_watch(t.loop, t.more[0], POLLIN, on_more, &t);
    turn(&t, -1);
    assert_string_equal(t.text, "nn"); /* the second from the turn inside the first */
    turn(&t, 0);
    assert_string_equal(t.text, "nn");
    loop_free(t.loop);
    for (int i = 0; i < 2; i++) {
        close(t.fds[i]);
        close(t.more[i]);
    }
}

static void on_hangup(void *ctx, int fd, short events)
{
    (void)events;
    struct trace *t = ctx;
    trace_add(t, "h");
    loop_unwatch(t->loop, fd);
    loop_quit(t->loop);
}

static void test_watch_when_the_other_end_closes_is_called(void **state)
{
    (void)state;
    struct trace t = {.loop = loop_new()};
    struct err err = ERR_INIT;
    assert_int_equal(pipe(t.fds), 0);
    loop_watch(t.loop, t.fds[0], POLLIN, on_hangup, &t);
    close(t.fds[1]);
    assert_int_equal(loop_run(t.loop, &err), 0);
    assert_string_equal(t.text, "h");
    close(t.fds[0]);
    loop_free(t.loop);
}

static void on_signal(void *ctx, int signo)
{
    trace_add(ctx, signo == SIGUSR1 ? "1" : "2");
}

static void test_signal_when_raised_comes_through_the_loop(void **state)
{
    (void)state;
    struct trace t = {.loop = loop_new()};
    struct err err = ERR_INIT;
    assert_int_equal(loop_signal(t.loop, SIGUSR1, on_signal, &t, &err), 0);
    assert_int_equal(loop_signal(t.loop, SIGUSR2, on_signal, &t, &err), 0);
    raise(SIGUSR2);
    turn(&t, 100);
    raise(SIGUSR1);
    turn(&t, 100);
    loop_unsignal(t.loop, SIGUSR1);
    raise(SIGUSR1);
    turn(&t, 100);
    assert_string_equal(t.text, "21");
    loop_free(t.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers_when_due_together_run_in_order),
        cmocka_unit_test(test_timer_when_cancelled_by_another_does_not_run),
        cmocka_unit_test(test_timer_when_it_renews_itself_runs_once_a_turn),
        cmocka_unit_test(test_watch_when_removed_in_a_callback_is_not_called),
        cmocka_unit_test(test_watch_when_the_other_end_closes_is_called),
        cmocka_unit_test(test_signal_when_raised_comes_through_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
