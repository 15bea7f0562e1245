/* test_api.c - what a real API server says too seldom to wait for: throttling with and without
 * Retry-After, tokens that are replaced, lists that expire, against a server in this process. */
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

#include "adapters/kubernetes/api.h"
#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/json.h"
#include "tests/support/temp_dir.h"

struct server {
    struct MHD_Daemon *daemon;
    atomic_int taken; /* requests with the right token */
    atomic_int requests, refusals; /* so many of the next requests are refused */
    const char *body;              /* of a refusal */
    unsigned status;
    const char *retry_after;
    char token[100]; /* "Bearer …" that is taken; "": any */
    char base[64], *folder;
    struct kube_api *api;
};

#define STATUS(code, reason, rest)                                                                 \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":" #code ",\"reason\":\"" reason         \
    "\",\"message\":\"no\\nway\"" rest "}"

static int64_t stopped_ms = -1; /* the monotonic clock; -1: it goes on */
int64_t __wrap_clock_mono_ms(void);
int64_t __real_clock_mono_ms(void);

int64_t __wrap_clock_mono_ms(void)
{
    return stopped_ms >= 0 ? stopped_ms : __real_clock_mono_ms();
}

static enum MHD_Result reply(struct MHD_Connection *c, unsigned status, const char *text,
                             const char *retry_after)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    if (retry_after)
        MHD_add_response_header(r, "Retry-After", retry_after);
    enum MHD_Result result = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return result;
}

/* Three pages; the token of the second has expired once. */
static enum MHD_Result serve_list(struct server *s, struct MHD_Connection *c)
{
    const char *next = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "continue");
    if (!next)
        return reply(c, 200, "{\"kind\":\"PodList\",\"metadata\":{\"continue\":\"a/b\",\"resourceVersion\":\"5\"},"
                             "\"items\":[{},{}]}",
                     NULL);
    if (strcmp(next, "a/b") == 0 && s->refusals-- > 0)
        return reply(c, 410, STATUS(410, "Expired", ""), NULL);
    if (strcmp(next, "a/b") == 0)
        return reply(c, 200, "{\"kind\":\"PodList\",\"metadata\":{\"continue\":\"c\",\"resourceVersion\":\"5\"},"
                             "\"items\":[{}]}",
                     NULL);
    return reply(c, 200, "{\"kind\":\"PodList\",\"metadata\":{\"continue\":\"\",\"resourceVersion\":\"5\"},\"items\":[{}]}",
                 NULL);
}

static enum MHD_Result serve(void *ctx, struct MHD_Connection *c, const char *url,
                             const char *method, const char *version, const char *data,
                             size_t *size, void **seen)
{
    struct server *s = ctx;
    (void)method, (void)version, (void)data;
    if (!*seen || *size) {
        *seen = s;
        *size = 0;
        return MHD_YES;
    }
    s->requests++;
    const char *token = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    if (s->token[0] && (!token || strcmp(token, s->token) != 0))
        return reply(c, 401, STATUS(401, "Unauthorized", ""), NULL);
    s->taken++;
    if (strcmp(url, "/list") == 0)
        return serve_list(s, c);
    if (s->refusals-- > 0)
        return reply(c, s->status, s->body, s->retry_after);
    return reply(c, 200, "{\"kind\":\"Pod\"}", NULL);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *path = mem_printf("%s/%s", folder, name);
    if (file_write_atomic(path, text, strlen(text), 0600, &err))
        fail_msg("%s", err.text);
}

static int start(void **state)
{
    struct server *s = calloc(1, sizeof *s);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct err err = ERR_INIT;
    s->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, serve, s,
                                 MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_END);
    if (!s->daemon)
        return -1;
    s->folder = temp_dir_new();
    AUTO_FREE char *config = mem_printf(
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}]\n"
        "users: [{name: u, user: {tokenFile: token}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
        MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    write_text(s->folder, "config", config);
    write_text(s->folder, "token", "old\n");
    AUTO_FREE char *path = mem_printf("%s/config", s->folder);
    const struct option options[] = {{"kubeconfig", path}, {"attempts", "2"}};
    const struct source source = {"k", "kubernetes", options, 2};
    if (kube_api_open(&source, &s->api, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    *state = s;
    return 0;
}

static int stop(void **state)
{
    struct server *s = *state;
    kube_api_close(s->api);
    MHD_stop_daemon(s->daemon);
    temp_dir_remove(s->folder);
    free(s->folder);
    free(s);
    return 0;
}

static int send_one(struct server *s, struct kube_status *status, struct err *err)
{
    AUTO_JSON json_t *body = json_object();
    return kube_api_send(s->api, "POST", "/x", "application/json", body, NULL, status, err);
}

static void test_write_when_throttled_then_sent_again(void **state)
{
    struct server *s = *state;
    struct kube_status status;
    struct err err = ERR_INIT;
    static const char *const waits[] = {"0", NULL}; /* with Retry-After and without */
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        s->requests = 0;
        s->refusals = 1;
        s->status = 429;
        s->body = STATUS(429, "TooManyRequests", "");
        s->retry_after = waits[i];
        assert_int_equal(send_one(s, &status, &err), 0);
        assert_int_equal(s->requests, 2);
        assert_int_equal(status.code, 200);
    }
}

static void test_write_when_a_budget_forbids_it_then_refused_at_once(void **state)
{
    struct server *s = *state;
    struct kube_status status;
    struct err err = ERR_INIT;
    s->refusals = 1;
    s->status = 429;
    s->body = STATUS(429, "TooManyRequests",
                     ",\"details\":{\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"m\"}]}");
    assert_int_equal(send_one(s, &status, &err), -1);
    assert_int_equal(err.kind, ERR_REFUSED);
    assert_string_equal(status.cause, "DisruptionBudget");
    assert_int_equal(s->requests, 1);
}

static void test_write_when_the_server_fails_then_not_sent_again(void **state)
{
    struct server *s = *state;
    struct kube_status status;
    struct err err = ERR_INIT;
    s->refusals = 1;
    s->status = 500;
    s->body = "oops";
    assert_int_equal(send_one(s, &status, &err), -1);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_int_equal(s->requests, 1);
}

static void test_write_when_in_conflict_then_the_status_says_with_whom(void **state)
{
    struct server *s = *state;
    struct kube_status status;
    struct err err = ERR_INIT;
    s->refusals = 1;
    s->status = 409;
    s->body = STATUS(409, "Conflict",
                     ",\"details\":{\"causes\":[{\"reason\":\"FieldManagerConflict\","
                     "\"message\":\"conflict with \\\"argo\\\"\"}],\"retryAfterSeconds\":3}");
    assert_int_equal(send_one(s, &status, &err), -1);
    assert_int_equal(err.kind, ERR_CONFLICT);
    assert_string_equal(status.reason, "Conflict");
    assert_string_equal(status.message, "no way");
    assert_string_equal(status.cause, "FieldManagerConflict");
    assert_string_equal(status.cause_text, "conflict with \"argo\"");
    assert_int_equal(status.retry_after_ms, 3000);
}

static void test_read_when_the_server_fails_once_then_read_again(void **state)
{
    struct server *s = *state;
    struct err err = ERR_INIT;
    AUTO_JSON json_t *object = NULL;
    s->refusals = 1;
    s->status = 503;
    s->body = "";
    s->retry_after = "0";
    if (kube_api_get(s->api, "/x", &object, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(s->requests, 2);
}

static void test_token_when_replaced_then_the_new_one_is_used(void **state)
{
    struct server *s = *state;
    struct err err = ERR_INIT;
    struct kube_status status;
    AUTO_FREE char *from = mem_printf("%s/next", s->folder);
    AUTO_FREE char *to = mem_printf("%s/token", s->folder);
    snprintf(s->token, sizeof s->token, "Bearer old");
    assert_int_equal(send_one(s, &status, &err), 0);
    snprintf(s->token, sizeof s->token, "Bearer new");
    write_text(s->folder, "next", "new\n");
    assert_int_equal(rename(from, to), 0); /* as the kubelet swaps a link */
    assert_int_equal(send_one(s, &status, &err), 0);
    snprintf(s->token, sizeof s->token, "Bearer newer");
    s->requests = 0;
    assert_int_equal(send_one(s, &status, &err), -1);
    assert_int_equal(status.code, 401);
    assert_int_equal(err.kind, ERR_REFUSED);
    assert_int_equal(s->requests, 2); /* once more with what is in the file now */
    assert_null(strstr(err.text, "new"));
}

static struct kube_sent *begin_one(struct server *s)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *body = json_object();
    struct kube_sent *sent =
        kube_api_send_begin(s->api, "PATCH", "/x", "application/json", body, &err);
    if (!sent)
        fail_msg("%s", err.text);
    return sent;
}

static int leads(void *ctx, struct err *err)
{
    return *(bool *)ctx ? 0 : err_set(err, ERR_UNREACHABLE, "the lease is not ours");
}

static void test_write_when_begun_and_the_lease_lost_before_its_turn_then_not_sent(void **state)
{
    struct server *s = *state;
    struct err err = ERR_INIT;
    bool ours = true;
    kube_api_guard(s->api, leads, &ours);
    struct kube_sent *first = begin_one(s);
    kube_api_sends_start(s->api); /* this one is on its way */
    struct kube_sent *second = begin_one(s);
    ours = false;
    assert_int_equal(kube_api_send_end(s->api, second, NULL, NULL, &err), -1);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_non_null(strstr(err.text, "the lease is not ours"));
    assert_int_equal(kube_api_send_end(s->api, first, NULL, NULL, &err), 0);
    assert_int_equal(s->requests, 1);
}

/* Nobody waits for what is posted, and no other request need go over its connection. */
static void test_post_when_the_credentials_were_replaced_then_the_next_goes_with_the_new_ones(
    void **state)
{
    struct server *s = *state;
    struct err err = ERR_INIT;
    AUTO(kube_api) struct kube_api *api = NULL;
    AUTO_JSON json_t *body = json_object();
    AUTO_FREE char *path = mem_printf("%s/inline", s->folder);
    const struct option options[] = {{"kubeconfig", path}};
    const struct source source = {"k", "kubernetes", options, 1};
    static const char *const tokens[] = {"one", "two"};
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        AUTO_FREE char *config = mem_printf(
            "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}]\n"
            "users: [{name: u, user: {token: %s}}]\n"
            "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
            MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port, tokens[i]);
        write_text(s->folder, "inline", config);
        snprintf(s->token, sizeof s->token, "Bearer %s", tokens[i]);
        assert_int_equal(api ? 0 : kube_api_open(&source, &api, &err), 0);
        for (size_t k = 0; k <= i; k++) { /* the first since is lost */
            s->taken = 0;
            kube_api_post(api, "/x", body);
            kube_api_posts_turn(api, true);
        }
        assert_int_equal(s->taken, 1);
    }
}

struct pages {
    int pages, items, began;
};

static int take(void *ctx, const json_t *list, bool again, struct err *err)
{
    struct pages *p = ctx;
    (void)err;
    if (again)
        *p = (struct pages){.began = p->began + 1};
    p->pages++;
    p->items += (int)json_array_size(json_object_get(list, "items"));
    return 0;
}

static void test_list_when_its_token_expires_then_begun_anew(void **state)
{
    struct server *s = *state;
    struct err err = ERR_INIT;
    struct pages pages = {0};
    AUTO_FREE char *version = NULL;
    s->refusals = 1;
    if (kube_api_list(s->api, "/list", take, &pages, &version, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(pages.began, 2);
    assert_int_equal(pages.pages, 3);
    assert_int_equal(pages.items, 4);
    assert_string_equal(version, "5");
}

static void test_list_when_it_expires_for_ever_then_given_up(void **state)
{
    struct server *s = *state;
    struct err err = ERR_INIT;
    struct kube_status status;
    struct pages pages = {0};
    s->refusals = 100;
    assert_int_equal(kube_api_list(s->api, "/list", take, &pages, NULL, &status, &err), -1);
    assert_int_equal(status.code, 410);
    assert_true(pages.began < 10);
}

static void read_one(struct server *s, const char *path)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *object = NULL;
    if (kube_api_get(s->api, path, &object, NULL, &err))
        fail_msg("%s", err.text);
    assert_non_null(json_object_get(object, "kind"));
}

static void test_ahead_when_asked_for_then_each_answer_is_used_once(void **state)
{
    struct server *s = *state;
    struct err err = ERR_INIT;
    struct pages pages = {0};
    kube_api_ahead_get(s->api, "/x");
    kube_api_ahead_get(s->api, "/y");
    kube_api_ahead_list(s->api, "/list");
    read_one(s, "/y");
    read_one(s, "/x");
    assert_int_equal(kube_api_list(s->api, "/list", take, &pages, NULL, NULL, &err), 0);
    assert_int_equal(pages.items, 4);
    assert_int_equal(s->requests, 5); /* three pages */
    read_one(s, "/x");
    assert_int_equal(s->requests, 6);
}

static void test_ahead_when_the_server_fails_then_errors_and_repeats_are_those_of_a_read(void **state)
{
    struct server *s = *state;
    struct err err = ERR_INIT;
    struct kube_status status;
    AUTO_JSON json_t *object = NULL;
    s->refusals = 1;
    s->status = 503;
    s->body = "";
    s->retry_after = "0";
    kube_api_ahead_get(s->api, "/x");
    read_one(s, "/x");
    assert_int_equal(s->requests, 2);
    s->refusals = 1;
    s->status = 404;
    s->body = STATUS(404, "NotFound", "");
    kube_api_ahead_get(s->api, "/x");
    assert_int_equal(kube_api_get(s->api, "/x", &object, &status, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_string_equal(status.reason, "NotFound");
}

static void test_ahead_when_the_token_is_refused_then_each_read_says_so(void **state)
{
    struct server *s = *state;
    struct err err = ERR_INIT;
    struct kube_status status;
    AUTO_JSON json_t *object = NULL;
    snprintf(s->token, sizeof s->token, "Bearer new");
    kube_api_ahead_get(s->api, "/x");
    kube_api_ahead_get(s->api, "/y"); /* goes with the connection when the credentials are read again */
    assert_int_equal(kube_api_get(s->api, "/x", &object, &status, &err), -1);
    assert_int_equal(status.code, 401);
    assert_int_equal(kube_api_get(s->api, "/y", &object, &status, &err), -1);
    assert_int_equal(status.code, 401);
    snprintf(s->token, sizeof s->token, "Bearer old");
    read_one(s, "/x");
}

static void test_ahead_when_something_is_written_then_read_after_it(void **state)
{
    struct server *s = *state;
    struct err err = ERR_INIT;
    kube_api_ahead_get(s->api, "/x");
    kube_api_ahead_get(s->api, "/y");
    read_one(s, "/x"); /* both are asked for now */
    assert_int_equal(send_one(s, NULL, &err), 0);
    int before = s->requests;
    read_one(s, "/y");
    assert_int_equal(s->requests, before + 1);
    kube_api_ahead_get(s->api, "/x"); /* nobody comes for it: it ends with the connection */
}

static void test_ahead_when_kept_then_past_writes_but_not_for_long(void **state)
{
    struct server *s = *state;
    struct err err = ERR_INIT;
    AUTO_JSON json_t *seen = NULL, *none = NULL;
    stopped_ms = clock_mono_ms(); /* what is kept grows old only when told to */
    kube_api_ahead_keep(s->api, true);
    kube_api_ahead_get(s->api, "/x");
    kube_api_ahead_get(s->api, "/x"); /* is asked for already */
    kube_api_ahead_get(s->api, "/y");
    kube_api_ahead_get(s->api, "/z");
    kube_api_ahead_keep(s->api, false);
    kube_api_ahead_get(s->api, "/not-kept");
    assert_true(kube_api_ahead_peek(s->api, "/x", &seen));
    assert_false(kube_api_ahead_peek(s->api, "/nobody-asked", &none));
    assert_int_equal(send_one(s, NULL, &err), 0);
    read_one(s, "/x");
    read_one(s, "/y");
    assert_true(s->requests <= 5); /* what is not waited for may come to the server late */
    stopped_ms += 1001;
    int before = s->requests;
    read_one(s, "/z");
    assert_true(s->requests > before);
    before = s->requests;
    read_one(s, "/not-kept");
    read_one(s, "/x");
    assert_true(s->requests >= before + 2);
    kube_api_ahead_keep(s->api, true);
    kube_api_ahead_get(s->api, "/x");
    kube_api_ahead_keep(s->api, false);
    assert_true(kube_api_ahead_peek(s->api, "/x", &none));
    kube_api_ahead_forget(s->api);
    before = s->requests;
    read_one(s, "/x");
    assert_true(s->requests > before);
    stopped_ms = -1;
}

static void test_path_when_parts_are_strange_then_escaped(void **state)
{
    (void)state;
    AUTO_FREE char *core = kube_api_path("v1", "a b", "pods", "x/y");
    AUTO_FREE char *apps = kube_api_path("apps/v1", NULL, "deployments", NULL);
    assert_string_equal(core, "/api/v1/namespaces/a%20b/pods/x%2Fy");
    assert_string_equal(apps, "/apis/apps/v1/deployments");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_write_when_throttled_then_sent_again),
        TEST(test_write_when_a_budget_forbids_it_then_refused_at_once),
        TEST(test_write_when_the_server_fails_then_not_sent_again),
        TEST(test_write_when_in_conflict_then_the_status_says_with_whom),
        TEST(test_read_when_the_server_fails_once_then_read_again),
        TEST(test_token_when_replaced_then_the_new_one_is_used),
        TEST(test_list_when_its_token_expires_then_begun_anew),
        TEST(test_list_when_it_expires_for_ever_then_given_up),
        TEST(test_write_when_begun_and_the_lease_lost_before_its_turn_then_not_sent),
        TEST(test_post_when_the_credentials_were_replaced_then_the_next_goes_with_the_new_ones),
        TEST(test_ahead_when_asked_for_then_each_answer_is_used_once),
        TEST(test_ahead_when_the_server_fails_then_errors_and_repeats_are_those_of_a_read),
        TEST(test_ahead_when_the_token_is_refused_then_each_read_says_so),
        TEST(test_ahead_when_something_is_written_then_read_after_it),
        TEST(test_ahead_when_kept_then_past_writes_but_not_for_long),
        TEST(test_path_when_parts_are_strange_then_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
