/* mem.h - allocation that cannot fail (out of memory ends the process; the supervisor restarts
 * it), ownership by the cleanup attribute, and growing arrays. */
#ifndef REMAP_BASE_MEM_H
#define REMAP_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>

void *mem_alloc(size_t size);                /* zeroed */
void *mem_array(size_t count, size_t size);  /* zeroed, overflow checked */
void *mem_resize(void *old, size_t count, size_t size); /* not zeroed, overflow checked */
char *mem_strdup(const char *text);          /* NULL gives NULL */
char *mem_strndup(const char *text, size_t size);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *mem_dup(const void *from, size_t size);

/* `ARRAY_PUSH(m->hosts, m->n_hosts)` makes room for one more element, counts it, and returns a
 * pointer to it, zeroed. Grows by doubling; the array may have come from any function of this
 * file. Both arguments are evaluated more than once; the count is a size_t. */
void *mem_grow(void *array, size_t *count, size_t size);
#define ARRAY_PUSH(array, count)                                     \
    (__extension__({                                                 \
        (array) = mem_grow((array), &(count), sizeof *(array));      \
        &(array)[(count)-1];                                         \
    }))

/* AUTO(thing) struct thing *t = …;  calls thing_free(t) at the end of the scope. A header that
 * declares `void thing_free(struct thing *)` adds `AUTO_DEFINE(thing)`. */
#define AUTO_DEFINE(name)                                        \
    static inline void name##_auto_free(struct name **p)         \
    {                                                            \
        name##_free(*p);                                         \
    }
#define AUTO(name) __attribute__((cleanup(name##_auto_free)))

void mem_free_auto(void *pointer_to_pointer);
#define AUTO_FREE __attribute__((cleanup(mem_free_auto))) /* for char * and plain memory */

/* Hands the pointer out and leaves NULL behind. */
#define steal(p)                       \
    (__extension__({                   \
        __typeof__(p) stolen_ = (p);   \
        (p) = NULL;                    \
        stolen_;                       \
    }))

#define ARRAY_LEN(a) (sizeof(a) / sizeof *(a))

#endif
