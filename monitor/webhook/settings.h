/* settings.h - what the manager configures (model/wire/README.md `configure`): where to listen,
 * whom to believe, which deployment is whose application. */
#ifndef REMAP_MONITOR_SETTINGS_H
#define REMAP_MONITOR_SETTINGS_H

#include "model/base/err.h"
#include "model/base/mem.h"
#include "monitor/webhook/hook.h"

struct settings_provider {
    const struct hook_provider *provider;
    char *secret_file, *token_file, *public_key_file; /* NULL: not configured */
};

struct settings_route {
    char *app, *provider /* NULL: any */, *repository;
    char **branches, **environments, **workflows; /* patterns; NULL-terminated; empty: all */
};

struct settings {
    char *listen, *tls_cert_file, *tls_key_file;
    int64_t rate, replay_window_ms;
    struct settings_provider *providers;
    size_t n_providers;
    struct settings_route *routes;
    size_t n_routes;
};

/* *out is NULL where nothing is to be listened for. ERR_INPUT. */
int settings_decode(const char *text, size_t size, struct settings **out, struct err *err);
void settings_free(struct settings *settings);
AUTO_DEFINE(settings)

/* The proofs of a provider, read from their files now: what cannot be read is NULL, and the first
 * reason in *err. settings_proof_wipe() forgets them. */
int settings_proof(const struct settings_provider *provider, struct hook_proof *out,
                   struct err *err);
void settings_proof_wipe(struct hook_proof *proof);
/* NULL: not configured at all. */
const struct settings_provider *settings_provider(const struct settings *settings,
                                                  const char *name);

/* Does the route lead to its app for this event? Else *why, a static text. */
bool settings_route_fits(const struct settings_route *route, const struct hook_provider *provider,
                         const struct hook_event *event, const char **why);
/* The apps of an event: names borrowed from the settings, each once. None: event->why. Caller
 * frees the array. */
const char **settings_apps(const struct settings *settings, const struct hook_provider *provider,
                           struct hook_event *event, size_t *n);

#endif
