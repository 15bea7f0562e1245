/* listen.c - certificates and problems of listeners (listen.h). */
#include "monitor/listen.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/mem.h"

#define TLS_MAX_BYTES ((size_t)1 << 20)

int listen_tls_read(const char *cert_file, const char *key_file, const char *ca_file,
                    struct listen_tls *out, struct err *err)
{
    struct listen_tls tls = LISTEN_TLS_INIT;
    const char *const paths[] = {cert_file, key_file, ca_file};
    char **const to[] = {&tls.cert, &tls.key, &tls.ca};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        AUTO_BUF struct buf text = BUF_INIT;
        if (!paths[i])
            continue;
        if (file_read(paths[i], TLS_MAX_BYTES, &text, err)) {
            listen_tls_wipe(&tls);
            return -1;
        }
        *to[i] = buf_take(&text);
    }
    *out = tls;
    return 0;
}

void listen_tls_wipe(struct listen_tls *tls)
{
    if (tls->key)
        explicit_bzero(tls->key, strlen(tls->key));
    free(tls->cert);
    free(tls->key);
    free(tls->ca);
    *tls = (struct listen_tls)LISTEN_TLS_INIT;
}

static void on_said(void *ctx, int64_t row, bool duplicate)
{
    (void)ctx;
    (void)row;
    (void)duplicate;
}

void listen_say(struct stage *stage, struct listen_said *said, const char *kind, const char *text)
{
    if (strcmp(said->text, text) == 0)
        return;
    strncpy(said->text, text, sizeof said->text - 1);
    if (!*text)
        return;
    AUTO_BUF struct buf body = BUF_INIT;
    buf_puts(&body, "{\"v\":1,\"app\":null,\"kind\":");
    json_put_text(&body, kind);
    buf_puts(&body, ",\"text\":");
    json_put_text(&body, text);
    buf_puts(&body, ",\"interval_ms\":null,\"delivery\":null}");
    stage_event(stage, body.data, body.size, on_said, NULL);
}
