/* kubernetes.h - the adapters for Kubernetes, as the registry lists them. One configured source
 * serves as cluster and as orchestrator, so all of them take the same options (options.c). */
#ifndef REMAP_KUBERNETES_H
#define REMAP_KUBERNETES_H

#include "adapters/adapter.h"

extern const struct option_spec kubernetes_options[];

extern const struct cluster_adapter kubernetes_cluster;
extern const struct metrics_adapter kubernetes_metrics;
extern const struct orchestrator kubernetes_orchestrator;

#endif
