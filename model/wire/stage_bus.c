/* stage_bus.c - a stage's life on the bus (design.md 3): hello, one request at a time, and the ways
 * it ends: `stop` or SIGTERM (the request under way is answered first), the end of the manager (at
 * once). */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/wire/failure.h"
#include "model/wire/rundir.h"
#include "model/wire/stage_run.h"

/* A stage that closed with LINGER 0 lost 18 of 20 large results (design.md 3). */
#define STAGE_LINGER_MS 2000

static void stage_ready(void *ctx, int fd, short events);

/* Writable is asked for only while something waits: a DEALER nearly always is. */
static void stage_watch_bus(struct stage *stage)
{
    short events = outbox_empty(&stage->outbox) ? POLLIN : POLLIN | POLLOUT;
    loop_watch_socket(stage->loop, stage->dealer, events, stage_ready, stage);
}

void stage_send(struct stage *stage, const struct envelope *env, struct buf *body)
{
    struct err err = ERR_INIT;
    if (outbox_send(&stage->outbox, stage->dealer, NULL, env, body, &err) < 0) {
        log_error("%s", err.text);
        exit(EXIT_FAILURE);
    }
    stage_watch_bus(stage);
}

static void stage_answer_failure(struct stage *stage, const struct envelope *request,
                                 const struct err *what)
{
    struct envelope env = {
        .type = MSG_FAILURE, .cycle = request->cycle, .attempt = request->attempt};
    struct buf body = BUF_INIT;
    failure_encode(what, &body);
    stage_send(stage, &env, &body);
}

/* The answer to `stored`: the event's row goes to whoever waits for it. */
static void stage_stored(struct stage *stage, int64_t id, const char *body, size_t size)
{
    static const char *const keys[] = {"v", "id", "duplicate", NULL};
    struct err err = ERR_INIT;
    int64_t row = 0;
    bool duplicate = false;
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_header, &err);
    struct jval root = jval_root(tree);
    struct jval row_v = jval_get(&root, "id");
    if (!tree || jval_object(&root, keys, &err) < 0 ||
        jval_int(&row_v, 0, INT64_MAX, &row, &err) < 0 ||
        jval_opt_bool(&root, "duplicate", &duplicate, &err) < 0) {
        log_warn("stored: %s", err.text);
        return;
    }
    for (size_t i = 0; i < stage->n_events; i++) {
        struct stage_event_wait wait = stage->events[i];
        if (wait.id == id) {
            stage->events[i] = stage->events[--stage->n_events];
            wait.stored(wait.ctx, row, duplicate);
            return;
        }
    }
}

static bool envelope_same_request(const struct envelope *a, const struct envelope *b)
{
    return a->cycle == b->cycle && a->attempt == b->attempt;
}

/* `stop` of the stage, of the request under way, or of the one that waits. */
static void stage_stop(struct stage *stage, const struct envelope *env)
{
    if (env->cycle == 0) {
        stage->leaving = true;
    } else if (stage->busy && envelope_same_request(env, &stage->request)) {
        stage->stopped = true;
    } else if (stage->has_next && envelope_same_request(env, &stage->next_request)) {
        stage->next_stopped = true;
    }
}

/* Takes the frames (true) when they are a request; else the caller closes them. */
static bool stage_take(struct stage *stage, struct frames *frames)
{
    struct envelope env;
    struct err err = ERR_INIT;
    if (frames_envelope(frames, &env, &err) < 0) {
        log_warn("%s", err.text);
        return false;
    }
    if (!message_allowed(PARTY_MANAGER, stage->program->party, env.type)) {
        log_warn("%s may not be sent here", message_type_name(env.type));
        return false;
    }
    if (env.type == MSG_STOP) {
        stage_stop(stage, &env);
        return false;
    }
    if (env.type == MSG_PROCEED) {
        if (stage->busy && envelope_same_request(&env, &stage->request)) {
            stage->proceed_seq = env.seq;
        }
        return false;
    }
    if (env.type == MSG_STORED) {
        stage_stored(stage, env.id, zmq_msg_data(&frames->body), zmq_msg_size(&frames->body));
        return false;
    }
    if (env.type == MSG_CONFIGURE) {
        if (stage->program->configure) {
            stage->program->configure(stage->state, zmq_msg_data(&frames->body),
                                      zmq_msg_size(&frames->body));
        }
        return false;
    }
    if (stage->has_next) {
        frames_close(&stage->next);
    }
    frames_move(&stage->next, frames);
    stage->next_request = env;
    stage->next_stopped = false;
    stage->has_next = true;
    return true;
}

static void stage_ready(void *ctx, int fd, short events)
{
    (void)fd;
    struct stage *stage = ctx;
    if (events & POLLOUT) {
        outbox_flush(&stage->outbox, stage->dealer);
        stage_watch_bus(stage);
    }
    for (;;) {
        struct frames frames;
        struct err err = ERR_INIT;
        int got = frames_receive(stage->dealer, false, &frames, &err);
        if (got == 0) {
            return;
        }
        if (got < 0) {
            log_warn("%s", err.text);
        } else if (!stage_take(stage, &frames)) {
            frames_close(&frames);
        }
    }
}

static void stage_lifeline(void *ctx, int fd, short events)
{
    (void)ctx;
    (void)fd;
    (void)events;
    /* Only the manager holds the other end, and it never writes: it is gone. Nothing of ours may
     * happen any more, so this is the end that PDEATHSIG's SIGKILL makes too. */
    _exit(EXIT_FAILURE);
}

static void stage_sigterm(void *ctx, int signo)
{
    (void)signo;
    struct stage *stage = ctx;
    stage->leaving = true;
}

/* Runs the handler: 0 and the result, or -1 and what to answer instead. */
static int stage_handle(struct stage *stage, const struct stage_request *request,
                        struct buf *result, struct err *err)
{
    int exit_code = 0;
    const struct stage_handler *handler = stage_handler_find(stage->program, request->env->type);
    if (!handler) {
        return err_set(err, ERR_INTERNAL, "no handler for %s",
                       message_type_name(request->env->type));
    }
    if (handler->handle(stage, request, result, &exit_code, err) < 0) {
        return -1;
    }
    if (result->size > WIRE_MAX_BODY) { /* beyond MAXMSGSIZE a message would just vanish */
        return err_set(err, ERR_TOO_LARGE, "result of %zu bytes; a message may have %zu",
                       result->size, WIRE_MAX_BODY);
    }
    return 0;
}

static void stage_serve(struct stage *stage)
{
    struct frames frames;
    frames_move(&frames, &stage->next);
    stage->has_next = false;
    struct err err = ERR_INIT;
    const struct envelope env = stage->next_request;
    struct stage_request request = {&env, zmq_msg_data(&frames.body), zmq_msg_size(&frames.body)};
    struct envelope answer = {MSG_RESULT, env.cycle, env.attempt, 0, 0};
    AUTO_BUF struct buf result = BUF_INIT;
    stage->request = env;
    stage->busy = true;
    stage->stopped = stage->next_stopped;
    stage->last_done = stage->progress_sent_ms = stage->proceed_seq = 0;
    if (stage_handle(stage, &request, &result, &err) == 0) {
        stage_send(stage, &answer, &result);
    } else {
        stage_answer_failure(stage, &env, &err);
    }
    stage->busy = false;
    frames_close(&frames);
    malloc_trim(0); /* a model of 256 MiB must not be kept until the next cycle */
}

static void stage_hello(struct stage *stage)
{
    struct envelope env = {.type = MSG_HELLO};
    struct buf body = BUF_INIT;
    buf_printf(&body, "{\"v\":1,\"name\":\"%s\",\"pid\":%ld,\"version\":\"%s\"}",
               party_name(stage->program->party), (long)getpid(), REMAP_VERSION);
    stage_send(stage, &env, &body);
}

static int stage_connect(struct stage *stage, struct err *err)
{
    const char *name = party_name(stage->program->party);
    stage->zmq = zmq_ctx_new();
    stage->dealer = stage->zmq ? zmq_socket(stage->zmq, ZMQ_DEALER) : NULL;
    if (!stage->dealer) {
        return err_set(err, ERR_IO, "bus: %s", zmq_strerror(errno));
    }
    if (socket_prepare(stage->dealer, STAGE_LINGER_MS, err) < 0) {
        return -1;
    }
    if (zmq_setsockopt(stage->dealer, ZMQ_ROUTING_ID, name, strlen(name)) < 0 ||
        zmq_connect(stage->dealer, stage->options.bus) < 0) {
        return err_set(err, ERR_IO, "%s: %s", stage->options.bus, zmq_strerror(errno));
    }
    stage_watch_bus(stage);
    return 0;
}

/* Everything by which a stage notices that it should not live (any more), before it can act. The
 * order matters: once the shared lock is held no new daemon can start, so a lifeline that is whole
 * after that belongs to the daemon of now. */
static int stage_tie(struct stage *stage, struct err *err)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) {
        return err_set(err, ERR_IO, "prctl: %s", strerror(errno));
    }
    signal(SIGINT, SIG_IGN); /* a terminal's Ctrl-C is for the manager, which then says stop */
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    if (stage->options.run_dir && rundir_join(stage->options.run_dir, err) < 0) {
        return -1;
    }
    if (loop_signal(stage->loop, SIGTERM, stage_sigterm, stage, err) < 0) {
        return -1;
    }
    if (stage->options.lifeline >= 0) {
        loop_watch(stage->loop, stage->options.lifeline, POLLIN, stage_lifeline, stage);
    }
    return loop_turn(stage->loop, 0, err);
}

static void stage_disconnect(struct stage *stage)
{
    int64_t until = clock_mono_ms() + STAGE_LINGER_MS;
    struct err err = ERR_INIT;
    while (stage->dealer && !outbox_empty(&stage->outbox) && clock_mono_ms() < until &&
           loop_turn(stage->loop, until - clock_mono_ms(), &err) == 0) {
    }
    outbox_drop(&stage->outbox, NULL);
    if (stage->has_next) {
        frames_close(&stage->next);
    }
    if (stage->dealer) {
        loop_unwatch_socket(stage->loop, stage->dealer);
        zmq_close(stage->dealer);
    }
    if (stage->zmq) {
        zmq_ctx_term(stage->zmq); /* waits for LINGER */
    }
}

static int stage_live(struct stage *stage, struct err *err)
{
    if (stage_tie(stage, err) < 0 || stage_connect(stage, err) < 0 ||
        (stage->program->open && stage->program->open(stage, &stage->state, err) < 0)) {
        return -1;
    }
    stage_hello(stage);
    int done = 0;
    while (done == 0 && !stage->leaving) {
        if (stage->has_next) {
            stage_serve(stage);
        } else {
            done = loop_turn(stage->loop, -1, err);
        }
    }
    if (stage->program->close) {
        stage->program->close(stage->state);
    }
    return done;
}

int stage_bus_run(struct stage *stage, struct err *err)
{
    stage->loop = loop_new();
    int done = stage_live(stage, err);
    stage_disconnect(stage);
    loop_free(stage->loop);
    free(stage->events);
    return done;
}
