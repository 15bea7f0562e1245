/* test_jaeger.c - the jaeger adapter against a real Jaeger (etc/test-servers): traces that were
 * posted in Zipkin's format come out once, though Jaeger gives each trace once per service. */
#include "adapters/jaeger/jaeger.h"
#include "model/base/clock.h"
#include "tests/contract/traces/trace_data.h"
#include "tests/support/jaeger_server.h"
#include "tests/support/temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fixture {
    char *folder;
    struct jaeger_server jaeger;
    struct trace_data data;
} fx;

static bool post(const struct trace_data *data)
{
    return trace_data_post(data, &fx.jaeger.zipkin, &fx.jaeger.query, "/tracing/api/traces/");
}

static int setup(void **state)
{
    (void)state;
    fx.folder = temp_dir_new();
    if (!jaeger_server_start(&fx.jaeger, fx.folder, "/tracing"))
        return -1;
    int64_t now = clock_wall_ms() / 1000 * 1000;
    fx.data = (struct trace_data){now - 600000, now - 60000, 2000, 200, 0};
    return post(&fx.data) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    server_stop(&fx.jaeger.query);
    temp_dir_remove(fx.folder);
    free(fx.folder);
    return 0;
}

static const char *const all[] = {NULL};
static const struct app_scope app = {"shop", all, all};

static void trace(const char *limit, const struct window *window, struct inspection *in)
{
    const struct option options[] = {{"url", fx.jaeger.url}, {"limit", limit}};
    const struct source source = {"jaeger", "jaeger", options, ARRAY_LEN(options)};
    struct err err = ERR_INIT;
    void *ctx;
    assert_int_equal(jaeger_messages.open(&source, &ctx, &err), 0);
    int rc = jaeger_messages.trace(ctx, &app, window, in, &err);
    jaeger_messages.close(ctx);
    if (rc)
        fail_msg("%s", err.text);
}

static void test_trace_when_any_limit_then_every_span_once(void **state)
{
    (void)state;
    static const char *const limits[] = {"5000", "500", "20"};
    const struct window window = {fx.data.from_ms, fx.data.to_ms + 1000};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct inspection in = trace_data_inspection();
        trace(limits[i], &window, &in);
        trace_data_verify(&fx.data, &in);
        trace_data_end(&in);
    }
}

static void test_trace_when_window_is_empty_then_nothing(void **state)
{
    (void)state;
    const struct window window = {fx.data.from_ms - 86400000, fx.data.from_ms - 86000000};
    struct inspection in = trace_data_inspection();
    trace("500", &window, &in);
    assert_int_equal(in.model->n_messages, 0);
    assert_non_null(note_find(&in, "never-traced", "shop/cart"));
    trace_data_end(&in);
}

static void test_trace_when_window_begins_within_a_call_then_its_caller_is_known(void **state)
{
    (void)state;
    /* The first trace is over before the window; of the second the server's half starts in it. */
    const struct trace_data two = {fx.data.from_ms - 500000, fx.data.from_ms - 499999, 2, 2, 0};
    assert_true(post(&two));
    const struct window window = {two.from_ms + 1, two.from_ms + 2000};
    struct inspection in = trace_data_inspection();
    trace("10", &window, &in);
    assert_int_equal(in.model->n_messages, 2);
    assert_int_equal(in.model->messages[0].count, 1);
    assert_null(note_find(&in, "missing-parent", ""));
    trace_data_end(&in);
}

static void test_check_when_traces_then_version_and_newest(void **state)
{
    (void)state;
    const struct option options[] = {{"url", fx.jaeger.url}};
    const struct source source = {"jaeger", "jaeger", options, ARRAY_LEN(options)};
    struct err err = ERR_INIT;
    struct source_report report;
    void *ctx;
    assert_int_equal(jaeger_messages.open(&source, &ctx, &err), 0);
    if (jaeger_messages.check(ctx, &app, &report, &err))
        fail_msg("%s", err.text);
    jaeger_messages.close(ctx);
    assert_true(report.reachable);
    assert_string_equal(report.seen, "traces of 2 services");
    assert_in_range(report.newest_ms, fx.data.from_ms, fx.data.to_ms);
    print_message("version \"%s\"\n", report.version);
}

int main(void)
{
    AUTO_FREE char *program = server_cached(JAEGER_PROGRAM);
    if (!program) {
        printf("SKIPPED no Jaeger in the cache (etc/test-servers builds it; it needs Go 1.24)\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_when_traces_then_version_and_newest),
        cmocka_unit_test(test_trace_when_any_limit_then_every_span_once),
        cmocka_unit_test(test_trace_when_window_is_empty_then_nothing),
        cmocka_unit_test(test_trace_when_window_begins_within_a_call_then_its_caller_is_known),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
