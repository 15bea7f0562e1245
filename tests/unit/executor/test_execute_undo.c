/* Plans put back on a scripted cluster (§6.5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "tests/unit/executor/worlds.h"

/* --- undo --- */

static void check_undone(struct world *w)
{
    w->s->undo = true;
    assert_int_equal(scripted_run(w->s, 3), 0);
    assert_string_equal(w->s->stopped, "");
    for (size_t i = 0; i < w->model->n_instances; i++) {
        const struct instance *x = &w->model->instances[i];
        assert_int_equal(scripted_count(w->s, w->model->services[x->service].name,
                                        w->model->hosts[x->host].name),
                         1);
    }
    check_once(w);
}

static void test_undo_when_asked_puts_every_move_back(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    assert_int_equal(scripted_attempt(w.s), 0);
    check_undone(&w);
    CHECK_STATE(w, 1, "undone");
    CHECK_STATE(w, 2, "undone");
    assert_int_equal(scripted_outcome(w.s, 4)->undo_of, 2); /* newest first */
    assert_int_equal(scripted_outcome(w.s, 5)->undo_of, 1);
    world_free(&w);
}

static void test_undo_when_a_replica_landed_elsewhere_takes_it_back_too(void **state)
{
    (void)state;
    struct world w = three_to_h1();
    assert_int_equal(scripted_attempt(w.s), 0);
    for (size_t i = 0; i < w.s->n_replicas; i++) {
        if (w.s->replicas[i].seq == 1 && !w.s->replicas[i].ended) {
            w.s->replicas[i].host = model_host(w.model, "h3");
        }
    }
    for (size_t i = 0; i < w.s->outcomes.n; i++) {
        if (w.s->outcomes.list[i].seq == 1) {
            w.s->outcomes.list[i].state = OUTCOME_MISSED;
        }
    }
    check_undone(&w);
    CHECK_STATE(w, 1, "undone");
    world_free(&w);
}

static void test_undo_when_killed_at_any_call_still_puts_every_move_back(void **state)
{
    (void)state;
    int64_t calls = 0;
    for (bool died = true; died; calls++) {
        struct world w = three_to_h1();
        assert_int_equal(scripted_attempt(w.s), 0);
        w.s->undo = true;
        w.s->calls_left = calls;
        died = scripted_attempt(w.s) < 0;
        w.s->calls_left = -1;
        check_undone(&w);
        CHECK_STATE(w, 1, "undone");
        CHECK_STATE(w, 2, "undone");
        world_free(&w);
    }
    assert_true(calls > 15);
}

static void test_undo_when_there_was_a_detour_takes_it_back_too(void **state)
{
    (void)state;
    struct world w = swap(true);
    assert_int_equal(scripted_attempt(w.s), 0);
    w.s->undo = true;
    /* One host more for the way back than the moves had: the detour's. */
    assert_int_equal(scripted_run(w.s, 3), 0);
    CHECK_STATE(w, 1, "undone");
    CHECK_STATE(w, 2, "undone");
    CHECK_STATE(w, 3, "undone");
    assert_int_equal(scripted_count(w.s, "a", "h1"), 1);
    assert_int_equal(scripted_count(w.s, "b", "h2"), 1);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undo_when_asked_puts_every_move_back),
        cmocka_unit_test(test_undo_when_a_replica_landed_elsewhere_takes_it_back_too),
        cmocka_unit_test(test_undo_when_killed_at_any_call_still_puts_every_move_back),
        cmocka_unit_test(test_undo_when_there_was_a_detour_takes_it_back_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
