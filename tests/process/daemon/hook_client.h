/* hook_client.h - a CI system of a test: posts to the webhook listener of a rig. */
#ifndef REMAP_TESTS_HOOK_CLIENT_H
#define REMAP_TESTS_HOOK_CLIENT_H

#include "tests/process/daemon/rig.h"

/* Where the monitor listens (`listen: 127.0.0.1:0`). */
int hook_client_port(struct rig *rig);
/* The status, 0 without an answer; what came is in *answer. `headers` ended by NULL. */
long hook_client_post(int port, const char *path, const char *const *headers, const char *body,
                      size_t size, struct buf *answer);

#endif
