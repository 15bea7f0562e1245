/* The locks of the run directory. flock belongs to the open file, so one process can play both
 * daemons. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "model/base/mem.h"
#include "model/wire/rundir.h"

static int make_dir(void **state)
{
    char *dir = mem_strdup("/tmp/remap-rundir-XXXXXX");
    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int drop_dir(void **state)
{
    static const char *const names[] = {"lock", "stages.lock"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *path = mem_printf("%s/%s", (char *)*state, names[i]);
        unlink(path);
    }
    rmdir(*state);
    free(*state);
    return 0;
}

static void test_rundir_when_locked_refuses_a_second_with_its_pid(void **state)
{
    struct err err = ERR_INIT;
    int first, second = -7;
    int64_t pid = 0;
    char line[200];
    assert_false(rundir_daemon_runs(*state, NULL));
    assert_int_equal(rundir_lock(*state, 0, &first, &err), 0);
    assert_true(rundir_daemon_runs(*state, &pid));
    assert_int_equal(pid, getpid());
    assert_int_equal(rundir_lock(*state, 0, &second, &err), -1);
    assert_int_equal(err.kind, ERR_CONFLICT);
    snprintf(line, sizeof line, "%s: another remap (pid %d) runs here", (char *)*state,
             (int)getpid());
    assert_string_equal(err.text, line);
    assert_int_equal(second, -7);
    assert_true(fcntl(first, F_GETFD) & FD_CLOEXEC);
    close(first);
    assert_false(rundir_daemon_runs(*state, NULL));
    assert_int_equal(rundir_lock(*state, 0, &first, &err), 0);
    close(first);
}

static void test_rundir_when_a_stage_lives_waits_for_its_end(void **state)
{
    struct err err = ERR_INIT;
    int lock;
    int ready[2], end[2];
    assert_int_equal(pipe(ready) | pipe(end), 0);
    pid_t stage = fork();
    if (stage == 0) {
        char c;
        close(end[1]);
        int joined = rundir_join(*state, &err);
        if (write(ready[1], "x", 1) != 1 || read(end[0], &c, 1) != 0) {
            _exit(2);
        }
        _exit(joined < 0);
    }
    char c;
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(rundir_lock(*state, 0, &lock, &err), -1);
    assert_int_equal(err.kind, ERR_CONFLICT);
    assert_false(rundir_daemon_runs(*state, NULL)); /* the refused one holds nothing */
    close(end[1]);
    assert_int_equal(rundir_lock(*state, 10000, &lock, &err), 0);
    int status;
    assert_int_equal(waitpid(stage, &status, 0), stage);
    assert_int_equal(status, 0);
    close(lock);
    close(ready[0]);
    close(ready[1]);
    close(end[0]);
}

static void test_rundir_when_made_is_for_its_owner_only(void **state)
{
    struct err err = ERR_INIT;
    struct stat st;
    int lock;
    AUTO_FREE char *inner = mem_printf("%s/a/b", (char *)*state);
    AUTO_FREE char *middle = mem_printf("%s/a", (char *)*state);
    AUTO_FREE char *lock_file = mem_printf("%s/lock", inner);
    AUTO_FREE char *stages_file = mem_printf("%s/stages.lock", inner);
    assert_int_equal(rundir_lock(inner, 0, &lock, &err), 0);
    assert_int_equal(stat(inner, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    close(lock);
    unlink(lock_file);
    unlink(stages_file);
    rmdir(inner);
    rmdir(middle);
}

static void test_rundir_when_the_path_is_too_long_says_how_long_it_may_be(void **state)
{
    (void)state;
    char out[RUNDIR_ENDPOINT_SIZE], dir[128];
    struct err err = ERR_INIT;
    memset(dir, 'd', sizeof dir);
    dir[0] = '/';
    dir[103] = '\0'; /* with "/bus" 107 bytes: the longest there is */
    assert_int_equal(rundir_endpoint(dir, out, &err), 0);
    assert_int_equal(strlen(out), 6 + 107);
    dir[103] = 'd';
    dir[104] = '\0';
    assert_int_equal(rundir_endpoint(dir, out, &err), -1);
    assert_int_equal(err.kind, ERR_CONFIG);
    assert_non_null(strstr(err.text, "108 bytes, a socket's path may have 107"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rundir_when_locked_refuses_a_second_with_its_pid,
                                        make_dir, drop_dir),
        cmocka_unit_test_setup_teardown(test_rundir_when_a_stage_lives_waits_for_its_end, make_dir,
                                        drop_dir),
        cmocka_unit_test_setup_teardown(test_rundir_when_made_is_for_its_owner_only, make_dir,
                                        drop_dir),
        cmocka_unit_test(test_rundir_when_the_path_is_too_long_says_how_long_it_may_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
