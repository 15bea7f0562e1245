/* fuzz_kube_api.c - any bytes as what an API server or a credential plugin says: each line as a line of
 * a watch or, if it is none, as a Status, a metrics object, an ExecCredential; the objects of watches
 * are put into and taken out of a store that must give a model that passes its check at any time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/identity.h"
#include "adapters/kubernetes/access.h"
#include "adapters/kubernetes/api.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/samples.h"
#include "adapters/kubernetes/standing.h"
#include "adapters/kubernetes/watch.h"
#include "model/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_judge(void *ctx, const char *kind, const json_t *object, struct kube_workload *out)
{
    standing_judge(ctx, kind, object, out);
}

static void on_released(void *ctx, const char *kind, const json_t *object)
{
    (void)ctx;
    if (!kind || !json_is_object(object))
        abort();
}

/* False: it is no line of a watch. */
static bool try_watch(const char *line, size_t size, struct kube_objects *objects)
{
    struct watch_event event;
    struct err err = ERR_INIT;
    if (watch_decode(line, size, &event, &err)) {
        if (err.kind != ERR_INPUT && err.kind != ERR_TOO_LARGE)
            abort();
        return false;
    }
    const char *kind = event.object ? kube_text(event.object, "kind") : NULL;
    if (kind && event.kind == WATCH_PUT)
        kube_objects_put(objects, kind, event.object);
    if (kind && event.kind == WATCH_GONE)
        kube_objects_remove(objects, kind, event.object);
    if (kind && event.kind == WATCH_BOOKMARK) { /* as if a list had ended */
        kube_objects_sweep(objects, kind, kube_text(kube_get(event.object, "metadata"), "namespace"));
        kube_objects_renew(objects, kind, false);
    }
    watch_wipe(&event);
    return true;
}

static void try_others(const char *line, size_t size)
{
    struct err err = ERR_INIT;
    struct kube_status status;
    struct kube_credential credential;
    kube_status_decode(line, size, &status);
    if (strlen(status.message) >= sizeof status.message || strlen(status.reason) >= 64)
        abort();
    if (!kube_credential_decode(line, size, &credential, &err))
        kube_credential_wipe(&credential);
    AUTO_JSON json_t *tree = json_parse(line, size, &json_limits_document, &err);
    AUTO(samples) struct samples *pods = samples_new();
    AUTO(samples) struct samples *nodes = samples_new();
    if (tree)
        kube_metrics_take(tree, pods, nodes);
}

static void try_model(const struct kube_objects *objects)
{
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = model_new();
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    const struct kube_choice choice = {
        .now_ms = INT64_C(1795219200000), .min_node_age_ms = 600000, .soak_ms = 3600000};
    int rc = kube_objects_model(objects, &choice, &in, &err);
    if (rc == 0)
        rc = model_check(model, &err);
    if (rc && err.kind != ERR_INPUT)
        abort();
    inspection_wipe(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct standing standing = {.pin = PIN_PREFERRED, .options = {.soak_ms = 3600000}};
    AUTO(kube_objects) struct kube_objects *objects = kube_objects_new();
    kube_objects_judge(objects, on_judge, on_released, &standing);
    AUTO_FREE char *text = mem_strndup((const char *)data, size);
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (!try_watch(line, strlen(line), objects))
            try_others(line, strlen(line));
    }
    try_model(objects);
    return 0;
}
