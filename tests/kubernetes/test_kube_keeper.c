/* test_kube_keeper.c - the lease, the pause and the Events against a real API server. Clocks are
 * passed in; two leases in this process stand for two daemons. */
#include "adapters/kubernetes/keeper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/kubernetes/lease.h"
#include "model/base/json.h"
#include "tests/support/kube_cluster.h"

#define DURATION_MS 15000
#define RENEW_MS 10000

static struct kube_cluster *cluster;

static struct kube_api *api_new(const char *timeout)
{
    const struct option options[] = {
        {"kubeconfig", cluster->kubeconfig}, {"timeout", timeout}, {"attempts", "1"}};
    const struct source source = {"test", "kubernetes", options, ARRAY_LEN(options)};
    struct kube_api *api = NULL;
    struct err err = ERR_INIT;
    if (kube_api_open(&source, &api, &err) < 0)
        fail_msg("%s", err.text);
    return api;
}

static struct lease *lease_of(struct kube_api *api, const char *name, const char *identity)
{
    const struct lease_options options = {.space = "default",
                                          .name = name,
                                          .identity = identity,
                                          .duration_ms = DURATION_MS,
                                          .renew_ms = RENEW_MS,
                                          .retry_ms = 2000};
    return lease_new(api, &options);
}

static int turn(struct lease *lease, int64_t now_ms)
{
    struct err err = ERR_INIT;
    int rc = lease_turn(lease, now_ms, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
    return rc;
}

static void check_field(const char *what, const char *name, const char *path, const char *wanted)
{
    AUTO_BUF struct buf out = BUF_INIT;
    AUTO_FREE char *query = mem_printf("-ojsonpath=%s", path);
    assert_true(KUBECTL(cluster, NULL, &out, "-ndefault", "get", what, name, query));
    assert_string_equal(out.data ? out.data : "", wanted);
}

/* --- lease --- */

struct pair {
    struct kube_api *api;
    struct lease *a, *b;
};

static struct pair pair_new(const char *name)
{
    struct kube_api *api = api_new("60s");
    return (struct pair){api, lease_of(api, name, "a"), lease_of(api, name, "b")};
}

static void pair_free(struct pair *p)
{
    lease_free(p->a);
    lease_free(p->b);
    kube_api_close(p->api);
}

static void test_lease_when_free_is_taken_by_one(void **state)
{
    (void)state;
    struct pair p = pair_new("free");
    assert_int_equal(turn(p.a, 1000), 1);
    assert_int_equal(turn(p.b, 1000), 0);
    assert_string_equal(lease_holder(p.b), "a");
    assert_true(lease_held(p.a, 1000));
    assert_false(lease_held(p.b, 1000));
    check_field("lease", "free", "{.spec.holderIdentity} {.spec.leaseDurationSeconds}", "a 15");
    pair_free(&p);
}

static void test_lease_when_renewed_is_never_taken(void **state)
{
    (void)state;
    struct pair p = pair_new("renewed");
    for (int64_t now = 0; now < 60000; now += 2000) {
        assert_int_equal(turn(p.a, now), 1);
        assert_int_equal(turn(p.b, now + 1000), 0);
    }
    check_field("lease", "renewed", "{.spec.leaseTransitions}", "0");
    pair_free(&p);
}

/* The holder is dead: its hold ends one duration after it was last seen to change. */
static void test_lease_when_not_renewed_is_taken_after_its_time(void **state)
{
    (void)state;
    struct pair p = pair_new("dead");
    assert_int_equal(turn(p.a, 1000), 1);
    assert_int_equal(turn(p.b, 5000), 0);
    assert_int_equal(turn(p.b, 5000 + DURATION_MS - 1), 0);
    assert_int_equal(turn(p.b, 5000 + DURATION_MS), 1);
    check_field("lease", "dead", "{.spec.holderIdentity} {.spec.leaseTransitions}", "b 1");
    /* It was only slow: it wakes up, and learns that it has lost it. */
    assert_int_equal(turn(p.a, 30000), 0);
    assert_false(lease_held(p.a, 30000));
    pair_free(&p);
}

static void test_lease_when_not_renewed_is_over_before_others_may_take_it(void **state)
{
    (void)state;
    struct pair p = pair_new("over");
    assert_int_equal(turn(p.a, 1000), 1);
    assert_true(lease_held(p.a, 1000 + RENEW_MS - 1));
    assert_false(lease_held(p.a, 1000 + RENEW_MS));
    assert_true(RENEW_MS < DURATION_MS);
    /* Nobody came: it is ours again, and no change of hands. */
    assert_int_equal(turn(p.a, 60000), 1);
    check_field("lease", "over", "{.spec.leaseTransitions}", "0");
    pair_free(&p);
}

static void test_lease_when_released_is_taken_at_once(void **state)
{
    (void)state;
    struct pair p = pair_new("released");
    assert_int_equal(turn(p.a, 1000), 1);
    assert_int_equal(turn(p.b, 1000), 0);
    lease_release(p.a);
    assert_false(lease_held(p.a, 1000));
    check_field("lease", "released", "{.spec.holderIdentity}", "");
    assert_int_equal(turn(p.b, 1001), 1);
    pair_free(&p);
}

static void test_lease_when_deleted_is_made_anew(void **state)
{
    (void)state;
    struct pair p = pair_new("deleted");
    assert_int_equal(turn(p.a, 1000), 1);
    assert_true(KUBECTL(cluster, NULL, NULL, "-ndefault", "delete", "lease", "deleted"));
    assert_int_equal(turn(p.a, 2000), 1);
    check_field("lease", "deleted", "{.spec.holderIdentity}", "a");
    pair_free(&p);
}

/* Between our look and our write somebody else was there: resourceVersion tells. */
static void test_lease_when_somebody_was_faster_is_lost(void **state)
{
    (void)state;
    struct pair p = pair_new("race");
    assert_int_equal(turn(p.a, 1000), 1);
    assert_int_equal(turn(p.b, 1000), 0);
    assert_int_equal(turn(p.b, 1000 + DURATION_MS), 1); /* a's record is stale now */
    assert_int_equal(turn(p.a, 1000 + DURATION_MS), 0);
    assert_string_equal(lease_holder(p.a), "b");
    pair_free(&p);
}

/* A holder may claim any duration: it is waited for as it says. */
static void test_lease_when_of_another_program_its_own_duration_counts(void **state)
{
    (void)state;
    static const char other[] = "apiVersion: coordination.k8s.io/v1\nkind: Lease\n"
                                "metadata: {name: other, namespace: default}\n"
                                "spec: {holderIdentity: somebody, leaseDurationSeconds: 40,"
                                " renewTime: \"2000-01-01T00:00:00.000000Z\"}\n";
    assert_true(KUBECTL(cluster, other, NULL, "apply", "-f", "-"));
    struct pair p = pair_new("other");
    assert_int_equal(turn(p.a, 1000), 0); /* renewTime is another machine's clock */
    assert_int_equal(turn(p.a, 1000 + 39999), 0);
    assert_int_equal(turn(p.a, 1000 + 40000), 1);
    pair_free(&p);
}

static void test_lease_when_the_server_is_gone_runs_out_and_comes_back(void **state)
{
    (void)state;
    struct kube_api *api = api_new("60s");
    struct lease *a = lease_of(api, "gone", "a");
    struct err err = ERR_INIT;
    assert_int_equal(turn(a, 1000), 1);
    assert_true(kube_cluster_stop(cluster, "kube-apiserver"));
    assert_int_equal(lease_turn(a, 3000, &err), -1);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_true(lease_held(a, 3000));
    assert_false(lease_held(a, 11000));
    assert_true(kube_cluster_start(cluster, "kube-apiserver"));
    assert_int_equal(turn(a, 12000), 1);
    assert_true(lease_held(a, 12000));
    lease_free(a);
    kube_api_close(api);
}

static void test_identity_when_of_two_processes_differs(void **state)
{
    (void)state;
    AUTO_FREE char *one = lease_identity(100);
    AUTO_FREE char *same = lease_identity(100);
    AUTO_FREE char *other = lease_identity(101);
    assert_string_equal(one, same);
    assert_string_not_equal(one, other);
}

/* --- keeper --- */

static void *keeper_new(const char *lease, const char *pause, const char *kubeconfig)
{
    const struct option options[] = {{"kubeconfig", kubeconfig},
                                     {"lease", lease},
                                     {"pause", pause},
                                     {"lease_namespace", "default"}};
    const struct source source = {"cluster", "kubernetes", options, ARRAY_LEN(options)};
    void *keeper = NULL;
    struct err err = ERR_INIT;
    if (kubernetes_keeper.open(&source, getpid(), &keeper, &err) < 0)
        fail_msg("%s", err.text);
    return keeper;
}

static void test_keeper_when_it_leads_may_write_and_gives_it_back(void **state)
{
    (void)state;
    void *one = keeper_new("led", "none", cluster->kubeconfig);
    struct keeper_state s;
    struct err err = ERR_INIT;
    assert_int_equal(kubernetes_keeper.may_write(one, &err), -1);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_true(kubernetes_keeper.turn(one, &s) >= 2000);
    assert_true(s.leads);
    assert_int_equal(kubernetes_keeper.may_write(one, &err), 0);
    assert_string_equal(s.text, "lease default/led is ours");
    kubernetes_keeper.close(one);
    check_field("lease", "led", "{.spec.holderIdentity}", "");
}

static void test_keeper_when_without_the_right_says_so_and_writes_nothing(void **state)
{
    (void)state;
    char path[] = "/tmp/remap-keeper-XXXXXX";
    int fd = mkstemp(path);
    AUTO_FREE char *text =
        mem_printf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"%s\","
                   " certificate-authority: \"%s\"}}]\nusers: [{name: u, user: {token: \"%s\"}}]\n"
                   "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
                   cluster->url, cluster->ca_file, cluster->nobody_token);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    void *keeper = keeper_new("refused", "some-pause", path);
    struct keeper_state s;
    struct err err = ERR_INIT;
    (void)kubernetes_keeper.turn(keeper, &s);
    assert_false(s.leads);
    assert_non_null(strstr(s.text, "403"));
    assert_non_null(strstr(s.text, "configmap default/some-pause cannot be read"));
    assert_int_equal(kubernetes_keeper.may_write(keeper, &err), -1);
    kubernetes_keeper.close(keeper);
    unlink(path);
}

static void test_pause_when_the_configmap_is_there_holds_until_it_is_gone(void **state)
{
    (void)state;
    void *keeper = keeper_new("none", "halt", cluster->kubeconfig);
    struct keeper_state s;
    (void)kubernetes_keeper.turn(keeper, &s);
    assert_false(s.paused);
    assert_true(s.leads); /* no lease is wanted */
    assert_true(KUBECTL(cluster, NULL, NULL, "-ndefault", "create", "configmap", "halt"));
    (void)kubernetes_keeper.turn(keeper, &s);
    assert_true(s.paused);
    assert_string_equal(s.text, "no lease; paused by configmap default/halt");
    assert_true(KUBECTL(cluster, NULL, NULL, "-ndefault", "delete", "configmap", "halt"));
    (void)kubernetes_keeper.turn(keeper, &s);
    assert_false(s.paused);
    kubernetes_keeper.close(keeper);
}

static void test_announce_when_moved_puts_an_event_on_the_workload(void **state)
{
    (void)state;
    static const char deployment[] =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: cart, namespace: default}\n"
        "spec:\n  replicas: 0\n  selector: {matchLabels: {app: cart}}\n"
        "  template:\n    metadata: {labels: {app: cart}}\n"
        "    spec: {containers: [{name: c, image: c}]}\n";
    assert_true(KUBECTL(cluster, deployment, NULL, "apply", "-f", "-"));
    void *keeper = keeper_new("none", "none", cluster->kubeconfig);
    const struct announcement applied = {
        .cycle = 7, .seq = 2, .service = "default/cart", .target = "node-1", .state = "applied"};
    const struct announcement failed = {.cycle = 7,
                                        .seq = 3,
                                        .service = "default/cart",
                                        .state = "failed",
                                        .reason = "did not get ready",
                                        .bad = true};
    const struct announcement nowhere = {
        .cycle = 7, .seq = 4, .service = "default/none", .state = "applied"};
    kubernetes_keeper.announce(keeper, &applied);
    kubernetes_keeper.announce(keeper, &failed);
    kubernetes_keeper.announce(keeper, &nowhere); /* nothing depends on it */
    kubernetes_keeper.close(keeper);
    AUTO_BUF struct buf out = BUF_INIT;
    assert_true(KUBECTL(cluster, NULL, &out, "-ndefault", "get", "events.events.k8s.io",
                        "--sort-by=.metadata.name",
                        "-ojsonpath={range .items[?(@.reportingController==\"remap\")]}"
                        "{.type} {.reason} {.action} {.regarding.kind}/{.regarding.name}: "
                        "{.note}\n{end}"));
    assert_string_equal(
        out.data,
        "Normal PlacementChanged MovePod Deployment/cart: remap cycle 7, move 2: default/cart to "
        "node-1: applied. Its placement is a revision of the template: the previous release is now "
        "one revision further back (kubectl rollout undo --to-revision).\n"
        "Warning PlacementFailed MovePod Deployment/cart: remap cycle 7, move 3: default/cart: "
        "failed (did not get ready). Its placement is a revision of the template: the previous "
        "release is now one revision further back (kubectl rollout undo --to-revision).\n");
    out.size = 0;
    assert_true(KUBECTL(cluster, NULL, &out, "-ndefault", "describe", "deployment", "cart"));
    assert_non_null(strstr(out.data, "PlacementChanged"));
}

static int refuse(void *ctx, struct err *err)
{
    ++*(int *)ctx;
    return err_set(err, ERR_UNREACHABLE, "not now");
}

static void test_guard_when_it_says_no_lets_no_write_out(void **state)
{
    (void)state;
    struct kube_api *api = api_new("60s");
    struct err err = ERR_INIT;
    int asked = 0;
    AUTO_JSON json_t *body = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind",
                                       "ConfigMap", "metadata", "name", "guarded");
    AUTO_JSON json_t *seen = NULL;
    kube_api_guard(api, refuse, &asked);
    assert_int_equal(kube_api_send(api, "POST", "/api/v1/namespaces/default/configmaps",
                                   "application/json", body, NULL, NULL, &err),
                     -1);
    assert_string_equal(err.text, "not now");
    assert_int_equal(asked, 1);
    err = (struct err)ERR_INIT;
    assert_int_equal(
        kube_api_get(api, "/api/v1/namespaces/default/configmaps/guarded", &seen, NULL, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND); /* reading needs no lease */
    assert_int_equal(asked, 1);
    kube_api_close(api);
}

int main(void)
{
    const struct kube_cluster_options options = {.fake = 0};
    cluster = kube_cluster_new(&options);
    if (!cluster)
        return 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lease_when_free_is_taken_by_one),
        cmocka_unit_test(test_lease_when_renewed_is_never_taken),
        cmocka_unit_test(test_lease_when_not_renewed_is_taken_after_its_time),
        cmocka_unit_test(test_lease_when_not_renewed_is_over_before_others_may_take_it),
        cmocka_unit_test(test_lease_when_released_is_taken_at_once),
        cmocka_unit_test(test_lease_when_deleted_is_made_anew),
        cmocka_unit_test(test_lease_when_somebody_was_faster_is_lost),
        cmocka_unit_test(test_lease_when_of_another_program_its_own_duration_counts),
        cmocka_unit_test(test_lease_when_the_server_is_gone_runs_out_and_comes_back),
        cmocka_unit_test(test_identity_when_of_two_processes_differs),
        cmocka_unit_test(test_keeper_when_it_leads_may_write_and_gives_it_back),
        cmocka_unit_test(test_keeper_when_without_the_right_says_so_and_writes_nothing),
        cmocka_unit_test(test_pause_when_the_configmap_is_there_holds_until_it_is_gone),
        cmocka_unit_test(test_announce_when_moved_puts_an_event_on_the_workload),
        cmocka_unit_test(test_guard_when_it_says_no_lets_no_write_out),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_cluster_free(cluster);
    return failed;
}
