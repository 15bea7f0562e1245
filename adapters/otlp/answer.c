/* answer.c - answers in JSON and protobuf (answer.h). */
#include "adapters/otlp/answer.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/otlp/otlp.pb-c.h"
#include "model/base/json.h"
#include "model/base/mem.h"
#include "model/base/utf8.h"

/* protobuf-c wants char *, and only reads. */
static char *borrowed(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void put_message(const ProtobufCMessage *message, struct buf *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    AUTO_FREE uint8_t *packed = mem_alloc(size + 1);
    protobuf_c_message_pack(message, packed);
    buf_add(out, packed, size);
}

void otlp_answer_taken(bool json, int64_t rejected, const char *why, struct buf *out)
{
    if (json && !rejected) {
        buf_puts(out, "{}");
    } else if (json) { /* 64-bit numbers are texts in ProtoJSON */
        buf_printf(out, "{\"partialSuccess\":{\"rejectedSpans\":\"%lld\",\"errorMessage\":",
                   (long long)rejected);
        json_put_text(out, why);
        buf_puts(out, "}}");
    } else {
        Otlp__PartialSuccess partial = OTLP__PARTIAL_SUCCESS__INIT;
        Otlp__TraceAnswer answer = OTLP__TRACE_ANSWER__INIT;
        partial.rejected_spans = rejected;
        partial.error_message = borrowed(why);
        answer.partial_success = rejected ? &partial : NULL;
        put_message(&answer.base, out);
    }
}

/* https://cloud.google.com/apis/design/errors: google.rpc.Code of an HTTP status. */
static int32_t code_of(unsigned http_status)
{
    switch (http_status) {
    case 401:
        return 16; /* UNAUTHENTICATED */
    case 404:
        return 5; /* NOT_FOUND */
    case 405:
        return 12; /* UNIMPLEMENTED */
    case 413:
    case 429:
        return 8; /* RESOURCE_EXHAUSTED */
    case 503:
        return 14; /* UNAVAILABLE */
    default:
        return 3; /* INVALID_ARGUMENT */
    }
}

void otlp_answer_error(bool json, unsigned http_status, const char *text, struct buf *out)
{
    if (json) {
        buf_printf(out, "{\"code\":%d,\"message\":", code_of(http_status));
        json_put_text(out, text);
        buf_puts(out, "}");
        return;
    }
    Otlp__Status status = OTLP__STATUS__INIT;
    AUTO_FREE char *clean = mem_strdup(text); /* a proto3 string must be UTF-8 */
    for (size_t i = 0, size = strlen(clean), step; i < size; i += step ? step : 1) {
        step = utf8_step(clean + i, size - i);
        if (!step)
            clean[i] = '?';
    }
    status.code = code_of(http_status);
    status.message = clean;
    put_message(&status.base, out);
}
