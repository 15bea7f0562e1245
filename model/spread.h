/* spread.h - how the replicas of each service spread over hosts, kept while instances move. */
#ifndef REMAP_MODEL_SPREAD_H
#define REMAP_MODEL_SPREAD_H

#include "model/model.h"

struct spread;

/* Counts `placement` (host of each instance, -1 unplaced). Borrows the model. O(instances). */
struct spread *spread_new(const struct model *model, const int *placement);
void spread_free(struct spread *spread);
AUTO_DEFINE(spread)

void spread_move(struct spread *spread, int service, int source, int target); /* -1: unplaced */
int64_t spread_count(const struct spread *spread, int service, int host);
int64_t spread_replicas(const struct spread *spread, int service); /* placed or not */

/* Σ_host min(x_a/d_a, x_b/d_b): what a load balancer can keep local (design.md 7). 0 … 1; takes as
 * many steps as the service on fewer hosts has hosts. */
double spread_share(const struct spread *spread, int a, int b);
/* The host's part of it: min(x_a/d_a, x_b/d_b). */
double spread_share_at(const struct spread *spread, int a, int b, int host);
/* Mean round trip of messages from a to b in µs when what can stay local does and the rest goes
 * evenly to where room is left; < 0 when a latency is unknown or nothing is placed. */
double spread_rtt_us(const struct spread *spread, int a, int b);

#endif
