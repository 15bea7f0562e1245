/* test_faults.c - every live source against every fault that a real server cannot be made to show:
 * each ends soon, with the right kind of error and words, and leaves no descriptor behind. (Memory:
 * the sanitizers' build of this test.) */
#include "adapters/adapter.h"
#include "model/base/clock.h"
#include "adapters/identity.h"
#include "tests/support/server.h"

#include <arpa/inet.h>
#include <dirent.h>
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

#define PATIENCE_MS 8000 /* a loaded machine; the longest here waits for one time-out of 300 ms */

/* --- a server with one fault --- */

struct fault {
    const char *name;
    const char *answer; /* sent after the request; NULL: nothing, until the client goes away */
    const char *again;  /* then sent for ever; NULL: nothing, and the connection is closed */
    enum err_kind kind, or_kind;
    const char *text;
};

#define JSON "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
#define EMPTY "Content-Length: 0\r\nConnection: close\r\n\r\n"
#define TEN "          "
#define NEST "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
#define DEEP NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST NEST
#define KILO TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static const struct fault faults[] = {
    {"slow", NULL, NULL, ERR_UNREACHABLE, ERR_NONE, "imeout"},
    {"half-closed", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", NULL, ERR_UNREACHABLE,
     ERR_NONE, ""},
    {"no HTTP", "220 mail.example ESMTP\r\n", NULL, ERR_UNREACHABLE, ERR_NONE, ""},
    {"redirecting", "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n" EMPTY, NULL,
     ERR_REFUSED, ERR_NONE, "status 302"},
    {"garbage", JSON "<html>It works!</html>", NULL, ERR_INPUT, ERR_NONE, ""},
    {"empty", "HTTP/1.1 200 OK\r\n" EMPTY, NULL, ERR_INPUT, ERR_NONE, ""},
    {"cut JSON", JSON "{\"status\":\"success\",\"data\":", NULL, ERR_INPUT, ERR_NONE, ""},
    {"other JSON", JSON "{\"hello\":[\"world\"]}", NULL, ERR_INPUT, ERR_REFUSED, ""},
    {"a number", JSON "17", NULL, ERR_INPUT, ERR_NONE, ""},
    {"deep", JSON, DEEP, ERR_INPUT, ERR_TOO_LARGE, ""},
    {"ten gigabytes", JSON, KILO, ERR_TOO_LARGE, ERR_NONE, "above"},
    {"invalid UTF-8", JSON "{\"status\":\"\xff\xfe\",\"data\":null,\"results\":\"\xc3(\"}", NULL,
     ERR_INPUT, ERR_NONE, ""},
    {"unauthorized", "HTTP/1.1 401 Unauthorized\r\n" EMPTY, NULL, ERR_REFUSED, ERR_NONE,
     "status 401"},
    {"forbidden", "HTTP/1.1 403 Forbidden\r\n" EMPTY, NULL, ERR_REFUSED, ERR_NONE, "status 403"},
    {"not there", "HTTP/1.1 404 Not Found\r\n" EMPTY, NULL, ERR_NOT_FOUND, ERR_NONE, "status 404"},
    {"busy", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7200\r\n" EMPTY, NULL, ERR_UNREACHABLE,
     ERR_NONE, "status 429"},
    {"broken", "HTTP/1.1 503 Service Unavailable\r\n" EMPTY, NULL, ERR_UNREACHABLE, ERR_NONE,
     "status 503"},
};

static struct faulty {
    int fd, port;
    pthread_t thread;
    _Atomic(const struct fault *) fault;
    atomic_bool stop;
    char url[64];
} fx;

static bool send_all(int fd, const char *text)
{
    size_t size = strlen(text);
    while (size) {
        ssize_t sent = send(fd, text, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        text += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* The head and, where it is short enough to come along, the body. */
static void read_request(int fd)
{
    char text[16384];
    size_t size = 0;
    while (size < sizeof text - 1) {
        ssize_t got = recv(fd, text + size, sizeof text - 1 - size, 0);
        if (got <= 0)
            return;
        size += (size_t)got;
        text[size] = '\0';
        const char *end = strstr(text, "\r\n\r\n");
        const char *length = strstr(text, "Content-Length: ");
        if (end && (!length || strlen(end + 4) >= (size_t)strtol(length + 16, NULL, 10)))
            return;
    }
}

static void *serve(void *arg)
{
    char rest[64];
    (void)arg;
    for (;;) {
        int fd = accept(fx.fd, NULL, NULL);
        if (fx.stop || fd < 0) {
            if (fd >= 0)
                close(fd);
            return NULL;
        }
        const struct fault *fault = fx.fault;
        read_request(fd);
        if (!fault->answer)
            while (recv(fd, rest, sizeof rest, 0) > 0) {
            }
        else if (send_all(fd, fault->answer) && fault->again)
            while (send_all(fd, fault->again)) {
            }
        close(fd);
    }
}

static int setup(void **state)
{
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    fx.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fx.fd < 0 || bind(fx.fd, (struct sockaddr *)&address, size) || listen(fx.fd, 16) ||
        getsockname(fx.fd, (struct sockaddr *)&address, &size))
        return -1;
    fx.fault = &faults[0];
    snprintf(fx.url, sizeof fx.url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    return pthread_create(&fx.thread, NULL, serve, NULL);
}

static int teardown(void **state)
{
    (void)state;
    fx.stop = true;
    shutdown(fx.fd, SHUT_RDWR);
    pthread_join(fx.thread, NULL);
    close(fx.fd);
    return 0;
}

/* --- sources --- */

static const char *const all[] = {NULL};
static const struct app_scope app = {"shop", all, all};

static int run_metrics(const struct metrics_adapter *adapter, const struct source *source,
                       bool check, struct inspection *in, struct err *err)
{
    const struct window window = {1700000000000, 1700000001000};
    struct source_report report;
    void *ctx;
    if (adapter->open(source, &ctx, err))
        return -1;
    int rc = check ? adapter->check(ctx, &app, &report, err)
                   : adapter->measure(ctx, &app, &window, in, err);
    adapter->close(ctx);
    return rc;
}

static int run_messages(const struct message_adapter *adapter, const struct source *source,
                        bool check, struct inspection *in, struct err *err)
{
    const struct window window = {1700000000000, 1700000001000};
    struct source_report report;
    void *ctx;
    if (adapter->open(source, &ctx, err))
        return -1;
    int rc = check ? adapter->check(ctx, &app, &report, err)
                   : adapter->trace(ctx, &app, &window, in, err);
    adapter->close(ctx);
    return rc;
}

static int run_cluster(const struct cluster_adapter *adapter, const struct source *source,
                       bool check, struct inspection *in, struct err *err)
{
    struct source_report report;
    void *ctx;
    if (adapter->open(source, &ctx, err))
        return -1;
    int rc = check ? adapter->check(ctx, &app, &report, err)
                   : adapter->inspect(ctx, &app, in, err);
    adapter->close(ctx);
    return rc;
}

enum kind { CLUSTER, METRICS, MESSAGES };

/* kubeconfig: the address stands in a file of that option. */
static const struct {
    const char *type;
    enum kind kind;
    bool kubeconfig;
} sources[] = {{"prometheus", METRICS, false},  {"influxdb", METRICS, false},
               {"prometheus", MESSAGES, false}, {"zipkin", MESSAGES, false},
               {"jaeger", MESSAGES, false},     {"kubernetes", CLUSTER, true},
               {"kubernetes-metrics", METRICS, true}};

/* Adapters that have no row above, and why. */
static const struct {
    const char *type, *why;
} elsewhere[] = {{"simulated", "its own contract test: a server of ours on a Unix socket"},
                 {"otlp", "asks nobody: what senders do wrong is in its own tests"}};

static int run_source(size_t at, const struct source *source, bool check, struct inspection *in,
                      struct err *err)
{
    switch (sources[at].kind) {
    case CLUSTER:
        return run_cluster(cluster_adapter_find(source->type), source, check, in, err);
    case METRICS:
        return run_metrics(metrics_adapter_find(source->type), source, check, in, err);
    case MESSAGES:
        return run_messages(message_adapter_find(source->type), source, check, in, err);
    }
    return -1;
}

static char *write_kubeconfig(const char *url)
{
    char *path = mem_printf("/tmp/remap-faults-%ld.kubeconfig", (long)getpid());
    AUTO_FREE char *text = mem_printf("apiVersion: v1\nkind: Config\ncurrent-context: x\n"
                                      "clusters:\n- name: x\n  cluster: {server: \"%s\"}\n"
                                      "contexts:\n- name: x\n  context: {cluster: x, user: x}\n"
                                      "users:\n- name: x\n  user: {token: not-a-secret}\n",
                                      url);
    server_write_file(path, text);
    return path;
}

static int run(size_t at, const char *url, bool check, struct err *err)
{
    AUTO_FREE char *file = sources[at].kubeconfig ? write_kubeconfig(url) : NULL;
    const struct option options[] = {{file ? "kubeconfig" : "url", file ? file : url},
                                     {"timeout", "300ms"},
                                     {"attempts", "1"},
                                     {"max_mib", "1"}};
    const struct source source = {"s", sources[at].type, options, ARRAY_LEN(options)};
    AUTO(model) struct model *model = model_new();
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    int rc = run_source(at, &source, check, &in, err);
    inspection_wipe(&in);
    if (file)
        unlink(file);
    return rc;
}

static int count_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

/* Kubernetes says the remedy instead of the status, where it knows one. */
static bool is_named(size_t at, const struct fault *fault, const char *text)
{
    bool remedy = strstr(text, "may not be listed") || strstr(text, "metrics-server");
    return strstr(text, fault->text) || (sources[at].kubeconfig && remedy);
}

static void verify(size_t at, const char *url, const struct fault *fault)
{
    for (int check = 0; check < 2; check++) {
        struct err err = ERR_INIT;
        int64_t began = clock_mono_ms();
        int rc = run(at, url, check, &err);
        int64_t took = clock_mono_ms() - began;
        /* A version that cannot be read is none: of Prometheus only the samples count. */
        if (rc != -1 || (err.kind != fault->kind && err.kind != fault->or_kind) ||
            !is_named(at, fault, err.text) || !err.text[0] || took > PATIENCE_MS)
            fail_msg("%s%s, %s: %d in %lld ms, %s: %s", sources[at].type, check ? " (check)" : "",
                     fault->name, rc, (long long)took, err_kind_name(err.kind), err.text);
    }
}

static void test_source_when_faulty_then_named_cause_in_time(void **state)
{
    (void)state;
    int before = count_descriptors();
    for (size_t f = 0; f < ARRAY_LEN(faults); f++) {
        fx.fault = &faults[f];
        for (size_t s = 0; s < ARRAY_LEN(sources); s++)
            verify(s, fx.url, &faults[f]);
    }
    assert_in_range(count_descriptors(), 0, before + 1); /* one may be the server's, closing */
}

static void test_source_when_nothing_listens_then_unreachable(void **state)
{
    (void)state;
    static const struct fault down = {"down", NULL, NULL, ERR_UNREACHABLE, ERR_NONE, "connect"};
    for (size_t s = 0; s < ARRAY_LEN(sources); s++)
        verify(s, "http://127.0.0.1:1", &down);
}

static void expect_row(const char *type, enum kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        if (sources[i].kind == kind && strcmp(sources[i].type, type) == 0)
            return;
    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
        if (strcmp(elsewhere[i].type, type) == 0)
            return;
    fail_msg("no row of the table asks %s", type);
}

static void test_table_when_compared_with_the_registry_then_every_adapter_is_in_it(void **state)
{
    (void)state;
    for (size_t i = 0; cluster_adapters[i]; i++)
        expect_row(cluster_adapters[i]->name, CLUSTER);
    for (size_t i = 0; metrics_adapters[i]; i++)
        expect_row(metrics_adapters[i]->name, METRICS);
    for (size_t i = 0; message_adapters[i]; i++)
        expect_row(message_adapters[i]->name, MESSAGES);
}

/* Thanos and its kin answer with what they have, and say so. */
static void test_prometheus_when_its_answer_is_partial_then_taken_and_said(void **state)
{
    (void)state;
    static const struct fault partial = {
        .name = "partial",
        .answer = JSON "{\"status\":\"success\",\"isPartial\":true,\"warnings\":[\"store-2 is down\"],"
                       "\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"source\":\"a\","
                       "\"target\":\"b\"},\"value\":[1700000001,\"30\"]}]}}"};
    const struct option options[] = {
        {"url", fx.url},
        {"preset", "own"},
        {"count_query", "sum by ($by) (increase(calls_total{$matchers}[$window]))"}};
    const struct source source = {"thanos", "prometheus", options, ARRAY_LEN(options)};
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = model_new();
    assert_int_equal(model_add_service(model, "a", &err), 0);
    assert_int_equal(model_add_service(model, "b", &err), 1);
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    fx.fault = &partial;
    if (run_messages(message_adapter_find("prometheus"), &source, false, &in, &err))
        fail_msg("%s", err.text);
    assert_int_equal(model->n_messages, 1);
    assert_true(model->messages[0].count > 0);
    assert_non_null(note_find(&in, "partial", "store-2 is down"));
    inspection_wipe(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_source_when_faulty_then_named_cause_in_time),
        cmocka_unit_test(test_source_when_nothing_listens_then_unreachable),
        cmocka_unit_test(test_table_when_compared_with_the_registry_then_every_adapter_is_in_it),
        cmocka_unit_test(test_prometheus_when_its_answer_is_partial_then_taken_and_said),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
