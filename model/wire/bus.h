/* bus.h - the two other ends of the bus: the manager's ROUTER and the command line's one question.
 * The stage's end is stage.h. */
#ifndef REMAP_WIRE_BUS_H
#define REMAP_WIRE_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/base/mem.h"
#include "model/wire/envelope.h"
#include "model/wire/failure.h"
#include "model/wire/loop.h"

struct bus;

/* What the manager is told. `peer` is the routing id ("planner", "cli-4711"), needed to answer a
 * PARTY_CLI. Messages that the table of envelope.h forbids, or whose header is malformed, never
 * arrive: they go to refused(). Bodies are borrowed for the call. */
struct bus_events {
    /* The first message of a stage's life; name and version were right. Whatever comes from this
     * party with an earlier attempt is a dead life's. */
    void (*hello)(void *ctx, enum party stage, int64_t pid);
    void (*received)(void *ctx, enum party from, const char *peer, const struct envelope *env,
                     const char *body, size_t size);
    /* A message that was thrown away, or a stage of another version: one line to log. */
    void (*refused)(void *ctx, const char *peer, const char *why);
};

/* Binds RUNDIR/bus; rundir_lock() comes before. `events` and ctx live as long as the bus. ERR_IO,
 * ERR_CONFIG (path too long). */
int bus_open(struct loop *loop, const char *run_dir, const struct bus_events *events, void *ctx,
             struct bus **out, struct err *err);
/* LINGER 0: what was not yet written is lost. Not from inside one of its events. */
void bus_free(struct bus *bus);
AUTO_DEFINE(bus)

/* Sends to a stage. Takes the body's bytes (*body is empty afterwards); NULL stands for {"v":1}.
 * Never blocks: a peer that does not read has its messages kept here, in order, until it does or
 * says hello again. ERR_UNREACHABLE: the stage is not connected (wait for its hello);
 * ERR_TOO_LARGE; the body is then still the caller's. */
int bus_send(struct bus *bus, enum party stage, const struct envelope *env, struct buf *body,
             struct err *err);
/* Answers a command: MSG_RESULT or MSG_FAILURE. An answer to someone who has left is no error. */
void bus_answer(struct bus *bus, const char *peer, enum message_type type, struct buf *body);

/* The command line: sends the command document and waits for the one answer, whose document goes to
 * *result. ERR_UNREACHABLE when no daemon runs on run_dir, ERR_IO when it does not answer; a
 * failure becomes *err with its kind. */
int bus_command(const char *run_dir, const char *body, size_t size, int64_t timeout_ms,
                struct buf *result, struct err *err);

#endif
