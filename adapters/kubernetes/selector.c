/* selector.c - see selector.h. */
#include "adapters/kubernetes/selector.h"

#include <string.h>

#include "adapters/kubernetes/kube.h"

static bool is_among(const json_t *values, const char *text)
{
    size_t i;
    const json_t *value;
    json_array_foreach(values, i, value)
        if (json_is_string(value) && strcmp(json_string_value(value), text) == 0)
            return true;
    return false;
}

static bool map_holds(const json_t *map, const json_t *labels)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)map, name, value)
    {
        const char *have = kube_text(labels, name), *want = json_string_value(value);
        if (!have || !want || strcmp(have, want) != 0)
            return false;
    }
    return true;
}

static bool expression_holds(const json_t *expression, const json_t *labels)
{
    const char *key = kube_text(expression, "key"), *operator = kube_text(expression, "operator");
    const char *have = key ? kube_text(labels, key) : NULL;
    const json_t *values = kube_get(expression, "values");
    if (!key || !operator)
        return false;
    if (strcmp(operator, "In") == 0)
        return have && is_among(values, have);
    if (strcmp(operator, "NotIn") == 0)
        return !have || !is_among(values, have);
    if (strcmp(operator, "Exists") == 0)
        return have != NULL;
    return strcmp(operator, "DoesNotExist") != 0 || !have;
}

bool selector_matches(const json_t *selector, const json_t *labels)
{
    size_t i;
    const json_t *expression;
    if (!json_is_object(selector) || !map_holds(kube_get(selector, "matchLabels"), labels))
        return false;
    json_array_foreach(kube_get(selector, "matchExpressions"), i, expression)
        if (!expression_holds(expression, labels))
            return false;
    return true;
}

bool selector_map_matches(const json_t *map, const json_t *labels)
{
    return json_object_size(map) > 0 && map_holds(map, labels);
}
