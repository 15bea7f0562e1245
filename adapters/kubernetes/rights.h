/* rights.h - may our account take the Lease by which of several daemons only one writes, and look at
 * the ConfigMap by which people pause it? For `remap check`. Inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_RIGHTS_H
#define REMAP_KUBERNETES_RIGHTS_H

#include "adapters/kubernetes/api.h"
#include "model/base/buf.h"

/* Appends "; lease SPACE/NAME …": who holds it, or why it cannot be taken. */
void rights_tell_lease(struct kube_api *api, const char *space, const char *name, struct buf *out);

/* Appends "; paused by configmap SPACE/NAME …", that it is not, or that nobody could tell. */
void rights_tell_pause(struct kube_api *api, const char *space, const char *name, struct buf *out);

#endif
