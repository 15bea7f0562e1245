/* hubs.h - the heuristic for any size and any rule: heavy-edge merging, best-fit packing, annealing
 * with soft capacities, recombination, host emptying (planning.md 5; the paper's wish of §9 that groups of services
 * move together). */
#ifndef REMAP_PLANNER_HUBS_H
#define REMAP_PLANNER_HUBS_H

#include "planner/anneal.h"

extern const struct planner hubs_planner;

/* The search itself, for planners that build on it: the best placement found (host by instance) in
 * best_at and its value in *best; best->valid is false when none was found. */
void hubs_search(struct space *space, const struct plan_options *options, struct effort *effort,
                 int *best_at, struct value *best);

/* The same at either granularity; with hosts as objective moves have a price only beside as few hosts. */
void hubs_answer(struct space *space, const struct plan_options *options, struct effort *effort,
                 int *best_at, struct value *best);

/* Places what is unplaced, polishes, and keeps the result where it is better than *best. */
void hubs_candidate(struct place *place, const struct plan_options *options,
                    struct effort *effort, int *best_at, struct value *best);

/* What planners with a final placement share: moves in order, reasons, texts; or, where none was
 * found, the status (infeasible only when one instance alone proves it) and the start. */
int hubs_finish(struct space *space, const struct plan_options *options,
                const struct effort *effort, const int *best_at, const struct value *best,
                struct plan *out, struct err *err);

/* What no search can find, seen at once: an instance that fits on no host, more instances placed nowhere
 * than may move, more needed than all hosts have. NULL: nothing. Caller frees. */
char *hubs_impossible(const struct space *space, const struct plan_options *options);

#endif
