/* api.h - the Kubernetes API as everything in this folder speaks it (interfaces.md 1.1, 1.2): where it
 * is, by what right, lists in pages, Status bodies, throttling. One `struct kube_api` is one server
 * and one connection; not for two threads.
 *
 * Errors name method, path, status and the server's reason, no secret:
 *   ERR_UNREACHABLE  no answer, a time-out, 5xx, throttled for too long
 *   ERR_NOT_FOUND    404, 410
 *   ERR_CONFLICT     409
 *   ERR_REFUSED      401, 403, 422 and other 4xx; 429 because of a disruption budget
 *   ERR_INPUT        an answer that is not what the API promises; nobody knows what became of a write
 *   ERR_TOO_LARGE    an answer above max_mib
 *   ERR_CONFIG       options, kubeconfig, credentials */
#ifndef REMAP_KUBERNETES_API_H
#define REMAP_KUBERNETES_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "adapters/adapter.h"
#include "model/base/buf.h"

/* Rows of an option_spec array. Without kubeconfig: the service account in a cluster, else
 * $KUBECONFIG, else ~/.kube/config. */
#define KUBE_API_OPTIONS                                                                           \
    {"kubeconfig",                                                                                 \
     "kubeconfig file, several with ':'; without it the pod's service account, $KUBECONFIG or "    \
     "~/.kube/config",                                                                             \
     NULL, false},                                                                                 \
        {"context", "context of the kubeconfig, instead of its current one", NULL, false},         \
        {"service_account", "folder with token, ca.crt and namespace, in a cluster",               \
         "/var/run/secrets/kubernetes.io/serviceaccount", false},                                  \
        {"exec", "allow: run the kubeconfig's credential plugin", "deny", false},                  \
        {"insecure_skip_tls_verify",                                                               \
         "true: do as a kubeconfig says that wants no certificate verified", "false", false},      \
        {"timeout", "for one answer", "10s", false},                                               \
        {"attempts", "of a request that meets no answer, a time-out, 429 or 5xx", "3", false},     \
        {"max_mib", "largest answer, in MiB", "64", false}

struct kube_api;

/* Reads the credentials, connects to nothing yet. ERR_CONFIG names source and option. */
int kube_api_open(const struct source *source, struct kube_api **out, struct err *err);
void kube_api_close(struct kube_api *api);
static inline void kube_api_free(struct kube_api *api)
{
    kube_api_close(api);
}
AUTO_DEFINE(kube_api)

/* From now on every request of kube_api_send() asks this first, each time right before it goes out;
 * -1: it does not, and *err is the error. */
void kube_api_guard(struct kube_api *api, int (*may_write)(void *ctx, struct err *err), void *ctx);

/* Our own namespace in a cluster, the context's elsewhere, else "default". */
const char *kube_api_space(const struct kube_api *api);
/* For messages: the server's URL. */
const char *kube_api_server(const struct kube_api *api);

/* What the server said besides the object; filled with an error too, as far as it spoke at all. */
struct kube_status {
    long code;              /* HTTP; 0: no answer */
    char reason[64];        /* "Conflict", "NotFound", "Forbidden", "Invalid", "Expired", … */
    char message[400];      /* one line */
    char cause[64];         /* details.causes[0].reason: "DisruptionBudget", "FieldManagerConflict" */
    char cause_text[200];   /* its message: who is in conflict */
    int64_t retry_after_ms; /* -1: not said */
};

/* Does the API itself say that the object is not there? A 404 of anybody else in between says nothing
 * of it. */
bool kube_api_absent(const struct kube_status *status);

/* "/apis/apps/v1/namespaces/SPACE/PLURAL/NAME", parts escaped; "/api/v1/…" for group "v1". `space`
 * NULL: all, or cluster-scoped; `name` NULL: the collection. Caller frees. */
char *kube_api_path(const char *group_version, const char *space, const char *plural,
                    const char *name);

/* A GET, repeated on connect errors, time-outs, 429 and 5xx, and once after a 401. `status` may be
 * NULL here and below. Caller json_decref()s *out. */
int kube_api_get(struct kube_api *api, const char *path, json_t **out, struct kube_status *status,
                 struct err *err);

/* An object that may be gone: ERR_NOT_FOUND only where the API itself says so, ERR_UNREACHABLE where
 * somebody else does. */
int kube_api_find(struct kube_api *api, const char *path, json_t **out, struct err *err);

/* ERR_INPUT where an answer of 200 is no list: what anybody else answered must not count as none. */
int kube_api_listed(const json_t *list, const char *path, struct err *err);

/* A whole collection, 500 at a time, one snapshot. `page` gets each List, borrowed; `again` with the
 * first page: forget what came before, if anything did (a list that expired in the middle, 410,
 * begins anew, at most three times). `path` may have a query (selectors). *version: the list's
 * resourceVersion, caller frees; may be NULL. */
int kube_api_list(struct kube_api *api, const char *path,
                  int (*page)(void *ctx, const json_t *list, bool again, struct err *err),
                  void *ctx, char **version, struct kube_status *status, struct err *err);

/* kube_api_send() in two parts, so that others go on meanwhile; NULL and *err: it was not sent. */
struct kube_sent *kube_api_send_begin(struct kube_api *api, const char *method, const char *path,
                                      const char *content_type, const json_t *body,
                                      struct err *err);
/* Waits and frees it. 401 and 429, which kube_api_send() deals with, are left to the caller as well. */
int kube_api_send_end(struct kube_api *api, struct kube_sent *sent, json_t **out,
                      struct kube_status *status, struct err *err);

/* Waits until all that was begun is on its way; what waits for longer goes by news that are old. */
void kube_api_sends_start(struct kube_api *api);

/* Posts an object as well as it can, beside whatever else goes on: nothing tells what became of it. */
void kube_api_post(struct kube_api *api, const char *path, const json_t *body);
/* Lets what is posted go on; with `wait` until there is none left. */
void kube_api_posts_turn(struct kube_api *api, bool wait);

/* Asks for it now, together with all else that is asked for ahead, and keeps the answer for the next
 * kube_api_get() of the same path, or for the first page of the next kube_api_list(). Errors come
 * there. */
void kube_api_ahead_get(struct kube_api *api, const char *path);
void kube_api_ahead_list(struct kube_api *api, const char *path);
/* Forgets what nobody has asked for since; so does every kube_api_send(). */
void kube_api_ahead_end(struct kube_api *api);
/* What is asked for between true and false is for several writes, to different objects and one right after
 * the other: it outlives them, and is forgotten by kube_api_ahead_forget(), which forgets all, or a
 * second after it was asked for. */
void kube_api_ahead_keep(struct kube_api *api, bool keep);
void kube_api_ahead_forget(struct kube_api *api);
/* The object that was asked for ahead, waited for and left for kube_api_get(); the caller json_decref()s
 * *out. false: there is none. */
bool kube_api_ahead_peek(struct kube_api *api, const char *path, json_t **out);

/* A request that may change something. Sent once, unless the server says that it did not look at it:
 * throttled (429, by Retry-After or our own backoff, not for a disruption budget; not where the source
 * says one attempt) and 401 (the token is read again, once). After ERR_UNREACHABLE nobody knows: read
 * the object. `body` and `out` may be NULL. */
int kube_api_send(struct kube_api *api, const char *method, const char *path,
                  const char *content_type, const json_t *body, json_t **out,
                  struct kube_status *status, struct err *err);

/* The Status object of an error body; fields that are missing stay empty. */
void kube_status_decode(const char *text, size_t size, struct kube_status *out);

#endif
