/* test_merge.c - the rule of merge.h: of several sources that tell of a pair the one with most
 * messages counts, never the sum, and gets what it does not know from the others. */
#include "monitor/merge.h"
#include "adapters/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

enum { FRONT, CART, DB };
enum { FRONT_1, CART_1, CART_2, DB_1 };

static struct inspection new_inspection(void)
{
    struct err err = ERR_INIT;
    struct model *m = model_new();
    static const char *const services[] = {"front", "cart", "db"};
    static const char *const pods[] = {"front-1", "cart-1", "cart-2", "db-1"};
    static const int of[] = {FRONT, CART, CART, DB};
    for (size_t i = 0; i < ARRAY_LEN(services); i++)
        assert_int_equal(model_add_service(m, services[i], &err), i);
    for (size_t i = 0; i < ARRAY_LEN(pods); i++)
        assert_int_equal(model_add_instance(m, pods[i], of[i], -1, &err), i);
    m->has_messages = true;
    return (struct inspection){.model = m, .identity = identity_new(m)};
}

static void add(struct inspection *in, enum level level, int src, int dst, int64_t count,
                int64_t bytes, double mean_ms)
{
    *ARRAY_PUSH(in->model->messages, in->model->n_messages) =
        (struct message){level, src, dst, count, bytes, mean_ms};
}

static void end(struct inspection *in, struct merge *merge)
{
    struct err err = ERR_INIT;
    merge_finish(merge);
    merge_wipe(merge);
    if (model_check(in->model, &err))
        fail_msg("%s", err.text);
}

static void wipe(struct inspection *in)
{
    model_free(in->model);
    identity_free(in->identity);
    inspection_wipe(in);
}

static void assert_row(const struct inspection *in, size_t at, enum level level, int src,
                       int64_t count, int64_t bytes, double mean_ms)
{
    const struct message *row = &in->model->messages[at];
    assert_true(at < in->model->n_messages);
    assert_int_equal(row->level, level);
    assert_int_equal(row->src, src);
    assert_int_equal(row->count, count);
    assert_int_equal(row->bytes, bytes);
    assert_true(row->mean_ms == mean_ms);
}

static void test_merge_when_sources_overlap_then_most_messages_per_pair(void **state)
{
    (void)state;
    struct inspection in = new_inspection();
    struct merge merge;
    merge_begin(&merge, &in);
    /* A tracer that samples every tenth call: instances, sizes, times. */
    add(&in, LEVEL_INSTANCE, FRONT_1, CART_1, 60, 6000, 4);
    add(&in, LEVEL_INSTANCE, FRONT_1, CART_2, 40, 14000, 9);
    add(&in, LEVEL_INSTANCE, CART_1, DB_1, 300, -1, -1);
    merge_source(&merge, true);
    /* A mesh that counts all of one pair. */
    add(&in, LEVEL_SERVICE, FRONT, CART, 1000, -1, -1);
    add(&in, LEVEL_SERVICE, CART, DB, 299, 299, 1);
    add(&in, LEVEL_SERVICE, DB, FRONT, 7, -1, -1);
    merge_source(&merge, true);
    end(&in, &merge);
    assert_int_equal(in.model->n_messages, 3);
    assert_row(&in, 0, LEVEL_INSTANCE, CART_1, 300, 300, 1);
    assert_row(&in, 1, LEVEL_SERVICE, FRONT, 1000, 200000, 6);
    assert_row(&in, 2, LEVEL_SERVICE, DB, 7, -1, -1);
    assert_int_equal(in.n_notes, 1);
    assert_string_equal(in.notes[0].kind, "several-sources");
    assert_int_equal(in.notes[0].count, 2);
    wipe(&in);
}

static void test_merge_when_equal_then_the_first_listed(void **state)
{
    (void)state;
    struct inspection in = new_inspection();
    struct merge merge;
    merge_begin(&merge, &in);
    add(&in, LEVEL_INSTANCE, FRONT_1, DB_1, 10, 5, -1);
    merge_source(&merge, true);
    add(&in, LEVEL_SERVICE, FRONT, DB, 10, 9, -1);
    merge_source(&merge, true);
    end(&in, &merge);
    assert_int_equal(in.model->n_messages, 1);
    assert_row(&in, 0, LEVEL_INSTANCE, FRONT_1, 10, 5, -1);
    wipe(&in);
}

static void test_merge_when_a_source_fails_then_nothing_of_it_stays(void **state)
{
    (void)state;
    struct inspection in = new_inspection();
    struct merge merge;
    merge_begin(&merge, &in);
    add(&in, LEVEL_SERVICE, FRONT, DB, 99, -1, -1);
    identity_unmapped(in.identity, "ghost", 50, -1);
    merge_source(&merge, false);
    add(&in, LEVEL_SERVICE, FRONT, DB, 10, 9, -1);
    identity_unmapped(in.identity, "redis", 4, 400);
    merge_source(&merge, true);
    identity_unmapped(in.identity, "redis", 3, -1);
    merge_source(&merge, true);
    end(&in, &merge);
    assert_int_equal(in.model->n_messages, 1);
    assert_row(&in, 0, LEVEL_SERVICE, FRONT, 10, 9, -1);
    assert_int_equal(in.n_notes, 0);
    identity_report(in.identity, &in.model->traffic);
    assert_int_equal(in.model->traffic.unmapped_count, 4);
    assert_int_equal(in.model->traffic.unmapped_bytes, 400);
    wipe(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge_when_sources_overlap_then_most_messages_per_pair),
        cmocka_unit_test(test_merge_when_equal_then_the_first_listed),
        cmocka_unit_test(test_merge_when_a_source_fails_then_nothing_of_it_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
