/* idmap.c - open addressing, linear probing, at most half full, removal by shifting back. */
#include "adapters/spans/idmap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "model/base/clock.h"
#include "model/base/mem.h"

struct idmap_slot {
    uint64_t hi, lo;
    uint32_t value; /* IDMAP_NONE: free */
};

__extension__ typedef unsigned __int128 uint128;

uint64_t idmap_hash(const struct idmap *map, uint64_t hi, uint64_t lo)
{
    uint128 product =
        (uint128)(lo ^ map->seed) * (hi ^ UINT64_C(0x9e3779b97f4a7c15) ^ (map->seed >> 7));
    uint64_t folded = (uint64_t)product ^ (uint64_t)(product >> 64);
    product = (uint128)(folded ^ UINT64_C(0xe7037ed1a0b428db)) * (map->seed | 1);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static size_t home(const struct idmap *map, uint64_t hi, uint64_t lo)
{
    return (size_t)idmap_hash(map, hi, lo) & (map->n_slots - 1);
}

static size_t find(const struct idmap *map, uint64_t hi, uint64_t lo)
{
    size_t i = home(map, hi, lo);
    while (map->slots[i].value != IDMAP_NONE &&
           (map->slots[i].lo != lo || map->slots[i].hi != hi))
        i = (i + 1) & (map->n_slots - 1);
    return i;
}

static void seed(struct idmap *map)
{
    if (getrandom(&map->seed, sizeof map->seed, GRND_NONBLOCK) != sizeof map->seed)
        map->seed = (uint64_t)clock_wall_ms() * UINT64_C(0x9e3779b97f4a7c15);
}

static void set_free(struct idmap_slot *slots, size_t n)
{
    for (size_t i = 0; i < n; i++)
        slots[i].value = IDMAP_NONE;
}

static void grow(struct idmap *map)
{
    struct idmap old = *map;
    if (!old.n_slots)
        seed(map);
    map->n_slots = old.n_slots ? 2 * old.n_slots : 64;
    map->slots = mem_array(map->n_slots, sizeof *map->slots);
    set_free(map->slots, map->n_slots);
    for (size_t i = 0; i < old.n_slots; i++)
        if (old.slots[i].value != IDMAP_NONE)
            map->slots[find(map, old.slots[i].hi, old.slots[i].lo)] = old.slots[i];
    free(old.slots);
}

uint32_t idmap_get(const struct idmap *map, uint64_t hi, uint64_t lo)
{
    return map->n_used ? map->slots[find(map, hi, lo)].value : IDMAP_NONE;
}

void idmap_add(struct idmap *map, uint64_t hi, uint64_t lo, uint32_t value)
{
    assert(value != IDMAP_NONE);
    if (2 * (map->n_used + 1) > map->n_slots)
        grow(map);
    struct idmap_slot *slot = &map->slots[find(map, hi, lo)];
    assert(slot->value == IDMAP_NONE);
    *slot = (struct idmap_slot){hi, lo, value};
    map->n_used++;
}

void idmap_remove(struct idmap *map, uint64_t hi, uint64_t lo)
{
    if (!map->n_used)
        return;
    size_t mask = map->n_slots - 1;
    size_t hole = find(map, hi, lo);
    if (map->slots[hole].value == IDMAP_NONE)
        return;
    for (size_t i = (hole + 1) & mask; map->slots[i].value != IDMAP_NONE; i = (i + 1) & mask) {
        size_t wanted = home(map, map->slots[i].hi, map->slots[i].lo);
        if (((i - wanted) & mask) >= ((i - hole) & mask)) { /* may move back over the hole */
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole].value = IDMAP_NONE;
    map->n_used--;
}

void idmap_clear(struct idmap *map)
{
    if (map->n_used)
        set_free(map->slots, map->n_slots);
    map->n_used = 0;
}

void idmap_wipe(struct idmap *map)
{
    free(map->slots);
    memset(map, 0, sizeof *map);
}
