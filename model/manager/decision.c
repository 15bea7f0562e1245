/* decision.c - see decision.h. */
#include "model/manager/decision.h"

#include <inttypes.h>
#include <stdlib.h>
#include "model/base/json.h"
#include "model/base/mem.h"
#include "model/model_json.h"

int decision_cycle(struct store *store, int64_t id, struct cycle_row *out, struct err *err)
{
    if (store_cycle_get(store, id, out, err) == 0) {
        return 0;
    }
    if (err->kind != ERR_NOT_FOUND) {
        return -1;
    }
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(store, "SELECT max(cycle_id) FROM v_cycles", NULL, &rows, err) ||
        store_rows_next(rows, err) < 0) {
        return -1;
    }
    int64_t latest = store_rows_int(rows, 0, -1);
    if (latest < 0) {
        return err_set(err, ERR_NOT_FOUND, "cycle %" PRId64 ": there is none; no cycle has run yet",
                       id);
    }
    return err_set(err, ERR_NOT_FOUND, "cycle %" PRId64 ": there is none; the latest is %" PRId64,
                   id, latest);
}

void decision_wipe(struct decision *decision)
{
    cycle_row_wipe(&decision->cycle);
    buf_wipe(&decision->model_text);
    buf_wipe(&decision->analysis_text);
    buf_wipe(&decision->options_text);
    buf_wipe(&decision->plan_text);
    model_free(decision->model);
    analysis_free(decision->analysis);
    plan_free(decision->plan);
    for (size_t i = 0; i < decision->n_moves; i++) {
        move_row_wipe(&decision->moves[i]);
    }
    free(decision->moves);
    *decision = (struct decision){0};
}

/* A document that is not there is no error: the cycle did not get so far. */
static int absent_is_fine(int rc, struct err *err)
{
    if (rc && err->kind == ERR_NOT_FOUND) {
        *err = (struct err)ERR_INIT;
        return 0;
    }
    return rc;
}

static int load_texts(struct store *store, int64_t cycle, struct decision *out, struct err *err)
{
    return absent_is_fine(store_snapshot_load(store, cycle, "base", &out->model_text, err), err) ||
                   absent_is_fine(store_analysis_load(store, cycle, &out->analysis_text, err),
                                  err) ||
                   absent_is_fine(
                       store_plan_load(store, cycle, &out->options_text, &out->plan_text, err),
                       err) ||
                   store_moves_load(store, cycle, &out->moves, &out->n_moves, err)
               ? -1
               : 0;
}

static int decode_analysis(struct decision *out, struct err *err)
{
    if (!out->analysis_text.size) {
        out->analysis = out->model->has_affinities ? analysis_from_given(out->model) : NULL;
        return 0;
    }
    AUTO_JSON json_t *tree = json_parse(out->analysis_text.data, out->analysis_text.size,
                                        &json_limits_document, err);
    if (!tree) {
        return -1;
    }
    struct jval root = jval_root(tree);
    out->analysis = analysis_decode_value(&root, out->model, err);
    return out->analysis ? 0 : -1;
}

static int decode_plan(struct decision *out, struct err *err)
{
    if (!out->plan_text.size) {
        return 0;
    }
    AUTO_JSON json_t *tree =
        json_parse(out->plan_text.data, out->plan_text.size, &json_limits_document, err);
    if (!tree) {
        return -1;
    }
    struct jval root = jval_root(tree);
    out->plan = plan_decode_value(&root, out->model, err);
    return out->plan ? 0 : -1;
}

int decision_load(struct store *store, int64_t cycle, struct decision *out, struct err *err)
{
    *out = (struct decision){0};
    /* One state of the file: the daemon may be at this very cycle. */
    if (store_begin(store, err)) {
        return -1;
    }
    int rc = decision_cycle(store, cycle, &out->cycle, err) ||
                     load_texts(store, cycle, out, err)
                 ? -1
                 : 0;
    store_rollback(store);
    if (rc || !out->model_text.size) {
        return rc;
    }
    out->model = model_decode(out->model_text.data, out->model_text.size, err);
    if (!out->model || decode_analysis(out, err) || decode_plan(out, err)) {
        return err_prefix(err, "stored documents of cycle %" PRId64, cycle);
    }
    return 0;
}

const struct move_row *decision_move(const struct decision *decision, int64_t seq)
{
    for (size_t i = 0; i < decision->n_moves; i++) {
        if (decision->moves[i].seq == seq && decision->moves[i].undo_of < 0) {
            return &decision->moves[i];
        }
    }
    return NULL;
}
