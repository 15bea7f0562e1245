/* test_why.c - small models of which anybody can say why A and B stay apart: what `discarded` says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "model/model_json.h"
#include "planner/planner.h"

#define HOST(name, more) \
    "{\"name\":\"" name "\",\"cpu_cap_millis\":1000,\"mem_cap_bytes\":1000" more "}"
#define TWO_HOSTS HOST("h1", "") "," HOST("h2", "")
#define ONE(name, service, host, cpu, more)                                                       \
    "{\"name\":\"" name "\",\"service\":\"" service "\",\"host\":\"" host                         \
    "\",\"cpu_used_millis\":" #cpu ",\"mem_used_bytes\":100" more "}"
#define MODEL(hosts, instances, rest)                                                             \
    "{\"v\":1,\"hosts\":[" hosts "],\"services\":[{\"name\":\"A\"},{\"name\":\"B\"},"             \
    "{\"name\":\"C\"},{\"name\":\"S\",\"stateful\":true}],\"instances\":[" instances "]," rest "}"
#define A_B(rest) "\"affinities\":[{\"a\":\"A\",\"b\":\"B\",\"degree\":1}]" rest
#define APART_HOSTS(cpu) ONE("a", "A", "h1", cpu, "") "," ONE("b", "B", "h2", cpu, "")

struct given {
    const char *text, *instance, *service; /* the reasons at either granularity */
    int64_t max_moves;                     /* -1: no limit */
    double min_gain;
};

static void check(const struct given *given, enum granularity granularity, const char *why)
{
    struct err err = ERR_INIT;
    struct plan_options options = plan_options_default;
    AUTO(model) struct model *model = model_decode(given->text, strlen(given->text), &err);
    AUTO(plan) struct plan *plan = NULL;
    options.planner = "oa";
    options.granularity = granularity;
    options.max_moves = given->max_moves;
    options.min_gain = given->min_gain;
    if (!model || planner_run(model, NULL, &options, &plan, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(plan->n_discarded, 1);
    assert_string_equal(plan->discarded[0].why, why);
}

static void test_discarded_when_two_stay_apart_then_what_is_in_the_way(void **state)
{
    static const struct given cases[] = {
        {MODEL(TWO_HOSTS, APART_HOSTS(600), A_B("")),
         "b to h1: cpu (needs 600m, 400m free); a to h2: cpu (needs 600m, 400m free)",
         "B to the hosts of A: host h1: cpu (needs 600m, 400m free); "
         "A to the hosts of B: host h2: cpu (needs 600m, 400m free)", -1, 0},
        {MODEL(TWO_HOSTS, ONE("a", "A", "h1", 1, ",\"mem_request_bytes\":600") ","
                          ONE("b", "B", "h2", 1, ",\"mem_request_bytes\":600"), A_B("")),
         "b to h1: memory requests (needs 600 bytes, 400 bytes free); "
         "a to h2: memory requests (needs 600 bytes, 400 bytes free)",
         "B to the hosts of A: host h1: memory requests (needs 600 bytes, 400 bytes free); "
         "A to the hosts of B: host h2: memory requests (needs 600 bytes, 400 bytes free)", -1, 0},
        {MODEL(HOST("h1", ",\"pods_cap\":1") "," HOST("h2", ",\"pods_cap\":3,\"pods_used\":2"),
               APART_HOSTS(1), A_B("")),
         "b to h1: pod slots (needs 1, 0 free); a to h2: pod slots (needs 1, 0 free)",
         "B to the hosts of A: host h1: pod slots (needs 1, 0 free); "
         "A to the hosts of B: host h2: pod slots (needs 1, 0 free)", -1, 0},
        {MODEL(HOST("h1", ",\"cpu_used_millis\":850") "," HOST("h2", ",\"reserve_cpu_millis\":850"),
               APART_HOSTS(100), A_B("")),
         "b to h1: cpu (needs 100m, 50m free); a to h2: cpu (needs 100m, 50m free)",
         "B to the hosts of A: host h1: cpu (needs 100m, 50m free); "
         "A to the hosts of B: host h2: cpu (needs 100m, 50m free)", -1, 0},
        {MODEL(TWO_HOSTS, APART_HOSTS(1), A_B(",\"rules\":[{\"kind\":\"apart\",\"services\":"
               "[\"A\",\"B\"],\"max_per_host\":1}]")),
         "b to h1: rule apart (rules[0], of A and others); a to h2: rule apart (rules[0], of A and "
         "others)",
         "B to the hosts of A: rules[0] (apart, of A and others) would not hold on h1; "
         "A to the hosts of B: rules[0] (apart, of A and others) would not hold on h2", -1, 0},
        {MODEL(TWO_HOSTS, APART_HOSTS(1), A_B(",\"rules\":[{\"kind\":\"allowed\",\"service\":\"C\","
               "\"hosts\":[]},{\"kind\":\"allowed\",\"service\":\"A\",\"hosts\":[\"h1\"]},"
               "{\"kind\":\"allowed\",\"service\":\"B\",\"hosts\":[\"h2\"]}]")),
         "b to h1: rule allowed (rules[2], of B); a to h2: rule allowed (rules[1], of A)",
         "B to the hosts of A: rules[2] (allowed, of B) would not hold on h1; "
         "A to the hosts of B: rules[1] (allowed, of A) would not hold on h2", -1, 0},
        {MODEL(TWO_HOSTS, ONE("a", "A", "h1", 1, ",\"pinned_why\":\"its volume is here\"") ","
               ONE("s", "S", "h2", 1, ""),
               "\"affinities\":[{\"a\":\"A\",\"b\":\"S\",\"degree\":1}]"),
         "s to h1: stateful; a to h2: its volume is here",
         "S to the hosts of A: stateful; A to the hosts of S: its volume is here", -1, 0},
        {MODEL(HOST("h1", ",\"schedulable\":false") "," HOST("h2", ""),
               ONE("a", "A", "h1", 100, "") "," ONE("b", "B", "h2", 950, ""), A_B("")),
         "b to h1: the host is not schedulable; a to h2: cpu (needs 100m, 50m free)",
         "B to the hosts of A: the host is not schedulable; "
         "A to the hosts of B: host h2: cpu (needs 100m, 50m free)", -1, 0},
        {MODEL(TWO_HOSTS, APART_HOSTS(1), A_B("")),
         "b to h1: no moves are allowed; a to h2: no moves are allowed",
         "B to the hosts of A: takes 1 moves, of 0 allowed 0 are left; "
         "A to the hosts of B: takes 1 moves, of 0 allowed 0 are left", 0, 0},
        {MODEL(TWO_HOSTS, APART_HOSTS(500) "," ONE("c", "C", "h1", 400, ""),
               "\"affinities\":[{\"a\":\"A\",\"b\":\"B\",\"degree\":0.25},"
               "{\"a\":\"A\",\"b\":\"C\",\"degree\":0.75}]"),
         "b to h1: cpu (needs 500m, 100m free); a to h2: changes the total by -0.5",
         "B to the hosts of A: host h1: cpu (needs 500m, 100m free); "
         "A to the hosts of B: changes the total by -0.5", -1, 0},
        {MODEL(TWO_HOSTS, APART_HOSTS(1) "," ONE("c", "C", "h1", 1, ""),
               "\"affinities\":[{\"a\":\"A\",\"b\":\"B\",\"degree\":0.25},"
               "{\"a\":\"A\",\"b\":\"C\",\"degree\":0.75}]"),
         "b to h1: changes the total by 0.25, less than the restart costs; "
         "a to h2: changes the total by -0.5",
         "B to the hosts of A: changes the total by 0.25, less than the restarts cost; "
         "A to the hosts of B: changes the total by -0.5", -1, 0.5},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        check(&cases[k], PER_INSTANCE, cases[k].instance);
        check(&cases[k], PER_SERVICE, cases[k].service);
    }
}

/* Failure domains: a1 has its b, so that it is a2 and b2 that would have to meet. */
static void test_discarded_when_replicas_have_no_partner_then_of_those(void **state)
{
    static const struct given given = {
        MODEL(HOST("h1", ",\"zone\":\"z1\"") "," HOST("h2", ",\"zone\":\"z2\"") ","
              HOST("h3", ",\"zone\":\"z3\""),
              ONE("a1", "A", "h1", 1, "") "," ONE("b1", "B", "h1", 1, "") ","
              ONE("a2", "A", "h2", 1, "") "," ONE("b2", "B", "h3", 1, ""),
              A_B(",\"rules\":[{\"kind\":\"spread\",\"service\":\"A\",\"max_share\":0.5,"
                  "\"per\":\"zone\"},{\"kind\":\"allowed\",\"service\":\"A\",\"hosts\":[\"h1\",\"h2\"]},"
                  "{\"kind\":\"allowed\",\"service\":\"B\",\"hosts\":[\"h1\",\"h3\"]},"
                  "{\"kind\":\"spread\",\"service\":\"B\",\"max_share\":0.5,\"per\":\"zone\"}]")),
        "b2 to h2: rule allowed (rules[2], of B); a2 to h3: rule allowed (rules[1], of A)", NULL, -1, 0};
    (void)state;
    check(&given, PER_INSTANCE, given.instance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_discarded_when_two_stay_apart_then_what_is_in_the_way),
        cmocka_unit_test(test_discarded_when_replicas_have_no_partner_then_of_those),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
