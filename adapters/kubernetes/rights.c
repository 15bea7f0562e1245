/* rights.c - asks the API server what we may do (rights.h; kubernetes/website:content/en/docs/
 * reference/access-authn-authz/authorization.md, SelfSubjectAccessReview: free to everybody). */
#include "adapters/kubernetes/rights.h"

#include "adapters/kubernetes/kube.h"
#include "model/base/json.h"
#include "model/base/mem.h"

/* 1 or 0; -1: it is not said. `name` NULL: any. */
static int may(struct kube_api *api, const char *verb, const char *space, const char *name)
{
    struct err ignored = ERR_INIT;
    AUTO_JSON json_t *answer = NULL;
    AUTO_JSON json_t *body = json_pack(
        "{s:s, s:s, s:{s:{s:s, s:s, s:s, s:s, s:s*}}}", "apiVersion", "authorization.k8s.io/v1",
        "kind", "SelfSubjectAccessReview", "spec", "resourceAttributes", "namespace", space, "verb",
        verb, "group", "coordination.k8s.io", "resource", "leases", "name", name);
    if (!body ||
        kube_api_send(api, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                      "application/json", body, &answer, NULL, &ignored))
        return -1;
    return json_is_true(kube_path(answer, "status", "allowed"));
}

void rights_tell_lease(struct kube_api *api, const char *space, const char *name, struct buf *out)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *lease = NULL;
    AUTO_FREE char *path = kube_api_path("coordination.k8s.io/v1", space, "leases", name);
    buf_printf(out, "; lease %s/%s ", space, name);
    if (may(api, "get", space, name) == 0 || may(api, "update", space, name) == 0) {
        buf_puts(out, "may not be taken by this account (who observes needs none)");
        return;
    }
    int rc = kube_api_get(api, path, &lease, NULL, &err);
    const char *holder = kube_text(kube_get(lease, "spec"), "holderIdentity");
    if (rc == 0 && holder && holder[0])
        buf_printf(out, "is held by %.150s", holder);
    else if (rc == 0)
        buf_puts(out, "is free");
    else if (err.kind != ERR_NOT_FOUND)
        buf_puts(out, "cannot be read now");
    else if (may(api, "create", space, NULL) == 0)
        buf_puts(out, "is not there and may not be made by this account");
    else
        buf_puts(out, "is free");
}

void rights_tell_pause(struct kube_api *api, const char *space, const char *name, struct buf *out)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *path = kube_api_path("v1", space, "configmaps", name);
    int rc = kube_api_get(api, path, NULL, NULL, &err);
    if (rc == 0)
        buf_printf(out, "; paused by configmap %s/%s, no move is begun until it is deleted", space,
                   name);
    else if (err.kind == ERR_NOT_FOUND)
        buf_printf(out, "; not paused: no configmap %s/%s", space, name);
    else if (err.kind == ERR_REFUSED)
        buf_printf(out,
                   "; configmap %s/%s may not be read by this account (who observes needs not)",
                   space, name);
    else
        buf_printf(out, "; configmap %s/%s cannot be read now", space, name);
}
