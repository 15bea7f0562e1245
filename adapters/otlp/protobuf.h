/* protobuf.h - the protobuf encoding of OTLP requests (inside adapters/otlp). */
#ifndef REMAP_OTLP_PROTOBUF_H
#define REMAP_OTLP_PROTOBUF_H

#include "adapters/spans/front.h"
#include "model/base/buf.h"

/* As otlp_decode(). Memory beside `data` is some twice its size, and limited. `spent` (may be NULL) is
 * what `data` lies in, and emptied as soon as that is unpacked. */
int otlp_protobuf(const char *data, size_t size, struct buf *spent, struct span_table *table,
                  span_sink_f *sink, void *ctx, int64_t *rejected, struct err *err);

#endif
