/* Random plans on a scripted cluster, with random faults and an executor that is killed at random
 * points (issue 3): no move is applied twice, nothing is done before its intent is committed, no
 * replica is lost, what is told as applied is where it was sent, and an undo brings everything
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "tests/support/gen.h"
#include "tests/support/scripted_cluster.h"

#define WORLDS 600
#define MAX_DEATHS 6

static int abreast; /* worlds in which moves were under way side by side */

static struct model *random_model(struct rng *rng)
{
    const struct gen_options options = {.max_hosts = 6,
                                        .max_services = 8,
                                        .max_replicas = 3,
                                        .affinities = true,
                                        .fill = 0.3 + 0.6 * rng_real(rng)};
    struct model *m = gen_model(rng, &options);
    for (size_t i = 0; i < m->n_instances; i++) {
        if (m->instances[i].host < 0) { /* a replica without a host cannot go back to none */
            model_free(m);
            return random_model(rng);
        }
    }
    return m;
}

static int replicas_living(const struct scripted *s, int service)
{
    int n = 0;
    for (size_t i = 0; i < s->n_replicas; i++) {
        n += !s->replicas[i].ended && s->replicas[i].service == service;
    }
    return n;
}

/* Replicas of each service on each host by what was told: the start, and every applied move. */
static void check_places(const struct scripted *s, const struct model *m)
{
    AUTO_FREE int *want = mem_array(m->n_services * m->n_hosts + 1, sizeof *want);
    for (size_t i = 0; i < m->n_instances; i++) {
        want[(size_t)m->instances[i].service * m->n_hosts + (size_t)m->instances[i].host]++;
    }
    for (size_t i = 0; i < s->outcomes.n; i++) {
        const struct outcome *o = &s->outcomes.list[i];
        bool was_made = o->state == OUTCOME_APPLIED || o->state == OUTCOME_UNDONE;
        bool undo_of_failed = false;
        if (o->undo_of > 0) {
            const struct outcome *forward = scripted_outcome(s, o->undo_of);
            undo_of_failed = forward && forward->state == OUTCOME_FAILED;
        }
        if (was_made && !undo_of_failed) {
            size_t row = (size_t)model_service(m, o->service) * m->n_hosts;
            want[row + (size_t)model_host(m, o->source)]--;
            want[row + (size_t)model_host(m, o->target)]++;
        }
    }
    for (size_t v = 0; v < m->n_services; v++) {
        for (size_t h = 0; h < m->n_hosts; h++) {
            assert_int_equal(scripted_count(s, m->services[v].name, m->hosts[h].name),
                             want[v * m->n_hosts + h]);
        }
    }
}

static void check_world(const struct scripted *s, const struct model *m)
{
    AUTO_FREE int *before = model_replicas(m);
    for (size_t i = 0; i < s->n_effects; i++) {
        assert_true(s->effects[i] <= 1);
    }
    assert_int_equal(s->unintended, 0);
    for (size_t v = 0; v < m->n_services; v++) {
        assert_int_equal(replicas_living(s, (int)v), before[v]);
    }
    for (size_t i = 0; i < s->plan->n_moves; i++) { /* everything is told */
        assert_non_null(scripted_outcome(s, s->plan->moves[i].seq));
    }
    check_places(s, m);
}

/* Attempts, the first ones killed after a random number of calls. */
static void run_killed(struct scripted *s, struct rng *rng)
{
    int deaths = (int)rng_below(rng, MAX_DEATHS);
    for (int i = 0; i < deaths; i++) {
        s->calls_left = rng_int(rng, 0, 60);
        if (scripted_attempt(s) == 0) {
            s->calls_left = -1;
            return;
        }
    }
    s->calls_left = -1;
    assert_int_equal(scripted_run(s, 3), 0);
}

/* With SEED set: what happened, for whoever looks into one world. */
static void show(const struct scripted *s)
{
    for (size_t i = 0; getenv("SEED") && i < s->outcomes.n; i++) {
        AUTO_BUF struct buf text = BUF_INIT;
        outcome_encode(&s->outcomes.list[i], &text);
        print_message("%s\n", text.data);
    }
}

static void one_world(uint64_t seed)
{
    struct rng rng = {seed};
    AUTO(model) struct model *m = random_model(&rng);
    AUTO_FREE int *placement = gen_placement(&rng, m, 12);
    struct scripted *s = scripted_new(m);
    scripted_plan(s, placement);
    s->rng.state = seed * 31;
    s->wall_jumps = true;
    s->wall.state = seed * 39; /* 343 has a full host refuse an undo */
    s->marks = rng_chance(&rng, 0.5);
    s->start_first = rng_chance(&rng, 0.5);
    s->max_parallel = seed % 2 ? 1 : 1 + (int64_t)(seed / 2 % 4);
    print_message("seed %llu marks %d start_first %d\n", (unsigned long long)seed, s->marks,
                  s->start_first);
    s->faults.lost_answer = rng_chance(&rng, 0.5) ? 0.3 : 0;
    s->faults.unreachable = rng_chance(&rng, 0.5) ? 0.3 : 0;
    s->faults.forget = s->marks && rng_chance(&rng, 0.3) ? 0.2 : 0;
    s->faults.refuse = rng_chance(&rng, 0.2) ? 0.1 : 0;
    s->faults.stuck = s->start_first && rng_chance(&rng, 0.2) ? 0.1 : 0;
    run_killed(s, &rng);
    show(s);
    check_world(s, m);
    assert_true(s->most_at_once <= s->max_parallel || s->most_at_once <= 1);
    abreast += s->most_at_once > 1;
    if (s->marks && rng_chance(&rng, 0.5)) {
        s->faults = (struct scripted_faults){0};
        s->undo = true;
        run_killed(s, &rng);
        show(s);
        check_world(s, m);
    }
    scripted_free(s);
}

static void test_executor_when_killed_and_lied_to_never_applies_a_move_twice(void **state)
{
    (void)state;
    const char *only = getenv("SEED");
    for (uint64_t seed = only ? strtoull(only, NULL, 10) : 1;
         seed <= (only ? strtoull(only, NULL, 10) : WORLDS); seed++) {
        one_world(seed);
    }
    assert_true(only || abreast > WORLDS / 20); /* moves did go side by side */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_executor_when_killed_and_lied_to_never_applies_a_move_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
