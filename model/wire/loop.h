/* loop.h - one thread, one loop: ZeroMQ sockets, descriptors, timers and signals (design.md 7).
 *
 * Callbacks may add and remove anything, also themselves, and may run the loop nested through
 * loop_turn(). Times are monotonic milliseconds. */
#ifndef REMAP_WIRE_LOOP_H
#define REMAP_WIRE_LOOP_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include "model/base/err.h"
#include "model/base/mem.h"

struct loop;

typedef void loop_fd_fn(void *ctx, int fd, short events); /* POLLIN | POLLOUT | POLLERR */
typedef void loop_timer_fn(void *ctx);
typedef void loop_signal_fn(void *ctx, int signo);

struct loop *loop_new(void);
void loop_free(struct loop *loop); /* closes nothing it was given */
AUTO_DEFINE(loop)

/* Calls fn when one of `events` (POLLIN, POLLOUT) or an error is there. A second call for the same
 * fd replaces the first. The fd stays the caller's: unwatch before closing it. */
void loop_watch(struct loop *loop, int fd, short events, loop_fd_fn *fn, void *ctx);
void loop_unwatch(struct loop *loop, int fd);

/* The same for a ZeroMQ socket (fn gets fd -1). */
void loop_watch_socket(struct loop *loop, void *socket, short events, loop_fd_fn *fn, void *ctx);
void loop_unwatch_socket(struct loop *loop, void *socket);

/* Calls fn once after delay_ms (>= 0); returns the timer's id (> 0, never used again). Equal times
 * run in the order they were set. Cancelling an id that has run is allowed. */
int64_t loop_timer(struct loop *loop, int64_t delay_ms, loop_timer_fn *fn, void *ctx);
void loop_timer_cancel(struct loop *loop, int64_t id);

/* Blocks the signal in this thread and delivers it through the loop. Children must unblock it
 * (supervisor.c does). Call before the first socket is made, so that ZeroMQ's own thread blocks it
 * too. ERR_IO. */
int loop_signal(struct loop *loop, int signo, loop_signal_fn *fn, void *ctx, struct err *err);
/* Its callback is not called any more; the signal stays blocked. */
void loop_unsignal(struct loop *loop, int signo);

/* One wait of at most max_ms (-1: for ever; ends early at the next timer) and the callbacks due.
 * ERR_IO. */
int loop_turn(struct loop *loop, int64_t max_ms, struct err *err);
/* Turns until loop_quit(). */
int loop_run(struct loop *loop, struct err *err);
void loop_quit(struct loop *loop);

#endif
