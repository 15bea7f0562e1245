/* fuzz_plan_json.c - any bytes as {"model": …, "plan": …}: a plan that is read writes and reads the
 * same, and one that is accepted can be applied and ends where it says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void accepted(const struct plan *plan, const struct model *model)
{
    struct err err = ERR_INIT;
    AUTO(model) struct model *copy = model_copy(model);

    if (plan_apply(plan, copy, SIZE_MAX, &err) < 0)
        abort();
    for (size_t i = 0; i < copy->n_instances; i++)
        if (copy->instances[i].host != plan->placement[i])
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_BUF struct buf once = BUF_INIT, twice = BUF_INIT;
    struct err err = ERR_INIT;
    AUTO_JSON json_t *tree = json_parse((const char *)data, size, &json_limits_document, &err);

    if (!tree)
        return 0;
    struct jval root = jval_root(tree), model_at = jval_get(&root, "model"),
                plan_at = jval_get(&root, "plan");
    AUTO(model) struct model *model = model_decode_value(&model_at, &err);
    if (!model)
        return 0;
    AUTO(plan) struct plan *plan = plan_decode_value(&plan_at, model, &err);
    if (!plan) {
        if (err.text[0] == '\0')
            abort();
        return 0;
    }
    if (plan_check(plan, model, true, &err) == 0)
        accepted(plan, model);
    plan_encode(plan, model, true, &once);
    AUTO_JSON json_t *copy = json_parse(once.data, once.size, &json_limits_document, &err);
    struct jval copy_root = jval_root(copy);
    AUTO(plan) struct plan *again = plan_decode_value(&copy_root, model, &err);
    if (!again)
        abort();
    plan_encode(again, model, true, &twice);
    if (once.size != twice.size || memcmp(once.data, twice.data, once.size) != 0)
        abort();
    return 0;
}
