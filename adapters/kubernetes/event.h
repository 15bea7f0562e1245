/* event.h - Events of events.k8s.io on the workloads that were moved (interfaces.md 1.8), so that
 * `kubectl describe` tells who restarted them and why. Best effort. Inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_EVENT_H
#define REMAP_KUBERNETES_EVENT_H

#include "adapters/kubernetes/api.h"

/* What service names mean here (contract.md 7): "space/name", or "space/kind/name" where two kinds
 * share a name. Parts are borrowed from `service`, sizes in bytes; kind NULL: not said. -1: no such
 * name. */
struct service_name {
    const char *space, *kind, *name;
    size_t space_size, kind_size;
};
int service_name_parse(const char *service, struct service_name *out);
/* The name of such a workload, as the inspection has it: asks whether another kind has the same.
 * Caller frees. */
char *service_name_of(struct kube_api *api, const char *space, const char *kind, const char *name);

/* The Deployment or StatefulSet that a service name means; `recent`: some milliseconds old will do,
 * which is cheaper. Caller decrefs *out; *plural is static. ERR_NOT_FOUND. */
int event_workload(struct kube_api *api, const char *service, bool recent, json_t **out,
                   const char **plural, struct err *err);

/* The Event of an announcement on that workload; `reporter` is our identity. Pure. New reference.
 */
json_t *event_encode(const json_t *workload, const char *kind, const struct announcement *what,
                     const char *reporter, int64_t now_ms);
/* Posts (kube_api_posts_turn); first finds those of the workloads that are NULL. Of the others kind, name,
 * namespace and uid are needed. Nothing depends on it. */
void event_post_all(struct kube_api *api, const struct announcement *whats,
                    json_t *const *workloads, size_t n, const char *reporter);

#endif
