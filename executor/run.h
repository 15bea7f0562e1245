/* run.h - a plan (or an undo) while it is carried out, shared by execute.c (the whole), moves.c
 * (the plan's moves) and newborn.c (replicas that came up meanwhile). */
#ifndef REMAP_EXECUTOR_RUN_H
#define REMAP_EXECUTOR_RUN_H

#include "executor/drive.h"

struct run {
    struct drive drive;
    struct request *request;   /* the drive's */
    const struct move **queue; /* the plan's moves not yet told, in order */
    size_t n_queue;
    int64_t acted;      /* moves of this cycle that were begun */
    struct flight *flights; /* of them, those under way */
    size_t n_flights;
    int64_t waiting_seq, waiting_ms; /* the move that waits for room, and until when (monotonic) */
    bool waits;                      /* it did so just now */
    bool landed; /* one of them, since the cluster was last inspected for more to begin */
    size_t n_judged;    /* outcomes told, as far as the queue has heard of them */
    char lost[200];     /* a move that is not made, since the queue was judged; empty: none */
    char stopped[1200]; /* why the plan stopped; empty: it did not */
};

/* The plan goes no further. */
void run_stop(struct run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool run_stopped(const struct run *run);
/* The same, or somebody wants it to now: then it does. */
bool run_told_to_stop(struct run *run);
/* What a driven move means for the rest. -1: the request fails. */
int run_after(struct run *run, enum driven driven);
/* Is the outcome of this seq known, from now or from an earlier attempt? */
bool run_knows(const struct run *run, int64_t seq);
/* max_moves of the request. */
bool run_limit_reached(const struct run *run);

/* The move in names of now; `targets` (NULL: none) must outlive it. */
struct step run_step(const struct run *run, const struct move *move,
                     const struct replica_count *targets);
/* Counts with the names of hosts, which stay the model's; the caller frees the array. */
struct replica_count *run_counts(const struct run *run, const struct host_count *counts, size_t n);

/* abreast.c: moves side by side (design.md 4). At most request->max_parallel, one per service; one
 * that is under way holds room on all its hosts, old and new, until it is settled. */

/* Begins the step, or does it to its end where moves are made one at a time. As run_after(). Where the
 * orchestrator takes several at once, it is asked for only by run_ask(). */
int run_begin(struct run *run, const struct step *step, const struct view *view, struct err *err);
/* Asks for all that were begun and not asked for. As run_after(). */
int run_ask(struct run *run, struct err *err);
/* Is there room for one more, beside those under way? */
bool run_may_begin(const struct run *run);
/* The fresh view with all the room that those under way hold; the caller frees it. */
struct model *run_held(const struct run *run, const struct view *view);
/* May queue[at] be begun now, beside those under way and without taking room that the moves queued
 * before it wait for? */
bool run_fits_beside(const struct run *run, size_t at, const struct model *held);
/* Waits until there may be something new of those under way, then looks at each of which there may be.
 * -1: the request fails. */
int run_look(struct run *run, struct err *err);
/* Moves whose gain was to come from a move that went elsewhere are not made: base changed. */
void run_rebase(struct run *run);
void run_wipe_flights(struct run *run);

/* moves.c: queues the plan's moves that are not told; makes them, -1 and *err when the request
 * fails. */
void moves_queue(struct run *run);
int moves_make(struct run *run, struct err *err);
/* Tells the rest of the queue as discarded. */
void moves_discard(struct run *run, const char *why);

/* worth.c: where a move is not made, the rest of the queue is judged again by min_gain and
 * min_plan_gain of the request: what is no longer worth its restarts is discarded. */
void run_reconsider(struct run *run);

/* newborn.c: steers replicas born during the plan by affinity (§5.6). */
int newborn_steer(struct run *run, struct err *err);

#endif
