/* joiner.h - from spans to messages: the two halves of a call are joined and counted once, by the
 * rules of interfaces.md 5.1 (the logic of Zipkin's DependencyLinker).
 *
 * Spans of a trace may come in any order, from any number of files. A trace is joined when it is
 * closed: at the end, or, when JOINER_WINDOW spans are open, oldest trace first. A span of a trace
 * that was closed so is `late`: counted, not joined. */
#ifndef REMAP_SPANS_JOINER_H
#define REMAP_SPANS_JOINER_H

#include "adapters/spans/span.h"
#include "adapters/spans/table.h"

/* 200,000 open spans of 56 bytes are 11 MB; with the index of traces (12 MB where every span is a
 * trace of its own) and the memory of closed ones (8 MB) well below the 64 MB of an import. */
#define JOINER_WINDOW 200000

struct joiner;

/* Borrows the table. `window`: JOINER_WINDOW, or less for tests. */
struct joiner *joiner_new(struct span_table *table, size_t window);
void joiner_free(struct joiner *joiner);
AUTO_DEFINE(joiner)

/* From now on other spans are dropped uncounted, and a span of a closed trace is no late one: it was
 * there when the trace was closed. */
void joiner_range(struct joiner *joiner, const struct span_range *range);

/* Copies the span. ERR_TOO_LARGE from the table. */
int joiner_add(struct joiner *joiner, const struct span *span, struct err *err);
/* Closes every open trace. */
int joiner_finish(struct joiner *joiner, struct err *err);

#endif
