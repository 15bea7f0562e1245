/* flows.h - messages by the time at which they were sent, as sums per pair and slice of time, so
 * that any window of the recent past can be read again, by every application that asks. The newest
 * part is also there in finer slices: a window of a minute is read as well as one of a day beside it.
 *
 * Memory: at most FLOWS_MAX_EDGES pairs, and FLOWS_MAX_ROWS sums of 32 bytes, that is 16 MB; where
 * more would be needed, slices become twice as long. A slice is in a window if its
 * beginning is: what came last is always in the window that ends now. */
#ifndef REMAP_OTLP_FLOWS_H
#define REMAP_OTLP_FLOWS_H

#include "adapters/adapter.h"
#include "adapters/spans/table.h"

#define FLOWS_MAX_EDGES 20000
#define FLOWS_MAX_ROWS ((size_t)512 * 1024)
#define FLOWS_SLICES 128 /* of the time that is kept: each is below a percent of it, and below
                            seven of any shorter window that ends now */

struct flows;

/* Keeps what is younger than keep_ms. */
struct flows *flows_new(int64_t keep_ms);
void flows_free(struct flows *flows);
AUTO_DEFINE(flows)
/* Another time to keep; what is there stays, where it becomes longer in slices as long as that wants:
 * the finer ones for the time between begin now. */
void flows_keep(struct flows *flows, int64_t keep_ms);
/* It is this late: forgets what is older than keep_ms, or from a time to come. Before any message of
 * a time up to now. */
void flows_tick(struct flows *flows, int64_t now_ms);

/* One message of this wall time between two nodes of a table; -1: unknown. Beyond the limit of pairs
 * it goes to `other`, a node. */
void flows_message(struct flows *flows, int64_t at_ms, int32_t src, int32_t dst, int64_t bytes,
                     int64_t duration_us, int32_t other);
/* Is a message of this time among those of the window? */
bool flows_in_window(const struct flows *flows, int64_t at_ms, const struct window *window);
/* Adds to the counts of this time; messages, sized and the times are not counted there. */
void flows_count(struct flows *flows, int64_t at_ms, const struct span_counts *more);

/* Adds sums to the table's edges. All of them together may hold as many bytes as a model's number:
 * what is above *left becomes of unknown size. */
int flows_add(struct span_table *table, struct span_edge sums, int64_t *left, struct err *err);
/* Adds the window's sums to the table's edges, as above, and its counts. */
int flows_window(const struct flows *flows, const struct window *window,
                   struct span_table *table, int64_t *left, struct err *err);
/* Adds the members of `more` that are counted here. */
void flows_add_counts(struct span_counts *to, const struct span_counts *more);

size_t flows_edges(const struct flows *flows);
/* Forgets pairs without messages in any slice and marks the nodes of the others. */
void flows_mark(struct flows *flows, bool *used);
/* Nodes have new numbers. */
void flows_renumber(struct flows *flows, const int32_t *map);

#endif
