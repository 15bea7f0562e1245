/* follow.c - libcurl's multi interface under follow.h. */
#include "adapters/http/follow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/http/connection.h"

#define BODY_MAX_BYTES 16384 /* of an error: a Status is some 500 */

struct follow_line {
    struct follow *follow;
    CURL *curl;
    struct curl_slist *headers;
    struct buf text; /* an unfinished line; the body where the status is an error */
    size_t max_bytes;
    bool too_large, refused, up;
    const struct follow_calls *calls;
    void *ctx;
    struct follow_line *next;
};

struct follow {
    CURLM *multi;
    struct follow_line *lines;
    int64_t taken;
};

struct follow *follow_new(void)
{
    struct follow *follow = mem_alloc(sizeof *follow);
    follow->multi = curl_multi_init();
    if (!follow->multi)
        abort(); /* it only allocates */
    return follow;
}

static void line_free(struct follow_line *line)
{
    curl_multi_remove_handle(line->follow->multi, line->curl);
    curl_easy_cleanup(line->curl);
    curl_slist_free_all(line->headers);
    buf_wipe(&line->text);
    free(line);
}

void follow_free(struct follow *follow)
{
    if (!follow)
        return;
    while (follow->lines) {
        struct follow_line *line = follow->lines;
        follow->lines = line->next;
        line_free(line);
    }
    curl_multi_cleanup(follow->multi);
    free(follow);
}

/* Hands out whole lines; the rest stays. */
static size_t take_lines(struct follow_line *line)
{
    size_t from = 0;
    for (char *end; !line->refused && (end = memchr(line->text.data + from, '\n',
                                                    line->text.size - from)) != NULL;) {
        size_t size = (size_t)(end - line->text.data) - from;
        line->follow->taken++;
        line->refused = size && line->calls->line(line->ctx, line->text.data + from, size);
        from += size + 1;
    }
    return from;
}

static size_t on_text(char *data, size_t unit, size_t count, void *ctx)
{
    struct follow_line *line = ctx;
    size_t size = unit * count;
    long status = 0;
    curl_easy_getinfo(line->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status / 100 != 2) {
        if (line->text.size < BODY_MAX_BYTES)
            buf_add(&line->text, data, size);
        return size;
    }
    if (line->calls->piece) {
        line->follow->taken++;
        line->refused = line->calls->piece(line->ctx, data, size);
        return line->refused ? CURL_WRITEFUNC_ERROR : size;
    }
    buf_add(&line->text, data, size);
    size_t from = memchr(data, '\n', size) ? take_lines(line) : 0;
    if (from) {
        memmove(line->text.data, line->text.data + from, line->text.size - from);
        line->text.size -= from;
    }
    line->too_large = line->text.size > line->max_bytes;
    return line->refused || line->too_large ? CURL_WRITEFUNC_ERROR : size;
}

static size_t on_header(char *data, size_t unit, size_t count, void *ctx)
{
    struct follow_line *line = ctx;
    long status = 0;
    (void)data;
    curl_easy_getinfo(line->curl, CURLINFO_RESPONSE_CODE, &status);
    line->up = status / 100 == 2;
    return unit * count;
}

struct follow_line *follow_open(struct follow *follow, struct http *http, const char *path,
                                size_t max_bytes, int64_t total_ms,
                                const struct follow_calls *calls, void *ctx, struct err *err)
{
    struct follow_line *line = mem_alloc(sizeof *line);
    line->follow = follow;
    line->max_bytes = max_bytes;
    line->calls = calls;
    line->ctx = ctx;
    line->curl = curl_easy_init();
    if (!line->curl)
        abort(); /* it only allocates */
    if (http_prepare(http, line->curl, path, &line->headers, err)) {
        line_free(line);
        return NULL;
    }
    curl_easy_setopt(line->curl, CURLOPT_TIMEOUT_MS, (long)total_ms);
    curl_easy_setopt(line->curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(line->curl, CURLOPT_WRITEFUNCTION, on_text);
    curl_easy_setopt(line->curl, CURLOPT_WRITEDATA, line);
    curl_easy_setopt(line->curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(line->curl, CURLOPT_HEADERDATA, line);
    curl_easy_setopt(line->curl, CURLOPT_PRIVATE, line);
    curl_multi_add_handle(follow->multi, line->curl);
    line->next = follow->lines;
    follow->lines = line;
    return line;
}

static void unlink_line(struct follow *follow, const struct follow_line *line)
{
    for (struct follow_line **at = &follow->lines; *at; at = &(*at)->next)
        if (*at == line) {
            *at = line->next;
            return;
        }
    assert(!"a line of another follow");
}

void follow_close(struct follow *follow, struct follow_line *line)
{
    if (!line)
        return;
    unlink_line(follow, line);
    line_free(line);
}

bool follow_is_up(const struct follow_line *line)
{
    return line->up;
}

static void end_line(struct follow *follow, struct follow_line *line, CURLcode code)
{
    struct err err = ERR_INIT;
    long status = 0;
    curl_easy_getinfo(line->curl, CURLINFO_RESPONSE_CODE, &status);
    if (line->too_large)
        err_set(&err, ERR_TOO_LARGE, "a line above %zu bytes", line->max_bytes);
    else if (line->refused)
        err_set(&err, ERR_INPUT, "it was not understood");
    else if (code != CURLE_OK)
        err_set(&err, ERR_UNREACHABLE, "%s", curl_easy_strerror(code));
    else if (status / 100 != 2)
        err_set(&err, status == 429 || status >= 500 ? ERR_UNREACHABLE : ERR_REFUSED, "status %ld",
                status);
    unlink_line(follow, line);
    line->calls->ended(line->ctx, status, line->text.data ? line->text.data : "", line->text.size,
                       &err);
    line_free(line);
}

/* Those that have ended are taken out one by one: their calls may open others. */
static void end_lines(struct follow *follow)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(follow->multi, &left)) != NULL;) {
        struct follow_line *line = NULL;
        CURLcode code = m->data.result;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &line);
        end_line(follow, line, code);
    }
}

int64_t follow_turn(struct follow *follow, int64_t wait_ms)
{
    int running;
    int64_t before = follow->taken;
    curl_multi_perform(follow->multi, &running);
    if (follow->taken == before && wait_ms > 0) {
        curl_multi_poll(follow->multi, NULL, 0, (int)wait_ms, NULL);
        curl_multi_perform(follow->multi, &running);
    }
    end_lines(follow);
    return follow->taken - before;
}
