/* inspection.h - one inspection of an application (paper §6.1): the adapters of its sources run in a
 * fixed order, cluster, metrics, messages, and fill one model. */
#ifndef REMAP_MONITOR_INSPECTION_H
#define REMAP_MONITOR_INSPECTION_H

#include "adapters/adapter.h"
#include "model/base/json.h"

struct collect_alias {
    const char *foreign, *service;
};

/* A `collect` or `check` request (model/wire/README.md). Texts are borrowed from its tree. */
struct collect {
    struct app_scope app;
    struct window window;
    struct source cluster;
    struct source orchestrator; /* for a check; name NULL: none is given */
    struct source *metrics, *messages;
    size_t n_metrics, n_messages;
    struct collect_alias *aliases;
    size_t n_aliases;
    const char *tenant; /* of all services but those of: NULL: their namespace */
    struct collect_tenant {
        const char *space, *tenant;
    } *tenants;
    size_t n_tenants;
    struct received *received; /* owned array: what was sent to us for its sources */
    size_t n_received;
    double headroom_cpu, headroom_mem; /* share of every host to be kept free */
    json_t *tree; /* owned */
    struct sessions *sessions; /* sources that stay open; NULL: none does */
};

/* ERR_INPUT names the place. Nothing to wipe on failure. */
int collect_decode(const char *text, size_t size, struct collect *out, struct err *err);
void collect_wipe(struct collect *collect);

/* One source of a document; its options are to be freed, its texts are the document's. ERR_INPUT. */
int collect_source(const struct jval *v, struct source *source, struct err *err);

/* Called before each source is asked, with the number of those that have answered; -1 ends the
 * inspection with that error. */
typedef int inspection_step_f(void *arg, int64_t done, struct err *err);

/* Runs the adapters. On success in->model is a model that passes model_check (caller frees it and
 * wipes `in`). ERR_CONFIG: no such adapter or a wrong option; the adapter's own error otherwise,
 * prefixed by the source. A window without traffic is no error: note "no-traffic". */
int inspection_run(const struct collect *collect, inspection_step_f *step, void *arg,
                   struct inspection *in, struct err *err);

/* The `check` of every source, as the result document of model/wire/README.md. *exit_code is 0, or 1
 * where a source is not reached, or 2 where one is not configured right (contract.md 1). */
int inspection_check(const struct collect *collect, inspection_step_f *step, void *arg,
                     struct buf *result, int *exit_code, struct err *err);

#endif
