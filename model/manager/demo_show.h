/* demo_show.h - what a cycle changed, for people: read from the store alone, so that nothing can be
 * shown that was not measured and kept. */
#ifndef REMAP_MANAGER_DEMO_SHOW_H
#define REMAP_MANAGER_DEMO_SHOW_H

#include "model/base/err.h"
#include "model/manager/draw.h"
#include "model/store/store.h"

/* The app's cycle `cycle`: result line, drawings and table of hosts before and after, measures
 * before, predicted, measured. */
int demo_show(struct store *store, int64_t cycle, const struct draw_style *style, struct buf *out,
              struct err *err);
/* The same as one JSON object's members, without braces. */
int demo_json(struct store *store, int64_t cycle, struct buf *out, struct err *err);

#endif
