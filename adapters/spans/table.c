/* table.c - names, nodes and edges of a recording (table.h). */
#include "adapters/spans/table.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/spans/idmap.h"
#include "model/base/names.h"
#include "model/model.h"

/* As many as a model may have instances; services and pods share it. At about 120 bytes each with
 * its places in the tables this is 120 MB, and only for who really has so many. */
#define MAX_NAMES MODEL_MAX_INSTANCES
#define MAX_NAME_BYTES 253 /* contract.md 2 */

enum name_use { NAME_SERVICE = 1, NAME_REPORTS = 2 };

struct span_table {
    char **names;
    uint8_t *uses; /* of enum name_use, by name */
    size_t n_names, n_uses, n_services;
    struct span_limits limits;
    int32_t other; /* the node SPAN_OTHER of a limited table */
    span_message_f *divert;
    void *divert_ctx;
    struct names index;
    struct span_node *nodes;
    size_t n_nodes;
    struct idmap node_index; /* service and hint, kind → node */
    struct span_edge *edges;
    size_t n_edges;
    struct idmap edge_index; /* src, dst → edge */
    struct span_counts counts;
    bool no_addresses;
};

struct span_table *span_table_new(void)
{
    struct span_table *table = mem_alloc(sizeof *table);
    table->counts.from_us = table->counts.to_us = -1;
    table->limits = (struct span_limits){MAX_NAMES, MAX_NAMES, SIZE_MAX};
    table->other = -1;
    return table;
}

void span_table_free(struct span_table *table)
{
    if (!table)
        return;
    names_wipe(&table->index);
    for (size_t i = 0; i < table->n_names; i++)
        free(table->names[i]);
    free(table->names);
    free(table->uses);
    free(table->nodes);
    free(table->edges);
    idmap_wipe(&table->node_index);
    idmap_wipe(&table->edge_index);
    free(table);
}

static int32_t add_name(struct span_table *table, const char *text, size_t size)
{
    char **owned = ARRAY_PUSH(table->names, table->n_names);
    *owned = mem_strndup(text, size);
    *ARRAY_PUSH(table->uses, table->n_uses) = 0;
    names_add(&table->index, *owned, (int)table->n_names - 1);
    return (int32_t)table->n_names - 1;
}

int32_t span_table_name(struct span_table *table, const char *text, size_t size, bool lower,
                        struct err *err)
{
    char name[MAX_NAME_BYTES + 1];
    if (size == 0 || size > MAX_NAME_BYTES || memchr(text, '\0', size))
        return -1;
    for (size_t i = 0; i < size; i++)
        name[i] = lower ? (char)tolower((unsigned char)text[i]) : text[i];
    name[size] = '\0';
    int known = names_get(&table->index, name);
    if (known >= 0)
        return known;
    if (name_problem(name, size))
        return -1;
    if (table->n_names >= table->limits.names) {
        if (table->other >= 0)
            return table->nodes[table->other].service;
        err_set(err, ERR_TOO_LARGE, "more than %d names of services and pods", MAX_NAMES);
        return -2;
    }
    return add_name(table, name, size);
}

const char *span_table_text(const struct span_table *table, int32_t name)
{
    return name < 0 ? NULL : table->names[name];
}

void span_table_drop_addresses(struct span_table *table)
{
    table->no_addresses = true;
}

bool span_table_wants_addresses(const struct span_table *table)
{
    return !table->no_addresses;
}

void span_table_limit(struct span_table *table, const struct span_limits *limits)
{
    assert(!table->n_names && !table->n_nodes);
    table->other =
        span_table_node(table, add_name(table, SPAN_OTHER, strlen(SPAN_OTHER)), -1, HINT_NONE);
    table->limits = *limits;
}

int32_t span_table_other(const struct span_table *table)
{
    return table->other;
}

struct span_limits span_table_size(const struct span_table *table)
{
    return (struct span_limits){table->n_names, table->n_services, table->n_nodes};
}

void span_table_keep(struct span_table *table, const bool *keep, int32_t *map)
{
    struct span_table old = *table;
    assert(!old.n_edges);
    table->names = NULL;
    table->uses = NULL;
    table->nodes = NULL;
    table->n_names = table->n_uses = table->n_services = table->n_nodes = 0;
    table->index = (struct names)NAMES_INIT;
    table->node_index = (struct idmap){0};
    for (size_t i = 0; i < old.n_nodes; i++) {
        const struct span_node *node = &old.nodes[i];
        struct err err = ERR_INIT;
        map[i] = -1;
        if (!keep[i] && (int32_t)i != table->other)
            continue;
        const char *text = old.names[node->service], *hint = span_table_text(&old, node->hint);
        int32_t name = span_table_name(table, text, strlen(text), false, &err);
        int32_t hint_name = hint ? span_table_name(table, hint, strlen(hint), false, &err) : -1;
        map[i] = span_table_node(table, name, hint_name, node->hint_kind);
        if (node->reports)
            span_table_reports(table, map[i]);
    }
    names_wipe(&old.index);
    for (size_t i = 0; i < old.n_names; i++)
        free(old.names[i]);
    free(old.names);
    free(old.uses);
    free(old.nodes);
    idmap_wipe(&old.node_index);
}

void span_table_reports(struct span_table *table, int32_t node)
{
    table->nodes[node].reports = true;
    table->uses[table->nodes[node].service] |= NAME_REPORTS;
}

bool span_table_service_reports(const struct span_table *table, int32_t node)
{
    return table->uses[table->nodes[node].service] & NAME_REPORTS;
}

/* Room for one more node of this service, in a limited table. */
static bool has_room(const struct span_table *table, int32_t service)
{
    return table->n_nodes < table->limits.nodes &&
           (table->n_services < table->limits.services || table->uses[service] & NAME_SERVICE);
}

int32_t span_table_node(struct span_table *table, int32_t service, int32_t hint,
                        enum node_hint hint_kind)
{
    uint64_t lo = (uint64_t)(uint32_t)service << 32 | (uint32_t)hint;
    uint32_t known = idmap_get(&table->node_index, hint_kind, lo);
    if (known != IDMAP_NONE)
        return (int32_t)known;
    if (table->other >= 0 && !has_room(table, service))
        return table->other;
    table->n_services += !(table->uses[service] & NAME_SERVICE);
    table->uses[service] |= NAME_SERVICE;
    struct span_node *node = ARRAY_PUSH(table->nodes, table->n_nodes);
    *node = (struct span_node){service, hint, hint_kind, false};
    idmap_add(&table->node_index, hint_kind, lo, (uint32_t)table->n_nodes - 1);
    return (int32_t)table->n_nodes - 1;
}

struct span_node *span_table_nodes(const struct span_table *table, size_t *n)
{
    if (n)
        *n = table->n_nodes;
    return table->nodes;
}

static uint64_t edge_key(const struct span_edge *edge)
{
    return (uint64_t)(uint32_t)edge->src << 32 | (uint32_t)edge->dst;
}

int span_table_sums(struct span_table *table, const struct span_edge *sums, struct err *err)
{
    uint64_t key = edge_key(sums);
    uint32_t at = idmap_get(&table->edge_index, 0, key);
    if (at == IDMAP_NONE) {
        if (table->n_edges >= MODEL_MAX_ROWS)
            return err_set(err, ERR_TOO_LARGE, "more than %d pairs that exchange messages",
                           MODEL_MAX_ROWS);
        at = (uint32_t)table->n_edges;
        struct span_edge *added = ARRAY_PUSH(table->edges, table->n_edges);
        *added = (struct span_edge){.src = sums->src, .dst = sums->dst, .bytes = -1};
        idmap_add(&table->edge_index, 0, key, at);
    }
    struct span_edge *edge = &table->edges[at];
    edge->count += sums->count;
    edge->n_timed += sums->n_timed;
    edge->total_us += sums->total_us;
    table->counts.messages += sums->count;
    if (sums->bytes >= 0) {
        edge->bytes = sums->bytes + (edge->bytes < 0 ? 0 : edge->bytes);
        table->counts.sized += sums->count;
    }
    if (edge->bytes > MODEL_MAX_NUMBER || edge->count > MODEL_MAX_NUMBER)
        return err_set(err, ERR_INPUT, "messages from %s add up to more than 10^15%s",
                       span_table_text(table, table->nodes[sums->src].service),
                       edge->bytes > MODEL_MAX_NUMBER ? " bytes" : "");
    return 0;
}

int span_table_message(struct span_table *table, int32_t src, int32_t dst, int64_t bytes,
                       int64_t duration_us, struct err *err)
{
    if (table->divert)
        return table->divert(table->divert_ctx, src, dst, bytes, duration_us, err);
    const struct span_edge one = {.src = src,
                                  .dst = dst,
                                  .count = 1,
                                  .bytes = bytes,
                                  .n_timed = duration_us >= 0,
                                  .total_us = duration_us >= 0 ? (double)duration_us : 0};
    return span_table_sums(table, &one, err);
}

void span_table_divert(struct span_table *table, span_message_f *to, void *ctx)
{
    table->divert = to;
    table->divert_ctx = ctx;
}

void span_table_clear(struct span_table *table)
{
    table->n_edges = 0;
    idmap_clear(&table->edge_index);
    span_table_counts_clear(table);
}

void span_table_counts_clear(struct span_table *table)
{
    table->counts = (struct span_counts){.from_us = -1, .to_us = -1};
}

const struct span_edge *span_table_edges(const struct span_table *table, size_t *n)
{
    *n = table->n_edges;
    return table->edges;
}

void span_table_forget(struct span_table *table, size_t edge)
{
    const struct span_edge *gone = &table->edges[edge];
    table->counts.messages -= gone->count;
    if (gone->bytes >= 0)
        table->counts.sized -= gone->count < table->counts.sized ? gone->count : table->counts.sized;
    idmap_remove(&table->edge_index, 0, edge_key(gone));
    if (edge != --table->n_edges) {
        table->edges[edge] = table->edges[table->n_edges];
        idmap_remove(&table->edge_index, 0, edge_key(&table->edges[edge]));
        idmap_add(&table->edge_index, 0, edge_key(&table->edges[edge]), (uint32_t)edge);
    }
}

struct span_counts *span_table_counts(struct span_table *table)
{
    return &table->counts;
}
