/* store_cycles.c - cycles (the engine's state, one row each), apps, events and the outcome of
 * verification. */
#include "model/store/store_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/mem.h"

/* --- cycles --- */

void cycle_row_wipe(struct cycle_row *row)
{
    free(row->app);
    free(row->trigger);
    free(row->state);
    free(row->reason);
    *row = (struct cycle_row){0};
}

int store_cycle_new(struct store *store, const char *app, const char *trigger, const char *state,
                    bool dry_run, int64_t base_cycle, int64_t now_ms, int64_t *out_id,
                    struct err *err)
{
    static const char sql[] =
        "INSERT INTO cycles (app, trigger, state, dry_run, base_cycle, started_ms)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    sqlite3_stmt *statement = store_use(store, ST_CYCLE_NEW, sql, err);
    if (!statement) {
        return -1;
    }
    bool own;
    if (store_enter(store, &own, err)) {
        return -1;
    }
    bind_text(statement, 1, app);
    bind_text(statement, 2, trigger);
    bind_text(statement, 3, state);
    bind_int(statement, 4, dry_run);
    bind_opt_int(statement, 5, base_cycle > 0 ? base_cycle : -1);
    bind_int(statement, 6, now_ms);
    int rc = store_run(store, statement, err);
    int64_t id = sqlite3_last_insert_rowid(store->db);
    if (store_leave(store, own, rc, err)) {
        return -1;
    }
    *out_id = id;
    return 0;
}

int store_cycle_set(struct store *store, int64_t id, const char *state, const char *reason,
                    int64_t attempt, int64_t deadline_ms, int64_t ended_ms, struct err *err)
{
    static const char sql[] =
        "UPDATE cycles SET state = ?2, reason = coalesce(?3, reason), attempt = ?4,"
        " deadline_ms = ?5, ended_ms = ?6 WHERE cycle_id = ?1";
    sqlite3_stmt *statement = store_use(store, ST_CYCLE_SET, sql, err);
    if (!statement) {
        return -1;
    }
    bool own;
    if (store_enter(store, &own, err)) {
        return -1;
    }
    bind_int(statement, 1, id);
    bind_text(statement, 2, state);
    bind_text(statement, 3, reason);
    bind_int(statement, 4, attempt);
    bind_opt_int(statement, 5, deadline_ms);
    bind_opt_int(statement, 6, ended_ms);
    int rc = store_run(store, statement, err);
    if (!rc && sqlite3_changes(store->db) == 0) {
        rc = err_set(err, ERR_NOT_FOUND, "cycle %lld: there is none", (long long)id);
    }
    return store_leave(store, own, rc, err);
}

#define CYCLE_COLUMNS                                                                             \
    "c.cycle_id, c.app, c.trigger, c.state, c.reason, c.attempt, c.started_ms, c.ended_ms,"       \
    " c.deadline_ms, c.base_cycle, c.dry_run, v.moves_planned, v.moves_applied"                   \
    " FROM cycles c JOIN v_cycles v USING (cycle_id) "

static void read_cycle(sqlite3_stmt *statement, struct cycle_row *row)
{
    row->id = column_int(statement, 0, -1);
    row->app = column_text(statement, 1);
    row->trigger = column_text(statement, 2);
    row->state = column_text(statement, 3);
    row->reason = column_text(statement, 4);
    row->attempt = column_int(statement, 5, 0);
    row->started_ms = column_int(statement, 6, -1);
    row->ended_ms = column_int(statement, 7, -1);
    row->deadline_ms = column_int(statement, 8, -1);
    row->base_cycle = column_int(statement, 9, -1);
    row->dry_run = column_int(statement, 10, 0) != 0;
    row->moves_planned = column_int(statement, 11, 0);
    row->moves_applied = column_int(statement, 12, 0);
}

int store_cycle_get(struct store *store, int64_t id, struct cycle_row *out, struct err *err)
{
    static const char sql[] = "SELECT " CYCLE_COLUMNS "WHERE c.cycle_id = ?1";
    sqlite3_stmt *statement = store_use(store, ST_CYCLE_GET, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, id);
    int rc = store_step(store, statement, err);
    if (rc == 0) {
        return err_set(err, ERR_NOT_FOUND, "cycle %lld: there is none", (long long)id);
    }
    if (rc < 0) {
        return -1;
    }
    *out = (struct cycle_row){0};
    read_cycle(statement, out);
    sqlite3_reset(statement);
    return 0;
}

int store_cycles_open(struct store *store, struct cycle_row **out, size_t *n, struct err *err)
{
    static const char sql[] = "SELECT " CYCLE_COLUMNS
                              "WHERE c.ended_ms IS NULL ORDER BY c.cycle_id";
    sqlite3_stmt *statement = store_use(store, ST_CYCLES_OPEN, sql, err);
    if (!statement) {
        return -1;
    }
    struct cycle_row *rows = NULL;
    size_t count = 0;
    int rc;
    while ((rc = store_step(store, statement, err)) == 1) {
        read_cycle(statement, ARRAY_PUSH(rows, count));
    }
    if (rc < 0) {
        for (size_t i = 0; i < count; i++) {
            cycle_row_wipe(&rows[i]);
        }
        free(rows);
        return -1;
    }
    *out = rows;
    *n = count;
    return 0;
}

/* --- events --- */

int store_event_add(struct store *store, const char *app, const char *kind, int64_t cycle,
                    const char *text, int64_t now_ms, int64_t *out_id, struct err *err)
{
    static const char sql[] = "INSERT INTO events (at_ms, app, kind, cycle_id, text)"
                              " VALUES (?1, ?2, ?3, ?4, ?5)";
    sqlite3_stmt *statement = store_use(store, ST_EVENT_ADD, sql, err);
    if (!statement) {
        return -1;
    }
    bool own;
    if (store_enter(store, &own, err)) {
        return -1;
    }
    bind_int(statement, 1, now_ms);
    bind_text(statement, 2, app);
    bind_text(statement, 3, kind);
    bind_opt_int(statement, 4, cycle > 0 ? cycle : -1);
    bind_text(statement, 5, text);
    int rc = store_run(store, statement, err);
    int64_t id = sqlite3_last_insert_rowid(store->db);
    if (store_leave(store, own, rc, err)) {
        return -1;
    }
    if (out_id) {
        *out_id = id;
    }
    return 0;
}

/* *out: the event of a delivery that is not older than since_ms, 0 when there is none. */
static int delivery_find(struct store *store, const char *delivery, const char *app,
                         int64_t since_ms, int64_t *out, struct err *err)
{
    static const char sql[] = "SELECT e.event_id FROM deliveries d JOIN events e USING (event_id)"
                              " WHERE d.delivery = ?1 AND d.app = ?2 AND e.at_ms >= ?3";
    sqlite3_stmt *statement = store_use(store, ST_DELIVERY_FIND, sql, err);
    if (!statement) {
        return -1;
    }
    bind_text(statement, 1, delivery);
    bind_text(statement, 2, app);
    bind_int(statement, 3, since_ms);
    int rc = sqlite3_step(statement);
    *out = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_reset(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : store_error(store, err);
}

static int delivery_set(struct store *store, const char *delivery, const char *app, int64_t event,
                        struct err *err)
{
    static const char sql[] = "INSERT INTO deliveries (delivery, app, event_id) VALUES (?1, ?2, ?3)"
                              " ON CONFLICT (delivery, app) DO UPDATE SET event_id = ?3";
    sqlite3_stmt *statement = store_use(store, ST_DELIVERY_SET, sql, err);
    if (!statement) {
        return -1;
    }
    bind_text(statement, 1, delivery);
    bind_text(statement, 2, app);
    bind_int(statement, 3, event);
    return store_run(store, statement, err);
}

int store_event_deliver(struct store *store, const char *app, const char *kind, const char *text,
                        const char *delivery, int64_t window_ms, int64_t now_ms, int64_t *out_id,
                        bool *duplicate, struct err *err)
{
    bool own = !store->in_begin;
    int64_t id = 0;
    const char *whose = app ? app : "";
    if (own && store_begin(store, err)) {
        return -1;
    }
    int rc = delivery_find(store, delivery, whose, now_ms - window_ms, &id, err);
    bool known = id != 0;
    if (!rc && !known &&
        (store_event_add(store, app, kind, 0, text, now_ms, &id, err) ||
         delivery_set(store, delivery, whose, id, err))) {
        rc = -1;
    }
    if (rc && own) {
        store_rollback(store);
    }
    if (rc || (own && store_commit(store, err))) {
        return -1;
    }
    *out_id = id;
    *duplicate = known;
    return 0;
}

/* --- apps --- */

void app_row_wipe(struct app_row *row)
{
    free(row->app);
    free(row->mode);
    *row = (struct app_row){0};
}

int store_app_get(struct store *store, const char *app, struct app_row *out, struct err *err)
{
    static const char sql[] =
        "SELECT app, mode, paused, next_due_ms, interval_ms FROM apps WHERE app = ?1";
    sqlite3_stmt *statement = store_use(store, ST_APP_GET, sql, err);
    if (!statement) {
        return -1;
    }
    bind_text(statement, 1, app);
    int rc = store_step(store, statement, err);
    if (rc == 0) {
        return err_set(err, ERR_NOT_FOUND, "app %s: the store knows none of that name", app);
    }
    if (rc < 0) {
        return -1;
    }
    *out = (struct app_row){.app = column_text(statement, 0),
                            .mode = column_text(statement, 1),
                            .paused = column_int(statement, 2, 0) != 0,
                            .next_due_ms = column_int(statement, 3, -1),
                            .interval_ms = column_int(statement, 4, -1)};
    sqlite3_reset(statement);
    return 0;
}

int store_app_set(struct store *store, const struct app_row *row, struct err *err)
{
    static const char sql[] =
        "INSERT INTO apps (app, mode, paused, next_due_ms, interval_ms)"
        " VALUES (?1, ?2, ?3, ?4, ?5)"
        " ON CONFLICT (app) DO UPDATE SET mode = coalesce(excluded.mode, mode),"
        " paused = excluded.paused, next_due_ms = excluded.next_due_ms,"
        " interval_ms = excluded.interval_ms";
    sqlite3_stmt *statement = store_use(store, ST_APP_SET, sql, err);
    if (!statement) {
        return -1;
    }
    bool own;
    if (store_enter(store, &own, err)) {
        return -1;
    }
    bind_text(statement, 1, row->app);
    bind_text(statement, 2, row->mode);
    bind_int(statement, 3, row->paused);
    bind_opt_int(statement, 4, row->next_due_ms);
    bind_opt_int(statement, 5, row->interval_ms);
    return store_leave(store, own, store_run(store, statement, err), err);
}

/* --- verification --- */

int store_savings_save(struct store *store, int64_t cycle, const struct savings *savings,
                       struct err *err)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO outcomes (cycle_id, hosts_before, hosts_predicted, hosts_realised,"
        " affinity_before, affinity_predicted, affinity_realised,"
        " response_before_ms, response_predicted_ms, response_realised_ms,"
        " local_before, local_predicted, local_realised)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    sqlite3_stmt *statement = store_use(store, ST_SAVINGS_SAVE, sql, err);
    if (!statement) {
        return -1;
    }
    bool own;
    if (store_enter(store, &own, err)) {
        return -1;
    }
    bind_int(statement, 1, cycle);
    bind_opt_int(statement, 2, savings->hosts_before);
    bind_opt_int(statement, 3, savings->hosts_predicted);
    bind_opt_int(statement, 4, savings->hosts_realised);
    bind_opt_real(statement, 5, savings->affinity_before);
    bind_opt_real(statement, 6, savings->affinity_predicted);
    bind_opt_real(statement, 7, savings->affinity_realised);
    bind_opt_real(statement, 8, savings->response_before_ms);
    bind_opt_real(statement, 9, savings->response_predicted_ms);
    bind_opt_real(statement, 10, savings->response_realised_ms);
    bind_opt_real(statement, 11, savings->local_before);
    bind_opt_real(statement, 12, savings->local_predicted);
    bind_opt_real(statement, 13, savings->local_realised);
    return store_leave(store, own, store_run(store, statement, err), err);
}
