/* http.c - requests over libcurl with limits and the retry table of interfaces.md 0. */
#include "adapters/http/http.h"

#include "adapters/http/connection.h"
#include "model/base/clock.h"

#include <assert.h>
#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define EXCERPT_BYTES 160 /* of an error body: one line of struct err with room for the URL */

typedef int (*sink_fn)(void *ctx, const char *data, size_t size, struct err *err);


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

void http_idle_now(void)
{
    if (idle.call)
        idle.call(idle.ctx);
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
    if (http_prepare(http, http->curl, req->path, &headers, err))
        return -1;
    curl_easy_setopt(http->curl, CURLOPT_TIMEOUT_MS, (long)http->total_timeout_ms);
    curl_easy_setopt(http->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(http->curl, CURLOPT_WRITEDATA, &t);
    curl_easy_setopt(http->curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(http->curl, CURLOPT_HEADERDATA, &t);
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
