/* watch.c - see watch.h (kubernetes/apimachinery:pkg/apis/meta/v1/watch.go). */
#include "adapters/kubernetes/watch.h"

#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/json.h"

/* etcd takes objects of 1.5 MiB, which JSON may make some times longer. */
static const struct json_limits limits = {(size_t)16 << 20, 64, 1000000};

static int kind_of(const char *type, enum watch_kind *out)
{
    static const struct {
        const char *name;
        enum watch_kind kind;
    } kinds[] = {{"ADDED", WATCH_PUT},
                 {"MODIFIED", WATCH_PUT},
                 {"DELETED", WATCH_GONE},
                 {"BOOKMARK", WATCH_BOOKMARK},
                 {"ERROR", WATCH_ERROR}};
    for (size_t i = 0; type && i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].name, type) == 0) {
            *out = kinds[i].kind;
            return 0;
        }
    return -1;
}

static int decode(struct watch_event *event, struct err *err)
{
    const json_t *object = kube_get(event->tree, "object");
    if (kind_of(kube_text(event->tree, "type"), &event->kind))
        return err_set(err, ERR_INPUT, "type is none of a watch");
    if (!json_is_object(object))
        return err_set(err, ERR_INPUT, "object must be an object");
    if (event->kind == WATCH_ERROR) {
        event->code = (long)kube_number(object, "code", 0);
        return 0;
    }
    event->object = object;
    event->version = kube_text(kube_get(object, "metadata"), "resourceVersion");
    return event->version && event->version[0]
               ? 0
               : err_set(err, ERR_INPUT, "object has no resourceVersion");
}

int watch_decode(const char *text, size_t size, struct watch_event *out, struct err *err)
{
    struct watch_event event = {.tree = json_parse(text, size, &limits, err)};
    if (!event.tree || decode(&event, err)) {
        watch_wipe(&event);
        return err_prefix(err, "watch");
    }
    *out = event;
    return 0;
}

void watch_wipe(struct watch_event *event)
{
    json_decref(event->tree);
    *event = (struct watch_event){0};
}
