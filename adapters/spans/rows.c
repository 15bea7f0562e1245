/* rows.c - from names in spans to rows of the model (rows.h; interfaces.md 5.1 last lines). */
#include "adapters/spans/rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/spans/idmap.h"
#include "adapters/spans/tags.h"
#include "model/base/buf.h"

/* --- ends --- */

static struct span_end join_one(const struct span_table *table, const struct span_node *node,
                                struct identity *identity)
{
    struct span_end out = {LEVEL_SERVICE, -1};
    struct identity_end end = {.service = span_table_text(table, node->service)};
    if (node->hint_kind == HINT_POD)
        end.instance = span_table_text(table, node->hint);
    else if (node->hint_kind == HINT_ADDRESS)
        end.address = span_table_text(table, node->hint);
    else if (span_text_is_address(end.service))
        end.address = end.service; /* OTLP's server.address may be one */
    out.index = identity_resolve(identity, &end, &out.level);
    return out;
}

struct span_end *span_ends_join(const struct span_table *table, struct identity *identity)
{
    size_t n;
    const struct span_node *nodes = span_table_nodes(table, &n);
    struct span_end *ends = mem_array(n + 1, sizeof *ends);
    /* First the nodes that name a pod: they teach what a tracer calls the pods' service. */
    for (size_t i = 0; i < n; i++)
        if (nodes[i].hint_kind != HINT_NONE)
            ends[i] = join_one(table, &nodes[i], identity);
    for (size_t i = 0; i < n; i++)
        if (nodes[i].hint_kind == HINT_NONE || ends[i].level == LEVEL_SERVICE)
            ends[i] = join_one(table, &nodes[i], identity);
    return ends;
}

struct maker {
    const struct span_table *table;
    const struct span_node *nodes;
    size_t n_nodes;
    int32_t *order; /* nodes by service name, then pod */
    bool *talks;    /* by node: sends or gets messages */
    struct model *model;
    struct span_end *ends;
};

static int compare_order(const void *left, const void *right, void *arg)
{
    const struct maker *maker = arg;
    const struct span_node *a = &maker->nodes[*(const int32_t *)left];
    const struct span_node *b = &maker->nodes[*(const int32_t *)right];
    int order = strcmp(span_table_text(maker->table, a->service),
                       span_table_text(maker->table, b->service));
    if (order)
        return order;
    bool pod_a = a->hint_kind == HINT_POD, pod_b = b->hint_kind == HINT_POD;
    if (!pod_a || !pod_b)
        return (int)pod_b - (int)pod_a; /* pods first */
    return strcmp(span_table_text(maker->table, a->hint), span_table_text(maker->table, b->hint));
}

/* A pod's own name; where that is taken, or is the name of another thing, "service/pod". */
static int add_pod(struct maker *maker, int service, const char *pod, bool only, struct err *err)
{
    struct model *model = maker->model;
    const char *name = model->services[service].name;
    int namesake = model_service(model, pod);
    bool ours = namesake == service && only;
    if (model_instance(model, pod) < 0 && (namesake < 0 || ours))
        return model_add_instance(model, pod, service, -1, err);
    AUTO_FREE char *full = mem_printf("%s/%s", name, pod);
    return model_add_instance(model, full, service, -1, err);
}

/* The nodes [from, to) of `order` are one service. */
static int add_instances(struct maker *maker, int service, size_t from, size_t to,
                         struct err *err)
{
    size_t pods = from;
    while (pods < to && maker->nodes[maker->order[pods]].hint_kind == HINT_POD)
        pods++;
    int only = -1;
    for (size_t i = from; i < pods; i++) {
        int32_t node = maker->order[i];
        const char *pod = span_table_text(maker->table, maker->nodes[node].hint);
        only = add_pod(maker, service, pod, pods - from == 1, err);
        if (only < 0)
            return -1;
        maker->ends[node] = (struct span_end){LEVEL_INSTANCE, only};
    }
    if (pods == from) {
        only = model_add_instance(maker->model, maker->model->services[service].name, service, -1,
                                  err);
        if (only < 0)
            return -1;
    }
    for (size_t i = pods; i < to; i++)
        maker->ends[maker->order[i]] = pods - from <= 1
                                           ? (struct span_end){LEVEL_INSTANCE, only}
                                           : (struct span_end){LEVEL_SERVICE, service};
    return 0;
}

static size_t service_end(const struct maker *maker, size_t from)
{
    size_t to = from;
    while (to < maker->n_nodes && maker->nodes[maker->order[to]].service ==
                                      maker->nodes[maker->order[from]].service)
        to++;
    return to;
}

/* An address that is only spoken of may be anything, one of the other services among them. */
static bool is_service(const struct maker *maker, size_t from, size_t to)
{
    int32_t name = maker->nodes[maker->order[from]].service;
    bool address = span_text_is_address(span_table_text(maker->table, name));
    for (size_t i = from; i < to; i++) {
        int32_t node = maker->order[i];
        if (maker->nodes[node].reports || (maker->talks[node] && !address))
            return true;
    }
    return false;
}

static int make_all(struct maker *maker, const char *app, struct err *err)
{
    size_t to;
    /* All services first, so that a pod's name can be compared with theirs. */
    for (size_t from = 0; from < maker->n_nodes; from = to) {
        to = service_end(maker, from);
        if (!is_service(maker, from, to))
            continue;
        int32_t name = maker->nodes[maker->order[from]].service;
        int service = model_add_service(maker->model, span_table_text(maker->table, name), err);
        if (service < 0)
            return -1;
        maker->model->services[service].app = mem_strdup(app);
    }
    for (size_t from = 0; from < maker->n_nodes; from = to) {
        to = service_end(maker, from);
        int32_t name = maker->nodes[maker->order[from]].service;
        int service = model_service(maker->model, span_table_text(maker->table, name));
        if (service >= 0 && add_instances(maker, service, from, to, err))
            return -1;
    }
    return 0;
}

int span_ends_make(const struct span_table *table, const char *app, struct model *model,
                   struct span_end **out, struct err *err)
{
    struct maker maker = {.table = table, .model = model};
    maker.nodes = span_table_nodes(table, &maker.n_nodes);
    AUTO_FREE int32_t *order = mem_array(maker.n_nodes + 1, sizeof *order);
    AUTO_FREE struct span_end *ends = mem_array(maker.n_nodes + 1, sizeof *ends);
    for (size_t i = 0; i < maker.n_nodes; i++) {
        order[i] = (int32_t)i;
        ends[i] = (struct span_end){LEVEL_SERVICE, -1};
    }
    AUTO_FREE bool *talks = mem_array(maker.n_nodes + 1, sizeof *talks);
    size_t n_edges;
    const struct span_edge *edges = span_table_edges(table, &n_edges);
    for (size_t i = 0; i < n_edges; i++)
        talks[edges[i].src] = talks[edges[i].dst] = true;
    maker.order = order;
    maker.talks = talks;
    maker.ends = ends;
    if (maker.n_nodes > 1)
        qsort_r(order, maker.n_nodes, sizeof *order, compare_order, &maker);
    if (make_all(&maker, app, err))
        return -1;
    *out = steal(ends);
    return 0;
}

/* --- rows --- */

struct row {
    struct message message;
    int64_t n_timed;
    double total_us;
};

struct row_list {
    struct row *rows;
    size_t n_rows;
    struct idmap index;
};

static void add_up(struct row *row, const struct span_edge *edge)
{
    row->message.count += edge->count;
    if (edge->bytes >= 0)
        row->message.bytes = edge->bytes + (row->message.bytes < 0 ? 0 : row->message.bytes);
    row->n_timed += edge->n_timed;
    row->total_us += edge->total_us;
}

static void row_add(struct row_list *list, enum level level, int src, int dst,
                    const struct span_edge *edge)
{
    uint64_t key = (uint64_t)(uint32_t)src << 32 | (uint32_t)dst;
    uint32_t at = idmap_get(&list->index, level, key);
    if (at == IDMAP_NONE) {
        at = (uint32_t)list->n_rows;
        struct row *row = ARRAY_PUSH(list->rows, list->n_rows);
        row->message = (struct message){.level = level, .src = src, .dst = dst, .bytes = -1};
        idmap_add(&list->index, level, key, at);
    }
    add_up(&list->rows[at], edge);
}

static int compare_rows(const void *left, const void *right)
{
    const struct message *a = &((const struct row *)left)->message;
    const struct message *b = &((const struct row *)right)->message;
    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    if (a->src != b->src)
        return a->src < b->src ? -1 : 1;
    return (a->dst > b->dst) - (a->dst < b->dst);
}

static void unmapped(const struct span_table *table, const struct span_edge *edge, bool src_known,
                     bool dst_known, struct identity *identity)
{
    const struct span_node *nodes = span_table_nodes(table, NULL);
    const char *src = span_table_text(table, nodes[edge->src].service);
    const char *dst = span_table_text(table, nodes[edge->dst].service);
    identity_unmapped(identity, src_known ? dst : src, edge->count, edge->bytes);
    if (!src_known && !dst_known)
        identity_unmapped(identity, dst, 0, -1); /* named, not counted twice */
}

static int end_service(const struct model *model, struct span_end end)
{
    return end.level == LEVEL_INSTANCE ? model->instances[end.index].service : end.index;
}

/* Returns messages that stayed within one end. */
static int64_t sort_edges(const struct span_table *table, const struct span_end *ends,
                          struct inspection *in, struct row_list *list)
{
    size_t n;
    int64_t within = 0;
    const struct span_edge *edges = span_table_edges(table, &n);
    for (size_t i = 0; i < n; i++) {
        struct span_end src = ends[edges[i].src], dst = ends[edges[i].dst];
        if (src.index < 0 || dst.index < 0) {
            unmapped(table, &edges[i], src.index >= 0, dst.index >= 0, in->identity);
            continue;
        }
        enum level level = LEVEL_INSTANCE;
        if (src.level != LEVEL_INSTANCE || dst.level != LEVEL_INSTANCE) {
            level = LEVEL_SERVICE; /* contract.md 2: one end of each kind */
            src.index = end_service(in->model, src);
            dst.index = end_service(in->model, dst);
        }
        if (src.index == dst.index)
            within += edges[i].count;
        else
            row_add(list, level, src.index, dst.index, &edges[i]);
    }
    return within;
}

static void add_rows(struct model *model, const struct row_list *list)
{
    for (size_t i = 0; i < list->n_rows; i++) {
        const struct row *row = &list->rows[i];
        struct message *message = ARRAY_PUSH(model->messages, model->n_messages);
        *message = row->message;
        message->mean_ms =
            row->n_timed > 0 ? row->total_us / (double)row->n_timed / 1000.0 : -1.0;
    }
}

static void note(struct inspection *in, const char *kind, int64_t count, const char *what)
{
    if (count > 0)
        inspection_note(in, kind, count, "%lld %s", (long long)count, what);
}

static void note_counts(struct inspection *in, const struct span_counts *counts, int64_t within)
{
    note(in, "late", counts->late, "spans came after their trace had made room for others");
    note(in, "missing-parent", counts->no_caller, "calls whose caller is not recorded");
    note(in, "no-callee", counts->no_callee, "calls that do not say whom they called");
    note(in, "no-broker", counts->no_broker, "sent or received messages that name no broker");
    note(in, "external", counts->external, "calls from outside");
    note(in, "within", within, "messages within one service or instance");
    if (counts->sized < counts->messages)
        note(in, "unknown-size", counts->messages - counts->sized, "messages of unknown size");
    int64_t halves =
        counts->no_caller + counts->no_callee + counts->no_broker + counts->late_messages;
    if (halves > 0)
        identity_unmapped(in->identity, NULL, halves, -1);
}

int64_t span_rows_forget_others(struct span_table *table, const struct span_end *ends)
{
    size_t n;
    int64_t forgotten = 0;
    span_table_edges(table, &n);
    for (size_t i = n; i-- > 0;) {
        const struct span_edge *edge = &span_table_edges(table, &n)[i];
        if (ends[edge->src].index >= 0 || ends[edge->dst].index >= 0)
            continue;
        forgotten += edge->count;
        span_table_forget(table, i);
    }
    return forgotten;
}

int span_rows(struct span_table *table, const struct span_end *ends, struct inspection *in,
              struct err *err)
{
    struct row_list list = {0};
    int64_t within = sort_edges(table, ends, in, &list);
    int rc = 0;
    if (in->model->n_messages + list.n_rows > MODEL_MAX_ROWS)
        rc = err_set(err, ERR_TOO_LARGE, "more than %d pairs that exchange messages",
                     MODEL_MAX_ROWS);
    if (rc == 0) {
        if (list.n_rows > 1)
            qsort(list.rows, list.n_rows, sizeof *list.rows, compare_rows);
        add_rows(in->model, &list);
        note_counts(in, span_table_counts(table), within);
    }
    idmap_wipe(&list.index);
    free(list.rows);
    return rc;
}

/* --- a live reading --- */

static void note_unseen(const struct span_table *table, const struct span_end *ends,
                        struct inspection *in)
{
    const struct model *model = in->model;
    AUTO_FREE bool *seen = mem_array(model->n_services + 1, sizeof *seen);
    AUTO_BUF struct buf names = BUF_INIT;
    size_t n_nodes, unseen = 0;
    span_table_nodes(table, &n_nodes);
    for (size_t i = 0; i < n_nodes; i++)
        if (ends[i].index >= 0)
            seen[end_service(model, ends[i])] = true;
    for (size_t s = 0; s < model->n_services; s++)
        if (!seen[s] && unseen++ < 5)
            buf_printf(&names, "%s%s", unseen > 1 ? ", " : "", model->services[s].name);
    if (unseen)
        inspection_note(in, "never-traced", (int64_t)unseen, "%zu services are in no trace: %s%s",
                        unseen, names.data, unseen > 5 ? ", …" : "");
}

int span_rows_finish(struct span_table *table, bool count_others, struct inspection *in,
                     struct err *err)
{
    assert(in->identity);
    AUTO_FREE struct span_end *ends = span_ends_join(table, in->identity);
    note_unseen(table, ends, in);
    int64_t others = count_others ? 0 : span_rows_forget_others(table, ends);
    if (others)
        inspection_note(in, "others", others, "%lld messages between names that are not ours",
                        (long long)others);
    return span_rows(table, ends, in, err);
}
