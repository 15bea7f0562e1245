/* sizes.h - message sizes from the tags of a span (interfaces.md 5.2). */
#ifndef REMAP_SPANS_SIZES_H
#define REMAP_SPANS_SIZES_H

#include <stddef.h>
#include <stdint.h>

struct span_sizes {
    int family;                /* row of the table that `request` and `response` come from */
    int64_t request, response; /* -1 unknown */
};

#define SPAN_SIZES_INIT {INT32_MAX, -1, -1}

/* Takes the tag if it is a size tag with a decimal number of 0 or more; of several families of tags
 * the first of the table counts. Sizes of single events (RPC messages) of one span add up. */
void span_sizes_tag(struct span_sizes *sizes, const char *key, size_t key_size, const char *value,
                    size_t value_size);
/* Request and response together; -1 unknown. */
int64_t span_sizes_total(const struct span_sizes *sizes);

#endif
