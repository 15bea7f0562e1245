/* pack.h - placements made and mended as a whole: heavy-edge merging with best-fit packing (the
 * start of a search), emptying of hosts, and renaming of hosts so that fewer instances move. */
#ifndef REMAP_PLANNER_PACK_H
#define REMAP_PLANNER_PACK_H

#include "planner/anneal.h"

/* Merges partners in descending degree while a host can hold them, then packs the clusters best-fit,
 * largest first. What cannot move stays. The result may be over capacity where packing fails. The
 * place must be that of the start. */
void pack_merge(struct place *place);
/* Puts every unplaced instance on the host where it gains most and fits; returns the first that fits
 * nowhere, or -1. */
int pack_unplaced(struct place *place);
/* Takes what costs least off hosts that are over their capacity and received something, and places it
 * as above. True when the place holds then. */
bool pack_mend(struct place *place);
/* The residents of the host of instance `from` that were not seen and hang together with it by positive
 * links, itself first, into list; marks them seen. Returns how many. */
int pack_component(const struct place *place, int from, int *list, bool *seen);
/* Empties hosts whose clusters fit elsewhere without loss of score. */
void pack_empty(struct place *place, const struct plan_options *options, struct effort *effort);
/* Exchanges whole hosts where fewer instances move then. */
void pack_relabel(struct place *place, const struct plan_options *options);

#endif
