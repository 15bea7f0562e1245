/* otlp_body.h - OTLP trace requests of a few spans, in each encoding, for tests. */
#ifndef REMAP_TESTS_OTLP_BODY_H
#define REMAP_TESTS_OTLP_BODY_H

#include <stddef.h>
#include <stdint.h>
#include "model/base/buf.h"

enum { INTERNAL = 1, SERVER, CLIENT, PRODUCER, CONSUMER }; /* as OTLP numbers them */

struct sample_tag {
    const char *key, *text; /* text NULL: the number */
    int64_t number;
};

struct sample_span {
    const char *service, *pod; /* of its resource; NULL: does not say */
    uint64_t trace, id, parent;
    int kind;
    int64_t start_us, duration_us;
    struct sample_tag tags[4]; /* key NULL: no more */
};

/* One resource for each span, in their order. Append to *out. */
void otlp_body_json(const struct sample_span *spans, size_t n, struct buf *out);
void otlp_body_protobuf(const struct sample_span *spans, size_t n, struct buf *out);
/* The same bytes as gzip. */
void otlp_body_gzip(const struct buf *plain, struct buf *out);

#endif
