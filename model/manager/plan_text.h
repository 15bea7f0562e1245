/* plan_text.h - plans for people: a summary, the moves in order, the hosts before and after. */
#ifndef REMAP_MANAGER_PLAN_TEXT_H
#define REMAP_MANAGER_PLAN_TEXT_H

#include <jansson.h>
#include "model/base/buf.h"
#include "model/plan.h"

/* Appends the text of a plan document that was made from `model`. */
int plan_text_document(json_t *document, const struct model *model, struct buf *out,
                       struct err *err);
void plan_text(const struct plan *plan, const struct model *model, struct buf *out);

#endif
