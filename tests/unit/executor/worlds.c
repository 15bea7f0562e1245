/* worlds.c - see worlds.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "tests/unit/executor/worlds.h"
#include "tests/support/small.h"

/* Three services of one replica, hosts of 100 that take three of them each, all affine. */
struct model *three_on_three(void)
{
    struct model *m = model_new();
    small_host(m, "h1", 100);
    small_host(m, "h2", 100);
    small_host(m, "h3", 100);
    small_instance(m, "a-1", "a", "h1", 30, 30);
    small_instance(m, "b-1", "b", "h2", 30, 30);
    small_instance(m, "c-1", "c", "h3", 30, 30);
    small_affinity(m, "a-1", "b-1", 0.6);
    small_affinity(m, "b-1", "c-1", 0.4);
    return m;
}

struct world world_of(struct model *model, const int *placement)
{
    struct world w = {model, scripted_new(model)};
    scripted_plan(w.s, placement);
    return w;
}

struct world three_to_h1(void)
{
    static const int placement[] = {0, 0, 0};
    return world_of(three_on_three(), placement);
}

void world_free(struct world *w)
{
    scripted_free(w->s);
    model_free(w->model);
}

void check_once(const struct world *w)
{
    for (size_t i = 0; i < w->s->n_effects; i++) {
        assert_true(w->s->effects[i] <= 1);
    }
    assert_int_equal(w->s->unintended, 0);
}

/* Two hosts that are full with one replica each, to be swapped. */
struct world swap(bool free_host)
{
    static const int placement[] = {1, 0};
    struct model *m = model_new();
    small_host(m, "h1", 100);
    small_host(m, "h2", 100);
    small_host(m, "h3", free_host ? 100 : 10);
    small_instance(m, "a-1", "a", "h1", 60, 60);
    small_instance(m, "b-1", "b", "h2", 70, 70);
    m->has_affinities = true;
    return world_of(m, placement);
}

void check_done(const struct world *w)
{
    check_once(w);
    CHECK_STATE(*w, 1, "applied");
    CHECK_STATE(*w, 2, "applied");
    assert_int_equal(scripted_count(w->s, "a", "h1"), 1);
    assert_int_equal(scripted_count(w->s, "b", "h1"), 1);
    assert_int_equal(scripted_count(w->s, "c", "h1"), 1);
    assert_int_equal(scripted_count(w->s, "b", "h2"), 0);
    assert_int_equal(scripted_count(w->s, "c", "h3"), 0);
}
