/* pairs.c - pairs of indices to numbers: open addressing, linear probing, at most half full. */
#include "model/base/pairs.h"

#include <assert.h>
#include <stdlib.h>

#include "model/base/mem.h"
#include "model/base/names.h"

struct pairs_slot {
    uint64_t key; /* 0: free */
    int64_t value;
};

/* Indices are below 2^31, so the key of (0, 0) can be 1. */
static uint64_t pair_key(int a, int b)
{
    assert(a >= 0 && b >= 0);
    return (((uint64_t)(uint32_t)a << 32) | (uint32_t)b) + 1;
}

static struct pairs_slot *slot_find(const struct pairs *pairs, uint64_t key)
{
    /* Finaliser of splitmix64: neighbours in the keys are none in the table. */
    uint64_t hash = key ^ pairs->seed;
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
    size_t i = (hash ^ (hash >> 31)) & (pairs->n_slots - 1);

    while (pairs->slots[i].key && pairs->slots[i].key != key)
        i = (i + 1) & (pairs->n_slots - 1);
    return &pairs->slots[i];
}

static void pairs_grow(struct pairs *pairs)
{
    struct pairs_slot *old = pairs->slots;
    size_t n_old = pairs->n_slots;

    if (n_old == 0)
        pairs->seed = names_seed();
    pairs->n_slots = n_old ? n_old * 2 : 16;
    pairs->slots = mem_array(pairs->n_slots, sizeof *pairs->slots);
    for (size_t i = 0; i < n_old; i++)
        if (old[i].key)
            *slot_find(pairs, old[i].key) = old[i];
    free(old);
}

int64_t *pairs_at(struct pairs *pairs, int a, int b)
{
    uint64_t key = pair_key(a, b);

    if (pairs->n_used * 2 >= pairs->n_slots)
        pairs_grow(pairs);
    struct pairs_slot *slot = slot_find(pairs, key);
    if (!slot->key) {
        slot->key = key;
        pairs->n_used++;
    }
    return &slot->value;
}

int64_t pairs_get(const struct pairs *pairs, int a, int b, int64_t absent)
{
    if (pairs->n_used == 0)
        return absent;
    const struct pairs_slot *slot = slot_find(pairs, pair_key(a, b));
    return slot->key ? slot->value : absent;
}

void pairs_wipe(struct pairs *pairs)
{
    free(pairs->slots);
    *pairs = (struct pairs)PAIRS_INIT;
}
