/* homeward.h - moves that are not worth their price go back (--min-gain). */
#ifndef REMAP_PLANNER_HOMEWARD_H
#define REMAP_PLANNER_HOMEWARD_H

#include "planner/anneal.h"

/* Sends instances back to where they were, alone or with the partners that moved along to the same
 * host, as long as the placement is better for it: by score less prices (space_price_moves()), or by
 * hosts where these come first. What holds before holds afterwards. True when any went. */
bool homeward(struct place *place, const struct plan_options *options);

/* The same for a plan of single instances made without prices: its moves in a new order, its scores
 * and counts. Where nothing goes back the plan stays as it is. */
int homeward_plan(struct plan *plan, const struct model *model, const struct analysis *analysis,
                  const struct plan_options *options, struct err *err);

#endif
