/* decode.c - which encoding it is, and the one that is JSON (decode.h). */
#include "adapters/otlp/decode.h"

#include "adapters/otlp/inflate.h"
#include "adapters/otlp/protobuf.h"
#include "model/base/buf.h"

/* Spans in protobuf are seldom packed better; where they are, the buffer grows. */
#define LIKELY_RATIO 8

static int feed_walk(void *ctx, const char *data, size_t size, struct err *err)
{
    return walk_feed(ctx, data, size, err);
}

static int feed_buf(void *ctx, const char *data, size_t size, struct err *err)
{
    (void)err; /* inflate_gzip() limits it */
    buf_add(ctx, data, size);
    return 0;
}

static size_t most(const struct otlp_body *body)
{
    return body->max_inflated ? body->max_inflated : OTLP_MAX_INFLATED;
}

static int decode_json(const struct otlp_body *body, struct span_front *front, struct err *err)
{
    AUTO(walk) struct walk *walk = walk_new(&otlp_grammar, front);
    int rc = body->gzip ? inflate_gzip(body->data, body->size, most(body), feed_walk, walk, err)
                        : walk_feed(walk, body->data, body->size, err);
    return rc ? -1 : walk_end(walk, err);
}

int otlp_decode(const struct otlp_body *body, struct span_table *table, span_sink_f *sink, void *ctx,
                int64_t *rejected, struct err *err)
{
    if (body->json) {
        AUTO(span_front) struct span_front *front = span_front_new(table, sink, ctx);
        front->rejected = rejected;
        return decode_json(body, front, err);
    }
    AUTO_BUF struct buf plain = BUF_INIT;
    if (!body->gzip)
        return otlp_protobuf(body->data, body->size, NULL, table, sink, ctx, rejected, err);
    size_t likely = body->size * LIKELY_RATIO; /* of OTLP_MAX_BODY at most */
    if (likely > most(body))
        likely = most(body);
    buf_reserve(&plain, likely);
    if (inflate_gzip(body->data, body->size, most(body), feed_buf, &plain, err))
        return -1;
    return otlp_protobuf(plain.data, plain.size, &plain, table, sink, ctx, rejected, err);
}
