/* What CI systems post, by tables: proofs first (interfaces.md 6, its test vector included), then
 * what each payload means, then whose application it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <string.h>

#include "model/base/mem.h"
#include "monitor/secret.h"
#include "monitor/webhook/hook.h"
#include "monitor/webhook/limit.h"
#include "monitor/webhook/settings.h"
#include "monitor/webhook/verify.h"
#include "tests/support/hook_samples.h"

#define SECRET "It's a Secret to Everybody"
#define NOW_MS INT64_C(1700000000000)

static void hmac(const char *secret, const char *text, unsigned char out[32])
{
    unsigned n = 32;
    assert_non_null(HMAC(EVP_sha256(), secret, (int)strlen(secret), (const unsigned char *)text,
                         strlen(text), out, &n));
}

static char *hex_of(const char *secret, const char *text)
{
    unsigned char digest[32];
    struct buf out = BUF_INIT;
    hmac(secret, text, digest);
    for (size_t i = 0; i < 32; i++)
        buf_printf(&out, "%02x", digest[i]);
    return buf_take(&out);
}

static char *base64_of(const void *data, size_t size)
{
    char *out = mem_alloc(size * 2 + 8);
    EVP_EncodeBlock((unsigned char *)out, data, (int)size);
    return out;
}

/* --- proofs --- */

static void test_hmac_when_of_the_documented_vector_then_fits(void **state)
{
    static const char good[] = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    static const struct {
        const char *secret, *body, *hex;
        bool fits;
    } rows[] = {
        {SECRET, "Hello, World!", good, true},
        {SECRET, "Hello, World!",
         "757107EA0EB2509FC211221CCE984B8A37570B6D7586C22C46F4379C8B043E17", true},
        {SECRET, "Hello, World?", good, false},
        {"It's a secret to Everybody", "Hello, World!", good, false},
        {"", "Hello, World!", good, false},
        {SECRET, "Hello, World!", "", false},
        {SECRET, "Hello, World!", "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e1",
         false},
        {SECRET, "Hello, World!",
         "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e1g", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (verify_hmac_hex(rows[i].secret, rows[i].body, strlen(rows[i].body), rows[i].hex) !=
            rows[i].fits)
            fail_msg("row %zu", i);
}

static void test_hmac_when_nothing_is_shared_then_an_empty_secret_proves_nothing(void **state)
{
    (void)state;
    AUTO_FREE char *hex = hex_of("", "body"); /* what a sender without a secret would compute */
    assert_false(verify_hmac_hex("", "body", 4, hex));
    assert_false(secret_equal("", ""));
}

static void test_time_when_beyond_the_window_then_refused(void **state)
{
    static const struct {
        const char *text;
        bool fits;
    } rows[] = {{"1700000000", true},  {"1700000300", true},    {"1699999700", true},
                {"1700000301", false}, {"1699999699", false},   {"", false},
                {"-1", false},         {"1700000000.5", false}, {"999999999999", false},
                {"0x6553f100", false}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (verify_time(rows[i].text, NOW_MS, 300000) != rows[i].fits)
            fail_msg("%s", rows[i].text);
}

/* --- judging --- */

#define MAX_HEADERS 6
struct row {
    const char *what;
    struct hook_header headers[MAX_HEADERS];
    const char *body;
    enum hook_verdict verdict;
    const char *expected; /* why, or the line of hook_text() */
};

static struct hook_event event;

static enum hook_verdict judge(const struct hook_provider *provider,
                               const struct hook_header *headers, size_t n, const char *body,
                               const char *interval, const struct hook_proof *proof)
{
    const struct hook_request request = {.body = body,
                                         .size = strlen(body),
                                         .headers = headers,
                                         .n_headers = n,
                                         .interval = interval,
                                         .now_ms = NOW_MS,
                                         .window_ms = 300000};
    return hook_judge(provider, &request, proof, &event);
}

static void expect(const struct hook_provider *provider, const struct row *row,
                   enum hook_verdict verdict)
{
    AUTO_BUF struct buf text = BUF_INIT;
    if (verdict == HOOK_DEPLOYED)
        hook_text(provider, &event, &text);
    else
        buf_puts(&text, event.why);
    if (verdict != row->verdict || strcmp(text.data, row->expected) != 0)
        fail_msg("%s: verdict %d, \"%s\", expected \"%s\"", row->what, (int)verdict, text.data,
                 row->expected);
}

/* `prefix` and the HMAC of the body go into the header `signature` unless the row has it. */
static void judge_signed(const struct hook_provider *provider, const char *signature,
                         const char *prefix, const struct row *row)
{
    struct hook_header headers[MAX_HEADERS + 1];
    size_t n = 0;
    AUTO_FREE char *hex = hex_of(SECRET, row->body);
    AUTO_FREE char *value = mem_printf("%s%s", prefix, hex);
    const struct hook_proof proof = {.secret = SECRET};
    bool given = false;
    for (; n < MAX_HEADERS && row->headers[n].name; n++) {
        headers[n] = row->headers[n];
        given = given || strcmp(headers[n].name, signature) == 0;
    }
    if (!given)
        headers[n++] = (struct hook_header){signature, value};
    expect(provider, row, judge(provider, headers, n, row->body, NULL, &proof));
}

#define STATUS_OF(state)                                                                           \
    "{\"deployment_status\":{\"id\":2,\"state\":\"" state "\"},\"deployment\":{\"id\":1},"         \
    "\"repository\":{\"full_name\":\"a/b\"}}"
#define EVENT(name)                                                                                \
    {"x-github-event", name},                                                                      \
    {                                                                                              \
        "X-GitHub-Delivery", "d1"                                                                  \
    }

static const struct row github_rows[] = {
    {"sample",
     {EVENT("deployment_status")},
     SAMPLE_GITHUB_DEPLOYMENT,
     HOOK_DEPLOYED,
     "github: deployment 145988746.209916254 of Codertocat/Hello-World at master commit f95f852b "
     "to "
     "production"},
    {"form",
     {EVENT("deployment_status"), {"Content-Type", "application/x-www-form-urlencoded"}},
     "payload=%7B%22deployment_status%22%3A%7B%22state%22%3A%22success%22%7D%2C+%22deployment%22%3A"
     "%7B%22id%22%3A7%7D%2C%22repository%22%3A%7B%22full_name%22%3A%22a%2Fb%22%7D%7D",
     HOOK_DEPLOYED,
     "github: deployment 7 of a/b"},
    {"form without payload",
     {EVENT("deployment_status"), {"Content-Type", "application/x-www-form-urlencoded"}},
     "a=b",
     HOOK_MALFORMED,
     "no form with a payload"},
    {"ping", {EVENT("ping")}, "{\"zen\":\"x\"}", HOOK_IGNORED, "ping"},
    {"push", {EVENT("push")}, "{}", HOOK_IGNORED, "push"},
    {"pending",
     {EVENT("deployment_status")},
     STATUS_OF("pending"),
     HOOK_IGNORED,
     "the deployment is pending"},
    {"failure",
     {EVENT("deployment_status")},
     STATUS_OF("failure"),
     HOOK_IGNORED,
     "the deployment is failure"},
    {"inactive",
     {EVENT("deployment_status")},
     STATUS_OF("inactive"),
     HOOK_IGNORED,
     "the deployment is inactive"},
    {"success",
     {EVENT("deployment_status")},
     STATUS_OF("success"),
     HOOK_DEPLOYED,
     "github: deployment 1.2 of a/b"},
    {"no event", {{"X-GitHub-Delivery", "d"}}, "{}", HOOK_MALFORMED, "X-GitHub-Event is missing"},
    {"no JSON", {EVENT("deployment_status")}, "[]", HOOK_MALFORMED, "not an object"},
    {"empty object",
     {EVENT("deployment_status")},
     "{}",
     HOOK_MALFORMED,
     "deployment_status.state, deployment.id or repository.full_name is missing"},
    {"wrong signature",
     {EVENT("push"), {"X-Hub-Signature-256", "sha256=00"}},
     "{}",
     HOOK_UNAUTHORIZED,
     "the signature does not fit"},
    {"no prefix",
     {EVENT("push"),
      {"X-Hub-Signature-256", "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}},
     "Hello, World!",
     HOOK_UNAUTHORIZED,
     "the signature does not fit"},
    {"vector",
     {EVENT("deployment_status"),
      {"X-Hub-Signature-256",
       "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}},
     "Hello, World!",
     HOOK_MALFORMED,
     "line 1, column 5: invalid token near 'Hello'"},
    {"workflow",
     {EVENT("workflow_run")},
     SAMPLE_WORKFLOW("completed", "success", "push"),
     HOOK_DEPLOYED,
     "github: deployment 30.2 of a/b at main commit c0ffee by deploy, interval 10m"},
    {"workflow requested",
     {EVENT("workflow_run")},
     SAMPLE_WORKFLOW("requested", "", "push"),
     HOOK_IGNORED,
     "the workflow is requested"},
    {"workflow failed",
     {EVENT("workflow_run")},
     SAMPLE_WORKFLOW("completed", "failure", "push"),
     HOOK_IGNORED,
     "the workflow ended with failure"},
    {"workflow of a fork",
     {EVENT("workflow_run")},
     SAMPLE_WORKFLOW("completed", "success", "pull_request"),
     HOOK_IGNORED,
     "a pull request"},
};

static void test_github_when_judged_then_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(github_rows); i++)
        judge_signed(&hook_github, "X-Hub-Signature-256", "sha256=", &github_rows[i]);
}

static const struct row gitea_rows[] = {
    {"push", {{"X-Gitea-Event", "push"}, {"X-GitHub-Event", "push"}}, "{}", HOOK_IGNORED, "push"},
    {"workflow",
     {{"X-Gitea-Event", "workflow_run"}, {"X-Gitea-Delivery", "d"}},
     SAMPLE_WORKFLOW("completed", "success", "push"),
     HOOK_DEPLOYED,
     "gitea: deployment 30.2 of a/b at main commit c0ffee by deploy, interval 10m"},
    {"status",
     {{"X-Gitea-Event", "status"}},
     "{\"id\":5,\"state\":\"success\",\"context\":\"ci/deploy\",\"sha\":\"abc\",\"repository\":"
     "{\"full_name\":\"a/b\"}}",
     HOOK_DEPLOYED,
     "gitea: deployment 5.abc of a/b commit abc by ci/deploy"},
    {"status pending",
     {{"X-Gitea-Event", "status"}},
     "{\"id\":5,\"state\":\"pending\",\"context\":\"c\",\"repository\":{\"full_name\":\"a/b\"}}",
     HOOK_IGNORED,
     "the status is pending"},
    {"no event", {{NULL, NULL}}, "{}", HOOK_MALFORMED, "X-Gitea-Event is missing"},
    {"wrong",
     {{"X-Gitea-Event", "push"}, {"X-Gitea-Signature", "00"}},
     "{}",
     HOOK_UNAUTHORIZED,
     "the signature does not fit"},
};

static void test_gitea_when_judged_then_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(gitea_rows); i++)
        judge_signed(&hook_gitea, "X-Gitea-Signature", "", &gitea_rows[i]);
    judge_signed(&hook_gitea, "X-Hub-Signature-256", "sha256=", &gitea_rows[0]);
    judge_signed(&hook_gitea, "X-Gogs-Signature", "", &gitea_rows[0]);
    /* a hook of Gitea that posts to GitHub's path is read as what it is */
    judge_signed(&hook_github, "X-Hub-Signature-256", "sha256=", &gitea_rows[0]);
}

static const struct row gitlab_rows[] = {
    {"deployment",
     {{"Idempotency-Key", "k"}},
     SAMPLE_GITLAB_DEPLOYMENT("success"),
     HOOK_DEPLOYED,
     "gitlab: deployment 15 of root/test commit 279484c0 to staging"},
    {"running",
     {{NULL, NULL}},
     SAMPLE_GITLAB_DEPLOYMENT("running"),
     HOOK_IGNORED,
     "the deployment is running"},
    {"pipeline",
     {{NULL, NULL}},
     SAMPLE_GITLAB_PIPELINE("success"),
     HOOK_DEPLOYED,
     "gitlab: deployment pipeline 31 2016-08-12 15:26:29 UTC of a/b at master commit bcbb5ec3 to "
     "production, interval 10m"},
    {"pipeline failed",
     {{NULL, NULL}},
     SAMPLE_GITLAB_PIPELINE("failed"),
     HOOK_IGNORED,
     "the pipeline is failed"},
    {"push", {{NULL, NULL}}, "{\"object_kind\":\"push\"}", HOOK_IGNORED, "push"},
    {"no kind", {{NULL, NULL}}, "{}", HOOK_MALFORMED, "object_kind is missing"},
};

static void test_gitlab_when_judged_then_as_the_table_says(void **state)
{
    const struct hook_proof proof = {.token = "tok"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(gitlab_rows); i++) {
        struct hook_header headers[] = {gitlab_rows[i].headers[0], {"X-Gitlab-Token", "tok"}};
        bool more = headers[0].name != NULL;
        expect(&hook_gitlab, &gitlab_rows[i],
               judge(&hook_gitlab, more ? headers : headers + 1, more ? 2 : 1, gitlab_rows[i].body,
                     NULL, &proof));
    }
}

/* A post that was overheard must not count again under an id made up for it. */
static void test_delivery_when_its_id_is_not_signed_then_the_body_stands_for_it(void **state)
{
    static const char body[] = SAMPLE_GITHUB_DEPLOYMENT;
    static const char *const ids[] = {"d1", "made up"};
    char first[HOOK_ID_SIZE];
    unsigned char digest[32];
    (void)state;
    hmac("whole secret", body, digest);
    AUTO_FREE char *value = mem_alloc(sizeof "sha256=" + 2 * sizeof digest);
    char *end = stpcpy(value, "sha256=");
    for (size_t i = 0; i < sizeof digest; i++)
        end += sprintf(end, "%02x", digest[i]);
    const struct hook_proof proof = {.secret = "whole secret"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const struct hook_header headers[] = {{"X-GitHub-Event", "deployment_status"},
                                              {"X-GitHub-Delivery", ids[i]},
                                              {"X-Hub-Signature-256", value}};
        assert_int_equal(judge(&hook_github, headers, 3, body, NULL, &proof), HOOK_DEPLOYED);
        if (i == 0)
            memcpy(first, event.delivery, sizeof first);
        assert_string_equal(event.delivery, first);
        assert_int_equal(strlen(event.delivery), 64);
    }
}

static void test_gitlab_when_signed_then_only_the_signature_counts(void **state)
{
    static const char body[] = SAMPLE_GITLAB_DEPLOYMENT("success");
    unsigned char digest[32];
    (void)state;
    hmac("whole secret", "id7.1700000000." SAMPLE_GITLAB_DEPLOYMENT("success"), digest);
    AUTO_FREE char *base64 = base64_of(digest, sizeof digest);
    AUTO_FREE char *value = mem_printf("v1,AAAA v1,%s", base64);
    AUTO_FREE char *coded = base64_of("whole secret", 12);
    AUTO_FREE char *prefixed = mem_printf("whsec_%s", coded);
    const struct hook_header headers[] = {{"webhook-id", "id7"},
                                          {"webhook-timestamp", "1700000000"},
                                          {"webhook-signature", value},
                                          {"X-Gitlab-Token", "tok"}};
    const struct hook_proof plain = {.secret = "whole secret", .token = "tok"};
    const struct hook_proof whsec = {.secret = prefixed}, other = {.secret = "x", .token = "tok"};
    assert_int_equal(judge(&hook_gitlab, headers, 4, body, NULL, &plain), HOOK_DEPLOYED);
    assert_string_equal(event.delivery, "id7");
    assert_int_equal(judge(&hook_gitlab, headers, 3, body, NULL, &whsec), HOOK_DEPLOYED);
    assert_int_equal(judge(&hook_gitlab, headers, 4, body, NULL, &other), HOOK_UNAUTHORIZED);
    /* the token alone is not accepted where a signing secret is configured */
    assert_int_equal(judge(&hook_gitlab, headers + 3, 1, body, NULL, &plain), HOOK_UNAUTHORIZED);
    assert_int_equal(judge(&hook_gitlab, headers, 2, body, NULL, &plain), HOOK_UNAUTHORIZED);
}

static void test_gitlab_when_token_is_wrong_then_refused(void **state)
{
    static const char *const tokens[] = {"", "to", "tok2", "TOK"};
    const struct hook_proof proof = {.token = "tok"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        const struct hook_header header = {"X-Gitlab-Token", tokens[i]};
        assert_int_equal(judge(&hook_gitlab, &header, 1, "{}", NULL, &proof), HOOK_UNAUTHORIZED);
    }
    assert_int_equal(judge(&hook_gitlab, NULL, 0, "{}", NULL, &proof), HOOK_UNAUTHORIZED);
}

static void test_generic_when_time_is_off_then_refused(void **state)
{
    static const struct {
        const char *time;
        enum hook_verdict verdict;
    } rows[] = {{"1700000000", HOOK_DEPLOYED},
                {"1699999699", HOOK_UNAUTHORIZED},
                {"1700000301", HOOK_UNAUTHORIZED},
                {"now", HOOK_UNAUTHORIZED}};
    static const char body[] = "{\"status\":\"success\",\"repository\":\"a/b\",\"branch\":"
                               "\"refs/heads/main\",\"id\":\"x1\",\"interval\":\"20m\"}";
    const struct hook_proof proof = {.secret = SECRET};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *text = mem_printf("%s.%s", rows[i].time, body);
        AUTO_FREE char *hex = hex_of(SECRET, text);
        AUTO_FREE char *value = mem_printf("sha256=%s", hex);
        const struct hook_header headers[] = {{"X-Timestamp", rows[i].time},
                                              {"X-Signature-256", value}};
        assert_int_equal(judge(&hook_generic, headers, 2, body, NULL, &proof), rows[i].verdict);
        if (rows[i].verdict == HOOK_DEPLOYED) {
            assert_string_equal(event.branches.names[0], "main");
            assert_int_equal(event.interval_ms, 1200000);
        }
        /* the time is part of what is signed */
        const struct hook_header moved[] = {{"X-Timestamp", "1700000001"},
                                            {"X-Signature-256", value}};
        assert_int_equal(judge(&hook_generic, moved, 2, body, NULL, &proof), HOOK_UNAUTHORIZED);
    }
}

static void test_any_provider_when_nothing_is_configured_then_refused(void **state)
{
    static const struct hook_provider *const all[] = {&hook_travis, &hook_github, &hook_gitlab,
                                                      &hook_gitea, &hook_generic};
    static const struct hook_header headers[] = {
        {"Signature", "AAAA"},          {"X-Hub-Signature-256", "sha256="},
        {"X-Gitlab-Token", ""},         {"X-Gitea-Signature", ""},
        {"X-Signature-256", "sha256="}, {"X-Timestamp", "1700000000"}};
    const struct hook_proof none = {NULL, NULL, NULL}, empty = {"", "", ""};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        assert_ptr_equal(hook_provider_find(all[i]->name), all[i]);
        assert_int_equal(judge(all[i], headers, 6, "payload={}", NULL, &none), HOOK_UNAUTHORIZED);
        assert_int_equal(judge(all[i], headers, 6, "payload={}", NULL, &empty), HOOK_UNAUTHORIZED);
        assert_int_equal(judge(all[i], NULL, 0, "payload={}", NULL, &empty), HOOK_UNAUTHORIZED);
    }
    assert_null(hook_provider_find("bitbucket"));
}

/* --- travis, by a key of our own --- */

struct key {
    EVP_PKEY *pair;
    char *pem;
};

static struct key key_new(void)
{
    struct key key = {.pair = EVP_RSA_gen(2048)};
    BIO *bio = BIO_new(BIO_s_mem());
    char *data;
    assert_non_null(key.pair);
    assert_int_equal(PEM_write_bio_PUBKEY(bio, key.pair), 1);
    long size = BIO_get_mem_data(bio, &data);
    key.pem = mem_strndup(data, (size_t)size);
    BIO_free(bio);
    return key;
}

static char *key_sign(const struct key *key, const char *text)
{
    unsigned char signature[512];
    size_t size = sizeof signature;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit(ctx, NULL, EVP_sha1(), NULL, key->pair), 1);
    assert_int_equal(
        EVP_DigestSign(ctx, signature, &size, (const unsigned char *)text, strlen(text)), 1);
    EVP_MD_CTX_free(ctx);
    return base64_of(signature, size);
}

static char *form_of(const char *text)
{
    struct buf out = BUF_INIT;
    buf_puts(&out, "a=1&payload=");
    for (; *text; text++) {
        if (*text == ' ')
            buf_puts(&out, "+");
        else
            buf_printf(&out, "%%%02X", (unsigned char)*text);
    }
    return buf_take(&out);
}

static const struct row travis_rows[] = {
    {"sample",
     {{NULL, NULL}},
     SAMPLE_TRAVIS("push", "\"passed\"", "0", "Passed"),
     HOOK_DEPLOYED,
     "travis: deployment 221266925 2017-04-12T08:50:08Z of vangie/ci-test at master commit "
     "3e95ab9e, interval 10m"},
    {"fixed",
     {{NULL, NULL}},
     SAMPLE_TRAVIS("api", "\"passed\"", "0", "Fixed"),
     HOOK_DEPLOYED,
     "travis: deployment 221266925 2017-04-12T08:50:08Z of vangie/ci-test at master commit "
     "3e95ab9e, interval 10m"},
    {"started",
     {{NULL, NULL}},
     SAMPLE_TRAVIS("push", "\"started\"", "null", "Pending"),
     HOOK_IGNORED,
     "the build is started"},
    {"failed",
     {{NULL, NULL}},
     SAMPLE_TRAVIS("push", "\"failed\"", "1", "Broken"),
     HOOK_IGNORED,
     "the build is failed"},
    {"odd",
     {{NULL, NULL}},
     SAMPLE_TRAVIS("push", "\"passed\"", "0", "Pending"),
     HOOK_IGNORED,
     "the build is passed"},
    {"pull request",
     {{NULL, NULL}},
     SAMPLE_TRAVIS("pull_request", "\"passed\"", "0", "Passed"),
     HOOK_IGNORED,
     "a pull request"},
    {"nothing",
     {{NULL, NULL}},
     "{}",
     HOOK_MALFORMED,
     "id, repository.owner_name or repository.name is missing"},
};

static void test_travis_when_signed_by_our_key_then_as_the_table_says(void **state)
{
    (void)state;
    struct key key = key_new(), other = key_new();
    const struct hook_proof proof = {.public_key = key.pem};
    for (size_t i = 0; i < ARRAY_LEN(travis_rows); i++) {
        AUTO_FREE char *form = form_of(travis_rows[i].body);
        AUTO_FREE char *signature = key_sign(&key, travis_rows[i].body);
        AUTO_FREE char *forged = key_sign(&other, travis_rows[i].body);
        const struct hook_header good = {"Signature", signature}, bad = {"signature", forged};
        expect(&hook_travis, &travis_rows[i], judge(&hook_travis, &good, 1, form, NULL, &proof));
        assert_int_equal(judge(&hook_travis, &bad, 1, form, NULL, &proof), HOOK_UNAUTHORIZED);
    }
    const struct hook_header any = {"Signature", "AAAA"};
    assert_int_equal(judge(&hook_travis, &any, 1, "{}", NULL, &proof), HOOK_MALFORMED);
    assert_int_equal(judge(&hook_travis, &any, 1, "payload=%4", NULL, &proof), HOOK_MALFORMED);
    assert_int_equal(judge(&hook_travis, NULL, 0, "payload={}", NULL, &proof), HOOK_UNAUTHORIZED);
    assert_true(verify_key_usable(key.pem));
    assert_false(verify_key_usable("-----BEGIN PUBLIC KEY-----"));
    EVP_PKEY_free(key.pair);
    EVP_PKEY_free(other.pair);
    mem_free_auto(&key.pem);
    mem_free_auto(&other.pem);
}

/* --- the interval in its four forms --- */

static void test_interval_when_given_then_read(void **state)
{
    static const struct {
        const char *body, *query;
        int64_t ms;
        bool bad;
    } rows[] = {
        {SAMPLE_GITHUB_PAYLOAD("{\"remap_interval\":\"600s\"}"), NULL, 600000, false},
        {SAMPLE_GITHUB_PAYLOAD("{\"remap\":{\"interval\":300}}"), NULL, 300000, false},
        {SAMPLE_GITHUB_PAYLOAD("\"{\\\"remap_interval\\\":\\\"5m\\\"}\""), NULL, 300000, false},
        {SAMPLE_GITHUB_PAYLOAD("\"[remap: interval=2h]\""), NULL, 7200000, false},
        {SAMPLE_GITHUB_PAYLOAD("{}"), "90", 90000, false},
        {SAMPLE_GITHUB_PAYLOAD("{\"remap_interval\":\"600s\"}"), "90", 600000, false},
        {SAMPLE_GITHUB_PAYLOAD("{}"), NULL, -1, false},
        {SAMPLE_GITHUB_PAYLOAD("{\"remap_interval\":\"soon\"}"), NULL, -1, true},
        {SAMPLE_GITHUB_PAYLOAD("{\"remap_interval\":\"-5\"}"), NULL, -1, true},
        {SAMPLE_GITHUB_PAYLOAD("{\"remap_interval\":0}"), NULL, -1, true},
        {SAMPLE_GITHUB_PAYLOAD("\"[remap: interval=2h\""), NULL, -1, false},
    };
    const struct hook_proof proof = {.secret = SECRET};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *hex = hex_of(SECRET, rows[i].body);
        AUTO_FREE char *value = mem_printf("sha256=%s", hex);
        const struct hook_header headers[] = {{"X-GitHub-Event", "deployment_status"},
                                              {"X-Hub-Signature-256", value}};
        assert_int_equal(judge(&hook_github, headers, 2, rows[i].body, rows[i].query, &proof),
                         HOOK_DEPLOYED);
        if (event.interval_ms != rows[i].ms || event.interval_bad != rows[i].bad)
            fail_msg("row %zu: %lld", i, (long long)event.interval_ms);
    }
}

/* --- whose it is --- */

static void test_routes_when_asked_then_the_applications_of_the_event(void **state)
{
    static const char text[] =
        "{\"v\":1,\"webhooks\":{\"listen\":\"127.0.0.1:0\",\"tls_cert_file\":null,\"tls_key_file\":"
        "null,\"rate\":60,\"replay_window_ms\":300000,\"providers\":[{\"name\":\"github\","
        "\"secret_file\":\"/nowhere/s\",\"token_file\":null,\"public_key_file\":null}],\"routes\":["
        "{\"app\":\"shop\",\"provider\":\"github\",\"repository\":\"Acme/Shop\",\"branches\":"
        "[\"main\",\"release-*\"],\"environments\":[\"production\"],\"workflows\":[\"deploy.yml\"]}"
        ","
        "{\"app\":\"bank\",\"provider\":null,\"repository\":\"acme/shop\",\"branches\":[],"
        "\"environments\":[],\"workflows\":[]}]}}";
    static const struct {
        const char *repository, *branch, *environment, *workflow, *apps;
    } rows[] = {
        {"acme/shop", "main", "production", NULL, "shop bank "},
        {"ACME/shop", "release-7", "production", NULL, "shop bank "},
        {"acme/shop", "dev", "production", NULL, "bank "},
        {"acme/shop", "main", "staging", NULL, "bank "},
        {"acme/shop", "main", NULL, NULL, "bank "}, /* a pipeline that deployed nowhere */
        {"acme/shop2", "main", "production", NULL, ""},
        {"acme/shop", "main", "", "deploy.yml", "shop "},
        {"acme/shop", "main", "", "test.yml", ""},
    };
    struct err err = ERR_INIT;
    AUTO(settings) struct settings *settings = NULL;
    (void)state;
    assert_int_equal(settings_decode(text, sizeof text - 1, &settings, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t n;
        AUTO_BUF struct buf apps = BUF_INIT;
        memset(&event, 0, sizeof event);
        hook_copy(event.repository, sizeof event.repository, rows[i].repository);
        hook_add(&event.branches, rows[i].branch);
        hook_add(&event.environments, rows[i].environment);
        hook_add(&event.workflows, rows[i].workflow);
        event.tells_branch = true;
        event.tells_workflow = rows[i].workflow != NULL;
        event.tells_environment = !event.tells_workflow;
        AUTO_FREE const char **found = settings_apps(settings, &hook_github, &event, &n);
        buf_puts(&apps, "");
        for (size_t k = 0; k < n; k++)
            buf_printf(&apps, "%s ", found[k]);
        assert_string_equal(apps.data, rows[i].apps);
        assert_true(n > 0 || event.why[0]);
    }
    struct hook_proof proof; /* a secret that cannot be read is none */
    assert_int_equal(settings_proof(&settings->providers[0], &proof, &err), -1);
    assert_null(proof.secret);
    assert_non_null(strstr(err.text, "/nowhere/s"));
}

static void test_rate_when_spent_then_refused_until_time_passes(void **state)
{
    static struct limit limit = {.per_minute = 3};
    static const unsigned char a[16] = {1}, b[16] = {2};
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(limit_take(&limit, a, 1000));
    assert_false(limit_take(&limit, a, 1000));
    assert_true(limit_take(&limit, b, 1000)); /* another address has its own */
    assert_false(limit_take(&limit, a, 20999));
    assert_true(limit_take(&limit, a, 21001));
    for (int i = 0; i < 3 * LIMIT_SLOTS; i++) { /* the table is full: the oldest goes */
        const unsigned char c[16] = {3, (unsigned char)i, (unsigned char)(i >> 8)};
        assert_true(limit_take(&limit, c, 30000 + i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hmac_when_of_the_documented_vector_then_fits),
        cmocka_unit_test(test_hmac_when_nothing_is_shared_then_an_empty_secret_proves_nothing),
        cmocka_unit_test(test_time_when_beyond_the_window_then_refused),
        cmocka_unit_test(test_github_when_judged_then_as_the_table_says),
        cmocka_unit_test(test_gitea_when_judged_then_as_the_table_says),
        cmocka_unit_test(test_gitlab_when_judged_then_as_the_table_says),
        cmocka_unit_test(test_delivery_when_its_id_is_not_signed_then_the_body_stands_for_it),
        cmocka_unit_test(test_gitlab_when_signed_then_only_the_signature_counts),
        cmocka_unit_test(test_gitlab_when_token_is_wrong_then_refused),
        cmocka_unit_test(test_generic_when_time_is_off_then_refused),
        cmocka_unit_test(test_any_provider_when_nothing_is_configured_then_refused),
        cmocka_unit_test(test_travis_when_signed_by_our_key_then_as_the_table_says),
        cmocka_unit_test(test_interval_when_given_then_read),
        cmocka_unit_test(test_routes_when_asked_then_the_applications_of_the_event),
        cmocka_unit_test(test_rate_when_spent_then_refused_until_time_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
