/* utf8.h - well-formed UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, at most
 * U+10FFFF. */
#ifndef REMAP_BASE_UTF8_H
#define REMAP_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at `text` (1 … 4), 0 when the bytes there are not a whole one. */
size_t utf8_step(const char *text, size_t size);
/* True when `text` is the beginning of a character whose end is missing. */
bool utf8_is_cut(const char *text, size_t size);
/* Offset of the first byte that is not well-formed; `size` when all are. */
size_t utf8_check(const char *text, size_t size);

#endif
