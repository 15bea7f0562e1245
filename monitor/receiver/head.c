/* head.c - heads of OTLP/HTTP requests (head.h; open-telemetry/opentelemetry-proto:
 * docs/specification.md "OTLP/HTTP"). */
#include "monitor/receiver/head.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "adapters/otlp/answer.h"
#include "adapters/otlp/decode.h"
#include "monitor/secret.h"

static bool shows_token(const struct head *head, const char *token_file, struct err *err)
{
    static const char scheme[] = "Bearer ";
    const char *given = head->authorization, *token = NULL;
    if (!given || strncasecmp(given, scheme, sizeof scheme - 1) != 0 ||
        secret_read(token_file, &token, err))
        return false;
    bool same = secret_equal(given + sizeof scheme - 1, token);
    secret_free(token);
    return same;
}

/* By either proof, where one is asked for. */
static bool may_send(const struct head *head, const struct otlp_settings *s, struct err *err)
{
    if (!s->token_file && !s->client_ca_file)
        return true; /* then only this machine can */
    return (s->client_ca_file && head->known) ||
           (s->token_file && shows_token(head, s->token_file, err));
}

/* Without parameters such as charset. */
static bool is_type(const char *value, const char *type)
{
    size_t size = value ? strcspn(value, "; \t") : 0;
    return size == strlen(type) && strncasecmp(value, type, size) == 0;
}

static struct head_verdict refuse(const struct head_verdict *form, unsigned status,
                                  const char *reason)
{
    struct head_verdict out = *form;
    out.status = status;
    out.reason = reason;
    return out;
}

static bool too_large(const char *length)
{
    errno = 0;
    return length && (strtoull(length, NULL, 10) > OTLP_MAX_BODY || errno == ERANGE);
}

struct head_verdict head_judge(const struct head *head, const struct otlp_settings *settings,
                               struct err *err)
{
    bool protobuf = is_type(head->content_type, OTLP_PROTOBUF);
    const char *encoding = head->content_encoding;
    struct head_verdict form = {.json = !protobuf,
                                .gzip = encoding && strcasecmp(encoding, "gzip") == 0};
    if (strcmp(head->path, OTLP_STATUS_PATH) == 0 && strcmp(head->method, "GET") == 0) {
        form.shows = form.json = true;
        return head->local || may_send(head, settings, err)
                   ? form
                   : refuse(&form, 401, "a proof of who asks is missing or wrong");
    }
    if (strcmp(head->path, "/v1/traces") != 0)
        return refuse(&form, 404, "there is POST /v1/traces");
    if (strcmp(head->method, "POST") != 0)
        return refuse(&form, 405, "only POST is answered");
    if (!may_send(head, settings, err))
        return refuse(&form, 401, "a proof of who sends is missing or wrong");
    if (!protobuf && !is_type(head->content_type, OTLP_JSON))
        return refuse(&form, 415, "the content type must be application/x-protobuf or "
                                  "application/json");
    if (encoding && !form.gzip && strcasecmp(encoding, "identity") != 0)
        return refuse(&form, 415, "the content encoding must be gzip, or none");
    if (too_large(head->content_length))
        return refuse(&form, 413, "a request has at most 4 MiB");
    return form;
}
