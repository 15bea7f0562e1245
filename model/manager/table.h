/* table.h - text tables for people: columns padded to their widest cell (in terminal columns, not
 * bytes), numbers to the right. */
#ifndef REMAP_MANAGER_TABLE_H
#define REMAP_MANAGER_TABLE_H

#include <stddef.h>
#include "model/base/buf.h"
#include "model/base/mem.h"

struct table;

/* `titles` is NULL-terminated; a title that begins with '>' is a column aligned to the right. */
struct table *table_new(const char *const titles[]);
void table_free(struct table *table);
AUTO_DEFINE(table)

/* Appends one cell; after the last column a new row begins. NULL prints as "-". */
void table_cell(struct table *table, const char *text);
void table_printf(struct table *table, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t table_rows(const struct table *table);
/* Each line begins with `indent` spaces; no trailing blanks. */
void table_put(const struct table *table, int indent, struct buf *out);

/* Columns that UTF-8 text takes on a terminal; control characters count as one ('?' when shown). */
size_t text_width(const char *text);

#endif
