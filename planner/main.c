/* main.c - program remap-planner: model and affinities in, plan out (`plan`, model/wire/README.md).
 * The only program that links GLPK. */
#include <stdlib.h>
#include "model/base/clock.h"
#include "model/model_json.h"
#include "model/wire/stage.h"
#include "planner/planner.h"

struct request {
    struct plan_options options;
    char *planner;
    struct model *model;
    struct analysis *analysis; /* NULL: the model's given degrees */
};

static void request_wipe(struct request *request)
{
    free(request->planner);
    model_free(request->model);
    analysis_free(request->analysis);
}
#define AUTO_REQUEST __attribute__((cleanup(request_wipe)))

static int optional_count(const struct jval *object, const char *key, int64_t *out,
                          struct err *err)
{
    struct jval value = jval_get(object, key);
    if (jval_absent(&value) || jval_null(&value))
        return 0;
    return jval_int(&value, 0, MODEL_MAX_NUMBER, out, err);
}

static int optional_real(const struct jval *object, const char *key, double *out, struct err *err)
{
    struct jval value = jval_get(object, key);
    return jval_absent(&value) || jval_null(&value) ? 0 : jval_real(&value, 0, 1e15, out, err);
}

static int options_read(const struct jval *value, struct request *out, struct err *err)
{
    static const char *const keys[] = {"planner",   "objective",     "granularity", "time_limit_ms",
                                       "max_moves", "move_stateful", "frontier",    "seed",
                                       "iterations", "min_gain", "leave_broken", NULL};
    static const char *const objectives[] = {"affinity", "hosts", NULL};
    static const char *const granularities[] = {"instance", "service", NULL};
    struct plan_options *options = &out->options;
    struct jval objective = jval_get(value, "objective");
    struct jval granularity = jval_get(value, "granularity");
    int choice = 0;
    int64_t seed = 0;
    *options = plan_options_default;
    if (jval_object(value, keys, err) < 0 ||
        jval_opt_text(value, "planner", 64, &out->planner, err) < 0)
        return -1;
    if (out->planner)
        options->planner = out->planner;
    if (!jval_absent(&objective)) {
        if (jval_choice(&objective, objectives, &choice, err) < 0)
            return -1;
        options->objective = choice ? OBJECTIVE_HOSTS : OBJECTIVE_AFFINITY;
    }
    if (!jval_absent(&granularity)) {
        if (jval_choice(&granularity, granularities, &choice, err) < 0)
            return -1;
        options->granularity = choice ? PER_SERVICE : PER_INSTANCE;
    }
    if (jval_opt_int(value, "time_limit_ms", 1, MODEL_MAX_NUMBER, &options->time_limit_ms, err) <
            0 ||
        optional_count(value, "max_moves", &options->max_moves, err) < 0 ||
        optional_real(value, "min_gain", &options->min_gain, err) < 0 ||
        jval_opt_bool(value, "move_stateful", &options->move_stateful, err) < 0 ||
        jval_opt_bool(value, "frontier", &options->frontier, err) < 0 ||
        jval_opt_bool(value, "leave_broken", &options->leave_broken, err) < 0 ||
        jval_opt_int(value, "seed", 0, MODEL_MAX_NUMBER, &seed, err) < 0 ||
        optional_count(value, "iterations", &options->iterations, err) < 0)
        return -1;
    options->seed = (uint64_t)seed;
    return 0;
}

static int request_read(const struct stage_request *request, struct request *out, struct err *err)
{
    static const char *const keys[] = {"v", "options", "model", "analysis", NULL};
    /* A model within a request: two levels more, as many objects and arrays (model/base/json.c). */
    static const struct json_limits limits = {
        .max_bytes = WIRE_MAX_BODY, .max_depth = 66, .max_containers = 20000000};
    AUTO_JSON json_t *tree = json_parse(request->body, request->size, &limits, err);
    if (!tree)
        return -1;
    struct jval root = jval_root(tree), v = jval_get(&root, "v");
    struct jval options = jval_get(&root, "options"), model = jval_get(&root, "model");
    struct jval analysis = jval_get(&root, "analysis");
    int64_t version = 0;
    if (jval_object(&root, keys, err) < 0 || jval_int(&v, 1, 1, &version, err) < 0 ||
        options_read(&options, out, err) < 0)
        return -1;
    out->model = model_decode_value(&model, err);
    if (!out->model)
        return -1;
    if (jval_absent(&analysis) || jval_null(&analysis))
        return 0;
    out->analysis = analysis_decode_value(&analysis, out->model, err);
    return out->analysis ? 0 : -1;
}

struct reporter {
    struct stage *stage;
};

static int report(void *ctx, int64_t done, const char *text)
{
    const struct reporter *reporter = ctx;
    struct err err = ERR_INIT;
    struct buf members = BUF_INIT;
    buf_puts(&members, "\"text\":");
    json_put_text(&members, text);
    int result = stage_progress(reporter->stage, done, members.data, &err);
    buf_wipe(&members);
    return result;
}

static int handle_plan(struct stage *stage, const struct stage_request *request,
                       struct buf *result, int *exit_code, struct err *err)
{
    AUTO_REQUEST struct request in = {0};
    AUTO(plan) struct plan *plan = NULL;
    int64_t start_ms = clock_mono_ms();
    struct reporter reporter = {stage};
    if (request_read(request, &in, err) < 0)
        return -1;
    in.options.start_ms = start_ms;
    in.options.progress = report;
    in.options.progress_ctx = &reporter;
    if (planner_run(in.model, in.analysis, &in.options, &plan, err) < 0)
        return -1;
    if (plan->status == PLAN_INFEASIBLE)
        *exit_code = err_exit_code(ERR_INFEASIBLE);
    else if (plan->status == PLAN_TIMEOUT)
        *exit_code = err_exit_code(ERR_TIMEOUT);
    plan_encode(plan, in.model, true, result);
    return 0;
}

static const struct stage_handler handlers[] = {{MSG_PLAN, handle_plan}};

static const struct stage_program planner_stage = {
    .party = PARTY_PLANNER,
    .summary = "moves that raise the affinity kept on hosts",
    .handlers = handlers,
    .n_handlers = ARRAY_LEN(handlers),
};

int main(int argc, char **argv)
{
    return stage_main(&planner_stage, argc, argv);
}
