/* otlp_body.c - see otlp_body.h. The protobuf is packed by protobuf-c, level by level. */
#include "tests/support/otlp_body.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "adapters/otlp/otlp.pb-c.h"
#include "model/base/mem.h"

static void put_tag(const struct sample_tag *tag, const char *before, struct buf *out)
{
    if (tag->text)
        buf_printf(out, "%s{\"key\":\"%s\",\"value\":{\"stringValue\":\"%s\"}}", before, tag->key,
                   tag->text);
    else
        buf_printf(out, "%s{\"key\":\"%s\",\"value\":{\"intValue\":\"%" PRId64 "\"}}", before,
                   tag->key, tag->number);
}

void otlp_body_json(const struct sample_span *spans, size_t n, struct buf *out)
{
    buf_puts(out, "{\"resourceSpans\":[");
    for (size_t i = 0; i < n; i++) {
        const struct sample_span *s = &spans[i];
        const struct sample_tag service = {"service.name", s->service, 0};
        const struct sample_tag pod = {"k8s.pod.name", s->pod, 0};
        buf_printf(out, "%s{\"resource\":{\"attributes\":[", i ? "," : "");
        if (s->service)
            put_tag(&service, "", out);
        if (s->pod)
            put_tag(&pod, s->service ? "," : "", out);
        buf_printf(out,
                   "]},\"scopeSpans\":[{\"scope\":{\"name\":\"t\"},\"spans\":[{\"traceId\":"
                   "\"%032" PRIx64 "\",\"spanId\":\"%016" PRIx64 "\",\"name\":\"x\",\"kind\":%d,"
                   "\"startTimeUnixNano\":\"%" PRId64 "000\",\"endTimeUnixNano\":\"%" PRId64 "000\"",
                   s->trace, s->id, s->kind, s->start_us, s->start_us + s->duration_us);
        if (s->parent)
            buf_printf(out, ",\"parentSpanId\":\"%016" PRIx64 "\"", s->parent);
        buf_puts(out, ",\"attributes\":[");
        for (size_t t = 0; t < ARRAY_LEN(s->tags) && s->tags[t].key; t++)
            put_tag(&s->tags[t], t ? "," : "", out);
        buf_puts(out, "]}]}]}");
    }
    buf_puts(out, "]}");
}

/* --- protobuf --- */

struct pairs {
    Otlp__KeyValue pairs[6];
    Otlp__Value values[6];
    Otlp__KeyValue *list[6];
    size_t n;
};

static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static void add_pair(struct pairs *p, const struct sample_tag *tag)
{
    Otlp__Value *value = &p->values[p->n];
    Otlp__KeyValue *pair = &p->pairs[p->n];
    otlp__value__init(value);
    otlp__key_value__init(pair);
    value->value_case =
        tag->text ? OTLP__VALUE__VALUE_STRING_VALUE : OTLP__VALUE__VALUE_INT_VALUE;
    if (tag->text)
        value->string_value = bytes_of(tag->text);
    else
        value->int_value = tag->number;
    pair->key = bytes_of(tag->key);
    pair->value = value;
    p->list[p->n++] = pair;
}

static ProtobufCBinaryData packed(const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *data = mem_alloc(size + 1);
    protobuf_c_message_pack(message, data);
    return (ProtobufCBinaryData){size, data};
}

static void id_bytes(uint64_t id, uint8_t out[8])
{
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(id >> (56 - 8 * i));
}

static ProtobufCBinaryData pack_span(const struct sample_span *s)
{
    uint8_t trace[16] = {0}, id[8], parent[8];
    struct pairs tags = {.n = 0};
    Otlp__Span span = OTLP__SPAN__INIT;
    for (size_t t = 0; t < ARRAY_LEN(s->tags) && s->tags[t].key; t++)
        add_pair(&tags, &s->tags[t]);
    id_bytes(s->trace, trace + 8);
    id_bytes(s->id, id);
    id_bytes(s->parent, parent);
    span.trace_id = (ProtobufCBinaryData){16, trace};
    span.span_id = (ProtobufCBinaryData){8, id};
    span.parent_span_id = (ProtobufCBinaryData){s->parent ? 8 : 0, parent};
    span.kind = s->kind;
    span.start_time_unix_nano = (uint64_t)s->start_us * 1000;
    span.end_time_unix_nano = (uint64_t)(s->start_us + s->duration_us) * 1000;
    span.n_attributes = tags.n;
    span.attributes = tags.list;
    return packed(&span.base);
}

static ProtobufCBinaryData pack_resource(const struct sample_span *s)
{
    struct pairs tags = {.n = 0};
    Otlp__Resource resource = OTLP__RESOURCE__INIT;
    Otlp__ScopeSpans scope = OTLP__SCOPE_SPANS__INIT;
    Otlp__ResourceSpans all = OTLP__RESOURCE_SPANS__INIT;
    if (s->service)
        add_pair(&tags, &(struct sample_tag){"service.name", s->service, 0});
    if (s->pod)
        add_pair(&tags, &(struct sample_tag){"k8s.pod.name", s->pod, 0});
    resource.n_attributes = tags.n;
    resource.attributes = tags.list;
    ProtobufCBinaryData span = pack_span(s);
    scope.n_spans = 1;
    scope.spans = &span;
    ProtobufCBinaryData scope_bytes = packed(&scope.base);
    all.resource = &resource;
    all.n_scope_spans = 1;
    all.scope_spans = &scope_bytes;
    ProtobufCBinaryData out = packed(&all.base);
    free(span.data);
    free(scope_bytes.data);
    return out;
}

void otlp_body_protobuf(const struct sample_span *spans, size_t n, struct buf *out)
{
    Otlp__TraceRequest request = OTLP__TRACE_REQUEST__INIT;
    AUTO_FREE ProtobufCBinaryData *list = mem_array(n + 1, sizeof *list);
    for (size_t i = 0; i < n; i++)
        list[i] = pack_resource(&spans[i]);
    request.n_resource_spans = n;
    request.resource_spans = list;
    ProtobufCBinaryData all = packed(&request.base);
    buf_add(out, all.data, all.len);
    free(all.data);
    for (size_t i = 0; i < n; i++)
        free(list[i].data);
}

void otlp_body_gzip(const struct buf *plain, struct buf *out)
{
    z_stream z = {.next_in = (unsigned char *)plain->data, .avail_in = (unsigned)plain->size};
    if (deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    size_t room = deflateBound(&z, plain->size);
    buf_reserve(out, room);
    z.next_out = (unsigned char *)out->data + out->size;
    z.avail_out = (unsigned)room;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    out->size += z.total_out;
    deflateEnd(&z);
}
