/* test_slices.c - windows of traces that are read slice by slice, several at once, from a server that
 * means no good: whatever the order in which its answers come, they give what one request at a time
 * gives, and where that fails it fails the same, in time. */
#include "adapters/adapter.h"
#include "adapters/identity.h"
#include "model/base/clock.h"
#include "tests/contract/faults/faulty.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FROM INT64_C(1700000000000)
#define WINDOW_MS 60000
#define TRACES 300
#define LIMIT 10 /* traces of a page */
#define FAULTY 3 /* this request of a run is the faulty one, where it is one */
#define SLICES_MS 120000 /* a guard; the longest here waits for two time-outs of 1 s */

enum mood {
    HONEST,
    REVERSED,  /* the first of four comes last */
    THROTTLED, /* come again in an hour */
    PROMISING, /* a Content-Length that is never kept, once */
    CUTTING,   /* a Content-Length that is too short, always */
    ENDLESS    /* one slice goes on for ever */
};

static struct evil {
    int fd;
    pthread_t thread, *threads; /* of connections; touched by `thread`, then by teardown() */
    size_t n_threads;
    atomic_int mood, requests;
    atomic_bool stop;
    char url[64];
} fx;

/* Dense in the middle, so that slices get other lengths. */
static int64_t trace_at(int i)
{
    return FROM + (i < 100 ? i * 200 : i < 250 ? 20000 + (i - 100) * 20 : 23000 + (i - 250) * 700);
}

static void put_traces(const char *request, struct buf *out)
{
    const char *end = strstr(request, "endTs="), *back = strstr(request, "lookback=");
    int64_t to = end ? strtoll(end + 6, NULL, 10) : 0;
    int64_t from = to - (back ? strtoll(back + 9, NULL, 10) : 0);
    int n = 0;
    buf_puts(out, "[");
    for (int i = TRACES - 1; i >= 0 && n < LIMIT; i--) { /* the newest first */
        long long at = trace_at(i) * 1000;
        if (trace_at(i) < from || trace_at(i) > to)
            continue;
        buf_printf(out,
                   "%s[{\"traceId\":\"%016x\",\"id\":\"%016x\",\"kind\":\"CLIENT\",\"timestamp\":%lld,"
                   "\"duration\":900,\"localEndpoint\":{\"serviceName\":\"a\"}},"
                   "{\"traceId\":\"%016x\",\"parentId\":\"%016x\",\"id\":\"%016x\",\"kind\":\"SERVER\","
                   "\"timestamp\":%lld,\"duration\":500,\"localEndpoint\":{\"serviceName\":\"b\"},"
                   "\"tags\":{\"http.request.size\":\"%d\"}}]",
                   n++ ? "," : "", i + 1, 2 * i + 1, at, i + 1, 2 * i + 1, 2 * i + 2, at + 100, i);
    }
    buf_puts(out, "]");
}

static void answer(int fd, const char *request)
{
    static const char later[] = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3600\r\n"
                                "Content-Length: 0\r\nConnection: close\r\n\r\n";
    AUTO_BUF struct buf body = BUF_INIT;
    AUTO_BUF struct buf head = BUF_INIT;
    int number = ++fx.requests;
    bool faulty = number == FAULTY;
    put_traces(request, &body);
    long size = (long)body.size;
    if (fx.mood == REVERSED)
        usleep((useconds_t)(3 - number % 4) * 5000); /* only an order; nothing depends on it */
    if (fx.mood == THROTTLED && faulty) {
        faulty_send(fd, later, sizeof later - 1);
        return;
    }
    if (fx.mood == PROMISING && faulty)
        size += 1000;
    if (fx.mood == CUTTING && size > 2)
        size -= 2;
    if (fx.mood == ENDLESS)
        size += 1000000;
    buf_printf(&head, "HTTP/1.1 200 OK\r\nContent-Length: %ld\r\nConnection: close\r\n\r\n", size);
    if (!faulty_send(fd, head.data, head.size) || !faulty_send(fd, body.data, body.size))
        return;
    while (fx.mood == ENDLESS && faulty_send(fd, " ", 1))
        usleep(10000);
}

static void *connection(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char text[4096];
    size_t size = 0;
    while (size < sizeof text - 1) {
        ssize_t got = recv(fd, text + size, sizeof text - 1 - size, 0);
        if (got <= 0)
            break;
        size += (size_t)got;
        text[size] = '\0';
        if (!strstr(text, "\r\n\r\n"))
            continue;
        answer(fd, text);
        break;
    }
    close(fd);
    return NULL;
}

static void *serve(void *arg)
{
    (void)arg;
    for (;;) {
        int fd = accept(fx.fd, NULL, NULL);
        if (fx.stop || fd < 0) {
            if (fd >= 0)
                close(fd);
            return NULL;
        }
        if (pthread_create(ARRAY_PUSH(fx.threads, fx.n_threads), NULL, connection,
                           (void *)(intptr_t)fd))
            abort();
    }
}

static int setup(void **state)
{
    (void)state;
    fx.fd = faulty_listen(fx.url);
    if (fx.fd < 0)
        return -1;
    return pthread_create(&fx.thread, NULL, serve, NULL);
}

static int teardown(void **state)
{
    (void)state;
    fx.stop = true;
    shutdown(fx.fd, SHUT_RDWR);
    pthread_join(fx.thread, NULL);
    close(fx.fd);
    for (size_t i = 0; i < fx.n_threads; i++)
        pthread_join(fx.threads[i], NULL);
    free(fx.threads);
    return 0;
}

/* --- reading --- */

struct result {
    int rc;
    struct err err;
    int64_t count, bytes, requests;
};

static struct result read_window(enum mood mood, const char *parallel)
{
    static const char *const all[] = {NULL};
    static const struct app_scope app = {"shop", all, all};
    const struct message_adapter *zipkin = message_adapter_find("zipkin");
    const struct window window = {FROM, FROM + WINDOW_MS};
    const struct option options[] = {{"url", fx.url},
                                     {"limit", "10"},
                                     {"parallel", parallel},
                                     {"timeout", mood == ENDLESS ? "1s" : "60s"},
                                     {"time_limit", "10m"}};
    const struct source source = {"s", "zipkin", options, ARRAY_LEN(options)};
    struct result r = {.err = ERR_INIT};
    AUTO(model) struct model *model = model_new();
    assert_int_equal(model_add_service(model, "a", &r.err), 0);
    assert_int_equal(model_add_service(model, "b", &r.err), 1);
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    void *ctx;
    fx.mood = mood;
    fx.requests = 0;
    assert_int_equal(zipkin->open(&source, &ctx, &r.err), 0);
    r.rc = zipkin->trace(ctx, &app, &window, &in, &r.err);
    zipkin->close(ctx);
    for (size_t i = 0; i < model->n_messages; i++) {
        r.count += model->messages[i].count;
        r.bytes += model->messages[i].bytes;
    }
    r.requests = fx.requests;
    inspection_wipe(&in);
    return r;
}

static const char *const parallel[] = {"1", "2", "4", "16"};

static void test_slices_when_answers_come_in_any_way_then_the_same_result(void **state)
{
    (void)state;
    static const enum mood moods[] = {HONEST, REVERSED, THROTTLED, PROMISING};
    struct result first = read_window(HONEST, "1");
    if (first.rc)
        fail_msg("%s", first.err.text);
    assert_int_equal(first.count, TRACES);
    assert_true(first.requests > TRACES / LIMIT);
    for (size_t m = 0; m < ARRAY_LEN(moods); m++)
        for (size_t p = 0; p < ARRAY_LEN(parallel); p++) {
            struct result r = read_window(moods[m], parallel[p]);
            if (r.rc || r.count != first.count || r.bytes != first.bytes)
                fail_msg("mood %d, parallel %s: %d, %lld messages, %lld bytes, %s", moods[m],
                         parallel[p], r.rc, (long long)r.count, (long long)r.bytes, r.err.text);
        }
}

static void test_slices_when_one_cannot_be_read_then_the_same_cause_in_time(void **state)
{
    (void)state;
    static const struct {
        enum mood mood;
        enum err_kind kind;
    } rows[] = {{CUTTING, ERR_INPUT}, {ENDLESS, ERR_UNREACHABLE}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t p = 0; p < ARRAY_LEN(parallel); p++) {
            int64_t began = clock_mono_ms();
            struct result r = read_window(rows[i].mood, parallel[p]);
            int64_t took = clock_mono_ms() - began;
            if (r.rc != -1 || r.err.kind != rows[i].kind || !r.err.text[0] || took > SLICES_MS)
                fail_msg("mood %d, parallel %s: %d in %lld ms, %s: %s", rows[i].mood, parallel[p],
                         r.rc, (long long)took, err_kind_name(r.err.kind), r.err.text);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_when_answers_come_in_any_way_then_the_same_result),
        cmocka_unit_test(test_slices_when_one_cannot_be_read_then_the_same_cause_in_time),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
