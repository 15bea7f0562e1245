/* plan_worth.h - parts of a plan, and what each of their moves is worth (design.md 7 "Calm"): asked
 * before a plan is begun, and again when a move of it is not made. */
#ifndef REMAP_MODEL_PLAN_WORTH_H
#define REMAP_MODEL_PLAN_WORTH_H

#include "model/plan.h"

#define WORTH_EPSILON 1e-9 /* scores are compared after rounding to 1e-9 (algorithms.md 0) */

/* The plan without the moves that `keep` refuses: placement, scores, counts measured anew. An
 * unordered plan stays so as long as a cycle of it is whole. */
struct plan *plan_subset(const struct plan *plan, const struct model *model,
                         const struct affinity *rows, size_t n_rows,
                         bool (*keep)(void *ctx, const struct move *move), void *ctx);

/* True when the move is one of an exchange on full hosts (contract.md 3 `cycles`). */
bool plan_in_cycle(const struct plan *plan, int seq);

/* For each move what the score would lose, per replica that it restarts, if it alone were not made.
 * The gain in order of application would belittle the first of two moves that bring a pair to a new
 * host. INFINITY where the score is not what the move is for:
 * - it mends a rule that is broken now;
 * - fewer hosts are in use after the plan, and it leaves one that the plan frees;
 * - it is worth less than `least`, but without it the host would not be freed: it makes room for
 * one of those, or a rule asks for it. So a freed host is worth whatever has to restart for it, and
 * nothing else of the plan. Caller frees. */
double *plan_worths(const struct plan *plan, const struct model *model, const struct affinity *rows,
                    size_t n_rows, double least);

#endif
