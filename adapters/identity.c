/* identity.c - joining names across tools (identity.h; interfaces.md 1.9 rule 13, 5.1). */
#include "adapters/identity.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define N_KINDS 3
#define AMBIGUOUS (-2)

/* Longer foreign names are no names of ours: contract.md 2 allows 253 bytes, a port adds 6. */
#define MAX_FOREIGN 320

struct entry { /* one foreign name */
    char *name;
    int index; /* in the model; AMBIGUOUS when several things bear the name */
};

struct alias {
    enum identity_kind kind;
    char *foreign, *own;
};

struct table {
    struct names names;
    struct entry *entries;
    size_t n_entries;
};

struct identity {
    const struct model *model;
    struct table exact[N_KINDS]; /* aliases, then the model's own names */
    struct table loose[N_KINDS]; /* lower case, and what follows the last '/' */
    size_t n_indexed[N_KINDS];   /* things of the model that the tables know */
    struct alias *aliases;
    size_t n_aliases, n_aliases_indexed;
    int *replicas; /* per service: its only instance; -1 none, AMBIGUOUS several */
    struct table learned; /* service names of tracers, from ends whose instance was known */
    struct unmapped *unmapped;
    size_t n_unmapped;
    struct names unmapped_names;
    int64_t unmapped_count, unmapped_bytes;
    int64_t before_count, before_bytes; /* of the earlier source that told most */
};

struct identity *identity_new(const struct model *model)
{
    struct identity *identity = mem_alloc(sizeof *identity);
    identity->model = model;
    identity->unmapped_bytes = identity->before_bytes = -1;
    return identity;
}

static void table_wipe(struct table *table)
{
    names_wipe(&table->names);
    for (size_t i = 0; i < table->n_entries; i++)
        free(table->entries[i].name);
    free(table->entries);
    memset(table, 0, sizeof *table);
}

void identity_free(struct identity *identity)
{
    if (!identity)
        return;
    for (int k = 0; k < N_KINDS; k++) {
        table_wipe(&identity->exact[k]);
        table_wipe(&identity->loose[k]);
    }
    table_wipe(&identity->learned);
    for (size_t i = 0; i < identity->n_aliases; i++) {
        free(identity->aliases[i].foreign);
        free(identity->aliases[i].own);
    }
    free(identity->aliases);
    names_wipe(&identity->unmapped_names);
    for (size_t i = 0; i < identity->n_unmapped; i++)
        free(identity->unmapped[i].name);
    free(identity->unmapped);
    free(identity->replicas);
    free(identity);
}

static void table_add(struct table *table, const char *name, int index)
{
    int at = names_get(&table->names, name);
    if (at >= 0) {
        struct entry *entry = &table->entries[at];
        if (entry->index != index)
            entry->index = AMBIGUOUS;
        return;
    }
    struct entry *entry = ARRAY_PUSH(table->entries, table->n_entries);
    entry->name = mem_strdup(name);
    entry->index = index;
    names_add(&table->names, entry->name, (int)table->n_entries - 1);
}

/* -1 absent, AMBIGUOUS, or the index. */
static int table_get(const struct table *table, const char *name)
{
    int at = names_get(&table->names, name);
    return at < 0 ? -1 : table->entries[at].index;
}

/* Lower case, without ":port"; false when the name is too long to be one. */
static bool normalise(const char *name, char out[MAX_FOREIGN])
{
    size_t size = strlen(name);
    if (size >= MAX_FOREIGN)
        return false;
    for (size_t i = 0; i <= size; i++)
        out[i] = (char)tolower((unsigned char)name[i]);
    char *colon = strrchr(out, ':');
    if (colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
        strchr(out, ':') == colon) /* an IPv6 address has more than one */
        *colon = '\0';
    return true;
}

static size_t kind_count(const struct model *model, enum identity_kind kind)
{
    switch (kind) {
    case IDENTITY_HOST:
        return model->n_hosts;
    case IDENTITY_SERVICE:
        return model->n_services;
    case IDENTITY_INSTANCE:
        return model->n_instances;
    }
    return 0;
}

static const char *kind_name(const struct model *model, enum identity_kind kind, size_t index)
{
    switch (kind) {
    case IDENTITY_HOST:
        return model->hosts[index].name;
    case IDENTITY_SERVICE:
        return model->services[index].name;
    case IDENTITY_INSTANCE:
        return model->instances[index].name;
    }
    return "";
}

static int own_index(const struct model *model, enum identity_kind kind, const char *own)
{
    switch (kind) {
    case IDENTITY_HOST:
        return model_host(model, own);
    case IDENTITY_SERVICE:
        return model_service(model, own);
    case IDENTITY_INSTANCE:
        return model_instance(model, own);
    }
    return -1;
}

static void index_thing(struct identity *identity, enum identity_kind kind, size_t index)
{
    const char *name = kind_name(identity->model, kind, index);
    char lower[MAX_FOREIGN];
    if (!normalise(name, lower))
        return;
    table_add(&identity->loose[kind], lower, (int)index);
    const char *slash = strrchr(lower, '/');
    if (slash && slash[1])
        table_add(&identity->loose[kind], slash + 1, (int)index);
}

static void index_replicas(struct identity *identity)
{
    const struct model *model = identity->model;
    free(identity->replicas);
    identity->replicas = mem_array(model->n_services + 1, sizeof *identity->replicas);
    for (size_t s = 0; s < model->n_services; s++)
        identity->replicas[s] = -1;
    for (size_t i = 0; i < model->n_instances; i++) {
        int *only = &identity->replicas[model->instances[i].service];
        *only = *only == -1 ? (int)i : AMBIGUOUS;
    }
}

/* Takes in what was added to the model and the aliases since the last lookup. */
static void index_new(struct identity *identity)
{
    bool grown = !identity->replicas;
    for (int k = 0; k < N_KINDS; k++) {
        size_t n = kind_count(identity->model, (enum identity_kind)k);
        grown = grown || identity->n_indexed[k] < n;
        for (size_t *i = &identity->n_indexed[k]; *i < n; ++*i)
            index_thing(identity, (enum identity_kind)k, *i);
    }
    if (grown) {
        index_replicas(identity);
        identity->n_aliases_indexed = 0; /* an alias may name what has come now */
    }
    for (size_t *i = &identity->n_aliases_indexed; *i < identity->n_aliases; ++*i) {
        const struct alias *alias = &identity->aliases[*i];
        int index = own_index(identity->model, alias->kind, alias->own);
        char lower[MAX_FOREIGN];
        if (index >= 0 && normalise(alias->foreign, lower))
            table_add(&identity->exact[alias->kind], lower, index);
    }
}

void identity_add(struct identity *identity, enum identity_kind kind, const char *foreign,
                  const char *own)
{
    struct alias *alias = ARRAY_PUSH(identity->aliases, identity->n_aliases);
    alias->kind = kind;
    alias->foreign = mem_strdup(foreign);
    alias->own = mem_strdup(own);
}

/* "cart.shop", "cart.shop.svc.cluster.local" → "shop/cart". */
static int find_dotted(struct identity *identity, enum identity_kind kind, const char *lower)
{
    const char *dot = strchr(lower, '.');
    if (!dot || dot == lower || strchr(lower, '/'))
        return -1;
    const char *end = strchr(dot + 1, '.');
    if (end && strncmp(end, ".svc", 4) != 0)
        return -1;
    int space = end ? (int)(end - dot - 1) : (int)strlen(dot + 1);
    AUTO_FREE char *own = mem_printf("%.*s/%.*s", space, dot + 1, (int)(dot - lower), lower);
    return table_get(&identity->loose[kind], own);
}

int identity_find(struct identity *identity, enum identity_kind kind, const char *name)
{
    index_new(identity);
    char lower[MAX_FOREIGN];
    if (!name[0] || !normalise(name, lower))
        return -1;
    int index = table_get(&identity->exact[kind], lower); /* the operator's word first */
    if (index == -1)
        index = own_index(identity->model, kind, name);
    if (index == -1)
        index = table_get(&identity->loose[kind], lower);
    if (index == -1)
        index = find_dotted(identity, kind, lower);
    return index < 0 ? -1 : index;
}

static int find_instance(struct identity *identity, const struct identity_end *end)
{
    int index = -1;
    if (end->instance)
        index = identity_find(identity, IDENTITY_INSTANCE, end->instance);
    if (index < 0 && end->address)
        index = identity_find(identity, IDENTITY_INSTANCE, end->address);
    return index;
}

static void learn(struct identity *identity, const char *service, int index)
{
    char lower[MAX_FOREIGN];
    if (normalise(service, lower))
        table_add(&identity->learned, lower, index);
}

int identity_resolve(struct identity *identity, const struct identity_end *end, enum level *level)
{
    int instance = find_instance(identity, end);
    if (instance >= 0) {
        if (end->service)
            learn(identity, end->service, identity->model->instances[instance].service);
        *level = LEVEL_INSTANCE;
        return instance;
    }
    if (!end->service)
        return -1;
    int service = identity_find(identity, IDENTITY_SERVICE, end->service);
    char lower[MAX_FOREIGN];
    if (service < 0 && normalise(end->service, lower))
        service = table_get(&identity->learned, lower);
    if (service < 0)
        return -1;
    int only = identity->replicas[service];
    *level = only >= 0 ? LEVEL_INSTANCE : LEVEL_SERVICE;
    return only >= 0 ? only : service;
}

void identity_unmapped(struct identity *identity, const char *name, int64_t count, int64_t bytes)
{
    identity->unmapped_count += count;
    if (bytes >= 0)
        identity->unmapped_bytes =
            bytes + (identity->unmapped_bytes < 0 ? 0 : identity->unmapped_bytes);
    if (!name || name_problem(name, strlen(name)))
        return; /* counted, but nothing that a person could look for */
    int at = names_get(&identity->unmapped_names, name);
    if (at < 0) {
        struct unmapped *unmapped = ARRAY_PUSH(identity->unmapped, identity->n_unmapped);
        unmapped->name = mem_strdup(name);
        at = (int)identity->n_unmapped - 1;
        names_add(&identity->unmapped_names, unmapped->name, at);
    }
    identity->unmapped[at].count += count;
}

/* The present counts become those of an earlier source. */
static void unmapped_keep(struct identity *identity, bool ok)
{
    if (ok && identity->unmapped_count > identity->before_count) {
        identity->before_count = identity->unmapped_count;
        identity->before_bytes = identity->unmapped_bytes;
    }
    identity->unmapped_count = 0;
    identity->unmapped_bytes = -1;
    for (size_t i = 0; i < identity->n_unmapped; i++) {
        struct unmapped *unmapped = &identity->unmapped[i];
        if (ok && unmapped->count > unmapped->before)
            unmapped->before = unmapped->count;
        unmapped->count = 0;
    }
}

void identity_unmapped_source(struct identity *identity, bool ok)
{
    unmapped_keep(identity, ok);
}

/* Takes back the largest; names that only a failed source told have none. */
static void unmapped_total(struct identity *identity)
{
    unmapped_keep(identity, true);
    identity->unmapped_count = identity->before_count;
    identity->unmapped_bytes = identity->before_bytes;
    for (size_t i = 0; i < identity->n_unmapped; i++)
        identity->unmapped[i].count = identity->unmapped[i].before;
}

static int by_count(const void *left, const void *right)
{
    const struct unmapped *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return strcmp(a->name, b->name);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

const struct unmapped *identity_unmapped_names(struct identity *identity, size_t *n)
{
    unmapped_total(identity);
    *n = identity->n_unmapped;
    if (*n > 1)
        qsort(identity->unmapped, *n, sizeof *identity->unmapped, by_count);
    names_wipe(&identity->unmapped_names); /* the order has changed */
    for (size_t i = 0; i < *n; i++)
        names_add(&identity->unmapped_names, identity->unmapped[i].name, (int)i);
    return identity->unmapped;
}

void identity_report(struct identity *identity, struct traffic *traffic)
{
    unmapped_total(identity);
    int64_t bytes = identity->unmapped_count ? identity->unmapped_bytes : 0;
    if (traffic->given && traffic->unmapped_bytes >= 0 && bytes >= 0)
        bytes += traffic->unmapped_bytes;
    else if (traffic->given && bytes < 0)
        bytes = traffic->unmapped_bytes;
    traffic->given = true;
    traffic->unmapped_bytes = bytes;
    traffic->unmapped_count += identity->unmapped_count;
    for (size_t i = 0; i < identity->n_unmapped; i++) {
        char **name = ARRAY_PUSH(traffic->unseen_services, traffic->n_unseen_services);
        *name = mem_strdup(identity->unmapped[i].name);
    }
    if (traffic->n_unseen_services > 1)
        qsort(traffic->unseen_services, traffic->n_unseen_services,
              sizeof *traffic->unseen_services, by_text);
}
