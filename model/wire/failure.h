/* failure.h - the body of a failure: {"v":1,"kind":…,"text":…}. */
#ifndef REMAP_WIRE_FAILURE_H
#define REMAP_WIRE_FAILURE_H

#include <stddef.h>
#include "model/base/buf.h"
#include "model/base/err.h"

void failure_encode(const struct err *what, struct buf *out);
/* Always returns -1: *err is what the body says, or ERR_INTERNAL when it cannot be read. */
int failure_decode(const char *body, size_t size, struct err *err);

#endif
