/* test_otlp_rules.c - the rules of interfaces.md 5.1, 5.2 and 5.4 for spans that are sent to us, each by
 * a test of its own name; in every encoding, at once and one by one, in both orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "adapters/identity.h"
#include "adapters/otlp/store.h"
#include "tests/support/otlp_body.h"

#define NOW INT64_C(1800000000000)
#define KEEP INT64_C(720000)
#define T (NOW * 1000 - 5000000) /* µs: spans that are five seconds old */

struct way {
    bool json, gzip, single, backwards;
};

static void post(struct otlp_store *store, const struct sample_span *spans, size_t n,
                 const struct way *way, int64_t now_ms)
{
    AUTO_BUF struct buf plain = BUF_INIT, zipped = BUF_INIT;
    struct otlp_result result;
    if (way->json)
        otlp_body_json(spans, n, &plain);
    else
        otlp_body_protobuf(spans, n, &plain);
    if (way->gzip)
        otlp_body_gzip(&plain, &zipped);
    const struct buf *body = way->gzip ? &zipped : &plain;
    otlp_store_post(store,
                    &(struct otlp_body){.data = body->data ? body->data : "",
                                        .size = body->size,
                                        .json = way->json,
                                        .gzip = way->gzip},
                    now_ms, &result);
    if (result.status != 200)
        fail_msg("%u %s", result.status, result.text);
    assert_int_equal(result.rejected, 0);
}

static void post_all(struct otlp_store *store, const struct sample_span *spans, size_t n,
                     const struct way *way)
{
    if (!way->single) {
        post(store, spans, n, way, NOW);
        return;
    }
    for (size_t i = 0; i < n; i++)
        post(store, &spans[way->backwards ? n - 1 - i : i], 1, way, NOW);
}

/* "a>b 2 300B 5ms; …; unmapped 3" */
static void print(const struct model *model, struct buf *out)
{
    for (size_t i = 0; i < model->n_messages; i++) {
        const struct message *m = &model->messages[i];
        bool instances = m->level == LEVEL_INSTANCE;
        buf_printf(out, "%s%s>%s %lld", i ? "; " : "",
                   instances ? model->instances[m->src].name : model->services[m->src].name,
                   instances ? model->instances[m->dst].name : model->services[m->dst].name,
                   (long long)m->count);
        if (m->bytes >= 0)
            buf_printf(out, " %lldB", (long long)m->bytes);
        if (m->mean_ms >= 0)
            buf_printf(out, " %.0fms", m->mean_ms);
    }
    if (model->traffic.unmapped_count)
        buf_printf(out, "%sunmapped %lld", out->size ? "; " : "",
                   (long long)model->traffic.unmapped_count);
}

static void read_window(struct otlp_store *store, int64_t now_ms, struct buf *out)
{
    static const char *const names[] = {"a", "b", "c", "db", "kafka"};
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = model_new();
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        model_add_service(model, names[i], &err);
    model_add_instance(model, "a-1", 0, -1, &err);
    model_add_instance(model, "a-2", 0, -1, &err);
    model_add_instance(model, "b-1", 1, -1, &err);
    model_add_instance(model, "b-2", 1, -1, &err);
    const struct window window = {NOW - 600000, now_ms + 10000};
    if (otlp_store_trace(store, &window, true, now_ms, &in, &err))
        fail_msg("%s", err.text);
    identity_report(identity, &model->traffic);
    print(model, out);
    if (!out->size)
        buf_puts(out, "nothing");
    inspection_wipe(&in);
}

/* Every way of sending, read while the spans wait and after they have been counted. */
static void expect(const struct sample_span *spans, size_t n, const char *wanted)
{
    static const struct way ways[] = {{true, false, false, false}, {false, false, false, false},
                                      {true, true, false, false},  {false, true, false, false},
                                      {false, false, true, false}, {true, false, true, true}};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        for (int64_t later = 0; later <= 100000; later += 100000) {
            AUTO(otlp_store) struct otlp_store *store = otlp_store_new(100, KEEP, NOW - 3600000);
            AUTO_BUF struct buf got = BUF_INIT;
            post_all(store, spans, n, &ways[i]);
            otlp_store_tick(store, NOW + later);
            read_window(store, NOW + later, &got);
            assert_string_equal(got.data, wanted);
            assert_int_equal(otlp_store_totals(store).waiting, later ? 0 : n);
        }
}

#define EXPECT(wanted, ...)                                            \
    do {                                                               \
        const struct sample_span spans_[] = {__VA_ARGS__};             \
        expect(spans_, sizeof spans_ / sizeof *spans_, wanted);        \
    } while (0)
#define TO(name) {"peer.service", name, 0}

static void test_call_when_both_halves_come_then_one_message(void **state)
{
    (void)state;
    EXPECT("a>b 1 9ms", {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {{0}}},
           {"b", NULL, 1, 2, 1, SERVER, T, 5000, {{0}}});
}

static void test_call_when_clocks_are_skewed_then_the_same_message(void **state)
{
    (void)state;
    EXPECT("a>b 1 9ms", {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {{0}}},
           {"b", NULL, 1, 2, 1, SERVER, T - 4000000, 5000, {{0}}});
}

static void test_call_when_pods_are_told_then_between_instances(void **state)
{
    (void)state;
    EXPECT("a-1>b-2 1 9ms", {"a", "a-1", 1, 1, 0, CLIENT, T, 9000, {{0}}},
           {"b", "b-2", 1, 2, 1, SERVER, T, 5000, {{0}}});
}

static void test_call_when_local_spans_lie_between_then_they_are_climbed(void **state)
{
    (void)state;
    EXPECT("a>b 1 5ms", {"a", NULL, 1, 1, 0, SERVER, T, 9000, {{0}}},
           {"a", NULL, 1, 2, 1, INTERNAL, T, 8000, {{0}}},
           {"a", NULL, 1, 3, 2, INTERNAL, T, 7000, {{0}}},
           {"b", NULL, 1, 4, 3, SERVER, T, 5000, {{0}}});
}

static void test_call_when_client_has_no_answer_then_to_the_name_it_gives(void **state)
{
    (void)state;
    EXPECT("a>db 1 9ms", {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {TO("db")}});
}

static void test_call_when_client_is_answered_then_its_peer_does_not_count(void **state)
{
    (void)state;
    EXPECT("a>b 1 9ms", {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {{"server.address", "proxy", 0}}},
           {"b", NULL, 1, 2, 1, SERVER, T, 5000, {{0}}});
}

static void test_call_when_client_names_nobody_then_it_lowers_the_coverage(void **state)
{
    (void)state;
    EXPECT("unmapped 1", {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {{0}}});
}

static void test_call_when_server_is_root_then_from_outside_and_no_message(void **state)
{
    (void)state;
    EXPECT("nothing", {"a", NULL, 1, 1, 0, SERVER, T, 9000, {{0}}});
}

static void test_call_when_parent_is_missing_then_it_lowers_the_coverage(void **state)
{
    (void)state;
    EXPECT("unmapped 1", {"a", NULL, 1, 2, 77, SERVER, T, 9000, {{0}}});
}

static void test_call_when_a_client_is_retried_by_the_library_then_one_message(void **state)
{
    (void)state;
    EXPECT("a>b 1 9ms", {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {{0}}},
           {"a", NULL, 1, 2, 1, CLIENT, T, 9000, {{0}}},
           {"b", NULL, 1, 3, 2, SERVER, T, 5000, {{0}}});
}

static void test_call_when_a_gateway_fans_out_then_one_message_for_each_service(void **state)
{
    (void)state;
    EXPECT("a>b 1 9ms; a>c 1 9ms", {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {{0}}},
           {"b", NULL, 1, 2, 1, SERVER, T, 5000, {{0}}},
           {"c", NULL, 1, 3, 1, SERVER, T, 5000, {{0}}});
}

static void test_span_when_sent_twice_then_counted_once(void **state)
{
    (void)state;
    EXPECT("a>b 1 9ms", {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {{0}}},
           {"b", NULL, 1, 2, 1, SERVER, T, 5000, {{0}}},
           {"b", NULL, 1, 2, 1, SERVER, T, 5000, {{0}}});
}

static void test_span_when_internal_names_a_peer_then_no_message(void **state)
{
    (void)state;
    EXPECT("nothing", {"a", NULL, 1, 1, 0, INTERNAL, T, 9000, {TO("b")}});
}

static void test_span_when_kind_is_of_a_later_version_then_local(void **state)
{
    (void)state;
    EXPECT("nothing", {"a", NULL, 1, 1, 0, 9, T, 9000, {{0}}});
}

static void test_size_when_both_halves_know_one_then_the_servers(void **state)
{
    (void)state;
    EXPECT("a>b 1 30B 9ms",
           {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {{"http.request.body.size", NULL, 999}}},
           {"b", NULL, 1, 2, 1, SERVER, T, 5000,
            {{"http.request.body.size", NULL, 10}, {"http.response.body.size", NULL, 20}}});
}

static void test_size_when_only_the_client_knows_one_then_that(void **state)
{
    (void)state;
    EXPECT("a>b 1 999B 9ms",
           {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {{"http.request.body.size", "999", 0}}},
           {"b", NULL, 1, 2, 1, SERVER, T, 5000, {{0}}});
}

static void test_size_when_negative_or_huge_then_unknown(void **state)
{
    (void)state;
    EXPECT("a>b 1 9ms",
           {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {{"http.request.body.size", NULL, -5}}},
           {"b", NULL, 1, 2, 1, SERVER, T, 5000,
            {{"http.request.body.size", NULL, INT64_C(900000000000000)}}});
}

static void test_time_when_it_ends_before_it_starts_then_unknown(void **state)
{
    (void)state;
    EXPECT("a>db 1", {"a", NULL, 1, 1, 0, CLIENT, T, -9000, {TO("db")}});
}

static void test_time_when_a_call_takes_days_then_unknown(void **state)
{
    (void)state;
    EXPECT("a>db 1",
           {"a", NULL, 1, 1, 0, CLIENT, T, INT64_C(900000000000), {TO("db")}});
}

static void test_time_when_far_ahead_then_counted_now(void **state)
{
    (void)state;
    EXPECT("a>db 1 9ms", {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {TO("db")}},
           {"a", NULL, 1, 2, 1, INTERNAL, T + INT64_C(90000000000), 9000, {{0}}});
}

static void test_time_when_not_told_then_counted_now(void **state)
{
    (void)state;
    EXPECT("a>db 1", {"a", NULL, 1, 1, 0, CLIENT, 0, 0, {TO("db")}});
}

static void test_message_when_produced_then_to_the_broker_without_time(void **state)
{
    (void)state;
    EXPECT("a>kafka 1 7B", {"a", NULL, 1, 1, 0, PRODUCER, T, 9000,
                            {{"messaging.destination.name", "kafka", 0},
                             {"messaging.message.body.size", NULL, 7}}});
}

static void test_message_when_consumed_then_from_the_broker(void **state)
{
    (void)state;
    EXPECT("kafka>b 1", {"b", NULL, 1, 1, 0, CONSUMER, T, 9000,
                         {{"messaging.destination.name", "kafka", 0}}});
}

static void test_message_when_no_broker_is_named_then_it_lowers_the_coverage(void **state)
{
    (void)state;
    EXPECT("unmapped 1", {"a", NULL, 1, 1, 0, PRODUCER, T, 9000, {{0}}});
}

static void test_name_when_unknown_to_the_cluster_then_it_lowers_the_coverage(void **state)
{
    (void)state;
    EXPECT("unmapped 1", {"a", NULL, 1, 1, 0, CLIENT, T, 9000, {TO("elsewhere")}});
}

static void test_name_when_the_resource_has_none_then_it_lowers_the_coverage(void **state)
{
    (void)state;
    EXPECT("unmapped 1", {NULL, NULL, 1, 1, 0, CLIENT, T, 9000, {TO("b")}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_when_both_halves_come_then_one_message),
        cmocka_unit_test(test_call_when_clocks_are_skewed_then_the_same_message),
        cmocka_unit_test(test_call_when_pods_are_told_then_between_instances),
        cmocka_unit_test(test_call_when_local_spans_lie_between_then_they_are_climbed),
        cmocka_unit_test(test_call_when_client_has_no_answer_then_to_the_name_it_gives),
        cmocka_unit_test(test_call_when_client_is_answered_then_its_peer_does_not_count),
        cmocka_unit_test(test_call_when_client_names_nobody_then_it_lowers_the_coverage),
        cmocka_unit_test(test_call_when_server_is_root_then_from_outside_and_no_message),
        cmocka_unit_test(test_call_when_parent_is_missing_then_it_lowers_the_coverage),
        cmocka_unit_test(test_call_when_a_client_is_retried_by_the_library_then_one_message),
        cmocka_unit_test(test_call_when_a_gateway_fans_out_then_one_message_for_each_service),
        cmocka_unit_test(test_span_when_sent_twice_then_counted_once),
        cmocka_unit_test(test_span_when_internal_names_a_peer_then_no_message),
        cmocka_unit_test(test_span_when_kind_is_of_a_later_version_then_local),
        cmocka_unit_test(test_size_when_both_halves_know_one_then_the_servers),
        cmocka_unit_test(test_size_when_only_the_client_knows_one_then_that),
        cmocka_unit_test(test_size_when_negative_or_huge_then_unknown),
        cmocka_unit_test(test_time_when_it_ends_before_it_starts_then_unknown),
        cmocka_unit_test(test_time_when_a_call_takes_days_then_unknown),
        cmocka_unit_test(test_time_when_far_ahead_then_counted_now),
        cmocka_unit_test(test_time_when_not_told_then_counted_now),
        cmocka_unit_test(test_message_when_produced_then_to_the_broker_without_time),
        cmocka_unit_test(test_message_when_consumed_then_from_the_broker),
        cmocka_unit_test(test_message_when_no_broker_is_named_then_it_lowers_the_coverage),
        cmocka_unit_test(test_name_when_unknown_to_the_cluster_then_it_lowers_the_coverage),
        cmocka_unit_test(test_name_when_the_resource_has_none_then_it_lowers_the_coverage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
