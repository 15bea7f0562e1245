/* http.c - requests over libcurl with limits and the retry table of interfaces.md 0. */
#include "adapters/http/http.h"

#include "model/base/clock.h"
#include "model/base/file.h"

#include <assert.h>
#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TOKEN_MAX_BYTES                                                                            \
    65536                 /* bound tokens are 1 to 2 KiB; certificates in them stay below 64       \
                           */
#define EXCERPT_BYTES 160 /* of an error body: one line of struct err with room for the URL */

typedef int (*sink_fn)(void *ctx, const char *data, size_t size, struct err *err);

struct http {
    CURL *curl;
    CURLM *multi; /* NULL: none has been needed */
    char *base;   /* without a slash at the end */
    char *shown;  /* the same without user and password */
    char *unix_socket, *token_file, *user, *password, *password_file, *ca_file, *cert_file,
        *key_file, *ca_pem, *cert_pem, *key_pem, *proxy, *bearer;
    struct curl_slist *connect_to; /* NULL: where the URL says */
    bool no_verify, no_compression;
    struct curl_slist *headers;
    int64_t connect_timeout_ms, total_timeout_ms, backoff_ms, backoff_max_ms;
    size_t max_bytes;
    bool any_name;
    int attempts;
    uint64_t random; /* state of the jitter: timing only, no result depends on it */
};

#define IDLE_MS 50 /* a webhook is answered within 100 ms (contract.md 5) */

static struct { /* see http_idle() */
    void (*call)(void *ctx);
    void *ctx;
} idle;

void http_idle(void (*call)(void *ctx), void *ctx)
{
    idle.call = call;
    idle.ctx = ctx;
}

struct transfer { /* one attempt */
    struct http_answer *answer;
    size_t max_bytes, seen;
    bool too_large, sink_failed;
    sink_fn sink;
    void *sink_ctx;
    struct err *err;
    CURL *curl;
};

void http_answer_wipe(struct http_answer *answer)
{
    buf_wipe(&answer->body);
    answer->status = 0;
    answer->retry_after_ms = -1;
    answer->attempts = 0;
}

void http_escape(struct buf *out, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (isalnum(*c) || *c == '-' || *c == '.' || *c == '_' || *c == '~') {
            buf_add(out, c, 1);
        } else {
            const char coded[3] = {'%', digits[*c >> 4], digits[*c & 15]};
            buf_add(out, coded, sizeof coded);
        }
    }
}

int64_t http_retry_after_ms(const char *value, int64_t now_ms)
{
    while (*value == ' ' || *value == '\t')
        value++;
    if (isdigit((unsigned char)*value)) {
        int64_t seconds = 0;
        for (; isdigit((unsigned char)*value); value++) {
            if (seconds > 1000000) /* 11 days: capped later anyway */
                return INT64_C(1000000000);
            seconds = seconds * 10 + (*value - '0');
        }
        return seconds * 1000;
    }
    time_t when = curl_getdate(value, NULL);
    if (when == -1)
        return -1;
    int64_t ms = (int64_t)when * 1000 - now_ms;
    return ms > 0 ? ms : 0;
}

int64_t http_pause_ms(int attempt, int64_t backoff_ms, int64_t backoff_max_ms, uint64_t random)
{
    int64_t pause = backoff_ms;
    for (int i = 2; i < attempt && pause < backoff_max_ms; i++)
        pause *= 2;
    if (pause > backoff_max_ms)
        pause = backoff_max_ms;
    int64_t half = pause / 2;
    return half + (int64_t)(random % (uint64_t)(pause - half + 1));
}

static uint64_t http_random(struct http *http)
{
    uint64_t x = http->random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The URL as people may see it: no user, no password, no query. */
static char *url_shown(const char *url)
{
    const char *scheme_end = strstr(url, "://");
    const char *host = scheme_end ? scheme_end + 3 : url;
    size_t authority = strcspn(host, "/?#");
    const char *at = NULL;
    for (size_t i = 0; i < authority; i++)
        if (host[i] == '@')
            at = host + i;
    const char *rest = at ? at + 1 : host;
    return mem_printf("%.*s%.*s", (int)(host - url), url, (int)strcspn(rest, "?#"), rest);
}

static int options_check(const struct http_options *o, const char *base, struct err *err)
{
    if (strncmp(base, "http://", 7) != 0 && strncmp(base, "https://", 8) != 0)
        return err_set(err, ERR_CONFIG, "URL must begin with http:// or https://");
    if (strpbrk(base, "?#\r\n "))
        return err_set(err, ERR_CONFIG, "base URL has a query, a fragment or a space");
    for (size_t i = 0; o->headers && o->headers[i]; i++)
        if (!strchr(o->headers[i], ':') || strpbrk(o->headers[i], "\r\n"))
            return err_set(err, ERR_CONFIG, "header %zu is not \"Name: value\" in one line", i + 1);
    return 0;
}

/* The URL then bears the name that the certificate must have, and the connection goes where the URL
 * went before. */
static void use_server_name(struct http *http, const char *name)
{
    const char *host = strstr(http->base, "://") + 3;
    const char *at = memchr(host, '@', strcspn(host, "/"));
    host = at ? at + 1 : host;
    size_t host_size = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
    const char *rest = host + (host_size < strlen(host) ? host_size : strlen(host));
    int port_size = *rest == ':' ? (int)strcspn(rest + 1, "/") : 0;
    AUTO_FREE char *to = mem_printf("::%.*s:%.*s", (int)(rest - host), host, port_size, rest + 1);
    http->connect_to = curl_slist_append(NULL, to);
    char *base = mem_printf("%.*s%s%s", (int)(host - http->base), http->base, name, rest);
    free(http->base);
    http->base = base;
}

static int64_t or_default(int64_t value, int64_t fallback)
{
    return value > 0 ? value : fallback;
}

struct http *http_new(const struct http_options *o, struct err *err)
{
    const char *base = o->base_url ? o->base_url : "http://localhost";
    if (options_check(o, base, err))
        return NULL;
    struct http *http = mem_alloc(sizeof *http);
    size_t size = strlen(base);
    while (size && base[size - 1] == '/')
        size--;
    http->base = mem_strndup(base, size);
    http->shown = url_shown(http->base);
    http->unix_socket = mem_strdup(o->unix_socket);
    http->token_file = mem_strdup(o->token_file);
    http->user = mem_strdup(o->user);
    http->password = mem_strdup(o->password);
    http->password_file = mem_strdup(o->password_file);
    http->ca_file = mem_strdup(o->ca_file);
    http->any_name = o->any_name && o->ca_file;
    http->cert_file = mem_strdup(o->cert_file);
    http->key_file = mem_strdup(o->key_file);
    http->ca_pem = mem_strdup(o->ca_pem);
    http->cert_pem = mem_strdup(o->cert_pem);
    http->key_pem = mem_strdup(o->key_pem);
    http->proxy = mem_strdup(o->proxy);
    http->no_verify = o->no_verify;
    http->no_compression = o->no_compression;
    if (o->server_name)
        use_server_name(http, o->server_name);
    for (size_t i = 0; o->headers && o->headers[i]; i++)
        http->headers = curl_slist_append(http->headers, o->headers[i]);
    http->connect_timeout_ms = or_default(o->connect_timeout_ms, 2000);
    http->total_timeout_ms = or_default(o->total_timeout_ms, 10000);
    http->backoff_ms = or_default(o->backoff_ms, 100);
    http->backoff_max_ms = or_default(o->backoff_max_ms, 5000);
    http->max_bytes = o->max_bytes ? o->max_bytes : (size_t)64 << 20;
    http->attempts = o->attempts > 0 ? o->attempts : 4;
    http->random = (uint64_t)clock_mono_ms() ^ (uint64_t)(uintptr_t)http;
    http->curl = curl_easy_init();
    if (!http->curl) {
        http_free(http);
        err_set(err, ERR_INTERNAL, "libcurl does not start");
        return NULL;
    }
    return http;
}

void http_set_bearer(struct http *http, const char *token)
{
    if (http->bearer)
        explicit_bzero(http->bearer, strlen(http->bearer));
    free(http->bearer);
    http->bearer = mem_strdup(token);
}

void http_free(struct http *http)
{
    if (!http)
        return;
    if (http->curl)
        curl_easy_cleanup(http->curl);
    if (http->multi)
        curl_multi_cleanup(http->multi);
    curl_slist_free_all(http->headers);
    free(http->base);
    free(http->shown);
    free(http->unix_socket);
    free(http->token_file);
    free(http->user);
    if (http->password)
        explicit_bzero(http->password, strlen(http->password));
    free(http->password);
    free(http->password_file);
    free(http->ca_file);
    free(http->cert_file);
    free(http->key_file);
    free(http->ca_pem);
    free(http->cert_pem);
    if (http->key_pem)
        explicit_bzero(http->key_pem, strlen(http->key_pem));
    free(http->key_pem);
    free(http->proxy);
    curl_slist_free_all(http->connect_to);
    http_set_bearer(http, NULL);
    free(http);
}

static size_t on_body(char *data, size_t unit, size_t count, void *ctx)
{
    struct transfer *t = ctx;
    size_t size = unit * count;
    if (size > t->max_bytes - t->seen) {
        t->too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    t->seen += size;
    long status = 0;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    if (t->sink && status / 100 == 2) {
        if (size && t->sink(t->sink_ctx, data, size, t->err)) {
            t->sink_failed = true;
            return CURL_WRITEFUNC_ERROR;
        }
    } else {
        buf_add(&t->answer->body, data, size);
    }
    return size;
}

static size_t on_header(char *data, size_t unit, size_t count, void *ctx)
{
    struct transfer *t = ctx;
    size_t size = unit * count;
    static const char name[] = "retry-after:";
    if (size > strlen(name) && !strncasecmp(data, name, strlen(name))) {
        AUTO_FREE char *value = mem_strndup(data + strlen(name), size - strlen(name));
        value[strcspn(value, "\r\n")] = 0;
        t->answer->retry_after_ms = http_retry_after_ms(value, clock_wall_ms());
    }
    const char *wanted = t->answer->wanted;
    if (wanted && size > strlen(wanted) && !strncasecmp(data, wanted, strlen(wanted))) {
        size_t at = strlen(wanted);
        while (at < size && data[at] == ' ')
            at++;
        snprintf(t->answer->header, sizeof t->answer->header, "%.*s", (int)(size - at), data + at);
        t->answer->header[strcspn(t->answer->header, "\r\n")] = 0;
    }
    return size;
}

static void add_bearer(struct curl_slist **list, const char *token, size_t size)
{
    char *line = mem_printf("Authorization: Bearer %.*s", (int)size, token);
    *list = curl_slist_append(*list, line);
    explicit_bzero(line, strlen(line));
    free(line);
}

static int token_header(const struct http *http, struct curl_slist **list, struct err *err)
{
    if (http->bearer)
        add_bearer(list, http->bearer, strlen(http->bearer));
    if (http->bearer || !http->token_file)
        return 0;
    AUTO_BUF struct buf token = BUF_INIT;
    if (file_read(http->token_file, TOKEN_MAX_BYTES, &token, err))
        return err_prefix(err, "token file");
    size_t size = strcspn(token.data ? token.data : "", " \t\r\n");
    int result = 0;
    if (!size)
        result = err_set(err, ERR_CONFIG, "token file %s is empty", http->token_file);
    else
        add_bearer(list, token.data, size);
    if (token.data)
        explicit_bzero(token.data, token.size);
    return result;
}

/* A password is everything up to the end of the first line. */
static int password_read(struct http *http, struct err *err)
{
    if (!http->password_file)
        return 0;
    AUTO_BUF struct buf text = BUF_INIT;
    if (file_read(http->password_file, TOKEN_MAX_BYTES, &text, err))
        return err_prefix(err, "password file");
    if (http->password)
        explicit_bzero(http->password, strlen(http->password));
    free(http->password);
    http->password =
        mem_strndup(text.data ? text.data : "", text.data ? strcspn(text.data, "\r\n") : 0);
    if (text.data)
        explicit_bzero(text.data, text.size);
    return 0;
}

static void set_blob(CURL *c, CURLoption option, const char *text)
{
    /* libcurl takes a void * and only reads it. */
    struct curl_blob blob = {(void *)(uintptr_t)text, text ? strlen(text) : 0, CURL_BLOB_NOCOPY};
    if (text)
        curl_easy_setopt(c, option, &blob);
}

static void set_tls(const struct http *http)
{
    CURL *c = http->curl;
    if (http->ca_file)
        curl_easy_setopt(c, CURLOPT_CAINFO, http->ca_file);
    if (http->cert_file)
        curl_easy_setopt(c, CURLOPT_SSLCERT, http->cert_file);
    if (http->key_file)
        curl_easy_setopt(c, CURLOPT_SSLKEY, http->key_file);
    set_blob(c, CURLOPT_CAINFO_BLOB, http->ca_pem);
    if (http->ca_file || http->ca_pem) /* only this: not the system's folder as well */
        curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
    set_blob(c, CURLOPT_SSLCERT_BLOB, http->cert_pem);
    set_blob(c, CURLOPT_SSLKEY_BLOB, http->key_pem);
    if (http->any_name)
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
    if (http->no_verify) {
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

static void set_common(struct http *http, const char *url, struct transfer *t)
{
    CURL *c = http->curl;
    curl_easy_reset(c); /* keeps the connection */
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    if (!http->no_compression)
        curl_easy_setopt(c, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(c, CURLOPT_USERAGENT, "remap/" REMAP_VERSION);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)http->connect_timeout_ms);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)http->total_timeout_ms);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
    if (http->unix_socket)
        curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, http->unix_socket);
    set_tls(http);
    if (http->connect_to)
        curl_easy_setopt(c, CURLOPT_CONNECT_TO, http->connect_to);
    if (http->proxy)
        curl_easy_setopt(c, CURLOPT_PROXY, http->proxy);
    if (http->user) {
        curl_easy_setopt(c, CURLOPT_USERNAME, http->user);
        curl_easy_setopt(c, CURLOPT_PASSWORD, http->password ? http->password : "");
    }
}

struct request {
    const char *method, *path, *content_type;
    const void *body;
    size_t size;
    sink_fn sink;
    void *sink_ctx;
    bool asks; /* changes nothing: may be repeated */
};

static int transport_error(const struct transfer *t, CURLcode code, struct err *err)
{
    if (t->too_large)
        return err_set(err, ERR_TOO_LARGE, "answer above %zu bytes", t->max_bytes);
    if (t->sink_failed)
        return err->kind != ERR_NONE ? -1 : err_set(err, ERR_INPUT, "answer not understood");
    return err_set(err, ERR_UNREACHABLE, "%s", curl_easy_strerror(code));
}

/* Puts the first line of an error body, without control characters, behind the status. */
static int status_error(const struct http_answer *answer, struct err *err)
{
    char excerpt[EXCERPT_BYTES + 1] = "";
    size_t n = 0;
    for (size_t i = 0; i < answer->body.size && n < EXCERPT_BYTES; i++) {
        unsigned char c = (unsigned char)answer->body.data[i];
        if (c == '\n' || c == '\r')
            break;
        excerpt[n++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
    }
    while (n && (excerpt[n - 1] & 0xc0) == 0x80) /* no half character at the cut */
        n--;
    if (n && (excerpt[n - 1] & 0xc0) == 0xc0)
        n--;
    excerpt[n] = 0;
    enum err_kind kind = ERR_REFUSED;
    if (answer->status == 404 || answer->status == 410)
        kind = ERR_NOT_FOUND;
    else if (answer->status == 409 || answer->status == 412)
        kind = ERR_CONFLICT;
    else if (answer->status == 429 || answer->status >= 500)
        kind = ERR_UNREACHABLE;
    return err_set(err, kind, "status %ld%s%s", answer->status, n ? ": " : "", excerpt);
}

/* curl_easy_perform(), with idle() in between. A handle stays with one of the two ways, since each
 * keeps its own connections. */
static CURLcode perform(struct http *http)
{
    CURLcode code = CURLE_FAILED_INIT;
    int running = 1, left;
    if (!http->multi && idle.call)
        http->multi = curl_multi_init();
    if (!http->multi)
        return curl_easy_perform(http->curl);
    if (curl_multi_add_handle(http->multi, http->curl) != CURLM_OK)
        return code;
    while (curl_multi_perform(http->multi, &running) == CURLM_OK && running) {
        if (idle.call)
            idle.call(idle.ctx);
        if (curl_multi_poll(http->multi, NULL, 0, IDLE_MS, NULL) != CURLM_OK)
            break;
    }
    for (CURLMsg *m; (m = curl_multi_info_read(http->multi, &left)) != NULL;)
        if (m->msg == CURLMSG_DONE)
            code = m->data.result;
    curl_multi_remove_handle(http->multi, http->curl);
    return code;
}

void http_wait(int64_t ms)
{
    for (int64_t until = clock_mono_ms() + ms; idle.call && ms > 0; ms = until - clock_mono_ms()) {
        clock_sleep_ms(ms < IDLE_MS ? ms : IDLE_MS);
        idle.call(idle.ctx);
    }
    if (ms > 0)
        clock_sleep_ms(ms);
}

/* One attempt. 0 for a status below 300. */
static int attempt(struct http *http, const struct request *req, struct http_answer *answer,
                   bool *sink_used, struct err *err)
{
    AUTO_FREE char *url = mem_printf("%s%s", http->base, req->path);
    struct transfer t = {.answer = answer,
                         .max_bytes = http->max_bytes,
                         .sink = req->sink,
                         .sink_ctx = req->sink_ctx,
                         .err = err,
                         .curl = http->curl};
    buf_clear(&answer->body);
    answer->status = 0;
    answer->retry_after_ms = -1;
    struct curl_slist *headers = NULL;
    for (struct curl_slist *h = http->headers; h; h = h->next)
        headers = curl_slist_append(headers, h->data);
    if (token_header(http, &headers, err) || password_read(http, err)) {
        curl_slist_free_all(headers);
        return -1;
    }
    set_common(http, url, &t);
    if (strcmp(req->method, "GET") != 0) {
        AUTO_FREE char *type =
            mem_printf("Content-Type: %s", req->content_type ? req->content_type : "text/plain");
        headers = curl_slist_append(headers, type);
        headers = curl_slist_append(headers, "Expect:");
        /* On a reused connection that breaks libcurl itself would send the request again. */
        curl_easy_setopt(http->curl, CURLOPT_FRESH_CONNECT, req->asks ? 0L : 1L);
        curl_easy_setopt(http->curl, CURLOPT_CUSTOMREQUEST, req->method);
        curl_easy_setopt(http->curl, CURLOPT_POSTFIELDS, req->body ? req->body : "");
        curl_easy_setopt(http->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->size);
    }
    curl_easy_setopt(http->curl, CURLOPT_HTTPHEADER, headers);
    err->kind = ERR_NONE;
    CURLcode code = perform(http);
    curl_slist_free_all(headers);
    *sink_used = t.seen > 0 && t.sink;
    curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &answer->status);
    if (code != CURLE_OK)
        return transport_error(&t, code, err);
    return answer->status >= 200 && answer->status < 300 ? 0 : status_error(answer, err);
}

static int request(struct http *http, const struct request *req, struct http_answer *out,
                   struct err *err)
{
    assert(req->path[0] == '/');
    bool sink_used = false;
    int attempts = req->asks ? http->attempts : 1;
    for (out->attempts = 1;; out->attempts++) {
        if (!attempt(http, req, out, &sink_used, err))
            return 0;
        if (err->kind != ERR_UNREACHABLE || sink_used || out->attempts >= attempts)
            break;
        int64_t pause = http_pause_ms(out->attempts + 1, http->backoff_ms, http->backoff_max_ms,
                                      http_random(http));
        if (out->retry_after_ms > pause)
            pause = out->retry_after_ms < http->backoff_max_ms ? out->retry_after_ms
                                                               : http->backoff_max_ms;
        http_wait(pause);
    }
    int shown = (int)strcspn(req->path, "?#");
    if (http->unix_socket)
        return err_prefix(err, "%s %.*s at %s", req->method, shown, req->path, http->unix_socket);
    return err_prefix(err, "%s %s%.*s", req->method, http->shown, shown, req->path);
}

int http_get(struct http *http, const char *path, struct http_answer *out, struct err *err)
{
    struct request req = {.method = "GET", .path = path, .asks = true};
    return request(http, &req, out, err);
}

int http_stream(struct http *http, const char *path, sink_fn sink, void *ctx,
                struct http_answer *out, struct err *err)
{
    struct request req = {
        .method = "GET", .path = path, .sink = sink, .sink_ctx = ctx, .asks = true};
    return request(http, &req, out, err);
}

int http_query(struct http *http, const char *path, const char *content_type, const void *body,
               size_t size, sink_fn sink, void *ctx, struct http_answer *out, struct err *err)
{
    struct request req = {.method = "POST",
                          .path = path,
                          .content_type = content_type,
                          .body = body,
                          .size = size,
                          .sink = sink,
                          .sink_ctx = ctx,
                          .asks = true};
    return request(http, &req, out, err);
}

int http_send(struct http *http, const char *method, const char *path, const char *content_type,
              const void *body, size_t size, struct http_answer *out, struct err *err)
{
    assert(strcmp(method, "GET") != 0);
    struct request req = {
        .method = method, .path = path, .content_type = content_type, .body = body, .size = size};
    return request(http, &req, out, err);
}
