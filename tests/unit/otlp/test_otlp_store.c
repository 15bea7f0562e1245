/* test_otlp_store.c - the limits of what a receiver of spans holds: waiting, expiry, overflow, windows of
 * time, names, what a restart loses; and bodies that nobody should send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "adapters/identity.h"
#include "adapters/otlp/flows.h"
#include "adapters/otlp/store.h"
#include "tests/support/otlp_body.h"

#define NOW INT64_C(1800000000000)
#define KEEP INT64_C(720000)
#define LONG_AGO (NOW - 3600000) /* when the receiver began */
#define WAITING 10

static struct otlp_result post_bytes(struct otlp_store *store, const struct buf *body, bool json,
                                     bool gzip, int64_t now_ms)
{
    struct otlp_result result;
    const struct otlp_body request = {.data = body->data ? body->data : "",
                                      .size = body->size,
                                      .json = json,
                                      .gzip = gzip};
    otlp_store_post(store, &request, now_ms, &result);
    return result;
}

static struct otlp_result post(struct otlp_store *store, const struct sample_span *spans, size_t n,
                               int64_t now_ms)
{
    AUTO_BUF struct buf body = BUF_INIT;
    otlp_body_protobuf(spans, n, &body);
    return post_bytes(store, &body, false, false, now_ms);
}

static struct sample_span client(uint64_t trace, int64_t now_ms)
{
    return (struct sample_span){"a", NULL, trace, 1, 0, CLIENT, now_ms * 1000, 9000, {{0}}};
}

static struct sample_span server(uint64_t trace, int64_t now_ms)
{
    return (struct sample_span){"b", NULL, trace, 2, 1, SERVER, now_ms * 1000, 5000, {{0}}};
}

static void post_ok(struct otlp_store *store, struct sample_span span, int64_t now_ms)
{
    struct otlp_result result = post(store, &span, 1, now_ms);
    assert_int_equal(result.status, 200);
    assert_int_equal(result.rejected, 0);
}

/* What a window showed. */
struct seen {
    int64_t count; /* of a → b */
    int64_t unmapped;
    size_t rows;
    char notes[2000]; /* "kind: text\n"… */
};

static struct seen read_window(struct otlp_store *store, int64_t from_ms, int64_t to_ms,
                               int64_t now_ms)
{
    struct err err = ERR_INIT;
    struct seen seen = {.notes = ""};
    AUTO(model) struct model *model = model_new();
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    model_add_service(model, "a", &err);
    model_add_service(model, "b", &err);
    const struct window window = {from_ms, to_ms};
    if (otlp_store_trace(store, &window, true, now_ms, &in, &err))
        fail_msg("%s", err.text);
    identity_report(identity, &model->traffic);
    model->has_messages = true;
    if (model_check(model, &err))
        fail_msg("%s", err.text);
    seen.rows = model->n_messages;
    for (size_t i = 0; i < model->n_messages; i++)
        seen.count += model->messages[i].count;
    seen.unmapped = model->traffic.unmapped_count;
    for (size_t i = 0, at = 0; i < in.n_notes && at < sizeof seen.notes; i++)
        at += (size_t)snprintf(seen.notes + at, sizeof seen.notes - at, "%s: %s\n",
                               in.notes[i].kind, in.notes[i].text);
    inspection_wipe(&in);
    return seen;
}

static struct seen read_recent(struct otlp_store *store, int64_t now_ms)
{
    return read_window(store, now_ms - 600000, now_ms + 10000, now_ms);
}

#define STORE(waiting) \
    AUTO(otlp_store) struct otlp_store *store = otlp_store_new(waiting, KEEP, LONG_AGO)

/* --- waiting --- */

static void test_halves_when_a_minute_apart_then_joined(void **state)
{
    (void)state;
    STORE(WAITING);
    post_ok(store, client(1, NOW), NOW);
    post_ok(store, server(1, NOW), NOW + 59000);
    otlp_store_tick(store, NOW + 70000);
    struct seen seen = read_recent(store, NOW + 70000);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.unmapped, 0);
}

static void test_halves_when_further_apart_then_expired_and_coverage_falls(void **state)
{
    (void)state;
    STORE(WAITING);
    post_ok(store, client(1, NOW), NOW);
    post_ok(store, server(1, NOW), NOW + 62000);
    assert_int_equal(otlp_store_totals(store).waiting, 0);
    struct seen seen = read_recent(store, NOW + 130000);
    assert_int_equal(seen.count, 0);
    assert_int_equal(seen.unmapped, 2); /* the client that nobody answered, and the late half */
    assert_non_null(strstr(seen.notes, "late: 1 "));
}

static void test_waiting_when_full_of_settled_traces_then_they_are_counted(void **state)
{
    (void)state;
    STORE(WAITING);
    for (uint64_t trace = 1; trace <= 50; trace++) {
        const struct sample_span both[] = {client(trace, NOW), server(trace, NOW)};
        assert_int_equal(post(store, both, 2, NOW).status, 200);
    }
    assert_true(otlp_store_totals(store).waiting <= WAITING);
    assert_int_equal(otlp_store_totals(store).early, 0);
    struct seen seen = read_recent(store, NOW);
    assert_int_equal(seen.count, 50);
    assert_int_equal(seen.unmapped, 0);
}

static void test_waiting_when_full_then_the_oldest_go_early_and_coverage_falls(void **state)
{
    (void)state;
    STORE(WAITING);
    for (uint64_t trace = 1; trace <= WAITING; trace++)
        post_ok(store, server(trace, NOW), NOW);
    post_ok(store, server(77, NOW), NOW + 6000);
    assert_int_equal(otlp_store_totals(store).early, 1);
    assert_int_equal(otlp_store_totals(store).waiting, WAITING);
    post_ok(store, client(1, NOW), NOW + 6000); /* its other half is gone */
    otlp_store_tick(store, NOW + 80000);
    struct seen seen = read_recent(store, NOW + 80000);
    assert_int_equal(seen.count, 0);
    assert_int_equal(seen.unmapped, WAITING + 1); /* all servers without callers */
    assert_non_null(strstr(seen.notes, "early: 2 "));
}

static void test_waiting_when_full_of_young_ones_then_429_and_nothing_is_taken(void **state)
{
    (void)state;
    STORE(WAITING);
    for (uint64_t trace = 1; trace <= WAITING; trace++)
        post_ok(store, server(trace, NOW), NOW);
    const struct sample_span more = client(1, NOW);
    struct otlp_result result = post(store, &more, 1, NOW + 1000);
    assert_int_equal(result.status, 429);
    assert_int_equal(result.retry_after_s, 5);
    assert_int_equal(otlp_store_totals(store).refused, 1);
    assert_int_equal(otlp_store_totals(store).spans, WAITING);
    /* Told so, it comes again, and is not counted twice. */
    assert_int_equal(post(store, &more, 1, NOW + 7000).status, 200);
    assert_non_null(strstr(read_recent(store, NOW + 7000).notes, "refused: 1 "));
}

static void test_waiting_when_the_clock_is_set_back_then_traces_still_expire(void **state)
{
    (void)state;
    STORE(WAITING);
    post_ok(store, client(1, NOW), NOW);
    for (int64_t s = 0; s <= 62; s++)
        otlp_store_tick(store, NOW - 1800000 + s * 1000);
    assert_int_equal(otlp_store_totals(store).waiting, 0);
}

/* --- windows --- */

static void test_window_when_read_twice_then_the_same(void **state)
{
    (void)state;
    STORE(WAITING);
    for (uint64_t trace = 1; trace <= 4; trace++) {
        post_ok(store, client(trace, NOW), NOW);
        post_ok(store, server(trace, NOW), NOW);
    }
    assert_int_equal(read_recent(store, NOW).count, 4);     /* they wait */
    assert_int_equal(read_recent(store, NOW + 1).count, 4);
    otlp_store_tick(store, NOW + 61500);
    assert_int_equal(otlp_store_totals(store).waiting, 0);
    assert_int_equal(read_recent(store, NOW + 61500).count, 4); /* they are counted */
    assert_int_equal(read_recent(store, NOW + 61501).count, 4);
}

static void test_window_when_side_by_side_then_nothing_is_lost_or_twice(void **state)
{
    (void)state;
    STORE(1000);
    for (uint64_t i = 0; i < 300; i++) { /* one call every second */
        int64_t at = NOW + (int64_t)i * 1000;
        const struct sample_span both[] = {client(i + 1, at), server(i + 1, at)};
        assert_int_equal(post(store, both, 2, at).status, 200);
    }
    int64_t now = NOW + 400000, sum = 0;
    otlp_store_tick(store, now);
    for (int64_t from = NOW - 50000; from < now; from += 50000) {
        int64_t count = read_window(store, from, from + 50000, now).count;
        if (from >= NOW && from < NOW + 300000)
            assert_in_range(count, 44, 56); /* a slice of time is less than 6 s */
        sum += count;
    }
    assert_int_equal(sum, 300);
}

/* Whatever part of its slice has passed, and whether or not the trace still waits. */
static void test_window_when_it_ends_right_after_the_traffic_then_it_is_in(void **state)
{
    (void)state;
    for (int64_t at = NOW; at < NOW + 12000; at += 500) {
        STORE(WAITING);
        post_ok(store, client(1, at), at);
        post_ok(store, server(1, at), at);
        assert_int_equal(read_window(store, at - 600000, at + 1, at + 1).count, 1);
        otlp_store_tick(store, at + 70000);
        assert_int_equal(read_window(store, at - 600000, at + 1, at + 70000).count, 1);
        assert_int_equal(read_window(store, at + 1, at + 70000, at + 70000).count, 0);
    }
}

#define DAY_MS INT64_C(86400000)

/* One call each `every_ms` of [from, to). */
static void call_often(struct otlp_store *store, uint64_t *trace, int64_t from, int64_t to,
                       int64_t every_ms)
{
    for (int64_t at = from; at < to; at += every_ms) {
        const struct sample_span both[] = {client(++*trace, at), server(*trace, at)};
        assert_int_equal(post(store, both, 2, at).status, 200);
    }
}

static int64_t last(struct otlp_store *store, int64_t ms, int64_t now)
{
    return read_window(store, now - ms, now, now).count;
}

/* An application with a window of a minute beside one of a day: slices of a day are 11 min. */
static void test_window_when_short_beside_a_long_one_then_as_fine(void **state)
{
    uint64_t trace = 0;
    (void)state;
    AUTO(otlp_store) struct otlp_store *store =
        otlp_store_new(WAITING, DAY_MS + 120000, NOW - 2 * DAY_MS);
    int64_t began = NOW - DAY_MS;
    call_often(store, &trace, began, NOW - 600000, 60000);
    call_often(store, &trace, NOW - 600000, NOW, 1000);
    for (int64_t now = NOW; now < NOW + 200; now += 50) {
        assert_in_range(last(store, 60000, now), 58, 61);
        assert_in_range(last(store, 600000, now), 590, 610);
        assert_in_range(last(store, 7200000, now), 600 + 110 - 2, 600 + 110 + 2);
        assert_in_range(last(store, DAY_MS, now), 600 + 1430 - 12, 600 + 1430);
    }
    int64_t quiet = NOW + 400000; /* what is two minutes and more ago is in the coarser slices too */
    otlp_store_tick(store, quiet);
    assert_int_equal(last(store, 60000, quiet), 0);
    assert_in_range(last(store, 600000, quiet), 190, 210);
}

static void test_window_when_a_longer_one_is_configured_then_what_came_stays(void **state)
{
    uint64_t trace = 0;
    (void)state;
    STORE(WAITING);
    call_often(store, &trace, NOW, NOW + 500000, 1000);
    otlp_store_keep(store, DAY_MS);
    int64_t now = NOW + 500000;
    assert_in_range(last(store, 60000, now), 58, 61);
    assert_int_equal(last(store, DAY_MS, now), 500);
    call_often(store, &trace, now, now + 2400000, 1000);
    now += 2400000;
    assert_in_range(last(store, 60000, now), 58, 61);
    assert_in_range(last(store, 600000, now), 590, 610);
    assert_int_equal(last(store, DAY_MS, now), 2900);
}

static void test_window_when_older_than_kept_then_empty(void **state)
{
    (void)state;
    STORE(WAITING);
    post_ok(store, client(1, NOW), NOW);
    post_ok(store, server(1, NOW), NOW);
    otlp_store_tick(store, NOW + 61500);
    otlp_store_tick(store, NOW + KEEP + 20000);
    assert_int_equal(read_window(store, NOW - 600000, NOW + 600000, NOW + KEEP + 20000).count, 0);
}

static void test_window_when_spans_are_too_old_then_they_lower_the_coverage(void **state)
{
    (void)state;
    STORE(WAITING);
    post_ok(store, client(1, NOW - KEEP - 1000), NOW);
    post_ok(store, server(1, NOW - KEEP - 1000), NOW);
    otlp_store_tick(store, NOW + 61500);
    struct seen seen = read_recent(store, NOW + 61500);
    assert_int_equal(seen.count, 0);
    assert_int_equal(seen.unmapped, 1);
    assert_non_null(strstr(seen.notes, "stale: 1 "));
}

static void test_window_when_the_receiver_began_within_then_the_rest_is_unknown_traffic(void **state)
{
    (void)state;
    AUTO(otlp_store) struct otlp_store *store = otlp_store_new(WAITING, KEEP, NOW - 100000);
    for (uint64_t trace = 1; trace <= 4; trace++) {
        post_ok(store, client(trace, NOW), NOW);
        post_ok(store, server(trace, NOW), NOW);
    }
    struct seen seen = read_window(store, NOW - 390000, NOW + 10000, NOW);
    assert_int_equal(seen.count, 4);
    assert_int_equal(seen.unmapped, 10); /* 4 in 110 s, so 10.5 in the other 290 */
    assert_non_null(strstr(seen.notes, "receiver-began: spans are received since 100 s only"));
}

/* --- names and pairs --- */

static struct sample_span named_client(uint64_t trace, const char *service, const char *peer)
{
    return (struct sample_span){service, NULL,       trace, 1,
                                0,       CLIENT,     NOW * 1000, 9000,
                                {{"peer.service", peer, 0}}};
}

static void test_services_when_beyond_the_limit_then_other(void **state)
{
    (void)state;
    STORE(5000);
    post_ok(store, named_client(1, "a", "b"), NOW);
    for (uint64_t i = 0; i < 1500; i++) {
        char name[32];
        snprintf(name, sizeof name, "svc-%d", (int)i);
        post_ok(store, named_client(i + 2, "a", name), NOW);
    }
    assert_int_equal(otlp_store_totals(store).services, OTLP_MAX_SERVICES - 1);
    otlp_store_tick(store, NOW + 61500);
    struct seen seen = read_recent(store, NOW + 61500);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.unmapped, 1500);
}

static void test_names_when_nobody_uses_them_then_there_is_room_again(void **state)
{
    (void)state;
    STORE(5000);
    for (uint64_t i = 0; i < 1500; i++) {
        char name[32];
        snprintf(name, sizeof name, "svc-%d", (int)i);
        post_ok(store, named_client(i + 1, "x", name), NOW);
    }
    int64_t later = NOW + KEEP + 200000;
    otlp_store_tick(store, NOW + 61500);
    otlp_store_tick(store, later - 60000);
    otlp_store_tick(store, later);
    assert_int_equal(otlp_store_totals(store).services, 0);
    assert_int_equal(otlp_store_totals(store).edges, 0);
    struct sample_span span = named_client(9999, "a", "b");
    span.start_us = later * 1000;
    post_ok(store, span, later);
    assert_int_equal(read_recent(store, later).count, 1);
}

static void test_names_when_traces_wait_then_theirs_are_kept(void **state)
{
    (void)state;
    STORE(5000);
    for (uint64_t i = 0; i < 1500; i++) {
        char name[32];
        snprintf(name, sizeof name, "svc-%d", (int)i);
        post_ok(store, named_client(i + 1, "a", name), NOW - KEEP + 10000);
    }
    otlp_store_tick(store, NOW - KEEP + 71500);
    struct sample_span half = client(5000, NOW);
    half.pod = "a-1"; /* so that its name is a new one */
    post_ok(store, half, NOW);
    otlp_store_tick(store, NOW + 60000); /* forgets the others */
    assert_true(otlp_store_totals(store).services < OTLP_MAX_SERVICES - 1);
    post_ok(store, server(5000, NOW), NOW + 60000);
    otlp_store_tick(store, NOW + 70000);
    assert_int_equal(read_recent(store, NOW + 70000).count, 1);
}

static void test_flows_when_beyond_the_limit_of_pairs_then_other(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO(flows) struct flows *flows = flows_new(KEEP);
    AUTO(span_table) struct span_table *table = span_table_new();
    int32_t name = span_table_name(table, "n", 1, true, &err);
    for (int32_t i = 0; i <= 200; i++) {
        char hint[16];
        int size = snprintf(hint, sizeof hint, "p%d", i);
        span_table_node(table, name, span_table_name(table, hint, (size_t)size, false, &err),
                        HINT_POD);
    }
    for (int slice = 0; slice < 100; slice++) /* more sums than there may be: slices get longer */
        for (int32_t i = 0; i < 30000; i++)
            flows_message(flows, NOW - slice * 6000, 1 + i % 200, 1 + i / 200, 10, 1000, 0);
    assert_int_equal(flows_edges(flows), FLOWS_MAX_EDGES + 1);
    int64_t left = MODEL_MAX_NUMBER;
    const struct window window = {NOW - KEEP, NOW + KEEP};
    assert_int_equal(flows_window(flows, &window, table, &left, &err), 0);
    assert_int_equal(span_table_counts(table)->messages, 3000000);
    assert_int_equal(MODEL_MAX_NUMBER - left, 30000000);
    size_t n;
    const struct span_edge *edges = span_table_edges(table, &n);
    int64_t other = 0;
    for (size_t i = 0; i < n; i++)
        if (edges[i].src == 0 && edges[i].dst == 0)
            other = edges[i].count;
    assert_int_equal(other, 1000000);
}

static void test_sizes_when_their_sum_is_beyond_a_model_then_unknown(void **state)
{
    (void)state;
    STORE(5000);
    for (uint64_t i = 0; i < 1200; i++) {
        struct sample_span span = named_client(i + 1, "a", "b");
        span.tags[1] = (struct sample_tag){"http.request.body.size", NULL, INT64_C(1) << 40};
        post_ok(store, span, NOW);
    }
    assert_int_equal(read_recent(store, NOW).count, 1200); /* 1.3·10^15 bytes; waiting */
    otlp_store_tick(store, NOW + 61500);
    assert_int_equal(read_recent(store, NOW + 61500).count, 1200);
}

/* --- bodies --- */

static void test_body_when_damaged_then_400_and_nothing_is_taken(void **state)
{
    (void)state;
    STORE(WAITING);
    AUTO_BUF struct buf json = BUF_INIT, protobuf = BUF_INIT, text = BUF_INIT;
    const struct sample_span both[] = {client(1, NOW), server(1, NOW)};
    otlp_body_json(both, 2, &json);
    json.size -= 3; /* both spans are complete */
    assert_int_equal(post_bytes(store, &json, true, false, NOW).status, 400);
    otlp_body_protobuf(both, 2, &protobuf);
    protobuf.size--;
    assert_int_equal(post_bytes(store, &protobuf, false, false, NOW).status, 400);
    assert_int_equal(post_bytes(store, &protobuf, false, true, NOW).status, 400); /* is no gzip */
    buf_puts(&text, "[]");
    assert_int_equal(post_bytes(store, &text, true, false, NOW).status, 400);
    assert_int_equal(otlp_store_totals(store).spans, 0);
    assert_int_equal(otlp_store_totals(store).waiting, 0);
}

static void test_body_when_empty_then_taken_in_protobuf_only(void **state)
{
    (void)state;
    STORE(WAITING);
    const struct buf empty = BUF_INIT;
    assert_int_equal(post_bytes(store, &empty, false, false, NOW).status, 200);
    assert_int_equal(post_bytes(store, &empty, true, false, NOW).status, 400);
}

static void test_body_when_spans_have_no_valid_ids_then_rejected_and_counted(void **state)
{
    (void)state;
    STORE(WAITING);
    struct sample_span spans[] = {client(1, NOW), client(0, NOW), client(2, NOW)};
    spans[2].id = 0;
    AUTO_BUF struct buf json = BUF_INIT, protobuf = BUF_INIT;
    otlp_body_json(spans, 3, &json);
    otlp_body_protobuf(spans, 3, &protobuf);
    for (int i = 0; i < 2; i++) {
        struct otlp_result result = post_bytes(store, i ? &json : &protobuf, i, false, NOW);
        assert_int_equal(result.status, 200);
        assert_int_equal(result.rejected, 2);
        assert_true(*result.text);
    }
    assert_int_equal(otlp_store_totals(store).rejected, 4);
    assert_int_equal(otlp_store_totals(store).spans, 2);
}

static void test_body_when_it_unpacks_beyond_the_limit_then_413(void **state)
{
    (void)state;
    STORE(WAITING);
    AUTO_BUF struct buf plain = BUF_INIT, bomb = BUF_INIT;
    buf_reserve(&plain, OTLP_MAX_INFLATED + 2);
    memset(plain.data, ' ', OTLP_MAX_INFLATED + 1);
    plain.size = OTLP_MAX_INFLATED + 1;
    otlp_body_gzip(&plain, &bomb);
    assert_true(bomb.size < OTLP_MAX_BODY / 100);
    assert_int_equal(post_bytes(store, &bomb, true, true, NOW).status, 413);
    assert_int_equal(post_bytes(store, &bomb, false, true, NOW).status, 413);
}

/* A field of protobuf whose value is bytes. */
static void put_field(struct buf *out, int number, const struct buf *value)
{
    buf_add(out, (char[]){(char)(number << 3 | 2)}, 1);
    for (size_t size = value->size;; size >>= 7) {
        buf_add(out, (char[]){(char)((size & 127) | (size > 127 ? 128 : 0))}, 1);
        if (size <= 127)
            break;
    }
    buf_add(out, value->data ? value->data : "", value->size);
}

static void test_body_when_millions_of_empty_parts_then_refused_within_its_memory(void **state)
{
    (void)state;
    STORE(WAITING);
    AUTO_BUF struct buf spans = BUF_INIT, scopes = BUF_INIT, request = BUF_INIT;
    const struct buf nothing = BUF_INIT;
    for (int i = 0; i < 1900000; i++)
        put_field(&spans, 2, &nothing); /* two bytes each */
    put_field(&scopes, 2, &spans);
    put_field(&request, 1, &scopes);
    struct otlp_result result = post_bytes(store, &request, false, false, NOW);
    assert_int_equal(result.status, 413);
    assert_non_null(strstr(result.text, "too many parts"));
}

static void test_body_when_a_span_has_a_million_attributes_then_that_span_is_rejected(void **state)
{
    (void)state;
    STORE(WAITING);
    AUTO_BUF struct buf span = BUF_INIT, spans = BUF_INIT, scopes = BUF_INIT, request = BUF_INIT;
    const struct buf nothing = BUF_INIT;
    for (int i = 0; i < 1000000; i++)
        put_field(&span, 9, &nothing);
    put_field(&spans, 2, &span);
    put_field(&scopes, 2, &spans);
    put_field(&request, 1, &scopes);
    struct otlp_result result = post_bytes(store, &request, false, false, NOW);
    assert_int_equal(result.status, 200);
    assert_int_equal(result.rejected, 1);
}

static void test_body_when_too_many_spans_then_413_and_nothing_is_taken(void **state)
{
    (void)state;
    STORE(OTLP_MAX_WAITING);
    AUTO_FREE struct sample_span *spans = mem_array(OTLP_MAX_SPANS + 1, sizeof *spans);
    for (size_t i = 0; i <= OTLP_MAX_SPANS; i++)
        spans[i] = client(i + 1, NOW);
    assert_int_equal(post(store, spans, OTLP_MAX_SPANS + 1, NOW).status, 413);
    assert_int_equal(otlp_store_totals(store).waiting, 0);
    assert_int_equal(post(store, spans, OTLP_MAX_SPANS, NOW).status, 200);
    assert_int_equal(otlp_store_totals(store).waiting, OTLP_MAX_SPANS);
}

static void test_names_when_invalid_then_the_span_has_none(void **state)
{
    (void)state;
    char *huge = mem_alloc(1000001);
    memset(huge, 'x', 1000000);
    const char *const names[] = {"\xff\xfe", "", "a\nb", huge, "\xed\xa0\x80"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        STORE(WAITING);
        post_ok(store, named_client(1, names[i], "b"), NOW);
        struct seen seen = read_recent(store, NOW);
        assert_int_equal(seen.count, 0);
        assert_int_equal(seen.unmapped, 1);
    }
    free(huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_when_a_minute_apart_then_joined),
        cmocka_unit_test(test_halves_when_further_apart_then_expired_and_coverage_falls),
        cmocka_unit_test(test_waiting_when_full_of_settled_traces_then_they_are_counted),
        cmocka_unit_test(test_waiting_when_full_then_the_oldest_go_early_and_coverage_falls),
        cmocka_unit_test(test_waiting_when_full_of_young_ones_then_429_and_nothing_is_taken),
        cmocka_unit_test(test_waiting_when_the_clock_is_set_back_then_traces_still_expire),
        cmocka_unit_test(test_window_when_read_twice_then_the_same),
        cmocka_unit_test(test_window_when_side_by_side_then_nothing_is_lost_or_twice),
        cmocka_unit_test(test_window_when_it_ends_right_after_the_traffic_then_it_is_in),
        cmocka_unit_test(test_window_when_short_beside_a_long_one_then_as_fine),
        cmocka_unit_test(test_window_when_a_longer_one_is_configured_then_what_came_stays),
        cmocka_unit_test(test_window_when_older_than_kept_then_empty),
        cmocka_unit_test(test_window_when_spans_are_too_old_then_they_lower_the_coverage),
        cmocka_unit_test(test_window_when_the_receiver_began_within_then_the_rest_is_unknown_traffic),
        cmocka_unit_test(test_services_when_beyond_the_limit_then_other),
        cmocka_unit_test(test_names_when_nobody_uses_them_then_there_is_room_again),
        cmocka_unit_test(test_names_when_traces_wait_then_theirs_are_kept),
        cmocka_unit_test(test_flows_when_beyond_the_limit_of_pairs_then_other),
        cmocka_unit_test(test_sizes_when_their_sum_is_beyond_a_model_then_unknown),
        cmocka_unit_test(test_body_when_damaged_then_400_and_nothing_is_taken),
        cmocka_unit_test(test_body_when_empty_then_taken_in_protobuf_only),
        cmocka_unit_test(test_body_when_spans_have_no_valid_ids_then_rejected_and_counted),
        cmocka_unit_test(test_body_when_it_unpacks_beyond_the_limit_then_413),
        cmocka_unit_test(test_body_when_millions_of_empty_parts_then_refused_within_its_memory),
        cmocka_unit_test(test_body_when_a_span_has_a_million_attributes_then_that_span_is_rejected),
        cmocka_unit_test(test_body_when_too_many_spans_then_413_and_nothing_is_taken),
        cmocka_unit_test(test_names_when_invalid_then_the_span_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
