/* bench_moves.c - moving services on a real Kubernetes: the executor beside what people do by hand, a
 * shell loop of `kubectl patch` and `kubectl rollout status`, in the same run against the same
 * control plane and fake nodes; and what that control plane takes at the least (bench_moves_floor.h).
 * Prints a table; nothing fails by the clock.
 *
 *     remap-bench-moves [MOVES] [PARALLEL…]      default: 100 moves; 1, 4 and 16 side by side */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/kubernetes.h"
#include "model/affinity.h"
#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/json.h"
#include "model/model_json.h"
#include "model/plan.h"
#include "tests/bench/bench_moves_floor.h"
#include "tests/support/kube_shop.h"

#define NODES 15
#define FLOOR_PARALLEL 16

static void die(const char *what)
{
    fprintf(stderr, "remap-bench-moves: %s\n", what);
    exit(1);
}

static void deploy(const struct shop *shop, int n)
{
    AUTO_BUF struct buf all = BUF_INIT;
    for (int i = 0; i < n; i++) {
        AUTO_FREE char *name = mem_printf("s-%d", i);
        AUTO_FREE char *one = shop_manifest(shop, name, 1, "", "");
        buf_printf(&all, "%s---\n", one);
    }
    if (!shop_apply(shop, all.data, NULL))
        die("kubectl apply failed");
    for (int i = 0; i < n; i++) {
        AUTO_FREE char *name = mem_printf("s-%d", i);
        if (!shop_ready(shop, name))
            die("not ready");
    }
}

/* --- by hand --- */

/* To the next one, as below: so many pods on each node as before. Caller frees. */
static char *next_node(const char *here)
{
    int number = here ? atoi(here + strlen("fake-")) : 0;
    return mem_printf("fake-%d", number % NODES + 1);
}

static int64_t by_hand(const struct shop *shop, int n)
{
    AUTO_FREE char *path = mem_printf("%s/loop.sh", shop->cluster->temp);
    AUTO_BUF struct buf text = BUF_INIT;
    struct err err = ERR_INIT;
    buf_printf(&text, "set -e\nk='%s --kubeconfig %s -n %s'\n", shop->cluster->kubectl,
               shop->cluster->kubeconfig, shop->space);
    for (int i = 0; i < n; i++) {
        AUTO_FREE char *name = mem_printf("s-%d", i);
        AUTO_FREE char *here = shop_node_of(shop, name);
        AUTO_FREE char *node = next_node(here);
        buf_printf(&text,
                   "$k patch deployment %s -p '{\"spec\":{\"template\":{\"spec\":{\"affinity\":{"
                   "\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{"
                   "\"weight\":100,\"preference\":{\"matchExpressions\":[{\"key\":"
                   "\"kubernetes.io/hostname\",\"operator\":\"In\",\"values\":[\"%s\"]}]}}]}}}}}}'"
                   " >/dev/null\n$k rollout status deployment %s >/dev/null\n",
                   name, node, name);
    }
    if (file_write_atomic(path, text.data, text.size, 0600, &err))
        die(err.text);
    AUTO_FREE char *command = mem_printf("bash '%s'", path);
    int64_t start = clock_mono_ms();
    if (system(command) != 0)
        die("the loop failed");
    return clock_mono_ms() - start;
}

/* --- by a client that does nothing else --- */

static int64_t by_floor(const struct shop *shop, int n, int parallel)
{
    AUTO_FREE char **nodes = mem_array((size_t)n + 1, sizeof *nodes);
    for (int i = 0; i < n; i++) {
        AUTO_FREE char *name = mem_printf("s-%d", i);
        AUTO_FREE char *here = shop_node_of(shop, name);
        nodes[i] = next_node(here);
    }
    int64_t took = floor_of_moves(shop, nodes, n, parallel);
    for (int i = 0; i < n; i++)
        free(nodes[i]);
    return took;
}

/* --- by remap-executor --- */

static struct model *look(const struct shop *shop)
{
    struct err err = ERR_INIT;
    const struct option options[] = {{"kubeconfig", shop->cluster->kubeconfig},
                                     {"min_node_age", "0s"}};
    const struct source source = {"bench", "kubernetes", options, ARRAY_LEN(options)};
    const char *const spaces[] = {shop->space, NULL}, *const none[] = {NULL};
    const struct app_scope app = {.name = "bench", .namespaces = spaces, .services = none};
    struct inspection in = {.model = model_new()};
    void *ctx = NULL;
    if (kubernetes_cluster.open(&source, &ctx, &err) ||
        kubernetes_cluster.inspect(ctx, &app, &in, &err))
        die(err.text);
    kubernetes_cluster.close(ctx);
    inspection_wipe(&in);
    in.model->has_affinities = true;
    return in.model;
}

/* Every service goes to the next host: on to the same fifteen, so that room is no question. */
static void put_request(const struct shop *shop, int64_t parallel, struct buf *out)
{
    AUTO(model) struct model *model = look(shop);
    AUTO(analysis) struct analysis *analysis = analysis_from_given(model);
    AUTO(plan) struct plan *plan = plan_new();
    AUTO_FREE int *placement = mem_array(model->n_instances + 1, sizeof *placement);
    struct err err = ERR_INIT;
    for (size_t i = 0; i < model->n_instances; i++)
        placement[i] = (model->instances[i].host + 1) % (int)model->n_hosts;
    plan->requested = mem_strdup("bench");
    plan->planner = mem_strdup("bench");
    plan->why = mem_strdup("");
    plan->granularity = PER_SERVICE;
    plan->status = PLAN_FEASIBLE;
    if (plan_fill(plan, model, analysis->rows, analysis->n_rows, placement, &err))
        die(err.text);
    AUTO_FREE char *source = mem_printf(
        "{\"name\":\"bench\",\"type\":\"kubernetes\",\"options\":[{\"name\":\"kubeconfig\",\"value\":"
        "\"%s\"},{\"name\":\"soak\",\"value\":\"0s\"},{\"name\":\"min_node_age\",\"value\":\"0s\"}]}",
        shop->cluster->kubeconfig);
    buf_printf(out,
               "{\"v\":1,\"app\":{\"name\":\"bench\",\"namespaces\":[\"%s\"],\"services\":[]},"
               "\"cycle\":1,\"undo\":false,\"orchestrator\":%s,\"sources\":{\"cluster\":%s},"
               "\"options\":{\"ready_timeout_ms\":120000,\"poll_ms\":100,\"move_stateful\":false,"
               "\"start_wait_ms\":0,\"max_moves\":null,\"max_parallel\":%" PRId64 "},\"base\":[],"
               "\"done\":[],\"analysis\":",
               shop->space, source, source, parallel);
    analysis_encode(analysis, model, out);
    buf_puts(out, ",\"model\":");
    model_encode(model, out);
    buf_puts(out, ",\"plan\":");
    plan_encode(plan, model, true, out);
    buf_puts(out, "}");
}

static int count_applied(const char *path)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    size_t i;
    const json_t *outcome;
    int n = 0;
    if (file_read(path, (size_t)64 << 20, &text, &err))
        die(err.text);
    AUTO_JSON json_t *tree = json_parse(text.data, text.size, &json_limits_document, &err);
    json_array_foreach(json_object_get(tree, "outcomes"), i, outcome)
    {
        const char *state = kube_text(outcome, "state"), *why = kube_text(outcome, "reason");
        bool applied = state && strcmp(state, "applied") == 0;
        n += applied;
        if (!applied)
            fprintf(stderr, "%s: %s: %s\n", kube_text(outcome, "service"), state, why ? why : "");
    }
    return n;
}

static int64_t by_executor(const struct shop *shop, int64_t parallel, int *applied)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf request = BUF_INIT;
    AUTO_FREE char *in = mem_printf("%s/request.json", shop->cluster->temp);
    AUTO_FREE char *out = mem_printf("%s/result.json", shop->cluster->temp);
    put_request(shop, parallel, &request);
    if (file_write_atomic(in, request.data, request.size, 0600, &err))
        die(err.text);
    AUTO_FREE char *command =
        mem_printf("'%s/remap-executor' --filter execute <'%s' >'%s'", REMAP_BIN_DIR, in, out);
    int64_t start = clock_mono_ms();
    if (system(command) != 0)
        die("remap-executor failed");
    int64_t took = clock_mono_ms() - start;
    *applied = count_applied(out);
    return took;
}

int main(int argc, char **argv)
{
    static const int64_t usual[] = {1, 4, 16};
    int n = argc > 1 ? atoi(argv[1]) : 100;
    AUTO(kube_cluster) struct kube_cluster *cluster =
        kube_cluster_new(&(struct kube_cluster_options){.fake = NODES});
    if (!cluster)
        return 0;
    if (n < 1 || n > 1000)
        die("MOVES must be from 1 to 1000");
    struct shop hand, own, least;
    shop_open(&hand, cluster, "by-hand");
    deploy(&hand, n);
    int64_t loop = by_hand(&hand, n);
    printf("%d moves on %d fake nodes\n%-34s %8.1f s\n", n, NODES, "kubectl patch, rollout status",
           (double)loop / 1000);
    fflush(stdout);
    shop_open(&own, cluster, "by-remap");
    deploy(&own, n);
    for (int i = 0; i < (argc > 2 ? argc - 2 : (int)ARRAY_LEN(usual)); i++) {
        int64_t parallel = argc > 2 ? atoi(argv[2 + i]) : usual[i];
        int applied;
        int64_t took = by_executor(&own, parallel, &applied);
        printf("remap-executor, max_parallel %-5" PRId64 " %8.1f s   %.1f times as fast, %d applied\n",
               parallel, (double)took / 1000, (double)loop / (double)took, applied);
        fflush(stdout);
    }
    shop_open(&least, cluster, "by-floor");
    deploy(&least, n);
    int64_t took = by_floor(&least, n, FLOOR_PARALLEL);
    printf("PATCH and one watch, %d at a time  %8.1f s   %.1f times as fast: the cluster's own time\n",
           FLOOR_PARALLEL, (double)took / 1000, (double)loop / (double)took);
    shop_close(&hand);
    shop_close(&own);
    shop_close(&least);
    return 0;
}
