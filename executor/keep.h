/* keep.h - the executor's life between requests: for each orchestrator that needs it (struct
 * keeper) the lock in the cluster by which of several daemons only one writes, the switch by which
 * people pause it, and the listener by which the cluster asks.
 *
 * Why the lock lives here: the executor is the only process that writes to a cluster, and one of
 * two that have a network. It holds the lock while it is up, not only during a plan: so a second
 * daemon knows before it plans a move that it may not make any, a leader need not fight for each
 * plan, and what an earlier leader left half done is dealt with at once, not when the next plan
 * comes.
 *
 * Everything runs in timers of the stage's loop, also while a request is under way or waits for a
 * foreign answer (http_idle). If they should ever not run, the lock runs out by the clock alone,
 * and may_write() says no: what is slow is safe. */
#ifndef REMAP_EXECUTOR_KEEP_H
#define REMAP_EXECUTOR_KEEP_H

#include "adapters/adapter.h"
#include "executor/record.h"
#include "model/wire/stage.h"

/* The three hooks of struct stage_program. */
int keep_open(struct stage *stage, void **state, struct err *err);
void keep_configure(void *state, const char *body, size_t size);
void keep_close(void *state);

struct kept; /* what is kept up for one source */

/* For a request: the one of this source, opened now where it was not configured (a filter, `once`).
 * *out NULL: the orchestrator needs none. kept_leave() when the request ends; accepts NULL. */
int kept_join(struct stage *stage, const struct orchestrator *orchestrator,
              const struct source *source, struct kept **out, struct err *err);
void kept_leave(struct kept *kept);

/* All of these accept NULL, which may do everything. */
void *kept_ctx(const struct kept *kept);
/* Waits until the lock is ours and nothing of an earlier leader is open. ERR_REFUSED: somebody else
 * holds it, also after the time in which a dead one's hold ends; or stopped. */
int kept_await(struct kept *kept, struct err *err);
/* struct keeper's. */
int kept_may_write(struct kept *kept, struct err *err);
/* Paused: *why, else NULL. Borrowed for this turn of the loop. */
bool kept_paused(const struct kept *kept, const char **why);
/* A move that is about to be asked for: its mark is ours, whatever the store said at the start. */
void kept_own(struct kept *kept, int64_t cycle, int64_t seq);
/* What became of a move, for the people of the cluster. Discarded moves are not told. */
void kept_announce(struct kept *kept, int64_t cycle, const struct outcome *outcome);

#endif
