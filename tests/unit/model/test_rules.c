/* test_rules.c - apart, together, allowed, spread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/rules.h"
#include "tests/support/small.h"

/* Hosts h0, h1 in zone east/z, h2 in west/z, h3 without zone; services a (4 replicas on h0, h0, h1,
 * none) and b (on h2). */
static struct model *four_hosts(void)
{
    static const char *const hosts[] = {"h0", "h1", "h2", "h3"};
    struct model *model = model_new();

    for (int i = 0; i < 4; i++)
        small_host(model, hosts[i], 1000);
    for (int i = 0; i < 3; i++) {
        model->hosts[i].zone = mem_strdup("z");
        model->hosts[i].region = mem_strdup(i < 2 ? "east" : "west");
    }
    small_instance(model, "a-0", "a", "h0", 1, 1);
    small_instance(model, "a-1", "a", "h0", 1, 1);
    small_instance(model, "a-2", "a", "h1", 1, 1);
    small_instance(model, "a-3", "a", NULL, 1, 1);
    small_instance(model, "b", "b", "h2", 1, 1);
    return model;
}

static struct rule *add_rule(struct model *model, enum rule_kind kind, int service)
{
    struct rule *rule = ARRAY_PUSH(model->rules, model->n_rules);

    rule->kind = kind;
    *ARRAY_PUSH(rule->services, rule->n_services) = service;
    return rule;
}

static void assert_problem(const struct model *model, int service, int host, const char *want)
{
    AUTO_FREE int *counts = mem_array(model->n_hosts * model->n_services, sizeof *counts);
    const char *got[3];

    for (size_t i = 0; i < model->n_instances; i++)
        if (model->instances[i].host >= 0)
            counts[(size_t)model->instances[i].host * model->n_services +
                   (size_t)model->instances[i].service]++;
    AUTO(rule_tally) struct rule_tally *tally = rule_tally_new(model, NULL);
    got[0] = rule_tally_problem(tally, service, host);
    got[1] = model_rule_problem(model, NULL, service, host);
    got[2] = model_rule_problem(model, counts, service, host);
    for (int i = 0; i < 3; i++) {
        if (want)
            assert_string_equal(got[i] ? got[i] : "none", want);
        else
            assert_null(got[i]);
    }
}

static void test_apart_when_host_is_full_refuses(void **state)
{
    AUTO(model) struct model *model = four_hosts();
    struct rule *rule = add_rule(model, RULE_APART, 0);

    (void)state;
    *ARRAY_PUSH(rule->services, rule->n_services) = 1;
    rule->max_per_host = 2;
    assert_problem(model, 0, 0, "rule apart");
    assert_problem(model, 1, 0, "rule apart");
    assert_problem(model, 0, 1, NULL);
    rule->max_per_host = 1;
    assert_problem(model, 0, 2, "rule apart"); /* b is there, and counts */
    assert_problem(model, 0, 3, NULL);
}

static void test_allowed_when_host_is_not_listed_refuses(void **state)
{
    AUTO(model) struct model *model = four_hosts();
    struct rule *rule = add_rule(model, RULE_ALLOWED, 0);

    (void)state;
    *ARRAY_PUSH(rule->hosts, rule->n_hosts) = 1;
    assert_problem(model, 0, 1, NULL);
    assert_problem(model, 0, 0, "rule allowed");
    assert_problem(model, 1, 0, NULL);
}

static void test_spread_when_share_is_reached_refuses(void **state)
{
    AUTO(model) struct model *model = four_hosts();
    struct rule *rule = add_rule(model, RULE_SPREAD, 0);

    (void)state;
    rule->max_share = 0.5; /* of 4, the unplaced one counts: 2 */
    assert_problem(model, 0, 0, "rule spread");
    assert_problem(model, 0, 1, NULL);
    rule->per_zone = true; /* 3 in east/z */
    assert_problem(model, 0, 1, "rule spread");
    assert_problem(model, 0, 2, NULL); /* west/z is another zone */
    assert_problem(model, 0, 3, NULL);
    rule->max_share = 0; /* at least one */
    assert_problem(model, 0, 2, NULL);
}

static void test_rule_spread_max_when_share_is_exact_does_not_round_down(void **state)
{
    const struct rule rule = {.kind = RULE_SPREAD, .max_share = 0.3};

    (void)state;
    assert_int_equal(rule_spread_max(&rule, 10), 3); /* 0.3 · 10 is 2.9999… */
    assert_int_equal(rule_spread_max(&rule, 1), 1);
}

static void test_rule_tally_when_instance_moves_follows(void **state)
{
    AUTO(model) struct model *model = four_hosts();

    (void)state;
    add_rule(model, RULE_APART, 0)->max_per_host = 2;
    AUTO(rule_tally) struct rule_tally *tally = rule_tally_new(model, NULL);
    assert_non_null(rule_tally_problem(tally, 0, 0));
    rule_tally_add(tally, 0, 0, -1);
    assert_null(rule_tally_problem(tally, 0, 0));
    rule_tally_add(tally, 0, 1, 1);
    assert_non_null(rule_tally_problem(tally, 0, 1));
}

static void test_model_rules_hold_when_together_is_parted_names_it(void **state)
{
    AUTO(model) struct model *model = four_hosts();
    struct rule *rule = add_rule(model, RULE_TOGETHER, 0);
    struct err err = ERR_INIT;
    int placement[] = {0, 0, 0, -1, 0};

    (void)state;
    *ARRAY_PUSH(rule->services, rule->n_services) = 1;
    assert_int_equal(model_rules_hold(model, placement, &err), 0);
    placement[2] = 1;
    assert_int_equal(model_rules_hold(model, placement, &err), -1);
    assert_int_equal(err.kind, ERR_INFEASIBLE);
    assert_string_equal(err.text, "rules[0] (together, of a and others) does not hold on h1");
    placement[2] = 0;
    placement[4] = 3; /* only the second service on a host */
    assert_int_equal(model_rules_hold(model, placement, &err), -1);
}

static void test_model_rules_hold_when_any_kind_is_broken_names_it(void **state)
{
    static const struct {
        enum rule_kind kind;
        bool per_zone;
        const char *text;
    } rows[] = {
        {RULE_APART, false, "rules[0] (apart, of a) does not hold on h0"},
        {RULE_ALLOWED, false, "rules[0] (allowed, of a) does not hold on h0"},
        {RULE_SPREAD, false, "rules[0] (spread, of a) does not hold on h0"},
        {RULE_SPREAD, true, "rules[0] (spread, of a) does not hold in the zone of h0"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(model) struct model *model = four_hosts();
        AUTO_FREE int *placement = model_placement(model);
        struct rule *rule = add_rule(model, rows[i].kind, 0);
        struct err err = ERR_INIT;
        rule->max_per_host = 1;
        rule->max_share = 0.25;
        rule->per_zone = rows[i].per_zone;
        assert_int_equal(model_rules_hold(model, placement, &err), -1);
        assert_string_equal(err.text, rows[i].text);
    }
}

static void test_model_rules_kept_when_broken_before_allows_no_more(void **state)
{
    AUTO(model) struct model *model = four_hosts();
    AUTO_FREE int *before = model_placement(model);
    struct err err = ERR_INIT;
    int less[] = {0, 3, 1, -1, 2}, more[] = {0, 0, 0, -1, 2}, elsewhere[] = {0, 1, 1, -1, 2};

    (void)state;
    add_rule(model, RULE_APART, 0)->max_per_host = 1; /* h0 has two already */
    assert_int_equal(model_rules_kept(model, before, before, &err), 0);
    assert_int_equal(model_rules_kept(model, before, less, &err), 0);
    assert_int_equal(model_rules_kept(model, before, more, &err), -1);
    assert_int_equal(model_rules_kept(model, before, elsewhere, &err), -1);
}

static void test_model_rules_mended_when_broken_less_names_the_services(void **state)
{
    AUTO(model) struct model *model = four_hosts();
    AUTO_FREE int *before = model_placement(model);
    int less[] = {0, 3, 1, -1, 2}, elsewhere[] = {3, 3, 1, -1, 2};

    (void)state;
    assert_null(model_rules_mended(model, before, less)); /* no rules, nothing to mend */
    add_rule(model, RULE_APART, 0)->max_per_host = 1; /* h0 has two */
    AUTO_FREE bool *mended = model_rules_mended(model, before, less);
    assert_non_null(mended);
    for (size_t s = 0; s < model->n_services; s++)
        assert_int_equal(mended[s], s == 0);
    assert_null(model_rules_mended(model, before, before));
    assert_null(model_rules_mended(model, before, elsewhere)); /* as broken, on another host */
    assert_null(model_rules_mended(model, less, before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_apart_when_host_is_full_refuses),
        cmocka_unit_test(test_allowed_when_host_is_not_listed_refuses),
        cmocka_unit_test(test_spread_when_share_is_reached_refuses),
        cmocka_unit_test(test_rule_spread_max_when_share_is_exact_does_not_round_down),
        cmocka_unit_test(test_rule_tally_when_instance_moves_follows),
        cmocka_unit_test(test_model_rules_hold_when_together_is_parted_names_it),
        cmocka_unit_test(test_model_rules_hold_when_any_kind_is_broken_names_it),
        cmocka_unit_test(test_model_rules_kept_when_broken_before_allows_no_more),
        cmocka_unit_test(test_model_rules_mended_when_broken_less_names_the_services),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
