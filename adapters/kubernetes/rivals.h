/* rivals.h - other programs that move pods or take nodes away, and their settings that will fight with
 * remap (interfaces.md 1.9 rule 12). For `remap check`. Inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_RIVALS_H
#define REMAP_KUBERNETES_RIVALS_H

#include "adapters/kubernetes/api.h"
#include "adapters/kubernetes/objects.h"
#include "model/base/buf.h"

/* Appends "; NAME: what about it" for each that is seen. What may not be read is passed over. */
void rivals_tell(struct kube_api *api, const struct kube_objects *objects, struct buf *out);

/* The settings of a descheduler's policy that will fight, as "A, B"; "" none. */
void rivals_descheduler(const char *policy, struct buf *out);

#endif
