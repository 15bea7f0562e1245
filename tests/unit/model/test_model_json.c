/* test_model_json.c - contract.md 2 line by line: what is read, what is refused, and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/base/file.h"
#include "tests/support/small.h"

/* HOST, SERVICE and INSTANCE of every document below, and more where the text says. */
#define H "{\"name\":\"h\",\"cpu_cap_millis\":1000,\"mem_cap_bytes\":2000}"
#define S "{\"name\":\"s\"},{\"name\":\"t\"}"
#define I "{\"name\":\"i\",\"service\":\"s\",\"host\":\"h\",\"cpu_used_millis\":1,\"mem_used_bytes\":2}"
#define DOC(more) "{\"v\":1,\"hosts\":[" H "],\"services\":[" S "],\"instances\":[" I "]" more "}"
#define HOST(more) \
    "{\"v\":1,\"hosts\":[{\"name\":\"h\",\"cpu_cap_millis\":1,\"mem_cap_bytes\":2" more "}]}"

static const struct {
    const char *text, *error;
} refused[] = {
    {"[]", "must be an object, not an array"},
    {"{}", "v: is missing"},
    {"{\"v\":2}", "v: must be an integer from 1 to 1, not 2"},
    {"{\"v\":1,\"host\":[]}", "host: unknown key, did you mean \"hosts\"?"},
    {"{\"v\":1,\"hosts\":{}}", "hosts: must be an array, not an object"},
    {"{\"v\":1} {}", "line 1, column 9: end of file expected near '{'"},
    {"{\"v\":1,\"v\":1}", "line 1, column 10: duplicate object key near '\"v\"'"},
    {"{\"v\":1,\"hosts\":[{}]}", "hosts[0].name: is missing"},
    {"{\"v\":1,\"hosts\":[{\"name\":\"\"}]}", "hosts[0].name: is empty"},
    {"{\"v\":1,\"hosts\":[{\"name\":\"h\"}]}", "hosts[0].cpu_cap_millis: is missing"},
    {HOST(",\"cpu_used_millis\":-4"),
     "hosts[0].cpu_used_millis: must be an integer from 0 to 10^15, not -4"},
    {HOST(",\"cpu_used_millis\":1.5"),
     "hosts[0].cpu_used_millis: must be an integer from 0 to 10^15, not 1.5"},
    {HOST(",\"cpu_used_millis\":1000000000000001"),
     "hosts[0].cpu_used_millis: must be an integer from 0 to 10^15, not 1000000000000001"},
    {HOST(",\"cpu_used_millis\":null"),
     "hosts[0].cpu_used_millis: must be an integer from 0 to 10^15, not null"},
    {HOST(",\"schedulable\":1"), "hosts[0].schedulable: must be true or false, not 1"},
    {HOST(",\"zone\":null"), "hosts[0].zone: must be a name, not null"},
    {HOST(",\"labels\":{\"a\":1}"), "hosts[0].labels.a: must be a text, not 1"},
    {HOST(",\"labels\":[]"), "hosts[0].labels: must be an object of texts"},
    {"{\"v\":1,\"hosts\":[" H "," H "]}", "hosts[1].name: host h is there twice"},
    {"{\"v\":1,\"services\":[" S ",{\"name\":\"s\"}]}",
     "services[2].name: service s is there twice"},
    {"{\"v\":1,\"services\":[{\"name\":\"s\",\"depends_on\":[{\"service\":\"x\"}]}]}",
     "services[0].depends_on[0].service: there is no service x"},
    {"{\"v\":1,\"instances\":[" I "]}", "instances[0].service: there is no service s"},
    {"{\"v\":1,\"services\":[" S "],\"instances\":[" I "]}",
     "instances[0].host: there is no host h"},
    {"{\"v\":1,\"hosts\":[" H "],\"services\":[" S "],\"instances\":[" I "," I "]}",
     "instances[1].name: instance i is there twice"},
    {"{\"v\":1,\"services\":[" S "],\"instances\":[{\"name\":\"t\",\"service\":\"s\","
     "\"host\":null,\"cpu_used_millis\":1,\"mem_used_bytes\":2}]}",
     "instance t: bears the name of a service that is not its own"},
    {DOC(",\"messages\":[],\"affinities\":[]"),
     "affinities: both messages and affinities are given"},
    {DOC(",\"messages\":[{\"src\":\"i\",\"dst\":\"x\",\"count\":1,\"bytes\":1}]"),
     "messages[0].dst: there is no instance or service x"},
    {DOC(",\"messages\":[{\"src\":\"i\",\"dst\":\"t\",\"count\":1,\"bytes\":-1}]"),
     "messages[0].bytes: must be an integer from 0 to 10^15, not -1"},
    {DOC(",\"messages\":[{\"src\":\"i\",\"dst\":\"t\",\"bytes\":1}]"),
     "messages[0].count: is missing"},
    {DOC(",\"affinities\":[{\"a\":\"i\",\"b\":\"t\",\"degree\":-0.5}]"),
     "affinities[0].degree: must be a number from 0 to 1e+15, not -0.5"},
    {DOC(",\"affinities\":[{\"a\":\"i\",\"b\":\"t\",\"degree\":1e999}]"), NULL},
    {DOC(",\"affinities\":[{\"a\":\"i\",\"b\":\"t\",\"degree\":NaN}]"), NULL},
    {DOC(",\"channels\":[{\"a\":\"i\",\"b\":\"t\"}]"), "channels[0].a: there is no service i"},
    {DOC(",\"latencies\":[{\"a\":\"h\",\"b\":\"g\",\"rtt_us\":1}]"),
     "latencies[0].b: there is no host g"},
    {DOC(",\"latencies\":[{\"a\":\"h\",\"b\":\"h\",\"rtt_us\":1},"
         "{\"a\":\"h\",\"b\":\"h\",\"rtt_us\":2}]"),
     "latencies[1]: h to h is there with another value"},
    {DOC(",\"network_costs\":{\"zone\":[{\"origin\":\"a\",\"destination\":\"b\",\"cost\":101}]}"),
     "network_costs.zone[0].cost: must be an integer from 0 to 100, not 101"},
    {DOC(",\"rules\":[{\"kind\":\"near\"}]"),
     "rules[0].kind: must be \"apart\", \"together\", \"allowed\" or \"spread\", not the text "
     "\"near\""},
    {DOC(",\"rules\":[{\"kind\":\"together\",\"services\":[\"s\"],\"max_per_host\":1}]"),
     "rules[0].max_per_host: unknown key"},
    {DOC(",\"rules\":[{\"kind\":\"apart\",\"services\":[\"s\",\"s\"],\"max_per_host\":1}]"),
     "rules[0].services[1]: s is there twice"},
    {DOC(",\"rules\":[{\"kind\":\"apart\",\"services\":[],\"max_per_host\":1}]"),
     "rules[0].services: is empty"},
    {DOC(",\"rules\":[{\"kind\":\"allowed\",\"service\":\"s\",\"hosts\":[\"x\"]}]"),
     "rules[0].hosts[0]: there is no host x"},
    {DOC(",\"rules\":[{\"kind\":\"spread\",\"service\":\"s\",\"max_share\":1.5,\"per\":\"host\"}]"),
     "rules[0].max_share: must be a number from 0 to 1, not 1.5"},
    {DOC(",\"rules\":[{\"kind\":\"spread\",\"service\":\"s\",\"max_share\":1}]"),
     "rules[0].per: is missing"},
    {DOC(",\"traffic\":{\"unmapped_count\":1,\"unmapped_bytes\":1,\"unseen_services\":[1]}"),
     "traffic.unseen_services[0]: must be a name, not 1"},
    {DOC(",\"from_ms\":5,\"to_ms\":4"), "to_ms is before from_ms"},
};

static void test_model_decode_when_document_is_wrong_names_the_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct err err = ERR_INIT;
        assert_null(model_decode(refused[i].text, strlen(refused[i].text), &err));
        assert_int_equal(err_exit_code(err.kind), 2);
        if (refused[i].error)
            assert_string_equal(err.text, refused[i].error);
    }
}

static void test_model_decode_when_cut_anywhere_is_refused(void **state)
{
    static const char doc[] = DOC(",\"messages\":[{\"src\":\"i\",\"dst\":\"t\",\"count\":1,"
                                  "\"bytes\":null}],\"from_ms\":1");

    (void)state;
    for (size_t size = 0; size < sizeof doc - 1; size++) {
        struct err err = ERR_INIT;
        AUTO_FREE char *part = mem_strndup(doc, size);
        assert_null(model_decode(part, size, &err));
        assert_int_equal(err.kind, ERR_INPUT);
    }
    AUTO(model) struct model *model = small_decode(doc);
    assert_non_null(model);
}

static void test_model_decode_when_sums_leave_int64_is_refused(void **state)
{
    AUTO_BUF struct buf doc = BUF_INIT;
    struct err err = ERR_INIT;

    (void)state;
    buf_puts(&doc, "{\"v\":1,\"hosts\":[" H "],\"services\":[" S "],\"instances\":[" I
                   "],\"messages\":[");
    for (int i = 0; i < 10000; i++)
        buf_printf(&doc, "%s{\"src\":\"i\",\"dst\":\"t\",\"count\":1000000000000000,\"bytes\":0}",
                   i ? "," : "");
    buf_puts(&doc, "]}");
    assert_null(model_decode(doc.data, doc.size, &err));
    assert_string_equal(err.text, "messages[2305]: the sum of all rows is above 2^61");
}

static void test_model_decode_when_members_are_absent_sets_defaults(void **state)
{
    AUTO(model) struct model *model = small_decode(DOC(""));
    const struct host *host = &model->hosts[0];

    (void)state;
    assert_true(host->schedulable && host->pods_cap == -1 && !host->zone && !host->region);
    assert_true(model->services[0].movable && !model->services[0].stateful);
    assert_true(!model->services[0].rollout && !model->services[0].app);
    assert_int_equal(model->instances[0].start_ms, -1);
    assert_null(model->instances[0].pinned_why);
    assert_false(model->has_messages || model->has_affinities || model->traffic.given);
    assert_int_equal(model->taken_ms, -1);
}

static void test_model_decode_when_rows_name_either_kind_finds_their_level(void **state)
{
    AUTO(model) struct model *model = small_decode(
        DOC(",\"messages\":[{\"src\":\"i\",\"dst\":\"i\",\"count\":1,\"bytes\":1},"
            "{\"src\":\"i\",\"dst\":\"t\",\"count\":2,\"bytes\":null,\"mean_ms\":1.5},"
            "{\"src\":\"t\",\"dst\":\"s\",\"count\":3,\"bytes\":0}]"));

    (void)state;
    assert_int_equal(model->n_messages, 3);
    assert_int_equal(model->messages[0].level, LEVEL_INSTANCE);
    assert_int_equal(model->messages[1].level, LEVEL_SERVICE);
    assert_int_equal(model->messages[1].src, 0);
    assert_int_equal(model->messages[1].dst, 1);
    assert_int_equal(model->messages[1].bytes, -1);
    assert_true(model->messages[1].mean_ms == 1.5 && model->messages[2].mean_ms < 0);
}

static void test_model_decode_when_dependency_repeats_keeps_the_stricter(void **state)
{
    AUTO(model) struct model *model = small_decode(
        "{\"v\":1,\"services\":[{\"name\":\"a\",\"depends_on\":["
        "{\"service\":\"b\",\"max_network_cost\":9,\"min_bandwidth\":1},"
        "{\"service\":\"b\",\"max_network_cost\":5},{\"service\":\"b\",\"max_network_cost\":7,"
        "\"min_bandwidth\":3}]},{\"name\":\"b\"}]}");

    (void)state;
    assert_int_equal(model->services[0].n_depends_on, 1);
    assert_int_equal(model->services[0].depends_on[0].max_network_cost, 5);
    assert_int_equal(model->services[0].depends_on[0].min_bandwidth, 3);
}

static void test_model_encode_when_read_back_gives_the_same_bytes(void **state)
{
    AUTO_BUF struct buf doc = BUF_INIT, once = BUF_INIT, twice = BUF_INIT;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(file_read(REMAP_SOURCE_DIR "/tests/fuzz/corpus/model_json/whole.json", 100000,
                               &doc, &err),
                     0);
    AUTO(model) struct model *model = small_decode(doc.data);
    assert_non_null(model);
    assert_int_equal(model->n_rules, 4);
    assert_int_equal(model->n_region_costs, 1);
    model_encode(model, &once);
    AUTO(model) struct model *again = small_decode(once.data);
    assert_non_null(again);
    model_encode(again, &twice);
    assert_string_equal(once.data, twice.data);
}

static void test_model_encode_when_nothing_is_given_writes_nothing(void **state)
{
    AUTO(model) struct model *model = small_decode(DOC(",\"affinities\":[]"));
    AUTO_BUF struct buf out = BUF_INIT;

    (void)state;
    model_encode(model, &out);
    assert_string_equal(out.data, DOC(",\"affinities\":[]"));
}

static void test_analysis_when_written_reads_back(void **state)
{
    AUTO(model) struct model *model = model_new();
    AUTO_BUF struct buf once = BUF_INIT, twice = BUF_INIT;
    struct err err = ERR_INIT;

    (void)state;
    small_instance(model, "a", "a", NULL, 1, 1);
    small_instance(model, "b-0", "b", NULL, 1, 1);
    small_instance(model, "b-1", "b", NULL, 1, 1);
    small_affinity(model, "a", "b-0", 1.0 / 3);
    small_affinity(model, "b-1", "a", 2.0 / 3);
    AUTO(analysis) struct analysis *analysis = analysis_from_given(model);
    analysis->rows[0].bytes = 77;
    analysis->rows[0].count = 5;
    analysis_encode(analysis, model, &once);
    AUTO_JSON json_t *tree = json_parse(once.data, once.size, &json_limits_document, &err);
    struct jval root = jval_root(tree);
    AUTO(analysis) struct analysis *again = analysis_decode_value(&root, model, &err);
    assert_non_null(again);
    assert_int_equal(again->n_rows, 2);
    assert_int_equal(again->service_rows[0].level, LEVEL_SERVICE);
    analysis_encode(again, model, &twice);
    assert_string_equal(once.data, twice.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_decode_when_document_is_wrong_names_the_place),
        cmocka_unit_test(test_model_decode_when_cut_anywhere_is_refused),
        cmocka_unit_test(test_model_decode_when_sums_leave_int64_is_refused),
        cmocka_unit_test(test_model_decode_when_members_are_absent_sets_defaults),
        cmocka_unit_test(test_model_decode_when_rows_name_either_kind_finds_their_level),
        cmocka_unit_test(test_model_decode_when_dependency_repeats_keeps_the_stricter),
        cmocka_unit_test(test_model_encode_when_read_back_gives_the_same_bytes),
        cmocka_unit_test(test_model_encode_when_nothing_is_given_writes_nothing),
        cmocka_unit_test(test_analysis_when_written_reads_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
