/* presets.c - what Heapster (both layouts) and Telegraf's docker and kubernetes inputs write into an
 * InfluxDB (interfaces.md 4). */
#include "adapters/influxdb/influxdb.h"

#define SELECT(field, measurement, where, tags)                                            \
    "SELECT $function(\"" field "\"$more) FROM \"" measurement "\" WHERE " where "$time"   \
    " GROUP BY " tags

#define HEAPSTER_POD "\"type\"='pod' AND ", "\"namespace_name\",\"pod_name\""
#define HEAPSTER_PARTS \
    "\"type\"='pod_container' AND ", "\"namespace_name\",\"pod_name\",\"container_name\""
#define HEAPSTER_NODE "\"type\"='node' AND ", "\"nodename\""
#define APPLY(field, measurement, ...) SELECT(field, measurement, __VA_ARGS__)
#define KUBE_POD "", "\"namespace\",\"pod_name\",\"container_name\""
#define DOCKER "\"com.docker.swarm.task.name\",\"container_name\""

const struct influx_preset influx_pod_presets[] = {
    {.name = "heapster",
     .cpu = APPLY("value", "cpu/usage_rate", HEAPSTER_POD),
     .cpu_other = APPLY("value", "cpu/usage_rate", HEAPSTER_PARTS),
     .memory = APPLY("value", "memory/working_set", HEAPSTER_POD),
     .cpu_per_core = 1e3,
     .space = "namespace_name",
     .thing = "pod_name"},
    {.name = "heapster-fields",
     .cpu = APPLY("usage_rate", "cpu", HEAPSTER_POD),
     .cpu_other = APPLY("usage_rate", "cpu", HEAPSTER_PARTS),
     .memory = APPLY("working_set", "memory", HEAPSTER_POD),
     .cpu_per_core = 1e3,
     .space = "namespace_name",
     .thing = "pod_name"},
    {.name = "telegraf-docker",
     .cpu = SELECT("usage_percent", "docker_container_cpu", "\"cpu\"='cpu-total' AND ", DOCKER),
     .memory = SELECT("usage", "docker_container_mem", "", DOCKER),
     .cpu_per_core = 100,
     .space = "",
     .thing = "com.docker.swarm.task.name,container_name"},
    {.name = "telegraf-kubernetes",
     .cpu = APPLY("cpu_usage_nanocores", "kubernetes_pod_container", KUBE_POD),
     .memory = APPLY("memory_working_set_bytes", "kubernetes_pod_container", KUBE_POD),
     .cpu_per_core = 1e9,
     .space = "namespace",
     .thing = "pod_name"},
    {.name = "none", .cpu_per_core = 1e3, .space = "", .thing = ""},
    {.name = NULL},
};

const struct influx_preset influx_host_presets[] = {
    {.name = "heapster",
     .cpu = APPLY("value", "cpu/usage_rate", HEAPSTER_NODE),
     .memory = APPLY("value", "memory/working_set", HEAPSTER_NODE),
     .cpu_per_core = 1e3,
     .space = "",
     .thing = "nodename"},
    {.name = "heapster-fields",
     .cpu = APPLY("usage_rate", "cpu", HEAPSTER_NODE),
     .memory = APPLY("working_set", "memory", HEAPSTER_NODE),
     .cpu_per_core = 1e3,
     .space = "",
     .thing = "nodename"},
    {.name = "telegraf-docker", /* Telegraf's own cpu and mem inputs on the same host */
     .cpu = "SELECT $function(\"active\"$more) FROM (SELECT 100 - \"usage_idle\" AS \"active\" FROM "
            "\"cpu\" WHERE \"cpu\"='cpu-total' AND $time GROUP BY \"host\") WHERE $time GROUP BY "
            "\"host\"",
     .memory = SELECT("used", "mem", "", "\"host\""),
     .cpu_per_core = 0,
     .space = "",
     .thing = "host"},
    {.name = "telegraf-kubernetes",
     .cpu = SELECT("cpu_usage_nanocores", "kubernetes_node", "", "\"node_name\""),
     .memory = SELECT("memory_working_set_bytes", "kubernetes_node", "", "\"node_name\""),
     .cpu_per_core = 1e9,
     .space = "",
     .thing = "node_name"},
    {.name = "none", .cpu_per_core = 1e3, .space = "", .thing = ""},
    {.name = NULL},
};
