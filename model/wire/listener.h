/* listener.h - an HTTP listener in the one loop of a process: libmicrohttpd in external polling,
 * with limits that keep slow or many clients from holding up anybody but themselves. Used by the
 * status listener of `remap` and the webhooks of the monitor.
 *
 * Every connection ends after its answer and lives max_ms at most; where max_connections are there, one
 * that has not told its whole head within a second makes room. */
#ifndef REMAP_WIRE_LISTENER_H
#define REMAP_WIRE_LISTENER_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/base/mem.h"
#include "model/wire/loop.h"

struct addrinfo;
struct listener;

struct listener_options {
    const char *address;      /* as in address.h; port 0: any */
    unsigned max_connections; /* more wait in the kernel */
    size_t memory_bytes;      /* of a connection: request line and headers */
    unsigned idle_s;          /* a connection on which nothing happens ends */
    int64_t max_ms;           /* and any other after so long */
    const char *tls_cert, *tls_key; /* PEM texts; NULL: plain. Borrowed for the listener's life */
    const char *tls_ca; /* clients may show a certificate of these (PEM); NULL: none is asked for */
    /* libmicrohttpd's access handler: called when the headers are there, per piece of the body, and
     * at its end (size 0). It may MHD_suspend_connection(); then listener_resume() goes on. */
    MHD_AccessHandlerCallback request;
    /* Called when a request has ended, however (may be NULL). */
    MHD_RequestCompletedCallback done;
    void *ctx; /* of both */
};

/* ERR_CONFIG: no address, or a certificate that is of no use; ERR_IO: cannot bind. */
int listener_open(struct loop *loop, const struct listener_options *options, struct listener **out,
                  struct err *err);
/* Closes all connections; none may be suspended. Accepts NULL. */
void listener_free(struct listener *listener);
AUTO_DEFINE(listener)

int listener_port(const struct listener *listener); /* the one in use */
/* Does it listen on loopback only? */
bool listener_loopback(const struct listener *listener);
/* Goes on with a suspended connection; the handler is called once more with size 0. */
void listener_resume(struct listener *listener, struct MHD_Connection *connection);

/* Has the client shown a certificate that options.tls_ca signed, and that is valid now? */
bool listener_client_known(struct MHD_Connection *connection);
/* Does the connection come from this machine? */
bool listener_client_local(struct MHD_Connection *connection);

/* Queues an answer that ends the connection; takes the body's bytes. `headers` (may be NULL) are
 * name, value, name, value, …, NULL. */
enum MHD_Result listener_answer(struct MHD_Connection *connection, unsigned status,
                                const char *type, struct buf *body, const char *const *headers);

#endif
