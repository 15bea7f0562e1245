/* decode.c - members of API objects: tolerant of what is missing or unknown, strict about what is
 * used (interfaces.md 0, 1.2). */
#include "adapters/kubernetes/kube.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/quantity.h"
#include "model/base/mem.h"

const json_t *kube_get(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

const json_t *kube_path(const json_t *object, const char *first, const char *second)
{
    return kube_get(kube_get(object, first), second);
}

const char *kube_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

int64_t kube_number(const json_t *object, const char *key, int64_t fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : fallback;
}

bool kube_condition(const json_t *status, const char *type)
{
    size_t i;
    const json_t *condition, *conditions = kube_get(status, "conditions");
    json_array_foreach(conditions, i, condition)
    {
        const char *name = kube_text(condition, "type"), *state = kube_text(condition, "status");
        if (name && state && strcmp(name, type) == 0)
            return strcmp(state, "True") == 0;
    }
    return false;
}

int kube_quantity(const json_t *object, const char *key, int64_t per, bool need, int64_t *out,
                  struct err *err)
{
    const json_t *value = kube_get(object, key);
    char number[40];
    const char *text = json_string_value(value);
    if (!value)
        return 0;
    if (json_is_integer(value)) { /* hand-written objects */
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        text = number;
    } else if (json_is_real(value)) {
        snprintf(number, sizeof number, "%.15g", json_real_value(value));
        text = number;
    }
    if (!text)
        return err_set(err, ERR_INPUT, "%s must be a quantity", key);
    struct quantity quantity;
    if (quantity_parse(text, &quantity, err))
        return err_prefix(err, "%s", key);
    if (quantity.negative)
        return err_set(err, ERR_INPUT, "%s: %s is negative", key, text);
    int64_t amount = need ? quantity_need(&quantity, per) : quantity_capacity(&quantity, per);
    *out = amount < MODEL_MAX_NUMBER ? amount : MODEL_MAX_NUMBER;
    return 0;
}

static void decode_owner(const json_t *meta, struct kube_owner *owner)
{
    size_t i;
    const json_t *reference, *references = kube_get(meta, "ownerReferences");
    json_array_foreach(references, i, reference)
    {
        if (!json_is_true(json_object_get(reference, "controller")))
            continue;
        owner->kind = mem_strdup(kube_text(reference, "kind"));
        owner->name = mem_strdup(kube_text(reference, "name"));
        owner->uid = mem_strdup(kube_text(reference, "uid"));
        return;
    }
}

int kube_meta_decode(const json_t *object, struct kube_meta *out, struct err *err)
{
    const json_t *meta = kube_get(object, "metadata");
    const char *name = kube_text(meta, "name");
    if (!name || !name[0])
        return err_set(err, ERR_INPUT, "metadata.name must be a text");
    const json_t *annotations = kube_get(meta, "annotations");
    const char *move = kube_text(annotations, "remap/move");
    *out = (struct kube_meta){
        .space = mem_strdup(kube_text(meta, "namespace")),
        .name = mem_strdup(name),
        .uid = mem_strdup(kube_text(meta, "uid")),
        .never = move && strcmp(move, "never") == 0,
        .mirror = kube_get(annotations, "kubernetes.io/config.mirror") != NULL,
        .ending = kube_get(meta, "deletionTimestamp") != NULL,
        .version = mem_strdup(kube_text(kube_get(meta, "labels"), "app.kubernetes.io/version")),
    };
    decode_owner(meta, &out->owner);
    return 0;
}

void kube_meta_wipe(struct kube_meta *meta)
{
    free(meta->space);
    free(meta->name);
    free(meta->uid);
    free(meta->version);
    free(meta->owner.kind);
    free(meta->owner.name);
    free(meta->owner.uid);
}

int kube_workload_decode(const json_t *object, const char *kind, struct kube_workload *out,
                         struct err *err)
{
    struct kube_workload workload = {.service = -1};
    if (kube_meta_decode(object, &workload.meta, err))
        return -1;
    const json_t *spec = kube_get(object, "spec"), *status = kube_get(object, "status");
    workload.kind = mem_strdup(kind);
    workload.replicas = kube_number(spec, "replicas", 1);
    workload.paused = json_is_true(json_object_get(spec, "paused"));
    int64_t updated = kube_number(status, "updatedReplicas", 0);
    bool behind = kube_number(status, "observedGeneration", 0) <
                  kube_number(kube_get(object, "metadata"), "generation", 0);
    bool rolls = strcmp(kind, "Deployment") == 0 || strcmp(kind, "StatefulSet") == 0;
    /* interfaces.md 1.7, steps 1, 3 and 4 */
    workload.rollout = rolls && status &&
                       (behind || updated < workload.replicas ||
                        kube_number(status, "replicas", 0) > updated);
    *out = workload;
    return 0;
}

void kube_workload_wipe(struct kube_workload *workload)
{
    free(workload->kind);
    kube_meta_wipe(&workload->meta);
}
