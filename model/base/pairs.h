/* pairs.h - a map from pairs of indices (0 or more) to a number: counts per service and host, round
 * trips per pair of hosts, without an array of all combinations. */
#ifndef REMAP_BASE_PAIRS_H
#define REMAP_BASE_PAIRS_H

#include <stddef.h>
#include <stdint.h>

struct pairs {
    struct pairs_slot *slots;
    size_t n_slots, n_used;
    uint64_t seed; /* random per map */
};

#define PAIRS_INIT {NULL, 0, 0, 0}

/* The number of (a, b), 0 when it was not there; valid until the next pairs_at. */
int64_t *pairs_at(struct pairs *pairs, int a, int b);
/* The number of (a, b), or `absent`. */
int64_t pairs_get(const struct pairs *pairs, int a, int b, int64_t absent);
void pairs_wipe(struct pairs *pairs);

#endif
