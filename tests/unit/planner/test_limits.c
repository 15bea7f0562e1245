/* test_limits.c - instances that cannot be planned: the status, and a reason that names the thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "model/model_json.h"
#include "planner/planner.h"

#define HOSTS                                                                    \
    "{\"v\":1,\"hosts\":[{\"name\":\"h1\",\"cpu_cap_millis\":100,\"mem_cap_bytes\":100}," \
    "{\"name\":\"h2\",\"cpu_cap_millis\":100,\"mem_cap_bytes\":100}],"
#define HOSTS_AND_CLOSED                                                                       \
    "{\"v\":1,\"hosts\":[{\"name\":\"h1\",\"cpu_cap_millis\":100,\"mem_cap_bytes\":100},"           \
    "{\"name\":\"h2\",\"cpu_cap_millis\":100,\"mem_cap_bytes\":100},"                               \
    "{\"name\":\"h3\",\"cpu_cap_millis\":100,\"mem_cap_bytes\":100,\"schedulable\":false}],"
#define SERVICES "\"services\":[{\"name\":\"A\"},{\"name\":\"B\",\"stateful\":true}],"
#define ONE(name, service, host, cpu)                                                            \
    "{\"name\":\"" name "\",\"service\":\"" service "\",\"host\":" host ",\"cpu_used_millis\":" #cpu \
    ",\"mem_used_bytes\":1}"

static void check_with(const struct plan_options *with, const char *planner, const char *text,
                       enum plan_status status, const char *in_why)
{
    struct err err = ERR_INIT;
    struct plan_options options = *with;
    AUTO(model) struct model *model = model_decode(text, strlen(text), &err);
    AUTO(plan) struct plan *plan = NULL;
    options.planner = planner;
    if (!model || planner_run(model, NULL, &options, &plan, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(plan->status, status);
    assert_int_equal(plan->n_moves, 0);
    if (!strstr(plan->why, in_why))
        fail_msg("%s: \"%s\" does not say \"%s\"", planner, plan->why, in_why);
}

static void check(const char *planner, const char *text, enum plan_status status,
                  const char *in_why)
{
    check_with(&plan_options_default, planner, text, status, in_why);
}

/* Services s0 … in a chain, or around s0, one instance each, on two hosts that hold them all. */
static struct model *mock_chain(int n, bool star)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    buf_puts(&text, "{\"v\":1,\"hosts\":[");
    for (int h = 0; h < 2; h++)
        buf_printf(&text, "%s{\"name\":\"h%d\",\"cpu_cap_millis\":10000,\"mem_cap_bytes\":10000}",
                   h ? "," : "", h);
    buf_puts(&text, "],\"services\":[");
    for (int i = 0; i < n; i++)
        buf_printf(&text, "%s{\"name\":\"s%d\"}", i ? "," : "", i);
    buf_puts(&text, "],\"instances\":[");
    for (int i = 0; i < n; i++)
        buf_printf(&text,
                   "%s{\"name\":\"i%d\",\"service\":\"s%d\",\"host\":\"h%d\",\"cpu_used_millis\":1,"
                   "\"mem_used_bytes\":1}",
                   i ? "," : "", i, i, i % 2);
    buf_puts(&text, "],\"affinities\":[");
    for (int i = 1; i < n; i++)
        buf_printf(&text, "%s{\"a\":\"s%d\",\"b\":\"s%d\",\"degree\":0.0078125}", i > 1 ? "," : "",
                   star ? 0 : i - 1, i);
    buf_puts(&text, "]}");
    struct model *model = model_decode(text.data, text.size, &err);
    if (!model)
        fail_msg("%s", err.text);
    return model;
}

static void test_plan_when_instance_is_larger_than_hosts_then_infeasible(void **state)
{
    static const char text[] =
        HOSTS SERVICES "\"instances\":[" ONE("a", "A", "null", 101) "," ONE("b", "B", "\"h2\"", 1)
        "]}";
    (void)state;
    check("hubs", text, PLAN_INFEASIBLE,
          "a fits on no host, even beside nothing that could leave (cpu); it needs 101m of cpu, no "
          "host has more than 100m");
    check("oa", text, PLAN_INFEASIBLE, "a fits on no host");
    check("oa-modified", text, PLAN_INFEASIBLE, "a fits on no host");
    check("hba", text, PLAN_OPTIMAL, "HBA");
}

/* Each fits somewhere and all need no more than there is (180 of 200), but no two of the three fit on
 * one host: only trying all placements shows it. */
static void test_plan_when_only_trying_all_shows_it_then_infeasible(void **state)
{
    static const char text[] =
        HOSTS SERVICES "\"instances\":[" ONE("a1", "A", "null", 60) "," ONE("a2", "A", "null", 60)
        "," ONE("a3", "A", "null", 60) "]}";
    static const char *const names[] = {"hubs", "oa", "oa-modified", "auto"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check(names[i], text, PLAN_INFEASIBLE, "no placement");
}

/* All that is needed is compared with all that there is before anything is searched for: of a host that is not
 * schedulable only what is on it counts. */
static void test_plan_when_all_need_more_than_there_is_then_said_without_a_search(void **state)
{
    static const char text[] =
        HOSTS_AND_CLOSED SERVICES "\"instances\":[" ONE("a1", "A", "\"h3\"", 20) ","
        ONE("a2", "A", "null", 70) "," ONE("a3", "A", "null", 70) "," ONE("b", "B", "null", 70) "]}";
    static const char *const names[] = {"auto", "hubs", "oa", "oa-modified"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int g = 0; g < (i < 3 ? 2 : 1); g++) {
            struct err err = ERR_INIT;
            struct plan_options options = plan_options_default;
            AUTO(model) struct model *model = model_decode(text, strlen(text), &err);
            AUTO(plan) struct plan *plan = NULL;
            options.planner = names[i];
            options.granularity = g ? PER_SERVICE : PER_INSTANCE;
            if (!model || planner_run(model, NULL, &options, &plan, &err) < 0)
                fail_msg("%s", err.text);
            assert_int_equal(plan->status, PLAN_INFEASIBLE);
            assert_int_equal(plan->iterations, 0);
            if (!strstr(plan->why, "all instances need 230m of cpu, all hosts have 220m (those not "
                                   "schedulable no more than is on them)"))
                fail_msg("%s: \"%s\"", names[i], plan->why);
        }
}

#define A_AND_B \
    HOSTS SERVICES "\"instances\":[" ONE("a", "A", "\"h1\"", 1) "," ONE("b", "B", "\"h2\"", 1) "],"
#define THREE_OF_A                                                                               \
    HOSTS SERVICES "\"instances\":[" ONE("a1", "A", "\"h1\"", 1) "," ONE("a2", "A", "\"h2\"", 1) \
        "," ONE("a3", "A", "\"h2\"", 1) "],"

/* Every planner gives the same reason: all rules that matter, and what cannot be. */
static void test_plan_when_rules_contradict_then_infeasible(void **state)
{
    static const char *const names[] = {"auto", "hba", "oa", "oa-modified", "hubs"};
    static const char *const cases[][2] = {
        {A_AND_B "\"rules\":[{\"kind\":\"together\",\"services\":[\"A\",\"B\"]},"
                 "{\"kind\":\"apart\",\"services\":[\"B\",\"A\"],\"max_per_host\":1}]}",
         "no placement can keep rules[0] (together, of A and B) and rules[1] (apart, of B and A): A and "
         "B share hosts, each of which may have at most 1 of them"},
        {A_AND_B "\"rules\":[{\"kind\":\"spread\",\"service\":\"A\",\"max_share\":1,\"per\":\"host\"},"
                 "{\"kind\":\"allowed\",\"service\":\"A\",\"hosts\":[\"h1\"]},"
                 "{\"kind\":\"together\",\"services\":[\"A\",\"B\"]},"
                 "{\"kind\":\"allowed\",\"service\":\"B\",\"hosts\":[\"h2\"]}]}",
         "no placement can keep rules[1] (allowed, of A), rules[2] (together, of A and B) and rules[3] "
         "(allowed, of B): A and B have no host in common"},
        {A_AND_B "\"rules\":[{\"kind\":\"allowed\",\"service\":\"A\",\"hosts\":[]}]}",
         "no placement can keep rules[0] (allowed, of A): A has no host left"},
        {A_AND_B "\"rules\":[{\"kind\":\"allowed\",\"service\":\"A\",\"hosts\":[\"h1\"]},"
                 "{\"kind\":\"allowed\",\"service\":\"A\",\"hosts\":[\"h2\"]}]}",
         "no placement can keep rules[0] (allowed, of A) and rules[1] (allowed, of A): A has no host left"},
        {A_AND_B "\"rules\":[{\"kind\":\"apart\",\"services\":[\"A\"],\"max_per_host\":0}]}",
         "no placement can keep rules[0] (apart, of A): there is 1 instance of A, room for 0"},
        {THREE_OF_A "\"rules\":[{\"kind\":\"apart\",\"services\":[\"A\"],\"max_per_host\":1}]}",
         "no placement can keep rules[0] (apart, of A): there are 3 instances of A, room for 2"},
        {THREE_OF_A "\"rules\":[{\"kind\":\"spread\",\"service\":\"A\",\"max_share\":0.4,"
                    "\"per\":\"host\"}]}",
         "no placement can keep rules[0] (spread, of A): there are 3 instances of A, room for 2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
            check(names[i], cases[k][0], PLAN_INFEASIBLE, cases[k][1]);
}

/* Rules that hold without what is nowhere are none of its matter. */
static void test_hba_when_what_is_nowhere_cannot_be_placed_then_left(void **state)
{
    static const char text[] =
        HOSTS SERVICES "\"instances\":[" ONE("a", "A", "null", 1) "," ONE("b", "B", "\"h2\"", 1)
        "],\"rules\":[{\"kind\":\"allowed\",\"service\":\"A\",\"hosts\":[]}]}";
    (void)state;
    check("hba", text, PLAN_OPTIMAL, "HBA");
    check("auto", text, PLAN_INFEASIBLE, "rules[0] (allowed, of A)");
}

static void test_oa_when_what_stays_is_too_much_then_host_and_instance(void **state)
{
    static const char text[] =
        HOSTS SERVICES "\"instances\":[" ONE("a", "A", "\"h1\"", 1) ","
        ONE("b", "B", "\"h2\"", 200) "]}";
    (void)state;
    check("oa", text, PLAN_INFEASIBLE, "host h2 is over its capacity by what cannot leave it (b:");
    check("hubs", text, PLAN_FEASIBLE,
          "; host h2 stays over its capacity (cpu): no host could hold b");
    check("hba", text, PLAN_FEASIBLE, "; host h2 stays over its capacity (cpu)");
}

/* No error to those who leave an over-full host as it is (contract.md 3). */
static void test_plan_when_a_placed_instance_is_too_large_then_named_with_its_host(void **state)
{
    static const char text[] =
        HOSTS SERVICES "\"instances\":[" ONE("a", "A", "\"h1\"", 150) ","
        ONE("b", "B", "\"h2\"", 30) "]}";
    static const char *const leave[] = {"auto", "hubs", "hba"};
    static const char *const mend[] = {"oa", "oa-modified"};
    (void)state;
    for (size_t i = 0; i < sizeof leave / sizeof *leave; i++)
        check(leave[i], text, PLAN_FEASIBLE,
              "; host h1 stays over its capacity (cpu): no host could hold a");
    for (size_t i = 0; i < sizeof mend / sizeof *mend; i++)
        check(mend[i], text, PLAN_INFEASIBLE,
              "a fits on no host, even beside nothing that could leave (cpu); it needs 150m of cpu, no "
              "host has more than 100m; it is on h1");
}

static void test_oa_when_what_stays_is_not_allowed_then_rule_and_instance(void **state)
{
    static const char text[] =
        HOSTS SERVICES "\"instances\":[" ONE("a", "A", "\"h1\"", 1) ","
        ONE("b", "B", "\"h2\"", 1) "],\"rules\":["
        "{\"kind\":\"allowed\",\"service\":\"B\",\"hosts\":[\"h1\"]}]}";
    (void)state;
    check("oa", text, PLAN_INFEASIBLE,
          "rules[0] (allowed, of B) does not hold on h2, which b cannot leave (");
}

static void test_plan_when_a_rule_stays_broken_then_said_and_no_optimum(void **state)
{
    static const char text[] =
        HOSTS SERVICES "\"instances\":[" ONE("a", "A", "\"h1\"", 1) "],\"rules\":["
        "{\"kind\":\"allowed\",\"service\":\"A\",\"hosts\":[]}]}";
    static const char *const names[] = {"auto", "hubs", "hba"};
    struct plan_options options = plan_options_default;
    (void)state;
    options.leave_broken = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_with(&options, names[i], text, PLAN_FEASIBLE, "; still rules[0] (allowed, of A)");
    check_with(&options, "oa", text, PLAN_INFEASIBLE, "rules[0] (allowed, of A): A has no host left");
}

static void test_plan_when_nothing_can_come_together_then_no_gap(void **state)
{
    static const char text[] =
        HOSTS SERVICES "\"instances\":[" ONE("b1", "B", "\"h1\"", 1) ","
        ONE("b2", "B", "\"h2\"", 1) "],\"affinities\":["
        "{\"a\":\"b1\",\"b\":\"b2\",\"degree\":1}]}";
    static const char *const names[] = {"auto", "oa", "oa-modified", "hubs", "hba"};
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = model_decode(text, strlen(text), &err);
    (void)state;
    assert_non_null(model);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct plan_options options = plan_options_default;
        AUTO(plan) struct plan *plan = NULL;
        options.planner = names[i];
        if (planner_run(model, NULL, &options, &plan, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(plan->status, PLAN_OPTIMAL);
        assert_true(plan->has_bound);
        if (plan_gap(plan) != 0)
            fail_msg("%s: gap %g", names[i], plan_gap(plan));
    }
}

static void test_plan_when_rules_and_room_exclude_each_other_then_rule_is_named(void **state)
{
    static const char no_room[] =
        HOSTS SERVICES "\"instances\":[" ONE("a", "A", "\"h1\"", 60) ","
        ONE("b", "B", "\"h2\"", 60) "],\"rules\":["
        "{\"kind\":\"together\",\"services\":[\"A\",\"B\"]}]}";
    static const char nowhere[] =
        HOSTS SERVICES "\"instances\":[" ONE("a", "A", "\"h1\"", 1) "],\"rules\":["
        "{\"kind\":\"allowed\",\"service\":\"A\",\"hosts\":[\"h1\"]},"
        "{\"kind\":\"allowed\",\"service\":\"A\",\"hosts\":[\"h2\"]}]}";
    (void)state;
    check("oa", no_room, PLAN_INFEASIBLE, "rules[0]");
    check("oa-modified", no_room, PLAN_INFEASIBLE, "rules[0]");
    check("oa", nowhere, PLAN_INFEASIBLE, "rules[");
    check("oa-modified", nowhere, PLAN_INFEASIBLE, "rules[");
}

static void test_auto_when_a_host_is_overfull_then_no_error(void **state)
{
    static const char text[] =
        HOSTS SERVICES "\"instances\":[" ONE("a", "A", "\"h1\"", 1) ","
        ONE("b", "B", "\"h2\"", 200) "]}";
    (void)state;
    check("auto", text, PLAN_FEASIBLE, "hubs (a host is over its capacity, ");
}

/* Chains and stars that all fit on one host: the time for patterns, or for the knapsack, decides. */
static void test_auto_when_time_is_short_then_hubs(void **state)
{
    static const struct {
        int n;
        bool star;
        int64_t limit_ms;
        const char *why;
    } cases[] = {{130, false, 1299, "hubs (too many instances for the time"},
                 {130, false, 1300, "oa (time enough for so many instances)"},
                 {100, true, 19, "hubs (too little time to prove the optimum)"},
                 {100, true, 20, "oa (all traffic shares one end)"}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct err err = ERR_INIT;
        struct plan_options options = plan_options_default;
        AUTO(model) struct model *model = mock_chain(cases[k].n, cases[k].star);
        AUTO(plan) struct plan *plan = NULL;
        options.time_limit_ms = cases[k].limit_ms;
        if (planner_run(model, NULL, &options, &plan, &err) < 0)
            fail_msg("%s", err.text);
        if (!cases[k].star) /* the times of stars are too short for a promise */
            assert_int_equal(plan->status, PLAN_OPTIMAL);
        if (!strstr(plan->why, cases[k].why))
            fail_msg("\"%s\" does not say \"%s\"", plan->why, cases[k].why);
    }
}

static void test_plan_when_there_is_no_host_then_infeasible(void **state)
{
    (void)state;
    check("auto", "{\"v\":1,\"hosts\":[]," SERVICES "\"instances\":[" ONE("a", "A", "null", 1) "]}",
          PLAN_INFEASIBLE, "there is no host");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_when_instance_is_larger_than_hosts_then_infeasible),
        cmocka_unit_test(test_plan_when_only_trying_all_shows_it_then_infeasible),
        cmocka_unit_test(test_plan_when_all_need_more_than_there_is_then_said_without_a_search),
        cmocka_unit_test(test_plan_when_rules_contradict_then_infeasible),
        cmocka_unit_test(test_hba_when_what_is_nowhere_cannot_be_placed_then_left),
        cmocka_unit_test(test_oa_when_what_stays_is_too_much_then_host_and_instance),
        cmocka_unit_test(test_plan_when_rules_and_room_exclude_each_other_then_rule_is_named),
        cmocka_unit_test(test_auto_when_a_host_is_overfull_then_no_error),
        cmocka_unit_test(test_auto_when_time_is_short_then_hubs),
        cmocka_unit_test(test_plan_when_a_placed_instance_is_too_large_then_named_with_its_host),
        cmocka_unit_test(test_oa_when_what_stays_is_not_allowed_then_rule_and_instance),
        cmocka_unit_test(test_plan_when_a_rule_stays_broken_then_said_and_no_optimum),
        cmocka_unit_test(test_plan_when_nothing_can_come_together_then_no_gap),
        cmocka_unit_test(test_plan_when_there_is_no_host_then_infeasible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
