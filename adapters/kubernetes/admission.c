/* admission.c - see admission.h; kubernetes/api:admission/v1/types.go, RFC 6902. */
#include "adapters/kubernetes/admission.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/json.h"

#define MARK "remap/intent" /* contract.md 7 */
#define MARK_POINTER "/metadata/annotations/remap~1intent"
/* Preferred terms of the pod's own template keep their say; ours is the heaviest there may be. */
#define WEIGHT 100

/* Depth: a pod's deepest field (probes, projected volumes, affinity terms) is below 20. */
static const struct json_limits limits = {ADMISSION_MAX_BYTES, 64, 200000};

struct own_wish {
    char *space, *owner_uid, *node, *mark;
    int64_t until_ms;
};

struct wishes {
    struct own_wish *list; /* in the order they came */
    size_t n;
    int64_t asked, met;
};

struct wishes *wishes_new(void)
{
    return mem_alloc(sizeof(struct wishes));
}

static void remove_at(struct wishes *w, size_t at)
{
    free(w->list[at].space);
    free(w->list[at].owner_uid);
    free(w->list[at].node);
    free(w->list[at].mark);
    memmove(&w->list[at], &w->list[at + 1], (--w->n - at) * sizeof *w->list);
}

void wishes_free(struct wishes *w)
{
    while (w && w->n)
        remove_at(w, w->n - 1);
    if (w)
        free(w->list);
    free(w);
}

void wishes_drop(struct wishes *w, const char *mark)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->list[i].mark, mark) == 0) {
            remove_at(w, i);
            return;
        }
}

void wishes_add(struct wishes *w, const struct wish *wish)
{
    wishes_drop(w, wish->mark);
    *ARRAY_PUSH(w->list, w->n) =
        (struct own_wish){mem_strdup(wish->space), mem_strdup(wish->owner_uid),
                          mem_strdup(wish->node), mem_strdup(wish->mark), wish->until_ms};
}

int64_t wishes_asked(const struct wishes *w)
{
    return w->asked;
}

int64_t wishes_met(const struct wishes *w)
{
    return w->met;
}

/* --- a review --- */

/* The uid of the owner that made the pod, NULL where there is none. */
static const char *controller_uid(const json_t *pod)
{
    size_t i;
    json_t *owner;
    json_array_foreach(kube_get(kube_get(pod, "metadata"), "ownerReferences"), i, owner)
    {
        if (json_is_true(kube_get(owner, "controller")))
            return kube_text(owner, "uid");
    }
    return NULL;
}

/* The first wish for this pod; -1: none. Old ones are thrown away. */
static ptrdiff_t find_wish(struct wishes *w, const char *space, const json_t *pod, int64_t now_ms)
{
    const char *uid = controller_uid(pod);
    for (size_t i = w->n; i-- > 0;)
        if (w->list[i].until_ms <= now_ms)
            remove_at(w, i);
    if (!uid || !space || kube_text(kube_get(pod, "spec"), "nodeName"))
        return -1;
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->list[i].owner_uid, uid) == 0 && strcmp(w->list[i].space, space) == 0)
            return (ptrdiff_t)i;
    return -1;
}

/* Member `key`, made of `fresh` (which it takes) where it is missing; NULL where it is of another
 * type. Borrowed. */
static json_t *member(json_t *object, const char *key, json_t *fresh)
{
    AUTO_JSON json_t *made = fresh;
    json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value)) {
        json_object_set(object, key, made);
        return made;
    }
    return json_typeof(value) == json_typeof(made) ? value : NULL;
}

/* The pod's affinity with the node as one more preferred term: names of nodes by field, so that no
 * label is taken for granted. New reference; NULL where the pod's own is not as affinities are. */
static json_t *steered_affinity(const json_t *pod, const char *node)
{
    AUTO_JSON json_t *spec = json_object();
    const json_t *own = kube_path(pod, "spec", "affinity");
    if (own)
        json_object_set_new(spec, "affinity", json_deep_copy(own));
    json_t *affinity = member(spec, "affinity", json_object());
    json_t *nodes = affinity ? member(affinity, "nodeAffinity", json_object()) : NULL;
    json_t *terms =
        nodes ? member(nodes, "preferredDuringSchedulingIgnoredDuringExecution", json_array())
              : NULL;
    json_t *term =
        json_pack("{s:i, s:{s:[{s:s, s:s, s:[s]}]}}", "weight", WEIGHT, "preference", "matchFields",
                  "key", "metadata.name", "operator", "In", "values", node);
    if (!terms) {
        json_decref(term);
        return NULL;
    }
    json_array_append_new(terms, term);
    return json_incref(affinity);
}

/* The JSON patch, base64; NULL where the pod is not as pods are. Caller frees. */
static char *patch_of(const json_t *pod, const struct own_wish *wish)
{
    AUTO_JSON json_t *affinity = steered_affinity(pod, wish->node);
    if (!affinity)
        return NULL;
    bool noted = json_is_object(kube_get(kube_get(pod, "metadata"), "annotations"));
    json_t *note = noted ? json_string(wish->mark) : json_pack("{s:s}", MARK, wish->mark);
    AUTO_JSON json_t *patch =
        json_pack("[{s:s, s:s, s:O}, {s:s, s:s, s:o}]", "op", "add", "path", "/spec/affinity",
                  "value", affinity, "op", "add", "path",
                  noted ? MARK_POINTER : "/metadata/annotations", "value", note);
    AUTO_FREE char *text = patch ? json_dumps(patch, JSON_COMPACT) : NULL;
    if (!text)
        return NULL;
    size_t size = strlen(text);
    char *coded = mem_alloc(4 * ((size + 2) / 3) + 1);
    EVP_EncodeBlock((unsigned char *)coded, (const unsigned char *)text, (int)size);
    return coded;
}

static unsigned refuse(struct buf *out, const char *why)
{
    buf_puts(out, "{\"error\":");
    json_put_text(out, why);
    buf_puts(out, "}\n");
    return 400;
}

static void put_answer(const char *uid, const char *patch, struct buf *out)
{
    buf_puts(out, "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\","
                  "\"response\":{\"uid\":");
    json_put_text(out, uid);
    buf_puts(out, ",\"allowed\":true");
    if (patch) {
        buf_puts(out, ",\"patchType\":\"JSONPatch\",\"patch\":");
        json_put_text(out, patch);
    }
    buf_puts(out, "}}\n");
}

unsigned admission_answer(struct wishes *w, const char *body, size_t size, int64_t now_ms,
                          struct buf *out)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *review = json_parse(body, size, &limits, &err);
    if (!review)
        return refuse(out, err.text);
    const json_t *request = kube_get(review, "request");
    const char *uid = kube_text(request, "uid");
    const char *version = kube_text(review, "apiVersion");
    const json_t *pod = kube_get(request, "object");
    if (!uid || !version || strcmp(version, "admission.k8s.io/v1") != 0)
        return refuse(out, "is no AdmissionReview of admission.k8s.io/v1");
    w->asked++;
    const char *operation = kube_text(request, "operation");
    bool create = operation && strcmp(operation, "CREATE") == 0;
    const char *kind = kube_text(kube_get(request, "kind"), "kind");
    ptrdiff_t at = create && kind && strcmp(kind, "Pod") == 0 && json_is_object(pod)
                       ? find_wish(w, kube_text(request, "namespace"), pod, now_ms)
                       : -1;
    AUTO_FREE char *patch = at < 0 ? NULL : patch_of(pod, &w->list[at]);
    if (patch && !json_is_true(kube_get(request, "dryRun"))) {
        w->met++;
        remove_at(w, (size_t)at);
    }
    put_answer(uid, patch, out);
    return 200;
}
