/* sessions.h - sources that stay open over many inspections (adapter.h `tend`): clusters that are
 * watched instead of listed, metrics that have no history of their own. Between inspections they are
 * looked after by a timer of the stage's loop; a release that a cluster tells becomes an `event`, as
 * if a CI system had posted it. */
#ifndef REMAP_MONITOR_SESSIONS_H
#define REMAP_MONITOR_SESSIONS_H

#include "adapters/adapter.h"
#include "model/base/mem.h"
#include "model/wire/stage.h"

struct sessions;

struct sessions *sessions_new(struct stage *stage);
void sessions_free(struct sessions *sessions);
AUTO_DEFINE(sessions)

/* The open source with these very options, or a new one; borrowed. `app` is an application whose
 * cluster it is: releases of its services are its events. */
int sessions_cluster(struct sessions *sessions, const struct cluster_adapter *adapter,
                     const struct source *source, const struct app_scope *app, void **ctx,
                     struct err *err);
int sessions_metrics(struct sessions *sessions, const struct metrics_adapter *adapter,
                     const struct source *source, void **ctx, struct err *err);

/* An inspection runs: nothing is looked after meanwhile. */
void sessions_hold(struct sessions *sessions, bool hold);

#endif
