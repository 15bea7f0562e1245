/* kube_cluster.h - a real Kubernetes for one test program: started by etc/cluster on a loopback
 * address of its own in a folder of its own, and taken down with the test, however that ends (the
 * cluster waits for the end of a pipe that the test holds; it is no child of the test, so whoever
 * kills the test and its children leaves it the time to remove what it made). */
#ifndef REMAP_TESTS_KUBE_CLUSTER_H
#define REMAP_TESTS_KUBE_CLUSTER_H

#include <stdbool.h>
#include "model/base/buf.h"
#include "model/base/mem.h"

struct kube_cluster {
    char *folder;     /* etc/cluster's --dir: log/NAME.log, users/NAME (kubeconfigs), tls/ */
    char *kubeconfig; /* file; user admin, group system:masters */
    char *url;        /* "https://127.A.B.C:6443" */
    char *ca_file;    /* PEM: the API server's certificate is signed by it */
    char *token_file; /* of admin */
    char *token;
    char *nobody_token; /* of a user without any right */
    char *kubectl;      /* program */
    char *temp;         /* the rest is this file's own */
    int hold;
    int out;
};

struct kube_cluster_options {
    int fake;     /* fake-1 … fake-N: 4 cores, 16 GiB, 110 pods each, over zone-1 … zone-3 */
    bool metrics; /* metrics.k8s.io */
    const char *const *more; /* further arguments of `etc/cluster up`, NULL at their end; or NULL */
};

/* Takes 5 s and half a GB. NULL after a line "SKIPPED reason" where a program or a right is
 * missing; aborts where the cluster could not be started. */
struct kube_cluster *kube_cluster_new(const struct kube_cluster_options *options);
/* Back when everything is gone. */
void kube_cluster_free(struct kube_cluster *cluster);
AUTO_DEFINE(kube_cluster)

/* kubectl with these arguments (NULL-terminated), `input` at its standard input where not NULL.
 * True when it exits 0; what it printed is added to `out`, where not NULL; its complaints go to
 * stderr. */
bool kube_cluster_kubectl(const struct kube_cluster *cluster, const char *input, struct buf *out,
                          const char *const *arguments);
#define KUBECTL(cluster, input, out, ...)                                                          \
    kube_cluster_kubectl(cluster, input, out, (const char *const[]){__VA_ARGS__, NULL})

/* Makes a namespace and waits for its default service account, without which pods are refused. */
bool kube_cluster_namespace(const struct kube_cluster *cluster, const char *name);

/* Kills a program of it ("kube-apiserver", "kwok", "node-1", …); starts it again as it was, back
 * when it answers. */
bool kube_cluster_stop(const struct kube_cluster *cluster, const char *program);
bool kube_cluster_start(const struct kube_cluster *cluster, const char *program);

#endif
