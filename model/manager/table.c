/* table.c - text tables: cells are collected, then widths, then lines. */
#include "model/manager/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdbool.h>

struct table {
    const char *const *titles;
    size_t n_columns;
    char **cells; /* row after row */
    size_t n_cells;
};

struct table *table_new(const char *const titles[])
{
    struct table *table = mem_alloc(sizeof *table);
    table->titles = titles;
    while (titles[table->n_columns])
        table->n_columns++;
    return table;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
}

void table_cell(struct table *table, const char *text)
{
    char *cell = mem_strdup(text ? text : "-");
    for (char *p = cell; *p; p++) /* names may hold what a terminal would obey */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    *ARRAY_PUSH(table->cells, table->n_cells) = cell;
}

void table_printf(struct table *table, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    size_t size = (size_t)vsnprintf(NULL, 0, fmt, args) + 1;
    AUTO_FREE char *text = mem_alloc(size);
    vsnprintf(text, size, fmt, again);
    va_end(again);
    va_end(args);
    table_cell(table, text);
}

size_t table_rows(const struct table *table)
{
    return table->n_cells / table->n_columns;
}

/* One code point of UTF-8 (names are checked before they come here; anything odd is one byte). */
static size_t codepoint(const char *p, unsigned *out)
{
    const unsigned char *u = (const unsigned char *)p;
    size_t more = u[0] >= 0xf0 ? 3 : u[0] >= 0xe0 ? 2 : u[0] >= 0xc0 ? 1 : 0;
    *out = more == 3 ? u[0] & 7u : more == 2 ? u[0] & 15u : more ? u[0] & 31u : u[0];
    for (size_t i = 1; i <= more; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 1;
        *out = *out << 6 | (u[i] & 63u);
    }
    return more + 1;
}

/* Wide and zero-width ranges that occur in names; wcwidth() would need a locale. */
static size_t codepoint_width(unsigned c)
{
    bool zero = (c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200f) || c == 0xfeff ||
                (c >= 0xfe00 && c <= 0xfe0f);
    bool wide = (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
                (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
                (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
                (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd);
    return zero ? 0 : wide ? 2 : 1;
}

size_t text_width(const char *text)
{
    size_t width = 0;
    while (*text) {
        unsigned c;
        text += codepoint(text, &c);
        width += codepoint_width(c);
    }
    return width;
}

static const char *title_text(const char *title)
{
    return title[0] == '>' ? title + 1 : title;
}

static void put_cell(const struct table *table, size_t column, const char *text, size_t width,
                     struct buf *out)
{
    int pad = (int)(width - text_width(text));
    if (table->titles[column][0] == '>')
        buf_printf(out, "%*s%s", pad, "", text);
    else
        buf_printf(out, "%s%*s", text, pad, "");
}

static void put_row(const struct table *table, const char *const *cells, const size_t *widths,
                    int indent, struct buf *out)
{
    buf_printf(out, "%*s", indent, "");
    for (size_t c = 0; c < table->n_columns; c++) {
        if (c)
            buf_puts(out, "  ");
        put_cell(table, c, cells[c], widths[c], out);
    }
    while (out->size && out->data[out->size - 1] == ' ')
        out->data[--out->size] = '\0';
    buf_puts(out, "\n");
}

void table_put(const struct table *table, int indent, struct buf *out)
{
    size_t n = table->n_columns;
    AUTO_FREE size_t *widths = mem_array(n, sizeof *widths);
    AUTO_FREE const char **titles = mem_array(n, sizeof *titles);
    bool titled = false;
    for (size_t c = 0; c < n; c++) {
        titles[c] = title_text(table->titles[c]);
        widths[c] = text_width(titles[c]);
        titled = titled || *titles[c];
    }
    for (size_t i = 0; i < table->n_cells; i++)
        if (text_width(table->cells[i]) > widths[i % n])
            widths[i % n] = text_width(table->cells[i]);
    if (titled)
        put_row(table, titles, widths, indent, out);
    for (size_t i = 0; i + n <= table->n_cells; i += n)
        put_row(table, (const char *const *)table->cells + i, widths, indent, out);
}
