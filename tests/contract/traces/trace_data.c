/* trace_data.c - making and verifying traces (trace_data.h). */
#include "tests/contract/traces/trace_data.h"

#include "model/base/clock.h"
#include "model/model.h"
#include "adapters/identity.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STORED_MS = 300000 };
enum { REQUEST = 100, ANSWER = 1000, QUERY = 40, CLIENT_US = 5000, SERVER_US = 3000, DB_US = 700 };

static int64_t start_us(const struct trace_data *data, int64_t i)
{
    return data->from_ms * 1000 + (data->to_ms - data->from_ms) * 1000 * i / data->n_traces;
}

/* Sizes differ per trace, so that none can be counted for another unnoticed. */
static int64_t answer_bytes(int64_t i)
{
    return ANSWER + i % 7;
}

/* Of this data alone, also in its lower half: Zipkin's memory store goes by that. */
static void trace_id(const struct trace_data *data, int64_t i, char out[33])
{
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)data->from_ms,
             (unsigned long long)data->from_ms << 20 | (unsigned long long)(i + 1));
}

static void put_span(struct buf *out, const char *trace, int id, int parent, const char *rest)
{
    buf_printf(out, "%s{\"traceId\":\"%s\",\"id\":\"%016x\"", out->size > 1 ? "," : "", trace, id);
    if (parent)
        buf_printf(out, ",\"parentId\":\"%016x\"", parent);
    buf_puts(out, rest);
}

#define TIMES ",\"timestamp\":%lld,\"duration\":%d"
#define LOCAL(name) ",\"localEndpoint\":{\"serviceName\":\"" name "\"}"
#define REMOTE(name) ",\"remoteEndpoint\":{\"serviceName\":\"" name "\"}"
#define SIZES ",\"tags\":{\"http.request.size\":\"%d\",\"http.response.size\":\"%lld\"}}"

/* Odd traces: both halves of a call under one id (B3); even ones: the server's is a child. */
static void put_trace(struct buf *out, const struct trace_data *data, int64_t i)
{
    char text[600], id[33];
    trace_id(data, i, id);
    long long at = start_us(data, i);
    bool shared = i % 2;
    snprintf(text, sizeof text,
             ",\"kind\":\"CLIENT\",\"name\":\"get\"" TIMES LOCAL("front") SIZES, at, CLIENT_US, 7,
             8LL); /* the client's sizes do not count where the server has some */
    put_span(out, id, 1, 0, text);
    snprintf(text, sizeof text, ",\"kind\":\"SERVER\",\"name\":\"get\"%s" TIMES LOCAL("cart") SIZES,
             shared ? ",\"shared\":true" : "", at + 500, SERVER_US, REQUEST,
             (long long)answer_bytes(i));
    put_span(out, id, shared ? 1 : 2, shared ? 0 : 1, text);
    snprintf(text, sizeof text,
             ",\"kind\":\"CLIENT\",\"name\":\"select\"" TIMES LOCAL("cart") REMOTE("db")
             ",\"tags\":{\"http.request.size\":\"%d\"}}",
             at + 900 + (long long)data->slow_us, DB_US, QUERY);
    put_span(out, id, 3, shared ? 1 : 2, text);
    snprintf(text, sizeof text,
             ",\"kind\":\"PRODUCER\",\"name\":\"send\"" TIMES LOCAL("front") REMOTE("kafka") "}",
             at + 100, 10);
    put_span(out, id, 4, 1, text);
}

#define LAST "\"0000000000000004\"" /* the span of a trace that is sent last */

/* A server may store after it has answered, span by span. */
static bool stored(const struct trace_data *data, int64_t i, const struct server *server,
                   const char *path)
{
    char id[33];
    trace_id(data, i, id);
    AUTO_FREE char *full = mem_printf("%s%s", path, id);
    for (int64_t end = clock_mono_ms() + STORED_MS; clock_mono_ms() < end; clock_sleep_ms(5)) {
        AUTO_BUF struct buf answer = BUF_INIT;
        if (server_get(server, full, &answer) == 200 && answer.size && strstr(answer.data, LAST))
            return true;
    }
    return false;
}

bool trace_data_post(const struct trace_data *data, const struct server *server,
                     const struct server *reader, const char *path)
{
    for (int64_t i = 0; i < data->n_traces;) {
        AUTO_BUF struct buf body = BUF_INIT;
        buf_puts(&body, "[");
        for (int64_t n = 0; n < data->per_request && i < data->n_traces; n++)
            put_trace(&body, data, i++);
        buf_puts(&body, "]");
        if (server_post(server, "/api/v2/spans", "application/json", body.data, body.size) != 202 ||
            !stored(data, i - 1, reader, path))
            return false;
    }
    return true;
}

struct inspection trace_data_inspection(void)
{
    struct err err = ERR_INIT;
    struct model *model = model_new();
    static const char *const services[] = {"shop/front", "shop/cart", "shop/db"};
    static const char *const pods[] = {"shop/front-1", "shop/cart-1", "shop/db-0", "shop/cart-2"};
    for (size_t i = 0; i < ARRAY_LEN(services); i++)
        assert_int_equal(model_add_service(model, services[i], &err), i);
    for (size_t i = 0; i < ARRAY_LEN(pods); i++)
        assert_int_equal(model_add_instance(model, pods[i], i < 3 ? (int)i : 1, -1, &err), i);
    return (struct inspection){.model = model, .identity = identity_new(model)};
}

void trace_data_end(struct inspection *in)
{
    struct err err = ERR_INIT;
    in->model->has_messages = true; /* as the inspection does */
    if (model_check(in->model, &err))
        fail_msg("%s", err.text);
    model_free(in->model);
    identity_free(in->identity);
    inspection_wipe(in);
}

static void verify_row(const struct message *row, int src, int dst, int64_t count, int64_t bytes,
                       double mean_ms)
{
    assert_int_equal(row->level, LEVEL_SERVICE);
    assert_int_equal(row->src, src);
    assert_int_equal(row->dst, dst);
    assert_int_equal(row->count, count);
    assert_int_equal(row->bytes, bytes);
    assert_true(fabs(row->mean_ms - mean_ms) < 1e-6);
}

void trace_data_verify(const struct trace_data *data, const struct inspection *in)
{
    int64_t answers = 0;
    for (int64_t i = 0; i < data->n_traces; i++)
        answers += answer_bytes(i);
    assert_int_equal(in->model->n_messages, 2);
    verify_row(&in->model->messages[0], 0, 1, data->n_traces, answers + REQUEST * data->n_traces,
               CLIENT_US / 1000.0);
    verify_row(&in->model->messages[1], 1, 2, data->n_traces, QUERY * data->n_traces,
               DB_US / 1000.0);
    size_t n;
    const struct unmapped *names = identity_unmapped_names(in->identity, &n);
    assert_int_equal(n, 1);
    assert_string_equal(names[0].name, "kafka");
    assert_int_equal(names[0].count, data->n_traces);
    assert_null(note_find(in, "late", ""));
    assert_null(note_find(in, "partial", ""));
    assert_null(note_find(in, "never-traced", ""));
}
