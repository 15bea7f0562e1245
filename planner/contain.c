/* contain.c - fork, shared memory, deadline. */
#include "planner/contain.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "model/base/clock.h"

/* A number that is told again and again: the newest, and what it was before the count of that. */
struct told {
    _Atomic uint64_t now, before; /* bits of doubles */
    _Atomic int64_t count;
};

/* Placements are written to the slot not in use, then `turn` says which is good. */
struct finding {
    size_t size;
    int n;
    _Atomic int turn; /* 0: none, 1 or 2: slot of the best */
    struct told bound, within, hosts, marks[FINDING_MARKS];
    _Atomic int64_t iterations;
    _Atomic int done;
    _Atomic int64_t count;
    bool cut, proven, killed, failed, counted;
    char why[200];
    struct value best[2];
    int64_t put_count[2];
    int at[]; /* 2 × n */
};

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void told_init(struct told *told, double value)
{
    atomic_store(&told->now, bits_of(value));
    atomic_store(&told->before, bits_of(value));
}

static void told_set(struct told *told, int64_t count, double value)
{
    if (atomic_load(&told->count) != count) {
        atomic_store(&told->before, atomic_load(&told->now));
        atomic_store(&told->count, count);
    }
    atomic_store(&told->now, bits_of(value));
}

static double told_before(const struct told *told, int64_t count)
{
    bool newer = atomic_load(&told->count) >= count;
    return double_of(atomic_load(newer ? &told->before : &told->now));
}

struct finding *finding_new(int n_instances)
{
    size_t size = sizeof(struct finding) + 2 * (size_t)n_instances * sizeof(int);
    struct finding *finding =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (finding == MAP_FAILED)
        return NULL;
    finding->size = size;
    finding->n = n_instances;
    told_init(&finding->bound, INFINITY);
    told_init(&finding->within, INFINITY);
    told_init(&finding->hosts, 0);
    return finding;
}

void finding_free(struct finding *finding)
{
    if (finding)
        munmap(finding, finding->size);
}

void finding_put(struct finding *finding, const int *at, const struct value *best)
{
    int turn = atomic_load(&finding->turn), slot = turn == 1 ? 1 : 0;
    int64_t count = atomic_load(&finding->count);
    /* Of one count only the newest is kept, so that the other slot is of a count before. */
    if (finding->counted && turn > 0 && finding->put_count[turn - 1] == count)
        slot = turn - 1;
    finding->put_count[slot] = count;
    memcpy(&finding->at[slot * finding->n], at, (size_t)finding->n * sizeof *at);
    finding->best[slot] = *best;
    atomic_store(&finding->turn, slot + 1);
}

void finding_bound(struct finding *finding, double bound)
{
    told_set(&finding->bound, atomic_load(&finding->count), bound);
}

_Atomic int64_t *finding_count(struct finding *finding, const int *at, const struct value *first)
{
    atomic_store(&finding->count, -1);
    if (first->valid)
        finding_put(finding, at, first);
    atomic_store(&finding->count, 0);
    finding->counted = true;
    return &finding->count;
}

void finding_within(struct finding *finding, double bound)
{
    told_set(&finding->within, atomic_load(&finding->count), bound);
}

void finding_hosts(struct finding *finding, int64_t fewest)
{
    told_set(&finding->hosts, atomic_load(&finding->count), (double)fewest);
}

void finding_mark(struct finding *finding, int which, int mark)
{
    told_set(&finding->marks[which], atomic_load(&finding->count), mark);
}

void finding_done(struct finding *finding, int64_t iterations, bool cut, bool proven,
                  const char *why)
{
    atomic_store(&finding->iterations, iterations);
    finding->cut = cut;
    finding->proven = proven;
    snprintf(finding->why, sizeof finding->why, "%s", why);
    atomic_store(&finding->done, 1);
}

bool finding_get(const struct finding *finding, int *at, struct value *best)
{
    int turn = atomic_load(&finding->turn);
    if (turn == 0)
        return false;
    memcpy(at, &finding->at[(turn - 1) * finding->n], (size_t)finding->n * sizeof *at);
    *best = finding->best[turn - 1];
    return true;
}

bool finding_get_before(const struct finding *finding, int64_t count, int *at,
                        struct value *best)
{
    int turn = atomic_load(&finding->turn);
    if (turn == 0)
        return false;
    int slot = finding->put_count[turn - 1] < count ? turn - 1 : 2 - turn;
    if (finding->put_count[slot] >= count || finding->best[slot].valid == false)
        return false;
    memcpy(at, &finding->at[slot * finding->n], (size_t)finding->n * sizeof *at);
    *best = finding->best[slot];
    return true;
}

double finding_bound_before(const struct finding *finding, int64_t count)
{
    return told_before(&finding->bound, count);
}

double finding_within_before(const struct finding *finding, int64_t count)
{
    return told_before(&finding->within, count);
}

int64_t finding_hosts_before(const struct finding *finding, int64_t count)
{
    return (int64_t)told_before(&finding->hosts, count);
}

int finding_mark_before(const struct finding *finding, int which, int64_t count)
{
    return (int)told_before(&finding->marks[which], count);
}

struct finding_end finding_end(const struct finding *finding)
{
    struct finding_end end = {.bound = double_of(atomic_load(&finding->bound.now)),
                              .within = double_of(atomic_load(&finding->within.now)),
                              .hosts = (int64_t)double_of(atomic_load(&finding->hosts.now))};
    for (int k = 0; k < FINDING_MARKS; k++)
        end.marks[k] = (int)double_of(atomic_load(&finding->marks[k].now));
    end.iterations = atomic_load(&finding->iterations);
    end.cut = true;
    end.count = atomic_load(&finding->count);
    if (atomic_load(&finding->done)) {
        end.cut = finding->cut;
        end.proven = finding->proven;
        end.killed = finding->killed;
        end.failed = finding->failed;
        memcpy(end.why, finding->why, sizeof end.why);
    }
    return end;
}

/* True once the child is gone; says why it went if that was not by its own exit. */
static bool child_gone(pid_t child, struct finding *finding)
{
    int status;
    pid_t got = waitpid(child, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    if (got == child && !atomic_load(&finding->done)) {
        if (WIFSIGNALED(status))
            snprintf(finding->why, sizeof finding->why, "the solver was ended by signal %d",
                     WTERMSIG(status));
        else
            snprintf(finding->why, sizeof finding->why, "the solver ended by itself");
        finding->cut = finding->failed = true;
        finding->proven = false;
        atomic_store(&finding->done, 1);
    }
    return true;
}

static void child_end(pid_t child, struct finding *finding, const char *why)
{
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (!atomic_load(&finding->done)) {
        snprintf(finding->why, sizeof finding->why, "%s", why);
        finding->cut = finding->killed = true;
        atomic_store(&finding->done, 1);
    }
}

/* At least half of the time is the child's. */
static bool child_late(pid_t child, int64_t passed_ms, int64_t left_ms, int64_t after_ms)
{
    clockid_t clock;
    struct timespec used = {0};
    if (left_ms <= 0 || after_ms == 0 || left_ms > passed_ms)
        return left_ms <= 0;
    if (clock_getcpuclockid(child, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return false;
    int64_t used_us = (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
    return effort_longer_ms(after_ms, passed_ms, used_us) >= left_ms;
}

int contain_run(void (*work)(void *ctx), void *ctx, struct finding *finding,
                const struct plan_options *options, int64_t deadline_ms, int64_t after_ms,
                struct err *err)
{
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        return err_set(err, ERR_IO, "no process for the solver: %s", strerror(errno));
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            work(ctx);
        _exit(0);
    }
    int64_t began_ms = clock_mono_ms(), reported_ms = began_ms, wait_ms = 1, waits = 0;
    while (!child_gone(child, finding)) {
        int64_t now = clock_mono_ms();
        if (options->iterations < 0 && child_late(child, now - began_ms, deadline_ms - now, after_ms)) {
            child_end(child, finding, "the solver overran its time and was ended");
            break;
        }
        if (options->progress && now - reported_ms >= 500) {
            reported_ms = now;
            if (options->progress(options->progress_ctx, ++waits, "searching for the optimum") < 0) {
                child_end(child, finding, "stopped");
                break;
            }
        }
        clock_sleep_ms(wait_ms);
        wait_ms = wait_ms < 16 ? wait_ms * 2 : 16;
    }
    return 0;
}
