/* fuzz_hooks.c - what CI systems post: the first line is the provider's name, then lines "Name:
 * value" of headers up to an empty one, then the body. It is judged as it is, which must never be
 * believed, and then with a proof of our own, so that payloads are reached too. */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "monitor/webhook/hook.h"
#include "monitor/webhook/settings.h"

#define MAX_HEADERS 32
#define SECRET "fuzz"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Cuts the next line off. */
static char *next_line(char **at)
{
    char *line = *at, *end = line ? strchr(line, '\n') : NULL;
    if (end)
        *end = '\0';
    *at = end ? end + 1 : NULL;
    return line;
}

static void look(const struct hook_provider *provider, struct hook_request *request,
                 const struct hook_proof *proof, bool believed)
{
    static const char settings_text[] =
        "{\"v\":1,\"webhooks\":{\"listen\":\"127.0.0.1:0\",\"tls_cert_file\":null,\"tls_key_file\":"
        "null,\"rate\":60,\"replay_window_ms\":300000,\"providers\":[],\"routes\":[{\"app\":"
        "\"shop\","
        "\"provider\":null,\"repository\":\"a/b\",\"branches\":[\"m*\"],\"environments\":[\"p?*\"],"
        "\"workflows\":[\"[d\"]}]}}";
    static struct hook_event event;
    enum hook_verdict verdict = hook_judge(provider, request, proof, &event);
    if (!believed && verdict != HOOK_UNAUTHORIZED && verdict != HOOK_MALFORMED)
        abort();
    if (verdict != HOOK_DEPLOYED) {
        if (!event.why[0])
            abort();
        return;
    }
    struct err err = ERR_INIT;
    AUTO(settings) struct settings *settings = NULL;
    AUTO_BUF struct buf text = BUF_INIT;
    size_t n;
    if (settings_decode(settings_text, sizeof settings_text - 1, &settings, &err))
        abort();
    AUTO_FREE const char **apps = settings_apps(settings, provider, &event, &n);
    hook_text(provider, &event, &text);
    hook_delivery(provider, &event, &text);
    if (text.size > 4000 || (n > 0 && !apps[0])) /* an event's text is a page */
        abort();
}

/* The headers that prove the body under our secret. */
static void prove(struct hook_request *request, struct hook_header *headers)
{
    static char hex[80], timed[80];
    AUTO_BUF struct buf text = BUF_INIT;
    unsigned char digest[32];
    unsigned n = sizeof digest;
    buf_puts(&text, "1700000000.");
    buf_add(&text, request->body, request->size);
    HMAC(EVP_sha256(), SECRET, 4, (const unsigned char *)request->body, request->size, digest, &n);
    snprintf(hex, sizeof hex, "sha256=");
    for (size_t i = 0; i < n; i++)
        snprintf(hex + 7 + 2 * i, 3, "%02x", digest[i]);
    HMAC(EVP_sha256(), SECRET, 4, (const unsigned char *)text.data, text.size, digest, &n);
    snprintf(timed, sizeof timed, "sha256=");
    for (size_t i = 0; i < n; i++)
        snprintf(timed + 7 + 2 * i, 3, "%02x", digest[i]);
    headers[0] = (struct hook_header){"X-Hub-Signature-256", hex};
    headers[1] = (struct hook_header){"X-Gitea-Signature", hex};
    headers[2] = (struct hook_header){"X-Signature-256", timed};
    headers[3] = (struct hook_header){"X-Timestamp", "1700000000"};
    headers[4] = (struct hook_header){"X-Gitlab-Token", SECRET};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hook_proof unknown = {"no one knows this", "nor this", "-----BEGIN"};
    const struct hook_proof ours = {SECRET, NULL, NULL}, token = {NULL, SECRET, NULL};
    AUTO_FREE char *text = mem_strndup((const char *)data, size);
    char *at = text;
    struct hook_header headers[MAX_HEADERS + 5];
    size_t n = 0;
    const struct hook_provider *provider = hook_provider_find(next_line(&at));
    for (char *line; at && n < MAX_HEADERS && (line = next_line(&at)) && *line;) {
        char *colon = strchr(line, ':');
        if (!colon)
            continue;
        *colon = '\0';
        headers[5 + n++] = (struct hook_header){line, colon + 1 + strspn(colon + 1, " ")};
    }
    if (!provider)
        return 0;
    struct hook_request request = {.body = at ? at : "",
                                   .size = at ? strlen(at) : 0,
                                   .headers = headers + 5,
                                   .n_headers = n,
                                   .interval = n ? headers[5].value : NULL,
                                   .now_ms = INT64_C(1700000000000),
                                   .window_ms = 300000};
    look(provider, &request, &unknown, false);
    request.headers = headers;
    request.n_headers = n + 5;
    prove(&request, headers);
    look(provider, &request, provider == &hook_gitlab ? &token : &ours, true);
    AUTO_BUF struct buf payload = BUF_INIT;
    hook_form_payload(request.body, request.size, &payload);
    static struct hook_event event;
    json_t *tree = hook_parse(request.body, request.size, &event);
    json_decref(tree);
    return 0;
}
