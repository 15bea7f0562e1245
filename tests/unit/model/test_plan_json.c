/* test_plan_json.c - contract.md 3: the keys in their order, both granularities, strictness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/small.h"

static struct model *two(void)
{
    struct model *model = model_new();

    small_host(model, "H1", 1000);
    small_host(model, "H2", 1000);
    small_instance(model, "A", "A", "H1", 300, 200);
    small_instance(model, "B-0", "B", "H2", 400, 300);
    small_affinity(model, "A", "B-0", 0.5);
    return model;
}

static const char instance_document[] =
    "{\"v\":1,\"requested\":\"auto\",\"planner\":\"hba\",\"why\":\"w\",\"objective\":\"affinity\","
    "\"granularity\":\"instance\",\"status\":\"feasible\",\"cut\":false,\"affinity_before\":0,"
    "\"affinity_after\":0.5,\"affinity_bound\":null,\"gap\":null,\"hosts_before\":2,"
    "\"hosts_after\":1,\"hosts_bound\":null,\"restarts\":1,\"coverage\":null,\"solve_ms\":12,"
    "\"moves\":[{\"seq\":1,\"instance\":\"B-0\",\"service\":\"B\",\"source\":\"H2\","
    "\"target\":\"H1\",\"gain\":0.5}],\"placement\":[{\"instance\":\"A\",\"host\":\"H1\"},"
    "{\"instance\":\"B-0\",\"host\":\"H1\"}],\"discarded\":[{\"a\":\"A\",\"b\":\"B-0\","
    "\"degree\":0.25,\"why\":\"no room\"}],\"unordered\":false,\"cycles\":[]}";

static const char service_document[] =
    "{\"v\":1,\"requested\":\"auto\",\"planner\":\"hubs\",\"why\":\"\",\"objective\":\"hosts\","
    "\"granularity\":\"service\",\"status\":\"optimal\",\"cut\":true,\"iterations\":99,"
    "\"affinity_before\":0,\"affinity_after\":0.5,\"affinity_bound\":1,\"gap\":0.5,"
    "\"hosts_before\":2,\"hosts_after\":1,\"hosts_bound\":1,\"restarts\":1,\"coverage\":0.75,"
    "\"moves\":[{\"seq\":1,\"service\":\"B\",\"instance\":null,"
    "\"sources\":[{\"host\":\"H2\",\"count\":1}],\"targets\":[{\"host\":\"H1\",\"count\":1}],"
    "\"restarts\":1,\"gain\":0.5}],\"placement\":[{\"instance\":\"A\",\"host\":\"H1\"},"
    "{\"instance\":\"B-0\",\"host\":null}],\"discarded\":[],\"unordered\":true,\"cycles\":[[1]]}";

static struct plan *decode(const char *text, const struct model *model, struct err *err)
{
    AUTO_JSON json_t *tree = json_parse(text, strlen(text), &json_limits_document, err);
    struct jval root = jval_root(tree);

    return tree ? plan_decode_value(&root, model, err) : NULL;
}

static void test_plan_encode_when_read_is_written_the_same(void **state)
{
    AUTO(model) struct model *model = two();
    const char *const texts[] = {instance_document, service_document};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO_BUF struct buf out = BUF_INIT;
        struct err err = ERR_INIT;
        AUTO(plan) struct plan *plan = decode(texts[i], model, &err);
        assert_string_equal(err.text, "");
        assert_non_null(plan);
        plan_encode(plan, model, i == 0, &out);
        assert_string_equal(out.data, texts[i]);
    }
}

static void test_plan_decode_when_read_passes_its_check(void **state)
{
    AUTO(model) struct model *model = two();
    struct err err = ERR_INIT;
    AUTO(plan) struct plan *plan = decode(instance_document, model, &err);

    (void)state;
    assert_int_equal(plan_check(plan, model, false, &err), 0);
    assert_int_equal(plan->moves[0].restarts, 1);
    assert_int_equal(plan->solve_ms, 12);
}

/* The document with one stretch of text changed. */
static char *changed(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);

    assert_non_null(at);
    return mem_printf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void test_plan_decode_when_document_is_wrong_names_the_place(void **state)
{
    static const struct {
        const char *from, *to, *error;
    } rows[] = {
        {"\"v\":1,", "", "v: is missing"},
        {"\"cut\"", "\"cuts\"", "cuts: unknown key, did you mean \"cut\"?"},
        {"\"hba\"", "null", "planner: must be a text, not null"},
        {"\"feasible\"", "\"maybe\"",
         "status: must be \"optimal\", \"feasible\", \"infeasible\" or \"timeout\", not the text "
         "\"maybe\""},
        {"\"seq\":1", "\"seq\":0", "moves[0].seq: must be an integer from 1 to 10^6, not 0"},
        {"\"instance\":\"B-0\",\"service\"", "\"instance\":\"C\",\"service\"",
         "moves[0].instance: there is no instance C"},
        {"\"target\":\"H1\"", "\"target\":null", "moves[0].target: must be a name, not null"},
        {"\"target\":\"H1\"", "\"target\":\"H9\"", "moves[0].target: there is no host H9"},
        {",{\"instance\":\"B-0\",\"host\":\"H1\"}", "",
         "placement: has 1 instances, the model 2"},
        {"{\"instance\":\"B-0\",\"host\"", "{\"instance\":\"A\",\"host\"",
         "placement[1].instance: A is there twice"},
        {"\"a\":\"A\"", "\"a\":\"Z\"", "discarded[0]: a or b is no instance or service"},
        {"\"cycles\":[]", "\"cycles\":[[0]]",
         "cycles[0][0]: must be an integer from 1 to 10^6, not 0"},
        {"\"gain\":0.5", "\"gain\":\"x\"",
         "moves[0].gain: must be a number from -1e+18 to 1e+18, not the text \"x\""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(model) struct model *model = two();
        AUTO_FREE char *text = changed(instance_document, rows[i].from, rows[i].to);
        struct err err = ERR_INIT;
        assert_null(decode(text, model, &err));
        assert_string_equal(err.text, rows[i].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_encode_when_read_is_written_the_same),
        cmocka_unit_test(test_plan_decode_when_read_passes_its_check),
        cmocka_unit_test(test_plan_decode_when_document_is_wrong_names_the_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
