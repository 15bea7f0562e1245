/* test_bounds.c - bounds of rows between replicated services against all placements of small models
 * with rules, unequal hosts and what cannot leave. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "model/base/clock.h"
#include "planner/bound.h"
#include "planner/bound_counts.h"
#include "planner/program.h"
#include "planner/roots.h"
#include "tests/bench/brute.h"
#include "tests/bench/instances.h"
#include "tests/support/runs.h"

#define RUNS RUNS_OF(4000)

/* Rows of instances become rows of their services: replicas that are alike. */
static void rows_of_services(struct model *model)
{
    size_t n = 0;
    for (size_t r = 0; r < model->n_affinities; r++) {
        struct affinity row = model->affinities[r];
        if (row.level == LEVEL_INSTANCE) {
            row.level = LEVEL_SERVICE;
            row.a = model->instances[row.a].service;
            row.b = model->instances[row.b].service;
        }
        if (row.a != row.b)
            model->affinities[n++] = row;
    }
    model->n_affinities = n;
}

static struct model *replicated_model(uint64_t seed)
{
    struct wild wild = wild_all;
    wild.instances = 8;
    wild.hosts = 4;
    wild.crowds = true;
    wild.rules = seed % 3 > 0;
    wild.broken = seed % 7 == 5;
    struct model *model = wild_model(&wild, seed);
    if (seed % 8)
        rows_of_services(model);
    return model;
}

struct tally {
    int bounded, tighter, exact;
};

static void check_one(uint64_t seed, struct tally *tally)
{
    struct err err = ERR_INIT;
    struct effort effort = {.limit = -1, .deadline_ms = INT64_MAX};
    AUTO(model) struct model *model = replicated_model(seed);
    AUTO(analysis) struct analysis *rows = analysis_from_given(model);
    AUTO(space) struct space *space =
        space_new(model, rows->rows, rows->n_rows, seed % 5 == 1, &err);
    if (!space || space->total <= 0)
        return;
    double bound = bound_counts(space, &plan_options_default, 0, &effort);
    double cheap = bound_affinity(model, rows->rows, rows->n_rows, seed % 5 == 1, true);
    struct brute best =
        brute_force(model, rows->rows, rows->n_rows, seed % 5 == 1, -1, false);
    if (!best.feasible || !isfinite(bound))
        return;
    if (bound < best.score - 1e-12)
        fail_msg("seed %d: bound %.12f below a placement's %.12f", (int)seed, bound, best.score);
    tally->bounded++;
    tally->tighter += bound < cheap - 1e-6;
    tally->exact += bound < best.score + 1e-6;
}

static void test_bound_of_counts_when_small_then_never_below_a_placement(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (uint64_t seed = 0; seed < RUNS; seed++)
        check_one(seed, &tally);
    print_message("%d bounded, %d below the cheap bound, %d at the optimum\n", tally.bounded,
                  tally.tighter, tally.exact);
    assert_true(tally.bounded > RUNS / 4);
    assert_true(tally.tighter > tally.bounded / 6);
    assert_true(tally.exact > tally.bounded / 4);
}

/* Each round is one iteration: so many of them again give the same bound, to the bit. */
static void test_bound_of_counts_when_repeated_then_the_same(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = production_model(2);
    AUTO(analysis) struct analysis *rows = analysis_from_given(model);
    AUTO(space) struct space *space = space_new(model, rows->rows, rows->n_rows, false, &err);
    assert_non_null(space);
    struct plan_options again = plan_options_default;
    double bounds[2];
    again.iterations = 8;
    for (int k = 0; k < 2; k++) {
        struct effort one = {.limit = 8, .done = 7, .deadline_ms = clock_mono_ms() - k};
        bounds[k] = bound_counts(space, &again, 0, &one);
        assert_true(one.done == 8 && one.cut);
    }
    assert_true(isfinite(bounds[0]) && bounds[0] < 0.9 * space->total);
    assert_memory_equal(&bounds[0], &bounds[1], sizeof bounds[0]);
    double first = bound_counts_first(space, &plan_options_default);
    assert_memory_equal(&first, &bounds[0], sizeof first);
    struct effort none = {.limit = 8, .done = 8, .deadline_ms = INT64_MAX};
    assert_true(isinf(bound_counts(space, &again, 0, &none)) && none.cut);
}

/* One service of one replica, one of four; a host has room for the one and two of the four. */
static void test_bound_of_counts_when_half_fits_beside_then_half(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = model_new();
    for (int h = 0; h < 3; h++) {
        int at = model_add_host(model, (char[]){'h', (char)('0' + h), 0}, &err);
        model->hosts[at].cpu_cap_millis = 350;
        model->hosts[at].mem_cap_bytes = 1000;
    }
    for (int s = 0; s < 2; s++) {
        int service = model_add_service(model, s ? "many" : "one", &err);
        for (int i = 0; i < (s ? 4 : 1); i++) {
            char name[] = {s ? 'm' : 'o', (char)('0' + i), 0};
            int at = model_add_instance(model, name, service, s ? 1 + i % 2 : 0, &err);
            model->instances[at].cpu_used_millis = 100;
        }
    }
    model->has_affinities = true;
    *ARRAY_PUSH(model->affinities, model->n_affinities) =
        (struct affinity){.level = LEVEL_SERVICE, .a = 0, .b = 1, .degree = 1, .bytes = -1};
    AUTO(analysis) struct analysis *rows = analysis_from_given(model);
    AUTO(space) struct space *space = space_new(model, rows->rows, rows->n_rows, false, &err);
    struct effort effort = {.limit = -1, .deadline_ms = INT64_MAX};
    double bound = bound_counts(space, &plan_options_default, 0, &effort);
    assert_true(fabs(bound - 0.5) < 1e-6);
}

/* max 3x + 2y, x + y <= 4, x <= 3, y <= 3: 11. Before it is solved, and with prices that are wrong, a
 * bound above; never one below. */
static void test_program_bound_when_not_solved_then_above_the_optimum(void **state)
{
    (void)state;
    struct program program;
    glp_term_out(GLP_OFF);
    program_init(&program);
    int row = program_row(&program, GLP_UP, 0, 4);
    program_entry(&program, row, program_column(&program, GLP_CV, 3, 3), 1);
    program_entry(&program, row, program_column(&program, GLP_CV, 3, 2), 1);
    program_load(&program);
    assert_true(fabs(program_bound(&program) - 15) < 1e-6);
    assert_int_equal(glp_simplex(program.lp, NULL), 0);
    double bound = program_bound(&program);
    assert_true(bound >= 11 && bound < 11 + 1e-6);
    program_wipe(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_of_counts_when_small_then_never_below_a_placement),
        cmocka_unit_test(test_bound_of_counts_when_repeated_then_the_same),
        cmocka_unit_test(test_bound_of_counts_when_half_fits_beside_then_half),
        cmocka_unit_test(test_program_bound_when_not_solved_then_above_the_optimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
