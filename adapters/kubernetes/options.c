/* options.c - the options of a source of type kubernetes, whatever it is used for. */
#include "adapters/kubernetes/api.h"
#include "adapters/kubernetes/cluster.h"
#include "adapters/kubernetes/keeper.h"
#include "adapters/kubernetes/kubernetes.h"
#include "adapters/kubernetes/orchestrator.h"

const struct option_spec kubernetes_options[] = {
    KUBE_API_OPTIONS,
    KUBE_CLUSTER_OPTIONS,
    KUBE_ORCHESTRATOR_OPTIONS,
    KUBE_KEEPER_OPTIONS,
    {NULL, NULL, NULL, false},
};
