/* registry.c - every adapter this program was built with: four arrays of const structs. An adapter
 * is one folder and one line here (design.md 6). */
#include "adapters/adapter.h"
#include "adapters/influxdb/influxdb.h"
#include "adapters/jaeger/jaeger.h"
#include "adapters/kubernetes/kubernetes.h"
#include "adapters/otlp/otlp.h"
#include "adapters/kubernetes/replica.h"
#include "adapters/prometheus/prometheus.h"
#include "adapters/simulated/simulated.h"
#include "adapters/zipkin/zipkin.h"

#include <string.h>

const struct cluster_adapter *const cluster_adapters[] = {
    &simulated_cluster,
    &kubernetes_cluster,
    NULL,
};

const struct metrics_adapter *const metrics_adapters[] = {
    &simulated_metrics,
    &prometheus_metrics,
    &influxdb_metrics,
    &kubernetes_metrics,
    NULL,
};

const struct message_adapter *const message_adapters[] = {
    &simulated_messages,
    &prometheus_messages,
    &zipkin_messages,
    &jaeger_messages,
    &otlp_messages,
    NULL,
};

const struct orchestrator *const orchestrators[] = {
    &simulated_orchestrator,
    &kubernetes_orchestrator,
    &kubernetes_replica_orchestrator,
    NULL,
};

/* The four kinds differ in type, not in the search. */
#define FIND_BY_NAME(array, wanted)                      \
    do {                                                  \
        for (size_t i = 0; (array)[i]; i++)               \
            if (strcmp((array)[i]->name, (wanted)) == 0)  \
                return (array)[i];                        \
        return NULL;                                      \
    } while (0)

const struct cluster_adapter *cluster_adapter_find(const char *name)
{
    FIND_BY_NAME(cluster_adapters, name);
}

const struct metrics_adapter *metrics_adapter_find(const char *name)
{
    FIND_BY_NAME(metrics_adapters, name);
}

const struct message_adapter *message_adapter_find(const char *name)
{
    FIND_BY_NAME(message_adapters, name);
}

const struct orchestrator *orchestrator_find(const char *name)
{
    FIND_BY_NAME(orchestrators, name);
}
