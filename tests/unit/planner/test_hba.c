/* test_hba.c - HBA: golden 1 and 2 of algorithms 6.2, and what it refuses to do. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "model/model_json.h"
#include "planner/planner.h"

#define HOST(name, rest) "{\"name\":\"" name "\",\"cpu_cap_millis\":1000,\"mem_cap_bytes\":1000" rest "}"
#define SERVICE(name, rest) "{\"name\":\"" name "\"" rest "}"
#define INSTANCE(name, service, host, cpu, mem)                                             \
    "{\"name\":\"" name "\",\"service\":\"" service "\",\"host\":" host                      \
    ",\"cpu_used_millis\":" #cpu ",\"mem_used_bytes\":" #mem "}"
#define PAIR(a, b, degree) "{\"a\":\"" a "\",\"b\":\"" b "\",\"degree\":" #degree "}"
#define MODEL(hosts, services, instances, affinities, rest)                                 \
    "{\"v\":1,\"hosts\":[" hosts "],\"services\":[" services "],\"instances\":[" instances   \
    "],\"affinities\":[" affinities "]" rest "}"

#define FOUR_HOSTS HOST("H1", "") "," HOST("H2", "") "," HOST("H3", "") "," HOST("H4", "")
#define FOUR_SERVICES(b) \
    SERVICE("A", "") "," SERVICE("B", b) "," SERVICE("C", "") "," SERVICE("D", "")
#define GOLDEN1_INSTANCES                                                                   \
    INSTANCE("A", "A", "\"H1\"", 300, 200) "," INSTANCE("B", "B", "\"H2\"", 400, 300) ","   \
    INSTANCE("C", "C", "\"H3\"", 500, 300) "," INSTANCE("D", "D", "\"H4\"", 200, 100)
#define GOLDEN1_PAIRS \
    PAIR("A", "B", 0.4) "," PAIR("B", "C", 0.3) "," PAIR("A", "D", 0.2) "," PAIR("C", "D", 0.1)

struct run {
    struct model *model;
    struct plan *plan;
};

static void run_wipe(struct run *run)
{
    plan_free(run->plan);
    model_free(run->model);
}
#define AUTO_RUN __attribute__((cleanup(run_wipe)))

static struct run plan_text(const char *text, const struct plan_options *options)
{
    struct err err = ERR_INIT;
    struct run run = {model_decode(text, strlen(text), &err), NULL};
    struct plan_options use = options ? *options : plan_options_default;
    if (!run.model)
        fail_msg("%s", err.text);
    use.planner = "hba";
    if (planner_run(run.model, NULL, &use, &run.plan, &err) < 0)
        fail_msg("%s", err.text);
    if (plan_check(run.plan, run.model, false, &err) < 0)
        fail_msg("%s", err.text);
    return run;
}

static void check_move(const struct run *run, size_t at, const char *who, const char *from,
                       const char *to, double gain)
{
    assert_true(at < run->plan->n_moves);
    const struct move *move = &run->plan->moves[at];
    assert_int_equal(move->seq, at + 1);
    assert_string_equal(run->model->instances[move->instance].name, who);
    assert_string_equal(run->model->hosts[move->source].name, from);
    assert_string_equal(run->model->hosts[move->target].name, to);
    assert_true(fabs(move->gain - gain) < 1e-9);
}

static void test_plan_when_golden_1_then_two_moves(void **state)
{
    (void)state;
    AUTO_RUN struct run run =
        plan_text(MODEL(FOUR_HOSTS, FOUR_SERVICES(""), GOLDEN1_INSTANCES, GOLDEN1_PAIRS, ""), NULL);
    assert_int_equal(run.plan->n_moves, 2);
    check_move(&run, 0, "B", "H2", "H1", .4);
    check_move(&run, 1, "D", "H4", "H1", .2);
    assert_int_equal(run.plan->hosts_before, 4);
    assert_int_equal(run.plan->hosts_after, 2);
    assert_true(fabs(run.plan->affinity_after - .6) < 1e-9);
    assert_int_equal(run.plan->n_discarded, 2);
    assert_true(run.plan->affinity_bound >= run.plan->affinity_after);
    assert_int_equal(run.plan->hosts_bound, 2);
}

static void test_plan_when_golden_1_and_b_stateful_then_to_its_host(void **state)
{
    (void)state;
    AUTO_RUN struct run run =
        plan_text(MODEL(FOUR_HOSTS, FOUR_SERVICES(",\"stateful\":true"), GOLDEN1_INSTANCES,
                        GOLDEN1_PAIRS, ""),
                  NULL);
    assert_int_equal(run.plan->n_moves, 2);
    check_move(&run, 0, "A", "H1", "H2", .4);
    check_move(&run, 1, "D", "H4", "H2", .2);
    assert_int_equal(run.plan->hosts_after, 2);
}

#define GOLDEN2_INSTANCES                                                                   \
    INSTANCE("A", "A", "\"H1\"", 500, 100) "," INSTANCE("B", "B", "\"H2\"", 500, 100) ","   \
    INSTANCE("C", "C", "\"H3\"", 500, 100) "," INSTANCE("D", "D", "\"H4\"", 500, 100)
#define GOLDEN2_PAIRS PAIR("A", "B", 0.3) "," PAIR("B", "C", 0.4) "," PAIR("C", "D", 0.3)

static void test_plan_when_golden_2_then_one_move(void **state)
{
    (void)state;
    AUTO_RUN struct run run =
        plan_text(MODEL(FOUR_HOSTS, FOUR_SERVICES(""), GOLDEN2_INSTANCES, GOLDEN2_PAIRS, ""), NULL);
    assert_int_equal(run.plan->n_moves, 1);
    check_move(&run, 0, "C", "H3", "H2", .4);
    assert_int_equal(run.plan->hosts_after, 3);
    assert_true(fabs(run.plan->affinity_after - .4) < 1e-9);
    assert_true(fabs(run.plan->affinity_bound - 1) < 1e-9 || run.plan->affinity_bound < 1);
}

static void test_plan_when_golden_2_and_b_stateful_then_same_saving(void **state)
{
    (void)state;
    AUTO_RUN struct run run = plan_text(MODEL(FOUR_HOSTS, FOUR_SERVICES(",\"stateful\":true"),
                                              GOLDEN2_INSTANCES, GOLDEN2_PAIRS, ""),
                                        NULL);
    assert_int_equal(run.plan->n_moves, 1);
    check_move(&run, 0, "C", "H3", "H2", .4);
}

static void test_plan_when_host_not_schedulable_then_the_other_way(void **state)
{
    (void)state;
    AUTO_RUN struct run run = plan_text(
        MODEL(HOST("H1", ",\"schedulable\":false") "," HOST("H2", ""),
              SERVICE("A", "") "," SERVICE("B", ""),
              INSTANCE("A", "A", "\"H1\"", 1, 1) "," INSTANCE("B", "B", "\"H2\"", 1, 1),
              PAIR("A", "B", 1), ""),
        NULL);
    assert_int_equal(run.plan->n_moves, 1);
    check_move(&run, 0, "A", "H1", "H2", 1);
    assert_int_equal(run.plan->status, PLAN_OPTIMAL);
}

static void test_plan_when_requests_do_not_fit_then_discarded_with_why(void **state)
{
    (void)state;
    AUTO_RUN struct run run = plan_text(
        MODEL(HOST("H1", ",\"cpu_requested_millis\":950") "," HOST("H2", ",\"pods_cap\":1"),
              SERVICE("A", "") "," SERVICE("B", ""),
              INSTANCE("A", "A", "\"H1\"", 1, 1) ","
              "{\"name\":\"B\",\"service\":\"B\",\"host\":\"H2\",\"cpu_used_millis\":1,"
              "\"mem_used_bytes\":1,\"cpu_request_millis\":60}",
              PAIR("A", "B", 1), ""),
        NULL);
    assert_int_equal(run.plan->n_moves, 0);
    assert_int_equal(run.plan->n_discarded, 1);
    assert_non_null(strstr(run.plan->discarded[0].why, "B to H1: cpu request"));
    assert_non_null(strstr(run.plan->discarded[0].why, "A to H2: pod"));
}

static void test_plan_when_rule_forbids_then_discarded(void **state)
{
    (void)state;
    AUTO_RUN struct run run = plan_text(
        MODEL(HOST("H1", "") "," HOST("H2", ""), SERVICE("A", "") "," SERVICE("B", ""),
              INSTANCE("A", "A", "\"H1\"", 1, 1) "," INSTANCE("B", "B", "\"H2\"", 1, 1),
              PAIR("A", "B", 1),
              ",\"rules\":[{\"kind\":\"apart\",\"services\":[\"A\",\"B\"],\"max_per_host\":1}]"),
        NULL);
    assert_int_equal(run.plan->n_moves, 0);
    assert_non_null(strstr(run.plan->discarded[0].why, "rule apart"));
}

static void test_plan_when_unplaced_then_stays_unplaced(void **state)
{
    (void)state;
    AUTO_RUN struct run run = plan_text(
        MODEL(HOST("H1", "") "," HOST("H2", ""), SERVICE("A", "") "," SERVICE("B", ""),
              INSTANCE("A", "A", "\"H1\"", 1, 1) "," INSTANCE("B", "B", "null", 1, 1),
              PAIR("A", "B", 1), ""),
        NULL);
    assert_int_equal(run.plan->n_moves, 0);
    assert_int_equal(run.plan->placement[1], -1);
    assert_string_equal(run.plan->discarded[0].why, "B is not placed");
}

static void test_plan_when_service_row_then_instances_in_name_order(void **state)
{
    (void)state;
    AUTO_RUN struct run run = plan_text(
        MODEL(FOUR_HOSTS, SERVICE("A", "") "," SERVICE("B", ""),
              INSTANCE("a2", "A", "\"H2\"", 400, 1) "," INSTANCE("a1", "A", "\"H1\"", 400, 1) ","
              INSTANCE("b2", "B", "\"H4\"", 400, 1) "," INSTANCE("b1", "B", "\"H3\"", 400, 1),
              PAIR("A", "B", 1), ""),
        NULL);
    assert_int_equal(run.plan->n_moves, 2);
    check_move(&run, 0, "b1", "H3", "H1", .5);
    check_move(&run, 1, "b2", "H4", "H2", .5);
}

static void test_plan_when_moves_are_limited_then_the_first(void **state)
{
    (void)state;
    struct plan_options options = plan_options_default;
    options.max_moves = 1;
    AUTO_RUN struct run run = plan_text(
        MODEL(FOUR_HOSTS, FOUR_SERVICES(""), GOLDEN1_INSTANCES, GOLDEN1_PAIRS, ""), &options);
    assert_int_equal(run.plan->n_moves, 1);
    check_move(&run, 0, "B", "H2", "H1", .4);
}

static void test_run_when_option_is_not_for_it_then_usage(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct plan *plan = NULL;
    AUTO(model) struct model *model = model_new();
    struct plan_options options = plan_options_default;
    options.planner = "hba";
    options.move_stateful = true;
    assert_int_equal(planner_run(model, NULL, &options, &plan, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    options.move_stateful = false;
    options.planner = "hab";
    assert_int_equal(planner_run(model, NULL, &options, &plan, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "hba"));
    assert_null(plan);
}

static void test_plan_when_model_is_empty_then_no_moves(void **state)
{
    (void)state;
    AUTO_RUN struct run run = plan_text("{\"v\":1,\"hosts\":[],\"services\":[],\"instances\":[]}", NULL);
    assert_int_equal(run.plan->n_moves, 0);
    assert_int_equal(run.plan->hosts_bound, 0);
    assert_int_equal(run.plan->status, PLAN_OPTIMAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_when_golden_1_then_two_moves),
        cmocka_unit_test(test_plan_when_golden_1_and_b_stateful_then_to_its_host),
        cmocka_unit_test(test_plan_when_golden_2_then_one_move),
        cmocka_unit_test(test_plan_when_golden_2_and_b_stateful_then_same_saving),
        cmocka_unit_test(test_plan_when_host_not_schedulable_then_the_other_way),
        cmocka_unit_test(test_plan_when_requests_do_not_fit_then_discarded_with_why),
        cmocka_unit_test(test_plan_when_rule_forbids_then_discarded),
        cmocka_unit_test(test_plan_when_unplaced_then_stays_unplaced),
        cmocka_unit_test(test_plan_when_service_row_then_instances_in_name_order),
        cmocka_unit_test(test_plan_when_moves_are_limited_then_the_first),
        cmocka_unit_test(test_run_when_option_is_not_for_it_then_usage),
        cmocka_unit_test(test_plan_when_model_is_empty_then_no_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
