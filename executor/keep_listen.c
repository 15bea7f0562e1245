/* keep_listen.c - the HTTPS listener of a keeper: collects a POST and hands it on. Without a
 * certificate nothing is listened for; API servers then go on without us, which is said once. */
#include <stdlib.h>
#include <string.h>

#include "executor/keep_internal.h"
#include "model/base/file.h"

/* The API server asks once per pod that is made in namespaces that were opted in: a rollout of a
 * thousand pods comes at the pace of its controllers, some 50 a second. */
#define CONNECTION_LIMIT 128
#define CONNECTION_MEMORY (32 * 1024)
#define CONNECTION_IDLE_S 5 /* timeoutSeconds of the webhook is 1 */
#define CONNECTION_MAX_MS 10000
#define BODY_MAX_BYTES ((size_t)4 << 20) /* two objects of 1.5 MiB */
#define TLS_MAX_BYTES ((size_t)1 << 20)

struct call {
    struct buf body;
    bool too_large;
};

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *text)
{
    AUTO_BUF struct buf body = BUF_INIT;
    buf_printf(&body, "{\"error\":\"%s\"}\n", text);
    return listener_answer(connection, status, "application/json", &body, NULL);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **request_context)
{
    struct kept *kept = ctx;
    struct call *call = *request_context;
    (void)version;
    if (!call) {
        *request_context = mem_alloc(sizeof *call);
        return MHD_YES;
    }
    if (*size) {
        call->too_large |= call->body.size + *size > BODY_MAX_BYTES;
        if (!call->too_large)
            buf_add(&call->body, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (strcmp(method, "POST") != 0)
        return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only POST is answered");
    if (call->too_large)
        return answer(connection, MHD_HTTP_CONTENT_TOO_LARGE, "at most 4 MiB");
    AUTO_BUF struct buf out = BUF_INIT;
    unsigned status = kept->orchestrator->keeper->answer(
        kept->ctx, path, call->body.data ? call->body.data : "", call->body.size, &out);
    return listener_answer(connection, status, "application/json", &out, NULL);
}

static void on_done(void *ctx, struct MHD_Connection *connection, void **request_context,
                    enum MHD_RequestTerminationCode how)
{
    struct call *call = *request_context;
    (void)ctx;
    (void)connection;
    (void)how;
    if (call)
        buf_wipe(&call->body);
    free(call);
    *request_context = NULL;
}

void kept_unlisten(struct kept *kept)
{
    listener_free(kept->listener);
    kept->listener = NULL;
    free(kept->tls_cert);
    free(kept->tls_key);
    kept->tls_cert = kept->tls_key = NULL;
}

static void say_trouble(struct kept *kept, const char *text)
{
    if (kept->listen_trouble && strcmp(kept->listen_trouble, text) == 0)
        return;
    free(kept->listen_trouble);
    kept->listen_trouble = mem_strdup(text);
    kept_say(kept, NULL, "listener", text);
}

static int read_tls(const char *path, char **out, struct err *err)
{
    AUTO_BUF struct buf text = BUF_INIT;
    if (!path)
        return err_set(err, ERR_CONFIG, "tls_cert_file and tls_key_file are not both given");
    if (file_read(path, TLS_MAX_BYTES, &text, err) < 0)
        return -1;
    *out = buf_take(&text);
    return 0;
}

static int listen_again(struct kept *kept, const struct keeper_address *address, struct err *err)
{
    AUTO_FREE char *cert = NULL;
    AUTO_FREE char *key = NULL;
    if (read_tls(address->cert_file, &cert, err) < 0 || read_tls(address->key_file, &key, err) < 0)
        return -1;
    if (kept->listener && strcmp(cert, kept->tls_cert) == 0 && strcmp(key, kept->tls_key) == 0)
        return 0;
    kept_unlisten(kept);
    kept->tls_cert = steal(cert);
    kept->tls_key = steal(key);
    const struct listener_options options = {.address = address->listen,
                                             .max_connections = CONNECTION_LIMIT,
                                             .memory_bytes = CONNECTION_MEMORY,
                                             .idle_s = CONNECTION_IDLE_S,
                                             .max_ms = CONNECTION_MAX_MS,
                                             .tls_cert = kept->tls_cert,
                                             .tls_key = kept->tls_key,
                                             .request = on_request,
                                             .done = on_done,
                                             .ctx = kept};
    return listener_open(stage_loop(kept->stage), &options, &kept->listener, err);
}

void kept_listen(struct kept *kept)
{
    struct keeper_address address;
    struct err err = ERR_INIT;
    if (!kept->orchestrator->keeper->address(kept->ctx, &address))
        return;
    bool was = kept->listener != NULL;
    if (listen_again(kept, &address, &err) < 0) {
        char text[sizeof err.text + 80];
        snprintf(text, sizeof text, "%s: %s%s", kept->source.name, err.text,
                 kept->listener ? "; the old certificate stays" : "");
        say_trouble(kept, text);
    } else if (!was) {
        char text[300];
        snprintf(text, sizeof text, "%s: listens on %s", kept->source.name, address.listen);
        say_trouble(kept, text);
    }
}
