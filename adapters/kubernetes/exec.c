/* exec.c - credential plugins of a kubeconfig (kubernetes/client-go:pkg/apis/clientauthentication/v1,
 * plugin/pkg/client/auth/exec/exec.go): a program whose standard output is an ExecCredential. Only
 * with the operator's leave (option exec). */
#include "adapters/kubernetes/access.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/when.h"
#include "model/base/clock.h"
#include "model/base/json.h"

#define EXEC_MAX_MS 30000              /* cloud plugins ask a server of theirs: seconds */
#define ANSWER_MAX_BYTES ((size_t)1 << 20) /* tokens and certificates: some KiB */

extern char **environ;

/* What the plugin may know of the cluster; none of our secrets. */
static char *exec_info(const struct kube_access *access)
{
    json_t *spec = json_pack("{s:b}", "interactive", 0);
    if (access->exec->cluster_info)
        json_object_set_new(spec, "cluster",
                            json_pack("{s:s, s:s*}", "server", access->server, "tls-server-name",
                                      access->server_name));
    AUTO_JSON json_t *info = json_pack("{s:s, s:s, s:o}", "apiVersion", access->exec->version,
                                       "kind", "ExecCredential", "spec", spec);
    AUTO_FREE char *text = json_dumps(info, JSON_COMPACT);
    return mem_printf("KUBERNETES_EXEC_INFO=%s", text ? text : "{}");
}

struct strings {
    char **list;
    size_t n;
};

static void strings_wipe(struct strings *strings)
{
    for (size_t i = 0; i < strings->n; i++)
        if (strings->list[i])
            explicit_bzero(strings->list[i], strlen(strings->list[i]));
    for (size_t i = 0; i < strings->n; i++)
        free(strings->list[i]);
    free(strings->list);
}

static bool is_overridden(const struct kube_exec *exec, const char *variable)
{
    for (size_t i = 0; i < exec->n_env; i++) {
        size_t size = strlen(exec->env[i].name);
        if (strncmp(variable, exec->env[i].name, size) == 0 && variable[size] == '=')
            return true;
    }
    return strncmp(variable, "KUBERNETES_EXEC_INFO=", 21) == 0;
}

static struct strings exec_environment(const struct kube_access *access)
{
    struct strings out = {NULL, 0};
    for (char **variable = environ; *variable; variable++)
        if (!is_overridden(access->exec, *variable))
            *ARRAY_PUSH(out.list, out.n) = mem_strdup(*variable);
    for (size_t i = 0; i < access->exec->n_env; i++)
        *ARRAY_PUSH(out.list, out.n) =
            mem_printf("%s=%s", access->exec->env[i].name, access->exec->env[i].value);
    *ARRAY_PUSH(out.list, out.n) = exec_info(access);
    *ARRAY_PUSH(out.list, out.n) = NULL;
    return out;
}

static struct strings exec_arguments(const struct kube_exec *exec)
{
    struct strings out = {NULL, 0};
    *ARRAY_PUSH(out.list, out.n) = mem_strdup(exec->command);
    for (size_t i = 0; i < exec->n_args; i++)
        *ARRAY_PUSH(out.list, out.n) = mem_strdup(exec->args[i]);
    *ARRAY_PUSH(out.list, out.n) = NULL;
    return out;
}

/* Its complaints may hold secrets, so they go nowhere; run by hand it shows them. */
static int spawn(const struct kube_access *access, int out_fd, pid_t *pid, struct err *err)
{
    struct strings args = exec_arguments(access->exec), env = exec_environment(access);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none); /* stages block what their loop takes */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    int problem = posix_spawnp(pid, access->exec->command, &actions, &attributes, args.list, env.list);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    strings_wipe(&args);
    strings_wipe(&env);
    return problem ? err_set(err, ERR_CONFIG, "cannot be run: %s", strerror(problem)) : 0;
}

/* Everything it says until it closes its output; -1 when it takes too long or says too much. */
static int read_answer(int fd, struct buf *out, struct err *err)
{
    int64_t until = clock_mono_ms() + EXEC_MAX_MS;
    for (char chunk[4096];;) {
        int64_t left = until - clock_mono_ms();
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (left <= 0)
            return err_set(err, ERR_TIMEOUT, "says nothing for %d s", EXEC_MAX_MS / 1000);
        if (poll(&wait, 1, (int)left) <= 0)
            continue;
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        buf_add(out, chunk, (size_t)n);
        explicit_bzero(chunk, sizeof chunk);
        if (out->size > ANSWER_MAX_BYTES)
            return err_set(err, ERR_TOO_LARGE, "says more than %zu bytes", ANSWER_MAX_BYTES);
    }
}

static int run(const struct kube_access *access, struct buf *out, struct err *err)
{
    int ends[2], status = 0;
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC))
        return err_set(err, ERR_IO, "pipe: %s", strerror(errno));
    int rc = spawn(access, ends[1], &pid, err);
    close(ends[1]);
    if (rc == 0) {
        rc = read_answer(ends[0], out, err);
        if (rc)
            kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close(ends[0]);
    if (rc == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        rc = err_set(err, ERR_REFUSED, "ended with %s %d; run it by hand to see why",
                     WIFEXITED(status) ? "exit code" : "signal",
                     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return rc;
}

int kube_credential_decode(const char *text, size_t size, struct kube_credential *out,
                           struct err *err)
{
    static const struct json_limits limits = {ANSWER_MAX_BYTES, 16, 1000};
    struct err parse = ERR_INIT;
    AUTO_JSON json_t *tree = json_parse(text, size, &limits, &parse);
    const json_t *status = kube_get(tree, "status");
    const char *token = kube_text(status, "token");
    const char *cert = kube_text(status, "clientCertificateData");
    const char *key = kube_text(status, "clientKeyData");
    const char *expires = kube_text(status, "expirationTimestamp");
    if (!tree || (!token && !(cert && key)))
        return err_set(err, ERR_INPUT, "its answer is no ExecCredential with a status");
    if (token && strpbrk(token, "\r\n"))
        return err_set(err, ERR_INPUT, "its token is not in one line");
    int64_t expires_ms = INT64_MAX;
    if (expires && when_parse(expires, &expires_ms))
        return err_set(err, ERR_INPUT, "its expirationTimestamp is no time");
    *out = (struct kube_credential){mem_strdup(token), mem_strdup(cert && key ? cert : NULL),
                                    mem_strdup(cert && key ? key : NULL), expires_ms};
    return 0;
}

int kube_exec_run(const struct kube_access *access, struct kube_credential *out, struct err *err)
{
    AUTO_BUF struct buf answer = BUF_INIT;
    int rc = run(access, &answer, err);
    if (rc == 0)
        rc = kube_credential_decode(answer.data, answer.size, out, err);
    if (answer.data)
        explicit_bzero(answer.data, answer.size);
    return rc ? err_prefix(err, "credential plugin %s", access->exec->command) : 0;
}
