/* rundir.c - the two locks of the run directory (design.md 3). flock(2) is used, not fcntl(2): it
 * belongs to the open file, so a forked solver keeps its stage's lock, and the kernel drops it with
 * the last holder however that ends. */
#include "model/wire/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/un.h>
#include <unistd.h>
#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/mem.h"

#define POLL_MS 20 /* flock has no timeout; a waiting start is noticed within this */
/* rundir_daemon_runs() of a `remap status` holds the lock for microseconds: another daemon is one
 * that still has it after this. */
#define LOCK_WAIT_MS 200

int rundir_endpoint(const char *run_dir, char out[RUNDIR_ENDPOINT_SIZE], struct err *err)
{
    static const char name[] = "/bus";
    size_t room = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1; /* 107 */
    size_t length = strlen(run_dir) + sizeof name - 1;
    if (length > room) {
        return err_set(err, ERR_CONFIG,
                       "%s%s: %zu bytes, a socket's path may have %zu; choose a shorter --run-dir",
                       run_dir, name, length, room);
    }
    snprintf(out, RUNDIR_ENDPOINT_SIZE, "ipc://%s%s", run_dir, name);
    return 0;
}

/* Opens RUNDIR/name for locking; -1 and *err. */
static int lock_open(const char *run_dir, const char *name, struct err *err)
{
    AUTO_FREE char *path = mem_printf("%s/%s", run_dir, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    }
    return fd;
}

static int64_t lock_read_pid(int fd)
{
    char text[32] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    return n > 0 ? strtoll(text, NULL, 10) : 0;
}

static int lock_write_pid(int fd, const char *run_dir, struct err *err)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%lld\n", (long long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n) {
        return err_set(err, ERR_IO, "%s/lock: %s", run_dir, strerror(errno));
    }
    return 0;
}

/* Takes an exclusive flock within wait_ms. Returns 0, or the errno (EWOULDBLOCK: still held). */
static int lock_take(int fd, int64_t wait_ms)
{
    int64_t until = clock_mono_ms() + wait_ms;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || clock_mono_ms() >= until) {
            return errno;
        }
        clock_sleep_ms(POLL_MS);
    }
    return 0;
}

static int stages_wait(const char *run_dir, int64_t wait_ms, struct err *err)
{
    int fd = lock_open(run_dir, "stages.lock", err);
    if (fd < 0) {
        return -1;
    }
    int why = lock_take(fd, wait_ms);
    close(fd); /* drops the lock: our own stages may share it now */
    if (why == EWOULDBLOCK) {
        return err_set(err, ERR_CONFLICT, "%s: stages of an earlier remap still run after %lld ms",
                       run_dir, (long long)wait_ms);
    }
    return why ? err_set(err, ERR_IO, "%s/stages.lock: %s", run_dir, strerror(why)) : 0;
}

int rundir_lock(const char *run_dir, int64_t wait_ms, int *out_fd, struct err *err)
{
    char endpoint[RUNDIR_ENDPOINT_SIZE];
    if (rundir_endpoint(run_dir, endpoint, err) < 0 || file_make_dirs(run_dir, 0700, err) < 0) {
        return -1;
    }
    int fd = lock_open(run_dir, "lock", err);
    if (fd < 0) {
        return -1;
    }
    int why = lock_take(fd, LOCK_WAIT_MS);
    if (why == EWOULDBLOCK) {
        err_set(err, ERR_CONFLICT, "%s: another remap (pid %lld) runs here", run_dir,
                (long long)lock_read_pid(fd));
    } else if (why) {
        err_set(err, ERR_IO, "%s/lock: %s", run_dir, strerror(why));
    }
    if (why || lock_write_pid(fd, run_dir, err) < 0 || stages_wait(run_dir, wait_ms, err) < 0) {
        close(fd);
        return -1;
    }
    *out_fd = fd;
    return 0;
}

int rundir_join(const char *run_dir, struct err *err)
{
    int fd = lock_open(run_dir, "stages.lock", err);
    if (fd < 0) {
        return -1;
    }
    /* Children of a stage hold the lock by inheriting the open file; exec would drop it, so the
     * descriptor stays open across exec too. It is never closed: it lives as long as the stage. */
    if (fcntl(fd, F_SETFD, 0) < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0) {
        int why = errno;
        close(fd);
        return err_set(err, why == EWOULDBLOCK ? ERR_CONFLICT : ERR_IO, "%s/stages.lock: %s",
                       run_dir, why == EWOULDBLOCK ? "a new remap is starting" : strerror(why));
    }
    return 0;
}

bool rundir_daemon_runs(const char *run_dir, int64_t *pid)
{
    AUTO_FREE char *path = mem_printf("%s/lock", run_dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool runs = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (runs && pid) {
        *pid = lock_read_pid(fd);
    }
    close(fd);
    return runs;
}
