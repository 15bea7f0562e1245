/* schedule.h - what the cluster does by itself: pure decisions over a state, one at a time. */
#ifndef REMAP_SIMULATED_SCHEDULE_H
#define REMAP_SIMULATED_SCHEDULE_H

#include "adapters/simulated/server/cluster.h"

/* The earliest thing that is due by itself, at `*change`.at_ms; INT64_MAX when nothing ever is.
 * In this order where the times are equal: a host comes back, a planned fault happens, a replica on
 * a dead host ends, a start gets ready, its predecessor leaves, a lost effect is taken back, a
 * missing replica is started, a pending one is bound, a surplus one ends, a rollout goes on. */
int64_t schedule_next(const struct cluster *cluster, struct change *change);

/* The host the scheduler would choose for one more replica, `except` left out: with room, fewest
 * replicas of the service, then least CPU requested (share), then the order of the scenario. -1:
 * none has room. */
int schedule_host(const struct cluster *cluster, int service, int except);

/* A start (or a bind, with `replica` ≥ 0) at this time, ready after the service's start-up time,
 * or never where an armed stuck-start fault hits. */
struct change schedule_start(const struct cluster *cluster, int64_t at_ms, int service, int host,
                             int replaces, const char *why);

#endif
