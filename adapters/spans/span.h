/* span.h - what any tracer tells about one piece of work (interfaces.md 5). */
#ifndef REMAP_SPANS_SPAN_H
#define REMAP_SPANS_SPAN_H

#include <stdbool.h>
#include <stdint.h>

enum span_kind { SPAN_LOCAL, SPAN_CLIENT, SPAN_SERVER, SPAN_PRODUCER, SPAN_CONSUMER };

struct span {
    uint64_t trace_hi, trace_lo; /* numbers: shorter ids are padded with zeros */
    uint64_t id, parent;         /* parent 0: none */
    int64_t start_us, end_us;    /* since the epoch; -1 unknown */
    int64_t duration_us;         /* -1 unknown */
    int64_t bytes;               /* request and response together; -1 unknown */
    int32_t node;                /* who reports, span_table_node(); -1: did not say */
    int32_t remote;              /* the other side by name; -1: did not say */
    uint8_t kind;                /* enum span_kind */
    bool shared;                 /* a server's half under its client's id (B3) */
};

/* Of traces that come whole, and maybe more than once, the spans that are wanted: those that start in
 * [from_us, to_us), or do not say when, of `service` (name id; -1: of any), and those of any service
 * that start in [before_us, from_us). */
struct span_range {
    int64_t before_us, from_us, to_us;
    int32_t service;
};

#endif
