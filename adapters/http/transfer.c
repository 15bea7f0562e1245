/* transfer.c - one attempt of a request: limits on the way in, what its end means (transfer.h;
 * interfaces.md 0). */
#include "adapters/http/transfer.h"

#include "model/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define EXCERPT_BYTES 160 /* of an error body: one line of struct err with room for the URL */

static uint64_t http_random(struct http *http)
{
    uint64_t x = http->random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static size_t on_body(char *data, size_t unit, size_t count, void *ctx)
{
    struct http_transfer *t = ctx;
    size_t size = unit * count;
    if (size > t->max_bytes - t->seen) {
        t->too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    t->seen += size;
    long status = 0;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    if (t->request->sink && status / 100 == 2) {
        if (size && t->request->sink(t->request->sink_ctx, data, size, t->err)) {
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
    struct http_transfer *t = ctx;
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

/* The body of a write, which can be read only once: there is no going back either way. */
static size_t on_send(char *out, size_t unit, size_t count, void *ctx)
{
    struct http_transfer *t = ctx;
    size_t left = t->request->size - t->sent, size = unit * count < left ? unit * count : left;
    if (left == 0)
        return CURL_READFUNC_ABORT;
    memcpy(out, (const char *)t->request->body + t->sent, size);
    t->sent += size;
    return size;
}

/* Of TLS the kind of error alone ("SSL peer certificate or SSH remote key was not OK") does not tell
 * whose name or which authority did not fit. */
static const char *curl_words(struct http_transfer *t, CURLcode code)
{
    bool tls = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR ||
               code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE;
    for (char *c = t->details; *c; c++)
        if ((unsigned char)*c < 0x20)
            *c = ' ';
    return tls && t->details[0] ? t->details : curl_easy_strerror(code);
}

static int transport_error(struct http_transfer *t, CURLcode code, struct err *err)
{
    if (t->too_large)
        return err_set(err, ERR_TOO_LARGE, "answer above %zu bytes", t->max_bytes);
    if (t->sink_failed)
        return err->kind != ERR_NONE ? -1 : err_set(err, ERR_INPUT, "answer not understood");
    return err_set(err, ERR_UNREACHABLE, "%s", curl_words(t, code));
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

/* --- begin and end --- */

/* On a kept connection that breaks before the answer libcurl would send the request again by itself,
 * unless it cannot go back to the beginning of a body of which it has sent anything (there is no seek
 * function): that is CURLE_SEND_FAIL_REWIND. Where no byte of the body had left, the server has not
 * had the request. */
static void set_once(struct http_transfer *t, const struct http_request *req)
{
    curl_easy_setopt(t->curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(t->curl, CURLOPT_CUSTOMREQUEST, req->method);
    curl_easy_setopt(t->curl, CURLOPT_READFUNCTION, on_send);
    curl_easy_setopt(t->curl, CURLOPT_READDATA, t);
    curl_easy_setopt(t->curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)req->size);
}

static void set_method(struct http_transfer *t, const struct http *http,
                       const struct http_request *req)
{
    if (!strcmp(req->method, "GET"))
        return;
    AUTO_FREE char *type =
        mem_printf("Content-Type: %s", req->content_type ? req->content_type : "text/plain");
    t->headers = curl_slist_append(t->headers, type);
    t->headers = curl_slist_append(t->headers, "Expect:");
    if (!req->asks && http->keep_writes && req->size > 0) {
        set_once(t, req);
        return;
    }
    /* On a reused connection that breaks libcurl itself would send the request again. */
    curl_easy_setopt(t->curl, CURLOPT_FRESH_CONNECT, req->asks ? 0L : 1L);
    curl_easy_setopt(t->curl, CURLOPT_CUSTOMREQUEST, req->method);
    curl_easy_setopt(t->curl, CURLOPT_POSTFIELDS, req->body ? req->body : "");
    curl_easy_setopt(t->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->size);
}

int http_transfer_begin(struct http_transfer *t, struct http *http, CURL *curl,
                        const struct http_request *req, struct http_answer *answer,
                        struct err *err)
{
    *t = (struct http_transfer){.answer = answer,
                                .max_bytes = http->max_bytes,
                                .request = req,
                                .err = err,
                                .curl = curl};
    buf_clear(&answer->body);
    answer->status = 0;
    answer->retry_after_ms = -1;
    if (http_prepare(http, curl, req->path, &t->headers, err))
        return -1;
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)http->total_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->details);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, t);
    set_method(t, http, req);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, t->headers);
    err->kind = ERR_NONE;
    return 0;
}

int http_transfer_end(struct http_transfer *t, CURLcode code)
{
    curl_slist_free_all(t->headers);
    t->headers = NULL;
    curl_easy_setopt(t->curl, CURLOPT_ERRORBUFFER, NULL); /* the handle lives longer */
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->answer->status);
    if (code != CURLE_OK)
        return transport_error(t, code, t->err);
    return t->answer->status / 100 == 2 ? 0 : status_error(t->answer, t->err);
}

bool http_transfer_again(struct http *http, const struct http_transfer *t, int64_t *pause_ms)
{
    const struct http_answer *answer = t->answer;
    if (!t->request->asks || t->err->kind != ERR_UNREACHABLE ||
        (t->request->sink && t->seen > 0) || answer->attempts >= http->attempts)
        return false;
    int64_t pause = http_pause_ms(answer->attempts + 1, http->backoff_ms, http->backoff_max_ms,
                                  http_random(http));
    if (answer->retry_after_ms > pause)
        pause = answer->retry_after_ms < http->backoff_max_ms ? answer->retry_after_ms
                                                              : http->backoff_max_ms;
    *pause_ms = pause;
    return true;
}

int http_explain(const struct http *http, const struct http_request *req, struct err *err)
{
    int shown = (int)strcspn(req->path, "?#");
    if (http->unix_socket)
        return err_prefix(err, "%s %.*s at %s", req->method, shown, req->path, http->unix_socket);
    return err_prefix(err, "%s %s%.*s", req->method, http->shown, shown, req->path);
}
