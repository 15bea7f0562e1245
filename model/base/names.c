/* names.c - names to small integers: open addressing, linear probing, at most half full. */
#include "model/base/names.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/base/utf8.h"

struct names_slot {
    const char *name; /* NULL: free */
    uint32_t hash;
    int value;
};

__extension__ typedef unsigned __int128 uint128;

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint128 product = (uint128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Multiply and fold, eight bytes a step (after wyhash); the seed keeps it unpredictable. */
static uint32_t name_hash(const char *name, uint64_t seed)
{
    size_t size = strlen(name);
    uint64_t hash = seed ^ mix(size ^ UINT64_C(0xa0761d6478bd642f), UINT64_C(0xe7037ed1a0b428db));

    for (; size > 0;) {
        uint64_t word = 0;
        size_t step = size < sizeof word ? size : sizeof word;
        memcpy(&word, name, step);
        hash = mix(hash ^ word ^ UINT64_C(0x8ebc6af09c88c6e3), seed | 1);
        hash += UINT64_C(0x589965cc75374cc3);
        name += step;
        size -= step;
    }
    hash = mix(hash ^ UINT64_C(0x1d8e4e27c47d124f), UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(hash ^ (hash >> 32));
}

uint64_t names_seed(void)
{
    uint64_t seed;

    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = (uint64_t)clock_wall_ms() * UINT64_C(0x9e3779b97f4a7c15); /* early boot */
    return seed;
}

static struct names_slot *slot_find(const struct names *names, const char *name, uint32_t hash)
{
    size_t i = hash & (names->n_slots - 1);

    while (names->slots[i].name &&
           (names->slots[i].hash != hash || strcmp(names->slots[i].name, name) != 0))
        i = (i + 1) & (names->n_slots - 1);
    return &names->slots[i];
}

static void names_grow(struct names *names)
{
    struct names_slot *old = names->slots;
    size_t n_old = names->n_slots;

    if (n_old == 0)
        names->seed = names_seed();
    names->n_slots = n_old ? n_old * 2 : 16;
    names->slots = mem_array(names->n_slots, sizeof *names->slots);
    for (size_t i = 0; i < n_old; i++)
        if (old[i].name)
            *slot_find(names, old[i].name, old[i].hash) = old[i];
    free(old);
}

int names_add(struct names *names, const char *name, int value)
{
    assert(value >= 0);
    if (names->n_used * 2 >= names->n_slots)
        names_grow(names);
    uint32_t hash = name_hash(name, names->seed);
    struct names_slot *slot = slot_find(names, name, hash);
    if (slot->name)
        return slot->value;
    *slot = (struct names_slot){name, hash, value};
    names->n_used++;
    return -1;
}

int names_get(const struct names *names, const char *name)
{
    if (names->n_used == 0)
        return -1;
    const struct names_slot *slot = slot_find(names, name, name_hash(name, names->seed));
    return slot->name ? slot->value : -1;
}

void names_wipe(struct names *names)
{
    free(names->slots);
    *names = (struct names)NAMES_INIT;
}

/* Longest name that is compared for "did you mean": keys and options are shorter. */
#define NEAREST_MAX 64

/* Levenshtein distance; a transposed pair costs 2. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t n = strlen(b), row[NEAREST_MAX + 1];

    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t replace = diagonal + (a[i - 1] != b[j - 1]);
            size_t step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < step ? replace : step;
        }
    }
    return row[n];
}

const char *names_nearest(const char *name, const char *const candidates[])
{
    const char *best = NULL;
    size_t length = strlen(name);
    /* A third of the letters may be wrong, but two always. */
    size_t best_distance = (length / 3 > 2 ? length / 3 : 2) + 1;

    if (length > NEAREST_MAX)
        return NULL;
    for (size_t i = 0; candidates[i]; i++) {
        size_t size = strlen(candidates[i]);
        if (size > NEAREST_MAX)
            continue;
        size_t distance = edit_distance(name, candidates[i]);
        if (distance < best_distance && distance < size) {
            best = candidates[i];
            best_distance = distance;
        }
    }
    return best;
}

const char *name_problem(const char *name, size_t size)
{
    if (size == 0)
        return "is empty";
    if (size > 253)
        return "is longer than 253 bytes";
    if (utf8_check(name, size) != size)
        return "is not valid UTF-8";
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)name[i];
        /* C0, DEL, and C1 (U+0080 … U+009F, in UTF-8 c2 80 … c2 9f) */
        bool c1 = c == 0xc2 && (unsigned char)name[i + 1] <= 0x9f;
        if (c < 0x20 || c == 0x7f || c1)
            return "holds a control character";
    }
    return NULL;
}
