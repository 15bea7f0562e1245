/* fuzz_resources.c - any bytes as recorded resource samples: refused with the place, or usage within
 * the numbers of a model. */
#include <stdint.h>
#include <stdlib.h>

#include "model/base/json.h"
#include "monitor/resources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *tree =
        json_parse((const char *)data, size, &json_limits_document, &err);
    if (!tree)
        return 0;
    AUTO(model) struct model *model = model_new();
    int cart = model_add_service(model, "cart", &err);
    int front = model_add_service(model, "front", &err);
    model_add_instance(model, "cart-1", cart, -1, &err);
    model_add_instance(model, "front-1", front, -1, &err);
    model_add_instance(model, "front-2", front, -1, &err);
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    if (resources_read(tree, &in, &err)) {
        if (err.kind != ERR_INPUT && err.kind != ERR_TOO_LARGE)
            abort();
    } else if (model_check(model, &err)) {
        abort();
    }
    inspection_wipe(&in);
    return 0;
}
