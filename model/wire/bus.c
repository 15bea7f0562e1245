/* bus.c - the manager's ROUTER (design.md 3): MANDATORY, so that a send to nobody is news;
 * HANDOVER, so that a restarted stage takes over its name; nothing that blocks. */
#include "model/wire/bus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/wire/frames.h"
#include "model/wire/rundir.h"

#define TURN_MESSAGES 64 /* read in one go before timers and signals get their turn */
#define RETRY_MS 10      /* a ROUTER cannot say which peer has room again: try this often */

struct bus {
    struct loop *loop;
    const struct bus_events *events;
    void *ctx;
    void *zmq, *router;
    struct outbox outbox;
    int64_t retry_timer; /* 0: none */
};

/* The party behind a routing id; PARTY_N when none may have it. */
static enum party party_of_peer(const char *peer)
{
    for (enum party p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++) {
        if (strcmp(peer, party_name(p)) == 0) {
            return p;
        }
    }
    return strncmp(peer, "cli-", 4) == 0 ? PARTY_CLI : PARTY_N;
}

static int hello_read(const char *peer, const char *body, size_t size, int64_t *pid,
                      struct err *err)
{
    static const char *const keys[] = {"v", "name", "pid", "version", NULL};
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_header, err);
    if (!tree) {
        return -1;
    }
    struct jval root = jval_root(tree);
    struct jval name_v = jval_get(&root, "name"), pid_v = jval_get(&root, "pid");
    struct jval version_v = jval_get(&root, "version");
    const char *name, *version;
    if (jval_object(&root, keys, err) < 0 || jval_text(&name_v, PEER_SIZE, &name, err) < 0 ||
        jval_int(&pid_v, 1, INT32_MAX, pid, err) < 0 ||
        jval_text(&version_v, 64, &version, err) < 0) {
        return -1;
    }
    if (strcmp(name, peer) != 0) {
        return err_set(err, ERR_INPUT, "calls itself %s", name);
    }
    if (strcmp(version, REMAP_VERSION) != 0) {
        return err_set(err, ERR_INPUT, "is version %s, not %s: install both from one build",
                       version, REMAP_VERSION);
    }
    return 0;
}

static int bus_dispatch(struct bus *bus, struct frames *frames, struct err *err)
{
    struct envelope env;
    const char *body = zmq_msg_data(&frames->body);
    size_t size = zmq_msg_size(&frames->body);
    enum party from = party_of_peer(frames->peer);
    if (from == PARTY_N) {
        return err_set(err, ERR_INPUT, "no such party");
    }
    if (frames_envelope(frames, &env, err) < 0) {
        return -1;
    }
    if (!message_allowed(from, PARTY_MANAGER, env.type)) {
        return err_set(err, ERR_INPUT, "may not send %s", message_type_name(env.type));
    }
    if (env.type == MSG_HELLO) {
        int64_t pid;
        if (hello_read(frames->peer, body, size, &pid, err) < 0) {
            return -1;
        }
        outbox_drop(&bus->outbox, frames->peer); /* meant for the life before */
        bus->events->hello(bus->ctx, from, pid);
    } else {
        bus->events->received(bus->ctx, from, frames->peer, &env, body, size);
    }
    return 0;
}

static void bus_ready(void *ctx, int fd, short events)
{
    (void)fd;
    (void)events;
    struct bus *bus = ctx;
    for (int i = 0; i < TURN_MESSAGES; i++) {
        struct frames frames;
        struct err err = ERR_INIT;
        int got = frames_receive(bus->router, true, &frames, &err);
        if (got == 0) {
            return;
        }
        if (got > 0) {
            got = bus_dispatch(bus, &frames, &err);
            frames_close(&frames);
        }
        if (got < 0) {
            bus->events->refused(bus->ctx, frames.peer, err.text);
        }
    }
}

static int bus_bind(struct bus *bus, const char *endpoint, struct err *err)
{
    int on = 1;
    bus->zmq = zmq_ctx_new();
    bus->router = bus->zmq ? zmq_socket(bus->zmq, ZMQ_ROUTER) : NULL;
    if (!bus->router) {
        return err_set(err, ERR_IO, "bus: %s", zmq_strerror(errno));
    }
    if (socket_prepare(bus->router, 0, err) < 0) {
        return -1;
    }
    if (zmq_setsockopt(bus->router, ZMQ_ROUTER_MANDATORY, &on, sizeof on) < 0 ||
        zmq_setsockopt(bus->router, ZMQ_ROUTER_HANDOVER, &on, sizeof on) < 0 ||
        zmq_bind(bus->router, endpoint) < 0) {
        return err_set(err, ERR_IO, "%s: %s", endpoint, zmq_strerror(errno));
    }
    return 0;
}

int bus_open(struct loop *loop, const char *run_dir, const struct bus_events *events, void *ctx,
             struct bus **out, struct err *err)
{
    char endpoint[RUNDIR_ENDPOINT_SIZE];
    if (rundir_endpoint(run_dir, endpoint, err) < 0) {
        return -1;
    }
    AUTO(bus) struct bus *bus = mem_alloc(sizeof *bus);
    bus->loop = loop;
    bus->events = events;
    bus->ctx = ctx;
    if (bus_bind(bus, endpoint, err) < 0) {
        return -1;
    }
    loop_watch_socket(loop, bus->router, POLLIN, bus_ready, bus);
    *out = steal(bus);
    return 0;
}

void bus_free(struct bus *bus)
{
    if (!bus) {
        return;
    }
    if (bus->retry_timer) {
        loop_timer_cancel(bus->loop, bus->retry_timer);
    }
    if (bus->router) {
        loop_unwatch_socket(bus->loop, bus->router);
        zmq_close(bus->router);
    }
    outbox_drop(&bus->outbox, NULL);
    if (bus->zmq) {
        zmq_ctx_term(bus->zmq);
    }
    free(bus);
}

static void bus_arm_retry(struct bus *bus);

static void bus_retry(void *ctx)
{
    struct bus *bus = ctx;
    bus->retry_timer = 0;
    outbox_flush(&bus->outbox, bus->router);
    bus_arm_retry(bus);
}

static void bus_arm_retry(struct bus *bus)
{
    if (!bus->retry_timer && !outbox_empty(&bus->outbox)) {
        bus->retry_timer = loop_timer(bus->loop, RETRY_MS, bus_retry, bus);
    }
}

int bus_send(struct bus *bus, enum party stage, const struct envelope *env, struct buf *body,
             struct err *err)
{
    int sent = outbox_send(&bus->outbox, bus->router, party_name(stage), env, body, err);
    bus_arm_retry(bus);
    return sent;
}

void bus_answer(struct bus *bus, const char *peer, enum message_type type, struct buf *body)
{
    struct envelope env = {.type = type};
    struct err gone = ERR_INIT;
    (void)outbox_send(&bus->outbox, bus->router, peer, &env, body, &gone);
    bus_arm_retry(bus);
}

/* --- the command line's end --- */

static int command_wait(void *dealer, const char *run_dir, int64_t timeout_ms, struct err *err)
{
    int64_t until = clock_mono_ms() + timeout_ms;
    for (;;) {
        /* A connect to nobody waits silently, so look twice a second whether the daemon lives. */
        int64_t left = timeout_ms < 0 ? 500 : until - clock_mono_ms();
        zmq_pollitem_t item = {dealer, 0, ZMQ_POLLIN, 0};
        int ready = zmq_poll(&item, 1, left < 0 ? 0 : left < 500 ? left : 500);
        if (ready > 0) {
            return 0;
        }
        if (ready < 0 && errno != EINTR) {
            return err_set(err, ERR_IO, "zmq_poll: %s", zmq_strerror(errno));
        }
        if (!rundir_daemon_runs(run_dir, NULL)) {
            return err_set(err, ERR_UNREACHABLE, "%s: the daemon ended before it answered",
                           run_dir);
        }
        if (timeout_ms >= 0 && clock_mono_ms() >= until) {
            return err_set(err, ERR_IO, "%s: the daemon did not answer within %lld ms",
                           run_dir, (long long)timeout_ms);
        }
    }
}

static int command_answer(void *dealer, struct buf *result, struct err *err)
{
    struct frames frames;
    int got = frames_receive(dealer, false, &frames, err);
    if (got <= 0) {
        return got < 0 ? -1 : err_set(err, ERR_INTERNAL, "bus: an empty answer");
    }
    struct envelope env;
    const char *body = zmq_msg_data(&frames.body);
    size_t size = zmq_msg_size(&frames.body);
    int done = frames_envelope(&frames, &env, err);
    if (done == 0 && env.type == MSG_RESULT) {
        buf_add(result, body, size);
    } else if (done == 0 && env.type == MSG_FAILURE) {
        done = failure_decode(body, size, err);
    } else if (done == 0) {
        done = err_set(err, ERR_INTERNAL, "bus: answered with %s", message_type_name(env.type));
    }
    frames_close(&frames);
    return done;
}

static int command_ask(void *dealer, const char *run_dir, const char *endpoint, const char *body,
                       size_t size, int64_t timeout_ms, struct buf *result, struct err *err)
{
    char name[PEER_SIZE];
    int length = snprintf(name, sizeof name, "cli-%ld", (long)getpid());
    if (socket_prepare(dealer, 0, err) < 0) {
        return -1;
    }
    if (zmq_setsockopt(dealer, ZMQ_ROUTING_ID, name, (size_t)length) < 0 ||
        zmq_connect(dealer, endpoint) < 0) {
        return err_set(err, ERR_IO, "%s: %s", endpoint, zmq_strerror(errno));
    }
    struct outbox outbox = OUTBOX_INIT;
    struct envelope env = {.type = MSG_COMMAND};
    struct buf copy = BUF_INIT;
    buf_add(&copy, body, size);
    int sent = outbox_send(&outbox, dealer, NULL, &env, &copy, err);
    buf_wipe(&copy);
    if (sent < 0 || command_wait(dealer, run_dir, timeout_ms, err) < 0) {
        outbox_drop(&outbox, NULL);
        return -1;
    }
    outbox_drop(&outbox, NULL);
    return command_answer(dealer, result, err);
}

int bus_command(const char *run_dir, const char *body, size_t size, int64_t timeout_ms,
                struct buf *result, struct err *err)
{
    char endpoint[RUNDIR_ENDPOINT_SIZE];
    if (rundir_endpoint(run_dir, endpoint, err) < 0) {
        return -1;
    }
    if (!rundir_daemon_runs(run_dir, NULL)) {
        return err_set(err, ERR_UNREACHABLE, "%s: no daemon runs here", run_dir);
    }
    void *zmq = zmq_ctx_new();
    void *dealer = zmq ? zmq_socket(zmq, ZMQ_DEALER) : NULL;
    int done = dealer ? command_ask(dealer, run_dir, endpoint, body, size, timeout_ms, result, err)
                      : err_set(err, ERR_IO, "bus: %s", zmq_strerror(errno));
    if (dealer) {
        zmq_close(dealer);
    }
    if (zmq) {
        zmq_ctx_term(zmq);
    }
    return done;
}
