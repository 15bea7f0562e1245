/* admission_check.c - see admission_check.h (kubernetes/api:admissionregistration/v1/types.go,
 * discovery/v1/types.go; certificates by OpenSSL's own verification, as a TLS client does it). */
#include "adapters/kubernetes/admission_check.h"

#include <inttypes.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/http/http.h"
#include "adapters/kubernetes/admission.h"
#include "adapters/kubernetes/kube.h"
#include "model/base/clock.h"
#include "model/base/file.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define PEM_MAX_BYTES ((size_t)1 << 20)
#define PROBE_MS 3000

#define SET(text, ...) snprintf(text, sizeof text, __VA_ARGS__)

void admission_hook_wipe(struct admission_hook *hook)
{
    free(hook->ca_pem);
    free(hook->space);
    free(hook->service);
    free(hook->host);
    *hook = (struct admission_hook){0};
}

/* --- the configuration --- */

static bool lists(const json_t *list, const char *wanted)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);
        if (text && (strcmp(text, wanted) == 0 || strcmp(text, "*") == 0))
            return true;
    }
    return false;
}

static bool asks_about_pods(const json_t *webhook)
{
    size_t i;
    const json_t *rule;
    json_array_foreach(kube_get(webhook, "rules"), i, rule)
        if (lists(kube_get(rule, "operations"), "CREATE") && lists(kube_get(rule, "resources"), "pods"))
            return true;
    return false;
}

/* The one that leads to us; else the first. */
static const json_t *own_webhook(const json_t *configuration)
{
    const json_t *list = kube_get(configuration, "webhooks"), *webhook;
    size_t i;
    json_array_foreach(list, i, webhook)
    {
        const char *path = kube_text(kube_path(webhook, "clientConfig", "service"), "path");
        if (path && strcmp(path, ADMISSION_PATH) == 0)
            return webhook;
    }
    return json_array_get(list, 0);
}

/* Base64 of PEM; NULL: none. Caller frees. */
static char *read_bundle(const json_t *client)
{
    const char *text = kube_text(client, "caBundle");
    size_t size = text ? strlen(text) : 0;
    if (size == 0 || size % 4)
        return NULL;
    unsigned char *pem = mem_array(size / 4 * 3 + 1, 1);
    int n = EVP_DecodeBlock(pem, (const unsigned char *)text, (int)size);
    if (n > 0) {
        pem[n] = '\0'; /* what the padding decodes to is NUL as well */
        return (char *)pem;
    }
    free(pem);
    return NULL;
}

static void read_target(const json_t *client, struct admission_hook *out)
{
    const json_t *service = kube_get(client, "service");
    const char *space = kube_text(service, "namespace"), *name = kube_text(service, "name");
    out->ca_pem = read_bundle(client);
    if (!space || !name)
        return;
    out->space = mem_strdup(space);
    out->service = mem_strdup(name);
    out->host = mem_printf("%s.%s.svc", name, space);
    out->port = kube_number(service, "port", 443);
}

void admission_judge_hook(const json_t *configuration, const char *name,
                          struct admission_hook *out, struct check_line *line)
{
    const json_t *webhook = own_webhook(configuration);
    const char *policy = kube_text(webhook, "failurePolicy");
    int64_t timeout_s = kube_number(webhook, "timeoutSeconds", 10);
    *out = (struct admission_hook){0};
    *line = (struct check_line){.what = "webhook", .remedy = "kubectl apply -k etc/kubernetes/replica"};
    if (!webhook) {
        SET(line->problem, "MutatingWebhookConfiguration %.100s holds no webhook", name);
        return;
    }
    read_target(kube_get(webhook, "clientConfig"), out);
    SET(line->seen, "MutatingWebhookConfiguration %.100s: failurePolicy %.20s, timeout %" PRId64 "s", name,
        policy ? policy : "Fail", timeout_s);
    if (!policy || strcmp(policy, "Ignore") != 0)
        SET(line->problem, "failurePolicy of webhook %.100s is not Ignore: where remap does not answer, no "
                           "pod can be made",
            name);
    else if (!asks_about_pods(webhook))
        SET(line->problem, "webhook %.100s does not ask when pods are made: none is steered", name);
    else if (timeout_s > 2)
        SET(line->warning, "where remap does not answer, pods are made %" PRId64 " s late", timeout_s);
    if (!line->problem[0] && !line->warning[0])
        line->remedy = NULL;
}

/* --- certificates --- */

static X509 *read_one(BIO *bio)
{
    return PEM_read_bio_X509(bio, NULL, NULL, NULL);
}

/* Fills the store with all of the bundle; how many there were. */
static int trust(X509_STORE *store, const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    int n = 0;
    for (X509 *x; bio && (x = read_one(bio)); n++) {
        X509_STORE_add_cert(store, x);
        X509_free(x);
    }
    BIO_free(bio);
    return n;
}

/* The first of the file is the server's, the others lead to what is trusted. NULL: none. */
static X509 *read_chain(const char *pem, STACK_OF(X509) *others)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *leaf = bio ? read_one(bio) : NULL;
    for (X509 *x; leaf && (x = read_one(bio));)
        sk_X509_push(others, x);
    BIO_free(bio);
    return leaf;
}

/* 0, or OpenSSL's number of what is wrong. */
static int verify(const struct admission_hook *hook, X509_STORE *store, X509 *leaf,
                  STACK_OF(X509) *others, int64_t now_ms)
{
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    int why = X509_V_ERR_UNSPECIFIED;
    if (ctx && X509_STORE_CTX_init(ctx, store, leaf, others) == 1) {
        X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
        X509_STORE_CTX_set_default(ctx, "ssl_server");
        X509_VERIFY_PARAM_set_time(param, (time_t)(now_ms / 1000));
        if (hook->host)
            X509_VERIFY_PARAM_set1_host(param, hook->host, 0);
        why = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
    }
    X509_STORE_CTX_free(ctx);
    return why;
}

/* Wall time; -1: it does not say. */
static int64_t end_of(const X509 *x)
{
    struct tm tm;
    return ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm) == 1 ? (int64_t)timegm(&tm) * 1000 : -1;
}

static void judge_leaf(const struct admission_hook *hook, X509_STORE *store, const char *cert_pem,
                       int64_t now_ms, struct check_line *line)
{
    char at[CLOCK_TEXT_SIZE];
    STACK_OF(X509) *others = sk_X509_new_null();
    X509 *leaf = read_chain(cert_pem, others);
    if (!leaf) {
        SET(line->problem, "tls_cert_file holds no certificate");
        sk_X509_pop_free(others, X509_free);
        return;
    }
    int64_t end_ms = end_of(leaf);
    int why = verify(hook, store, leaf, others, now_ms);
    SET(line->seen, "valid until %s", clock_iso(end_ms, at));
    if (why == X509_V_ERR_CERT_HAS_EXPIRED)
        SET(line->problem, "the webhook's certificate has ended: pods are made without being steered");
    else if (why != X509_V_OK)
        SET(line->problem, "caBundle does not verify the webhook's certificate for %.120s: %.100s",
            hook->host ? hook->host : "it", X509_verify_cert_error_string(why));
    else if (end_ms - now_ms < ADMISSION_WARN_DAYS * DAY_MS)
        SET(line->warning, "the webhook's certificate ends in %" PRId64 " days",
            (end_ms - now_ms) / DAY_MS);
    else
        line->remedy = NULL;
    X509_free(leaf);
    sk_X509_pop_free(others, X509_free);
}

void admission_judge_certificate(const struct admission_hook *hook, const char *cert_pem,
                                 int64_t now_ms, struct check_line *line)
{
    *line = (struct check_line){
        .what = "certificate",
        .remedy = "etc/kubernetes/certificate makes a new one and puts it where it belongs"};
    X509_STORE *store = X509_STORE_new();
    if (!hook->ca_pem || !store || trust(store, hook->ca_pem) == 0)
        SET(line->problem, "the webhook has no caBundle: the API server trusts nobody, no pod is steered");
    else
        judge_leaf(hook, store, cert_pem, now_ms, line);
    X509_STORE_free(store);
}

/* --- asking --- */

static bool find_hook(struct kube_api *api, const char *name, struct admission_hook *hook,
                      struct check_line *line)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *found = NULL;
    AUTO_FREE char *path =
        kube_api_path("admissionregistration.k8s.io/v1", NULL, "mutatingwebhookconfigurations", name);
    if (kube_api_get(api, path, &found, NULL, &err) == 0) {
        admission_judge_hook(found, name, hook, line);
        return true;
    }
    *line = (struct check_line){.what = "webhook"};
    if (err.kind == ERR_NOT_FOUND) {
        SET(line->problem, "there is no MutatingWebhookConfiguration %.100s: no pod is steered", name);
        line->remedy = "kubectl apply -k etc/kubernetes/replica; etc/kubernetes/certificate";
    } else {
        SET(line->problem, "%.280s", err.text);
        line->remedy = "let this account get mutatingwebhookconfigurations, as etc/kubernetes/replica does";
    }
    return false;
}

/* What answers to a handshake as the API server makes it: any HTTP status is an answer. */
static void judge_served(const struct admission_hook *hook, const char *listen,
                         struct check_line *line)
{
    static const char anywhere[] = "0.0.0.0:";
    bool any = strncmp(listen, anywhere, strlen(anywhere)) == 0;
    AUTO_FREE char *url = mem_printf("https://%s%s", any ? "127.0.0.1:" : "",
                                     any ? listen + strlen(anywhere) : listen);
    struct err err = ERR_INIT;
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    const struct http_options options = {.base_url = url,
                                         .ca_pem = hook->ca_pem,
                                         .server_name = hook->host,
                                         .proxy = "",
                                         .total_timeout_ms = PROBE_MS,
                                         .attempts = 1};
    *line = (struct check_line){.what = "listener"};
    AUTO(http) struct http *http = http_new(&options, &err);
    if (http && (http_get(http, ADMISSION_PATH, &answer, &err) == 0 || answer.status > 0)) {
        SET(line->seen, "%.100s serves a certificate that caBundle verifies", listen);
        return;
    }
    SET(line->seen, "%.100s", listen);
    SET(line->warning, "%.280s", err.text);
    line->remedy = "ask where the daemon runs: kubectl -n remap exec deploy/remap -- remap check";
}

static int64_t ready_endpoints(const json_t *list)
{
    size_t i, k;
    const json_t *slice, *endpoint;
    int64_t n = 0;
    json_array_foreach(kube_get(list, "items"), i, slice)
        json_array_foreach(kube_get(slice, "endpoints"), k, endpoint)
            n += !json_is_false(kube_path(endpoint, "conditions", "ready"));
    return n;
}

static void judge_service(struct kube_api *api, const struct admission_hook *hook,
                          struct check_line *line)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *service = NULL, *slices = NULL;
    AUTO_FREE char *path = kube_api_path("v1", hook->space, "services", hook->service);
    AUTO_FREE char *all = kube_api_path("discovery.k8s.io/v1", hook->space, "endpointslices", NULL);
    AUTO_FREE char *some =
        mem_printf("%s?labelSelector=kubernetes.io%%2Fservice-name%%3D%s", all, hook->service);
    *line = (struct check_line){.what = "service"};
    SET(line->seen, "Service %.100s/%.100s, port %" PRId64, hook->space, hook->service, hook->port);
    if (kube_api_get(api, path, &service, NULL, &err)) {
        SET(line->problem, "%.280s", err.text);
        line->remedy = "kubectl apply -k etc/kubernetes/replica";
        return;
    }
    if (kube_api_get(api, some, &slices, NULL, &err)) {
        SET(line->warning, "what is behind it is not known: %.250s", err.text);
        line->remedy = "let this account list endpointslices, as etc/kubernetes/replica does";
        return;
    }
    int64_t n = ready_endpoints(slices);
    size_t used = strlen(line->seen);
    snprintf(line->seen + used, sizeof line->seen - used, ", %" PRId64 " endpoint%s", n,
             n == 1 ? "" : "s");
    if (n == 0) {
        SET(line->problem, "no pod is behind Service %.100s/%.100s: the API server asks in vain",
            hook->space, hook->service);
        line->remedy = "see that the daemon runs and bears the labels that the Service selects";
    }
}

void admission_check(struct kube_api *api, const char *name, const char *cert_file,
                     const char *listen, void (*tell)(void *arg, const struct check_line *line),
                     void *arg)
{
    AUTO_ADMISSION_HOOK struct admission_hook hook = {0};
    AUTO_BUF struct buf pem = BUF_INIT;
    struct check_line line;
    struct err err = ERR_INIT;
    bool found = find_hook(api, name, &hook, &line);
    tell(arg, &line);
    if (!found)
        return;
    if (file_read(cert_file, PEM_MAX_BYTES, &pem, &err) == 0) {
        admission_judge_certificate(&hook, pem.data ? pem.data : "", clock_wall_ms(), &line);
    } else {
        line = (struct check_line){.what = "certificate"};
        SET(line.warning, "%.280s", err.text);
        line.remedy = "etc/kubernetes/certificate makes it; ask where the daemon runs: "
                      "kubectl -n remap exec deploy/remap -- remap check";
    }
    tell(arg, &line);
    if (hook.ca_pem && strcmp(listen, "none") != 0) {
        judge_served(&hook, listen, &line);
        tell(arg, &line);
    }
    if (hook.service) {
        judge_service(api, &hook, &line);
        tell(arg, &line);
    }
}
