/* inflate.h - a gzip body, unpacked piece by piece and never beyond a limit. */
#ifndef REMAP_OTLP_INFLATE_H
#define REMAP_OTLP_INFLATE_H

#include <stddef.h>
#include "model/base/err.h"

typedef int inflate_sink_f(void *ctx, const char *data, size_t size, struct err *err);

/* Hands what comes out to sink(ctx), which ends it by -1. ERR_INPUT: no gzip, or cut short;
 * ERR_TOO_LARGE: more than max_bytes would come out. Several members one after the other are one
 * body (RFC 1952, 2.2). */
int inflate_gzip(const char *data, size_t size, size_t max_bytes, inflate_sink_f *sink, void *ctx,
                 struct err *err);

#endif
