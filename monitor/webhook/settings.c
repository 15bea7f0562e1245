/* settings.c - decodes `configure`, reads secrets from their files, and finds the application of a
 * deployment. */
#include "monitor/webhook/settings.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/base/json.h"
#include "model/model.h"
#include "monitor/secret.h"
#include "monitor/webhook/verify.h"

#define MAX_ENTRIES 1000 /* as the configuration */
#define MAX_PATH_BYTES 4096

static const struct json_limits limits = {16 << 20, 8, 0}; /* 1000 routes of 3 lists of names */

static int read_texts(const struct jval *route, const char *key, char ***out, struct err *err)
{
    struct jval list = jval_get(route, key);
    size_t n;
    if (jval_array(&list, MAX_ENTRIES, &n, err))
        return -1;
    *out = mem_array(n + 1, sizeof **out);
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(&list, i);
        const char *text;
        if (jval_name(&v, &text, err))
            return -1;
        (*out)[i] = mem_strdup(text);
    }
    return 0;
}

static int read_provider(const struct jval *v, struct settings *s, struct err *err)
{
    static const char *const keys[] = {"name", "secret_file", "token_file", "public_key_file",
                                       NULL};
    struct jval name_v = jval_get(v, "name");
    const char *name;
    struct settings_provider *p = ARRAY_PUSH(s->providers, s->n_providers);
    if (jval_object(v, keys, err) || jval_name(&name_v, &name, err) ||
        jval_opt_text(v, "secret_file", MAX_PATH_BYTES, &p->secret_file, err) ||
        jval_opt_text(v, "token_file", MAX_PATH_BYTES, &p->token_file, err) ||
        jval_opt_text(v, "public_key_file", MAX_PATH_BYTES, &p->public_key_file, err))
        return -1;
    p->provider = hook_provider_find(name);
    return p->provider ? 0 : jval_error(&name_v, err, "there is no provider \"%s\"", name);
}

static int read_route(const struct jval *v, struct settings *s, struct err *err)
{
    static const char *const keys[] = {"app",          "provider",  "repository", "branches",
                                       "environments", "workflows", NULL};
    struct settings_route *route = ARRAY_PUSH(s->routes, s->n_routes);
    struct jval app = jval_get(v, "app"), repository = jval_get(v, "repository");
    const char *text;
    if (jval_object(v, keys, err) || jval_name(&app, &text, err))
        return -1;
    route->app = mem_strdup(text);
    if (jval_name(&repository, &text, err))
        return -1;
    route->repository = mem_strdup(text);
    return jval_opt_text(v, "provider", 64, &route->provider, err) ||
                   read_texts(v, "branches", &route->branches, err) ||
                   read_texts(v, "environments", &route->environments, err) ||
                   read_texts(v, "workflows", &route->workflows, err)
               ? -1
               : 0;
}

static int read_webhooks(const struct jval *v, struct settings *s, struct err *err)
{
    static const char *const keys[] = {"listen",           "tls_cert_file", "tls_key_file", "rate",
                                       "replay_window_ms", "providers",     "routes",       NULL};
    struct jval rate = jval_get(v, "rate"), window = jval_get(v, "replay_window_ms");
    struct jval providers = jval_get(v, "providers"), routes = jval_get(v, "routes");
    struct jval listen = jval_get(v, "listen");
    const char *text;
    size_t n;
    if (jval_object(v, keys, err) || jval_text(&listen, 300, &text, err))
        return -1;
    s->listen = mem_strdup(text);
    if (jval_opt_text(v, "tls_cert_file", MAX_PATH_BYTES, &s->tls_cert_file, err) ||
        jval_opt_text(v, "tls_key_file", MAX_PATH_BYTES, &s->tls_key_file, err) ||
        jval_int(&rate, 1, 1000000, &s->rate, err) ||
        jval_int(&window, 1, MODEL_MAX_NUMBER, &s->replay_window_ms, err) ||
        jval_array(&providers, MAX_ENTRIES, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval p = jval_at(&providers, i);
        if (read_provider(&p, s, err))
            return -1;
    }
    if (jval_array(&routes, MAX_ENTRIES, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval r = jval_at(&routes, i);
        if (read_route(&r, s, err))
            return -1;
    }
    return 0;
}

int settings_decode(const char *text, size_t size, struct settings **out, struct err *err)
{
    static const char *const keys[] = {"v", "webhooks", "receivers", NULL};
    AUTO_JSON json_t *tree = json_parse(text, size, &limits, err);
    struct jval root = jval_root(tree);
    if (!tree || jval_object(&root, keys, err))
        return -1;
    struct jval hooks = jval_get(&root, "webhooks");
    if (jval_null(&hooks)) {
        *out = NULL;
        return 0;
    }
    AUTO(settings) struct settings *s = mem_alloc(sizeof *s);
    if (read_webhooks(&hooks, s, err))
        return -1;
    *out = strcmp(s->listen, "off") == 0 ? NULL : steal(s);
    return 0;
}

static void texts_free(char **texts)
{
    for (size_t i = 0; texts && texts[i]; i++)
        free(texts[i]);
    free(texts);
}

void settings_free(struct settings *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_providers; i++) {
        free(s->providers[i].secret_file);
        free(s->providers[i].token_file);
        free(s->providers[i].public_key_file);
    }
    for (size_t i = 0; i < s->n_routes; i++) {
        struct settings_route *route = &s->routes[i];
        free(route->app);
        free(route->provider);
        free(route->repository);
        texts_free(route->branches);
        texts_free(route->environments);
        texts_free(route->workflows);
    }
    free(s->providers);
    free(s->routes);
    free(s->listen);
    free(s->tls_cert_file);
    free(s->tls_key_file);
    free(s);
}

/* --- secrets --- */

/* The first problem of several stays. */
static int read_secret(const char *path, const char **out, struct err *err)
{
    struct err problem = ERR_INIT;
    if (!path || secret_read(path, out, &problem) == 0)
        return 0;
    if (err->kind == ERR_NONE)
        *err = problem;
    return -1;
}

int settings_proof(const struct settings_provider *provider, struct hook_proof *out,
                   struct err *err)
{
    *out = (struct hook_proof){NULL, NULL, NULL};
    err->kind = ERR_NONE;
    int rc = read_secret(provider->secret_file, &out->secret, err);
    rc |= read_secret(provider->token_file, &out->token, err);
    rc |= read_secret(provider->public_key_file, &out->public_key, err);
    /* a signing secret that cannot be read must not open the door to the plain token */
    if (provider->secret_file && !out->secret)
        settings_proof_wipe(out);
    if (out->public_key && !verify_key_usable(out->public_key) && err->kind == ERR_NONE)
        rc = err_set(err, ERR_CONFIG, "%s: is no RSA public key in PEM", provider->public_key_file);
    return rc ? -1 : 0;
}

void settings_proof_wipe(struct hook_proof *proof)
{
    const char **const texts[] = {&proof->secret, &proof->token, &proof->public_key};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        secret_free(*texts[i]);
        *texts[i] = NULL;
    }
}

const struct settings_provider *settings_provider(const struct settings *s, const char *name)
{
    for (size_t i = 0; i < s->n_providers; i++)
        if (strcmp(s->providers[i].provider->name, name) == 0)
            return &s->providers[i];
    return NULL;
}

/* --- routes --- */

static bool any_fits(char *const *patterns, const struct hook_names *names)
{
    for (size_t i = 0; patterns[i]; i++)
        for (size_t k = 0; k < names->n; k++)
            if (fnmatch(patterns[i], names->names[k], 0) == 0)
                return true;
    return false;
}

bool settings_route_fits(const struct settings_route *route, const struct hook_provider *provider,
                         const struct hook_event *event, const char **why)
{
    *why = "no route is for this repository";
    if ((route->provider && strcmp(route->provider, provider->name) != 0) ||
        (event->app[0] && strcmp(event->app, route->app) != 0) ||
        (event->repository[0] && strcasecmp(event->repository, route->repository) != 0))
        return false;
    *why = "its branch is none of those that are deployed";
    if (event->tells_branch && route->branches[0] && !any_fits(route->branches, &event->branches))
        return false;
    *why = "its environment is none of the application's";
    if (event->tells_environment && route->environments[0] &&
        !any_fits(route->environments, &event->environments))
        return false;
    *why = "its workflow is not configured to be a deployment";
    return !event->tells_workflow || any_fits(route->workflows, &event->workflows);
}

/* Where several routes know the repository, the reason of the one that came farthest. */
const char **settings_apps(const struct settings *s, const struct hook_provider *provider,
                           struct hook_event *event, size_t *n)
{
    const char **apps = mem_array(s->n_routes + 1, sizeof *apps);
    const char *first = "no route is for this repository", *said = NULL;
    *n = 0;
    for (size_t i = 0; i < s->n_routes; i++) {
        const char *why;
        bool fits = settings_route_fits(&s->routes[i], provider, event, &why);
        for (size_t k = 0; fits && k < *n; k++)
            fits = strcmp(apps[k], s->routes[i].app) != 0;
        if (fits)
            apps[(*n)++] = s->routes[i].app;
        else if (strcmp(why, first) != 0)
            said = why;
    }
    if (*n == 0)
        hook_say(event, HOOK_IGNORED, "%s", said ? said : first);
    return apps;
}
