/* test_inspection.c - the inspection of a real Kubernetes: lists once, watches from there on, tells
 * new revisions, does without what it may not read, survives its API server. */
#include "tests/support/kube_cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/api.h"
#include "adapters/kubernetes/feeds.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/kubernetes.h"
#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/json.h"

#define WAIT_MS 300000 /* things take some ms on a quiet machine */

static struct kube_cluster *cluster;

static const char shop[] =
    "apiVersion: apps/v1\n"
    "kind: Deployment\n"
    "metadata: {name: cart, namespace: shop}\n"
    "spec:\n"
    "  replicas: 2\n"
    "  selector: {matchLabels: {app: cart}}\n"
    "  template:\n"
    "    metadata: {labels: {app: cart}}\n"
    "    spec: {containers: [{name: c, image: cart:1, resources: {requests: {cpu: 100m}}}]}\n";

static const char *const spaces[] = {"shop", NULL}, *const all[] = {NULL};
static const struct app_scope app = {"shop", spaces, all};

static int setup(void **state)
{
    (void)state;
    static const char *const forgetful[] = {
        "--flag", "kube-apiserver=--etcd-compaction-interval=2s", NULL};
    const struct kube_cluster_options options = {.fake = 3, .more = forgetful};
    cluster = kube_cluster_new(&options);
    if (!cluster)
        exit(0);
    return kube_cluster_namespace(cluster, "shop") &&
                   KUBECTL(cluster, shop, NULL, "apply", "-f", "-") &&
                   KUBECTL(cluster, NULL, NULL, "-nshop", "rollout", "status", "deployment/cart",
                           "--timeout=300s")
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    kube_cluster_free(cluster);
    return 0;
}

static struct source admin(struct option options[3])
{
    options[0] = (struct option){"kubeconfig", cluster->kubeconfig};
    options[1] = (struct option){"min_node_age", "0s"};
    options[2] = (struct option){"soak", "0s"};
    return (struct source){"kubernetes", "kubernetes", options, 3};
}

static void *open_cluster(const struct source *source)
{
    void *ctx;
    struct err err = ERR_INIT;
    if (kubernetes_cluster.open(source, &ctx, &err))
        fail_msg("%s", err.text);
    return ctx;
}

/* One inspection; NULL and *err where it fails. */
static struct model *inspect(void *ctx, struct buf *notes, struct err *err)
{
    struct inspection in = {.model = model_new()};
    int rc = kubernetes_cluster.inspect(ctx, &app, &in, err);
    for (size_t i = 0; i < in.n_notes && notes; i++)
        buf_printf(notes, "%s: %s\n", in.notes[i].kind, in.notes[i].text);
    inspection_wipe(&in);
    if (rc) {
        model_free(in.model);
        return NULL;
    }
    if (model_check(in.model, err))
        fail_msg("%s", err->text);
    return in.model;
}

static size_t placed(const struct model *model)
{
    size_t n = 0;
    for (size_t i = 0; i < model->n_instances; i++)
        n += model->instances[i].host >= 0;
    return n;
}

/* Inspects until so many instances are placed, as long as it takes. */
static void wait_placed(void *ctx, size_t wanted)
{
    int64_t until = clock_mono_ms() + WAIT_MS;
    for (size_t n = 0; n != wanted;) {
        struct err err = ERR_INIT;
        AUTO(model) struct model *model = inspect(ctx, NULL, &err);
        n = model ? placed(model) : 0;
        if (n != wanted && clock_mono_ms() > until)
            fail_msg("%zu of %zu instances are placed; %s", n, wanted, err.text);
    }
}

static bool scale(const char *replicas)
{
    AUTO_FREE char *option = mem_printf("--replicas=%s", replicas);
    return KUBECTL(cluster, NULL, NULL, "-nshop", "scale", "deployment/cart", option);
}

static void test_cluster_when_inspected_then_hosts_services_and_pods(void **state)
{
    (void)state;
    struct option options[3];
    const struct source source = admin(options);
    void *ctx = open_cluster(&source);
    wait_placed(ctx, 2);
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = inspect(ctx, NULL, &err);
    assert_int_equal(model->n_hosts, 3);
    assert_true(model->hosts[0].schedulable);
    assert_string_equal(model->hosts[0].zone, "zone-1");
    assert_int_equal(model->hosts[0].cpu_cap_millis, 4000);
    int cart = model_service(model, "shop/cart");
    assert_true(cart >= 0);
    assert_int_equal(model->instances[0].service, cart);
    assert_int_equal(model->instances[0].cpu_request_millis, 100);
    if (model->instances[0].pinned_why)
        fail_msg("%s", model->instances[0].pinned_why);
    kubernetes_cluster.close(ctx);
}

static struct feeds *feeds_of(struct kube_api **api, struct kube_objects **objects)
{
    struct option options[3];
    const struct source source = admin(options);
    struct err err = ERR_INIT;
    if (kube_api_open(&source, api, &err))
        fail_msg("%s", err.text);
    *objects = kube_objects_new();
    return feeds_new(*api, *objects);
}

static void update(struct feeds *feeds)
{
    struct err err = ERR_INIT;
    if (feeds_update(feeds, spaces, &err))
        fail_msg("%s", err.text);
}

static void test_feeds_when_updated_again_then_nothing_is_listed_again(void **state)
{
    (void)state;
    AUTO(kube_api) struct kube_api *api = NULL;
    AUTO(kube_objects) struct kube_objects *objects = NULL;
    AUTO(feeds) struct feeds *feeds = feeds_of(&api, &objects);
    update(feeds);
    int64_t lists = feeds_count(feeds).lists;
    assert_true(lists > 5);
    assert_true(scale("4"));
    int64_t until = clock_mono_ms() + WAIT_MS;
    for (size_t n = 0; n != 4 && clock_mono_ms() < until;) {
        update(feeds);
        n = 0;
        for (size_t i = 0; i < kube_places(objects, KUBE_POD); i++) {
            const struct kube_pod *pod = kube_at(objects, KUBE_POD, i);
            n += pod && pod->meta.space && strcmp(pod->meta.space, "shop") == 0 && !pod->meta.ending;
        }
    }
    assert_true(clock_mono_ms() < until);
    assert_true(feeds_count(feeds).lines > 0);
    assert_int_equal(feeds_count(feeds).lists, lists);
}

static void test_cluster_when_scaled_then_watches_bring_it(void **state)
{
    (void)state;
    struct option options[3];
    const struct source source = admin(options);
    void *ctx = open_cluster(&source);
    assert_true(scale("2"));
    wait_placed(ctx, 2);
    assert_true(scale("5"));
    wait_placed(ctx, 5);
    assert_true(scale("2"));
    wait_placed(ctx, 2);
    kubernetes_cluster.close(ctx);
}

struct heard {
    int n;
    char service[100], text[200], delivery[200];
};

static void on_released(void *arg, const struct revision *revision)
{
    struct heard *heard = arg;
    heard->n++;
    snprintf(heard->service, sizeof heard->service, "%s", revision->service);
    snprintf(heard->text, sizeof heard->text, "%s", revision->text);
    snprintf(heard->delivery, sizeof heard->delivery, "%s", revision->delivery);
}

/* Until `n` were heard, or for a while. */
static void tend_until(void *ctx, struct heard *heard, int n, int64_t ms)
{
    const struct tidings tidings = {on_released, heard};
    for (int64_t until = clock_mono_ms() + ms; heard->n < n && clock_mono_ms() < until;) {
        kubernetes_cluster.tend(ctx, &tidings);
        clock_sleep_ms(5);
    }
}

static void test_revision_when_template_is_changed_then_told_once(void **state)
{
    (void)state;
    struct option options[3];
    const struct source source = admin(options);
    struct heard heard = {0};
    void *ctx = open_cluster(&source);
    wait_placed(ctx, 2);
    tend_until(ctx, &heard, 1, 200); /* the watches are opened; nothing is news */
    assert_int_equal(heard.n, 0);
    /* Only affinity, as we write it: no release. */
    assert_true(KUBECTL(cluster, NULL, NULL, "-nshop", "patch", "deployment/cart", "-p",
                        "{\"spec\":{\"template\":{\"spec\":{\"affinity\":{\"nodeAffinity\":{"
                        "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":100,"
                        "\"preference\":{\"matchExpressions\":[{\"key\":\"kubernetes.io/hostname\","
                        "\"operator\":\"In\",\"values\":[\"fake-1\"]}]}}]}}}}}}"));
    assert_true(KUBECTL(cluster, NULL, NULL, "-nshop", "set", "image", "deployment/cart",
                        "c=cart:2"));
    tend_until(ctx, &heard, 1, WAIT_MS);
    assert_int_equal(heard.n, 1);
    assert_string_equal(heard.service, "shop/cart");
    assert_non_null(strstr(heard.text, "kubectl"));
    tend_until(ctx, &heard, 2, 300); /* the status of its rollout is none */
    assert_int_equal(heard.n, 1);
    kubernetes_cluster.close(ctx);
}

/* The first pinned_why of a service; NULL: none. Caller frees. */
static char *pinned_why(const struct source *source, const char *service)
{
    struct err err = ERR_INIT;
    void *ctx = open_cluster(source);
    AUTO(model) struct model *model = inspect(ctx, NULL, &err);
    char *why = NULL;
    if (!model)
        fail_msg("%s", err.text);
    int wanted = model_service(model, service);
    for (size_t i = 0; i < model->n_instances && !why; i++)
        if (model->instances[i].service == wanted)
            why = mem_strdup(model->instances[i].pinned_why);
    kubernetes_cluster.close(ctx);
    return why;
}

static void test_workload_when_it_may_not_move_then_pinned_with_the_reason(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *pod, *why; /* why NULL: it may move */
    } cases[] = {
        {"", "", NULL},
        {"", ", affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
             "[{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}",
         "affinity owned by kubectl-client-side-apply"},
        {", strategy: {type: Recreate}", "", "its strategy stops pods"},
        {", revisionHistoryLimit: 1", "", "revisionHistoryLimit 1"},
        {"", ", volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]",
         "volume claim data can be used on one node at a time"},
    };
    struct option options[3];
    const struct source source = admin(options);
    int64_t until = clock_mono_ms() + WAIT_MS;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *manifest = mem_printf(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: case%zu, namespace: shop}\n"
            "spec:\n  {replicas: 1%s, selector: {matchLabels: {app: case%zu}}, template: "
            "{metadata: {labels: {app: case%zu}}, spec: {nodeName: fake-1, containers: "
            "[{name: c, image: x}]%s}}}\n",
            i, cases[i].spec, i, i, cases[i].pod);
        AUTO_FREE char *service = mem_printf("shop/case%zu", i);
        AUTO_FREE char *name = mem_printf("deployment/case%zu", i);
        AUTO_FREE char *why = NULL;
        assert_true(KUBECTL(cluster, manifest, NULL, "apply", "-f", "-"));
        AUTO_FREE char *label = mem_printf("-lapp=case%zu", i);
        assert_true(KUBECTL(cluster, NULL, NULL, "-nshop", "wait", "pod", label, "--for=create",
                            "--timeout=300s"));
        /* Until the server's caches have it all. */
        while (clock_mono_ms() < until) {
            free(steal(why));
            why = pinned_why(&source, service);
            if (cases[i].why ? why && strstr(why, cases[i].why) : !why)
                break;
        }
        if (!cases[i].why && why)
            fail_msg("case %zu: %s", i, why);
        else if (cases[i].why && (!why || !strstr(why, cases[i].why)))
            fail_msg("case %zu: \"%s\" is not \"%s\"", i, why ? why : "(may move)", cases[i].why);
        assert_true(KUBECTL(cluster, NULL, NULL, "-nshop", "delete", name));
    }
}

static void test_workload_when_released_lately_then_pinned_for_the_soak(void **state)
{
    (void)state;
    struct option options[3];
    const struct source source = admin(options);
    options[2].value = "1h";
    AUTO_FREE char *why = pinned_why(&source, "shop/cart");
    if (!why)
        fail_msg("it may move");
    assert_non_null(strstr(why, "changed its template at"));
    assert_non_null(strstr(why, "quiet for 1h"));
}

/* Until the API server knows what the account was given. */
static void until_may_list(const char *name, const char *what)
{
    AUTO_FREE char *account = mem_printf("--as=system:serviceaccount:shop:%s", name);
    int64_t until = clock_mono_ms() + WAIT_MS;
    while (!KUBECTL(cluster, NULL, NULL, "-nshop", "auth", "can-i", "list", what, account))
        if (clock_mono_ms() > until)
            fail_msg("%s may not list %s", name, what);
}

/* A token of its own with these rules of a role. */
static struct source reader(const char *name, const char *rules, bool cluster_wide, char path[300],
                            struct option options[3])
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf token = BUF_INIT;
    const char *kind = cluster_wide ? "ClusterRole" : "Role";
    AUTO_FREE char *manifest = mem_printf(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: shop}\n---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\n"
        "metadata: {name: %s, namespace: shop}\nrules: %s\n---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: %sBinding\n"
        "metadata: {name: %s, namespace: shop}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}\n"
        "subjects: [{kind: ServiceAccount, name: %s, namespace: shop}]\n",
        name, kind, name, rules, kind, name, kind, name, name);
    assert_true(KUBECTL(cluster, manifest, NULL, "apply", "-f", "-"));
    assert_true(KUBECTL(cluster, NULL, &token, "-nshop", "create", "token", name));
    token.data[strcspn(token.data, "\n")] = 0;
    if (strstr(rules, "nodes") && cluster_wide)
        until_may_list(name, "nodes");
    if (strstr(rules, "pods"))
        until_may_list(name, "pods");
    AUTO_FREE char *config = mem_printf(
        "clusters: [{name: c, cluster: {server: '%s', certificate-authority: %s}}]\n"
        "users: [{name: u, user: {token: %s}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
        cluster->url, cluster->ca_file, token.data);
    snprintf(path, 300, "%s/%s.config", cluster->folder, name);
    if (file_write_atomic(path, config, strlen(config), 0600, &err))
        fail_msg("%s", err.text);
    options[0] = (struct option){"kubeconfig", path};
    options[1] = (struct option){"min_node_age", "0s"};
    options[2] = (struct option){"soak", "0s"};
    return (struct source){name, "kubernetes", options, 3};
}

#define READ ", verbs: [get, list, watch]}"
#define ESSENTIALS                                                                                 \
    "{apiGroups: [''], resources: [nodes, pods]" READ                                              \
    ", {apiGroups: [apps], resources: [deployments, replicasets]" READ

static void test_account_when_it_may_not_read_budgets_then_the_rest_goes_on(void **state)
{
    (void)state;
    char path[300];
    struct option options[3];
    struct err err = ERR_INIT;
    AUTO_BUF struct buf notes = BUF_INIT;
    const struct source source = reader("few", "[" ESSENTIALS "]", true, path, options);
    void *ctx = open_cluster(&source);
    AUTO(model) struct model *model = inspect(ctx, &notes, &err);
    if (!model)
        fail_msg("%s", err.text);
    assert_true(placed(model) >= 2);
    assert_non_null(strstr(notes.data, "poddisruptionbudgets may not be read: disruption budgets"));
    assert_null(strstr(notes.data, "daemonsets"));
    kubernetes_cluster.close(ctx);
}

static void test_account_when_it_may_read_one_namespace_then_that_is_seen(void **state)
{
    (void)state;
    char nodes_path[300], path[300];
    struct option ignored[3], options[3];
    struct err err = ERR_INIT;
    AUTO_BUF struct buf notes = BUF_INIT;
    reader("narrow", "[{apiGroups: [''], resources: [nodes]" READ "]", true, nodes_path, ignored);
    const struct source source = reader("narrow", "[" ESSENTIALS "]", false, path, options);
    void *ctx = open_cluster(&source);
    AUTO(model) struct model *model = inspect(ctx, &notes, &err);
    if (!model)
        fail_msg("%s", err.text);
    assert_int_equal(placed(model), 2);
    assert_non_null(strstr(notes.data, "pods of other namespaces may not be read"));
    kubernetes_cluster.close(ctx);
}

static void test_account_when_it_may_read_nothing_then_refused(void **state)
{
    (void)state;
    char path[300];
    struct option options[3];
    struct err err = ERR_INIT;
    const struct source source = reader("blind", "[]", true, path, options);
    void *ctx = open_cluster(&source);
    assert_null(inspect(ctx, NULL, &err));
    assert_int_equal(err.kind, ERR_REFUSED);
    kubernetes_cluster.close(ctx);
}

static void test_server_when_certificate_is_of_another_authority_then_unreachable(void **state)
{
    (void)state;
    struct option options[3];
    struct err err = ERR_INIT;
    char path[300];
    AUTO_FREE char *config = mem_printf(
        "clusters: [{name: c, cluster: {server: '%s'}}]\nusers: [{name: u, user: {token: t}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
        cluster->url);
    snprintf(path, sizeof path, "%s/strange.config", cluster->folder);
    assert_int_equal(file_write_atomic(path, config, strlen(config), 0600, &err), 0);
    struct source source = admin(options);
    options[0].value = path;
    void *ctx = open_cluster(&source);
    assert_null(inspect(ctx, NULL, &err));
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_non_null(strstr(err.text, "certificate"));
    kubernetes_cluster.close(ctx);
}

static void test_kubeconfig_when_token_is_renewed_then_read_again(void **state)
{
    (void)state;
    char path[300];
    struct option options[3];
    struct err err = ERR_INIT;
    AUTO_BUF struct buf good = BUF_INIT;
    const struct source source = reader("renewed", "[" ESSENTIALS "]", true, path, options);
    assert_int_equal(file_read(path, 100000, &good, &err), 0);
    AUTO_FREE char *bad = mem_strdup(good.data);
    char *token = strstr(bad, "token: ");
    memset(token + 7, 'x', strcspn(token + 7, "}"));
    assert_int_equal(file_write_atomic(path, bad, strlen(bad), 0600, &err), 0);
    void *ctx = open_cluster(&source);
    assert_null(inspect(ctx, NULL, &err));
    assert_int_equal(err.kind, ERR_REFUSED); /* 401 */
    assert_int_equal(file_write_atomic(path, good.data, good.size, 0600, &err), 0);
    AUTO(model) struct model *model = inspect(ctx, NULL, &err);
    if (!model)
        fail_msg("%s", err.text);
    kubernetes_cluster.close(ctx);
}

static void test_cluster_when_its_server_restarts_then_watched_again(void **state)
{
    (void)state;
    struct option options[3];
    const struct source source = admin(options);
    struct err err = ERR_INIT;
    void *ctx = open_cluster(&source);
    wait_placed(ctx, 2);
    model_free(inspect(ctx, NULL, &err)); /* the watches are open */
    assert_true(kube_cluster_stop(cluster, "kube-apiserver"));
    assert_null(inspect(ctx, NULL, &err));
    assert_int_equal(err.kind, ERR_UNREACHABLE);
    assert_true(kube_cluster_start(cluster, "kube-apiserver"));
    assert_true(scale("3"));
    wait_placed(ctx, 3);
    assert_true(scale("2"));
    wait_placed(ctx, 2);
    kubernetes_cluster.close(ctx);
}

static void apply(const char *manifest)
{
    assert_true(KUBECTL(cluster, manifest, NULL, "apply", "-f", "-"));
}

static void test_check_when_others_move_pods_too_then_told(void **state)
{
    (void)state;
    struct option options[3];
    const struct source source = admin(options);
    struct source_report report = {.newest_ms = -1};
    struct err err = ERR_INIT;
    apply("apiVersion: batch/v1\nkind: CronJob\n"
          "metadata: {name: descheduler, namespace: kube-system}\n"
          "spec: {schedule: '0 0 1 1 *', suspend: true, jobTemplate: {spec: {template: {spec: "
          "{restartPolicy: Never, containers: [{name: c, image: x}]}}}}}\n");
    apply("apiVersion: v1\nkind: ConfigMap\n"
          "metadata: {name: descheduler-policy-configmap, namespace: kube-system}\n"
          "data: {policy.yaml: 'RemoveDuplicates RemovePodsViolatingNodeAffinity "
          "preferredDuringSchedulingIgnoredDuringExecution'}\n");
    apply("apiVersion: v1\nkind: ConfigMap\n"
          "metadata: {name: cluster-autoscaler-status, namespace: kube-system}\n");
    apply("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
          "metadata: {name: nodepools.karpenter.sh, annotations: "
          "{api-approved.kubernetes.io: 'https://example.org'}}\n"
          "spec: {group: karpenter.sh, scope: Cluster, names: {plural: nodepools, kind: NodePool}, "
          "versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: "
          "{type: object}}}]}\n");
    assert_true(KUBECTL(cluster, NULL, NULL, "wait", "crd/nodepools.karpenter.sh",
                        "--for=condition=Established", "--timeout=300s"));
    void *ctx = open_cluster(&source);
    int64_t until = clock_mono_ms() + WAIT_MS;
    do { /* the server tells of new resources when it gets round to it */
        report = (struct source_report){.newest_ms = -1};
        if (kubernetes_cluster.check(ctx, &app, &report, &err))
            fail_msg("%s", err.text);
    } while (!strstr(report.seen, "Karpenter: ") && clock_mono_ms() < until);
    assert_true(report.reachable);
    assert_memory_equal(report.version, "v1.", 3);
    assert_non_null(strstr(report.seen, "3 nodes, "));
    assert_non_null(strstr(report.seen, "descheduler: RemoveDuplicates, "
                                        "RemovePodsViolatingNodeAffinity of preferred terms"));
    assert_non_null(strstr(report.seen, "Karpenter: "));
    assert_non_null(strstr(report.seen, "Cluster Autoscaler: "));
    assert_null(strstr(report.seen, "VerticalPodAutoscaler"));
    kubernetes_cluster.close(ctx);
}

static int keep_token(void *ctx, const json_t *list, bool again, struct err *err)
{
    int *pages = ctx;
    (void)list;
    (void)err;
    *pages = again ? 1 : *pages + 1;
    return 0;
}

static void test_list_when_paged_then_whole(void **state)
{
    (void)state;
    struct option options[3];
    const struct source source = admin(options);
    struct err err = ERR_INIT;
    struct kube_status status;
    AUTO(kube_api) struct kube_api *api = NULL;
    AUTO_FREE char *version = NULL;
    int pages = 0;
    assert_int_equal(kube_api_open(&source, &api, &err), 0);
    if (kube_api_list(api, "/api/v1/nodes", keep_token, &pages, &version, &status, &err))
        fail_msg("%s", err.text);
    assert_int_equal(pages, 1);
    assert_non_null(version);
    AUTO_JSON json_t *none = NULL;
    assert_int_equal(kube_api_get(api, "/api/v1/namespaces/shop/pods/none", &none, &status, &err),
                     -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_string_equal(status.reason, "NotFound");
}

/* The first page waits until the API server has forgotten what the rest of the list would be. */
struct slow {
    struct kube_api *api;
    int began;
    size_t items;
    bool forgotten;
};

static int wait_for_oblivion(void *ctx, const json_t *list, bool again, struct err *err)
{
    struct slow *slow = ctx;
    (void)err;
    if (again) {
        slow->began++;
        slow->items = 0;
    }
    slow->items += json_array_size(kube_get(list, "items"));
    const char *next = kube_text(kube_get(list, "metadata"), "continue");
    int64_t until = clock_mono_ms() + WAIT_MS;
    while (next && !slow->forgotten && clock_mono_ms() < until) {
        AUTO_FREE char *path =
            mem_printf("/api/v1/namespaces/shop/configmaps?limit=500&continue=%s", next);
        AUTO_JSON json_t *page = NULL;
        struct kube_status status;
        struct err ignored = ERR_INIT;
        kube_api_get(slow->api, path, &page, &status, &ignored);
        slow->forgotten = status.code == 410;
    }
    return 0;
}

static void test_list_when_the_server_forgets_its_token_then_begun_anew(void **state)
{
    (void)state;
    struct option options[3];
    const struct source source = admin(options);
    struct err err = ERR_INIT;
    AUTO(kube_api) struct kube_api *api = NULL;
    assert_int_equal(kube_api_open(&source, &api, &err), 0);
    for (int i = 0; i < 600; i++) {
        AUTO_FREE char *name = mem_printf("m-%d", i);
        AUTO_JSON json_t *map = json_pack("{s:{s:s}}", "metadata", "name", name);
        if (kube_api_send(api, "POST", "/api/v1/namespaces/shop/configmaps", "application/json",
                          map, NULL, NULL, &err))
            fail_msg("%s", err.text);
    }
    struct slow slow = {.api = api};
    if (kube_api_list(api, "/api/v1/namespaces/shop/configmaps", wait_for_oblivion, &slow, NULL,
                      NULL, &err))
        fail_msg("%s", err.text);
    assert_true(slow.forgotten);
    assert_true(slow.began >= 2); /* a slow machine may be forgotten once more */
    assert_true(slow.items >= 600);
}

static void test_send_when_object_was_changed_then_conflict(void **state)
{
    (void)state;
    struct option options[3];
    const struct source source = admin(options);
    struct err err = ERR_INIT;
    struct kube_status status;
    AUTO(kube_api) struct kube_api *api = NULL;
    AUTO_JSON json_t *body =
        json_pack("{s:{s:s,s:{s:s}}}", "metadata", "resourceVersion", "1", "annotations", "a", "b");
    assert_int_equal(kube_api_open(&source, &api, &err), 0);
    assert_int_equal(kube_api_send(api, "PATCH", "/apis/apps/v1/namespaces/shop/deployments/cart",
                                   "application/merge-patch+json", body, NULL, &status, &err),
                     -1);
    assert_int_equal(err.kind, ERR_CONFLICT);
    assert_int_equal(status.code, 409);
    assert_string_equal(status.reason, "Conflict");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cluster_when_inspected_then_hosts_services_and_pods),
        cmocka_unit_test(test_workload_when_released_lately_then_pinned_for_the_soak),
        cmocka_unit_test(test_feeds_when_updated_again_then_nothing_is_listed_again),
        cmocka_unit_test(test_cluster_when_scaled_then_watches_bring_it),
        cmocka_unit_test(test_revision_when_template_is_changed_then_told_once),
        cmocka_unit_test(test_workload_when_it_may_not_move_then_pinned_with_the_reason),
        cmocka_unit_test(test_account_when_it_may_not_read_budgets_then_the_rest_goes_on),
        cmocka_unit_test(test_account_when_it_may_read_one_namespace_then_that_is_seen),
        cmocka_unit_test(test_account_when_it_may_read_nothing_then_refused),
        cmocka_unit_test(test_server_when_certificate_is_of_another_authority_then_unreachable),
        cmocka_unit_test(test_kubeconfig_when_token_is_renewed_then_read_again),
        cmocka_unit_test(test_check_when_others_move_pods_too_then_told),
        cmocka_unit_test(test_list_when_paged_then_whole),
        cmocka_unit_test(test_list_when_the_server_forgets_its_token_then_begun_anew),
        cmocka_unit_test(test_send_when_object_was_changed_then_conflict),
        cmocka_unit_test(test_cluster_when_its_server_restarts_then_watched_again),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
