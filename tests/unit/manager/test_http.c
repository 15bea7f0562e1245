/* test_http.c - the status listener over real sockets: a child asks by libcurl (or raw bytes), the
 * test turns the loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <curl/curl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/mem.h"
#include "model/manager/http.h"
#include "tests/support/store_support.h"

#define TOKEN "s3cret-token-of-enough-length"

struct fixture {
    struct store_fixture *store;
    struct loop *loop;
    struct metrics *metrics;
    struct http *http;
    bool up; /* what `ready` says */
    char *token_file;
};

static bool is_ready(void *ctx, struct buf *why)
{
    struct fixture *f = ctx;
    if (!f->up) {
        buf_puts(why, "planner is not up");
    }
    return f->up;
}

static int start(struct fixture *f, const struct http_options *options, struct err *err)
{
    struct http_source source = {f->store->store, f->metrics, is_ready, f};
    return http_start(f->loop, options, &source, &f->http, err);
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);
    void *store = NULL;
    struct err err = ERR_INIT;
    if (store_fixture_open(&store)) {
        return -1;
    }
    f->store = store;
    f->loop = loop_new();
    f->metrics = metrics_new();
    f->up = true;
    f->token_file = mem_printf("%s/token", f->store->dir);
    AUTO(model) struct model *model = store_support_model();
    store_support_full_cycle(f->store->store, model, 1000);
    *state = f;
    return file_write_atomic(f->token_file, TOKEN "\n", strlen(TOKEN) + 1, 0600, &err);
}

static int setup_started(void **state)
{
    struct err err = ERR_INIT;
    return setup(state) ||
                   start(*state, &(struct http_options){.listen = "127.0.0.1:0"}, &err)
               ? -1
               : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *store = f->store;
    http_free(f->http);
    metrics_free(f->metrics);
    loop_free(f->loop);
    free(f->token_file);
    free(f);
    return store_fixture_close(&store);
}

/* --- asking --- */

struct answer {
    long status;
    char *head, *body;
};

static void answer_wipe(struct answer *answer)
{
    free(answer->head);
    free(answer->body);
}
#define AUTO_ANSWER __attribute__((cleanup(answer_wipe)))

struct question {
    const char *path, *method, *header, *body;
    int port; /* 0: that of the status listener */
};

static size_t keep(char *data, size_t size, size_t n, void *ctx)
{
    buf_add(ctx, data, size * n);
    return size * n;
}

/* In the child: asks and writes "STATUS\nhead\0body\0" to the pipe. */
static void ask_child(const struct question *q, int port, int fd)
{
    struct buf head = BUF_INIT, body = BUF_INIT, all = BUF_INIT;
    struct err err = ERR_INIT;
    long status = 0;
    AUTO_FREE char *url = mem_printf("http://127.0.0.1:%d%s", port, q->path);
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = q->header ? curl_slist_append(NULL, q->header) : NULL;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 20000L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &head);
    if (q->body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, q->body);
    }
    if (q->method && strcmp(q->method, "HEAD") == 0) {
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    } else if (q->method) {
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, q->method);
    }
    if (curl_easy_perform(curl) == CURLE_OK) {
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    }
    buf_printf(&all, "%ld\n", status);
    buf_add(&all, head.data ? head.data : "", head.size + 1);
    buf_add(&all, body.data ? body.data : "", body.size + 1);
    file_write_fd(fd, all.data, all.size, &err);
    _exit(0);
}

struct reading {
    struct buf all;
    bool ended;
};

static void on_pipe(void *ctx, int fd, short events)
{
    char piece[65536];
    struct reading *reading = ctx;
    (void)events;
    ssize_t n = read(fd, piece, sizeof piece);
    if (n > 0) {
        buf_add(&reading->all, piece, (size_t)n);
    } else {
        reading->ended = true;
    }
}

/* Turns the loop until the child is through. */
static void turn_until_end(struct fixture *f, int fd, pid_t pid, struct reading *reading)
{
    struct err err = ERR_INIT;
    int status;
    loop_watch(f->loop, fd, POLLIN, on_pipe, reading);
    while (!reading->ended) {
        assert_int_equal(loop_turn(f->loop, 30000, &err), 0);
    }
    loop_unwatch(f->loop, fd);
    close(fd);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static struct answer ask(struct fixture *f, struct question q)
{
    struct reading reading = {BUF_INIT, false};
    int fds[2];
    int port = q.port ? q.port : http_port(f->http);
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        ask_child(&q, port, fds[1]);
    }
    close(fds[1]);
    turn_until_end(f, fds[0], pid, &reading);
    struct answer answer = {0};
    assert_true(reading.all.size > 3);
    answer.status = atol(reading.all.data);
    const char *head = strchr(reading.all.data, '\n') + 1;
    answer.head = mem_strdup(head);
    answer.body = mem_strdup(head + strlen(head) + 1);
    buf_wipe(&reading.all);
    return answer;
}

static struct answer get(struct fixture *f, const char *path)
{
    return ask(f, (struct question){.path = path});
}

/* --- tests --- */

static void test_healthz_when_asked_then_ok(void **state)
{
    AUTO_ANSWER struct answer answer = get(*state, "/healthz");
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "ok\n");
    assert_non_null(strcasestr(answer.head, "Connection: close"));
    assert_non_null(strcasestr(answer.head, "Cache-Control: no-store"));
}

static void test_readyz_when_a_stage_is_down_then_503_with_reason(void **state)
{
    struct fixture *f = *state;
    AUTO_ANSWER struct answer ready = get(f, "/readyz");
    assert_int_equal(ready.status, 200);
    f->up = false;
    AUTO_ANSWER struct answer down = get(f, "/readyz");
    assert_int_equal(down.status, 503);
    assert_string_equal(down.body, "planner is not up\n");
}

static void test_readyz_when_store_is_gone_then_503(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(unlink(f->store->path), 0);
    AUTO_ANSWER struct answer answer = get(f, "/readyz");
    assert_int_equal(answer.status, 503);
    assert_non_null(strstr(answer.body, "store.db"));
}

static void test_index_when_asked_then_names_every_resource(void **state)
{
    AUTO_ANSWER struct answer answer = get(*state, "/");
    assert_int_equal(answer.status, 200);
    assert_non_null(strcasestr(answer.head, "text/html"));
    assert_non_null(strstr(answer.body, "/api/v1/savings"));
    assert_non_null(strstr(answer.body, "/metrics"));
}

static void test_api_when_each_resource_then_json_array_with_rows(void **state)
{
    static const struct {
        const char *path;
        size_t rows;
    } vectors[] = {
        {"/api/v1", 10},
        {"/api/v1/", 10},
        {"/api/v1/placement", 5},
        {"/api/v1/cycles", 1},
        {"/api/v1/edges", 3},
        {"/api/v1/affinity", 3},
        {"/api/v1/plans", 1},
        {"/api/v1/moves", 2},
        {"/api/v1/savings", 1},
        {"/api/v1/events", 1},
        {"/api/v1/apps", 1},
        {"/api/v1/drift", 1},
        {"/api/v1/drift?app=blog", 0},
        {"/api/v1/edges?app=shop", 3},
        {"/api/v1/edges?app=blog", 0},
        {"/api/v1/edges?cycle=1&limit=2", 2},
        {"/api/v1/edges?cycle=2", 0},
        {"/api/v1/affinity?app=shop&limit=1", 1},
        {"/api/v1/moves?app=shop", 2},
        {"/api/v1/moves?cycle=1", 2},
        {"/api/v1/plans?app=blog", 0},
        {"/api/v1/events?app=shop&cycle=1", 1},
        {"/api/v1/cycles?app=shop", 1},
        {"/api/v1/savings?cycle=1&app=shop&limit=10000", 1},
        {"/api/v1/placement?app=sh%27%20OR%20%271%27=%271", 0},
        {"/api/v1/apps?app=shop", 1},
    };
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    char shop[] = "shop", act[] = "act";
    assert_int_equal(
        store_app_set(f->store->store, &(struct app_row){shop, act, false, 5, -1}, &err), 0);
    struct drift_row drift = {.app = shop, .state = "calm", .at_ms = 7, .reference_cycle = 1,
                              .distance = 0.1, .noise = 0.01, .response_ratio = -1,
                              .every_ms = 1000, .affinity = 0.2, .response = 0.5};
    assert_int_equal(store_drift_set(f->store->store, &drift, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        AUTO_ANSWER struct answer answer = get(f, vectors[i].path);
        json_t *tree = json_loads(answer.body, 0, NULL);
        if (answer.status != 200 || !json_is_array(tree) ||
            json_array_size(tree) != vectors[i].rows) {
            fail_msg("%s: %ld %s", vectors[i].path, answer.status, answer.body);
        }
        json_decref(tree);
    }
}

static void test_api_when_cycle_then_what_the_view_shows(void **state)
{
    AUTO_ANSWER struct answer answer = get(*state, "/api/v1/cycles");
    assert_string_equal(answer.body,
                        "[{\"cycle_id\":1,\"app\":\"shop\",\"trigger\":\"timer\",\"state\":\"done\","
                        "\"reason\":null,\"started_ms\":1000,\"ended_ms\":1010,"
                        "\"moves_planned\":2,\"moves_applied\":0,\"dry_run\":0,"
                        "\"base_cycle\":null}]\n");
}

static void test_requests_when_bad_then_4xx(void **state)
{
    static const struct {
        struct question question;
        long status;
    } vectors[] = {
        {{.path = "/nothing"}, 404},
        {{.path = "/api/v2/cycles"}, 404},
        {{.path = "/api/v1cycles"}, 404},
        {{.path = "/api/v1/secrets"}, 404},
        {{.path = "/api/v1/../../etc/passwd"}, 404},
        {{.path = "/api/v1/edges?cycle=x"}, 400},
        {{.path = "/api/v1/edges?cycle=0"}, 400},
        {{.path = "/api/v1/edges?cycle=-1"}, 400},
        {{.path = "/api/v1/edges?cycle=99999999999999999999"}, 400},
        {{.path = "/api/v1/edges?cycle="}, 400},
        {{.path = "/api/v1/edges?cycle"}, 400},
        {{.path = "/api/v1/edges?limit=10001"}, 400},
        {{.path = "/api/v1/edges?limit=0"}, 400},
        {{.path = "/api/v1/edges?order=src"}, 400},
        {{.path = "/api/v1/edges?app=a&app=b"}, 400},
        {{.path = "/api/v1/apps?cycle=1"}, 400},
        {{.path = "/api/v1/cycles", .method = "DELETE"}, 405},
        {{.path = "/metrics", .method = "POST", .body = "a=b"}, 405},
        {{.path = "/healthz", .method = "PUT", .body = "x"}, 405},
        {{.path = "/healthz", .header = "Host: evil.example.org"}, 403},
        {{.path = "/healthz", .header = "Host: 127.evil.example.org"}, 403},
        {{.path = "/healthz", .header = "Host: localhost:9470"}, 200},
        {{.path = "/healthz", .header = "Host: [::1]:9470"}, 200},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        AUTO_ANSWER struct answer answer = ask(f, vectors[i].question);
        if (answer.status != vectors[i].status) {
            fail_msg("%s: %ld %s", vectors[i].question.path, answer.status, answer.body);
        }
        if (answer.status == 405) {
            assert_non_null(strcasestr(answer.head, "Allow: GET, HEAD"));
        }
    }
}

static void test_head_when_asked_then_headers_alone(void **state)
{
    AUTO_ANSWER struct answer answer =
        ask(*state, (struct question){.path = "/api/v1/cycles", .method = "HEAD"});
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "");
    assert_null(strcasestr(answer.head, "Content-Length: 0"));
}

static void test_request_when_too_long_then_4xx_and_alive(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *path = mem_alloc(40001);
    memset(path, 'a', 40000);
    path[0] = '/';
    AUTO_ANSWER struct answer answer = get(f, path);
    assert_true(answer.status == 414 || answer.status == 431 || answer.status == 413);
    AUTO_FREE char *header = mem_printf("X-Long: %s", path);
    AUTO_ANSWER struct answer headers =
        ask(f, (struct question){.path = "/healthz", .header = header});
    assert_true(headers.status == 431 || headers.status == 413);
    AUTO_ANSWER struct answer after = get(f, "/healthz");
    assert_int_equal(after.status, 200);
}

static int connect_raw(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Half requests, garbage and silence on other connections do not keep the next one waiting. */
static void test_slow_clients_when_connected_then_others_are_answered(void **state)
{
    static const char *const starts[] = {"", "G", "GET /metrics HT", "GET / HTTP/1.1\r\nHost: loc",
                                         "\x16\x03\x01\x02", "POST /metrics HTTP/1.1\r\n"
                                         "Host: localhost\r\nContent-Length: 1000000\r\n\r\nx"};
    struct fixture *f = *state;
    int fds[ARRAY_LEN(starts)];
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        fds[i] = connect_raw(http_port(f->http));
        assert_int_equal(write(fds[i], starts[i], strlen(starts[i])), strlen(starts[i]));
    }
    int64_t from_ms = clock_mono_ms();
    for (int i = 0; i < 3; i++) {
        AUTO_ANSWER struct answer answer = get(f, "/metrics");
        assert_int_equal(answer.status, 200);
    }
    assert_true(clock_mono_ms() - from_ms < 5000); /* far below the limits of idle connections */
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        close(fds[i]);
    }
}

/* More connections than there are places: those that come after the places were free again are
 * answered (libmicrohttpd stops listening while it is full). */
static void test_places_when_all_were_taken_then_freed_then_answered_again(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    int fds[60];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = connect_raw(http_port(f->http));
        assert_int_equal(loop_turn(f->loop, 0, &err), 0);
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(loop_turn(f->loop, 0, &err), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        close(fds[i]);
    }
    AUTO_ANSWER struct answer answer = get(f, "/healthz");
    assert_int_equal(answer.status, 200);
}

/* --- tokens --- */

static void test_token_when_configured_then_asked_for(void **state)
{
    static const struct {
        const char *path, *header;
        long status;
    } vectors[] = {
        {"/metrics", NULL, 401},
        {"/metrics", "Authorization: Bearer wrong", 401},
        {"/metrics", "Authorization: Bearer " TOKEN "x", 401},
        {"/metrics", "Authorization: Bearer", 401},
        {"/metrics", "Authorization: Basic " TOKEN, 401},
        {"/api/v1/cycles", NULL, 401},
        {"/nothing", NULL, 401},
        {"/healthz", NULL, 401},
        {"/metrics", "Authorization: Bearer " TOKEN, 200},
        {"/metrics", "Authorization: bearer  " TOKEN, 200},
        {"/api/v1/cycles", "Authorization: Bearer " TOKEN, 200},
    };
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct http_options options = {"0.0.0.0:0", "127.0.0.1:0", f->token_file};
    assert_int_equal(start(f, &options, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        AUTO_ANSWER struct answer answer =
            ask(f, (struct question){.path = vectors[i].path, .header = vectors[i].header});
        if (answer.status != vectors[i].status) {
            fail_msg("%zu: %ld %s", i, answer.status, answer.body);
        }
        if (answer.status == 401) {
            assert_non_null(strcasestr(answer.head, "WWW-Authenticate: Bearer"));
        }
    }
    static const struct {
        const char *path;
        long status;
    } probes[] = {{"/healthz", 200}, {"/readyz", 200}, {"/metrics", 404}, {"/", 404}};
    for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
        AUTO_ANSWER struct answer answer =
            ask(f, (struct question){.path = probes[i].path, .port = http_probe_port(f->http)});
        assert_int_equal(answer.status, probes[i].status);
    }
}

static void test_token_when_file_changes_then_the_new_one_counts(void **state)
{
    static const char fresh[] = "another-token-of-enough-length";
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct http_options options = {"127.0.0.1:0", NULL, f->token_file};
    assert_int_equal(start(f, &options, &err), 0);
    assert_int_equal(file_write_atomic(f->token_file, fresh, strlen(fresh), 0600, &err), 0);
    AUTO_ANSWER struct answer old = ask(
        f, (struct question){.path = "/metrics", .header = "Authorization: Bearer " TOKEN});
    assert_int_equal(old.status, 401);
    AUTO_FREE char *header = mem_printf("Authorization: Bearer %s", fresh);
    AUTO_ANSWER struct answer new = ask(f, (struct question){.path = "/metrics", .header = header});
    assert_int_equal(new.status, 200);
    assert_int_equal(unlink(f->token_file), 0); /* while it is replaced the last one holds */
    AUTO_ANSWER struct answer gone = ask(f, (struct question){.path = "/metrics", .header = header});
    assert_int_equal(gone.status, 200);
}

static void test_start_when_address_is_wrong_then_config_error(void **state)
{
    static const char *const bad[] = {"", ":9470", "9470", "127.0.0.1", "127.0.0.1:", "::1:9470",
                                      "127.0.0.1:99999", "127.0.0.1:http", "example.org:80",
                                      "[::1]", "0.0.0.0:0", "[::]:0"};
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;
        struct http_options options = {.listen = bad[i]};
        if (start(f, &options, &err) != -1 || err.kind != ERR_CONFIG ||
            !strstr(err.text, bad[i])) {
            fail_msg("%s: %s", bad[i], err.text);
        }
    }
}

static void test_start_when_token_is_unfit_then_config_error(void **state)
{
    static const char *const bad[] = {"", "  \n", "short", "two tokens-that-are-long-enough\n"};
    struct fixture *f = *state;
    struct http_options options = {"127.0.0.1:0", NULL, f->token_file};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(file_write_atomic(f->token_file, bad[i], strlen(bad[i]), 0600, &err), 0);
        assert_int_equal(start(f, &options, &err), -1);
        assert_int_equal(err.kind, ERR_CONFIG);
        assert_null(strstr(err.text, "two tokens"));
    }
}

static void test_start_when_port_is_taken_then_io_error(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct http *second = NULL;
    struct http_source source = {f->store->store, f->metrics, is_ready, f};
    AUTO_FREE char *listen = mem_printf("127.0.0.1:%d", http_port(f->http));
    struct http_options options = {.listen = listen};
    assert_int_equal(http_start(f->loop, &options, &source, &second, &err), -1);
    assert_int_equal(err.kind, ERR_IO);
    assert_non_null(strstr(err.text, listen));
}

static void test_start_when_off_then_nothing_listens(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct http_options options = {.listen = "off"};
    assert_int_equal(start(f, &options, &err), 0);
    assert_int_equal(http_port(f->http), 0);
}

#define STARTED(name) cmocka_unit_test_setup_teardown(name, setup_started, teardown)
#define STOPPED(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        STARTED(test_healthz_when_asked_then_ok),
        STARTED(test_readyz_when_a_stage_is_down_then_503_with_reason),
        STARTED(test_readyz_when_store_is_gone_then_503),
        STARTED(test_index_when_asked_then_names_every_resource),
        STARTED(test_api_when_each_resource_then_json_array_with_rows),
        STARTED(test_api_when_cycle_then_what_the_view_shows),
        STARTED(test_requests_when_bad_then_4xx),
        STARTED(test_head_when_asked_then_headers_alone),
        STARTED(test_request_when_too_long_then_4xx_and_alive),
        STARTED(test_slow_clients_when_connected_then_others_are_answered),
        STARTED(test_places_when_all_were_taken_then_freed_then_answered_again),
        STOPPED(test_token_when_configured_then_asked_for),
        STOPPED(test_token_when_file_changes_then_the_new_one_counts),
        STOPPED(test_start_when_address_is_wrong_then_config_error),
        STOPPED(test_start_when_token_is_unfit_then_config_error),
        STARTED(test_start_when_port_is_taken_then_io_error),
        STOPPED(test_start_when_off_then_nothing_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
