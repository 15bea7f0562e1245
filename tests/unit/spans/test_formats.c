/* test_formats.c - the forms in which Zipkin, Jaeger and OTLP write spans, what is refused, and the
 * window of open traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "adapters/spans/walk.h"
#include "model/base/mem.h"
#include "tests/support/span_text.h"

static void expect(const char *json, const char *wanted)
{
    AUTO_BUF struct buf got = BUF_INIT;
    struct err err = ERR_INIT;
    if (span_text_read(json, strlen(json), 0, JOINER_WINDOW, &got, &err))
        fail_msg("%s\n%s", err.text, json);
    assert_string_equal(got.data, wanted);
}

static void refuse(const char *json, size_t size, const char *wanted)
{
    AUTO_BUF struct buf got = BUF_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(span_text_read(json, size, 0, JOINER_WINDOW, &got, &err), -1);
    assert_true(err.kind == ERR_INPUT || err.kind == ERR_TOO_LARGE);
    if (!strstr(err.text, wanted))
        fail_msg("\"%s\" does not hold \"%s\"", err.text, wanted);
}

#define A "{\"traceId\":\"a\",\"id\":\"1\",\"kind\":\"CLIENT\",\"localEndpoint\":{\"serviceName\":\"a\"}}"
#define B                                                                                  \
    "{\"traceId\":\"a\",\"id\":\"2\",\"parentId\":\"1\",\"kind\":\"SERVER\",\"localEndpoint\":{" \
    "\"serviceName\":\"b\"}}"

static void test_zipkin_when_flat_nested_or_newline_delimited_then_same(void **state)
{
    (void)state;
    expect("[" A "," B "]", "a>b 1");
    expect("[[" A "," B "]]", "a>b 1");
    expect("[[" A "],[" B "]]", "a>b 1"); /* one trace in two lists */
    expect(A "\n" B "\n", "a>b 1");
    expect("[" A "]\n[" B "]\n", "a>b 1");
    expect(" [ ] ", "nothing");
}

#define J_SPAN(id, tags, more)                                                                 \
    "{\"traceID\":\"ab\",\"spanID\":\"" id "\",\"operationName\":\"o\",\"startTime\":1000,"      \
    "\"duration\":50,\"logs\":[],\"warnings\":null,\"tags\":[" tags "]" more "}"
#define J_KIND(kind) "{\"key\":\"span.kind\",\"type\":\"string\",\"value\":\"" kind "\"}"
#define J_CHILD(type, trace, id)                                                             \
    ",\"references\":[{\"refType\":\"" type "\",\"traceID\":\"" trace "\",\"spanID\":\"" id "\"}]"
#define J_IN(process) ",\"processID\":\"" process "\""
#define J_PROCESSES                                                                            \
    "\"processes\":{\"p1\":{\"serviceName\":\"a\",\"tags\":[]},\"p2\":{\"serviceName\":\"b\",\"tags\":[" \
    "{\"key\":\"k8s.pod.name\",\"type\":\"string\",\"value\":\"b-1\"}]}}"
#define J_DATA(traces) "{\"data\":[" traces "],\"total\":0,\"limit\":0,\"offset\":0,\"errors\":null}"
#define J_TRACE(spans) "{\"traceID\":\"ab\",\"spans\":[" spans "]," J_PROCESSES "}"

static void test_jaeger_when_child_of_joins_then_one_message(void **state)
{
    (void)state;
    expect(J_DATA(J_TRACE(J_SPAN("1", J_KIND("client"), J_IN("p1")) "," J_SPAN(
               "2", J_KIND("server"), J_IN("p2") J_CHILD("CHILD_OF", "00ab", "0001")))),
           "a>b[b-1] 1 50us");
}

static void test_jaeger_when_processes_come_before_spans_then_same(void **state)
{
    (void)state;
    expect(J_DATA("{" J_PROCESSES ",\"spans\":[" J_SPAN("1", J_KIND("client"), J_IN("p1")) "," J_SPAN(
               "2", J_KIND("server"), J_IN("p2") J_CHILD("CHILD_OF", "ab", "1")) "]}"),
           "a>b[b-1] 1 50us");
}

static void test_jaeger_when_only_follows_from_then_it_is_the_parent(void **state)
{
    (void)state;
    expect(J_DATA(J_TRACE(J_SPAN("1", J_KIND("client"), J_IN("p1")) "," J_SPAN(
               "2", J_KIND("server"), J_IN("p2") J_CHILD("FOLLOWS_FROM", "ab", "1")))),
           "a>b[b-1] 1 50us");
}

static void test_jaeger_when_reference_leads_to_another_trace_then_no_parent(void **state)
{
    (void)state;
    expect(J_DATA(J_TRACE(J_SPAN("2", J_KIND("server"), J_IN("p2") J_CHILD("CHILD_OF", "cd", "1")))),
           "external 1");
}

static void test_jaeger_when_peer_service_and_sizes_are_tags_then_used(void **state)
{
    (void)state;
    expect(J_DATA(J_TRACE(J_SPAN(
               "1",
               J_KIND("client") ",{\"key\":\"peer.service\",\"type\":\"string\",\"value\":\"db\"},"
                                "{\"key\":\"http.request.size\",\"type\":\"int64\",\"value\":7},"
                                "{\"key\":\"http.response.size\",\"type\":\"int64\",\"value\":\"5\"}",
               J_IN("p1")))),
           "a>db 1 12B 50us");
    expect(J_DATA(J_TRACE(J_SPAN(
               "1",
               J_KIND("internal") ",{\"key\":\"peer.service\",\"type\":\"string\",\"value\":\"db\"}",
               J_IN("p1")))),
           "nothing");
}

static void test_jaeger_when_there_is_no_data_then_nothing(void **state)
{
    (void)state;
    expect("{\"data\":null,\"total\":0,\"errors\":null}", "nothing");
    expect("{\"total\":0,\"data\":[]}", "nothing");
}

#define O_ATTR(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define O_RESOURCE(attributes) "\"resource\":{\"attributes\":[" attributes "]}"
#define O_SPAN(id, kind, more)                                                                  \
    "{\"traceId\":\"5b8efff798038103d269b633813fc60c\",\"spanId\":\"" id "\",\"name\":\"n\","     \
    "\"kind\":" kind ",\"startTimeUnixNano\":\"1544712660000000000\","                            \
    "\"endTimeUnixNano\":\"1544712660000050000\"" more "}"
#define O_SCOPES(spans) "\"scopeSpans\":[{\"scope\":{},\"spans\":[" spans "]}]"
#define O_DOC(resources) "{\"resourceSpans\":[" resources "]}"
#define O_CLIENT                                                                             \
    "{" O_RESOURCE(O_ATTR("service.name", "a")) ","                                          \
    O_SCOPES(O_SPAN("eee19b7ec3c1b174", "3", ",\"parentSpanId\":\"\"")) "}"
#define O_SERVER                                                                             \
    "{" O_RESOURCE(O_ATTR("service.name", "b") "," O_ATTR("k8s.namespace.name", "shop") ","  \
                   O_ATTR("k8s.pod.name", "b-1")) ","                                         \
    O_SCOPES(O_SPAN("eee19b7ec3c1b173", "2", ",\"parentSpanId\":\"EEE19B7EC3C1B174\"")) "}"

static void test_otlp_when_halves_come_in_different_resources_then_joined(void **state)
{
    (void)state;
    expect(O_DOC(O_CLIENT "," O_SERVER), "a>b[shop/b-1] 1 50us");
    expect(O_DOC(O_SERVER) "\n" O_DOC(O_CLIENT) "\n", "a>b[shop/b-1] 1 50us");
    expect("{\"result\":" O_DOC(O_CLIENT "," O_SERVER) "}", "a>b[shop/b-1] 1 50us");
}

static void test_otlp_when_resource_comes_after_its_spans_then_same(void **state)
{
    (void)state;
    expect(O_DOC("{" O_SCOPES(O_SPAN("eee19b7ec3c1b174", "3", ",\"attributes\":[" O_ATTR(
               "server.address", "DB:5432") "]")) "," O_RESOURCE(O_ATTR("service.name", "a")) "}"),
           "a>db:5432 1 50us");
}

static void test_otlp_when_peer_is_an_attribute_then_it_fits_the_kind(void **state)
{
    static const struct {
        const char *kind, *attribute, *wanted;
    } rows[] = {
        {"3", O_ATTR("service.peer.name", "x") "," O_ATTR("peer.service", "y"), "a>x 1 50us"},
        {"3", O_ATTR("server.address", "z") "," O_ATTR("peer.service", "y"), "a>y 1 50us"},
        {"3", O_ATTR("server.address", "z"), "a>z 1 50us"},
        {"2", O_ATTR("server.address", "z"), "external 1"}, /* its own address */
        {"4", O_ATTR("messaging.destination.name", "q"), "a>q 1"},
        {"5", O_ATTR("messaging.destination.name", "q"), "q>a 1"},
        {"3", O_ATTR("messaging.destination.name", "q"), "no-callee 1"},
        {"1", O_ATTR("peer.service", "y"), "nothing"},
        {"0", O_ATTR("peer.service", "y"), "a>y 1 50us"},
        {"\"SPAN_KIND_CLIENT\"", O_ATTR("peer.service", "y"), "a>y 1 50us"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *json = mem_printf(
            "{\"resourceSpans\":[{" O_RESOURCE(O_ATTR("service.name", "a")) ",\"scopeSpans\":[{"
            "\"spans\":[{\"traceId\":\"5b8efff798038103d269b633813fc60c\",\"spanId\":\"1\","
            "\"kind\":%s,\"startTimeUnixNano\":1544712660000000000,\"endTimeUnixNano\":"
            "1544712660000050000,\"attributes\":[%s]}]}]}]}",
            rows[i].kind, rows[i].attribute);
        expect(json, rows[i].wanted);
    }
}

static void test_otlp_when_values_are_of_any_type_then_sizes_are_found(void **state)
{
    (void)state;
    expect(O_DOC("{" O_RESOURCE(O_ATTR("service.name", "a")) "," O_SCOPES(O_SPAN(
               "1", "3",
               ",\"attributes\":[" O_ATTR("peer.service", "b") ","
               "{\"key\":\"http.request.body.size\",\"value\":{\"intValue\":\"40\"}},"
               "{\"value\":{\"intValue\":2},\"key\":\"http.response.body.size\"},"
               "{\"key\":\"http.request.header.content-length\",\"value\":{\"arrayValue\":{"
               "\"values\":[{\"stringValue\":\"99\"}]}}},"
               "{\"key\":\"nested\",\"value\":{\"kvlistValue\":{\"values\":[]}}}]")) "}"),
           "a>b 1 42B 50us");
    expect(O_DOC("{" O_RESOURCE(O_ATTR("service.name", "a")) "," O_SCOPES(O_SPAN(
               "1", "3",
               ",\"attributes\":[" O_ATTR("peer.service", "b") "],\"events\":[{\"name\":\"message\","
               "\"attributes\":[{\"key\":\"message.uncompressed_size\",\"value\":{\"intValue\":\"3\"}}]"
               "},{\"attributes\":[{\"key\":\"message.uncompressed_size\",\"value\":{\"intValue\":\"4\"}"
               "}]}]")) "}"),
           "a>b 1 7B 50us");
}

static void test_bad_input_when_read_then_error_names_line_and_byte(void **state)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"", "holds no JSON document"},
        {"  \n ", "holds no JSON document"},
        {"[", "ends in the middle"},
        {"[" A, "ends in the middle"},
        {"[" A "]]", "line 1, byte "},
        {"[\n{\"traceId\":\"xyz\",\"id\":\"1\"}]",
         "line 2, byte 18: the trace id must be hexadecimal, not \"xyz\""},
        {"[{\"id\":\"1\"}]", "a span without trace id"},
        {"[{\"traceId\":\"1\"}]", "a span without id"},
        {"[{\"traceId\":\"1\",\"id\":\"00000000000000001\"}]", "1 to 16 hexadecimal digits"},
        {"[{\"traceId\":\"\",\"id\":\"1\"}]", "1 to 32 hexadecimal digits"},
        {"[{\"traceId\":\"0\",\"id\":\"1\"}]", "must not be zero"},
        {"[{\"traceId\":\"1\",\"id\":\"0\"}]", "must not be zero"},
        {"[{\"traceId\":1,\"id\":\"1\"}]", "the trace id must be a text"},
        {"[{\"traceId\":{},\"id\":\"1\"}]", "traceId: must be a value"},
        {"[{\"traceId\":\"1\",\"traceId\":\"2\",\"id\":\"1\"}]", "traceId is given twice"},
        {"[{\"traceId\":\"1\",\"id\":\"1\",\"kind\":\"client\"}]", "kind must be CLIENT"},
        {"[{\"traceId\":\"1\",\"id\":\"1\",\"shared\":1}]", "shared must be true or false"},
        {"[{\"traceId\":\"1\",\"id\":\"1\",\"timestamp\":\"now\"}]", "must be a whole number, not now"},
        {"[{\"traceId\":\"1\",\"id\":\"1\",\"tags\":[]}]", "tags: must be an object"},
        {"[{\"traceId\":\"1\",\"id\":\"1\",\"localEndpoint\":\"a\"}]",
         "localEndpoint: must be an object"},
        {"[1]", "must be an object or an array"},
        {"{\"data\\u0000\":[]}", "neither Zipkin"},
        {"7", "must be an object or an array"},
        {"{}", "neither Zipkin spans nor a Jaeger answer nor OTLP"},
        {"{\"kind\":\"List\",\"items\":[]}", "kind must be CLIENT"},
        {"{\"apiVersion\":\"v1\"}", "neither Zipkin spans nor a Jaeger answer nor OTLP"},
        {"{\"data\":{}}", "data: must be an array"},
        {"{\"data\":[{\"spans\":[{}]}]}", "a span without trace id"},
        {"{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":\"1\",\"spanId\":\"1\","
         "\"kind\":9}]}]}]}",
         "kind must be from 0 to 5, not 9"},
        {"[{\"traceId\":\"1\",\"id\":\"1\",\"x\":NaN}]", "line 1, byte "},
        {"[{\"traceId\":\"1\",\"id\":\"1\",\"name\":\"\xff\"}]", "line 1, byte "},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        refuse(rows[i].json, strlen(rows[i].json), rows[i].error);
}

static void test_deep_nesting_when_read_then_refused(void **state)
{
    char json[400];
    (void)state;
    memset(json, '[', sizeof json);
    refuse(json, sizeof json, "must be an object");
    size_t size = (size_t)snprintf(json, sizeof json, "[{\"traceId\":\"1\",\"id\":\"1\",\"x\":");
    memset(json + size, '[', sizeof json - size);
    refuse(json, sizeof json, "nested deeper than 64");
}

static void test_huge_text_when_read_then_refused_before_it_fills_memory(void **state)
{
    AUTO(span_table) struct span_table *table = span_table_new();
    AUTO(span_reader) struct span_reader *reader = span_reader_new(table, JOINER_WINDOW);
    static char piece[65536];
    struct err err = ERR_INIT;
    (void)state;
    memset(piece, 'x', sizeof piece);
    assert_int_equal(span_reader_feed(reader, "[{\"name\":\"", 10, &err), 0);
    size_t fed = 0;
    while (fed < 2 * WALK_MAX_TOKEN && span_reader_feed(reader, piece, sizeof piece, &err) == 0)
        fed += sizeof piece;
    assert_int_equal(err.kind, ERR_TOO_LARGE);
    assert_true(fed <= WALK_MAX_TOKEN + sizeof piece);
}

static void test_long_blank_when_between_spans_then_no_error(void **state)
{
    AUTO_BUF struct buf json = BUF_INIT, got = BUF_INIT;
    struct err err = ERR_INIT;
    (void)state;
    buf_puts(&json, "[" A ",");
    buf_reserve(&json, WALK_MAX_TOKEN + 200000);
    memset(json.data + json.size, ' ', WALK_MAX_TOKEN + 200000);
    json.size += WALK_MAX_TOKEN + 200000;
    buf_puts(&json, B "]");
    assert_int_equal(span_text_read(json.data, json.size, 65536, JOINER_WINDOW, &got, &err), 0);
    assert_string_equal(got.data, "a>b 1");
}

/* Without a cluster addresses are dropped: a client of another address each time is one edge. */
static void test_addresses_when_dropped_then_the_table_does_not_grow_with_the_recording(void **state)
{
    AUTO_BUF struct buf json = BUF_INIT;
    struct err err = ERR_INIT;
    (void)state;
    for (unsigned i = 1; i <= 300; i++)
        buf_printf(&json,
                   "{\"traceId\":\"%x\",\"id\":\"1\",\"kind\":\"CLIENT\",\"localEndpoint\":"
                   "{\"serviceName\":\"a\",\"ipv4\":\"10.1.%u.%u\"},"
                   "\"remoteEndpoint\":{\"serviceName\":\"b\"}}\n",
                   i, i / 200, i % 200 + 1);
    for (int drop = 0; drop < 2; drop++) {
        AUTO(span_table) struct span_table *table = span_table_new();
        if (drop)
            span_table_drop_addresses(table);
        AUTO(span_reader) struct span_reader *reader = span_reader_new(table, JOINER_WINDOW);
        assert_int_equal(span_reader_feed(reader, json.data, json.size, &err), 0);
        assert_int_equal(span_reader_finish(reader, &err), 0);
        size_t n_nodes, n_edges;
        span_table_nodes(table, &n_nodes);
        span_table_edges(table, &n_edges);
        assert_int_equal(n_nodes, drop ? 2 : 301);
        assert_int_equal(n_edges, drop ? 1 : 300);
    }
}

/* --- the window --- */

static void span_line(struct buf *out, int trace, int id, int parent, const char *kind,
                      const char *service)
{
    buf_printf(out, "{\"traceId\":\"%x\",\"id\":\"%x\"", (unsigned)trace, (unsigned)id);
    if (parent)
        buf_printf(out, ",\"parentId\":\"%x\"", (unsigned)parent);
    buf_printf(out, ",\"kind\":\"%s\",\"localEndpoint\":{\"serviceName\":\"%s\"}}\n", kind, service);
}

static void test_window_when_full_then_oldest_trace_is_closed_and_its_rest_is_late(void **state)
{
    AUTO_BUF struct buf json = BUF_INIT, got = BUF_INIT;
    struct err err = ERR_INIT;
    (void)state;
    span_line(&json, 1, 1, 0, "CLIENT", "a");
    span_line(&json, 1, 2, 1, "SERVER", "b");
    span_line(&json, 2, 1, 0, "CLIENT", "c");
    span_line(&json, 2, 2, 1, "SERVER", "d"); /* four are open; the next closes trace 1 */
    span_line(&json, 3, 1, 0, "CLIENT", "e");
    span_line(&json, 1, 3, 2, "CLIENT", "b"); /* late */
    span_line(&json, 3, 2, 1, "SERVER", "f");
    assert_int_equal(span_text_read(json.data, json.size, 0, 4, &got, &err), 0);
    assert_string_equal(got.data, "a>b 1; c>d 1; e>f 1; late 1");
}

static void test_window_when_one_trace_fills_it_then_its_rest_is_late(void **state)
{
    AUTO_BUF struct buf json = BUF_INIT, got = BUF_INIT;
    struct err err = ERR_INIT;
    (void)state;
    span_line(&json, 1, 1, 0, "CLIENT", "a");
    span_line(&json, 1, 2, 1, "SERVER", "b");
    span_line(&json, 1, 3, 2, "CLIENT", "b");
    assert_int_equal(span_text_read(json.data, json.size, 0, 2, &got, &err), 0);
    assert_string_equal(got.data, "a>b 1; late 1");
}

/* --- files --- */

static void write_file(char path[64], const char *text, size_t keep, bool zip)
{
    strcpy(path, "/tmp/remap-spans-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    gzFile file = gzdopen(fd, zip ? "wb" : "wbT");
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
    gzclose(file);
    if (keep)
        assert_int_equal(truncate(path, (off_t)keep), 0);
}

static void read_file(const char *path, const char *wanted, const char *error)
{
    AUTO(span_table) struct span_table *table = span_table_new();
    AUTO(span_reader) struct span_reader *reader = span_reader_new(table, JOINER_WINDOW);
    AUTO_BUF struct buf got = BUF_INIT;
    struct err err = ERR_INIT;
    int rc = span_reader_file(reader, path, NULL, NULL, &err);
    if (error) {
        assert_int_equal(rc, -1);
        assert_int_equal(err.kind, ERR_INPUT);
        assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
        assert_non_null(strstr(err.text, error));
        return;
    }
    assert_int_equal(rc, 0);
    assert_int_equal(span_reader_finish(reader, &err), 0);
    span_table_print(table, &got);
    assert_string_equal(got.data, wanted);
}

static void test_files_when_plain_or_gzip_then_same(void **state)
{
    char path[64];
    (void)state;
    for (int zip = 0; zip < 2; zip++) {
        write_file(path, "[" A "," B "]", 0, zip);
        read_file(path, "a>b 1", NULL);
        unlink(path);
    }
}

static void test_files_when_cut_short_or_absent_then_error_names_the_file(void **state)
{
    char path[64];
    (void)state;
    write_file(path, "[" A "," B "]", 40, true);
    read_file(path, NULL, "");
    unlink(path);
    write_file(path, "[" A "," B "]", 40, false);
    read_file(path, NULL, "line 1, byte 40: ends in the middle");
    unlink(path);
    read_file(path, NULL, "No such file");
    read_file("/tmp", NULL, "directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zipkin_when_flat_nested_or_newline_delimited_then_same),
        cmocka_unit_test(test_jaeger_when_child_of_joins_then_one_message),
        cmocka_unit_test(test_jaeger_when_processes_come_before_spans_then_same),
        cmocka_unit_test(test_jaeger_when_only_follows_from_then_it_is_the_parent),
        cmocka_unit_test(test_jaeger_when_reference_leads_to_another_trace_then_no_parent),
        cmocka_unit_test(test_jaeger_when_peer_service_and_sizes_are_tags_then_used),
        cmocka_unit_test(test_jaeger_when_there_is_no_data_then_nothing),
        cmocka_unit_test(test_otlp_when_halves_come_in_different_resources_then_joined),
        cmocka_unit_test(test_otlp_when_resource_comes_after_its_spans_then_same),
        cmocka_unit_test(test_otlp_when_peer_is_an_attribute_then_it_fits_the_kind),
        cmocka_unit_test(test_otlp_when_values_are_of_any_type_then_sizes_are_found),
        cmocka_unit_test(test_bad_input_when_read_then_error_names_line_and_byte),
        cmocka_unit_test(test_deep_nesting_when_read_then_refused),
        cmocka_unit_test(test_huge_text_when_read_then_refused_before_it_fills_memory),
        cmocka_unit_test(test_long_blank_when_between_spans_then_no_error),
        cmocka_unit_test(
            test_addresses_when_dropped_then_the_table_does_not_grow_with_the_recording),
        cmocka_unit_test(test_window_when_full_then_oldest_trace_is_closed_and_its_rest_is_late),
        cmocka_unit_test(test_window_when_one_trace_fills_it_then_its_rest_is_late),
        cmocka_unit_test(test_files_when_plain_or_gzip_then_same),
        cmocka_unit_test(test_files_when_cut_short_or_absent_then_error_names_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
