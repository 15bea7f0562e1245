/* test_zipkin.c - the zipkin adapter against a real Zipkin (etc/test-servers): what was posted comes
 * out once, whatever the limit cuts, 10^5 spans in bounded memory. */
#include "adapters/zipkin/zipkin.h"
#include "model/base/clock.h"
#include "adapters/identity.h"
#include "tests/contract/traces/trace_data.h"
#include "tests/support/temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define JAR "zipkin-server-3.4.4-exec.jar"
#define MEMORY_MIB 64 /* of a monitor, whatever the window holds */

static struct fixture {
    char *folder;
    struct server server;
    struct trace_data small, many, dense;
} fx;

static bool post(const struct trace_data *data)
{
    return trace_data_post(data, &fx.server, &fx.server, "/api/v2/trace/");
}

static int setup(void **state)
{
    (void)state;
    fx.folder = temp_dir_new();
    AUTO_FREE char *java = server_program("java");
    AUTO_FREE char *jar = server_cached(JAR);
    int port = server_free_port();
    AUTO_FREE char *temp = mem_printf("-Djava.io.tmpdir=%s", fx.folder);
    AUTO_FREE char *query_port = mem_printf("QUERY_PORT=%d", port);
    const char *argv[] = {"/usr/bin/env", query_port, java,  "-Xmx512m", "-XX:TieredStopAtLevel=1",
                          temp,           "-jar",     jar, NULL};
    server_start(&fx.server, "zipkin", fx.folder, port, argv);
    if (!server_wait(&fx.server, "/health"))
        return -1;
    /* Three windows, none near another. */
    int64_t now = clock_wall_ms() / 1000 * 1000;
    fx.small = (struct trace_data){now - 600000, now - 60000, 500, 100, 0};
    fx.many = (struct trace_data){now - 3600000, now - 3000000, 25000, 1000, 0};
    fx.dense = (struct trace_data){now - 7200000, now - 7199990, 400, 400, 0};
    return post(&fx.small) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    server_stop(&fx.server);
    temp_dir_remove(fx.folder);
    free(fx.folder);
    return 0;
}

static const char *const all[] = {NULL};
static const struct app_scope app = {"shop", all, all};

static int try_parallel(const char *limit, const char *parallel, const char *time_limit,
                        const struct window *window, struct inspection *in, struct err *err)
{
    const struct option options[] = {{"url", fx.server.url},
                                     {"limit", limit},
                                     {"parallel", parallel},
                                     {"time_limit", time_limit}};
    const struct source source = {"zipkin", "zipkin", options, ARRAY_LEN(options)};
    void *ctx;
    if (zipkin_messages.open(&source, &ctx, err))
        return -1;
    int rc = zipkin_messages.trace(ctx, &app, window, in, err);
    zipkin_messages.close(ctx);
    return rc;
}

static int try_trace(const char *limit, const char *time_limit, const struct window *window,
                     struct inspection *in, struct err *err)
{
    return try_parallel(limit, "4", time_limit, window, in, err);
}

static void trace(const char *limit, const struct trace_data *data, struct inspection *in)
{
    struct err err = ERR_INIT;
    const struct window window = {data->from_ms, data->to_ms + 1000};
    if (try_trace(limit, "60s", &window, in, &err))
        fail_msg("%s", err.text);
}

static void test_trace_when_any_limit_then_every_span_once(void **state)
{
    (void)state;
    static const char *const limits[] = {"1000", "100", "7"};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct inspection in = trace_data_inspection();
        trace(limits[i], &fx.small, &in);
        trace_data_verify(&fx.small, &in);
        trace_data_end(&in);
    }
}

static void test_trace_when_any_number_at_once_then_every_span_once(void **state)
{
    (void)state;
    static const char *const parallel[] = {"1", "2", "16"};
    const struct window window = {fx.small.from_ms, fx.small.to_ms + 1000};
    for (size_t i = 0; i < ARRAY_LEN(parallel); i++) {
        struct inspection in = trace_data_inspection();
        struct err err = ERR_INIT;
        if (try_parallel("50", parallel[i], "60s", &window, &in, &err))
            fail_msg("%s", err.text);
        trace_data_verify(&fx.small, &in);
        trace_data_end(&in);
    }
}

static void test_trace_when_more_in_a_millisecond_than_the_limit_then_said(void **state)
{
    (void)state;
    assert_true(post(&fx.dense));
    struct inspection in = trace_data_inspection();
    trace("10", &fx.dense, &in);
    assert_non_null(note_find(&in, "partial", "some are missing"));
    trace_data_end(&in);
    in = trace_data_inspection();
    trace("1000", &fx.dense, &in);
    trace_data_verify(&fx.dense, &in);
    trace_data_end(&in);
}

static void test_trace_when_window_is_empty_then_nothing_and_no_error(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    const struct window window = {fx.small.from_ms - 86400000, fx.small.from_ms - 86000000};
    struct inspection in = trace_data_inspection();
    assert_int_equal(try_trace("1000", "60s", &window, &in, &err), 0);
    assert_int_equal(in.model->n_messages, 0);
    assert_non_null(note_find(&in, "never-traced", "shop/cart"));
    trace_data_end(&in);
}

/* Traces of 3 s in slices of 10 s: some begin in one and go on in the next. */
static void test_trace_when_traces_lie_across_slices_then_every_span_once(void **state)
{
    (void)state;
    const struct trace_data slow = {
        fx.small.from_ms - 900000, fx.small.from_ms - 300000, 300, 300, 3000000};
    assert_true(post(&slow));
    static const char *const limits[] = {"1000", "5"};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct inspection in = trace_data_inspection();
        const struct window window = {slow.from_ms, slow.to_ms + 10000};
        struct err err = ERR_INIT;
        if (try_trace(limits[i], "60s", &window, &in, &err))
            fail_msg("%s", err.text);
        trace_data_verify(&slow, &in);
        trace_data_end(&in);
    }
}

/* Of three edges two have an end of ours, and one has none. */
static void test_trace_when_others_are_ignored_then_only_ours_lower_the_coverage(void **state)
{
    (void)state;
    static const struct {
        const char *others;
        int64_t unmapped;
    } cases[] = {{"count", 3}, {"ignore", 2}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct option options[] = {{"url", fx.server.url}, {"others", cases[i].others}};
        const struct source source = {"zipkin", "zipkin", options, ARRAY_LEN(options)};
        const struct window window = {fx.small.from_ms, fx.small.to_ms + 1000};
        struct err err = ERR_INIT;
        AUTO(model) struct model *model = model_new();
        AUTO(identity) struct identity *identity = identity_new(model);
        struct inspection in = {.model = model, .identity = identity};
        void *ctx;
        assert_int_equal(model_add_service(model, "front", &err), 0);
        assert_int_equal(zipkin_messages.open(&source, &ctx, &err), 0);
        assert_int_equal(zipkin_messages.trace(ctx, &app, &window, &in, &err), 0);
        zipkin_messages.close(ctx);
        identity_report(identity, &model->traffic);
        assert_int_equal(model->traffic.unmapped_count, cases[i].unmapped * fx.small.n_traces);
        assert_int_equal(model->n_messages, 0);
        inspection_wipe(&in);
    }
}

static void test_trace_when_1e5_spans_then_complete_in_bounded_memory(void **state)
{
    (void)state;
    assert_true(post(&fx.many));
    struct inspection in = trace_data_inspection();
    int64_t began = clock_mono_ms();
    trace("1000", &fx.many, &in);
    int64_t took = clock_mono_ms() - began;
    trace_data_verify(&fx.many, &in);
    trace_data_end(&in);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    print_message("%lld spans in %lld ms, %ld MiB\n", (long long)fx.many.n_traces * 4,
                  (long long)took, usage.ru_maxrss / 1024);
#ifndef __SANITIZE_ADDRESS__
    assert_in_range(usage.ru_maxrss / 1024, 0, MEMORY_MIB);
#endif
}

static void test_trace_when_time_limit_passes_then_timeout(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    const struct window window = {fx.small.from_ms, fx.small.to_ms};
    struct inspection in = trace_data_inspection();
    assert_int_equal(try_trace("1", "1ms", &window, &in, &err), -1);
    assert_int_equal(err.kind, ERR_TIMEOUT);
    assert_non_null(strstr(err.text, "of 540 s of traces"));
    trace_data_end(&in);
}

static void test_check_when_traces_then_version_and_newest(void **state)
{
    (void)state;
    const struct option options[] = {{"url", fx.server.url}};
    const struct source source = {"zipkin", "zipkin", options, ARRAY_LEN(options)};
    struct err err = ERR_INIT;
    struct source_report report;
    void *ctx;
    assert_int_equal(zipkin_messages.open(&source, &ctx, &err), 0);
    if (zipkin_messages.check(ctx, &app, &report, &err))
        fail_msg("%s", err.text);
    zipkin_messages.close(ctx);
    assert_true(report.reachable);
    assert_string_equal(report.version, "3.4.4");
    assert_string_equal(report.seen, "traces of 2 services");
    assert_in_range(report.newest_ms, fx.small.to_ms - 5000, fx.small.to_ms);
}

int main(void)
{
    AUTO_FREE char *java = server_program("java");
    AUTO_FREE char *jar = server_cached(JAR);
    if (!java || !jar) {
        printf("SKIPPED no %s (etc/test-servers fetches Zipkin; it needs Java 17)\n",
               java ? "Zipkin in the cache" : "Java");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_when_traces_then_version_and_newest),
        cmocka_unit_test(test_trace_when_any_limit_then_every_span_once),
        cmocka_unit_test(test_trace_when_any_number_at_once_then_every_span_once),
        cmocka_unit_test(test_trace_when_more_in_a_millisecond_than_the_limit_then_said),
        cmocka_unit_test(test_trace_when_window_is_empty_then_nothing_and_no_error),
        cmocka_unit_test(test_trace_when_traces_lie_across_slices_then_every_span_once),
        cmocka_unit_test(test_trace_when_others_are_ignored_then_only_ours_lower_the_coverage),
        cmocka_unit_test(test_trace_when_1e5_spans_then_complete_in_bounded_memory),
        cmocka_unit_test(test_trace_when_time_limit_passes_then_timeout),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
