/* rundir.h - the run directory: one daemon in it, and never the stages of two.
 *
 * RUNDIR (0700) holds `bus` (the socket), `lock` (flocked by the daemon for its life, before it
 * binds: a second ipc bind would take the first one's place) and `stages.lock` (flocked shared by
 * every living stage; a new daemon takes it exclusively once, so that stages of a daemon that was
 * killed are gone before it reads any intent; design.md 3). */
#ifndef REMAP_WIRE_RUNDIR_H
#define REMAP_WIRE_RUNDIR_H

#include <stdbool.h>
#include <stdint.h>
#include "model/base/err.h"

/* A Unix socket path has 107 usable bytes on Linux (zmq_ipc(7)); "ipc://" and the NUL beside. */
#define RUNDIR_ENDPOINT_SIZE 116

/* "ipc://RUNDIR/bus". ERR_CONFIG when the path is longer than a socket's may be. */
int rundir_endpoint(const char *run_dir, char out[RUNDIR_ENDPOINT_SIZE], struct err *err);

/* The daemon: makes the directory, takes `lock` (ERR_CONFLICT "…: another remap (pid N) runs
 * here"), then waits up to wait_ms for the stages of an earlier daemon to end (ERR_CONFLICT). The
 * lock lives as long as *out_fd (close-on-exec) is open. */
int rundir_lock(const char *run_dir, int64_t wait_ms, int *out_fd, struct err *err);
#define RUNDIR_STAGES_WAIT_MS 10000 /* design.md 3 */

/* A stage: holds `stages.lock` shared until it ends; children inherit it. ERR_CONFLICT while a
 * daemon holds it exclusively. */
int rundir_join(const char *run_dir, struct err *err);

/* True while a daemon holds `lock`; its pid goes to *pid (0 when unknown; may be NULL). */
bool rundir_daemon_runs(const char *run_dir, int64_t *pid);

#endif
