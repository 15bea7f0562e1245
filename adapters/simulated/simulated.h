/* simulated.h - the four adapters to the embedded cluster, and what they share. The cluster itself
 * is the process remap-simulated (server/api.h is its interface). */
#ifndef REMAP_SIMULATED_SIMULATED_H
#define REMAP_SIMULATED_SIMULATED_H

#include "adapters/adapter.h"
#include "adapters/http/http.h"
#include "model/base/json.h"

extern const struct cluster_adapter simulated_cluster;
extern const struct metrics_adapter simulated_metrics;
extern const struct message_adapter simulated_messages;
extern const struct orchestrator simulated_orchestrator;

/* --- between the files of this folder --- */

extern const struct option_spec simulated_options[]; /* socket, speed, timeout */

struct simulated { /* the context of all four */
    struct http *http;
    double speed; /* as configured */
};

/* The `open` of all four; *ctx is a struct simulated. ERR_CONFIG. */
int simulated_open(const struct source *source, void **ctx, struct err *err);
void simulated_close(void *ctx);

/* GET and the answer as a tree (caller json_decref()s); NULL on error. */
json_t *simulated_get(struct simulated *sim, const char *path, struct err *err);
/* POST of a JSON body. Status errors carry the server's own words. */
json_t *simulated_post(struct simulated *sim, const char *path, const struct buf *body,
                       struct err *err);

/* Members of answers; foreign to us, so unknown keys are no error, absent ones are NULL or the
 * fallback. */
const char *simulated_text(const json_t *object, const char *key);
int64_t simulated_int(const json_t *object, const char *key, int64_t fallback);

/* True when a service of this name and namespace is ours. */
bool simulated_in_scope(const struct app_scope *app, const char *service, const char *namespace);

#endif
