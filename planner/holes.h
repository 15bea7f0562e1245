/* holes.h - pigeonholes: how many of several kinds of things hosts take, each only its own hosts, by a
 * maximum flow. */
#ifndef REMAP_PLANNER_HOLES_H
#define REMAP_PLANNER_HOLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/mem.h"

struct holes;

/* Each host takes `per_host` in all. */
struct holes *holes_new(size_t n_kinds, size_t n_hosts, int64_t per_host);
void holes_free(struct holes *holes);
AUTO_DEFINE(holes)

/* `count` things of the kind, at most `per_host` on each host that is allowed; `zones` (of each host, from
 * 0 and below n_hosts; NULL: no matter): at most `per_zone` in each. */
void holes_put(struct holes *holes, size_t kind, int64_t count, const bool *allowed,
               int64_t per_host, const int *zones, int64_t per_zone);

/* How many find a place at most. Once. */
int64_t holes_fill(struct holes *holes);

#endif
