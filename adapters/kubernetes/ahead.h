/* ahead.h - answers that are asked for before they are needed (kube_api_ahead_*), several at a time over
 * one connection. Inside adapters/kubernetes, a part of api.c. */
#ifndef REMAP_KUBERNETES_AHEAD_H
#define REMAP_KUBERNETES_AHEAD_H

#include "adapters/http/gather.h"

struct ahead {             /* all zero: nothing was asked for yet */
    struct gather *gather; /* over the client of the first ahead_ask() */
    struct ahead_one *list;
    size_t n;
    bool keeps; /* what is asked for now outlives writes */
    struct ahead_sent **sent;
    size_t n_sent;
};

/* Before the client's own end. */
void ahead_wipe(struct ahead *ahead);

/* Asks, unless it is asked for already. Takes the path. */
void ahead_ask(struct ahead *ahead, struct http *http, char *path, size_t max_bytes);
/* Forgets what is not kept, or all. */
void ahead_forget(struct ahead *ahead, bool all);
/* Something is asked for: then requests go over the same connection, so that the rest goes on while they
 * are waited for. */
bool ahead_is_busy(const struct ahead *ahead);

/* All three wait, and leave the answer in *out (errors and limits are http_get()'s and http_send()'s). The
 * answer that was asked for, and it is used up; where there is none, one of now. */
int ahead_get(struct ahead *ahead, const char *path, size_t max_bytes, struct http_answer *out,
              struct err *err);
/* The answer that was asked for, and it stays. ERR_NOT_FOUND: there is none. */
int ahead_peek(struct ahead *ahead, const char *path, struct http_answer *out, struct err *err);
int ahead_send(struct ahead *ahead, const char *method, const char *path, const char *content_type,
               const char *body, size_t size, struct http_answer *out, struct err *err);

/* Sends it beside whatever else goes on; takes the body, `method` must last. NULL: there is no connection.
 * Once, and never again. */
struct ahead_sent *ahead_send_begin(struct ahead *ahead, struct http *http, const char *method,
                                    const char *path, const char *content_type, char *body);
/* Waits for its answer, as ahead_send(), and frees it. Where the connection was given up meanwhile nobody
 * knows what became of it: ERR_UNREACHABLE. */
int ahead_send_end(struct ahead_sent *sent, struct http_answer *out, struct err *err);
/* Nobody waits for it: what is refused or lost stays so. */
void ahead_send_leave(struct ahead_sent *sent);
/* Waits until all are on their ways. */
void ahead_sends_start(struct ahead *ahead);
/* Lets those go on that nobody waits for, and with `wait` waits for the last of them. true: the server did
 * not take the credentials of one. */
bool ahead_left_turn(struct ahead *ahead, bool wait);

#endif
