/* store_retain.c - retention: old cycles go, with everything that belongs to them, and the file
 * gives the room back (auto_vacuum = INCREMENTAL since the first migration). */
#include "model/store/store_internal.h"

#include <assert.h>

/* Five cycles of 1000 services are some 15,000 rows and 5 MB of pages: 100 ms and a WAL below its
 * limit. */
#define BATCH_CYCLES 5

/* A cycle that an open one applies or undoes is still needed. */
#define REMOVABLE                                                                                  \
    "ended_ms IS NOT NULL AND cycle_id NOT IN (SELECT base_cycle FROM cycles"                      \
    " WHERE ended_ms IS NULL AND base_cycle IS NOT NULL)"

/* Up to `limit` cycles that ended before `before_ms`; *changed counts them. */
static int drop_aged(struct store *store, int64_t before_ms, int64_t limit, int64_t *changed,
                     struct err *err)
{
    static const char sql[] =
        "DELETE FROM cycles WHERE cycle_id IN (SELECT cycle_id FROM cycles WHERE " REMOVABLE
        " AND ended_ms < ?1 ORDER BY ended_ms, cycle_id LIMIT ?2)";
    sqlite3_stmt *statement = store_use(store, ST_RETAIN_AGE, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, before_ms);
    bind_int(statement, 2, limit);
    if (store_run(store, statement, err)) {
        return -1;
    }
    *changed = sqlite3_changes(store->db);
    return 0;
}

static int drop_oldest(struct store *store, int64_t *changed, struct err *err)
{
    static const char sql[] =
        "DELETE FROM cycles WHERE cycle_id = (SELECT min(cycle_id) FROM cycles WHERE " REMOVABLE
        ")";
    sqlite3_stmt *statement = store_use(store, ST_RETAIN_OLDEST, sql, err);
    if (!statement || store_run(store, statement, err)) {
        return -1;
    }
    *changed = sqlite3_changes(store->db);
    return 0;
}

static int drop_events(struct store *store, int64_t before_ms, struct err *err)
{
    static const char sql[] = "DELETE FROM events WHERE cycle_id IS NULL AND at_ms < ?1";
    sqlite3_stmt *statement = store_use(store, ST_RETAIN_EVENTS, sql, err);
    if (!statement) {
        return -1;
    }
    bind_int(statement, 1, before_ms);
    return store_run(store, statement, err);
}

static int read_pragma(struct store *store, enum statement which, const char *sql, int64_t *out,
                       struct err *err)
{
    sqlite3_stmt *statement = store_use(store, which, sql, err);
    int rc = statement ? store_step(store, statement, err) : -1;
    if (rc < 0) {
        return -1;
    }
    assert(rc == 1);
    *out = column_int(statement, 0, 0);
    sqlite3_reset(statement);
    return 0;
}

/* Bytes in use: the file less what is free in it. */
static int used_bytes(struct store *store, int64_t *out, struct err *err)
{
    int64_t pages, free_pages, page_bytes;
    if (read_pragma(store, ST_PAGES, "PRAGMA page_count", &pages, err) ||
        read_pragma(store, ST_FREE_PAGES, "PRAGMA freelist_count", &free_pages, err) ||
        read_pragma(store, ST_PAGE_SIZE, "PRAGMA page_size", &page_bytes, err)) {
        return -1;
    }
    *out = (pages - free_pages) * page_bytes;
    return 0;
}

static int give_room_back(struct store *store, struct err *err)
{
    sqlite3_stmt *statement = store_use(store, ST_VACUUM, "PRAGMA incremental_vacuum", err);
    if (!statement) {
        return -1;
    }
    int rc;
    while ((rc = store_step(store, statement, err)) == 1) {
        /* one step per page */
    }
    return rc;
}

/* One transaction: at most BATCH_CYCLES oldest cycles while the file is too large. */
static int shrink_batch(struct store *store, int64_t max_bytes, int64_t *changed, struct err *err)
{
    *changed = 0;
    for (int i = 0; i < BATCH_CYCLES; i++) {
        int64_t used, one;
        if (used_bytes(store, &used, err)) {
            return -1;
        }
        if (used <= max_bytes) {
            return 0;
        }
        if (drop_oldest(store, &one, err)) {
            return -1;
        }
        if (!one) {
            return 0;
        }
        *changed += one;
    }
    return 0;
}

int store_retain(struct store *store, int64_t now_ms, int64_t max_age_ms, int64_t max_bytes,
                 int64_t *deleted, struct err *err)
{
    assert(!store->in_begin);
    int64_t total = 0, changed = 1;
    bool own;
    while (max_age_ms > 0 && changed && total < STORE_RETAIN_CYCLES) {
        if (store_enter(store, &own, err)) {
            return -1;
        }
        int rc = drop_aged(store, now_ms - max_age_ms, BATCH_CYCLES, &changed, err);
        if (!rc && !changed) {
            rc = drop_events(store, now_ms - max_age_ms, err);
        }
        if (store_leave(store, own, rc, err)) {
            return -1;
        }
        total += changed;
    }
    changed = 1;
    while (max_bytes > 0 && changed && total < STORE_RETAIN_CYCLES) {
        if (store_enter(store, &own, err) ||
            store_leave(store, own, shrink_batch(store, max_bytes, &changed, err), err)) {
            return -1;
        }
        total += changed;
    }
    if (deleted) {
        *deleted = total;
    }
    return total ? give_room_back(store, err) : 0;
}
