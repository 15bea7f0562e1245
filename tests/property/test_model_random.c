/* test_model_random.c - what holds for every model and plan: 400 random ones from fixed seeds. */
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
#include "model/rules.h"
#include "tests/support/gen.h"

#define ROUNDS 400

/* Names the seed of the model that an assertion was about. */
#define require(condition, seed)                                                             \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            print_error("seed %llu: %s\n", (unsigned long long)(seed), #condition);          \
            fail();                                                                          \
        }                                                                                    \
    } while (0)

static struct gen_options options_of(uint64_t seed)
{
    return (struct gen_options){
        .max_hosts = seed % 3 == 0 ? 3 : 12,
        .max_services = 15,
        .max_replicas = seed % 2 ? 1 : 4,
        .rules = seed % 5 == 0,
        .requests = seed % 4 < 2,
        .affinities = true,
        .fixed = seed % 7 == 0,
        .fill = seed % 3 == 0 ? 1.0 : 0.6,
    };
}

static void test_model_when_random_is_valid_and_survives_encoding(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct rng rng = {seed};
        struct gen_options options = options_of(seed);
        AUTO(model) struct model *model = gen_model(&rng, &options);
        AUTO_BUF struct buf once = BUF_INIT, twice = BUF_INIT, third = BUF_INIT;
        struct err err = ERR_INIT;

        require(model_check(model, &err) == 0, seed);
        model_encode(model, &once);
        AUTO(model) struct model *again = model_decode(once.data, once.size, &err);
        if (!again)
            print_error("%s\n", err.text);
        require(again != NULL, seed);
        model_encode(again, &twice);
        require(strcmp(once.data, twice.data) == 0, seed);
        AUTO(model) struct model *copy = model_copy(again);
        model_encode(copy, &third);
        require(strcmp(once.data, third.data) == 0, seed);
    }
}

static bool same_plan(const struct plan *a, const struct plan *b, const struct model *model)
{
    AUTO_BUF struct buf x = BUF_INIT, y = BUF_INIT;

    plan_encode(a, model, true, &x);
    plan_encode(b, model, true, &y);
    return strcmp(x.data, y.data) == 0;
}

static void survives_encoding(const struct plan *plan, const struct model *model, uint64_t seed)
{
    AUTO_BUF struct buf text = BUF_INIT;
    struct err err = ERR_INIT;

    plan_encode(plan, model, true, &text);
    AUTO_JSON json_t *tree = json_parse(text.data, text.size, &json_limits_document, &err);
    struct jval root = jval_root(tree);
    AUTO(plan) struct plan *again = plan_decode_value(&root, model, &err);
    require(again != NULL, seed);
    require(same_plan(plan, again, model), seed);
    require(plan_check(again, model, false, &err) == 0, seed);
}

/* The slow way: the score after each move, by itself. */
static void gains_are_right(const struct plan *plan, const struct model *model,
                            const struct analysis *analysis, uint64_t seed)
{
    AUTO(plan_walk) struct plan_walk *walk = plan_walk_new(model);
    double score = placement_score(model, analysis->rows, analysis->n_rows,
                                   plan_walk_placement(walk));

    require(fabs(score - plan->affinity_before) < 1e-9, seed);
    for (size_t i = 0; i < plan->n_moves; i++) {
        plan_walk_apply(walk, &plan->moves[i]);
        double after = placement_score(model, analysis->rows, analysis->n_rows,
                                       plan_walk_placement(walk));
        require(fabs(after - score - plan->moves[i].gain) < 1e-9, seed);
        score = after;
    }
    require(fabs(score - plan->affinity_after) < 1e-9, seed);
    require(memcmp(plan->placement, plan_walk_placement(walk),
                   plan->n_placement * sizeof *plan->placement) == 0,
            seed);
}

/* Loads counted from scratch after each move. */
static void prefixes_keep_capacity(const struct plan *plan, const struct model *model,
                                   uint64_t seed)
{
    struct err err = ERR_INIT;
    const struct load nothing = {0, 0, 0, 0, 0};

    for (size_t n = 1; n <= plan->n_moves && !plan->unordered; n++) {
        AUTO(model) struct model *copy = model_copy(model);
        require(plan_apply(plan, copy, n, &err) == 0, seed);
        AUTO_FREE struct load *used = model_host_loads(copy);
        struct load offer = host_offer(&copy->hosts[plan->moves[n - 1].target]);
        require(load_fits(&offer, &used[plan->moves[n - 1].target], &nothing, NULL), seed);
    }
}

static void test_plan_fill_when_random_keeps_its_promises(void **state)
{
    size_t moves = 0, unordered = 0;

    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct rng rng = {seed};
        struct gen_options options = options_of(seed);
        options.rules = false; /* a random placement breaks them */
        AUTO(model) struct model *model = gen_model(&rng, &options);
        AUTO_FREE int *placement = gen_placement(&rng, model, 200);
        AUTO(analysis) struct analysis *analysis = analysis_from_given(model);
        AUTO(plan) struct plan *plan = plan_new(), *twin = plan_new();
        struct err err = ERR_INIT;

        require(plan_fill(plan, model, analysis->rows, analysis->n_rows, placement, &err) == 0,
                seed);
        require(memcmp(plan->placement, placement, plan->n_placement * sizeof *placement) == 0,
                seed);
        if (plan_check(plan, model, false, &err) < 0)
            print_error("%s\n", err.text);
        require(plan_check(plan, model, false, &err) == 0, seed);
        require(plan->unordered == (plan->n_cycles > 0), seed);
        prefixes_keep_capacity(plan, model, seed);
        gains_are_right(plan, model, analysis, seed);
        survives_encoding(plan, model, seed);
        plan_fill(twin, model, analysis->rows, analysis->n_rows, placement, &err);
        require(same_plan(plan, twin, model), seed);
        moves += plan->n_moves;
        unordered += plan->unordered;
    }
    /* The generator reaches what it is for. */
    assert_true(moves > 1000 && unordered > 5 && unordered < ROUNDS / 2);
}

static void test_plan_fill_when_rules_end_kept_keeps_them_on_the_way(void **state)
{
    size_t ruled = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 5 * ROUNDS; seed++) {
        struct rng rng = {seed};
        struct gen_options options = options_of(seed);
        options.rules = true;
        AUTO(model) struct model *model = gen_model(&rng, &options);
        AUTO_FREE int *before = model_placement(model);
        AUTO_FREE int *placement = gen_placement(&rng, model, 20);
        AUTO(plan) struct plan *plan = plan_new();
        struct err err = ERR_INIT;

        if (model->n_rules == 0 || model_rules_kept(model, before, placement, &err) < 0)
            continue;
        require(plan_fill(plan, model, NULL, 0, placement, &err) == 0, seed);
        if (plan_check(plan, model, false, &err) < 0)
            print_error("%s\n", err.text);
        require(plan_check(plan, model, false, &err) == 0, seed);
        ruled += plan->n_moves > 1 && !plan->unordered;
    }
    assert_true(ruled > 100);
}

static void test_plan_check_when_random_plan_is_spoiled_refuses(void **state)
{
    size_t spoiled = 0;

    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct rng rng = {seed};
        struct gen_options options = options_of(seed);
        options.rules = false;
        AUTO(model) struct model *model = gen_model(&rng, &options);
        AUTO_FREE int *placement = gen_placement(&rng, model, 50);
        AUTO(plan) struct plan *plan = plan_new();
        struct err err = ERR_INIT;

        require(plan_fill(plan, model, NULL, 0, placement, &err) == 0, seed);
        if (plan->n_moves == 0)
            continue;
        struct move *move = &plan->moves[rng_below(&rng, plan->n_moves)];
        switch (rng_below(&rng, 5)) {
        case 0:
            move->source = move->source < 0 ? 0 : -1;
            break;
        case 1:
            move->target = move->source;
            break;
        case 2:
            move->target = (int)model->n_hosts;
            break;
        case 3:
            move->seq = 0;
            break;
        default:
            plan->placement[move->instance] = -1;
            break;
        }
        require(plan_check(plan, model, false, &err) == -1, seed);
        require(err.kind == ERR_INPUT, seed);
        spoiled++;
    }
    assert_true(spoiled > ROUNDS / 2);
}

/* Even target counts over a random choice of hosts, for every service that may move. */
static int *service_placement(struct rng *rng, const struct model *model)
{
    int *placement = model_placement(model);
    AUTO_MEMBERS struct members members = model_members(model);

    for (size_t s = 0; s < model->n_services; s++) {
        size_t width = 1 + rng_below(rng, 3), first = rng_below(rng, model->n_hosts);
        bool fixed = rng_chance(rng, 0.3);
        for (int m = members.first[s]; m < members.first[s + 1]; m++)
            fixed |= instance_fixed_why(model, members.of[m], false) != NULL;
        width = width > model->n_hosts ? model->n_hosts : width;
        for (int m = members.first[s]; !fixed && m < members.first[s + 1]; m++)
            placement[members.of[m]] =
                (int)((first + (size_t)(m - members.first[s]) % width) % model->n_hosts);
    }
    return placement;
}

static void test_plan_fill_when_per_service_keeps_its_promises(void **state)
{
    size_t filled = 0;

    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct rng rng = {seed};
        struct gen_options options = options_of(seed);
        options.rules = false;
        options.fill = 0.3;
        AUTO(model) struct model *model = gen_model(&rng, &options);
        AUTO_FREE int *placement = service_placement(&rng, model);
        AUTO(analysis) struct analysis *analysis = analysis_from_given(model);
        AUTO(plan) struct plan *plan = plan_new();
        struct err err = ERR_INIT;

        plan->granularity = PER_SERVICE;
        if (plan_fill(plan, model, analysis->rows, analysis->n_rows, placement, &err) < 0) {
            require(err.kind == ERR_INFEASIBLE && plan->n_moves == 0, seed);
            continue;
        }
        gains_are_right(plan, model, analysis, seed);
        if (plan->unordered)
            continue;
        survives_encoding(plan, model, seed);
        filled += plan->n_moves > 0;
    }
    assert_true(filled > 20);
}

static void test_rules_when_asked_both_ways_agree(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct rng rng = {seed};
        struct gen_options options = options_of(seed);
        options.rules = true;
        AUTO(model) struct model *model = gen_model(&rng, &options);
        AUTO_FREE int *placement = model_placement(model);
        struct err err = ERR_INIT;

        /* First fit obeyed apart, allowed and spread; only together may be broken. */
        if (model_rules_hold(model, placement, &err) < 0)
            require(strstr(err.text, "together") != NULL, seed);
        AUTO(rule_tally) struct rule_tally *tally = rule_tally_new(model, placement);
        for (size_t i = 0; i < model->n_instances; i++) {
            int target = (int)rng_below(&rng, model->n_hosts), source = placement[i];
            if (source == target)
                continue;
            if (source >= 0)
                rule_tally_add(tally, model->instances[i].service, source, -1);
            const char *problem = rule_tally_problem(tally, model->instances[i].service, target);
            if (source >= 0)
                rule_tally_add(tally, model->instances[i].service, source, 1);
            placement[i] = target;
            AUTO_FREE int *before = model_placement(model);
            bool kept = model_rules_kept(model, before, placement, &err) == 0;
            if (!kept && !strstr(err.text, "together"))
                require(problem != NULL, seed);
            placement[i] = source;
        }
    }
}

static void test_gen_mock_when_made_has_the_papers_shape(void **state)
{
    static const size_t sizes[] = {10, 100, 1000};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        for (int topology = GEN_STAR; topology <= GEN_P2P; topology++) {
            AUTO(model) struct model *model =
                gen_mock((enum gen_topology)topology, sizes[i], 100000, 7);
            struct err err = ERR_INIT;
            int64_t count = 0;
            assert_int_equal(model_check(model, &err), 0);
            assert_int_equal(model->n_messages,
                             topology == GEN_STAR ? sizes[i] - 1 : 2 * sizes[i] - 4);
            for (size_t m = 0; m < model->n_messages; m++)
                count += model->messages[m].count;
            assert_int_equal(count, 100000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_when_random_is_valid_and_survives_encoding),
        cmocka_unit_test(test_plan_fill_when_random_keeps_its_promises),
        cmocka_unit_test(test_plan_fill_when_rules_end_kept_keeps_them_on_the_way),
        cmocka_unit_test(test_plan_check_when_random_plan_is_spoiled_refuses),
        cmocka_unit_test(test_plan_fill_when_per_service_keeps_its_promises),
        cmocka_unit_test(test_rules_when_asked_both_ways_agree),
        cmocka_unit_test(test_gen_mock_when_made_has_the_papers_shape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
