/* manager_request.c - what a stage is sent (model/wire/README.md): small members written here, the
 * documents spliced in as the bytes that the store keeps, never encoded anew. */
#include "model/manager/manager.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/model_json.h"

/* An executor looks at the cluster this often while it waits for a replica: a hundredth of the time
 * allowed, within what a person notices and what a cluster's API bears. */
#define POLL_SHARE 100
#define POLL_MIN_MS 20
#define POLL_MAX_MS 2000

void docs_wipe(struct docs *docs)
{
    buf_wipe(&docs->model_text);
    buf_wipe(&docs->analysis_text);
    buf_wipe(&docs->options_text);
    buf_wipe(&docs->plan_text);
    model_free(docs->model);
    analysis_free(docs->analysis);
    plan_free(docs->plan);
    *docs = (struct docs){0};
}

/* ERR_NOT_FOUND of a document that is not made yet is none. */
static int tolerate(int rc, struct err *err)
{
    if (rc < 0 && err->kind == ERR_NOT_FOUND) {
        *err = (struct err)ERR_INIT;
        return 0;
    }
    return rc;
}

static int decode_analysis(struct docs *d, struct err *err)
{
    AUTO_JSON json_t *tree =
        json_parse(d->analysis_text.data, d->analysis_text.size, &json_limits_document, err);
    struct jval root = jval_root(tree);
    d->analysis = tree ? analysis_decode_value(&root, d->model, err) : NULL;
    return d->analysis ? 0 : -1;
}

static int decode_plan(struct docs *d, struct err *err)
{
    AUTO_JSON json_t *tree =
        json_parse(d->plan_text.data, d->plan_text.size, &json_limits_document, err);
    struct jval root = jval_root(tree);
    d->plan = tree ? plan_decode_value(&root, d->model, err) : NULL;
    return d->plan ? 0 : -1;
}

int docs_load(struct manager *m, int64_t cycle, struct err *err)
{
    struct docs *d = &m->docs;
    if (d->cycle != cycle)
        docs_wipe(d);
    d->cycle = cycle;
    if ((!d->model_text.size &&
         tolerate(store_snapshot_load(m->store, cycle, "base", &d->model_text, err), err)) ||
        (!d->analysis_text.size &&
         tolerate(store_analysis_load(m->store, cycle, &d->analysis_text, err), err)) ||
        (!d->plan_text.size &&
         tolerate(store_plan_load(m->store, cycle, &d->options_text, &d->plan_text, err), err)))
        return -1;
    if (d->model_text.size && !d->model)
        d->model = model_decode(d->model_text.data, d->model_text.size, err);
    if (d->model_text.size && !d->model)
        return -1;
    if (d->analysis_text.size && !d->analysis && decode_analysis(d, err) < 0)
        return -1;
    return d->plan_text.size && !d->plan ? decode_plan(d, err) : 0;
}

/* --- small members --- */

static void put_key(struct buf *out, const char *key)
{
    buf_printf(out, ",\"%s\":", key);
}

static void put_texts(struct buf *out, char *const *texts, size_t n)
{
    buf_puts(out, "[");
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? "," : "");
        json_put_text(out, texts[i]);
    }
    buf_puts(out, "]");
}

static void put_options(struct buf *out, const struct config_option *options, size_t n)
{
    buf_puts(out, "[");
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? ",{\"name\":" : "{\"name\":");
        json_put_text(out, options[i].name);
        buf_puts(out, ",\"value\":");
        json_put_text(out, options[i].value);
        buf_puts(out, "}");
    }
    buf_puts(out, "]");
}

void request_put_source(struct buf *out, const struct config *config, const char *name)
{
    const struct config_source *s = config_source(config, name);
    buf_puts(out, "{\"name\":");
    json_put_text(out, s->name);
    buf_puts(out, ",\"type\":");
    json_put_text(out, s->type);
    buf_puts(out, ",\"options\":");
    put_options(out, s->options, s->n_options);
    buf_puts(out, "}");
}

static void put_sources(struct buf *out, const struct config *config, char *const *names, size_t n)
{
    buf_puts(out, "[");
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? "," : "");
        request_put_source(out, config, names[i]);
    }
    buf_puts(out, "]");
}

void request_put_app(struct buf *out, const struct config_app *app)
{
    buf_puts(out, "{\"v\":1,\"app\":{\"name\":");
    json_put_text(out, app->name);
    buf_puts(out, ",\"namespaces\":");
    put_texts(out, app->namespaces, app->n_namespaces);
    buf_puts(out, ",\"services\":");
    put_texts(out, app->services, app->n_services);
    buf_puts(out, "}");
}

/* --- the requests --- */

/* metrics false: what things use is not asked for. */
static void put_collect(struct manager *m, const struct config_app *app, int64_t from, int64_t to,
                        bool metrics, struct buf *out)
{
    request_put_app(out, app);
    buf_printf(out, ",\"from_ms\":%lld,\"to_ms\":%lld", (long long)from, (long long)to);
    put_key(out, "sources");
    buf_puts(out, "{\"cluster\":");
    request_put_source(out, m->config, app->cluster);
    put_key(out, "metrics");
    put_sources(out, m->config, app->metrics, metrics ? app->n_metrics : 0);
    put_key(out, "messages");
    put_sources(out, m->config, app->messages, app->n_messages);
    buf_puts(out, "}");
    put_key(out, "aliases");
    put_options(out, app->aliases, app->n_aliases);
    put_key(out, "tenant");
    json_put_text(out, app->tenant);
    put_key(out, "tenants");
    put_options(out, app->tenants, app->n_tenants);
    put_key(out, "headroom");
    buf_puts(out, "{\"cpu\":");
    json_put_real(out, app->headroom_cpu);
    put_key(out, "mem");
    json_put_real(out, app->headroom_mem);
    buf_puts(out, "}}");
}

/* What is collected for verification begins when the last move was settled: older traffic went the
 * old ways. A cycle that drift has started plans on the traffic that was seen to drift. */
static void build_collect(struct manager *m, const struct engine_cycle *c,
                          const struct config_app *app, struct buf *out)
{
    int64_t window = c->by_drift ? app->drift.window_ms : app->window_ms;
    int64_t to = clock_wall_ms() - app->grace_ms, from = to - window;
    if (c->state == CYCLE_VERIFYING) {
        int64_t settled = manager_wall_ms(c->settle_until_ms) - app->settle_ms;
        if (to < settled + app->settle_ms / 2)
            to = clock_wall_ms(); /* a grace longer than the settle time would leave nothing */
        if (from < settled)
            from = settled < to ? settled : to - 1;
    }
    put_collect(m, app, from, to, true, out);
}

void request_put_look(struct manager *m, const struct config_app *app, struct buf *out)
{
    int64_t to = clock_wall_ms() - app->grace_ms;
    put_collect(m, app, to - app->drift.window_ms, to, false, out);
}

static void build_analyze(const struct config_app *app, const struct buf *model, struct buf *out)
{
    buf_reserve(out, model->size + 100);
    buf_puts(out, "{\"v\":1,\"weight\":");
    json_put_real(out, app->weight);
    put_key(out, "model");
    buf_add(out, model->data, model->size);
    buf_puts(out, "}");
}

static void build_plan(struct manager *m, const struct config_app *app, struct buf *out)
{
    struct docs *d = &m->docs;
    buf_clear(&d->options_text);
    plan_options(m, app, &d->options_text);
    buf_reserve(out, d->model_text.size + d->analysis_text.size + d->options_text.size + 100);
    buf_puts(out, "{\"v\":1,\"options\":");
    buf_add(out, d->options_text.data, d->options_text.size);
    put_key(out, "model");
    buf_add(out, d->model_text.data, d->model_text.size);
    put_key(out, "analysis");
    buf_add(out, d->analysis_text.data, d->analysis_text.size);
    buf_puts(out, "}");
}

void request_put_outcome(struct buf *out, const struct move_row *r)
{
    buf_printf(out, "{\"seq\":%lld,\"state\":", (long long)r->seq);
    json_put_text(out, r->state);
    const struct {
        const char *key, *text;
    } texts[] = {{"reason", r->reason},     {"service", r->service},
                 {"instance", r->instance}, {"instance_now", r->instance_now},
                 {"source", r->source},     {"target", r->target}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        put_key(out, texts[i].key);
        json_put_text(out, texts[i].text);
    }
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {
        {"intended_ms", r->intended_ms}, {"settled_ms", r->settled_ms}, {"undo_of", r->undo_of}};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        put_key(out, numbers[i].key);
        if (numbers[i].value < 0)
            buf_puts(out, "null");
        else
            json_put_int(out, numbers[i].value);
    }
    buf_printf(out, ",\"detour\":%s}", r->detour ? "true" : "false");
}

/* Every intent of the cycle, also those of moves that an undo is about (with what their undo
 * needs), and every outcome that is known. *lost: the executor has discarded moves. */
static int put_history(struct manager *m, int64_t cycle, bool *lost, struct buf *out,
                       struct err *err)
{
    *lost = false;
    struct move_row *rows = NULL;
    size_t n = 0;
    if (store_moves_load(m->store, cycle, &rows, &n, err) < 0)
        return -1;
    struct buf base = BUF_INIT, done = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        const struct move_row *r = &rows[i];
        bool open = strcmp(r->state, "planned") == 0 || strcmp(r->state, "intended") == 0;
        *lost |= strcmp(r->state, "discarded") == 0 && r->settled_ms >= 0;
        if (r->intent) {
            buf_puts(&base, base.size ? "," : "");
            buf_puts(&base, r->intent);
        }
        if (!open && (r->intent || strcmp(r->state, "discarded") != 0)) {
            buf_puts(&done, done.size ? "," : "");
            request_put_outcome(&done, r);
        }
        move_row_wipe(&rows[i]);
    }
    free(rows);
    buf_printf(out, ",\"base\":[%s],\"done\":[%s]", base.size ? base.data : "",
               done.size ? done.data : "");
    buf_wipe(&base);
    buf_wipe(&done);
    return 0;
}

int64_t request_poll_ms(const struct config_app *app)
{
    int64_t poll = app->ready_timeout_ms / POLL_SHARE;
    return poll < POLL_MIN_MS ? POLL_MIN_MS : poll > POLL_MAX_MS ? POLL_MAX_MS : poll;
}

static void put_execute_options(const struct config_app *app, bool lost, struct buf *out)
{
    buf_printf(out,
               "{\"ready_timeout_ms\":%lld,\"poll_ms\":%lld,\"move_stateful\":%s,"
               "\"start_wait_ms\":%lld,\"max_moves\":null,\"max_parallel\":%lld,\"min_gain\":",
               (long long)app->ready_timeout_ms, (long long)request_poll_ms(app),
               app->move_stateful ? "true" : "false", (long long)app->ready_timeout_ms,
               (long long)(app->max_parallel < 0 ? MODEL_MAX_INSTANCES : app->max_parallel));
    json_put_real(out, app->min_gain);
    put_key(out, "min_plan_gain");
    json_put_real(out, app->min_plan_gain);
    buf_puts(out, lost ? ",\"lost\":true}" : "}");
}

static int build_execute(struct manager *m, const struct engine_cycle *c,
                         const struct config_app *app, struct buf *out, int64_t *allowance_ms,
                         struct err *err)
{
    struct docs *d = &m->docs;
    bool undo = c->state == CYCLE_UNDOING;
    AUTO(plan) struct plan *plan = NULL;
    if (plan_remaining(m, c, undo, &plan, err) < 0)
        return -1;
    request_put_app(out, app);
    buf_printf(out, ",\"cycle\":%lld,\"undo\":%s", (long long)c->id, undo ? "true" : "false");
    put_key(out, "orchestrator");
    request_put_source(out, m->config, app->orchestrator ? app->orchestrator : app->cluster);
    put_key(out, "sources");
    buf_puts(out, "{\"cluster\":");
    request_put_source(out, m->config, app->cluster);
    buf_puts(out, "}");
    put_key(out, "analysis");
    buf_add(out, d->analysis_text.data, d->analysis_text.size);
    put_key(out, "model");
    buf_add(out, d->model_text.data, d->model_text.size);
    put_key(out, "plan");
    plan_encode(plan, d->model, true, out);
    bool lost;
    if (put_history(m, c->id, &lost, out, err) < 0)
        return -1;
    put_key(out, "options");
    put_execute_options(app, lost, out);
    buf_puts(out, "}");
    /* A move may wait for its replica as long as configured before its counter grows; ten such
     * times are too few for a plan of more moves. */
    int64_t one = *allowance_ms + app->ready_timeout_ms;
    int64_t share = one * (int64_t)(plan->n_moves + 1) / DEADLINE_MAX_LENGTHS;
    *allowance_ms = one > share ? one : share;
    return 0;
}

int request_build(struct manager *m, const struct engine_cycle *c, struct buf *body,
                  int64_t *allowance_ms, struct err *err)
{
    const struct config_app *app = manager_app_times(m, m->engine.apps[c->app].name);
    enum party stage;
    enum message_type request;
    if (!app || !engine_request(c, &stage, &request))
        return err_set(err, ERR_CONFIG, "app %s: no longer configured",
                       m->engine.apps[c->app].name);
    if (request == MSG_COLLECT) {
        build_collect(m, c, app, body);
        return 0;
    }
    if (c->state == CYCLE_VERIFYING) {
        if (m->verify_cycle != c->id)
            return err_set(err, ERR_INTERNAL, "cycle %lld: nothing collected to verify",
                           (long long)c->id);
        build_analyze(app, &m->verify_text, body);
        return 0;
    }
    if (docs_load(m, c->id, err) < 0)
        return -1;
    if (!m->docs.model)
        return err_set(err, ERR_NOT_FOUND, "cycle %lld: no snapshot", (long long)c->id);
    if (request == MSG_ANALYZE) {
        build_analyze(app, &m->docs.model_text, body);
        return 0;
    }
    if (!m->docs.analysis || (request == MSG_EXECUTE && !m->docs.plan))
        return err_set(err, ERR_NOT_FOUND, "cycle %lld: no %s", (long long)c->id,
                       m->docs.analysis ? "plan" : "analysis");
    if (request == MSG_PLAN) {
        build_plan(m, app, body);
        *allowance_ms += app->time_limit_ms;
        return 0;
    }
    return build_execute(m, c, app, body, allowance_ms, err);
}
