/* api.c - requests to the API server (api.h; kubernetes/client-go:rest/{request,with_retry}.go,
 * kubernetes/website:content/en/docs/reference/using-api/api-concepts.md). */
#include "adapters/kubernetes/api.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/http/http.h"
#include "adapters/http/source_http.h"
#include "adapters/kubernetes/access.h"
#include "adapters/kubernetes/ahead.h"
#include "adapters/kubernetes/api_connect.h"
#include "adapters/kubernetes/kube.h"
#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/utf8.h"

#define PAGE_SIZE 500     /* client-go's default: some 4 MB of pods */
#define MAX_RESTARTS 3    /* of a list whose token expired: it lives 5 min, a page takes < 1 s */
#define EXPIRY_EARLY_MS 10000 /* client-go's leeway */
#define THROTTLE_TRIES 5  /* of a write that was not looked at: some 10 s by our own backoff */
#define THROTTLE_MS 500
#define THROTTLE_MAX_MS 5000

struct kube_api {
    struct source source; /* a copy: its files are read again when the server refuses us */
    struct kube_access *access;
    struct kube_credential credential; /* a plugin's */
    bool has_credential;
    struct http *http; /* NULL: to be made (again) */
    struct ahead ahead; /* over `http` */
    bool refused;       /* what was posted last: the credentials are read again before the next */
    int64_t timeout_ms, attempts, mib;
    int (*may_write)(void *ctx, struct err *err); /* NULL: always */
    void *may_write_ctx;
};

static void source_copy(const struct source *from, struct source *to)
{
    struct option *options = mem_array(from->n_options + 1, sizeof *options);
    for (size_t i = 0; i < from->n_options; i++)
        options[i] = (struct option){mem_strdup(from->options[i].name),
                                     mem_strdup(from->options[i].value)};
    *to = (struct source){mem_strdup(from->name), mem_strdup(from->type), options,
                          from->n_options};
}

static void source_wipe(struct source *source)
{
    for (size_t i = 0; i < source->n_options; i++) {
        free((char *)(uintptr_t)source->options[i].name);
        free((char *)(uintptr_t)source->options[i].value);
    }
    free((void *)(uintptr_t)source->options);
    free((char *)(uintptr_t)source->name);
    free((char *)(uintptr_t)source->type);
}

int kube_api_open(const struct source *source, struct kube_api **out, struct err *err)
{
    AUTO(kube_api) struct kube_api *api = mem_alloc(sizeof *api);
    source_copy(source, &api->source);
    if (source_duration(source, "timeout", "10s", &api->timeout_ms, err) ||
        source_number(source, "attempts", "3", 1, 10, &api->attempts, err) ||
        source_number(source, "max_mib", "64", 1, 4096, &api->mib, err) ||
        kube_access_find(source, &api->access, err))
        return -1;
    *out = steal(api);
    return 0;
}

/* The connection, and what goes over it. */
static void disconnect(struct kube_api *api)
{
    ahead_wipe(&api->ahead);
    http_free(api->http);
    api->http = NULL;
}

void kube_api_close(struct kube_api *api)
{
    if (!api)
        return;
    disconnect(api);
    kube_credential_wipe(&api->credential);
    kube_access_free(api->access);
    source_wipe(&api->source);
    free(api);
}

void kube_api_guard(struct kube_api *api, int (*may_write)(void *ctx, struct err *err), void *ctx)
{
    api->may_write = may_write;
    api->may_write_ctx = ctx;
}

const char *kube_api_space(const struct kube_api *api)
{
    return api->access->space;
}

const char *kube_api_server(const struct kube_api *api)
{
    return api->access->server;
}

/* --- connection --- */

/* A plugin's answer lasts until it expires; `again`: the server does not take it any more. */
static int need_credential(struct kube_api *api, bool again, struct err *err)
{
    if (!api->access->exec)
        return 0;
    bool fresh = api->has_credential && !again &&
                 api->credential.expires_ms - EXPIRY_EARLY_MS > clock_wall_ms();
    if (fresh)
        return 0;
    struct kube_credential credential;
    if (kube_exec_run(api->access, &credential, err))
        return -1;
    if (credential.cert_pem || api->credential.cert_pem) /* the connection bears it */
        disconnect(api);
    kube_credential_wipe(&api->credential);
    api->credential = credential;
    api->has_credential = true;
    if (api->http)
        http_set_bearer(api->http, credential.token);
    return 0;
}

/* A kubeconfig may have been written anew since. */
static int read_again(struct kube_api *api, struct err *err)
{
    struct kube_access *access = NULL;
    if (kube_access_find(&api->source, &access, err))
        return -1;
    disconnect(api);
    kube_access_free(api->access);
    api->access = access;
    return 0;
}

int kube_api_connect(struct kube_api *api, bool again, struct http **out, struct err *err)
{
    const struct kube_credential *credential = &api->credential;
    if ((again && read_again(api, err)) || need_credential(api, again, err))
        return -1;
    const struct kube_access *access = api->access;
    if (!api->http) {
        const struct http_options options = {
            .base_url = access->server,
            .headers = (const char *const *)access->headers,
            .token_file = access->token_file,
            .user = access->user,
            .password = access->password,
            .ca_file = access->ca_file,
            .ca_pem = access->ca_pem,
            .cert_file = credential->cert_pem ? NULL : access->cert_file,
            .cert_pem = credential->cert_pem ? credential->cert_pem : access->cert_pem,
            .key_file = credential->key_pem ? NULL : access->key_file,
            .key_pem = credential->key_pem ? credential->key_pem : access->key_pem,
            .server_name = access->server_name,
            .proxy = access->proxy,
            .no_verify = access->no_verify,
            .no_compression = access->no_compression,
            .keep_writes = true,
            .total_timeout_ms = api->timeout_ms,
            .max_bytes = (size_t)api->mib << 20,
            .attempts = (int)api->attempts};
        api->http = http_new(&options, err);
        if (!api->http)
            return err_prefix(err, "%s", api->source.name);
        http_set_bearer(api->http, credential->token ? credential->token : access->token);
    }
    *out = api->http;
    return 0;
}

/* --- answers --- */

static void copy_line(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    out[utf8_check(out, strlen(out))] = 0; /* no half character at the cut */
}

static bool status_take(const json_t *tree, struct kube_status *out)
{
    const char *kind = kube_text(tree, "kind");
    if (!kind || strcmp(kind, "Status") != 0)
        return false;
    const json_t *details = kube_get(tree, "details");
    const json_t *cause = json_array_get(kube_get(details, "causes"), 0);
    copy_line(out->reason, sizeof out->reason, kube_text(tree, "reason"));
    copy_line(out->message, sizeof out->message, kube_text(tree, "message"));
    copy_line(out->cause, sizeof out->cause, kube_text(cause, "reason"));
    copy_line(out->cause_text, sizeof out->cause_text, kube_text(cause, "message"));
    int64_t code = kube_number(tree, "code", 0), seconds = kube_number(details, "retryAfterSeconds", -1);
    if (!out->code && code >= 100 && code < 600)
        out->code = (long)code;
    if (out->retry_after_ms < 0 && seconds >= 0 && seconds < 86400)
        out->retry_after_ms = seconds * 1000;
    return true;
}

void kube_status_decode(const char *text, size_t size, struct kube_status *out)
{
    static const struct json_limits limits = {(size_t)1 << 20, 32, 10000};
    struct err ignored = ERR_INIT;
    AUTO_JSON json_t *tree = json_parse(text ? text : "", size, &limits, &ignored);
    *out = (struct kube_status){.retry_after_ms = -1};
    if (tree)
        status_take(tree, out);
}

struct call { /* one request and what came of it */
    const char *method, *path, *content_type;
    const char *body; /* NULL for a GET */
    size_t size;
    struct http_answer answer;
    struct kube_status status;
};

/* In the server's own words, where it has any. */
static int call_error(const struct kube_api *api, struct call *call, struct err *err)
{
    struct kube_status *status = &call->status;
    kube_status_decode(call->answer.body.data, call->answer.body.size, status);
    status->code = call->answer.status;
    if (call->answer.retry_after_ms >= 0)
        status->retry_after_ms = call->answer.retry_after_ms;
    if (!status->reason[0] && !status->message[0])
        return -1;
    enum err_kind kind = err->kind;
    if (status->code == 429 && strcmp(status->cause, "DisruptionBudget") == 0)
        kind = ERR_REFUSED;
    return err_set(err, kind, "%s %s%.*s: %ld %s: %s", call->method, api->access->server,
                   (int)strcspn(call->path, "?"), call->path, status->code, status->reason,
                   status->message);
}

/* Perhaps asked for already: then one answer for one call. */
static int call_get(struct kube_api *api, struct http *http, struct call *call, struct err *err)
{
    return ahead_is_busy(&api->ahead) ? ahead_get(&api->ahead, call->path, (size_t)api->mib << 20,
                                                  &call->answer, err)
                                      : http_get(http, call->path, &call->answer, err);
}

static int call_send(struct kube_api *api, struct http *http, struct call *call, struct err *err)
{
    return ahead_is_busy(&api->ahead)
               ? ahead_send(&api->ahead, call->method, call->path, call->content_type, call->body,
                            call->size, &call->answer, err)
               : http_send(http, call->method, call->path, call->content_type, call->body,
                           call->size, &call->answer, err);
}

static int call_once(struct kube_api *api, struct call *call, bool again, struct err *err)
{
    struct http *http;
    call->status = (struct kube_status){.retry_after_ms = -1};
    if (kube_api_connect(api, again, &http, err) ||
        (call->body && api->may_write && api->may_write(api->may_write_ctx, err)))
        return -1;
    int rc = call->body ? call_send(api, http, call, err) : call_get(api, http, call, err);
    call->status.code = call->answer.status;
    if (rc && call->answer.status)
        call_error(api, call, err);
    return rc;
}

/* Did the server say that it did not look at it, and may look later? */
static bool was_throttled(const struct call *call)
{
    return call->body && call->status.code == 429 &&
           strcmp(call->status.cause, "DisruptionBudget") != 0;
}

static int call_run(struct kube_api *api, struct call *call, struct err *err)
{
    bool renewed = false;
    for (int tries = 1;;) {
        if (!call_once(api, call, renewed, err))
            return 0;
        if (call->status.code == 401 && !renewed) {
            renewed = true; /* files and plugins are asked again */
        } else if (was_throttled(call) && api->attempts > 1 && tries < THROTTLE_TRIES) {
            int64_t pause = http_pause_ms(++tries, THROTTLE_MS, THROTTLE_MAX_MS,
                                          (uint64_t)clock_mono_ms());
            int64_t asked = call->status.retry_after_ms;
            http_wait(asked > pause ? asked < THROTTLE_MAX_MS ? asked : THROTTLE_MAX_MS : pause);
        } else {
            return -1;
        }
    }
}

/* Whatever else answers at that address, a proxy's page say, is not the API: all of its objects say
 * their kind. */
static json_t *call_tree(const struct call *call, struct err *err)
{
    json_t *tree =
        json_parse(call->answer.body.data ? call->answer.body.data : "", call->answer.body.size,
                   &json_limits_document, err);
    bool api = strncmp(call->path, "/api", 4) == 0; /* "/api/…", "/apis/…" */
    if (tree && (!json_is_object(tree) || (api && !kube_text(tree, "kind")))) {
        json_decref(tree);
        tree = NULL;
        err_set(err, ERR_INPUT, "is no object of the API");
    }
    if (!tree)
        err_prefix(err, "%s %.*s: answer", call->method, (int)strcspn(call->path, "?"), call->path);
    return tree;
}

/* What is handed out of a call that ended with `rc`. */
static int call_end(struct call *call, int rc, json_t **out, struct kube_status *status,
                    struct err *err)
{
    json_t *tree = rc == 0 ? call_tree(call, err) : NULL;
    if (status)
        *status = call->status;
    http_answer_wipe(&call->answer);
    if (tree && out)
        *out = tree;
    else
        json_decref(tree);
    return tree ? 0 : -1;
}

/* Runs it and hands out the object of the answer, where one is wanted; there must be one. */
static int call_object(struct kube_api *api, struct call *call, json_t **out,
                       struct kube_status *status, struct err *err)
{
    return call_end(call, call_run(api, call, err), out, status, err);
}

bool kube_api_absent(const struct kube_status *status)
{
    return (status->code == 404 && strcmp(status->reason, "NotFound") == 0) || status->code == 410;
}

char *kube_api_path(const char *group_version, const char *space, const char *plural,
                    const char *name)
{
    struct buf out = BUF_INIT;
    buf_printf(&out, "/%s/%s", strchr(group_version, '/') ? "apis" : "api", group_version);
    if (space) {
        buf_puts(&out, "/namespaces/");
        http_escape(&out, space);
    }
    buf_printf(&out, "/%s", plural);
    if (name) {
        buf_puts(&out, "/");
        http_escape(&out, name);
    }
    return buf_take(&out);
}

int kube_api_get(struct kube_api *api, const char *path, json_t **out, struct kube_status *status,
                 struct err *err)
{
    struct call call = {.method = "GET", .path = path, .answer = HTTP_ANSWER_INIT};
    return call_object(api, &call, out, status, err);
}

int kube_api_find(struct kube_api *api, const char *path, json_t **out, struct err *err)
{
    struct kube_status status;
    if (kube_api_get(api, path, out, &status, err) == 0)
        return 0;
    return err->kind != ERR_NOT_FOUND || kube_api_absent(&status)
               ? -1
               : err_set(err, ERR_UNREACHABLE, "GET %s: status %ld, but not of the API", path,
                         status.code);
}

int kube_api_send(struct kube_api *api, const char *method, const char *path,
                  const char *content_type, const json_t *body, json_t **out,
                  struct kube_status *status, struct err *err)
{
    AUTO_FREE char *text = body ? json_dumps(body, JSON_COMPACT) : mem_strdup("");
    if (!text)
        return err_set(err, ERR_INTERNAL, "%s %s: body is no JSON", method, path);
    kube_api_ahead_end(api); /* what was read before a write is not news after it */
    struct call call = {.method = method,
                        .path = path,
                        .content_type = content_type,
                        .body = text,
                        .size = strlen(text),
                        .answer = HTTP_ANSWER_INIT};
    return call_object(api, &call, out, status, err);
}

struct kube_sent {
    const char *method;
    char *path;
    struct ahead_sent *sent;
};

struct kube_sent *kube_api_send_begin(struct kube_api *api, const char *method, const char *path,
                                      const char *content_type, const json_t *body,
                                      struct err *err)
{
    struct http *http;
    char *text = json_dumps(body, JSON_COMPACT);
    if (!text) {
        err_set(err, ERR_INTERNAL, "%s %s: body is no JSON", method, path);
        return NULL;
    }
    bool again = api->refused;
    api->refused = false;
    if (kube_api_connect(api, again, &http, err) ||
        (api->may_write && api->may_write(api->may_write_ctx, err))) {
        free(text);
        return NULL;
    }
    struct ahead_sent *sent = ahead_send_begin(&api->ahead, http, method, path, content_type, text);
    if (!sent) {
        err_set(err, ERR_INTERNAL, "%s %s: no connection", method, path);
        return NULL;
    }
    gather_guard(api->ahead.gather, api->may_write, api->may_write_ctx); /* its turn may come late */
    struct kube_sent *out = mem_alloc(sizeof *out);
    *out = (struct kube_sent){method, mem_strdup(path), sent};
    return out;
}

int kube_api_send_end(struct kube_api *api, struct kube_sent *sent, json_t **out,
                      struct kube_status *status, struct err *err)
{
    struct call call = {.method = sent->method,
                        .path = sent->path,
                        .answer = HTTP_ANSWER_INIT,
                        .status = {.retry_after_ms = -1}};
    int rc = ahead_send_end(sent->sent, &call.answer, err);
    call.status.code = call.answer.status;
    if (rc && call.answer.status)
        call_error(api, &call, err);
    rc = call_end(&call, rc, out, status, err);
    free(sent->path);
    free(sent);
    return rc;
}

void kube_api_post(struct kube_api *api, const char *path, const json_t *body)
{
    struct err lost = ERR_INIT;
    struct kube_sent *sent = kube_api_send_begin(api, "POST", path, "application/json", body, &lost);
    if (!sent)
        return;
    ahead_send_leave(sent->sent);
    free(sent->path);
    free(sent);
}

void kube_api_posts_turn(struct kube_api *api, bool wait)
{
    api->refused |= ahead_left_turn(&api->ahead, wait);
}

void kube_api_sends_start(struct kube_api *api)
{
    ahead_sends_start(&api->ahead);
}

/* --- lists --- */

static char *page_path(const char *path, const char *next)
{
    struct buf out = BUF_INIT;
    buf_printf(&out, "%s%climit=%d", path, strchr(path, '?') ? '&' : '?', PAGE_SIZE);
    if (next) {
        buf_puts(&out, "&continue=");
        http_escape(&out, next);
    }
    return buf_take(&out);
}

/* --- asking ahead --- */

/* Takes the path. */
static void ask_ahead(struct kube_api *api, char *path)
{
    struct http *http;
    struct err why = ERR_INIT; /* whoever asks for it in earnest is told */
    if (kube_api_connect(api, false, &http, &why) == 0)
        ahead_ask(&api->ahead, http, path, (size_t)api->mib << 20);
    else
        free(path);
}

void kube_api_ahead_get(struct kube_api *api, const char *path)
{
    ask_ahead(api, mem_strdup(path));
}

void kube_api_ahead_list(struct kube_api *api, const char *path)
{
    ask_ahead(api, page_path(path, NULL));
}

void kube_api_ahead_end(struct kube_api *api)
{
    ahead_forget(&api->ahead, false);
}

void kube_api_ahead_keep(struct kube_api *api, bool keep)
{
    api->ahead.keeps = keep;
}

void kube_api_ahead_forget(struct kube_api *api)
{
    ahead_forget(&api->ahead, true);
}

bool kube_api_ahead_peek(struct kube_api *api, const char *path, json_t **out)
{
    struct call call = {.method = "GET", .path = path, .answer = HTTP_ANSWER_INIT};
    struct err ignored = ERR_INIT; /* whoever asks for it in earnest is told */
    json_t *tree = ahead_peek(&api->ahead, path, &call.answer, &ignored) == 0
                       ? call_tree(&call, &ignored)
                       : NULL;
    http_answer_wipe(&call.answer);
    if (tree)
        *out = tree;
    return tree != NULL;
}

int kube_api_listed(const json_t *list, const char *path, struct err *err)
{
    const char *kind = kube_text(list, "kind");
    size_t size = kind ? strlen(kind) : 0;
    if (size >= 4 && strcmp(kind + size - 4, "List") == 0)
        return 0;
    return err_set(err, ERR_INPUT, "GET %s: the answer is no list", path);
}

int kube_api_list(struct kube_api *api, const char *path,
                  int (*page)(void *ctx, const json_t *list, bool again, struct err *err),
                  void *ctx, char **version, struct kube_status *status, struct err *err)
{
    AUTO_FREE char *next = NULL;
    struct kube_status seen;
    for (int restarts = 0;;) {
        AUTO_FREE char *url = page_path(path, next);
        AUTO_JSON json_t *list = NULL;
        int rc = kube_api_get(api, url, &list, &seen, err);
        if (status)
            *status = seen;
        if (rc && seen.code == 410 && next && restarts < MAX_RESTARTS) {
            restarts++;
            free(steal(next));
            continue;
        }
        if (rc || kube_api_listed(list, path, err) || page(ctx, list, next == NULL, err))
            return -1;
        const json_t *meta = kube_get(list, "metadata");
        const char *more = kube_text(meta, "continue");
        free(next);
        next = more && more[0] ? mem_strdup(more) : NULL;
        if (next)
            continue;
        if (version)
            *version = mem_strdup(kube_text(meta, "resourceVersion"));
        return 0;
    }
}
