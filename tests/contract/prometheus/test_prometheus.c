/* test_prometheus.c - both adapters against a real Prometheus whose blocks promtool made from what is
 * written here: what was written must come out, mean and percentile, doubled series once, restarts,
 * resets, gaps, the wrong names, several clusters in one store. */
#include "tests/contract/prometheus/prom_rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "model/base/clock.h"

#define CPU "container_cpu_usage_seconds_total"
#define MEM "container_memory_working_set_bytes"

static void write_usage(FILE *out)
{
    int64_t end = prom_rig.end, half = end - WINDOW / 2, from = end - SPAN;
    /* Two containers, the pod's own series and the pause container: 250 + 50, not more. */
    rig_whole(out, CPU "{namespace=\"shop\",pod=\"cart-1\",container=\"app\",cluster=\"a\"}", 7, 0.25);
    rig_whole(out, CPU "{namespace=\"shop\",pod=\"cart-1\",container=\"proxy\",cluster=\"a\"}", 0, 0.05);
    rig_whole(out, CPU "{namespace=\"shop\",pod=\"cart-1\",container=\"\",cluster=\"a\"}", 7, 0.3);
    rig_whole(out, CPU "{namespace=\"shop\",pod=\"cart-1\",container=\"POD\",cluster=\"a\"}", 0, 0.001);
    /* The same pod of another cluster in the same store. */
    rig_whole(out, CPU "{namespace=\"shop\",pod=\"cart-1\",container=\"app\",cluster=\"b\"}", 7, 0.7);
    /* 0.1 cores, then 0.9: mean 0.5. */
    rig_series(out, CPU "{namespace=\"shop\",pod=\"cart-2\",container=\"app\",cluster=\"a\"}", from,
           half - SCRAPE, 0, 0.1);
    double at_half = 0.1 * (double)(half - from);
    rig_series(out, CPU "{namespace=\"shop\",pod=\"cart-2\",container=\"app\",cluster=\"a\"}", half, end,
           at_half, 0.9);
    /* The counter begins anew with the container: 0.2 cores all the time. */
    rig_series(out, CPU "{namespace=\"shop\",pod=\"db-0\",container=\"db\",cluster=\"a\"}", from,
           half - SCRAPE, 1000, 0.2);
    rig_series(out, CPU "{namespace=\"shop\",pod=\"db-0\",container=\"db\",cluster=\"a\"}", half, end,
           0.2 * SCRAPE, 0.2);
    /* A pod of that name elsewhere, and one that nobody knows. */
    rig_whole(out, CPU "{namespace=\"other\",pod=\"db-0\",container=\"db\",cluster=\"a\"}", 0, 3);
    rig_whole(out, CPU "{namespace=\"shop\",pod=\"stranger\",container=\"x\",cluster=\"a\"}", 0, 1);
    rig_whole(out, CPU "{id=\"/\",instance=\"10.0.0.1:10250\",cluster=\"a\"}", 0, 1.5);
    rig_whole(out, CPU "{id=\"/\",instance=\"10.0.0.9:10250\",cluster=\"a\"}", 0, 1);

    rig_whole(out, MEM "{namespace=\"shop\",pod=\"cart-1\",container=\"app\",cluster=\"a\"}", 100 * MIB, 0);
    rig_whole(out, MEM "{namespace=\"shop\",pod=\"cart-1\",container=\"proxy\",cluster=\"a\"}", 20 * MIB, 0);
    rig_whole(out, MEM "{namespace=\"shop\",pod=\"cart-1\",container=\"\",cluster=\"a\"}", 120 * MIB, 0);
    rig_whole(out, MEM "{namespace=\"shop\",pod=\"cart-2\",container=\"app\",cluster=\"a\"}", NAN, 0);
    rig_whole(out, MEM "{namespace=\"shop\",pod=\"db-0\",container=\"db\",cluster=\"a\"}", 64 * MIB, 0);
    rig_whole(out, MEM "{id=\"/\",instance=\"10.0.0.1:10250\",cluster=\"a\"}", 1024 * MIB, 0);
}

#define ENDS(sn, s, dn, d, more)                                                              \
    "{source_workload_namespace=\"" sn "\",source_workload=\"" s                              \
    "\",destination_workload_namespace=\"" dn "\",destination_workload=\"" d "\"," more "}"
#define BY_SERVER "reporter=\"destination\",response_code=\"200\""
#define BY_CLIENT "reporter=\"source\",response_code=\"200\""

static void write_istio(FILE *out)
{
    /* front → cart told by both; cart → db by the client alone; the rest is not between ours. */
    rig_whole(out, "istio_requests_total" ENDS("shop", "front", "shop", "cart", BY_SERVER), 5, 2);
    rig_whole(out, "istio_requests_total" ENDS("shop", "front", "shop", "cart", BY_CLIENT), 5, 2.2);
    rig_whole(out, "istio_requests_total" ENDS("shop", "cart", "shop", "db", BY_CLIENT), 5, 1);
    rig_whole(out, "istio_requests_total" ENDS("unknown", "unknown", "shop", "front", BY_SERVER), 0, 4);
    rig_whole(out, "istio_requests_total" ENDS("other", "batch", "shop", "db", BY_SERVER), 0, 9);
    rig_whole(out, "istio_requests_total" ENDS("other", "a", "other", "b", BY_SERVER), 0, 9);
    rig_whole(out, "istio_requests_total" ENDS("shop", "ghost", "shop", "cart", BY_SERVER), 0, 0.5);
    rig_whole(out, "istio_request_bytes_sum" ENDS("shop", "front", "shop", "cart", BY_SERVER), 0, 2000);
    rig_whole(out, "istio_response_bytes_sum" ENDS("shop", "front", "shop", "cart", BY_SERVER), 0, 500);
    rig_whole(out,
          "istio_request_duration_milliseconds_sum" ENDS("shop", "front", "shop", "cart", BY_SERVER),
          0, 60);
    rig_whole(out,
          "istio_request_duration_milliseconds_count" ENDS("shop", "front", "shop", "cart",
                                                           BY_SERVER),
          0, 2);
    rig_whole(out,
          "istio_tcp_connections_opened_total" ENDS("shop", "cart", "shop", "db",
                                                    "reporter=\"destination\""),
          0, 0.1);
    rig_whole(out,
          "istio_tcp_sent_bytes_total" ENDS("shop", "cart", "shop", "db",
                                            "reporter=\"destination\""),
          0, 300);
}

static void write_others(FILE *out)
{
    rig_whole(out,
          "request_total{direction=\"outbound\",namespace=\"shop\",deployment=\"front\","
          "dst_namespace=\"shop\",dst_statefulset=\"db\"}",
          0, 3);
    rig_whole(out,
          "request_total{direction=\"inbound\",namespace=\"shop\",statefulset=\"db\"}", 0, 3);
    rig_whole(out, "traces_service_graph_request_total{client=\"front\",server=\"cart\"}", 0, 0.5);
    rig_whole(out, "goldpinger_peers_response_time_s_sum{goldpinger_instance=\"n1\",host_ip=\"10.0.0.2\","
               "call_type=\"ping\"}", 0, 0.002);
    rig_whole(out, "goldpinger_peers_response_time_s_count{goldpinger_instance=\"n1\","
               "host_ip=\"10.0.0.2\",call_type=\"ping\"}", 0, 1);
    rig_whole(out, "goldpinger_peers_response_time_s_sum{goldpinger_instance=\"n2\",host_ip=\"10.0.0.1\","
               "call_type=\"ping\"}", 0, 0.004);
    rig_whole(out, "goldpinger_peers_response_time_s_count{goldpinger_instance=\"n2\","
               "host_ip=\"10.0.0.1\",call_type=\"ping\"}", 0, 1);
    /* Ends in the middle of the window. */
    rig_series(out, "own_calls_total{source=\"cart\",target=\"db\"}", prom_rig.end - SPAN,
           prom_rig.end - WINDOW / 2, 0, 1);
}

#define MANY 50000 /* pods of two series each */

/* Samples far apart: many series, little text. */
static void write_many(FILE *out)
{
    static const char *const metrics[] = {"many_cpu_total", "many_bytes"};
    for (size_t m = 0; m < ARRAY_LEN(metrics); m++)
        for (int i = 0; i < MANY; i++)
            for (int k = 2; k >= 0; k--)
                fprintf(out, "%s{namespace=\"shop\",pod=\"p-%d\"} %d %lld\n", metrics[m], i,
                        m ? 1000 + i : 30 * (2 - k), (long long)(prom_rig.end - k * WINDOW / 2));
}

static void write_all(FILE *out)
{
    write_usage(out);
    write_istio(out);
    write_others(out);
    write_many(out);
}

static int setup(void **state)
{
    (void)state;
    return prom_rig_open(write_all);
}

/* --- usage --- */

static void test_usage_when_mean_then_what_was_written(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_measure((const char *[]){"matchers", "cluster=\"a\"", NULL}, &in);
    assert_near((double)rig_cpu(&in, "shop/cart-1"), 300, 1);
    assert_near((double)rig_cpu(&in, "shop/cart-2"), 500, 25); /* the step falls between samples */
    assert_near((double)rig_cpu(&in, "shop/db-0"), 200, 1);
    assert_int_equal(rig_memory(&in, "shop/cart-1"), 120 * MIB);
    assert_int_equal(rig_memory(&in, "shop/db-0"), 64 * MIB);
    assert_int_equal(rig_memory(&in, "shop/cart-2"), 0); /* NaN is no sample */
    assert_non_null(note_find(&in, "not-a-number", "memory of pods"));
    assert_non_null(note_find(&in, "no-sample", "shop/front-1"));
    assert_non_null(note_find(&in, "unmapped", "stranger"));
    assert_null(note_find(&in, "unmapped", "db-0")); /* of another namespace: not ours */
    /* The node's 1.5 cores less our 300 m; of n2 nothing is known. */
    assert_near((double)in.model->hosts[0].cpu_used_millis, 1200, 2);
    assert_int_equal(in.model->hosts[0].mem_used_bytes, (1024 - 120) * MIB);
    assert_int_equal(in.model->hosts[1].cpu_used_millis, 0);
    assert_non_null(note_find(&in, "unmapped", "10.0.0.9"));
    rig_end(&in);
}

static void test_usage_when_matchers_choose_another_cluster_then_its_values(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_measure((const char *[]){"matchers", "cluster=\"b\"", "hosts", "none", NULL}, &in);
    assert_near((double)rig_cpu(&in, "shop/cart-1"), 700, 1);
    assert_non_null(note_find(&in, "unknown-metric", "memory of pods"));
    rig_end(&in);
}

static void test_usage_when_percentile_then_peak(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_measure((const char *[]){"statistic", "p95", "matchers", "cluster=\"a\"", NULL}, &in);
    assert_near((double)rig_cpu(&in, "shop/cart-2"), 900, 5);
    assert_near((double)rig_cpu(&in, "shop/cart-1"), 300, 1);
    assert_int_equal(rig_memory(&in, "shop/db-0"), 64 * MIB);
    rig_end(&in);
}

static void test_usage_when_pod_level_series_only_then_those(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_measure((const char *[]){"preset", "cadvisor-pods", "hosts", "none", NULL}, &in);
    assert_near((double)rig_cpu(&in, "shop/cart-1"), 300, 1);
    rig_end(&in);
}

static void test_usage_when_own_query_then_its_labels(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_measure((const char *[]){"preset", "none", "hosts", "none", "cpu_query",
                             "sum by ($by) (rate(" CPU "{cluster=\"a\",container=\"db\"}[$window]))",
                             "namespace_label", "namespace", "pod_label", "pod", NULL},
            &in);
    assert_near((double)rig_cpu(&in, "shop/db-0"), 200, 1);
    assert_int_equal(rig_cpu(&in, "shop/cart-1"), 0);
    rig_end(&in);
}

static void test_latency_when_both_ways_then_their_mean(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_measure((const char *[]){"preset", "none", "hosts", "none", "latency", "goldpinger", NULL}, &in);
    assert_int_equal(in.model->n_latencies, 1);
    assert_near((double)model_rtt_us(in.model, 0, 1), 3000, 1);
    rig_end(&in);
}

/* --- traffic --- */

static void test_istio_when_both_sides_report_then_counted_once(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_trace((const char *[]){NULL}, &in);
    const struct message *a = rig_row(&in, "shop/front", "shop/cart");
    const struct message *b = rig_row(&in, "shop/cart", "shop/db");
    assert_non_null(a);
    assert_non_null(b);
    assert_near((double)a->count, 1200, 1);
    assert_near((double)a->bytes, 1500000, 100);
    assert_near(a->mean_ms, 30, 0.01);
    assert_near((double)b->count, 600 + 60, 1); /* HTTP by the client, and TCP connections */
    assert_near((double)b->bytes, 180000, 100);
    assert_int_equal(in.model->n_messages, 2);
    assert_non_null(note_find(&in, "external", "from outside"));
    size_t n;
    const struct unmapped *names = identity_unmapped_names(in.identity, &n);
    assert_int_equal(n, 1);
    assert_string_equal(names[0].name, "shop/ghost");
    assert_int_equal(names[0].count, 300);
    rig_end(&in);
}

static void test_istio_when_before_all_data_then_unknown_metric(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct inspection in = rig_inspection();
    assert_int_equal(rig_try_trace((const char *[]){NULL}, prom_rig.end - 2 * SPAN, &in, &err), 0);
    assert_non_null(note_find(&in, "unknown-metric", "istio_requests_total"));
    assert_int_equal(in.model->n_messages, 0);
    rig_end(&in);
}

static void test_traffic_when_metric_there_but_nothing_fits_then_no_data(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_trace((const char *[]){"preset", "own", "count_query",
                           "sum by ($by) (increase(own_calls_total{source=\"nobody\"}[$window]))",
                           NULL},
          &in);
    assert_non_null(note_find(&in, "no-data", "own_calls_total"));
    assert_null(note_find(&in, "unknown-metric", ""));
    rig_end(&in);
}

static void test_traffic_when_series_ended_in_the_window_then_what_there_was(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_trace((const char *[]){"preset", "own", "count_query",
                           "sum by ($by) (increase(own_calls_total{$matchers}[$window]))", NULL},
          &in);
    const struct message *row = rig_row(&in, "shop/cart", "shop/db");
    assert_non_null(row);
    assert_near((double)row->count, WINDOW / 2.0, SCRAPE);
    assert_int_equal(row->bytes, -1);
    assert_non_null(note_find(&in, "unknown-size", ""));
    rig_end(&in);
}

static void test_linkerd_and_service_graph_when_asked_then_edges(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_trace((const char *[]){"preset", "linkerd, servicegraph", NULL}, &in);
    const struct message *a = rig_row(&in, "shop/front", "shop/db");
    const struct message *b = rig_row(&in, "shop/front", "shop/cart");
    assert_non_null(a);
    assert_non_null(b);
    assert_near((double)a->count, 1800, 1); /* inbound would double it */
    assert_near((double)b->count, 300, 1);
    rig_end(&in);
}

/* --- size --- */

#define MANY_CPU "sum by (namespace,pod) (rate(many_cpu_total[600500ms]))"
#define MANY_BYTES "avg_over_time(sum by (namespace,pod) (many_bytes)[600500ms:150s])"

/* What the server takes alone, its answer thrown away. */
static int64_t server_ms(const char *query)
{
    struct err err = ERR_INIT;
    const struct http_options options = {.base_url = prom_rig.server.url, .total_timeout_ms = 60000};
    AUTO(http) struct http *http = http_new(&options, &err);
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    AUTO_BUF struct buf body = BUF_INIT;
    buf_puts(&body, "query=");
    http_escape(&body, query);
    buf_printf(&body, "&time=%lld", (long long)prom_rig.end);
    int64_t began = clock_mono_ms();
    if (http_query(http, "/api/v1/query", "application/x-www-form-urlencoded", body.data, body.size,
                   NULL, NULL, &answer, &err))
        fail_msg("%s", err.text);
    return clock_mono_ms() - began;
}

static struct inspection many_pods(void)
{
    struct err err = ERR_INIT;
    struct model *m = model_new();
    assert_int_equal(model_add_service(m, "shop/s", &err), 0);
    for (int i = 0; i < MANY; i++) {
        AUTO_FREE char *name = mem_printf("shop/p-%d", i);
        assert_int_equal(model_add_instance(m, name, 0, -1, &err), i);
    }
    return (struct inspection){.model = m, .identity = identity_new(m)};
}

static int64_t own_cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The goal is a second beyond the server's own time. What neighbours take from either side is in the
 * time that passes (remap-bench-prometheus prints it), not in what we use of it. */
static void test_usage_when_1e5_series_then_hardly_more_than_the_servers_time(void **state)
{
    (void)state;
    int64_t alone = INT64_MAX, took = INT64_MAX, used = INT64_MAX;
    server_ms(MANY_CPU); /* the first time the server reads its blocks */
    server_ms(MANY_BYTES);
    for (int run = 0; run < 3; run++) {
        struct inspection in = many_pods();
        int64_t server = server_ms(MANY_CPU) + server_ms(MANY_BYTES);
        alone = server < alone ? server : alone;
        int64_t began = clock_mono_ms(), used_before = own_cpu_ms();
        rig_measure((const char *[]){"preset", "none", "hosts", "none", "timeout", "60s",
                                     "cpu_query", MANY_CPU, "memory_query", MANY_BYTES,
                                     "namespace_label", "namespace", "pod_label", "pod", NULL},
                    &in);
        took = clock_mono_ms() - began < took ? clock_mono_ms() - began : took;
        used = own_cpu_ms() - used_before < used ? own_cpu_ms() - used_before : used;
        assert_int_equal(in.model->instances[MANY - 1].mem_used_bytes, 1000 + MANY - 1);
        assert_near((double)in.model->instances[77].cpu_used_millis, 100, 1);
        assert_null(note_find(&in, "no-sample", ""));
        rig_end(&in);
    }
    print_message("%d series in %lld ms, %lld of them our own, the server alone %lld ms\n", 2 * MANY,
                  (long long)took, (long long)used, (long long)alone);
#ifndef __SANITIZE_ADDRESS__
    assert_true(used < 1000);
#endif
}

/* --- configuration and check --- */

static void test_options_when_wrong_then_config_error_names_them(void **state)
{
    (void)state;
    static const struct {
        const char *options[5], *text;
        bool traffic;
    } cases[] = {
        {{"preset", "cadviser"}, "no preset cadviser", false},
        {{"statistic", "p100"}, "statistic must be", false},
        {{"matchers", "cluster=a"}, "matchers must be", false},
        {{"matchers", "a=\"b\"} or up{"}, "matchers must be", false},
        {{"matchers", "a=\"b\"", "cpu_query", "sum(x)"}, "must hold $matchers", false},
        {{"cpu_query", "sum by ($by) (x{$nothing})"}, "no $nothing", false},
        {{"cpu_query", "sum by ($by) ("}, "parse error", false},
        {{"cpu_query", "1"}, "must give a vector", false},
        {{"presets", "cadvisor"}, "did you mean preset", false},
        {{"preset", "istio"}, "there is no istio", true},
        {{"preset", "own"}, "needs count_query", true},
        {{"preset", "linkerd,hubble", "source_label", "x"}, "go with one preset", true},
        {{"headers", "no colon"}, "header", true},
        {{"timeout", "0"}, "timeout must be above 0", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;
        struct inspection in = rig_inspection();
        int rc = cases[i].traffic ? rig_try_trace(cases[i].options, prom_rig.end, &in, &err)
                                  : rig_try_measure(cases[i].options, &in, &err);
        if (rc != -1 || err.kind != ERR_CONFIG || !strstr(err.text, cases[i].text))
            fail_msg("%zu: %d %s: %s", i, rc, err_kind_name(err.kind), err.text);
        rig_end(&in);
    }
}

static void test_check_when_data_then_version_newest_and_counts(void **state)
{
    (void)state;
    struct option options[RIG_MAX_OPTIONS];
    struct source source = rig_source(options, (const char *[]){"matchers", "cluster=\"a\"", NULL});
    struct err err = ERR_INIT;
    struct source_report report;
    void *ctx;
    assert_int_equal(prometheus_metrics.open(&source, &ctx, &err), 0);
    if (prometheus_metrics.check(ctx, &rig_app, &report, &err))
        fail_msg("%s", err.text);
    prometheus_metrics.close(ctx);
    assert_true(report.reachable);
    assert_true(report.version[0] >= '2' && report.version[0] <= '9');
    assert_int_equal(report.newest_ms, prom_rig.end * 1000);
    assert_string_equal(report.seen, "CPU of 4 pods and 2 hosts, memory of 2 pods and 1 hosts");

    source = rig_source(options, (const char *[]){NULL});
    assert_int_equal(prometheus_messages.open(&source, &ctx, &err), 0);
    if (prometheus_messages.check(ctx, &rig_app, &report, &err))
        fail_msg("%s", err.text);
    prometheus_messages.close(ctx);
    assert_non_null(strstr(report.seen, "pairs in ten minutes"));

    source = rig_source(options, (const char *[]){"preset", "hubble", NULL});
    assert_int_equal(prometheus_messages.open(&source, &ctx, &err), 0);
    assert_int_equal(prometheus_messages.check(ctx, &rig_app, &report, &err), -1);
    prometheus_messages.close(ctx);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_true(report.reachable);
    assert_non_null(strstr(err.text, "hubble_http_requests_total"));
}

int main(void)
{
    AUTO_FREE char *program = server_program("prometheus");
    AUTO_FREE char *promtool = server_program("promtool");
    if (!program || !promtool) {
        printf("SKIPPED no prometheus on this machine (Debian package prometheus)\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage_when_mean_then_what_was_written),
        cmocka_unit_test(test_usage_when_matchers_choose_another_cluster_then_its_values),
        cmocka_unit_test(test_usage_when_percentile_then_peak),
        cmocka_unit_test(test_usage_when_pod_level_series_only_then_those),
        cmocka_unit_test(test_usage_when_own_query_then_its_labels),
        cmocka_unit_test(test_latency_when_both_ways_then_their_mean),
        cmocka_unit_test(test_istio_when_both_sides_report_then_counted_once),
        cmocka_unit_test(test_istio_when_before_all_data_then_unknown_metric),
        cmocka_unit_test(test_traffic_when_metric_there_but_nothing_fits_then_no_data),
        cmocka_unit_test(test_traffic_when_series_ended_in_the_window_then_what_there_was),
        cmocka_unit_test(test_linkerd_and_service_graph_when_asked_then_edges),
        cmocka_unit_test(test_usage_when_1e5_series_then_hardly_more_than_the_servers_time),
        cmocka_unit_test(test_options_when_wrong_then_config_error_names_them),
        cmocka_unit_test(test_check_when_data_then_version_newest_and_counts),
    };
    return cmocka_run_group_tests(tests, setup, prom_rig_close);
}
