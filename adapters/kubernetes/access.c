/* access.c - finds the credentials of this process (access.h; kubernetes/client-go:rest/config.go,
 * tools/clientcmd). */
#include "adapters/kubernetes/access.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model/base/file.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define SPACE_MAX_BYTES 300 /* a namespace has at most 63, and maybe a newline */

static void secret_free(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

static void exec_free(struct kube_exec *exec)
{
    if (!exec)
        return;
    for (size_t i = 0; i < exec->n_args; i++)
        free(exec->args[i]);
    for (size_t i = 0; i < exec->n_env; i++) {
        free(exec->env[i].name);
        secret_free(exec->env[i].value);
    }
    free(exec->args);
    free(exec->env);
    free(exec->command);
    free(exec->version);
    free(exec);
}

void kube_access_free(struct kube_access *access)
{
    if (!access)
        return;
    free(access->server);
    free(access->space);
    free(access->server_name);
    free(access->proxy);
    free(access->ca_file);
    free(access->ca_pem);
    free(access->cert_file);
    free(access->cert_pem);
    free(access->key_file);
    secret_free(access->key_pem);
    secret_free(access->token);
    free(access->token_file);
    free(access->user);
    secret_free(access->password);
    for (size_t i = 0; i < access->n_headers; i++)
        free(access->headers[i]);
    free(access->headers);
    exec_free(access->exec);
    free(access);
}

void kube_credential_wipe(struct kube_credential *credential)
{
    secret_free(credential->token);
    free(credential->cert_pem);
    secret_free(credential->key_pem);
    *credential = (struct kube_credential){0};
}

/* The files of a service account; the token is read at each request, since it is replaced before it
 * expires. */
static int read_account(const char *folder, const char *host, const char *port,
                        struct kube_access **out, struct err *err)
{
    AUTO(kube_access) struct kube_access *access = mem_alloc(sizeof *access);
    AUTO_BUF struct buf space = BUF_INIT;
    bool v6 = strchr(host, ':') && host[0] != '[';
    access->server = mem_printf("https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
                                port && *port ? port : "443");
    access->token_file = mem_printf("%s/token", folder);
    access->ca_file = mem_printf("%s/ca.crt", folder);
    AUTO_FREE char *space_file = mem_printf("%s/namespace", folder);
    if (file_read(space_file, SPACE_MAX_BYTES, &space, err)) {
        if (err->kind != ERR_NOT_FOUND)
            return -1;
        buf_puts(&space, "default");
    }
    access->space = mem_strndup(space.data, strcspn(space.data, " \r\n"));
    *out = steal(access);
    return 0;
}

static int read_flag(const struct source *source, const char *name, const char *yes, bool *out,
                     struct err *err)
{
    const char *no = strcmp(yes, "true") == 0 ? "false" : "deny";
    const char *value = source_option(source, name, no);
    *out = strcmp(value, yes) == 0;
    if (!*out && strcmp(value, no) != 0)
        return err_set(err, ERR_CONFIG, "%s: %s must be %s or %s, not %.40s", source->name, name,
                       yes, no, value);
    return 0;
}

/* ~ in a path that people write. */
static char *home_path(const char *path)
{
    const char *home = getenv("HOME");
    return path[0] == '~' && path[1] == '/' && home ? mem_printf("%s%s", home, path + 1)
                                                    : mem_strdup(path);
}

static int find(const struct source *source, bool insecure, struct kube_access **out,
                struct err *err)
{
    const char *given = source_option(source, "kubeconfig", NULL);
    const char *context = source_option(source, "context", NULL);
    const char *account = source_option(source, "service_account", SERVICE_ACCOUNT);
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *env = getenv("KUBECONFIG");
    const char *home = getenv("HOME");
    if (given) {
        AUTO_FREE char *path = home_path(given);
        return kubeconfig_read(path, context, insecure, out, err);
    }
    if (host && *host)
        return read_account(account, host, getenv("KUBERNETES_SERVICE_PORT"), out, err);
    if (env && *env)
        return kubeconfig_read(env, context, insecure, out, err);
    AUTO_FREE char *usual = home ? mem_printf("%s/.kube/config", home) : NULL;
    struct stat seen;
    if (usual && stat(usual, &seen) == 0)
        return kubeconfig_read(usual, context, insecure, out, err);
    return err_set(err, ERR_CONFIG,
                   "no credentials: not in a cluster (KUBERNETES_SERVICE_HOST is not set), no "
                   "$KUBECONFIG, no ~/.kube/config; give the option kubeconfig");
}

/* A token over plain HTTP would be anybody's; a proxy of kubectl's on this machine is fine. */
static int check_server(const struct kube_access *access, struct err *err)
{
    static const char *const local[] = {"http://127.", "http://localhost", "http://[::1]"};
    if (strncmp(access->server, "https://", 8) == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(local); i++)
        if (strncmp(access->server, local[i], strlen(local[i])) == 0)
            return 0;
    return err_set(err, ERR_CONFIG, "server %.200s: must begin with https://", access->server);
}

int kube_access_find(const struct source *source, struct kube_access **out, struct err *err)
{
    AUTO(kube_access) struct kube_access *access = NULL;
    bool insecure, exec;
    if (read_flag(source, "insecure_skip_tls_verify", "true", &insecure, err) ||
        read_flag(source, "exec", "allow", &exec, err))
        return -1;
    if (find(source, insecure, &access, err) || check_server(access, err))
        return err_prefix(err, "%s", source->name);
    if (access->exec && !exec)
        return err_set(err, ERR_CONFIG,
                       "%s: its user has the credential plugin %.100s, a program that would be run; "
                       "the option exec: allow permits that",
                       source->name, access->exec->command);
    *out = steal(access);
    return 0;
}
