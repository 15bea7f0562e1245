/* test_explain.c - each kind of sentence, from decisions made by hand. The model of store_support.h:
 * n1: front-1 db-1, n2: cart-1 front-2, cart-2 not placed; db is stateful. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/mem.h"
#include "model/manager/explain.h"
#include "tests/support/store_support.h"

static void add_row(struct decision *d, const char *a, const char *b, double degree)
{
    enum level level;
    int from, to;
    assert_int_equal(model_ends(d->model, a, b, &level, &from, &to), 0);
    *ARRAY_PUSH(d->analysis->rows, d->analysis->n_rows) =
        (struct affinity){level, from, to, degree, 1, -1};
}

static void set_state(struct decision *d, int64_t seq, const char *state, const char *reason)
{
    *ARRAY_PUSH(d->moves, d->n_moves) = (struct move_row){.seq = seq, .undo_of = -1,
                                                          .service = mem_strdup("cart"),
                                                          .state = mem_strdup(state),
                                                          .reason = mem_strdup(reason)};
}

/* The plan of store_support: 1 cart-1 n2 → n1, 2 front-2 n2 → n1. */
static int setup(void **state)
{
    struct decision *d = mem_alloc(sizeof *d);
    d->model = store_support_model();
    d->analysis = analysis_new();
    d->plan = store_support_plan(d->model);
    d->plan->placement = model_placement(d->model);
    d->plan->n_placement = d->model->n_instances;
    for (size_t i = 0; i < d->plan->n_moves; i++) {
        d->plan->placement[d->plan->moves[i].instance] = d->plan->moves[i].target;
    }
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    decision_wipe(*state);
    free(*state);
    return 0;
}

static void assert_first(struct decision *d, const char *honoured, const char *text)
{
    AUTO(explanation) struct explanation *e = explain(d, -1, 10);
    assert_int_equal(e->n_affinities, d->analysis->n_rows);
    assert_string_equal(honoured_name(e->affinities[0].honoured), honoured);
    assert_string_equal(e->affinities[0].text, text);
}

static void test_affinity_when_joined_by_a_move_then_brought(void **state)
{
    add_row(*state, "cart-1", "db-1", 0.5);
    assert_first(*state, "brought", "cart-1 and db-1 come together on n1 by move 1");
}

static void test_affinity_when_together_all_along_then_kept(void **state)
{
    add_row(*state, "db-1", "front-1", 0.5);
    assert_first(*state, "kept", "db-1 and front-1 stay together on n1");
}

static void test_affinity_when_moved_together_then_kept_where_they_are_now(void **state)
{
    add_row(*state, "cart-1", "front-2", 0.5);
    assert_first(*state, "kept", "cart-1 and front-2 stay together on n1");
}

static void test_affinity_when_move_was_discarded_then_not_with_its_reason(void **state)
{
    add_row(*state, "cart-1", "front-1", 0.5);
    set_state(*state, 1, "discarded", "cool-down until noon");
    assert_first(*state, "not",
                 "cart-1 (n2) and front-1 (n1) stay apart: move 1 would have brought them "
                 "together, but was discarded: cool-down until noon");
}

static void test_affinity_when_one_of_two_moves_failed_then_parted(void **state)
{
    add_row(*state, "cart-1", "front-2", 0.5);
    set_state(*state, 1, "applied", NULL);
    set_state(*state, 2, "failed", "never ready");
    assert_first(*state, "less",
                 "cart-1 and front-2 part by move 1: 0.0% of their traffic can stay on a host, "
                 "100.0% before; move 2 would have brought them together, but failed: never ready");
}

static void add_discarded(struct decision *d, const char *a, const char *b, const char *why)
{
    struct discarded *x = ARRAY_PUSH(d->plan->discarded, d->plan->n_discarded);
    assert_int_equal(model_ends(d->model, a, b, &x->level, &x->a, &x->b), 0);
    x->why = mem_strdup(why);
}

static void test_affinity_when_they_part_by_the_plan_then_its_reason(void **state)
{
    struct decision *d = *state;
    d->plan->placement[d->plan->moves[1].instance] = d->plan->moves[1].source;
    d->plan->n_moves = 1;
    add_row(d, "cart-1", "front-2", 0.5);
    assert_first(d, "less",
                 "cart-1 and front-2 part by move 1: 0.0% of their traffic can stay on a host, "
                 "100.0% before; other partners weigh more");
    add_discarded(d, "front-2", "cart-1", "front-2 to n1: rule apart (rules[0], of front)");
    assert_first(d, "less",
                 "cart-1 and front-2 part by move 1: 0.0% of their traffic can stay on a host, "
                 "100.0% before; front-2 to n1: rule apart (rules[0], of front)");
}

static void test_affinity_when_planner_discarded_it_then_its_reason(void **state)
{
    struct decision *d = *state;
    add_row(d, "cart-2", "db-1", 0.5);
    add_discarded(d, "db-1", "cart-2", "no host has room"); /* in either order */
    assert_first(d, "not", "cart-2 (not placed) and db-1 (n1) stay apart: no host has room");
}

static void test_affinity_when_nobody_may_move_then_both_reasons(void **state)
{
    struct decision *d = *state;
    d->model->services[1].movable = false;
    add_row(d, "cart-2", "db-1", 0.5);
    assert_first(d, "not",
                 "cart-2 (not placed) and db-1 (n1) stay apart: neither may move (cart-2: "
                 "service is not movable; db-1: stateful)");
}

static void test_affinity_when_one_may_not_move_then_said(void **state)
{
    add_row(*state, "cart-2", "db-1", 0.5);
    assert_first(*state, "not",
                 "cart-2 (not placed) and db-1 (n1) stay apart: db-1 may not move (stateful), "
                 "and the planner found no better place for both with the room there is");
}

static void test_rule_14_affinity_when_tenants_differ_then_said(void **state)
{
    struct decision *d = *state;
    add_row(d, "cart-2", "db-1", 0);
    assert_first(d, "not",
                 "cart-2 (not placed) and db-1 (n1) stay apart: their traffic weighs nothing, so "
                 "nothing is gained together");
    d->model->services[1].tenant = mem_strdup("shop");
    d->model->services[2].tenant = mem_strdup("bank");
    assert_first(d, "not",
                 "cart-2 (not placed) and db-1 (n1) stay apart: their tenants differ (shop, bank): "
                 "such traffic places nothing");
}

static void test_affinity_when_services_come_closer_then_shares(void **state)
{
    add_row(*state, "cart", "db", 0.5); /* one of two carts comes to db */
    assert_first(*state, "partly",
                 "cart and db come closer by move 1: 50.0% of their traffic can stay on a host, "
                 "0.0% before");
    add_discarded(*state, "cart", "db", "cart-2 to n1: no moves left");
    assert_first(*state, "partly",
                 "cart and db come closer by move 1: 50.0% of their traffic can stay on a host, "
                 "0.0% before; cart-2 to n1: no moves left");
}

static void test_affinity_when_no_plan_then_said(void **state)
{
    struct decision *d = *state;
    plan_free(d->plan);
    d->plan = NULL;
    add_row(d, "cart-1", "db-1", 0.5);
    assert_first(d, "not", "cart-1 (n2) and db-1 (n1) stay apart: the cycle made no plan");
}

static void test_affinities_when_beyond_the_limit_then_counted(void **state)
{
    add_row(*state, "cart-1", "db-1", 0.5);
    add_row(*state, "cart-1", "front-1", 0.25);
    add_row(*state, "cart-1", "front-2", 0.125);
    AUTO(explanation) struct explanation *e = explain(*state, -1, 2);
    assert_int_equal(e->n_affinities, 2);
    assert_int_equal(e->n_more, 1);
}

static void test_move_when_it_joins_and_leaves_then_both_are_named(void **state)
{
    struct decision *d = *state;
    add_row(d, "cart-1", "front-1", 0.5);
    add_row(d, "cart-1", "db-1", 0.25);
    d->plan->moves[1].target = 2; /* front-2 goes elsewhere: cart-1 leaves it */
    d->plan->placement[model_instance(d->model, "front-2")] = 2;
    add_row(d, "cart-1", "front-2", 0.125);
    set_state(d, 1, "missed", "landed on n3");
    AUTO(explanation) struct explanation *e = explain(d, -1, 10);
    assert_int_equal(e->n_moves, 2);
    assert_string_equal(e->moves[0].text,
                        "cart-1 from n2 to n1 to join front-1 (0.5000), db-1 (0.2500); leaves "
                        "front-2 (0.1250); gain +0.6250. missed: landed on n3");
}

static void test_service_when_asked_for_then_its_rows_moves_and_partners(void **state)
{
    struct decision *d = *state;
    add_row(d, "cart-1", "db-1", 0.5);
    add_row(d, "db-1", "front-1", 0.25);
    *ARRAY_PUSH(d->analysis->service_rows, d->analysis->n_service_rows) =
        (struct affinity){LEVEL_SERVICE, 1, 2, 0.5, 1, -1};
    AUTO(explanation) struct explanation *e = explain(d, 1, 10);
    assert_int_equal(e->n_affinities, 1);
    assert_int_equal(e->n_moves, 1);
    assert_int_equal(e->moves[0].seq, 1);
    assert_string_equal(e->where, "n1, not placed");
    assert_int_equal(e->n_partners, 1);
    assert_string_equal(e->partners[0].text, "db on n1");
}

static void test_move_when_of_a_whole_service_then_counts(void **state)
{
    struct decision *d = *state;
    struct move *move = &d->plan->moves[0];
    move->instance = move->source = move->target = -1;
    move->service = 0;
    move->restarts = 2;
    *ARRAY_PUSH(move->sources, move->n_sources) = (struct host_count){0, 1};
    *ARRAY_PUSH(move->sources, move->n_sources) = (struct host_count){1, 1};
    *ARRAY_PUSH(move->targets, move->n_targets) = (struct host_count){0, 2};
    d->plan->n_moves = 1;
    add_row(d, "db", "front", 0.5);
    AUTO(explanation) struct explanation *e = explain(d, -1, 10);
    assert_string_equal(e->moves[0].text, "front: replicas from n1=1 n2=1 to n1=2 to join db "
                                          "(0.5000); gain +0.6250, 2 replicas restart");
    assert_string_equal(honoured_name(e->affinities[0].honoured), "brought");
    d->plan->n_moves = 2;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_affinity_when_joined_by_a_move_then_brought),
        TEST(test_affinity_when_together_all_along_then_kept),
        TEST(test_affinity_when_moved_together_then_kept_where_they_are_now),
        TEST(test_affinity_when_move_was_discarded_then_not_with_its_reason),
        TEST(test_affinity_when_one_of_two_moves_failed_then_parted),
        TEST(test_affinity_when_they_part_by_the_plan_then_its_reason),
        TEST(test_affinity_when_planner_discarded_it_then_its_reason),
        TEST(test_affinity_when_nobody_may_move_then_both_reasons),
        TEST(test_affinity_when_one_may_not_move_then_said),
        TEST(test_rule_14_affinity_when_tenants_differ_then_said),
        TEST(test_affinity_when_services_come_closer_then_shares),
        TEST(test_affinity_when_no_plan_then_said),
        TEST(test_affinities_when_beyond_the_limit_then_counted),
        TEST(test_move_when_it_joins_and_leaves_then_both_are_named),
        TEST(test_service_when_asked_for_then_its_rows_moves_and_partners),
        TEST(test_move_when_of_a_whole_service_then_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
