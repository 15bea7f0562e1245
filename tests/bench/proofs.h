/* proofs.h - what the optimal planner proves: one row for each instance. */
#ifndef REMAP_BENCH_PROOFS_H
#define REMAP_BENCH_PROOFS_H

#include <stdint.h>

/* The usual sizes and hard variants, with a limit of each its own. */
void proofs_print(void);
/* Seeds 1 … `seeds` of one variant ("p2p", "star", "equal", "memory", "tight") and size by one planner,
 * for affinity or the fewest hosts; prints how many were proven. False when there is no such variant. */
_Bool proofs_print_one(const char *variant, const char *planner, _Bool fewest_hosts, int services,
                       int seeds, int64_t limit_ms);

#endif
