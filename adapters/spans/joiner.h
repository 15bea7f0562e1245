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

/* --- for spans that are sent to us and never end --- */

/* A live joiner closes no trace by itself: whoever adds spans sees to the room before, by the calls
 * below. `before` is called ahead of each trace whose messages are to be counted, with the start of
 * its first span (-1: none said when) and the time at which that span came. */
typedef void joiner_before_f(void *ctx, int64_t start_us, int64_t came_ms);
void joiner_live(struct joiner *joiner, joiner_before_f *before, void *ctx);
/* Spans that are added from now on come at this time; times only grow. */
void joiner_tick(struct joiner *joiner, int64_t now_ms);
/* Spans that can be added; those that wait. */
size_t joiner_room(const struct joiner *joiner);
size_t joiner_waiting(const struct joiner *joiner);
/* Closes traces whose first span came before `before_ms`, oldest first, until there is `room`
 * (SIZE_MAX: all of them). Returns how many, or -1. */
int64_t joiner_expire(struct joiner *joiner, int64_t before_ms, size_t room, struct err *err);
/* Closes traces that got spans since the last call and are settled (trace.h); `close` false: only
 * forgets which these are. */
int joiner_settle(struct joiner *joiner, bool close, struct err *err);
/* Counts the messages of the open traces, and leaves them open. */
int joiner_peek(struct joiner *joiner, struct err *err);
/* Calls fn for every node that an open span names. */
void joiner_nodes(struct joiner *joiner, void (*fn)(void *ctx, int32_t *node), void *ctx);

/* Copies the span. ERR_TOO_LARGE from the table. */
int joiner_add(struct joiner *joiner, const struct span *span, struct err *err);
/* Closes every open trace. */
int joiner_finish(struct joiner *joiner, struct err *err);

#endif
