/* test_api.c - the HTTP interface without sockets: windows over the past, answers, errors, faults
 * of the interface itself. */
#include "adapters/simulated/server/api.h"
#include "adapters/simulated/server/history.h"
#include "tests/support/sim_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* a calls b 3.5 times a second; b is moved from A to B by some tests. */
static const char pair[] =
    "name: pair\n"
    "hosts: [{name: A, cpu: 1, memory: 1Gi}, {name: B, cpu: 1, memory: 1Gi}]\n"
    "services:\n"
    "  - {name: a, hosts: [A], entry_rate: 7, work: 10ms, cpu_base: 30m}\n"
    "  - {name: b, hosts: [A], start_up: 2s, work: 20ms}\n"
    "calls: [{from: a, to: b, per_request: 0.5, bytes: 200}]\n";

struct query {
    const char *names[2], *values[2];
};

static const char *find(void *ctx, const char *name)
{
    struct query *q = ctx;
    for (int i = 0; i < 2; i++)
        if (q->names[i] && !strcmp(q->names[i], name))
            return q->values[i];
    return NULL;
}

static int64_t wall(const struct fixture *f)
{
    return cluster_wall_ms(sim_cluster(f->sim), sim_cluster(f->sim)->last_ms);
}

/* The status; *tree (caller decrefs) is the answer where it is JSON. */
static int ask(struct fixture *f, const char *method, const char *path, struct query *query,
               const char *body, json_t **tree, struct api_answer *out)
{
    struct err err = ERR_INIT;
    struct api_request req = {.method = method,
                              .path = path,
                              .query = query ? find : NULL,
                              .query_ctx = query,
                              .body = body,
                              .size = body ? strlen(body) : 0,
                              .wall_ms = wall(f)};
    api_handle(f->sim, &req, out);
    *tree = NULL;
    if (!strcmp(out->content_type, "application/json")) {
        *tree = json_parse(out->body.data, out->body.size, &json_limits_document, &err);
        if (!*tree)
            fail_msg("%s: %s", path, err.text);
    }
    buf_wipe(&out->body);
    return out->status;
}

static int status_of(struct fixture *f, const char *method, const char *path, const char *body)
{
    json_t *tree;
    struct api_answer answer;
    int status = ask(f, method, path, NULL, body, &tree, &answer);
    json_decref(tree);
    return status;
}

static void test_traffic_when_nothing_changed_then_rate_times_seconds(void **state)
{
    (void)state;
    struct fixture f = fixture_open(pair, NULL);
    const struct cluster *c = sim_cluster(f.sim);
    int64_t to = c->last_ms;
    size_t n;
    struct traffic_row *rows = history_traffic(c, to - 100000, to, &n);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].count, 350);
    assert_int_equal(rows[0].bytes, 70000);
    free(rows);
    /* Parts of a window that end on whole counts add up. */
    rows = history_traffic(c, to - 100000, to - 40000, &n);
    assert_int_equal(rows[0].count, 210);
    free(rows);
    rows = history_traffic(c, to, to - 40000, &n); /* nothing in an empty window */
    assert_int_equal(n, 0);
    free(rows);
    fixture_close(&f);
}

static void test_traffic_when_replica_moved_then_each_has_its_part(void **state)
{
    (void)state;
    struct fixture f = fixture_open(pair, NULL);
    const struct cluster *c = sim_cluster(f.sim);
    struct err err = ERR_INIT;
    fixture_run(&f, 38000);
    int64_t from = c->last_ms - 38000;
    assert_int_equal(fixture_move(&f, 1, "b", "B", &err), 0);
    fixture_run(&f, 62000);
    size_t n;
    struct traffic_row *rows = history_traffic(c, from, from + 100000, &n);
    assert_int_equal(n, 2);
    assert_int_equal(rows[0].count, 140); /* 40 s until the new one was ready */
    assert_int_equal(rows[1].count, 210);
    /* Together the hosts' ρ is 0.07 + 0.03 + 0.07 = 0.17; apart 0.1 and 0.07, and 0.3 ms more. */
    assert_true(fabs(rows[0].mean_ms - 20 / 0.83) < 1e-9);
    assert_true(fabs(rows[1].mean_ms - (0.3 + 20 / 0.93)) < 1e-9);
    free(rows);
    fixture_close(&f);
}

static void test_usage_when_moved_then_means_cover_the_time_each_existed(void **state)
{
    (void)state;
    struct fixture f = fixture_open(pair, NULL);
    const struct cluster *c = sim_cluster(f.sim);
    struct err err = ERR_INIT;
    int64_t from = c->last_ms;
    int old = fixture_replica(&f, "b");
    fixture_run(&f, 8000);
    assert_int_equal(fixture_move(&f, 1, "b", "B", &err), 0);
    fixture_run(&f, 10000);
    AUTO_FREE double *usage = history_usage(c, from, c->last_ms);
    assert_true(fabs(usage[fixture_replica(&f, "a")] - 100) < 1e-9);
    assert_true(fabs(usage[old] - 70) < 1e-9);
    /* 2 s starting without load, 8 s with 70 m */
    assert_true(fabs(usage[fixture_replica(&f, "b")] - 56) < 1e-9);
    fixture_close(&f);
}

static void test_messages_when_replica_ended_then_row_has_its_service_only(void **state)
{
    (void)state;
    struct fixture f = fixture_open(pair, NULL);
    struct err err = ERR_INIT;
    assert_int_equal(fixture_move(&f, 1, "b", "B", &err), 0);
    fixture_run(&f, 4000);
    json_t *tree;
    struct api_answer answer;
    AUTO_FREE char *from = mem_printf("%lld", (long long)(wall(&f) - 10000));
    AUTO_FREE char *to = mem_printf("%lld", (long long)wall(&f));
    struct query q = {{"from_ms", "to_ms"}, {from, to}};
    assert_int_equal(ask(&f, "GET", "/v1/messages", &q, NULL, &tree, &answer), 200);
    json_t *rows = json_object_get(tree, "messages");
    assert_int_equal(json_array_size(rows), 2);
    assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "dst")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 0), "dst_service")),
                        "b");
    assert_true(json_is_string(json_object_get(json_array_get(rows, 1), "dst")));
    json_decref(tree);
    fixture_close(&f);
}

static void test_request_when_wrong_then_answers_the_right_status(void **state)
{
    (void)state;
    struct fixture f = fixture_open(pair, NULL);
    static const struct {
        const char *method, *path, *body;
        int status;
    } rows[] = {
        {"GET", "/healthz", NULL, 200},
        {"GET", "/v1/nothing", NULL, 404},
        {"POST", "/v1/cluster", "{}", 405},
        {"GET", "/v1/settled", NULL, 400},
        {"GET", "/v1/journal", NULL, 404},
        {"POST", "/v1/place", "", 400},
        {"POST", "/v1/place", "{", 400},
        {"POST", "/v1/place", "[]", 400},
        {"POST", "/v1/place", "{\"cycle\":1}", 400},
        {"POST", "/v1/place",
         "{\"cycle\":1,\"seq\":1,\"service\":\"b\",\"instance\":\"x\",\"target\":\"B\"}", 404},
        {"POST", "/v1/place",
         "{\"cycle\":1,\"seq\":-1,\"service\":\"b\",\"instance\":\"x\",\"target\":\"B\"}", 400},
        {"POST", "/v1/place",
         "{\"cycle\":1,\"seq\":1,\"service\":\"b\",\"instance\":\"x\",\"target\":\"B\",\"y\":1}",
         400},
        {"POST", "/v1/undo", "{\"cycle\":1,\"seq\":1}", 200},
        {"POST", "/v1/release", "{\"service\":\"x\"}", 404},
        {"POST", "/v1/release", "{\"dry_run\":true}", 200},
        {"POST", "/v1/faults", "{\"kind\":\"nothing\"}", 400},
        {"POST", "/v1/faults", "{\"kind\":\"host-down\"}", 400},
        {"POST", "/v1/faults", "{\"kind\":\"scale\",\"service\":\"b\",\"replicas\":2}", 200},
        {"POST", "/v1/faults/clear", "", 200},
        {"GET", "/v1/state", NULL, 200},
        {"GET", "/v1/faults", NULL, 200},
        {"GET", "/v1/response", NULL, 200},
        {"GET", "/v1/metrics", NULL, 200},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (status_of(&f, rows[i].method, rows[i].path, rows[i].body) != rows[i].status)
            fail_msg("row %zu: %s %s", i, rows[i].method, rows[i].path);
    AUTO_FREE char *huge = mem_alloc(API_MAX_BODY + 2);
    memset(huge, ' ', API_MAX_BODY + 1);
    assert_int_equal(status_of(&f, "POST", "/v1/place", huge), 413);
    fixture_close(&f);
}

static void test_window_when_backwards_or_no_number_then_400(void **state)
{
    (void)state;
    struct fixture f = fixture_open(pair, NULL);
    static const char *const values[][2] = {{"2000", "1000"}, {"x", "1"}, {"-5", "1"}, {"", "1"}};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        json_t *tree;
        struct api_answer answer;
        struct query q = {{"from_ms", "to_ms"}, {values[i][0], values[i][1]}};
        assert_int_equal(ask(&f, "GET", "/v1/messages", &q, NULL, &tree, &answer), 400);
        json_decref(tree);
    }
    fixture_close(&f);
}

static void test_faults_when_of_the_interface_then_slow_refused_or_dropped(void **state)
{
    (void)state;
    struct fixture f = fixture_open(pair, NULL);
    json_t *tree;
    struct api_answer answer;
    status_of(&f, "POST", "/v1/faults", "{\"kind\":\"slow\",\"delay_ms\":300,\"times\":1}");
    ask(&f, "GET", "/v1/cluster", NULL, NULL, &tree, &answer);
    json_decref(tree);
    assert_int_equal(answer.delay_ms, 300);
    ask(&f, "GET", "/v1/cluster", NULL, NULL, &tree, &answer);
    json_decref(tree);
    assert_int_equal(answer.delay_ms, 0);
    status_of(&f, "POST", "/v1/faults",
              "{\"kind\":\"refuse\",\"status\":429,\"writes_only\":true}");
    assert_int_equal(status_of(&f, "GET", "/v1/cluster", NULL), 200);
    assert_int_equal(status_of(&f, "POST", "/v1/undo", "{\"cycle\":1,\"seq\":1}"), 429);
    assert_int_equal(status_of(&f, "POST", "/v1/faults/clear", NULL), 200);
    status_of(&f, "POST", "/v1/faults", "{\"kind\":\"lose-answer\"}");
    AUTO_FREE char *body =
        mem_printf("{\"cycle\":1,\"seq\":1,\"service\":\"b\",\"instance\":\"%s\",\"target\":\"B\"}",
                   sim_cluster(f.sim)->replicas[fixture_replica(&f, "b")].name);
    ask(&f, "POST", "/v1/place", NULL, body, &tree, &answer);
    json_decref(tree);
    assert_true(answer.drop);
    ask(&f, "POST", "/v1/place", NULL, body, &tree, &answer);
    json_decref(tree);
    assert_false(answer.drop);
    assert_int_equal(sim_cluster(f.sim)->n_placed, 1);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traffic_when_nothing_changed_then_rate_times_seconds),
        cmocka_unit_test(test_traffic_when_replica_moved_then_each_has_its_part),
        cmocka_unit_test(test_usage_when_moved_then_means_cover_the_time_each_existed),
        cmocka_unit_test(test_messages_when_replica_ended_then_row_has_its_service_only),
        cmocka_unit_test(test_request_when_wrong_then_answers_the_right_status),
        cmocka_unit_test(test_window_when_backwards_or_no_number_then_400),
        cmocka_unit_test(test_faults_when_of_the_interface_then_slow_refused_or_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
