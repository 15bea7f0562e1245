/* fuzz_spans.c - any bytes as recorded spans (Zipkin, Jaeger, OTLP: one grammar knows them all):
 * refused with line and byte, or joined to the same messages whether read at once or in pieces, and
 * to rows that make a valid model. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/spans/reader.h"
#include "adapters/spans/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_pieces(struct span_table *table, const char *data, size_t size, size_t piece,
                       size_t window, struct err *err)
{
    AUTO(span_reader) struct span_reader *reader = span_reader_new(table, window);
    for (size_t at = 0; at < size; at += piece)
        if (span_reader_feed(reader, data + at, size - at < piece ? size - at : piece, err))
            return -1;
    return span_reader_end(reader, err) || span_reader_finish(reader, err) ? -1 : 0;
}

static void use(struct span_table *table)
{
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = model_new();
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    AUTO_FREE struct span_end *ends = NULL;
    if (span_ends_make(table, NULL, model, &ends, &err) == 0) {
        if (span_rows(table, ends, &in, &err))
            abort();
        identity_report(identity, &model->traffic);
        model->has_messages = true;
        if (model_check(model, &err))
            abort();
    } else if (err.kind != ERR_INPUT) { /* names that are too long together */
        abort();
    }
    inspection_wipe(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct err err = ERR_INIT, err_pieces = ERR_INIT;
    AUTO(span_table) struct span_table *table = span_table_new();
    AUTO(span_table) struct span_table *pieces = span_table_new();
    AUTO(span_table) struct span_table *narrow = span_table_new();

    int rc = read_pieces(table, text, size, size ? size : 1, 1000, &err);
    if (rc && (err.kind != ERR_INPUT && err.kind != ERR_TOO_LARGE))
        abort();
    if (read_pieces(pieces, text, size, 7, 1000, &err_pieces) != rc)
        abort();
    if (rc)
        return 0;
    struct span_counts *a = span_table_counts(table), *b = span_table_counts(pieces);
    if (memcmp(a, b, sizeof *a) != 0)
        abort();
    if (read_pieces(narrow, text, size, 4096, 3, &err))
        abort();
    if (span_table_counts(narrow)->spans != a->spans)
        abort();
    use(table);
    return 0;
}
