/* members.c - members of API objects: tolerant of what is missing or unknown, strict about what is
 * used (interfaces.md 0, 1.2). */
#include "adapters/kubernetes/kube.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/quantity.h"
#include "adapters/kubernetes/when.h"
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

static const json_t *find_condition(const json_t *status, const char *type)
{
    size_t i;
    const json_t *item;
    json_array_foreach(kube_get(status, "conditions"), i, item)
    {
        const char *name = kube_text(item, "type");
        if (name && strcmp(name, type) == 0)
            return item;
    }
    return NULL;
}

const json_t *kube_condition_of(const json_t *object, const char *type)
{
    return find_condition(kube_get(object, "status"), type);
}

bool kube_condition(const json_t *status, const char *type)
{
    const char *state = kube_text(find_condition(status, type), "status");
    return state && strcmp(state, "True") == 0;
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

static struct kube_wish *decode_wish(const json_t *annotations)
{
    const char *with = kube_text(annotations, "remap/keep-with");
    const char *apart = kube_text(annotations, "remap/keep-apart");
    const char *window = kube_text(annotations, "remap/window");
    const char *weight = kube_text(annotations, "remap/weight");
    if (!with && !apart && !window && !weight)
        return NULL;
    struct kube_wish *wish = mem_alloc(sizeof *wish);
    *wish = (struct kube_wish){mem_strdup(with), mem_strdup(apart), mem_strdup(window),
                               mem_strdup(weight)};
    return wish;
}

static char *decode_key(const json_t *meta, const char *name)
{
    const char *uid = kube_text(meta, "uid"), *space = kube_text(meta, "namespace");
    return uid && uid[0] ? mem_strdup(uid) : mem_printf("%s/%s", space ? space : "", name);
}

int kube_meta_decode(const json_t *object, struct kube_meta *out, struct err *err)
{
    const json_t *meta = kube_get(object, "metadata");
    const char *name = kube_text(meta, "name");
    if (!name || !name[0])
        return err_set(err, ERR_INPUT, "metadata.name must be a text");
    const json_t *annotations = kube_get(meta, "annotations");
    const char *move = kube_text(annotations, "remap/move");
    const char *created = kube_text(meta, "creationTimestamp");
    *out = (struct kube_meta){
        .head.key = decode_key(meta, name),
        .space = mem_strdup(kube_text(meta, "namespace")),
        .name = mem_strdup(name),
        .uid = mem_strdup(kube_text(meta, "uid")),
        .wish = decode_wish(annotations),
        .created_ms = -1,
        .never = move && strcmp(move, "never") == 0,
        .mirror = kube_get(annotations, "kubernetes.io/config.mirror") != NULL,
        .ending = kube_get(meta, "deletionTimestamp") != NULL,
        .version = mem_strdup(kube_text(kube_get(meta, "labels"), "app.kubernetes.io/version")),
    };
    if (created)
        when_parse(created, &out->created_ms);
    decode_owner(meta, &out->owner);
    return 0;
}

/* All but the key, which is the table's. */
void kube_meta_wipe(struct kube_meta *meta)
{
    free(meta->space);
    free(meta->name);
    free(meta->uid);
    free(meta->version);
    free(meta->owner.kind);
    free(meta->owner.name);
    free(meta->owner.uid);
    if (meta->wish) {
        free(meta->wish->keep_with);
        free(meta->wish->keep_apart);
        free(meta->wish->window);
        free(meta->wish->weight);
        free(meta->wish);
    }
}
