/* answer.h - what a receiver of OTLP answers (open-telemetry/opentelemetry-proto:
 * docs/specification.md "OTLP/HTTP Response"): an ExportTraceServiceResponse, or a google.rpc.Status,
 * in the encoding of the request. */
#ifndef REMAP_OTLP_ANSWER_H
#define REMAP_OTLP_ANSWER_H

#include <stdbool.h>
#include <stdint.h>
#include "model/base/buf.h"

#define OTLP_JSON "application/json"
#define OTLP_PROTOBUF "application/x-protobuf"

/* Appends a success; `rejected` spans were not taken because of `why` (0: all were). */
void otlp_answer_taken(bool json, int64_t rejected, const char *why, struct buf *out);
/* Appends the Status of an HTTP status; `text` is made valid UTF-8. */
void otlp_answer_error(bool json, unsigned http_status, const char *text, struct buf *out);

#endif
