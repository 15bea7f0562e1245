/* stage.h - the stage's side of the bus: a stage program is a table of request handlers and
 *     int main(int argc, char **argv) { return stage_main(&monitor_stage, argc, argv); }
 *
 * The same handlers run in two ways:
 *   on the bus    --bus ENDPOINT --lifeline FD --run-dir DIR   (started by `remap`)
 *   as a filter   --filter [TYPE] < request.json > result.json (TYPE defaults to the first handler)
 * In filter mode progress goes to stderr (only with --progress), intents are answered at once, a
 * failure is one line on stderr and the exit code of err_exit_code(). A result whose handler set
 * `exit_code` ends a filter with it (plans that are infeasible or timed out are printed all the
 * same).
 *
 * A handler runs to its end in the only thread; it calls stage_progress() often enough (at least
 * every second) on long work, which also looks at the lifeline and at `stop`. A `stop` that names a
 * cycle ends only that request, one of cycle 0 the stage; the handler sees no difference. */
#ifndef REMAP_WIRE_STAGE_H
#define REMAP_WIRE_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/wire/envelope.h"
#include "model/wire/loop.h"

struct stage; /* the running stage, opaque to handlers */

struct stage_request {
    const struct envelope *env;
    const char *body; /* borrowed for the call */
    size_t size;
};

struct stage_handler {
    enum message_type type;
    /* Appends the result document to *result. -1 and *err → `failure`. */
    int (*handle)(struct stage *stage, const struct stage_request *request, struct buf *result,
                  int *exit_code, struct err *err);
};

struct stage_program {
    enum party party;
    const char *summary;
    const struct stage_handler *handlers;
    size_t n_handlers;
    /* Optional, for stages that listen on descriptors of their own (webhooks): called at the start,
     * may register descriptors with stage_watch(). NULL when unused. */
    int (*open)(struct stage *stage, void **state, struct err *err);
    void (*close)(void *state);
    /* Optional: `configure` came, at any time, also during a request. Nothing is answered, so what is
     * wrong becomes an event. Bodies are borrowed. */
    void (*configure)(void *state, const char *body, size_t size);
};

int stage_main(const struct stage_program *program, int argc, char **argv);

/* Work done so far: `done` must grow for the deadline to be extended. `members` NULL: only the
 * counter; else more members of README.md "progress", as JSON text without braces
 * (`"total":9,"text":"tracing"`). Cheap: without members at most one message per 100 ms goes out.
 * Returns -1 (ERR_REFUSED "stopped") when the request should wind up. */
int stage_progress(struct stage *stage, int64_t done, const char *members, struct err *err);
/* A note that becomes an `events` row of the cycle: kind ("unmapped", "source", …) and text. */
int stage_note(struct stage *stage, const char *kind, const char *text, struct err *err);
/* Sends intent{cycle, seq, attempt} and waits for proceed{seq}; -1 when stopped meanwhile. */
int stage_intent(struct stage *stage, int64_t seq, const char *body, size_t size, struct err *err);
/* True once `stop` came for this request or for the stage, or SIGTERM. (A stage whose manager has
 * gone does not get so far: it ends at once, wherever it is, as PDEATHSIG ends it too.) */
bool stage_stopping(struct stage *stage);
/* The same, and the stage itself is to leave: `remap` ends, the request will be repeated at its
 * next start, so what is not begun stays undecided. */
bool stage_leaving(struct stage *stage);
/* Waits at most ms, returns early (true) when stopping. The only sleep a handler may use. */
bool stage_wait(struct stage *stage, int64_t ms);
/* The same for what `stop` must let finish (a move under way): waits the whole time. */
void stage_wait_through(struct stage *stage, int64_t ms);
/* Something to keep (a webhook): sends `event` with the body; stored(ctx, row, duplicate) is called
 * from a later turn of the loop once the manager has committed it (row: its events id; duplicate: it
 * was there already, that is its row, and nothing was done now). Several may be under way; those of
 * a stage that dies are lost, so the webhook's sender repeats. Returns the event's number, for
 * stage_event_forget(). */
int64_t stage_event(struct stage *stage, const char *body, size_t size,
                    void (*stored)(void *ctx, int64_t row, bool duplicate), void *ctx);
/* Nobody waits for it any more: stored() is not called. */
void stage_event_forget(struct stage *stage, int64_t id);
/* Sends `counters` with the body; nothing answers, and what is lost is in the next. */
void stage_counters(struct stage *stage, const char *body, size_t size);
/* The same with `kept`. */
void stage_kept(struct stage *stage, const char *body, size_t size);
/* Descriptors of the stage's own, watched between and (through stage_progress) during requests. */
void stage_watch(struct stage *stage, int fd, short events, loop_fd_fn *fn, void *ctx);
void stage_unwatch(struct stage *stage, int fd);
/* The loop itself, for what has timers of its own (a listener). */
struct loop *stage_loop(struct stage *stage);
/* What the program's open() made; NULL where there is none (a filter). */
void *stage_state(struct stage *stage);
/* True when running as a filter (no store behind it). */
bool stage_is_filter(const struct stage *stage);

#endif
