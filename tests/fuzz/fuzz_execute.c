/* fuzz_execute.c - any bytes as an execute request: what is read knows a free seq, and its intents
 * and outcomes write and read the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "executor/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_outcome(const struct outcome *outcome)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf once = BUF_INIT, twice = BUF_INIT;
    struct outcome again;

    outcome_encode(outcome, &once);
    AUTO_JSON json_t *tree = json_parse(once.data, once.size, &json_limits_document, &err);
    struct jval root = jval_root(tree);
    if (outcome_decode(&root, &again, &err) < 0)
        abort();
    outcome_encode(&again, &twice);
    if (once.size != twice.size || memcmp(once.data, twice.data, once.size) != 0)
        abort();
    outcome_wipe(&again);
}

static void check_intent(const struct intent *intent)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf once = BUF_INIT, twice = BUF_INIT;
    struct intent again;

    intent_encode(intent, &once);
    AUTO_JSON json_t *tree = json_parse(once.data, once.size, &json_limits_document, &err);
    struct jval root = jval_root(tree);
    if (intent_decode(&root, &again, &err) < 0)
        abort();
    intent_encode(&again, &twice);
    if (once.size != twice.size || memcmp(once.data, twice.data, once.size) != 0)
        abort();
    intent_wipe(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    AUTO(request) struct request *r = request_decode((const char *)data, size, &err);

    if (!r) {
        if (err.text[0] == '\0')
            abort();
        return 0;
    }
    int64_t seq = request_free_seq(r);
    for (size_t i = 0; i < r->n_base; i++) {
        if (r->base[i]->seq >= seq)
            abort();
        check_intent(r->base[i]);
    }
    for (size_t i = 0; i < r->done.n; i++) {
        if (r->done.list[i].seq >= seq)
            abort();
        check_outcome(&r->done.list[i]);
    }
    return 0;
}
