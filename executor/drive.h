/* drive.h - one move brought to its end: intent, action, waiting, outcome, and the undo when it
 * fails (§5.6, §6.5). What to move and why is execute.c's. */
#ifndef REMAP_EXECUTOR_DRIVE_H
#define REMAP_EXECUTOR_DRIVE_H

#include "executor/keep.h"
#include "executor/request.h"
#include "executor/view.h"
#include "model/wire/stage.h"

struct drive {
    struct stage *stage;
    struct request *request; /* `base` grows by the intents of this attempt */
    const struct cluster_adapter *cluster;
    void *cluster_ctx;
    const struct orchestrator *orchestrator;
    void *orchestrator_ctx;
    struct kept *kept; /* lock, pause, announcements; NULL: the orchestrator has none */
    struct lineage lineage;
    struct outcomes told; /* of this attempt, in the order to be kept */
    int64_t next_seq, work, total;
    int64_t last_ms; /* settled_ms of the newest outcome */
    int64_t sign_ms; /* monotonic: of the last sign of life while waiting */
};

/* Opens the adapters. ERR_CONFIG for unknown types and options; errors of the adapters. */
int drive_open(struct drive *drive, struct stage *stage, struct request *request, struct err *err);
void drive_close(struct drive *drive);

/* A fresh inspection. A cluster that does not answer is asked a few times. */
int drive_inspect(struct drive *drive, struct view *out, struct err *err);

/* One move; names are those of now. At service granularity instance, source and target are NULL and
 * `targets` is the wanted placement. */
struct step {
    int64_t seq;
    const char *service, *instance, *source, *target;
    const struct replica_count *targets;
    size_t n_targets;
    bool detour;
};

enum driven {
    DRIVEN_ON,      /* told, whatever became of it: the plan goes on */
    DRIVEN_FAILED,  /* told as failed, undone as far as possible: the plan stops */
    DRIVEN_STOPPED, /* `stop` came before it began: told as discarded, unless the stage leaves */
    DRIVEN_LATER,   /* an undo refused for now, not told: to be asked again under its seq */
    DRIVEN_FLYING,  /* asked for, not settled yet: to be looked at (drive_look) */
    DRIVEN_ERROR    /* *err: the request fails, to be repeated */
};

/* Acts. `view` is the fresh inspection by which the step was found valid. */
enum driven drive_step(struct drive *drive, const struct step *step, const struct view *view,
                       struct err *err);
/* A move that is under way while others are begun. Owns what its step names. */
struct flight {
    struct step step;
    int64_t intended_ms;
    int64_t start_ms, ask_ms;             /* as struct ask_watch */
    int64_t looked_ms, look_ms; /* monotonic: looked at last, and to be looked at again */
    bool rolled; /* since then its replicas were seen to be replaced */
    bool due;    /* to be looked at in this turn */
    bool begun;  /* the orchestrator has begun it with others */
    bool asked;  /* the orchestrator has heard of it */
    struct replica_count *before, *after; /* of its service, by host: it holds room for both */
    size_t n_before, n_after;
};
/* drive_step in parts, without the waiting. The intent: DRIVEN_FLYING, and *out is the caller's to ask for,
 * to look at and to wipe; or what became of it at once. */
enum driven drive_intend(struct drive *drive, const struct step *step, const struct view *view,
                         struct flight *out);
/* Asks for it: DRIVEN_FLYING, or what became of it at once. */
enum driven drive_ask(struct drive *drive, struct flight *flight, struct err *err);
/* Is there any use in a look now? In time, or when what comes by itself shows a change. */
bool drive_is_due(struct drive *drive, struct flight *flight);
/* One look: DRIVEN_FLYING still, or told. */
enum driven drive_look(struct drive *drive, struct flight *flight, struct err *err);
void flight_wipe(struct flight *flight);

/* Finds out what became of an intent of an earlier attempt and brings it to its end. The targets
 * are those of a move at service granularity. `again` false: what has not begun stays undone (a
 * detour or a steering of an earlier attempt) and is discarded. */
enum driven drive_resume(struct drive *drive, const struct intent *intent,
                         const struct replica_count *targets, size_t n_targets, bool again,
                         struct err *err);
/* Puts the move of an intent back, under a seq, an intent and an outcome (undo_of) of the undo's
 * own. DRIVEN_ON when it is back, DRIVEN_FAILED when not (its outcome says why). `others_follow`: a
 * host that refuses it now may have room when further undos are made, so that is DRIVEN_LATER. */
enum driven drive_undo(struct drive *drive, const struct intent *intent, bool others_follow,
                       struct err *err);

/* Looks once more at a move that was applied; when others have taken the replica away since, it is
 * told as displaced. Only where there are marks. */
void drive_recheck(struct drive *drive, const struct outcome *applied);

/* For an undo without a history: takes it that the step was made. */
void drive_assume(struct drive *drive, const struct step *step);

/* Reports an outcome now and keeps it for the result. Takes the strings. */
void drive_tell(struct drive *drive, struct outcome outcome);
/* A move that is not made. */
void drive_discard(struct drive *drive, const struct step *step, const char *reason);

#endif
