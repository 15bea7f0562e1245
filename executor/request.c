/* request.c - execute requests, read strictly. */
#include "executor/request.h"

#include <stdlib.h>
#include <string.h>
#include "model/model_json.h"

#define MAX_NAMES 100000 /* namespaces, services of one app */
#define MAX_OPTIONS 1000 /* of one source */
#define MAX_OPTION_BYTES 65536
#define MAX_MS (INT64_C(1000) * 3600 * 24 * 365)

static void names_free(const char *const *names)
{
    char *const *owned = (char *const *)names;
    for (size_t i = 0; owned && owned[i]; i++) {
        free(owned[i]);
    }
    free((void *)names);
}

static int read_names(const struct jval *object, const char *key, const char *const **out,
                      struct err *err)
{
    struct jval list = jval_get(object, key);
    size_t n;
    if (jval_array(&list, MAX_NAMES, &n, err) < 0) {
        return -1;
    }
    const char **names = mem_array(n + 1, sizeof *names);
    *out = names;
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(&list, i);
        const char *name;
        if (jval_name(&v, &name, err) < 0) {
            return -1;
        }
        names[i] = mem_strdup(name);
    }
    return 0;
}

static int read_copy(const struct jval *object, const char *key, size_t max, const char **out,
                     struct err *err)
{
    struct jval v = jval_get(object, key);
    const char *text;
    if (jval_text(&v, max, &text, err) < 0) {
        return -1;
    }
    *out = mem_strdup(text);
    return 0;
}

int request_read_app(const struct jval *root, struct app_scope *app, struct err *err)
{
    static const char *const keys[] = {"name", "namespaces", "services", NULL};
    struct jval v = jval_get(root, "app");
    return jval_object(&v, keys, err) < 0 || read_copy(&v, "name", 253, &app->name, err) < 0 ||
                   read_names(&v, "namespaces", &app->namespaces, err) < 0 ||
                   read_names(&v, "services", &app->services, err) < 0
               ? -1
               : 0;
}

int request_read_source(const struct jval *object, const char *key, struct source *out,
                        struct err *err)
{
    static const char *const keys[] = {"name", "type", "options", NULL};
    static const char *const option_keys[] = {"name", "value", NULL};
    struct jval v = jval_get(object, key);
    struct jval list = jval_get(&v, "options");
    size_t n;
    if (jval_object(&v, keys, err) < 0 || read_copy(&v, "name", 253, &out->name, err) < 0 ||
        read_copy(&v, "type", 253, &out->type, err) < 0 ||
        jval_array(&list, MAX_OPTIONS, &n, err) < 0) {
        return -1;
    }
    struct option *options = mem_array(n + 1, sizeof *options);
    out->options = options;
    for (size_t i = 0; i < n; i++) {
        struct jval row = jval_at(&list, i);
        out->n_options = i + 1;
        if (jval_object(&row, option_keys, err) < 0 ||
            read_copy(&row, "name", 253, &options[i].name, err) < 0 ||
            read_copy(&row, "value", MAX_OPTION_BYTES, &options[i].value, err) < 0) {
            return -1;
        }
    }
    return 0;
}

void request_wipe_source(struct source *source)
{
    for (size_t i = 0; i < source->n_options; i++) {
        free((void *)source->options[i].name);
        free((void *)source->options[i].value);
    }
    free((void *)source->options);
    free((void *)source->name);
    free((void *)source->type);
}

void request_wipe_app(struct app_scope *app)
{
    free((void *)app->name);
    names_free(app->namespaces);
    names_free(app->services);
}

static int read_sources(const struct jval *root, struct request *r, struct err *err)
{
    static const char *const keys[] = {"cluster", NULL};
    struct jval v = jval_get(root, "sources");
    return request_read_source(root, "orchestrator", &r->orchestrator, err) < 0 ||
                   jval_object(&v, keys, err) < 0 ||
                   request_read_source(&v, "cluster", &r->cluster, err) < 0
               ? -1
               : 0;
}

static int read_ms(const struct jval *object, const char *key, int64_t min, int64_t *out,
                   struct err *err)
{
    struct jval v = jval_get(object, key);
    return jval_int(&v, min, MAX_MS, out, err);
}

static int read_share(const struct jval *object, const char *key, double *out, struct err *err)
{
    struct jval v = jval_get(object, key);
    return jval_absent(&v) ? 0 : jval_real(&v, 0, 1, out, err);
}

static int read_options(const struct jval *root, struct request *r, struct err *err)
{
    static const char *const keys[] = {"ready_timeout_ms", "poll_ms",   "move_stateful",
                                       "start_wait_ms",    "max_moves", "max_parallel",
                                       "min_gain",         "min_plan_gain", "lost",
                                       NULL};
    struct jval v = jval_get(root, "options");
    struct jval stateful = jval_get(&v, "move_stateful"), max = jval_get(&v, "max_moves");
    r->max_moves = -1;
    r->max_parallel = 1;
    r->min_gain = r->min_plan_gain = -1;
    return jval_object(&v, keys, err) < 0 ||
                   read_ms(&v, "ready_timeout_ms", 0, &r->ready_timeout_ms, err) < 0 ||
                   read_ms(&v, "poll_ms", 1, &r->poll_ms, err) < 0 ||
                   read_ms(&v, "start_wait_ms", 0, &r->start_wait_ms, err) < 0 ||
                   jval_bool(&stateful, &r->move_stateful, err) < 0 ||
                   jval_opt_int(&v, "max_parallel", 1, MODEL_MAX_INSTANCES, &r->max_parallel,
                                err) < 0 ||
                   jval_opt_bool(&v, "lost", &r->lost, err) < 0 ||
                   read_share(&v, "min_gain", &r->min_gain, err) < 0 ||
                   read_share(&v, "min_plan_gain", &r->min_plan_gain, err) < 0 ||
                   (!jval_null(&max) &&
                    jval_int(&max, 0, MODEL_MAX_INSTANCES, &r->max_moves, err) < 0)
               ? -1
               : 0;
}

static int read_history(const struct jval *root, struct request *r, struct err *err)
{
    struct jval base = jval_get(root, "base"), done = jval_get(root, "done");
    size_t n;
    if (jval_array(&base, MODEL_MAX_ROWS, &n, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(&base, i);
        struct intent intent;
        if (intent_decode(&v, &intent, err) < 0) {
            return -1;
        }
        *ARRAY_PUSH(r->base, r->n_base) = mem_dup(&intent, sizeof intent);
    }
    if (jval_array(&done, MODEL_MAX_ROWS, &n, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(&done, i);
        struct outcome outcome;
        if (outcome_decode(&v, &outcome, err) < 0) {
            return -1;
        }
        *ARRAY_PUSH(r->done.list, r->done.n) = outcome;
    }
    return 0;
}

static int read_documents(const struct jval *root, struct request *r, struct err *err)
{
    struct jval model = jval_get(root, "model"), plan = jval_get(root, "plan");
    struct jval analysis = jval_get(root, "analysis");
    r->model = model_decode_value(&model, err);
    if (!r->model) {
        return -1;
    }
    if (!jval_null(&analysis)) {
        r->analysis = analysis_decode_value(&analysis, r->model, err);
        if (!r->analysis) {
            return -1;
        }
    }
    r->plan = plan_decode_value(&plan, r->model, err);
    return r->plan ? 0 : -1;
}

static int request_read(json_t *tree, struct request *r, struct err *err)
{
    static const char *const keys[] = {"v",       "app",     "cycle",    "undo",  "orchestrator",
                                       "sources", "options", "analysis", "model", "plan",
                                       "base",    "done",    NULL};
    struct jval root = jval_root(tree);
    struct jval v = jval_get(&root, "v"), cycle = jval_get(&root, "cycle");
    struct jval undo = jval_get(&root, "undo");
    int64_t version;
    return jval_object(&root, keys, err) < 0 || jval_int(&v, 1, 1, &version, err) < 0 ||
                   jval_int(&cycle, 0, MODEL_MAX_NUMBER, &r->cycle, err) < 0 ||
                   jval_bool(&undo, &r->undo, err) < 0 ||
                   request_read_app(&root, &r->app, err) < 0 || read_sources(&root, r, err) < 0 ||
                   read_options(&root, r, err) < 0 || read_documents(&root, r, err) < 0 ||
                   read_history(&root, r, err) < 0
               ? -1
               : 0;
}

struct request *request_decode(const char *text, size_t size, struct err *err)
{
    /* A request holds several documents, each within the limit of one. */
    struct json_limits limits = json_limits_document;
    limits.max_bytes *= 3;
    AUTO_JSON json_t *tree = json_parse(text, size, &limits, err);
    if (!tree) {
        return NULL;
    }
    AUTO(request) struct request *r = mem_alloc(sizeof *r);
    if (request_read(tree, r, err) < 0) {
        return NULL;
    }
    return steal(r);
}

void request_free(struct request *r)
{
    if (!r) {
        return;
    }
    request_wipe_app(&r->app);
    request_wipe_source(&r->orchestrator);
    request_wipe_source(&r->cluster);
    for (size_t i = 0; i < r->n_base; i++) {
        intent_wipe(r->base[i]);
        free(r->base[i]);
    }
    free(r->base);
    outcomes_wipe(&r->done);
    plan_free(r->plan);
    analysis_free(r->analysis);
    model_free(r->model);
    free(r);
}

const struct intent *request_intent(const struct request *r, int64_t seq)
{
    for (size_t i = 0; i < r->n_base; i++) {
        if (r->base[i]->seq == seq) {
            return r->base[i];
        }
    }
    return NULL;
}

int64_t request_free_seq(const struct request *r)
{
    int64_t last = (int64_t)r->model->n_instances;
    for (size_t i = 0; i < r->plan->n_moves; i++) {
        last = r->plan->moves[i].seq > last ? r->plan->moves[i].seq : last;
    }
    for (size_t i = 0; i < r->n_base; i++) {
        last = r->base[i]->seq > last ? r->base[i]->seq : last;
    }
    for (size_t i = 0; i < r->done.n; i++) {
        last = r->done.list[i].seq > last ? r->done.list[i].seq : last;
    }
    return last + 1;
}
