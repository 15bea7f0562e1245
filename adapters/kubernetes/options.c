/* options.c - the options of a source of type kubernetes, whatever it is used for. */
#include "adapters/kubernetes/api.h"
#include "adapters/kubernetes/cluster.h"
#include "adapters/kubernetes/kubernetes.h"

const struct option_spec kubernetes_options[] = {
    KUBE_API_OPTIONS,
    KUBE_CLUSTER_OPTIONS,
    {"min_node_age", "younger nodes are no targets", "10m", false},
    {"any_pool", "true: targets of another architecture, OS, node pool or capacity type than now",
     "false", false},
    {NULL, NULL, NULL, false},
};
