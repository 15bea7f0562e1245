/* peers.h - the same instances, in the same run, by other solvers of Eq. 2–5 and by ours. */
#ifndef REMAP_TESTS_PEERS_H
#define REMAP_TESTS_PEERS_H

#include <stdint.h>

/* Prints a table of `seeds` instances per size and topology; `limit_ms` for every cell. */
void peers_print(int64_t limit_ms, int seeds);

#endif
