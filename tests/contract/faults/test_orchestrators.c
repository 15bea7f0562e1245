/* test_orchestrators.c - what orchestrators ask and write, against every fault of faulty.h: each ends
 * soon, with the right kind of error and words, and nothing that a server said by mistake counts as
 * done. (Memory: the sanitizers' build of this test.) */
#include "tests/contract/faults/faulty.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/adapter.h"
#include "adapters/kubernetes/evict.h"
#include "model/base/clock.h"
#include "model/base/json.h"

/* A mark whose pin is gone from the template: releasing it is one write. */
#define WORKLOAD                                                                                   \
    "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\",\"metadata\":{\"name\":\"web\","          \
    "\"namespace\":\"shop\",\"uid\":\"u-1\",\"resourceVersion\":\"7\",\"generation\":3,"           \
    "\"annotations\":{\"remap/intent\":\"{\\\"v\\\":1,\\\"uid\\\":\\\"u-1\\\",\\\"cycle\\\":7,"    \
    "\\\"seq\\\":2,\\\"at_ms\\\":1000,\\\"pin\\\":\\\"preferred\\\",\\\"how\\\":\\\"apply\\\","    \
    "\\\"hosts\\\":[{\\\"node\\\":\\\"n1\\\",\\\"hostname\\\":\\\"n1\\\",\\\"count\\\":1}],"       \
    "\\\"leaf\\\":[],\\\"constraint\\\":null,\\\"before\\\":{},\\\"original\\\":{},"               \
    "\\\"template\\\":\\\"abc\\\",\\\"reverted\\\":null,\\\"previous\\\":null}\"}},"               \
    "\"spec\":{\"replicas\":2,\"selector\":{\"matchLabels\":{\"app\":\"web\"}},"                   \
    "\"template\":{\"metadata\":{\"labels\":{\"app\":\"web\"}},\"spec\":{}}},\"status\":{}}"

static const char *const all[] = {NULL};
static const struct app_scope app = {"shop", all, all};
static const struct placement_count one = {"n1", 1};
static const struct placement service_move = {
    .cycle = 7, .seq = 2, .service = "shop/Deployment/web", .targets = &one, .n_targets = 1};
static const struct placement replica_move = {
    .cycle = 7, .seq = 2, .service = "shop/web", .instance = "shop/web-1", .source = "n2", .target = "n1"};

/* --- what is asked of them --- */

typedef int ask_f(const struct orchestrator *o, void *ctx, const struct placement *p, struct err *err);

static int ask_place(const struct orchestrator *o, void *ctx, const struct placement *p,
                     struct err *err)
{
    char *saved = NULL;
    int rc = o->place(ctx, p, &saved, err);
    free(saved);
    return rc;
}

static int ask_settled(const struct orchestrator *o, void *ctx, const struct placement *p,
                       struct err *err)
{
    struct settle_report report;
    return o->settled(ctx, p, &report, err);
}

static int ask_undo(const struct orchestrator *o, void *ctx, const struct placement *p,
                    struct err *err)
{
    return o->undo(ctx, p, NULL, err);
}

static int ask_release_one(const struct orchestrator *o, void *ctx, const struct placement *p,
                           struct err *err)
{
    int64_t restarts;
    return o->release(ctx, &app, p->service, false, &restarts, err);
}

static int ask_release_all(const struct orchestrator *o, void *ctx, const struct placement *p,
                           struct err *err)
{
    int64_t restarts;
    (void)p;
    return o->release(ctx, &app, NULL, true, &restarts, err);
}

static void told(void *arg, const struct relief *relief)
{
    (void)arg;
    fail_msg("relieved %s", relief->service);
}

static int ask_relieve(const struct orchestrator *o, void *ctx, const struct placement *p,
                       struct err *err)
{
    struct relief_budget budget = {-1, -1, false};
    (void)p;
    return o->relieve(ctx, &app, &budget, told, NULL, err);
}

static const struct row {
    const char *type, *what;
    ask_f *ask;
    const struct placement *move;
} reads[] = {
    {"kubernetes", "place", ask_place, &service_move},
    {"kubernetes", "settled", ask_settled, &service_move},
    {"kubernetes", "undo", ask_undo, &service_move},
    {"kubernetes", "release", ask_release_one, &service_move},
    {"kubernetes", "release all", ask_release_all, &service_move},
    {"kubernetes", "relieve", ask_relieve, &service_move},
    {"kubernetes-replica", "place", ask_place, &replica_move},
    {"kubernetes-replica", "settled", ask_settled, &replica_move},
    {"kubernetes-replica", "undo", ask_undo, &replica_move},
};

/* Asked for a source whose server is the faulty one. */
static struct source source_new(const char *type, struct option options[5], const char *url)
{
    options[0] = (struct option){"kubeconfig", faulty_kubeconfig(url)};
    options[1] = (struct option){"timeout", faulty_timeout()};
    options[2] = (struct option){"attempts", "1"};
    options[3] = (struct option){"max_mib", "1"};
    options[4] = (struct option){"lease_duration", "1s"};
    return (struct source){"s", type, options, 5};
}

static void source_end(const struct source *source)
{
    unlink(source->options[0].value);
    free((char *)(uintptr_t)source->options[0].value);
}

static void judge(const char *type, const char *what, const struct fault *fault, int rc,
                  int64_t began_ms, const struct err *err)
{
    int64_t took = clock_mono_ms() - began_ms;
    /* A 404 that is not the API's own says nothing of the object. */
    bool unknown = fault->kind == ERR_NOT_FOUND && err->kind == ERR_UNREACHABLE;
    if (rc != -1 || (!unknown && err->kind != fault->kind && err->kind != fault->or_kind) ||
        !strstr(err->text, fault->text) || !err->text[0] || took > PATIENCE_MS)
        fail_msg("%s %s, %s: %d in %lld ms, %s: %s", type, what, fault->name, rc, (long long)took,
                 err_kind_name(err->kind), err->text);
}

static void verify(const struct row *row, const char *url, const struct fault *fault)
{
    struct option options[5];
    struct source source = source_new(row->type, options, url);
    const struct orchestrator *o = orchestrator_find(row->type);
    struct err err = ERR_INIT;
    void *ctx;
    int64_t began = clock_mono_ms();
    if (o->open(&source, &ctx, &err))
        fail_msg("%s: %s", row->type, err.text);
    int rc = row->ask(o, ctx, row->move, &err);
    o->close(ctx);
    source_end(&source);
    judge(row->type, row->what, fault, rc, began, &err);
}

static void test_question_when_the_server_is_faulty_then_named_cause_in_time(void **state)
{
    (void)state;
    int before = faulty_descriptors();
    for (size_t f = 0; f < n_faults; f++) {
        faulty_set(&faults[f], NULL);
        for (size_t r = 0; r < ARRAY_LEN(reads); r++)
            verify(&reads[r], faulty_url(), &faults[f]);
    }
    assert_in_range(faulty_descriptors(), 0, before + 1); /* one may be the server's, closing */
}

static void test_question_when_nothing_listens_then_unreachable(void **state)
{
    (void)state;
    static const struct fault down = {"down", NULL, NULL, ERR_UNREACHABLE, ERR_NONE, "connect"};
    for (size_t r = 0; r < ARRAY_LEN(reads); r++)
        verify(&reads[r], "http://127.0.0.1:1", &down);
}

/* --- writes: what is read is well --- */

static void test_write_when_the_server_is_faulty_then_never_taken_as_done(void **state)
{
    (void)state;
    static const struct row release = {"kubernetes", "release", ask_release_one, &service_move};
    int before = faulty_descriptors();
    for (size_t f = 0; f < n_faults; f++) {
        faulty_set(&faults[f], WORKLOAD);
        verify(&release, faulty_url(), &faults[f]);
    }
    assert_in_range(faulty_descriptors(), 0, before + 1);
}

static void test_eviction_when_the_server_is_faulty_then_named_cause_in_time(void **state)
{
    (void)state;
    AUTO_JSON json_t *pod = json_pack("{s:{s:s,s:s,s:s}}", "metadata", "name", "web-1", "namespace",
                                      "shop", "uid", "u-2");
    int before = faulty_descriptors();
    for (size_t f = 0; f < n_faults; f++) {
        struct option options[5];
        faulty_set(&faults[f], NULL);
        struct source source = source_new("kubernetes-replica", options, faulty_url());
        struct kube_status status;
        struct err err = ERR_INIT;
        struct kube_api *api;
        assert_int_equal(kube_api_open(&source, &api, &err), 0);
        int64_t began = clock_mono_ms();
        int rc = kube_evict(api, pod, &status, &err);
        kube_api_close(api);
        source_end(&source);
        judge("kubernetes-replica", "evict", &faults[f], rc, began, &err);
    }
    assert_in_range(faulty_descriptors(), 0, before + 1);
}

/* --- the lock --- */

static void test_lock_when_the_server_is_faulty_then_nothing_may_be_written(void **state)
{
    (void)state;
    const struct keeper *keeper = orchestrator_find("kubernetes")->keeper;
    int before = faulty_descriptors();
    for (size_t f = 0; f < n_faults; f++) {
        struct option options[5];
        faulty_set(&faults[f], NULL);
        struct source source = source_new("kubernetes", options, faulty_url());
        struct keeper_state now = {0};
        struct err err = ERR_INIT;
        void *ctx;
        assert_int_equal(keeper->open(&source, (int64_t)getpid(), &ctx, &err), 0);
        int64_t began = clock_mono_ms();
        keeper->turn(ctx, &now);
        int rc = keeper->may_write(ctx, &err);
        keeper->close(ctx);
        int64_t took = clock_mono_ms() - began;
        source_end(&source);
        if (rc != -1 || err.kind != ERR_UNREACHABLE || now.leads || !now.text[0] || took > PATIENCE_MS)
            fail_msg("%s: %d in %lld ms, leads %d, %s; %s", faults[f].name, rc, (long long)took,
                     now.leads, err.text, now.text);
    }
    assert_in_range(faulty_descriptors(), 0, before + 1);
}

/* --- the table --- */

static void test_table_when_compared_with_the_registry_then_every_orchestrator_is_in_it(void **state)
{
    (void)state;
    for (size_t i = 0; orchestrators[i]; i++) {
        bool there = strcmp(orchestrators[i]->name, "simulated") == 0; /* a server of ours */
        for (size_t r = 0; r < ARRAY_LEN(reads) && !there; r++)
            there = strcmp(orchestrators[i]->name, reads[r].type) == 0;
        if (!there)
            fail_msg("no row of the table asks %s", orchestrators[i]->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_question_when_the_server_is_faulty_then_named_cause_in_time),
        cmocka_unit_test(test_question_when_nothing_listens_then_unreachable),
        cmocka_unit_test(test_write_when_the_server_is_faulty_then_never_taken_as_done),
        cmocka_unit_test(test_eviction_when_the_server_is_faulty_then_named_cause_in_time),
        cmocka_unit_test(test_lock_when_the_server_is_faulty_then_nothing_may_be_written),
        cmocka_unit_test(test_table_when_compared_with_the_registry_then_every_orchestrator_is_in_it),
    };
    return cmocka_run_group_tests(tests, faulty_start, faulty_stop);
}
