/* main.c - program remap-analyzer: model in, affinities out (`analyze`, model/wire/README.md). */
#include "analyzer/analyzer.h"
#include "model/model_json.h"
#include "model/wire/stage.h"

struct request {
    double weight;
    struct model *model;
};

static int request_read(const struct stage_request *request, struct request *out, struct err *err)
{
    static const char *const keys[] = {"v", "weight", "model", NULL};
    AUTO_JSON json_t *tree =
        json_parse(request->body, request->size, &json_limits_document, err);
    if (!tree)
        return -1;
    struct jval root = jval_root(tree), v = jval_get(&root, "v");
    struct jval weight = jval_get(&root, "weight"), model = jval_get(&root, "model");
    int64_t version = 0;
    if (jval_object(&root, keys, err) < 0 || jval_int(&v, 1, 1, &version, err) < 0 ||
        jval_real(&weight, 0, 1, &out->weight, err) < 0)
        return -1;
    out->model = model_decode_value(&model, err);
    return out->model ? 0 : -1;
}

static int handle_analyze(struct stage *stage, const struct stage_request *request,
                          struct buf *result, int *exit_code, struct err *err)
{
    (void)stage;
    (void)exit_code;
    struct request in = {0};
    if (request_read(request, &in, err) < 0)
        return -1;
    AUTO(model) struct model *model = in.model;
    AUTO(analysis) struct analysis *analysis = NULL;
    if (analyzers[0]->analyze(model, in.weight, &analysis, err) < 0)
        return -1;
    analysis_encode(analysis, model, result);
    return 0;
}

static const struct stage_handler handlers[] = {{MSG_ANALYZE, handle_analyze}};

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
