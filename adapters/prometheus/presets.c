/* presets.c - the queries that tools in wide use answer (interfaces.md 3.1 to 3.4): cAdvisor,
 * node_exporter, Istio, Linkerd, Hubble, service graphs of OpenTelemetry, goldpinger, kubenurse,
 * ping_exporter. */
#include "adapters/prometheus/prometheus.h"

/* --- usage --- */

/* Counters: the increase is taken per series, then added (a sum of counters has no resets). Gauges:
 * added at each step, then averaged, so that a restarted container is not counted beside its successor.
 *
 * rate() would divide by the whole window, and show half the use of a pod that is half the window old,
 * or whose exporter died half-way. What the increase is divided by is the time in which there were
 * samples of the thing, from the first to the last: at each step the time of its newest sample or, as
 * long as that is no older than a scrape may be, the step's own; delta() of that reaches to the edges of
 * the window as increase() does, so what was there all the time is divided by exactly the window. A gap
 * in the middle is no time less, since the counter went on. timestamp() rather than whether there is
 * something: series with times of their own, as kubelets serve them, end without the mark that tells a
 * server so, and would seem to go on for its look-back of five minutes. Steps of a tenth: the rest is
 * known to a twentieth of the window, and the server, which looks up every series at every step, has
 * work for ten. What was there for hardly more than one step is too little to tell its use.
 *
 * VictoriaMetrics extrapolates neither, but takes the last value before the window along: the same
 * quotient, except that the time before the first step is missing of what is young. */
#define RATE(metric, matchers)                                                              \
    "sum by ($by) (increase(" metric "{" matchers "$matchers}[$window])) / "                \
    "(delta(clamp_max(max by ($by) (timestamp(" metric "{" matchers "$matchers})) + $step_s, " \
    "time())[$window:$tenth]) > 1.1 * $tenth_s)"
#define HIGH_RATE(metric, matchers)                                                    \
    "quantile_over_time($quantile, sum by ($by) (rate(" metric "{" matchers            \
    "$matchers}[$resolution]))[$window:$step])"
#define LEVEL(metric, matchers) \
    "avg_over_time(sum by ($by) (" metric "{" matchers "$matchers})[$window:$step])"
#define HIGH_LEVEL(metric, matchers)                                                              \
    "quantile_over_time($quantile, sum by ($by) (" metric "{" matchers "$matchers})[$window:$step])"

#define CPU "container_cpu_usage_seconds_total"
#define MEMORY "container_memory_working_set_bytes"
/* Pod-level series (container="") repeat the sum of the containers', "POD" is the pause container. */
#define CONTAINERS "container!=\"\",container!=\"POD\","
#define PODS "container=\"\",pod!=\"\","
#define SWARM "container_label_com_docker_swarm_task_name!=\"\","
#define WHOLE "id=\"/\","

#define USAGE(cores, bytes, matchers)                                                     \
    .cpu = RATE(cores, matchers), .memory = LEVEL(bytes, matchers),                       \
    .cpu_high = HIGH_RATE(cores, matchers), .memory_high = HIGH_LEVEL(bytes, matchers)

const struct usage_preset prom_pod_presets[] = {
    {.name = "cadvisor", USAGE(CPU, MEMORY, CONTAINERS), .space = "namespace", .thing = "pod"},
    {.name = "cadvisor-pods", USAGE(CPU, MEMORY, PODS), .space = "namespace", .thing = "pod"},
    {.name = "cadvisor-old",
     USAGE(CPU, MEMORY, "container_name!=\"\",container_name!=\"POD\","),
     .space = "namespace",
     .thing = "pod_name"},
    {.name = "swarm",
     USAGE(CPU, MEMORY, SWARM),
     .space = "",
     .thing = "container_label_com_docker_swarm_task_name"},
    {.name = "none", .space = "", .thing = ""},
    {.name = NULL},
};

#define NODE_MEMORY "node_memory_MemTotal_bytes{$matchers} - node_memory_MemAvailable_bytes{$matchers}"

const struct usage_preset prom_host_presets[] = {
    {.name = "cadvisor", USAGE(CPU, MEMORY, WHOLE), .space = "", .thing = "node,instance"},
    {.name = "node-exporter",
     .cpu = RATE("node_cpu_seconds_total", "mode!=\"idle\","),
     .cpu_high = HIGH_RATE("node_cpu_seconds_total", "mode!=\"idle\","),
     .memory = "avg_over_time(sum by ($by) (" NODE_MEMORY ")[$window:$step])",
     .memory_high = "quantile_over_time($quantile, sum by ($by) (" NODE_MEMORY ")[$window:$step])",
     .space = "",
     .thing = "node,nodename,instance"},
    {.name = "none", .space = "", .thing = ""},
    {.name = NULL},
};

/* --- latency between hosts --- */

#define MEAN_RATE(metric, matchers)                                            \
    "sum by ($by) (rate(" metric "_sum{" matchers "$matchers}[$window]))"      \
    " / sum by ($by) (rate(" metric "_count{" matchers "$matchers}[$window]))"

const struct latency_preset prom_latency_presets[] = {
    {"none", NULL, "", "", 1},
    {"goldpinger", MEAN_RATE("goldpinger_peers_response_time_s", "call_type=\"ping\","),
     "goldpinger_instance", "host_ip", 1},
    {"ping-exporter", /* milliseconds: versions before 1.0, and --metrics.rttunit=ms */
     "avg by ($by) (avg_over_time(ping_rtt_mean_seconds{$matchers}[$window]))"
     " or avg by ($by) (avg_over_time(ping_rtt_mean_ms{$matchers}[$window])) / 1000",
     "instance", "target,ip", 1},
    {"kubenurse",
     "label_replace(sum by (node,instance,type) (rate("
     "kubenurse_httpclient_request_duration_seconds_sum{type=~\"path_.+\",$matchers}[$window])) / "
     "sum by (node,instance,type) (rate("
     "kubenurse_httpclient_request_duration_seconds_count{type=~\"path_.+\",$matchers}[$window])), "
     "\"target\", \"$1\", \"type\", \"path_(.+)\")",
     "node,instance", "target", 1},
    {NULL, NULL, NULL, NULL, 1},
};

/* --- traffic --- */

#define COUNT(metric, matchers) \
    "sum by ($by) (increase(" metric "{" matchers "$matchers}[$window]))"
/* A request within the mesh is told by both sidecars: the server's word counts, else the client's,
 * else that of an ambient mesh's waypoint. */
#define ISTIO(metric)                                                                   \
    COUNT(metric, "reporter=\"destination\",") " or " COUNT(metric, "reporter=\"source\",") \
    " or " COUNT(metric, "reporter=\"waypoint\",")
#define MEAN(metric, matchers) \
    COUNT(metric "_sum", matchers) " / " COUNT(metric "_count", matchers)
#define ISTIO_TIME "istio_request_duration_milliseconds"
#define ISTIO_ENDS                                                                      \
    .src_space = "source_workload_namespace", .src = "source_workload",                 \
    .dst_space = "destination_workload_namespace", .dst = "destination_workload"

const struct traffic_preset prom_traffic_presets[] = {
    {.name = "istio-http",
     .count = ISTIO("istio_requests_total"),
     .bytes = ISTIO("istio_request_bytes_sum"),
     .reply_bytes = ISTIO("istio_response_bytes_sum"),
     /* The client's time includes the network. */
     .mean_ms = MEAN(ISTIO_TIME, "reporter=\"source\",") " or " MEAN(
         ISTIO_TIME, "reporter=\"destination\",") " or " MEAN(ISTIO_TIME, "reporter=\"waypoint\","),
     ISTIO_ENDS},
    {.name = "istio-tcp", /* connections stand for messages: TCP has none */
     .count = ISTIO("istio_tcp_connections_opened_total"),
     .bytes = ISTIO("istio_tcp_received_bytes_total"),
     .reply_bytes = ISTIO("istio_tcp_sent_bytes_total"),
     ISTIO_ENDS},
    {.name = "linkerd", /* its bytes have no other side, so sizes are unknown */
     .count = COUNT("request_total", "direction=\"outbound\","),
     .mean_ms = MEAN("response_latency_ms", "direction=\"outbound\","),
     .src_space = "namespace",
     .src = "deployment,statefulset,daemonset",
     .dst_space = "dst_namespace",
     .dst = "dst_deployment,dst_statefulset,dst_daemonset"},
    {.name = "hubble", /* wants labelsContext with these four */
     .count = COUNT("hubble_http_requests_total", "reporter=\"client\","),
     .src_space = "source_namespace",
     .src = "source_workload",
     .dst_space = "destination_namespace",
     .dst = "destination_workload"},
    {.name = "servicegraph",
     .count = COUNT("traces_service_graph_request_total", ""),
     .mean_ms = "1000 * (" MEAN("traces_service_graph_request_client_seconds", "") ")",
     .src_space = "",
     .src = "client",
     .dst_space = "",
     .dst = "server"},
    {.name = "own", .src_space = "", .src = "source", .dst_space = "", .dst = "target"},
    {.name = NULL},
};
