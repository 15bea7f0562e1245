/* config_webhooks.c - the section `webhooks` of the configuration: where the monitor listens, whose
 * events it believes (the files of secrets and keys), and which deployment is whose application. */
#include "model/config_reading.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct raw_provider {
    char *values[WEBHOOK_KEYS];
};
enum { LIST_BRANCHES, LIST_ENVIRONMENTS, LIST_WORKFLOWS, N_LISTS };
struct raw_route {
    char *values[WEBHOOK_KEYS];
    char **lists[N_LISTS];
    uint32_t n_lists[N_LISTS];
};
struct raw_webhooks {
    char *values[WEBHOOK_KEYS];
    struct raw_provider *providers;
    struct raw_route *routes;
    uint32_t n_providers, n_routes;
};

#define HOOKS(member) offsetof(struct config_webhooks, member)
#define PROVIDER(member) offsetof(struct config_provider, member)
#define ROUTE(member) offsetof(struct config_route, member)

const struct key config_webhooks_keys[] = {
    {.name = "listen",
     .kind = KEY_LISTEN,
     .offset = HOOKS(listen),
     .fallback = "127.0.0.1:9471",
     .help = "where CI systems post: /hooks/travis, github, gitlab, gitea, generic"},
    {.name = "tls_cert_file",
     .kind = KEY_TEXT,
     .offset = HOOKS(tls_cert_file),
     .help = "certificate chain (PEM); with tls_key_file: https"},
    {.name = "tls_key_file",
     .kind = KEY_TEXT,
     .offset = HOOKS(tls_key_file),
     .help = "its private key (PEM)"},
    {.name = "rate",
     .kind = KEY_COUNT,
     .offset = HOOKS(rate),
     .fallback = "60",
     .min = 1,
     .max = 1e6,
     .help = "requests a minute from one address; more are answered 429"},
    {.name = "replay_window",
     .kind = KEY_DURATION,
     .offset = HOOKS(replay_window_ms),
     .fallback = "5m",
     .min = 1000,
     .max = 24 * 3600 * 1000.0,
     .help = "how far signed times may be off; twice as long a delivery counts once"},
    {.name = NULL},
};

static const char *const provider_names[] = {"travis", "github",  "gitlab",
                                             "gitea",  "generic", NULL};

const struct key config_provider_keys[] = {
    {.name = "name",
     .kind = KEY_NAME,
     .offset = PROVIDER(name),
     .help = "required: travis, github, gitlab, gitea or generic"},
    {.name = "secret_file",
     .kind = KEY_TEXT,
     .offset = PROVIDER(secret_file),
     .help = "file with the secret of its signatures (HMAC-SHA256)"},
    {.name = "token_file",
     .kind = KEY_TEXT,
     .offset = PROVIDER(token_file),
     .help = "gitlab without signatures: file with its secret token"},
    {.name = "public_key_file",
     .kind = KEY_TEXT,
     .offset = PROVIDER(public_key_file),
     .help = "travis: file with the installation's public key (PEM, from its /config)"},
    {.name = NULL},
};

const struct key config_route_keys[] = {
    {.name = "app",
     .kind = KEY_NAME,
     .offset = ROUTE(app),
     .help = "required: whose timer a deployment resets"},
    {.name = "provider",
     .kind = KEY_NAME,
     .offset = ROUTE(provider),
     .help = "only deployments that this provider reports; default: any"},
    {.name = "repository",
     .kind = KEY_NAME,
     .offset = ROUTE(repository),
     .help = "required: owner/name as the provider spells it"},
    {.name = NULL},
};

const struct list_key config_route_lists[] = {
    {"branches", "branches or tags that are deployed, * and ? allowed; empty: all"},
    {"environments", "environments that are this application's, * and ? allowed; empty: all"},
    {"workflows", "workflows (file or name) or status contexts whose success is a deployment"},
    {NULL, NULL},
};

/* --- schema --- */

cyaml_schema_field_t config_webhooks_field(struct webhooks_schema *s, size_t offset)
{
    *s = (struct webhooks_schema){0};
    size_t n = 0;
    for (size_t i = 0; config_provider_keys[i].name; i++)
        s->provider_fields[n++] =
            config_text_field(config_provider_keys[i].name,
                              offsetof(struct raw_provider, values) + i * sizeof(char *));
    assert(n < WEBHOOK_KEYS);
    n = 0;
    for (size_t i = 0; config_route_keys[i].name; i++)
        s->route_fields[n++] = config_text_field(
            config_route_keys[i].name, offsetof(struct raw_route, values) + i * sizeof(char *));
    for (size_t i = 0; i < N_LISTS; i++)
        s->route_fields[n++] = config_list_field(
            config_route_lists[i].name, offsetof(struct raw_route, lists) + i * sizeof(char **),
            offsetof(struct raw_route, n_lists) + i * sizeof(uint32_t), &config_text_entry,
            sizeof(char *), false);
    assert(n < WEBHOOK_KEYS);
    s->provider = (cyaml_schema_value_t){.type = CYAML_MAPPING,
                                         .data_size = sizeof(struct raw_provider),
                                         .mapping = {.fields = s->provider_fields}};
    s->route = (cyaml_schema_value_t){.type = CYAML_MAPPING,
                                      .data_size = sizeof(struct raw_route),
                                      .mapping = {.fields = s->route_fields}};
    n = 0;
    for (size_t i = 0; config_webhooks_keys[i].name; i++)
        s->fields[n++] =
            config_text_field(config_webhooks_keys[i].name,
                              offsetof(struct raw_webhooks, values) + i * sizeof(char *));
    s->fields[n++] = config_list_field("providers", offsetof(struct raw_webhooks, providers),
                                       offsetof(struct raw_webhooks, n_providers), &s->provider,
                                       sizeof(struct raw_provider), true);
    s->fields[n++] = config_list_field("routes", offsetof(struct raw_webhooks, routes),
                                       offsetof(struct raw_webhooks, n_routes), &s->route,
                                       sizeof(struct raw_route), true);
    assert(n < WEBHOOK_KEYS);
    return (cyaml_schema_field_t){
        .key = "webhooks",
        .data_offset = (uint32_t)offset,
        .value = {.type = CYAML_MAPPING,
                  .flags = CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                  .data_size = sizeof(struct raw_webhooks),
                  .mapping = {.fields = s->fields}},
    };
}

/* --- texts into values --- */

static bool provider_known(const char *name)
{
    for (size_t i = 0; provider_names[i]; i++)
        if (strcmp(provider_names[i], name) == 0)
            return true;
    return false;
}

static int provider_set(const struct reading *r, const struct raw_provider *raw, size_t index,
                        struct config_webhooks *hooks)
{
    static const char unknown[] = "must be travis, github, gitlab, gitea or generic";
    char prefix[48];
    snprintf(prefix, sizeof prefix, "webhooks.providers[%zu].", index);
    struct config_provider *p = ARRAY_PUSH(hooks->providers, hooks->n_providers);
    if (config_values_set(r, prefix, config_provider_keys, (char **)raw->values, p))
        return -1;
    if (!p->name || !provider_known(p->name))
        return config_bad(r, prefix, p->name ? "name" : "",
                          p->name ? unknown : "\"name\" is missing");
    for (size_t i = 0; i + 1 < hooks->n_providers; i++)
        if (strcmp(hooks->providers[i].name, p->name) == 0)
            return config_bad(r, prefix, "name", "is listed twice");
    bool travis = strcmp(p->name, "travis") == 0, gitlab = strcmp(p->name, "gitlab") == 0;
    if (p->token_file && !gitlab)
        return config_bad(r, prefix, "token_file", "is gitlab's; this provider signs: secret_file");
    if (p->public_key_file && !travis)
        return config_bad(r, prefix, "public_key_file", "is travis's; here: secret_file");
    if (travis ? !p->public_key_file || p->secret_file : !p->secret_file && !p->token_file)
        return config_bad(r, prefix, "",
                          travis   ? "travis wants public_key_file, and nothing else"
                          : gitlab ? "gitlab wants secret_file (signatures) or token_file"
                                   : "\"secret_file\" is missing");
    return 0;
}

static int route_set(const struct reading *r, const struct raw_route *raw, size_t index,
                     const struct config *config, struct config_webhooks *hooks)
{
    char prefix[48];
    snprintf(prefix, sizeof prefix, "webhooks.routes[%zu].", index);
    struct config_route *route = ARRAY_PUSH(hooks->routes, hooks->n_routes);
    char ***const lists[] = {&route->branches, &route->environments, &route->workflows};
    size_t *const counts[] = {&route->n_branches, &route->n_environments, &route->n_workflows};
    if (config_values_set(r, prefix, config_route_keys, (char **)raw->values, route))
        return -1;
    for (size_t i = 0; i < N_LISTS; i++)
        if (config_list_set(r, prefix, config_route_lists[i].name, raw->lists[i], raw->n_lists[i],
                            lists[i], counts[i]))
            return -1;
    if (!route->app || !route->repository)
        return config_bad(r, prefix, "",
                          route->app ? "\"repository\" is missing" : "\"app\" is missing");
    if (!config_app(config, route->app))
        return config_bad(r, prefix, "app", "there is no such app");
    if (!route->provider)
        return 0;
    for (size_t i = 0; i < hooks->n_providers; i++)
        if (strcmp(hooks->providers[i].name, route->provider) == 0)
            return 0;
    return config_bad(r, prefix, "provider", "is not among the providers above");
}

int config_webhooks_set(const struct reading *r, const struct raw_webhooks *raw,
                        struct config *config)
{
    if (!raw)
        return 0;
    struct config_webhooks *hooks = config->webhooks = mem_alloc(sizeof *hooks);
    if (config_values_set(r, "webhooks.", config_webhooks_keys, (char **)raw->values, hooks))
        return -1;
    if (hooks->rate < 0)
        return config_bad(r, "webhooks.", "rate", "must be a number");
    if (!hooks->tls_cert_file != !hooks->tls_key_file)
        return config_bad(r, "webhooks.", hooks->tls_key_file ? "tls_key_file" : "tls_cert_file",
                          "certificate and key are needed together");
    for (size_t i = 0; i < raw->n_providers; i++)
        if (provider_set(r, &raw->providers[i], i, hooks))
            return -1;
    for (size_t i = 0; i < raw->n_routes; i++)
        if (route_set(r, &raw->routes[i], i, config, hooks))
            return -1;
    return 0;
}

void config_webhooks_free(struct config_webhooks *hooks)
{
    if (!hooks)
        return;
    for (size_t i = 0; i < hooks->n_providers; i++)
        config_texts_free(config_provider_keys, &hooks->providers[i]);
    for (size_t i = 0; i < hooks->n_routes; i++) {
        struct config_route *route = &hooks->routes[i];
        config_texts_free(config_route_keys, route);
        config_strings_free(route->branches, route->n_branches);
        config_strings_free(route->environments, route->n_environments);
        config_strings_free(route->workflows, route->n_workflows);
    }
    config_texts_free(config_webhooks_keys, hooks);
    free(hooks->providers);
    free(hooks->routes);
    free(hooks);
}

void config_webhooks_reference(struct buf *out,
                               void (*keys)(struct buf *, const char *, const struct key *),
                               void (*line)(struct buf *, const char *, const char *, const char *,
                                            const char *))
{
    keys(out, "webhooks.", config_webhooks_keys);
    keys(out, "webhooks.providers[].", config_provider_keys);
    keys(out, "webhooks.routes[].", config_route_keys);
    for (const struct list_key *list = config_route_lists; list->name; list++)
        line(out, "webhooks.routes[].", list->name, "[]", list->help);
}
