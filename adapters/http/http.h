/* http.h - the HTTP client that every adapter shares (interfaces.md 0), over libcurl.
 *
 * One `struct http` is one server: a base URL, maybe a Unix socket, and a connection that is kept
 * open. No redirect is followed (it would carry credentials elsewhere). Answers above max_bytes are
 * refused. GETs and queries are repeated on connect errors, time-outs, 429 and 5xx with capped exponential
 * backoff and jitter, and obey Retry-After; writes are sent once, because after a time-out nobody
 * knows what happened: read the object again instead. Each goes over a connection of its own, unless
 * keep_writes: then one that breaks under a write is like a time-out.
 *
 * Errors name method and URL without user, password and query:
 *   ERR_UNREACHABLE  no answer, a time-out, 429, 5xx
 *   ERR_NOT_FOUND    404, 410
 *   ERR_CONFLICT     409, 412
 *   ERR_REFUSED      any other 4xx, and redirects
 *   ERR_TOO_LARGE    the answer is above max_bytes
 *   ERR_CONFIG       options that make no sense
 * The answer's status and body are filled wherever there was one, also with an error. */
#ifndef REMAP_ADAPTERS_HTTP_H
#define REMAP_ADAPTERS_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/base/mem.h"

struct http_options {        /* all borrowed during http_new() only; 0 and NULL mean the default */
    const char *base_url;    /* "http://host:port/prefix"; default "http://localhost" */
    const char *unix_socket; /* path; the host of the URL is then only a name */
    const char *const *headers;  /* "Name: value", ended by NULL */
    const char *token_file;      /* bearer token, read again at each request */
    const char *user, *password; /* basic authentication */
    const char *password_file;   /* instead of password; read again at each request */
    const char *ca_file;         /* trust only this */
    bool any_name;               /* … whatever host name it bears: ca_file is the server's own */
    const char *cert_file, *key_file; /* own certificate (PEM), read at each connection */
    const char *ca_pem, *cert_pem, *key_pem; /* the same three as texts */
    const char *server_name;     /* the certificate's, where it is not the URL's host */
    const char *proxy;           /* URL; default: as the environment says (https_proxy, …) */
    bool no_verify;              /* takes any certificate: the operator's own decision */
    bool no_compression;
    bool keep_writes;            /* over kept connections too: no new TLS session for each */
    int64_t connect_timeout_ms;  /* 2 s */
    int64_t total_timeout_ms;    /* one attempt, answer included; 10 s */
    size_t max_bytes;            /* of an answer, decoded; 64 MiB */
    int attempts;                /* of a GET in all; 4 */
    int64_t backoff_ms;          /* first pause, doubled each time; 100 ms */
    int64_t backoff_max_ms;      /* no pause is longer, whatever Retry-After says; 5 s */
};

struct http_answer {
    long status; /* 0: none */
    struct buf body;
    int64_t retry_after_ms; /* -1: not given */
    int attempts;
    const char *wanted; /* set by the caller: "Name:" of a header whose value is kept; NULL: none */
    char header[64];    /* its value, cut; "" when it did not come */
};
#define HTTP_ANSWER_INIT                                                                           \
    {                                                                                              \
        0, BUF_INIT, -1, 0, NULL, ""                                                               \
    }
void http_answer_wipe(struct http_answer *answer);
#define AUTO_HTTP_ANSWER __attribute__((cleanup(http_answer_wipe)))

struct http;
struct http *http_new(const struct http_options *options, struct err *err);
void http_free(struct http *http);
AUTO_DEFINE(http)

/* The bearer token of all further requests, in place of any token file; NULL: none. */
void http_set_bearer(struct http *http, const char *token);

/* The time of one attempt, for those that wait in a way of their own. */
int64_t http_timeout_ms(const struct http *http);

/* From now on idle(ctx) is called some 20 times a second by everything here that waits, so that a
 * process with one thread can do something else meanwhile (the monitor listens for webhooks). It is
 * the process's, as its loop is: adapters know nothing of either. NULL: no more. Not from idle(). */
void http_idle(void (*idle)(void *ctx), void *ctx);

/* Calls it now: for those here that wait in a way of their own (follow.h). */
void http_idle_now(void);

/* Waits, with idle() in between. */
void http_wait(int64_t ms);

/* `path` begins with "/" and is put after the base URL as it is (http_escape() its parts). */
int http_get(struct http *http, const char *path, struct http_answer *out, struct err *err);

/* A GET whose body goes to `sink` piece by piece and is never held whole; max_bytes still limits
 * it. A sink that returns non-zero ends the transfer (ERR_INPUT unless it set *err itself).
 * Repeated only as long as the sink has seen nothing. */
int http_stream(struct http *http, const char *path,
                int (*sink)(void *ctx, const char *data, size_t size, struct err *err), void *ctx,
                struct http_answer *out, struct err *err);

/* One request that may change something, sent once. `body` may be NULL. */
int http_send(struct http *http, const char *method, const char *path, const char *content_type,
              const void *body, size_t size, struct http_answer *out, struct err *err);

/* A POST that only asks, such as a long query: repeated like a GET, its body to `sink` (may be NULL:
 * to out->body) as by http_stream(). */
int http_query(struct http *http, const char *path, const char *content_type, const void *body,
               size_t size, int (*sink)(void *ctx, const char *data, size_t size, struct err *err),
               void *ctx, struct http_answer *out, struct err *err);

/* Appends `text` percent-encoded, for one part of a path or one value of a query. */
void http_escape(struct buf *out, const char *text);

/* Seconds or an HTTP date (relative to now_ms), in ms; -1 when neither. */
int64_t http_retry_after_ms(const char *value, int64_t now_ms);

/* The pause before attempt `attempt` (2, 3, …): backoff doubled, capped, its upper half random. */
int64_t http_pause_ms(int attempt, int64_t backoff_ms, int64_t backoff_max_ms, uint64_t random);

#endif
