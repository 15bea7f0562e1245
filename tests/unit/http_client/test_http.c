/* test_http.c - the shared HTTP client against a real server in this process (libmicrohttpd in a
 * thread of its own): limits, retries, errors, credentials. */
#include "adapters/http/gather.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct server {
    struct MHD_Daemon *daemon;
    atomic_int requests; /* since the last reset */
    atomic_int connections;
    atomic_int failures; /* so many times /flaky still fails */
    struct MHD_Connection
        *held[8]; /* suspended for good; touched by the server thread, then stop() */
    atomic_int n_held;
    char base[64];
};

static enum MHD_Result send_text(struct MHD_Connection *c, unsigned status, const char *text,
                                 size_t size, const char *header, const char *value)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(size, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    if (header)
        MHD_add_response_header(r, header, value);
    enum MHD_Result result = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result send_header_back(struct MHD_Connection *c, const char *name)
{
    const char *value = MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
    value = value ? value : "(none)";
    return send_text(c, 200, value, strlen(value), NULL, NULL);
}

/* `per_request` counts the body bytes. */
static enum MHD_Result serve(void *ctx, struct MHD_Connection *c, const char *url,
                             const char *method, const char *version, const char *data,
                             size_t *size, void **per_request)
{
    struct server *s = ctx;
    (void)version, (void)data;
    if (!*per_request) {
        *per_request = calloc(1, sizeof(size_t));
        return MHD_YES;
    }
    size_t *body = *per_request;
    if (*size) {
        *body += *size;
        *size = 0;
        return MHD_YES;
    }
    s->requests++;
    if (!strcmp(url, "/ok"))
        return send_text(c, 200, "hello", 5, NULL, NULL);
    if (!strcmp(url, "/echo")) {
        char text[64];
        snprintf(text, sizeof text, "%s %zu", method, *body);
        return send_text(c, 200, text, strlen(text), NULL, NULL);
    }
    if (!strcmp(url, "/authorization"))
        return send_header_back(c, "Authorization");
    if (!strcmp(url, "/x-test"))
        return send_header_back(c, "X-Test");
    if (!strcmp(url, "/flaky") && s->failures-- > 0)
        return send_text(c, 503, "later\nmore", 10, "Retry-After", "0");
    if (!strcmp(url, "/busy"))
        return send_text(c, 429, "", 0, "Retry-After", "7200");
    if (!strcmp(url, "/redirect"))
        return send_text(c, 302, "", 0, "Location", "/ok");
    if (!strcmp(url, "/gone"))
        return send_text(c, 410, "", 0, NULL, NULL);
    if (!strcmp(url, "/conflict"))
        return send_text(c, 409, "somebody \x01was first", 19, NULL, NULL);
    if (!strcmp(url, "/bad"))
        return send_text(c, 422, "no", 2, NULL, NULL);
    if (!strcmp(url, "/never")) {
        for (int i = 0; i < s->n_held; i++)
            if (s->held[i] == c)
                return MHD_NO;    /* resumed by stop() */
        s->held[s->n_held++] = c; /* two requests of one test, room for eight */
        MHD_suspend_connection(c);
        return MHD_YES;
    }
    if (!strcmp(url, "/drop"))
        return MHD_NO;
    if (!strcmp(url, "/big")) {
        char *big = calloc(1, 100000);
        memset(big, 'x', 100000);
        enum MHD_Result result = send_text(c, 200, big, 100000, NULL, NULL);
        free(big);
        return result;
    }
    return send_text(c, 404, "no such thing", 13, NULL, NULL);
}

static void done(void *ctx, struct MHD_Connection *c, void **per_request,
                 enum MHD_RequestTerminationCode code)
{
    (void)ctx, (void)c, (void)code;
    free(*per_request);
}

static void connected(void *ctx, struct MHD_Connection *c, void **per_connection,
                      enum MHD_ConnectionNotificationCode code)
{
    struct server *s = ctx;
    (void)c, (void)per_connection;
    s->connections += code == MHD_CONNECTION_NOTIFY_STARTED;
}

static int start(void **state)
{
    struct server *s = calloc(1, sizeof *s);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    s->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0,
                                 NULL, NULL, serve, s, MHD_OPTION_SOCK_ADDR, &address,
                                 MHD_OPTION_NOTIFY_COMPLETED, done, NULL,
                                 MHD_OPTION_NOTIFY_CONNECTION, connected, s, MHD_OPTION_END);
    if (!s->daemon)
        return -1;
    snprintf(s->base, sizeof s->base, "http://127.0.0.1:%u",
             MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    *state = s;
    return 0;
}

static int stop(void **state)
{
    struct server *s = *state;
    for (int i = 0; i < s->n_held; i++)
        MHD_resume_connection(s->held[i]);
    MHD_stop_daemon(s->daemon);
    free(s);
    return 0;
}

static struct http *client(struct server *s, struct http_options options)
{
    struct err err = ERR_INIT;
    if (!options.base_url)
        options.base_url = s->base;
    if (!options.backoff_ms)
        options.backoff_ms = 1;
    struct http *http = http_new(&options, &err);
    if (!http)
        fail_msg("%s", err.text);
    s->requests = 0;
    return http;
}

static void test_get_when_answered_then_body_and_status(void **state)
{
    AUTO(http) struct http *http = client(*state, (struct http_options){0});
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(http_get(http, "/ok?secret=1", &answer, &err), 0);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.attempts, 1);
    assert_string_equal(answer.body.data, "hello");
}

static void test_status_when_error_then_kind_and_words(void **state)
{
    static const struct {
        const char *path;
        enum err_kind kind;
        long status;
        const char *says;
    } rows[] = {
        {"/nothing?token=abc", ERR_NOT_FOUND, 404, "/nothing: status 404: no such thing"},
        {"/gone", ERR_NOT_FOUND, 410, "/gone: status 410"},
        {"/conflict", ERR_CONFLICT, 409, "status 409: somebody  was first"},
        {"/bad", ERR_REFUSED, 422, "status 422: no"},
        {"/redirect", ERR_REFUSED, 302, "status 302"},
    };
    struct server *s = *state;
    AUTO(http) struct http *http = client(s, (struct http_options){0});
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
        struct err err = ERR_INIT;
        s->requests = 0;
        assert_int_equal(http_get(http, rows[i].path, &answer, &err), -1);
        assert_int_equal(err.kind, rows[i].kind);
        assert_int_equal(answer.status, rows[i].status);
        if (!strstr(err.text, rows[i].says) || strstr(err.text, "abc"))
            fail_msg("%s", err.text);
        assert_int_equal(s->requests, 1); /* neither repeated nor followed */
    }
}

static void test_get_when_server_recovers_then_repeated(void **state)
{
    struct server *s = *state;
    AUTO(http) struct http *http = client(s, (struct http_options){0});
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    struct err err = ERR_INIT;
    s->failures = 3;
    http_get(http, "/flaky", &answer, &err); /* the fourth is a 404 of the test server */
    assert_int_equal(answer.attempts, 4);
    assert_int_equal(answer.status, 404);
    s->failures = 9;
    assert_int_equal(http_get(http, "/flaky", &answer, &err), -1);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_int_equal(answer.attempts, 4);
    assert_non_null(strstr(err.text, "status 503: later"));
    assert_null(strstr(err.text, "more"));
    assert_int_equal(answer.retry_after_ms, 0);
}

static void test_get_when_retry_after_is_long_then_the_cap_holds(void **state)
{
    AUTO(http)
    struct http *http = client(*state, (struct http_options){.attempts = 2, .backoff_max_ms = 5});
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(http_get(http, "/busy", &answer, &err), -1); /* two hours would be seen */
    assert_int_equal(answer.attempts, 2);
    assert_int_equal(answer.retry_after_ms, 7200000);
}

static void test_send_when_it_fails_then_never_repeated(void **state)
{
    struct server *s = *state;
    AUTO(http) struct http *http = client(s, (struct http_options){0});
    static const char *const paths[] = {"/flaky", "/drop", "/busy"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
        struct err err = ERR_INIT;
        s->failures = 5;
        s->requests = 0;
        assert_int_equal(http_send(http, "POST", paths[i], "text/plain", "x", 1, &answer, &err),
                         -1);
        assert_int_equal(err.kind, ERR_UNREACHABLE);
        assert_int_equal(s->requests, 1);
    }
}

static void test_send_when_methods_and_bodies_then_arrive(void **state)
{
    AUTO(http) struct http *http = client(*state, (struct http_options){0});
    static const struct {
        const char *method, *body, *echo;
    } rows[] = {{"POST", "12345", "POST 5"},
                {"PATCH", "1", "PATCH 1"},
                {"POST", NULL, "POST 0"},
                {"DELETE", NULL, "DELETE 0"},
                {"PUT", "", "PUT 0"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
        struct err err = ERR_INIT;
        if (http_send(http, rows[i].method, "/echo", "application/json", rows[i].body,
                      rows[i].body ? strlen(rows[i].body) : 0, &answer, &err))
            fail_msg("%s", err.text);
        assert_string_equal(answer.body.data, rows[i].echo);
    }
}

static void test_get_when_answer_is_too_large_then_refused_at_the_limit(void **state)
{
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    struct err err = ERR_INIT;
    AUTO(http) struct http *tight = client(*state, (struct http_options){.max_bytes = 99999});
    assert_int_equal(http_get(tight, "/big", &answer, &err), -1);
    assert_int_equal(err.kind, ERR_TOO_LARGE);
    AUTO(http) struct http *wide = client(*state, (struct http_options){.max_bytes = 100000});
    assert_int_equal(http_get(wide, "/big", &answer, &err), 0);
    assert_int_equal(answer.body.size, 100000);
}

static void test_get_when_no_answer_then_times_out(void **state)
{
    struct server *s = *state;
    AUTO(http)
    struct http *http = client(s, (struct http_options){.total_timeout_ms = 50, .attempts = 2});
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(http_get(http, "/never", &answer, &err), -1);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_int_equal(answer.attempts, 2);
    assert_int_equal(answer.status, 0);
}

static void test_get_when_nobody_listens_then_unreachable_without_secrets(void **state)
{
    AUTO(http)
    struct http *http = client(
        *state, (struct http_options){.base_url = "http://me:word@127.0.0.1:1/p/", .attempts = 1});
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(http_get(http, "/x?key=hidden", &answer, &err), -1);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_non_null(strstr(err.text, "GET http://127.0.0.1:1/p/x: "));
    assert_null(strstr(err.text, "word"));
    assert_null(strstr(err.text, "hidden"));
}

static void get_text(struct http *http, const char *path, const char *expected)
{
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    struct err err = ERR_INIT;
    if (http_get(http, path, &answer, &err))
        fail_msg("%s", err.text);
    assert_string_equal(answer.body.data, expected);
}

static void put_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_token_when_file_changes_then_the_new_one_is_sent(void **state)
{
    char path[] = "http-token-XXXXXX";
    close(mkstemp(path));
    put_file(path, "first\n");
    AUTO(http) struct http *http = client(*state, (struct http_options){.token_file = path});
    get_text(http, "/authorization", "Bearer first");
    put_file(path, "second");
    get_text(http, "/authorization", "Bearer second");
    put_file(path, "\n");
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(http_get(http, "/ok", &answer, &err), -1);
    assert_int_equal(err.kind, ERR_CONFIG);
    unlink(path);
}

static void test_headers_when_given_then_sent(void **state)
{
    static const char *const headers[] = {"X-Test: a b", NULL};
    AUTO(http) struct http *http = client(*state, (struct http_options){.headers = headers});
    get_text(http, "/x-test", "a b");
    AUTO(http)
    struct http *basic = client(*state, (struct http_options){.user = "u", .password = "p"});
    get_text(basic, "/authorization", "Basic dTpw");
}

static int collect(void *ctx, const char *data, size_t size, struct err *err)
{
    struct buf *buf = ctx;
    buf_add(buf, data, size);
    return buf->size > 150000 ? err_set(err, ERR_INPUT, "enough") : 0;
}

static void test_stream_when_sink_takes_it_then_nothing_is_held(void **state)
{
    AUTO(http) struct http *http = client(*state, (struct http_options){0});
    AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
    AUTO_BUF struct buf seen = BUF_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(http_stream(http, "/big", collect, &seen, &answer, &err), 0);
    assert_int_equal(seen.size, 100000);
    assert_int_equal(answer.body.size, 0);
    assert_int_equal(http_stream(http, "/big", collect, &seen, &answer, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    assert_int_equal(answer.attempts, 1);
    assert_int_equal(http_stream(http, "/bad", collect, &seen, &answer, &err), -1);
    assert_string_equal(answer.body.data, "no"); /* errors do not go to the sink */
}

static void test_options_when_senseless_then_config_error(void **state)
{
    (void)state;
    static const char *const bad_header[] = {"no colon", NULL};
    static const char *const split[] = {"A: b\r\nC: d", NULL};
    const struct http_options rows[] = {{.base_url = "ftp://x"},       {.base_url = "localhost:1"},
                                        {.base_url = "http://x/?q=1"}, {.base_url = "http://x y"},
                                        {.headers = bad_header},       {.headers = split}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        assert_null(http_new(&rows[i], &err));
        assert_int_equal(err.kind, ERR_CONFIG);
    }
}

static void test_retry_after_when_seconds_or_date_then_ms(void **state)
{
    (void)state;
    const int64_t now = INT64_C(1445412480000); /* Wed, 21 Oct 2015 07:28:00 GMT */
    static const struct {
        const char *value;
        int64_t ms;
    } rows[] = {{"0", 0},
                {" 120 ", 120000},
                {"Wed, 21 Oct 2015 07:28:30 GMT", 30000},
                {"Wed, 21 Oct 2015 07:27:00 GMT", 0},
                {"soon", -1},
                {"", -1},
                {"99999999999999999999", 1000000000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(http_retry_after_ms(rows[i].value, now), rows[i].ms);
}

static void test_pause_when_attempts_grow_then_doubles_to_the_cap(void **state)
{
    (void)state;
    static const struct {
        int attempt;
        int64_t least, most;
    } rows[] = {{2, 50, 100}, {3, 100, 200}, {4, 200, 400}, {9, 500, 1000}, {60, 500, 1000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (uint64_t random = 0; random < 2000; random += 7)
            assert_in_range(http_pause_ms(rows[i].attempt, 100, 1000, random), rows[i].least,
                            rows[i].most);
}

static void test_escape_when_special_then_percent(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT;
    http_escape(&out, "a-Z_0.~ /?&=%\xc3\xa4");
    assert_string_equal(out.data, "a-Z_0.~%20%2F%3F%26%3D%25%C3%A4");
}

/* The server has the whole request and hangs up: libcurl's own repetition would be seen. */
static void test_send_when_a_kept_connection_breaks_then_never_repeated(void **state)
{
    struct server *s = *state;
    AUTO(http) struct http *http = client(s, (struct http_options){.keep_writes = true});
    static const char *const paths[] = {"/echo", "/echo", "/drop", "/echo"};
    s->connections = 0;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        AUTO_HTTP_ANSWER struct http_answer answer = HTTP_ANSWER_INIT;
        struct err err = ERR_INIT;
        int rc = http_send(http, "PATCH", paths[i], "text/plain", "four", 4, &answer, &err);
        bool dropped = strcmp(paths[i], "/drop") == 0;
        assert_int_equal(rc, dropped ? -1 : 0);
        assert_int_equal(err.kind, dropped ? ERR_UNREACHABLE : ERR_NONE);
        if (!dropped)
            assert_memory_equal(answer.body.data, "PATCH 4", 7);
        assert_int_equal(s->requests, i + 1);
        assert_true(s->connections == 1 || i > 1);
    }
}

/* --- several at once --- */

static struct gathered *ask(struct gather *gather, const char *path)
{
    return gather_get(gather, path, SIZE_MAX);
}

static long status_of(struct gathered *gathered, int rc)
{
    const struct http_answer *answer;
    struct err err = ERR_INIT;
    assert_int_equal(gather_wait(gathered, &answer, &err), rc);
    return answer->status;
}

static struct gather *gathering(struct http *http, int width)
{
    struct err err = ERR_INIT;
    struct gather *gather = gather_new(http, width, &err);
    assert_non_null(gather);
    return gather;
}

static void test_gather_when_one_never_answers_then_the_others_do(void **state)
{
    AUTO(http) struct http *http = client(*state, (struct http_options){.attempts = 1});
    AUTO(gather) struct gather *gather = gathering(http, 2);
    struct gathered *never = ask(gather, "/never");
    struct gathered *oks[20];
    for (size_t i = 0; i < ARRAY_LEN(oks); i++)
        oks[i] = ask(gather, "/ok");
    for (size_t i = 0; i < ARRAY_LEN(oks); i++)
        assert_int_equal(status_of(oks[i], 0), 200);
    gathered_free(oks[19]);
    gathered_free(never); /* while it is under way */
    assert_int_equal(status_of(ask(gather, "/ok"), 0), 200);
    ask(gather, "/ok"); /* the gather's end is its end */
}

static void test_gather_when_a_write_is_sent_then_past_those_that_wait_and_once(void **state)
{
    struct server *s = *state;
    AUTO(http) struct http *http =
        client(s, (struct http_options){.attempts = 1, .keep_writes = true});
    AUTO(gather) struct gather *gather = gathering(http, 1);
    struct gathered *never = ask(gather, "/never"), *waits = ask(gather, "/ok");
    const struct http_answer *answer;
    struct err err = ERR_INIT;
    s->requests = 0;
    struct gathered *write = gather_send(gather, "PATCH", "/echo", "text/plain", "four", 4);
    assert_int_equal(gather_wait(write, &answer, &err), 0);
    assert_memory_equal(answer->body.data, "PATCH 4", 7);
    assert_int_equal(status_of(gather_get_now(gather, "/ok", SIZE_MAX), 0), 200);
    struct gathered *lost = gather_send(gather, "PATCH", "/drop", "text/plain", "four", 4);
    int before = s->requests;
    assert_int_equal(gather_wait(lost, &answer, &err), -1);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_int_equal(s->requests, before + 1);
    gathered_free(never);
    assert_int_equal(status_of(waits, 0), 200);
}

static void test_gather_when_one_fails_then_named_and_the_others_do_not(void **state)
{
    struct server *s = *state;
    AUTO(http) struct http *http = client(s, (struct http_options){.backoff_max_ms = 5});
    AUTO(gather) struct gather *gather = gathering(http, 4);
    const struct http_answer *answer;
    struct err err = ERR_INIT;
    struct gathered *big = gather_get(gather, "/big", 50000), *gone = ask(gather, "/gone?key=k");
    struct gathered *ok = ask(gather, "/ok"), *whole = gather_get(gather, "/big", 100000);
    assert_int_equal(gather_wait(big, &answer, &err), -1);
    assert_int_equal(err.kind, ERR_TOO_LARGE);
    assert_int_equal(gather_wait(gone, &answer, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/gone: status 410"));
    assert_int_equal(status_of(ok, 0), 200);
    assert_int_equal(gather_wait(whole, &answer, &err), 0);
    assert_int_equal(answer->body.size, 100000);
}

/* The fourth answer to /flaky is a 404: whoever of them gets the three 503 comes again. */
static void test_gather_when_the_server_is_busy_then_each_comes_again(void **state)
{
    struct server *s = *state;
    AUTO(http) struct http *http = client(s, (struct http_options){.backoff_max_ms = 5});
    AUTO(gather) struct gather *gather = gathering(http, 4);
    struct gathered *asked[6];
    s->failures = 3;
    for (size_t i = 0; i < ARRAY_LEN(asked); i++)
        asked[i] = ask(gather, i % 2 ? "/ok" : "/flaky");
    gather_settle(gather);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++)
        assert_int_equal(status_of(asked[i], i % 2 ? 0 : -1), i % 2 ? 200 : 404);
    assert_int_equal(s->requests, 9);
    struct gathered *busy = ask(gather, "/busy"); /* for ever: its attempts end */
    assert_int_equal(status_of(busy, -1), 429);
    assert_int_equal(s->requests, 9 + 4);
    assert_int_equal(status_of(ask(gather, "/ok"), 0), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get_when_answered_then_body_and_status),
        cmocka_unit_test(test_status_when_error_then_kind_and_words),
        cmocka_unit_test(test_get_when_server_recovers_then_repeated),
        cmocka_unit_test(test_get_when_retry_after_is_long_then_the_cap_holds),
        cmocka_unit_test(test_send_when_it_fails_then_never_repeated),
        cmocka_unit_test(test_send_when_a_kept_connection_breaks_then_never_repeated),
        cmocka_unit_test(test_send_when_methods_and_bodies_then_arrive),
        cmocka_unit_test(test_get_when_answer_is_too_large_then_refused_at_the_limit),
        cmocka_unit_test(test_get_when_nobody_listens_then_unreachable_without_secrets),
        cmocka_unit_test(test_token_when_file_changes_then_the_new_one_is_sent),
        cmocka_unit_test(test_headers_when_given_then_sent),
        cmocka_unit_test(test_stream_when_sink_takes_it_then_nothing_is_held),
        cmocka_unit_test(test_options_when_senseless_then_config_error),
        cmocka_unit_test(test_retry_after_when_seconds_or_date_then_ms),
        cmocka_unit_test(test_pause_when_attempts_grow_then_doubles_to_the_cap),
        cmocka_unit_test(test_escape_when_special_then_percent),
        cmocka_unit_test(test_get_when_no_answer_then_times_out),
        cmocka_unit_test(test_gather_when_one_never_answers_then_the_others_do),
        cmocka_unit_test(test_gather_when_a_write_is_sent_then_past_those_that_wait_and_once),
        cmocka_unit_test(test_gather_when_one_fails_then_named_and_the_others_do_not),
        cmocka_unit_test(test_gather_when_the_server_is_busy_then_each_comes_again),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
