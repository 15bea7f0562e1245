/* write.c - the two ways into a pod template (interfaces.md 1.5): server-side apply of nothing but our
 * own fields, and a JSON patch whose tests let it change nothing but what was read. In both the
 * annotation `remap/intent` goes with it: there is no moment at which one is there without the
 * other. */
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/orchestrator.h"
#include "adapters/kubernetes/owners.h"
#include "model/base/json.h"

#define ANNOTATION_PATH "/metadata/annotations/remap~1intent"

static const char *meta_text(const json_t *workload, const char *key)
{
    const char *text = kube_text(kube_get(workload, "metadata"), key);
    return text ? text : "";
}

struct write {
    struct kube_sent *sent;
    long stale; /* the status that says that somebody was faster */
};

/* See orchestrator.h for what is returned. */
static int told(int rc, const struct kube_status *status, long stale, struct err *err)
{
    if (rc == 0)
        return 0;
    if (strcmp(status->cause, "FieldManagerConflict") == 0)
        return err_set(err, ERR_CONFLICT, "affinity owned by others: %s", status->cause_text);
    return status->code == stale ? 1 : -1;
}

static char *write_url(const json_t *workload)
{
    AUTO_FREE char *path = world_path(workload);
    return mem_printf("%s?fieldManager=" OWNERS_SELF, path);
}

/* Sends it, or with `later` only begins to. */
static int send(struct kube_orchestrator *o, const json_t *workload, const char *type,
                const json_t *body, long stale, struct write **later, struct err *err)
{
    AUTO_FREE char *url = write_url(workload);
    struct kube_status status = {0};
    if (!later)
        return told(kube_api_send(o->api, "PATCH", url, type, body, NULL, &status, err), &status,
                    stale, err);
    struct kube_sent *sent = kube_api_send_begin(o->api, "PATCH", url, type, body, err);
    if (!sent)
        return -1;
    *later = mem_alloc(sizeof **later);
    **later = (struct write){.sent = sent, .stale = stale};
    return 0;
}

int write_end(struct kube_orchestrator *o, struct write *write, struct err *err)
{
    struct kube_status status = {0};
    struct err why = ERR_INIT;
    int rc = kube_api_send_end(o->api, write->sent, NULL, &status, &why);
    rc = told(rc, &status, write->stale, &why);
    free(write);
    if (rc < 0 && (status.code == 401 || status.code == 429))
        return 1; /* nobody looked at it: to be sent anew, with other credentials or later */
    if (rc < 0)
        *err = why;
    return rc;
}

int write_apply(struct kube_orchestrator *o, const json_t *workload, const struct mark *mark,
                struct write **later, struct err *err)
{
    AUTO_FREE char *text = mark_encode(mark);
    AUTO_JSON json_t *body = json_pack(
        "{s:O,s:O,s:{s:s,s:s,s:s,s:s,s:{s:s}},s:{s:{s:{s:{s:{s:O}}}}}}", "apiVersion",
        json_object_get(workload, "apiVersion"), "kind", json_object_get(workload, "kind"),
        "metadata", "name", meta_text(workload, "name"), "namespace",
        meta_text(workload, "namespace"), "uid", meta_text(workload, "uid"), "resourceVersion",
        meta_text(workload, "resourceVersion"), "annotations", MARK_ANNOTATION, text, "spec",
        "template", "spec", "affinity", "nodeAffinity", pin_leaf_name(mark->pin.kind), mark->leaf);
    json_t *spec = json_object_get(json_object_get(json_object_get(body, "spec"), "template"),
                                   "spec");
    if (mark->constraint)
        json_object_set_new(spec, "topologySpreadConstraints",
                            json_pack("[O]", mark->constraint));
    return send(o, workload, "application/apply-patch+yaml", body, 409, later, err);
}

static void patch_annotation(const json_t *workload, const char *wanted, json_t *operations)
{
    const json_t *annotations = kube_path(workload, "metadata", "annotations");
    const char *now = kube_text(annotations, MARK_ANNOTATION);
    if ((!now && !wanted) || (now && wanted && strcmp(now, wanted) == 0))
        return;
    if (now)
        json_array_append_new(operations, json_pack("{s:s,s:s,s:s}", "op", "test", "path",
                                                    ANNOTATION_PATH, "value", now));
    if (!wanted)
        json_array_append_new(operations,
                              json_pack("{s:s,s:s}", "op", "remove", "path", ANNOTATION_PATH));
    else if (annotations)
        json_array_append_new(operations, json_pack("{s:s,s:s,s:s}", "op", "add", "path",
                                                    ANNOTATION_PATH, "value", wanted));
    else
        json_array_append_new(operations,
                              json_pack("{s:s,s:s,s:{s:s}}", "op", "add", "path",
                                        "/metadata/annotations", "value", MARK_ANNOTATION, wanted));
}

int write_patch(struct kube_orchestrator *o, const json_t *workload, const struct pin_fields *then,
                const char *annotation, bool locked, struct write **later, struct err *err)
{
    AUTO_PIN_FIELDS struct pin_fields now = pin_fields_of(workload);
    AUTO_JSON json_t *operations = json_pack("[{s:s,s:s,s:s}]", "op", "test", "path",
                                             "/metadata/uid", "value", meta_text(workload, "uid"));
    /* That something is absent cannot be tested; the version stands for it. */
    if (locked || (!now.affinity && then->affinity) || (!now.spread && then->spread))
        json_array_append_new(operations,
                              json_pack("{s:s,s:s,s:s}", "op", "test", "path",
                                        "/metadata/resourceVersion", "value",
                                        meta_text(workload, "resourceVersion")));
    size_t tests = json_array_size(operations);
    pin_patch(&now, then, operations);
    patch_annotation(workload, annotation, operations);
    if (json_array_size(operations) == tests) /* nothing changes: nothing is written */
        return 0;
    /* A failed test and a patch that makes no sense are one and the same 422: read again and see. */
    return send(o, workload, "application/json-patch+json", operations, 422, later, err);
}
