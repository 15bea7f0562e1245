/* decode.h - an OTLP trace request in either encoding into spans (interfaces.md 5.4;
 * open-telemetry/opentelemetry-proto: docs/specification.md "OTLP/HTTP"). */
#ifndef REMAP_OTLP_DECODE_H
#define REMAP_OTLP_DECODE_H

#include <stdbool.h>
#include "adapters/spans/front.h"

/* A body as it is posted, and what it may become. */
#define OTLP_MAX_BODY ((size_t)4 << 20)
#define OTLP_MAX_INFLATED ((size_t)16 << 20)

struct otlp_body {
    const char *data;
    size_t size;
    bool json; /* else protobuf */
    bool gzip;
    size_t max_inflated; /* 0: OTLP_MAX_INFLATED; less for tests */
};

/* Every span goes to sink(ctx), whose error ends it; names go into the table. Spans without valid
 * ids are counted in *rejected.
 * ERR_INPUT: not such a request; ERR_TOO_LARGE. */
int otlp_decode(const struct otlp_body *body, struct span_table *table, span_sink_f *sink, void *ctx,
                int64_t *rejected, struct err *err);

#endif
