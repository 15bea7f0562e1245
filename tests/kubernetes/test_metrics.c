/* test_metrics.c - usage from a real metrics-server, and what is said where there is none. */
#include "tests/support/kube_cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/identity.h"
#include "adapters/kubernetes/kubernetes.h"
#include "model/base/clock.h"

#define WAIT_MS 300000 /* the first values come after two of its rounds */

static struct kube_cluster *cluster;

static const char shop[] =
    "apiVersion: apps/v1\n"
    "kind: Deployment\n"
    "metadata: {name: cart, namespace: shop}\n"
    "spec:\n"
    "  replicas: 2\n"
    "  selector: {matchLabels: {app: cart}}\n"
    "  template:\n"
    "    metadata:\n"
    "      labels: {app: cart}\n"
    "      annotations: {kwok.x-k8s.io/usage-cpu: 250m, kwok.x-k8s.io/usage-memory: 64Mi}\n"
    "    spec: {containers: [{name: c, image: cart:1}]}\n";

static const char *const spaces[] = {"shop", NULL}, *const all[] = {NULL};
static const struct app_scope app = {"shop", spaces, all};

static int setup(void **state)
{
    (void)state;
    const struct kube_cluster_options options = {.fake = 2, .metrics = true};
    cluster = kube_cluster_new(&options);
    if (!cluster)
        exit(0);
    return kube_cluster_namespace(cluster, "shop") && KUBECTL(cluster, shop, NULL, "apply", "-f", "-")
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    kube_cluster_free(cluster);
    return 0;
}

/* One inspection, cluster and metrics. NULL and *err where it fails. */
static struct model *inspect(void *metrics, struct buf *notes, struct err *err)
{
    const struct option options[] = {{"kubeconfig", cluster->kubeconfig}, {"min_node_age", "1ms"}};
    const struct source source = {"kubernetes", "kubernetes", options, 2};
    AUTO(model) struct model *model = model_new();
    AUTO(identity) struct identity *identity = identity_new(model);
    struct inspection in = {.model = model, .identity = identity};
    const int64_t now = clock_wall_ms();
    const struct window window = {now - 600000, now};
    void *ctx;
    int rc = kubernetes_cluster.open(&source, &ctx, err);
    if (rc == 0) {
        rc = kubernetes_cluster.inspect(ctx, &app, &in, err) ||
             kubernetes_metrics.measure(metrics, &app, &window, &in, err);
        kubernetes_cluster.close(ctx);
    }
    for (size_t i = 0; i < in.n_notes && notes; i++)
        buf_printf(notes, "%s: %s\n", in.notes[i].kind, in.notes[i].text);
    inspection_wipe(&in);
    return rc ? NULL : steal(model);
}

static void *open_metrics(void)
{
    const struct option options[] = {{"kubeconfig", cluster->kubeconfig}};
    const struct source source = {"usage", "kubernetes-metrics", options, 1};
    struct err err = ERR_INIT;
    void *ctx;
    if (kubernetes_metrics.open(&source, &ctx, &err))
        fail_msg("%s", err.text);
    return ctx;
}

static bool nearly(int64_t millis)
{
    return millis >= 230 && millis <= 270;
}

static void test_usage_when_metrics_server_runs_then_measured(void **state)
{
    (void)state;
    void *metrics = open_metrics();
    int64_t until = clock_mono_ms() + WAIT_MS;
    bool seen = false;
    while (!seen && clock_mono_ms() < until) {
        struct err err = ERR_INIT;
        AUTO_BUF struct buf notes = BUF_INIT;
        AUTO(model) struct model *model = inspect(metrics, &notes, &err);
        /* kwok's counters go on by fits and starts while the machine is busy. */
        seen = model && model->n_instances == 2 && nearly(model->instances[0].cpu_used_millis) &&
               nearly(model->instances[1].cpu_used_millis);
        if (seen) {
            assert_int_equal(model->instances[0].mem_used_bytes, 64 << 20);
            /* It was not asked before: a short history is told. */
            assert_non_null(strstr(notes.data, "usage: "));
        } else {
            clock_sleep_ms(200);
        }
    }
    assert_true(seen);
    assert_true(kubernetes_metrics.tend(metrics) >= 15000);
    kubernetes_metrics.close(metrics);
}

static void test_usage_when_metrics_server_is_down_then_the_remedy_is_told(void **state)
{
    (void)state;
    void *metrics = open_metrics();
    struct source_report report = {.newest_ms = -1};
    struct err err = ERR_INIT;
    assert_true(kube_cluster_stop(cluster, "metrics-server"));
    int64_t until = clock_mono_ms() + WAIT_MS;
    while ((kubernetes_metrics.check(metrics, &app, &report, &err) == 0 ||
            !strstr(err.text, "v1beta1.metrics.k8s.io")) &&
           clock_mono_ms() < until)
        clock_sleep_ms(200);
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_non_null(strstr(err.text, "v1beta1.metrics.k8s.io"));
    kubernetes_metrics.close(metrics);
}

static void test_usage_when_metrics_are_not_installed_then_the_remedy_is_told(void **state)
{
    (void)state;
    void *metrics = open_metrics();
    struct source_report report = {.newest_ms = -1};
    struct err err = ERR_INIT;
    assert_true(KUBECTL(cluster, NULL, NULL, "delete", "apiservice", "v1beta1.metrics.k8s.io"));
    int64_t until = clock_mono_ms() + WAIT_MS;
    do {
        assert_int_equal(kubernetes_metrics.check(metrics, &app, &report, &err), -1);
    } while (err.kind != ERR_NOT_FOUND && clock_mono_ms() < until);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "install metrics-server"));
    kubernetes_metrics.close(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage_when_metrics_server_runs_then_measured),
        cmocka_unit_test(test_usage_when_metrics_server_is_down_then_the_remedy_is_told),
        cmocka_unit_test(test_usage_when_metrics_are_not_installed_then_the_remedy_is_told),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
