/* test_access.c - a real Prometheus behind TLS with client certificates, a password and a path prefix:
 * what opens it, and what is said of each wrong key. */
#include "adapters/prometheus/prometheus.h"
#include "adapters/identity.h"
#include "tests/support/server.h"
#include "tests/support/temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fixture {
    char *folder;
    struct server server;
    char url[96];
} fx;

/* An authority with two certificates, and one that nobody trusts. */
static const char make_certificates[] =
    "cd \"$0\" && for ca in ca other; do"
    " openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=$ca"
    " -keyout $ca.key -out $ca.crt; done &&"
    " printf 'subjectAltName=IP:127.0.0.1' >san && for who in server client; do"
    " openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$who -keyout $who.key"
    " -out $who.csr && openssl x509 -req -in $who.csr -CA ca.crt -CAkey ca.key -CAcreateserial"
    " -days 2 -extfile san -out $who.crt || exit 1; done";

/* "test" in bcrypt: the example of Prometheus' own documentation. */
static const char web_config[] =
    "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
    "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n"
    "basic_auth_users:\n"
    "  remap: $2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay\n";

static char *in_folder(const char *name)
{
    return mem_printf("%s/%s", fx.folder, name);
}

static void write_in_folder(const char *name, const char *text)
{
    AUTO_FREE char *path = in_folder(name);
    server_write_file(path, text);
}

static int setup(void **state)
{
    (void)state;
    fx.folder = temp_dir_new();
    const char *certificates[] = {"/bin/sh", "-c", make_certificates, fx.folder, NULL};
    if (!server_run(certificates))
        return -1;
    write_in_folder("web.yaml", web_config);
    write_in_folder("right", "test\n");
    write_in_folder("wrong", "tset\n");
    write_in_folder("text.crt", "no certificate\n");
    AUTO_FREE char *program = server_program("prometheus");
    int port = server_free_port();
    AUTO_FREE char *listen = mem_printf("--web.listen-address=127.0.0.1:%d", port);
    AUTO_FREE char *path = mem_printf("--storage.tsdb.path=%s/blocks", fx.folder);
    AUTO_FREE char *web = mem_printf("--web.config.file=%s/web.yaml", fx.folder);
    const char *argv[] = {program, "--config.file=/dev/null", "--web.route-prefix=/deep/prom",
                          listen,  path,                      web,
                          NULL};
    server_start(&fx.server, "prometheus", fx.folder, port, argv);
    snprintf(fx.url, sizeof fx.url, "https://127.0.0.1:%d/deep/prom", port);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    server_stop(&fx.server);
    temp_dir_remove(fx.folder);
    free(fx.folder);
    return 0;
}

static const char *const all[] = {NULL};
static const struct app_scope app = {"shop", all, all};

/* 0 when the source opens and answers; an empty server has no samples, which is ERR_NOT_FOUND. */
static int attempt(const char *url, const char *ca, const char *who, const char *password,
                   struct source_report *report, struct err *err)
{
    AUTO_FREE char *ca_file = mem_printf("%s/%s.crt", fx.folder, ca);
    AUTO_FREE char *cert = mem_printf("%s/%s.crt", fx.folder, who ? who : "client");
    AUTO_FREE char *key = mem_printf("%s/%s.key", fx.folder, who ? who : "client");
    AUTO_FREE char *password_file = in_folder(password);
    struct option options[] = {{"url", url},       {"ca_file", ca_file}, {"user", "remap"},
                               {"password_file", password_file}, {"cert_file", cert},
                               {"key_file", key}};
    struct source source = {"prom", "prometheus", options, who ? 6 : 4};
    void *ctx;
    if (prometheus_metrics.open(&source, &ctx, err))
        return -1;
    int rc = prometheus_metrics.check(ctx, &app, report, err);
    prometheus_metrics.close(ctx);
    return rc;
}

/* The server is up when the right keys open it. */
static void test_access_when_all_keys_right_then_reached(void **state)
{
    (void)state;
    struct source_report report;
    struct err err = ERR_INIT;
    for (int tries = 0; tries < 300; tries++) { /* about 100 ms each while nothing listens */
        attempt(fx.url, "ca", "client", "right", &report, &err);
        if (err.kind == ERR_NOT_FOUND)
            break;
        assert_int_equal(err.kind, ERR_UNREACHABLE);
    }
    if (err.kind != ERR_NOT_FOUND)
        fail_msg("%s", err.text);
    assert_true(report.reachable);
    assert_true(report.version[0]);
}

static void test_access_when_a_key_is_wrong_then_named_cause(void **state)
{
    (void)state;
    AUTO_FREE char *no_prefix = mem_printf("https://127.0.0.1:%d", fx.server.port);
    AUTO_FREE char *plain = mem_printf("http://127.0.0.1:%d/deep/prom", fx.server.port);
    AUTO_FREE char *name = mem_printf("https://localhost:%d/deep/prom", fx.server.port);
    const struct {
        const char *url, *ca, *who, *password;
        enum err_kind kind;
        const char *text;
    } cases[] = {
        {fx.url, "ca", "client", "wrong", ERR_REFUSED, "status 401"},
        {fx.url, "other", "client", "right", ERR_UNREACHABLE, "certificate problem"},
        {name, "ca", "client", "right", ERR_UNREACHABLE, "'localhost'"}, /* it is 127.0.0.1's */
        {fx.url, "missing", "client", "right", ERR_NOT_FOUND, "missing.crt"},
        {fx.url, "text", "client", "right", ERR_UNREACHABLE, "text.crt"}, /* holds none */
        {fx.url, "ca", "missing", "right", ERR_NOT_FOUND, "missing.crt"},
        {fx.url, "ca", NULL, "right", ERR_UNREACHABLE, ""},    /* no certificate of our own */
        {fx.url, "ca", "other", "right", ERR_UNREACHABLE, ""}, /* one that it does not trust */
        {fx.url, "ca", "client", "nothing", ERR_NOT_FOUND, "password file"},
        {no_prefix, "ca", "client", "right", ERR_NOT_FOUND, "status 404"},
        {plain, "ca", "client", "right", ERR_REFUSED, "status 400"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;
        struct source_report report = {0};
        int rc = attempt(cases[i].url, cases[i].ca, cases[i].who, cases[i].password, &report, &err);
        if (rc != -1 || err.kind != cases[i].kind || !strstr(err.text, cases[i].text))
            fail_msg("%zu: %d %s: %s", i, rc, err_kind_name(err.kind), err.text);
        assert_null(strstr(err.text, "tset"));
    }
}

static void test_access_when_password_changes_then_read_again(void **state)
{
    (void)state;
    AUTO_FREE char *ca = in_folder("ca.crt");
    AUTO_FREE char *cert = in_folder("client.crt");
    AUTO_FREE char *key = in_folder("client.key");
    AUTO_FREE char *password = in_folder("rotating");
    struct option options[] = {{"url", fx.url},  {"ca_file", ca},    {"user", "remap"},
                               {"password_file", password}, {"cert_file", cert}, {"key_file", key}};
    struct source source = {"prom", "prometheus", options, ARRAY_LEN(options)};
    struct source_report report;
    struct err err = ERR_INIT;
    void *ctx;
    write_in_folder("rotating", "old\n");
    assert_int_equal(prometheus_metrics.open(&source, &ctx, &err), 0);
    assert_int_equal(prometheus_metrics.check(ctx, &app, &report, &err), -1);
    assert_int_equal(err.kind, ERR_REFUSED);
    write_in_folder("rotating", "test\n");
    assert_int_equal(prometheus_metrics.check(ctx, &app, &report, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND); /* it is let in, and there is no sample */
    assert_true(report.reachable);
    prometheus_metrics.close(ctx);
}

int main(void)
{
    AUTO_FREE char *program = server_program("prometheus");
    AUTO_FREE char *openssl = server_program("openssl");
    if (!program || !openssl) {
        printf("SKIPPED no %s on this machine (Debian package %s)\n",
               program ? "openssl" : "prometheus", program ? "openssl" : "prometheus");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_access_when_all_keys_right_then_reached),
        cmocka_unit_test(test_access_when_a_key_is_wrong_then_named_cause),
        cmocka_unit_test(test_access_when_password_changes_then_read_again),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
