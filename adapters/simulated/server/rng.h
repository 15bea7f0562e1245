/* rng.h - small deterministic random numbers (splitmix64): the same seed gives the same cluster on
 * every machine. Not for secrets. */
#ifndef REMAP_SIMULATED_RNG_H
#define REMAP_SIMULATED_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t rng_next(struct rng *rng)
{
    return rng_mix(rng->state += UINT64_C(0x9e3779b97f4a7c15));
}

/* 0 … n-1, n > 0; the bias of the modulo is below n / 2^64. */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
    return rng_next(rng) % n;
}

/* 0 ≤ x < 1 */
static inline double rng_unit(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

/* One number from a seed and up to two keys, without state: the noise of a named thing. */
static inline uint64_t rng_hash(uint64_t seed, uint64_t a, uint64_t b)
{
    return rng_mix(rng_mix(rng_mix(seed + UINT64_C(0x9e3779b97f4a7c15)) ^ a) +
                   b * UINT64_C(0xd6e8feb86659fd93));
}

/* FNV-1a, to turn names into keys. */
static inline uint64_t rng_text(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h;
}

#endif
