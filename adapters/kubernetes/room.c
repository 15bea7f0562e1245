/* room.c - room for a rollout (interfaces.md 1.9 rule 7): the scheduler admits by requests and pod
 * slots, the API server by the namespace's quota. */
#include <stdio.h>
#include <string.h>

#include "adapters/kubernetes/conduct.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/quota.h"
#include "adapters/kubernetes/rollout.h"
#include "model/base/json.h"

struct room { /* CPU in millis, memory in bytes */
    int64_t cpu, mem, pods;
};

static bool is(const char *text, const char *wanted)
{
    return text && strcmp(text, wanted) == 0;
}

static const char *name_of(const json_t *object)
{
    const char *name = kube_text(kube_get(object, "metadata"), "name");
    return name ? name : "(unnamed)";
}

static const char *node_of(const json_t *pod)
{
    return kube_text(kube_get(pod, "spec"), "nodeName");
}

/* What a pod requests; false where it cannot be read. */
static bool pod_needs(const json_t *object, struct room *out)
{
    struct kube_pod pod;
    struct err err = ERR_INIT;
    if (kube_pod_decode(object, NULL, &pod, &err))
        return false;
    *out = (struct room){pod.cpu_request_millis, pod.mem_request_bytes, pod.finished ? 0 : 1};
    kube_pod_drop(&pod);
    return true;
}

/* What one of its pods takes: as one of them does (admission may have added to it), else as its
 * template says. */
static bool own_needs(const struct conduct *c, struct room *out)
{
    const json_t *pod = json_array_get(c->pods, 0);
    if (pod)
        return pod_needs(pod, out);
    const json_t *spec = kube_get(kube_path(c->workload, "spec", "template"), "spec");
    AUTO_JSON json_t *one = json_pack("{s:{s:s},s:O?}", "metadata", "name", "template", "spec",
                                      (json_t *)spec);
    return pod_needs(one, out);
}

static int64_t count_on(const json_t *pods, const char *node)
{
    size_t i;
    const json_t *pod;
    int64_t n = 0;
    json_array_foreach(pods, i, pod)
        n += is(node_of(pod), node);
    return n;
}

/* Old pods leave last in the worst case, but never more than a surge of new ones is there too many:
 * so the host needs room for the first surge, and for what it has to take in all. */
static bool node_takes(const struct conduct *c, const json_t *object, const struct pin_host *host,
                       const struct room *need, char *why, size_t size)
{
    struct kube_node node;
    struct err err = ERR_INIT;
    struct room used = {0, 0, 0}, one;
    const json_t *pod;
    size_t i;
    int64_t surge = rollout_pace(c->workload).surge, here = count_on(c->pods, host->node);
    int64_t first = host->count < surge ? host->count : surge;
    int64_t more = host->count - here > first ? host->count - here : first;
    json_array_foreach(c->target_pods, i, pod)
    {
        if (!is(node_of(pod), host->node) || !pod_needs(pod, &one) || one.pods == 0)
            continue;
        used.cpu += one.cpu;
        used.mem += one.mem;
        used.pods++;
    }
    if (kube_node_decode(object, &node, &err)) {
        snprintf(why, size, "%s: %s", host->node, err.text);
        return false;
    }
    const char *what = quota_exceeds(used.cpu, need->cpu, more, node.cpu_cap_millis)  ? "CPU requests"
                       : quota_exceeds(used.mem, need->mem, more, node.mem_cap_bytes) ? "memory requests"
                       : node.pods_cap >= 0 && quota_exceeds(used.pods, 1, more, node.pods_cap)
                           ? "pod slots"
                           : NULL;
    kube_node_drop(&node);
    if (what)
        snprintf(why, size, "%s has no room for %lld more during the rollout: %s", host->node,
                 (long long)more, what);
    return !what;
}

static bool quota_takes(const struct conduct *c, const json_t *quota, const struct room *need,
                        char *why, size_t size)
{
    const json_t *spec = kube_get(kube_path(c->workload, "spec", "template"), "spec");
    const struct quota_need surge = {.pods = rollout_pace(c->workload).surge,
                                     .cpu_millis = need->cpu,
                                     .mem_bytes = need->mem,
                                     .limit_cpu_millis = quota_limits(spec, "cpu", 1000),
                                     .limit_mem_bytes = quota_limits(spec, "memory", 1)};
    const char *what = quota_problem(quota, &surge);
    if (what)
        snprintf(why, size, "ResourceQuota %s has no room for the surge: %s", name_of(quota), what);
    return !what;
}

bool room_fits(const struct conduct *c, char *why, size_t size)
{
    struct room need;
    size_t i;
    const json_t *object;
    if (!own_needs(c, &need)) {
        snprintf(why, size, "what it requests cannot be read");
        return false;
    }
    for (size_t h = 0; h < c->pin->n_hosts; h++)
        json_array_foreach(c->targets, i, object)
            if (is(name_of(object), c->pin->hosts[h].node) &&
                !node_takes(c, object, &c->pin->hosts[h], &need, why, size))
                return false;
    json_array_foreach(c->quotas, i, object)
        if (!quota_takes(c, object, &need, why, size))
            return false;
    return true;
}
