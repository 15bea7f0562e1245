/* pin.c - see pin.h. Shapes: kubernetes/api:core/v1/types.go NodeAffinity, NodeSelector,
 * TopologySpreadConstraint. */
#include "adapters/kubernetes/pin.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/mem.h"

#define HOSTNAME "kubernetes.io/hostname"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"
#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define WEIGHT 100 /* the largest the API takes: 1 … 100 */

/* --- the pin --- */

void pin_add(struct pin *pin, const char *node, const char *hostname, int64_t count)
{
    (void)ARRAY_PUSH(pin->hosts, pin->n_hosts);
    size_t at = pin->n_hosts - 1;
    while (at > 0 && strcmp(pin->hosts[at - 1].node, node) > 0) {
        pin->hosts[at] = pin->hosts[at - 1];
        at--;
    }
    pin->hosts[at] = (struct pin_host){mem_strdup(node), mem_strdup(hostname), count};
}

void pin_wipe(struct pin *pin)
{
    for (size_t i = 0; i < pin->n_hosts; i++) {
        free(pin->hosts[i].node);
        free(pin->hosts[i].hostname);
    }
    free(pin->hosts);
    *pin = (struct pin){0};
}

bool pin_has_host(const struct pin *pin, const char *node)
{
    for (size_t i = 0; i < pin->n_hosts; i++)
        if (strcmp(pin->hosts[i].node, node) == 0)
            return true;
    return false;
}

/* --- the fields --- */

static json_t *present(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : json_incref(value);
}

static const json_t *pod_spec(const json_t *workload)
{
    return kube_get(kube_path(workload, "spec", "template"), "spec");
}

struct pin_fields pin_fields_of(const json_t *workload)
{
    const json_t *spec = pod_spec(workload);
    return (struct pin_fields){present(spec, "affinity"),
                               present(spec, "topologySpreadConstraints")};
}

struct pin_fields pin_fields_decode(const json_t *object)
{
    return (struct pin_fields){present(object, "affinity"), present(object, "spread")};
}

json_t *pin_fields_encode(const struct pin_fields *fields)
{
    json_t *object = json_object();
    if (fields->affinity)
        json_object_set(object, "affinity", fields->affinity);
    if (fields->spread)
        json_object_set(object, "spread", fields->spread);
    return object;
}

void pin_fields_wipe(struct pin_fields *fields)
{
    json_decref(fields->affinity);
    json_decref(fields->spread);
    *fields = (struct pin_fields){NULL, NULL};
}

static bool same(const json_t *a, const json_t *b)
{
    return a && b ? json_equal(a, b) : a == b;
}

bool pin_fields_equal(const struct pin_fields *a, const struct pin_fields *b)
{
    return same(a->affinity, b->affinity) && same(a->spread, b->spread);
}

/* --- building --- */

const char *pin_leaf_name(enum pin_kind kind)
{
    return kind == PIN_REQUIRED ? REQUIRED : PREFERRED;
}

json_t *pin_leaf_get(const json_t *affinity, enum pin_kind kind)
{
    json_t *leaf = json_object_get(kube_get(affinity, "nodeAffinity"), pin_leaf_name(kind));
    return json_is_null(leaf) ? NULL : leaf;
}

static json_t *requirement(const char *key, json_t *values)
{
    return json_pack("{s:s,s:s,s:o}", "key", key, "operator", "In", "values", values);
}

static json_t *one_value(const char *value)
{
    return json_pack("[s]", value);
}

/* "On this node", by label or, where the label does not tell it, by name: a term of its own, since
 * matchFields takes exactly one value. */
static json_t *host_term(const struct pin_host *host)
{
    return host->hostname
               ? json_pack("{s:[o]}", "matchExpressions",
                           requirement(HOSTNAME, one_value(host->hostname)))
               : json_pack("{s:[o]}", "matchFields",
                           requirement("metadata.name", one_value(host->node)));
}

static json_t *preferred_new(const struct pin *pin, const json_t *users)
{
    json_t *list = users ? json_deep_copy(users) : json_array();
    for (size_t i = 0; i < pin->n_hosts; i++)
        json_array_append_new(list, json_pack("{s:i,s:o}", "weight", WEIGHT, "preference",
                                              host_term(&pin->hosts[i])));
    return list;
}

/* A copy of the term (NULL: an empty one) that asks for `wanted` as well. */
static json_t *narrowed(const json_t *term, const char *list, json_t *wanted)
{
    json_t *copy = term ? json_deep_copy(term) : json_object();
    json_t *asked = json_object_get(copy, list);
    if (!json_is_array(asked)) {
        asked = json_array();
        json_object_set_new(copy, list, asked);
    }
    json_array_append_new(asked, wanted);
    return copy;
}

/* The user's term becomes one for the hosts that the label tells apart, and one for each of the
 * others. */
static void add_narrowed(const struct pin *pin, const json_t *term, json_t *terms)
{
    json_t *labels = json_array();
    for (size_t i = 0; i < pin->n_hosts; i++)
        if (pin->hosts[i].hostname)
            json_array_append_new(labels, json_string(pin->hosts[i].hostname));
    if (json_array_size(labels) > 0)
        json_array_append_new(
            terms, narrowed(term, "matchExpressions", requirement(HOSTNAME, json_incref(labels))));
    json_decref(labels);
    for (size_t i = 0; i < pin->n_hosts; i++)
        if (!pin->hosts[i].hostname)
            json_array_append_new(
                terms, narrowed(term, "matchFields",
                                requirement("metadata.name", one_value(pin->hosts[i].node))));
}

static json_t *required_new(const struct pin *pin, const json_t *users)
{
    const json_t *own = kube_get(users, "nodeSelectorTerms"), *term;
    json_t *terms = json_array();
    size_t i;
    json_array_foreach(own, i, term)
        add_narrowed(pin, term, terms);
    if (json_array_size(own) == 0)
        add_narrowed(pin, NULL, terms);
    return json_pack("{s:o}", "nodeSelectorTerms", terms);
}

json_t *pin_leaf_new(const struct pin *pin, const json_t *users)
{
    return pin->kind == PIN_REQUIRED ? required_new(pin, users) : preferred_new(pin, users);
}

json_t *pin_spread_new(const struct pin *pin, const json_t *workload, const json_t *users)
{
    const json_t *constraint, *selector = kube_path(workload, "spec", "selector");
    const char *kind = kube_text(workload, "kind");
    size_t i;
    if (pin->kind == PIN_PREFERRED || pin->n_hosts < 2 || !selector)
        return NULL;
    json_array_foreach(users, i, constraint)
    {
        const char *key = kube_text(constraint, "topologyKey");
        if (key && strcmp(key, HOSTNAME) == 0)
            return NULL;
    }
    /* Pods of the revision that is leaving must not count, or they block the rollout. */
    const char *revision = kind && strcmp(kind, "StatefulSet") == 0 ? "controller-revision-hash"
                                                                    : "pod-template-hash";
    return json_pack("{s:i,s:s,s:s,s:o,s:[s]}", "maxSkew", 1, "topologyKey", HOSTNAME,
                     "whenUnsatisfiable", "DoNotSchedule", "labelSelector",
                     json_deep_copy(selector), "matchLabelKeys", revision);
}

struct pin_fields pin_put_in(const struct pin_fields *fields, enum pin_kind kind, json_t *leaf,
                             json_t *constraint)
{
    struct pin_fields out = {
        .affinity = fields->affinity ? json_deep_copy(fields->affinity) : json_object(),
        .spread = fields->spread ? json_deep_copy(fields->spread) : NULL};
    json_t *node = json_object_get(out.affinity, "nodeAffinity");
    if (!json_is_object(node)) {
        node = json_object();
        json_object_set_new(out.affinity, "nodeAffinity", node);
    }
    json_object_set(node, pin_leaf_name(kind), leaf);
    if (constraint) {
        if (!out.spread)
            out.spread = json_array();
        json_array_append(out.spread, constraint);
    }
    return out;
}

/* --- taking out --- */

/* Removes `key` where it has become empty, unless it was there before (and so empty then). */
static void drop_empty(json_t *object, const char *key, bool had)
{
    const json_t *value = json_object_get(object, key);
    if (!had && json_is_object(value) && json_object_size(value) == 0)
        json_object_del(object, key);
}

static json_t *affinity_without(const json_t *affinity, enum pin_kind kind, const json_t *before)
{
    json_t *out = json_deep_copy(affinity);
    json_t *node = json_object_get(out, "nodeAffinity");
    json_t *old = pin_leaf_get(before, kind);
    if (old)
        json_object_set(node, pin_leaf_name(kind), old);
    else
        json_object_del(node, pin_leaf_name(kind));
    drop_empty(out, "nodeAffinity", kube_get(before, "nodeAffinity") != NULL);
    if (!before && json_object_size(out) == 0) {
        json_decref(out);
        return NULL;
    }
    return out;
}

static json_t *spread_without(const json_t *spread, const json_t *constraint, const json_t *before)
{
    size_t i;
    const json_t *item;
    json_t *out = spread ? json_copy((json_t *)spread) : NULL;
    json_array_foreach(spread, i, item)
    {
        if (constraint && json_equal(item, constraint)) {
            json_array_remove(out, i);
            break;
        }
    }
    if (out && !before && json_array_size(out) == 0) {
        json_decref(out);
        return NULL;
    }
    return out;
}

bool pin_take_out(const struct pin_fields *fields, enum pin_kind kind, const json_t *leaf,
                  const json_t *constraint, const struct pin_fields *before,
                  struct pin_fields *out)
{
    const json_t *now = pin_leaf_get(fields->affinity, kind);
    if (!now || !leaf || !json_equal(now, leaf))
        return false;
    *out = (struct pin_fields){affinity_without(fields->affinity, kind, before->affinity),
                               spread_without(fields->spread, constraint, before->spread)};
    return true;
}

static void patch_field(const char *path, json_t *now, json_t *then, json_t *operations)
{
    if (same(now, then))
        return;
    if (now)
        json_array_append_new(operations, json_pack("{s:s,s:s,s:O}", "op", "test", "path", path,
                                                    "value", now));
    if (!then)
        json_array_append_new(operations, json_pack("{s:s,s:s}", "op", "remove", "path", path));
    else /* where it is absent the patch has no test for it: the caller's resourceVersion has */
        json_array_append_new(operations,
                              json_pack("{s:s,s:s,s:O}", "op", now ? "replace" : "add", "path",
                                        path, "value", then));
}

void pin_patch(const struct pin_fields *now, const struct pin_fields *then, json_t *operations)
{
    patch_field("/spec/template/spec/affinity", now->affinity, then->affinity, operations);
    patch_field("/spec/template/spec/topologySpreadConstraints", now->spread, then->spread,
                operations);
}
