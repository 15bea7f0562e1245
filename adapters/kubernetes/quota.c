/* quota.c - see quota.h. */
#include "adapters/kubernetes/quota.h"

#include <stdio.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"

bool quota_exceeds(int64_t used, int64_t each, int64_t n, int64_t cap)
{
    return n > 0 && each > 0 && (used > cap || each > (cap - used) / n);
}

/* -1 where it is not given, or not to be read. */
static int64_t amount(const json_t *object, const char *key, int64_t per, bool need)
{
    int64_t value = -1;
    struct err odd = ERR_INIT;
    return kube_quantity(object, key, per, need, &value, &odd) ? -1 : value;
}

int64_t quota_limits(const json_t *pod_spec, const char *resource, int64_t per)
{
    size_t i;
    const json_t *container;
    int64_t sum = 0;
    json_array_foreach(kube_get(pod_spec, "containers"), i, container)
    {
        int64_t one = amount(kube_path(container, "resources", "limits"), resource, per, true);
        if (one > 0 && sum < MODEL_MAX_NUMBER)
            sum += one;
    }
    return sum;
}

const char *quota_problem(const json_t *quota, const struct quota_need *need)
{
    const struct {
        const char *name;
        int64_t per, each;
    } rows[] = {{"pods", 1, 1},
                {"count/pods", 1, 1},
                {"cpu", 1000, need->cpu_millis},
                {"requests.cpu", 1000, need->cpu_millis},
                {"memory", 1, need->mem_bytes},
                {"requests.memory", 1, need->mem_bytes},
                {"limits.cpu", 1000, need->limit_cpu_millis},
                {"limits.memory", 1, need->limit_mem_bytes}};
    const json_t *status = kube_get(quota, "status");
    if (kube_path(quota, "spec", "scopes") || kube_path(quota, "spec", "scopeSelector"))
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t hard = amount(kube_get(status, "hard"), rows[i].name, rows[i].per, false);
        int64_t used = amount(kube_get(status, "used"), rows[i].name, rows[i].per, true);
        if (hard >= 0 && quota_exceeds(used < 0 ? 0 : used, rows[i].each, need->pods, hard))
            return rows[i].name;
    }
    return NULL;
}

/* --- LimitRange --- */

struct resource {
    const char *name;
    int64_t per;
};
static const struct resource resources[] = {{"cpu", 1000}, {"memory", 1}};

/* The word for what is broken ("max", "min"); NULL: nothing. */
static const char *item_problem(const json_t *item, const struct resource *r, int64_t request,
                                int64_t limit)
{
    int64_t max = amount(kube_get(item, "max"), r->name, r->per, false);
    int64_t min = amount(kube_get(item, "min"), r->name, r->per, true);
    if (max >= 0 && (request > max || limit > max))
        return "max";
    return min >= 0 && ((request >= 0 && request < min) || (limit >= 0 && limit < min)) ? "min"
                                                                                        : NULL;
}

static const char *container_problem(const json_t *item, const json_t *pod_spec,
                                     const struct resource *r)
{
    size_t i;
    const json_t *container;
    const char *what = NULL;
    json_array_foreach(kube_get(pod_spec, "containers"), i, container)
        if (!what)
            what = item_problem(
                item, r, amount(kube_path(container, "resources", "requests"), r->name, r->per, true),
                amount(kube_path(container, "resources", "limits"), r->name, r->per, true));
    return what;
}

static const char *pod_problem(const json_t *item, const json_t *pod_spec,
                               const struct resource *r)
{
    size_t i;
    const json_t *container;
    int64_t request = 0, limit = 0;
    json_array_foreach(kube_get(pod_spec, "containers"), i, container)
    {
        int64_t asked =
            amount(kube_path(container, "resources", "requests"), r->name, r->per, true);
        int64_t most = amount(kube_path(container, "resources", "limits"), r->name, r->per, true);
        request += asked > 0 ? asked : 0;
        limit += most > 0 ? most : 0;
    }
    return item_problem(item, r, request > 0 ? request : -1, limit > 0 ? limit : -1);
}

const char *quota_range_problem(const json_t *range, const json_t *pod_spec, char *text,
                                size_t size)
{
    size_t i;
    const json_t *item;
    json_array_foreach(kube_path(range, "spec", "limits"), i, item)
    {
        const char *type = kube_text(item, "type");
        bool whole = type && strcmp(type, "Pod") == 0;
        if (!type || (!whole && strcmp(type, "Container") != 0))
            continue;
        for (size_t r = 0; r < ARRAY_LEN(resources); r++) {
            const char *what = whole ? pod_problem(item, pod_spec, &resources[r])
                                     : container_problem(item, pod_spec, &resources[r]);
            if (!what)
                continue;
            snprintf(text, size, "%s %s of a %s", what, resources[r].name, type);
            return text;
        }
    }
    return NULL;
}
