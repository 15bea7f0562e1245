/* test_coverage.c - a tracer that knows names which the cluster does not: below the configured share
 * of joined traffic nothing moves, and everybody is told; above it the same cluster is moved. Spans
 * without sizes weigh messages alone, and that is told too (contract.md 2, design.md 7). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/base/file.h"
#include "model/base/mem.h"
#include "tests/process/daemon/rig.h"

/* --- a Zipkin whose services are ours and strangers --- */

static struct tracer {
    int fd, port;
    pthread_t thread;
    atomic_bool stop;
    atomic_int strangers; /* of ten calls */
} tracer;

static void put_call(struct buf *out, int64_t at_us, int64_t id, const char *src, const char *dst)
{
    buf_printf(out,
               "%s[{\"traceId\":\"%016llx\",\"id\":\"%016llx\",\"kind\":\"CLIENT\","
               "\"timestamp\":%lld,\"duration\":2000,\"localEndpoint\":{\"serviceName\":\"%s\"},"
               "\"remoteEndpoint\":{\"serviceName\":\"%s\"}}]",
               out->size > 1 ? "," : "", (unsigned long long)id, (unsigned long long)id,
               (long long)at_us, src, dst);
}

/* Ten calls in every slice that is asked for. */
static void put_traces(struct buf *out, const char *request)
{
    const char *end = strstr(request, "endTs="), *back = strstr(request, "lookback=");
    int64_t end_ms = end ? atoll(end + 6) : 0, back_ms = back ? atoll(back + 9) : 0;
    buf_puts(out, "[");
    for (int i = 0; i < 10; i++) {
        bool strange = i < tracer.strangers;
        put_call(out, (end_ms - back_ms / 2) * 1000, end_ms * 100 + i, strange ? "erp-1" : "a",
                 strange ? "erp-2" : "b");
    }
    buf_puts(out, "]");
}

static void serve_one(int fd)
{
    char request[4096];
    size_t size = 0;
    ssize_t got;
    request[0] = '\0';
    while (!strstr(request, "\r\n\r\n") && size < sizeof request - 1 &&
           (got = recv(fd, request + size, sizeof request - 1 - size, 0)) > 0) {
        size += (size_t)got;
        request[size] = '\0';
    }
    AUTO_BUF struct buf body = BUF_INIT, answer = BUF_INIT;
    if (strstr(request, "/api/v2/traces"))
        put_traces(&body, request);
    else
        buf_puts(&body, "[\"a\",\"b\",\"erp-1\"]");
    buf_printf(&answer,
               "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
               "Connection: close\r\n\r\n%s",
               body.size, body.data);
    for (size_t sent = 0; sent < answer.size; sent += (size_t)got)
        if ((got = send(fd, answer.data + sent, answer.size - sent, MSG_NOSIGNAL)) <= 0)
            return;
}

static void *serve(void *arg)
{
    (void)arg;
    for (;;) {
        int fd = accept(tracer.fd, NULL, NULL);
        if (fd >= 0 && !tracer.stop)
            serve_one(fd);
        if (fd >= 0)
            close(fd);
        if (fd < 0 || tracer.stop)
            return NULL;
    }
}

static int setup(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    tracer.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (tracer.fd < 0 || bind(tracer.fd, (struct sockaddr *)&at, size) || listen(tracer.fd, 16) ||
        getsockname(tracer.fd, (struct sockaddr *)&at, &size))
        return -1;
    tracer.port = ntohs(at.sin_port);
    return pthread_create(&tracer.thread, NULL, serve, NULL);
}

static int teardown(void **state)
{
    (void)state;
    tracer.stop = true;
    shutdown(tracer.fd, SHUT_RDWR);
    pthread_join(tracer.thread, NULL);
    close(tracer.fd);
    return 0;
}

/* The rig's application with this tracer as its only source of traffic. */
static void configure(struct rig *rig)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *text = mem_printf(
        "store: %s\nrun_dir: %s\nlog_level: info\nhttp_listen: \"off\"\n"
        "sources:\n"
        "  - name: cluster\n    type: simulated\n"
        "    options: [{name: socket, value: %s}, {name: speed, value: \"50\"}]\n"
        "  - name: traces\n    type: zipkin\n"
        "    options: [{name: url, value: \"http://127.0.0.1:%d\"}]\n"
        "apps:\n"
        "  - {name: rig, cluster: cluster, metrics: [cluster], messages: [traces], mode: act,"
        " planner: hba, interval: 1000h, window: 10m, settle: 20s, soak: 0, cooldown: 0,"
        " min_coverage: 0.7}\n",
        rig->store, rig->run_dir, rig->socket, tracer.port);
    assert_int_equal(file_write_atomic(rig->config, text, strlen(text), 0644, &err), 0);
}

static void trigger(struct rig *rig)
{
    AUTO_BUF struct buf answer = BUF_INIT;
    if (rig_ask(rig, "{\"v\":1,\"command\":\"trigger\",\"app\":\"rig\"}", &answer) < 0)
        fail_msg("%s", answer.data);
}

static void test_cycle_when_coverage_is_below_the_share_then_nothing_moves_and_all_say_so(
    void **state)
{
    (void)state;
    struct rig rig;
    AUTO_BUF struct buf status = BUF_INIT;
    rig_open(&rig, 50, "", "");
    configure(&rig);
    tracer.strangers = 4;
    rig_start(&rig, true);
    trigger(&rig);
    rig_until_state(&rig, 1, "done");
    assert_true(rig_number(&rig, "SELECT moves_planned > 0 AND moves_applied = 0 AND reason LIKE"
                                 " 'coverage 0.60 is below 0.70: dry run, % moves not made'"
                                 " FROM v_cycles"));
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_moves WHERE state != 'planned'"), 0);
    assert_true(rig_number(&rig, "SELECT coverage BETWEEN 0.59 AND 0.61 FROM v_plans"));
    assert_true(rig_number(&rig, "SELECT count(*) FROM v_events WHERE kind = 'unmapped' AND"
                                 " cycle_id = 1 AND text LIKE '%erp-%'"));
    assert_int_equal(rig_remap(&rig, &status, (const char *const[]){"status", NULL}), 0);
    assert_non_null(strstr(status.data, "60.0%"));
    assert_non_null(strstr(status.data, "coverage 0.60 is below 0.70: dry run"));

    tracer.strangers = 2;
    trigger(&rig);
    rig_until(&rig, "SELECT count(*) FROM v_cycles WHERE cycle_id = 2 AND ended_ms > 0");
    assert_true(rig_number(&rig, "SELECT moves_applied > 0 FROM v_cycles WHERE cycle_id = 2"));
    rig_stop(&rig);
    rig_close(&rig);
}

static void test_cycle_when_no_size_is_known_then_null_messages_alone_weigh_and_it_is_said(
    void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 50, "", "");
    configure(&rig);
    tracer.strangers = 0;
    rig_start(&rig, true);
    trigger(&rig);
    rig_until(&rig, "SELECT count(*) FROM v_cycles WHERE ended_ms > 0");
    assert_int_equal(rig_number(&rig, "SELECT count(*) FROM v_edges WHERE bytes IS NOT NULL"), 0);
    assert_true(rig_number(&rig, "SELECT count(*) FROM v_edges"));
    assert_true(rig_number(&rig, "SELECT abs(sum(degree) - 1) < 1e-9 FROM v_affinity WHERE"
                                 " level = 'service'"));
    assert_true(rig_number(&rig, "SELECT count(*) FROM v_events WHERE kind = 'weight' AND"
                                 " cycle_id = 1 AND text LIKE 'no message has a known size%'"));
    rig_stop(&rig);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_cycle_when_coverage_is_below_the_share_then_nothing_moves_and_all_say_so),
        cmocka_unit_test(
            test_cycle_when_no_size_is_known_then_null_messages_alone_weigh_and_it_is_said),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
