/* post.c - requests of OTLP/HTTP (open-telemetry/opentelemetry-proto: docs/specification.md): what
 * can be refused is, before there is a body; a body is held whole, and taken whole or not at all. */
#include "monitor/receiver/post.h"

#include <stdio.h>
#include <stdlib.h>

#include "adapters/otlp/answer.h"
#include "model/base/clock.h"
#include "model/base/log.h"
#include "monitor/receiver/head.h"

/* What is too large but not by much is read and dropped, so that the client sees the answer. */
#define DROP_MAX_BYTES (4 * OTLP_MAX_BODY)
#define BUSY_RETRY_S 1 /* bodies are read within milliseconds, unless their senders are slow */

struct post {
    struct receiver *receiver;
    struct MHD_Connection *connection;
    struct buf body;
    size_t dropped;
    struct head_verdict head; /* its status also where the body is refused */
    int retry_after_s;        /* of a 429 */
};

/* --- answers --- */

static enum MHD_Result answer(struct post *post, unsigned status, struct buf *body)
{
    char seconds[16];
    const char *headers[] = {NULL, NULL, NULL};
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        headers[0] = MHD_HTTP_HEADER_ALLOW;
        headers[1] = "POST";
    } else if (status == MHD_HTTP_UNAUTHORIZED) {
        headers[0] = MHD_HTTP_HEADER_WWW_AUTHENTICATE;
        headers[1] = "Bearer";
    } else if (status == MHD_HTTP_TOO_MANY_REQUESTS) {
        snprintf(seconds, sizeof seconds, "%d", post->retry_after_s);
        headers[0] = MHD_HTTP_HEADER_RETRY_AFTER;
        headers[1] = seconds;
    }
    return listener_answer(post->connection, status, post->head.json ? OTLP_JSON : OTLP_PROTOBUF, body,
                           headers);
}

static enum MHD_Result answer_error(struct post *post, unsigned status, const char *text)
{
    AUTO_BUF struct buf body = BUF_INIT;
    otlp_answer_error(post->head.json, status, text, &body);
    return answer(post, status, &body);
}

static enum MHD_Result answer_refused(struct post *post)
{
    return answer_error(post, post->head.status, post->head.reason);
}

static enum MHD_Result answer_status(struct post *post)
{
    AUTO_BUF struct buf body = BUF_INIT;
    otlp_status_put(post->receiver->store, &body);
    return answer(post, MHD_HTTP_OK, &body);
}

/* --- the head --- */

static const char *header(const struct post *post, const char *name)
{
    return MHD_lookup_connection_value(post->connection, MHD_HEADER_KIND, name);
}

static struct post *post_new(struct receiver *receiver, struct MHD_Connection *connection,
                             const char *path, const char *method)
{
    struct err problem = ERR_INIT;
    struct post *post = mem_alloc(sizeof *post);
    post->receiver = receiver;
    post->connection = connection;
    const struct head head = {
        .method = method,
        .path = path,
        .authorization = header(post, MHD_HTTP_HEADER_AUTHORIZATION),
        .content_type = header(post, MHD_HTTP_HEADER_CONTENT_TYPE),
        .content_encoding = header(post, MHD_HTTP_HEADER_CONTENT_ENCODING),
        .content_length = header(post, MHD_HTTP_HEADER_CONTENT_LENGTH),
        .known = receiver->settings.client_ca_file && listener_client_known(connection),
        .local = listener_client_local(connection)};
    post->head = head_judge(&head, &receiver->settings, &problem);
    if (problem.kind != ERR_NONE)
        log_error("receiver source=%s: %s", receiver->settings.name, problem.text);
    return post;
}

static enum MHD_Result post_begin(struct post *post)
{
    const char *length = header(post, MHD_HTTP_HEADER_CONTENT_LENGTH);
    unsigned long long size = length ? strtoull(length, NULL, 10) : 0;
    /* Who may not send holds nothing up by sending slowly. */
    bool at_once = post->head.shows || post->head.status == MHD_HTTP_UNAUTHORIZED || size > DROP_MAX_BYTES || header(post, MHD_HTTP_HEADER_EXPECT);
    if (post->head.shows && !post->head.status)
        return answer_status(post);
    return post->head.status && at_once ? answer_refused(post) : MHD_YES;
}

/* --- bodies --- */

static void drop_body(struct post *post)
{
    post->receiver->held -= post->body.size;
    buf_wipe(&post->body);
}

static void refuse(struct post *post, unsigned status, const char *reason)
{
    post->head.status = status;
    post->head.reason = reason;
    drop_body(post);
}

static enum MHD_Result post_piece(struct post *post, const char *data, size_t size)
{
    if (!post->head.status && post->body.size + size > OTLP_MAX_BODY)
        refuse(post, MHD_HTTP_CONTENT_TOO_LARGE, "a request has at most 4 MiB");
    if (!post->head.status && post->receiver->held + size > POST_MAX_HELD) {
        post->retry_after_s = BUSY_RETRY_S;
        otlp_store_refuse(post->receiver->store);
        refuse(post, MHD_HTTP_TOO_MANY_REQUESTS, "too many requests are on their way");
    }
    if (!post->head.status) {
        buf_add(&post->body, data, size);
        post->receiver->held += size;
        return MHD_YES;
    }
    post->dropped += size;
    return post->dropped > DROP_MAX_BYTES ? MHD_NO : MHD_YES;
}

static enum MHD_Result post_end(struct post *post)
{
    struct otlp_result result;
    AUTO_BUF struct buf body = BUF_INIT;
    char quoted[LOG_QUOTE_SIZE];
    const struct otlp_body request = {.data = post->body.data ? post->body.data : "",
                                      .size = post->body.size,
                                      .json = post->head.json,
                                      .gzip = post->head.gzip};
    otlp_store_post(post->receiver->store, &request, clock_wall_ms(), &result);
    drop_body(post);
    post->retry_after_s = result.retry_after_s;
    if (result.status != MHD_HTTP_OK || result.rejected)
        log_debug("receiver source=%s status=%u rejected=%lld why=%s", post->receiver->settings.name,
                  result.status, (long long)result.rejected, log_quote(result.text, quoted));
    if (result.status != MHD_HTTP_OK)
        return answer_error(post, result.status, result.text);
    otlp_answer_taken(post->head.json, result.rejected, result.text, &body);
    return answer(post, MHD_HTTP_OK, &body);
}

enum MHD_Result post_request(void *ctx, struct MHD_Connection *connection, const char *path,
                             const char *method, const char *version, const char *data, size_t *size,
                             void **request_context)
{
    struct post *post = *request_context;
    (void)version;
    if (!post) {
        *request_context = post = post_new(ctx, connection, path, method);
        return post_begin(post);
    }
    if (*size) {
        enum MHD_Result rc = post_piece(post, data, *size);
        *size = 0;
        return rc;
    }
    return post->head.status ? answer_refused(post) : post_end(post);
}

void post_done(void *ctx, struct MHD_Connection *connection, void **request_context,
               enum MHD_RequestTerminationCode how)
{
    struct post *post = *request_context;
    (void)ctx;
    (void)connection;
    (void)how;
    if (!post)
        return;
    drop_body(post);
    free(post);
    *request_context = NULL;
}
