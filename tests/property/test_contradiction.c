/* test_contradiction.c - rules that no placement can keep, against all placements of tiny random models:
 * never said where one keeps them, always seen where one kind of conflict is all there is, and the rules
 * named are those that matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "planner/contradiction.h"
#include "tests/bench/brute.h"
#include "tests/property/given.h"
#include "tests/support/runs.h"

#define RUNS RUNS_OF(2000)
#define MOST_INSTANCES 6

/* What rules a model gets, each kind up to so many. */
struct kinds {
    int allowed, together, spread, apart;
    bool zones, pairs; /* spread per zone too; apart only of two, one on a host */
};

static struct rule *rule_add(struct model *model, enum rule_kind kind)
{
    struct rule *rule = ARRAY_PUSH(model->rules, model->n_rules);
    rule->kind = kind;
    rule->services = mem_array(model->n_services, sizeof *rule->services);
    rule->hosts = mem_array(model->n_hosts, sizeof *rule->hosts);
    return rule;
}

/* At least `least` services, in random order. */
static void rule_services(struct rule *rule, const struct model *model, size_t least, size_t most,
                          struct rng *rng)
{
    size_t n = model->n_services;
    int order[MOST_INSTANCES] = {0};
    most = most < n ? most : n;
    least = least < most ? least : most;
    for (size_t k = 0; k < n; k++)
        order[k] = (int)k;
    for (size_t k = 0; k < n; k++) {
        size_t other = k + rng_below(rng, (uint32_t)(n - k));
        int swap = order[k];
        order[k] = order[other];
        order[other] = swap;
    }
    rule->n_services = least + rng_below(rng, (uint32_t)(most - least + 1));
    memcpy(rule->services, order, rule->n_services * sizeof *order);
}

static void rules_draw(struct model *model, const struct kinds *kinds, struct rng *rng)
{
    for (uint32_t k = rng_below(rng, (uint32_t)kinds->allowed + 1); k > 0; k--) {
        struct rule *rule = rule_add(model, RULE_ALLOWED);
        rule_services(rule, model, 1, 1, rng);
        for (size_t h = 0; h < model->n_hosts; h++)
            if (rng_below(rng, 2))
                rule->hosts[rule->n_hosts++] = (int)h;
    }
    for (uint32_t k = rng_below(rng, (uint32_t)kinds->together + 1); k > 0; k--)
        rule_services(rule_add(model, RULE_TOGETHER), model, 2, 3, rng);
    for (uint32_t k = rng_below(rng, (uint32_t)kinds->spread + 1); k > 0; k--) {
        struct rule *rule = rule_add(model, RULE_SPREAD);
        rule_services(rule, model, 1, 1, rng);
        rule->max_share = rng_below(rng, 3) * 0.34;
        rule->per_zone = kinds->zones && rng_below(rng, 2);
    }
    for (uint32_t k = rng_below(rng, (uint32_t)kinds->apart + 1); k > 0; k--) {
        struct rule *rule = rule_add(model, RULE_APART);
        rule_services(rule, model, kinds->pairs ? 2 : 1, kinds->pairs ? 2 : 3, rng);
        rule->max_per_host = kinds->pairs ? 1 : rng_below(rng, 4);
    }
}

/* Hosts with room for all, services of one to three instances that are nowhere. */
static struct model *rules_model(const struct kinds *kinds, uint64_t seed)
{
    struct rng rng = {seed * 104729 + 5};
    struct err err = ERR_INIT;
    struct model *model = model_new();
    char name[32];
    for (uint32_t h = 0, n = 1 + rng_below(&rng, 4); h < n; h++) {
        snprintf(name, sizeof name, "h%u", h);
        int index = model_add_host(model, name, &err);
        struct host *host = &model->hosts[index];
        host->cpu_cap_millis = host->mem_cap_bytes = 1000;
        snprintf(name, sizeof name, "z%u", rng_below(&rng, 2));
        host->zone = rng_below(&rng, 4) ? mem_strdup(name) : NULL;
    }
    for (int run = 0, left = 1 + (int)rng_below(&rng, MOST_INSTANCES); left > 0; run++) {
        snprintf(name, sizeof name, "s%d", run);
        int service = model_add_service(model, name, &err);
        for (uint32_t k = 0, n = 1 + rng_below(&rng, 3); k < n && left > 0; k++, left--) {
            snprintf(name, sizeof name, "s%d-%u", run, k);
            assert_true(model_add_instance(model, name, service, -1, &err) >= 0);
        }
    }
    rules_draw(model, kinds, &rng);
    return model;
}

static bool can_be(const struct model *model)
{
    return brute_force(model, NULL, 0, false, -1, true).feasible;
}

/* The rules that the text names are enough for the conflict; without any of them there is none to see. */
static void rules_named(struct model *model, const char *text, uint64_t seed)
{
    AUTO_FREE struct rule *all = mem_dup(model->rules, model->n_rules * sizeof *all);
    size_t n_all = model->n_rules, named[MOST_INSTANCES * 4], n = 0;
    for (const char *at = text; (at = strstr(at, "rules[")) != NULL; at++)
        named[n++] = strtoul(at + 6, NULL, 10);
    assert_true(n > 0);
    for (size_t without = 0; without <= n; without++) {
        model->n_rules = 0;
        for (size_t k = 0; k < n; k++)
            if (k != without)
                model->rules[model->n_rules++] = all[named[k]];
        AUTO_FREE char *again = contradiction(model, true);
        if (without == n ? !again || can_be(model) : again != NULL)
            fail_msg("seed %d: \"%s\" names too many rules or too few", (int)seed, text);
    }
    memcpy(model->rules, all, n_all * sizeof *all);
    model->n_rules = n_all;
}

/* How many of those that cannot be are seen, in percent; none that can be is said not to. */
static int sweep(const char *what, const struct kinds *kinds)
{
    int none = 0, seen = 0;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        AUTO(model) struct model *model = rules_model(kinds, seed);
        AUTO_FREE char *why = contradiction(model, true);
        bool can = can_be(model);
        if (why && can)
            fail_msg("%s, seed %d: \"%s\", but there is a placement", what, (int)seed, why);
        none += !can;
        seen += why != NULL;
        if (why)
            rules_named(model, why, seed);
    }
    print_message("%s: %d of %d seen\n", what, seen, none);
    assert_true(none > RUNS / 20);
    return seen * 100 / none;
}

static void test_contradiction_when_one_kind_of_conflict_then_all_seen(void **state)
{
    static const struct {
        const char *what;
        struct kinds kinds;
    } cases[] = {
        {"allowed", {.allowed = 4}},
        {"apart", {.apart = 1}},
        {"apart on allowed hosts", {.allowed = 4, .apart = 1}},
        {"spread", {.spread = 3, .zones = true}},
        {"apart, spread, allowed", {.allowed = 3, .spread = 2, .apart = 1, .zones = true}},
        {"together on allowed hosts", {.allowed = 4, .together = 3}},
        {"together and apart", {.together = 1, .apart = 1}},
        {"together and spread", {.together = 2, .spread = 2}},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_int_equal(sweep(cases[k].what, &cases[k].kinds), 100);
}

static void test_contradiction_when_rules_are_mixed_then_none_false_and_most_seen(void **state)
{
    static const struct kinds pairs = {.allowed = 3, .apart = 6, .pairs = true};
    static const struct kinds all = {
        .allowed = 3, .together = 2, .spread = 2, .apart = 3, .zones = true};
    (void)state;
    assert_true(sweep("apart in pairs", &pairs) >= 90);
    assert_true(sweep("all", &all) >= 90);
}

/* What is there now and breaks what cannot be kept: infeasible by all, and by those that leave what they
 * cannot mend only where that was not asked for. */
static void test_planners_when_rules_contradict_then_of_one_mind(void **state)
{
    static const struct {
        const char *planner;
        bool leaves;
    } cases[] = {{"auto", true}, {"hubs", true}, {"hba", true}, {"oa", false}, {"oa-modified", false}};
    struct wild wild = wild_all;
    int seen = 0;
    (void)state;
    wild.broken = true;
    wild.unplaced = false;
    for (uint64_t seed = 0; seed < RUNS / 2; seed++) {
        AUTO_GIVEN struct given given = given_make(&wild, seed);
        AUTO_FREE char *why = contradiction(given.model, true);
        given.options.objective = OBJECTIVE_AFFINITY;
        given.options.max_moves = -1;
        given.options.move_stateful = false;
        seen += why != NULL;
        for (size_t k = 0; why && k < sizeof cases / sizeof *cases; k++) {
            given.options.leave_broken = false;
            AUTO(plan) struct plan *plan = plan_by(&given, cases[k].planner);
            assert_int_equal(plan->status, PLAN_INFEASIBLE);
            assert_int_equal(plan->n_moves, 0);
            assert_string_equal(plan->why, why);
            given.options.leave_broken = true;
            AUTO(plan) struct plan *left = plan_by(&given, cases[k].planner);
            assert_int_equal(left->status, cases[k].leaves ? PLAN_FEASIBLE : PLAN_INFEASIBLE);
            if (cases[k].leaves && !strstr(left->why, "; still rules[") &&
                !strstr(left->why, " stays over its capacity"))
                fail_msg("%s does not say what stays broken: %s", cases[k].planner, left->why);
        }
    }
    print_message("%d models\n", seen);
    assert_true(seen > RUNS / 40);
}

/* Two of `many` on a host each, each beside one of `few`, of which one is placed nowhere yet: what is
 * placed breaks a rule that all together can keep. */
static void test_hba_when_only_the_unplaced_mend_a_rule_then_not_infeasible(void **state)
{
    static const int hosts[2][2] = {{0, 1}, {0, -1}};
    AUTO_GIVEN struct given given = {.model = model_new(), .options = plan_options_default};
    struct model *model = given.model;
    struct rng rng = {1};
    struct err err = ERR_INIT;
    (void)state;
    for (int h = 0; h < 2; h++) {
        int at = model_add_host(model, h ? "h1" : "h0", &err);
        model->hosts[at].cpu_cap_millis = model->hosts[at].mem_cap_bytes = 1000;
    }
    for (int s = 0; s < 2; s++) {
        int service = model_add_service(model, s ? "few" : "many", &err);
        for (int k = 0; k < 2; k++) {
            char name[] = {s ? 'f' : 'm', (char)('0' + k), 0};
            assert_true(model_add_instance(model, name, service, hosts[s][k], &err) >= 0);
        }
    }
    struct rule *spread = rule_add(model, RULE_SPREAD);
    spread->services[spread->n_services++] = 0;
    spread->max_share = 0.5;
    rule_services(rule_add(model, RULE_TOGETHER), model, 2, 2, &rng);
    given.analysis = analysis_from_given(model);
    assert_true(can_be(model));
    AUTO(plan) struct plan *left = plan_by(&given, "hba");
    AUTO(plan) struct plan *mended = plan_by(&given, "oa");
    assert_int_equal(left->status, PLAN_FEASIBLE);
    assert_non_null(strstr(left->why, "; still rules[1]"));
    assert_int_equal(mended->status, PLAN_OPTIMAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contradiction_when_one_kind_of_conflict_then_all_seen),
        cmocka_unit_test(test_contradiction_when_rules_are_mixed_then_none_false_and_most_seen),
        cmocka_unit_test(test_planners_when_rules_contradict_then_of_one_mind),
        cmocka_unit_test(test_hba_when_only_the_unplaced_mend_a_rule_then_not_infeasible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
