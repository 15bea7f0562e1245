/* oa.h - the optimal planner (paper §5.5.2, Eq. 2–5), as a ladder: what the heuristic and the cheap
 * bound prove together, stars by one knapsack, everything else by branch and price. Anytime: the best
 * placement with a proven bound, never nothing (planning.md 6).
 *
 * All of it runs in a child process with a hard deadline, so that an abort, a leak or an overrun of
 * GLPK costs the proof and not the answer (planning.md 7). */
#ifndef REMAP_PLANNER_OA_H
#define REMAP_PLANNER_OA_H

#include "planner/planner.h"

extern const struct planner oa_planner;

#endif
