/* fuzz_otlp_gzip.c - any bytes as a gzip stream: unpacked to the same bytes in any way, or refused, and
 * never beyond the limit; and as a body of either encoding. */
#include <stdlib.h>
#include <string.h>

#include "adapters/otlp/inflate.h"
#include "model/base/buf.h"
#include "tests/fuzz/otlp_fuzz.h"

#define LIMIT 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(void *ctx, const char *data, size_t size, struct err *err)
{
    (void)err;
    struct buf *out = ctx;
    buf_add(out, data, size);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf out = BUF_INIT, again = BUF_INIT;
    int rc = inflate_gzip((const char *)data, size, LIMIT, take, &out, &err);
    if (out.size > LIMIT || (rc && err.kind != ERR_INPUT && err.kind != ERR_TOO_LARGE))
        abort();
    if (rc == 0 && out.size) { /* a limit that is just not enough */
        if (inflate_gzip((const char *)data, size, out.size - 1, take, &again, &err) == 0 ||
            err.kind != ERR_TOO_LARGE)
            abort();
    }
    otlp_fuzz_body(data, size, size % 2, true);
    return 0;
}
