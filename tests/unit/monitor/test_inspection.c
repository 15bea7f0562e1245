/* test_inspection.c - requests, the order of adapters, notes, checks; with a registry of the test's
 * own in the place of adapters/registry.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "adapters/adapter.h"
#include "adapters/identity.h"
#include "monitor/inspection.h"

static char order[64]; /* one letter per call of an adapter */

static int fake_open(const struct source *source, void **ctx, struct err *err)
{
    if (strcmp(source_option(source, "open", "yes"), "no") == 0)
        return err_set(err, ERR_UNREACHABLE, "connection refused");
    *ctx = (void *)source;
    strcat(order, "o");
    return 0;
}

static void fake_close(void *ctx)
{
    (void)ctx;
    strcat(order, "x");
}

static int fake_inspect(void *ctx, const struct app_scope *app, struct inspection *in,
                        struct err *err)
{
    (void)app;
    strcat(order, "C");
    int host = model_add_host(in->model, "h", err);
    if (host < 0)
        return -1;
    in->model->hosts[host].cpu_cap_millis = 1001;
    in->model->hosts[host].mem_cap_bytes = 1000;
    int a = model_add_service(in->model, "shop/a", err);
    AUTO_FREE char *second = mem_printf("%s/b", source_option(ctx, "second", "shop"));
    int b = model_add_service(in->model, second, err);
    model_add_instance(in->model, "shop/a-1", a, 0, err);
    model_add_instance(in->model, "shop/b-1", b, 0, err);
    if (strcmp(source_option(ctx, "broken", "no"), "yes") == 0)
        in->model->instances[0].cpu_used_millis = -7;
    return 0;
}

static int fake_check(void *ctx, const struct app_scope *app, struct source_report *out,
                      struct err *err)
{
    (void)app;
    out->reachable = true;
    strcpy(out->version, "1.2");
    strcpy(out->seen, "1 host");
    out->newest_ms = 77;
    return strcmp(source_option(ctx, "check", "yes"), "no") == 0
               ? err_set(err, ERR_REFUSED, "403 Forbidden")
               : 0;
}

static int fake_measure(void *ctx, const struct app_scope *app, const struct window *window,
                        struct inspection *in, struct err *err)
{
    (void)ctx;
    (void)app;
    (void)err;
    strcat(order, "M");
    in->model->instances[0].cpu_used_millis = window->to_ms - window->from_ms;
    inspection_note(in, "partial", 2, "%d samples are missing", 2);
    return 0;
}

static int fake_trace(void *ctx, const struct app_scope *app, const struct window *window,
                      struct inspection *in, struct err *err)
{
    (void)app;
    (void)window;
    (void)err;
    strcat(order, "T");
    if (strcmp(source_option(ctx, "empty", "no"), "yes") == 0)
        return 0;
    struct identity *identity = in->identity;
    struct message *message = ARRAY_PUSH(in->model->messages, in->model->n_messages);
    *message = (struct message){.level = LEVEL_SERVICE,
                                .src = identity_find(identity, IDENTITY_SERVICE, "alias-of-a"),
                                .dst = identity_find(identity, IDENTITY_SERVICE, "b"),
                                .count = 5,
                                .bytes = -1,
                                .mean_ms = -1};
    identity_unmapped(identity, "redis", 3, -1);
    return 0;
}

static const struct option_spec options[] = {
    {"open", "", "yes", false},  {"check", "", "yes", false}, {"empty", "", "no", false},
    {"broken", "", "no", false}, {"second", "", "shop", false}, {NULL, NULL, NULL, false},
};
static const struct cluster_adapter cluster = {"fake", "", options, fake_open, fake_inspect, NULL,
                                               NULL, fake_check, fake_close};
static const struct metrics_adapter metrics = {"fake", "", options, fake_open, fake_measure, NULL,
                                               fake_check, fake_close};
static const struct message_adapter messages = {"fake", "", options, fake_open, fake_trace,
                                                fake_check, fake_close};

const struct cluster_adapter *const cluster_adapters[] = {&cluster, NULL};
const struct metrics_adapter *const metrics_adapters[] = {&metrics, NULL};
const struct message_adapter *const message_adapters[] = {&messages, NULL};
const struct orchestrator *const orchestrators[] = {NULL};

const struct cluster_adapter *cluster_adapter_find(const char *name)
{
    return strcmp(name, "fake") == 0 ? &cluster : NULL;
}

const struct metrics_adapter *metrics_adapter_find(const char *name)
{
    return strcmp(name, "fake") == 0 ? &metrics : NULL;
}

const struct message_adapter *message_adapter_find(const char *name)
{
    return strcmp(name, "fake") == 0 ? &messages : NULL;
}

const struct orchestrator *orchestrator_find(const char *name)
{
    (void)name;
    return NULL;
}

/* --- */

#define SOURCE(name, options) "{\"name\":\"" name "\",\"type\":\"fake\",\"options\":[" options "]}"
#define OPTION(name, value) "{\"name\":\"" name "\",\"value\":\"" value "\"}"
#define REQUEST(cluster, metrics, messages)                                                      \
    "{\"v\":1,\"app\":{\"name\":\"web\",\"namespaces\":[\"shop\"],\"services\":[]},\"from_ms\":1000,"  \
    "\"to_ms\":1600,\"sources\":{\"cluster\":" cluster ",\"metrics\":[" metrics "],\"messages\":["     \
    messages "]},\"aliases\":[{\"name\":\"alias-of-a\",\"value\":\"shop/a\"}]}"
#define GOOD REQUEST(SOURCE("c", ""), SOURCE("m", ""), SOURCE("t", ""))

static int64_t steps;

static int count_step(void *arg, int64_t done, struct err *err)
{
    (void)arg;
    (void)err;
    steps = done;
    return 0;
}

static int stop_step(void *arg, int64_t done, struct err *err)
{
    (void)arg;
    return done == 1 ? err_set(err, ERR_REFUSED, "stopped") : 0;
}

static int run(const char *request, inspection_step_f *step, struct inspection *in,
               struct err *err)
{
    struct collect collect;
    order[0] = '\0';
    if (collect_decode(request, strlen(request), &collect, err))
        return -1;
    int rc = inspection_run(&collect, step, NULL, in, err);
    collect_wipe(&collect);
    return rc;
}

static bool has_note(const struct inspection *in, const char *kind, const char *text)
{
    for (size_t i = 0; i < in->n_notes; i++)
        if (strcmp(in->notes[i].kind, kind) == 0 && strcmp(in->notes[i].text, text) == 0)
            return true;
    return false;
}

static void test_inspection_when_one_of_several_sources_fails_then_the_others_count(void **state)
{
    struct inspection in = {0};
    struct err err = ERR_INIT;
    (void)state;
    assert_int_equal(run(REQUEST(SOURCE("c", ""),
                                 SOURCE("m1", OPTION("open", "no")) "," SOURCE("m2", ""),
                                 SOURCE("t1", "") "," SOURCE("t2", OPTION("open", "no")) ","
                                 SOURCE("t3", "")),
                         count_step, &in, &err),
                     0);
    assert_true(has_note(&in, "source-failed", "m1: connection refused"));
    assert_true(has_note(&in, "source-failed", "t2: connection refused"));
    assert_int_equal(in.model->instances[0].cpu_used_millis, 600);
    /* t1 and t3 tell the same: once, also what they could not join. */
    assert_int_equal(in.model->n_messages, 1);
    assert_int_equal(in.model->messages[0].count, 5);
    assert_int_equal(in.model->traffic.unmapped_count, 3);
    model_free(in.model);
    inspection_wipe(&in);
    assert_int_equal(run(REQUEST(SOURCE("c", ""), SOURCE("m", ""),
                                 SOURCE("t1", OPTION("open", "no")) ","
                                 SOURCE("t2", OPTION("open", "no"))),
                         count_step, &in, &err),
                     -1);
    assert_string_equal(err.text, "t1: connection refused");
}

static void test_inspection_when_run_then_cluster_metrics_messages_fill_one_model(void **state)
{
    struct inspection in = {0};
    struct err err = ERR_INIT;
    (void)state;
    assert_int_equal(run(GOOD, count_step, &in, &err), 0);
    assert_string_equal(order, "oCxoMxoTx");
    assert_int_equal(steps, 3);
    assert_int_equal(in.model->from_ms, 1000);
    assert_int_equal(in.model->to_ms, 1600);
    assert_true(in.model->taken_ms > 0);
    assert_int_equal(in.model->instances[0].cpu_used_millis, 600);
    assert_string_equal(in.model->services[0].app, "web");
    assert_int_equal(in.model->n_messages, 1);
    assert_int_equal(in.model->messages[0].src, 0);
    assert_int_equal(in.model->traffic.unmapped_count, 3);
    assert_true(has_note(&in, "partial", "2 samples are missing"));
    assert_true(has_note(&in, "unmapped", "3 messages of redis: no service or instance of that name"));
    assert_false(has_note(&in, "no-traffic", "no traffic in the window"));
    model_free(in.model);
    inspection_wipe(&in);
}

static void test_inspection_when_no_message_was_seen_then_a_note_says_so(void **state)
{
    struct inspection in = {0};
    struct err err = ERR_INIT;
    (void)state;
    assert_int_equal(run(REQUEST(SOURCE("c", ""), "", SOURCE("t", OPTION("empty", "yes"))),
                         count_step, &in, &err),
                     0);
    assert_int_equal(in.model->n_messages, 0);
    assert_true(has_note(&in, "no-traffic", "no traffic in the window"));
    model_free(in.model);
    inspection_wipe(&in);
}

static void test_rule_14_tenants_when_namespaces_differ_then_as_configured(void **state)
{
    static const char good[] =
        REQUEST(SOURCE("c", OPTION("second", "bank")), "", SOURCE("t", ""));
    static const struct {
        const char *members, *a, *b;
    } rows[] = {
        {"", "shop", "bank"}, /* each namespace is a tenant of its own */
        {",\"tenant\":null,\"tenants\":[]", "shop", "bank"},
        {",\"tenant\":\"acme\"", "acme", "acme"},
        {",\"tenants\":[{\"name\":\"bank\",\"value\":\"shop\"}]", "shop", "shop"},
        {",\"tenant\":\"acme\",\"tenants\":[{\"name\":\"bank\",\"value\":\"other\"}]", "acme",
         "other"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct inspection in = {0};
        struct err err = ERR_INIT;
        AUTO_FREE char *request =
            mem_printf("%.*s%s}", (int)(sizeof good - 2), good, rows[i].members);
        assert_int_equal(run(request, count_step, &in, &err), 0);
        assert_string_equal(in.model->services[0].tenant, rows[i].a);
        assert_string_equal(in.model->services[1].tenant, rows[i].b);
        assert_int_equal(has_note(&in, "tenants",
                                  "5 messages between services of different tenants place nothing, "
                                  "most of them shop/a to bank/b"),
                         strcmp(rows[i].a, rows[i].b) != 0);
        assert_int_equal(in.model->messages[0].count, 5);          /* seen all the same */
        assert_int_equal(in.model->traffic.unmapped_count, 3); /* and known */
        model_free(in.model);
        inspection_wipe(&in);
    }
}

static void test_inspection_when_headroom_is_asked_for_then_hosts_reserve_it(void **state)
{
    struct inspection in = {0};
    struct err err = ERR_INIT;
    (void)state;
    static const char good[] = GOOD;
    AUTO_FREE char *request = mem_printf("%.*s,\"headroom\":{\"cpu\":0.1,\"mem\":0.25}}",
                                         (int)(sizeof good - 2), good);
    assert_int_equal(run(request, count_step, &in, &err), 0);
    assert_int_equal(in.model->hosts[0].reserve_cpu_millis, 101); /* of 1001, rounded up */
    assert_int_equal(in.model->hosts[0].reserve_mem_bytes, 250);
    model_free(in.model);
    inspection_wipe(&in);
}

static void test_inspection_when_a_source_fails_then_error_names_it_and_nothing_is_left(
    void **state)
{
    static const struct {
        const char *request, *error;
        enum err_kind kind;
    } rows[] = {
        {REQUEST(SOURCE("c", OPTION("open", "no")), "", ""), "c: connection refused",
         ERR_UNREACHABLE},
        {REQUEST(SOURCE("c", ""), SOURCE("m", OPTION("opne", "no")), ""),
         "source m (fake): unknown option opne; did you mean open?", ERR_CONFIG},
        {REQUEST("{\"name\":\"c\",\"type\":\"fakes\",\"options\":[]}", "", ""),
         "there is no cluster adapter fakes; did you mean fake?", ERR_CONFIG},
        {REQUEST(SOURCE("c", OPTION("broken", "yes")), "", ""), "does not fit together", ERR_INPUT},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct inspection in = {0};
        struct err err = ERR_INIT;
        assert_int_equal(run(rows[i].request, count_step, &in, &err), -1);
        assert_int_equal(err.kind, rows[i].kind);
        if (!strstr(err.text, rows[i].error))
            fail_msg("%s", err.text);
        assert_null(in.model);
        assert_null(in.notes);
    }
}

static void test_inspection_when_stopped_between_sources_then_it_ends(void **state)
{
    struct inspection in = {0};
    struct err err = ERR_INIT;
    (void)state;
    assert_int_equal(run(GOOD, stop_step, &in, &err), -1);
    assert_int_equal(err.kind, ERR_REFUSED);
    assert_string_equal(order, "oCx");
}

static void test_requests_when_bad_then_error_names_the_place(void **state)
{
    static const struct {
        const char *request, *error;
    } rows[] = {
        {"", "line 1"},
        {"[]", "must be an object"},
        {"{\"v\":2}", "v: "},
        {"{\"v\":1,\"app\":{}}", "app.name"},
        {"{\"v\":1,\"apps\":{}}", "apps"},
        {REQUEST("{}", "", ""), "sources.cluster.name"},
        {REQUEST(SOURCE("c", "{\"name\":\"x\"}"), "", ""), "sources.cluster.options[0].value"},
        {REQUEST(SOURCE("c", ""), "7", ""), "sources.metrics[0]"},
        {"{\"v\":1,\"headrooms\":{}}", "headrooms"},
        {REQUEST(SOURCE("c", ""), SOURCE("m", "") ",{\"name\":1}", ""), "sources.metrics[1].name"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct collect collect;
        struct err err = ERR_INIT;
        assert_int_equal(
            collect_decode(rows[i].request, strlen(rows[i].request), &collect, &err), -1);
        assert_int_equal(err.kind, ERR_INPUT);
        if (!strstr(err.text, rows[i].error))
            fail_msg("\"%s\" does not hold \"%s\"", err.text, rows[i].error);
    }
}

static int check(const char *request, struct buf *out)
{
    struct collect collect;
    struct err err = ERR_INIT;
    int exit_code = -1;
    assert_int_equal(collect_decode(request, strlen(request), &collect, &err), 0);
    assert_int_equal(inspection_check(&collect, count_step, NULL, out, &exit_code, &err), 0);
    collect_wipe(&collect);
    return exit_code;
}

static void test_check_when_all_is_well_then_what_each_source_sees(void **state)
{
    AUTO_BUF struct buf out = BUF_INIT;
    (void)state;
    assert_int_equal(check(REQUEST(SOURCE("c", ""), "", ""), &out), 0);
    assert_string_equal(out.data,
                        "{\"v\":1,\"sources\":[{\"kind\":\"cluster\",\"name\":\"c\",\"type\":\"fake\","
                        "\"reachable\":true,\"version\":\"1.2\",\"newest_ms\":77,\"seen\":\"1 host\","
                        "\"problem\":null,\"remedy\":null}]}");
}

static void test_check_when_a_source_has_a_problem_then_the_others_are_still_asked(void **state)
{
    AUTO_BUF struct buf out = BUF_INIT;
    (void)state;
    assert_int_equal(check(REQUEST(SOURCE("c", OPTION("open", "no")), SOURCE("m", ""),
                                   SOURCE("t", OPTION("check", "no"))),
                           &out),
                     1);
    assert_non_null(strstr(out.data, "\"name\":\"c\",\"type\":\"fake\",\"reachable\":false"));
    assert_non_null(strstr(out.data, "connection refused"));
    assert_non_null(strstr(out.data, "see that it runs"));
    assert_non_null(strstr(out.data, "403 Forbidden"));
    assert_non_null(strstr(out.data, "credentials"));
}

static void test_check_when_a_source_is_configured_wrong_then_exit_code_2(void **state)
{
    AUTO_BUF struct buf out = BUF_INIT;
    (void)state;
    assert_int_equal(check(REQUEST(SOURCE("c", OPTION("x", "no")),
                                   SOURCE("m", OPTION("open", "no")), ""),
                           &out),
                     2);
}

/* --- source_check --- */

static void test_options_when_checked_then_unknown_doubled_and_missing_are_refused(void **state)
{
    static const struct option_spec spec[] = {
        {"url", "where it is", NULL, true}, {"token_file", "", NULL, false}, {NULL, NULL, NULL, false}};
    static const struct {
        struct option options[2];
        size_t n;
        const char *error;
    } rows[] = {
        {{{"url", "x"}, {"token_file", "y"}}, 2, NULL},
        {{{"url", "x"}, {"tokenfile", "y"}}, 2,
         "source s (t): unknown option tokenfile; did you mean token_file?"},
        {{{"url", "x"}, {"qqqqqqqq", "y"}}, 2, "source s (t): unknown option qqqqqqqq"},
        {{{"url", "x"}, {"url", "y"}}, 2, "source s (t): option url is given twice"},
        {{{"token_file", "x"}}, 1, "source s (t): option url is missing (where it is)"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct source source = {"s", "t", rows[i].options, rows[i].n};
        struct err err = ERR_INIT;
        assert_int_equal(source_check(&source, spec, &err), rows[i].error ? -1 : 0);
        if (rows[i].error) {
            assert_int_equal(err.kind, ERR_CONFIG);
            assert_string_equal(err.text, rows[i].error);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_inspection_when_one_of_several_sources_fails_then_the_others_count),
        cmocka_unit_test(test_inspection_when_run_then_cluster_metrics_messages_fill_one_model),
        cmocka_unit_test(test_rule_14_tenants_when_namespaces_differ_then_as_configured),
        cmocka_unit_test(test_inspection_when_headroom_is_asked_for_then_hosts_reserve_it),
        cmocka_unit_test(test_inspection_when_no_message_was_seen_then_a_note_says_so),
        cmocka_unit_test(
            test_inspection_when_a_source_fails_then_error_names_it_and_nothing_is_left),
        cmocka_unit_test(test_inspection_when_stopped_between_sources_then_it_ends),
        cmocka_unit_test(test_requests_when_bad_then_error_names_the_place),
        cmocka_unit_test(test_check_when_all_is_well_then_what_each_source_sees),
        cmocka_unit_test(test_check_when_a_source_has_a_problem_then_the_others_are_still_asked),
        cmocka_unit_test(test_check_when_a_source_is_configured_wrong_then_exit_code_2),
        cmocka_unit_test(test_options_when_checked_then_unknown_doubled_and_missing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
