/* fuzz_kubectl.c - any bytes as `kubectl get … -o json`: refused with the object's name, or a model
 * that passes its check; quantities of the same bytes never overflow. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/objects.h"
#include "adapters/kubernetes/quantity.h"
#include "model/base/json.h"
#include "adapters/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_quantity(const uint8_t *data, size_t size)
{
    struct quantity quantity;
    struct err err = ERR_INIT;
    AUTO_FREE char *text = mem_strndup((const char *)data, size);
    if (quantity_parse(text, &quantity, &err))
        return;
    if (quantity.whole < 0 || quantity.nanos < 0 || quantity.nanos > 999999999 ||
        quantity_need(&quantity, 1000) < quantity_capacity(&quantity, 1000))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    try_quantity(data, size);
    AUTO_JSON json_t *tree =
        json_parse((const char *)data, size, &json_limits_document, &err);
    if (!tree)
        return 0;
    AUTO(kube_objects) struct kube_objects *objects = kube_objects_new();
    AUTO(model) struct model *model = model_new();
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    const struct kube_choice choice = {.now_ms = 0};
    int rc = kube_objects_add(objects, tree, &err);
    if (rc == 0)
        rc = kube_objects_model(objects, &choice, &in, &err);
    if (rc && err.kind != ERR_INPUT)
        abort();
    if (rc == 0 && model_check(model, &err) && err.kind != ERR_INPUT)
        abort();
    (void)identity_find(identity, IDENTITY_SERVICE, "cart.shop.svc:80");
    inspection_wipe(&in);
    return 0;
}
