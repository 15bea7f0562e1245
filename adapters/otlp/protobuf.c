/* protobuf.c - OTLP requests in protobuf, by protobuf-c and otlp.proto. */
#include "adapters/otlp/protobuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/otlp/otlp.pb-c.h"

/* What one level of lists may take: their bytes (16 MiB at most), and for each element 16 and up to 80
 * while they are counted: 6 MiB where they are as many as spans may be in a request. With the level
 * before, the body and all that waits, a monitor stays below its 64 MB. */
#define LEVEL_MAX_BYTES ((size_t)24 << 20)
/* Memory of one span or resource that is used again; more is taken where it has many attributes. */
#define ARENA_BYTES 65536
#define ARENA_MAX_BYTES ((size_t)8 << 20)

/* --- memory of one message, given back all at once --- */

struct arena {
    ProtobufCAllocator allocator;
    char *block;
    size_t used;   /* of the block */
    char **more;   /* beyond it */
    size_t n_more, total;
    size_t max_bytes;
    bool full; /* the last message was too large */
};

#define ALIGN 16

static void *arena_take(void *ctx, size_t size)
{
    struct arena *arena = ctx;
    size_t rounded = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (rounded < size || rounded > arena->max_bytes - arena->total) {
        arena->full = true;
        return NULL;
    }
    arena->total += rounded;
    if (rounded <= ARENA_BYTES - arena->used) {
        void *at = arena->block + arena->used;
        arena->used += rounded;
        return at;
    }
    char **more = ARRAY_PUSH(arena->more, arena->n_more);
    *more = malloc(rounded);
    if (!*more)
        abort(); /* out of memory ends the process (design.md 7) */
    return *more;
}

static void arena_leave(void *ctx, void *pointer)
{
    (void)ctx; /* all at once, by arena_clear() */
    (void)pointer;
}

/* A large piece is given back before the others. */
static void arena_drop(struct arena *arena, const void *pointer)
{
    for (size_t i = arena->n_more; i-- > 0;)
        if (arena->more[i] == pointer) {
            free(arena->more[i]);
            arena->more[i] = arena->more[--arena->n_more];
            return;
        }
}

static void arena_clear(struct arena *arena)
{
    while (arena->n_more)
        free(arena->more[--arena->n_more]);
    arena->used = arena->total = 0;
    arena->full = false;
}

static void arena_init(struct arena *arena, size_t max_bytes)
{
    *arena = (struct arena){.block = mem_alloc(ARENA_BYTES), .max_bytes = max_bytes};
    arena->allocator = (ProtobufCAllocator){arena_take, arena_leave, arena};
}

static void arena_wipe(struct arena *arena)
{
    arena_clear(arena);
    free(arena->more);
    free(arena->block);
}

/* --- spans --- */

struct decoder {
    struct span_table *table;
    span_sink_f *sink;
    void *ctx;
    int64_t *rejected;
    struct arena levels[3]; /* the request, a resource's spans, a scope's spans */
    struct arena one;       /* a span */
    struct span_tags tags;
    int32_t node; /* of the resource */
};

static int take_tag(struct span_tags *tags, struct span_table *table, const Otlp__KeyValue *pair,
                    struct err *err)
{
    char number[24];
    const ProtobufCBinaryData *text = NULL;
    int64_t value = 0;
    if (!pair->value)
        return 0;
    switch (pair->value->value_case) {
    case OTLP__VALUE__VALUE_STRING_VALUE:
        text = &pair->value->string_value;
        break;
    case OTLP__VALUE__VALUE_INT_VALUE:
        value = pair->value->int_value;
        break;
    case OTLP__VALUE__VALUE_ARRAY_VALUE: { /* of a list the first */
        const Otlp__List *list = pair->value->array_value;
        const Otlp__Item *item = list->n_values ? list->values[0] : NULL;
        if (!item || item->value_case == OTLP__ITEM__VALUE__NOT_SET)
            return 0;
        if (item->value_case == OTLP__ITEM__VALUE_STRING_VALUE)
            text = &item->string_value;
        else
            value = item->int_value;
        break;
    }
    default: /* booleans and the like say nothing to us */
        return 0;
    }
    int size = text ? 0 : snprintf(number, sizeof number, "%" PRId64, value);
    return span_tags_take(tags, table, (const char *)pair->key.data, pair->key.len,
                          text ? (const char *)text->data : number, text ? text->len : (size_t)size,
                          err);
}

static int take_tags(struct span_tags *tags, struct span_table *table, Otlp__KeyValue **pairs,
                     size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (take_tag(tags, table, pairs[i], err))
            return -1;
    return 0;
}

/* Big-endian; 0 is no id. */
static uint64_t id_of(const uint8_t *data)
{
    uint64_t id = 0;
    for (int i = 0; i < 8; i++)
        id = id << 8 | data[i];
    return id;
}

static bool take_ids(const Otlp__Span *from, struct span *span)
{
    if (from->trace_id.len != 16 || from->span_id.len != 8 ||
        (from->parent_span_id.len != 0 && from->parent_span_id.len != 8))
        return false;
    span->trace_hi = id_of(from->trace_id.data);
    span->trace_lo = id_of(from->trace_id.data + 8);
    span->id = id_of(from->span_id.data);
    span->parent = from->parent_span_id.len ? id_of(from->parent_span_id.data) : 0;
    return (span->trace_hi || span->trace_lo) && span->id;
}

static int64_t micros_of(uint64_t nanos)
{
    return nanos && nanos <= INT64_MAX ? (int64_t)(nanos / 1000) : -1;
}

static int take_span(struct decoder *d, const Otlp__Span *from, struct err *err)
{
    struct span span = {.node = d->node, .remote = -1, .duration_us = -1};
    if (!take_ids(from, &span)) {
        ++*d->rejected;
        return 0;
    }
    span_tags_reset(&d->tags);
    if (take_tags(&d->tags, d->table, from->attributes, from->n_attributes, err))
        return -1;
    for (size_t i = 0; i < from->n_events; i++)
        if (take_tags(&d->tags, d->table, from->events[i]->attributes,
                      from->events[i]->n_attributes, err))
            return -1;
    span_kind_of_otlp(&span, from->kind, &d->tags, d->table);
    span.start_us = micros_of(from->start_time_unix_nano);
    span.end_us = micros_of(from->end_time_unix_nano);
    if (span.start_us >= 0 && span.end_us >= span.start_us)
        span.duration_us = span.end_us - span.start_us;
    span.bytes = span_sizes_total(&d->tags.sizes);
    return d->sink(d->ctx, &span, err);
}

/* --- lists --- */

/* The item has been unpacked. Small ones are many, and not worth the looking. */
static void let_go(struct arena *arena, const ProtobufCBinaryData *item)
{
    if (item->len > ARENA_BYTES)
        arena_drop(arena, item->data);
}

typedef int take_item_f(struct decoder *d, const ProtobufCBinaryData *item, struct err *err);

/* Why nothing was unpacked. */
static int not_unpacked(const struct arena *arena, const char *what, struct err *err)
{
    if (arena->full)
        return err_set(err, ERR_TOO_LARGE, "%s with too many parts", what);
    return err_set(err, ERR_INPUT, "%s that cannot be decoded", what);
}

static int take_list(struct decoder *d, take_item_f *take, const ProtobufCBinaryData *items, size_t n,
                     struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (take(d, &items[i], err))
            return -1;
    return 0;
}

static int take_span_bytes(struct decoder *d, const ProtobufCBinaryData *item, struct err *err)
{
    arena_clear(&d->one);
    const Otlp__Span *span = otlp__span__unpack(&d->one.allocator, item->len, item->data);
    if (span)
        return take_span(d, span, err);
    if (!d->one.full)
        return not_unpacked(&d->one, "a span", err);
    ++*d->rejected; /* more attributes than anybody means */
    return 0;
}

static int take_scope(struct decoder *d, const ProtobufCBinaryData *item, struct err *err)
{
    struct arena *arena = &d->levels[2];
    arena_clear(arena);
    const Otlp__ScopeSpans *scope =
        otlp__scope_spans__unpack(&arena->allocator, item->len, item->data);
    if (!scope)
        return not_unpacked(arena, "a list of spans", err);
    let_go(&d->levels[1], item);
    return take_list(d, take_span_bytes, scope->spans, scope->n_spans, err);
}

static int take_resource(struct decoder *d, const ProtobufCBinaryData *item, struct err *err)
{
    struct arena *arena = &d->levels[1];
    arena_clear(arena);
    const Otlp__ResourceSpans *spans =
        otlp__resource_spans__unpack(&arena->allocator, item->len, item->data);
    if (!spans)
        return not_unpacked(arena, "a resource", err);
    let_go(&d->levels[0], item);
    span_tags_reset(&d->tags);
    if (spans->resource && take_tags(&d->tags, d->table, spans->resource->attributes,
                                     spans->resource->n_attributes, err))
        return -1;
    d->node = span_tags_node(&d->tags, d->table, d->tags.service, err);
    if (d->node == -2)
        return -1;
    return take_list(d, take_scope, spans->scope_spans, spans->n_scope_spans, err);
}

int otlp_protobuf(const char *data, size_t size, struct buf *spent, struct span_table *table,
                  span_sink_f *sink, void *ctx, int64_t *rejected, struct err *err)
{
    struct decoder d = {.table = table, .sink = sink, .ctx = ctx, .rejected = rejected};
    for (size_t i = 0; i < ARRAY_LEN(d.levels); i++)
        arena_init(&d.levels[i], LEVEL_MAX_BYTES);
    arena_init(&d.one, ARENA_MAX_BYTES);
    const Otlp__TraceRequest *request =
        otlp__trace_request__unpack(&d.levels[0].allocator, size, (const uint8_t *)data);
    if (spent)
        buf_wipe(spent);
    int rc = request ? take_list(&d, take_resource, request->resource_spans,
                                 request->n_resource_spans, err)
                     : not_unpacked(&d.levels[0], "a request", err);
    for (size_t i = 0; i < ARRAY_LEN(d.levels); i++)
        arena_wipe(&d.levels[i]);
    arena_wipe(&d.one);
    return rc;
}
