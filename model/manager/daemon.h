/* daemon.h - `remap run` and `remap once` (contract.md 1), and the same for programs that embed
 * them (`remap demo`). */
#ifndef REMAP_MANAGER_DAEMON_H
#define REMAP_MANAGER_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include "model/base/err.h"
#include "model/config.h"

struct daemon_move { /* borrowed for the call */
    int64_t seq;
    const char *service, *instance, *instance_now, *source, *target; /* may be NULL, not service */
    const char *state, *reason; /* "intended", or of contract.md 4; reason may be NULL */
    int64_t undo_of;            /* -1 */
};

/* What a watcher is told, after it has been committed. Each may be NULL. */
struct daemon_events {
    void (*cycle)(void *ctx, int64_t cycle, const char *app, const char *state,
                  const char *reason); /* reason may be "" */
    void (*move)(void *ctx, int64_t cycle, const struct daemon_move *move);
};

struct daemon_options {
    const struct config *config; /* borrowed; replaced by SIGHUP in `remap run` only */
    const char *store_path, *run_dir;
    const char *stages_dir;             /* NULL: beside the program */
    bool once;                          /* one cycle per app, then return */
    const char *app;                    /* once: only this app; NULL: all */
    bool dry_run;                       /* once */
    bool listen;                        /* serve HTTP as configured */
    const struct daemon_events *events; /* NULL: none */
    void *ctx;
};

/* Runs until SIGTERM, SIGINT, or, with `once`, until the cycles have ended. Returns the exit code:
 * 0, or for `once` 1 when a cycle failed; -1 and *err when it could not start or go on. */
int daemon_run(const struct daemon_options *options, struct err *err);

#endif
