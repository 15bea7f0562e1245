/* collect.c - the request of `collect` and `check` from JSON (model/wire/README.md). */
#include "monitor/inspection.h"

#include <stdlib.h>
#include <string.h>

/* An application of contract.md 2 has at most 10^6 instances, and fewer services. */
#define MAX_SCOPE 1000000
#define MAX_SOURCES 100  /* tools that watch one application */
#define MAX_OPTIONS 1000 /* of one source */
#define MAX_OPTION_BYTES 65536
#define MAX_TIME_MS MODEL_MAX_NUMBER

static int decode_texts(const struct jval *up, const char *key, const char *const **out,
                        struct err *err)
{
    struct jval list = jval_get(up, key);
    size_t n;
    if (jval_array(&list, MAX_SCOPE, &n, err))
        return -1;
    const char **texts = mem_array(n + 1, sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        struct jval item = jval_at(&list, i);
        if (jval_name(&item, &texts[i], err)) {
            free(texts);
            return -1;
        }
    }
    *out = texts;
    return 0;
}

static int decode_app(const struct jval *root, struct app_scope *app, struct err *err)
{
    static const char *const keys[] = {"name", "namespaces", "services", NULL};
    struct jval v = jval_get(root, "app");
    if (jval_object(&v, keys, err))
        return -1;
    struct jval name = jval_get(&v, "name");
    if (jval_name(&name, &app->name, err) ||
        decode_texts(&v, "namespaces", &app->namespaces, err) ||
        decode_texts(&v, "services", &app->services, err))
        return -1;
    return 0;
}

static int decode_options(const struct jval *v, struct source *source, struct err *err)
{
    static const char *const keys[] = {"name", "value", NULL};
    struct jval list = jval_get(v, "options");
    size_t n;
    if (jval_array(&list, MAX_OPTIONS, &n, err))
        return -1;
    struct option *options = mem_array(n + 1, sizeof *options);
    source->options = options;
    for (size_t i = 0; i < n; i++) {
        struct jval item = jval_at(&list, i);
        if (jval_object(&item, keys, err))
            return -1;
        struct jval name = jval_get(&item, "name"), value = jval_get(&item, "value");
        if (jval_name(&name, &options[i].name, err) ||
            jval_text(&value, MAX_OPTION_BYTES, &options[i].value, err))
            return -1;
        source->n_options++;
    }
    return 0;
}

int collect_source(const struct jval *v, struct source *source, struct err *err)
{
    static const char *const keys[] = {"name", "type", "options", NULL};
    if (jval_object(v, keys, err))
        return -1;
    struct jval name = jval_get(v, "name"), type = jval_get(v, "type");
    if (jval_name(&name, &source->name, err) || jval_name(&type, &source->type, err))
        return -1;
    return decode_options(v, source, err);
}

static int decode_source_list(const struct jval *sources, const char *key, struct source **out,
                              size_t *count, struct err *err)
{
    struct jval list = jval_get(sources, key);
    size_t n;
    if (jval_array(&list, MAX_SOURCES, &n, err))
        return -1;
    *out = mem_array(n + 1, sizeof **out);
    *count = n;
    for (size_t i = 0; i < n; i++) {
        struct jval item = jval_at(&list, i);
        if (collect_source(&item, &(*out)[i], err))
            return -1;
    }
    return 0;
}

static int decode_sources(const struct jval *root, struct collect *out, struct err *err)
{
    static const char *const keys[] = {"cluster", "metrics", "messages", "orchestrator", NULL};
    struct jval v = jval_get(root, "sources");
    if (jval_object(&v, keys, err))
        return -1;
    struct jval cluster = jval_get(&v, "cluster");
    if (collect_source(&cluster, &out->cluster, err) ||
        decode_source_list(&v, "metrics", &out->metrics, &out->n_metrics, err) ||
        decode_source_list(&v, "messages", &out->messages, &out->n_messages, err))
        return -1;
    struct jval orchestrator = jval_get(&v, "orchestrator");
    return jval_absent(&orchestrator) ? 0 : collect_source(&orchestrator, &out->orchestrator, err);
}

static int decode_aliases(const struct jval *root, struct collect *out, struct err *err)
{
    static const char *const keys[] = {"name", "value", NULL};
    struct jval list = jval_get(root, "aliases");
    if (jval_absent(&list))
        return 0;
    size_t n;
    if (jval_array(&list, MAX_SCOPE, &n, err))
        return -1;
    out->aliases = mem_array(n + 1, sizeof *out->aliases);
    for (size_t i = 0; i < n; i++) {
        struct jval item = jval_at(&list, i);
        if (jval_object(&item, keys, err))
            return -1;
        struct jval name = jval_get(&item, "name"), value = jval_get(&item, "value");
        if (jval_name(&name, &out->aliases[i].foreign, err) ||
            jval_name(&value, &out->aliases[i].service, err))
            return -1;
    }
    out->n_aliases = n;
    return 0;
}

static int decode_tenants(const struct jval *root, struct collect *out, struct err *err)
{
    static const char *const keys[] = {"name", "value", NULL};
    struct jval list = jval_get(root, "tenants"), all = jval_get(root, "tenant");
    size_t n;
    if (!jval_null(&all) && !jval_absent(&all) && jval_name(&all, &out->tenant, err))
        return -1;
    if (jval_absent(&list))
        return 0;
    if (jval_array(&list, MAX_SCOPE, &n, err))
        return -1;
    out->tenants = mem_array(n + 1, sizeof *out->tenants);
    for (size_t i = 0; i < n; i++) {
        struct jval item = jval_at(&list, i);
        if (jval_object(&item, keys, err))
            return -1;
        struct jval name = jval_get(&item, "name"), value = jval_get(&item, "value");
        if (jval_name(&name, &out->tenants[i].space, err) ||
            jval_name(&value, &out->tenants[i].tenant, err))
            return -1;
    }
    out->n_tenants = n;
    return 0;
}

static int decode_headroom(const struct jval *root, struct collect *out, struct err *err)
{
    static const char *const keys[] = {"cpu", "mem", NULL};
    struct jval v = jval_get(root, "headroom");
    if (jval_absent(&v))
        return 0;
    struct jval cpu = jval_get(&v, "cpu"), mem = jval_get(&v, "mem");
    if (jval_object(&v, keys, err) || jval_real(&cpu, 0, 1, &out->headroom_cpu, err) ||
        jval_real(&mem, 0, 1, &out->headroom_mem, err))
        return -1;
    return 0;
}

static int decode_root(const struct jval *root, struct collect *out, struct err *err)
{
    static const char *const keys[] = {"v",       "app",    "from_ms", "to_ms",    "sources",
                                       "aliases", "tenant", "tenants", "headroom", NULL};
    if (jval_object(root, keys, err))
        return -1;
    int64_t version;
    struct jval v = jval_get(root, "v"), from = jval_get(root, "from_ms"),
                to = jval_get(root, "to_ms");
    if (jval_int(&v, 1, 1, &version, err) || decode_app(root, &out->app, err) ||
        jval_int(&from, 0, MAX_TIME_MS, &out->window.from_ms, err) ||
        jval_int(&to, 0, MAX_TIME_MS, &out->window.to_ms, err) ||
        decode_sources(root, out, err) || decode_aliases(root, out, err) ||
        decode_tenants(root, out, err) || decode_headroom(root, out, err))
        return -1;
    if (out->window.to_ms < out->window.from_ms)
        return jval_error(&to, err, "is before from_ms");
    return 0;
}

int collect_decode(const char *text, size_t size, struct collect *out, struct err *err)
{
    struct collect collect = {0};
    collect.tree = json_parse(text, size, &json_limits_document, err);
    if (!collect.tree)
        return -1;
    struct jval root = jval_root(collect.tree);
    if (decode_root(&root, &collect, err)) {
        collect_wipe(&collect);
        return -1;
    }
    *out = collect;
    return 0;
}

static void sources_free(struct source *sources, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((void *)sources[i].options);
    free(sources);
}

void collect_wipe(struct collect *collect)
{
    free((void *)collect->app.namespaces);
    free((void *)collect->app.services);
    free((void *)collect->cluster.options);
    free((void *)collect->orchestrator.options);
    sources_free(collect->metrics, collect->n_metrics);
    sources_free(collect->messages, collect->n_messages);
    free(collect->aliases);
    free(collect->tenants);
    free(collect->received);
    json_decref(collect->tree);
    memset(collect, 0, sizeof *collect);
}
