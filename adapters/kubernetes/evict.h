/* evict.h - asking that a pod goes, as far as disruption budgets let it (interfaces.md 1.6). Inside
 * adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_EVICT_H
#define REMAP_KUBERNETES_EVICT_H

#include "adapters/kubernetes/api.h"

/* This very pod, by its uid. 0: it goes, or has gone. Else *err and *status: 429 with the cause
 * DisruptionBudget is a budget, 500 more than one of them, 403 a right that is missing. */
int kube_evict(struct kube_api *api, const json_t *pod, struct kube_status *status,
               struct err *err);

#endif
