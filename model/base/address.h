/* address.h - IP addresses and ports to listen on, as a configuration writes them: "127.0.0.1:9470",
 * "[::1]:9470", "localhost:9470". */
#ifndef REMAP_BASE_ADDRESS_H
#define REMAP_BASE_ADDRESS_H

#include <stdbool.h>
#include "model/base/err.h"

struct addrinfo;
struct sockaddr;

/* Caller freeaddrinfo()s. ERR_CONFIG. */
int address_parse(const char *text, struct addrinfo **out, struct err *err);
/* Is `text` such an address? ERR_CONFIG. `loopback` may be NULL. */
int address_check(const char *text, bool *loopback, struct err *err);
/* 127.0.0.0/8 or ::1. */
bool address_is_loopback(const struct sockaddr *address);

#endif
