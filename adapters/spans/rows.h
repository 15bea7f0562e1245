/* rows.h - the messages of a span_table as rows of a model. */
#ifndef REMAP_SPANS_ROWS_H
#define REMAP_SPANS_ROWS_H

#include "adapters/adapter.h"
#include "adapters/spans/table.h"
#include "adapters/identity.h"

struct span_end { /* what a node of the table is in the model */
    enum level level;
    int index; /* -1: nothing */
};

/* By name, in a model that a cluster adapter has filled. One per node; caller frees. */
struct span_end *span_ends_join(const struct span_table *table, struct identity *identity);

/* Without a cluster: adds every service that the spans name, databases and brokers that only others
 * speak of among them (an address alone is no name), with their pods as instances, or one instance
 * of the service's name. Order and names do not depend on the order of spans. `app` may be NULL.
 * *out as above. ERR_TOO_LARGE. */
int span_ends_make(const struct span_table *table, const char *app, struct model *model,
                   struct span_end **out, struct err *err);

/* Forgets messages between two ends that are nothing: a tracer that many applications share tells of
 * the others' as well. Returns how many. */
int64_t span_rows_forget_others(struct span_table *table, const struct span_end *ends);

/* Adds one row per pair of ends, sorted; traffic with an end that is nothing goes to in->identity
 * as unmapped; traffic of an end with itself is dropped. Notes tell what was left out. */
int span_rows(struct span_table *table, const struct span_end *ends, struct inspection *in,
              struct err *err);

/* The end of a live reading: resolves names, adds rows and notes to `in`, also of services of the
 * model that no span is of. Messages between two unknown names count as not mapped, or not at all. */
int span_rows_finish(struct span_table *table, bool count_others, struct inspection *in,
                     struct err *err);

#endif
