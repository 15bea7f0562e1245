/* mem.c - allocation that cannot fail. Sizes of input are limited, so running out is our bug or a
 * machine without memory: either way the process ends and its supervisor decides. */
#include "model/base/mem.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void out_of_memory(void)
{
    static const char line[] = "out of memory\n";

    if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
        abort();
    abort();
}

static size_t array_bytes(size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX)
        out_of_memory();
    return bytes;
}

void *mem_alloc(size_t size)
{
    return mem_array(1, size);
}

void *mem_array(size_t count, size_t size)
{
    size_t bytes = array_bytes(count, size);
    void *p = calloc(1, bytes ? bytes : 1);

    if (!p)
        out_of_memory();
    return p;
}

void *mem_resize(void *old, size_t count, size_t size)
{
    size_t bytes = array_bytes(count, size);
    void *p = realloc(old, bytes ? bytes : 1);

    if (!p)
        out_of_memory();
    return p;
}

char *mem_strdup(const char *text)
{
    return text ? mem_dup(text, strlen(text) + 1) : NULL;
}

char *mem_strndup(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    char *copy = mem_alloc(length + 1);

    memcpy(copy, text, length);
    return copy;
}

char *mem_printf(const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        out_of_memory();
    return text;
}

void *mem_dup(const void *from, size_t size)
{
    void *copy = mem_resize(NULL, size, 1);

    if (size)
        memcpy(copy, from, size);
    return copy;
}

void *mem_grow(void *array, size_t *count, size_t size)
{
    size_t n = *count;
    /* Our own growth is full at the powers of two from 4; an array that came from elsewhere with
     * its exact size is full earlier, which the allocator knows. */
    bool full = n == 0 || (n >= 4 && (n & (n - 1)) == 0);

    if (full || malloc_usable_size(array) < array_bytes(n + 1, size)) {
        size_t cap = 4;
        while (cap <= n)
            cap *= 2;
        array = mem_resize(array, cap, size);
    }
    memset((char *)array + n * size, 0, size);
    *count = n + 1;
    return array;
}

void mem_free_auto(void *pointer_to_pointer)
{
    void *p;

    memcpy(&p, pointer_to_pointer, sizeof p);
    free(p);
}
