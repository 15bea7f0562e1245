/* test_store.c - opening, migrating, promised views, transactions, failing writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "model/base/file.h"
#include "model/base/mem.h"
#include "tests/support/store_support.h"
#include "tests/support/temp_dir.h"

/* Runs SQL on the file beside the store, as a shell would. */
static void shell(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) {
        fail_msg("%s: %s", sql, why);
    }
    sqlite3_close(db);
}

static void reopen(struct store_fixture *fixture)
{
    struct err err = ERR_INIT;
    store_close(fixture->store);
    fixture->store = NULL;
    assert_int_equal(store_open(fixture->path, &fixture->store, &err), 0);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void test_open_when_new_then_private_file_in_private_folder(void **state)
{
    struct store_fixture *fixture = *state;
    AUTO_FREE char *folder = mem_printf("%s/state", fixture->dir);
    AUTO_FREE char *wal = mem_printf("%s-wal", fixture->path);
    AUTO_FREE char *shm = mem_printf("%s-shm", fixture->path);
    store_support_cycle(fixture->store);
    assert_int_equal(mode_of(folder), 0750);
    assert_int_equal(mode_of(fixture->path), 0640);
    assert_int_equal(mode_of(wal), 0640);
    assert_int_equal(mode_of(shm), 0640);
}

static void test_open_when_new_then_settings_hold(void **state)
{
    struct store_fixture *fixture = *state;
    struct store *store = fixture->store;
    AUTO_FREE char *journal = store_support_text(store, "SELECT * FROM pragma_journal_mode");
    assert_string_equal(journal, "wal\n");
    assert_int_equal(store_support_number(store, "SELECT * FROM pragma_synchronous"), 2);
    assert_int_equal(store_support_number(store, "SELECT * FROM pragma_foreign_keys"), 1);
    assert_int_equal(store_support_number(store, "SELECT * FROM pragma_auto_vacuum"), 2);
    assert_int_equal(store_support_number(store, "SELECT count(*) FROM pragma_table_list"
                                                 " WHERE schema = 'main' AND type = 'table'"
                                                 " AND name NOT LIKE 'sqlite_%' AND NOT strict"),
                     0);
    assert_true(store_support_number(store, "SELECT * FROM pragma_user_version") >= 1);
}

static void test_schema_when_shown_then_comments_are_there(void **state)
{
    struct store_fixture *fixture = *state;
    AUTO_FREE char *sql =
        store_support_text(fixture->store, "SELECT sql FROM sqlite_schema WHERE name = 'messages'");
    assert_non_null(strstr(sql, "NULL: unknown (never 0 for unknown)"));
}

/* contract.md 4, to the letter: renaming or removing one is a new version of the contract. */
static void test_views_when_asked_then_promised_columns_are_there(void **state)
{
    static const char *const views[][24] = {
        {"v_placement", "app", "cycle_id", "taken_ms", "host", "service", "instance",
         "cpu_used_millis", "mem_used_bytes", "cpu_share", "mem_share"},
        {"v_cycles", "cycle_id", "app", "trigger", "state", "reason", "started_ms", "ended_ms",
         "moves_planned", "moves_applied"},
        {"v_edges", "cycle_id", "src", "dst", "src_host", "dst_host", "count", "bytes", "mean_ms",
         "crosses"},
        {"v_affinity", "cycle_id", "level", "a", "b", "degree"},
        {"v_plans", "cycle_id", "requested", "planner", "why", "objective", "granularity", "status",
         "cut", "affinity_before", "affinity_after", "affinity_bound", "gap", "hosts_before",
         "hosts_after", "hosts_bound", "restarts", "coverage", "solve_ms", "unordered"},
        {"v_moves", "cycle_id", "seq", "service", "instance", "source", "target", "gain", "state",
         "reason", "intended_ms", "settled_ms", "undo_of", "detour"},
        {"v_savings", "cycle_id", "app", "hosts_before", "hosts_predicted", "hosts_realised",
         "affinity_before", "affinity_predicted", "affinity_realised", "response_before_ms",
         "response_predicted_ms", "response_realised_ms"},
        {"v_events", "event_id", "at_ms", "app", "kind", "cycle_id", "text"},
    };
    struct store_fixture *fixture = *state;
    for (size_t v = 0; v < ARRAY_LEN(views); v++) {
        AUTO_FREE char *sql = mem_printf("PRAGMA table_info(%s)", views[v][0]);
        AUTO_FREE char *columns = store_support_text(fixture->store, sql);
        for (size_t c = 1; c < ARRAY_LEN(views[v]) && views[v][c]; c++) {
            AUTO_FREE char *named = mem_printf("|%s|", views[v][c]);
            if (!strstr(columns, named)) {
                fail_msg("%s has no column %s", views[v][0], views[v][c]);
            }
        }
    }
}

static void test_open_when_there_then_rows_stay_and_ids_go_on(void **state)
{
    struct store_fixture *fixture = *state;
    int64_t first = store_support_cycle(fixture->store);
    reopen(fixture);
    assert_int_equal(store_support_cycle(fixture->store), first + 1);
}

static void test_open_when_newer_then_refused_and_untouched(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    struct store *other = NULL;
    int64_t version = store_support_number(fixture->store, "SELECT * FROM pragma_user_version");
    AUTO_FREE char *back = mem_printf("PRAGMA user_version = %lld", (long long)version);
    store_close(fixture->store);
    fixture->store = NULL;
    shell(fixture->path, "PRAGMA user_version = 9999");
    assert_int_equal(store_open(fixture->path, &other, &err), -1);
    assert_int_equal(err.kind, ERR_CONFLICT);
    assert_non_null(strstr(err.text, fixture->path));
    assert_non_null(strstr(err.text, "9999"));
    assert_int_equal(store_open_read(fixture->path, &other, &err), -1);
    assert_int_equal(err.kind, ERR_CONFLICT);
    assert_null(other);
    shell(fixture->path, back);
    assert_int_equal(store_open(fixture->path, &fixture->store, &err), 0);
}

static void test_open_when_foreign_database_then_refused(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    struct store *other = NULL;
    AUTO_FREE char *path = mem_printf("%s/foreign.db", fixture->dir);
    shell(path, "CREATE TABLE bookmarks (url TEXT)");
    assert_int_equal(store_open(path, &other, &err), -1);
    assert_int_equal(err.kind, ERR_CONFLICT);
    AUTO_FREE char *text = mem_printf("%s/text.db", fixture->dir);
    static const char prose[] = "this is no database, however long one reads: it is only prose, and "
                                "more of it than a header has bytes in it";
    assert_int_equal(file_write_atomic(text, prose, sizeof prose, 0600, &err), 0);
    assert_int_equal(store_open(text, &other, &err), -1);
    assert_int_equal(err.kind, ERR_IO);
    assert_non_null(strstr(err.text, "text.db"));
}

static void test_open_read_when_absent_or_empty_then_not_found(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    struct store *other = NULL;
    AUTO_FREE char *path = mem_printf("%s/none.db", fixture->dir);
    assert_int_equal(store_open_read(path, &other, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(file_write_atomic(path, "", 0, 0600, &err), 0);
    assert_int_equal(store_open_read(path, &other, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

static void test_open_when_folder_is_a_file_then_io_error(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    struct store *other = NULL;
    AUTO_FREE char *path = mem_printf("%s/below/store.db", fixture->path);
    assert_int_equal(store_open(path, &other, &err), -1);
    assert_int_equal(err.kind, ERR_IO);
}

static void test_reader_when_writing_then_refused(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    AUTO(store) struct store *reader = NULL;
    assert_int_equal(store_open_read(fixture->path, &reader, &err), 0);
    assert_int_equal(store_event_add(reader, NULL, "note", 0, "no", 1, NULL, &err), -1);
    assert_int_equal(err.kind, ERR_IO);
    assert_int_equal(store_support_number(reader, "SELECT count(*) FROM v_events"), 0);
}

static void test_reader_when_transaction_then_one_state_is_seen(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    AUTO(store) struct store *reader = NULL;
    assert_int_equal(store_open_read(fixture->path, &reader, &err), 0);
    assert_int_equal(store_begin(reader, &err), 0);
    assert_int_equal(store_support_number(reader, "SELECT count(*) FROM v_cycles"), 0);
    store_support_cycle(fixture->store);
    assert_int_equal(store_support_number(reader, "SELECT count(*) FROM v_cycles"), 0);
    assert_int_equal(store_commit(reader, &err), 0);
    assert_int_equal(store_support_number(reader, "SELECT count(*) FROM v_cycles"), 1);
}

static void test_transaction_when_rolled_back_then_nothing_is_left(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    assert_int_equal(store_begin(fixture->store, &err), 0);
    store_support_cycle(fixture->store);
    store_rollback(fixture->store);
    store_rollback(fixture->store);
    assert_int_equal(store_support_number(fixture->store, "SELECT count(*) FROM cycles"), 0);
    assert_int_equal(store_begin(fixture->store, &err), 0);
    store_support_cycle(fixture->store);
    assert_int_equal(store_commit(fixture->store, &err), 0);
    assert_int_equal(store_support_number(fixture->store, "SELECT count(*) FROM cycles"), 1);
}

static void test_transaction_when_one_call_failed_then_commit_fails_whole(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    assert_int_equal(store_begin(fixture->store, &err), 0);
    store_support_cycle(fixture->store);
    assert_int_equal(store_event_add(fixture->store, NULL, "note", 777, "no such cycle", 1, NULL, &err), -1);
    assert_int_equal(store_event_add(fixture->store, NULL, "note", 0, "after it", 1, NULL, &err), -1);
    assert_int_equal(store_commit(fixture->store, &err), -1);
    assert_int_equal(store_support_number(fixture->store, "SELECT count(*) FROM cycles"), 0);
    store_support_cycle(fixture->store);
    assert_int_equal(store_support_number(fixture->store, "SELECT count(*) FROM cycles"), 1);
}

/* In a child whose files may not grow further: what SQLite sees is what a full disk gives. */
static int write_when_full(const char *path)
{
    struct err err = ERR_INIT;
    struct store *store = NULL;
    AUTO(model) struct model *model = store_support_large_model(300, 3000);
    AUTO_FREE char *text = mem_alloc(200000);
    memset(text, 'x', 199999);
    if (store_open(path, &store, &err)) {
        return 1;
    }
    int64_t id = store_support_cycle(store);
    struct rlimit limit = {100000, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit)) {
        return 2;
    }
    if (store_snapshot_save(store, id, "base", model, text, 199999, &err) != -1 ||
        err.kind != ERR_IO || !strstr(err.text, path) || strlen(err.text) < strlen(path) + 8) {
        print_error("%s\n", err.text);
        return 3;
    }
    if (store_support_number(store, "SELECT (SELECT count(*) FROM snapshots)"
                                    " + (SELECT count(*) FROM hosts)"
                                    " + (SELECT count(*) FROM documents)") != 0) {
        return 4;
    }
    limit.rlim_cur = RLIM_INFINITY; /* room again: the same handle works */
    if (setrlimit(RLIMIT_FSIZE, &limit) ||
        store_snapshot_save(store, id, "base", model, text, 199999, &err)) {
        print_error("%s\n", err.text);
        return 5;
    }
    int rc = store_support_number(store, "SELECT count(*) FROM messages") == 3000 ? 0 : 6;
    store_close(store);
    return rc;
}

static void test_write_when_disk_is_full_then_nothing_is_kept_and_handle_lives(void **state)
{
    struct store_fixture *fixture = *state;
    AUTO_FREE char *path = mem_printf("%s/full.db", fixture->dir);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(write_when_full(path));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_write_when_pages_run_out_then_reason_is_sqlites(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_large_model(300, 3000);
    int64_t id = store_support_cycle(fixture->store);
    store_support_number(fixture->store, "PRAGMA max_page_count = 45");
    assert_int_equal(store_snapshot_save(fixture->store, id, "base", model, "{}", 2, &err), -1);
    assert_int_equal(err.kind, ERR_IO);
    assert_non_null(strstr(err.text, "full"));
    assert_int_equal(store_support_number(fixture->store, "SELECT count(*) FROM hosts"), 0);
    store_support_number(fixture->store, "PRAGMA max_page_count = 1000000");
    assert_int_equal(store_snapshot_save(fixture->store, id, "base", model, "{}", 2, &err), 0);
}

static void test_writable_when_room_then_ok_also_beside_another_writer(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    AUTO(store) struct store *other = NULL;
    assert_int_equal(store_writable(fixture->store, &err), 0);
    assert_int_equal(store_open(fixture->path, &other, &err), 0);
    assert_int_equal(store_begin(other, &err), 0);
    assert_int_equal(store_writable(fixture->store, &err), 0);
    store_rollback(other);
    assert_int_equal(store_writable(fixture->store, &err), 0);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_open_when_new_then_private_file_in_private_folder),
        STORE_TEST(test_open_when_new_then_settings_hold),
        STORE_TEST(test_schema_when_shown_then_comments_are_there),
        STORE_TEST(test_views_when_asked_then_promised_columns_are_there),
        STORE_TEST(test_open_when_there_then_rows_stay_and_ids_go_on),
        STORE_TEST(test_open_when_newer_then_refused_and_untouched),
        STORE_TEST(test_open_when_foreign_database_then_refused),
        STORE_TEST(test_open_read_when_absent_or_empty_then_not_found),
        STORE_TEST(test_open_when_folder_is_a_file_then_io_error),
        STORE_TEST(test_reader_when_writing_then_refused),
        STORE_TEST(test_reader_when_transaction_then_one_state_is_seen),
        STORE_TEST(test_transaction_when_rolled_back_then_nothing_is_left),
        STORE_TEST(test_transaction_when_one_call_failed_then_commit_fails_whole),
        STORE_TEST(test_write_when_disk_is_full_then_nothing_is_kept_and_handle_lives),
        STORE_TEST(test_write_when_pages_run_out_then_reason_is_sqlites),
        STORE_TEST(test_writable_when_room_then_ok_also_beside_another_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
