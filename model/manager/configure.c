/* configure.c - writes the messages that tell the monitor what to listen to, and the executor what to
 * keep up between requests. */
#include "model/manager/configure.h"

#include <string.h>

#include "model/base/json.h"
#include "model/manager/request.h"

static void put_text(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, "%s\"%s\":", out->data[out->size - 1] == '{' ? "" : ",", key);
    json_put_text(out, text);
}

static void put_texts(struct buf *out, const char *key, char *const *texts, size_t n)
{
    buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? "," : "");
        json_put_text(out, texts[i]);
    }
    buf_puts(out, "]");
}

static void put_webhooks(const struct config_webhooks *hooks, struct buf *out)
{
    if (!hooks) {
        buf_puts(out, "null");
        return;
    }
    buf_puts(out, "{");
    put_text(out, "listen", hooks->listen);
    put_text(out, "tls_cert_file", hooks->tls_cert_file);
    put_text(out, "tls_key_file", hooks->tls_key_file);
    buf_printf(out, ",\"rate\":%lld,\"replay_window_ms\":%lld,\"providers\":[",
               (long long)hooks->rate, (long long)hooks->replay_window_ms);
    for (size_t i = 0; i < hooks->n_providers; i++) {
        const struct config_provider *p = &hooks->providers[i];
        buf_puts(out, i ? ",{" : "{");
        put_text(out, "name", p->name);
        put_text(out, "secret_file", p->secret_file);
        put_text(out, "token_file", p->token_file);
        put_text(out, "public_key_file", p->public_key_file);
        buf_puts(out, "}");
    }
    buf_puts(out, "],\"routes\":[");
    for (size_t i = 0; i < hooks->n_routes; i++) {
        const struct config_route *route = &hooks->routes[i];
        buf_puts(out, i ? ",{" : "{");
        put_text(out, "app", route->app);
        put_text(out, "provider", route->provider);
        put_text(out, "repository", route->repository);
        put_texts(out, "branches", route->branches, route->n_branches);
        put_texts(out, "environments", route->environments, route->n_environments);
        put_texts(out, "workflows", route->workflows, route->n_workflows);
        buf_puts(out, "}");
    }
    buf_puts(out, "]}");
}

/* What a receiver adds to the longest window: traces wait for a minute, and cycles for each other. */
#define KEEP_MORE_MS 120000

/* How far back anybody will ask; -1: nobody does. */
static int64_t longest_window_ms(const struct config *config, const char *source)
{
    int64_t longest = -1;
    for (size_t a = 0; a < config->n_apps; a++) {
        const struct config_app *app = &config->apps[a];
        for (size_t i = 0; i < app->n_messages; i++)
            if (strcmp(app->messages[i], source) == 0 && app->window_ms + app->grace_ms > longest)
                longest = app->window_ms + app->grace_ms;
    }
    return longest;
}

static void put_receivers(const struct config *config, struct buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < config->n_sources; i++) {
        const struct config_source *source = &config->sources[i];
        int64_t longest = longest_window_ms(config, source->name);
        if (strcmp(source->type, "otlp") != 0 || longest < 0)
            continue;
        buf_puts(out, n++ ? ",{\"source\":" : "{\"source\":");
        request_source(source, out);
        buf_printf(out, ",\"keep_ms\":%lld}", (long long)longest + KEEP_MORE_MS);
    }
}

void configure_build(const struct config *config, struct buf *out)
{
    buf_puts(out, "{\"v\":1,\"webhooks\":");
    put_webhooks(config->webhooks, out);
    buf_puts(out, ",\"receivers\":[");
    put_receivers(config, out);
    buf_puts(out, "]}");
}

static void put_limit(struct buf *out, const char *key, int64_t limit)
{
    if (limit >= 0)
        buf_printf(out, "\"%s\":%lld,", key, (long long)limit);
}

/* Whoever moves by himself also takes off what does harm, within the same limits; of an app that
 * proposes it is only told. */
static void put_relief(const struct config_app *app, bool paused, struct buf *out)
{
    buf_puts(out, ",\"relief\":");
    if (paused) {
        buf_puts(out, "null");
        return;
    }
    buf_puts(out, "{");
    if (app->mode != MODE_ACT)
        buf_puts(out, "\"look_only\":true,");
    put_limit(out, "max_restarts", app->max_restarts);
    put_limit(out, "max_service_restarts", app->max_service_restarts);
    buf_printf(out, "\"interval_ms\":%lld}", (long long)app->interval_ms);
}

void configure_executor(const struct config *config, const bool *paused, const char *moves,
                        struct buf *out)
{
    bool first = true;
    buf_printf(out, "{\"v\":1,\"moves\":[%s],\"orchestrators\":[", moves);
    for (size_t i = 0; i < config->n_apps; i++) {
        const struct config_app *app = &config->apps[i];
        const char *name = app->orchestrator ? app->orchestrator : app->cluster;
        if (app->mode == MODE_OBSERVE)
            continue;
        buf_puts(out, first ? "{\"app\":" : ",{\"app\":");
        request_app(app, out);
        buf_puts(out, ",\"orchestrator\":");
        request_source(config_source(config, name), out);
        put_relief(app, paused[i], out);
        buf_puts(out, "}");
        first = false;
    }
    buf_puts(out, "]}");
}
