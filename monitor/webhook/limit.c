/* limit.c - token buckets per address. */
#include "monitor/webhook/limit.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

bool limit_take(struct limit *limit, const unsigned char key[16], int64_t now_ms)
{
    struct limit_slot *slot = &limit->slots[0];
    double full = (double)limit->per_minute;
    for (size_t i = 0; i < LIMIT_SLOTS; i++) {
        if (limit->slots[i].at_ms && memcmp(limit->slots[i].key, key, 16) == 0) {
            slot = &limit->slots[i];
            break;
        }
        if (limit->slots[i].at_ms < slot->at_ms)
            slot = &limit->slots[i];
    }
    if (!slot->at_ms || memcmp(slot->key, key, 16) != 0) {
        memcpy(slot->key, key, 16);
        slot->tokens = full;
    } else {
        slot->tokens += (double)(now_ms - slot->at_ms) * full / 60000;
    }
    slot->at_ms = now_ms;
    if (slot->tokens > full)
        slot->tokens = full;
    if (slot->tokens < 1)
        return false;
    slot->tokens -= 1;
    return true;
}

void limit_key(const struct sockaddr *address, unsigned char key[16])
{
    memset(key, 0, 16);
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        memcpy(key + 12, &in->sin_addr, 4);
        key[10] = key[11] = 0xff;
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)address;
        memcpy(key, &in6->sin6_addr, 8); /* one network, one sender */
        if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
            memcpy(key, &in6->sin6_addr, 16);
    }
}
