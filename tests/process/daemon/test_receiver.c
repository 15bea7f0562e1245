/* test_receiver.c - spans sent over OTLP/HTTP to a real `remap run`: from the request to the edges of a
 * cycle, what is refused and how, what a restart loses (contract.md 5; interfaces.md 5.4). */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/mem.h"
#include "tests/process/daemon/rig.h"
#include "tests/support/otlp_body.h"
#include "tests/support/server.h"

#define JSON "Content-Type: application/json"
#define PROTOBUF "Content-Type: application/x-protobuf"
#define GZIP "Content-Encoding: gzip"

struct fixture {
    struct rig rig;
    int port;
    int metrics; /* port of the status listener; 0: off */
    CURL *curl;
    struct buf answer;
};

/* The app reads its traffic from a source that is sent spans. `options`: lines of YAML. */
static void configure(struct fixture *f, const char *options)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *status = mem_printf("127.0.0.1:%d", f->metrics);
    AUTO_FREE char *text = mem_printf("store: %s\n"
                                      "run_dir: %s\n"
                                      "http_listen: \"%s\"\n"
                                      "sources:\n"
                                      "  - name: cluster\n"
                                      "    type: simulated\n"
                                      "    options:\n"
                                      "      - {name: socket, value: %s}\n"
                                      "  - name: spans\n"
                                      "    type: otlp\n"
                                      "    options:\n"
                                      "      - {name: listen, value: \"127.0.0.1:%d\"}\n"
                                      "%s"
                                      "apps:\n"
                                      "  - name: rig\n"
                                      "    cluster: cluster\n"
                                      "    metrics: [cluster]\n"
                                      "    messages: [spans]\n"
                                      "    planner: hba\n"
                                      "    interval: 1h\n"
                                      "    window: 10m\n"
                                      "    grace: 0\n",
                                      f->rig.store, f->rig.run_dir, f->metrics ? status : "off",
                                      f->rig.socket, f->port, options);
    assert_int_equal(file_write_atomic(f->rig.config, text, strlen(text), 0644, &err), 0);
}

static size_t take(char *data, size_t size, size_t n, void *ctx)
{
    buf_add(ctx, data, size * n);
    return size * n;
}

/* The status, 0 when there was no answer; the body is in f->answer. `headers` ended by NULL. */
static long ask(struct fixture *f, const char *method, const char *url_path,
                const char *const *headers, const struct buf *body)
{
    AUTO_FREE char *url = strstr(url_path, "://")
                              ? mem_strdup(url_path)
                              : mem_printf("http://127.0.0.1:%d%s", f->port, url_path);
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    long status = 0;
    for (size_t i = 0; headers[i]; i++)
        list = curl_slist_append(list, headers[i]);
    buf_clear(&f->answer);
    buf_puts(&f->answer, "");
    curl_easy_setopt(f->curl, CURLOPT_URL, url);
    curl_easy_setopt(f->curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(f->curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(f->curl, CURLOPT_POSTFIELDS, body ? body->data : "");
    curl_easy_setopt(f->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(body ? body->size : 0));
    curl_easy_setopt(f->curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(f->curl, CURLOPT_WRITEDATA, &f->answer);
    curl_easy_setopt(f->curl, CURLOPT_TIMEOUT_MS, (long)RIG_PATIENCE_MS);
    if (curl_easy_perform(f->curl) == CURLE_OK)
        curl_easy_getinfo(f->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(list);
    return status;
}

static const char *const no_headers[] = {NULL};

static void until_listening(struct fixture *f)
{
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;
         ask(f, "GET", "/status", no_headers, NULL) != 200; clock_sleep_ms(10))
        assert_true(clock_mono_ms() < until);
}

static void open_fixture(struct fixture *f, const char *options)
{
    *f = (struct fixture){.port = server_free_port(), .curl = curl_easy_init()};
    rig_open(&f->rig, 1, "", "");
    configure(f, options);
    rig_start(&f->rig, true);
}

static void close_fixture(struct fixture *f)
{
    rig_stop(&f->rig);
    rig_close(&f->rig);
    curl_easy_cleanup(f->curl);
    buf_wipe(&f->answer);
}

/* `n` calls from a to b, 300 bytes each, a minute ago; traces from `first` on. */
static struct sample_span *make_calls(uint64_t first, size_t n)
{
    struct sample_span *spans = mem_array(2 * n, sizeof *spans);
    int64_t at = (clock_wall_ms() - 60000) * 1000;
    for (size_t i = 0; i < n; i++) {
        spans[2 * i] =
            (struct sample_span){"a", NULL, first + i, 1, 0, CLIENT, at, 9000, {{NULL, NULL, 0}}};
        spans[2 * i + 1] = (struct sample_span){
            "b", NULL, first + i, 2, 1, SERVER, at, 5000, {{"http.request.body.size", NULL, 300}}};
    }
    return spans;
}

static long send_calls(struct fixture *f, uint64_t first, size_t n, bool json, bool gzip)
{
    AUTO_FREE struct sample_span *spans = make_calls(first, n);
    AUTO_BUF struct buf plain = BUF_INIT, zipped = BUF_INIT;
    const char *const headers[] = {json ? JSON : PROTOBUF, gzip ? GZIP : NULL, NULL};
    if (json)
        otlp_body_json(spans, 2 * n, &plain);
    else
        otlp_body_protobuf(spans, 2 * n, &plain);
    if (gzip)
        otlp_body_gzip(&plain, &zipped);
    return ask(f, "POST", "/v1/traces", headers, gzip ? &zipped : &plain);
}

static void cycle(struct fixture *f, int64_t number)
{
    struct buf answer = BUF_INIT;
    if (rig_ask(&f->rig, "{\"v\":1,\"command\":\"trigger\",\"app\":\"rig\"}", &answer) < 0)
        fail_msg("%s", answer.data);
    buf_wipe(&answer);
    rig_until_state(&f->rig, number, "done");
}

static void test_calls_when_sent_in_any_form_then_edges_of_the_cycle(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f, "");
    until_listening(&f);
    assert_int_equal(send_calls(&f, 1, 100, true, false), 200);
    assert_string_equal(f.answer.data, "{}");
    assert_int_equal(send_calls(&f, 101, 100, false, false), 200);
    assert_int_equal(f.answer.size, 0); /* an empty message */
    assert_int_equal(send_calls(&f, 201, 100, true, true), 200);
    assert_int_equal(send_calls(&f, 301, 100, false, true), 200);
    cycle(&f, 1);
    assert_int_equal(rig_number(&f.rig, "SELECT sum(count) FROM v_edges WHERE cycle_id = 1"), 400);
    assert_int_equal(rig_number(&f.rig, "SELECT sum(bytes) FROM v_edges WHERE cycle_id = 1"),
                     400 * 300);
    assert_int_equal(rig_number(&f.rig, "SELECT count(*) FROM v_edges WHERE cycle_id = 1"), 1);
    assert_int_equal(rig_number(&f.rig, "SELECT count(*) FROM v_events WHERE cycle_id = 1 AND "
                                        "text LIKE 'spans: % services are in no trace: %'"),
                     1); /* which source does not see them */
    cycle(&f, 2); /* the window is still the same */
    assert_int_equal(rig_number(&f.rig, "SELECT sum(count) FROM v_edges WHERE cycle_id = 2"), 400);
    close_fixture(&f);
}

static void test_window_when_hardly_listened_to_then_little_is_covered(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f, "");
    until_listening(&f);
    assert_int_equal(send_calls(&f, 1, 100, false, false), 200);
    cycle(&f, 1);
    assert_int_equal(rig_number(&f.rig, "SELECT coverage < 0.5 FROM v_plans WHERE cycle_id = 1"), 1);
    assert_int_equal(
        rig_number(&f.rig, "SELECT count(*) FROM v_events WHERE text LIKE '%received since%'"), 1);
    close_fixture(&f);
}

static void test_monitor_when_killed_then_it_listens_again_and_says_what_is_lost(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f, "");
    until_listening(&f);
    assert_int_equal(send_calls(&f, 1, 100, false, false), 200);
    rig_signal(rig_pid(&f.rig, "monitor"), SIGKILL);
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;; clock_sleep_ms(10)) {
        assert_true(clock_mono_ms() < until);
        if (ask(&f, "GET", "/status", no_headers, NULL) == 200 &&
            strstr(f.answer.data, "\"spans\":0,"))
            break;
    }
    assert_int_equal(send_calls(&f, 1001, 10, false, false), 200);
    cycle(&f, 1);
    assert_int_equal(rig_number(&f.rig, "SELECT sum(count) FROM v_edges WHERE cycle_id = 1"), 10);
    assert_int_equal(rig_number(&f.rig, "SELECT coverage < 0.5 FROM v_plans WHERE cycle_id = 1"), 1);
    assert_int_equal(
        rig_number(&f.rig, "SELECT count(*) FROM v_events WHERE text LIKE '%received since%'"), 1);
    close_fixture(&f);
}

static void test_configuration_when_read_again_then_what_came_stays(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f, "");
    until_listening(&f);
    assert_int_equal(send_calls(&f, 1, 100, false, false), 200);
    int old = f.port;
    f.port = server_free_port();
    configure(&f, "");
    rig_signal(f.rig.daemon, SIGHUP);
    until_listening(&f);
    assert_non_null(strstr(f.answer.data, "\"spans\":200,"));
    cycle(&f, 1);
    assert_int_equal(rig_number(&f.rig, "SELECT sum(count) FROM v_edges WHERE cycle_id = 1"), 100);
    f.port = old;
    assert_int_equal(ask(&f, "GET", "/status", no_headers, NULL), 0);
    close_fixture(&f);
}

static void test_request_when_refused_then_as_the_protocol_says(void **state)
{
    static const struct {
        const char *method, *path, *headers[3], *body;
        long status;
        const char *answer; /* a part of it */
    } rows[] = {
        {"GET", "/v1/traces", {NULL}, "", 405, "\"code\":12"},
        {"POST", "/v1/metrics", {JSON, NULL}, "{}", 404, "\"code\":5"},
        {"POST", "/v1/traces", {"Content-Type: text/plain", NULL}, "{}", 415, "\"code\":3"},
        {"POST", "/v1/traces", {"Content-Type:", NULL}, "{}", 415, "\"code\":3"},
        {"POST", "/v1/traces", {JSON, "Content-Encoding: br", NULL}, "{}", 415, "\"code\":3"},
        {"POST", "/v1/traces", {JSON, NULL}, "{\"resourceSpans\":[", 400, "\"code\":3"},
        {"POST", "/v1/traces", {JSON, NULL}, "{\"resourceSpans\":7}", 400, "must be an array"},
        {"POST", "/v1/traces", {JSON, GZIP, NULL}, "{}", 400, "no gzip data"},
        {"POST", "/v1/traces", {PROTOBUF, NULL}, "{}", 400, "\x08\x03\x12"},
        {"POST", "/v1/traces", {PROTOBUF, "Content-Encoding: br", NULL}, "", 415, "\x08\x03\x12"},
        {"POST", "/v1/traces", {"Content-Type: application/json; charset=utf-8", NULL}, "{}", 200, "{}"},
    };
    struct fixture f;
    (void)state;
    open_fixture(&f, "");
    until_listening(&f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf body = {(char *)(uintptr_t)rows[i].body, strlen(rows[i].body), 0};
        assert_int_equal(ask(&f, rows[i].method, rows[i].path, rows[i].headers, &body),
                         rows[i].status);
        assert_non_null(strstr(f.answer.data, rows[i].answer));
    }
    AUTO_BUF struct buf large = BUF_INIT;
    buf_reserve(&large, (5 << 20) + 1);
    memset(large.data, ' ', 5 << 20);
    large.size = 5 << 20;
    const char *const announced[] = {JSON, NULL};
    const char *const chunked[] = {JSON, "Transfer-Encoding: chunked", NULL};
    assert_int_equal(ask(&f, "POST", "/v1/traces", announced, &large), 413);
    assert_non_null(strstr(f.answer.data, "\"code\":8"));
    assert_int_equal(ask(&f, "POST", "/v1/traces", chunked, &large), 413);
    close_fixture(&f);
}

static void test_token_when_configured_then_only_who_shows_it_sends(void **state)
{
    struct fixture f;
    struct err err = ERR_INIT;
    const char *const none[] = {JSON, NULL};
    const char *const wrong[] = {JSON, "Authorization: Bearer secre", NULL};
    const char *const right[] = {JSON, "Authorization: Bearer secret", NULL};
    const char *const changed[] = {JSON, "Authorization: bearer another", NULL};
    struct buf body = {(char[]){"{}"}, 2, 0};
    (void)state;
    AUTO_FREE char *path = mem_printf("/tmp/remap-otlp-%ld-token", (long)getpid());
    AUTO_FREE char *options = mem_printf("      - {name: token_file, value: %s}\n", path);
    assert_int_equal(file_write_atomic(path, "secret\n", 7, 0600, &err), 0);
    open_fixture(&f, options);
    until_listening(&f); /* its own machine sees the status without */
    assert_int_equal(ask(&f, "POST", "/v1/traces", none, &body), 401);
    assert_non_null(strstr(f.answer.data, "\"code\":16"));
    assert_int_equal(ask(&f, "POST", "/v1/traces", wrong, &body), 401);
    assert_int_equal(ask(&f, "POST", "/v1/traces", right, &body), 200);
    assert_int_equal(file_write_atomic(path, "another", 7, 0600, &err), 0);
    assert_int_equal(ask(&f, "POST", "/v1/traces", right, &body), 401);
    assert_int_equal(ask(&f, "POST", "/v1/traces", changed, &body), 200);
    unlink(path);
    assert_int_equal(ask(&f, "POST", "/v1/traces", changed, &body), 401);
    AUTO_BUF struct buf log = BUF_INIT;
    assert_int_equal(file_read(f.rig.log, 1 << 22, &log, &err), 0);
    assert_null(strstr(log.data, "another"));
    close_fixture(&f);
}

static void run(char *command)
{
    if (system(command) != 0)
        fail_msg("%s", command);
    free(command);
}

static void test_certificate_when_of_the_clients_then_it_sends_without_a_token(void **state)
{
    struct fixture f;
    struct buf body = {(char[]){"{}"}, 2, 0};
    const char *const headers[] = {JSON, NULL};
    const char *const check[] = {"check", NULL};
    AUTO_BUF struct buf out = BUF_INIT;
    (void)state;
    AUTO_FREE char *dir = mem_printf("/tmp/remap-otlp-%ld", (long)getpid());
    run(mem_printf("rm -rf %s && mkdir %s && cd %s && for n in server ca other; do openssl req -x509 "
                   "-newkey rsa:2048 -nodes -days 2 -subj /CN=$n -addext "
                   "subjectAltName=DNS:otlp.example -out $n.crt -keyout $n.key 2>/dev/null; done && "
                   "openssl req -newkey rsa:2048 -nodes -subj /CN=sender -out me.csr -keyout me.key "
                   "2>/dev/null && openssl x509 -req -in me.csr -CA ca.crt -CAkey ca.key "
                   "-CAcreateserial -days 2 -out me.crt 2>/dev/null",
                   dir, dir, dir));
    AUTO_FREE char *options = mem_printf("      - {name: tls_cert_file, value: %s/server.crt}\n"
                                         "      - {name: tls_key_file, value: %s/server.key}\n"
                                         "      - {name: client_ca_file, value: %s/ca.crt}\n",
                                         dir, dir, dir);
    open_fixture(&f, options);
    AUTO_FREE char *url = mem_printf("https://127.0.0.1:%d/v1/traces", f.port);
    AUTO_FREE char *status = mem_printf("https://127.0.0.1:%d/status", f.port);
    AUTO_FREE char *server = mem_printf("%s/server.crt", dir);
    AUTO_FREE char *cert = mem_printf("%s/me.crt", dir), *key = mem_printf("%s/me.key", dir);
    AUTO_FREE char *other = mem_printf("%s/other.crt", dir), *other_key =
        mem_printf("%s/other.key", dir);
    curl_easy_setopt(f.curl, CURLOPT_CAINFO, server);
    curl_easy_setopt(f.curl, CURLOPT_SSL_VERIFYHOST, 0L);
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;
         ask(&f, "GET", status, no_headers, NULL) != 200; clock_sleep_ms(10))
        assert_true(clock_mono_ms() < until);
    assert_int_equal(ask(&f, "POST", url, headers, &body), 401);
    curl_easy_setopt(f.curl, CURLOPT_SSLCERT, other);
    curl_easy_setopt(f.curl, CURLOPT_SSLKEY, other_key);
    assert_int_equal(ask(&f, "POST", url, headers, &body), 401);
    curl_easy_setopt(f.curl, CURLOPT_SSLCERT, cert);
    curl_easy_setopt(f.curl, CURLOPT_SSLKEY, key);
    assert_int_equal(ask(&f, "POST", url, headers, &body), 200);
    assert_int_equal(rig_remap(&f.rig, &out, check), 1); /* it trusts the receiver's own certificate */
    assert_non_null(strstr(out.data, "no span has come yet"));
    close_fixture(&f);
    run(mem_printf("rm -rf %s", dir));
}

static void test_check_when_asked_then_what_is_received_or_what_is_wrong(void **state)
{
    struct fixture f;
    const char *const check[] = {"check", NULL};
    AUTO_BUF struct buf out = BUF_INIT;
    (void)state;
    open_fixture(&f, "");
    until_listening(&f);
    assert_int_equal(send_calls(&f, 1, 100, false, false), 200);
    assert_int_equal(rig_remap(&f.rig, &out, check), 0);
    assert_non_null(strstr(out.data, "200 spans; 2 services, 0 pairs; 200 spans wait for others"));
    rig_stop(&f.rig);
    buf_clear(&out);
    assert_int_equal(rig_remap(&f.rig, &out, check), 0);
    assert_non_null(strstr(out.data, "once `remap run` runs"));
    configure(&f, "      - {name: tls_cert_file, value: /nowhere}\n");
    buf_clear(&out);
    assert_int_equal(rig_remap(&f.rig, &out, check), 2);
    if (!strstr(out.data, "tls_cert_file and tls_key_file go together"))
        fail_msg("%s", out.data);
    configure(&f, "      - {name: listn, value: \"0.0.0.0:1\"}\n");
    buf_clear(&out);
    assert_int_equal(rig_remap(&f.rig, &out, check), 2);
    assert_non_null(strstr(out.data, "did you mean listen?"));
    rig_start(&f.rig, true);
    close_fixture(&f);
}

/* --- told to come again --- */

static void open_counted(struct fixture *f)
{
    *f = (struct fixture){.port = server_free_port(), .curl = curl_easy_init()};
    f->metrics = server_free_port();
    rig_open(&f->rig, 1, "", "");
    configure(f, "");
    rig_start(&f->rig, true);
    until_listening(f);
}

/* A line of /metrics: it is told within a second. */
static void until_counted(struct fixture *f, const char *line)
{
    AUTO_FREE char *url = mem_printf("http://127.0.0.1:%d/metrics", f->metrics);
    AUTO_FREE char *whole = mem_printf("\n%s\n", line);
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;
         ask(f, "GET", url, no_headers, NULL) != 200 || !strstr(f->answer.data, whole);
         clock_sleep_ms(20))
        if (clock_mono_ms() >= until)
            fail_msg("no %s in %s", line, f->answer.data);
}

static void test_counters_when_spans_come_then_series_of_the_status_listener(void **state)
{
    static const char odd[] = "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":\"12\","
                              "\"spanId\":\"1\"}]}]}]}";
    struct buf body = {(char *)(uintptr_t)odd, sizeof odd - 1, 0};
    const char *const headers[] = {JSON, NULL};
    struct fixture f;
    (void)state;
    open_counted(&f);
    assert_int_equal(send_calls(&f, 1, 100, false, false), 200);
    assert_int_equal(ask(&f, "POST", "/v1/traces", headers, &body), 200);
    until_counted(&f, "remap_receiver_spans_total{source=\"spans\"} 200");
    until_counted(&f, "remap_receiver_requests_total{source=\"spans\"} 2");
    until_counted(&f, "remap_receiver_rejected_spans_total{source=\"spans\"} 1");
    until_counted(&f, "remap_receiver_refused_total{source=\"spans\"} 0");
    until_counted(&f, "remap_receiver_waiting_spans{source=\"spans\"} 200");
    close_fixture(&f);
}

/* What the last answer told of when to come again. */
static int64_t retry_after_s(struct fixture *f)
{
    curl_off_t seconds = 0;
    curl_easy_getinfo(f->curl, CURLINFO_RETRY_AFTER, &seconds);
    return seconds;
}

/* Comes again as it was told, until it is let in. */
static void until_taken(struct fixture *f, uint64_t first)
{
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;
         send_calls(f, first, 10, false, false) != 200; clock_sleep_ms(100))
        assert_true(clock_mono_ms() < until);
}

#define TABLE_SPANS 65536 /* of one request; the fourth fills the table of 200,000 */
#define TABLE_WAIT_MS 5000

/* Calls that nobody answered: each waits, in a trace of its own. */
static long send_lonely(struct fixture *f, uint64_t first)
{
    AUTO_FREE struct sample_span *spans = mem_array(TABLE_SPANS, sizeof *spans);
    AUTO_BUF struct buf plain = BUF_INIT, zipped = BUF_INIT;
    const char *const headers[] = {PROTOBUF, GZIP, NULL};
    int64_t at = (clock_wall_ms() - 60000) * 1000;
    for (size_t i = 0; i < TABLE_SPANS; i++)
        spans[i] =
            (struct sample_span){"a", NULL, first + i, 1, 0, CLIENT, at, 9000, {{NULL, NULL, 0}}};
    otlp_body_protobuf(spans, TABLE_SPANS, &plain);
    otlp_body_gzip(&plain, &zipped);
    return ask(f, "POST", "/v1/traces", headers, &zipped);
}

/* Spans that have waited 5 s may go to make room: a machine that takes longer for four requests
 * never fills the table. */
static void test_sender_when_the_table_is_full_then_told_when_to_come_again(void **state)
{
    struct fixture f;
    (void)state;
    open_counted(&f);
    int64_t began = clock_mono_ms();
    long status = 200;
    for (uint64_t i = 0; i < 4; i++)
        status = send_lonely(&f, 1 + i * TABLE_SPANS);
    int64_t took = clock_mono_ms() - began;
    if (took < TABLE_WAIT_MS || status != 200) {
        assert_int_equal(status, 429);
        assert_int_equal(retry_after_s(&f), TABLE_WAIT_MS / 1000);
        until_counted(&f, "remap_receiver_refused_total{source=\"spans\"} 1");
        until_counted(&f, "remap_receiver_spans_total{source=\"spans\"} 196608");
    } else {
        print_message("four requests took %lld ms: too slow to fill the table\n", (long long)took);
    }
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;
         (status = send_lonely(&f, 1 + 4 * TABLE_SPANS)) == 429; clock_sleep_ms(100))
        assert_true(clock_mono_ms() < until);
    assert_int_equal(status, 200);
    close_fixture(&f);
}

static int half_open(int port)
{
    static const char text[] = "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: "
                               "application/json\r\nContent-Length: 1000000\r\n\r\n{";
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct err err = ERR_INIT;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(file_write_fd(fd, text, sizeof text - 1, &err), 0);
    return fd;
}

static void test_clients_when_slow_then_they_hold_up_nobody(void **state)
{
    struct fixture f;
    int fds[150];
    (void)state;
    open_fixture(&f, "");
    until_listening(&f);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = half_open(f.port);
    assert_int_equal(send_calls(&f, 1, 100, false, false), 200);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    cycle(&f, 1);
    assert_int_equal(rig_number(&f.rig, "SELECT sum(count) FROM v_edges WHERE cycle_id = 1"), 100);
    close_fixture(&f);
}

/* A request that lacks its last byte. */
static int nearly_whole(int port)
{
    AUTO_BUF struct buf text = BUF_INIT;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct err err = ERR_INIT;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    buf_printf(&text, "POST /v1/traces HTTP/1.1\r\nHost: x\r\n" JSON "\r\nContent-Length: %d\r\n\r\n",
               4 << 20);
    size_t head = text.size;
    buf_reserve(&text, 4 << 20);
    memset(text.data + head, ' ', 4 << 20);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(file_write_fd(fd, text.data, head + (4 << 20) - 1, &err), 0);
    return fd;
}

/* Four bodies are as many as are held at once. Their connections end when they are idle for ten
 * seconds, so a slow machine may have to begin again. */
static void test_sender_when_too_many_are_on_their_way_then_comes_again(void **state)
{
    struct fixture f;
    long status = 200;
    (void)state;
    open_counted(&f);
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS; status != 429;) {
        int fds[4];
        assert_true(clock_mono_ms() < until);
        for (size_t i = 0; i < ARRAY_LEN(fds); i++)
            fds[i] = nearly_whole(f.port);
        for (int tries = 0; status != 429 && tries < 200; tries++) {
            status = send_calls(&f, 1, 10, false, false);
            clock_sleep_ms(10);
        }
        if (status == 429)
            assert_int_equal(retry_after_s(&f), 1);
        for (size_t i = 0; i < ARRAY_LEN(fds); i++)
            close(fds[i]);
    }
    until_taken(&f, 1001);
    AUTO_FREE char *url = mem_printf("http://127.0.0.1:%d/metrics", f.metrics);
    for (int64_t until = clock_mono_ms() + RIG_PATIENCE_MS;
         ask(&f, "GET", url, no_headers, NULL) != 200 ||
         !strstr(f.answer.data, "remap_receiver_refused_total{source=\"spans\"} ") ||
         strstr(f.answer.data, "remap_receiver_refused_total{source=\"spans\"} 0\n");
         clock_sleep_ms(20))
        assert_true(clock_mono_ms() < until);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_when_sent_in_any_form_then_edges_of_the_cycle),
        cmocka_unit_test(test_window_when_hardly_listened_to_then_little_is_covered),
        cmocka_unit_test(test_monitor_when_killed_then_it_listens_again_and_says_what_is_lost),
        cmocka_unit_test(test_configuration_when_read_again_then_what_came_stays),
        cmocka_unit_test(test_request_when_refused_then_as_the_protocol_says),
        cmocka_unit_test(test_token_when_configured_then_only_who_shows_it_sends),
        cmocka_unit_test(test_certificate_when_of_the_clients_then_it_sends_without_a_token),
        cmocka_unit_test(test_check_when_asked_then_what_is_received_or_what_is_wrong),
        cmocka_unit_test(test_counters_when_spans_come_then_series_of_the_status_listener),
        cmocka_unit_test(test_sender_when_the_table_is_full_then_told_when_to_come_again),
        cmocka_unit_test(test_sender_when_too_many_are_on_their_way_then_comes_again),
        cmocka_unit_test(test_clients_when_slow_then_they_hold_up_nobody),
    };
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return rc;
}
