/* post.h - one listener for spans: its requests (inside monitor/receiver). */
#ifndef REMAP_MONITOR_RECEIVER_POST_H
#define REMAP_MONITOR_RECEIVER_POST_H

#include "adapters/otlp/otlp.h"
#include "adapters/otlp/store.h"
#include "model/wire/listener.h"

struct receiver {
    struct otlp_settings settings;
    struct otlp_store *store;
    size_t held; /* bytes of bodies that are on their way */
};

/* Bodies that are on their way together: four whole ones. More are told to come again. */
#define POST_MAX_HELD (4 * OTLP_MAX_BODY)

/* Of struct listener_options, with a struct receiver as ctx. */
enum MHD_Result post_request(void *ctx, struct MHD_Connection *connection, const char *path,
                             const char *method, const char *version, const char *data, size_t *size,
                             void **request_context);
void post_done(void *ctx, struct MHD_Connection *connection, void **request_context,
               enum MHD_RequestTerminationCode how);

#endif
