/* supervisor.h - starts the four stages, hears of their deaths from the kernel, starts them again
 * by policy.h, ends them. It knows nothing of cycles: the engine says who is busy. */
#ifndef REMAP_MANAGER_SUPERVISOR_H
#define REMAP_MANAGER_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include "model/base/err.h"
#include "model/base/mem.h"
#include "model/wire/envelope.h"
#include "model/wire/loop.h"

struct supervisor;

struct supervisor_events {
    /* A process exists; it may be spoken to from its hello on. */
    void (*started)(void *ctx, enum party stage, int64_t pid);
    /* It is gone and reaped. `how`: "exit code 1", "signal 9 (Killed), core dumped". The restart is
     * already arranged. Messages it had sent may still arrive on the bus afterwards. */
    void (*died)(void *ctx, enum party stage, int64_t pid, const char *how);
    /* Three idle deaths in 30 s, or it cannot be started: `line` is the one clear line to end with.
     * No restart follows. */
    void (*gave_up)(void *ctx, enum party stage, const char *line);
    /* After supervisor_stop(): the last stage is gone. */
    void (*stopped)(void *ctx);
};

/* Uses SIGCHLD of the loop. `stages_dir` NULL: stage_path() of filter.h finds them. ERR_CONFIG when
 * a stage program is missing (nothing was started then), ERR_IO. All four start in the first turn
 * of the loop. */
int supervisor_open(struct loop *loop, const char *run_dir, const char *stages_dir,
                    const struct supervisor_events *events, void *ctx, struct supervisor **out,
                    struct err *err);
/* Kills what still lives and reaps it. */
void supervisor_free(struct supervisor *supervisor);
AUTO_DEFINE(supervisor)

/* A request is under way at (or waits for) the stage: a death now is charged to the cycle. */
void supervisor_set_busy(struct supervisor *supervisor, enum party stage, bool busy);
/* A hung stage: SIGKILL; died() and the restart follow. */
void supervisor_kill(struct supervisor *supervisor, enum party stage);
/* SIGTERM to all (a stage finishes its current move), SIGKILL after grace_ms; then stopped(). */
void supervisor_stop(struct supervisor *supervisor, int64_t grace_ms);
/* Pid of the living process, or 0. */
int64_t supervisor_pid(struct supervisor *supervisor, enum party stage);
/* Starts after the first one, for remap_stage_restarts_total. */
int64_t supervisor_restarts(struct supervisor *supervisor, enum party stage);

#endif
