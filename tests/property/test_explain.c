/* test_explain.c - every reason of `discarded`, computed anew from model and plan alone: what is
 * said to be fixed is, what is said not to fit does not, a total changes as is said. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "model/rules.h"
#include "planner/bound.h"
#include "planner/planner.h"
#include "tests/bench/instances.h"

#define RUNS 1500

enum reason { FIXED, CLOSED, FULL, RULE, BUDGET, TOTAL, OTHER, N_REASONS };
static const char *const reason_names[] = {"fixed",  "closed", "full",  "rule",
                                           "budget", "total",  "other"};

struct sample {
    struct model *model;
    struct analysis *analysis;
    struct plan_options options;
    struct plan *plan;
};

static struct sample sample_make(uint64_t seed, enum granularity granularity)
{
    struct wild wild = wild_all;
    struct err err = ERR_INIT;
    struct sample sample = {.options = plan_options_default};
    wild.instances = 12;
    wild.hosts = 4;
    wild.crowds = granularity == PER_SERVICE;
    sample.model = wild_model(&wild, seed);
    sample.analysis = analysis_from_given(sample.model);
    sample.options.planner = granularity == PER_INSTANCE && seed % 9 == 4 ? "oa-modified" : "hubs";
    sample.options.granularity = granularity;
    sample.options.move_stateful = seed % 5 == 1;
    sample.options.max_moves = seed % 4 == 2 ? (int64_t)(seed / 4 % 4) : -1;
    sample.options.objective = seed % 7 == 2 ? OBJECTIVE_HOSTS : OBJECTIVE_AFFINITY;
    if (planner_run(sample.model, sample.analysis, &sample.options, &sample.plan, &err) < 0)
        fail_msg("%s", err.text);
    return sample;
}

static void sample_wipe(struct sample *sample)
{
    model_free(sample->model);
    analysis_free(sample->analysis);
    plan_free(sample->plan);
}

static double score_of(const struct sample *s, const int *at)
{
    return placement_score(s->model, s->analysis->rows, s->analysis->n_rows, at);
}

/* What is free of the dimension on the host in the plan's placement. */
static double room_of(const struct sample *s, int host, int dim)
{
    struct load offer = host_offer(&s->model->hosts[host]);
    int64_t all[LOAD_DIMS], room;
    load_dims(&offer, all);
    room = all[dim];
    for (size_t i = 0; i < s->model->n_instances; i++) {
        struct load load = instance_load(&s->model->instances[i]);
        load_dims(&load, all);
        room -= s->plan->placement[i] == host ? all[dim] : 0;
    }
    return (double)room;
}

static int dim_of(const char *text)
{
    for (int d = 0; d < LOAD_DIMS; d++) {
        size_t n = strlen(load_dim_names[d]);
        if (strncmp(text, load_dim_names[d], n) == 0 && strncmp(text + n, " (needs", 7) == 0)
            return d;
    }
    return -1;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The rule that is named is of that kind and speaks of the service. */
static void rule_check(const struct model *model, uint64_t seed, const char *why, int service)
{
    char kind[16];
    size_t which;
    if (sscanf(why, "rule %15s (rules[%zu]", kind, &which) != 2 || which >= model->n_rules)
        fail_msg("seed %d: \"%s\"", (int)seed, why);
    const struct rule *rule = &model->rules[which];
    bool named = false;
    for (size_t k = 0; k < rule->n_services; k++)
        named |= rule->services[k] == service;
    assert_true(named);
    assert_string_equal(kind, rule_kind_name(rule->kind));
}

/* "INSTANCE to HOST: reason" */
static enum reason piece_check(const struct sample *s, uint64_t seed, const char *piece)
{
    const struct model *model = s->model;
    char who[32], where[32];
    const char *why = strstr(piece, ": ");
    if (!why || sscanf(piece, "%31s to %31[^:]", who, where) != 2)
        fail_msg("seed %d: \"%s\"", (int)seed, piece);
    why += 2;
    int i = model_instance(model, who), host = model_host(model, where), dim = dim_of(why);
    assert_true(i >= 0 && host >= 0);
    int start = model->instances[i].host;
    AUTO_FREE int *at = mem_dup(s->plan->placement, model->n_instances * sizeof *at);
    at[i] = host;
    const char *fixed = start < 0 ? NULL : instance_fixed_why(model, i, s->options.move_stateful);
    if (fixed || (dim < 0 && !starts(why, "rule ") && !starts(why, "changes") &&
                  !starts(why, "the host") && !starts(why, "no moves"))) {
        if (!fixed || strcmp(why, fixed) != 0)
            fail_msg("seed %d: \"%s\", but fixed is \"%s\"", (int)seed, piece, fixed ? fixed : "");
        return FIXED;
    }
    if (starts(why, "the host is not schedulable")) {
        assert_true(!model->hosts[host].schedulable && start != host);
        return CLOSED;
    }
    assert_true(model->hosts[host].schedulable || start == host);
    if (dim >= 0) {
        struct load load = instance_load(&model->instances[i]);
        int64_t need[LOAD_DIMS];
        load_dims(&load, need);
        if ((double)need[dim] <= room_of(s, host, dim))
            fail_msg("seed %d: \"%s\", but it fits", (int)seed, piece);
        return FULL;
    }
    struct err err = ERR_INIT;
    bool kept = model_rules_kept(model, s->plan->placement, at, &err) == 0;
    if (starts(why, "rule ")) {
        if (kept)
            fail_msg("seed %d: \"%s\", but none is broken", (int)seed, piece);
        rule_check(model, seed, why, model->instances[i].service);
        return RULE;
    }
    if (!kept)
        fail_msg("seed %d: \"%s\", but %s", (int)seed, piece, err.text);
    if (starts(why, "no moves ")) {
        assert_true(starts(why, "no moves are allowed") == (s->options.max_moves == 0));
        assert_true((int64_t)s->plan->n_moves >= s->options.max_moves &&
                    s->plan->placement[i] == start);
        return BUDGET;
    }
    double said = strtod(why + strlen("changes the total by "), NULL);
    double gain = score_of(s, at) - score_of(s, s->plan->placement);
    if (fabs(said - gain) > 1e-5 * fmax(1e-3, fabs(gain)))
        fail_msg("seed %d: \"%s\", but by %g", (int)seed, piece, gain);
    bool blind = strcmp(s->options.planner, "oa-modified") == 0;
    if (blind && gain > 1e-9)
        assert_non_null(strstr(why, ", which is not looked at (resources only)"));
    else if (gain > 1e-9)
        fail_msg("seed %d: \"%s\" would have been better", (int)seed, piece);
    return TOTAL;
}

static void test_reasons_when_instances_move_then_true(void **state)
{
    (void)state;
    int seen[N_REASONS] = {0};
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        struct sample s = sample_make(seed, PER_INSTANCE);
        for (size_t k = 0; k < s.plan->n_discarded; k++) {
            const struct discarded *d = &s.plan->discarded[k];
            struct affinity row = {.level = d->level, .a = d->a, .b = d->b, .degree = d->degree};
            assert_true(placement_score(s.model, &row, 1, s.plan->placement) <
                        d->degree * (1 - 1e-12));
            AUTO_FREE char *text = mem_strdup(d->why);
            if (strstr(text, "has no instance") || strstr(text, "is not placed")) {
                seen[OTHER]++;
            } else {
                char *second = strstr(text, "; ");
                assert_non_null(second);
                *second = '\0';
                seen[piece_check(&s, seed, text)]++;
                seen[piece_check(&s, seed, second + 2)]++;
            }
        }
        sample_wipe(&s);
    }
    for (int r = 0; r < N_REASONS; r++) {
        print_message("%s %d\n", reason_names[r], seen[r]);
        assert_true(r == OTHER || seen[r] > 10);
    }
}

/* "SERVICE to the hosts of OTHER: reason" */
static enum reason service_check(const struct sample *s, uint64_t seed, const char *piece)
{
    const struct model *model = s->model;
    char who[32], other[32];
    const char *why = strstr(piece, ": ");
    if (!why || sscanf(piece, "%31s to the hosts of %31[^:]", who, other) != 2)
        fail_msg("seed %d: \"%s\"", (int)seed, piece);
    why += 2;
    int service = model_service(model, who), with = model_service(model, other);
    assert_true(service >= 0 && with >= 0);
    const char *fixed = NULL;
    for (size_t i = 0; i < model->n_instances && !fixed; i++)
        if (model->instances[i].service == service && model->instances[i].host >= 0)
            fixed = instance_fixed_why(model, (int)i, s->options.move_stateful);
    if (fixed)
        return FIXED;
    if (starts(why, "the host is not schedulable")) {
        for (size_t i = 0; i < model->n_instances; i++)
            if (model->instances[i].service == with)
                assert_false(model->hosts[s->plan->placement[i]].schedulable);
        return CLOSED;
    }
    if (starts(why, "host ")) {
        char host[32];
        assert_int_equal(sscanf(why, "host %31[^:]", host), 1);
        int h = model_host(model, host), dim = dim_of(strstr(why, ": ") + 2);
        double own = 0, all = 0;
        assert_true(h >= 0 && dim >= 0);
        for (size_t i = 0; i < model->n_instances; i++) {
            struct load load = instance_load(&model->instances[i]);
            int64_t need[LOAD_DIMS];
            load_dims(&load, need);
            if (model->instances[i].service != service)
                continue;
            all += (double)need[dim];
            own += s->plan->placement[i] == h ? (double)need[dim] : 0;
        }
        if (all <= room_of(s, h, dim) + own)
            fail_msg("seed %d: \"%s\", but all of it fits", (int)seed, piece);
        return FULL;
    }
    size_t which;
    if (sscanf(why, "rules[%zu] (", &which) == 1) {
        assert_true(which < model->n_rules && strstr(why, ") would not hold "));
        return RULE;
    }
    long long takes, allowed, left;
    if (sscanf(why, "takes %lld moves, of %lld allowed %lld are left", &takes, &allowed, &left) == 3) {
        if (allowed != s->options.max_moves || left < 0 || left > allowed || takes <= left)
            fail_msg("seed %d: \"%s\"", (int)seed, piece);
        return BUDGET;
    }
    if (!starts(why, "changes the total by "))
        fail_msg("seed %d: \"%s\"", (int)seed, piece);
    return TOTAL;
}

static void test_reasons_when_services_move_then_true(void **state)
{
    (void)state;
    int seen[N_REASONS] = {0};
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        struct sample s = sample_make(seed, PER_SERVICE);
        for (size_t k = 0; k < s.plan->n_discarded; k++) {
            AUTO_FREE char *text = mem_strdup(s.plan->discarded[k].why);
            char *second = strstr(text, "; ");
            if (!second) {
                seen[OTHER]++;
                continue;
            }
            *second = '\0';
            seen[service_check(&s, seed, text)]++;
            seen[service_check(&s, seed, second + 2)]++;
        }
        sample_wipe(&s);
    }
    for (int r = 0; r < N_REASONS; r++) {
        print_message("%s %d\n", reason_names[r], seen[r]);
        assert_true(r == OTHER || seen[r] > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reasons_when_instances_move_then_true),
        cmocka_unit_test(test_reasons_when_services_move_then_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
