/* test_tools.c - the presets against a real Prometheus that holds what each tool exposes, label for
 * label (interfaces.md 3.1 to 3.4): old and new cAdvisor, Swarm, node_exporter, three pingers,
 * sidecars and ambient Istio, Linkerd, Hubble. What a real server does not show on demand, warnings and
 * partial answers, comes from a served page of it. */
#include "tests/contract/prometheus/prom_rig.h"

#include <math.h>
#include <string.h>

/* --- usage --- */

static void write_usage(FILE *out)
{
    int64_t end = prom_rig.end, half = end - WINDOW / 2, from = end - SPAN;
    /* A kubelet of 1.15: other label names, the pod's own series under an empty container_name. */
    rig_whole(out, "container_cpu_usage_seconds_total{container_name=\"app\",pod_name=\"cart-1\","
                   "namespace=\"shop\",image=\"cart:1\",name=\"k8s_app_cart-1\"}", 3, 0.4);
    rig_whole(out, "container_cpu_usage_seconds_total{container_name=\"POD\",pod_name=\"cart-1\","
                   "namespace=\"shop\"}", 3, 0.01);
    rig_whole(out, "container_cpu_usage_seconds_total{container_name=\"\",pod_name=\"cart-1\","
                   "namespace=\"shop\"}", 3, 0.41);
    rig_whole(out, "container_memory_working_set_bytes{container_name=\"app\",pod_name=\"cart-1\","
                   "namespace=\"shop\"}", 90 * MIB, 0);
    /* cAdvisor beside Docker Swarm: no pods, the labels of containers. */
    rig_whole(out, "container_cpu_usage_seconds_total{container_label_com_docker_swarm_service_name="
                   "\"shop_cart\",container_label_com_docker_swarm_task_name="
                   "\"shop_cart.2.k3f0\",id=\"/docker/1f\"}", 0, 0.15);
    rig_whole(out, "container_memory_working_set_bytes{container_label_com_docker_swarm_service_name="
                   "\"shop_cart\",container_label_com_docker_swarm_task_name="
                   "\"shop_cart.2.k3f0\",id=\"/docker/1f\"}", 33 * MIB, 0);
    /* node_exporter, two CPUs of n1; n2 by its node label. */
    for (int cpu = 0; cpu < 2; cpu++) {
        char name[160];
        snprintf(name, sizeof name,
                 "node_cpu_seconds_total{cpu=\"%d\",mode=\"user\",instance=\"10.0.0.1:9100\"}", cpu);
        rig_whole(out, name, 10, 0.5);
        snprintf(name, sizeof name,
                 "node_cpu_seconds_total{cpu=\"%d\",mode=\"idle\",instance=\"10.0.0.1:9100\"}", cpu);
        rig_whole(out, name, 10, 0.5);
    }
    rig_whole(out, "node_cpu_seconds_total{cpu=\"0\",mode=\"system\",node=\"n2\","
                   "instance=\"172.16.0.9:9100\"}", 0, 0.7);
    rig_whole(out, "node_memory_MemTotal_bytes{instance=\"10.0.0.1:9100\"}", 4096 * MIB, 0);
    rig_whole(out, "node_memory_MemAvailable_bytes{instance=\"10.0.0.1:9100\"}", 3072 * MIB, 0);
    /* A gauge that was infinite, then no number at all. */
    rig_series(out, "odd_bytes{namespace=\"shop\",pod=\"db-0\"}", from, half, INFINITY, 0);
    rig_whole(out, "odd_bytes{namespace=\"shop\",pod=\"cart-1\"}", NAN, 0);
    rig_whole(out, "odd_bytes{namespace=\"shop\",pod=\"cart-2\"}", 7, 0);
}

/* --- round trips --- */

static void write_pingers(FILE *out)
{
    static const char kubenurse[] = "kubenurse_httpclient_request_duration_seconds";
    char name[240];
    const struct {
        const char *labels;
        double seconds;
    } checks[] = {{"type=\"path_n2\",node=\"n1\",instance=\"10.244.1.7:8080\"", 0.004},
                  {"type=\"path_n1\",instance=\"10.0.0.2:8080\"", 0.006}, /* without relabelling */
                  {"type=\"api_server_direct\",node=\"n1\",instance=\"10.244.1.7:8080\"", 0.3}};
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        snprintf(name, sizeof name, "%s_sum{%s}", kubenurse, checks[i].labels);
        rig_whole(out, name, 0, 0.2 * checks[i].seconds);
        snprintf(name, sizeof name, "%s_count{%s}", kubenurse, checks[i].labels);
        rig_whole(out, name, 0, 0.2);
    }
    rig_whole(out, "ping_rtt_mean_seconds{target=\"n2.example\",ip=\"10.0.0.2\",ip_version=\"4\","
                   "instance=\"10.0.0.1:9427\"}", 0.002, 0);
    rig_whole(out, "ping_rtt_mean_seconds{target=\"gone\",ip=\"10.0.0.77\",ip_version=\"4\","
                   "instance=\"10.0.0.1:9427\"}", 0.5, 0);
    rig_whole(out, "ping_rtt_mean_ms{target=\"10.0.0.1\",ip=\"10.0.0.1\",ip_version=\"4\","
                   "instance=\"10.0.0.2:9427\"}", 4, 0);
}

/* --- traffic --- */

/* The labels of an Istio series as a sidecar of 1.20 writes them. */
#define ISTIO(reporter, src, dst, more)                                                            \
    "{reporter=\"" reporter "\",source_workload=\"" src "\",source_canonical_service=\"" src "\"," \
    "source_canonical_revision=\"latest\",source_workload_namespace=\"shop\","                     \
    "source_principal=\"spiffe://cluster.local/ns/shop/sa/default\",source_app=\"" src "\","       \
    "source_version=\"v1\",source_cluster=\"Kubernetes\",destination_workload=\"" dst "\","        \
    "destination_workload_namespace=\"shop\",destination_principal=\"spiffe://cluster.local/ns/"   \
    "shop/sa/default\",destination_app=\"" dst "\",destination_version=\"v1\","                    \
    "destination_service=\"" dst ".shop.svc.cluster.local\",destination_canonical_service=\"" dst  \
    "\",destination_canonical_revision=\"latest\",destination_service_name=\"" dst "\","           \
    "destination_service_namespace=\"shop\",destination_cluster=\"Kubernetes\","                   \
    "connection_security_policy=\"mutual_tls\"" more "}"
#define HTTP200 ",request_protocol=\"http\",response_code=\"200\",response_flags=\"-\""
#define HTTP503 ",request_protocol=\"http\",response_code=\"503\",response_flags=\"UH\""
#define TCP ",request_protocol=\"tcp\",response_flags=\"-\""

static void write_istio(FILE *out)
{
    int64_t end = prom_rig.end, half = end - WINDOW / 2, from = end - SPAN;
    /* front → cart: both sides, and failures that no server saw: the server's word counts. */
    rig_whole(out, "istio_requests_total" ISTIO("destination", "front", "cart", HTTP200), 9, 3);
    rig_whole(out, "istio_requests_total" ISTIO("source", "front", "cart", HTTP200), 9, 3);
    rig_whole(out, "istio_requests_total" ISTIO("source", "front", "cart", HTTP503), 0, 1);
    /* cart → db: the client's sidecar alone, restarted in the window. */
    rig_series(out, "istio_requests_total" ISTIO("source", "cart", "db", HTTP200), from,
               half - SCRAPE, 70000, 2);
    rig_series(out, "istio_requests_total" ISTIO("source", "cart", "db", HTTP200), half, end,
               2 * SCRAPE, 2);
    /* db → front: ambient, a waypoint alone. */
    rig_whole(out, "istio_requests_total" ISTIO("waypoint", "db", "front", HTTP200), 0, 0.5);
    rig_whole(out, "istio_request_bytes_sum" ISTIO("waypoint", "db", "front", HTTP200), 0, 50);
    rig_whole(out, "istio_response_bytes_sum" ISTIO("waypoint", "db", "front", HTTP200), 0, 450);
    rig_whole(out, "istio_request_duration_milliseconds_sum"
                   ISTIO("waypoint", "db", "front", HTTP200), 0, 4);
    rig_whole(out, "istio_request_duration_milliseconds_count"
                   ISTIO("waypoint", "db", "front", HTTP200), 0, 0.5);
    /* A pair whose duration nobody measured lately: 0 / 0. */
    rig_whole(out, "istio_request_duration_milliseconds_sum"
                   ISTIO("source", "cart", "db", HTTP200), 5, 0);
    rig_whole(out, "istio_request_duration_milliseconds_count"
                   ISTIO("source", "cart", "db", HTTP200), 5, 0);
    rig_whole(out, "istio_tcp_connections_opened_total"
                   ISTIO("destination", "cart", "front", TCP), 0, 0.05);
    rig_whole(out, "istio_tcp_connections_opened_total" ISTIO("source", "cart", "front", TCP), 0,
              0.05);
    rig_whole(out, "istio_tcp_received_bytes_total" ISTIO("destination", "cart", "front", TCP), 0,
              100);
    rig_whole(out, "istio_tcp_sent_bytes_total" ISTIO("source", "cart", "front", TCP), 0, 900);
}

#define LINKERD(direction, src, dst)                                                             \
    "{direction=\"" direction "\",namespace=\"shop\"," src ",dst_namespace=\"shop\"," dst       \
    ",authority=\"x.shop.svc.cluster.local:80\",tls=\"true\",control_plane_ns=\"linkerd\"}"

static void write_others(FILE *out)
{
    rig_whole(out, "request_total" LINKERD("outbound", "deployment=\"front\"",
                                           "dst_deployment=\"cart\""), 0, 4);
    rig_whole(out, "request_total" LINKERD("inbound", "deployment=\"cart\"",
                                           "dst_deployment=\"\""), 0, 4);
    rig_whole(out, "request_total" LINKERD("outbound", "deployment=\"cart\"",
                                           "dst_statefulset=\"db\""), 0, 1);
    rig_whole(out, "response_latency_ms_sum" LINKERD("outbound", "deployment=\"front\"",
                                                     "dst_deployment=\"cart\""), 0, 36);
    rig_whole(out, "response_latency_ms_count" LINKERD("outbound", "deployment=\"front\"",
                                                       "dst_deployment=\"cart\""), 0, 4);
    rig_whole(out, "hubble_http_requests_total{method=\"GET\",protocol=\"HTTP/1.1\",status=\"200\","
                   "reporter=\"client\",source_namespace=\"shop\",source_workload=\"front\","
                   "destination_namespace=\"shop\",destination_workload=\"db\"}", 0, 0.5);
    rig_whole(out, "hubble_http_requests_total{method=\"GET\",protocol=\"HTTP/1.1\",status=\"200\","
                   "reporter=\"server\",source_namespace=\"shop\",source_workload=\"front\","
                   "destination_namespace=\"shop\",destination_workload=\"db\"}", 0, 0.5);
}

static void write_all(FILE *out)
{
    write_usage(out);
    write_pingers(out);
    write_istio(out);
    write_others(out);
}

static int setup(void **state)
{
    (void)state;
    return prom_rig_open(write_all);
}

/* --- usage --- */

static void test_cadvisor_when_old_label_names_then_containers_alone(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_measure((const char *[]){"preset", "cadvisor-old", "hosts", "none", NULL}, &in);
    assert_near((double)rig_cpu(&in, "shop/cart-1"), 400, 1);
    assert_int_equal(rig_memory(&in, "shop/cart-1"), 90 * MIB);
    rig_end(&in);
}

static void test_swarm_when_task_names_then_those_instances(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct inspection in = rig_inspection();
    identity_free(in.identity);
    assert_true(model_add_instance(in.model, "shop_cart.2.k3f0", 1, 0, &err) >= 0);
    in.identity = identity_new(in.model);
    rig_measure((const char *[]){"preset", "swarm", "hosts", "none", NULL}, &in);
    assert_near((double)rig_cpu(&in, "shop_cart.2.k3f0"), 150, 1);
    assert_int_equal(rig_memory(&in, "shop_cart.2.k3f0"), 33 * MIB);
    rig_end(&in);
}

static void test_node_exporter_when_hosts_are_addresses_or_names_then_both(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_measure((const char *[]){"preset", "none", "hosts", "node-exporter", NULL}, &in);
    assert_near((double)in.model->hosts[0].cpu_used_millis, 1000, 2); /* not the idle second */
    assert_near((double)in.model->hosts[1].cpu_used_millis, 700, 2);
    assert_int_equal(in.model->hosts[0].mem_used_bytes, 1024 * MIB);
    assert_int_equal(in.model->hosts[1].mem_used_bytes, 0); /* of it nothing is told */
    rig_end(&in);
}

static void test_usage_when_infinite_or_no_number_then_no_sample_and_said(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_measure((const char *[]){"preset", "none", "hosts", "none", "memory_query",
                                 "avg_over_time(sum by ($by) (odd_bytes{$matchers})"
                                 "[$window:$step])",
                                 "namespace_label", "namespace", "pod_label", "pod", NULL},
                &in);
    assert_int_equal(rig_memory(&in, "shop/cart-2"), 7);
    assert_int_equal(rig_memory(&in, "shop/cart-1"), 0);
    assert_int_equal(rig_memory(&in, "shop/db-0"), 0);
    const struct note *note = note_find(&in, "not-a-number", "memory of pods");
    assert_non_null(note);
    assert_int_equal(note->count, 2);
    rig_end(&in);
}

/* --- round trips --- */

static void test_latency_when_each_pinger_then_the_mean_of_both_ways(void **state)
{
    (void)state;
    static const struct {
        const char *preset;
        double us;
        bool unmapped; /* it also pings what is no host of ours */
    } cases[] = {{"kubenurse", 5000, false}, {"ping-exporter", 3000, true}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct inspection in = rig_inspection();
        rig_measure((const char *[]){"preset", "none", "hosts", "none", "latency",
                                     cases[i].preset, NULL},
                    &in);
        assert_int_equal(in.model->n_latencies, 1);
        assert_near((double)model_rtt_us(in.model, 0, 1), cases[i].us, 1);
        assert_int_equal(note_find(&in, "unmapped", "gone") != NULL, cases[i].unmapped);
        rig_end(&in);
    }
}

/* --- traffic --- */

static void test_istio_when_recorded_then_server_else_client_else_waypoint(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_trace((const char *[]){"preset", "istio-http", NULL}, &in);
    const struct message *both = rig_row(&in, "shop/front", "shop/cart");
    const struct message *client = rig_row(&in, "shop/cart", "shop/db");
    const struct message *waypoint = rig_row(&in, "shop/db", "shop/front");
    assert_true(both && client && waypoint);
    assert_near((double)both->count, 1800, 1); /* not 3600, not with the client's failures */
    assert_int_equal(both->bytes, -1);
    assert_near((double)client->count, 1200, 2 * SCRAPE); /* through the reset */
    assert_true(isnan(client->mean_ms) || client->mean_ms < 0); /* 0/0 is no time */
    assert_near((double)waypoint->count, 300, 1);
    assert_near((double)waypoint->bytes, 300000, 100);
    assert_near(waypoint->mean_ms, 8, 0.01);
    assert_int_equal(in.model->n_messages, 3);
    assert_non_null(note_find(&in, "unknown-size", ""));
    rig_end(&in);
}

static void test_istio_when_tcp_then_connections_and_bytes_of_both_ways(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_trace((const char *[]){"preset", "istio-tcp", NULL}, &in);
    const struct message *row = rig_row(&in, "shop/cart", "shop/front");
    assert_non_null(row);
    assert_near((double)row->count, 30, 0.5);
    assert_near((double)row->bytes, 600000, 100); /* received by the server, sent by the client */
    assert_int_equal(in.model->n_messages, 1);
    rig_end(&in);
}

static void test_linkerd_when_recorded_then_outbound_alone_and_sizes_unknown(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_trace((const char *[]){"preset", "linkerd", NULL}, &in);
    const struct message *a = rig_row(&in, "shop/front", "shop/cart");
    const struct message *b = rig_row(&in, "shop/cart", "shop/db");
    assert_true(a && b);
    assert_near((double)a->count, 2400, 1);
    assert_near(a->mean_ms, 9, 0.01);
    assert_int_equal(a->bytes, -1);
    assert_near((double)b->count, 600, 1);
    assert_int_equal(in.model->n_messages, 2);
    rig_end(&in);
}

static void test_hubble_when_both_sides_report_then_the_client_alone(void **state)
{
    (void)state;
    struct inspection in = rig_inspection();
    rig_trace((const char *[]){"preset", "hubble", NULL}, &in);
    const struct message *row = rig_row(&in, "shop/front", "shop/db");
    assert_non_null(row);
    assert_near((double)row->count, 300, 1);
    assert_int_equal(in.model->n_messages, 1);
    rig_end(&in);
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
        cmocka_unit_test(test_cadvisor_when_old_label_names_then_containers_alone),
        cmocka_unit_test(test_swarm_when_task_names_then_those_instances),
        cmocka_unit_test(test_node_exporter_when_hosts_are_addresses_or_names_then_both),
        cmocka_unit_test(test_usage_when_infinite_or_no_number_then_no_sample_and_said),
        cmocka_unit_test(test_latency_when_each_pinger_then_the_mean_of_both_ways),
        cmocka_unit_test(test_istio_when_recorded_then_server_else_client_else_waypoint),
        cmocka_unit_test(test_istio_when_tcp_then_connections_and_bytes_of_both_ways),
        cmocka_unit_test(test_linkerd_when_recorded_then_outbound_alone_and_sizes_unknown),
        cmocka_unit_test(test_hubble_when_both_sides_report_then_the_client_alone),
    };
    return cmocka_run_group_tests(tests, setup, prom_rig_close);
}
