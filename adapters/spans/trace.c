/* trace.c - the messages of one trace (interfaces.md 5.1, after Zipkin's DependencyLinker and
 * SpanNode). In short:
 *   - a SERVER is one message, from the service of the first ancestor with a kind, else from the
 *     remote name it gives; a root without that name was called from outside;
 *   - a CLIENT that nobody answered is one message to the remote name it gives;
 *   - PRODUCER and CONSUMER are messages to and from the broker they name.
 * Sizes are the server's, else the client's; the time is the client's, else the server's.
 * Everything is linear in the spans but for sorting; times of different clocks are never compared,
 * so skew cannot matter. */
#include "adapters/spans/trace.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/spans/idmap.h"

#define ROOT (-1)    /* has no parent */
#define MISSING (-2) /* has one that is not there */
#define UNKNOWN (-3)
#define ON_THE_WAY (-4)

/* Spans of one id that are looked at. Two halves and a few retries are natural; without a limit
 * 200,000 spans of one id would cost 4·10^10 steps. */
#define MAX_GROUP 64

struct trace_scratch {
    struct trace_span *spans;
    size_t n_spans, cap;
    int32_t *parent; /* index of the parent, ROOT or MISSING */
    int32_t *up;     /* index of the first ancestor with a kind, ROOT or MISSING */
    int32_t *answer; /* of a CLIENT: service that answered it; -1 none yet */
    bool *answered;  /* of a CLIENT: a descendant speaks for it; of a PRODUCER: a CONSUMER does */
    struct idmap more_answers; /* (span, service) beyond the first */
};

struct trace_scratch *trace_scratch_new(void)
{
    return mem_alloc(sizeof(struct trace_scratch));
}

static void scratch_drop(struct trace_scratch *scratch)
{
    free(scratch->spans);
    free(scratch->parent);
    free(scratch->up);
    free(scratch->answer);
    free(scratch->answered);
}

void trace_scratch_free(struct trace_scratch *scratch)
{
    if (!scratch)
        return;
    scratch_drop(scratch);
    idmap_wipe(&scratch->more_answers);
    free(scratch);
}

struct trace_span *trace_scratch_spans(struct trace_scratch *scratch, size_t n)
{
    if (n > scratch->cap) {
        scratch_drop(scratch);
        scratch->cap = n + n / 2;
        scratch->spans = mem_array(scratch->cap, sizeof *scratch->spans);
        scratch->parent = mem_array(scratch->cap, sizeof *scratch->parent);
        scratch->up = mem_array(scratch->cap, sizeof *scratch->up);
        scratch->answer = mem_array(scratch->cap, sizeof *scratch->answer);
        scratch->answered = mem_array(scratch->cap, sizeof *scratch->answered);
    }
    return scratch->spans;
}

/* --- an order that depends on what spans say alone, not on when names were first seen --- */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_names(const struct span_table *table, int32_t a, int32_t b)
{
    if (a == b)
        return 0;
    if (a < 0 || b < 0)
        return a < 0 ? -1 : 1;
    return strcmp(span_table_text(table, a), span_table_text(table, b));
}

static int32_t node_service(const struct span_table *table, int32_t node)
{
    return node < 0 ? -1 : span_table_nodes(table, NULL)[node].service;
}

static int compare_nodes(const struct span_table *table, int32_t a, int32_t b)
{
    if (a == b)
        return 0;
    int order = compare_names(table, node_service(table, a), node_service(table, b));
    if (order || a < 0 || b < 0)
        return order;
    const struct span_node *nodes = span_table_nodes(table, NULL);
    order = compare_numbers(nodes[a].hint_kind, nodes[b].hint_kind);
    return order ? order : compare_names(table, nodes[a].hint, nodes[b].hint);
}

static int compare_spans(const void *left, const void *right, void *arg)
{
    const struct trace_span *a = left, *b = right;
    const struct span_table *table = arg;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    int order = compare_nodes(table, a->node, b->node);
    if (order == 0)
        order = compare_nodes(table, a->remote, b->remote);
    if (order == 0 && a->parent != b->parent)
        order = a->parent < b->parent ? -1 : 1;
    if (order == 0)
        order = compare_numbers(a->duration_us, b->duration_us);
    if (order == 0)
        order = compare_numbers(a->bytes, b->bytes);
    return order ? order : compare_numbers(a->shared, b->shared);
}

/* --- clean data --- */

/* A span that names both ends but no kind is a call; a span is not its own parent. */
static void normalise(struct trace_span *span)
{
    if (span->kind == SPAN_LOCAL && span->node >= 0 && span->remote >= 0)
        span->kind = SPAN_CLIENT;
    if (span->parent == span->id)
        span->parent = 0;
}

static bool same_span(const struct span_table *table, const struct trace_span *a,
                      const struct trace_span *b)
{
    return a->id == b->id && a->kind == b->kind &&
           node_service(table, a->node) == node_service(table, b->node);
}

/* Tracers report a span again when its end or a tag comes late. */
static void merge(const struct span_table *table, struct trace_span *into,
                  const struct trace_span *from)
{
    if (from->duration_us > into->duration_us)
        into->duration_us = from->duration_us;
    if (from->bytes > into->bytes)
        into->bytes = from->bytes;
    if (!into->parent)
        into->parent = from->parent;
    if (into->remote < 0)
        into->remote = from->remote;
    if (into->node >= 0 && span_table_nodes(table, NULL)[into->node].hint < 0)
        into->node = from->node;
    into->shared = into->shared || from->shared;
}

static void clean(struct trace_scratch *scratch, size_t n, const struct span_table *table)
{
    for (size_t i = 0; i < n; i++)
        normalise(&scratch->spans[i]);
    if (n > 1) /* compare_spans() takes it as const */
        qsort_r(scratch->spans, n, sizeof *scratch->spans, compare_spans, (void *)(uintptr_t)table);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct trace_span *last = kept ? &scratch->spans[kept - 1] : NULL;
        if (last && same_span(table, last, &scratch->spans[i]))
            merge(table, last, &scratch->spans[i]);
        else
            scratch->spans[kept++] = scratch->spans[i];
    }
    scratch->n_spans = kept;
}

/* --- who is whose parent --- */

/* The spans of an id are neighbours now: [*from, *to). */
static void find_group(const struct trace_scratch *scratch, uint64_t id, size_t *from, size_t *to)
{
    size_t low = 0, high = scratch->n_spans;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (scratch->spans[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    *from = *to = low;
    while (*to < scratch->n_spans && *to - low < MAX_GROUP && scratch->spans[*to].id == id)
        ++*to;
}

/* The CLIENT that shares this SERVER's id; with several, the one that speaks of this service. */
static int32_t shared_client(const struct trace_scratch *scratch, const struct span_table *table,
                             size_t server)
{
    const struct trace_span *spans = scratch->spans;
    int32_t service = node_service(table, spans[server].node), found = MISSING;
    size_t from, to;
    find_group(scratch, spans[server].id, &from, &to);
    for (size_t i = from; i < to; i++) {
        if (spans[i].kind != SPAN_CLIENT)
            continue;
        if (service >= 0 && node_service(table, spans[i].remote) == service)
            return (int32_t)i;
        if (found < 0)
            found = (int32_t)i;
    }
    return found;
}

/* How well a span fits as the parent of `child`, whose parent id it bears; two halves of a call may
 * share that id. A child inside the called service hangs on that service's SERVER. A SERVER of yet
 * another service was called from there too, by a CLIENT that was not recorded: the half of the
 * caller itself has been answered. Anything else hangs on what is not a shared SERVER. */
static int parent_rank(const struct span_table *table, const struct trace_span *child,
                       const struct trace_span *parent)
{
    int32_t service = node_service(table, child->node);
    bool shared_server = parent->kind == SPAN_SERVER && parent->shared;
    if (parent->kind == SPAN_SERVER && service >= 0 && node_service(table, parent->node) == service)
        return 4;
    if (child->kind == SPAN_SERVER && shared_server && parent->node >= 0)
        return node_service(table, parent->node) == node_service(table, child->remote) ? 3 : 2;
    return shared_server ? 0 : 1;
}

static int32_t parent_by_id(const struct trace_scratch *scratch, const struct span_table *table,
                            size_t child)
{
    const struct trace_span *spans = scratch->spans;
    int32_t found = MISSING;
    int found_rank = -1;
    size_t from, to;
    find_group(scratch, spans[child].parent, &from, &to);
    for (size_t i = from; i < to; i++) {
        int rank = parent_rank(table, &spans[child], &spans[i]);
        if (rank > found_rank) {
            found = (int32_t)i;
            found_rank = rank;
        }
    }
    return found;
}

static void find_parents(struct trace_scratch *scratch, const struct span_table *table)
{
    for (size_t i = 0; i < scratch->n_spans; i++) {
        const struct trace_span *span = &scratch->spans[i];
        int32_t parent = MISSING;
        if (span->kind == SPAN_SERVER)
            parent = shared_client(scratch, table, i);
        if (parent == MISSING)
            parent = span->parent ? parent_by_id(scratch, table, i) : ROOT;
        scratch->parent[i] = parent;
    }
}

/* First ancestor with a kind. Every span is walked over once; a circle of local spans leads
 * nowhere. */
static void find_ancestors(struct trace_scratch *scratch)
{
    int32_t *up = scratch->up;
    for (size_t i = 0; i < scratch->n_spans; i++)
        up[i] = UNKNOWN;
    for (size_t i = 0; i < scratch->n_spans; i++) {
        int32_t at = (int32_t)i, found = UNKNOWN;
        while (found == UNKNOWN) {
            if (up[at] != UNKNOWN) {
                found = up[at] == ON_THE_WAY ? MISSING : up[at];
                break;
            }
            up[at] = ON_THE_WAY;
            int32_t parent = scratch->parent[at];
            if (parent < 0 || scratch->spans[parent].kind != SPAN_LOCAL)
                found = parent;
            at = parent;
        }
        for (at = (int32_t)i; at >= 0 && up[at] == ON_THE_WAY; at = scratch->parent[at])
            up[at] = found;
    }
}

/* --- messages --- */

/* True when this CLIENT has not been counted as a message to `service` yet. */
static bool first_answer(struct trace_scratch *scratch, int32_t client, int32_t service)
{
    int32_t *answer = &scratch->answer[client];
    if (*answer == service)
        return false;
    if (*answer < 0) {
        *answer = service;
        return true;
    }
    if (idmap_get(&scratch->more_answers, (uint64_t)client, (uint64_t)service) != IDMAP_NONE)
        return false;
    idmap_add(&scratch->more_answers, (uint64_t)client, (uint64_t)service, 0);
    return true;
}

static int64_t known(int64_t preferred, int64_t otherwise)
{
    return preferred >= 0 ? preferred : otherwise;
}

static int join_server(struct trace_scratch *scratch, size_t at, struct span_table *table,
                       struct err *err)
{
    struct span_counts *counts = span_table_counts(table);
    const struct trace_span *server = &scratch->spans[at];
    int32_t up = scratch->up[at];
    const struct trace_span *caller = up >= 0 ? &scratch->spans[up] : NULL;
    const struct trace_span *client = caller && caller->kind == SPAN_CLIENT ? caller : NULL;
    int32_t src = caller && caller->node >= 0 ? caller->node : server->remote;
    int32_t dst = server->node >= 0 || !client ? server->node : client->remote;
    if (src < 0 && up == ROOT) {
        counts->external++;
        return 0;
    }
    if (src < 0 || dst < 0) {
        *(src < 0 ? &counts->no_caller : &counts->no_callee) += 1;
        return 0;
    }
    if (client && !first_answer(scratch, up, node_service(table, dst)))
        return 0;
    return span_table_message(table, src, dst, known(server->bytes, client ? client->bytes : -1),
                              known(client ? client->duration_us : -1, server->duration_us), err);
}

/* The caller of a CLIENT is another service: its SERVER half between them was not recorded. */
static int join_missing_server(struct trace_scratch *scratch, size_t at, struct span_table *table,
                               struct err *err)
{
    const struct trace_span *inner = &scratch->spans[at];
    int32_t up = scratch->up[at];
    if (up < 0 || inner->node < 0)
        return 0;
    const struct trace_span *outer = &scratch->spans[up];
    int32_t service = node_service(table, inner->node);
    if (outer->node < 0 || node_service(table, outer->node) == service)
        return 0;
    if (outer->kind == SPAN_CLIENT)
        return first_answer(scratch, up, service)
                   ? span_table_message(table, outer->node, inner->node, outer->bytes,
                                        outer->duration_us, err)
                   : 0;
    if (scratch->answered[at])
        return 0;
    return span_table_message(table, outer->node, inner->node, -1, -1, err);
}

static int join_client(struct trace_scratch *scratch, size_t at, struct span_table *table,
                       struct err *err)
{
    if (join_missing_server(scratch, at, table, err))
        return -1;
    if (scratch->answered[at])
        return 0;
    const struct trace_span *client = &scratch->spans[at];
    int32_t up = scratch->up[at];
    const struct trace_span *outer = up >= 0 ? &scratch->spans[up] : NULL;
    bool same_service = outer && outer->node >= 0 && client->node >= 0 &&
                        node_service(table, outer->node) == node_service(table, client->node);
    int32_t src = client->node, dst = client->remote;
    if (src < 0 && outer)
        src = outer->node;
    if (dst < 0 && same_service && outer->kind == SPAN_CLIENT)
        dst = outer->remote; /* a library's call inside a framework's */
    if (src < 0 || dst < 0) {
        *(src < 0 ? &span_table_counts(table)->no_caller : &span_table_counts(table)->no_callee) +=
            1;
        return 0;
    }
    if (same_service && outer->kind == SPAN_PRODUCER &&
        node_service(table, outer->remote) == node_service(table, dst))
        return 0; /* how the PRODUCER sent its message */
    return span_table_message(table, src, dst, client->bytes, client->duration_us, err);
}

/* Durations of sending and of processing are no response times. */
static int join_broker(const struct trace_span *span, struct span_table *table, struct err *err)
{
    if (span->node < 0 || span->remote < 0) {
        span_table_counts(table)->no_broker++;
        return 0;
    }
    return span->kind == SPAN_PRODUCER
               ? span_table_message(table, span->node, span->remote, span->bytes, -1, err)
               : span_table_message(table, span->remote, span->node, span->bytes, -1, err);
}

static void find_answered(struct trace_scratch *scratch)
{
    for (size_t i = 0; i < scratch->n_spans; i++) {
        scratch->answer[i] = -1;
        scratch->answered[i] = false;
    }
    for (size_t i = 0; i < scratch->n_spans; i++) {
        uint8_t kind = scratch->spans[i].kind;
        int32_t up = scratch->up[i];
        if (up < 0)
            continue;
        bool sent = scratch->spans[up].kind == SPAN_PRODUCER;
        if (sent ? kind == SPAN_CONSUMER : kind == SPAN_SERVER || kind == SPAN_CLIENT)
            scratch->answered[up] = true;
    }
    idmap_clear(&scratch->more_answers);
}

static void prepare(struct trace_scratch *scratch, size_t n, const struct span_table *table)
{
    clean(scratch, n, table);
    find_parents(scratch, table);
    find_ancestors(scratch);
    find_answered(scratch);
}

bool trace_settled(struct trace_scratch *scratch, size_t n, const struct span_table *table)
{
    prepare(scratch, n, table);
    for (size_t i = 0; i < scratch->n_spans; i++) {
        const struct trace_span *span = &scratch->spans[i];
        bool waits = span->kind == SPAN_PRODUCER ||
                     (span->kind == SPAN_CLIENT &&
                      (span->remote < 0 || span_table_service_reports(table, span->remote)));
        if (scratch->parent[i] == MISSING || (waits && !scratch->answered[i]))
            return false;
    }
    return true;
}

int trace_join(struct trace_scratch *scratch, size_t n, struct span_table *table, struct err *err)
{
    prepare(scratch, n, table);
    span_table_counts(table)->duplicates += (int64_t)(n - scratch->n_spans);
    /* Servers first: where both halves know a size the server's counts. */
    for (size_t i = 0; i < scratch->n_spans; i++)
        if (scratch->spans[i].kind == SPAN_SERVER && join_server(scratch, i, table, err))
            return -1;
    for (size_t i = 0; i < scratch->n_spans; i++) {
        uint8_t kind = scratch->spans[i].kind;
        if (kind == SPAN_CLIENT && join_client(scratch, i, table, err))
            return -1;
        if ((kind == SPAN_PRODUCER || kind == SPAN_CONSUMER) &&
            join_broker(&scratch->spans[i], table, err))
            return -1;
    }
    return 0;
}
