/* What `remap check` says of the admission webhook, with certificates that openssl made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/kubernetes/admission_check.h"
#include "model/base/clock.h"
#include "model/base/file.h"
#include "tests/support/temp_dir.h"

#define DAY (INT64_C(24) * 3600 * 1000)
#define HOST "remap-admission.remap.svc"

/* Two certificates: of the webhook, as etc/kubernetes/certificate makes it, and of somebody else. */
struct fixture {
    char *dir, *own, *other;
};

/* PEM of a new self-signed certificate of that name. Caller frees. */
static char *certificate(const char *dir, const char *file, const char *name)
{
    AUTO_FREE char *cert = mem_printf("%s/%s.crt", dir, file);
    AUTO_FREE char *key = mem_printf("%s/%s.key", dir, file);
    AUTO_FREE char *subject = mem_printf("/CN=%s", name);
    AUTO_FREE char *alternative = mem_printf("subjectAltName=DNS:%s", name);
    struct err err = ERR_INIT;
    struct buf pem = BUF_INIT;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execlp("openssl", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
               "ec_paramgen_curve:prime256v1", "-nodes", "-days", "365", "-subj", subject, "-addext",
               alternative, "-keyout", key, "-out", cert, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(file_read(cert, 1 << 20, &pem, &err), 0);
    return buf_take(&pem);
}

static int open_fixture(void **state)
{
    static struct fixture f;
    f.dir = temp_dir_new();
    f.own = certificate(f.dir, "own", HOST);
    f.other = certificate(f.dir, "other", HOST);
    *state = &f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    temp_dir_remove(f->dir);
    free(f->dir);
    free(f->own);
    free(f->other);
    return 0;
}

static struct check_line judged(const char *ca, const char *cert, const char *host, int64_t days)
{
    struct check_line line;
    AUTO_FREE char *bundle = mem_strdup(ca);
    AUTO_FREE char *name = mem_strdup(host);
    const struct admission_hook hook = {.ca_pem = bundle, .host = name};
    admission_judge_certificate(&hook, cert, clock_wall_ms() + days * DAY, &line);
    print_message("%s | %s | %s\n", line.seen, line.problem, line.warning);
    assert_string_equal(line.what, "certificate");
    assert_true(!line.problem[0] || !line.warning[0]);
    assert_int_equal(line.remedy == NULL, !line.problem[0] && !line.warning[0]);
    return line;
}

static void test_certificate_when_the_bundle_holds_it_then_fine_until_thirty_days_before_its_end(
    void **state)
{
    const struct fixture *f = *state;
    struct check_line line = judged(f->own, f->own, HOST, 0);
    assert_memory_equal(line.seen, "valid until 2", strlen("valid until 2"));
    assert_string_equal(line.problem, "");
    assert_string_equal(line.warning, "");
    assert_string_equal(judged(f->own, f->own, HOST, 330).warning, "");
    line = judged(f->own, f->own, HOST, 340);
    assert_string_equal(line.problem, "");
    assert_non_null(strstr(line.warning, "certificate ends in 24 days"));
    assert_non_null(strstr(line.remedy, "etc/kubernetes/certificate"));
}

static void test_certificate_when_it_has_ended_or_is_another_then_what_is_wrong(void **state)
{
    const struct fixture *f = *state;
    AUTO_FREE char *both = mem_printf("%s%s", f->other, f->own);
    assert_string_equal(judged(f->own, f->own, HOST, 366).problem,
                        "the webhook's certificate has ended: pods are made without being steered");
    assert_non_null(strstr(judged(f->own, f->own, HOST, -2).problem, "not yet valid"));
    assert_non_null(strstr(judged(f->other, f->own, HOST, 0).problem,
                           "caBundle does not verify the webhook's certificate for " HOST));
    assert_string_equal(judged(both, f->own, HOST, 0).problem, "");
    assert_non_null(
        strstr(judged(f->own, f->own, "remap-admission.other.svc", 0).problem, "ostname mismatch"));
    assert_non_null(strstr(judged(NULL, f->own, HOST, 0).problem, "has no caBundle"));
    assert_non_null(strstr(judged("nothing", f->own, HOST, 0).problem, "has no caBundle"));
    assert_string_equal(judged(f->own, "nothing", HOST, 0).problem,
                        "tls_cert_file holds no certificate");
}

/* --- the configuration --- */

#define RULES "'rules':[{'operations':['CREATE'],'resources':['pods']}]"
#define CLIENT                                                                                     \
    "'clientConfig':{'caBundle':'UEVN','service':{'namespace':'remap','name':'remap-admission',"   \
    "'path':'/admission/pods'}}"

static void test_webhook_when_it_could_hold_up_pods_or_steers_none_then_said(void **state)
{
    static const struct {
        const char *webhooks, *problem, *warning;
    } rows[] = {
        {"{'failurePolicy':'Ignore','timeoutSeconds':1," RULES "," CLIENT "}", "", ""},
        {"{'name':'another'},{'failurePolicy':'Ignore','timeoutSeconds':1," RULES "," CLIENT "}", "",
         ""},
        {"", "holds no webhook", ""},
        {"{'failurePolicy':'Fail','timeoutSeconds':1," RULES "," CLIENT "}", "is not Ignore", ""},
        {"{" RULES "," CLIENT "}", "is not Ignore", ""}, /* the default of v1 is Fail */
        {"{'failurePolicy':'Ignore','timeoutSeconds':1," CLIENT "}", "none is steered", ""},
        {"{'failurePolicy':'Ignore','timeoutSeconds':1,'rules':[{'operations':['*'],'resources':"
         "['services']}]," CLIENT "}",
         "none is steered", ""},
        {"{'failurePolicy':'Ignore'," RULES "," CLIENT "}", "", "pods are made 10 s late"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        struct check_line line;
        AUTO_ADMISSION_HOOK struct admission_hook hook = {0};
        AUTO_FREE char *text = mem_printf("{'webhooks':[%s]}", rows[i].webhooks);
        for (char *c = text; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        AUTO_JSON json_t *tree = json_parse(text, strlen(text), &json_limits_document, &err);
        assert_non_null(tree);
        admission_judge_hook(tree, "remap", &hook, &line);
        print_message("%zu: %s | %s | %s\n", i, line.seen, line.problem, line.warning);
        assert_int_equal(line.problem[0] != 0, rows[i].problem[0] != 0);
        assert_int_equal(line.warning[0] != 0, rows[i].warning[0] != 0);
        assert_non_null(strstr(line.problem, rows[i].problem));
        assert_non_null(strstr(line.warning, rows[i].warning));
        if (rows[i].webhooks[0]) {
            assert_string_equal(hook.ca_pem, "PEM");
            assert_string_equal(hook.host, HOST);
            assert_int_equal(hook.port, 443);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_certificate_when_the_bundle_holds_it_then_fine_until_thirty_days_before_its_end),
        cmocka_unit_test(test_certificate_when_it_has_ended_or_is_another_then_what_is_wrong),
        cmocka_unit_test(test_webhook_when_it_could_hold_up_pods_or_steers_none_then_said),
    };
    if (system("openssl version >/dev/null 2>&1") != 0) {
        printf("SKIPPED openssl is not installed (Debian package openssl)\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
