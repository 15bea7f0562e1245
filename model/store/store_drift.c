/* store_drift.c - what is seen between cycles, and what it is compared with (schema/0003.sql). */
#include "model/store/store_internal.h"

#include "model/base/mem.h"

static void bind_known(sqlite3_stmt *statement, int parameter, double value)
{
    if (value < 0)
        sqlite3_bind_null(statement, parameter);
    else
        sqlite3_bind_double(statement, parameter, value);
}

int store_drift_set(struct store *store, const struct drift_row *row, struct err *err)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO drift (app, state, at_ms, reference_cycle, distance, noise,"
        " response_ratio, every_ms, affinity, response)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    sqlite3_stmt *statement = store_use(store, ST_DRIFT_SET, sql, err);
    bool own;
    if (!statement || store_enter(store, &own, err))
        return -1;
    bind_text(statement, 1, row->app);
    bind_text(statement, 2, row->state);
    bind_opt_int(statement, 3, row->at_ms);
    bind_opt_int(statement, 4, row->reference_cycle);
    bind_known(statement, 5, row->distance);
    bind_known(statement, 6, row->noise);
    bind_known(statement, 7, row->response_ratio);
    bind_int(statement, 8, row->every_ms);
    bind_known(statement, 9, row->affinity);
    bind_known(statement, 10, row->response);
    return store_leave(store, own, store_run(store, statement, err), err);
}

int store_drift_reference(struct store *store, const char *app, int64_t *out, struct err *err)
{
    static const char sql[] =
        "SELECT max(c.cycle_id) FROM cycles c JOIN plans p USING (cycle_id)"
        " WHERE c.app = ?1 AND c.state IN ('done', 'undone', 'proposed') AND c.started_ms >"
        "  (SELECT coalesce(max(e.at_ms), 0) FROM events e"
        "    WHERE e.kind = 'deploy' AND (e.app = ?1 OR e.app IS NULL))";
    const char *const args[] = {app, NULL};
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(store, sql, args, &rows, err) < 0 || store_rows_next(rows, err) < 0)
        return -1;
    *out = store_rows_int(rows, 0, 0);
    return 0;
}

/* Where moves were made and kept, what was measured after them; else what was measured before. */
static int reference_response(struct store *store, const char *cycle, double *out, struct err *err)
{
    static const char sql[] =
        "SELECT CASE WHEN c.state = 'done' AND c.moves_applied > 0 THEN s.response_realised_ms"
        " ELSE s.response_before_ms END FROM v_cycles c JOIN v_savings s USING (cycle_id)"
        " WHERE c.cycle_id = CAST(?1 AS INTEGER)";
    const char *const args[] = {cycle, NULL};
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(store, sql, args, &rows, err) < 0)
        return -1;
    int rc = store_rows_next(rows, err);
    *out = rc == 1 ? store_rows_real(rows, 0, -1) : -1;
    return rc < 0 ? -1 : 0;
}

int store_drift_reference_rows(struct store *store, int64_t cycle, struct buf *out,
                               double *response_ms, struct err *err)
{
    static const char sql[] = "SELECT a, b, degree, count, bytes FROM affinities"
                              " WHERE cycle_id = CAST(?1 AS INTEGER) AND level = 'service'"
                              " ORDER BY rank";
    AUTO_FREE char *text = mem_printf("%lld", (long long)cycle);
    const char *const args[] = {text, NULL};
    if (reference_response(store, text, response_ms, err) < 0)
        return -1;
    return store_query_json(store, sql, args, out, err);
}
