/* span_text.h - recorded spans into one line of text that a test can compare. */
#ifndef REMAP_TESTS_SPAN_TEXT_H
#define REMAP_TESTS_SPAN_TEXT_H

#include "adapters/spans/reader.h"
#include "model/base/buf.h"

/* "a>b 3 120B 500us; b>c 1": messages per pair of services (with "[pod]" where known), known bytes,
 * mean time, sorted by name; then what was not counted: "external 1", "late 2", … Appends to *out.
 */
void span_table_print(struct span_table *table, struct buf *out);

/* One document of `size` bytes, fed in pieces of `piece` bytes (0: at once). */
int span_text_read(const char *json, size_t size, size_t piece, size_t window, struct buf *out,
                   struct err *err);

#endif
