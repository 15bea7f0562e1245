/* identity.h - joins the names that different tools give to one thing (paper §6.1: the model is
 * filled by several inspectors). Traces say "cart", "cart.shop", "10.0.0.7"; the cluster says
 * "shop/cart", "shop/cart-7d9f-x2x". What cannot be joined is counted and named.
 *
 * A name is looked up in this order: aliases from the configuration, the exact name, then lower
 * case without port; then Kubernetes' forms NAME.NAMESPACE[.svc…]; then the part after the last
 * '/', where only one thing ends so. A name that fits several things fits none. */
#ifndef REMAP_ADAPTERS_IDENTITY_H
#define REMAP_ADAPTERS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include "model/base/mem.h"
#include "model/model.h"

struct identity;

/* Borrows the model, which may still grow: things are indexed at the first lookup after that. */
struct identity *identity_new(const struct model *model);
void identity_free(struct identity *identity);
AUTO_DEFINE(identity)

enum identity_kind { IDENTITY_HOST, IDENTITY_SERVICE, IDENTITY_INSTANCE };

/* "`foreign` is another name of `own`": pod IPs, workload names, aliases of the configuration. An
 * `own` that the model does not hold is ignored at lookup. */
void identity_add(struct identity *identity, enum identity_kind kind, const char *foreign,
                  const char *own);

/* Index in the model, or -1 when no thing or more than one fits. */
int identity_find(struct identity *identity, enum identity_kind kind, const char *name);

/* An end of traffic as a tracer describes it; any part may be NULL. */
struct identity_end {
    const char *service, *instance, *address;
};
/* The instance of that name or address, else the service, else the service's only instance; -1 and
 * untouched *level when nothing fits. A service that its tracer calls otherwise than the cluster
 * is learned from the ends whose instance is known. */
int identity_resolve(struct identity *identity, const struct identity_end *end,
                     enum level *level);

/* Counts `count` messages (bytes -1: unknown) that could not be joined because of `name` (NULL:
 * because an end has no name at all). */
void identity_unmapped(struct identity *identity, const char *name, int64_t count, int64_t bytes);
/* One of several sources of the same traffic has told all: the one with most messages counts, in all
 * and for each name. `ok` false: what it told is forgotten. */
void identity_unmapped_source(struct identity *identity, bool ok);
/* Writes the sums and the names, sorted, to model->traffic. */
void identity_report(struct identity *identity, struct traffic *traffic);

struct unmapped {
    char *name;
    int64_t count;
    int64_t before; /* the most that an earlier source told */
};
/* Borrowed until the next identity_unmapped(), most messages first. */
const struct unmapped *identity_unmapped_names(struct identity *identity, size_t *n);

#endif
