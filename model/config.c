/* config.c - the configuration: YAML by libcyaml's schema (built from the tables of config_keys.c)
 * into texts, texts into values with defaults and ranges, then what refers to what. */
#include "model/config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/names.h"
#include "model/config_reading.h"
#include "model/config_text.h"

/* What libcyaml fills: every scalar as its text, one slot per line of the key table. */
struct raw_option {
    char *name, *value;
};
struct raw_source {
    char *name, *type;
    struct raw_option *options;
    uint32_t n_options;
};
#define DRIFT_KEYS 10 /* at most */
struct raw_drift {
    char *values[DRIFT_KEYS];
};
struct raw_app {
    char *values[CONFIG_MAX_KEYS];
    struct raw_drift drift;
    char **lists[5]; /* namespaces, services, metrics, messages, windows */
    uint32_t n_lists[5];
    struct raw_option *aliases, *tenants;
    uint32_t n_aliases, n_tenants;
};
struct raw_config {
    char *values[CONFIG_MAX_KEYS];
    struct raw_source *sources;
    uint32_t n_sources;
    struct raw_app *apps;
    uint32_t n_apps;
    struct raw_webhooks *webhooks;
};
enum { LIST_NAMESPACES, LIST_SERVICES, LIST_METRICS, LIST_MESSAGES, LIST_WINDOWS, N_LISTS };

const cyaml_schema_value_t config_text_entry = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, CONFIG_MAX_TEXT)};

static const cyaml_schema_field_t option_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct raw_option, name, 1, 253),
    CYAML_FIELD_STRING_PTR("value", CYAML_FLAG_POINTER, struct raw_option, value, 1,
                           CONFIG_MAX_TEXT),
    CYAML_FIELD_END};
static const cyaml_schema_value_t option_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_option, option_fields)};

static const cyaml_schema_field_t source_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct raw_source, name, 1, 253),
    CYAML_FIELD_STRING_PTR("type", CYAML_FLAG_POINTER, struct raw_source, type, 1, 253),
    CYAML_FIELD_SEQUENCE_COUNT("options", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                               struct raw_source, options, n_options, &option_entry, 0,
                               CONFIG_MAX_ENTRIES),
    CYAML_FIELD_END};
static const cyaml_schema_value_t source_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_source, source_fields)};

/* The schema, built once per read from the key tables. */
struct schema {
    cyaml_schema_field_t app_fields[CONFIG_MAX_KEYS + N_LISTS + 4];
    cyaml_schema_field_t drift_fields[DRIFT_KEYS];
    cyaml_schema_field_t top_fields[CONFIG_MAX_KEYS + 4];
    struct webhooks_schema webhooks;
    cyaml_schema_value_t app, top;
};

cyaml_schema_field_t config_text_field(const char *key, size_t offset)
{
    return (cyaml_schema_field_t){
        .key = key,
        .data_offset = (uint32_t)offset,
        .value = {.type = CYAML_STRING,
                  .flags = CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                  .data_size = sizeof(char),
                  .string = {.min = 1, .max = CONFIG_MAX_TEXT}},
    };
}

cyaml_schema_field_t config_list_field(const char *key, size_t offset, size_t count_offset,
                                       const cyaml_schema_value_t *entry, size_t size,
                                       bool required)
{
    return (cyaml_schema_field_t){
        .key = key,
        .data_offset = (uint32_t)offset,
        .count_offset = (uint32_t)count_offset,
        .count_size = sizeof(uint32_t),
        .value = {.type = CYAML_SEQUENCE,
                  .flags = CYAML_FLAG_POINTER | (required ? 0 : CYAML_FLAG_OPTIONAL),
                  .data_size = (uint32_t)size,
                  .sequence = {.entry = entry, .min = required, .max = CONFIG_MAX_ENTRIES}},
    };
}

static void schema_build(struct schema *s)
{
    *s = (struct schema){0};
    size_t n = 0;
    for (size_t i = 0; config_app_keys[i].name; i++)
        s->app_fields[n++] = config_text_field(config_app_keys[i].name,
                                        offsetof(struct raw_app, values) + i * sizeof(char *));
    for (size_t i = 0; i < N_LISTS; i++)
        s->app_fields[n++] = config_list_field(config_app_lists[i].name,
                                        offsetof(struct raw_app, lists) + i * sizeof(char **),
                                        offsetof(struct raw_app, n_lists) + i * sizeof(uint32_t),
                                        &config_text_entry, sizeof(char *), false);
    s->app_fields[n++] = config_list_field("aliases", offsetof(struct raw_app, aliases),
                                    offsetof(struct raw_app, n_aliases), &option_entry,
                                    sizeof(struct raw_option), false);
    s->app_fields[n++] = config_list_field("tenants", offsetof(struct raw_app, tenants),
                                    offsetof(struct raw_app, n_tenants), &option_entry,
                                    sizeof(struct raw_option), false);
    s->app_fields[n++] = (cyaml_schema_field_t){
        .key = "drift",
        .data_offset = offsetof(struct raw_app, drift),
        .value = {.type = CYAML_MAPPING,
                  .flags = CYAML_FLAG_OPTIONAL,
                  .data_size = sizeof(struct raw_drift),
                  .mapping = {.fields = s->drift_fields}},
    };
    assert(n < ARRAY_LEN(s->app_fields));
    for (n = 0; config_drift_keys[n].name; n++)
        s->drift_fields[n] = config_text_field(
            config_drift_keys[n].name, offsetof(struct raw_drift, values) + n * sizeof(char *));
    assert(n < DRIFT_KEYS);
    s->app = (cyaml_schema_value_t){.type = CYAML_MAPPING,
                                    .data_size = sizeof(struct raw_app),
                                    .mapping = {.fields = s->app_fields}};
    n = 0;
    for (size_t i = 0; config_top_keys[i].name; i++)
        s->top_fields[n++] = config_text_field(config_top_keys[i].name,
                                        offsetof(struct raw_config, values) + i * sizeof(char *));
    s->top_fields[n++] = config_list_field("sources", offsetof(struct raw_config, sources),
                                    offsetof(struct raw_config, n_sources), &source_entry,
                                    sizeof(struct raw_source), true);
    s->top_fields[n++] = config_list_field("apps", offsetof(struct raw_config, apps),
                                    offsetof(struct raw_config, n_apps), &s->app,
                                    sizeof(struct raw_app), true);
    s->top_fields[n++] =
        config_webhooks_field(&s->webhooks, offsetof(struct raw_config, webhooks));
    assert(n < ARRAY_LEN(s->top_fields));
    s->top = (cyaml_schema_value_t){.type = CYAML_MAPPING,
                                    .flags = CYAML_FLAG_POINTER,
                                    .data_size = sizeof(struct raw_config),
                                    .mapping = {.fields = s->top_fields}};
}

/* --- texts into values --- */

int config_bad(const struct reading *r, const char *prefix, const char *key, const char *why)
{
    char path[128];
    int n = snprintf(path, sizeof path, "%s%s", prefix, key);
    if (!*key && n > 0) /* the thing itself: "apps[0].", without its dot */
        path[n - 1] = '\0';
    return ydoc_error(r->doc, r->err, path, "%s", why);
}

int config_values_set(const struct reading *r, const char *prefix, const struct key *keys,
                      char **values, void *base)
{
    for (size_t i = 0; keys[i].name; i++) {
        const char *text = values[i] ? values[i] : keys[i].fallback;
        char why[200];
        if (text && config_text_set(&keys[i], text, base, why, sizeof why))
            return config_bad(r, prefix, keys[i].name, why);
    }
    return 0;
}

int config_list_set(const struct reading *r, const char *prefix, const char *name, char *const *raw,
                    size_t n, char ***out, size_t *count)
{
    for (size_t i = 0; i < n; i++) {
        const char *problem = name_problem(raw[i], strlen(raw[i]));
        for (size_t k = 0; k < i && !problem; k++)
            problem = strcmp(raw[i], (*out)[k]) == 0 ? "is listed twice" : NULL;
        if (problem) {
            char key[64];
            snprintf(key, sizeof key, "%s[%zu]", name, i);
            return config_bad(r, prefix, key, problem);
        }
        *ARRAY_PUSH(*out, *count) = mem_strdup(raw[i]);
    }
    return 0;
}

static int list_set(const struct reading *r, const char *prefix, const struct raw_app *raw,
                    int list, char ***out, size_t *count)
{
    return config_list_set(r, prefix, config_app_lists[list].name, raw->lists[list],
                           raw->n_lists[list], out, count);
}

static int options_set(const struct reading *r, const char *prefix, const char *list,
                       const struct raw_option *raw, size_t n, bool secrets_refused,
                       struct config_option **out, size_t *count)
{
    for (size_t i = 0; i < n; i++) {
        const char *problem = name_problem(raw[i].name, strlen(raw[i].name));
        for (size_t k = 0; k < i && !problem; k++)
            problem = strcmp(raw[i].name, raw[k].name) == 0 ? "is listed twice" : NULL;
        if (!problem && secrets_refused)
            problem = config_secret_problem(raw[i].name, raw[i].value);
        if (problem) {
            char key[64];
            snprintf(key, sizeof key, "%s[%zu]", list, i);
            return config_bad(r, prefix, key, problem);
        }
        struct config_option *option = ARRAY_PUSH(*out, *count);
        option->name = mem_strdup(raw[i].name);
        option->value = mem_strdup(raw[i].value);
    }
    return 0;
}

static int source_set(const struct reading *r, const struct raw_source *raw, size_t index,
                      struct config *config)
{
    char prefix[40];
    snprintf(prefix, sizeof prefix, "sources[%zu].", index);
    const char *problem = name_problem(raw->name, strlen(raw->name));
    if (!problem && config_source(config, raw->name))
        problem = "another source has this name";
    if (problem)
        return config_bad(r, prefix, "name", problem);
    if ((problem = name_problem(raw->type, strlen(raw->type))))
        return config_bad(r, prefix, "type", problem);
    struct config_source *source = ARRAY_PUSH(config->sources, config->n_sources);
    source->name = mem_strdup(raw->name);
    source->type = mem_strdup(raw->type);
    return options_set(r, prefix, "options", raw->options, raw->n_options, true,
                       &source->options, &source->n_options);
}

static int windows_set(const struct reading *r, const char *prefix, const struct raw_app *raw,
                       struct config_app *app)
{
    for (size_t i = 0; i < raw->n_lists[LIST_WINDOWS]; i++) {
        struct week window;
        if (week_parse(raw->lists[LIST_WINDOWS][i], &window)) {
            char key[32];
            snprintf(key, sizeof key, "windows[%zu]", i);
            return config_bad(r, prefix, key,
                       "must be like \"Mon-Fri 22:00-06:00\" or \"Sat,Sun 00:00-24:00\" (UTC)");
        }
        *ARRAY_PUSH(app->windows, app->n_windows) = window;
    }
    return 0;
}

/* The sources that an app names must exist. */
static int refers(const struct reading *r, const char *prefix, const char *key, long index,
                  const struct config *config, const char *name)
{
    if (config_source(config, name))
        return 0;
    char place[64], why[400];
    if (index < 0)
        snprintf(place, sizeof place, "%s", key);
    else
        snprintf(place, sizeof place, "%s[%ld]", key, index);
    const char **known = NULL;
    size_t n = 0;
    for (size_t i = 0; i < config->n_sources; i++)
        *ARRAY_PUSH(known, n) = config->sources[i].name;
    (void)ARRAY_PUSH(known, n);
    const char *near = names_nearest(name, known);
    free(known);
    snprintf(why, sizeof why, "there is no source \"%.100s\"%s%.100s%s", name,
             near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return config_bad(r, prefix, place, why);
}

static int app_check(const struct reading *r, const char *prefix, const struct config *config,
                     struct config_app *app)
{
    if (!app->name)
        return config_bad(r, prefix, "", "\"name\" is missing");
    if (config_app(config, app->name) != app)
        return config_bad(r, prefix, "name", "another app has this name");
    if (!app->cluster)
        return config_bad(r, prefix, "", "\"cluster\" is missing");
    if (!app->orchestrator)
        app->orchestrator = mem_strdup(app->cluster);
    if (refers(r, prefix, "cluster", -1, config, app->cluster) ||
        refers(r, prefix, "orchestrator", -1, config, app->orchestrator))
        return -1;
    for (size_t i = 0; i < app->n_metrics; i++)
        if (refers(r, prefix, "metrics", (long)i, config, app->metrics[i]))
            return -1;
    for (size_t i = 0; i < app->n_messages; i++)
        if (refers(r, prefix, "messages", (long)i, config, app->messages[i]))
            return -1;
    if (!app->window_ms)
        app->window_ms = app->interval_ms;
    if (app->interval_min_ms > app->interval_max_ms)
        return config_bad(r, prefix, "interval_min", "is longer than interval_max");
    return 0;
}

static int drift_check(const struct reading *r, const char *prefix, struct config_drift *d)
{
    static const struct {
        const char *key;
        size_t enter, leave;
    } levels[] = {{"affinity_leave", offsetof(struct config_drift, affinity),
                   offsetof(struct config_drift, affinity_leave)},
                  {"response_leave", offsetof(struct config_drift, response),
                   offsetof(struct config_drift, response_leave)}};
    if (d->every_ms > 0 && d->every_ms < 1000)
        return config_bad(r, prefix, "every", "must be 0 or at least 1s");
    if (!d->for_ms)
        d->for_ms = d->window_ms;
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        double *leave = (double *)((char *)d + levels[i].leave);
        double enter = *(double *)((char *)d + levels[i].enter);
        if (*leave == 0)
            *leave = enter / 2;
        if (*leave > enter)
            return config_bad(r, prefix, levels[i].key, "is above what it is to leave");
    }
    return 0;
}

static int drift_set(const struct reading *r, const char *app_prefix, const struct raw_app *raw,
                     struct config_app *app)
{
    char prefix[56];
    snprintf(prefix, sizeof prefix, "%sdrift.", app_prefix);
    if (config_values_set(r, prefix, config_drift_keys, (char **)raw->drift.values, app))
        return -1;
    return drift_check(r, prefix, &app->drift);
}

static int app_set(const struct reading *r, const struct raw_app *raw, size_t index,
                   struct config *config)
{
    char prefix[40];
    snprintf(prefix, sizeof prefix, "apps[%zu].", index);
    struct config_app *app = ARRAY_PUSH(config->apps, config->n_apps);
    if (config_values_set(r, prefix, config_app_keys, (char **)raw->values, app) ||
        list_set(r, prefix, raw, LIST_NAMESPACES, &app->namespaces, &app->n_namespaces) ||
        list_set(r, prefix, raw, LIST_SERVICES, &app->services, &app->n_services) ||
        list_set(r, prefix, raw, LIST_METRICS, &app->metrics, &app->n_metrics) ||
        list_set(r, prefix, raw, LIST_MESSAGES, &app->messages, &app->n_messages) ||
        windows_set(r, prefix, raw, app) || drift_set(r, prefix, raw, app) ||
        options_set(r, prefix, "aliases", raw->aliases, raw->n_aliases, false, &app->aliases,
                    &app->n_aliases) ||
        options_set(r, prefix, "tenants", raw->tenants, raw->n_tenants, false, &app->tenants,
                    &app->n_tenants))
        return -1;
    return app_check(r, prefix, config, app);
}

/* An address that others can reach wants a token (contract.md 5). */
static int listen_check(const struct reading *r, const struct config *config)
{
    const char *listen = config->http_listen;
    bool loopback = strncmp(listen, "127.", 4) == 0 || strncmp(listen, "[::1]", 5) == 0 ||
                    strncmp(listen, "localhost:", 10) == 0 || strcmp(listen, "off") == 0;
    if (!loopback && !config->http_token_file)
        return config_bad(r, "", "http_listen",
                   "is reachable from outside: set http_token_file, or listen on 127.0.0.1");
    return 0;
}

static struct config *config_from(const struct ydoc *doc, const char *name, struct err *err)
{
    struct schema *schema = mem_alloc(sizeof *schema);
    schema_build(schema);
    const struct reading r = {doc, err};
    struct config *config = NULL;
    void *data = NULL;
    if (ydoc_load(doc, &schema->top, &data, err) == 0) {
        struct raw_config *raw = data;
        config = mem_alloc(sizeof *config);
        config->path = mem_strdup(name);
        int rc = config_values_set(&r, "", config_top_keys, raw->values, config);
        for (size_t i = 0; rc == 0 && i < raw->n_sources; i++)
            rc = source_set(&r, &raw->sources[i], i, config);
        for (size_t i = 0; rc == 0 && i < raw->n_apps; i++)
            rc = app_set(&r, &raw->apps[i], i, config);
        if (rc || config_webhooks_set(&r, raw->webhooks, config) || listen_check(&r, config)) {
            config_free(config);
            config = NULL;
        }
    }
    ydoc_unload(&schema->top, data);
    free(schema);
    return config;
}

struct config *config_parse(const char *text, size_t size, const char *name, struct err *err)
{
    AUTO(ydoc) struct ydoc *doc = ydoc_parse(text, size, name, err);
    return doc ? config_from(doc, name, err) : NULL;
}

struct config *config_read(const char *path, struct err *err)
{
    AUTO(ydoc) struct ydoc *doc = ydoc_read(path, err);
    if (!doc && (err->kind == ERR_NOT_FOUND || err->kind == ERR_IO))
        err->kind = ERR_CONFIG; /* whatever keeps a configuration from being read: exit 2 */
    return doc ? config_from(doc, path, err) : NULL;
}

/* --- the rest --- */

void config_texts_free(const struct key *keys, void *base)
{
    for (; keys->name; keys++)
        if (keys->kind == KEY_TEXT || keys->kind == KEY_NAME || keys->kind == KEY_LISTEN)
            free(*(char **)((char *)base + keys->offset));
}

static void options_free(struct config_option *options, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(options[i].name);
        free(options[i].value);
    }
    free(options);
}

void config_strings_free(char **strings, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(strings[i]);
    free(strings);
}

void config_free(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->n_sources; i++) {
        struct config_source *source = &config->sources[i];
        free(source->name);
        free(source->type);
        options_free(source->options, source->n_options);
    }
    for (size_t i = 0; i < config->n_apps; i++) {
        struct config_app *app = &config->apps[i];
        config_texts_free(config_app_keys, app);
        config_strings_free(app->namespaces, app->n_namespaces);
        config_strings_free(app->services, app->n_services);
        config_strings_free(app->metrics, app->n_metrics);
        config_strings_free(app->messages, app->n_messages);
        options_free(app->aliases, app->n_aliases);
        options_free(app->tenants, app->n_tenants);
        free(app->windows);
    }
    config_texts_free(config_top_keys, config);
    config_webhooks_free(config->webhooks);
    free(config->sources);
    free(config->apps);
    free(config->path);
    free(config);
}

const struct config_app *config_app(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->n_apps; i++)
        if (config->apps[i].name && strcmp(config->apps[i].name, name) == 0)
            return &config->apps[i];
    return NULL;
}

const struct config_source *config_source(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->n_sources; i++)
        if (strcmp(config->sources[i].name, name) == 0)
            return &config->sources[i];
    return NULL;
}

const char *config_path(const char *option)
{
    const char *env = getenv("REMAP_CONFIG");
    return option ? option : env && *env ? env : "/etc/remap/remap.yaml";
}
