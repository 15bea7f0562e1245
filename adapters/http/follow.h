/* follow.h - answers that are long or without an end, read side by side: lines that a server sends when
 * something has happened (Kubernetes watches), or large lists, piece by piece. Nothing here waits unless told to; the owner calls follow_turn() now
 * and then, and the servers wait meanwhile (a connection's buffers are all that can pile up). */
#ifndef REMAP_ADAPTERS_HTTP_FOLLOW_H
#define REMAP_ADAPTERS_HTTP_FOLLOW_H

#include "adapters/http/http.h"

struct follow;      /* the owner's, of any number of answers */
struct follow_line; /* one answer */

struct follow_calls {
    /* A line, without its end. Non-zero ends the answer (ended() is called then too). */
    int (*line)(void *ctx, const char *text, size_t size);
    /* Instead, where it is set: whatever has come. */
    int (*piece)(void *ctx, const char *text, size_t size);
    /* It is over, and so is the follow_line. status 0: no answer; *err tells why, ERR_NONE where the
     * server ended a good answer. `body` is what came with an error status, cut. */
    void (*ended)(void *ctx, long status, const char *body, size_t size, const struct err *err);
};

struct follow *follow_new(void);
void follow_free(struct follow *follow); /* ends all, without calls */
AUTO_DEFINE(follow)

/* Begins a GET; `calls` and ctx live as long as it does, `http` only during this call. A line above
 * max_bytes ends it (ERR_TOO_LARGE), also total_ms. NULL and *err where a secret cannot be read. */
struct follow_line *follow_open(struct follow *follow, struct http *http, const char *path,
                                size_t max_bytes, int64_t total_ms,
                                const struct follow_calls *calls, void *ctx, struct err *err);
/* Ends it without a call. Not from its own calls. */
void follow_close(struct follow *follow, struct follow_line *line);
/* The server has begun to answer, and well. */
bool follow_is_up(const struct follow_line *line);

/* Takes what is there, and waits for more up to wait_ms. The number of lines and pieces taken. Calls may
 * open others. */
int64_t follow_turn(struct follow *follow, int64_t wait_ms);

#endif
