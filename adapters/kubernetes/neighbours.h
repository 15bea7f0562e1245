/* neighbours.h - terms of pod (anti-)affinity, inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_NEIGHBOURS_H
#define REMAP_KUBERNETES_NEIGHBOURS_H

#include <jansson.h>
#include <stdbool.h>

/* Does a PodAffinityTerm of a pod in `own_space` select a pod with these labels in `space`? A selector
 * of namespaces selects them all here: what might be concerned counts. */
bool kube_term_selects(const json_t *term, const char *own_space, const char *space,
                       const json_t *labels);

#endif
