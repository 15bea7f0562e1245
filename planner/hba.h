/* hba.h - the heuristic planner of the paper (HBA, §5.5.1 Algorithm 1, §6.3.1).
 *
 * Pairs in descending affinity; the second partner moves to the first's host, else the first to the
 * second's; both are settled afterwards. Partners that share a host already are settled there. A
 * stateful, pinned or unmovable instance never moves, an unplaced one stays so. O(K log K). */
#ifndef REMAP_PLANNER_HBA_H
#define REMAP_PLANNER_HBA_H

#include "planner/planner.h"

extern const struct planner hba_planner;

#endif
