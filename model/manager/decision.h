/* decision.h - what one cycle knew, decided and did, read back from the store: the documents that
 * travelled, decoded, and the moves with their states. For show, explain and replay. */
#ifndef REMAP_MANAGER_DECISION_H
#define REMAP_MANAGER_DECISION_H

#include "model/affinity.h"
#include "model/plan.h"
#include "model/store/store.h"

struct decision {
    struct cycle_row cycle;
    struct buf model_text, analysis_text, options_text, plan_text; /* empty: the cycle has none */
    struct model *model;       /* NULL: the cycle ended before it had one; then the others are too */
    struct analysis *analysis; /* NULL, or that of the model's given affinities */
    struct plan *plan;
    struct move_row *moves; /* as they are now, also undos and detours */
    size_t n_moves;
};

/* ERR_NOT_FOUND "cycle 7: there is none; the latest is 5". *out is wiped by the caller. */
int decision_cycle(struct store *store, int64_t id, struct cycle_row *out, struct err *err);

/* ERR_NOT_FOUND: no such cycle. Caller wipes, also after an error. */
int decision_load(struct store *store, int64_t cycle, struct decision *out, struct err *err);
void decision_wipe(struct decision *decision);
#define AUTO_DECISION __attribute__((cleanup(decision_wipe)))

/* The row of the plan's own move `seq`, NULL when there is none. */
const struct move_row *decision_move(const struct decision *decision, int64_t seq);

#endif
