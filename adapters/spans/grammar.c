/* grammar.c - where things stand in Zipkin v2 JSON, Jaeger's query answers and OTLP JSON
 * (interfaces.md 5), and who takes them. */
#include "adapters/spans/front.h"

#define OBJECT(state, key, inside, field) {state, key, WALK_OBJECT, inside, 0, field}
#define ARRAY(state, key, inside, field) {state, key, WALK_ARRAY, 0, inside, field}
#define SCALAR(state, key, field) {state, key, WALK_SCALAR, 0, 0, field}

#define ZIPKIN_SPAN(state)                           \
    SCALAR(state, "traceId", F_TRACE),               \
    SCALAR(state, "id", F_ID),                       \
    SCALAR(state, "parentId", F_PARENT),             \
    SCALAR(state, "kind", F_KIND),                   \
    SCALAR(state, "timestamp", F_START),             \
    SCALAR(state, "duration", F_DURATION),           \
    SCALAR(state, "shared", F_SHARED),               \
    OBJECT(state, "localEndpoint", S_Z_LOCAL, 0),    \
    OBJECT(state, "remoteEndpoint", S_Z_REMOTE, 0),  \
    OBJECT(state, "tags", S_Z_TAGS, 0)

/* From resourceSpans on; the states of a list of rules stand in the order of their numbers. */
#define OTLP_RESOURCES                                                                        \
    OBJECT(S_O_RESOURCES, NULL, S_O_RESOURCE_SPANS, 0),                                       \
    OBJECT(S_O_RESOURCE_SPANS, "resource", S_O_RESOURCE, 0),                                  \
    ARRAY(S_O_RESOURCE_SPANS, "scopeSpans", S_O_SCOPES, 0),                                   \
    ARRAY(S_O_RESOURCE_SPANS, "instrumentationLibrarySpans", S_O_SCOPES, 0), /* before 0.15 */\
    ARRAY(S_O_RESOURCE, "attributes", S_TAGS, 0),                                             \
    OBJECT(S_O_SCOPES, NULL, S_O_SCOPE, 0),                                                   \
    ARRAY(S_O_SCOPE, "spans", S_O_SPANS, 0),                                                  \
    OBJECT(S_O_SPANS, NULL, S_O_SPAN, 0),                                                     \
    SCALAR(S_O_SPAN, "traceId", F_TRACE),                                                     \
    SCALAR(S_O_SPAN, "spanId", F_ID),                                                         \
    SCALAR(S_O_SPAN, "parentSpanId", F_PARENT),                                               \
    SCALAR(S_O_SPAN, "kind", F_O_KIND),                                                       \
    SCALAR(S_O_SPAN, "startTimeUnixNano", F_START_NANO),                                      \
    SCALAR(S_O_SPAN, "endTimeUnixNano", F_END_NANO),                                          \
    ARRAY(S_O_SPAN, "attributes", S_TAGS, 0),                                                 \
    ARRAY(S_O_SPAN, "events", S_O_EVENTS, 0),                                                 \
    OBJECT(S_O_EVENTS, NULL, S_O_EVENT, 0),                                                   \
    ARRAY(S_O_EVENT, "attributes", S_TAGS, 0),                                                \
    OBJECT(S_TAGS, NULL, S_TAG, 0),                                                           \
    SCALAR(S_TAG, "key", F_TAG_KEY),                                                          \
    {S_TAG, "value", WALK_SCALAR | WALK_OBJECT, S_TAG_VALUE, 0, F_TAG_VALUE},                 \
    SCALAR(S_TAG_VALUE, "stringValue", F_TAG_VALUE),                                          \
    SCALAR(S_TAG_VALUE, "intValue", F_TAG_VALUE),                                             \
    SCALAR(S_TAG_VALUE, "boolValue", F_TAG_VALUE),                                            \
    SCALAR(S_TAG_VALUE, "doubleValue", F_TAG_VALUE),                                          \
    OBJECT(S_TAG_VALUE, "arrayValue", S_TAG_ARRAY, 0),                                        \
    ARRAY(S_TAG_ARRAY, "values", S_TAG_ITEMS, 0),                                             \
    OBJECT(S_TAG_ITEMS, NULL, S_TAG_ITEM, 0),                                                 \
    SCALAR(S_TAG_ITEM, "stringValue", F_TAG_VALUE),                                           \
    SCALAR(S_TAG_ITEM, "intValue", F_TAG_VALUE)

static const struct walk_rule rules[] = {
    {S_DOCUMENT, NULL, WALK_OBJECT | WALK_ARRAY, S_ANY, S_LIST, 0},
    {S_LIST, NULL, WALK_OBJECT | WALK_ARRAY, S_ANY, S_Z_TRACE, 0},
    ZIPKIN_SPAN(S_ANY),
    ARRAY(S_ANY, "data", S_J_DATA, F_KNOWN),
    ARRAY(S_ANY, "resourceSpans", S_O_RESOURCES, F_KNOWN),
    OBJECT(S_ANY, "result", S_O_RESULT, F_KNOWN), /* Jaeger's /api/v3 */
    OBJECT(S_Z_TRACE, NULL, S_Z_SPAN, 0),
    ZIPKIN_SPAN(S_Z_SPAN),
    SCALAR(S_Z_LOCAL, "serviceName", F_LOCAL_NAME),
    SCALAR(S_Z_LOCAL, "ipv4", F_LOCAL_ADDRESS),
    SCALAR(S_Z_LOCAL, "ipv6", F_LOCAL_ADDRESS),
    SCALAR(S_Z_REMOTE, "serviceName", F_REMOTE_NAME),
    SCALAR(S_Z_REMOTE, "ipv4", F_REMOTE_ADDRESS),
    SCALAR(S_Z_REMOTE, "ipv6", F_REMOTE_ADDRESS),
    SCALAR(S_Z_TAGS, WALK_ANY_KEY, F_Z_TAG),
    OBJECT(S_J_DATA, NULL, S_J_TRACE, 0),
    ARRAY(S_J_TRACE, "spans", S_J_SPANS, 0),
    OBJECT(S_J_TRACE, "processes", S_J_PROCESSES, 0),
    OBJECT(S_J_SPANS, NULL, S_J_SPAN, 0),
    SCALAR(S_J_SPAN, "traceID", F_TRACE),
    SCALAR(S_J_SPAN, "spanID", F_ID),
    SCALAR(S_J_SPAN, "parentSpanID", F_PARENT), /* before references there was this */
    ARRAY(S_J_SPAN, "references", S_J_REFERENCES, 0),
    SCALAR(S_J_SPAN, "startTime", F_START),
    SCALAR(S_J_SPAN, "duration", F_DURATION),
    ARRAY(S_J_SPAN, "tags", S_TAGS, 0),
    ARRAY(S_J_SPAN, "logs", S_J_LOGS, 0),
    SCALAR(S_J_SPAN, "processID", F_J_PROCESS),
    OBJECT(S_J_SPAN, "process", S_J_OWN_PROCESS, 0),
    OBJECT(S_J_REFERENCES, NULL, S_J_REFERENCE, 0),
    SCALAR(S_J_REFERENCE, "refType", F_J_REF_TYPE),
    SCALAR(S_J_REFERENCE, "traceID", F_J_REF_TRACE),
    SCALAR(S_J_REFERENCE, "spanID", F_J_REF_SPAN),
    OBJECT(S_J_LOGS, NULL, S_J_LOG, 0),
    ARRAY(S_J_LOG, "fields", S_TAGS, 0),
    OBJECT(S_J_PROCESSES, WALK_ANY_KEY, S_J_PROCESS, 0),
    SCALAR(S_J_PROCESS, "serviceName", F_J_SERVICE),
    ARRAY(S_J_PROCESS, "tags", S_TAGS, 0),
    SCALAR(S_J_OWN_PROCESS, "serviceName", F_J_SERVICE),
    ARRAY(S_J_OWN_PROCESS, "tags", S_TAGS, 0),
    ARRAY(S_O_RESULT, "resourceSpans", S_O_RESOURCES, 0),
    OTLP_RESOURCES,
};

static const struct walk_rule otlp_rules[] = {
    OBJECT(S_DOCUMENT, NULL, S_O_RESULT, 0),
    ARRAY(S_O_RESULT, "resourceSpans", S_O_RESOURCES, 0),
    OTLP_RESOURCES,
};

static int on_enter(void *ctx, uint8_t state, const struct walk_value *key, struct err *err)
{
    struct span_front *front = ctx;
    switch ((enum span_state)state) {
    case S_ANY:
        front->known = false;
        span_begin(front);
        return 0;
    case S_Z_SPAN:
        span_begin(front);
        return 0;
    case S_J_TRACE:
    case S_J_SPAN:
    case S_J_REFERENCE:
    case S_J_PROCESS:
    case S_J_OWN_PROCESS:
        return jaeger_enter(front, state, key, err);
    case S_J_DATA:
    case S_O_RESULT:
    case S_O_RESOURCES:
        front->known = true;
        return 0;
    case S_O_RESOURCE_SPANS:
    case S_O_RESOURCE:
    case S_O_SPAN:
        otlp_enter(front, state);
        return 0;
    case S_TAG:
        front->tag_key_size = front->tag_value_size = 0;
        front->tag_has_value = false;
        return 0;
    default: /* most states have nothing to prepare */
        return 0;
    }
}

static int on_leave(void *ctx, uint8_t state, struct err *err)
{
    struct span_front *front = ctx;
    switch ((enum span_state)state) {
    case S_ANY:
    case S_Z_SPAN:
        return zipkin_leave(front, state, err);
    case S_J_TRACE:
    case S_J_SPAN:
    case S_J_REFERENCE:
    case S_J_PROCESS:
    case S_J_OWN_PROCESS:
        return jaeger_leave(front, state, err);
    case S_O_RESOURCE_SPANS:
    case S_O_RESOURCE:
    case S_O_SPAN:
        return otlp_leave(front, state, err);
    case S_TAG:
        return span_tags_take(front->into, front->table, front->tag_key, front->tag_key_size,
                              front->tag_value, front->tag_value_size, err);
    default:
        return 0;
    }
}

static int on_value(void *ctx, uint8_t field, const struct walk_value *value, struct err *err)
{
    struct span_front *front = ctx;
    if (field == F_KNOWN) {
        front->known = true; /* Jaeger: "data": null */
        return 0;
    }
    if (value->type == WALK_NULL)
        return 0;
    switch ((enum span_field)field) {
    case F_J_PROCESS:
    case F_J_SERVICE:
    case F_J_REF_TYPE:
    case F_J_REF_TRACE:
    case F_J_REF_SPAN:
        return jaeger_value(front, field, value, err);
    case F_O_KIND:
    case F_START_NANO:
    case F_END_NANO:
        return otlp_value(front, field, value, err);
    case F_TAG_KEY:
    case F_TAG_VALUE:
        span_tag_value(front, field, value);
        return 0;
    case F_TRACE:
    case F_ID:
    case F_PARENT:
    case F_START:
    case F_DURATION:
        return span_value(front, field, value, err);
    default:
        return zipkin_value(front, field, value, err);
    }
}

const struct walk_grammar span_grammar = {
    .rules = rules,
    .n_rules = ARRAY_LEN(rules),
    .n_states = S_N_STATES,
    .enter = on_enter,
    .leave = on_leave,
    .value = on_value,
};

const struct walk_grammar otlp_grammar = {
    .rules = otlp_rules,
    .n_rules = ARRAY_LEN(otlp_rules),
    .n_states = S_N_STATES,
    .enter = on_enter,
    .leave = on_leave,
    .value = on_value,
};
