/* loop.c - zmq_poll over sockets and descriptors, timers in a sorted list, signals by signalfd.
 *
 * A source that is removed while its turn is being served is only marked and swept when no turn is
 * active, so that callbacks may remove anything, and turns may nest. */
#include "model/wire/loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <zmq.h>
#include "model/base/clock.h"

struct source {
    void *socket; /* NULL: fd counts */
    int fd;
    short events;
    bool gone;
    loop_fd_fn *fn;
    void *ctx;
};

struct timer {
    int64_t id, due_ms;
    loop_timer_fn *fn;
    void *ctx;
};

struct signal_watch {
    loop_signal_fn *fn;
    void *ctx;
};

struct loop {
    struct source **sources; /* each allocated alone: a callback may make the array grow */
    size_t n_sources;
    struct timer *timers; /* by due_ms, then id */
    size_t n_timers;
    int64_t last_timer_id;
    int signal_fd; /* -1: none wanted yet */
    sigset_t signals;
    struct signal_watch watches[_NSIG];
    int depth; /* of nested turns */
    bool quit;
};

static short events_to_zmq(short events)
{
    return (short)(((events & POLLIN) ? ZMQ_POLLIN : 0) | ((events & POLLOUT) ? ZMQ_POLLOUT : 0));
}

static short events_from_zmq(short events)
{
    return (short)(((events & ZMQ_POLLIN) ? POLLIN : 0) | ((events & ZMQ_POLLOUT) ? POLLOUT : 0) |
                   ((events & ZMQ_POLLERR) ? POLLERR : 0));
}

struct loop *loop_new(void)
{
    struct loop *loop = mem_alloc(sizeof *loop);
    loop->signal_fd = -1;
    sigemptyset(&loop->signals);
    return loop;
}

void loop_free(struct loop *loop)
{
    if (!loop) {
        return;
    }
    for (size_t i = 0; i < loop->n_sources; i++) {
        free(loop->sources[i]);
    }
    if (loop->signal_fd >= 0) {
        close(loop->signal_fd);
    }
    free(loop->sources);
    free(loop->timers);
    free(loop);
}

static struct source *source_find(const struct loop *loop, const void *socket, int fd)
{
    for (size_t i = 0; i < loop->n_sources; i++) {
        struct source *s = loop->sources[i];
        if (!s->gone && s->socket == socket && s->fd == fd) {
            return s;
        }
    }
    return NULL;
}

static void loop_sweep(struct loop *loop)
{
    size_t kept = 0;
    for (size_t i = 0; i < loop->n_sources; i++) {
        if (loop->sources[i]->gone) {
            free(loop->sources[i]);
        } else {
            loop->sources[kept++] = loop->sources[i];
        }
    }
    loop->n_sources = kept;
}

static void source_set(struct loop *loop, void *socket, int fd, short events, loop_fd_fn *fn,
                       void *ctx)
{
    struct source *s = source_find(loop, socket, fd);
    if (!s) {
        s = mem_alloc(sizeof *s);
        *ARRAY_PUSH(loop->sources, loop->n_sources) = s;
        s->socket = socket;
        s->fd = fd;
    }
    s->events = events;
    s->fn = fn;
    s->ctx = ctx;
}

static void source_drop(struct loop *loop, const void *socket, int fd)
{
    struct source *s = source_find(loop, socket, fd);
    if (s) {
        s->gone = true;
        if (loop->depth == 0) {
            loop_sweep(loop);
        }
    }
}

void loop_watch(struct loop *loop, int fd, short events, loop_fd_fn *fn, void *ctx)
{
    assert(fd >= 0);
    source_set(loop, NULL, fd, events, fn, ctx);
}

void loop_unwatch(struct loop *loop, int fd)
{
    source_drop(loop, NULL, fd);
}

void loop_watch_socket(struct loop *loop, void *socket, short events, loop_fd_fn *fn, void *ctx)
{
    assert(socket);
    source_set(loop, socket, -1, events, fn, ctx);
}

void loop_unwatch_socket(struct loop *loop, void *socket)
{
    source_drop(loop, socket, -1);
}

int64_t loop_timer(struct loop *loop, int64_t delay_ms, loop_timer_fn *fn, void *ctx)
{
    assert(delay_ms >= 0);
    struct timer timer = {++loop->last_timer_id, clock_mono_ms() + delay_ms, fn, ctx};
    (void)ARRAY_PUSH(loop->timers, loop->n_timers);
    size_t at = loop->n_timers - 1;
    while (at > 0 && loop->timers[at - 1].due_ms > timer.due_ms) {
        loop->timers[at] = loop->timers[at - 1];
        at--;
    }
    loop->timers[at] = timer;
    return timer.id;
}

static void timer_remove(struct loop *loop, size_t at)
{
    loop->n_timers--;
    memmove(&loop->timers[at], &loop->timers[at + 1], (loop->n_timers - at) * sizeof *loop->timers);
}

void loop_timer_cancel(struct loop *loop, int64_t id)
{
    for (size_t i = 0; i < loop->n_timers; i++) {
        if (loop->timers[i].id == id) {
            timer_remove(loop, i);
            return;
        }
    }
}

static void signals_ready(void *ctx, int fd, short events)
{
    (void)events;
    struct loop *loop = ctx;
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
        const struct signal_watch *w = &loop->watches[info.ssi_signo];
        if (w->fn) {
            w->fn(w->ctx, (int)info.ssi_signo);
        }
    }
}

int loop_signal(struct loop *loop, int signo, loop_signal_fn *fn, void *ctx, struct err *err)
{
    assert(signo > 0 && signo < _NSIG);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signo);
    sigaddset(&loop->signals, signo);
    if (sigprocmask(SIG_BLOCK, &one, NULL) < 0) {
        return err_set(err, ERR_IO, "sigprocmask: %s", strerror(errno));
    }
    int fd = signalfd(loop->signal_fd, &loop->signals, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) {
        return err_set(err, ERR_IO, "signalfd: %s", strerror(errno));
    }
    loop->signal_fd = fd;
    loop->watches[signo] = (struct signal_watch){fn, ctx};
    loop_watch(loop, fd, POLLIN, signals_ready, loop);
    return 0;
}

void loop_unsignal(struct loop *loop, int signo)
{
    assert(signo > 0 && signo < _NSIG);
    loop->watches[signo] = (struct signal_watch){NULL, NULL};
}

/* How long zmq_poll may wait: until the next timer, at most max_ms. */
static long loop_wait_ms(const struct loop *loop, int64_t max_ms)
{
    int64_t wait = max_ms < 0 ? -1 : max_ms;
    if (loop->n_timers) {
        int64_t left = loop->timers[0].due_ms - clock_mono_ms();
        left = left < 0 ? 0 : left;
        wait = wait < 0 || left < wait ? left : wait;
    }
    return wait > LONG_MAX ? LONG_MAX : (long)wait;
}

/* Timers due at the start of the turn; those that callbacks set with delay 0 wait for the next one,
 * so that a timer that renews itself cannot starve the sockets. */
static void timers_run(struct loop *loop)
{
    int64_t now = clock_mono_ms();
    int64_t newest = loop->last_timer_id;
    for (size_t i = 0; i < loop->n_timers && loop->timers[i].due_ms <= now;) {
        if (loop->timers[i].id > newest) {
            i++;
            continue;
        }
        struct timer timer = loop->timers[i];
        timer_remove(loop, i);
        timer.fn(timer.ctx);
        i = 0;
    }
}

int loop_turn(struct loop *loop, int64_t max_ms, struct err *err)
{
    size_t n = loop->n_sources;
    AUTO_FREE zmq_pollitem_t *items = mem_array(n ? n : 1, sizeof *items);
    AUTO_FREE struct source **served = mem_array(n ? n : 1, sizeof *served);
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        struct source *s = loop->sources[i];
        if (!s->gone) {
            items[used] = (zmq_pollitem_t){s->socket, s->fd, events_to_zmq(s->events), 0};
            served[used++] = s;
        }
    }
    if (zmq_poll(items, (int)used, loop_wait_ms(loop, max_ms)) < 0 && errno != EINTR) {
        return err_set(err, ERR_IO, "zmq_poll: %s", zmq_strerror(errno));
    }
    loop->depth++;
    for (size_t i = 0; i < used; i++) {
        if (items[i].revents && !served[i]->gone) {
            served[i]->fn(served[i]->ctx, served[i]->fd, events_from_zmq(items[i].revents));
        }
    }
    timers_run(loop);
    if (--loop->depth == 0) {
        loop_sweep(loop);
    }
    return 0;
}

int loop_run(struct loop *loop, struct err *err)
{
    loop->quit = false;
    while (!loop->quit) {
        if (loop_turn(loop, -1, err) < 0) {
            return -1;
        }
    }
    return 0;
}

void loop_quit(struct loop *loop)
{
    loop->quit = true;
}
