/* test_kube_replica.c - single replicas moved on a real API server with the real controllers and
 * scheduler: the webhook that steers is the executor's own (keep.c), reached over TLS. */
#include "executor/keep_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/http/http.h"
#include "adapters/kubernetes/keeper.h"
#include "adapters/kubernetes/replica.h"
#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/wire/stage_run.h"
#include "tests/support/kube_cluster.h"

#define READY_MS 300000 /* a second or two on a quiet machine */

static struct kube_cluster *cluster;
static struct stage stage;
static struct kept *kept;
static void *orchestrator;
static const struct orchestrator *const replica = &kubernetes_replica_orchestrator;
static char folder[] = "/tmp/remap-replica-XXXXXX";

static void turn(void *ctx)
{
    struct err err = ERR_INIT;
    (void)ctx;
    if (loop_turn(stage.loop, 20, &err) < 0)
        fail_msg("%s", err.text);
}

/* --- what the tests look at --- */

/* kubectl in a process of its own, so that the webhook answers meanwhile; what it prints to `out`.
 */
static bool kubectl(const char *input, struct buf *out, const char *const *arguments)
{
    AUTO_FREE char *path = mem_printf("%s/out", folder);
    struct err err = ERR_INIT;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        AUTO_BUF struct buf text = BUF_INIT;
        bool done = kube_cluster_kubectl(cluster, input, &text, arguments) &&
                    file_write_atomic(path, text.data ? text.data : "", text.size, 0600, &err) == 0;
        _exit(done ? 0 : 1);
    }
    while (waitpid(pid, &status, WNOHANG) == 0)
        turn(NULL);
    bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (done && out)
        assert_int_equal(file_read(path, 1 << 20, out, &err), 0);
    return done;
}
#define DO(input, ...) assert_true(kubectl(input, NULL, (const char *const[]){__VA_ARGS__, NULL}))

static char *kubectl_text(const char *const *arguments)
{
    struct buf out = BUF_INIT;
    assert_true(kubectl(NULL, &out, arguments));
    return buf_take(&out);
}
#define TEXT(...) kubectl_text((const char *const[]){"-nshop", __VA_ARGS__, NULL})

/* Deployment NAME of N replicas, all ready. */
static void deploy(const char *name, int n)
{
    AUTO_FREE char *text =
        mem_printf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s, namespace: shop}\n"
                   "spec:\n  replicas: %d\n  selector: {matchLabels: {app: %s}}\n"
                   "  template:\n    metadata: {labels: {app: %s}}\n    spec:\n"
                   "      terminationGracePeriodSeconds: 0\n"
                   "      containers: [{name: c, image: c, resources: {requests: {cpu: 100m}}}]\n",
                   name, n, name, name);
    AUTO_FREE char *which = mem_printf("deployment/%s", name);
    DO(text, "apply", "-f", "-");
    DO(NULL, "-nshop", "rollout", "status", which, "--timeout=300s");
}

/* The first pod of the service in order of names, as instance, and its node. */
static char *first_pod(const char *name, char **node)
{
    AUTO_FREE char *label = mem_printf("-lapp=%s", name);
    AUTO_FREE char *text = TEXT("get", "pods", label, "--sort-by=.metadata.name",
                                "-ojsonpath={.items[0].metadata.name} {.items[0].spec.nodeName}");
    char *space = strchr(text, ' ');
    assert_non_null(space);
    *node = mem_strdup(space + 1);
    *space = '\0';
    return mem_printf("shop/%s", text);
}

static const char *another_node(const char *node)
{
    return strcmp(node, "fake-4") == 0 ? "fake-3" : "fake-4";
}

static enum settle_state wait_settled(const struct placement *p, struct settle_report *report)
{
    int64_t until = clock_mono_ms() + READY_MS;
    struct err err = ERR_INIT;
    do {
        turn(NULL);
        if (replica->settled(orchestrator, p, report, &err) < 0)
            fail_msg("%s", err.text);
        if (report->state != SETTLE_WAITING)
            return report->state;
    } while (clock_mono_ms() < until);
    return SETTLE_WAITING;
}

/* What a user would see had something of his been touched. The controller's own entry, its status,
 * comes and goes on its own time. */
static char *fingerprint(const char *name)
{
    AUTO_FREE char *deployment = mem_printf("deployment/%s", name);
    return TEXT("get", deployment, "--show-managed-fields",
                "-ojsonpath={.metadata.generation} {.spec.replicas} {.spec.template} "
                "{.metadata.annotations} "
                "{.metadata.managedFields[?(@.manager!='kube-controller-manager')].manager}");
}

static void place(const struct placement *p, char **saved)
{
    struct err err = ERR_INIT;
    if (replica->place(orchestrator, p, saved, &err) < 0)
        fail_msg("%s", err.text);
}

/* --- tests --- */

static void test_move_when_room_lands_and_nothing_else_changes(void **state)
{
    (void)state;
    deploy("cart", 3);
    AUTO_FREE char *node = NULL;
    AUTO_FREE char *pod = first_pod("cart", &node);
    AUTO_FREE char *before = fingerprint("cart");
    AUTO_FREE char *saved = NULL;
    AUTO_FREE char *none = NULL;
    const struct placement p = {.cycle = 1,
                                .seq = 1,
                                .service = "shop/cart",
                                .instance = pod,
                                .source = node,
                                .target = another_node(node)};
    struct settle_report report;
    place(&p, &saved);
    assert_int_equal(wait_settled(&p, &report), SETTLE_APPLIED);
    assert_string_not_equal(report.instance_now, pod);
    assert_non_null(strstr(saved, node));
    AUTO_FREE char *now = TEXT("get", "pod", report.instance_now + strlen("shop/"),
                               "-ojsonpath={.spec.nodeName} {.metadata.annotations.remap/intent}");
    AUTO_FREE char *wanted = mem_printf("%s 1/1/%s", p.target, pod + strlen("shop/"));
    assert_string_equal(now, wanted);
    AUTO_FREE char *after = fingerprint("cart");
    assert_string_equal(after, before);

    /* Asking again moves nothing. */
    place(&p, &none);
    assert_null(none);
    struct settle_report again;
    assert_int_equal(wait_settled(&p, &again), SETTLE_APPLIED);
    assert_string_equal(again.instance_now, report.instance_now);

    /* And back. */
    struct err err = ERR_INIT;
    assert_int_equal(replica->undo(orchestrator, &p, saved, &err), 0);
    assert_int_equal(wait_settled(&p, &report), SETTLE_APPLIED);
    AUTO_FREE char *back =
        TEXT("get", "pod", report.instance_now + strlen("shop/"), "-ojsonpath={.spec.nodeName}");
    assert_string_equal(back, node);
    assert_int_equal(replica->undo(orchestrator, &p, saved, &err), 0); /* is undone */
}

/* place() refuses: the pod stays, nothing is wished for. */
static void check_refused(const struct placement *p, enum err_kind kind, const char *why)
{
    struct err err = ERR_INIT;
    char *saved = NULL;
    assert_int_equal(replica->place(orchestrator, p, &saved, &err), -1);
    assert_null(saved);
    if (err.kind != kind || !strstr(err.text, why))
        fail_msg("%s: %s", err_kind_name(err.kind), err.text);
    AUTO_FREE char *uid = TEXT("get", "pod", p->instance + strlen("shop/"),
                               "-ojsonpath={.metadata.deletionTimestamp}");
    assert_string_equal(uid, "");
}

static void test_move_when_the_budget_lets_none_go_is_refused(void **state)
{
    (void)state;
    static const char budget[] = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: "
                                 "{name: user, namespace: shop}\n"
                                 "spec: {minAvailable: 2, selector: {matchLabels: {app: user}}}\n";
    deploy("user", 2);
    DO(budget, "apply", "-f", "-");
    DO(NULL, "-nshop", "wait", "pdb/user", "--for=jsonpath={.status.currentHealthy}=2",
       "--timeout=300s");
    AUTO_FREE char *node = NULL;
    AUTO_FREE char *pod = first_pod("user", &node);
    const struct placement p = {.cycle = 1,
                                .seq = 2,
                                .service = "shop/user",
                                .instance = pod,
                                .source = node,
                                .target = another_node(node)};
    check_refused(&p, ERR_CONFLICT, "a disruption budget lets shop/user");
}

static void test_move_when_the_only_replica_is_refused(void **state)
{
    (void)state;
    deploy("alone", 1);
    AUTO_FREE char *node = NULL;
    AUTO_FREE char *pod = first_pod("alone", &node);
    const struct placement p = {.cycle = 1,
                                .seq = 3,
                                .service = "shop/alone",
                                .instance = pod,
                                .source = node,
                                .target = another_node(node)};
    check_refused(&p, ERR_CONFLICT, "1 of 1 replicas ready");
}

static void test_move_when_on_another_host_by_now_is_refused(void **state)
{
    (void)state;
    deploy("cart", 3);
    AUTO_FREE char *node = NULL;
    AUTO_FREE char *pod = first_pod("cart", &node);
    const struct placement p = {.cycle = 1,
                                .seq = 4,
                                .service = "shop/cart",
                                .instance = pod,
                                .source = another_node(node),
                                .target = "fake-1"};
    check_refused(&p, ERR_CONFLICT, "by now");
}

static void test_move_when_the_namespace_is_not_opted_in_is_refused(void **state)
{
    (void)state;
    deploy("cart", 3);
    DO(NULL, "label", "ns", "shop", "remap/replica-");
    AUTO_FREE char *node = NULL;
    AUTO_FREE char *pod = first_pod("cart", &node);
    const struct placement p = {.cycle = 1,
                                .seq = 5,
                                .service = "shop/cart",
                                .instance = pod,
                                .source = node,
                                .target = another_node(node)};
    check_refused(&p, ERR_CONFLICT, "namespace shop has no label remap/replica=enabled");
    DO(NULL, "label", "ns", "shop", "remap/replica=enabled");
}

static void test_move_when_the_pod_is_gone_is_not_found(void **state)
{
    (void)state;
    deploy("cart", 3);
    const struct placement p = {.cycle = 1,
                                .seq = 6,
                                .service = "shop/cart",
                                .instance = "shop/cart-gone",
                                .source = "fake-1",
                                .target = "fake-2"};
    struct err err = ERR_INIT;
    char *saved = NULL;
    assert_int_equal(replica->place(orchestrator, &p, &saved, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

/* The webhook fails open: pods are made as ever, and the move is told as missed. */
static void test_move_when_the_webhook_is_away_is_missed_and_nobody_waits(void **state)
{
    (void)state;
    deploy("open", 2);
    AUTO_FREE char *node = NULL;
    AUTO_FREE char *pod = first_pod("open", &node);
    AUTO_FREE char *saved = NULL;
    const struct placement p = {.cycle = 1,
                                .seq = 7,
                                .service = "shop/open",
                                .instance = pod,
                                .source = node,
                                .target = another_node(node)};
    struct settle_report report;
    kept_unlisten(kept);
    loop_timer_cancel(stage.loop, kept->timer); /* or it would listen again */
    place(&p, &saved);
    assert_int_equal(wait_settled(&p, &report), SETTLE_MISSED);
    assert_non_null(strstr(report.detail, "without asking us"));
}

/* --- the executor around it --- */

static const char webhook[] =
    "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n"
    "metadata: {name: remap}\nwebhooks:\n- name: pods.remap.admission\n"
    "  admissionReviewVersions: [v1]\n  sideEffects: NoneOnDryRun\n  failurePolicy: Ignore\n"
    "  timeoutSeconds: 30\n  reinvocationPolicy: Never\n"
    "  namespaceSelector: {matchLabels: {remap/replica: enabled}}\n"
    "  rules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [pods],"
    " scope: Namespaced}]\n"
    "  clientConfig: {url: \"https://127.0.0.1:%d" ADMISSION_PATH "\", caBundle: \"%s\"}\n";

static int run(const char *command)
{
    return system(command) == 0 ? 0 : -1;
}

static void make_certificate(void)
{
    assert_non_null(mkdtemp(folder));
    AUTO_FREE char *command = mem_printf(
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout %s/tls.key -out %s/tls.crt -days 2"
        " -subj /CN=remap -addext subjectAltName=IP:127.0.0.1 2>/dev/null &&"
        " base64 -w0 %s/tls.crt >%s/bundle",
        folder, folder, folder, folder);
    assert_int_equal(run(command), 0);
}

static void keep_up(void)
{
    AUTO_FREE char *cert = mem_printf("%s/tls.crt", folder);
    AUTO_FREE char *key = mem_printf("%s/tls.key", folder);
    AUTO_FREE char *bundle_file = mem_printf("%s/bundle", folder);
    AUTO_BUF struct buf bundle = BUF_INIT;
    const struct option options[] = {{"kubeconfig", cluster->kubeconfig},
                                     {"listen", "127.0.0.1:0"},
                                     {"tls_cert_file", cert},
                                     {"tls_key_file", key}};
    const struct source source = {"replicas", "kubernetes-replica", options, ARRAY_LEN(options)};
    struct err err = ERR_INIT;
    stage = (struct stage){.loop = loop_new(), .options = {.filter = true, .lifeline = -1}};
    http_idle(turn, NULL);
    if (kept_join(&stage, replica, &source, &kept, &err) < 0 || kept_await(kept, &err) < 0 ||
        replica->open(&source, &orchestrator, &err) < 0)
        fail_msg("%s", err.text);
    replica->attach(orchestrator, kept_ctx(kept));
    assert_non_null(kept->listener);
    assert_int_equal(file_read(bundle_file, 1 << 20, &bundle, &err), 0);
    AUTO_FREE char *text = mem_printf(webhook, listener_port(kept->listener), bundle.data);
    assert_true(kube_cluster_namespace(cluster, "shop"));
    DO(NULL, "label", "ns", "shop", "remap/replica=enabled");
    DO(text, "apply", "-f", "-");
    /* The API server learns of webhooks by watch: from now on it asks us. */
    for (int64_t until = clock_mono_ms() + READY_MS; clock_mono_ms() < until;) {
        const struct kube_keeper *keeper = kept_ctx(kept);
        struct wishes *wishes = kube_keeper_wishes((struct kube_keeper *)(uintptr_t)keeper);
        DO(NULL, "-nshop", "run", "probe", "--image=c", "--dry-run=server");
        if (wishes_asked(wishes) > 0)
            return;
    }
    fail_msg("the API server does not ask");
}

static void take_down(void)
{
    AUTO_FREE char *command = mem_printf("rm -rf %s", folder);
    replica->close(orchestrator);
    kept_leave(kept);
    http_idle(NULL, NULL);
    loop_free(stage.loop);
    run(command);
}

static int setup(void **state)
{
    (void)state;
    make_certificate();
    keep_up();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    take_down();
    return 0;
}

int main(void)
{
    const struct kube_cluster_options options = {.fake = 4};
    cluster = kube_cluster_new(&options);
    if (!cluster)
        return 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_move_when_room_lands_and_nothing_else_changes),
        cmocka_unit_test(test_move_when_the_budget_lets_none_go_is_refused),
        cmocka_unit_test(test_move_when_the_only_replica_is_refused),
        cmocka_unit_test(test_move_when_on_another_host_by_now_is_refused),
        cmocka_unit_test(test_move_when_the_namespace_is_not_opted_in_is_refused),
        cmocka_unit_test(test_move_when_the_pod_is_gone_is_not_found),
        cmocka_unit_test(test_move_when_the_webhook_is_away_is_missed_and_nobody_waits),
    };
    int failed = cmocka_run_group_tests(tests, setup, teardown);
    kube_cluster_free(cluster);
    return failed;
}
