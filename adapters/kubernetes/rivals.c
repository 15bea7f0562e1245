/* rivals.c - see rivals.h (kubernetes-sigs/descheduler:README.md, kubernetes-sigs/karpenter,
 * kubernetes/autoscaler). */
#include "adapters/kubernetes/rivals.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/json.h"

/* An object or list that is there and may be read. Caller json_decref()s; NULL: none. */
static json_t *read_one(struct kube_api *api, const char *path)
{
    json_t *tree = NULL;
    struct err ignored = ERR_INIT;
    kube_api_get(api, path, &tree, NULL, &ignored);
    return tree;
}

/* A Deployment whose name begins so; its namespace, borrowed. NULL: none. */
static const char *find_deployment(const struct kube_objects *objects, const char *prefix)
{
    for (size_t i = 0; i < kube_places(objects, KUBE_DEPLOYMENT); i++) {
        const struct kube_workload *workload = kube_at(objects, KUBE_DEPLOYMENT, i);
        if (workload && strncmp(workload->meta.name, prefix, strlen(prefix)) == 0)
            return workload->meta.space ? workload->meta.space : "default";
    }
    return NULL;
}

static void tell_karpenter(struct kube_api *api, const struct kube_objects *objects,
                           struct buf *out)
{
    AUTO_JSON json_t *group = read_one(api, "/apis/karpenter.sh");
    if (group || find_deployment(objects, "karpenter"))
        buf_puts(out, "; Karpenter: takes nodes away while it consolidates, and provides none for "
                      "pods with pin: required");
}

static void tell_autoscaler(struct kube_api *api, const struct kube_objects *objects,
                            struct buf *out)
{
    AUTO_JSON json_t *status =
        read_one(api, "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status");
    if (status || find_deployment(objects, "cluster-autoscaler"))
        buf_puts(out, "; Cluster Autoscaler: removes nodes that remap has emptied (as it should), "
                      "pin: required is refused");
}

/* --- descheduler --- */

void rivals_descheduler(const char *policy, struct buf *out)
{
    static const char *const plugins[] = {"RemoveDuplicates", "LowNodeUtilization",
                                          "HighNodeUtilization",
                                          "RemovePodsViolatingTopologySpreadConstraint"};
    size_t n = out->size;
    for (size_t i = 0; i < ARRAY_LEN(plugins); i++)
        if (strstr(policy, plugins[i]))
            buf_printf(out, "%s%s", out->size > n ? ", " : "", plugins[i]);
    if (strstr(policy, "RemovePodsViolatingNodeAffinity") &&
        strstr(policy, "preferredDuringSchedulingIgnoredDuringExecution"))
        buf_printf(out, "%sRemovePodsViolatingNodeAffinity of preferred terms",
                   out->size > n ? ", " : "");
    if (!out->data)
        buf_puts(out, "");
}

static void tell_policy(struct kube_api *api, const char *space, struct buf *fights)
{
    static const char *const names[] = {"descheduler", "descheduler-policy-configmap",
                                        "descheduler-policy"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *path = kube_api_path("v1", space, "configmaps", names[i]);
        AUTO_JSON json_t *map = read_one(api, path);
        const char *key;
        json_t *text;
        json_object_foreach((json_t *)(uintptr_t)kube_get(map, "data"), key, text)
            if (json_is_string(text))
                rivals_descheduler(json_string_value(text), fights);
    }
}

static char *descheduler_space(struct kube_api *api, const struct kube_objects *objects)
{
    const char *space = find_deployment(objects, "descheduler");
    if (space)
        return mem_strdup(space);
    AUTO_JSON json_t *jobs = read_one(api, "/apis/batch/v1/cronjobs?limit=500");
    size_t i;
    const json_t *job;
    json_array_foreach(kube_get(jobs, "items"), i, job)
    {
        const char *name = kube_text(kube_get(job, "metadata"), "name");
        const char *own = kube_text(kube_get(job, "metadata"), "namespace");
        if (name && own && strncmp(name, "descheduler", strlen("descheduler")) == 0)
            return mem_strdup(own);
    }
    return NULL;
}

static void tell_descheduler(struct kube_api *api, const struct kube_objects *objects,
                             struct buf *out)
{
    AUTO_FREE char *space = descheduler_space(api, objects);
    AUTO_BUF struct buf fights = BUF_INIT;
    if (!space)
        return;
    tell_policy(api, space, &fights);
    if (fights.size)
        buf_printf(out, "; descheduler: %s will move pods back", fights.data);
    else
        buf_puts(out, "; descheduler: see that its policy has no RemoveDuplicates and no "
                      "LowNodeUtilization for these pods");
}

/* --- vertical autoscaler --- */

static void tell_vertical(struct kube_api *api, struct buf *out)
{
    AUTO_JSON json_t *list =
        read_one(api, "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers?limit=500");
    size_t i, n = 0;
    const json_t *item;
    json_array_foreach(kube_get(list, "items"), i, item)
    {
        const char *mode = kube_text(kube_path(item, "spec", "updatePolicy"), "updateMode");
        n += !mode || (strcmp(mode, "Off") != 0 && strcmp(mode, "Initial") != 0);
    }
    if (n)
        buf_printf(out, "; VerticalPodAutoscaler: %zu change requests by evicting pods (updateMode "
                        "Initial or Off does not)",
                   n);
}

void rivals_tell(struct kube_api *api, const struct kube_objects *objects, struct buf *out)
{
    tell_descheduler(api, objects, out);
    tell_karpenter(api, objects, out);
    tell_autoscaler(api, objects, out);
    tell_vertical(api, out);
}
