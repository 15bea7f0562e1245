/* test_faults.c - every live source against every fault that a real server cannot be made to show:
 * each ends soon, with the right kind of error and words, and leaves no descriptor behind. (Memory:
 * the sanitizers' build of this test.) */
#include "adapters/adapter.h"
#include "model/base/clock.h"
#include "adapters/identity.h"
#include "tests/contract/faults/faulty.h"
#include "tests/support/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- sources --- */

static const char *const all[] = {NULL};
static const struct app_scope app = {"shop", all, all};

static int run_metrics(const struct metrics_adapter *adapter, const struct source *source,
                       bool check, struct inspection *in, struct err *err)
{
    const struct window window = {1700000000000, 1700000001000};
    struct source_report report;
    void *ctx;
    if (adapter->open(source, &ctx, err))
        return -1;
    int rc = check ? adapter->check(ctx, &app, &report, err)
                   : adapter->measure(ctx, &app, &window, in, err);
    adapter->close(ctx);
    return rc;
}

static int run_messages(const struct message_adapter *adapter, const struct source *source,
                        bool check, struct inspection *in, struct err *err)
{
    const struct window window = {1700000000000, 1700000001000};
    struct source_report report;
    void *ctx;
    if (adapter->open(source, &ctx, err))
        return -1;
    int rc = check ? adapter->check(ctx, &app, &report, err)
                   : adapter->trace(ctx, &app, &window, in, err);
    adapter->close(ctx);
    return rc;
}

static int run_cluster(const struct cluster_adapter *adapter, const struct source *source,
                       bool check, struct inspection *in, struct err *err)
{
    struct source_report report;
    void *ctx;
    if (adapter->open(source, &ctx, err))
        return -1;
    int rc = check ? adapter->check(ctx, &app, &report, err)
                   : adapter->inspect(ctx, &app, in, err);
    adapter->close(ctx);
    return rc;
}

enum kind { CLUSTER, METRICS, MESSAGES };

/* kubeconfig: the address stands in a file of that option. */
static const struct {
    const char *type;
    enum kind kind;
    bool kubeconfig;
} sources[] = {{"prometheus", METRICS, false},  {"influxdb", METRICS, false},
               {"prometheus", MESSAGES, false}, {"zipkin", MESSAGES, false},
               {"jaeger", MESSAGES, false},     {"kubernetes", CLUSTER, true},
               {"kubernetes-metrics", METRICS, true}};

/* Adapters that have no row above, and why. */
static const struct {
    const char *type, *why;
} elsewhere[] = {{"simulated", "its own contract test: a server of ours on a Unix socket"},
                 {"otlp", "asks nobody: what senders do wrong is in its own tests"}};

static int run_source(size_t at, const struct source *source, bool check, struct inspection *in,
                      struct err *err)
{
    switch (sources[at].kind) {
    case CLUSTER:
        return run_cluster(cluster_adapter_find(source->type), source, check, in, err);
    case METRICS:
        return run_metrics(metrics_adapter_find(source->type), source, check, in, err);
    case MESSAGES:
        return run_messages(message_adapter_find(source->type), source, check, in, err);
    }
    return -1;
}

static int run(size_t at, const char *url, bool check, struct err *err)
{
    AUTO_FREE char *file = sources[at].kubeconfig ? faulty_kubeconfig(url) : NULL;
    const struct option options[] = {{file ? "kubeconfig" : "url", file ? file : url},
                                     {"timeout", faulty_timeout()},
                                     {"attempts", "1"},
                                     {"max_mib", "1"}};
    const struct source source = {"s", sources[at].type, options, ARRAY_LEN(options)};
    AUTO(model) struct model *model = model_new();
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    int rc = run_source(at, &source, check, &in, err);
    inspection_wipe(&in);
    if (file)
        unlink(file);
    return rc;
}

/* Kubernetes says the remedy instead of the status, where it knows one. */
static bool is_named(size_t at, const struct fault *fault, const char *text)
{
    bool remedy = strstr(text, "may not be listed") || strstr(text, "metrics-server");
    return strstr(text, fault->text) || (sources[at].kubeconfig && remedy);
}

static void verify(size_t at, const char *url, const struct fault *fault)
{
    for (int check = 0; check < 2; check++) {
        struct err err = ERR_INIT;
        int64_t began = clock_mono_ms();
        int rc = run(at, url, check, &err);
        int64_t took = clock_mono_ms() - began;
        /* A version that cannot be read is none: of Prometheus only the samples count. */
        if (rc != -1 || (err.kind != fault->kind && err.kind != fault->or_kind) ||
            !is_named(at, fault, err.text) || !err.text[0] || took > PATIENCE_MS)
            fail_msg("%s%s, %s: %d in %lld ms, %s: %s", sources[at].type, check ? " (check)" : "",
                     fault->name, rc, (long long)took, err_kind_name(err.kind), err.text);
    }
}

static void test_source_when_faulty_then_named_cause_in_time(void **state)
{
    (void)state;
    int before = faulty_descriptors();
    for (size_t f = 0; f < n_faults; f++) {
        faulty_set(&faults[f], NULL);
        for (size_t s = 0; s < ARRAY_LEN(sources); s++)
            verify(s, faulty_url(), &faults[f]);
    }
    assert_in_range(faulty_descriptors(), 0, before + 1); /* one may be the server's, closing */
}

static void test_source_when_nothing_listens_then_unreachable(void **state)
{
    (void)state;
    static const struct fault down = {"down", NULL, NULL, ERR_UNREACHABLE, ERR_NONE, "connect"};
    for (size_t s = 0; s < ARRAY_LEN(sources); s++)
        verify(s, "http://127.0.0.1:1", &down);
}

static void expect_row(const char *type, enum kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        if (sources[i].kind == kind && strcmp(sources[i].type, type) == 0)
            return;
    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
        if (strcmp(elsewhere[i].type, type) == 0)
            return;
    fail_msg("no row of the table asks %s", type);
}

/* `check` asks the receiver that the daemon has where the source listens. */
static void test_otlp_when_another_program_listens_there_then_check_says_so(void **state)
{
    (void)state;
    static const struct fault others[] = {
        {"404", "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n",
         NULL, ERR_CONFIG, ERR_CONFIG, ""},
        {"page", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>", NULL,
         ERR_CONFIG, ERR_CONFIG, ""},
        {"json", FAULTY_JSON "{\"status\":\"up\"}", NULL, ERR_CONFIG, ERR_CONFIG, ""}};
    const char *listen = faulty_url() + strlen("http://");
    AUTO_FREE char *text = mem_printf("another program listens on %s", listen);
    const struct option options[] = {{"listen", listen}};
    const struct source source = {"spans", "otlp", options, 1};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct err err = ERR_INIT;
        struct inspection in = {0};
        faulty_set(&others[i], NULL);
        assert_int_equal(run_messages(message_adapter_find("otlp"), &source, true, &in, &err), -1);
        if (err.kind != others[i].kind || strcmp(err.text, text) != 0)
            fail_msg("%s: %s: %s", others[i].name, err_kind_name(err.kind), err.text);
    }
}

static void test_table_when_compared_with_the_registry_then_every_adapter_is_in_it(void **state)
{
    (void)state;
    for (size_t i = 0; cluster_adapters[i]; i++)
        expect_row(cluster_adapters[i]->name, CLUSTER);
    for (size_t i = 0; metrics_adapters[i]; i++)
        expect_row(metrics_adapters[i]->name, METRICS);
    for (size_t i = 0; message_adapters[i]; i++)
        expect_row(message_adapters[i]->name, MESSAGES);
}

/* Thanos and its kin answer with what they have, and say so. */
static void test_prometheus_when_its_answer_is_partial_then_taken_and_said(void **state)
{
    (void)state;
    static const struct fault partial = {
        .name = "partial",
        .answer = FAULTY_JSON "{\"status\":\"success\",\"isPartial\":true,\"warnings\":[\"store-2 is down\"],"
                       "\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"source\":\"a\","
                       "\"target\":\"b\"},\"value\":[1700000001,\"30\"]}]}}"};
    const struct option options[] = {
        {"url", faulty_url()},
        {"preset", "own"},
        {"count_query", "sum by ($by) (increase(calls_total{$matchers}[$window]))"}};
    const struct source source = {"thanos", "prometheus", options, ARRAY_LEN(options)};
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = model_new();
    assert_int_equal(model_add_service(model, "a", &err), 0);
    assert_int_equal(model_add_service(model, "b", &err), 1);
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    faulty_set(&partial, NULL);
    if (run_messages(message_adapter_find("prometheus"), &source, false, &in, &err))
        fail_msg("%s", err.text);
    assert_int_equal(model->n_messages, 1);
    assert_true(model->messages[0].count > 0);
    assert_non_null(note_find(&in, "partial", "store-2 is down"));
    inspection_wipe(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_source_when_faulty_then_named_cause_in_time),
        cmocka_unit_test(test_source_when_nothing_listens_then_unreachable),
        cmocka_unit_test(test_otlp_when_another_program_listens_there_then_check_says_so),
        cmocka_unit_test(test_table_when_compared_with_the_registry_then_every_adapter_is_in_it),
        cmocka_unit_test(test_prometheus_when_its_answer_is_partial_then_taken_and_said),
    };
    return cmocka_run_group_tests(tests, faulty_start, faulty_stop);
}
