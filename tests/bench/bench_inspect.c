/* bench_inspect.c - what the inspection of a large Kubernetes costs: a control plane on this machine,
 * fake nodes by kwok, Deployments of ten pods that the real scheduler has placed.
 *
 *     remap-bench-inspect [NODES [PODS]]        1000 and 10000
 *
 * Beside it, in the same run against the same API server, kubectl reading the same kinds. Nothing is
 * asserted: times are this machine's. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/kubernetes/api.h"
#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/kubernetes.h"
#include "model/base/clock.h"
#include "model/base/file.h"
#include "model/base/json.h"
#include "tests/support/kube_cluster.h"

#define REPLICAS 10
#define ROUNDS 5

static void die(const char *what, const struct err *err)
{
    fprintf(stderr, "remap-bench-inspect: %s: %s\n", what, err->text);
    exit(1);
}

static struct kube_api *connect_to(const struct kube_cluster *cluster)
{
    const struct option options[] = {{"kubeconfig", cluster->kubeconfig}};
    const struct source source = {"kubernetes", "kubernetes", options, 1};
    struct kube_api *api;
    struct err err = ERR_INIT;
    if (kube_api_open(&source, &api, &err))
        die("open", &err);
    return api;
}

static void make_deployment(struct kube_api *api, int i)
{
    struct err err = ERR_INIT;
    char name[32];
    snprintf(name, sizeof name, "service-%d", i);
    AUTO_JSON json_t *body = json_pack(
        "{s:{s:s}, s:{s:i, s:{s:{s:s}}, s:{s:{s:{s:s}}, s:{s:[{s:s, s:s, s:{s:{s:s, s:s}}}]}}}}",
        "metadata", "name", name, "spec", "replicas", REPLICAS, "selector", "matchLabels", "app",
        name, "template", "metadata", "labels", "app", name, "spec", "containers", "name", "c",
        "image", "x", "resources", "requests", "cpu", "10m", "memory", "16Mi");
    if (!body || kube_api_send(api, "POST", "/apis/apps/v1/namespaces/bench/deployments",
                               "application/json", body, NULL, NULL, &err))
        die(name, &err);
}

static int count_running(void *ctx, const json_t *list, bool again, struct err *err)
{
    int *n = ctx;
    size_t i;
    const json_t *item;
    (void)err;
    if (again)
        *n = 0;
    json_array_foreach(kube_get(list, "items"), i, item)
    {
        const char *phase = kube_text(kube_get(item, "status"), "phase");
        *n += phase && strcmp(phase, "Running") == 0;
    }
    return 0;
}

static void wait_running(struct kube_api *api, int wanted)
{
    for (int n = 0; n < wanted;) {
        struct err err = ERR_INIT;
        clock_sleep_ms(2000);
        if (kube_api_list(api, "/api/v1/namespaces/bench/pods", count_running, &n, NULL, NULL, &err))
            die("pods", &err);
        fprintf(stderr, "\r%d of %d pods run", n, wanted);
    }
    fprintf(stderr, "\n");
}

/* A program's wall time, its own CPU time, its peak memory. */
struct cost {
    int64_t wall_ms, cpu_ms, peak_kib;
};

static int64_t of_time(struct timeval time)
{
    return (int64_t)time.tv_sec * 1000 + time.tv_usec / 1000;
}

static struct cost run(char *const argv[], const char *input)
{
    int64_t began = clock_mono_ms();
    pid_t pid = fork();
    if (pid == 0) {
        int in = open(input, O_RDONLY), out = open("/dev/null", O_WRONLY);
        dup2(in, 0);
        dup2(out, 1);
        execv(argv[0], argv);
        _exit(127);
    }
    struct rusage usage;
    int status;
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0)
        fprintf(stderr, "remap-bench-inspect: %s failed\n", argv[0]);
    return (struct cost){clock_mono_ms() - began, of_time(usage.ru_utime) + of_time(usage.ru_stime),
                         usage.ru_maxrss};
}

static void show(const char *what, struct cost cost)
{
    printf("%-44s %8lld ms wall %8lld ms own CPU %6lld MiB peak\n", what, (long long)cost.wall_ms,
           (long long)cost.cpu_ms, (long long)(cost.peak_kib / 1024));
}

static void time_first(const struct kube_cluster *cluster)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *path = mem_printf("%s/collect.json", cluster->folder);
    AUTO_FREE char *request = mem_printf(
        "{\"v\":1,\"app\":{\"name\":\"bench\",\"namespaces\":[\"bench\"],\"services\":[]},"
        "\"from_ms\":0,\"to_ms\":1,\"sources\":{\"cluster\":{\"name\":\"k\",\"type\":\"kubernetes\","
        "\"options\":[{\"name\":\"kubeconfig\",\"value\":\"%s\"}]},\"metrics\":[],\"messages\":[]},"
        "\"aliases\":[]}",
        cluster->kubeconfig);
    if (file_write_atomic(path, request, strlen(request), 0600, &err))
        die("collect.json", &err);
    char monitor[] = REMAP_BIN_DIR "/remap-monitor", filter[] = "--filter", collect[] = "collect";
    char *const argv[] = {monitor, filter, collect, NULL};
    for (int i = 0; i < ROUNDS; i++)
        show(i ? "" : "remap-monitor, nothing known before", run(argv, path));
}

static void time_kubectl(const struct kube_cluster *cluster)
{
    AUTO_FREE char *config = mem_printf("--kubeconfig=%s", cluster->kubeconfig);
    char get[] = "get", all[] = "-A", json[] = "-ojson";
    char kinds[] = "nodes,pods,deployments,replicasets,statefulsets,daemonsets,persistentvolumeclaims,"
                   "persistentvolumes,poddisruptionbudgets,horizontalpodautoscalers";
    char *const argv[] = {cluster->kubectl, config, get, kinds, all, json, NULL};
    for (int i = 0; i < 2; i++)
        show(i ? "" : "kubectl get of the same kinds", run(argv, "/dev/null"));
}

/* The same adapter again and again, as the daemon's monitor has it. */
static void time_watched(const struct kube_cluster *cluster)
{
    static const char *const spaces[] = {"bench", NULL}, *const all[] = {NULL};
    const struct app_scope app = {"bench", spaces, all};
    const struct option options[] = {{"kubeconfig", cluster->kubeconfig}};
    const struct source source = {"kubernetes", "kubernetes", options, 1};
    struct err err = ERR_INIT;
    void *ctx;
    if (kubernetes_cluster.open(&source, &ctx, &err))
        die("open", &err);
    for (int i = 0; i <= ROUNDS; i++) {
        struct rusage before, after;
        struct inspection in = {.model = model_new()};
        int64_t began = clock_mono_ms();
        getrusage(RUSAGE_SELF, &before);
        if (kubernetes_cluster.inspect(ctx, &app, &in, &err))
            die("inspect", &err);
        getrusage(RUSAGE_SELF, &after);
        if (i)
            show(i == 1 ? "one inspection more, by watches" : "",
                 (struct cost){clock_mono_ms() - began,
                               of_time(after.ru_utime) + of_time(after.ru_stime) -
                                   of_time(before.ru_utime) - of_time(before.ru_stime),
                               after.ru_maxrss});
        if (i == ROUNDS)
            printf("%zu hosts, %zu services, %zu instances, %zu rules\n", in.model->n_hosts,
                   in.model->n_services, in.model->n_instances, in.model->n_rules);
        inspection_wipe(&in);
        model_free(in.model);
    }
    kubernetes_cluster.close(ctx);
}

int main(int argc, char **argv)
{
    int nodes = argc > 1 ? atoi(argv[1]) : 1000, pods = argc > 2 ? atoi(argv[2]) : 10000;
    if (nodes < 1 || pods < REPLICAS || argc > 3) {
        fprintf(stderr, "usage: remap-bench-inspect [NODES [PODS]]\n");
        return 2;
    }
    const struct kube_cluster_options options = {.fake = nodes};
    AUTO(kube_cluster) struct kube_cluster *cluster = kube_cluster_new(&options);
    if (!cluster || !kube_cluster_namespace(cluster, "bench"))
        return 1;
    struct kube_api *api = connect_to(cluster);
    for (int i = 0; i < pods / REPLICAS; i++)
        make_deployment(api, i);
    wait_running(api, pods / REPLICAS * REPLICAS);
    kube_api_close(api);
    time_first(cluster);
    time_kubectl(cluster);
    time_watched(cluster);
    return 0;
}
