/* buf.c - a growing text or byte buffer. */
#include "model/base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

void buf_reserve(struct buf *buf, size_t more)
{
    assert(more < SIZE_MAX / 4 && buf->size < SIZE_MAX / 4);
    size_t need = buf->size + more + 1;

    if (need > buf->cap) {
        size_t cap = buf->cap ? buf->cap : 64;
        while (cap < need)
            cap *= 2;
        buf->data = mem_resize(buf->data, cap, 1);
        buf->cap = cap;
    }
    buf->data[buf->size] = '\0';
}

void buf_add(struct buf *buf, const void *data, size_t size)
{
    buf_reserve(buf, size);
    if (size)
        memcpy(buf->data + buf->size, data, size);
    buf->size += size;
    buf->data[buf->size] = '\0';
}

void buf_puts(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_printf(struct buf *buf, const char *fmt, ...)
{
    va_list ap;

    buf_reserve(buf, 64);
    va_start(ap, fmt);
    int n = vsnprintf(buf->data + buf->size, buf->cap - buf->size, fmt, ap);
    va_end(ap);
    assert(n >= 0);
    if ((size_t)n >= buf->cap - buf->size) {
        buf_reserve(buf, (size_t)n);
        va_start(ap, fmt);
        vsnprintf(buf->data + buf->size, buf->cap - buf->size, fmt, ap);
        va_end(ap);
    }
    buf->size += (size_t)n;
}

void buf_clear(struct buf *buf)
{
    buf->size = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

void buf_wipe(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf)BUF_INIT;
}

char *buf_take(struct buf *buf)
{
    buf_reserve(buf, 0);
    char *data = buf->data;

    *buf = (struct buf)BUF_INIT;
    return data;
}
