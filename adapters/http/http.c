/* http.c - requests over libcurl with limits and the retry table of interfaces.md 0. */
#include "adapters/http/http.h"

#include "adapters/http/transfer.h"
#include "model/base/clock.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        http_idle_now();
        if (curl_multi_poll(http->multi, NULL, 0, HTTP_IDLE_MS, NULL) != CURLM_OK)
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
        clock_sleep_ms(ms < HTTP_IDLE_MS ? ms : HTTP_IDLE_MS);
        idle.call(idle.ctx);
    }
    if (ms > 0)
        clock_sleep_ms(ms);
}

static int request(struct http *http, const struct http_request *req, struct http_answer *out,
                   struct err *err)
{
    struct http_transfer transfer;
    assert(req->path[0] == '/');
    for (out->attempts = 1;; out->attempts++) {
        int64_t pause_ms;
        if (http_transfer_begin(&transfer, http, http->curl, req, out, err))
            break;
        if (!http_transfer_end(&transfer, perform(http)))
            return 0;
        if (!http_transfer_again(http, &transfer, &pause_ms))
            break;
        http_wait(pause_ms);
    }
    return http_explain(http, req, err);
}

int http_get(struct http *http, const char *path, struct http_answer *out, struct err *err)
{
    struct http_request req = {.method = "GET", .path = path, .asks = true};
    return request(http, &req, out, err);
}

int http_stream(struct http *http, const char *path, http_sink_f *sink, void *ctx,
                struct http_answer *out, struct err *err)
{
    struct http_request req = {
        .method = "GET", .path = path, .sink = sink, .sink_ctx = ctx, .asks = true};
    return request(http, &req, out, err);
}

int http_query(struct http *http, const char *path, const char *content_type, const void *body,
               size_t size, http_sink_f *sink, void *ctx, struct http_answer *out, struct err *err)
{
    struct http_request req = {.method = "POST",
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
    struct http_request req = {
        .method = method, .path = path, .content_type = content_type, .body = body, .size = size};
    return request(http, &req, out, err);
}
