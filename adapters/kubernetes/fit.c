/* fit.c - selectors, affinity terms and tolerations against a node (kubernetes/api:core/v1/types.go:
 * NodeSelectorTerm, Toleration). Terms are ORed, expressions within one are ANDed; the selector is
 * ANDed with all of them. */
#include "adapters/kubernetes/fit.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/mem.h"

static bool same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

void kube_taints_decode(const json_t *spec, struct kube_taints *out)
{
    size_t i;
    const json_t *item;
    json_array_foreach(kube_get(spec, "taints"), i, item)
    {
        const char *effect = kube_text(item, "effect");
        if (!same(effect, "NoSchedule") && !same(effect, "NoExecute"))
            continue; /* PreferNoSchedule is soft */
        struct kube_taint *taint = ARRAY_PUSH(out->items, out->n);
        taint->key = mem_strdup(kube_text(item, "key"));
        taint->value = mem_strdup(kube_text(item, "value"));
        taint->effect = mem_strdup(effect);
    }
}

void kube_taints_wipe(struct kube_taints *taints)
{
    for (size_t i = 0; i < taints->n; i++) {
        free(taints->items[i].key);
        free(taints->items[i].value);
        free(taints->items[i].effect);
    }
    free(taints->items);
    *taints = (struct kube_taints){0};
}

static json_t *copy(const json_t *value)
{
    return value ? json_deep_copy(value) : NULL;
}

void kube_fit_decode(const json_t *spec, struct kube_fit *out)
{
    const json_t *affinity = kube_path(spec, "affinity", "nodeAffinity");
    const json_t *required =
        kube_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    *out = (struct kube_fit){copy(kube_get(spec, "nodeSelector")),
                             copy(kube_get(required, "nodeSelectorTerms")),
                             copy(kube_get(spec, "tolerations"))};
}

void kube_fit_wipe(struct kube_fit *fit)
{
    json_decref(fit->selector);
    json_decref(fit->terms);
    json_decref(fit->tolerations);
    *fit = (struct kube_fit){0};
}

static const char *label_value(const struct label *labels, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(labels[i].name, name) == 0)
            return labels[i].value;
    return NULL;
}

static bool is_among(const json_t *values, const char *text)
{
    size_t i;
    const json_t *value;
    json_array_foreach(values, i, value)
        if (json_is_string(value) && strcmp(json_string_value(value), text) == 0)
            return true;
    return false;
}

/* `have` NULL: the node has no such label. NotIn fits it then, as the scheduler has it. */
static bool expression_fits(const json_t *expression, const char *have)
{
    const char *operator = kube_text(expression, "operator");
    const json_t *values = kube_get(expression, "values");
    if (same(operator, "In"))
        return have && is_among(values, have);
    if (same(operator, "NotIn"))
        return !have || !is_among(values, have);
    if (same(operator, "Exists"))
        return have != NULL;
    if (same(operator, "DoesNotExist"))
        return have == NULL;
    const char *wanted = json_string_value(json_array_get(values, 0));
    if (!have || !wanted || (!same(operator, "Gt") && !same(operator, "Lt")))
        return false;
    long long number = atoll(have), limit = atoll(wanted);
    return same(operator, "Gt") ? number > limit : number < limit;
}

static bool term_fits(const json_t *term, const char *node, const struct label *labels, size_t n)
{
    size_t i;
    const json_t *expression;
    const json_t *expressions = kube_get(term, "matchExpressions");
    const json_t *fields = kube_get(term, "matchFields");
    if (json_array_size(expressions) == 0 && json_array_size(fields) == 0)
        return false; /* an empty term matches nothing */
    json_array_foreach(expressions, i, expression)
    {
        const char *key = kube_text(expression, "key");
        if (!key || !expression_fits(expression, label_value(labels, n, key)))
            return false;
    }
    json_array_foreach(fields, i, expression)
    {
        if (!same(kube_text(expression, "key"), "metadata.name") ||
            !expression_fits(expression, node))
            return false;
    }
    return true;
}

bool kube_fit_selects(const struct kube_fit *fit, const char *node, const struct label *labels,
                      size_t n_labels)
{
    const char *name;
    json_t *value;
    json_object_foreach(fit->selector, name, value)
    {
        const char *have = label_value(labels, n_labels, name);
        if (!have || !same(have, json_string_value(value)))
            return false;
    }
    if (!fit->terms)
        return true;
    size_t i;
    const json_t *term;
    json_array_foreach(fit->terms, i, term)
        if (term_fits(term, node, labels, n_labels))
            return true;
    return false;
}

bool kube_fit_tolerates(const struct kube_fit *fit, const struct kube_taint *taint)
{
    size_t i;
    const json_t *toleration;
    json_array_foreach(fit->tolerations, i, toleration)
    {
        const char *key = kube_text(toleration, "key"), *effect = kube_text(toleration, "effect");
        bool exists = same(kube_text(toleration, "operator"), "Exists");
        if (effect && effect[0] && !same(effect, taint->effect))
            continue;
        if (!key || !key[0]) { /* Exists without key: everything */
            if (exists)
                return true;
            continue;
        }
        if (same(key, taint->key) && (exists || same(kube_text(toleration, "value"), taint->value)))
            return true;
    }
    return false;
}
