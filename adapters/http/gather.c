/* gather.c - libcurl's multi interface under gather.h. */
#include "adapters/http/gather.h"

#include "adapters/http/transfer.h"
#include "model/base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_BESIDE 4 /* connections of those that are sent at once, past the width */

enum state { QUEUED, RUNNING, ENDED };

struct gathered {
    struct gather *gather;
    struct gathered *next;
    struct http_request request;
    struct http_transfer transfer;
    struct http_answer answer;
    CURL *curl;
    char *path;
    size_t max_bytes;
    enum state state;
    int64_t from_ms; /* queued: not to be started before */
    int rc;
    struct err err;
};

struct gather {
    struct http *http;
    CURLM *multi;
    int width, running;
    int64_t from_ms; /* nothing is started before: the server said so */
    int (*may_send)(void *ctx, struct err *err); /* NULL: always */
    void *may_send_ctx;
    struct gathered *first, **end; /* in the order in which they were asked for */
};

struct gather *gather_new(struct http *http, int width, struct err *err)
{
    assert(width > 0);
    struct gather *gather = mem_alloc(sizeof *gather);
    gather->http = http;
    gather->width = width;
    gather->end = &gather->first;
    gather->multi = curl_multi_init();
    if (gather->multi) {
        /* libcurl keeps four for each request under way, and closes the rest when there are few. */
        curl_multi_setopt(gather->multi, CURLMOPT_MAXCONNECTS, (long)width + KEPT_BESIDE);
        return gather;
    }
    free(gather);
    err_set(err, ERR_INTERNAL, "libcurl does not start");
    return NULL;
}

void gather_free(struct gather *gather)
{
    if (!gather)
        return;
    while (gather->first)
        gathered_free(gather->first);
    curl_multi_cleanup(gather->multi);
    free(gather);
}

static struct gathered *add(struct gather *gather, const struct http_request *request,
                            size_t max_bytes)
{
    assert(request->path[0] == '/');
    struct gathered *g = mem_alloc(sizeof *g);
    g->gather = gather;
    g->path = mem_strdup(request->path);
    g->request = *request;
    g->request.path = g->path;
    g->answer = (struct http_answer)HTTP_ANSWER_INIT;
    g->max_bytes = max_bytes;
    *gather->end = g;
    gather->end = &g->next;
    return g;
}

struct gathered *gather_get(struct gather *gather, const char *path, size_t max_bytes)
{
    const struct http_request request = {.method = "GET", .path = path, .asks = true};
    return add(gather, &request, max_bytes);
}

/* The handle goes back, its connection stays with the multi handle. */
static void detach(struct gathered *g)
{
    if (!g->curl)
        return;
    curl_multi_remove_handle(g->gather->multi, g->curl);
    curl_easy_cleanup(g->curl);
    g->curl = NULL;
}

void gathered_free(struct gathered *g)
{
    if (!g)
        return;
    struct gathered **at = &g->gather->first;
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    if (g->gather->end == &g->next)
        g->gather->end = at;
    g->gather->running -= g->state == RUNNING;
    detach(g);
    curl_slist_free_all(g->transfer.headers);
    http_answer_wipe(&g->answer);
    free(g->path);
    free(g);
}

static void end(struct gathered *g, int rc)
{
    g->state = ENDED;
    g->rc = rc ? http_explain(g->gather->http, &g->request, &g->err) : 0;
}

static void start(struct gathered *g)
{
    struct gather *gather = g->gather;
    if (!g->request.asks && gather->may_send && gather->may_send(gather->may_send_ctx, &g->err)) {
        end(g, -1);
        return;
    }
    g->answer.attempts++;
    g->curl = curl_easy_init();
    if (!g->curl)
        abort(); /* it only allocates */
    if (http_transfer_begin(&g->transfer, gather->http, g->curl, &g->request, &g->answer,
                            &g->err)) {
        detach(g);
        end(g, -1);
        return;
    }
    if (g->max_bytes < g->transfer.max_bytes)
        g->transfer.max_bytes = g->max_bytes;
    curl_easy_setopt(g->curl, CURLOPT_PRIVATE, g);
    if (curl_multi_add_handle(gather->multi, g->curl) != CURLM_OK)
        abort(); /* out of memory, or a handle twice */
    g->state = RUNNING;
    gather->running++;
}

/* Too many for the server: fewer at once, none before its time. */
static void ease(struct gather *gather, long status, int64_t from_ms)
{
    if (status != 429 && status != 503)
        return;
    gather->width = gather->width > 1 ? gather->width / 2 : 1;
    if (from_ms > gather->from_ms)
        gather->from_ms = from_ms;
}

struct gathered *gather_get_now(struct gather *gather, const char *path, size_t max_bytes)
{
    struct gathered *g = gather_get(gather, path, max_bytes);
    if (gather->from_ms <= clock_mono_ms())
        start(g);
    return g;
}

struct gathered *gather_send_later(struct gather *gather, const char *method, const char *path,
                                   const char *content_type, const void *body, size_t size)
{
    assert(strcmp(method, "GET") != 0);
    const struct http_request request = {
        .method = method, .path = path, .content_type = content_type, .body = body, .size = size};
    return add(gather, &request, SIZE_MAX);
}

void gather_guard(struct gather *gather, int (*may_send)(void *ctx, struct err *err), void *ctx)
{
    gather->may_send = may_send;
    gather->may_send_ctx = ctx;
}

struct gathered *gather_send(struct gather *gather, const char *method, const char *path,
                             const char *content_type, const void *body, size_t size)
{
    struct gathered *g = gather_send_later(gather, method, path, content_type, body, size);
    start(g);
    return g;
}

static void ended(struct gathered *g, CURLcode code)
{
    int64_t pause_ms = 0;
    int rc = http_transfer_end(&g->transfer, code);
    bool again = rc && http_transfer_again(g->gather->http, &g->transfer, &pause_ms);
    detach(g);
    g->gather->running--;
    if (!again) {
        end(g, rc);
        return;
    }
    g->state = QUEUED;
    g->from_ms = clock_mono_ms() + pause_ms;
    ease(g->gather, g->answer.status, g->from_ms);
}

/* Starts what may be started; in *wait_ms how long until the next may, or as it was. */
static void start_all(struct gather *gather, int64_t *wait_ms)
{
    int64_t now_ms = clock_mono_ms();
    for (struct gathered *g = gather->first; g && gather->running < gather->width; g = g->next) {
        int64_t from_ms = g->from_ms > gather->from_ms ? g->from_ms : gather->from_ms;
        if (g->state != QUEUED)
            continue;
        if (from_ms <= now_ms)
            start(g);
        else if (from_ms - now_ms < *wait_ms)
            *wait_ms = from_ms - now_ms;
    }
}

/* What came is taken. Did anything end? *wait_ms becomes less where something can be started earlier. */
static bool take_all(struct gather *gather, int64_t *wait_ms)
{
    int running, left;
    bool any = false;
    start_all(gather, wait_ms);
    curl_multi_perform(gather->multi, &running);
    for (CURLMsg *m; (m = curl_multi_info_read(gather->multi, &left)) != NULL;) {
        struct gathered *g;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &g);
        ended(g, m->data.result);
        any = true;
    }
    return any;
}

/* One round: what came is taken; then waits for more, unless something ended. */
static void turn(struct gather *gather)
{
    int64_t wait_ms = HTTP_IDLE_MS;
    bool any = take_all(gather, &wait_ms);
    http_idle_now();
    if (!any)
        curl_multi_poll(gather->multi, NULL, 0, (int)wait_ms, NULL);
}

void gather_turn(struct gather *gather)
{
    int64_t wait_ms = 0;
    (void)take_all(gather, &wait_ms);
}

bool gathered_ended(const struct gathered *g)
{
    return g->state == ENDED;
}

int gather_wait(struct gathered *g, const struct http_answer **answer, struct err *err)
{
    while (g->state != ENDED)
        turn(g->gather);
    *answer = &g->answer;
    if (g->rc)
        *err = g->err;
    return g->rc;
}

void gather_sends_start(struct gather *gather)
{
    for (struct gathered *g = gather->first; g; g = g->next)
        while (g->state == QUEUED && !g->request.asks)
            turn(gather);
}

void gather_settle(struct gather *gather)
{
    for (struct gathered *g = gather->first; g; g = g->next)
        while (g->state != ENDED)
            turn(gather);
}
