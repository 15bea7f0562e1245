/* store_internal.h - what the files of this folder share: the handle, prepared statements, and
 * transactions that nest into one opened by store_begin(). */
#ifndef REMAP_STORE_INTERNAL_H
#define REMAP_STORE_INTERNAL_H

#include <sqlite3.h>
#include "model/store/store.h"

struct store_migration {
    int version;
    const unsigned char *sql; /* UTF-8 text, NUL-terminated */
};
/* Generated from schema/NNNN.sql; in order, from version 1 without holes. */
extern const struct store_migration store_migrations[];
extern const size_t store_n_migrations;

/* Every statement that is prepared once and kept; its SQL stands beside its one function. */
enum statement {
    ST_BEGIN, ST_BEGIN_READ, ST_COMMIT, ST_ROLLBACK,
    ST_CYCLE_NEW, ST_CYCLE_SET,
    ST_MOVES_KNOWN, ST_CYCLE_GET, ST_CYCLES_OPEN,
    ST_EVENT_ADD, ST_DELIVERY_FIND, ST_DELIVERY_SET, ST_APP_GET, ST_APP_SET, ST_SAVINGS_SAVE,
    ST_DRIFT_SET,
    ST_DOCUMENT_SAVE, ST_DOCUMENT_LOAD,
    ST_SNAPSHOT_DROP, ST_SNAPSHOT_ADD, ST_HOST_ADD, ST_SERVICE_ADD, ST_INSTANCE_ADD,
    ST_MESSAGE_ADD, ST_AFFINITY_DROP, ST_AFFINITY_ADD,
    ST_PLAN_ADD, ST_MOVES_DROP, ST_MOVE_ADD, ST_MOVE_HOST_ADD,
    ST_MOVE_INTENT, ST_MOVE_OUTCOME, ST_MOVE_UNDONE, ST_MOVE_DISCARD, ST_MOVES_LOAD, ST_LAST_MOVE,
    ST_MOVES_SAME, ST_MOVE_TARGETS,
    ST_RETAIN_AGE, ST_RETAIN_OLDEST, ST_RETAIN_EVENTS, ST_PAGES, ST_FREE_PAGES, ST_PAGE_SIZE,
    ST_VACUUM,
    ST_N
};

struct store {
    sqlite3 *db;
    char *path;
    bool read_only;
    bool in_begin; /* between store_begin and store_commit or store_rollback */
    bool broken;   /* a call within that transaction failed: it can only be rolled back */
    sqlite3_stmt *statements[ST_N];
};

/* ERR_IO "PATH: what SQLite says: what the system says" (ERR_CONFLICT for a held lock); -1. */
int store_error(struct store *store, struct err *err);

/* The statement, prepared on first use, reset and without bindings. NULL and *err. */
sqlite3_stmt *store_use(struct store *store, enum statement which, const char *sql,
                        struct err *err);
/* Steps a statement that returns no rows; resets it. */
int store_run(struct store *store, sqlite3_stmt *statement, struct err *err);
/* Steps to the next row: 1 row, 0 end, -1 error; resets except on a row. */
int store_step(struct store *store, sqlite3_stmt *statement, struct err *err);

/* One call's transaction: its own, or part of store_begin()'s.
 *     if (store_enter(store, &own, err)) return -1;
 *     return store_leave(store, own, work(store, …, err), err);
 * store_leave commits when rc is 0 and rolls back otherwise (part of a larger transaction: marks
 * that one as broken); returns 0 or -1. */
int store_enter(struct store *store, bool *own, struct err *err);
int store_leave(struct store *store, bool own, int rc, struct err *err);

/* Binding; parameters count from 1. Text is borrowed until the statement is reset; NULL binds
 * NULL. `opt` forms bind NULL for negative numbers. */
void bind_int(sqlite3_stmt *statement, int at, int64_t value);
void bind_opt_int(sqlite3_stmt *statement, int at, int64_t value);
void bind_real(sqlite3_stmt *statement, int at, double value);
void bind_opt_real(sqlite3_stmt *statement, int at, double value);
void bind_text(sqlite3_stmt *statement, int at, const char *text);
void bind_bytes(sqlite3_stmt *statement, int at, const void *data, size_t size);

/* Columns count from 0. NULL gives `absent` or a NULL string; strings are copies. */
int64_t column_int(sqlite3_stmt *statement, int at, int64_t absent);
double column_real(sqlite3_stmt *statement, int at, double absent);
char *column_text(sqlite3_stmt *statement, int at);

/* documents: the bytes of a cycle's document of this kind, replaced if there (store_model.c). */
int store_document_save(struct store *store, int64_t cycle, const char *kind, const char *text,
                        size_t size, struct err *err);
/* Appends to *text; ERR_NOT_FOUND. */
int store_document_load(struct store *store, int64_t cycle, const char *kind, struct buf *text,
                        struct err *err);

/* One planned, undoing or detouring move and the hosts it touches (store_plan.c). */
int store_move_host_add(struct store *store, int64_t cycle, int64_t seq, const char *host,
                        struct err *err);

#endif
