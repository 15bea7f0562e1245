/* test_plan.c - order of moves, rings, gains, the promises of a plan, applying it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/small.h"

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-12)

/* GOLDEN 1 of algorithms.md 6.2. */
static struct model *golden(void)
{
    struct model *model = model_new();

    small_host(model, "H1", 1000);
    small_host(model, "H2", 1000);
    small_host(model, "H3", 1000);
    small_host(model, "H4", 1000);
    small_instance(model, "A", "A", "H1", 300, 200);
    small_instance(model, "B", "B", "H2", 400, 300);
    small_instance(model, "C", "C", "H3", 500, 300);
    small_instance(model, "D", "D", "H4", 200, 100);
    small_affinity(model, "A", "B", 0.4);
    small_affinity(model, "B", "C", 0.3);
    small_affinity(model, "A", "D", 0.2);
    small_affinity(model, "C", "D", 0.1);
    return model;
}

static struct plan *fill(const struct model *model, enum granularity granularity,
                         const int *placement)
{
    struct plan *plan = plan_new();
    struct err err = ERR_INIT;

    plan->granularity = granularity;
    if (plan_fill(plan, model, model->affinities, model->n_affinities, placement, &err) < 0)
        fprintf(stderr, "%s\n", err.text);
    return plan;
}

static void test_plan_fill_when_golden_measures_it(void **state)
{
    AUTO(model) struct model *model = golden();
    static const int placement[] = {0, 0, 2, 0};
    AUTO(plan) struct plan *plan = fill(model, PER_INSTANCE, placement);
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(plan->n_moves, 2);
    assert_int_equal(plan->moves[0].instance, 1);
    assert_int_equal(plan->moves[0].seq, 1);
    assert_near(plan->moves[0].gain, 0.4);
    assert_near(plan->moves[1].gain, 0.2);
    assert_near(plan->affinity_before, 0);
    assert_near(plan->affinity_after, 0.6);
    assert_int_equal(plan->hosts_before, 4);
    assert_int_equal(plan->hosts_after, 2);
    assert_int_equal(plan->restarts, 2);
    assert_true(plan->coverage < 0 && !plan->unordered);
    assert_int_equal(plan_check(plan, model, false, &err), 0);
    plan->has_bound = true;
    plan->affinity_bound = 0.75;
    assert_near(plan_gap(plan), 0.2);
}

/* "a" fits at once, but then "c" has no room beside "b", nor "b" beside "c". */
static void test_plan_fill_when_first_possible_move_blocks_then_other_order(void **state)
{
    AUTO(model) struct model *model = model_new();
    static const int placement[] = {0, 1, 0, 1};
    struct err err = ERR_INIT;

    (void)state;
    small_host(model, "H1", 11);
    small_host(model, "H2", 10);
    small_host(model, "H3", 10);
    small_instance(model, "a", "A", "H3", 4, 0);
    small_instance(model, "b", "B", "H1", 5, 0);
    small_instance(model, "c", "C", "H2", 6, 0);
    small_instance(model, "d", "D", "H2", 3, 0);
    AUTO(plan) struct plan *plan = fill(model, PER_INSTANCE, placement);
    assert_false(plan->unordered);
    assert_int_equal(plan->n_cycles, 0);
    assert_int_equal(plan->n_moves, 3);
    assert_int_equal(plan->moves[0].instance, 2);
    assert_int_equal(plan->moves[0].seq, 1);
    assert_int_equal(plan_check(plan, model, false, &err), 0);
}

static void test_plan_fill_when_one_must_leave_first_orders_so(void **state)
{
    AUTO(model) struct model *model = model_new();
    static const int placement[] = {1, 2};

    (void)state;
    small_host(model, "h0", 100);
    small_host(model, "h1", 100);
    small_host(model, "h2", 100);
    small_instance(model, "a", "a", "h0", 80, 1);
    small_instance(model, "b", "b", "h1", 80, 1);
    AUTO(plan) struct plan *plan = fill(model, PER_INSTANCE, placement);
    assert_int_equal(plan->moves[0].instance, 1);
    assert_int_equal(plan->moves[1].instance, 0);
    assert_false(plan->unordered);
}

static void test_plan_fill_when_hosts_are_full_names_the_ring(void **state)
{
    AUTO(model) struct model *model = model_new();
    struct err err = ERR_INIT;
    static const int placement[] = {1, 2, 0, 0, 3};

    (void)state;
    small_host(model, "h0", 100);
    small_host(model, "h1", 100);
    small_host(model, "h2", 100);
    small_host(model, "h3", 100);
    small_instance(model, "a", "a", "h0", 80, 1);
    small_instance(model, "b", "b", "h1", 80, 1);
    small_instance(model, "c", "c", "h2", 80, 1);
    small_instance(model, "d", "d", "h3", 10, 1);
    small_instance(model, "e", "e", "h0", 10, 1);
    AUTO(plan) struct plan *plan = fill(model, PER_INSTANCE, placement);
    assert_true(plan->unordered);
    assert_int_equal(plan->n_moves, 5);
    assert_int_equal(plan->n_cycles, 1);
    assert_int_equal(plan->cycles[0][0], 3); /* d and e go without it */
    assert_int_equal(plan->cycles[0][1], 4);
    assert_int_equal(plan->cycles[0][2], 5);
    assert_int_equal(plan->cycles[0][3], 0);
    assert_int_equal(plan_check(plan, model, false, &err), 0);
    plan->unordered = false;
    assert_int_equal(plan_check(plan, model, false, &err), -1);
    assert_string_equal(err.text, "move 3 (a): no room for it (cpu) on host h1");
}

static void test_plan_fill_when_target_is_impossible_is_infeasible(void **state)
{
    AUTO(model) struct model *model = golden();
    AUTO(plan) struct plan *plan = plan_new();
    struct err err = ERR_INIT;
    static const int crowded[] = {0, 0, 0, 3}, lost[] = {0, 1, 2, -1}, closed[] = {0, 0, 2, 3};

    (void)state;
    assert_int_equal(plan_fill(plan, model, NULL, 0, crowded, &err), -1);
    assert_int_equal(err.kind, ERR_INFEASIBLE);
    assert_string_equal(err.text, "instance B cannot go to host H1: cpu");
    assert_int_equal(plan_fill(plan, model, NULL, 0, lost, &err), -1);
    assert_string_equal(err.text, "instance D would lose its host");
    model->hosts[0].schedulable = false;
    assert_int_equal(plan_fill(plan, model, NULL, 0, closed, &err), -1);
    assert_string_equal(err.text, "instance B cannot go to host H1: it is not schedulable");
    assert_int_equal(plan->n_moves, 0);
}

static void test_plan_fill_when_requests_or_pods_are_full_waits_for_them(void **state)
{
    AUTO(model) struct model *model = golden();
    static const int placement[] = {1, 2, 2, 3};
    AUTO(plan) struct plan *plan = NULL;

    (void)state;
    model->hosts[1].pods_cap = 1; /* B must leave H2 before A comes */
    plan = fill(model, PER_INSTANCE, placement);
    assert_int_equal(plan->n_moves, 2);
    assert_int_equal(plan->moves[0].instance, 1);
}

/* A move of each wrong kind against the golden model. */
static void spoil_source(struct plan *plan)
{
    plan->moves[0].source = 2;
}

static void spoil_target(struct plan *plan)
{
    plan->moves[0].target = 3;
}

static void spoil_seq(struct plan *plan)
{
    plan->moves[1].seq = 1;
}

static void spoil_twice(struct plan *plan)
{
    plan->moves[1] = plan->moves[0];
    plan->moves[1].seq = 2;
    plan->moves[1].source = 0;
    plan->moves[1].target = 1;
}

static void spoil_gain(struct plan *plan)
{
    plan->moves[1].gain += 0.1;
}

static void spoil_placement(struct plan *plan)
{
    plan->placement[2] = 3;
}

static void spoil_hosts(struct plan *plan)
{
    plan->hosts_after = 1;
}

static void spoil_restarts(struct plan *plan)
{
    plan->restarts = 9;
}

static void spoil_service(struct plan *plan)
{
    plan->moves[0].service = 2;
}

static void spoil_status(struct plan *plan)
{
    plan->status = PLAN_TIMEOUT;
}

static void test_plan_check_when_promise_is_broken_names_the_move(void **state)
{
    static const struct {
        void (*spoil)(struct plan *plan);
        const char *text;
    } rows[] = {
        {spoil_source, "move 1 (B): is not on its source"},
        {spoil_target, NULL},
        {spoil_seq, "move 1: seqs must ascend from 1"},
        {spoil_twice, "move 2 (B): moves twice"},
        {spoil_gain, "gains sum to 0.7, affinity changes by 0.6"},
        {spoil_placement, "placement of C is not where the moves put it"},
        {spoil_hosts, "hosts_before or hosts_after is not what the moves make"},
        {spoil_restarts, "restarts is 9, the moves make it 2"},
        {spoil_service, "move 1 (B): is of another service"},
        {spoil_status, "a plan without a result holds moves"},
    };
    static const int placement[] = {0, 0, 2, 0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(model) struct model *model = golden();
        AUTO(plan) struct plan *plan = fill(model, PER_INSTANCE, placement);
        struct err err = ERR_INIT;
        rows[i].spoil(plan);
        assert_int_equal(plan_check(plan, model, false, &err), -1);
        assert_int_equal(err.kind, ERR_INPUT);
        if (rows[i].text)
            assert_string_equal(err.text, rows[i].text);
    }
}

static void test_plan_check_when_fixed_instance_moves_says_why(void **state)
{
    AUTO(model) struct model *model = golden();
    static const int placement[] = {0, 0, 2, 0};
    AUTO(plan) struct plan *plan = fill(model, PER_INSTANCE, placement);
    struct err err = ERR_INIT;

    (void)state;
    model->services[1].stateful = true;
    assert_int_equal(plan_check(plan, model, false, &err), -1);
    assert_string_equal(err.text, "move 1 (B): stateful");
    assert_int_equal(plan_check(plan, model, true, &err), 0);
}

static void test_plan_check_when_together_is_parted_refuses(void **state)
{
    AUTO(model) struct model *model = golden();
    static const int placement[] = {0, 0, 2, 0};
    struct rule *rule = ARRAY_PUSH(model->rules, model->n_rules);
    struct err err = ERR_INIT;

    (void)state;
    rule->kind = RULE_TOGETHER;
    *ARRAY_PUSH(rule->services, rule->n_services) = 1;
    *ARRAY_PUSH(rule->services, rule->n_services) = 2;
    /* parted before as well, but H1 had none of them */
    AUTO(plan) struct plan *plan = fill(model, PER_INSTANCE, placement);
    assert_int_equal(plan_check(plan, model, false, &err), -1);
    assert_string_equal(
        err.text, "after all moves: rules[0] (together, of B and others) does not hold on H1");
}

static void test_plan_apply_when_some_moves_only_applies_those(void **state)
{
    AUTO(model) struct model *model = golden();
    static const int placement[] = {0, 0, 2, 0};
    AUTO(plan) struct plan *plan = fill(model, PER_INSTANCE, placement);
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(plan_apply(plan, model, 1, &err), 0);
    assert_int_equal(model->instances[1].host, 0);
    assert_int_equal(model->instances[3].host, 3);
    assert_int_equal(plan_apply(plan, model, SIZE_MAX, &err), -1);
    assert_int_equal(err.kind, ERR_CONFLICT);
    assert_int_equal(model->instances[3].host, 3);
}

/* Service a with 4 replicas on h0 (3) and h1 (1); b alone on h2. */
static struct model *replicated(int64_t cap)
{
    static const char *const names[] = {"a-0", "a-1", "a-2", "a-3"};
    struct model *model = model_new();

    small_host(model, "h0", cap);
    small_host(model, "h1", cap);
    small_host(model, "h2", cap);
    for (int i = 0; i < 4; i++)
        small_instance(model, names[i], "a", i < 3 ? "h0" : "h1", 10, 10);
    small_instance(model, "b", "b", "h2", 10, 10);
    small_affinity(model, "a", "b", 1);
    return model;
}

static void test_plan_fill_when_per_service_moves_all_replicas_at_once(void **state)
{
    AUTO(model) struct model *model = replicated(100);
    static const int placement[] = {1, 2, 1, 2, 2};
    AUTO(plan) struct plan *plan = fill(model, PER_SERVICE, placement);
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(plan->n_moves, 1);
    assert_int_equal(plan->moves[0].instance, -1);
    assert_int_equal(plan->moves[0].n_sources, 2);
    assert_int_equal(plan->moves[0].sources[0].count, 3);
    assert_int_equal(plan->moves[0].n_targets, 2);
    assert_int_equal(plan->moves[0].targets[1].host, 2);
    assert_int_equal(plan->moves[0].restarts, 4);
    assert_int_equal(plan->restarts, 4);
    assert_near(plan->moves[0].gain, 0.5);
    /* a-3 can stay on h1, the others fill up in name order */
    static const int want[] = {1, 2, 2, 1, 2};
    assert_memory_equal(plan->placement, want, sizeof want);
    assert_int_equal(plan_check(plan, model, false, &err), 0);
    assert_int_equal(plan_apply(plan, model, SIZE_MAX, &err), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(model->instances[i].host, want[i]);
}

static void test_plan_fill_when_per_service_is_uneven_is_infeasible(void **state)
{
    AUTO(model) struct model *model = replicated(100);
    AUTO(plan) struct plan *plan = plan_new();
    struct err err = ERR_INIT;
    static const int placement[] = {1, 1, 1, 2, 2};

    (void)state;
    plan->granularity = PER_SERVICE;
    assert_int_equal(plan_fill(plan, model, NULL, 0, placement, &err), -1);
    assert_string_equal(err.text, "service a would be spread unevenly over its hosts");
}

static void test_plan_walk_when_service_keeps_a_host_wants_room_for_one_more(void **state)
{
    AUTO(model) struct model *model = replicated(40);
    struct host_count sources[] = {{0, 3}, {1, 1}}, targets[] = {{0, 2}, {1, 2}};
    const struct move move = {.seq = 1, .service = 0, .instance = -1, .source = -1, .target = -1,
                              .sources = sources, .n_sources = 2, .targets = targets,
                              .n_targets = 2};
    int host;

    (void)state;
    AUTO(plan_walk) struct plan_walk *walk = plan_walk_new(model);
    assert_null(plan_walk_problem(walk, &move, &host)); /* 3 now and one more: 40 */
    model->hosts[0].cpu_cap_millis = 39;
    AUTO(plan_walk) struct plan_walk *tight = plan_walk_new(model);
    assert_string_equal(plan_walk_problem(tight, &move, &host), "cpu");
    assert_int_equal(host, 0);
}

static void test_plan_check_when_service_counts_are_wrong_says_which(void **state)
{
    static const struct {
        size_t move_member; /* 0: sources[0], 1: targets[0], 2: drop a source */
        int64_t count;
        const char *text;
    } rows[] = {
        {0, 2, "move 1 (a): source count is not what is on host h0"},
        {1, 3, "move 1 (a): target counts are not the number of replicas"},
        {2, 0, "move 1 (a): sources do not name all placed replicas"},
    };
    static const int placement[] = {1, 2, 1, 2, 2};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(model) struct model *model = replicated(100);
        AUTO(plan) struct plan *plan = fill(model, PER_SERVICE, placement);
        struct err err = ERR_INIT;
        if (rows[i].move_member == 0)
            plan->moves[0].sources[0].count = rows[i].count;
        else if (rows[i].move_member == 1)
            plan->moves[0].targets[0].count = rows[i].count;
        else
            plan->moves[0].n_sources = 1;
        assert_int_equal(plan_check(plan, model, false, &err), -1);
        assert_string_equal(err.text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_fill_when_golden_measures_it),
        cmocka_unit_test(test_plan_fill_when_first_possible_move_blocks_then_other_order),
        cmocka_unit_test(test_plan_fill_when_one_must_leave_first_orders_so),
        cmocka_unit_test(test_plan_fill_when_hosts_are_full_names_the_ring),
        cmocka_unit_test(test_plan_fill_when_target_is_impossible_is_infeasible),
        cmocka_unit_test(test_plan_fill_when_requests_or_pods_are_full_waits_for_them),
        cmocka_unit_test(test_plan_check_when_promise_is_broken_names_the_move),
        cmocka_unit_test(test_plan_check_when_fixed_instance_moves_says_why),
        cmocka_unit_test(test_plan_check_when_together_is_parted_refuses),
        cmocka_unit_test(test_plan_apply_when_some_moves_only_applies_those),
        cmocka_unit_test(test_plan_fill_when_per_service_moves_all_replicas_at_once),
        cmocka_unit_test(test_plan_fill_when_per_service_is_uneven_is_infeasible),
        cmocka_unit_test(test_plan_walk_when_service_keeps_a_host_wants_room_for_one_more),
        cmocka_unit_test(test_plan_check_when_service_counts_are_wrong_says_which),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
