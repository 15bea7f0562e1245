/* test_kube_cluster.c - the clusters of etc/cluster: what the other tests of this label rely on,
 * and that nothing is left of them, also of those whose holder was killed. */
#include "tests/support/kube_cluster.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "model/base/clock.h"

#define GONE_MS 300000 /* a take-down takes 0.1 s on a quiet machine */

static struct kube_cluster *cluster;

static const char deployment[] =
    "apiVersion: apps/v1\n"
    "kind: Deployment\n"
    "metadata: {name: web, namespace: shop}\n"
    "spec:\n"
    "  replicas: 6\n"
    "  selector: {matchLabels: {app: web}}\n"
    "  template:\n"
    "    metadata:\n"
    "      labels: {app: web}\n"
    "      annotations: {kwok.x-k8s.io/usage-cpu: 250m, kwok.x-k8s.io/usage-memory: 64Mi}\n"
    "    spec:\n"
    "      containers: [{name: web, image: web, resources: {requests: {cpu: 100m}}}]\n";

static void test_nodes_when_fake_are_ready_in_their_zones(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT;
    assert_true(KUBECTL(cluster, NULL, &out, "get", "nodes", "--sort-by=.metadata.name",
                        "-ojsonpath={range .items[*]}{.metadata.name} "
                        "{.metadata.labels.topology\\.kubernetes\\.io/zone} "
                        "{.status.conditions[?(@.type==\"Ready\")].status} "
                        "{.status.allocatable.cpu};{end}"));
    assert_string_equal(out.data, "fake-1 zone-1 True 4;fake-2 zone-2 True 4;fake-3 zone-3 True 4;"
                                  "fake-4 zone-1 True 4;");
}

static void test_users_when_without_roles_are_refused(void **state)
{
    (void)state;
    AUTO_FREE char *token = mem_printf("--token=%s", cluster->nobody_token);
    AUTO_FREE char *server = mem_printf("--server=%s", cluster->url);
    AUTO_FREE char *ca = mem_printf("--certificate-authority=%s", cluster->ca_file);
    AUTO_FREE char *admin = mem_printf("--token=%s", cluster->token);
    /* --kubeconfig=/dev/null: nothing but what is given here. */
    assert_true(KUBECTL(cluster, NULL, NULL, "--kubeconfig=/dev/null", server, ca, admin, "auth",
                        "can-i", "delete", "nodes"));
    assert_false(KUBECTL(cluster, NULL, NULL, "--kubeconfig=/dev/null", server, ca, token, "auth",
                         "can-i", "list", "pods"));
}

static void test_certificates_when_of_another_authority_are_refused(void **state)
{
    (void)state;
    AUTO_FREE char *server = mem_printf("--server=%s", cluster->url);
    AUTO_FREE char *token = mem_printf("--token=%s", cluster->token);
    AUTO_FREE char *other =
        mem_printf("--certificate-authority=%s/tls/front-proxy-ca.crt", cluster->folder);
    assert_false(KUBECTL(cluster, NULL, NULL, "--kubeconfig=/dev/null", server, other, token, "get",
                         "nodes"));
}

static void test_deployments_when_on_fake_nodes_get_ready_and_use_what_they_say(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT;
    assert_true(kube_cluster_namespace(cluster, "shop"));
    assert_true(KUBECTL(cluster, deployment, NULL, "apply", "-f", "-"));
    assert_true(KUBECTL(cluster, NULL, NULL, "-n", "shop", "rollout", "status", "deployment/web",
                        "--timeout=300s"));
    /* Two samples ten seconds apart, and some more on a loaded machine. */
    int64_t until = clock_mono_ms() + GONE_MS;
    while (clock_mono_ms() < until) {
        buf_clear(&out);
        if (KUBECTL(cluster, NULL, &out, "get", "--raw",
                    "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods") &&
            strstr(out.data, "\"memory\":\"64Mi\"") && strstr(out.data, "\"cpu\":\"2"))
            break;
        clock_sleep_ms(500);
    }
    assert_non_null(strstr(out.data, "\"memory\":\"64Mi\""));
    assert_non_null(strstr(out.data, "\"cpu\":\"2"));
}

static void test_api_server_when_stopped_and_started_knows_what_it_knew(void **state)
{
    (void)state;
    assert_true(kube_cluster_stop(cluster, "kube-apiserver"));
    assert_false(KUBECTL(cluster, NULL, NULL, "get", "nodes"));
    assert_true(kube_cluster_start(cluster, "kube-apiserver"));
    assert_true(KUBECTL(cluster, NULL, NULL, "get", "node", "fake-4"));
    assert_false(kube_cluster_stop(cluster, "no-such-program"));
}

/* Is the text in the command line of any process? */
static bool any_process_names(const char *text)
{
    bool found = false;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && !found && (entry = readdir(proc));) {
        char line[8192];
        AUTO_FREE char *path = mem_printf("/proc/%s/cmdline", entry->d_name);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        size_t size = fread(line, 1, sizeof line - 1, file);
        fclose(file);
        for (size_t i = 0; i < size; i++)
            if (!line[i])
                line[i] = ' ';
        line[size] = '\0';
        found = strstr(line, text) != NULL;
    }
    if (proc)
        closedir(proc);
    return found;
}

static void test_cluster_when_its_holder_is_killed_leaves_nothing(void **state)
{
    (void)state;
    char folder[512] = "";
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t holder = fork();
    if (!holder) {
        struct kube_cluster *own = kube_cluster_new(&(struct kube_cluster_options){.fake = 1});
        if (own && write(fds[1], own->folder, strlen(own->folder)) > 0)
            pause();
        _exit(1);
    }
    close(fds[1]);
    ssize_t size = read(fds[0], folder, sizeof folder - 1);
    assert_true(size > 0);
    assert_true(any_process_names(folder));

    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    int64_t until = clock_mono_ms() + GONE_MS;
    while ((any_process_names(folder) || !access(folder, F_OK)) && clock_mono_ms() < until)
        clock_sleep_ms(50);
    assert_false(any_process_names(folder));
    assert_int_not_equal(access(folder, F_OK), 0);
    close(fds[0]);
}

static int bring_up(void **state)
{
    (void)state;
    cluster = kube_cluster_new(&(struct kube_cluster_options){.fake = 4, .metrics = true});
    if (!cluster)
        exit(0);
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    kube_cluster_free(steal(cluster));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_when_fake_are_ready_in_their_zones),
        cmocka_unit_test(test_users_when_without_roles_are_refused),
        cmocka_unit_test(test_certificates_when_of_another_authority_are_refused),
        cmocka_unit_test(test_deployments_when_on_fake_nodes_get_ready_and_use_what_they_say),
        cmocka_unit_test(test_api_server_when_stopped_and_started_knows_what_it_knew),
        cmocka_unit_test(test_cluster_when_its_holder_is_killed_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, bring_up, take_down);
}
