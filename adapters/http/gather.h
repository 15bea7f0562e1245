/* gather.h - several requests to one server at the same time, on one thread and kept connections: while
 * an answer is looked at, the server prepares the next ones. Each GET is repeated like http_get(), each
 * other sent once like http_send(); limits and errors are the same. A server that answers 429 or 503 is asked for half as many at once from then
 * on, and for none before it wants to be asked again. */
#ifndef REMAP_ADAPTERS_GATHER_H
#define REMAP_ADAPTERS_GATHER_H

#include "adapters/http/http.h"

struct gather;
struct gathered;

/* Borrows `http`. `width`: requests under way at the same time, 1 or more. ERR_INTERNAL. */
struct gather *gather_new(struct http *http, int width, struct err *err);
/* Ends what is under way. */
void gather_free(struct gather *gather);
AUTO_DEFINE(gather)

/* Asks for a path, as soon as fewer than `width` are under way: the first that was asked for goes
 * first. An answer above `max_bytes` ends as ERR_TOO_LARGE, as one above the client's own limit does.
 * gathered_free(), before or after its end, before the gather's. */
struct gathered *gather_get(struct gather *gather, const char *path, size_t max_bytes);
void gathered_free(struct gathered *gathered);
/* As gather_get(), but at once, past those that wait for their turn. */
struct gathered *gather_get_now(struct gather *gather, const char *path, size_t max_bytes);
/* A request that may change something, also at once; borrows `method`, `content_type` and `body` until
 * gathered_free(). */
struct gathered *gather_send(struct gather *gather, const char *method, const char *path,
                             const char *content_type, const void *body, size_t size);

/* The same, but as gather_get(): when its turn comes. */
struct gathered *gather_send_later(struct gather *gather, const char *method, const char *path,
                                   const char *content_type, const void *body, size_t size);

/* Asked before each of both, when it is its turn: what it refuses is not sent, and that is its end. */
void gather_guard(struct gather *gather, int (*may_send)(void *ctx, struct err *err), void *ctx);
/* Waits until all of them are on their ways. */
void gather_sends_start(struct gather *gather);

/* Lets what is under way go on, and waits for nothing. */
void gather_turn(struct gather *gather);
bool gathered_ended(const struct gathered *gathered);
/* Waits until it has ended, while the others go on; *answer is borrowed from it. */
int gather_wait(struct gathered *gathered, const struct http_answer **answer, struct err *err);
/* Waits until nothing is under way: to be called before what takes long and lets nothing else go on. */
void gather_settle(struct gather *gather);

#endif
