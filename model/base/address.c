/* address.c - addresses to listen on (address.h). */
#include "model/base/address.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

bool address_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *in6 = (const void *)address;
    return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

int address_parse(const char *text, struct addrinfo **out, struct err *err)
{
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    bool bracket = size > 2 && text[0] == '[' && text[size - 1] == ']';
    AUTO_FREE char *host = bracket ? mem_strndup(text + 1, size - 2) : mem_strndup(text, size);
    bool number = colon && colon[1] && strlen(colon + 1) <= 5 &&
                  strspn(colon + 1, "0123456789") == strlen(colon + 1) && atoi(colon + 1) <= 65535;
    if (strcmp(host, "localhost") == 0) {
        strcpy(host, "127.0.0.1"); /* as long */
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    if (!size || !number || (!bracket && strchr(host, ':')) ||
        getaddrinfo(host, colon + 1, &hints, out)) {
        return err_set(err, ERR_CONFIG,
                       "%s: must be an IP address and a port, such as 127.0.0.1:9470 or "
                       "[::1]:9470",
                       text);
    }
    return 0;
}

int address_check(const char *text, bool *loopback, struct err *err)
{
    struct addrinfo *address = NULL;
    if (address_parse(text, &address, err)) {
        return -1;
    }
    if (loopback) {
        *loopback = address_is_loopback(address->ai_addr);
    }
    freeaddrinfo(address);
    return 0;
}
