/* test_verify.c - predicted against realised, by a table of numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/manager/verify.h"

static void test_judge_when_worse_beyond_tolerance_then_says_what_and_how_much(void **state)
{
    (void)state;
    static const struct {
        double local[3]; /* before, predicted, realised */
        double response[3];
        int64_t hosts[3];
        enum objective objective;
        int64_t messages;
        enum verify_answer answer;
        const char *why;
    } rows[] = {
        {{.2, .8, .8},
         {9, 6, 6},
         {6, 4, 4},
         OBJECTIVE_AFFINITY,
         1000,
         VERIFY_KEEP,
         "local traffic 80.0 %, was 20.0 %, predicted 80.0 %; response time 6 ms, was 9"},
        {{.2, .8, .3}, {9, 6, 9}, {6, 4, 4}, OBJECTIVE_AFFINITY, 1000, VERIFY_KEEP, "local"},
        {{.2, .8, .19}, {9, 6, 9.8}, {6, 4, 4}, OBJECTIVE_AFFINITY, 1000, VERIFY_KEEP, "local"},
        {{.2, .8, .17},
         {9, 6, 9},
         {6, 4, 4},
         OBJECTIVE_AFFINITY,
         1000,
         VERIFY_WORSE,
         "less traffic stays on a host than before: local traffic 17.0 %"},
        {{.2, .8, .8},
         {9, 6, 10},
         {6, 4, 4},
         OBJECTIVE_AFFINITY,
         1000,
         VERIFY_WORSE,
         "slower than before: "},
        {{.2, .8, .8},
         {9, 6, -1},
         {6, 4, 4},
         OBJECTIVE_AFFINITY,
         1000,
         VERIFY_KEEP,
         "response time unknown"},
        /* fewer hosts at the price of traffic: promised, so it is no harm */
        {{.5, .3, .3}, {9, 9, 9}, {6, 3, 3}, OBJECTIVE_HOSTS, 1000, VERIFY_KEEP, "local"},
        {{.5, .5, .5}, {9, 9, 9}, {6, 3, 7}, OBJECTIVE_HOSTS, 1000, VERIFY_WORSE, "more hosts"},
        {{.5, .5, .5}, {9, 9, 9}, {6, 3, 7}, OBJECTIVE_AFFINITY, 1000, VERIFY_KEEP, "local"},
        {{.2, .8, 0},
         {9, 6, 99},
         {6, 4, 4},
         OBJECTIVE_AFFINITY,
         VERIFY_MIN_MESSAGES - 1,
         VERIFY_UNKNOWN,
         "not judged: only 29 messages"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct savings s = {.local_before = rows[i].local[0],
                                  .local_predicted = rows[i].local[1],
                                  .local_realised = rows[i].local[2],
                                  .response_before_ms = rows[i].response[0],
                                  .response_predicted_ms = rows[i].response[1],
                                  .response_realised_ms = rows[i].response[2],
                                  .hosts_before = rows[i].hosts[0],
                                  .hosts_predicted = rows[i].hosts[1],
                                  .hosts_realised = rows[i].hosts[2]};
        char why[300];
        assert_int_equal(
            verify_judge(&s, rows[i].objective, 0.1, rows[i].messages, false, why, sizeof why),
            rows[i].answer);
        assert_non_null(strstr(why, rows[i].why));
        enum verify_answer mending =
            verify_judge(&s, rows[i].objective, 0.1, rows[i].messages, true, why, sizeof why);
        bool worse = rows[i].answer == VERIFY_WORSE;
        assert_int_equal(mending, worse ? VERIFY_KEEP : rows[i].answer);
        assert_int_equal(strstr(why, "kept: it mends a broken rule") != NULL, worse);
    }
}

/* a on h1, b on h2, 40 messages between them of 10 ms each over a link of 4 ms. */
static struct model *small_model(void)
{
    struct err err = ERR_INIT;
    struct model *m = model_new();
    for (int i = 0; i < 2; i++) {
        int host = model_add_host(m, i ? "h2" : "h1", &err);
        m->hosts[host].cpu_cap_millis = 1000;
        int service = model_add_service(m, i ? "b" : "a", &err);
        model_add_instance(m, i ? "b" : "a", service, host, &err);
    }
    *ARRAY_PUSH(m->messages, m->n_messages) = (struct message){LEVEL_INSTANCE, 0, 1, 40, -1, 10};
    m->has_messages = true;
    *ARRAY_PUSH(m->latencies, m->n_latencies) = (struct latency){0, 1, 4000};
    return m;
}

static void test_predict_and_measure_then_each_side_by_its_own_model(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct savings s;
    AUTO(model) struct model *model = small_model();
    AUTO(analysis) struct analysis *analysis = analysis_new();
    *ARRAY_PUSH(analysis->rows, analysis->n_rows) =
        (struct affinity){LEVEL_INSTANCE, 0, 1, 1, 40, -1};
    AUTO(plan) struct plan *plan = plan_new();
    assert_int_equal(plan_fill(plan, model, analysis->rows, 1, (const int[]){0, 0}, &err), 0);
    verify_predict(model, analysis, plan, &s);
    assert_int_equal(s.hosts_before, 2);
    assert_int_equal(s.hosts_predicted, 1);
    assert_true(s.local_before == 0 && s.local_predicted == 1);
    assert_true(s.affinity_before == 0 && s.affinity_predicted == 1);
    assert_true(s.response_before_ms == 10 && s.response_predicted_ms == 6);
    assert_int_equal(s.hosts_realised, -1);
    AUTO(model) struct model *now = small_model();
    now->instances[1].host = 0;
    now->messages[0].mean_ms = 7;
    verify_measure(now, analysis, &s);
    assert_int_equal(s.hosts_realised, 1);
    assert_true(s.local_realised == 1 && s.affinity_realised == 1);
    assert_true(s.response_realised_ms == 7);
}

static void test_measure_when_too_few_messages_then_only_hosts_are_known(void **state)
{
    (void)state;
    struct savings s = {.affinity_realised = -1, .response_realised_ms = -1, .local_realised = -1};
    AUTO(model) struct model *now = small_model();
    AUTO(analysis) struct analysis *analysis = analysis_new();
    *ARRAY_PUSH(analysis->rows, analysis->n_rows) =
        (struct affinity){LEVEL_INSTANCE, 0, 1, 1, 29, -1};
    verify_measure(now, analysis, &s);
    assert_int_equal(s.hosts_realised, 2);
    assert_true(s.affinity_realised < 0 && s.local_realised < 0 && s.response_realised_ms < 0);
}

/* Whoever may post spans could else have the plans of others put back. */
static void test_rule_14_measure_when_another_tenant_calls_far_and_slowly_then_no_matter(
    void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct savings s = {.affinity_realised = -1, .response_realised_ms = -1, .local_realised = -1};
    AUTO(model) struct model *now = small_model();
    AUTO(analysis) struct analysis *analysis = analysis_new();
    model_add_instance(now, "c", model_add_service(now, "c", &err), 1, &err);
    now->instances[1].host = 0;
    for (int i = 0; i < 3; i++)
        now->services[i].tenant = mem_strdup(i < 2 ? "ours" : "theirs");
    *ARRAY_PUSH(now->messages, now->n_messages) =
        (struct message){LEVEL_INSTANCE, 2, 0, 9000, -1, 500};
    *ARRAY_PUSH(analysis->rows, analysis->n_rows) =
        (struct affinity){LEVEL_INSTANCE, 0, 2, 0, 9000, -1};
    verify_measure(now, analysis, &s); /* theirs alone is too little to judge by */
    assert_true(s.affinity_realised < 0 && s.local_realised < 0 && s.response_realised_ms < 0);
    *ARRAY_PUSH(analysis->rows, analysis->n_rows) =
        (struct affinity){LEVEL_INSTANCE, 0, 1, 1, 40, -1};
    verify_measure(now, analysis, &s);
    assert_true(s.affinity_realised == 1 && s.local_realised == 1);
    assert_true(s.response_realised_ms == 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge_when_worse_beyond_tolerance_then_says_what_and_how_much),
        cmocka_unit_test(test_predict_and_measure_then_each_side_by_its_own_model),
        cmocka_unit_test(test_measure_when_too_few_messages_then_only_hosts_are_known),
        cmocka_unit_test(
            test_rule_14_measure_when_another_tenant_calls_far_and_slowly_then_no_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
