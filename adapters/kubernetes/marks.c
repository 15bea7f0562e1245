/* marks.c - the marks that workloads of an app bear (mark.h), for a leader that does not remember
 * them (struct keeper's marks(); interfaces.md 1.9 rule 15). */
#include "adapters/kubernetes/marks.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "adapters/kubernetes/mark.h"
#include "adapters/kubernetes/scope.h"
#include "model/base/json.h"

struct reading {
    const struct app_scope *app;
    json_t *found; /* workloads with a mark of remap's: few, so they are kept until all is read */
};

static int read_page(void *ctx, const json_t *list, bool again, struct err *err)
{
    struct reading *reading = ctx;
    size_t i;
    json_t *workload;
    (void)err;
    if (again)
        json_array_clear(reading->found);
    json_array_foreach(kube_get(list, "items"), i, workload)
    {
        const json_t *meta = kube_get(workload, "metadata");
        const char *space = kube_text(meta, "namespace"), *name = kube_text(meta, "name");
        if (!space || !name || !kube_text(kube_get(meta, "annotations"), MARK_ANNOTATION))
            continue;
        AUTO_FREE char *service = mem_printf("%s/%s", space, name);
        if (scope_has_space(reading->app, space) && scope_has_service(reading->app, service))
            json_array_append(reading->found, workload);
    }
    return 0;
}

/* An annotation that is no mark of ours (a copy, or edited by hand) is left alone. */
static void tell(const json_t *workload, const char *kind,
                 void (*each)(void *arg, const struct keeper_mark *mark), void *arg)
{
    struct err odd = ERR_INIT;
    const json_t *meta = kube_get(workload, "metadata");
    AUTO(mark) struct mark *mark = mark_of(workload, &odd);
    if (!mark)
        return;
    AUTO_FREE char *service =
        mem_printf("%s/%s/%s", kube_text(meta, "namespace"), kind, kube_text(meta, "name"));
    AUTO_FREE char *saved = mark_encode(mark);
    AUTO_FREE struct placement_count *counts = mem_array(mark->pin.n_hosts + 1, sizeof *counts);
    for (size_t i = 0; i < mark->pin.n_hosts; i++)
        counts[i] = (struct placement_count){mark->pin.hosts[i].node, mark->pin.hosts[i].count};
    const struct keeper_mark found = {.placement = {.cycle = mark->cycle,
                                                    .seq = mark->seq,
                                                    .service = service,
                                                    .targets = counts,
                                                    .n_targets = mark->pin.n_hosts},
                                      .at_ms = mark->at_ms,
                                      .saved = saved};
    each(arg, &found);
}

static int read_kind(struct kube_api *api, const struct app_scope *app, const char *plural,
                     const char *kind, void (*each)(void *arg, const struct keeper_mark *mark),
                     void *arg, struct err *err)
{
    /* One namespace is asked for alone: it may be all that we may see. */
    bool single = app->namespaces && app->namespaces[0] && !app->namespaces[1];
    AUTO_FREE char *path =
        kube_api_path("apps/v1", single ? app->namespaces[0] : NULL, plural, NULL);
    AUTO_JSON json_t *found = json_array();
    struct reading reading = {.app = app, .found = found};
    if (kube_api_list(api, path, read_page, &reading, NULL, NULL, err))
        return -1;
    size_t i;
    json_t *workload;
    json_array_foreach(found, i, workload)
    {
        tell(workload, kind, each, arg);
    }
    return 0;
}

int kube_marks(struct kube_api *api, const struct app_scope *app,
               void (*each)(void *arg, const struct keeper_mark *mark), void *arg, struct err *err)
{
    return read_kind(api, app, "deployments", "Deployment", each, arg, err) < 0 ||
                   read_kind(api, app, "statefulsets", "StatefulSet", each, arg, err) < 0
               ? -1
               : 0;
}
