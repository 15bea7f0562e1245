/* table.h - what remains of any number of spans: the names that reported, the ends of messages
 * ("nodes") and the messages between them. Its size depends on the application, not on the
 * recording. */
#ifndef REMAP_SPANS_TABLE_H
#define REMAP_SPANS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/err.h"
#include "model/base/mem.h"

enum node_hint { HINT_NONE, HINT_POD, HINT_ADDRESS };

struct span_node { /* one end of messages, as the tracer sees it */
    int32_t service; /* name id; lower case */
    int32_t hint;    /* name id of the pod ("pod" or "namespace/pod") or IP address; -1 none */
    enum node_hint hint_kind;
    bool reports; /* has spans of its own; false: only spoken of */
};

struct span_edge { /* messages from one node to another */
    int32_t src, dst;
    int64_t count;
    int64_t bytes;     /* of those whose size is known; -1: of none */
    int64_t n_timed;   /* messages whose response time is known */
    double total_us;   /* their sum: exact below 2^53 µs, that is 285 years */
};

struct span_counts {
    int64_t spans, traces;
    int64_t messages;    /* on edges */
    int64_t duplicates;  /* spans told twice */
    int64_t late;        /* spans of a trace that was closed already */
    int64_t late_messages; /* those among them that are messages of their own (not CLIENT) */
    int64_t external;    /* root SERVER without the caller's name: from outside, no message */
    int64_t no_caller;   /* SERVER whose parent is missing and that names no caller */
    int64_t no_callee;   /* CLIENT without an answer that names no callee */
    int64_t no_broker;   /* PRODUCER or CONSUMER that names no broker */
    int64_t sized;       /* messages of known size */
    int64_t from_us, to_us; /* first start, last end; -1 none */
};

struct span_limits { /* of names, of services and of nodes */
    size_t names, services, nodes;
};

struct span_table;

struct span_table *span_table_new(void);
void span_table_free(struct span_table *table);
AUTO_DEFINE(span_table)

/* The id of a name (size bytes, need not be terminated), -1 when empty or no valid name
 * (contract.md 2), -2 and ERR_TOO_LARGE when there are more than 10^6. */
int32_t span_table_name(struct span_table *table, const char *text, size_t size, bool lower,
                        struct err *err);
const char *span_table_text(const struct span_table *table, int32_t name);

/* Addresses join names to a cluster's pods. Where there is no cluster they say nothing, and every
 * pair of them would be an edge of its own: without them the table stays as small as the app. */
void span_table_drop_addresses(struct span_table *table);
bool span_table_wants_addresses(const struct span_table *table);

/* For a table that lives on: what would be beyond the limits becomes SPAN_OTHER. Of an empty table
 * only. */
#define SPAN_OTHER "_other"
void span_table_limit(struct span_table *table, const struct span_limits *limits);
int32_t span_table_other(const struct span_table *table); /* its node; -1 without limits */
/* How many services, nodes and names there are. */
struct span_limits span_table_size(const struct span_table *table);
/* Forgets the nodes that are not to be kept (and names that no node has); map[old] is the new node
 * or -1. Of a table without edges. */
void span_table_keep(struct span_table *table, const bool *keep, int32_t *map);

int32_t span_table_node(struct span_table *table, int32_t service, int32_t hint,
                        enum node_hint hint_kind);
/* The node has spans of its own. */
void span_table_reports(struct span_table *table, int32_t node);
/* Has any node of this one's service? */
bool span_table_service_reports(const struct span_table *table, int32_t node);
struct span_node *span_table_nodes(const struct span_table *table, size_t *n);

/* Counts one message; bytes and duration_us -1: unknown. ERR_TOO_LARGE beyond 10^7 edges. */
int span_table_message(struct span_table *table, int32_t src, int32_t dst, int64_t bytes,
                       int64_t duration_us, struct err *err);
/* From now on span_table_message() calls this instead; NULL: no more. */
typedef int span_message_f(void *ctx, int32_t src, int32_t dst, int64_t bytes, int64_t duration_us,
                           struct err *err);
void span_table_divert(struct span_table *table, span_message_f *to, void *ctx);
/* Adds what a tool reports as sums; bytes -1: unknown. ERR_TOO_LARGE, ERR_INPUT as above. */
int span_table_sums(struct span_table *table, const struct span_edge *sums, struct err *err);
const struct span_edge *span_table_edges(const struct span_table *table, size_t *n);
/* Takes all of them out, and counts nothing any more; only the latter. */
void span_table_clear(struct span_table *table);
void span_table_counts_clear(struct span_table *table);
/* Takes an edge out; the last one comes to its place. */
void span_table_forget(struct span_table *table, size_t edge);
struct span_counts *span_table_counts(struct span_table *table);

#endif
