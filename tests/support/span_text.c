/* span_text.c - see span_text.h. */
#include "tests/support/span_text.h"

#include <stdlib.h>
#include <string.h>

struct line {
    char *text;
};

static int by_text(const void *left, const void *right)
{
    return strcmp(((const struct line *)left)->text, ((const struct line *)right)->text);
}

static void print_node(const struct span_table *table, int32_t at, struct buf *out)
{
    const struct span_node *node = &span_table_nodes(table, NULL)[at];
    buf_puts(out, span_table_text(table, node->service));
    if (node->hint_kind == HINT_POD)
        buf_printf(out, "[%s]", span_table_text(table, node->hint));
}

static char *edge_text(const struct span_table *table, const struct span_edge *edge)
{
    struct buf out = BUF_INIT;
    print_node(table, edge->src, &out);
    buf_puts(&out, ">");
    print_node(table, edge->dst, &out);
    buf_printf(&out, " %lld", (long long)edge->count);
    if (edge->bytes >= 0)
        buf_printf(&out, " %lldB", (long long)edge->bytes);
    if (edge->n_timed)
        buf_printf(&out, " %.0fus", edge->total_us / (double)edge->n_timed);
    return buf_take(&out);
}

static void print_count(struct buf *out, const char *name, int64_t count)
{
    if (count)
        buf_printf(out, "%s%s %lld", out->size ? "; " : "", name, (long long)count);
}

void span_table_print(struct span_table *table, struct buf *out)
{
    size_t n;
    const struct span_edge *edges = span_table_edges(table, &n);
    struct line *lines = mem_array(n + 1, sizeof *lines);
    for (size_t i = 0; i < n; i++)
        lines[i].text = edge_text(table, &edges[i]);
    if (n > 1)
        qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%s%s", out->size ? "; " : "", lines[i].text);
        free(lines[i].text);
    }
    free(lines);
    const struct span_counts *counts = span_table_counts(table);
    print_count(out, "external", counts->external);
    print_count(out, "no-caller", counts->no_caller);
    print_count(out, "no-callee", counts->no_callee);
    print_count(out, "no-broker", counts->no_broker);
    print_count(out, "duplicates", counts->duplicates);
    print_count(out, "late", counts->late);
    if (!out->size)
        buf_puts(out, "nothing");
}

int span_text_read(const char *json, size_t size, size_t piece, size_t window, struct buf *out,
                   struct err *err)
{
    AUTO(span_table) struct span_table *table = span_table_new();
    AUTO(span_reader) struct span_reader *reader = span_reader_new(table, window);
    for (size_t at = 0; at < size || at == 0; at += piece ? piece : size + 1) {
        size_t part = piece && size - at > piece ? piece : size - at;
        if (span_reader_feed(reader, json + at, part, err))
            return -1;
    }
    if (span_reader_end(reader, err) || span_reader_finish(reader, err))
        return -1;
    span_table_print(table, out);
    return 0;
}
