/* server.h - api.h over a Unix socket, by libmicrohttpd in the caller's one thread. */
#ifndef REMAP_SIMULATED_SERVER_H
#define REMAP_SIMULATED_SERVER_H

#include "adapters/simulated/server/sim.h"

struct server;

/* Binds `path` (at most 107 bytes; a stale socket is removed, a living one is ERR_CONFLICT; mode
 * 0600) and serves the cluster, which is borrowed. */
struct server *server_new(const char *path, struct sim *sim, struct err *err);
/* Closes the connections and removes the socket. */
void server_free(struct server *server);
AUTO_DEFINE(server)

int server_fd(const struct server *server); /* readable: call server_run() */
/* Serves what is ready, sends delayed answers that are due. */
void server_run(struct server *server);
/* Real ms until server_run() must be called even if nothing is readable; -1: no need. */
int64_t server_wait_ms(const struct server *server);

#endif
