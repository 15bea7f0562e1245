/* reader.h - recorded spans of any size and format (Zipkin v2 JSON, Jaeger query JSON, OTLP JSON;
 * each also newline-delimited) into a span_table. Memory is bounded by the window of the joiner. */
#ifndef REMAP_SPANS_READER_H
#define REMAP_SPANS_READER_H

#include "adapters/spans/joiner.h"

struct span_reader;

/* Borrows the table. `window`: JOINER_WINDOW, or less for tests. */
struct span_reader *span_reader_new(struct span_table *table, size_t window);
void span_reader_free(struct span_reader *reader);
AUTO_DEFINE(span_reader)

/* joiner_range(). */
void span_reader_range(struct span_reader *reader, const struct span_range *range);

/* One document stream, cut into pieces anywhere; ended by span_reader_end. ERR_INPUT and
 * ERR_TOO_LARGE name line and byte; after an error the reader is only good for
 * span_reader_free. */
int span_reader_feed(struct span_reader *reader, const char *data, size_t size, struct err *err);
int span_reader_end(struct span_reader *reader, struct err *err);

/* A whole file, "-" for stdin, plain or gzip; `step` (may be NULL) is called about every MiB with
 * the spans read so far and ends the reading by -1. Errors name the file. */
int span_reader_file(struct span_reader *reader, const char *path,
                     int (*step)(void *arg, int64_t spans, struct err *err), void *arg,
                     struct err *err);

/* After the last document: joins what is open. */
int span_reader_finish(struct span_reader *reader, struct err *err);

#endif
