/* kubeconfig.c - kubeconfig files (kubernetes/client-go:tools/clientcmd/api/v1/types.go,
 * tools/clientcmd/loader.go): YAML, hence JSON too. Several files are one, in which the first that
 * names a cluster, user or context wins; relative paths are below the file that has them. */
#include "adapters/kubernetes/access.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/json.h"
#include "model/base/yaml.h"

#define MAX_FILES 64

struct kubeconfig {
    json_t *clusters, *users, *contexts; /* by name */
    const char *current;                 /* into one of the files */
    json_t *files;
    char *shown; /* for errors */
};

static void kubeconfig_wipe(struct kubeconfig *config)
{
    json_decref(config->clusters);
    json_decref(config->users);
    json_decref(config->contexts);
    json_decref(config->files);
    free(config->shown);
}

static void kubeconfig_init(struct kubeconfig *config, const char *shown)
{
    *config = (struct kubeconfig){json_object(), json_object(), json_object(), NULL, json_array(),
                                  mem_strdup(shown)};
}

/* --- files --- */

/* Members that are paths, made absolute below the folder of their file. */
static void resolve(json_t *object, const char *const keys[], const char *folder)
{
    for (size_t i = 0; keys[i]; i++) {
        const char *path = kube_text(object, keys[i]);
        if (!path || path[0] == '/' || !path[0])
            continue;
        AUTO_FREE char *full = mem_printf("%s/%s", folder, path);
        json_object_set_new(object, keys[i], json_string(full));
    }
}

static void resolve_command(json_t *user, const char *folder)
{
    static const char *const command[] = {"command", NULL};
    json_t *exec = json_object_get(user, "exec");
    const char *text = kube_text(exec, "command");
    if (text && strchr(text, '/')) /* else it is looked for in $PATH */
        resolve(exec, command, folder);
}

/* `list` is [{name, KEY: {…}}]. */
static void take_named(json_t *into, const json_t *list, const char *key, const char *folder)
{
    static const char *const paths[] = {"certificate-authority", "client-certificate",
                                        "client-key", "tokenFile", NULL};
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        const char *name = kube_text(item, "name");
        json_t *value = json_object_get(item, key);
        if (!name || !json_is_object(value) || json_object_get(into, name))
            continue;
        resolve(value, paths, folder);
        resolve_command(value, folder);
        json_object_set(into, name, value);
    }
}

static int take_file(struct kubeconfig *config, struct ydoc *doc, const char *folder,
                     struct err *err)
{
    json_t *tree = ydoc_json(doc);
    json_array_append_new(config->files, tree);
    if (!json_is_object(tree))
        return err_set(err, ERR_CONFIG, "%s: is no kubeconfig", config->shown);
    take_named(config->clusters, kube_get(tree, "clusters"), "cluster", folder);
    take_named(config->users, kube_get(tree, "users"), "user", folder);
    take_named(config->contexts, kube_get(tree, "contexts"), "context", folder);
    const char *current = kube_text(tree, "current-context");
    if (!config->current && current && current[0])
        config->current = current;
    return 0;
}

/* --- one context --- */

/* ERR_CONFIG where NAME-data is no base64 of a text. */
static int decode_data(const json_t *object, const char *key, char **out, struct err *err)
{
    const char *text = kube_text(object, key);
    if (!text || !text[0])
        return 0;
    size_t size = strlen(text), kept = 0;
    AUTO_FREE unsigned char *packed = mem_alloc(size + 1);
    for (size_t i = 0; i < size; i++)
        if (!strchr(" \t\r\n", text[i]))
            packed[kept++] = (unsigned char)text[i];
    char *plain = mem_alloc(size + 1);
    int n = kept % 4 == 0 ? EVP_DecodeBlock((unsigned char *)plain, packed, (int)kept) : -1;
    for (size_t i = kept; n > 0 && i > 0 && packed[i - 1] == '='; i--)
        n--; /* EVP_DecodeBlock counts the padding as zero bytes */
    explicit_bzero(packed, kept);
    if (n <= 0 || memchr(plain, 0, (size_t)n)) {
        explicit_bzero(plain, size);
        free(plain);
        return err_set(err, ERR_CONFIG, "%s is no base64 of a PEM text", key);
    }
    plain[n] = 0;
    *out = plain;
    return 0;
}

static bool is_true(const json_t *object, const char *key)
{
    const char *text = kube_text(object, key);
    return text && strcmp(text, "true") == 0;
}

static int use_cluster(const json_t *cluster, bool insecure, struct kube_access *access,
                       struct err *err)
{
    const char *server = kube_text(cluster, "server");
    if (!server || !server[0])
        return err_set(err, ERR_CONFIG, "has no server");
    if (is_true(cluster, "insecure-skip-tls-verify")) {
        if (!insecure)
            return err_set(err, ERR_CONFIG,
                           "says insecure-skip-tls-verify, so that anybody on the way could read the "
                           "credentials; give it a certificate-authority, or permit it by the option "
                           "insecure_skip_tls_verify: true");
        access->no_verify = true;
    }
    access->server = mem_strdup(server);
    access->server_name = mem_strdup(kube_text(cluster, "tls-server-name"));
    access->proxy = mem_strdup(kube_text(cluster, "proxy-url"));
    access->no_compression = is_true(cluster, "disable-compression");
    if (decode_data(cluster, "certificate-authority-data", &access->ca_pem, err))
        return -1;
    if (!access->ca_pem)
        access->ca_file = mem_strdup(kube_text(cluster, "certificate-authority"));
    return 0;
}

static int add_header(struct kube_access *access, const char *name, const char *value,
                      struct err *err)
{
    if (strpbrk(value, "\r\n"))
        return err_set(err, ERR_CONFIG, "as and as-groups must be in one line");
    char *line = mem_printf("%s: %s", name, value);
    *ARRAY_PUSH(access->headers, access->n_headers) = line;
    return 0;
}

static int use_impersonation(const json_t *user, struct kube_access *access, struct err *err)
{
    size_t i;
    const json_t *group;
    const char *as = kube_text(user, "as");
    if (!as)
        return 0;
    if (add_header(access, "Impersonate-User", as, err))
        return -1;
    json_array_foreach(kube_get(user, "as-groups"), i, group)
        if (json_is_string(group) &&
            add_header(access, "Impersonate-Group", json_string_value(group), err))
            return -1;
    return 0;
}

static int use_exec(const json_t *spec, struct kube_access *access, struct err *err)
{
    size_t i;
    const json_t *item;
    const char *command = kube_text(spec, "command"), *version = kube_text(spec, "apiVersion");
    if (!command || !command[0])
        return err_set(err, ERR_CONFIG, "exec has no command");
    struct kube_exec *exec = access->exec = mem_alloc(sizeof *exec);
    exec->command = mem_strdup(command);
    exec->version = mem_strdup(version ? version : "client.authentication.k8s.io/v1");
    exec->cluster_info = is_true(spec, "provideClusterInfo");
    json_array_foreach(kube_get(spec, "args"), i, item)
        if (json_is_string(item))
            *ARRAY_PUSH(exec->args, exec->n_args) = mem_strdup(json_string_value(item));
    json_array_foreach(kube_get(spec, "env"), i, item)
    {
        const char *name = kube_text(item, "name"), *value = kube_text(item, "value");
        if (!name || !name[0] || strchr(name, '='))
            continue;
        struct label *variable = ARRAY_PUSH(exec->env, exec->n_env);
        variable->name = mem_strdup(name);
        variable->value = mem_strdup(value ? value : "");
    }
    return 0;
}

/* "-data" wins over the path, tokenFile over token. */
static int use_user(const json_t *user, struct kube_access *access, struct err *err)
{
    if (decode_data(user, "client-certificate-data", &access->cert_pem, err) ||
        decode_data(user, "client-key-data", &access->key_pem, err))
        return -1;
    if (!access->cert_pem)
        access->cert_file = mem_strdup(kube_text(user, "client-certificate"));
    if (!access->key_pem)
        access->key_file = mem_strdup(kube_text(user, "client-key"));
    if ((access->cert_pem || access->cert_file) != (access->key_pem || access->key_file))
        return err_set(err, ERR_CONFIG, "client-certificate and client-key need each other");
    access->token_file = mem_strdup(kube_text(user, "tokenFile"));
    if (!access->token_file)
        access->token = mem_strdup(kube_text(user, "token"));
    if (access->token && strpbrk(access->token, "\r\n"))
        return err_set(err, ERR_CONFIG, "token must be in one line");
    access->user = mem_strdup(kube_text(user, "username"));
    access->password = mem_strdup(kube_text(user, "password"));
    const json_t *exec = kube_get(user, "exec");
    if (kube_get(user, "auth-provider") && !exec)
        return err_set(err, ERR_CONFIG,
                       "has an auth-provider, which Kubernetes itself gave up in 1.26; use exec");
    if (exec && use_exec(exec, access, err))
        return -1;
    return use_impersonation(user, access, err);
}

static const json_t *named(const struct kubeconfig *config, const json_t *all, const char *kind,
                           const char *name, struct err *err)
{
    const json_t *found = name ? kube_get(all, name) : NULL;
    if (!found)
        err_set(err, ERR_CONFIG, "%s: there is no %s %.100s", config->shown, kind,
                name ? name : "named by the context");
    return found;
}

static int use_context(const struct kubeconfig *config, const char *wanted, bool insecure,
                       struct kube_access **out, struct err *err)
{
    const char *name = wanted ? wanted : config->current;
    AUTO(kube_access) struct kube_access *access = mem_alloc(sizeof *access);
    if (!name)
        return err_set(err, ERR_CONFIG, "%s: has no current-context; give the option context",
                       config->shown);
    const json_t *context = named(config, config->contexts, "context", name, err);
    if (!context)
        return -1;
    const char *cluster_name = kube_text(context, "cluster"), *user_name = kube_text(context, "user");
    const json_t *cluster = named(config, config->clusters, "cluster", cluster_name, err);
    const json_t *user = user_name ? named(config, config->users, "user", user_name, err) : NULL;
    if (!cluster || (user_name && !user))
        return -1;
    if (use_cluster(cluster, insecure, access, err))
        return err_prefix(err, "%s: cluster %.100s", config->shown, cluster_name);
    if (user && use_user(user, access, err))
        return err_prefix(err, "%s: user %.100s", config->shown, user_name);
    const char *space = kube_text(context, "namespace");
    access->space = mem_strdup(space && space[0] ? space : "default");
    *out = steal(access);
    return 0;
}

int kubeconfig_parse(const char *text, size_t size, const char *name, const char *folder,
                     const char *context, bool insecure, struct kube_access **out,
                     struct err *err)
{
    struct kubeconfig config;
    AUTO(ydoc) struct ydoc *doc = ydoc_parse(text, size, name, err);
    if (!doc)
        return -1;
    kubeconfig_init(&config, name);
    int rc = take_file(&config, doc, folder, err) ||
                     use_context(&config, context, insecure, out, err)
                 ? -1
                 : 0;
    kubeconfig_wipe(&config);
    return rc;
}

/* Files that are not there are passed over, as kubectl does, unless none is. */
static int read_files(struct kubeconfig *config, const char *paths, struct err *err)
{
    AUTO_FREE char *copy = mem_strdup(paths);
    char *rest = copy;
    size_t n_read = 0, n_tried = 0;
    for (char *path; (path = strsep(&rest, ":")) && n_tried < MAX_FILES;) {
        if (!path[0])
            continue;
        n_tried++;
        AUTO(ydoc) struct ydoc *doc = ydoc_read(path, err);
        if (!doc && err->kind == ERR_NOT_FOUND)
            continue;
        if (!doc)
            return -1;
        char *slash = strrchr(path, '/');
        AUTO_FREE char *folder =
            slash ? mem_strndup(path, (size_t)(slash - path)) : mem_strdup(".");
        if (take_file(config, doc, folder, err))
            return -1;
        n_read++;
    }
    return n_read ? 0 : err_set(err, ERR_CONFIG, "kubeconfig %.300s: not there", paths);
}

int kubeconfig_read(const char *paths, const char *context, bool insecure,
                    struct kube_access **out, struct err *err)
{
    struct kubeconfig config;
    kubeconfig_init(&config, paths);
    int rc = read_files(&config, paths, err);
    if (rc == 0)
        rc = use_context(&config, context, insecure, out, err);
    kubeconfig_wipe(&config);
    return rc;
}
