/* cluster.h - what the inspection of a cluster may be told. Inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_CLUSTER_H
#define REMAP_KUBERNETES_CLUSTER_H

/* Rows of an option_spec array. */
#define KUBE_CLUSTER_OPTIONS                                                                       \
    {"exclude_namespaces", "never looked into, separated by commas", "", false},                   \
        {"selector", "only pods with these labels, name=value, separated by commas", "", false},   \
        {"moves",                                                                                  \
         "replicas: of single ones, so what stands against a change of the pod template "          \
         "(owners, soak, probes, history) does not count",                                         \
         "workloads", false},                                                                      \
        {"scaling_window",                                                                         \
         "plans keep room for the most replicas that an autoscaler wanted within so long", "1h",   \
         false},                                                                                   \
        {"respect_soft",                                                                           \
         "false: preferred pod (anti-)affinity and soft spread constraints make no rules", "true", \
         false}

#endif
