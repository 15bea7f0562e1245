/* stage_run.h - the running stage, shared by stage.c (what handlers call), stage_bus.c (life on the
 * bus) and stage_main.c (command line, filter). Private to model/wire. */
#ifndef REMAP_WIRE_STAGE_RUN_H
#define REMAP_WIRE_STAGE_RUN_H

#include "model/wire/frames.h"
#include "model/wire/stage.h"

struct stage_options {
    const char *bus, *run_dir; /* on the bus */
    int lifeline;              /* -1: none */
    bool filter, progress;
    enum message_type filter_type;
};

struct stage_event_wait { /* an `event` that is not yet stored */
    int64_t id;
    void (*stored)(void *ctx, int64_t row, bool duplicate);
    void *ctx;
};

struct stage {
    const struct stage_program *program;
    struct stage_options options;
    struct loop *loop;
    void *zmq, *dealer; /* NULL in a filter */
    struct outbox outbox;
    void *state;  /* what the program's open() made */
    bool leaving; /* `stop` of the stage, or SIGTERM */

    /* The request under way: */
    bool busy, stopped; /* stopped: `stop` of this request */
    struct envelope request;
    int64_t last_done, progress_sent_ms, pumped_ms;
    int64_t proceed_seq; /* the newest intent that was answered */

    /* The one that came while busy; a newer one takes its place. */
    bool has_next, next_stopped;
    struct envelope next_request;
    struct frames next;

    struct stage_event_wait *events;
    size_t n_events;
    int64_t last_event_id;
};

/* Sends to the manager; an error ends the process (the bus is all a stage has). */
void stage_send(struct stage *stage, const struct envelope *env, struct buf *body);
/* The handler of a type, NULL when the program has none. */
const struct stage_handler *stage_handler_find(const struct stage_program *program,
                                               enum message_type type);
/* Life on the bus until told to leave; the exit code. */
int stage_bus_run(struct stage *stage, struct err *err);

#endif
