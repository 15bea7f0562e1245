/* small.h - models of a few lines for tests: everything that goes wrong ends the program. */
#ifndef REMAP_TESTS_SMALL_H
#define REMAP_TESTS_SMALL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_json.h"

/* A host of the given capacity; memory has the same number. */
static inline int small_host(struct model *model, const char *name, int64_t cap)
{
    struct err err = ERR_INIT;
    int h = model_add_host(model, name, &err);

    if (h < 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    model->hosts[h].cpu_cap_millis = model->hosts[h].mem_cap_bytes = cap;
    return h;
}

/* An instance of `service` (made when it is new) that needs cpu and mem; host NULL: unplaced. */
static inline int small_instance(struct model *model, const char *name, const char *service,
                                 const char *host, int64_t cpu, int64_t mem)
{
    struct err err = ERR_INIT;
    int s = model_service(model, service);

    s = s >= 0 ? s : model_add_service(model, service, &err);
    int i = model_add_instance(model, name, s, host ? model_host(model, host) : -1, &err);
    if (i < 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    model->instances[i].cpu_used_millis = cpu;
    model->instances[i].mem_used_bytes = mem;
    return i;
}

static inline void small_affinity(struct model *model, const char *a, const char *b, double degree)
{
    struct affinity row = {.degree = degree, .bytes = -1};

    if (model_ends(model, a, b, &row.level, &row.a, &row.b) < 0)
        abort();
    affinity_order(model, &row);
    model->has_affinities = true;
    *ARRAY_PUSH(model->affinities, model->n_affinities) = row;
}

static inline struct model *small_decode(const char *text)
{
    struct err err = ERR_INIT;
    struct model *model = model_decode(text, strlen(text), &err);

    if (!model)
        fprintf(stderr, "%s\n", err.text);
    return model;
}

#endif
