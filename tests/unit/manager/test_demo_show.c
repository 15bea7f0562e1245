/* test_demo_show.c - before and after of a cycle as `remap demo` shows them: from the store alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "model/base/json.h"
#include "model/manager/demo_show.h"
#include "model/model_json.h"
#include "tests/support/store_support.h"

static const struct draw_style style = {.columns = 100, .colour = false};

/* A cycle that ended, with real documents; its id. */
static int64_t full_cycle(struct store *store, const struct model *model)
{
    struct err err = ERR_INIT;
    int64_t cycle = store_support_cycle(store);
    AUTO(analysis) struct analysis *analysis = store_support_analysis(model);
    AUTO(plan) struct plan *plan = store_support_plan(model);
    AUTO_BUF struct buf text = BUF_INIT, rows = BUF_INIT;
    model_encode(model, &text);
    analysis_encode(analysis, model, &rows);
    assert_int_equal(
        store_snapshot_save(store, cycle, "base", model, text.data, text.size, &err), 0);
    assert_int_equal(
        store_analysis_save(store, cycle, analysis, model, rows.data, rows.size, &err), 0);
    assert_int_equal(store_plan_save(store, cycle, plan, model, "{}", "{}", 2, &err), 0);
    assert_int_equal(store_cycle_set(store, cycle, "done", NULL, 1, -1, 2000, &err), 0);
    return cycle;
}

/* Saves what a verification saves: the model after the plan, and the figures. */
static void verify(struct store *store, int64_t cycle, const struct model *base)
{
    struct err err = ERR_INIT;
    AUTO(model) struct model *after = model_copy(base);
    AUTO(plan) struct plan *plan = store_support_plan(base);
    AUTO_BUF struct buf text = BUF_INIT;
    assert_int_equal(plan_apply(plan, after, SIZE_MAX, &err), 0);
    model_encode(after, &text);
    assert_int_equal(
        store_snapshot_save(store, cycle, "verify", after, text.data, text.size, &err), 0);
    const struct savings savings = {
        .hosts_before = 2, .hosts_predicted = 1, .hosts_realised = 1,
        .affinity_before = 0.25, .affinity_predicted = 0.75, .affinity_realised = 0.5,
        .response_before_ms = 8, .response_predicted_ms = 4, .response_realised_ms = -1,
        .local_before = 0.125, .local_predicted = 1, .local_realised = 0.875};
    assert_int_equal(store_savings_save(store, cycle, &savings, &err), 0);
}

static void test_show_when_verified_then_before_predicted_measured(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    int64_t cycle = full_cycle(fixture->store, model);
    verify(fixture->store, cycle, model);
    AUTO_BUF struct buf out = BUF_INIT;
    int rc = demo_show(fixture->store, cycle, &style, &out, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    const char *before = strstr(out.data, "\nBefore\n"), *after = strstr(out.data, "\nAfter ");
    assert_non_null(before);
    assert_non_null(after);
    assert_true(before < after);
    assert_null(strstr(before, "+ cart\n"));
    assert_non_null(strstr(after, "+ cart"));
    assert_non_null(strstr(out.data, "traffic that crosses hosts"));
    assert_non_null(strstr(out.data, "87.5%       0.0%     12.5%    -86%"));
    assert_non_null(strstr(out.data, "8.00 ms    4.00 ms         -       -"));
    assert_non_null(strstr(out.data, "hosts in use                       2          1         1"));
}

static void test_show_when_nothing_was_verified_then_only_before(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    int64_t cycle = full_cycle(fixture->store, model);
    AUTO_BUF struct buf out = BUF_INIT;
    int rc = demo_show(fixture->store, cycle, &style, &out, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    assert_non_null(strstr(out.data, "\nBefore\n"));
    assert_null(strstr(out.data, "\nAfter "));
    assert_non_null(strstr(out.data, "Cycle 1: done"));
}

static void test_show_when_no_snapshot_then_not_found(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    AUTO_BUF struct buf out = BUF_INIT;
    assert_int_equal(demo_show(fixture->store, 77, &style, &out, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

static void test_json_when_verified_then_both_placements(void **state)
{
    struct store_fixture *fixture = *state;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    int64_t cycle = full_cycle(fixture->store, model);
    verify(fixture->store, cycle, model);
    AUTO_BUF struct buf out = BUF_INIT;
    buf_puts(&out, "{");
    assert_int_equal(demo_json(fixture->store, cycle, &out, &err), 0);
    buf_puts(&out, "}");
    AUTO_JSON json_t *tree = json_parse(out.data, out.size, &json_limits_document, &err);
    assert_non_null(tree);
    assert_int_equal(json_array_size(json_object_get(tree, "before")), model->n_instances);
    assert_int_equal(json_array_size(json_object_get(tree, "after")), model->n_instances);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(tree, "savings"), "hosts_realised")),
        1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)
    const struct CMUnitTest tests[] = {
        TEST(test_show_when_verified_then_before_predicted_measured),
        TEST(test_show_when_nothing_was_verified_then_only_before),
        TEST(test_show_when_no_snapshot_then_not_found),
        TEST(test_json_when_verified_then_both_placements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
