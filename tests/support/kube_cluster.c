/* kube_cluster.c - a real Kubernetes for one test program (kube_cluster.h). */
#include "tests/support/kube_cluster.h"

#include "model/base/clock.h"
#include "tests/support/temp_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT REMAP_SOURCE_DIR "/etc/cluster"
#define MISSING 3      /* its exit status where a program or a right is missing */
#define UP_MS 900000   /* a guard: 5 s alone; real nodes beside other work take a minute */
#define DOWN_MS 300000 /* real nodes stop their containers first */

static void die(const char *what)
{
    perror(what);
    abort();
}

/* What is in the file, without the newline at its end. */
static char *read_file(char *path)
{
    char text[8192];
    FILE *file = fopen(path, "re");
    if (!file)
        die(path);
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    free(path);
    while (size && text[size - 1] == '\n')
        size--;
    return mem_strndup(text, size);
}

static void print_file(const char *path)
{
    char line[500];
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        fprintf(stderr, "| %s", line);
    if (file)
        fclose(file);
}

/* Reads until `end` is in the text or the other side has closed; false when time is over. */
static bool read_until(int fd, const char *end, int64_t limit_ms, struct buf *text)
{
    char part[4096];
    int64_t until = clock_mono_ms() + limit_ms;
    for (int64_t left; (left = until - clock_mono_ms()) > 0;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, (int)left) <= 0)
            continue;
        ssize_t size = read(fd, part, sizeof part);
        if (size < 0)
            die("read");
        if (size == 0)
            return true;
        buf_add(text, part, (size_t)size);
        if (end && strstr(text->data, end))
            return true;
    }
    return false;
}

static void open_as(const char *path, int flags, int fd)
{
    int opened = open(path, flags | O_CLOEXEC, 0600);
    if (opened < 0 || dup2(opened, fd) < 0)
        _exit(127);
}

/* Not our child (see kube_cluster.h), hence the fork in between; its exit status goes to `out` as
 * the last line, "exit N". */
static void start(const struct kube_cluster *cluster, const char *const *argv, int in, int out)
{
    AUTO_FREE char *log = mem_printf("%s/up.log", cluster->temp);
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (!pid) {
        setsid();
        if (fork())
            _exit(0);
        dup2(in, STDIN_FILENO);
        dup2(out, STDOUT_FILENO);
        open_as(log, O_WRONLY | O_CREAT, STDERR_FILENO);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

static const char **arguments_of(const struct kube_cluster_options *options, const char *folder,
                                 const char *fake)
{
    const char *const fixed[] = {"/bin/bash",  "-c",    "\"$0\" \"$@\"; echo \"exit $?\"",
                                 SCRIPT,       "up",    "--hold",
                                 "--no-build", "--dir", folder,
                                 "--fake",     fake};
    size_t more = 0, n = 0;
    while (options->more && options->more[more])
        more++;
    const char **argv = mem_array(ARRAY_LEN(fixed) + more + 2, sizeof *argv);
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        argv[n++] = fixed[i];
    if (options->metrics)
        argv[n++] = "--metrics";
    for (size_t i = 0; i < more; i++)
        argv[n++] = options->more[i];
    return argv;
}

/* The pipes' other ends are closed here, and ours on exec: nobody else may hold the cluster. */
static bool bring_up(struct kube_cluster *cluster, const struct kube_cluster_options *options)
{
    int in[2], out[2];
    AUTO_BUF struct buf text = BUF_INIT;
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        die("pipe");
    AUTO_FREE char *fake = mem_printf("%d", options->fake);
    AUTO_FREE const char **argv = arguments_of(options, cluster->folder, fake);
    start(cluster, argv, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    cluster->hold = in[1];
    cluster->out = out[0];
    bool ended = read_until(cluster->out, "export KUBECONFIG=", UP_MS, &text);
    if (ended && text.data && strstr(text.data, "export KUBECONFIG="))
        return true;
    AUTO_FREE char *log = mem_printf("%s/up.log", cluster->temp);
    if (text.data && strstr(text.data, "exit 3\n")) {
        AUTO_FREE char *why = read_file(mem_strdup(log));
        printf("SKIPPED no Kubernetes: %s\n", why);
        return false;
    }
    fprintf(stderr, "no cluster: %s\n", text.data ? text.data : "");
    print_file(log);
    abort();
}

struct kube_cluster *kube_cluster_new(const struct kube_cluster_options *options)
{
    struct kube_cluster *cluster = mem_alloc(sizeof *cluster);
    cluster->temp = temp_dir_new();
    cluster->folder = mem_printf("%s/cluster", cluster->temp);
    if (!bring_up(cluster, options)) {
        kube_cluster_free(cluster);
        return NULL;
    }
    const char *folder = cluster->folder;
    cluster->kubeconfig = mem_printf("%s/kubeconfig", folder);
    cluster->ca_file = mem_printf("%s/tls/ca.crt", folder);
    cluster->token_file = mem_printf("%s/tokens/admin", folder);
    cluster->url = read_file(mem_printf("%s/url", folder));
    cluster->token = read_file(mem_strdup(cluster->token_file));
    cluster->nobody_token = read_file(mem_printf("%s/tokens/nobody", folder));
    cluster->kubectl = read_file(mem_printf("%s/kubectl", folder));
    return cluster;
}

void kube_cluster_free(struct kube_cluster *cluster)
{
    if (!cluster)
        return;
    AUTO_BUF struct buf text = BUF_INIT;
    close(cluster->hold);
    if (!read_until(cluster->out, NULL, DOWN_MS, &text) || !access(cluster->folder, F_OK)) {
        AUTO_FREE char *log = mem_printf("%s/up.log", cluster->temp);
        fprintf(stderr, "%s is not gone\n", cluster->folder);
        print_file(log);
        abort();
    }
    close(cluster->out);
    temp_dir_remove(cluster->temp);
    char *texts[] = {cluster->folder,       cluster->kubeconfig, cluster->url,
                     cluster->ca_file,      cluster->token_file, cluster->token,
                     cluster->nobody_token, cluster->kubectl,    cluster->temp};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    free(cluster);
}

/* Runs a program to its end; input and output as for kube_cluster_kubectl(). */
static bool run(const struct kube_cluster *cluster, const char *input, struct buf *out,
                const char *const *argv)
{
    int fds[2], state;
    AUTO_FREE char *in = mem_printf("%s/input", cluster->temp);
    if (input) {
        FILE *file = fopen(in, "we");
        if (!file || fputs(input, file) < 0 || fclose(file))
            die(in);
    }
    if (pipe2(fds, O_CLOEXEC))
        die("pipe");
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (!pid) {
        open_as(input ? in : "/dev/null", O_RDONLY, STDIN_FILENO);
        dup2(fds[1], STDOUT_FILENO);
        setenv("KUBECONFIG", cluster->kubeconfig, 1);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(fds[1]);
    char part[4096];
    for (ssize_t size;
         (size = read(fds[0], part, sizeof part)) > 0 || (size < 0 && errno == EINTR);)
        if (out && size > 0)
            buf_add(out, part, (size_t)size);
    close(fds[0]);
    return waitpid(pid, &state, 0) == pid && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

bool kube_cluster_kubectl(const struct kube_cluster *cluster, const char *input, struct buf *out,
                          const char *const *arguments)
{
    size_t n = 0;
    while (arguments[n])
        n++;
    AUTO_FREE const char **argv = mem_array(n + 2, sizeof *argv);
    argv[0] = cluster->kubectl;
    for (size_t i = 0; i < n; i++)
        argv[i + 1] = arguments[i];
    return run(cluster, input, out, argv);
}

bool kube_cluster_namespace(const struct kube_cluster *cluster, const char *name)
{
    return KUBECTL(cluster, NULL, NULL, "create", "namespace", name) &&
           KUBECTL(cluster, NULL, NULL, "-n", name, "wait", "--for=create", "--timeout=300s",
                   "serviceaccount/default");
}

bool kube_cluster_stop(const struct kube_cluster *cluster, const char *program)
{
    return run(cluster, NULL, NULL,
               (const char *const[]){SCRIPT, "stop", program, "--dir", cluster->folder, NULL});
}

bool kube_cluster_start(const struct kube_cluster *cluster, const char *program)
{
    return run(cluster, NULL, NULL,
               (const char *const[]){SCRIPT, "start", program, "--dir", cluster->folder, NULL});
}
