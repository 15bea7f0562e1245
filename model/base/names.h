/* names.h - a map from names to small integers (hash table with open addressing); names are
 * borrowed, so their owner outlives the map. */
#ifndef REMAP_BASE_NAMES_H
#define REMAP_BASE_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct names {
    struct names_slot *slots;
    size_t n_slots, n_used;
    uint64_t seed; /* random per map, so that nobody outside can choose names that collide */
};

#define NAMES_INIT {NULL, 0, 0, 0}

/* Adds name → value (0 or more); returns the value that was there before (nothing changes then), or -1. */
int names_add(struct names *names, const char *name, int value);
int names_get(const struct names *names, const char *name); /* -1 when absent */
void names_wipe(struct names *names);

/* A random number for a hash table, so that its collisions cannot be chosen from outside. */
uint64_t names_seed(void);

/* Nearest of `candidates` (NULL-terminated) by edit distance, for "did you mean"; NULL when none
 * is near. */
const char *names_nearest(const char *name, const char *const candidates[]);

/* NULL when `name` is a valid name of contract.md 2 (non-empty UTF-8, at most 253 bytes, no control
 * characters), else a static text that says what is wrong. */
const char *name_problem(const char *name, size_t size);

#endif
