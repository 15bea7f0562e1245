/* test_kubeconfig.c - which server and which credentials a kubeconfig names, and what it may not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/access.h"
#include "adapters/kubernetes/when.h"
#include "model/base/file.h"
#include "tests/support/temp_dir.h"

static struct kube_access *parse(const char *text, const char *context)
{
    struct err err = ERR_INIT;
    struct kube_access *access = NULL;
    if (kubeconfig_parse(text, strlen(text), "config", "/etc/kube", context, false, &access, &err))
        fail_msg("%s", err.text);
    return access;
}

static void refused(const char *text, const char *context, const char *why)
{
    struct err err = ERR_INIT;
    struct kube_access *access = NULL;
    assert_int_equal(
        kubeconfig_parse(text, strlen(text), "config", "/etc/kube", context, false, &access, &err),
        -1);
    assert_int_equal(err.kind, ERR_CONFIG);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

#define TWO                                                                                        \
    "apiVersion: v1\nkind: Config\n"                                                               \
    "preferences: {}\n"                                                                            \
    "clusters:\n"                                                                                  \
    "- name: near\n"                                                                               \
    "  cluster:\n"                                                                                 \
    "    server: https://10.0.0.1:6443\n"                                                          \
    "    certificate-authority: pki/ca.crt\n"                                                      \
    "    tls-server-name: kubernetes.default\n"                                                    \
    "    extensions: [{name: x, extension: {a: 1}}]\n"                                             \
    "- name: far\n"                                                                                \
    "  cluster: {server: 'https://far:443', certificate-authority-data: Q0EK,\n"                   \
    "            certificate-authority: ignored}\n"                                                \
    "users:\n"                                                                                     \
    "- name: both\n"                                                                               \
    "  user: {token: weak, tokenFile: token}\n"                                                    \
    "- name: cert\n"                                                                               \
    "  user: {client-certificate-data: Q0VSVAo=, client-key: /abs/key, as: boss,\n"                \
    "         as-groups: [a, b]}\n"                                                                \
    "contexts:\n"                                                                                  \
    "- name: one\n"                                                                                \
    "  context: {cluster: near, user: both, namespace: shop}\n"                                    \
    "- name: two\n"                                                                                \
    "  context: {cluster: far, user: cert}\n"                                                      \
    "current-context: one\n"

static void test_kubeconfig_when_context_is_current(void **state)
{
    (void)state;
    AUTO(kube_access) struct kube_access *access = parse(TWO, NULL);
    assert_string_equal(access->server, "https://10.0.0.1:6443");
    assert_string_equal(access->ca_file, "/etc/kube/pki/ca.crt");
    assert_string_equal(access->server_name, "kubernetes.default");
    assert_string_equal(access->space, "shop");
    assert_string_equal(access->token_file, "/etc/kube/token");
    assert_null(access->token);
}

static void test_kubeconfig_when_context_is_named(void **state)
{
    (void)state;
    AUTO(kube_access) struct kube_access *access = parse(TWO, "two");
    assert_string_equal(access->server, "https://far:443");
    assert_string_equal(access->ca_pem, "CA\n");
    assert_null(access->ca_file);
    assert_string_equal(access->cert_pem, "CERT\n");
    assert_string_equal(access->key_file, "/abs/key");
    assert_string_equal(access->space, "default");
    assert_string_equal(access->headers[0], "Impersonate-User: boss");
    assert_string_equal(access->headers[2], "Impersonate-Group: b");
}

static void test_kubeconfig_when_it_is_json_with_nulls(void **state)
{
    (void)state;
    AUTO(kube_access) struct kube_access *access =
        parse("{\"kind\":\"Config\",\"preferences\":null,\"clusters\":[{\"name\":\"c\",\"cluster\":"
              "{\"server\":\"https://h\",\"insecure-skip-tls-verify\":false,"
              "\"certificate-authority\":null}}],\"users\":null,"
              "\"contexts\":[{\"name\":\"x\",\"context\":{\"cluster\":\"c\"}}],"
              "\"current-context\":\"x\"}",
              NULL);
    assert_string_equal(access->server, "https://h");
    assert_null(access->ca_file);
}

#define ONE(cluster, user)                                                                         \
    "clusters: [{name: c, cluster: {" cluster "}}]\nusers: [{name: u, user: {" user "}}]\n"        \
    "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
#define HOST "server: 'https://h'"

static void test_kubeconfig_when_plugin_is_named(void **state)
{
    (void)state;
    AUTO(kube_access) struct kube_access *access =
        parse(ONE(HOST, "exec: {command: bin/login, args: [get, token], apiVersion: v9, "
                        "provideClusterInfo: true, env: [{name: A, value: b}]}"),
              NULL);
    assert_string_equal(access->exec->command, "/etc/kube/bin/login");
    assert_int_equal(access->exec->n_args, 2);
    assert_string_equal(access->exec->env[0].value, "b");
    assert_true(access->exec->cluster_info);
}

static void test_kubeconfig_when_it_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *context, *why;
    } cases[] = {
        {ONE(HOST ", insecure-skip-tls-verify: true", "token: t"), NULL, "insecure"},
        {ONE("tls-server-name: h", "token: t"), NULL, "no server"},
        {ONE(HOST, "client-certificate: c"), NULL, "need each other"},
        {ONE(HOST, "client-key-data: '*'"), NULL, "no base64"},
        {ONE(HOST, "auth-provider: {name: gcp}"), NULL, "auth-provider"},
        {ONE(HOST, "exec: {args: [x]}"), NULL, "no command"},
        {ONE(HOST, "token: \"a\\nb\""), NULL, "one line"},
        {ONE(HOST, "as: \"a\\r\\nX: y\""), NULL, "one line"},
        {ONE(HOST, "token: t"), "other", "no context other"},
        {"clusters: []\ncontexts: []\n", NULL, "current-context"},
        {"contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n", NULL,
         "no cluster c"},
        {"- a\n", NULL, "no kubeconfig"},
        {"a: &b c\n", NULL, "anchors"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        refused(cases[i].text, cases[i].context, cases[i].why);
}

static void test_kubeconfig_when_no_error_shows_a_secret(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct kube_access *access = NULL;
    const char *text = ONE(HOST ", insecure-skip-tls-verify: true", "token: S3CRET, password: P4SS");
    assert_int_equal(
        kubeconfig_parse(text, strlen(text), "config", "/", NULL, false, &access, &err), -1);
    assert_null(strstr(err.text, "S3CRET"));
    assert_null(strstr(err.text, "P4SS"));
}

static void write_text(const char *folder, const char *name, const char *text, char path[4200])
{
    struct err err = ERR_INIT;
    snprintf(path, 4200, "%s/%s", folder, name);
    if (file_write_atomic(path, text, strlen(text), 0600, &err))
        fail_msg("%s", err.text);
}

static void test_kubeconfig_when_several_files_the_first_wins(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO(kube_access) struct kube_access *access = NULL;
    char first[4200], second[4200];
    AUTO_FREE char *folder = temp_dir_new();
    write_text(folder, "first", "users: [{name: u, user: {tokenFile: mine}}]\n", first);
    write_text(folder, "second", ONE(HOST, "token: theirs"), second);
    AUTO_FREE char *paths = mem_printf("%s/absent:%s:%s", folder, first, second);
    AUTO_FREE char *token = mem_printf("%s/mine", folder);
    int rc = kubeconfig_read(paths, NULL, false, &access, &err);
    temp_dir_remove(folder);
    if (rc)
        fail_msg("%s", err.text);
    assert_string_equal(access->token_file, token);
}

static void test_credential_when_it_expires(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct kube_credential got;
    const char *text = "{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\","
                       "\"expirationTimestamp\":\"2026-11-21T00:00:00Z\"}}";
    assert_int_equal(kube_credential_decode(text, strlen(text), &got, &err), 0);
    assert_string_equal(got.token, "t");
    assert_int_equal(got.expires_ms, INT64_C(1795219200000));
    kube_credential_wipe(&got);
    assert_int_equal(kube_credential_decode("{}", 2, &got, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
}

static void test_when_parse_when_text_is(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
    } cases[] = {
        {"1970-01-01T00:00:01Z", 1000},
        {"2018-07-26T08:46:00Z", INT64_C(1532594760000)},
        {"2026-11-20T23:45:00.123456Z", INT64_C(1795218300123)},
        {"2026-11-21T01:45:00+02:00", INT64_C(1795218300000)},
        {"2026-11-21", -1},
        {"2026-11-21T01:45:00", -1},
        {"2026-13-21T01:45:00Z", -1},
        {"2026-11-21T01:45:00Zx", -1},
        {"", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t ms = -1;
        assert_int_equal(when_parse(cases[i].text, &ms), cases[i].ms < 0 ? -1 : 0);
        assert_int_equal(ms, cases[i].ms);
    }
    char text[WHEN_MICRO_SIZE];
    assert_string_equal(when_micro(INT64_C(1795218300123), text), "2026-11-20T23:45:00.123000Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kubeconfig_when_context_is_current),
        cmocka_unit_test(test_kubeconfig_when_context_is_named),
        cmocka_unit_test(test_kubeconfig_when_it_is_json_with_nulls),
        cmocka_unit_test(test_kubeconfig_when_plugin_is_named),
        cmocka_unit_test(test_kubeconfig_when_it_is_refused),
        cmocka_unit_test(test_kubeconfig_when_no_error_shows_a_secret),
        cmocka_unit_test(test_kubeconfig_when_several_files_the_first_wins),
        cmocka_unit_test(test_credential_when_it_expires),
        cmocka_unit_test(test_when_parse_when_text_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
