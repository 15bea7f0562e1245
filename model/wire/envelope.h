/* envelope.h - the header frame of every message on the bus, the kinds of messages, and the table
 * of who may say what to whom. The protocol in words: README.md beside this file.
 *
 * A message is two frames: this header as strict JSON, `{"v":1,"type":"plan","cycle":42,
 * "attempt":1}` (plus "seq" for intent and proceed, "id" for event and stored), and a body whose
 * bytes are never encoded anew on the way. */
#ifndef REMAP_WIRE_ENVELOPE_H
#define REMAP_WIRE_ENVELOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/buf.h"
#include "model/base/err.h"

#define WIRE_VERSION 1
/* A model document may have 256 MiB (contract.md 2); a request carries one or two and options. */
#define WIRE_MAX_BODY ((size_t)640 << 20)

enum message_type {
    /* to the manager */
    MSG_HELLO,    /* stage → manager: name, pid, version; the first message of a life */
    MSG_EVENT,    /* stage → manager: something to keep (a webhook); answered by stored */
    MSG_INTENT,   /* executor → manager: about to act; answered by proceed */
    MSG_PROGRESS, /* stage → manager: work counter, notes, outcomes; extends the deadline */
    MSG_RESULT,   /* stage → manager (and manager → cli): the answer to a request */
    MSG_FAILURE,  /* the same, when there is none: kind and text of the error */
    MSG_COMMAND,  /* cli → manager */
    MSG_COUNTERS, /* monitor → manager: what a receiver has counted since its start; no answer */
    MSG_KEPT,     /* executor → manager: who has paused moves in the cluster; no answer */
    /* from the manager */
    MSG_COLLECT, /* → monitor */
    MSG_ANALYZE, /* → analyzer */
    MSG_DRIFT,   /* → analyzer: how far traffic has moved since a placement was planned */
    MSG_PLAN,    /* → planner */
    MSG_EXECUTE, /* → executor */
    MSG_RELEASE, /* → executor: take off what remap left in the cluster */
    MSG_CHECK,   /* → monitor: reach every source and say what is seen (filter only) */
    MSG_IMPORT,  /* → monitor: recorded data into a model (filter only) */
    MSG_PROCEED, /* → executor: the intent is committed */
    MSG_STORED,  /* → monitor, executor: the event is committed */
    MSG_CONFIGURE, /* → monitor: what to listen to from now on; → executor: what to keep up between
                      requests; no answer (as a filter of the monitor: a check) */
    MSG_STOP,    /* → any stage: wind up the request of this cycle; cycle 0: leave */
    MSG_N_TYPES
};

enum party {
    PARTY_MANAGER,
    PARTY_MONITOR,
    PARTY_ANALYZER,
    PARTY_PLANNER,
    PARTY_EXECUTOR,
    PARTY_CLI,
    PARTY_N
};

struct envelope {
    enum message_type type;
    int64_t cycle; /* 0: belongs to no cycle */
    int64_t attempt;
    int64_t seq; /* intent, proceed: the move; 0 elsewhere */
    int64_t id;  /* event, stored: the sender's number of the event; 0 elsewhere */
};

void envelope_encode(const struct envelope *env, struct buf *out);
/* ERR_INPUT on anything but exactly the known keys in range. */
int envelope_decode(const char *text, size_t size, struct envelope *out, struct err *err);

const char *message_type_name(enum message_type type);
int message_type_from_name(const char *name); /* -1 when unknown */
const char *party_name(enum party party);     /* "monitor": also the routing id of the stage */

/* The const table of design.md 3: may `from` send `type` to `to`? */
bool message_allowed(enum party from, enum party to, enum message_type type);

#endif
