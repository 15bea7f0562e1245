/* contradiction.h - rules that contradict each other or the hosts there are: no placement keeps them,
 * whatever is where now and whoever may move. Seen without a search, so not all of them; what is said
 * here is proven. */
#ifndef REMAP_PLANNER_CONTRADICTION_H
#define REMAP_PLANNER_CONTRADICTION_H

#include "model/model.h"

/* Names the rules, all that are concerned and no other, and what cannot be; NULL: none seen. Without
 * `place_all` what is placed nowhere does not count. Capacities, pins and closed hosts do not either: with
 * these a rule that is broken now is another matter (README.md). Caller frees. */
char *contradiction(const struct model *model, bool place_all);

#endif
