/* Is a move still possible (§5.6, algorithms.md 6.4), and where to when it needs another host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "executor/validate.h"
#include "tests/support/small.h"

/* h1: a-1 (30); h2: b-1 (60), s-1 stateful (10); h3 not schedulable; h4 nearly full */
static struct model *cluster(void)
{
    struct model *m = model_new();
    small_host(m, "h1", 100);
    small_host(m, "h2", 100);
    small_host(m, "h3", 100);
    small_host(m, "h4", 100);
    m->hosts[2].schedulable = false;
    m->hosts[3].mem_used_bytes = 80;
    small_instance(m, "a-1", "a", "h1", 30, 30);
    small_instance(m, "b-1", "b", "h2", 60, 60);
    small_instance(m, "s-1", "s", "h2", 10, 10);
    small_instance(m, "r-1", "r", "h2", 5, 5);
    small_instance(m, "p-1", "p", "h2", 1, 1);
    small_instance(m, "n-1", "n", NULL, 1, 1);
    m->services[model_service(m, "s")].stateful = true;
    m->services[model_service(m, "r")].rollout = true;
    m->instances[model_instance(m, "p-1")].pinned_why = mem_strdup("has a volume");
    return m;
}

static const struct {
    const char *instance, *source, *target;
    bool move_stateful;
    enum verdict_kind kind;
    const char *why;
} rows[] = {
    {"a-1", "h1", "h2", false, MOVE_NO_ROOM, "h2 has no room: cpu"},
    {"a-1", "h1", "h4", false, MOVE_NO_ROOM, "h4 has no room: memory"},
    {"b-1", "h2", "h1", false, MOVE_VALID, ""},
    {"b-1", "h1", "h2", false, MOVE_INVALID, "b-1 is on h2, not on h1"},
    {"b-1", NULL, "h1", false, MOVE_INVALID, "b-1 is on h2, not on no host"},
    {"b-1", "h2", "h2", false, MOVE_INVALID, "b-1 is on h2 already"},
    {"b-1", "h2", "h3", false, MOVE_INVALID, "h3 is not schedulable"},
    {"b-1", "h2", "h9", false, MOVE_INVALID, "host h9 is gone"},
    {"x-1", "h2", "h1", false, MOVE_INVALID, "the instance is gone"},
    {"s-1", "h2", "h1", false, MOVE_INVALID, "s-1: stateful"},
    {"s-1", "h2", "h1", true, MOVE_VALID, ""},
    {"r-1", "h2", "h1", false, MOVE_INVALID, "r-1: rollout in progress"},
    {"p-1", "h2", "h1", false, MOVE_INVALID, "p-1: has a volume"},
    {"n-1", NULL, "h1", false, MOVE_VALID, ""},
    {"n-1", "h1", "h2", false, MOVE_INVALID, "n-1 is on no host, not on h1"},
};

static void test_validate_when_one_thing_is_wrong_names_it(void **state)
{
    (void)state;
    AUTO(model) struct model *m = cluster();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct verdict v = validate_instance(m, model_instance(m, rows[i].instance), rows[i].source,
                                             rows[i].target, rows[i].move_stateful);
        assert_string_equal(v.why, rows[i].why);
        assert_int_equal(v.kind, rows[i].kind);
    }
}

static void add_rule(struct model *m, enum rule_kind kind, const char *a, const char *b,
                     int64_t max_per_host)
{
    struct rule *r = ARRAY_PUSH(m->rules, m->n_rules);
    r->kind = kind;
    r->max_per_host = max_per_host;
    *ARRAY_PUSH(r->services, r->n_services) = model_service(m, a);
    *ARRAY_PUSH(r->services, r->n_services) = model_service(m, b);
}

static void test_validate_when_a_rule_forbids_the_target_has_no_room_for_it(void **state)
{
    (void)state;
    AUTO(model) struct model *m = cluster();
    add_rule(m, RULE_APART, "a", "b", 1);
    struct verdict v = validate_instance(m, model_instance(m, "b-1"), "h2", "h1", false);
    assert_int_equal(v.kind, MOVE_NO_ROOM);
    assert_memory_equal(v.why, "h1: ", 4);
}

/* --- services --- */

static struct model *replicas(void)
{
    struct model *m = model_new();
    small_host(m, "h1", 100);
    small_host(m, "h2", 100);
    small_host(m, "h3", 50);
    small_instance(m, "a-1", "a", "h1", 30, 30);
    small_instance(m, "a-2", "a", "h1", 30, 30);
    small_instance(m, "b-1", "b", "h2", 30, 30);
    return m;
}

static struct verdict check_service(const struct model *m, const char *service, int64_t h1,
                                    int64_t to_h2, int64_t to_h3)
{
    struct replica_count sources[] = {{(char *)"h1", h1}};
    struct replica_count targets[] = {{(char *)"h2", to_h2}, {(char *)"h3", to_h3}};
    return validate_service(m, service, sources, 1, targets, 2, false);
}

static void test_validate_service_when_all_fit_is_valid(void **state)
{
    (void)state;
    AUTO(model) struct model *m = replicas();
    assert_int_equal(check_service(m, "a", 2, 2, 0).kind, MOVE_VALID);
    assert_int_equal(check_service(m, "a", 2, 1, 1).kind, MOVE_VALID);
}

static void test_validate_service_when_it_has_changed_or_does_not_fit_says_so(void **state)
{
    (void)state;
    AUTO(model) struct model *m = replicas();
    assert_string_equal(check_service(m, "a", 1, 1, 0).why, "a has 2 replicas on h1, not 1");
    assert_string_equal(check_service(m, "x", 1, 1, 0).why, "service x is gone");
    assert_string_equal(check_service(m, "b", 0, 1, 0).why, "b has 1 replicas on h2, not 0");
    struct verdict v = check_service(m, "a", 2, 0, 2);
    assert_int_equal(v.kind, MOVE_NO_ROOM);
    assert_string_equal(v.why, "h3 has no room: cpu");
    m->services[model_service(m, "a")].rollout = true;
    assert_string_equal(check_service(m, "a", 2, 2, 0).why, "a-1: rollout in progress");
    m->services[model_service(m, "a")].rollout = false;
    m->hosts[1].schedulable = false;
    assert_string_equal(check_service(m, "a", 2, 2, 0).why, "h2 is not schedulable");
}

/* --- choices --- */

static void test_detour_when_hosts_are_free_avoids_those_that_others_wait_for(void **state)
{
    (void)state;
    AUTO(model) struct model *m = model_new();
    bool avoid[5] = {false, false, true, false, false};
    small_host(m, "h1", 100);
    small_host(m, "h2", 100);
    small_host(m, "h3", 100);
    small_host(m, "h5", 100);
    small_host(m, "h4", 100);
    int a = small_instance(m, "a-1", "a", "h1", 30, 30);
    assert_int_equal(detour_host(m, a, 1, avoid, false), 4); /* by name, not by order */
    avoid[3] = avoid[4] = true;
    assert_int_equal(detour_host(m, a, 1, avoid, false), 2); /* rather a wanted one than none */
    m->hosts[2].schedulable = m->hosts[3].schedulable = m->hosts[4].schedulable = false;
    assert_int_equal(detour_host(m, a, 1, avoid, false), -1);
}

/* x on h4; partners a (0.5; h1, h2), b (0.3; h3), c (0: never) on h5 */
static struct model *partners(void)
{
    struct model *m = model_new();
    for (int i = 1; i <= 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "h%d", i);
        small_host(m, name, 100);
    }
    small_instance(m, "x-1", "x", "h4", 30, 30);
    small_instance(m, "a-1", "a", "h1", 30, 30);
    small_instance(m, "a-2", "a", "h2", 30, 30);
    small_instance(m, "b-1", "b", "h3", 30, 30);
    small_instance(m, "c-1", "c", "h5", 30, 30);
    small_affinity(m, "x-1", "a-1", 0.3);
    small_affinity(m, "x-1", "a-2", 0.2);
    small_affinity(m, "x-1", "b-1", 0.3);
    small_affinity(m, "x-1", "c-1", 0);
    return m;
}

static int steer(const struct model *m, int instance)
{
    AUTO(analysis) struct analysis *a = analysis_from_given(m);
    return steer_host(m, instance, m, a->service_rows, a->n_service_rows, false);
}

static void test_steer_when_partners_differ_goes_by_affinity_then_fewest_own(void **state)
{
    (void)state;
    AUTO(model) struct model *m = partners();
    assert_int_equal(steer(m, 0), 0); /* a is dearest; h1 before h2 */
    small_instance(m, "x-2", "x", "h1", 30, 30);
    assert_int_equal(steer(m, 0), 1); /* h1 has one of its own already */
    m->hosts[1].schedulable = false;
    assert_int_equal(steer(m, 0), 0); /* better beside its like than without a */
    m->hosts[0].schedulable = false;
    assert_int_equal(steer(m, 0), 2); /* no host of a takes it: b */
    m->hosts[2].schedulable = false;
    assert_int_equal(steer(m, 0), -1); /* c has no affinity: it stays */
}

static void test_steer_when_it_is_where_it_should_be_stays(void **state)
{
    (void)state;
    AUTO(model) struct model *m = partners();
    m->instances[0].host = 0;
    assert_int_equal(steer(m, 0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_validate_when_one_thing_is_wrong_names_it),
        cmocka_unit_test(test_validate_when_a_rule_forbids_the_target_has_no_room_for_it),
        cmocka_unit_test(test_validate_service_when_all_fit_is_valid),
        cmocka_unit_test(test_validate_service_when_it_has_changed_or_does_not_fit_says_so),
        cmocka_unit_test(test_detour_when_hosts_are_free_avoids_those_that_others_wait_for),
        cmocka_unit_test(test_steer_when_partners_differ_goes_by_affinity_then_fewest_own),
        cmocka_unit_test(test_steer_when_it_is_where_it_should_be_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
