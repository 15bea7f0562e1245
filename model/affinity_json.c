/* affinity_json.c - analyses as documents: the form of `remap analyze -o json` (contract.md 1). */
#include <stdlib.h>

#include "model/model_json.h"

static void put_rows(struct buf *out, const struct model *model, const struct affinity *rows,
                     size_t n)
{
    buf_add(out, "[", 1);
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? ",{\"a\":" : "{\"a\":");
        json_put_text(out, model_end_name(model, rows[i].level, rows[i].a));
        buf_puts(out, ",\"b\":");
        json_put_text(out, model_end_name(model, rows[i].level, rows[i].b));
        buf_puts(out, ",\"degree\":");
        json_put_real(out, rows[i].degree);
        buf_puts(out, ",\"count\":");
        json_put_int(out, rows[i].count);
        buf_puts(out, ",\"bytes\":");
        if (rows[i].bytes < 0)
            buf_puts(out, "null");
        else
            json_put_int(out, rows[i].bytes);
        buf_add(out, "}", 1);
    }
    buf_add(out, "]", 1);
}

void analysis_encode(const struct analysis *analysis, const struct model *model, struct buf *out)
{
    buf_puts(out, "{\"v\":1,\"weight_used\":");
    json_put_real(out, analysis->weight_used);
    buf_puts(out, ",\"count\":");
    json_put_int(out, analysis->count);
    buf_puts(out, ",\"bytes\":");
    if (analysis->bytes < 0)
        buf_puts(out, "null");
    else
        json_put_int(out, analysis->bytes);
    buf_puts(out, ",\"affinities\":");
    put_rows(out, model, analysis->rows, analysis->n_rows);
    buf_puts(out, ",\"service_affinities\":");
    put_rows(out, model, analysis->service_rows, analysis->n_service_rows);
    buf_puts(out, ",\"ignored\":");
    json_put_int(out, analysis->ignored);
    buf_add(out, "}", 1);
}

/* Sums of a document may be above its largest single number; model_check keeps them below this. */
#define SUM_MAX (INT64_MAX / 2)

static int read_nullable(const struct jval *object, const char *key, int64_t *out, struct err *err)
{
    struct jval v = jval_get(object, key);

    *out = -1;
    return jval_null(&v) ? 0 : jval_int(&v, 0, SUM_MAX, out, err);
}

static int read_row(const struct model *model, const struct jval *v, bool services,
                    struct affinity *row, struct err *err)
{
    static const char *const keys[] = {"a", "b", "degree", "count", "bytes", NULL};
    struct jval ends[2] = {jval_get(v, "a"), jval_get(v, "b")}, degree = jval_get(v, "degree"),
                count = jval_get(v, "count");
    const char *names[2];
    int rc = 0;

    if (jval_object(v, keys, err) < 0 || jval_name(&ends[0], &names[0], err) < 0 ||
        jval_name(&ends[1], &names[1], err) < 0 ||
        jval_real(&degree, 0, 1e18, &row->degree, err) < 0 ||
        jval_int(&count, 0, SUM_MAX, &row->count, err) < 0 ||
        read_nullable(v, "bytes", &row->bytes, err) < 0)
        return -1;
    row->level = LEVEL_SERVICE;
    if (services) {
        row->a = model_service(model, names[0]);
        row->b = model_service(model, names[1]);
    } else {
        rc = model_ends(model, names[0], names[1], &row->level, &row->a, &row->b);
    }
    if (rc < 0 || row->a < 0 || row->b < 0)
        return jval_error(v, err, "a or b is not in the model");
    if (row->a == row->b)
        return jval_error(v, err, "a and b are the same");
    affinity_order(model, row);
    return 0;
}

static int read_rows(const struct model *model, const struct jval *list, bool services,
                     struct affinity **rows, size_t *n_rows, struct err *err)
{
    size_t n;

    if (jval_array(list, MODEL_MAX_ROWS, &n, err) < 0)
        return -1;
    *rows = mem_array(n, sizeof **rows);
    for (*n_rows = 0; *n_rows < n; (*n_rows)++) {
        struct jval v = jval_at(list, *n_rows);
        if (read_row(model, &v, services, &(*rows)[*n_rows], err) < 0)
            return -1;
    }
    return 0;
}

struct analysis *analysis_decode_value(const struct jval *value, const struct model *model,
                                       struct err *err)
{
    static const char *const keys[] = {"v",          "weight_used",        "count",   "bytes",
                                       "affinities", "service_affinities", "ignored", NULL};
    AUTO(analysis) struct analysis *analysis = analysis_new();
    struct jval version = jval_get(value, "v"), weight = jval_get(value, "weight_used"),
                count = jval_get(value, "count"), ignored = jval_get(value, "ignored"),
                rows = jval_get(value, "affinities"),
                service_rows = jval_get(value, "service_affinities");
    int64_t v;

    if (jval_object(value, keys, err) < 0 || jval_int(&version, 1, 1, &v, err) < 0 ||
        jval_real(&weight, 0, 1, &analysis->weight_used, err) < 0 ||
        jval_int(&count, 0, SUM_MAX, &analysis->count, err) < 0 ||
        jval_int(&ignored, 0, SUM_MAX, &analysis->ignored, err) < 0 ||
        read_nullable(value, "bytes", &analysis->bytes, err) < 0 ||
        read_rows(model, &rows, false, &analysis->rows, &analysis->n_rows, err) < 0 ||
        read_rows(model, &service_rows, true, &analysis->service_rows, &analysis->n_service_rows,
                  err) < 0)
        return NULL;
    return steal(analysis);
}
