/* fuzz_model_json.c - any bytes as a model document: refused with a reason, or read, checked, and
 * written to bytes that read and write the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_json.h"
#include "model/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct model *model)
{
    struct err err = ERR_INIT;
    AUTO_FREE int *placement = model_placement(model);
    AUTO(analysis) struct analysis *analysis = analysis_from_given(model);

    (void)model_rules_hold(model, placement, &err);
    (void)placement_response_ms(model, placement);
    if (placement_score(model, analysis->rows, analysis->n_rows, placement) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_BUF struct buf once = BUF_INIT, twice = BUF_INIT;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = model_decode((const char *)data, size, &err);

    if (!model) {
        if (err.kind == ERR_NONE || err.kind == ERR_INTERNAL || err.text[0] == '\0')
            abort();
        return 0;
    }
    use(model);
    model_encode(model, &once);
    AUTO(model) struct model *again = model_decode(once.data, once.size, &err);
    if (!again)
        abort();
    model_encode(again, &twice);
    if (once.size != twice.size || memcmp(once.data, twice.data, once.size) != 0)
        abort();
    return 0;
}
