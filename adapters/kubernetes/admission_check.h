/* admission_check.h - is everything there by which the API server asks us about pods? For `remap
 * check`. The two judgements are pure. Inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_ADMISSION_CHECK_H
#define REMAP_KUBERNETES_ADMISSION_CHECK_H

#include "adapters/kubernetes/api.h"
#include "model/base/json.h"

/* A certificate that ends sooner is renewed better today: it is warned about. */
#define ADMISSION_WARN_DAYS 30

struct admission_hook { /* as the configuration has it; wiped by admission_hook_wipe() */
    char *ca_pem;              /* NULL: none is given */
    char *space, *service;     /* NULL: it is reached by a URL */
    char *host;                /* the name that the certificate has to bear; NULL as above */
    int64_t port;
};
void admission_hook_wipe(struct admission_hook *hook);
#define AUTO_ADMISSION_HOOK __attribute__((cleanup(admission_hook_wipe)))

/* A MutatingWebhookConfiguration of that name: would pods be steered by it, and never wait? */
void admission_judge_hook(const json_t *configuration, const char *name,
                          struct admission_hook *out, struct check_line *line);
/* Would the API server take this certificate (PEM), by caBundle and name, at that time (wall), and for
 * how long yet? */
void admission_judge_certificate(const struct admission_hook *hook, const char *cert_pem,
                                 int64_t now_ms, struct check_line *line);

/* Tells a line for each of: the configuration, the certificate in the file, the one that is served at
 * `listen`, the Service and what is behind it. */
void admission_check(struct kube_api *api, const char *name, const char *cert_file,
                     const char *listen, void (*tell)(void *arg, const struct check_line *line),
                     void *arg);

#endif
