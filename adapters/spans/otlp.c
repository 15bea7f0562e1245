/* otlp.c - OTLP/JSON trace requests (interfaces.md 5.4; open-telemetry/opentelemetry-proto:
 * docs/specification.md). The resource usually stands before its spans; where it does not, they
 * wait for it. */
#include "adapters/spans/front.h"

#include <string.h>

void otlp_enter(struct span_front *front, uint8_t state)
{
    if (state == S_O_RESOURCE_SPANS) {
        front->n_pending = 0;
        front->resource_seen = false;
        front->resource_node = -1;
    } else if (state == S_O_RESOURCE) {
        span_tags_reset(&front->process_tags);
        front->into = &front->process_tags;
    } else {
        span_begin(front);
        front->process = -1;
        front->otlp_kind = 0;
    }
}

/* 64-bit numbers are texts; nanoseconds do not fit SPAN_MAX_NUMBER before they are divided. */
static int take_time(const struct walk_value *value, const char *what, int64_t *out,
                     struct err *err)
{
    int64_t nanos;
    if (span_integer(value, what, &nanos, err))
        return -1;
    *out = nanos > 0 ? nanos / 1000 : -1;
    return 0;
}

/* Kinds are numbers; some exporters write their names. */
static int take_kind(struct span_front *front, const struct walk_value *value, struct err *err)
{
    static const char *const names[] = {"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL",
                                        "SPAN_KIND_SERVER",      "SPAN_KIND_CLIENT",
                                        "SPAN_KIND_PRODUCER",    "SPAN_KIND_CONSUMER"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        bool named = value->size == strlen(names[i]) &&
                     memcmp(value->text, names[i], value->size) == 0;
        bool numbered = value->size == 1 && value->text[0] == (char)('0' + i);
        if (named || numbered) {
            front->otlp_kind = (int)i;
            return 0;
        }
    }
    if (front->rejected && value->type == WALK_NUMBER)
        return 0; /* of a later version */
    return err_set(err, ERR_INPUT, "kind must be from 0 to 5, not %.*s",
                   (int)(value->size < 40 ? value->size : 40), value->text);
}

int otlp_value(struct span_front *front, uint8_t field, const struct walk_value *value,
               struct err *err)
{
    if (field == F_O_KIND)
        return take_kind(front, value, err);
    if (field == F_START_NANO)
        return take_time(value, "startTimeUnixNano", &front->span.start_us, err);
    return take_time(value, "endTimeUnixNano", &front->span.end_us, err);
}

void span_kind_of_otlp(struct span *span, int kind, const struct span_tags *tags,
                       struct span_table *table)
{
    static const enum span_kind kinds[] = {SPAN_LOCAL,  SPAN_LOCAL,    SPAN_SERVER,
                                           SPAN_CLIENT, SPAN_PRODUCER, SPAN_CONSUMER};
    bool known = kind >= 0 && kind < (int)ARRAY_LEN(kinds);
    span->kind = (uint8_t)(known ? kinds[kind] : SPAN_LOCAL);
    if (kind != 1) /* INTERNAL is no call, whatever peers it names */
        span->remote = span_tags_peer(tags, table, (enum span_kind)span->kind);
}

static int finish_span(struct span_front *front, struct err *err)
{
    struct span *span = &front->span;
    span_kind_of_otlp(span, front->otlp_kind, &front->tags, front->table);
    if (span->start_us >= 0 && span->end_us >= span->start_us)
        span->duration_us = span->end_us - span->start_us;
    if (!front->resource_seen)
        return span_wait(front, err);
    span->node = front->resource_node;
    return span_end(front, err);
}

static int finish_resource(struct span_front *front, struct err *err)
{
    front->into = &front->tags;
    int32_t node =
        span_tags_node(&front->process_tags, front->table, front->process_tags.service, err);
    if (node == -2)
        return -1;
    front->resource_node = node;
    front->resource_seen = true;
    return 0;
}

int otlp_leave(struct span_front *front, uint8_t state, struct err *err)
{
    if (state == S_O_SPAN)
        return finish_span(front, err);
    if (state == S_O_RESOURCE)
        return finish_resource(front, err);
    for (size_t i = 0; i < front->n_pending; i++)
        front->pending[i].span.node = front->resource_node;
    return span_flush(front, err);
}
