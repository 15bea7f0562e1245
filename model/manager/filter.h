/* filter.h - where the stage programs are, and a stage run as a filter for one request. */
#ifndef REMAP_MANAGER_FILTER_H
#define REMAP_MANAGER_FILTER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include "model/base/buf.h"
#include "model/base/err.h"
#include "model/wire/envelope.h"

/* The folder of the running program (/proc/self/exe). ERR_IO. */
int program_dir(char out[PATH_MAX], struct err *err);
/* A program of ours: beside the running one, in ../libexec/remap from there (an installed tree that
 * was moved), else in LIBEXECDIR/remap. `dir` not NULL: only there. Caller frees. ERR_CONFIG. */
int program_path(const char *name, const char *dir, char **out, struct err *err);
/* The same for a stage ("remap-planner"). */
int stage_path(enum party stage, const char *stages_dir, char **out, struct err *err);

/* Runs `remap-STAGE --filter TYPE` on the request. *exit_code: 0, or what the stage chose for a
 * result that is printed all the same (1 a source is unreachable, 3 infeasible, 4 time limit).
 * Without a result: -1 and *err with the stage's own line, of a kind with the same exit code. What
 * else the stage writes to stderr goes to ours line by line; `progress` also shows its progress
 * lines. */
int stage_filter_run(enum party stage, enum message_type type, const char *request, size_t size,
                     bool progress, struct buf *result, int *exit_code, struct err *err);

#endif
