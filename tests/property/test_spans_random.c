/* test_spans_random.c - random call trees whose messages are known: every form of recording gives
 * exactly them, in any order of spans, cut at any byte, spread over any files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/base/mem.h"
#include "tests/support/rng.h"
#include "tests/support/runs.h"
#include "tests/support/span_text.h"

#define N_SERVICES 6
#define MAX_SPANS 400

enum form { FORM_ZIPKIN, FORM_JAEGER, FORM_OTLP };

struct made_span {
    int trace, service, remote; /* remote -1: not named */
    uint64_t id, parent;
    const char *kind; /* NULL: local */
    bool shared;
    int64_t duration_us, bytes; /* bytes -1: unknown */
};

struct recording {
    struct made_span spans[MAX_SPANS];
    size_t n;
    uint64_t next_id;
    int trace;
    int64_t count[N_SERVICES][N_SERVICES], bytes[N_SERVICES][N_SERVICES];
    bool may_share; /* Zipkin's B3: both halves under one id */
};

static struct made_span *add(struct recording *r, int service, const char *kind, uint64_t id,
                             uint64_t parent)
{
    assert_true(r->n < MAX_SPANS);
    struct made_span *span = &r->spans[r->n++];
    *span = (struct made_span){.trace = r->trace, .service = service, .remote = -1, .id = id,
                               .parent = parent, .kind = kind, .duration_us = 100, .bytes = -1};
    return span;
}

/* A call from inside span `parent` of service `from`; perhaps one half is not recorded. Calls made by
 * the callee hang on its own half, so that half is there when it has any. */
static void call(struct recording *r, struct rng *rng, int from, uint64_t parent, int depth)
{
    int to = (int)rng_below(rng, N_SERVICES);
    if (to == from)
        to = (to + 1) % N_SERVICES;
    while (rng_chance(rng, 0.3)) { /* local work in between */
        uint64_t id = r->next_id++;
        add(r, from, NULL, id, parent);
        parent = id;
    }
    bool leaf = depth == 0 || rng_chance(rng, 0.4);
    bool has_server = !leaf || rng_chance(rng, 0.7);
    bool has_client = !has_server || rng_chance(rng, 0.8);
    bool shared = r->may_share && has_client && has_server && rng_chance(rng, 0.5);
    uint64_t client_id = r->next_id++, server_id = shared ? client_id : r->next_id++;
    int64_t client_bytes = rng_chance(rng, 0.5) ? rng_int(rng, 0, 1000) : -1;
    int64_t server_bytes = rng_chance(rng, 0.5) ? rng_int(rng, 0, 1000) : -1;
    if (has_client) {
        struct made_span *client = add(r, from, "CLIENT", client_id, parent);
        client->remote = !has_server || rng_chance(rng, 0.5) ? to : -1;
        client->bytes = client_bytes;
    }
    if (has_server) {
        uint64_t up = !has_client || shared ? parent : client_id;
        struct made_span *server = add(r, to, "SERVER", server_id, up);
        server->shared = shared;
        server->bytes = server_bytes;
    }
    r->count[from][to]++;
    int64_t known = has_server && server_bytes >= 0 ? server_bytes : has_client ? client_bytes : -1;
    if (known >= 0)
        r->bytes[from][to] = known + (r->bytes[from][to] < 0 ? 0 : r->bytes[from][to]);
    for (int i = leaf ? 0 : (int)rng_below(rng, 4); i > 0; i--)
        call(r, rng, to, server_id, depth - 1);
}

static void record(struct recording *r, struct rng *rng, bool may_share)
{
    memset(r, 0, sizeof *r);
    memset(r->bytes, -1, sizeof r->bytes);
    r->may_share = may_share;
    r->next_id = 1;
    int traces = (int)rng_int(rng, 1, 4);
    for (r->trace = 1; r->trace <= traces; r->trace++) {
        int root = (int)rng_below(rng, N_SERVICES);
        uint64_t id = r->next_id++;
        add(r, root, "SERVER", id, 0); /* from outside */
        for (int i = (int)rng_int(rng, 0, 3); i > 0; i--)
            call(r, rng, root, id, 2);
    }
}

static void expected(const struct recording *r, struct buf *out)
{
    for (int a = 0; a < N_SERVICES; a++)
        for (int b = 0; b < N_SERVICES; b++)
            if (r->count[a][b]) {
                buf_printf(out, "s%d>s%d %lld", a, b, (long long)r->count[a][b]);
                if (r->bytes[a][b] >= 0)
                    buf_printf(out, " %lldB", (long long)r->bytes[a][b]);
                buf_puts(out, " 100us; ");
            }
    buf_printf(out, "external %d", r->trace - 1);
}

static void shuffle(struct recording *r, struct rng *rng)
{
    for (size_t i = r->n; i > 1; i--) {
        size_t j = rng_below(rng, i);
        struct made_span kept = r->spans[i - 1];
        r->spans[i - 1] = r->spans[j];
        r->spans[j] = kept;
    }
}

/* --- writing --- */

static void zipkin_span(struct buf *out, const struct made_span *s)
{
    buf_printf(out, "{\"traceId\":\"%x\",\"id\":\"%llx\",\"duration\":%lld,\"localEndpoint\":{"
                    "\"serviceName\":\"s%d\"}",
               (unsigned)s->trace, (unsigned long long)s->id, (long long)s->duration_us, s->service);
    if (s->parent)
        buf_printf(out, ",\"parentId\":\"%llx\"", (unsigned long long)s->parent);
    if (s->kind)
        buf_printf(out, ",\"kind\":\"%s\"", s->kind);
    if (s->remote >= 0)
        buf_printf(out, ",\"remoteEndpoint\":{\"serviceName\":\"S%d\"}", s->remote);
    if (s->bytes >= 0)
        buf_printf(out, ",\"tags\":{\"x\":\"\",\"http.request.size\":\"%lld\"}", (long long)s->bytes);
    buf_puts(out, s->shared ? ",\"shared\":true}" : "}");
}

static void jaeger_span(struct buf *out, const struct made_span *s)
{
    static const char *const kinds[][2] = {{"CLIENT", "client"}, {"SERVER", "server"}};
    buf_printf(out, "{\"traceID\":\"%x\",\"spanID\":\"%llx\",\"duration\":%lld,\"processID\":\"p%d\"",
               (unsigned)s->trace, (unsigned long long)s->id, (long long)s->duration_us, s->service);
    if (s->parent)
        buf_printf(out, ",\"references\":[{\"refType\":\"CHILD_OF\",\"traceID\":\"%x\",\"spanID\":"
                        "\"%llx\"}]",
                   (unsigned)s->trace, (unsigned long long)s->parent);
    buf_puts(out, ",\"tags\":[{\"key\":\"x\",\"type\":\"bool\",\"value\":true}");
    for (size_t i = 0; i < 2; i++)
        if (s->kind && strcmp(s->kind, kinds[i][0]) == 0)
            buf_printf(out, ",{\"key\":\"span.kind\",\"value\":\"%s\"}", kinds[i][1]);
    if (s->remote >= 0)
        buf_printf(out, ",{\"key\":\"peer.service\",\"value\":\"s%d\"}", s->remote);
    if (s->bytes >= 0)
        buf_printf(out, ",{\"key\":\"http.request.size\",\"value\":%lld}", (long long)s->bytes);
    buf_puts(out, "]}");
}

static void jaeger_document(struct buf *out, const struct recording *r)
{
    buf_puts(out, "{\"data\":[");
    for (int trace = 1; trace < r->trace; trace++) {
        buf_printf(out, "%s{\"traceID\":\"%x\",\"spans\":[", trace > 1 ? "," : "", (unsigned)trace);
        bool first = true;
        for (size_t i = 0; i < r->n; i++)
            if (r->spans[i].trace == trace) {
                buf_puts(out, first ? "" : ",");
                jaeger_span(out, &r->spans[i]);
                first = false;
            }
        buf_puts(out, "],\"processes\":{");
        for (int p = 0; p < N_SERVICES; p++)
            buf_printf(out, "%s\"p%d\":{\"serviceName\":\"s%d\"}", p ? "," : "", p, p);
        buf_puts(out, "}}");
    }
    buf_puts(out, "]}");
}

static void otlp_span(struct buf *out, const struct made_span *s)
{
    int kind = !s->kind ? 1 : strcmp(s->kind, "SERVER") == 0 ? 2 : 3;
    buf_printf(out,
               "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
               "\"stringValue\":\"s%d\"}}]},\"scopeSpans\":[{\"spans\":[{\"traceId\":\"%x\",\"spanId\":"
               "\"%llx\",\"parentSpanId\":\"",
               s->service, (unsigned)s->trace, (unsigned long long)s->id);
    if (s->parent)
        buf_printf(out, "%llx", (unsigned long long)s->parent);
    buf_printf(out, "\",\"kind\":%d,\"startTimeUnixNano\":\"1000000\",\"endTimeUnixNano\":\"%lld\","
                    "\"attributes\":[{\"key\":\"x\",\"value\":{}}",
               kind, (long long)(1000000 + s->duration_us * 1000));
    if (s->remote >= 0)
        buf_printf(out, ",{\"key\":\"peer.service\",\"value\":{\"stringValue\":\"s%d\"}}", s->remote);
    if (s->bytes >= 0)
        buf_printf(out, ",{\"key\":\"http.request.body.size\",\"value\":{\"intValue\":\"%lld\"}}",
                   (long long)s->bytes);
    buf_puts(out, "]}]}]}]}\n");
}

static void document(struct buf *out, const struct recording *r, enum form form)
{
    if (form == FORM_JAEGER) {
        jaeger_document(out, r);
        return;
    }
    for (size_t i = 0; i < r->n; i++) {
        if (form == FORM_OTLP) {
            otlp_span(out, &r->spans[i]);
            continue;
        }
        buf_puts(out, i ? "," : "[");
        zipkin_span(out, &r->spans[i]);
    }
    if (form == FORM_ZIPKIN)
        buf_puts(out, r->n ? "]" : "[]");
}

/* --- properties --- */

static void must_read(const struct buf *json, size_t piece, const char *wanted, uint64_t seed)
{
    AUTO_BUF struct buf got = BUF_INIT;
    struct err err = ERR_INIT;
    if (span_text_read(json->data, json->size, piece, JOINER_WINDOW, &got, &err))
        fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, err.text, json->data);
    if (strcmp(got.data, wanted) != 0)
        fail_msg("seed %llu:\n got    %s\n wanted %s\n%s", (unsigned long long)seed, got.data, wanted,
                 json->data);
}

static void test_recordings_when_in_any_form_and_order_then_the_messages_that_were_sent(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RUNS_OF(600); seed++) {
        struct rng rng = {seed};
        struct recording r;
        enum form form = (enum form)(seed % 3);
        record(&r, &rng, form == FORM_ZIPKIN);
        AUTO_BUF struct buf wanted = BUF_INIT;
        expected(&r, &wanted);
        for (int order = 0; order < 3; order++) {
            AUTO_BUF struct buf json = BUF_INIT;
            document(&json, &r, form);
            must_read(&json, 0, wanted.data, seed);
            shuffle(&r, &rng);
        }
    }
}

static void test_recordings_when_cut_at_any_byte_then_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 9; seed++) {
        struct rng rng = {seed * 1000};
        struct recording r;
        enum form form = (enum form)(seed % 3);
        record(&r, &rng, form == FORM_ZIPKIN);
        AUTO_BUF struct buf wanted = BUF_INIT, json = BUF_INIT;
        expected(&r, &wanted);
        document(&json, &r, form);
        for (size_t piece = 1; piece < json.size && piece < 200; piece++)
            must_read(&json, piece, wanted.data, seed);
    }
}

static void read_part(struct span_reader *reader, const struct recording *all, size_t from,
                      size_t to)
{
    struct recording part = *all;
    AUTO_BUF struct buf json = BUF_INIT;
    struct err err = ERR_INIT;
    part.n = to - from;
    memmove(part.spans, all->spans + from, part.n * sizeof *part.spans);
    document(&json, &part, FORM_ZIPKIN);
    assert_int_equal(span_reader_feed(reader, json.data, json.size, &err), 0);
    assert_int_equal(span_reader_end(reader, &err), 0);
}

static void test_traces_when_spread_over_files_then_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RUNS_OF(200); seed++) {
        struct rng rng = {seed * 77};
        struct recording r;
        record(&r, &rng, true);
        shuffle(&r, &rng);
        AUTO_BUF struct buf wanted = BUF_INIT, got = BUF_INIT;
        expected(&r, &wanted);
        AUTO(span_table) struct span_table *table = span_table_new();
        AUTO(span_reader) struct span_reader *reader = span_reader_new(table, JOINER_WINDOW);
        struct err err = ERR_INIT;
        size_t first = rng_below(&rng, r.n + 1), second = first + rng_below(&rng, r.n - first + 1);
        read_part(reader, &r, 0, first);
        read_part(reader, &r, first, second);
        read_part(reader, &r, second, r.n);
        assert_int_equal(span_reader_finish(reader, &err), 0);
        span_table_print(table, &got);
        assert_string_equal(got.data, wanted.data);
    }
}

/* Halves of a recording are lost; what is left may say less, never depend on order. */
static void test_broken_recordings_when_in_any_order_then_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RUNS_OF(400); seed++) {
        struct rng rng = {seed * 31};
        struct recording r;
        record(&r, &rng, true);
        for (size_t i = 0; i < r.n; i++) {
            if (rng_chance(&rng, 0.2))
                r.spans[i].parent = (uint64_t)rng_int(&rng, 0, (int64_t)r.next_id);
            if (rng_chance(&rng, 0.2))
                r.spans[i].id = (uint64_t)rng_int(&rng, 1, (int64_t)r.next_id);
            if (rng_chance(&rng, 0.1))
                r.spans[i].service = (int)rng_below(&rng, N_SERVICES);
            if (rng_chance(&rng, 0.1))
                r.spans[i].remote = (int)rng_below(&rng, N_SERVICES);
            r.spans[i].duration_us = rng_int(&rng, 1, 50);
        }
        r.n -= rng_below(&rng, r.n);
        AUTO_BUF struct buf json = BUF_INIT, wanted = BUF_INIT;
        struct err err = ERR_INIT;
        document(&json, &r, FORM_ZIPKIN);
        assert_int_equal(span_text_read(json.data, json.size, 0, JOINER_WINDOW, &wanted, &err), 0);
        for (int order = 0; order < 4; order++) {
            shuffle(&r, &rng);
            buf_clear(&json);
            document(&json, &r, FORM_ZIPKIN);
            must_read(&json, 0, wanted.data, seed);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_recordings_when_in_any_form_and_order_then_the_messages_that_were_sent),
        cmocka_unit_test(test_recordings_when_cut_at_any_byte_then_same),
        cmocka_unit_test(test_traces_when_spread_over_files_then_same),
        cmocka_unit_test(test_broken_recordings_when_in_any_order_then_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
