/* http.h - the status listener of `remap` (contract.md 5): /healthz, /readyz, /metrics, /api/v1/…
 * read-only JSON of what the views show, and / which names them. libmicrohttpd in external polling
 * on the one loop; a slow client waits for nobody but itself. */
#ifndef REMAP_MANAGER_HTTP_H
#define REMAP_MANAGER_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/base/mem.h"
#include "model/manager/metrics.h"
#include "model/store/store.h"
#include "model/wire/loop.h"

struct http;

/* Where answers come from; all borrowed for the life of the listener. */
struct http_source {
    struct store *store;           /* no transaction may be open while the loop turns */
    const struct metrics *metrics;
    /* True when all stages are up and the last write to the store went well; else appends why not,
     * one line. http.c itself asks the store whether it could write (store_writable). */
    bool (*ready)(void *ctx, struct buf *why);
    void *ctx;
};

struct http_options {
    const char *listen;       /* "127.0.0.1:9470", "[::1]:9470"; port 0: any; "off" or NULL: none */
    const char *probe_listen; /* serves only /healthz and /readyz, without a token; NULL: none */
    const char *token_file;   /* bearer token of `listen`; NULL: none is asked for, which is allowed
                                 on loopback only. Read again when it changes. */
};

/* ERR_CONFIG: an address that is none, or one beyond loopback without a token; ERR_IO: cannot bind.
 * *out is set also when everything is off. */
int http_start(struct loop *loop, const struct http_options *options,
               const struct http_source *source, struct http **out, struct err *err);
void http_free(struct http *http); /* closes listeners and connections; accepts NULL */
AUTO_DEFINE(http)

/* The ports in use, 0 when off (for port 0, and for logs). */
int http_port(const struct http *http);
int http_probe_port(const struct http *http);

#endif
