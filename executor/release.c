/* release.c - takes off what remap left in the cluster, one service after the other, so that never
 * more than one restarts because of it (interfaces.md 1.9, 3). */
#include "executor/release.h"

#include <inttypes.h>
#include <stdlib.h>

#include "executor/keep.h"
#include "executor/request.h"
#include "model/base/clock.h"

#define MAX_MS (INT64_C(1000) * 3600 * 24 * 365)

struct release {
    struct stage *stage;
    struct app_scope app;
    struct source orchestrator, cluster;
    char *service; /* NULL: all */
    bool dry_run;
    int64_t ready_timeout_ms, poll_ms;
    const struct orchestrator *adapter;
    const struct cluster_adapter *inspector;
    void *ctx, *inspector_ctx;
    struct kept *kept;
    int64_t done, restarts;
};

static int read_root(const struct jval *root, struct release *r, struct err *err)
{
    static const char *const keys[] = {"v",       "app",     "orchestrator",     "sources",
                                       "service", "dry_run", "ready_timeout_ms", "poll_ms",
                                       NULL};
    static const char *const source_keys[] = {"cluster", NULL};
    struct jval v = jval_get(root, "v"), service = jval_get(root, "service");
    struct jval dry = jval_get(root, "dry_run"), sources = jval_get(root, "sources");
    struct jval ready = jval_get(root, "ready_timeout_ms"), poll = jval_get(root, "poll_ms");
    const char *name;
    int64_t version;
    if (jval_object(root, keys, err) < 0 || jval_int(&v, 1, 1, &version, err) < 0 ||
        request_read_app(root, &r->app, err) < 0 ||
        request_read_source(root, "orchestrator", &r->orchestrator, err) < 0 ||
        jval_object(&sources, source_keys, err) < 0 ||
        request_read_source(&sources, "cluster", &r->cluster, err) < 0 ||
        jval_bool(&dry, &r->dry_run, err) < 0 ||
        jval_int(&ready, 0, MAX_MS, &r->ready_timeout_ms, err) < 0 ||
        jval_int(&poll, 1, MAX_MS, &r->poll_ms, err) < 0)
        return -1;
    if (jval_null(&service))
        return 0;
    if (jval_name(&service, &name, err) < 0)
        return -1;
    r->service = mem_strdup(name);
    return 0;
}

static int open_adapters(struct release *r, struct err *err)
{
    r->adapter = orchestrator_find(r->orchestrator.type);
    r->inspector = cluster_adapter_find(r->cluster.type);
    if (!r->adapter || !r->inspector)
        return err_set(err, ERR_CONFIG, "source %s: no adapter %s",
                       r->adapter ? r->cluster.name : r->orchestrator.name,
                       r->adapter ? r->cluster.type : r->orchestrator.type);
    if (source_check(&r->orchestrator, r->adapter->options, err) < 0 ||
        source_check(&r->cluster, r->inspector->options, err) < 0 ||
        kept_join(r->stage, r->adapter, &r->orchestrator, &r->kept, err) < 0 ||
        r->adapter->open(&r->orchestrator, &r->ctx, err) < 0)
        return -1;
    if (r->kept && r->adapter->attach)
        r->adapter->attach(r->ctx, kept_ctx(r->kept));
    return r->inspector->open(&r->cluster, &r->inspector_ctx, err);
}

static struct model *inspect(struct release *r, struct err *err)
{
    struct inspection in = {.model = model_new()};
    int rc = r->inspector->inspect(r->inspector_ctx, &r->app, &in, err);
    AUTO(model) struct model *model = steal(in.model);
    inspection_wipe(&in);
    return rc == 0 ? steal(model) : NULL;
}

/* Until the rollout that the release started is over. */
static int wait_service(struct release *r, const char *service, struct err *err)
{
    for (int64_t until = clock_mono_ms() + r->ready_timeout_ms;;) {
        if (stage_wait(r->stage, r->poll_ms) || stage_progress(r->stage, ++r->done, NULL, err) < 0)
            return err_set(err, ERR_REFUSED, "stopped");
        AUTO(model) struct model *now = inspect(r, err);
        if (!now)
            return -1;
        int index = model_service(now, service);
        if (index < 0 || !now->services[index].rollout)
            return 0;
        if (clock_mono_ms() >= until)
            return err_set(err, ERR_TIMEOUT, "%s is still restarting; the rest is left as it is",
                           service);
    }
}

static int release_service(struct release *r, const char *service, struct err *err)
{
    int64_t restarts = 0;
    if (stage_progress(r->stage, ++r->done, NULL, err) < 0 ||
        r->adapter->release(r->ctx, &r->app, service, r->dry_run, &restarts, err) < 0)
        return -1;
    r->restarts += restarts;
    return r->dry_run || restarts == 0 ? 0 : wait_service(r, service, err);
}

static int release_all(struct release *r, struct err *err)
{
    AUTO(model) struct model *model = inspect(r, err);
    if (!model)
        return -1;
    if (r->service && model_service(model, r->service) < 0)
        return err_set(err, ERR_NOT_FOUND, "%s has no service %s", r->app.name, r->service);
    if (r->service)
        return release_service(r, r->service, err);
    for (size_t s = 0; s < model->n_services; s++)
        if (release_service(r, model->services[s].name, err) < 0)
            return -1;
    return 0;
}

int release_handle(struct stage *stage, const struct stage_request *request, struct buf *result,
                   int *exit_code, struct err *err)
{
    (void)exit_code;
    struct release r = {.stage = stage};
    AUTO_JSON json_t *tree = json_parse(request->body, request->size, &json_limits_document, err);
    struct jval root = jval_root(tree);
    int rc = tree ? read_root(&root, &r, err) : -1;
    if (rc == 0)
        rc = open_adapters(&r, err);
    if (rc == 0 && !r.dry_run)
        rc = kept_await(r.kept, err);
    if (rc == 0)
        rc = release_all(&r, err);
    if (rc == 0)
        buf_printf(result, "{\"v\":1,\"restarts\":%" PRId64 "}", r.restarts);
    if (r.inspector_ctx)
        r.inspector->close(r.inspector_ctx);
    if (r.ctx)
        r.adapter->close(r.ctx);
    kept_leave(r.kept);
    request_wipe_app(&r.app);
    request_wipe_source(&r.orchestrator);
    request_wipe_source(&r.cluster);
    free(r.service);
    return rc;
}
