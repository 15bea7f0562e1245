/* http.c - the status listener: tokens, routes (contract.md 5). Sockets, polling and the limits of
 * connections are model/wire/listener.c's. */
#include "model/manager/http.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "model/base/address.h"
#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/log.h"
#include "model/manager/http_api.h"
#include "model/wire/listener.h"

/* Scrapers, probes and a few people; each may hold an answer of some 2 MB. */
#define CONNECTION_LIMIT 32
/* Request line and headers; more is answered 414 or 431 by libmicrohttpd. */
#define CONNECTION_MEMORY (16 * 1024)
#define CONNECTION_IDLE_S 10
#define CONNECTION_MAX_MS 30000
#define TOKEN_MAX_BYTES 4096
#define TOKEN_MIN_BYTES 16 /* 96 bits of base64: not to be guessed over a network */

struct endpoint {
    struct http *http;
    struct listener *listener; /* NULL: off */
    bool probes_only;
    bool loopback;
};

struct http {
    struct http_source source;
    char *token_file, *token;
    struct endpoint status, probe;
};

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
    const char *headers[] = {"Content-Security-Policy",
                             "default-src 'none'; style-src 'unsafe-inline'", NULL, NULL, NULL};
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        headers[2] = MHD_HTTP_HEADER_ALLOW;
        headers[3] = "GET, HEAD";
    }
    if (status == MHD_HTTP_UNAUTHORIZED) {
        headers[2] = MHD_HTTP_HEADER_WWW_AUTHENTICATE;
        headers[3] = "Bearer realm=\"remap\"";
    }
    return listener_answer(mhd, status, type, body, headers);
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

static enum MHD_Result dispatch(struct endpoint *endpoint, struct MHD_Connection *mhd,
                                const char *path, const char *method)
{
    struct http *http = endpoint->http;
    const struct route *route = route_find(path);
    bool list = strcmp(path, "/api/v1") == 0;
    bool api = list || strncmp(path, API_PREFIX, strlen(API_PREFIX)) == 0;
    if (endpoint->loopback && !host_allowed(mhd)) {
        return answer_error(mhd, MHD_HTTP_FORBIDDEN, "this listener answers only to localhost");
    }
    if (!endpoint->probes_only && !authorized(http, mhd)) {
        return answer_error(mhd, MHD_HTTP_UNAUTHORIZED, "a bearer token is needed");
    }
    if (endpoint->probes_only ? !(route && route->probe) : !(route || api)) {
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

static int endpoint_start(struct endpoint *endpoint, struct loop *loop, const char *address,
                          struct err *err)
{
    if (!address || strcmp(address, "off") == 0) {
        return 0;
    }
    if (address_check(address, &endpoint->loopback, err)) {
        return -1;
    }
    if (!endpoint->loopback && !endpoint->probes_only && !endpoint->http->token_file) {
        return err_set(err, ERR_CONFIG, "%s: is not loopback, so http_token_file is needed",
                       address);
    }
    const struct listener_options options = {.address = address,
                                             .max_connections = CONNECTION_LIMIT,
                                             .memory_bytes = CONNECTION_MEMORY,
                                             .idle_s = CONNECTION_IDLE_S,
                                             .max_ms = CONNECTION_MAX_MS,
                                             .request = on_request,
                                             .ctx = endpoint};
    return listener_open(loop, &options, &endpoint->listener, err);
}

int http_start(struct loop *loop, const struct http_options *options,
               const struct http_source *source, struct http **out, struct err *err)
{
    AUTO(http) struct http *http = mem_alloc(sizeof *http);
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
    if (endpoint_start(&http->status, loop, options->listen, err) ||
        endpoint_start(&http->probe, loop, options->probe_listen, err)) {
        return -1;
    }
    *out = steal(http);
    return 0;
}

void http_free(struct http *http)
{
    if (!http) {
        return;
    }
    listener_free(http->status.listener);
    listener_free(http->probe.listener);
    free(http->token_file);
    free(http->token);
    free(http);
}

int http_port(const struct http *http)
{
    return http->status.listener ? listener_port(http->status.listener) : 0;
}

int http_probe_port(const struct http *http)
{
    return http->probe.listener ? listener_port(http->probe.listener) : 0;
}
