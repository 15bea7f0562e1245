/* store.c - opening, migrating and closing the store, transactions and prepared statements
 * (design.md 5). What is stored is in the other files of this folder; the schema is in schema/. */
#include "model/store/store_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "model/base/file.h"
#include "model/base/mem.h"

/* "REMP": tells our files from other people's databases. */
#define STORE_APPLICATION_ID 0x52454d50
/* A reader's transaction or another writer (`remap once` beside the daemon) ends well within it. */
#define STORE_BUSY_MS 5000
/* The WAL is cut back to this after a checkpoint: some ten cycles of 1000 services. */
#define STORE_WAL_BYTES "8388608"
/* The rows of one cycle of 1000 services are about 1 MB. */
#define STORE_MIN_ROOM ((uint64_t)1 << 20)

int store_error(struct store *store, struct err *err)
{
    int code = sqlite3_errcode(store->db);
    enum err_kind kind = code == SQLITE_BUSY || code == SQLITE_LOCKED ? ERR_CONFLICT : ERR_IO;
    int system = sqlite3_system_errno(store->db);
    /* The system's own words matter only where the file system was asked. */
    bool io = code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
    return err_set(err, kind, "%s: %s%s%s", store->path, sqlite3_errmsg(store->db),
                   io && system ? ": " : "", io && system ? strerror(system) : "");
}

static int exec(struct store *store, const char *sql, struct err *err)
{
    if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return store_error(store, err);
    }
    return 0;
}

static int pragma_int(struct store *store, const char *sql, int64_t *out, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        return store_error(store, err);
    }
    int rc = sqlite3_step(statement);
    int64_t value = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return store_error(store, err);
    }
    *out = value;
    return 0;
}

/* A file that is ours and not from the future; *version 0 for an empty one. */
static int check_file(struct store *store, int64_t *version, struct err *err)
{
    int64_t id, objects;
    if (pragma_int(store, "PRAGMA application_id", &id, err) ||
        pragma_int(store, "PRAGMA user_version", version, err) ||
        pragma_int(store, "SELECT count(*) FROM sqlite_schema", &objects, err)) {
        return -1;
    }
    if (objects == 0 && id == 0 && *version == 0) {
        return 0;
    }
    if (id != STORE_APPLICATION_ID) {
        return err_set(err, ERR_CONFLICT, "%s: is an SQLite database, but not a store of remap",
                       store->path);
    }
    if (*version > (int64_t)store_n_migrations) {
        return err_set(err, ERR_CONFLICT,
                       "%s: has schema version %lld, this remap (" REMAP_VERSION
                       ") knows up to %zu: it was written by a newer one",
                       store->path, (long long)*version, store_n_migrations);
    }
    return 0;
}

/* All that is missing in one transaction: an interrupted migration has not happened. */
static int migrate(struct store *store, int64_t version, struct err *err)
{
    if (version == (int64_t)store_n_migrations) {
        return 0;
    }
    if (exec(store, "BEGIN IMMEDIATE", err)) {
        return -1;
    }
    /* Somebody may have migrated while we waited for the lock. */
    int rc = check_file(store, &version, err);
    for (size_t i = (size_t)version; !rc && i < store_n_migrations; i++) {
        assert(store_migrations[i].version == (int)i + 1);
        rc = exec(store, (const char *)store_migrations[i].sql, err);
        if (!rc) {
            AUTO_FREE char *sql = mem_printf("PRAGMA application_id = %d; PRAGMA user_version = %d",
                                             STORE_APPLICATION_ID, store_migrations[i].version);
            rc = exec(store, sql, err);
        }
    }
    if (!rc) {
        rc = exec(store, "COMMIT", err);
    }
    if (rc && !sqlite3_get_autocommit(store->db)) {
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return rc;
}

/* The folder 0750 and the file 0640; SQLite gives -wal and -shm the mode of the file. */
static int create_file(const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    if (slash && slash != path) {
        AUTO_FREE char *folder = mem_strndup(path, (size_t)(slash - path));
        if (file_make_dirs(folder, 0750, err)) {
            return -1;
        }
    }
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd < 0) {
        return errno == EEXIST ? 0
                               : err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    }
    int rc = fchmod(fd, 0640); /* whatever the umask: readers are in the group */
    int saved = errno;
    close(fd);
    return rc ? err_set(err, ERR_IO, "%s: %s", path, strerror(saved)) : 0;
}

static int open_db(struct store *store, int flags, struct err *err)
{
    if (sqlite3_open_v2(store->path, &store->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        return store->db ? store_error(store, err)
                         : err_set(err, ERR_IO, "%s: out of memory", store->path);
    }
    sqlite3_extended_result_codes(store->db, 0);
    sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
    return 0;
}

/* SQLite stays in another mode without an error where shared memory is not to be had. */
static int use_wal(struct store *store, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, "PRAGMA journal_mode = WAL", -1, &statement, NULL) !=
        SQLITE_OK) {
        return store_error(store, err);
    }
    int rc = sqlite3_step(statement);
    const char *mode = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    bool wal = mode && strcmp(mode, "wal") == 0;
    if (!wal && mode) {
        err_set(err, ERR_IO,
                "%s: its file system cannot share memory (a network file system?), which the "
                "write-ahead log needs",
                store->path);
    } else if (!wal) {
        store_error(store, err);
    }
    sqlite3_finalize(statement);
    return wal ? 0 : -1;
}

static int open_write(struct store *store, struct err *err)
{
    int64_t version;
    int on = 1;
    if (create_file(store->path, err) || open_db(store, SQLITE_OPEN_READWRITE, err) ||
        check_file(store, &version, err)) {
        return -1;
    }
    /* auto_vacuum has to be said before the file gets its first page, that is before WAL. */
    if (version == 0 && exec(store, "PRAGMA auto_vacuum = INCREMENTAL", err)) {
        return -1;
    }
    /* Without a persistent WAL a reader that may not write the folder fails after a clean stop. */
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_PERSIST_WAL, &on) != SQLITE_OK) {
        return store_error(store, err);
    }
    static const char settings[] = "PRAGMA synchronous = FULL;"
                                   "PRAGMA foreign_keys = ON;"
                                   "PRAGMA trusted_schema = OFF;"
                                   "PRAGMA journal_size_limit = " STORE_WAL_BYTES;
    return use_wal(store, err) || exec(store, settings, err) || migrate(store, version, err) ? -1
                                                                                              : 0;
}

static int open_read(struct store *store, struct err *err)
{
    int64_t version;
    struct stat st;
    if (stat(store->path, &st)) {
        return err_set(err, errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : ERR_IO, "%s: %s",
                       store->path, strerror(errno));
    }
    if (open_db(store, SQLITE_OPEN_READONLY, err) || check_file(store, &version, err)) {
        return -1;
    }
    if (version == 0) {
        return err_set(err, ERR_NOT_FOUND, "%s: is empty, no cycle has run yet", store->path);
    }
    if (version < (int64_t)store_n_migrations) {
        return err_set(err, ERR_CONFLICT,
                       "%s: has schema version %lld, this remap reads %zu: start it once with "
                       "`remap run`, which brings the file up to date",
                       store->path, (long long)version, store_n_migrations);
    }
    return exec(store, "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF", err);
}

static int open_any(const char *path, bool read_only, struct store **out, struct err *err)
{
    AUTO(store) struct store *store = mem_alloc(sizeof *store);
    store->path = mem_strdup(path);
    store->read_only = read_only;
    if (read_only ? open_read(store, err) : open_write(store, err)) {
        return -1;
    }
    *out = steal(store);
    return 0;
}

int store_open(const char *path, struct store **out, struct err *err)
{
    return open_any(path, false, out, err);
}

int store_open_read(const char *path, struct store **out, struct err *err)
{
    return open_any(path, true, out, err);
}

void store_close(struct store *store)
{
    if (!store) {
        return;
    }
    for (size_t i = 0; i < ST_N; i++) {
        sqlite3_finalize(store->statements[i]);
    }
    int rc = sqlite3_close(store->db);
    assert(rc == SQLITE_OK); /* nobody holds rows of ours */
    (void)rc;
    free(store->path);
    free(store);
}

const char *store_path(const struct store *store)
{
    return store->path;
}

/* --- statements --- */

sqlite3_stmt *store_use(struct store *store, enum statement which, const char *sql,
                        struct err *err)
{
    sqlite3_stmt **at = &store->statements[which];
    if (!*at) {
        if (sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, at, NULL) !=
            SQLITE_OK) {
            store_error(store, err);
            return NULL;
        }
    } else {
        sqlite3_reset(*at);
        sqlite3_clear_bindings(*at);
    }
    return *at;
}

int store_step(struct store *store, sqlite3_stmt *statement, struct err *err)
{
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        return 1;
    }
    int result = rc == SQLITE_DONE ? 0 : store_error(store, err);
    sqlite3_reset(statement);
    return result;
}

int store_run(struct store *store, sqlite3_stmt *statement, struct err *err)
{
    int rc = store_step(store, statement, err);
    assert(rc != 1);
    return rc;
}

static int simple(struct store *store, enum statement which, const char *sql, struct err *err)
{
    sqlite3_stmt *statement = store_use(store, which, sql, err);
    return statement ? store_run(store, statement, err) : -1;
}

/* --- transactions --- */

static int begin(struct store *store, struct err *err)
{
    if (store->read_only) {
        return simple(store, ST_BEGIN_READ, "BEGIN", err);
    }
    return simple(store, ST_BEGIN, "BEGIN IMMEDIATE", err);
}

/* SQLite rolls some failures back by itself (disk full, for one); then there is nothing to do. */
static void rollback(struct store *store)
{
    if (!sqlite3_get_autocommit(store->db)) {
        struct err ignored = ERR_INIT;
        simple(store, ST_ROLLBACK, "ROLLBACK", &ignored);
    }
}

static int commit(struct store *store, struct err *err)
{
    if (simple(store, ST_COMMIT, "COMMIT", err)) {
        rollback(store);
        return -1;
    }
    return 0;
}

int store_begin(struct store *store, struct err *err)
{
    assert(!store->in_begin);
    if (begin(store, err)) {
        return -1;
    }
    store->in_begin = true;
    store->broken = false;
    return 0;
}

int store_read_begin(struct store *store, struct err *err)
{
    assert(!store->in_begin);
    return simple(store, ST_BEGIN_READ, "BEGIN", err);
}

void store_read_end(struct store *store)
{
    rollback(store);
}

int store_commit(struct store *store, struct err *err)
{
    assert(store->in_begin);
    store->in_begin = false;
    if (store->broken) {
        rollback(store);
        return err_set(err, ERR_IO, "%s: an earlier write of this transaction failed",
                       store->path);
    }
    return commit(store, err);
}

void store_rollback(struct store *store)
{
    if (store->in_begin) {
        store->in_begin = false;
        rollback(store);
    }
}

int store_enter(struct store *store, bool *own, struct err *err)
{
    *own = !store->in_begin;
    if (store->in_begin) {
        return store->broken ? err_set(err, ERR_IO,
                                       "%s: an earlier write of this transaction failed",
                                       store->path)
                             : 0;
    }
    return begin(store, err);
}

int store_leave(struct store *store, bool own, int rc, struct err *err)
{
    if (own) {
        if (!rc) {
            return commit(store, err);
        }
        rollback(store);
    } else if (rc) {
        store->broken = true;
    }
    return rc ? -1 : 0;
}

int store_writable(struct store *store, struct err *err)
{
    assert(!store->in_begin);
    struct statvfs fs;
    if (access(store->path, W_OK) || statvfs(store->path, &fs)) {
        return err_set(err, ERR_IO, "%s: %s", store->path, strerror(errno));
    }
    if ((uint64_t)fs.f_bavail * fs.f_frsize < STORE_MIN_ROOM) {
        return err_set(err, ERR_IO, "%s: its file system is full", store->path);
    }
    sqlite3_busy_timeout(store->db, 0);
    int rc = begin(store, err);
    sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
    if (!rc) {
        rollback(store);
    } else if (err->kind == ERR_CONFLICT) {
        *err = (struct err)ERR_INIT;
        rc = 0;
    }
    return rc;
}

/* --- binding and columns --- */

/* A bind fails only for a parameter that is not there (our bug) or for want of memory, where the
 * process ends as in base/mem. */
static void bound(int rc)
{
    assert(rc == SQLITE_OK);
    if (rc != SQLITE_OK) {
        abort();
    }
}

void bind_int(sqlite3_stmt *statement, int at, int64_t value)
{
    bound(sqlite3_bind_int64(statement, at, value));
}

void bind_opt_int(sqlite3_stmt *statement, int at, int64_t value)
{
    bound(value < 0 ? sqlite3_bind_null(statement, at)
                    : sqlite3_bind_int64(statement, at, value));
}

void bind_real(sqlite3_stmt *statement, int at, double value)
{
    bound(sqlite3_bind_double(statement, at, value));
}

void bind_opt_real(sqlite3_stmt *statement, int at, double value)
{
    bound(value < 0 ? sqlite3_bind_null(statement, at)
                    : sqlite3_bind_double(statement, at, value));
}

void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    bound(sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC));
}

void bind_bytes(sqlite3_stmt *statement, int at, const void *data, size_t size)
{
    /* An empty document is still a document: a NULL pointer would bind NULL. */
    bound(size ? sqlite3_bind_blob64(statement, at, data, size, SQLITE_STATIC)
               : sqlite3_bind_zeroblob(statement, at, 0));
}

int64_t column_int(sqlite3_stmt *statement, int at, int64_t absent)
{
    return sqlite3_column_type(statement, at) == SQLITE_NULL ? absent
                                                             : sqlite3_column_int64(statement, at);
}

double column_real(sqlite3_stmt *statement, int at, double absent)
{
    return sqlite3_column_type(statement, at) == SQLITE_NULL ? absent
                                                             : sqlite3_column_double(statement, at);
}

char *column_text(sqlite3_stmt *statement, int at)
{
    return mem_strdup((const char *)sqlite3_column_text(statement, at));
}
