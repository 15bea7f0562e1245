/* model_json.h - the JSON forms of contract.md 2 and 3: model, analysis, plan. Strict when reading
 * (ERR_INPUT with the place); deterministic when writing (same struct, same bytes). */
#ifndef REMAP_MODEL_JSON_H
#define REMAP_MODEL_JSON_H

#include "model/base/buf.h"
#include "model/base/json.h"
#include "model/plan.h"

/* Text → model; checks everything of contract.md 2. Frees its tree before returning. */
struct model *model_decode(const char *text, size_t size, struct err *err);
/* The same from a value inside a larger document. */
struct model *model_decode_value(const struct jval *value, struct err *err);
void model_encode(const struct model *model, struct buf *out);

struct analysis *analysis_decode_value(const struct jval *value, const struct model *model,
                                       struct err *err);
void analysis_encode(const struct analysis *analysis, const struct model *model, struct buf *out);

struct plan *plan_decode_value(const struct jval *value, const struct model *model,
                               struct err *err);
/* Keys in the order of contract.md 3. `measured` false leaves solve_ms out (identity for replay). */
void plan_encode(const struct plan *plan, const struct model *model, bool measured,
                 struct buf *out);

const char *granularity_name(enum granularity granularity); /* "instance", "service" */
const char *objective_name(enum objective objective);
const char *plan_status_name(enum plan_status status);
const char *level_name(enum level level);

#endif
