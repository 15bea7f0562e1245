/* fit.h - which nodes the scheduler would take for a pod, besides room (interfaces.md 1.2): its node
 * selector, its required node affinity, its tolerations. Inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_FIT_H
#define REMAP_KUBERNETES_FIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct kube_taint { /* of a node; only NoSchedule and NoExecute are kept */
    char *key, *value, *effect;
};

struct kube_taints {
    struct kube_taint *items;
    size_t n;
};

void kube_taints_decode(const json_t *spec, struct kube_taints *out);
void kube_taints_wipe(struct kube_taints *taints);

/* The parts of a pod's spec that choose nodes; owned copies of the objects. */
struct kube_fit {
    json_t *selector, *terms, *tolerations; /* NULL: absent */
};

void kube_fit_decode(const json_t *spec, struct kube_fit *out);
void kube_fit_wipe(struct kube_fit *fit);

/* Labels as model.h has them. An operator that is not known here fits no node. */
struct label;
bool kube_fit_selects(const struct kube_fit *fit, const char *node, const struct label *labels,
                      size_t n_labels);
bool kube_fit_tolerates(const struct kube_fit *fit, const struct kube_taint *taint);

#endif
