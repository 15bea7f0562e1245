/* frames.c - see frames.h. Bodies travel without a copy: ZeroMQ owns the buffer's memory and frees
 * it when it is written. */
#include "model/wire/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/mem.h"

/* Messages in each direction and peer. One request is under way per stage; beyond that only
 * progress and events queue, whose overflow the outbox keeps. Small, because each may be large. */
#define HIGH_WATER_MARK 16

struct outgoing {
    struct outgoing *next;
    char peer[PEER_SIZE];
    zmq_msg_t header, body;
};

int socket_prepare(void *socket, int linger_ms, struct err *err)
{
    int hwm = HIGH_WATER_MARK;
    int64_t max = (int64_t)WIRE_MAX_BODY;
    if (zmq_setsockopt(socket, ZMQ_SNDHWM, &hwm, sizeof hwm) < 0 ||
        zmq_setsockopt(socket, ZMQ_RCVHWM, &hwm, sizeof hwm) < 0 ||
        zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max, sizeof max) < 0 ||
        zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms) < 0) {
        return err_set(err, ERR_IO, "zmq_setsockopt: %s", zmq_strerror(errno));
    }
    return 0;
}

/* Reads the rest of a message away. */
static void frames_skip(void *socket)
{
    int more = 0;
    size_t size = sizeof more;
    while (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) == 0 && more) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        int got = zmq_msg_recv(&part, socket, ZMQ_DONTWAIT);
        zmq_msg_close(&part);
        if (got < 0) {
            return;
        }
    }
}

/* 1: the routing id is read; 0: no message; -1: it cannot be a peer of ours. */
static int frames_receive_peer(void *socket, char out[PEER_SIZE], struct err *err)
{
    zmq_msg_t id;
    zmq_msg_init(&id);
    int result = 1;
    if (zmq_msg_recv(&id, socket, ZMQ_DONTWAIT) < 0) {
        result = 0;
    } else {
        size_t size = zmq_msg_size(&id);
        size_t kept = size < PEER_SIZE ? size : PEER_SIZE - 1;
        memcpy(out, zmq_msg_data(&id), kept);
        out[kept] = '\0';
        for (char *c = out; c < out + kept; c++) {
            if (*c < ' ' || *c > '~') { /* also goes to a log */
                *c = '?';
            }
        }
        if (size >= PEER_SIZE) {
            frames_skip(socket);
            result = err_set(err, ERR_INPUT, "routing id of %zu bytes", size);
        }
    }
    zmq_msg_close(&id);
    return result;
}

int frames_receive(void *socket, bool from_router, struct frames *out, struct err *err)
{
    out->peer[0] = '\0';
    if (from_router) {
        int got = frames_receive_peer(socket, out->peer, err);
        if (got <= 0) {
            return got;
        }
    }
    zmq_msg_init(&out->header);
    zmq_msg_init(&out->body);
    if (zmq_msg_recv(&out->header, socket, ZMQ_DONTWAIT) < 0) {
        frames_close(out);
        return 0;
    }
    if (!zmq_msg_more(&out->header) || zmq_msg_recv(&out->body, socket, ZMQ_DONTWAIT) < 0 ||
        zmq_msg_more(&out->body)) {
        frames_skip(socket);
        frames_close(out);
        return err_set(err, ERR_INPUT, "a message must have two frames");
    }
    return 1;
}

void frames_close(struct frames *frames)
{
    zmq_msg_close(&frames->header);
    zmq_msg_close(&frames->body);
}

void frames_move(struct frames *to, struct frames *from)
{
    memcpy(to->peer, from->peer, sizeof to->peer);
    zmq_msg_init(&to->header);
    zmq_msg_init(&to->body);
    zmq_msg_move(&to->header, &from->header);
    zmq_msg_move(&to->body, &from->body);
    frames_close(from);
}

int frames_envelope(struct frames *frames, struct envelope *out, struct err *err)
{
    return envelope_decode(zmq_msg_data(&frames->header), zmq_msg_size(&frames->header), out, err);
}

static void outgoing_free(struct outgoing *m)
{
    zmq_msg_close(&m->header);
    zmq_msg_close(&m->body);
    free(m);
}

/* The routing id, where there is one: it decides whether the message is taken; the frames after the
 * first always are (zmq_msg_send(3)). 0, or the errno. */
static int outgoing_first(struct outgoing *m, void *socket)
{
    size_t length = strlen(m->peer);
    return length && zmq_send(socket, m->peer, length, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ? errno : 0;
}

static int outgoing_rest(struct outgoing *m, void *socket)
{
    return zmq_msg_send(&m->header, socket, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
                   zmq_msg_send(&m->body, socket, ZMQ_DONTWAIT) < 0
               ? errno
               : 0;
}

static void body_free(void *bytes, void *hint)
{
    (void)hint;
    free(bytes);
}

static struct outgoing *outgoing_new(const char *peer, const struct envelope *env)
{
    struct outgoing *m = mem_alloc(sizeof *m);
    size_t length = peer ? strlen(peer) : 0;
    memcpy(m->peer, peer ? peer : "", length < PEER_SIZE ? length : PEER_SIZE - 1);
    struct buf header = BUF_INIT;
    envelope_encode(env, &header);
    zmq_msg_init_data(&m->header, header.data, header.size, body_free, NULL);
    zmq_msg_init(&m->body);
    return m;
}

static void outgoing_set_body(struct outgoing *m, struct buf *body)
{
    struct buf empty = BUF_INIT;
    if (!body) {
        buf_puts(&empty, "{\"v\":1}");
        body = &empty;
    }
    size_t size = body->size;
    zmq_msg_close(&m->body);
    zmq_msg_init_data(&m->body, buf_take(body), size, body_free, NULL);
}

static bool outbox_has(const struct outbox *outbox, const char *peer)
{
    for (const struct outgoing *m = outbox->first; m; m = m->next) {
        if (strcmp(m->peer, peer) == 0) {
            return true;
        }
    }
    return false;
}

static void outbox_append(struct outbox *outbox, struct outgoing *m)
{
    if (outbox->last) {
        outbox->last->next = m;
    } else {
        outbox->first = m;
    }
    outbox->last = m;
}

int outbox_send(struct outbox *outbox, void *socket, const char *peer, const struct envelope *env,
                struct buf *body, struct err *err)
{
    if (body && body->size > WIRE_MAX_BODY) {
        return err_set(err, ERR_TOO_LARGE, "%s of %zu bytes; a message may have %zu",
                       message_type_name(env->type), body->size, WIRE_MAX_BODY);
    }
    struct outgoing *m = outgoing_new(peer, env);
    if (outbox_has(outbox, m->peer)) {
        outgoing_set_body(m, body);
        outbox_append(outbox, m);
        return 0;
    }
    int why = outgoing_first(m, socket);
    if (why && why != EAGAIN) { /* the body stays the caller's */
        outgoing_free(m);
        return err_set(err, why == EHOSTUNREACH ? ERR_UNREACHABLE : ERR_IO, "%s: %s", peer,
                       why == EHOSTUNREACH ? "not connected" : zmq_strerror(why));
    }
    outgoing_set_body(m, body);
    why = why ? why : outgoing_rest(m, socket);
    if (why == EAGAIN) {
        outbox_append(outbox, m);
        return 0;
    }
    outgoing_free(m);
    return why ? err_set(err, ERR_IO, "bus: %s", zmq_strerror(why)) : 0;
}

void outbox_flush(struct outbox *outbox, void *socket)
{
    struct outbox kept = OUTBOX_INIT;
    for (struct outgoing *m = outbox->first, *next; m; m = next) {
        next = m->next;
        m->next = NULL;
        int why = outbox_has(&kept, m->peer) ? EAGAIN : outgoing_first(m, socket);
        why = why ? why : outgoing_rest(m, socket);
        if (why == EAGAIN) {
            outbox_append(&kept, m);
        } else {
            outgoing_free(m); /* sent, or the peer has gone */
        }
    }
    *outbox = kept;
}

bool outbox_empty(const struct outbox *outbox)
{
    return !outbox->first;
}

void outbox_drop(struct outbox *outbox, const char *peer)
{
    struct outbox kept = OUTBOX_INIT;
    for (struct outgoing *m = outbox->first, *next; m; m = next) {
        next = m->next;
        m->next = NULL;
        if (!peer || strcmp(m->peer, peer) == 0) {
            outgoing_free(m);
        } else {
            outbox_append(&kept, m);
        }
    }
    *outbox = kept;
}
