/* test_rules.c - every rule of interfaces.md 5.1 and 5.2, by a test of its own name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "adapters/spans/sizes.h"
#include "model/base/mem.h"
#include "tests/support/span_text.h"

/* A Zipkin span in short: `more` is further members, "" or beginning with a comma. */
#define SPAN(id, more) "{\"traceId\":\"a\",\"id\":\"" id "\"" more "}"
#define KIND(kind) ",\"kind\":\"" kind "\""
#define PARENT(id) ",\"parentId\":\"" id "\""
#define AT(name) ",\"localEndpoint\":{\"serviceName\":\"" name "\"}"
#define TO(name) ",\"remoteEndpoint\":{\"serviceName\":\"" name "\"}"
#define SHARED ",\"shared\":true"
#define TIME(start, duration) ",\"timestamp\":" #start ",\"duration\":" #duration
#define TAGS(tags) ",\"tags\":{" tags "}"

static void expect(const char *spans, const char *wanted)
{
    AUTO_BUF struct buf json = BUF_INIT, got = BUF_INIT;
    struct err err = ERR_INIT;
    buf_printf(&json, "[%s]", spans);
    assert_int_equal(span_text_read(json.data, json.size, 0, JOINER_WINDOW, &got, &err), 0);
    assert_string_equal(got.data, wanted);
}

static void test_shared_span_when_both_halves_report_then_one_message(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")) "," SPAN("1", KIND("SERVER") AT("b") SHARED), "a>b 1");
}

static void test_shared_span_when_the_flag_is_missing_then_one_message(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")) "," SPAN("1", KIND("SERVER") AT("b")), "a>b 1");
}

static void test_shared_span_when_child_is_inside_the_server_then_server_is_its_caller(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")) "," SPAN("1", KIND("SERVER") AT("b") SHARED) ","
           SPAN("2", PARENT("1") KIND("CLIENT") AT("b")) ","
           SPAN("2", PARENT("1") KIND("SERVER") AT("c") SHARED),
           "a>b 1; b>c 1");
}

static void test_shared_span_when_client_is_missing_then_parent_is_the_caller(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("SERVER") AT("a")) ","
           SPAN("2", PARENT("1") KIND("SERVER") AT("b") SHARED),
           "a>b 1; external 1");
}

static void test_shared_span_when_a_client_below_is_missing_then_the_answering_service_called(
    void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")) "," SPAN("1", KIND("SERVER") AT("b") SHARED) ","
           SPAN("2", PARENT("1") KIND("SERVER") AT("c") SHARED),
           "a>b 1; b>c 1");
}

static void test_child_style_when_both_halves_report_then_one_message(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")) "," SPAN("2", PARENT("1") KIND("SERVER") AT("b")),
           "a>b 1");
}

static void test_server_when_client_names_another_callee_then_servers_name_counts(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a") TO("alias-of-b")) ","
           SPAN("2", PARENT("1") KIND("SERVER") AT("b")),
           "a>b 1");
}

static void test_server_when_parent_is_a_server_then_it_is_the_caller(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("SERVER") AT("a")) "," SPAN("2", PARENT("1") KIND("SERVER") AT("b")),
           "a>b 1; external 1");
}

static void test_server_when_parent_and_remote_name_differ_then_parent_counts(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")) ","
           SPAN("2", PARENT("1") KIND("SERVER") AT("b") TO("proxy")),
           "a>b 1");
}

static void test_lone_server_when_remote_is_named_then_it_is_the_caller(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("SERVER") AT("b") TO("a")), "a>b 1");
}

static void test_root_server_when_remote_is_unnamed_then_it_is_external(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("SERVER") AT("b") ",\"remoteEndpoint\":{\"ipv4\":\"10.0.0.1\"}"),
           "external 1");
}

static void test_missing_parent_when_remote_is_unnamed_then_caller_is_unknown(void **state)
{
    (void)state;
    expect(SPAN("2", PARENT("1") KIND("SERVER") AT("b")), "no-caller 1");
}

static void test_missing_parent_when_remote_is_named_then_it_is_the_caller(void **state)
{
    (void)state;
    expect(SPAN("2", PARENT("1") KIND("SERVER") AT("b") TO("a")), "a>b 1");
}

static void test_client_when_nobody_answers_then_remote_name_is_the_callee(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a") TO("db")) ","
           SPAN("2", PARENT("1") AT("a")), /* a local child is no answer */
           "a>db 1");
}

static void test_client_when_nobody_answers_and_remote_is_unnamed_then_callee_is_unknown(
    void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")), "no-callee 1");
}

static void test_client_when_two_spans_answer_for_one_service_then_one_message(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")) "," SPAN("2", PARENT("1") KIND("SERVER") AT("b")) ","
           SPAN("3", PARENT("1") KIND("SERVER") AT("b")),
           "a>b 1");
}

static void test_client_when_two_services_answer_then_each_is_a_message(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")) "," SPAN("1", KIND("SERVER") AT("b") SHARED) ","
           SPAN("1", KIND("SERVER") AT("c") SHARED),
           "a>b 1; a>c 1");
}

static void test_client_inside_client_when_same_service_then_inner_counts(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a") TO("b")) ","
           SPAN("2", PARENT("1") KIND("CLIENT") AT("a")) ","
           SPAN("3", PARENT("2") KIND("SERVER") AT("b")),
           "a>b 1");
    expect(SPAN("1", KIND("CLIENT") AT("a") TO("db")) ","
           SPAN("2", PARENT("1") KIND("CLIENT") AT("a")),
           "a>db 1");
}

static void test_client_under_client_of_another_service_then_the_server_between_is_implied(
    void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")) ","
           SPAN("2", PARENT("1") KIND("CLIENT") AT("b") TO("c")) ","
           SPAN("3", PARENT("1") KIND("CLIENT") AT("b") TO("d")),
           "a>b 1; b>c 1; b>d 1");
}

static void test_client_when_its_service_is_unnamed_then_ancestor_is_the_caller(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("SERVER") AT("a")) "," SPAN("2", PARENT("1") KIND("CLIENT") TO("db")),
           "a>db 1; external 1");
}

static void test_local_spans_between_when_climbing_then_first_ancestor_with_kind(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("SERVER") AT("a")) "," SPAN("2", PARENT("1") AT("a")) ","
           SPAN("3", PARENT("2") AT("a")) "," SPAN("4", PARENT("3") KIND("SERVER") AT("b")),
           "a>b 1; external 1");
}

static void test_no_kind_when_both_ends_are_named_then_client(void **state)
{
    (void)state;
    expect(SPAN("1", AT("a") TO("b")), "a>b 1");
    expect(SPAN("1", AT("a")), "nothing");
    expect(SPAN("1", TO("b")), "nothing");
}

static void test_producer_and_consumer_when_broker_is_named_then_two_messages(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("PRODUCER") AT("a") TO("kafka")) ","
           SPAN("2", PARENT("1") KIND("CONSUMER") AT("b") TO("kafka")),
           "a>kafka 1; kafka>b 1");
}

static void test_producer_and_consumer_when_broker_is_unnamed_then_skipped(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("PRODUCER") AT("a")) "," SPAN("2", PARENT("1") KIND("CONSUMER") AT("b")),
           "no-broker 2");
}

static void test_producer_when_a_client_sends_for_it_then_one_message(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("PRODUCER") AT("a") TO("sqs")) ","
           SPAN("2", PARENT("1") KIND("CLIENT") AT("a") TO("sqs")),
           "a>sqs 1");
}

static void test_server_under_consumer_when_joined_then_consumer_is_the_caller(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CONSUMER") AT("a") TO("kafka")) ","
           SPAN("2", PARENT("1") KIND("CLIENT") AT("a")) ","
           SPAN("3", PARENT("2") KIND("SERVER") AT("b")),
           "a>b 1; kafka>a 1");
}

static void test_spans_when_reported_twice_then_counted_once(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")) "," SPAN("1", KIND("CLIENT") AT("a") TIME(5, 100)) ","
           SPAN("1", KIND("SERVER") AT("b") SHARED) "," SPAN("1", KIND("SERVER") AT("b") SHARED),
           "a>b 1 100us; duplicates 2");
}

static void test_clock_skew_when_server_starts_before_client_then_same_message(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a") TIME(900000, 100)) ","
           SPAN("1", KIND("SERVER") AT("b") SHARED TIME(100, 80)),
           "a>b 1 100us");
}

static void test_response_time_when_client_knows_then_clients(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a") TIME(1, 300)) ","
           SPAN("2", PARENT("1") KIND("SERVER") AT("b") TIME(1, 100)),
           "a>b 1 300us");
}

static void test_response_time_when_client_does_not_know_then_servers(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")) ","
           SPAN("2", PARENT("1") KIND("SERVER") AT("b") TIME(1, 100)),
           "a>b 1 100us");
}

static void test_response_time_when_through_a_broker_then_unknown(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("PRODUCER") AT("a") TO("kafka") TIME(1, 7)), "a>kafka 1");
}

static void test_response_time_when_several_then_mean_of_the_known(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("SERVER") AT("b") TO("a") TIME(1, 100)) ","
           SPAN("2", KIND("SERVER") AT("b") TO("a") TIME(1, 300)) ","
           SPAN("3", KIND("SERVER") AT("b") TO("a")),
           "a>b 3 200us");
}

static void test_sizes_when_both_halves_know_then_servers_alone(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a")
                    TAGS("\"http.request.size\":\"1\",\"http.response.size\":\"2\"")) ","
           SPAN("1", KIND("SERVER") AT("b") SHARED
                    TAGS("\"http.request.size\":\"10\",\"http.response.size\":\"20\"")),
           "a>b 1 30B");
}

static void test_sizes_when_only_client_knows_then_clients(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a") TAGS("\"request_size\":\"5\"")) ","
           SPAN("2", PARENT("1") KIND("SERVER") AT("b")),
           "a>b 1 5B");
}

static void test_sizes_when_nobody_knows_then_unknown_not_zero(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("SERVER") AT("b") TO("a")), "a>b 1");
    expect(SPAN("1", KIND("SERVER") AT("b") TO("a") TAGS("\"response_size\":\"0\"")), "a>b 1 0B");
}

static void test_names_when_in_capitals_then_lower_case(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("SERVER") AT("B") TO("A")), "a>b 1");
}

static void test_ids_when_leading_zeros_are_missing_then_joined(void **state)
{
    (void)state;
    expect("{\"traceId\":\"00000000000000ab\",\"id\":\"0000000000000001\"" KIND("CLIENT") AT("a") "},"
           "{\"traceId\":\"ab\",\"id\":\"2\",\"parentId\":\"01\"" KIND("SERVER") AT("b") "}",
           "a>b 1");
}

static void test_traces_when_ids_are_the_same_in_two_then_not_mixed(void **state)
{
    (void)state;
    expect("{\"traceId\":\"1\",\"id\":\"1\"" KIND("CLIENT") AT("a") "},"
           "{\"traceId\":\"2\",\"id\":\"2\",\"parentId\":\"1\"" KIND("SERVER") AT("b") "}",
           "no-caller 1; no-callee 1");
}

static void test_parents_when_in_a_circle_then_it_ends(void **state)
{
    (void)state;
    expect(SPAN("1", PARENT("2") AT("a")) "," SPAN("2", PARENT("1") AT("a")) ","
           SPAN("3", PARENT("1") KIND("SERVER") AT("b")) ","
           SPAN("4", PARENT("4") KIND("CLIENT") AT("a") TO("b")),
           "a>b 1; no-caller 1");
    expect(SPAN("1", PARENT("2") KIND("CLIENT") AT("a")) ","
           SPAN("2", PARENT("1") KIND("SERVER") AT("b")),
           "a>b 1");
}

static void test_pods_when_tags_name_them_then_ends_are_pods(void **state)
{
    (void)state;
    expect(SPAN("1", KIND("CLIENT") AT("a") TAGS("\"pod\":\"a-1\"")) ","
           SPAN("1", KIND("SERVER") AT("b") SHARED
                    TAGS("\"k8s.pod.name\":\"b-1\",\"k8s.namespace.name\":\"shop\"")),
           "a[a-1]>b[shop/b-1] 1");
    expect(SPAN("1", KIND("SERVER") AT("b") TO("a")
                    TAGS("\"node_id\":\"sidecar~10.0.0.7~b-2.shop~shop.svc.cluster.local\"")),
           "a>b[shop/b-2] 1");
}

/* --- sizes: the table of 5.2 --- */

struct tag {
    const char *key, *value;
};

static int64_t total(const struct tag *tags, size_t n)
{
    struct span_sizes sizes = SPAN_SIZES_INIT;
    for (size_t i = 0; i < n; i++)
        span_sizes_tag(&sizes, tags[i].key, strlen(tags[i].key), tags[i].value,
                       strlen(tags[i].value));
    return span_sizes_total(&sizes);
}

static void test_size_tags_when_any_row_of_the_table_then_request_and_response_add_up(void **state)
{
    static const struct {
        struct tag tags[3];
        size_t n;
        int64_t bytes;
    } rows[] = {
        {{{"http.request.size", "3"}, {"http.response.size", "4"}}, 2, 7},
        {{{"request_size", "3"}, {"response_size", "4"}}, 2, 7},
        {{{"http.request.body.size", "3"}, {"http.response.body.size", "4"}}, 2, 7},
        {{{"messaging.message.body.size", "9"}}, 1, 9},
        {{{"messaging.message.envelope.size", "9"}}, 1, 9},
        {{{"http.request.header.content-length", "3"},
          {"http.response.header.content-length", "4"}},
         2,
         7},
        {{{"http.request_content_length", "3"}, {"http.response_content_length", "4"}}, 2, 7},
        {{{"http.response_content_length_uncompressed", "4"}}, 1, 4},
        {{{"message.uncompressed_size", "3"}, {"message.uncompressed_size", "4"}}, 2, 7},
        {{{"messaging.message_payload_size_bytes", "9"}}, 1, 9},
        {{{"request.size", "3"}, {"response.size", "4"}}, 2, 7},
        {{{"requestSize", "3"}, {"responseSize", "4"}}, 2, 7},
        {{{"message.size", "9"}}, 1, 9},
        /* the first family wins, in whatever order the tags come */
        {{{"message.size", "9"}, {"request_size", "1"}, {"http.response.size", "2"}}, 3, 2},
        {{{"http.response.size", "2"}, {"request_size", "1"}, {"message.size", "9"}}, 3, 2},
        {{{"messaging.message.envelope.size", "20"}, {"messaging.message.body.size", "9"}}, 2, 9},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(total(rows[i].tags, rows[i].n), rows[i].bytes);
}

static void test_size_tags_when_no_decimal_number_then_ignored(void **state)
{
    static const char *const bad[] = {"",    "-1",  "+1", "1.5", "0x10", "1e3",
                                      " 1",  "1 ",  "1kB", "NaN", "1000000000000001",
                                      "99999999999999999999"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct tag tags[] = {{"http.request.size", bad[i]}};
        assert_int_equal(total(tags, 1), -1);
    }
    struct tag largest[] = {{"http.request.size", "1000000000000000"}};
    assert_int_equal(total(largest, 1), INT64_C(1000000000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_span_when_both_halves_report_then_one_message),
        cmocka_unit_test(test_shared_span_when_the_flag_is_missing_then_one_message),
        cmocka_unit_test(test_shared_span_when_child_is_inside_the_server_then_server_is_its_caller),
        cmocka_unit_test(test_shared_span_when_client_is_missing_then_parent_is_the_caller),
        cmocka_unit_test(
            test_shared_span_when_a_client_below_is_missing_then_the_answering_service_called),
        cmocka_unit_test(test_child_style_when_both_halves_report_then_one_message),
        cmocka_unit_test(test_server_when_client_names_another_callee_then_servers_name_counts),
        cmocka_unit_test(test_server_when_parent_is_a_server_then_it_is_the_caller),
        cmocka_unit_test(test_server_when_parent_and_remote_name_differ_then_parent_counts),
        cmocka_unit_test(test_lone_server_when_remote_is_named_then_it_is_the_caller),
        cmocka_unit_test(test_root_server_when_remote_is_unnamed_then_it_is_external),
        cmocka_unit_test(test_missing_parent_when_remote_is_unnamed_then_caller_is_unknown),
        cmocka_unit_test(test_missing_parent_when_remote_is_named_then_it_is_the_caller),
        cmocka_unit_test(test_client_when_nobody_answers_then_remote_name_is_the_callee),
        cmocka_unit_test(
            test_client_when_nobody_answers_and_remote_is_unnamed_then_callee_is_unknown),
        cmocka_unit_test(test_client_when_two_spans_answer_for_one_service_then_one_message),
        cmocka_unit_test(test_client_when_two_services_answer_then_each_is_a_message),
        cmocka_unit_test(test_client_inside_client_when_same_service_then_inner_counts),
        cmocka_unit_test(
            test_client_under_client_of_another_service_then_the_server_between_is_implied),
        cmocka_unit_test(test_client_when_its_service_is_unnamed_then_ancestor_is_the_caller),
        cmocka_unit_test(test_local_spans_between_when_climbing_then_first_ancestor_with_kind),
        cmocka_unit_test(test_no_kind_when_both_ends_are_named_then_client),
        cmocka_unit_test(test_producer_and_consumer_when_broker_is_named_then_two_messages),
        cmocka_unit_test(test_producer_and_consumer_when_broker_is_unnamed_then_skipped),
        cmocka_unit_test(test_producer_when_a_client_sends_for_it_then_one_message),
        cmocka_unit_test(test_server_under_consumer_when_joined_then_consumer_is_the_caller),
        cmocka_unit_test(test_spans_when_reported_twice_then_counted_once),
        cmocka_unit_test(test_clock_skew_when_server_starts_before_client_then_same_message),
        cmocka_unit_test(test_response_time_when_client_knows_then_clients),
        cmocka_unit_test(test_response_time_when_client_does_not_know_then_servers),
        cmocka_unit_test(test_response_time_when_through_a_broker_then_unknown),
        cmocka_unit_test(test_response_time_when_several_then_mean_of_the_known),
        cmocka_unit_test(test_sizes_when_both_halves_know_then_servers_alone),
        cmocka_unit_test(test_sizes_when_only_client_knows_then_clients),
        cmocka_unit_test(test_sizes_when_nobody_knows_then_unknown_not_zero),
        cmocka_unit_test(test_names_when_in_capitals_then_lower_case),
        cmocka_unit_test(test_ids_when_leading_zeros_are_missing_then_joined),
        cmocka_unit_test(test_traces_when_ids_are_the_same_in_two_then_not_mixed),
        cmocka_unit_test(test_parents_when_in_a_circle_then_it_ends),
        cmocka_unit_test(test_pods_when_tags_name_them_then_ends_are_pods),
        cmocka_unit_test(test_size_tags_when_any_row_of_the_table_then_request_and_response_add_up),
        cmocka_unit_test(test_size_tags_when_no_decimal_number_then_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
