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

/* Makes room for one more element: `ARRAY_PUSH(m->hosts, m->n_hosts)` returns a pointer to a zeroed
 * new last element and counts it. Capacity is the next power of two of the count. */
void *mem_push(void **array, size_t *count, size_t size);
#define ARRAY_PUSH(array, count) \
    ((__typeof__(array))mem_push((void **)&(array), &(count), sizeof *(array)))

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
