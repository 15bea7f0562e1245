/* ask.h - single words with manager and orchestrator: an intent, a request to place, a look at what
 * came of it. Between drive.c and undo.c, which make sentences of them. */
#ifndef REMAP_EXECUTOR_ASK_H
#define REMAP_EXECUTOR_ASK_H

#include "executor/drive.h"

/* A new intent of a step, kept in the request's base (which owns it); counts are the caller's. */
struct intent *ask_intent_new(struct drive *drive, const struct step *step);
/* Sends it and waits until it is committed. -1: stopped meanwhile. */
int ask_intent(struct drive *drive, const struct intent *intent, struct err *err);

/* One call of place(); what undo needs is committed with the intent at once. */
int ask_place(struct drive *drive, const struct step *step, struct err *err);
/* The same of several moves, as far as it can be done at once: ask_place() of each tells what came of it.
 * begun[i]: it may have had an effect already. */
void ask_place_all(struct drive *drive, const struct step *steps, size_t n, bool *begun);
/* One look: where is the object of the step's mark? */
int ask_report(struct drive *drive, const struct step *step, struct settle_report *out,
               struct err *err);
/* A move that is waited for. */
struct ask_watch {
    int64_t start_ms, ask_ms; /* monotonic: since when; when to ask again */
};
struct ask_watch ask_watch_begin(const struct drive *drive);
/* One look. true: the report is final, or the time to get ready is over (SETTLE_WAITING or
 * SETTLE_PARTIAL then). *err: why the look failed, if it did. */
bool ask_look(struct drive *drive, const struct step *step, struct ask_watch *watch,
              struct settle_report *out, struct err *err);
/* Looks until the orchestrator says something final or the time to get ready is over
 * (SETTLE_WAITING or SETTLE_PARTIAL then). *err: why the last look failed, if it did. */
struct settle_report ask_settle(struct drive *drive, const struct step *step, struct err *err);
/* A sign of life to the manager, and the pause between two looks. */
void ask_wait(struct drive *drive);
/* A shorter one; signs of life are as far apart as above. */
void ask_wait_for(struct drive *drive, int64_t ms);
/* How long to wait before what was begun at start_ms (monotonic) is looked at again: half as long as it
 * has taken so far, never longer than the pause between two looks. */
int64_t ask_pause_ms(const struct drive *drive, int64_t start_ms);

/* These will be placed one right after the other; n 0: no more of them. */
void ask_ahead(struct drive *drive, const struct step *steps, size_t n);
/* These will be looked at one right after the other; n 0: no more of them. */
void ask_looks_ahead(struct drive *drive, const struct step *steps, size_t n);

/* May a call have had an effect although it failed? */
bool ask_unsure(const struct err *err);
/* Somebody was faster: nothing was changed, the move is invalid and the plan goes on. */
bool ask_overtaken(const struct err *err);

#endif
