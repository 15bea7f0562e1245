/* buf.h - a growing text or byte buffer, always NUL-terminated. */
#ifndef REMAP_BASE_BUF_H
#define REMAP_BASE_BUF_H

#include <stddef.h>

struct buf {
    char *data; /* NULL while empty and never written */
    size_t size;
    size_t cap;
};

#define BUF_INIT {NULL, 0, 0}

void buf_add(struct buf *buf, const void *data, size_t size);
void buf_puts(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_reserve(struct buf *buf, size_t more);
void buf_clear(struct buf *buf);  /* keeps the memory */
void buf_wipe(struct buf *buf);   /* frees it */
char *buf_take(struct buf *buf);  /* caller frees; never NULL */

#define AUTO_BUF __attribute__((cleanup(buf_wipe)))

#endif
