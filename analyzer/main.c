/* main.c - program remap-analyzer: model in, affinities out (`analyze`), or how far they have moved
 * since a placement was planned (`drift`; model/wire/README.md). */
#include <stdlib.h>

#include "analyzer/analyzer.h"
#include "analyzer/drift.h"
#include "model/model_json.h"
#include "model/wire/stage.h"

struct request {
    json_t *tree; /* names of `reference` live in it */
    double weight;
    struct model *model;
    struct drift_pair *reference; /* of `drift` alone */
    size_t n_reference;
};

static void request_wipe(struct request *request)
{
    json_decref(request->tree);
    model_free(request->model);
    free(request->reference);
}
#define AUTO_REQUEST __attribute__((cleanup(request_wipe)))

static int pair_read(const struct jval *v, struct drift_pair *out, struct err *err)
{
    static const char *const keys[] = {"a", "b", "degree", "count", "bytes", NULL};
    struct jval a = jval_get(v, "a"), b = jval_get(v, "b"), degree = jval_get(v, "degree");
    struct jval count = jval_get(v, "count"), bytes = jval_get(v, "bytes");
    out->bytes = -1;
    if (jval_object(v, keys, err) < 0 || jval_name(&a, &out->a, err) < 0 ||
        jval_name(&b, &out->b, err) < 0 || jval_real(&degree, 0, 1e18, &out->degree, err) < 0 ||
        jval_int(&count, 0, INT64_MAX, &out->count, err) < 0)
        return -1;
    return jval_null(&bytes) ? 0 : jval_int(&bytes, 0, INT64_MAX, &out->bytes, err);
}

static int reference_read(const struct jval *root, struct request *out, struct err *err)
{
    struct jval list = jval_get(root, "reference");
    size_t n;
    if (jval_array(&list, MODEL_MAX_ROWS, &n, err) < 0)
        return -1;
    out->reference = mem_array(n + 1, sizeof *out->reference);
    for (; out->n_reference < n; out->n_reference++) {
        struct jval v = jval_at(&list, out->n_reference);
        if (pair_read(&v, &out->reference[out->n_reference], err) < 0)
            return -1;
    }
    return 0;
}

static int request_read(const struct stage_request *request, struct request *out, struct err *err)
{
    static const char *const analyze_keys[] = {"v", "weight", "model", NULL};
    static const char *const drift_keys[] = {"v", "weight", "model", "reference", NULL};
    bool drift = request->env->type == MSG_DRIFT;
    out->tree = json_parse(request->body, request->size, &json_limits_document, err);
    if (!out->tree)
        return -1;
    struct jval root = jval_root(out->tree), v = jval_get(&root, "v");
    struct jval weight = jval_get(&root, "weight"), model = jval_get(&root, "model");
    int64_t version = 0;
    if (jval_object(&root, drift ? drift_keys : analyze_keys, err) < 0 ||
        jval_int(&v, 1, 1, &version, err) < 0 || jval_real(&weight, 0, 1, &out->weight, err) < 0 ||
        (drift && reference_read(&root, out, err) < 0))
        return -1;
    out->model = model_decode_value(&model, err);
    return out->model ? 0 : -1;
}

static int handle_analyze(struct stage *stage, const struct stage_request *request,
                          struct buf *result, int *exit_code, struct err *err)
{
    (void)stage;
    (void)exit_code;
    AUTO_REQUEST struct request in = {0};
    AUTO(analysis) struct analysis *analysis = NULL;
    if (request_read(request, &in, err) < 0 ||
        analyzers[0]->analyze(in.model, in.weight, &analysis, err) < 0)
        return -1;
    analysis_encode(analysis, in.model, result);
    return 0;
}

static void put_known(struct buf *out, const char *key, bool known, double value)
{
    buf_printf(out, ",\"%s\":", key);
    if (known)
        json_put_real(out, value);
    else
        buf_puts(out, "null");
}

static void put_drift(const struct drift_result *drift, double response_ms, struct buf *out)
{
    buf_puts(out, "{\"v\":1");
    put_known(out, "distance", drift->distance >= 0, drift->distance);
    put_known(out, "noise", drift->distance >= 0, drift->noise);
    put_known(out, "response_ms", response_ms >= 0, response_ms);
    buf_puts(out, ",\"pairs\":[");
    for (size_t i = 0; i < drift->n_top; i++) {
        buf_puts(out, i ? ",{\"a\":" : "{\"a\":");
        json_put_text(out, drift->top[i].a);
        buf_puts(out, ",\"b\":");
        json_put_text(out, drift->top[i].b);
        put_known(out, "before", true, drift->top[i].before);
        put_known(out, "now", true, drift->top[i].now);
        buf_puts(out, "}");
    }
    buf_puts(out, "]}");
}

static int handle_drift(struct stage *stage, const struct stage_request *request,
                        struct buf *result, int *exit_code, struct err *err)
{
    (void)stage;
    (void)exit_code;
    AUTO_REQUEST struct request in = {0};
    AUTO(analysis) struct analysis *analysis = NULL;
    if (request_read(request, &in, err) < 0 ||
        analyzers[0]->analyze(in.model, in.weight, &analysis, err) < 0)
        return -1;
    size_t n;
    AUTO_FREE struct drift_pair *now = drift_pairs(in.model, analysis, &n);
    AUTO_FREE int *placement = model_placement(in.model);
    struct drift_result drift = drift_measure(in.reference, in.n_reference, now, n, in.weight);
    put_drift(&drift, placement_response_ms(in.model, placement), result);
    return 0;
}

static const struct stage_handler handlers[] = {{MSG_ANALYZE, handle_analyze},
                                                {MSG_DRIFT, handle_drift}};

static const struct stage_program analyzer_stage = {
    .party = PARTY_ANALYZER,
    .summary = "affinities of a model (Eq. 1)",
    .handlers = handlers,
    .n_handlers = ARRAY_LEN(handlers),
};

int main(int argc, char **argv)
{
    return stage_main(&analyzer_stage, argc, argv);
}
