/* selector.h - label selectors (apimachinery:pkg/apis/meta/v1/types.go LabelSelector): of budgets,
 * services and anti-affinity terms against a pod's labels. Inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_SELECTOR_H
#define REMAP_KUBERNETES_SELECTOR_H

#include <jansson.h>
#include <stdbool.h>

/* NULL selects nothing, {} everything. An operator that is not known here selects: whoever asks
 * wants to know what might be concerned. */
bool selector_matches(const json_t *selector, const json_t *labels);
/* A map of labels that must all be there (Service, ReplicationController); empty or NULL: none. */
bool selector_map_matches(const json_t *map, const json_t *labels);

#endif
