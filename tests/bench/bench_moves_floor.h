/* bench_moves_floor.h - what the cluster itself takes for moves: a client that knows where everything is,
 * looks at nothing before it writes, commits no intent, and learns by one watch what has come of it. */
#ifndef REMAP_BENCH_MOVES_FLOOR_H
#define REMAP_BENCH_MOVES_FLOOR_H

#include "tests/support/kube_shop.h"

/* Deployments s-0 … s-N, each to nodes[i], at most `parallel` under way. The ms until the last rollout
 * is complete. */
int64_t floor_of_moves(const struct shop *shop, char *const *nodes, int n, int parallel);

#endif
