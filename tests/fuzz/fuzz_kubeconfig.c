/* fuzz_kubeconfig.c - any bytes as a kubeconfig: refused by ERR_CONFIG, or a server and credentials
 * that can go into headers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/access.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int insecure = 0; insecure < 2; insecure++) {
        struct err err = ERR_INIT;
        AUTO(kube_access) struct kube_access *access = NULL;
        if (kubeconfig_parse((const char *)data, size, "fuzz", "/x", NULL, insecure, &access, &err)) {
            if (err.kind != ERR_CONFIG && err.kind != ERR_TOO_LARGE)
                abort();
            continue;
        }
        if (!access->server || !access->server[0] || !access->space)
            abort();
        if (access->token && strpbrk(access->token, "\r\n"))
            abort();
        for (size_t i = 0; i < access->n_headers; i++)
            if (strpbrk(access->headers[i], "\r\n"))
                abort();
        if (access->no_verify && !insecure)
            abort();
    }
    return 0;
}
