/* rng.h - the random numbers of seeded searches: splitmix64 (Steele, Lea, Flood 2014), the same on
 * every machine. */
#ifndef REMAP_PLANNER_RNG_H
#define REMAP_PLANNER_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t z = (rng->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 … n − 1; the bias of the multiplication is below n / 2^32. */
static inline uint32_t rng_below(struct rng *rng, uint32_t n)
{
    return (uint32_t)(((rng_next(rng) >> 32) * (uint64_t)n) >> 32);
}

/* In [0, 1). */
static inline double rng_real(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

#endif
