/* test_store_crash.c - a writer killed at any point leaves whole transactions and a sound file; a
 * reader works while it writes, after it stopped and after it was killed, also one that may not
 * write the folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "model/base/mem.h"
#include "tests/support/store_support.h"

#define NOBODY 65534

/* Cycle after cycle until killed; a byte to the pipe after each commit. */
static void write_for_ever(const char *path, int pipe_fd)
{
    struct err err = ERR_INIT;
    struct store *store = NULL;
    struct model *model = store_support_large_model(40, 200);
    struct analysis *analysis = analysis_new();
    *ARRAY_PUSH(analysis->rows, analysis->n_rows) =
        (struct affinity){LEVEL_INSTANCE, 0, 1, 0.5, 1, 1};
    if (store_open(path, &store, &err)) {
        _exit(1);
    }
    for (;;) {
        int64_t id = 0;
        if (store_begin(store, &err) ||
            store_cycle_new(store, "shop", "timer", "planning", false, -1, 1, &id, &err) ||
            store_snapshot_save(store, id, "base", model, "{\"whole\":true}", 14, &err) ||
            store_analysis_save(store, id, analysis, model, "{}", 2, &err) ||
            store_commit(store, &err) || write(pipe_fd, "c", 1) != 1) {
            _exit(2);
        }
    }
}

/* All or nothing: every cycle has all its rows. */
static void assert_whole(struct store *store)
{
    AUTO_FREE char *check = store_support_text(store, "SELECT * FROM pragma_integrity_check");
    assert_string_equal(check, "ok\n");
    AUTO_FREE char *foreign = store_support_text(store, "SELECT * FROM pragma_foreign_key_check");
    assert_string_equal(foreign, "");
    assert_int_equal(
        store_support_number(store,
                             "SELECT count(*) FROM cycles c WHERE"
                             " (SELECT count(*) FROM v_edges e WHERE e.cycle_id = c.cycle_id) <> 200"
                             " OR (SELECT count(*) FROM snapshots s JOIN instances i USING"
                             " (snapshot_id) WHERE s.cycle_id = c.cycle_id) <> 40"
                             " OR (SELECT count(*) FROM affinities a WHERE a.cycle_id = c.cycle_id)"
                             " <> 1"
                             " OR (SELECT count(*) FROM documents d WHERE d.cycle_id = c.cycle_id)"
                             " <> 2"),
        0);
}

static void test_kill_when_anywhere_then_whole_transactions_and_sound_file(void **state)
{
    struct store_fixture *fixture = *state;
    unsigned seed = 12345;
    int64_t committed = 0;
    for (int round = 0; round < 12; round++) {
        struct err err = ERR_INIT;
        int fds[2], status;
        char c;
        store_close(fixture->store);
        fixture->store = NULL;
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        if (pid == 0) {
            write_for_ever(fixture->path, fds[1]);
        }
        close(fds[1]);
        for (unsigned i = 0; i < 1 + seed % 4; i++) { /* some commits, then anywhere */
            assert_int_equal(read(fds[0], &c, 1), 1);
            committed++;
        }
        seed = seed * 1103515245 + 12345;
        usleep(seed / 65536 % 4000); /* where in the next transaction it dies, not a wait for it */
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        while (read(fds[0], &c, 1) == 1) {
            committed++;
        }
        close(fds[0]);
        assert_int_equal(store_open(fixture->path, &fixture->store, &err), 0);
        assert_whole(fixture->store);
        int64_t there = store_support_number(fixture->store, "SELECT count(*) FROM cycles");
        assert_true(there >= committed); /* what was committed is durable */
        committed = there;               /* one may be in the file whose byte was not written */
    }
}

/* As a user of the file's group, who may read the folder but not write it. 0 when it can read. */
static int read_as_group_member(const char *path)
{
    if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)) {
        return 10;
    }
    struct err err = ERR_INIT;
    struct store *store = NULL;
    if (store_open_read(path, &store, &err)) {
        print_error("%s\n", err.text);
        return 11;
    }
    int rc = store_support_number(store, "SELECT count(*) FROM v_cycles") >= 1 ? 0 : 12;
    store_close(store);
    return rc;
}

static int read_in_child(const char *path, bool as_other)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct err err = ERR_INIT;
        struct store *store = NULL;
        if (as_other) {
            _exit(read_as_group_member(path));
        }
        if (store_open_read(path, &store, &err)) {
            _exit(11);
        }
        int64_t n = store_support_number(store, "SELECT count(*) FROM v_cycles");
        store_close(store);
        _exit(n >= 1 ? 0 : 12);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Gives folder and files to the group of `nobody`, as an operator gives them to a group of readers.
 * False when the test does not run as root: then only the ordinary reader is tried. */
static bool give_to_group(struct store_fixture *fixture)
{
    if (geteuid() != 0) {
        print_message("not root: the reader of another user is not tried\n");
        return false;
    }
    AUTO_FREE char *folder = mem_printf("%s/state", fixture->dir);
    assert_int_equal(chmod(fixture->dir, 0755), 0);
    assert_int_equal(chown(folder, 0, NOBODY), 0);
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        AUTO_FREE char *file = mem_printf("%s%s", fixture->path, suffixes[i]);
        assert_int_equal(chown(file, 0, NOBODY), 0);
    }
    return true;
}

static void test_reader_when_daemon_runs_then_reads(void **state)
{
    struct store_fixture *fixture = *state;
    store_support_cycle(fixture->store);
    bool other = give_to_group(fixture);
    assert_int_equal(read_in_child(fixture->path, false), 0);
    if (other) {
        assert_int_equal(read_in_child(fixture->path, true), 0);
    }
}

static void test_reader_when_daemon_stopped_then_reads(void **state)
{
    struct store_fixture *fixture = *state;
    store_support_cycle(fixture->store);
    bool other = give_to_group(fixture);
    store_close(fixture->store);
    fixture->store = NULL;
    AUTO_FREE char *wal = mem_printf("%s-wal", fixture->path);
    assert_int_equal(access(wal, F_OK), 0); /* persistent: a reader could not make it */
    if (other) {
        assert_int_equal(read_in_child(fixture->path, true), 0);
    }
    assert_int_equal(read_in_child(fixture->path, false), 0);
}

static void test_reader_when_daemon_was_killed_then_reads(void **state)
{
    struct store_fixture *fixture = *state;
    int fds[2], status;
    char c;
    bool other = give_to_group(fixture);
    store_close(fixture->store);
    fixture->store = NULL;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        write_for_ever(fixture->path, fds[1]);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &c, 1), 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(fds[0]);
    if (other) {
        assert_int_equal(read_in_child(fixture->path, true), 0);
    }
    assert_int_equal(read_in_child(fixture->path, false), 0);
}

static void test_reader_when_writer_writes_then_each_state_is_whole(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    int fds[2], status;
    char c;
    AUTO(store) struct store *reader = NULL;
    assert_int_equal(store_open_read(fixture->path, &reader, &err), 0);
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        write_for_ever(fixture->path, fds[1]);
    }
    close(fds[1]);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(read(fds[0], &c, 1), 1);
        int64_t ends = store_support_number(
            reader, "SELECT count(*) FROM (SELECT count(*) AS n FROM v_edges GROUP BY cycle_id)"
                    " WHERE n <> 200");
        assert_int_equal(ends, 0);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(fds[0]);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_kill_when_anywhere_then_whole_transactions_and_sound_file),
        STORE_TEST(test_reader_when_daemon_runs_then_reads),
        STORE_TEST(test_reader_when_daemon_stopped_then_reads),
        STORE_TEST(test_reader_when_daemon_was_killed_then_reads),
        STORE_TEST(test_reader_when_writer_writes_then_each_state_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
