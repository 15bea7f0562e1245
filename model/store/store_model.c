/* store_model.c - snapshots of the model and analyses: the documents' bytes for replay, and their
 * rows for people (v_placement, v_edges, v_affinity). */
#include "model/store/store_internal.h"

#include <stdlib.h>
#include <string.h>
#include "model/base/mem.h"
#include "model/model_json.h"

/* --- documents --- */

int store_document_save(struct store *store, int64_t cycle, const char *kind, const char *text,
                        size_t size, struct err *err)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO documents (cycle_id, kind, body) VALUES (?1, ?2, ?3)";
    sqlite3_stmt *statement = store_use(store, ST_DOCUMENT_SAVE, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, cycle);
    bind_text(statement, 2, kind);
    bind_bytes(statement, 3, text, size);
    return store_run(store, statement, err);
}

int store_document_load(struct store *store, int64_t cycle, const char *kind, struct buf *text,
                        struct err *err)
{
    static const char sql[] = "SELECT body FROM documents WHERE cycle_id = ?1 AND kind = ?2";
    sqlite3_stmt *statement = store_use(store, ST_DOCUMENT_LOAD, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, cycle);
    bind_text(statement, 2, kind);
    int rc = store_step(store, statement, err);
    if (rc == 0) {
        return err_set(err, ERR_NOT_FOUND, "cycle %lld: has no %s document", (long long)cycle,
                       kind);
    }
    if (rc < 0) {
        return -1;
    }
    const void *body = sqlite3_column_blob(statement, 0);
    buf_add(text, body ? body : "", (size_t)sqlite3_column_bytes(statement, 0));
    sqlite3_reset(statement);
    return 0;
}

/* --- snapshots --- */

static int snapshot_row(struct store *store, int64_t cycle, const char *phase,
                        const struct model *model, int64_t *id, struct err *err)
{
    static const char drop_sql[] = "DELETE FROM snapshots WHERE cycle_id = ?1 AND phase = ?2";
    static const char sql[] = "INSERT INTO snapshots (cycle_id, phase, taken_ms, from_ms, to_ms)"
                              " VALUES (?1, ?2, ?3, ?4, ?5)";
    sqlite3_stmt *drop = store_use(store, ST_SNAPSHOT_DROP, drop_sql, err);
    sqlite3_stmt *add = drop ? store_use(store, ST_SNAPSHOT_ADD, sql, err) : NULL;
    if (!add) {
        return -1;
    }
    bind_int(drop, 1, cycle);
    bind_text(drop, 2, phase);
    bind_int(add, 1, cycle);
    bind_text(add, 2, phase);
    bind_opt_int(add, 3, model->taken_ms);
    bind_opt_int(add, 4, model->from_ms);
    bind_opt_int(add, 5, model->to_ms);
    if (store_run(store, drop, err) || store_run(store, add, err)) {
        return -1;
    }
    *id = sqlite3_last_insert_rowid(store->db);
    return 0;
}

static int save_hosts(struct store *store, int64_t snapshot, const struct model *model,
                      struct err *err)
{
    static const char sql[] =
        "INSERT INTO hosts (snapshot_id, host, cpu_cap_millis, mem_cap_bytes, cpu_used_millis,"
        " mem_used_bytes, cpu_requested_millis, mem_requested_bytes, pods_cap, pods_used,"
        " reserve_cpu_millis, reserve_mem_bytes, schedulable, region, zone)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    sqlite3_stmt *statement = store_use(store, ST_HOST_ADD, sql, err);
    if (!statement) {
        return -1;
    }
    for (size_t i = 0; i < model->n_hosts; i++) {
        const struct host *host = &model->hosts[i];
        bind_int(statement, 1, snapshot);
        bind_text(statement, 2, host->name);
        bind_int(statement, 3, host->cpu_cap_millis);
        bind_int(statement, 4, host->mem_cap_bytes);
        bind_int(statement, 5, host->cpu_used_millis);
        bind_int(statement, 6, host->mem_used_bytes);
        bind_int(statement, 7, host->cpu_requested_millis);
        bind_int(statement, 8, host->mem_requested_bytes);
        bind_opt_int(statement, 9, host->pods_cap);
        bind_int(statement, 10, host->pods_used);
        bind_int(statement, 11, host->reserve_cpu_millis);
        bind_int(statement, 12, host->reserve_mem_bytes);
        bind_int(statement, 13, host->schedulable);
        bind_text(statement, 14, host->region);
        bind_text(statement, 15, host->zone);
        if (store_run(store, statement, err)) {
            return -1;
        }
    }
    return 0;
}

/* Where the replicas of each service are: hosts of service s are hosts[first[s]] up to
 * hosts[first[s + 1]], ascending, -1 for those not placed. */
struct replicas {
    size_t *first;
    int *hosts;
};

static void replicas_wipe(struct replicas *replicas)
{
    free(replicas->first);
    free(replicas->hosts);
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static struct replicas replicas_of(const struct model *model)
{
    struct replicas r = {mem_array(model->n_services + 2, sizeof *r.first),
                         mem_array(model->n_instances + 1, sizeof *r.hosts)};
    for (size_t i = 0; i < model->n_instances; i++) {
        r.first[model->instances[i].service + 2]++;
    }
    for (size_t s = 2; s < model->n_services + 2; s++) {
        r.first[s] += r.first[s - 1];
    }
    /* first[s + 1] walks from the start of service s to its end, where s + 1 begins. */
    for (size_t i = 0; i < model->n_instances; i++) {
        r.hosts[r.first[model->instances[i].service + 1]++] = model->instances[i].host;
    }
    for (size_t s = 0; s < model->n_services; s++) {
        qsort(r.hosts + r.first[s], r.first[s + 1] - r.first[s], sizeof *r.hosts, compare_ints);
    }
    return r;
}

static size_t replica_count(const struct replicas *r, int service)
{
    return r->first[service + 1] - r->first[service];
}

/* The host that has all replicas of the service, -1 when there is none. */
static int service_host(const struct replicas *r, int service)
{
    size_t from = r->first[service], to = r->first[service + 1];
    return from < to && r->hosts[from] == r->hosts[to - 1] ? r->hosts[from] : -1;
}

/* Σ over hosts of min(x_a / d_a, x_b / d_b) (design.md 7); -1 when an end is nowhere. */
static double service_local_share(const struct replicas *r, int a, int b)
{
    size_t n_a = replica_count(r, a), n_b = replica_count(r, b);
    if (!n_a || !n_b || r->hosts[r->first[a + 1] - 1] < 0 || r->hosts[r->first[b + 1] - 1] < 0) {
        return -1;
    }
    const int *p = r->hosts + r->first[a], *p_end = p + n_a;
    const int *q = r->hosts + r->first[b], *q_end = q + n_b;
    double share = 0;
    while (p < p_end && q < q_end) {
        if (*p != *q || *p < 0) {
            if (*p <= *q) {
                p++;
            } else {
                q++;
            }
            continue;
        }
        int host = *p;
        size_t x_a = 0, x_b = 0;
        for (; p < p_end && *p == host; p++) {
            x_a++;
        }
        for (; q < q_end && *q == host; q++) {
            x_b++;
        }
        double at_a = (double)x_a / (double)n_a, at_b = (double)x_b / (double)n_b;
        share += at_a < at_b ? at_a : at_b;
    }
    return share;
}

static int save_services(struct store *store, int64_t snapshot, const struct model *model,
                         const struct replicas *replicas, struct err *err)
{
    static const char sql[] =
        "INSERT INTO services (snapshot_id, service, app, version, stateful, movable, rollout,"
        " replicas) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    sqlite3_stmt *statement = store_use(store, ST_SERVICE_ADD, sql, err);
    if (!statement) {
        return -1;
    }
    for (size_t i = 0; i < model->n_services; i++) {
        const struct service *service = &model->services[i];
        bind_int(statement, 1, snapshot);
        bind_text(statement, 2, service->name);
        bind_text(statement, 3, service->app);
        bind_text(statement, 4, service->version);
        bind_int(statement, 5, service->stateful);
        bind_int(statement, 6, service->movable);
        bind_int(statement, 7, service->rollout);
        bind_int(statement, 8, (int64_t)replica_count(replicas, (int)i));
        if (store_run(store, statement, err)) {
            return -1;
        }
    }
    return 0;
}

static const char *host_name(const struct model *model, int host)
{
    return host < 0 ? NULL : model->hosts[host].name;
}

static int save_instances(struct store *store, int64_t snapshot, const struct model *model,
                          struct err *err)
{
    static const char sql[] =
        "INSERT INTO instances (snapshot_id, instance, service, host, cpu_used_millis,"
        " mem_used_bytes, cpu_request_millis, mem_request_bytes, pinned_why, start_up_ms)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    sqlite3_stmt *statement = store_use(store, ST_INSTANCE_ADD, sql, err);
    if (!statement) {
        return -1;
    }
    for (size_t i = 0; i < model->n_instances; i++) {
        const struct instance *instance = &model->instances[i];
        bind_int(statement, 1, snapshot);
        bind_text(statement, 2, instance->name);
        bind_text(statement, 3, model->services[instance->service].name);
        bind_text(statement, 4, host_name(model, instance->host));
        bind_int(statement, 5, instance->cpu_used_millis);
        bind_int(statement, 6, instance->mem_used_bytes);
        bind_int(statement, 7, instance->cpu_request_millis);
        bind_int(statement, 8, instance->mem_request_bytes);
        bind_text(statement, 9, instance->pinned_why);
        bind_opt_int(statement, 10, instance->start_ms);
        if (store_run(store, statement, err)) {
            return -1;
        }
    }
    return 0;
}

/* Hosts of both ends and the share that can stay local. */
static double message_place(const struct model *model, const struct replicas *replicas,
                            const struct message *message, int *src_host, int *dst_host)
{
    if (message->level == LEVEL_SERVICE) {
        *src_host = service_host(replicas, message->src);
        *dst_host = service_host(replicas, message->dst);
        return service_local_share(replicas, message->src, message->dst);
    }
    *src_host = model->instances[message->src].host;
    *dst_host = model->instances[message->dst].host;
    if (*src_host < 0 || *dst_host < 0) {
        return -1;
    }
    return *src_host == *dst_host ? 1 : 0;
}

static int save_messages(struct store *store, int64_t snapshot, const struct model *model,
                         const struct replicas *replicas, struct err *err)
{
    static const char sql[] =
        "INSERT INTO messages (snapshot_id, message_no, level, src, dst, src_host, dst_host, count,"
        " bytes, mean_ms, local_share) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    sqlite3_stmt *statement = store_use(store, ST_MESSAGE_ADD, sql, err);
    if (!statement) {
        return -1;
    }
    for (size_t i = 0; i < model->n_messages; i++) {
        const struct message *message = &model->messages[i];
        int src_host, dst_host;
        double local = message_place(model, replicas, message, &src_host, &dst_host);
        bind_int(statement, 1, snapshot);
        bind_int(statement, 2, (int64_t)i);
        bind_text(statement, 3, level_name(message->level));
        bind_text(statement, 4, model_end_name(model, message->level, message->src));
        bind_text(statement, 5, model_end_name(model, message->level, message->dst));
        bind_text(statement, 6, host_name(model, src_host));
        bind_text(statement, 7, host_name(model, dst_host));
        bind_int(statement, 8, message->count);
        bind_opt_int(statement, 9, message->bytes);
        bind_opt_real(statement, 10, message->mean_ms);
        bind_opt_real(statement, 11, local);
        if (store_run(store, statement, err)) {
            return -1;
        }
    }
    return 0;
}

static int save_snapshot(struct store *store, int64_t cycle, const char *phase,
                         const struct model *model, const char *text, size_t size,
                         struct err *err)
{
    __attribute__((cleanup(replicas_wipe))) struct replicas replicas = replicas_of(model);
    int64_t id;
    if (snapshot_row(store, cycle, phase, model, &id, err) ||
        store_document_save(store, cycle, phase, text, size, err) ||
        save_hosts(store, id, model, err) || save_services(store, id, model, &replicas, err) ||
        save_instances(store, id, model, err) ||
        save_messages(store, id, model, &replicas, err)) {
        return -1;
    }
    return 0;
}

int store_snapshot_save(struct store *store, int64_t cycle, const char *phase,
                        const struct model *model, const char *text, size_t size,
                        struct err *err)
{
    bool own;
    if (store_enter(store, &own, err)) {
        return -1;
    }
    return store_leave(store, own, save_snapshot(store, cycle, phase, model, text, size, err),
                       err);
}

int store_snapshot_load(struct store *store, int64_t cycle, const char *phase, struct buf *text,
                        struct err *err)
{
    return store_document_load(store, cycle, phase, text, err);
}

/* --- analyses --- */

/* The rows of one level, ranked in the order they have. */
static int save_affinities(struct store *store, int64_t cycle, const struct model *model,
                           enum level level, const struct affinity *rows, size_t n,
                           struct err *err)
{
    static const char sql[] =
        "INSERT INTO affinities (cycle_id, level, rank, a, b, degree, count, bytes)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    sqlite3_stmt *statement = store_use(store, ST_AFFINITY_ADD, sql, err);
    if (!statement) {
        return -1;
    }
    int64_t rank = 0;
    for (size_t i = 0; i < n; i++) {
        const struct affinity *row = &rows[i];
        if (row->level != level) {
            continue;
        }
        bind_int(statement, 1, cycle);
        bind_text(statement, 2, level_name(level));
        bind_int(statement, 3, ++rank);
        bind_text(statement, 4, model_end_name(model, level, row->a));
        bind_text(statement, 5, model_end_name(model, level, row->b));
        bind_real(statement, 6, row->degree);
        bind_int(statement, 7, row->count);
        bind_opt_int(statement, 8, row->bytes);
        if (store_run(store, statement, err)) {
            return -1;
        }
    }
    return 0;
}

static int save_analysis(struct store *store, int64_t cycle, const struct analysis *analysis,
                         const struct model *model, const char *text, size_t size,
                         struct err *err)
{
    static const char drop_sql[] = "DELETE FROM affinities WHERE cycle_id = ?1";
    sqlite3_stmt *drop = store_use(store, ST_AFFINITY_DROP, drop_sql, err);
    if (!drop) {
        return -1;
    }
    bind_int(drop, 1, cycle);
    if (store_run(store, drop, err) ||
        store_document_save(store, cycle, "analysis", text, size, err)) {
        return -1;
    }
    /* service_rows already hold what `rows` has at service level; without them (given degrees of
     * services) `rows` is all there is. */
    const struct affinity *services =
        analysis->n_service_rows ? analysis->service_rows : analysis->rows;
    size_t n_services = analysis->n_service_rows ? analysis->n_service_rows : analysis->n_rows;
    return save_affinities(store, cycle, model, LEVEL_INSTANCE, analysis->rows, analysis->n_rows,
                           err) ||
                   save_affinities(store, cycle, model, LEVEL_SERVICE, services, n_services, err)
               ? -1
               : 0;
}

int store_analysis_save(struct store *store, int64_t cycle, const struct analysis *analysis,
                        const struct model *model, const char *text, size_t size,
                        struct err *err)
{
    bool own;
    if (store_enter(store, &own, err)) {
        return -1;
    }
    return store_leave(store, own, save_analysis(store, cycle, analysis, model, text, size, err),
                       err);
}

int store_analysis_load(struct store *store, int64_t cycle, struct buf *text, struct err *err)
{
    return store_document_load(store, cycle, "analysis", text, err);
}
