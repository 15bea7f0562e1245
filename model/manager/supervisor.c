/* supervisor.c - the doing beside policy.c: fork, wait, signal. A stage is tied to `remap` three
 * times over: SIGKILL by PDEATHSIG, the end of the lifeline pipe, and stages.lock (design.md 3). */
#include "model/manager/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "model/base/clock.h"
#include "model/manager/filter.h"
#include "model/manager/policy.h"
#include "model/wire/rundir.h"

struct child {
    struct supervisor *supervisor;
    enum party party;
    char *path, *name;
    pid_t pid; /* 0: not running */
    bool busy;
    int64_t started_ms, starts;
    int64_t timer; /* of the next start; 0 none */
    struct restarts restarts;
};

struct supervisor {
    struct loop *loop;
    const struct supervisor_events *events;
    void *ctx;
    char *run_dir;
    char endpoint[RUNDIR_ENDPOINT_SIZE];
    int lifeline[2];                /* [0] for the stages, [1] is ours alone */
    struct child children[PARTY_N]; /* the stages; other parties stay zero */
    bool stopping, told_stopped;
    int64_t kill_timer, nobody_timer;
};

static struct child *child_of(struct supervisor *s, enum party stage)
{
    assert(stage >= PARTY_MONITOR && stage <= PARTY_EXECUTOR);
    return &s->children[stage];
}

/* In the child, between fork and exec: only what is async-signal-safe. */
static void child_exec(const struct child *child, char *const argv[], pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(127); /* it died before prctl could know */
    }
    /* Whatever the manager has open stays the manager's, but for the lifeline. */
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    fcntl(child->supervisor->lifeline[0], F_SETFD, 0);
    execv(child->path, argv);
    _exit(127);
}

static int child_fork(struct child *child, struct err *err)
{
    struct supervisor *s = child->supervisor;
    char fd_text[16];
    snprintf(fd_text, sizeof fd_text, "%d", s->lifeline[0]);
    char *argv[] = {child->name, (char *)"--bus",     s->endpoint, (char *)"--lifeline",
                    fd_text,     (char *)"--run-dir", s->run_dir,  NULL};
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0) {
        return err_set(err, ERR_IO, "%s: fork: %s", child->name, strerror(errno));
    }
    if (pid == 0) {
        child_exec(child, argv, parent);
    }
    child->pid = pid;
    child->starts++;
    child->started_ms = clock_mono_ms();
    return 0;
}

static void child_start(void *ctx)
{
    struct child *child = ctx;
    struct supervisor *s = child->supervisor;
    struct err err = ERR_INIT;
    child->timer = 0;
    if (s->stopping) {
        return;
    }
    if (child_fork(child, &err) < 0) {
        s->events->gave_up(s->ctx, child->party, err.text);
        return;
    }
    s->events->started(s->ctx, child->party, child->pid);
}

static void status_text(int status, char *out, size_t size)
{
    if (WIFSIGNALED(status)) {
        snprintf(out, size, "signal %d (%s)%s", WTERMSIG(status), strsignal(WTERMSIG(status)),
                 WCOREDUMP(status) ? ", core dumped" : "");
    } else {
        snprintf(out, size, "exit code %d", WEXITSTATUS(status));
    }
}

static void supervisor_check_stopped(struct supervisor *s)
{
    if (!s->stopping || s->told_stopped) {
        return;
    }
    for (int p = 0; p < PARTY_N; p++) {
        if (s->children[p].pid) {
            return;
        }
    }
    loop_timer_cancel(s->loop, s->kill_timer);
    s->told_stopped = true;
    s->events->stopped(s->ctx);
}

static void child_died(struct child *child, int status)
{
    struct supervisor *s = child->supervisor;
    char how[96];
    int64_t pid = child->pid;
    status_text(status, how, sizeof how);
    child->pid = 0;
    if (s->stopping) {
        s->events->died(s->ctx, child->party, pid, how);
        return;
    }
    struct restart_decision next =
        restarts_died(&child->restarts, child->started_ms, clock_mono_ms(), child->busy);
    if (!next.give_up) {
        child->timer = loop_timer(s->loop, next.delay_ms, child_start, child);
    }
    s->events->died(s->ctx, child->party, pid, how);
    if (next.give_up) {
        char line[256];
        snprintf(line, sizeof line, "%s died %d times within %d s without a request (last: %s)",
                 child->name, RESTART_IDLE_DEATHS, RESTART_IDLE_MS / 1000, how);
        s->events->gave_up(s->ctx, child->party, line);
    }
}

static void supervisor_sigchld(void *ctx, int signo)
{
    (void)signo;
    struct supervisor *s = ctx;
    for (int p = 0; p < PARTY_N; p++) {
        int status;
        struct child *child = &s->children[p];
        if (child->pid && waitpid(child->pid, &status, WNOHANG) == child->pid) {
            child_died(child, status);
        }
    }
    supervisor_check_stopped(s);
}

static int supervisor_prepare(struct supervisor *s, const char *stages_dir, struct err *err)
{
    for (enum party p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++) {
        struct child *child = &s->children[p];
        child->supervisor = s;
        child->party = p;
        if (stage_path(p, stages_dir, &child->path, err) < 0) {
            return -1;
        }
        child->name = mem_printf("remap-%s", party_name(p));
    }
    if (rundir_endpoint(s->run_dir, s->endpoint, err) < 0) {
        return -1;
    }
    if (pipe2(s->lifeline, O_CLOEXEC) < 0) {
        return err_set(err, ERR_IO, "pipe: %s", strerror(errno));
    }
    return loop_signal(s->loop, SIGCHLD, supervisor_sigchld, s, err);
}

int supervisor_open(struct loop *loop, const char *run_dir, const char *stages_dir,
                    const struct supervisor_events *events, void *ctx, struct supervisor **out,
                    struct err *err)
{
    AUTO(supervisor) struct supervisor *s = mem_alloc(sizeof *s);
    s->loop = loop;
    s->events = events;
    s->ctx = ctx;
    s->run_dir = mem_strdup(run_dir);
    s->lifeline[0] = s->lifeline[1] = -1;
    if (supervisor_prepare(s, stages_dir, err) < 0) {
        return -1;
    }
    for (enum party p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++) {
        s->children[p].timer = loop_timer(loop, 0, child_start, &s->children[p]);
    }
    *out = steal(s);
    return 0;
}

static void child_end(struct child *child)
{
    int status;
    loop_timer_cancel(child->supervisor->loop, child->timer);
    if (child->pid) {
        kill(child->pid, SIGKILL);
        while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    free(child->path);
    free(child->name);
}

void supervisor_free(struct supervisor *s)
{
    if (!s) {
        return;
    }
    for (int p = 0; p < PARTY_N; p++) {
        if (s->children[p].supervisor) {
            child_end(&s->children[p]);
        }
    }
    loop_timer_cancel(s->loop, s->kill_timer);
    loop_timer_cancel(s->loop, s->nobody_timer);
    loop_unsignal(s->loop, SIGCHLD);
    for (int i = 0; i < 2; i++) {
        if (s->lifeline[i] >= 0) {
            close(s->lifeline[i]);
        }
    }
    free(s->run_dir);
    free(s);
}

static void supervisor_signal_all(struct supervisor *s, int signo)
{
    for (int p = 0; p < PARTY_N; p++) {
        if (s->children[p].pid) {
            kill(s->children[p].pid, signo);
        }
    }
}

static void supervisor_kill_all(void *ctx)
{
    supervisor_signal_all(ctx, SIGKILL);
}

static void supervisor_nobody_left(void *ctx)
{
    struct supervisor *s = ctx;
    s->nobody_timer = 0;
    supervisor_check_stopped(s);
}

void supervisor_stop(struct supervisor *s, int64_t grace_ms)
{
    if (s->stopping) {
        return;
    }
    s->stopping = true;
    supervisor_signal_all(s, SIGTERM);
    s->kill_timer = loop_timer(s->loop, grace_ms, supervisor_kill_all, s);
    /* When nobody lives no SIGCHLD will come. Not from here: callers do not expect it yet. */
    s->nobody_timer = loop_timer(s->loop, 0, supervisor_nobody_left, s);
}

void supervisor_set_busy(struct supervisor *s, enum party stage, bool busy)
{
    child_of(s, stage)->busy = busy;
}

void supervisor_kill(struct supervisor *s, enum party stage)
{
    pid_t pid = child_of(s, stage)->pid;
    if (pid) {
        kill(pid, SIGKILL);
    }
}

int64_t supervisor_pid(struct supervisor *s, enum party stage)
{
    return child_of(s, stage)->pid;
}

int64_t supervisor_restarts(struct supervisor *s, enum party stage)
{
    int64_t starts = child_of(s, stage)->starts;
    return starts > 0 ? starts - 1 : 0;
}
