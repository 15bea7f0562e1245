/* webhook.c - the HTTP side of webhooks: limits first, then the provider's verdict, then the
 * answer; a deployment waits, its connection suspended, until the manager has stored it. */
#include "monitor/webhook/webhook.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/address.h"
#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/log.h"
#include "model/wire/listener.h"
#include "monitor/listen.h"
#include "monitor/webhook/limit.h"
#include "monitor/webhook/settings.h"

/* A few CI systems post now and then; each connection may hold a body of 1 MiB. */
#define CONNECTION_LIMIT 32
#define CONNECTION_MEMORY (32 * 1024) /* GitLab's headers are some 2 KB */
#define CONNECTION_IDLE_S 10
#define CONNECTION_MAX_MS 30000
/* What is too large but not by much is read and dropped, so that the client sees the answer. */
#define DROP_MAX_BYTES (8 * HOOK_MAX_BODY)
#define MAX_HEADERS 64
#define OPEN_AGAIN_MS 5000 /* another process may still hold the address */
/* GitHub and GitLab give up after 10 s; the manager answers within milliseconds unless its disk or
 * a large document keeps it. */
#define STORED_WAIT_MS 5000

struct webhooks {
    struct stage *stage;
    struct settings *settings; /* NULL: nothing is listened for */
    struct listener *listener; /* NULL: not (yet) open */
    struct listen_tls tls;
    struct limit limit;
    struct call *waiting; /* for `stored` */
    int64_t open_timer;
    struct listen_said said;
};

/* One request. */
struct call {
    struct webhooks *hooks;
    struct MHD_Connection *connection;
    const struct settings_provider *provider;
    struct buf body;
    unsigned refused;   /* a status that is certain before the body is; 0 */
    const char *reason; /* of it */
    /* while the manager stores: */
    struct part {
        struct call *call;
        int64_t event, row; /* event 0: answered */
        bool duplicate;
    } * parts; /* one per application */
    size_t n_parts, n_open;
    int64_t timer;
    bool suspended, late;
    struct call *next;
};

/* --- answers --- */

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
                                   const char *key, const char *text)
{
    const char *headers[] = {NULL, NULL, NULL};
    AUTO_BUF struct buf body = BUF_INIT;
    buf_printf(&body, "{\"%s\":", key);
    json_put_text(&body, text);
    buf_puts(&body, "}\n");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        headers[0] = MHD_HTTP_HEADER_ALLOW;
        headers[1] = "POST";
    } else if (status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE) {
        headers[0] = MHD_HTTP_HEADER_RETRY_AFTER;
        headers[1] = status == MHD_HTTP_TOO_MANY_REQUESTS ? "60" : "10";
    }
    return listener_answer(connection, status, "application/json", &body, headers);
}

/* All parts are there, or will not come in time. */
static enum MHD_Result answer_stored(const struct call *call)
{
    const struct part *fresh = NULL;
    if (call->late)
        return answer_text(call->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "error",
                           "the event could not be stored");
    for (size_t i = 0; i < call->n_parts && !fresh; i++)
        if (!call->parts[i].duplicate)
            fresh = &call->parts[i];
    AUTO_BUF struct buf body = BUF_INIT;
    if (!fresh) {
        buf_printf(&body, "this delivery is event %lld already", (long long)call->parts[0].row);
        return answer_text(call->connection, MHD_HTTP_OK, "ignored", body.data);
    }
    buf_printf(&body, "{\"event\":%lld}\n", (long long)fresh->row);
    return listener_answer(call->connection, MHD_HTTP_ACCEPTED, "application/json", &body, NULL);
}

/* --- waiting for the store --- */

static void call_unlink(struct call *call)
{
    for (struct call **at = &call->hooks->waiting; *at; at = &(*at)->next)
        if (*at == call) {
            *at = call->next;
            break;
        }
    loop_timer_cancel(stage_loop(call->hooks->stage), call->timer);
    for (size_t i = 0; i < call->n_parts; i++)
        if (call->parts[i].event)
            stage_event_forget(call->hooks->stage, call->parts[i].event);
}

static void call_resume(struct call *call)
{
    call_unlink(call);
    call->suspended = false;
    listener_resume(call->hooks->listener, call->connection);
}

static void on_stored(void *ctx, int64_t row, bool duplicate)
{
    struct part *part = ctx;
    part->event = 0;
    part->row = row;
    part->duplicate = duplicate;
    if (--part->call->n_open == 0)
        call_resume(part->call);
}

static void on_late(void *ctx)
{
    struct call *call = ctx;
    call->late = true;
    log_warn("webhook provider=%s not stored in time", call->provider->provider->name);
    call_resume(call);
}

static void put_event(const struct hook_provider *provider, const struct hook_event *event,
                      const char *app, struct buf *out)
{
    AUTO_BUF struct buf text = BUF_INIT, delivery = BUF_INIT;
    hook_text(provider, event, &text);
    hook_delivery(provider, event, &delivery);
    buf_puts(out, "{\"v\":1,\"app\":");
    json_put_text(out, app);
    buf_puts(out, ",\"kind\":\"deploy\",\"text\":");
    json_put_text(out, text.data);
    buf_puts(out, ",\"interval_ms\":");
    if (event->interval_ms >= 0)
        json_put_int(out, event->interval_ms);
    else
        buf_puts(out, "null");
    buf_puts(out, ",\"delivery\":");
    json_put_text(out, delivery.data);
    buf_puts(out, "}");
}

static void call_store(struct call *call, const struct hook_event *event, const char **apps,
                       size_t n)
{
    struct webhooks *hooks = call->hooks;
    call->parts = mem_array(n, sizeof *call->parts);
    call->n_parts = call->n_open = n;
    call->suspended = true;
    call->next = hooks->waiting;
    hooks->waiting = call;
    MHD_suspend_connection(call->connection);
    call->timer = loop_timer(stage_loop(hooks->stage), STORED_WAIT_MS, on_late, call);
    for (size_t i = 0; i < n; i++) {
        AUTO_BUF struct buf body = BUF_INIT;
        put_event(call->provider->provider, event, apps[i], &body);
        call->parts[i].call = call;
        call->parts[i].event =
            stage_event(hooks->stage, body.data, body.size, on_stored, &call->parts[i]);
    }
}

/* --- requests --- */

struct headers {
    struct hook_header list[MAX_HEADERS];
    size_t n;
};

static enum MHD_Result take_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    (void)kind;
    struct headers *headers = ctx;
    if (headers->n < MAX_HEADERS && value)
        headers->list[headers->n++] = (struct hook_header){name, value};
    return MHD_YES;
}

static enum hook_verdict call_judge(const struct call *call, struct hook_event *event)
{
    struct headers headers = {.n = 0};
    struct hook_proof proof;
    struct err problem = ERR_INIT;
    MHD_get_connection_values(call->connection, MHD_HEADER_KIND, take_header, &headers);
    const struct hook_request request = {.body = call->body.data ? call->body.data : "",
                                         .size = call->body.size,
                                         .headers = headers.list,
                                         .n_headers = headers.n,
                                         .interval = MHD_lookup_connection_value(
                                             call->connection, MHD_GET_ARGUMENT_KIND, "interval"),
                                         .now_ms = clock_wall_ms(),
                                         .window_ms = call->hooks->settings->replay_window_ms};
    if (settings_proof(call->provider, &proof, &problem) < 0)
        log_warn("webhook provider=%s %s", call->provider->provider->name, problem.text);
    enum hook_verdict verdict = hook_judge(call->provider->provider, &request, &proof, event);
    settings_proof_wipe(&proof);
    return verdict;
}

/* The body is complete. */
static enum MHD_Result call_end(struct call *call)
{
    AUTO_FREE struct hook_event *event = mem_alloc(sizeof *event); /* some 7 KB */
    const char *name = call->provider->provider->name;
    char quoted[LOG_QUOTE_SIZE];
    enum hook_verdict verdict = call_judge(call, event);
    size_t n = 0;
    AUTO_FREE const char **apps = NULL;
    if (verdict == HOOK_DEPLOYED) {
        apps = settings_apps(call->hooks->settings, call->provider->provider, event, &n);
        if (n == 0)
            verdict = HOOK_IGNORED;
    }
    buf_wipe(&call->body);
    switch (verdict) {
    case HOOK_DEPLOYED:
        call_store(call, event, apps, n);
        return MHD_YES;
    case HOOK_IGNORED:
        log_info("webhook provider=%s ignored why=%s", name, log_quote(event->why, quoted));
        return answer_text(call->connection, MHD_HTTP_OK, "ignored", event->why);
    case HOOK_UNAUTHORIZED:
        log_warn("webhook provider=%s refused why=%s", name, log_quote(event->why, quoted));
        return answer_text(call->connection, MHD_HTTP_UNAUTHORIZED, "error", event->why);
    case HOOK_MALFORMED:
        log_warn("webhook provider=%s malformed why=%s", name, log_quote(event->why, quoted));
        return answer_text(call->connection, MHD_HTTP_BAD_REQUEST, "error", event->why);
    }
    return MHD_NO;
}

static bool rate_allows(struct webhooks *hooks, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    unsigned char key[16];
    limit_key(info->client_addr, key);
    return limit_take(&hooks->limit, key, clock_mono_ms() + 1);
}

/* The headers are there. What is refused here costs no body and no signature. */
static struct call *call_new(struct webhooks *hooks, struct MHD_Connection *connection,
                             const char *path, const char *method)
{
    static const char prefix[] = "/hooks/";
    struct call *call = mem_alloc(sizeof *call);
    bool ours = strncmp(path, prefix, sizeof prefix - 1) == 0;
    const char *name = ours ? path + sizeof prefix - 1 : "";
    call->hooks = hooks;
    call->connection = connection;
    call->provider = settings_provider(hooks->settings, name);
    if (!rate_allows(hooks, connection)) {
        call->refused = MHD_HTTP_TOO_MANY_REQUESTS;
        call->reason = "too many requests";
    } else if (!hook_provider_find(name)) {
        call->refused = MHD_HTTP_NOT_FOUND;
        call->reason = "there are /hooks/travis, github, gitlab, gitea and generic";
    } else if (strcmp(method, "POST") != 0) {
        call->refused = MHD_HTTP_METHOD_NOT_ALLOWED;
        call->reason = "only POST is answered";
    } else if (!call->provider) {
        call->refused = MHD_HTTP_UNAUTHORIZED;
        call->reason = "this provider is not configured";
    }
    return call;
}

/* The size that is announced; -1 when none is. */
static long long announced(struct MHD_Connection *connection)
{
    const char *text =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return text ? strtoll(text, NULL, 10) : -1;
}

static enum MHD_Result call_begin(struct call *call)
{
    long long size = announced(call->connection);
    bool waits = MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND,
                                             MHD_HTTP_HEADER_EXPECT) != NULL;
    if (!call->refused && size > (long long)HOOK_MAX_BODY) {
        call->refused = MHD_HTTP_CONTENT_TOO_LARGE;
        call->reason = "a report has at most 1 MiB";
    }
    if (call->refused && (waits || size > (long long)DROP_MAX_BYTES))
        return answer_text(call->connection, call->refused, "error", call->reason);
    return MHD_YES;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **request_context)
{
    struct call *call = *request_context;
    (void)version;
    if (!call) {
        *request_context = call = call_new(ctx, connection, path, method);
        return call_begin(call);
    }
    if (*size) {
        if (!call->refused && call->body.size + *size > HOOK_MAX_BODY) {
            call->refused = MHD_HTTP_CONTENT_TOO_LARGE;
            call->reason = "a report has at most 1 MiB";
            buf_wipe(&call->body);
        }
        if (!call->refused)
            buf_add(&call->body, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (call->refused)
        return answer_text(connection, call->refused, "error", call->reason);
    return call->n_parts ? answer_stored(call) : call_end(call);
}

static void on_done(void *ctx, struct MHD_Connection *connection, void **request_context,
                    enum MHD_RequestTerminationCode how)
{
    struct call *call = *request_context;
    (void)ctx;
    (void)connection;
    (void)how;
    if (!call)
        return;
    if (call->suspended)
        call_unlink(call);
    buf_wipe(&call->body);
    free(call->parts);
    free(call);
    *request_context = NULL;
}

/* --- opening --- */

/* What an operator must find later. */
static void say_event(struct webhooks *hooks, const char *text)
{
    listen_say(hooks->stage, &hooks->said, "webhooks", text);
}

static int read_tls(const struct settings *settings, struct listen_tls *out, struct err *err)
{
    return listen_tls_read(settings->tls_cert_file, settings->tls_key_file, NULL, out, err);
}

static int listen_now(struct webhooks *hooks, struct err *err)
{
    if (read_tls(hooks->settings, &hooks->tls, err))
        return -1;
    const struct listener_options options = {.address = hooks->settings->listen,
                                             .max_connections = CONNECTION_LIMIT,
                                             .memory_bytes = CONNECTION_MEMORY,
                                             .idle_s = CONNECTION_IDLE_S,
                                             .max_ms = CONNECTION_MAX_MS,
                                             .tls_cert = hooks->tls.cert,
                                             .tls_key = hooks->tls.key,
                                             .request = on_request,
                                             .done = on_done,
                                             .ctx = hooks};
    return listener_open(stage_loop(hooks->stage), &options, &hooks->listener, err);
}

static void stop_listening(struct webhooks *hooks)
{
    loop_timer_cancel(stage_loop(hooks->stage), hooks->open_timer);
    hooks->open_timer = 0;
    while (hooks->waiting) {
        hooks->waiting->late = true;
        call_resume(hooks->waiting);
    }
    listener_free(hooks->listener);
    hooks->listener = NULL;
    listen_tls_wipe(&hooks->tls);
}

static void on_open(void *ctx)
{
    struct webhooks *hooks = ctx;
    struct err err = ERR_INIT;
    stop_listening(hooks);
    if (listen_now(hooks, &err) == 0) {
        say_event(hooks, "");
        log_info("webhooks listen=%s port=%d tls=%s", hooks->settings->listen,
                 listener_port(hooks->listener), hooks->tls.cert ? "yes" : "no");
        return;
    }
    err_prefix(&err, "webhooks are not listened for");
    log_error("%s", err.text);
    say_event(hooks, err.text);
    hooks->open_timer = loop_timer(stage_loop(hooks->stage), OPEN_AGAIN_MS, on_open, hooks);
}

/* --- the hooks of the stage --- */

int webhook_open(struct stage *stage, void **state, struct err *err)
{
    (void)err;
    struct webhooks *hooks = mem_alloc(sizeof *hooks);
    hooks->stage = stage;
    *state = hooks;
    return 0;
}

void webhook_configure(void *state, const char *body, size_t size)
{
    struct webhooks *hooks = state;
    struct settings *settings = NULL;
    struct err err = ERR_INIT;
    if (settings_decode(body, size, &settings, &err) < 0) {
        log_error("configure: %s", err.text); /* our own manager wrote it */
        return;
    }
    stop_listening(hooks);
    settings_free(hooks->settings);
    hooks->settings = settings;
    if (!settings)
        return;
    hooks->limit.per_minute = settings->rate;
    for (size_t i = 0; i < settings->n_providers; i++) {
        struct hook_proof proof;
        if (settings_proof(&settings->providers[i], &proof, &err) < 0) {
            err_prefix(&err, "%s", settings->providers[i].provider->name);
            log_warn("webhooks: %s", err.text);
            say_event(hooks, err.text);
        }
        settings_proof_wipe(&proof);
    }
    on_open(hooks);
}

void webhook_close(void *state)
{
    struct webhooks *hooks = state;
    if (!hooks)
        return;
    stop_listening(hooks);
    settings_free(hooks->settings);
    free(hooks);
}

/* --- check --- */

static void put_row(struct buf *out, const char *name, const char *seen, const struct err *problem,
                    const char *remedy)
{
    buf_puts(out, out->data[out->size - 1] == '[' ? "" : ",");
    buf_puts(out, "{\"kind\":\"webhooks\",\"name\":");
    json_put_text(out, name);
    buf_printf(out,
               ",\"type\":\"listener\",\"reachable\":%s,\"version\":null,\"newest_ms\":null,"
               "\"seen\":",
               problem ? "false" : "true");
    json_put_text(out, seen);
    buf_puts(out, ",\"problem\":");
    json_put_text(out, problem ? problem->text : NULL);
    buf_puts(out, ",\"remedy\":");
    json_put_text(out, problem ? remedy : NULL);
    buf_puts(out, "}");
}

static void check_listen(const struct settings *settings, struct buf *out)
{
    struct err err = ERR_INIT;
    AUTO_LISTEN_TLS struct listen_tls tls = LISTEN_TLS_INIT;
    bool loopback = true;
    int rc = address_check(settings->listen, &loopback, &err);
    if (rc == 0)
        rc = read_tls(settings, &tls, &err);
    put_row(out, settings->listen,
            tls.cert   ? "listens with TLS"
            : loopback ? "listens on this machine only"
                       : "listens without TLS: put a proxy before it",
            rc ? &err : NULL, "the files must be readable by the user that remap runs as");
}

static void check_provider(const struct settings_provider *provider, size_t n_routes,
                           struct buf *out)
{
    struct err err = ERR_INIT;
    struct hook_proof proof;
    AUTO_FREE char *seen = mem_printf("/hooks/%s, %zu route%s", provider->provider->name, n_routes,
                                      n_routes == 1 ? "" : "s");
    int rc = settings_proof(provider, &proof, &err);
    settings_proof_wipe(&proof);
    put_row(out, provider->provider->name, seen, rc ? &err : NULL,
            "put the secret that the provider was given into this file, readable by the user that "
            "remap runs as");
}

int webhook_check(struct stage *stage, const struct stage_request *request, struct buf *result,
                  int *exit_code, struct err *err)
{
    (void)stage;
    (void)exit_code;
    AUTO(settings) struct settings *settings = NULL;
    if (settings_decode(request->body, request->size, &settings, err) < 0)
        return -1;
    buf_puts(result, "{\"v\":1,\"sources\":[");
    if (settings)
        check_listen(settings, result);
    for (size_t i = 0; settings && i < settings->n_providers; i++) {
        size_t n = 0;
        for (size_t k = 0; k < settings->n_routes; k++)
            n += !settings->routes[k].provider ||
                 strcmp(settings->routes[k].provider, settings->providers[i].provider->name) == 0;
        check_provider(&settings->providers[i], n, result);
    }
    buf_puts(result, "]}");
    return 0;
}
