/* test_scenario.c - scenario files: what is refused and how that is said, units, latencies, the
 * generated topologies, and that the shipped scenarios are sound. */
#include "adapters/simulated/server/units.h"
#include "tests/support/sim_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static void test_parse_when_wrong_then_names_line_and_thing(void **state)
{
    (void)state;
#define HOSTS "name: x\nhosts:\n  - {name: A, cpu: 1, memory: 1Gi}\n"
    static const struct {
        const char *yaml, *says;
    } rows[] = {
        {"name: x\nhostss: []\n", "t.yaml:2: hostss: unknown key; did you mean \"hosts\"?"},
        {"name: x\nhosts:\n  - {name: A, cpu: 1x, memory: 1Gi}\n",
         "t.yaml:3: hosts[0].cpu: must be CPU like 250m or 1.5"},
        {"name: x\nhosts:\n  - {name: A, cpu: 010, memory: 1Gi}\n",
         "t.yaml:3: hosts[0].cpu: must not begin with zeros"},
        {HOSTS "  - {name: A, cpu: 1, memory: 1Gi}\n", "t.yaml:4: hosts[1].name: is there already"},
        {HOSTS "services:\n  - {name: a, hosts: [B]}\n",
         "t.yaml:5: services[0].hosts: there is no host B"},
        {HOSTS "services:\n  - {name: a, work: fast}\n",
         "t.yaml:5: services[0].work: must be a time like 300us, 1.5ms or 10s"},
        {HOSTS "services:\n  - {name: a}\ncalls:\n  - {from: a, to: b, rate: 1}\n",
         "t.yaml:7: calls[0].to: there is no service b"},
        {HOSTS "services: [{name: a}, {name: b}]\ncalls:\n  - {from: a, to: b}\n",
         "t.yaml:6: calls[0]: give either per_request or rate (calls a second)"},
        {HOSTS "services: [{name: a}]\ncalls: [{from: a, to: a, rate: 1}]\n",
         "calls: a calls itself"},
        {HOSTS "services: [{name: a}, {name: b}, {name: c}]\n"
               "calls: [{from: a, to: b, rate: 1}, {from: b, to: c, rate: 1}, "
               "{from: c, to: b, rate: 1}]\n",
         "calls: a cycle has no response time: b > c > b"},
        {HOSTS "services: [{name: a}]\nfaults:\n  - {kind: host-dwon}\n",
         "t.yaml:6: faults[0].kind: unknown kind; did you mean host-down"},
        {HOSTS "services: [{name: a}]\nfaults: [{kind: host-down}]\n",
         "faults[0]: host-down needs a host"},
        {HOSTS "services: [{name: a, hosts: [A], memory_request: 2Gi}]\n",
         "services[0] a: no room left on A at the start"},
        {HOSTS, "a scenario needs at least one host and one service"},
        {HOSTS "speed: 0\nservices: [{name: a}]\n", "t.yaml:4: speed: must be from 0.001"},
        {"name: x\ngenerate: {topology: ring, services: 3, messages: 5}\n",
         "t.yaml:2: generate.topology: must be star or p2p"},
        {"name: &n x\nhosts: []\n", "t.yaml:1:"},
        {"name: x\n---\nname: y\n", "t.yaml:2:"},
    };
#undef HOSTS
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        struct scenario *s = scenario_parse(rows[i].yaml, strlen(rows[i].yaml), "t.yaml", -1, &err);
        assert_null(s);
        assert_int_equal(err.kind, ERR_CONFIG);
        if (!strstr(err.text, rows[i].says))
            fail_msg("row %zu: %s", i, err.text);
    }
}

static void test_units_when_written_by_people_then_read_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *(*read)(const char *text, int64_t *out);
        const char *text;
        int64_t value; /* -1: refused */
    } rows[] = {
        {unit_cpu, "250m", 250},
        {unit_cpu, "2", 2000},
        {unit_cpu, "1.5", 1500},
        {unit_cpu, "0.0001", 1},
        {unit_cpu, "0", 0},
        {unit_cpu, "", -1},
        {unit_cpu, "1.", -1},
        {unit_cpu, ".5", -1},
        {unit_cpu, "-1", -1},
        {unit_cpu, "1 ", -1},
        {unit_cpu, "1e3", -1},
        {unit_cpu, "nan", -1},
        {unit_size, "256Mi", 1 << 28},
        {unit_size, "1.5Ki", 1536},
        {unit_size, "8G", 8000000000},
        {unit_size, "1024", 1024},
        {unit_size, "1K", -1},
        {unit_size, "999999Ti", -1},
        {unit_micros, "300us", 300},
        {unit_micros, "1.5ms", 1500},
        {unit_micros, "10s", 10000000},
        {unit_micros, "0", 0},
        {unit_micros, "5", -1},
        {unit_micros, "01ms", -1},
        {unit_size, "1234567890123456", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t value = -7;
        const char *problem = rows[i].read(rows[i].text, &value);
        assert_int_equal(problem != NULL, rows[i].value < 0);
        assert_int_equal(value, problem ? -7 : rows[i].value);
    }
}

static void test_rtt_when_several_rules_fit_then_the_nearest_wins(void **state)
{
    (void)state;
    struct scenario *s =
        fixture_scenario("name: net\nhosts:\n"
                         "  - {name: A, cpu: 1, memory: 1Gi, zone: x, region: r}\n"
                         "  - {name: B, cpu: 1, memory: 1Gi, zone: x, region: r}\n"
                         "  - {name: C, cpu: 1, memory: 1Gi, zone: y, region: r}\n"
                         "  - {name: D, cpu: 1, memory: 1Gi, zone: z, region: r}\n"
                         "  - {name: E, cpu: 1, memory: 1Gi, zone: q, region: s}\n"
                         "  - {name: F, cpu: 1, memory: 1Gi, zone: q, region: t}\n"
                         "services: [{name: a}]\n"
                         "network:\n  same_zone: 100us\n  same_region: 1ms\n  other_region: 20ms\n"
                         "  hosts: [{a: B, b: A, rtt: 7us}]\n  zones: [{a: y, b: z, rtt: 3ms}]\n"
                         "  regions: [{a: s, b: r, rtt: 50ms}]\n");
    static const struct {
        int a, b;
        int64_t us;
    } rows[] = {{0, 0, 0},    {0, 1, 7},     {1, 0, 7},     {0, 2, 1000}, {2, 3, 3000},
                {3, 2, 3000}, {0, 4, 50000}, {4, 5, 20000}, {0, 5, 20000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(scenario_rtt_us(s, rows[i].a, rows[i].b), rows[i].us);
    scenario_free(s);
}

static struct scenario *generated(const char *topology, int services, int messages, int seed)
{
    AUTO_FREE char *yaml = mem_printf("name: g\ngenerate: {topology: %s, services: %d, "
                                      "messages: %d, per: 10s, seed: %d}\n",
                                      topology, services, messages, seed);
    return fixture_scenario(yaml);
}

static void test_generate_when_paper_sizes_then_edges_and_draws_are_the_papers(void **state)
{
    (void)state;
    static const struct {
        const char *topology;
        int services, messages;
        size_t edges;
    } rows[] = {{"star", 10, 1000, 9},       {"star", 1000, 100000, 999},
                {"p2p", 10, 1000, 16},       {"p2p", 200, 10, 396},
                {"p2p", 1000, 100000, 1996}, {"star", 1, 10, 0},
                {"p2p", 2, 10, 1},           {"p2p", 3, 10, 2}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct scenario *s = generated(rows[i].topology, rows[i].services, rows[i].messages, 3);
        double messages = 0;
        assert_int_equal(s->n_calls, rows[i].edges);
        assert_int_equal(s->n_services, rows[i].services);
        assert_int_equal(s->n_hosts, rows[i].services);
        for (size_t j = 0; j < s->n_calls; j++)
            messages += s->calls[j].per_s * 10;
        if (rows[i].edges)
            assert_true(messages > rows[i].messages - 0.5 && messages < rows[i].messages + 0.5);
        struct err err = ERR_INIT;
        AUTO(sim) struct sim *sim = sim_open(s, NULL, FIXTURE_WALL, 0, &err);
        assert_non_null(sim);
        for (size_t j = 0; j < s->n_services; j++) {
            assert_in_range(s->services[j].mem_bytes >> 20, 10, 500);
            assert_int_equal(s->hosts[j].cpu_millis, 4000);
        }
        sim_free(steal(sim));
        scenario_free(s);
    }
}

static void test_generate_when_seed_differs_then_application_differs(void **state)
{
    (void)state;
    struct scenario *a = generated("p2p", 50, 1000, 1), *b = generated("p2p", 50, 1000, 1),
                    *c = generated("p2p", 50, 1000, 2);
    assert_true(a->digest == b->digest);
    assert_true(a->digest != c->digest);
    scenario_free(a);
    scenario_free(b);
    scenario_free(c);
}

static void test_shipped_scenarios_when_read_then_are_sound(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        size_t services;
    } rows[] = {{"sock-shop", 14},
                {"online-boutique", 11},
                {"mock-star", 100},
                {"mock-p2p", 100},
                {"mock-busy", 40}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        AUTO_FREE char *path =
            mem_printf("%s/etc/scenarios/%s.yaml", REMAP_SOURCE_DIR, rows[i].file);
        struct scenario *s = scenario_read(path, -1, &err);
        if (!s)
            fail_msg("%s", err.text);
        assert_int_equal(s->n_services, rows[i].services);
        AUTO(sim) struct sim *sim = sim_open(s, NULL, FIXTURE_WALL, 0, &err);
        const struct cluster *c = sim_cluster(sim);
        for (size_t j = 0; j < c->n_live; j++) /* nothing pending, everything ready */
            assert_int_equal(c->replicas[c->live[j]].state, REPLICA_READY);
        sim_free(steal(sim));
        scenario_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_when_wrong_then_names_line_and_thing),
        cmocka_unit_test(test_units_when_written_by_people_then_read_exactly),
        cmocka_unit_test(test_rtt_when_several_rules_fit_then_the_nearest_wins),
        cmocka_unit_test(test_generate_when_paper_sizes_then_edges_and_draws_are_the_papers),
        cmocka_unit_test(test_generate_when_seed_differs_then_application_differs),
        cmocka_unit_test(test_shipped_scenarios_when_read_then_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
