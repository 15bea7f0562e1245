/* limit.h - so many requests a minute and address: a token bucket each, in a table of fixed size.
 */
#ifndef REMAP_MONITOR_LIMIT_H
#define REMAP_MONITOR_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CI systems post from a handful of addresses; the one not heard of for longest makes room. */
#define LIMIT_SLOTS 256

struct limit {
    int64_t per_minute; /* also the burst */
    struct limit_slot {
        unsigned char key[16];
        double tokens;
        int64_t at_ms; /* 0: free */
    } slots[LIMIT_SLOTS];
};

/* May this address ask once more at now_ms (monotonic, > 0)? `key`: IPv4 mapped, IPv6 its /64. */
bool limit_take(struct limit *limit, const unsigned char key[16], int64_t now_ms);

struct sockaddr;
void limit_key(const struct sockaddr *address, unsigned char key[16]);

#endif
