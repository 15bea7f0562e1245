/* fit.h - "OA modified" of the paper (§7.1): any assignment that the hosts' resources allow, blind to
 * affinity. Ours packs onto few hosts, and onto as few moves as that takes. */
#ifndef REMAP_PLANNER_FIT_H
#define REMAP_PLANNER_FIT_H

#include "planner/planner.h"

extern const struct planner oa_modified_planner;

#endif
