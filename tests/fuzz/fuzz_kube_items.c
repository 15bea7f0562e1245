/* fuzz_kube_items.c - any bytes as a list of an API server, in pieces whose size the first byte says:
 * never a crash, the same items however it is cut, and never more than jansson sees in it. */
#include <stdint.h>
#include <stdlib.h>

#include "adapters/kubernetes/items.h"
#include "adapters/kubernetes/kube.h"
#include "model/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void keep(void *ctx, const json_t *item)
{
    if (!json_is_object(item) || json_array_append_new(ctx, json_deep_copy(item)))
        abort();
}

/* NULL: refused. */
static json_t *read_pieces(const char *text, size_t size, size_t step)
{
    struct err err = ERR_INIT;
    const json_t *head = NULL;
    AUTO_JSON json_t *got = json_array();
    AUTO(kube_items) struct kube_items *items = kube_items_new(true, keep, got);
    for (size_t at = 0; at < size; at += step)
        if (kube_items_feed(items, text + at, size - at < step ? size - at : step, &err))
            return NULL;
    if (kube_items_end(items, &head, &err))
        return NULL;
    if (!json_is_object(head))
        abort();
    return json_incref(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err ignored = ERR_INIT;
    if (size < 2)
        return 0;
    const char *text = (const char *)data + 1;
    AUTO_JSON json_t *whole = read_pieces(text, size - 1, size);
    AUTO_JSON json_t *pieces = read_pieces(text, size - 1, 1 + data[0]);
    if (!whole != !pieces || (whole && !json_equal(whole, pieces)))
        abort();
    AUTO_JSON json_t *tree = json_parse(text, size - 1, &json_limits_document, &ignored);
    const json_t *items = kube_get(tree, "items");
    if (whole && json_is_array(items) && !json_equal(whole, items))
        abort();
    return 0;
}
