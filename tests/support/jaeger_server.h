/* jaeger_server.h - a real Jaeger all-in-one of a test's own (etc/test-servers builds it). */
#ifndef REMAP_TESTS_JAEGER_SERVER_H
#define REMAP_TESTS_JAEGER_SERVER_H

#include "tests/support/server.h"

#define JAEGER_PROGRAM "jaeger-1.62.0" /* server_cached() */

struct jaeger_server {
    struct server query;        /* with the base path, the process */
    struct server zipkin, otlp; /* the same process: where these formats are taken */
    char url[96];               /* of the query service, with its base path */
};

/* Every listener on a port of its own. False when it does not come up. */
bool jaeger_server_start(struct jaeger_server *jaeger, const char *folder, const char *base_path);

#endif
