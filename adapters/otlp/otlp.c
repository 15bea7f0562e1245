/* otlp.c - the source `otlp`: its options, its window of what was received, and its check, which asks
 * the receiver of the running daemon (interfaces.md 5.4). */
#include "adapters/otlp/otlp.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "adapters/http/source_http.h"
#include "adapters/otlp/store.h"
#include "adapters/spans/pages.h"
#include "model/base/address.h"
#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/json.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)

static const struct option_spec options[] = {
    {"listen", "where spans are sent to: POST /v1/traces", "127.0.0.1:4318", false},
    {"token_file", "file with the bearer token that senders show", NULL, false},
    {"tls_cert_file", "certificate chain (PEM); with tls_key_file: https", NULL, false},
    {"tls_key_file", "its private key (PEM)", NULL, false},
    {"client_ca_file", "senders may show a certificate of these (PEM), instead of the token", NULL,
     false},
    {"others", "messages between two unknown names: count (as not mapped), or ignore, where "
     "applications share the senders", "count", false},
    {NULL, NULL, NULL, false}};

/* --- settings --- */

static int check_settings(const struct otlp_settings *s, struct err *err)
{
    bool loopback;
    if (address_check(s->listen, &loopback, err))
        return err_prefix(err, "%s: listen", s->name);
    if (!s->tls_cert_file != !s->tls_key_file)
        return err_set(err, ERR_CONFIG, "%s: tls_cert_file and tls_key_file go together", s->name);
    if (s->client_ca_file && !s->tls_cert_file)
        return err_set(err, ERR_CONFIG, "%s: client_ca_file needs tls_cert_file", s->name);
    if (!loopback && !s->token_file && !s->client_ca_file)
        return err_set(err, ERR_CONFIG,
                       "%s: on %s anybody could send: set token_file, or client_ca_file with TLS",
                       s->name, s->listen);
    return 0;
}

int otlp_settings_read(const struct source *source, struct otlp_settings *out, struct err *err)
{
    struct otlp_settings s = {.count_others = true};
    if (source_check(source, options, err) || span_pages_others(source, &s.count_others, err))
        return -1;
    s.name = mem_strdup(source->name);
    s.listen = mem_strdup(source_option(source, "listen", "127.0.0.1:4318"));
    s.token_file = mem_strdup(source_option(source, "token_file", NULL));
    s.tls_cert_file = mem_strdup(source_option(source, "tls_cert_file", NULL));
    s.tls_key_file = mem_strdup(source_option(source, "tls_key_file", NULL));
    s.client_ca_file = mem_strdup(source_option(source, "client_ca_file", NULL));
    if (check_settings(&s, err)) {
        otlp_settings_wipe(&s);
        return -1;
    }
    *out = s;
    return 0;
}

void otlp_settings_wipe(struct otlp_settings *s)
{
    free(s->name);
    free(s->listen);
    free(s->token_file);
    free(s->tls_cert_file);
    free(s->tls_key_file);
    free(s->client_ca_file);
    *s = (struct otlp_settings){.name = NULL};
}

/* --- the adapter --- */

static int otlp_open(const struct source *source, void **ctx, struct err *err)
{
    struct otlp_settings settings;
    if (otlp_settings_read(source, &settings, err))
        return -1;
    *ctx = mem_dup(&settings, sizeof settings);
    return 0;
}

static void otlp_close(void *ctx)
{
    otlp_settings_wipe(ctx);
    free(ctx);
}

static int otlp_trace(void *ctx, const struct app_scope *app, const struct window *window,
                      struct inspection *in, struct err *err)
{
    const struct otlp_settings *s = ctx;
    (void)app; /* names that are not of the model are unmapped traffic */
    for (size_t i = 0; i < in->n_received; i++)
        if (strcmp(in->received[i].source, s->name) == 0)
            return otlp_store_trace(in->received[i].store, window, s->count_others, clock_wall_ms(),
                                    in, err);
    return err_set(err, ERR_UNREACHABLE,
                   "nothing listens on %s: spans are received while `remap run` runs", s->listen);
}

/* --- check --- */

void otlp_status_put(const struct otlp_store *store, struct buf *out)
{
    const struct otlp_totals t = otlp_store_totals(store);
    buf_puts(out, "{\"v\":1,\"program\":\"remap\",\"version\":\"" REMAP_VERSION "\",\"since_ms\":");
    json_put_int(out, t.since_ms);
    buf_puts(out, ",\"newest_ms\":");
    if (t.newest_ms >= 0)
        json_put_int(out, t.newest_ms);
    else
        buf_puts(out, "null");
    buf_printf(out,
               ",\"requests\":%lld,\"spans\":%lld,\"waiting\":%zu,\"services\":%zu,\"pairs\":%zu,"
               "\"refused\":%lld,\"rejected\":%lld,\"early\":%lld,\"stale\":%lld}\n",
               (long long)t.requests, (long long)t.spans, t.waiting, t.services, t.edges,
               (long long)t.refused, (long long)t.rejected, (long long)t.early, (long long)t.stale);
}

/* The address from this machine: 0.0.0.0 and :: are all of its own. Caller frees. */
static char *own_url(const struct otlp_settings *s)
{
    const char *port = strrchr(s->listen, ':');
    const char *scheme = s->tls_cert_file ? "https" : "http";
    if (strncmp(s->listen, "0.0.0.0:", 8) == 0)
        return mem_printf("%s://127.0.0.1%s", scheme, port);
    if (strncmp(s->listen, "[::]:", 5) == 0)
        return mem_printf("%s://[::1]%s", scheme, port);
    return mem_printf("%s://%s", scheme, s->listen);
}

static int check_files(const struct otlp_settings *s, struct err *err)
{
    const char *const paths[] = {s->token_file, s->tls_cert_file, s->tls_key_file,
                                 s->client_ca_file};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        AUTO_BUF struct buf text = BUF_INIT;
        if (paths[i] && file_read(paths[i], FILE_MAX_BYTES, &text, err))
            return -1;
        if (text.data)
            explicit_bzero(text.data, text.size);
    }
    return 0;
}

/* Nobody answers: would the daemon be able to listen? */
static int check_bind(const struct otlp_settings *s, struct source_report *out, struct err *err)
{
    struct addrinfo *address = NULL;
    int on = 1;
    if (address_parse(s->listen, &address, err))
        return -1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) &&
                 !bind(fd, address->ai_addr, address->ai_addrlen);
    if (fd >= 0)
        close(fd);
    freeaddrinfo(address);
    if (!bound)
        return err_set(err, ERR_UNREACHABLE, "%s cannot be listened on, and no receiver answers there",
                       s->listen);
    out->reachable = true;
    snprintf(out->seen, sizeof out->seen, "will listen on %.100s once `remap run` runs", s->listen);
    return 0;
}

static int taken(const struct otlp_settings *s, struct err *err)
{
    return err_set(err, ERR_CONFIG, "another program listens on %s", s->listen);
}

static int read_status(const struct otlp_settings *s, const struct buf *body,
                       struct source_report *out, struct err *err)
{
    AUTO_JSON json_t *tree =
        json_parse(body->data ? body->data : "", body->size, &json_limits_header, err);
    const char *program = json_string_value(json_object_get(tree, "program"));
    const char *version = json_string_value(json_object_get(tree, "version"));
    const json_t *newest = json_object_get(tree, "newest_ms");
    if (!program || strcmp(program, "remap") != 0)
        return taken(s, err);
    out->reachable = true;
    snprintf(out->version, sizeof out->version, "%.60s", version ? version : "");
    if (json_is_integer(newest))
        out->newest_ms = json_integer_value(newest);
    snprintf(out->seen, sizeof out->seen,
             "%lld spans; %lld services, %lld pairs; %lld spans wait for others",
             (long long)json_integer_value(json_object_get(tree, "spans")),
             (long long)json_integer_value(json_object_get(tree, "services")),
             (long long)json_integer_value(json_object_get(tree, "pairs")),
             (long long)json_integer_value(json_object_get(tree, "waiting")));
    if (out->newest_ms < 0)
        return err_set(err, ERR_NOT_FOUND, "no span has come yet: let senders export to it");
    return 0;
}

static int otlp_check(void *ctx, const struct app_scope *app, struct source_report *out,
                      struct err *err)
{
    const struct otlp_settings *s = ctx;
    (void)app;
    *out = (struct source_report){.newest_ms = -1};
    if (check_files(s, err))
        return -1;
    AUTO_FREE char *url = own_url(s);
    const struct http_options http_options = {.base_url = url,
                                              .token_file = s->token_file,
                                              .ca_file = s->tls_cert_file,
                                              .any_name = true,
                                              .attempts = 1};
    AUTO(http) struct http *http = http_new(&http_options, err);
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    if (!http)
        return -1;
    if (http_get(http, OTLP_STATUS_PATH, &answer, err) == 0)
        return read_status(s, &answer.body, out, err);
    if (answer.status)
        return err->kind == ERR_NOT_FOUND ? taken(s, err) : err_prefix(err, "no receiver of remap");
    struct err bind_err = ERR_INIT;
    if (check_bind(s, out, &bind_err) == 0) {
        *err = (struct err)ERR_INIT;
        return 0;
    }
    return -1; /* what the client met says more */
}

const struct message_adapter otlp_messages = {
    .name = "otlp",
    .summary = "messages from spans that OpenTelemetry senders export to remap",
    .options = options,
    .open = otlp_open,
    .trace = otlp_trace,
    .check = otlp_check,
    .close = otlp_close,
};
