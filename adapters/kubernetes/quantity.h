/* quantity.h - Kubernetes quantities, "100m", "1.5Gi", "1e3" (interfaces.md 1.3;
 * kubernetes/apimachinery:pkg/api/resource/quantity.go). Exact: no floating point. */
#ifndef REMAP_KUBERNETES_QUANTITY_H
#define REMAP_KUBERNETES_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/err.h"

struct quantity { /* (whole + nanos/10^9), negated where said; finer values are rounded away from 0 */
    bool negative;
    int64_t whole; /* INT64_MAX where it is larger */
    int32_t nanos; /* 0 … 999,999,999 */
};

/* ERR_INPUT where Kubernetes refuses it too. */
int quantity_parse(const char *text, struct quantity *out, struct err *err);

/* In units of 1/`per` (cores in millis: 1000; bytes: 1). A need is rounded up, a capacity down.
 * Negative quantities give 0, larger ones INT64_MAX. */
int64_t quantity_need(const struct quantity *quantity, int64_t per);
int64_t quantity_capacity(const struct quantity *quantity, int64_t per);

#endif
