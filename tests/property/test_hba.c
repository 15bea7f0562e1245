/* test_hba.c - HBA against a literal transcription of its pseudo-code (algorithms 6.2) on random
 * models, and what holds for every plan of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "model/model_json.h"
#include "planner/planner.h"
#include "tests/bench/instances.h"

#define RUNS 3000

/* ---- the oracle: slow, and as close to the text as C can be ---- */

struct pair {
    int i, j;
    double degree;
    size_t row;
};

struct oracle {
    struct model *model; /* updated after each move */
    bool moved[64];
    int who[64], to[64];
    int n_moves;
};

/* "A host with one of them has all" must not be broken on a host where it was not. */
static bool together_broken(const struct model *model, const struct rule *rule, int host)
{
    size_t present = 0;
    for (size_t k = 0; k < rule->n_services; k++) {
        bool here = false;
        for (size_t i = 0; i < model->n_instances; i++)
            here |= model->instances[i].host == host &&
                    model->instances[i].service == rule->services[k];
        present += here;
    }
    return present > 0 && present < rule->n_services;
}

static bool together_worse(const struct model *before, const struct model *after)
{
    for (size_t r = 0; r < before->n_rules; r++)
        for (int h = 0; before->rules[r].kind == RULE_TOGETHER && h < (int)before->n_hosts; h++)
            if (together_broken(after, &after->rules[r], h) &&
                !together_broken(before, &before->rules[r], h))
                return true;
    return false;
}

static bool oracle_can(struct oracle *oracle, int who, int target)
{
    struct model *model = oracle->model;
    struct instance *one = &model->instances[who];
    if (oracle->moved[who] || instance_fixed_why(model, who, false) ||
        !model->hosts[target].schedulable)
        return false;
    AUTO_FREE struct load *used = model_host_loads(model);
    struct load offer = host_offer(&model->hosts[target]), need = instance_load(one);
    if (!load_fits(&offer, &used[target], &need, NULL))
        return false;
    AUTO(model) struct model *before = model_copy(model);
    int source = one->host;
    one->host = -1; /* the instance does not stand in its own way */
    bool ok = !model_rule_problem(model, NULL, one->service, target);
    one->host = target;
    ok = ok && !together_worse(before, model);
    one->host = source;
    return ok;
}

static void oracle_move(struct oracle *oracle, int who, int target)
{
    oracle->model->instances[who].host = target;
    oracle->who[oracle->n_moves] = who;
    oracle->to[oracle->n_moves++] = target;
}

static int pair_order(const void *left, const void *right, void *ctx)
{
    const struct pair *a = left, *b = right;
    const struct model *model = ctx;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    int by = strcmp(model->instances[a->i].name, model->instances[b->i].name);
    return by ? by : strcmp(model->instances[a->j].name, model->instances[b->j].name);
}

static struct pair pair_make(const struct model *model, int a, int b, double degree, size_t row)
{
    bool swap = strcmp(model->instances[a].name, model->instances[b].name) > 0;
    return (struct pair){swap ? b : a, swap ? a : b, degree, row};
}

static void oracle_plan(struct oracle *oracle, const struct analysis *analysis)
{
    struct model *model = oracle->model;
    static struct pair pairs[4096];
    size_t n = 0;
    for (size_t r = 0; r < analysis->n_rows; r++) {
        const struct affinity *row = &analysis->rows[r];
        if (row->level == LEVEL_INSTANCE) {
            pairs[n++] = pair_make(model, row->a, row->b, row->degree, r);
            continue;
        }
        for (size_t a = 0; a < model->n_instances; a++)
            for (size_t b = 0; b < model->n_instances; b++)
                if (model->instances[a].service == row->a && model->instances[b].service == row->b)
                    pairs[n++] = pair_make(model, (int)a, (int)b, row->degree, r);
    }
    qsort_r(pairs, n, sizeof *pairs, pair_order, model);
    for (size_t k = 0; k < n; k++) {
        int i = pairs[k].i, j = pairs[k].j;
        int hi = model->instances[i].host, hj = model->instances[j].host;
        if (pairs[k].degree <= 0 || hi < 0 || hj < 0)
            continue;
        if (hi == hj)
            oracle->moved[i] = oracle->moved[j] = true;
        else if (oracle_can(oracle, j, hi)) {
            oracle_move(oracle, j, hi);
            oracle->moved[i] = oracle->moved[j] = true;
        } else if (oracle_can(oracle, i, hj)) {
            oracle_move(oracle, i, hj);
            oracle->moved[i] = oracle->moved[j] = true;
        }
    }
}

/* ---- the properties ---- */

static struct plan *hba(const struct model *model)
{
    struct err err = ERR_INIT;
    struct plan *plan = NULL;
    struct plan_options options = plan_options_default;
    options.planner = "hba";
    options.leave_broken = true; /* as the pseudo code, which knows of no rules */
    if (planner_run(model, NULL, &options, &plan, &err) < 0)
        fail_msg("%s", err.text);
    return plan;
}

static void test_plan_when_any_model_then_that_of_the_pseudo_code(void **state)
{
    (void)state;
    struct wild wild = wild_all;
    wild.instances = 12;
    wild.hosts = 6;
    int moves = 0;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        AUTO(model) struct model *model = wild_model(&wild, seed);
        AUTO(model) struct model *copy = model_copy(model);
        AUTO(analysis) struct analysis *analysis = analysis_from_given(model);
        AUTO(plan) struct plan *plan = hba(model);
        struct oracle oracle = {.model = copy};
        oracle_plan(&oracle, analysis);
        if ((int)plan->n_moves != oracle.n_moves)
            fail_msg("seed %d: %zu moves instead of %d", (int)seed, plan->n_moves, oracle.n_moves);
        for (int k = 0; k < oracle.n_moves; k++)
            if (plan->moves[k].instance != oracle.who[k] || plan->moves[k].target != oracle.to[k])
                fail_msg("seed %d: move %d differs", (int)seed, k + 1);
        moves += oracle.n_moves;
    }
    assert_true(moves > RUNS / 2);
}

static void test_prefix_when_any_then_keeps_promises(void **state)
{
    (void)state;
    struct wild wild = wild_all;
    wild.instances = 12;
    wild.hosts = 6;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        struct err err = ERR_INIT;
        AUTO(model) struct model *model = wild_model(&wild, seed);
        AUTO(plan) struct plan *plan = hba(model);
        if (plan_check(plan, model, false, &err) < 0)
            fail_msg("seed %d: %s", (int)seed, err.text);
        double gains = 0;
        for (size_t k = 0; k < plan->n_moves; k++)
            gains += plan->moves[k].gain;
        assert_true(fabs(gains - (plan->affinity_after - plan->affinity_before)) < 1e-9);
        assert_true(plan->affinity_bound >= plan->affinity_after);
        assert_true(plan->hosts_bound <= plan->hosts_after);
    }
}

static void test_plan_when_repeated_then_same_bytes(void **state)
{
    (void)state;
    struct mock mock = {.topology = TOPOLOGY_P2P, .services = 60, .messages = 1000, .seed = 4};
    AUTO(model) struct model *model = mock_model(&mock);
    model->has_messages = false;
    model->has_affinities = true;
    for (size_t m = 0; m < model->n_messages; m++) {
        struct affinity *row = ARRAY_PUSH(model->affinities, model->n_affinities);
        *row = (struct affinity){.a = model->messages[m].src, .b = model->messages[m].dst,
                                 .degree = (double)model->messages[m].count, .bytes = -1};
    }
    model->n_messages = 0;
    struct buf texts[2] = {BUF_INIT, BUF_INIT};
    for (int k = 0; k < 2; k++) {
        AUTO(plan) struct plan *plan = hba(model);
        plan_encode(plan, model, false, &texts[k]);
    }
    assert_int_equal(texts[0].size, texts[1].size);
    assert_memory_equal(texts[0].data, texts[1].data, texts[0].size);
    buf_wipe(&texts[0]);
    buf_wipe(&texts[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_when_any_model_then_that_of_the_pseudo_code),
        cmocka_unit_test(test_prefix_when_any_then_keeps_promises),
        cmocka_unit_test(test_plan_when_repeated_then_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
