/* test_recordings.c - real recordings (REMAP_TEST_DATA, not part of the project) come out with the
 * counts stated there. Skipped, visibly, where they are absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "adapters/spans/reader.h"
#include "adapters/spans/rows.h"
#include "model/base/json.h"

static char *data_path(const char *name)
{
    const char *folder = getenv("REMAP_TEST_DATA");
    return mem_printf("%s/traces/%s", folder ? folder : REMAP_SOURCE_DIR "/../shared/data", name);
}

struct outcome {
    int64_t spans;
    size_t services, instances, pairs;
    int64_t messages;
    struct model *model;
};

static struct outcome import(const char *name)
{
    AUTO_FREE char *path = data_path(name);
    AUTO(span_table) struct span_table *table = span_table_new();
    AUTO(span_reader) struct span_reader *reader = span_reader_new(table, JOINER_WINDOW);
    struct err err = ERR_INIT;
    if (span_reader_file(reader, path, NULL, NULL, &err) || span_reader_finish(reader, &err))
        fail_msg("%s", err.text);
    struct model *model = model_new();
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    AUTO_FREE struct span_end *ends = NULL;
    if (span_ends_make(table, NULL, model, &ends, &err) || span_rows(table, ends, &in, &err))
        fail_msg("%s", err.text);
    inspection_wipe(&in);
    model->has_messages = true;
    if (model_check(model, &err))
        fail_msg("%s", err.text);
    struct outcome out = {span_table_counts(table)->spans, model->n_services, model->n_instances,
                          model->n_messages, 0, model};
    for (size_t i = 0; i < model->n_messages; i++)
        out.messages += model->messages[i].count;
    return out;
}

static void expect(const char *name, int64_t spans, size_t services, size_t pairs,
                   int64_t messages)
{
    struct outcome got = import(name);
    assert_int_equal(got.spans, spans);
    assert_int_equal(got.services, services);
    assert_int_equal(got.pairs, pairs);
    assert_int_equal(got.messages, messages);
    model_free(got.model);
}

static void test_smartthings_when_imported_then_8_services_and_9_edges(void **state)
{
    (void)state;
    expect("zipkin/smartthings-oauth-authorization.json", 175, 8, 9, 35);
}

static void test_brokers_and_databases_when_imported_then_edges_but_none_of_a_lone_server(void **state)
{
    (void)state;
    expect("zipkin/messaging.json", 4, 3, 2, 2);
    expect("zipkin/messaging-kafka.json", 28, 3, 3, 16);
    expect("zipkin/simple-db-p6.json", 5, 2, 1, 4);
    expect("zipkin/envoy.json", 1, 0, 0, 0);
}

static void test_online_boutique_when_imported_then_13_edges_and_1164_calls(void **state)
{
    (void)state;
    expect("online-boutique/traces.zipkin.json", 4873, 10, 13, 1164);
}

/* All 497 traces of the minute were counted by others: the first 110 have the same 13 edges. */
static void test_online_boutique_when_imported_then_edges_are_those_counted_by_others(void **state)
{
    (void)state;
    struct outcome got = import("online-boutique/traces.zipkin.json");
    AUTO_FREE char *path = data_path("online-boutique/calls.json");
    json_error_t error;
    AUTO_JSON json_t *tree = json_load_file(path, 0, &error);
    assert_non_null(tree);
    const json_t *calls = json_object_get(tree, "calls"), *call;
    size_t i, found = 0;
    json_array_foreach(calls, i, call)
    {
        int a = model_service(got.model, json_string_value(json_object_get(call, "a")));
        int b = model_service(got.model, json_string_value(json_object_get(call, "b")));
        assert_true(a >= 0 && b >= 0);
        for (size_t m = 0; m < got.model->n_messages; m++) {
            const struct message *message = &got.model->messages[m];
            found += got.model->instances[message->src].service == a &&
                     got.model->instances[message->dst].service == b;
        }
    }
    assert_int_equal(found, 13);
    model_free(got.model);
}

int main(void)
{
    AUTO_FREE char *probe = data_path("online-boutique/traces.zipkin.json");
    if (access(probe, R_OK) != 0) {
        printf("SKIPPED no recordings at %s\n", probe);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smartthings_when_imported_then_8_services_and_9_edges),
        cmocka_unit_test(test_brokers_and_databases_when_imported_then_edges_but_none_of_a_lone_server),
        cmocka_unit_test(test_online_boutique_when_imported_then_13_edges_and_1164_calls),
        cmocka_unit_test(
            test_online_boutique_when_imported_then_edges_are_those_counted_by_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
