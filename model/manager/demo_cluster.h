/* demo_cluster.h - the stage of `remap demo`: a folder, a scenario, and remap-simulated running in
 * it, which ends when this process ends, however it ends. */
#ifndef REMAP_MANAGER_DEMO_CLUSTER_H
#define REMAP_MANAGER_DEMO_CLUSTER_H

#include <stdbool.h>
#include <sys/types.h>
#include "model/base/buf.h"
#include "model/base/err.h"

struct demo_cluster {
    char *dir;      /* absolute */
    char *scenario; /* file */
    char *name;     /* of the scenario: the app */
    char *socket, *journal, *log, *config, *store, *run_dir; /* in dir */
    pid_t pid;      /* 0: does not run */
    int lifeline;   /* its end of life; -1 */
};

/* Makes the folder (`keep`, or a new one under $TMPDIR) and finds the scenario: a file when it has a
 * slash or ends in .yaml, else a name among those shipped. NULL: sock-shop. ERR_USAGE lists the
 * names; ERR_CONFLICT when `keep` holds a store already. */
int demo_cluster_prepare(struct demo_cluster *demo, const char *keep, const char *scenario,
                         struct err *err);
/* Starts remap-simulated and waits until it answers. `speed` NULL: the scenario's. */
int demo_cluster_start(struct demo_cluster *demo, const char *speed, struct err *err);
/* Ends it and waits for that. */
void demo_cluster_stop(struct demo_cluster *demo);
void demo_cluster_wipe(struct demo_cluster *demo);

#endif
