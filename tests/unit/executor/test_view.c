/* Who is who after renames, what everybody uses, who is new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "executor/view.h"
#include "tests/support/small.h"

static struct outcome rename_of(const char *from, const char *to)
{
    return (struct outcome){
        .service = (char *)"a", .instance = (char *)from, .instance_now = (char *)to};
}

static void test_lineage_when_renames_come_in_any_order_follows_them_all(void **state)
{
    (void)state;
    AUTO(model) struct model *m = model_new();
    small_host(m, "h1", 100);
    small_instance(m, "a-1", "a", "h1", 1, 1);
    small_instance(m, "a-2", "a", "h1", 1, 1);
    struct outcome list[] = {rename_of("a-4", "a-5"), rename_of("n-1", "n-2"),
                             rename_of("a-3", "a-4"), rename_of("a-1", "a-3"),
                             rename_of("a-2", "a-2")};
    struct outcomes done = {list, ARRAY_LEN(list)};
    struct lineage lineage;
    lineage_init(&lineage, m);
    lineage_follow(&lineage, &done);
    assert_string_equal(lineage.now[0], "a-5");
    assert_string_equal(lineage.now[1], "a-2");
    assert_int_equal(lineage.n_others, 1);
    assert_string_equal(lineage.others[0], "n-2");
    lineage_wipe(&lineage);
}

struct joined {
    struct model *planned;
    struct lineage lineage;
    struct view view;
};

/* Planned: a-1 and a-2 on h1, b-1 on h2. Here: a-9 (was a-1) on h2, a-2 gone, a-7 unknown on h1,
 * b-1, b-8 new. */
static struct joined join(void)
{
    struct joined j = {.planned = model_new()};
    small_host(j.planned, "h1", 100);
    small_host(j.planned, "h2", 100);
    j.planned->hosts[0].cpu_used_millis = 7;
    j.planned->hosts[0].reserve_mem_bytes = 5;
    small_instance(j.planned, "a-1", "a", "h1", 10, 10);
    small_instance(j.planned, "a-2", "a", "h1", 30, 30);
    small_instance(j.planned, "b-1", "b", "h2", 5, 5);
    struct rule *rule = ARRAY_PUSH(j.planned->rules, j.planned->n_rules);
    rule->kind = RULE_ALLOWED;
    *ARRAY_PUSH(rule->services, rule->n_services) = 1;
    *ARRAY_PUSH(rule->hosts, rule->n_hosts) = 1;
    struct model *here = model_new();
    small_host(here, "h2", 100);
    small_host(here, "h1", 100);
    small_instance(here, "b-8", "b", "h1", 0, 0);
    small_instance(here, "b-1", "b", "h2", 6, 0);
    small_instance(here, "a-7", "a", "h1", 0, 0);
    small_instance(here, "a-9", "a", "h2", 0, 0);
    lineage_init(&j.lineage, j.planned);
    lineage_rename(&j.lineage, "a-1", "a-9");
    view_init(&j.view, here, j.planned, &j.lineage);
    return j;
}

static void joined_wipe(struct joined *j)
{
    view_wipe(&j->view);
    lineage_wipe(&j->lineage);
    model_free(j->planned);
}

static void test_view_when_joined_fills_usage_reserves_and_rules(void **state)
{
    (void)state;
    struct joined j = join();
    const struct model *m = j.view.model;
    assert_int_equal(m->instances[3].cpu_used_millis, 10); /* a-9 is a-1 */
    assert_int_equal(m->instances[2].cpu_used_millis, 20); /* a-7: the mean of a */
    assert_int_equal(m->instances[1].cpu_used_millis, 6);  /* fresh and larger */
    assert_int_equal(m->instances[1].mem_used_bytes, 5);
    assert_int_equal(m->hosts[1].cpu_used_millis, 7);
    assert_int_equal(m->hosts[1].reserve_mem_bytes, 5);
    assert_int_equal(m->n_rules, 1);
    assert_int_equal(m->rules[0].services[0], 0); /* b, by its index here */
    assert_int_equal(m->rules[0].hosts[0], 0);    /* h2 */
    joined_wipe(&j);
}

static void test_view_when_an_instance_is_gone_finds_its_like_on_its_host(void **state)
{
    (void)state;
    struct joined j = join();
    assert_int_equal(view_find(&j.view, &j.lineage, 0, "h1"), 3);  /* wherever it is now */
    assert_int_equal(view_find(&j.view, &j.lineage, 1, "h2"), -1); /* a-9 is taken */
    assert_int_equal(view_find(&j.view, &j.lineage, 1, "h1"), 2);
    assert_string_equal(j.lineage.now[1], "a-7");
    joined_wipe(&j);
}

static void test_view_when_a_service_grew_counts_only_the_surplus_as_newborn(void **state)
{
    (void)state;
    struct joined j = join();
    int *born;
    assert_int_equal(view_newborn(&j.view, &j.lineage, &born), 1); /* a-7 replaces a-2 */
    assert_int_equal(born[0], 0);
    free(born);
    lineage_rename(&j.lineage, "b-8", "b-8"); /* met already */
    assert_int_equal(view_newborn(&j.view, &j.lineage, &born), 0);
    free(born);
    joined_wipe(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lineage_when_renames_come_in_any_order_follows_them_all),
        cmocka_unit_test(test_view_when_joined_fills_usage_reserves_and_rules),
        cmocka_unit_test(test_view_when_an_instance_is_gone_finds_its_like_on_its_host),
        cmocka_unit_test(test_view_when_a_service_grew_counts_only_the_surplus_as_newborn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
