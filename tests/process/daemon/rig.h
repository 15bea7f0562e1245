/* rig.h - a real `remap run` on a real embedded cluster, in a directory of the test's own, and what
 * a test does to it: kill, stop, ask, look. Everything waits with patience and fails by assertion.
 */
#ifndef REMAP_TESTS_RIG_H
#define REMAP_TESTS_RIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "model/base/buf.h"

#define RIG_PATIENCE_MS 300000 /* a guard: things take some ms on a quiet machine */

struct rig {
    char *dir, *config, *store, *run_dir, *socket, *journal, *log;
    pid_t simulated, daemon;
    double speed;
};

/* Five hosts, one replica of each service, a chain of calls: six replicas that can move, each
 * taking 10 s of the cluster's time to start. `app` is YAML appended to the app, `global` to the
 * file; both may be "". */
void rig_open(struct rig *rig, double speed, const char *app, const char *global);
/* The same on another cluster (etc/scenarios/sock-shop.yaml explains scenarios). */
void rig_open_scenario(struct rig *rig, const char *scenario, double speed, const char *app,
                       const char *global);
void rig_close(struct rig *rig); /* ends what still runs, removes the directory */

void rig_configure(struct rig *rig, const char *app, const char *global);
/* Starts `remap run`; with `wait`, until all stages are up. */
void rig_start(struct rig *rig, bool wait);
/* SIGTERM, and the exit code, which must be 0. */
void rig_stop(struct rig *rig);
/* Waits for the end of the daemon; its wait status. */
int rig_wait_daemon(struct rig *rig);
/* Runs `remap ARGS…` (NULL-terminated) with -c, --store, --run-dir given; stdout and stderr
 * together go to *out. Returns the exit code. */
int rig_remap(struct rig *rig, struct buf *out, const char *const *args);

/* A command over the bus. 0, or -1 when it was refused. */
int rig_ask(struct rig *rig, const char *json, struct buf *answer);
/* Pid of "remap" or of a stage, 0 when it does not run now. */
pid_t rig_pid(struct rig *rig, const char *process);
void rig_signal(pid_t pid, int signo); /* ESRCH is no failure */

/* First column of the first row, "" when there is none or no store yet. Caller frees. */
char *rig_text(struct rig *rig, const char *sql);
int64_t rig_number(struct rig *rig, const char *sql);
/* Until the SELECT gives a number that is not 0. */
void rig_until(struct rig *rig, const char *sql);
void rig_until_state(struct rig *rig, int64_t cycle, const char *state);

/* What lasts for a while of the cluster's time may be over before a busy machine looks. Until the
 * SELECT gives a number that is not 0; false: cycle 1 has come to its end, unseen. */
bool rig_catch(struct rig *rig, const char *sql);
/* Within a minute of ours, for what a machine that falls behind may never come to at this speed. */
bool rig_within(struct rig *rig, const char *sql);
bool rig_catch_state(struct rig *rig, const char *state);
/* Plays a scene that opens its rig at the speed it is given (and closes it). When it says that it came
 * too late for what it is about, once more with all times four times as long, and so on. */
void rig_play(bool (*scene)(double speed, const void *ctx), const void *ctx);
/* Until the daemon's status has this text. */
void rig_until_status(struct rig *rig, const char *text);

/* GET of the embedded cluster. Caller json_decref()s. */
json_t *rig_cluster(struct rig *rig, const char *path);
void rig_fault(struct rig *rig, const char *json);
void rig_clear_faults(struct rig *rig);

/* The three promises after whatever happened (issue: "Bad input and faults"): the store passes
 * integrity_check; no move was started twice in the cluster; cluster and store agree: the first
 * snapshot plus the moves that the store calls applied is where the replicas are. */
void rig_check(struct rig *rig);

#endif
