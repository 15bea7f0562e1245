/* kube_shop.c - see kube_shop.h. */
#include "tests/support/kube_shop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/kubernetes.h"
#include "adapters/kubernetes/rollout.h"
#include "model/base/clock.h"
#include "model/base/json.h"

#define CYCLE 1
#define POLL_MS 50

static void must(int rc, const struct err *err)
{
    if (rc == 0)
        return;
    fprintf(stderr, "kube_shop: %s\n", err->text);
    abort();
}

void shop_open(struct shop *shop, struct kube_cluster *cluster, const char *space)
{
    struct err err = ERR_INIT;
    const struct option options[] = {{"kubeconfig", cluster->kubeconfig}};
    const struct source source = {"shop", "kubernetes", options, ARRAY_LEN(options)};
    *shop = (struct shop){.cluster = cluster, .space = space};
    must(kube_api_open(&source, &shop->api, &err), &err);
    if (!kube_cluster_namespace(cluster, space))
        abort();
}

void shop_close(struct shop *shop)
{
    kube_api_close(steal(shop->api));
}

char *shop_manifest(const struct shop *shop, const char *name, int replicas, const char *spec,
                    const char *more)
{
    return mem_printf(
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"%s\","
        "\"namespace\":\"%s\"},\"spec\":{\"replicas\":%d,\"selector\":{\"matchLabels\":{\"app\":"
        "\"%s\"}}%s,\"template\":{\"metadata\":{\"labels\":{\"app\":\"%s\"}},\"spec\":{"
        "\"terminationGracePeriodSeconds\":0,\"containers\":[{\"name\":\"main\",\"image\":\"main\","
        "\"resources\":{\"requests\":{\"cpu\":\"100m\"}}}]%s}}}}\n",
        name, shop->space, replicas, name, spec, name, more);
}

bool shop_apply(const struct shop *shop, const char *manifest, const char *const *arguments)
{
    const char *all[16] = {"apply", "-f", "-"};
    for (size_t i = 0; arguments && arguments[i]; i++)
        all[3 + i] = arguments[i];
    return kube_cluster_kubectl(shop->cluster, manifest, NULL, all);
}

json_t *shop_get(const struct shop *shop, const char *plural, const char *name)
{
    struct err err = ERR_INIT;
    json_t *out = NULL;
    const char *group = strcmp(plural, "pods") == 0 ? "v1" : "apps/v1";
    AUTO_FREE char *path = kube_api_path(group, shop->space, plural, name);
    must(kube_api_get(shop->api, path, &out, NULL, &err), &err);
    return out;
}

bool shop_ready(const struct shop *shop, const char *name)
{
    char why[200];
    for (int64_t until = clock_mono_ms() + SHOP_WAIT_MS; clock_mono_ms() < until;) {
        AUTO_JSON json_t *workload = shop_get(shop, "deployments", name);
        if (rollout_state(workload, why, sizeof why) == ROLLOUT_DONE)
            return true;
        clock_sleep_ms(POLL_MS);
    }
    fprintf(stderr, "%s: %s\n", name, why);
    return false;
}

bool shop_deploy(const struct shop *shop, const char *name, int replicas, const char *more)
{
    AUTO_FREE char *manifest = shop_manifest(shop, name, replicas, "", more);
    return shop_apply(shop, manifest, NULL) && shop_ready(shop, name);
}

char *shop_affinity(const struct shop *shop, const char *name)
{
    AUTO_JSON json_t *workload = shop_get(shop, "deployments", name);
    const json_t *spec = kube_get(kube_path(workload, "spec", "template"), "spec");
    const json_t *affinity = json_object_get(spec, "affinity");
    return affinity ? json_dumps(affinity, JSON_COMPACT) : mem_strdup("absent");
}

int64_t shop_generation(const struct shop *shop, const char *name)
{
    AUTO_JSON json_t *workload = shop_get(shop, "deployments", name);
    return kube_number(kube_get(workload, "metadata"), "generation", -1);
}

static json_t *pods_of(const struct shop *shop, const char *name)
{
    struct err err = ERR_INIT;
    json_t *out = NULL;
    AUTO_FREE char *path = mem_printf("/api/v1/namespaces/%s/pods?labelSelector=app%%3D%s",
                                      shop->space, name);
    must(kube_api_get(shop->api, path, &out, NULL, &err), &err);
    return out;
}

int shop_pods_on(const struct shop *shop, const char *name, const char *node)
{
    AUTO_JSON json_t *list = pods_of(shop, name);
    size_t i;
    const json_t *pod;
    int n = 0;
    json_array_foreach(json_object_get(list, "items"), i, pod)
    {
        const char *on = kube_text(kube_get(pod, "spec"), "nodeName");
        n += on && strcmp(on, node) == 0 && !kube_path(pod, "metadata", "deletionTimestamp");
    }
    return n;
}

char *shop_node_of(const struct shop *shop, const char *name)
{
    AUTO_JSON json_t *list = pods_of(shop, name);
    size_t i;
    const json_t *pod;
    json_array_foreach(json_object_get(list, "items"), i, pod)
        if (!kube_path(pod, "metadata", "deletionTimestamp"))
            return mem_strdup(kube_text(kube_get(pod, "spec"), "nodeName"));
    return NULL;
}

char *shop_other_node(const struct shop *shop, const char *name, int n)
{
    for (int i = 1; i <= n; i++) {
        AUTO_FREE char *node = mem_printf("fake-%d", i);
        if (shop_pods_on(shop, name, node) == 0)
            return steal(node);
    }
    return NULL;
}

/* What the scheduler makes of the pod: 1 a node, -1 none, 0 nothing yet. */
static int verdict_on(const struct shop *shop, const char *name)
{
    AUTO_JSON json_t *pod = shop_get(shop, "pods", name);
    const json_t *conditions = kube_get(kube_get(pod, "status"), "conditions");
    const json_t *condition;
    size_t i;
    if (kube_text(kube_get(pod, "spec"), "nodeName"))
        return 1;
    json_array_foreach(conditions, i, condition)
    {
        const char *reason = kube_text(condition, "reason");
        if (reason && strcmp(reason, "Unschedulable") == 0)
            return -1;
    }
    return 0;
}

bool shop_cordon(const struct shop *shop, const char *node)
{
    AUTO_FREE char *probe = mem_printf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"probe\",\"namespace\":\"%s\"},"
        "\"spec\":{\"terminationGracePeriodSeconds\":0,\"nodeSelector\":{\"kubernetes.io/hostname\":"
        "\"%s\"},\"containers\":[{\"name\":\"c\",\"image\":\"c\"}]}}",
        shop->space, node);
    if (!KUBECTL(shop->cluster, NULL, NULL, "cordon", node))
        return false;
    int64_t until = clock_mono_ms() + SHOP_WAIT_MS;
    for (int verdict = 0; clock_mono_ms() < until;) {
        if (!shop_apply(shop, probe, NULL))
            return false;
        while ((verdict = verdict_on(shop, "probe")) == 0 && clock_mono_ms() < until)
            clock_sleep_ms(POLL_MS);
        if (!KUBECTL(shop->cluster, NULL, NULL, "-n", shop->space, "delete", "pod", "probe"))
            return false;
        if (verdict < 0)
            return true;
    }
    return false;
}

void *shop_orchestrator(const struct shop *shop, const char *const *options)
{
    struct err err = ERR_INIT;
    struct option all[16] = {{"kubeconfig", shop->cluster->kubeconfig},
                             {"soak", "0s"},
                             {"min_node_age", "0s"}};
    size_t n = 3;
    for (; options && options[0]; options += 2) {
        size_t at = 0;
        while (at < n && strcmp(all[at].name, options[0]) != 0)
            at++;
        all[at] = (struct option){options[0], options[1]};
        n += at == n;
    }
    const struct source source = {"shop", "kubernetes", all, n};
    void *ctx = NULL;
    must(source_check(&source, kubernetes_orchestrator.options, &err), &err);
    must(kubernetes_orchestrator.open(&source, &ctx, &err), &err);
    return ctx;
}

int shop_place(void *ctx, const struct shop *shop, int64_t seq, const char *name,
               const char *const *nodes, int64_t each, char **saved, struct err *err)
{
    AUTO_FREE char *service = mem_printf("%s/%s", shop->space, name);
    struct placement_count targets[8];
    struct placement p = {.cycle = CYCLE, .seq = seq, .service = service, .targets = targets};
    for (; nodes[p.n_targets]; p.n_targets++)
        targets[p.n_targets] = (struct placement_count){nodes[p.n_targets], each};
    int64_t until = clock_mono_ms() + SHOP_WAIT_MS;
    int rc = kubernetes_orchestrator.place(ctx, &p, saved, err);
    while (rc && err->kind == ERR_TIMEOUT && clock_mono_ms() < until) { /* as the executor does */
        clock_sleep_ms(POLL_MS);
        *err = (struct err)ERR_INIT;
        rc = kubernetes_orchestrator.place(ctx, &p, saved, err);
    }
    return rc;
}

struct settle_report shop_settle(void *ctx, const struct shop *shop, int64_t seq, const char *name)
{
    AUTO_FREE char *service = mem_printf("%s/%s", shop->space, name);
    const struct placement p = {.cycle = CYCLE, .seq = seq, .service = service};
    struct settle_report report = {.state = SETTLE_WAITING};
    for (int64_t until = clock_mono_ms() + SHOP_WAIT_MS;
         report.state == SETTLE_WAITING && clock_mono_ms() < until;) {
        struct err err = ERR_INIT;
        must(kubernetes_orchestrator.settled(ctx, &p, &report, &err), &err);
        if (report.state == SETTLE_WAITING)
            clock_sleep_ms(POLL_MS);
    }
    return report;
}

int shop_undo(void *ctx, const struct shop *shop, int64_t seq, const char *name, const char *saved,
              struct err *err)
{
    AUTO_FREE char *service = mem_printf("%s/%s", shop->space, name);
    const struct placement p = {.cycle = CYCLE, .seq = seq, .service = service};
    return kubernetes_orchestrator.undo(ctx, &p, saved, err);
}
