/* access.h - where the API server is and by what right we speak to it (interfaces.md 1.1): the
 * service account of a pod, or a kubeconfig. Inside adapters/kubernetes; users want api.h.
 *
 * Secrets are in memory only, wiped when freed, and in no error text. */
#ifndef REMAP_KUBERNETES_ACCESS_H
#define REMAP_KUBERNETES_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include "adapters/adapter.h"
#include "model/base/mem.h"

struct kube_exec { /* a credential plugin (client.authentication.k8s.io) */
    char *command; /* with a slash: relative to the kubeconfig; else looked for in $PATH */
    char **args;   /* n_args, without the command itself */
    size_t n_args;
    struct label *env; /* further variables */
    size_t n_env;
    char *version; /* apiVersion */
    bool cluster_info;
};

struct kube_access {
    char *server; /* URL */
    char *space;  /* our own namespace, or the context's; "default" */
    char *server_name, *proxy;
    char *ca_file, *ca_pem;
    char *cert_file, *cert_pem, *key_file, *key_pem;
    char *token, *token_file;
    char *user, *password;
    char **headers; /* impersonation; ended by NULL */
    size_t n_headers;
    bool no_verify, no_compression;
    struct kube_exec *exec; /* NULL: none */
};

void kube_access_free(struct kube_access *access);
AUTO_DEFINE(kube_access)

/* By the options of the source (KUBE_API_OPTIONS), else in the cluster, else $KUBECONFIG, else
 * ~/.kube/config. ERR_CONFIG says what is missing and where it was looked for. */
int kube_access_find(const struct source *source, struct kube_access **out, struct err *err);

/* kubeconfig.c: of `paths` (several with ':', the first that says something counts, as kubectl has
 * it); context NULL: the current one. Refuses insecure-skip-tls-verify unless `insecure`. */
int kubeconfig_read(const char *paths, const char *context, bool insecure,
                    struct kube_access **out, struct err *err);
/* The same of one text; relative paths are below `folder`. */
int kubeconfig_parse(const char *text, size_t size, const char *name, const char *folder,
                     const char *context, bool insecure, struct kube_access **out,
                     struct err *err);

/* What a plugin gave. */
struct kube_credential {
    char *token, *cert_pem, *key_pem; /* NULL: not given */
    int64_t expires_ms;               /* wall time; INT64_MAX: not said */
};
void kube_credential_wipe(struct kube_credential *credential);

/* exec.c: runs the plugin, at most 30 s. ERR_CONFIG where it cannot be run, ERR_REFUSED where it
 * ends with an error, ERR_INPUT where its answer is none. */
int kube_exec_run(const struct kube_access *access, struct kube_credential *out, struct err *err);
/* The answer of a plugin. */
int kube_credential_decode(const char *text, size_t size, struct kube_credential *out,
                           struct err *err);

#endif
