/* recombine.h - placements put together anew from patterns of hosts (planning.md 5: the better lever
 * than more annealing): patterns by tabu search at prices, prices by packing.h, placements by dives.
 * What column generation does for the root of a proof, without the proof and in the time of a
 * heuristic: 200 services end some 1 % below the optimum in 25 ms, where annealing needs seconds. */
#ifndef REMAP_PLANNER_RECOMBINE_H
#define REMAP_PLANNER_RECOMBINE_H

#include "planner/anneal.h"

/* True where patterns can say the problem and the time limit lets a first dive end: looks at sizes and
 * options, never at the clock. */
bool recombine_suits(const struct space *space, const struct plan_options *options);

/* Improves *best, which must be valid; `place` is left anywhere. The seed turns the dives. True when
 * something better was found. */
bool recombine(struct place *place, const struct plan_options *options, struct effort *effort,
               int *best_at, struct value *best);

#endif
