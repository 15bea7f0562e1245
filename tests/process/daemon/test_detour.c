/* test_detour.c - a swap that no order of moves makes possible, on a real daemon and an embedded
 * cluster: two full hosts, and a third one with room for one replica (contract.md 3 `unordered`).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model/base/mem.h"
#include "tests/process/daemon/rig.h"

/* Each of n-1 and n-2 has room for a data store and one of the two callers, each caller's store is
 * on the other host. `spare` is what n-3 offers. */
static char *swap_scenario(const char *spare)
{
    return mem_printf(
        "name: swap\n"
        "hosts:\n"
        "  - {name: n-1, cpu: 4, memory: 1000Mi}\n"
        "  - {name: n-2, cpu: 4, memory: 1000Mi}\n"
        "  - {name: n-3, cpu: 4, memory: %s}\n"
        "network: {same_zone: 2ms}\n"
        "services:\n"
        "  - {name: a, hosts: [n-1], work: 1ms, memory: 600Mi, start_up: 5s, entry_rate: 50}\n"
        "  - {name: b, hosts: [n-2], work: 1ms, memory: 600Mi, start_up: 5s, entry_rate: 50}\n"
        "  - {name: a-db, hosts: [n-2], work: 1ms, memory: 200Mi, stateful: true}\n"
        "  - {name: b-db, hosts: [n-1], work: 1ms, memory: 200Mi, stateful: true}\n"
        "calls:\n"
        "  - {from: a, to: a-db, per_request: 2, bytes: 1Ki}\n"
        "  - {from: b, to: b-db, per_request: 2, bytes: 1Ki}\n",
        spare);
}

static void swap_run(struct rig *rig, const char *spare)
{
    AUTO_FREE char *scenario = swap_scenario(spare);
    AUTO_BUF struct buf answer = BUF_INIT;
    rig_open_scenario(rig, scenario, 50,
                      "    planner: auto\n    mode: act\n    max_parallel: 1\n    ready_timeout: "
                      "60s\n    settle: 5s\n"
                      "    worse_tolerance: 9\n",
                      "");
    rig_start(rig, true);
    assert_int_equal(rig_ask(rig, "{\"v\":1,\"command\":\"trigger\",\"app\":\"rig\"}", &answer), 0);
    rig_until(rig, "SELECT ended_ms IS NOT NULL FROM v_cycles WHERE cycle_id = 1");
}

static void is_text(struct rig *rig, const char *sql, const char *expected)
{
    AUTO_FREE char *text = rig_text(rig, sql);
    assert_string_equal(text, expected);
}

static void test_swap_when_a_third_host_is_free_then_over_it(void **state)
{
    (void)state;
    struct rig rig;
    swap_run(&rig, "1000Mi");
    is_text(&rig, "SELECT state FROM v_cycles WHERE cycle_id = 1", "done");
    is_text(&rig, "SELECT unordered FROM v_plans WHERE cycle_id = 1", "1");
    is_text(
        &rig,
        "SELECT group_concat(t, '; ') FROM (SELECT target || ' ' || state || ' ' || detour AS t "
        "FROM v_moves ORDER BY intended_ms, seq)",
        "n-3 applied 1; n-1 applied 0; n-2 applied 0");
    rig_check(&rig);
    rig_stop(&rig);
    rig_close(&rig);
}

static void test_swap_when_no_host_is_free_then_nothing_moves(void **state)
{
    (void)state;
    struct rig rig;
    swap_run(&rig, "100Mi");
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE state = 'applied'"), 0);
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE detour = 1"), 0);
    is_text(&rig, "SELECT group_concat(DISTINCT state) FROM v_moves", "discarded");
    rig_check(&rig);
    rig_stop(&rig);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_swap_when_a_third_host_is_free_then_over_it),
        cmocka_unit_test(test_swap_when_no_host_is_free_then_nothing_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
