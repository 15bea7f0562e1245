/* test_flow.c - rates, balancing and response times against cases computed by hand from the
 * formulas in flow.h. */
#include "adapters/simulated/server/flow.h"
#include "tests/support/sim_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static void near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-9 * (1 + fabs(b)));
}

/* a: 10/s of 20 ms = 200 m; b: 20/s of 10 ms = 200 m; hosts of 1000 m, 1 ms apart. */
#define TWO(B_HOST, EXTRA)                                                                         \
    "name: two\nnetwork: {same_zone: 1ms}\n"                                                       \
    "hosts: [{name: A, cpu: 1, memory: 1Gi}, {name: B, cpu: 1, memory: 1Gi}]\n"                    \
    "services:\n"                                                                                  \
    "  - {name: a, hosts: [A], work: 20ms, entry_rate: 10}\n"                                      \
    "  - {name: b, hosts: [" B_HOST "], work: 10ms" EXTRA "}\n"                                    \
    "calls: [{from: a, to: b, per_request: 2}]\n"

static double entry_ms(const char *yaml)
{
    struct fixture f = fixture_open(yaml, NULL);
    const struct cluster *c = sim_cluster(f.sim);
    AUTO(flow) struct flow *flow = flow_new(c, c->last_ms);
    double ms = flow_entry_ms(flow, c, c->last_ms, -1);
    fixture_close(&f);
    return ms;
}

static void test_slowdown_when_below_and_above_the_knee_then_is_continuous_and_bounded(void **state)
{
    (void)state;
    static const struct {
        double rho;
        int64_t cpu;
        double f;
    } rows[] = {{0, 1000, 1},        {0.5, 1000, 2},        {0.75, 1000, 4},
                {0.95, 1000, 20},    {1.0, 1000, 40},       {2.0, 1000, 440},
                {4.0, 1000, 1240},   {9.0, 1000, 1240},     {0.5, 250, 2},
                {0.5, 2000, 4 / 3.}, {0.5, 4000, 16 / 15.}, {0.9, 4000, 1 / 0.3439}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        near(flow_slowdown(rows[i].rho, rows[i].cpu), rows[i].f);
}

static void test_response_when_apart_then_adds_round_trips(void **state)
{
    (void)state;
    /* ρ 0.2 on both: 25 + 2 · (1 + 12.5) */
    near(entry_ms(TWO("B", "")), 52);
}

static void test_response_when_together_then_shares_the_host(void **state)
{
    (void)state;
    /* ρ 0.4: (20 + 2 · 10) / 0.6 */
    near(entry_ms(TWO("A", "")), 40 / 0.6);
}

static void test_response_when_delay_then_load_does_not_stretch_it(void **state)
{
    (void)state;
    near(entry_ms(TWO("B", ", delay: 3ms")), 58);
}

static void test_response_when_nobody_answers_then_calls_fail(void **state)
{
    (void)state;
    /* b has no replica: 20 / (1 - 0.2) + 2 · 1000 */
    const char *yaml = "name: x\nhosts: [{name: A, cpu: 1, memory: 1Gi}]\n"
                       "services:\n"
                       "  - {name: a, hosts: [A], work: 20ms, entry_rate: 10}\n"
                       "  - {name: b, replicas: 0}\n"
                       "calls: [{from: a, to: b, per_request: 2}]\n";
    near(entry_ms(yaml), 2025);
}

static void test_response_when_rate_is_absolute_then_equals_per_request(void **state)
{
    (void)state;
    const char *yaml = "name: two\nnetwork: {same_zone: 1ms}\n"
                       "hosts: [{name: A, cpu: 1, memory: 1Gi}, {name: B, cpu: 1, memory: 1Gi}]\n"
                       "services:\n"
                       "  - {name: a, hosts: [A], work: 20ms, entry_rate: 10}\n"
                       "  - {name: b, hosts: [B], work: 10ms}\n"
                       "calls: [{from: a, to: b, rate: 20}]\n";
    near(entry_ms(yaml), 52);
}

static double edge_rate(const struct flow *flow, const struct cluster *c, int src, const char *host,
                        int nth)
{
    for (size_t i = 0; i < flow->n_edges; i++) {
        const struct flow_edge *e = &flow->edges[i];
        const char *on = c->scenario->hosts[c->replicas[e->dst].host].name;
        if (e->src == src && !strcmp(on, host) && nth-- == 0)
            return e->per_s;
    }
    return 0;
}

static void test_balancing_when_replicas_differ_then_keeps_min_share_local(void **state)
{
    (void)state;
    /* a on A, B; b on A, A, C; 12 calls a second. A keeps min(1/2, 2/3) = 6/s, 3 to each replica;
     * B's 6/s find 1/6 of b open on A (2/s, 1 each) and 1/3 on C (4/s). */
    struct fixture f =
        fixture_open("name: three\nhosts: [{name: A, cpu: 1, memory: 1Gi}, "
                     "{name: B, cpu: 1, memory: 1Gi}, {name: C, cpu: 1, memory: 1Gi}]\n"
                     "services:\n"
                     "  - {name: a, hosts: [A, B], entry_rate: 12}\n"
                     "  - {name: b, hosts: [A, A, C]}\n"
                     "calls: [{from: a, to: b, per_request: 1}]\n",
                     NULL);
    const struct cluster *c = sim_cluster(f.sim);
    AUTO(flow) struct flow *flow = flow_new(c, c->last_ms);
    near(edge_rate(flow, c, 0, "A", 0), 3);
    near(edge_rate(flow, c, 0, "A", 1), 3);
    near(edge_rate(flow, c, 0, "C", 0), 0);
    near(edge_rate(flow, c, 1, "A", 0), 1);
    near(edge_rate(flow, c, 1, "A", 1), 1);
    near(edge_rate(flow, c, 1, "C", 0), 4);
    assert_int_equal(flow->n_edges, 5);
    fixture_close(&f);
}

static void test_usage_when_host_is_overloaded_then_everybody_gets_a_share(void **state)
{
    (void)state;
    /* 30/s · 40 ms = 1200 m and a base of 300 m on 1000 m: shares of 2/3 */
    struct fixture f = fixture_open("name: hot\nhosts: [{name: A, cpu: 1, memory: 1Gi}]\n"
                                    "services:\n"
                                    "  - {name: a, hosts: [A], work: 40ms, entry_rate: 30}\n"
                                    "  - {name: b, hosts: [A], cpu_base: 300m}\n",
                                    NULL);
    const struct cluster *c = sim_cluster(f.sim);
    AUTO(flow) struct flow *flow = flow_new(c, c->last_ms);
    near(flow->host_demand[0], 1500);
    near(flow->cpu_millis[0], 800);
    near(flow->cpu_millis[1], 200);
    near(flow_entry_ms(flow, c, c->last_ms, 0), 40 * (20 + 400 * (1.5 - 0.95)));
    fixture_close(&f);
}

static void test_load_when_changed_then_scales_entries_and_absolute_rates(void **state)
{
    (void)state;
    struct fixture f = fixture_open("name: load\nhosts: [{name: A, cpu: 1, memory: 1Gi}]\n"
                                    "services:\n"
                                    "  - {name: a, hosts: [A], entry_rate: 10}\n"
                                    "  - {name: b, hosts: [A]}\n"
                                    "  - {name: c, hosts: [A]}\n"
                                    "calls: [{from: a, to: b, per_request: 2}, "
                                    "{from: a, to: c, rate: 5}]\n"
                                    "faults: [{kind: load, factor: 3, at: 1s}]\n",
                                    NULL);
    const struct cluster *c = sim_cluster(f.sim);
    fixture_run(&f, 2000);
    AUTO(flow) struct flow *before = flow_new(c, c->last_ms - 1500);
    AUTO(flow) struct flow *after = flow_new(c, c->last_ms);
    near(before->arrivals[1], 20);
    near(before->arrivals[2], 5);
    near(after->arrivals[0], 30);
    near(after->arrivals[1], 60);
    near(after->arrivals[2], 15);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_slowdown_when_below_and_above_the_knee_then_is_continuous_and_bounded),
        cmocka_unit_test(test_response_when_apart_then_adds_round_trips),
        cmocka_unit_test(test_response_when_together_then_shares_the_host),
        cmocka_unit_test(test_response_when_delay_then_load_does_not_stretch_it),
        cmocka_unit_test(test_response_when_nobody_answers_then_calls_fail),
        cmocka_unit_test(test_response_when_rate_is_absolute_then_equals_per_request),
        cmocka_unit_test(test_balancing_when_replicas_differ_then_keeps_min_share_local),
        cmocka_unit_test(test_usage_when_host_is_overloaded_then_everybody_gets_a_share),
        cmocka_unit_test(test_load_when_changed_then_scales_entries_and_absolute_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
