/* inflate.c - gzip by zlib (inflate.h). */
#include "adapters/otlp/inflate.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#define PIECE_BYTES 65536
#define GZIP_ONLY (16 + MAX_WBITS) /* zlib.h: add 16 for gzip */

static int inflate_all(z_stream *z, size_t max_bytes, inflate_sink_f *sink, void *ctx,
                       struct err *err)
{
    unsigned char piece[PIECE_BYTES];
    size_t total = 0;
    while (true) {
        z->next_out = piece;
        z->avail_out = sizeof piece;
        int rc = inflate(z, Z_NO_FLUSH);
        size_t size = sizeof piece - z->avail_out;
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return err_set(err, ERR_INPUT, "no gzip data: %s", z->msg ? z->msg : "damaged");
        if (size > max_bytes - total)
            return err_set(err, ERR_TOO_LARGE, "more than %zu bytes when unpacked", max_bytes);
        total += size;
        if (size && sink(ctx, (const char *)piece, size, err))
            return -1;
        if (rc == Z_STREAM_END && z->avail_in == 0)
            return 0;
        if (rc == Z_STREAM_END)
            inflateReset(z);
        else if (size == 0 && z->avail_in == 0)
            return err_set(err, ERR_INPUT, "gzip data that is cut short");
    }
}

int inflate_gzip(const char *data, size_t size, size_t max_bytes, inflate_sink_f *sink, void *ctx,
                 struct err *err)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)data, /* zlib only reads */
                  .avail_in = (unsigned)size};
    if (inflateInit2(&z, GZIP_ONLY) != Z_OK)
        abort(); /* out of memory ends the process (design.md 7) */
    int rc = inflate_all(&z, max_bytes, sink, ctx, err);
    inflateEnd(&z);
    return rc;
}
