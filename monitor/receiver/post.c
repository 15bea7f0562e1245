/* post.c - requests of OTLP/HTTP (open-telemetry/opentelemetry-proto: docs/specification.md): what
 * can be refused is, before there is a body; a body is held whole, and taken whole or not at all. */
#include "monitor/receiver/post.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "adapters/otlp/answer.h"
#include "model/base/clock.h"
#include "model/base/log.h"
#include "monitor/secret.h"

/* What is too large but not by much is read and dropped, so that the client sees the answer. */
#define DROP_MAX_BYTES (4 * OTLP_MAX_BODY)
#define BUSY_RETRY_S 1 /* bodies are read within milliseconds, unless their senders are slow */

struct post {
    struct receiver *receiver;
    struct MHD_Connection *connection;
    struct buf body;
    struct otlp_body form; /* its encoding */
    size_t dropped;
    bool status;           /* asks for OTLP_STATUS_PATH */
    unsigned refused;      /* a status that is certain before the body is; 0 */
    int retry_after_s;     /* of a 429 */
    const char *reason;    /* of `refused` */
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
    return listener_answer(post->connection, status, post->form.json ? OTLP_JSON : OTLP_PROTOBUF, body,
                           headers);
}

static enum MHD_Result answer_error(struct post *post, unsigned status, const char *text)
{
    AUTO_BUF struct buf body = BUF_INIT;
    otlp_answer_error(post->form.json, status, text, &body);
    return answer(post, status, &body);
}

static enum MHD_Result answer_status(struct post *post)
{
    AUTO_BUF struct buf body = BUF_INIT;
    otlp_status_put(post->receiver->store, &body);
    post->form.json = true;
    return answer(post, MHD_HTTP_OK, &body);
}

/* --- what is refused --- */

static const char *header(const struct post *post, const char *name)
{
    return MHD_lookup_connection_value(post->connection, MHD_HEADER_KIND, name);
}

static void refuse(struct post *post, unsigned status, const char *reason)
{
    if (post->refused)
        return;
    post->refused = status;
    post->reason = reason;
}

static bool shows_token(const struct post *post)
{
    static const char scheme[] = "Bearer ";
    const char *given = header(post, MHD_HTTP_HEADER_AUTHORIZATION), *token = NULL;
    struct err problem = ERR_INIT;
    if (!post->receiver->settings.token_file || !given ||
        strncasecmp(given, scheme, sizeof scheme - 1) != 0)
        return false;
    given += sizeof scheme - 1;
    if (secret_read(post->receiver->settings.token_file, &token, &problem)) {
        log_error("receiver source=%s: %s", post->receiver->settings.name, problem.text);
        return false;
    }
    size_t size = strlen(token);
    bool same = strlen(given) == size && CRYPTO_memcmp(given, token, size) == 0;
    secret_free(token);
    return same;
}

/* By either proof, where one is asked for. */
static bool may_send(const struct post *post)
{
    const struct otlp_settings *s = &post->receiver->settings;
    if (!s->token_file && !s->client_ca_file)
        return true; /* then only this machine can */
    return shows_token(post) || (s->client_ca_file && listener_client_known(post->connection));
}

/* Without parameters such as charset. */
static bool is_type(const char *header_value, const char *type)
{
    size_t size = header_value ? strcspn(header_value, "; \t") : 0;
    return size == strlen(type) && strncasecmp(header_value, type, size) == 0;
}

static void look_at_form(struct post *post)
{
    const char *type = header(post, MHD_HTTP_HEADER_CONTENT_TYPE);
    const char *encoding = header(post, MHD_HTTP_HEADER_CONTENT_ENCODING);
    post->form.json = !is_type(type, OTLP_PROTOBUF);
    post->form.gzip = encoding && strcasecmp(encoding, "gzip") == 0;
    if (post->form.json && !is_type(type, OTLP_JSON))
        refuse(post, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
               "the content type must be application/x-protobuf or application/json");
    if (encoding && !post->form.gzip && strcasecmp(encoding, "identity") != 0)
        refuse(post, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "the content encoding must be gzip, or none");
}

static struct post *post_new(struct receiver *receiver, struct MHD_Connection *connection,
                             const char *path, const char *method)
{
    struct post *post = mem_alloc(sizeof *post);
    post->receiver = receiver;
    post->connection = connection;
    post->status = strcmp(path, OTLP_STATUS_PATH) == 0 && strcmp(method, "GET") == 0;
    look_at_form(post);
    if (post->status) {
        post->refused = 0;
        if (!listener_client_local(connection) && !may_send(post))
            refuse(post, MHD_HTTP_UNAUTHORIZED, "a proof of who asks is missing or wrong");
        return post;
    }
    unsigned form_refused = post->refused;
    post->refused = 0;
    if (strcmp(path, "/v1/traces") != 0)
        refuse(post, MHD_HTTP_NOT_FOUND, "there is POST /v1/traces");
    else if (strcmp(method, "POST") != 0)
        refuse(post, MHD_HTTP_METHOD_NOT_ALLOWED, "only POST is answered");
    else if (!may_send(post))
        refuse(post, MHD_HTTP_UNAUTHORIZED, "a proof of who sends is missing or wrong");
    else
        post->refused = form_refused;
    return post;
}

static enum MHD_Result post_begin(struct post *post)
{
    const char *length = header(post, MHD_HTTP_HEADER_CONTENT_LENGTH);
    unsigned long long size = length ? strtoull(length, NULL, 10) : 0;
    if (post->status && !post->refused)
        return answer_status(post);
    if (size > OTLP_MAX_BODY)
        refuse(post, MHD_HTTP_CONTENT_TOO_LARGE, "a request has at most 4 MiB");
    if (post->refused &&
        (header(post, MHD_HTTP_HEADER_EXPECT) || size > DROP_MAX_BYTES || post->status))
        return answer_error(post, post->refused, post->reason);
    return MHD_YES;
}

/* --- bodies --- */

static void drop_body(struct post *post)
{
    post->receiver->held -= post->body.size;
    buf_wipe(&post->body);
}

static enum MHD_Result post_piece(struct post *post, const char *data, size_t size)
{
    if (!post->refused && post->body.size + size > OTLP_MAX_BODY)
        refuse(post, MHD_HTTP_CONTENT_TOO_LARGE, "a request has at most 4 MiB");
    if (!post->refused && post->receiver->held + size > POST_MAX_HELD) {
        post->retry_after_s = BUSY_RETRY_S;
        refuse(post, MHD_HTTP_TOO_MANY_REQUESTS, "too many requests are on their way");
    }
    if (!post->refused) {
        buf_add(&post->body, data, size);
        post->receiver->held += size;
        return MHD_YES;
    }
    drop_body(post);
    post->dropped += size;
    return post->dropped > DROP_MAX_BYTES ? MHD_NO : MHD_YES;
}

static enum MHD_Result post_end(struct post *post)
{
    struct otlp_result result;
    AUTO_BUF struct buf body = BUF_INIT;
    char quoted[LOG_QUOTE_SIZE];
    post->form.data = post->body.data ? post->body.data : "";
    post->form.size = post->body.size;
    otlp_store_post(post->receiver->store, &post->form, clock_wall_ms(), &result);
    drop_body(post);
    post->retry_after_s = result.retry_after_s;
    if (result.status != MHD_HTTP_OK || result.rejected)
        log_debug("receiver source=%s status=%u rejected=%lld why=%s", post->receiver->settings.name,
                  result.status, (long long)result.rejected, log_quote(result.text, quoted));
    if (result.status != MHD_HTTP_OK)
        return answer_error(post, result.status, result.text);
    otlp_answer_taken(post->form.json, result.rejected, result.text, &body);
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
    return post->refused ? answer_error(post, post->refused, post->reason) : post_end(post);
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
