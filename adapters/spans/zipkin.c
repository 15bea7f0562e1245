/* zipkin.c - Zipkin v2 spans (interfaces.md 5.1; openzipkin/zipkin-api:zipkin2-api.yaml). */
#include "adapters/spans/front.h"

#include <string.h>

static int take_name(struct span_front *front, const struct walk_value *value, int32_t *out,
                     struct err *err)
{
    if (value->type != WALK_TEXT)
        return err_set(err, ERR_INPUT, "serviceName must be a text");
    int32_t name = span_table_name(front->table, value->text, value->size, true, err);
    if (name == -2)
        return -1;
    *out = name;
    return 0;
}

static void take_address(char out[64], const struct walk_value *value)
{
    if (value->type != WALK_TEXT || value->size >= 64)
        return;
    memcpy(out, value->text, value->size);
    out[value->size] = '\0';
}

static int take_kind(struct span_front *front, const struct walk_value *value, struct err *err)
{
    static const struct {
        const char *name;
        enum span_kind kind;
    } kinds[] = {{"CLIENT", SPAN_CLIENT},
                 {"SERVER", SPAN_SERVER},
                 {"PRODUCER", SPAN_PRODUCER},
                 {"CONSUMER", SPAN_CONSUMER}};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (value->type == WALK_TEXT && strlen(kinds[i].name) == value->size &&
            memcmp(kinds[i].name, value->text, value->size) == 0) {
            front->span.kind = (uint8_t)kinds[i].kind;
            return 0;
        }
    return err_set(err, ERR_INPUT, "kind must be CLIENT, SERVER, PRODUCER or CONSUMER, not %.*s",
                   (int)(value->size < 40 ? value->size : 40), value->text);
}

int zipkin_value(struct span_front *front, uint8_t field, const struct walk_value *value,
                 struct err *err)
{
    switch ((enum span_field)field) {
    case F_KIND:
        return take_kind(front, value, err);
    case F_SHARED:
        if (value->type != WALK_BOOL)
            return err_set(err, ERR_INPUT, "shared must be true or false");
        front->span.shared = value->size == 4;
        return 0;
    case F_LOCAL_NAME:
        return take_name(front, value, &front->local_name, err);
    case F_REMOTE_NAME:
        return take_name(front, value, &front->remote_name, err);
    case F_LOCAL_ADDRESS:
        take_address(front->local_address, value);
        return 0;
    case F_REMOTE_ADDRESS:
        take_address(front->remote_address, value);
        return 0;
    case F_Z_TAG:
        return span_tags_take(&front->tags, front->table, value->key, value->key_size, value->text,
                              value->size, err);
    default:
        return 0;
    }
}

static int finish_span(struct span_front *front, struct err *err)
{
    struct span_tags *tags = &front->tags;
    if (!tags->address[0])
        memcpy(tags->address, front->local_address, sizeof tags->address);
    front->span.node = span_tags_node(tags, front->table, front->local_name, err);
    struct span_tags remote;
    span_tags_reset(&remote);
    memcpy(remote.address, front->remote_address, sizeof remote.address);
    front->span.remote = span_tags_node(&remote, front->table, front->remote_name, err);
    if (front->span.node == -2 || front->span.remote == -2)
        return -1;
    return span_end(front, err);
}

/* A document of its own may be a span or, as it has turned out by now, another format. */
int zipkin_leave(struct span_front *front, uint8_t state, struct err *err)
{
    if (state == S_ANY && front->known)
        return 0;
    if (state == S_ANY && !front->has_trace && !front->has_id)
        return err_set(err, ERR_INPUT, "neither Zipkin spans nor a Jaeger answer nor OTLP");
    return finish_span(front, err);
}
