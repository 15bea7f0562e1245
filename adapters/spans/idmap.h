/* idmap.h - a hash map from 128-bit ids to small numbers: trace ids, pairs of nodes. */
#ifndef REMAP_SPANS_IDMAP_H
#define REMAP_SPANS_IDMAP_H

#include <stddef.h>
#include <stdint.h>

#define IDMAP_NONE UINT32_MAX

struct idmap {
    struct idmap_slot *slots;
    size_t n_slots, n_used;
    uint64_t seed; /* random per map: ids come from outside */
};

uint64_t idmap_hash(const struct idmap *map, uint64_t hi, uint64_t lo);
uint32_t idmap_get(const struct idmap *map, uint64_t hi, uint64_t lo); /* IDMAP_NONE when absent */
/* The id must be absent; value below IDMAP_NONE. */
void idmap_add(struct idmap *map, uint64_t hi, uint64_t lo, uint32_t value);
void idmap_remove(struct idmap *map, uint64_t hi, uint64_t lo);
void idmap_clear(struct idmap *map); /* keeps the memory */
void idmap_wipe(struct idmap *map);

#endif
