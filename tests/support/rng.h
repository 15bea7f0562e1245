/* rng.h - small random numbers that are the same everywhere (splitmix64). A test prints its seed. */
#ifndef REMAP_TESTS_RNG_H
#define REMAP_TESTS_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* From lo to hi, both included. */
static inline int64_t rng_int(struct rng *rng, int64_t lo, int64_t hi)
{
    return lo + (int64_t)(rng_next(rng) % ((uint64_t)(hi - lo) + 1));
}

/* Below n, which is above 0. */
static inline size_t rng_below(struct rng *rng, size_t n)
{
    return (size_t)(rng_next(rng) % n);
}

/* 0 … 1, below 1. */
static inline double rng_real(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

static inline bool rng_chance(struct rng *rng, double share)
{
    return rng_real(rng) < share;
}

#endif
