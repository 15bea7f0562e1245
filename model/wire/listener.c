/* listener.c - sockets and polling of an HTTP listener. libmicrohttpd runs without threads; its
 * epoll descriptor sits in our loop. */
#include "model/wire/listener.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "model/base/address.h"
#include "model/base/clock.h"

#define SWEEP_MS 5000
#define SWEEP_FULL_MS 500 /* while no more connections are taken */
#define HEAD_MS 1000      /* what a head may take then */

struct connection {
    int fd;
    int64_t since_ms; /* monotonic */
    bool asks;        /* its head was there */
    struct connection *next;
};

struct listener {
    struct loop *loop;
    struct listener_options options;
    struct MHD_Daemon *daemon;
    int epoll_fd, port;
    int64_t timer, sweep;
    bool loopback;
    struct connection *connections;
    unsigned n_connections;
};

/* --- polling --- */

static void on_due(void *ctx);

static void listener_run(struct listener *listener)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;
    unsigned limit = listener->options.max_connections;
    bool full;
    do {
        /* Full, libmicrohttpd stops listening; it starts again only at the beginning of a run,
         * which nothing would call for once the connections are gone. */
        full = listener->n_connections >= limit;
        MHD_run(listener->daemon);
    } while (full && listener->n_connections < limit);
    loop_timer_cancel(listener->loop, listener->timer);
    listener->timer = 0;
    if (MHD_get_timeout(listener->daemon, &wait_ms) == MHD_YES) {
        int64_t max_ms = listener->options.max_ms;
        int64_t delay = wait_ms > (MHD_UNSIGNED_LONG_LONG)max_ms ? max_ms : (int64_t)wait_ms;
        listener->timer = loop_timer(listener->loop, delay, on_due, listener);
    }
}

static void on_due(void *ctx)
{
    listener_run(ctx);
}

static void on_ready(void *ctx, int fd, short events)
{
    (void)fd;
    (void)events;
    listener_run(ctx);
}

static void sweep_in(struct listener *listener, int64_t delay_ms);

static void on_sweep(void *ctx)
{
    struct listener *listener = ctx;
    int64_t now_ms = clock_mono_ms();
    bool full = listener->n_connections >= listener->options.max_connections;
    for (struct connection *c = listener->connections; c; c = c->next) {
        int64_t age_ms = now_ms - c->since_ms;
        if (age_ms > listener->options.max_ms || (full && !c->asks && age_ms > HEAD_MS)) {
            shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd sees the end and closes it */
        }
    }
    listener_run(listener);
    sweep_in(listener, full ? SWEEP_FULL_MS : SWEEP_MS);
}

static void sweep_in(struct listener *listener, int64_t delay_ms)
{
    loop_timer_cancel(listener->loop, listener->sweep);
    listener->sweep = loop_timer(listener->loop, delay_ms, on_sweep, listener);
}

static enum MHD_Result on_access(void *ctx, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *size, void **request_context)
{
    struct listener *listener = ctx;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    ((struct connection *)info->socket_context)->asks = true;
    return listener->options.request(listener->options.ctx, mhd, url, method, version, data, size,
                                     request_context);
}

static void on_connection(void *ctx, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct listener *listener = ctx;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *fd =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct connection *connection = mem_alloc(sizeof *connection);
        connection->fd = fd->connect_fd;
        connection->since_ms = clock_mono_ms();
        connection->next = listener->connections;
        listener->connections = connection;
        listener->n_connections++;
        *socket_context = connection;
        if (listener->n_connections == listener->options.max_connections)
            sweep_in(listener, SWEEP_FULL_MS);
        return;
    }
    struct connection **at = &listener->connections;
    while (*at != *socket_context) {
        at = &(*at)->next;
    }
    struct connection *gone = *at;
    *at = gone->next;
    listener->n_connections--;
    free(gone);
}

void listener_resume(struct listener *listener, struct MHD_Connection *connection)
{
    MHD_resume_connection(connection);
    listener_run(listener);
}

/* --- opening --- */

static int open_socket(const char *text, const struct addrinfo *address, unsigned backlog,
                       int *port, struct err *err)
{
    int on = 1;
    struct sockaddr_storage bound;
    socklen_t bound_size = sizeof bound;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, (int)backlog) ||
        getsockname(fd, (struct sockaddr *)&bound, &bound_size)) {
        err_set(err, ERR_IO, "%s: %s", text, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    *port = ntohs(bound.ss_family == AF_INET ? ((struct sockaddr_in *)&bound)->sin_port
                                             : ((struct sockaddr_in6 *)&bound)->sin6_port);
    return fd;
}

static int listener_start(struct listener *listener, int fd, struct err *err)
{
    const struct listener_options *o = &listener->options;
    struct MHD_OptionItem more[] = {{MHD_OPTION_END, 0, NULL},
                                    {MHD_OPTION_END, 0, NULL},
                                    {MHD_OPTION_END, 0, NULL},
                                    {MHD_OPTION_END, 0, NULL},
                                    {MHD_OPTION_END, 0, NULL}};
    size_t n = 0;
    if (o->done) {
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)o->done, o->ctx};
    }
    if (o->tls_cert) { /* libmicrohttpd wants char *, and only reads */
        void *cert = (void *)(uintptr_t)o->tls_cert, *key = (void *)(uintptr_t)o->tls_key;
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, cert};
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, key};
        void *ca = (void *)(uintptr_t)o->tls_ca;
        if (ca)
            more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, ca};
    }
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (o->tls_cert ? MHD_USE_TLS : 0);
    listener->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_access, listener, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, o->max_connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        o->memory_bytes, MHD_OPTION_CONNECTION_TIMEOUT, o->idle_s, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, listener, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
    if (!listener->daemon) {
        close(fd);
        return err_set(err, o->tls_cert ? ERR_CONFIG : ERR_IO, "%s: the listener cannot start%s",
                       o->address, o->tls_cert ? "; do certificate and key belong together?" : "");
    }
    return 0;
}

int listener_open(struct loop *loop, const struct listener_options *options, struct listener **out,
                  struct err *err)
{
    struct addrinfo *address = NULL;
    if (address_parse(options->address, &address, err)) {
        return -1;
    }
    AUTO(listener) struct listener *listener = mem_alloc(sizeof *listener);
    listener->loop = loop;
    listener->options = *options;
    listener->loopback = address_is_loopback(address->ai_addr);
    int fd = open_socket(options->address, address, options->max_connections, &listener->port, err);
    freeaddrinfo(address);
    if (fd < 0 || listener_start(listener, fd, err)) {
        return -1;
    }
    listener->options.address = NULL; /* borrowed for this call only */
    listener->epoll_fd = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    loop_watch(loop, listener->epoll_fd, POLLIN, on_ready, listener);
    listener->sweep = loop_timer(loop, SWEEP_MS, on_sweep, listener);
    *out = steal(listener);
    return 0;
}

void listener_free(struct listener *listener)
{
    if (listener && listener->daemon) {
        loop_timer_cancel(listener->loop, listener->timer);
        loop_timer_cancel(listener->loop, listener->sweep);
        loop_unwatch(listener->loop, listener->epoll_fd);
        MHD_stop_daemon(listener->daemon);
    }
    free(listener);
}

int listener_port(const struct listener *listener)
{
    return listener->port;
}

bool listener_loopback(const struct listener *listener)
{
    return listener->loopback;
}

bool listener_client_known(struct MHD_Connection *connection)
{
    unsigned status = 0;
    const union MHD_ConnectionInfo *tls =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return tls && tls->tls_session &&
           gnutls_certificate_verify_peers2(tls->tls_session, &status) == GNUTLS_E_SUCCESS &&
           status == 0;
}

bool listener_client_local(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } here, there;
    socklen_t here_size = sizeof here, there_size = sizeof there;
    if (!fd || getsockname(fd->connect_fd, &here.any, &here_size) ||
        getpeername(fd->connect_fd, &there.any, &there_size) ||
        here.any.sa_family != there.any.sa_family)
        return false;
    if (address_is_loopback(&there.any))
        return true;
    return here.any.sa_family == AF_INET
               ? here.in.sin_addr.s_addr == there.in.sin_addr.s_addr
               : IN6_ARE_ADDR_EQUAL(&here.in6.sin6_addr, &there.in6.sin6_addr);
}

enum MHD_Result listener_answer(struct MHD_Connection *connection, unsigned status,
                                const char *type, struct buf *body, const char *const *headers)
{
    size_t size = body->size;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, buf_take(body), MHD_RESPMEM_MUST_FREE);
    if (!response) {
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    for (size_t i = 0; headers && headers[i]; i += 2) {
        MHD_add_response_header(response, headers[i], headers[i + 1]);
    }
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}
