/* store_query.c - reading the views row by row, and as JSON (for the API and -o json). */
#include "model/store/store_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/json.h"
#include "model/base/mem.h"

struct store_rows {
    struct store *store; /* borrowed */
    sqlite3_stmt *statement;
};

int store_select(struct store *store, const char *sql, const char *const *args,
                 struct store_rows **out, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        return store_error(store, err);
    }
    assert(sqlite3_stmt_readonly(statement));
    for (int i = 0; args && args[i]; i++) {
        bind_text(statement, i + 1, args[i]);
    }
    struct store_rows *rows = mem_alloc(sizeof *rows);
    rows->store = store;
    rows->statement = statement;
    *out = rows;
    return 0;
}

int store_rows_next(struct store_rows *rows, struct err *err)
{
    return store_step(rows->store, rows->statement, err);
}

const char *store_rows_text(const struct store_rows *rows, int column)
{
    return (const char *)sqlite3_column_text(rows->statement, column);
}

int64_t store_rows_int(const struct store_rows *rows, int column, int64_t absent)
{
    return column_int(rows->statement, column, absent);
}

double store_rows_real(const struct store_rows *rows, int column, double absent)
{
    return column_real(rows->statement, column, absent);
}

bool store_rows_null(const struct store_rows *rows, int column)
{
    return sqlite3_column_type(rows->statement, column) == SQLITE_NULL;
}

int store_rows_columns(const struct store_rows *rows)
{
    return sqlite3_column_count(rows->statement);
}

void store_rows_free(struct store_rows *rows)
{
    if (rows) {
        sqlite3_finalize(rows->statement);
        free(rows);
    }
}

static void put_column(sqlite3_stmt *statement, int at, struct buf *out)
{
    double real;
    switch (sqlite3_column_type(statement, at)) {
    case SQLITE_INTEGER:
        json_put_int(out, sqlite3_column_int64(statement, at));
        return;
    case SQLITE_FLOAT:
        real = sqlite3_column_double(statement, at);
        if (isfinite(real)) {
            json_put_real(out, real);
            return;
        }
        break;
    case SQLITE_TEXT:
    case SQLITE_BLOB:
        json_put_text(out, (const char *)sqlite3_column_text(statement, at));
        return;
    }
    buf_puts(out, "null");
}

void store_rows_json(const struct store_rows *rows, struct buf *out)
{
    buf_puts(out, "{");
    int n = sqlite3_column_count(rows->statement);
    for (int i = 0; i < n; i++) {
        buf_puts(out, i ? "," : "");
        json_put_text(out, sqlite3_column_name(rows->statement, i));
        buf_puts(out, ":");
        put_column(rows->statement, i, out);
    }
    buf_puts(out, "}");
}

int store_query_json(struct store *store, const char *sql, const char *const *args,
                     struct buf *out, struct err *err)
{
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(store, sql, args, &rows, err)) {
        return -1;
    }
    buf_puts(out, "[");
    int rc;
    for (size_t i = 0; (rc = store_rows_next(rows, err)) == 1; i++) {
        buf_puts(out, i ? "," : "");
        store_rows_json(rows, out);
    }
    buf_puts(out, "]");
    return rc;
}
