/* otlp_fuzz.c - see otlp_fuzz.h. */
#include "tests/fuzz/otlp_fuzz.h"

#include <stdlib.h>

#include "adapters/identity.h"
#include "adapters/otlp/answer.h"
#include "adapters/otlp/otlp.pb-c.h"
#include "adapters/otlp/store.h"
#include "model/base/json.h"

#define NOW INT64_C(1800000000000)
#define WAITING 100
#define KEEP_MS 720000
#define MAX_INFLATED 100000 /* 16 MiB of blanks show nothing that these do not */

static void read_window(struct otlp_store *store, int64_t now_ms)
{
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = model_new();
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    const struct window window = {now_ms - 600000, now_ms + 10000};
    if (model_add_service(model, "a", &err) < 0 || model_add_service(model, "b", &err) < 0 ||
        otlp_store_trace(store, &window, true, now_ms, &in, &err))
        abort();
    identity_report(identity, &model->traffic);
    model->has_messages = true;
    if (model_check(model, &err))
        abort();
    inspection_wipe(&in);
}

/* An answer must be readable by whoever sent the request. */
static void read_answer(const struct otlp_result *result, bool json)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf body = BUF_INIT;
    if (result->status == 200)
        otlp_answer_taken(json, result->rejected, result->text, &body);
    else
        otlp_answer_error(json, result->status, result->text, &body);
    const char *text = body.data ? body.data : "";
    if (json) {
        AUTO_JSON json_t *tree = json_parse(text, body.size, &json_limits_header, &err);
        if (!tree)
            abort();
        return;
    }
    const uint8_t *data = (const uint8_t *)text;
    ProtobufCMessage *message =
        protobuf_c_message_unpack(result->status == 200 ? &otlp__trace_answer__descriptor
                                                        : &otlp__status__descriptor,
                                  NULL, body.size, data);
    if (!message)
        abort();
    protobuf_c_message_free_unpacked(message, NULL);
}

void otlp_fuzz_body(const uint8_t *data, size_t size, bool json, bool gzip)
{
    AUTO(otlp_store) struct otlp_store *store = otlp_store_new(WAITING, KEEP_MS, NOW - 3600000);
    const struct otlp_body body = {(const char *)data, size, json, gzip, MAX_INFLATED};
    struct otlp_result result;
    for (int i = 0; i < 2; i++) {
        otlp_store_post(store, &body, NOW + i * 7000, &result);
        struct otlp_totals totals = otlp_store_totals(store);
        if (result.status != 200 && result.status != 400 && result.status != 413 &&
            result.status != 429)
            abort();
        if (totals.waiting > WAITING || (result.status != 200 && i == 0 && totals.spans))
            abort();
        read_answer(&result, json);
        read_window(store, NOW + i * 7000);
    }
    otlp_store_tick(store, NOW + 100000);
    if (otlp_store_totals(store).waiting)
        abort();
    read_window(store, NOW + 100000);
}
