/* trace.h - one whole trace into messages (inside the joiner). */
#ifndef REMAP_SPANS_TRACE_H
#define REMAP_SPANS_TRACE_H

#include "adapters/spans/span.h"
#include "adapters/spans/table.h"

struct trace_span { /* struct span without what its trace and the counts keep */
    uint64_t id, parent;
    int64_t duration_us, bytes;
    int32_t node, remote;
    uint8_t kind;
    bool shared;
};

struct trace_scratch; /* memory that grows to the largest trace and is used again */

struct trace_scratch *trace_scratch_new(void);
void trace_scratch_free(struct trace_scratch *scratch);
/* Room for n spans, to be filled before trace_join(). */
struct trace_span *trace_scratch_spans(struct trace_scratch *scratch, size_t n);

/* Counts the messages of the n spans there. The result does not depend on their order. */
int trace_join(struct trace_scratch *scratch, size_t n, struct span_table *table,
               struct err *err);

/* Would no span that is still to come change the messages of these n, as far as they tell? Every
 * span's parent is there, every call of a service that reports spans is answered, every message that
 * was sent is consumed. (Work that nobody waits for may still come.) */
bool trace_settled(struct trace_scratch *scratch, size_t n, const struct span_table *table);

#endif
