/* frames.h - messages of two frames on a ZeroMQ socket, and the outbox from which they are sent
 * without ever blocking. Inside model/wire only: nobody else includes zmq.h. */
#ifndef REMAP_WIRE_FRAMES_H
#define REMAP_WIRE_FRAMES_H

#include <stdbool.h>
#include <zmq.h>
#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/wire/envelope.h"

#define PEER_SIZE 32 /* "executor", "cli-2147483647" and room */

struct frames {
    char peer[PEER_SIZE]; /* who sent it; "" on a DEALER */
    zmq_msg_t header, body;
};

/* 1 and *out (frames_close() it), 0 when nothing is there, -1 when a message was not of two frames
 * or its peer's name too long (it is gone; *err says what it was; out->peer is set). */
int frames_receive(void *socket, bool from_router, struct frames *out, struct err *err);
void frames_close(struct frames *frames);
/* *to is overwritten (it holds nothing); *from is closed. */
void frames_move(struct frames *to, struct frames *from);
/* Decodes the header. ERR_INPUT. */
int frames_envelope(struct frames *frames, struct envelope *out, struct err *err);

struct outbox {
    struct outgoing *first, *last;
};
#define OUTBOX_INIT                                                                                \
    {                                                                                              \
        NULL, NULL                                                                                 \
    }

/* Sends, or keeps the message when the peer does not take it now. Takes the body's bytes (NULL:
 * {"v":1}) on success only. ERR_TOO_LARGE: nothing was sent; ERR_UNREACHABLE: a ROUTER knows no
 * such peer; ERR_IO. `peer` NULL on a DEALER. */
int outbox_send(struct outbox *outbox, void *socket, const char *peer, const struct envelope *env,
                struct buf *body, struct err *err);
/* Sends what it can, in order for each peer; drops what is for peers that have gone. */
void outbox_flush(struct outbox *outbox, void *socket);
bool outbox_empty(const struct outbox *outbox);
/* Forgets what waits for a peer; NULL: everything. */
void outbox_drop(struct outbox *outbox, const char *peer);

/* The options common to both ends: HWM, MAXMSGSIZE, LINGER. ERR_IO. */
int socket_prepare(void *socket, int linger_ms, struct err *err);

#endif
