/* jaeger.c - answers of Jaeger's query service (interfaces.md 5.3; jaegertracing/jaeger:
 * model/json/model.go). Spans come before the processes that reported them, so they wait until
 * their trace ends. */
#include "adapters/spans/front.h"

#include <string.h>

int jaeger_enter(struct span_front *front, uint8_t state, const struct walk_value *key,
                 struct err *err)
{
    switch ((enum span_state)state) {
    case S_J_TRACE:
        span_processes_reset(front);
        return 0;
    case S_J_SPAN:
        span_begin(front);
        front->process = -1;
        front->parent_is_child_of = false;
        return 0;
    case S_J_REFERENCE:
        memset(&front->reference, 0, sizeof front->reference);
        return 0;
    case S_J_PROCESS:
        front->process = span_process(front, key->key, key->key_size, err);
        if (front->process < 0)
            return -1;
        break;
    default: /* a span's own process */
        break;
    }
    span_tags_reset(&front->process_tags);
    front->into = &front->process_tags;
    return 0;
}

/* The first CHILD_OF of the same trace is the parent; without one, the first FOLLOWS_FROM. Traces
 * are compared at the end of the span, when its own id is known for sure. */
static void take_reference(struct span_front *front)
{
    bool better = front->reference.child_of && !front->parent_is_child_of;
    if (!front->reference.has_id || (front->span.parent && !better))
        return;
    if (front->reference.has_trace && front->has_trace &&
        (front->reference.hi != front->span.trace_hi || front->reference.lo != front->span.trace_lo))
        return;
    front->span.parent = front->reference.id;
    front->parent_is_child_of = front->reference.child_of;
}

static int finish_span(struct span_front *front, struct err *err)
{
    struct span *span = &front->span;
    int kind = front->tags.kind;
    span->kind = (uint8_t)(kind < 0 ? SPAN_LOCAL : kind);
    if (kind != SPAN_LOCAL) /* "internal" is no call, whatever peers it names */
        span->remote = span_tags_peer(&front->tags, front->table, (enum span_kind)span->kind);
    return span_wait(front, err);
}

static int finish_process(struct span_front *front, int32_t *node, struct err *err)
{
    front->into = &front->tags;
    int32_t made =
        span_tags_node(&front->process_tags, front->table, front->process_tags.service, err);
    if (made == -2)
        return -1;
    *node = made;
    return 0;
}

int jaeger_leave(struct span_front *front, uint8_t state, struct err *err)
{
    switch ((enum span_state)state) {
    case S_J_TRACE:
        return span_flush(front, err);
    case S_J_SPAN:
        return finish_span(front, err);
    case S_J_REFERENCE:
        take_reference(front);
        return 0;
    case S_J_PROCESS:
        return finish_process(front, &front->processes[front->process].node, err);
    default:
        return finish_process(front, &front->span.node, err);
    }
}

int jaeger_value(struct span_front *front, uint8_t field, const struct walk_value *value,
                 struct err *err)
{
    uint64_t hi;
    if (value->type != WALK_TEXT)
        return err_set(err, ERR_INPUT, "ids and names must be texts");
    switch ((enum span_field)field) {
    case F_J_PROCESS:
        front->process = span_process(front, value->text, value->size, err);
        return front->process < 0 ? -1 : 0;
    case F_J_SERVICE: {
        int32_t name = span_table_name(front->table, value->text, value->size, true, err);
        front->process_tags.service = name;
        return name == -2 ? -1 : 0;
    }
    case F_J_REF_TYPE:
        front->reference.child_of = value->size == 8 && memcmp(value->text, "CHILD_OF", 8) == 0;
        return 0;
    case F_J_REF_TRACE:
        front->reference.has_trace = true;
        return span_hex(value, "the trace id of a reference", 32, &front->reference.hi,
                        &front->reference.lo, err);
    default:
        front->reference.has_id = true;
        return span_hex(value, "the span id of a reference", 16, &hi, &front->reference.id, err);
    }
}
