/* evict.c - POST …/pods/NAME/eviction (evict.h; kubernetes/website:content/en/docs/concepts/
 * scheduling-eviction/api-eviction.md). */
#include "adapters/kubernetes/evict.h"

#include "adapters/kubernetes/kube.h"
#include "model/base/json.h"

int kube_evict(struct kube_api *api, const json_t *pod, struct kube_status *status, struct err *err)
{
    const json_t *meta = kube_get(pod, "metadata");
    const char *space = kube_text(meta, "namespace"), *name = kube_text(meta, "name");
    AUTO_JSON json_t *body =
        json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:{s:s}}}", "apiVersion", "policy/v1", "kind",
                  "Eviction", "metadata", "name", name, "namespace", space, "deleteOptions",
                  "preconditions", "uid", kube_text(meta, "uid"));
    *status = (struct kube_status){.retry_after_ms = -1};
    if (!body)
        return err_set(err, ERR_INPUT, "a pod without name, namespace or uid");
    AUTO_FREE char *pods = kube_api_path("v1", space, "pods", name);
    AUTO_FREE char *path = mem_printf("%s/eviction", pods);
    struct err why = ERR_INIT;
    if (kube_api_send(api, "POST", path, "application/json", body, NULL, status, &why) == 0 ||
        kube_api_absent(status))
        return 0;
    *err = why;
    return -1;
}
