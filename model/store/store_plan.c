/* store_plan.c - plans: the documents for replay, the scalars (v_plans) and one row per move. */
#include "model/store/store_internal.h"

#include <stdlib.h>
#include <string.h>
#include "model/base/mem.h"
#include "model/model_json.h"

static int save_scalars(struct store *store, int64_t cycle, const struct plan *plan,
                        struct err *err)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO plans (cycle_id, requested, planner, why, objective, granularity,"
        " status, cut, affinity_before, affinity_after, affinity_bound, gap, hosts_before,"
        " hosts_after, hosts_bound, restarts, coverage, solve_ms, unordered)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,"
        " ?19)";
    sqlite3_stmt *statement = store_use(store, ST_PLAN_ADD, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, cycle);
    bind_text(statement, 2, plan->requested);
    bind_text(statement, 3, plan->planner);
    bind_text(statement, 4, plan->why);
    bind_text(statement, 5, objective_name(plan->objective));
    bind_text(statement, 6, granularity_name(plan->granularity));
    bind_text(statement, 7, plan_status_name(plan->status));
    bind_int(statement, 8, plan->cut);
    bind_real(statement, 9, plan->affinity_before);
    bind_real(statement, 10, plan->affinity_after);
    if (plan->has_bound) { /* else they stay NULL */
        bind_real(statement, 11, plan->affinity_bound);
        bind_real(statement, 12, plan_gap(plan));
    }
    bind_int(statement, 13, plan->hosts_before);
    bind_int(statement, 14, plan->hosts_after);
    bind_opt_int(statement, 15, plan->hosts_bound);
    bind_int(statement, 16, plan->restarts);
    bind_opt_real(statement, 17, plan->coverage);
    bind_int(statement, 18, plan->solve_ms);
    bind_int(statement, 19, plan->unordered);
    return store_run(store, statement, err);
}

int store_move_host_add(struct store *store, int64_t cycle, int64_t seq, const char *host,
                        struct err *err)
{
    static const char sql[] =
        "INSERT OR IGNORE INTO move_hosts (cycle_id, seq, host) VALUES (?1, ?2, ?3)";
    if (!host) {
        return 0;
    }
    sqlite3_stmt *statement = store_use(store, ST_MOVE_HOST_ADD, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, cycle);
    bind_int(statement, 2, seq);
    bind_text(statement, 3, host);
    return store_run(store, statement, err);
}

/* "n1=2 n3=1": what a move of a whole service shows as its source or target. NULL for none. */
static char *counts_text(const struct model *model, const struct host_count *counts, size_t n)
{
    AUTO_BUF struct buf text = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        buf_printf(&text, "%s%s=%lld", i ? " " : "", model->hosts[counts[i].host].name,
                   (long long)counts[i].count);
    }
    return n ? buf_take(&text) : NULL;
}

static int64_t count_on(const struct host_count *counts, size_t n, int host)
{
    for (size_t i = 0; i < n; i++) {
        if (counts[i].host == host) {
            return counts[i].count;
        }
    }
    return 0;
}

/* Hosts whose number of replicas changes. */
static int save_service_hosts(struct store *store, int64_t cycle, const struct move *move,
                              const struct model *model, struct err *err)
{
    for (size_t i = 0; i < move->n_sources; i++) {
        int host = move->sources[i].host;
        if (count_on(move->targets, move->n_targets, host) != move->sources[i].count &&
            store_move_host_add(store, cycle, move->seq, model->hosts[host].name, err)) {
            return -1;
        }
    }
    for (size_t i = 0; i < move->n_targets; i++) {
        int host = move->targets[i].host;
        if (count_on(move->sources, move->n_sources, host) != move->targets[i].count &&
            store_move_host_add(store, cycle, move->seq, model->hosts[host].name, err)) {
            return -1;
        }
    }
    return 0;
}

static int save_move(struct store *store, int64_t cycle, const struct move *move,
                     const struct model *model, struct err *err)
{
    static const char sql[] =
        "INSERT INTO moves (cycle_id, seq, service, instance, source, target, gain, restarts,"
        " state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'planned')";
    sqlite3_stmt *statement = store_use(store, ST_MOVE_ADD, sql, err);
    if (!statement) {
        return -1;
    }
    bool whole = move->instance < 0;
    const char *source = move->source < 0 ? NULL : model->hosts[move->source].name;
    const char *target = move->target < 0 ? NULL : model->hosts[move->target].name;
    AUTO_FREE char *sources = counts_text(model, move->sources, move->n_sources);
    AUTO_FREE char *targets = counts_text(model, move->targets, move->n_targets);
    bind_int(statement, 1, cycle);
    bind_int(statement, 2, move->seq);
    bind_text(statement, 3, model->services[move->service].name);
    bind_text(statement, 4, whole ? NULL : model->instances[move->instance].name);
    bind_text(statement, 5, whole ? sources : source);
    bind_text(statement, 6, whole ? targets : target);
    bind_real(statement, 7, move->gain);
    bind_int(statement, 8, move->restarts);
    if (store_run(store, statement, err)) {
        return -1;
    }
    if (whole) {
        return save_service_hosts(store, cycle, move, model, err);
    }
    return store_move_host_add(store, cycle, move->seq, source, err) ||
                   store_move_host_add(store, cycle, move->seq, target, err)
               ? -1
               : 0;
}

static int save_plan(struct store *store, int64_t cycle, const struct plan *plan,
                     const struct model *model, const char *options, const char *text, size_t size,
                     struct err *err)
{
    static const char drop_sql[] = "DELETE FROM moves WHERE cycle_id = ?1";
    sqlite3_stmt *drop = store_use(store, ST_MOVES_DROP, drop_sql, err);
    if (!drop) {
        return -1;
    }
    bind_int(drop, 1, cycle);
    if (store_run(store, drop, err) || save_scalars(store, cycle, plan, err) ||
        store_document_save(store, cycle, "options", options, strlen(options), err) ||
        store_document_save(store, cycle, "plan", text, size, err)) {
        return -1;
    }
    for (size_t i = 0; i < plan->n_moves; i++) {
        if (save_move(store, cycle, &plan->moves[i], model, err)) {
            return -1;
        }
    }
    return 0;
}

int store_plan_save(struct store *store, int64_t cycle, const struct plan *plan,
                    const struct model *model, const char *options, const char *text, size_t size,
                    struct err *err)
{
    bool own;
    if (store_enter(store, &own, err)) {
        return -1;
    }
    return store_leave(store, own,
                       save_plan(store, cycle, plan, model, options, text, size, err), err);
}

int store_plan_load(struct store *store, int64_t cycle, struct buf *options, struct buf *text,
                    struct err *err)
{
    return store_document_load(store, cycle, "options", options, err) ||
                   store_document_load(store, cycle, "plan", text, err)
               ? -1
               : 0;
}
