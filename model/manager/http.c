/* http.c - the status listener: sockets, polling, tokens, routes (contract.md 5).
 *
 * libmicrohttpd runs without threads; its epoll descriptor sits in our loop. Every connection ends
 * after its answer and lives CONNECTION_MAX_MS at most, so that few slow clients cannot take all
 * places for long, and none can hold up the loop. */
#include "model/manager/http.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/log.h"
#include "model/manager/http_api.h"

/* Scrapers, probes and a few people; each may hold an answer of some 2 MB. */
#define CONNECTION_LIMIT 32
/* Request line and headers; more is answered 414 or 431 by libmicrohttpd. */
#define CONNECTION_MEMORY (16 * 1024)
#define CONNECTION_IDLE_S 10
#define CONNECTION_MAX_MS 30000
#define SWEEP_MS 5000
#define TOKEN_MAX_BYTES 4096
#define TOKEN_MIN_BYTES 16 /* 96 bits of base64: not to be guessed over a network */

struct connection {
    int fd;
    int64_t since_ms; /* monotonic */
    struct connection *next;
};

struct listener {
    struct http *http;
    struct MHD_Daemon *daemon;
    int epoll_fd, port;
    int64_t timer;
    bool probes_only;
    bool loopback;
    struct connection *connections;
    unsigned n_connections;
};

struct http {
    struct loop *loop;
    struct http_source source;
    char *token_file, *token;
    struct listener status, probe;
    int64_t sweep;
};

/* --- polling --- */

static void on_due(void *ctx);

static void listener_run(struct listener *listener)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;
    bool full;
    do {
        /* Full, libmicrohttpd stops listening; it starts again only at the beginning of a run, which
         * nothing would call for once the connections are gone. */
        full = listener->n_connections >= CONNECTION_LIMIT;
        MHD_run(listener->daemon);
    } while (full && listener->n_connections < CONNECTION_LIMIT);
    loop_timer_cancel(listener->http->loop, listener->timer);
    listener->timer = 0;
    if (MHD_get_timeout(listener->daemon, &wait_ms) == MHD_YES) {
        int64_t delay = wait_ms > CONNECTION_MAX_MS ? CONNECTION_MAX_MS : (int64_t)wait_ms;
        listener->timer = loop_timer(listener->http->loop, delay, on_due, listener);
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

static void on_sweep(void *ctx)
{
    struct http *http = ctx;
    int64_t old_ms = clock_mono_ms() - CONNECTION_MAX_MS;
    struct listener *const listeners[] = {&http->status, &http->probe};
    for (size_t i = 0; i < ARRAY_LEN(listeners); i++) {
        for (struct connection *c = listeners[i]->connections; c; c = c->next) {
            if (c->since_ms < old_ms) {
                shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd sees the end and closes it */
            }
        }
        if (listeners[i]->daemon) {
            listener_run(listeners[i]);
        }
    }
    http->sweep = loop_timer(http->loop, SWEEP_MS, on_sweep, http);
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

/* --- who may ask --- */

/* The token of the file, without the white space around it. NULL when there is none of use. */
static char *token_read(const char *path, struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT;
    if (file_read(path, TOKEN_MAX_BYTES, &text, err)) {
        return NULL;
    }
    const char *from = text.data ? text.data : "";
    from += strspn(from, " \t\r\n");
    size_t size = strcspn(from, " \t\r\n");
    if (size < TOKEN_MIN_BYTES || from[size + strspn(from + size, " \t\r\n")]) {
        err_set(err, ERR_CONFIG, "%s: must hold one token of at least %d characters", path,
                TOKEN_MIN_BYTES);
        return NULL;
    }
    return mem_strndup(from, size);
}

/* Takes the same time wherever the texts differ. */
static bool equal_secret(const char *given, const char *secret)
{
    size_t n = strlen(given), m = strlen(secret);
    volatile unsigned char differs = n != m;
    for (size_t i = 0; i < n; i++) {
        differs |= (unsigned char)(given[i] ^ secret[i % m]);
    }
    return !differs;
}

static bool authorized(struct http *http, struct MHD_Connection *mhd)
{
    if (!http->token_file) {
        return true;
    }
    struct err ignored = ERR_INIT;
    char *fresh = token_read(http->token_file, &ignored);
    if (fresh) { /* while a new one is being written, the old one holds */
        free(http->token);
        http->token = fresh;
    }
    const char *given =
        MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    if (!given || strncasecmp(given, "Bearer ", 7) != 0) {
        return false;
    }
    given += 7 + strspn(given + 7, " ");
    return equal_secret(given, http->token);
}

/* On loopback a page in a browser could reach us under a name of its own (DNS rebinding): only
 * names of this machine are answered. */
static bool host_allowed(struct MHD_Connection *mhd)
{
    const char *host = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    if (!host) {
        return true;
    }
    size_t size = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    static const char *const names[] = {"localhost", "[::1]", NULL};
    for (size_t i = 0; names[i]; i++) {
        if (strlen(names[i]) == size && strncasecmp(host, names[i], size) == 0) {
            return true;
        }
    }
    char text[INET_ADDRSTRLEN];
    struct in_addr address;
    if (size >= sizeof text) {
        return false;
    }
    memcpy(text, host, size);
    text[size] = '\0';
    return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

/* --- answers --- */

static enum MHD_Result answer(struct MHD_Connection *mhd, unsigned status, const char *type,
                              struct buf *body)
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
    MHD_add_response_header(response, "Content-Security-Policy",
                            "default-src 'none'; style-src 'unsafe-inline'");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    if (status == MHD_HTTP_UNAUTHORIZED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                                "Bearer realm=\"remap\"");
    }
    enum MHD_Result result = MHD_queue_response(mhd, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_error(struct MHD_Connection *mhd, unsigned status, const char *why)
{
    AUTO_BUF struct buf body = BUF_INIT;
    buf_puts(&body, "{\"error\":");
    json_put_text(&body, why);
    buf_puts(&body, "}\n");
    return answer(mhd, status, "application/json", &body);
}

static enum MHD_Result answer_healthz(struct http *http, struct MHD_Connection *mhd)
{
    (void)http; /* one thread: who answers is alive, and its loop turns */
    AUTO_BUF struct buf body = BUF_INIT;
    buf_puts(&body, "ok\n");
    return answer(mhd, MHD_HTTP_OK, "text/plain; charset=utf-8", &body);
}

static enum MHD_Result answer_readyz(struct http *http, struct MHD_Connection *mhd)
{
    AUTO_BUF struct buf body = BUF_INIT;
    struct err err = ERR_INIT;
    unsigned status = MHD_HTTP_OK;
    if (!http->source.ready(http->source.ctx, &body)) {
        status = MHD_HTTP_SERVICE_UNAVAILABLE;
        buf_puts(&body, "\n");
    } else if (store_writable(http->source.store, &err)) {
        status = MHD_HTTP_SERVICE_UNAVAILABLE;
        buf_printf(&body, "%s\n", err.text);
    } else {
        buf_puts(&body, "ready\n");
    }
    return answer(mhd, status, "text/plain; charset=utf-8", &body);
}

static enum MHD_Result answer_metrics(struct http *http, struct MHD_Connection *mhd)
{
    AUTO_BUF struct buf body = BUF_INIT;
    metrics_write(http->source.metrics, clock_wall_ms(), &body);
    return answer(mhd, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &body);
}

static enum MHD_Result answer_index(struct http *http, struct MHD_Connection *mhd)
{
    (void)http;
    AUTO_BUF struct buf body = BUF_INIT;
    buf_puts(&body,
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<title>remap</title></head><body>\n<h1>remap " REMAP_VERSION "</h1>\n<ul>\n"
             "<li><a href=\"/healthz\">/healthz</a> the process is alive</li>\n"
             "<li><a href=\"/readyz\">/readyz</a> all stages are up, the store can be written</li>\n"
             "<li><a href=\"/metrics\">/metrics</a> for Prometheus</li>\n");
    for (size_t i = 0; http_api_names[i]; i++) {
        buf_printf(&body, "<li><a href=\"/api/v1/%s\">/api/v1/%s</a></li>\n", http_api_names[i],
                   http_api_names[i]);
    }
    buf_puts(&body, "</ul>\n<p>The API takes <code>?cycle=</code>, <code>?app=</code> and "
                    "<code>?limit=</code>, and answers with the rows of the store's views as JSON."
                    "</p>\n</body></html>\n");
    return answer(mhd, MHD_HTTP_OK, "text/html; charset=utf-8", &body);
}

struct parameters {
    struct http_query query;
    const char *problem;
};

static enum MHD_Result take_parameter(void *ctx, enum MHD_ValueKind kind, const char *key,
                                      const char *value)
{
    (void)kind;
    struct parameters *parameters = ctx;
    const char **to = strcmp(key, "cycle") == 0   ? &parameters->query.cycle
                      : strcmp(key, "app") == 0   ? &parameters->query.app
                      : strcmp(key, "limit") == 0 ? &parameters->query.limit
                                                  : NULL;
    if (!to) {
        parameters->problem = "unknown parameter; there are cycle, app and limit";
        return MHD_NO;
    }
    if (*to || !value) {
        parameters->problem = "a parameter is given twice or without a value";
        return MHD_NO;
    }
    *to = value;
    return MHD_YES;
}

static enum MHD_Result answer_api(struct http *http, struct MHD_Connection *mhd, const char *name)
{
    struct parameters parameters = {0};
    struct err err = ERR_INIT;
    AUTO_BUF struct buf body = BUF_INIT;
    MHD_get_connection_values(mhd, MHD_GET_ARGUMENT_KIND, take_parameter, &parameters);
    if (parameters.problem) {
        return answer_error(mhd, MHD_HTTP_BAD_REQUEST, parameters.problem);
    }
    if (http_api_answer(http->source.store, name, &parameters.query, &body, &err)) {
        unsigned status = err.kind == ERR_NOT_FOUND ? MHD_HTTP_NOT_FOUND
                          : err.kind == ERR_INPUT   ? MHD_HTTP_BAD_REQUEST
                                                    : MHD_HTTP_SERVICE_UNAVAILABLE;
        return answer_error(mhd, status, err.text);
    }
    buf_puts(&body, "\n");
    return answer(mhd, MHD_HTTP_OK, "application/json", &body);
}

/* --- routes --- */

#define API_PREFIX "/api/v1/"

static const struct route {
    const char *path;
    bool probe; /* answered also on the probes' own address, there without a token */
    enum MHD_Result (*answer)(struct http *http, struct MHD_Connection *mhd);
} routes[] = {
    {"/healthz", true, answer_healthz},
    {"/readyz", true, answer_readyz},
    {"/metrics", false, answer_metrics},
    {"/", false, answer_index},
};

static const struct route *route_find(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        if (strcmp(routes[i].path, path) == 0) {
            return &routes[i];
        }
    }
    return NULL;
}

static enum MHD_Result dispatch(struct listener *listener, struct MHD_Connection *mhd,
                                const char *path, const char *method)
{
    struct http *http = listener->http;
    const struct route *route = route_find(path);
    bool list = strcmp(path, "/api/v1") == 0;
    bool api = list || strncmp(path, API_PREFIX, strlen(API_PREFIX)) == 0;
    if (listener->loopback && !host_allowed(mhd)) {
        return answer_error(mhd, MHD_HTTP_FORBIDDEN, "this listener answers only to localhost");
    }
    if (!listener->probes_only && !authorized(http, mhd)) {
        return answer_error(mhd, MHD_HTTP_UNAUTHORIZED, "a bearer token is needed");
    }
    if (listener->probes_only ? !(route && route->probe) : !(route || api)) {
        return answer_error(mhd, MHD_HTTP_NOT_FOUND, "no such resource");
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        return answer_error(mhd, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are answered");
    }
    if (api) {
        return answer_api(http, mhd, list ? "" : path + strlen(API_PREFIX));
    }
    return route->answer(http, mhd);
}

/* Called when the headers are there, then per piece of a body (read and dropped, so that the client
 * gets to see the answer), then at its end. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *mhd, const char *path,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_size, void **request_context)
{
    static char seen;
    (void)version;
    (void)body;
    if (!*request_context) {
        *request_context = &seen;
        return MHD_YES;
    }
    if (*body_size) {
        *body_size = 0;
        return MHD_YES;
    }
    return dispatch(ctx, mhd, path, method);
}

/* --- opening --- */

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *in6 = (const void *)address;
    return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

/* "127.0.0.1:9470", "[::1]:9470", "localhost:9470" → address. Caller freeaddrinfo()s. */
static int parse_address(const char *text, struct addrinfo **out, struct err *err)
{
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    bool bracket = size > 2 && text[0] == '[' && text[size - 1] == ']';
    AUTO_FREE char *host = bracket ? mem_strndup(text + 1, size - 2) : mem_strndup(text, size);
    bool number = colon && colon[1] && strlen(colon + 1) <= 5 &&
                  strspn(colon + 1, "0123456789") == strlen(colon + 1) && atoi(colon + 1) <= 65535;
    if (strcmp(host, "localhost") == 0) {
        strcpy(host, "127.0.0.1"); /* as long */
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    if (!size || !number || (!bracket && strchr(host, ':')) ||
        getaddrinfo(host, colon + 1, &hints, out)) {
        return err_set(err, ERR_CONFIG,
                       "%s: must be an IP address and a port, such as 127.0.0.1:9470 or "
                       "[::1]:9470",
                       text);
    }
    return 0;
}

static int open_socket(const char *text, const struct sockaddr *address, socklen_t size, int *port,
                       struct err *err)
{
    int on = 1;
    struct sockaddr_storage bound;
    socklen_t bound_size = sizeof bound;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        bind(fd, address, size) || listen(fd, CONNECTION_LIMIT) ||
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

static int listener_open(struct listener *listener, const char *text,
                         const struct addrinfo *address, struct err *err)
{
    struct http *http = listener->http;
    listener->loopback = is_loopback(address->ai_addr);
    if (!listener->loopback && !listener->probes_only && !http->token_file) {
        return err_set(err, ERR_CONFIG,
                       "%s: is not loopback, so http_token_file is needed", text);
    }
    int fd = open_socket(text, address->ai_addr, address->ai_addrlen, &listener->port, err);
    if (fd < 0) {
        return -1;
    }
    listener->daemon = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, on_request, listener, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTION_LIMIT, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_IDLE_S,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, listener, MHD_OPTION_END);
    if (!listener->daemon) {
        close(fd);
        return err_set(err, ERR_IO, "%s: the HTTP listener cannot start", text);
    }
    listener->epoll_fd =
        MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    loop_watch(http->loop, listener->epoll_fd, POLLIN, on_ready, listener);
    return 0;
}

static int listener_start(struct listener *listener, const char *text, struct err *err)
{
    struct addrinfo *address = NULL;
    if (!text || strcmp(text, "off") == 0) {
        return 0;
    }
    if (parse_address(text, &address, err)) {
        return -1;
    }
    int rc = listener_open(listener, text, address, err);
    freeaddrinfo(address);
    return rc;
}

static void listener_close(struct listener *listener)
{
    if (listener->daemon) {
        loop_timer_cancel(listener->http->loop, listener->timer);
        loop_unwatch(listener->http->loop, listener->epoll_fd);
        MHD_stop_daemon(listener->daemon);
        listener->daemon = NULL;
    }
}

int http_start(struct loop *loop, const struct http_options *options,
               const struct http_source *source, struct http **out, struct err *err)
{
    AUTO(http) struct http *http = mem_alloc(sizeof *http);
    http->loop = loop;
    http->source = *source;
    http->status.http = http->probe.http = http;
    http->probe.probes_only = true;
    if (options->token_file) {
        http->token_file = mem_strdup(options->token_file);
        http->token = token_read(http->token_file, err);
        if (!http->token) {
            return -1;
        }
    }
    if (listener_start(&http->status, options->listen, err) ||
        listener_start(&http->probe, options->probe_listen, err)) {
        return -1;
    }
    http->sweep = loop_timer(loop, SWEEP_MS, on_sweep, http);
    *out = steal(http);
    return 0;
}

void http_free(struct http *http)
{
    if (!http) {
        return;
    }
    loop_timer_cancel(http->loop, http->sweep);
    listener_close(&http->status);
    listener_close(&http->probe);
    free(http->token_file);
    free(http->token);
    free(http);
}

int http_port(const struct http *http)
{
    return http->status.port;
}

int http_probe_port(const struct http *http)
{
    return http->probe.port;
}
