/* latency.c - round trips between hosts, as pingers report them to a Prometheus (interfaces.md
 * 3.4). Their matrices are often one-sided or incomplete: both ways are averaged, what is missing
 * stays as it was. */
#include "adapters/prometheus/prometheus.h"

#include "adapters/spans/idmap.h"
#include "adapters/identity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int unit_of(const struct source *source, double *per_second, struct err *err)
{
    const char *unit = source_option(source, "latency_unit", NULL);
    if (!unit)
        return 0;
    if (!strcmp(unit, "s"))
        *per_second = 1;
    else if (!strcmp(unit, "ms"))
        *per_second = 1e3;
    else if (!strcmp(unit, "us"))
        *per_second = 1e6;
    else
        return err_set(err, ERR_CONFIG, "%s: latency_unit must be s, ms or us, not %.20s",
                       source->name, unit);
    return 0;
}

int prom_latency_open(const struct prom *prom, const struct source *source,
                      struct prom_latency *out, struct err *err)
{
    const char *name = source_option(source, "latency", "none");
    const struct latency_preset *preset = prom_latency_presets;
    while (preset->name && strcmp(preset->name, name) != 0)
        preset++;
    if (!preset->name)
        return err_set(err, ERR_CONFIG, "%s: latency: there is no preset %.60s", source->name,
                       name);
    out->per_second = preset->per_second;
    if (prom_query_option(prom, source, "latency_query", preset->query, &out->query, err) ||
        unit_of(source, &out->per_second, err))
        return -1;
    out->source = mem_strdup(source_option(source, "latency_source_label", preset->source));
    out->target = mem_strdup(source_option(source, "latency_target_label", preset->target));
    if (out->query && (!*out->source || !*out->target))
        return err_set(err, ERR_CONFIG,
                       "%s: latency_query needs latency_source_label and latency_target_label",
                       source->name);
    return 0;
}

void prom_latency_wipe(struct prom_latency *latency)
{
    free(latency->query);
    free(latency->source);
    free(latency->target);
}

struct pair {
    int a, b; /* a < b */
    double total_us;
    int64_t n;
};

struct round_trips {
    struct inspection *in;
    size_t n_source, n_labels;
    double per_second;
    struct pair *pairs;
    size_t n_pairs;
    struct idmap index;
    int64_t unmapped;
    char example[PROM_LABEL_BYTES];
};

static int find_host(struct round_trips *trips, const char *const values[], size_t from, size_t to)
{
    const char *given = NULL;
    for (size_t i = from; i < to; i++) {
        int host = *values[i] ? identity_find(trips->in->identity, IDENTITY_HOST, values[i]) : -1;
        if (host >= 0)
            return host;
        if (*values[i] && !given)
            given = values[i];
    }
    if (given && !trips->unmapped++)
        strcpy(trips->example, given); /* both of PROM_LABEL_BYTES */
    return -1;
}

static int take_trip(void *ctx, const char *const values[], double value, struct err *err)
{
    struct round_trips *trips = ctx;
    (void)err;
    int a = find_host(trips, values, 0, trips->n_source);
    int b = find_host(trips, values, trips->n_source, trips->n_labels);
    if (a < 0 || b < 0 || a == b || value < 0)
        return 0;
    if (a > b) {
        int swap = a;
        a = b;
        b = swap;
    }
    uint32_t at = idmap_get(&trips->index, (uint64_t)a, (uint64_t)b);
    if (at == IDMAP_NONE) {
        at = (uint32_t)trips->n_pairs;
        *ARRAY_PUSH(trips->pairs, trips->n_pairs) = (struct pair){.a = a, .b = b};
        idmap_add(&trips->index, (uint64_t)a, (uint64_t)b, at);
    }
    trips->pairs[at].total_us += value / trips->per_second * 1e6;
    trips->pairs[at].n++;
    return 0;
}

/* What was measured replaces what the cluster source or an earlier one said. */
static void set_latencies(struct model *model, struct round_trips *trips)
{
    size_t kept = 0;
    for (size_t i = 0; i < model->n_latencies; i++) {
        const struct latency *l = &model->latencies[i];
        int a = l->a < l->b ? l->a : l->b, b = l->a < l->b ? l->b : l->a;
        if (idmap_get(&trips->index, (uint64_t)a, (uint64_t)b) == IDMAP_NONE)
            model->latencies[kept++] = *l;
    }
    model->n_latencies = kept;
    for (size_t i = 0; i < trips->n_pairs; i++) {
        const struct pair *p = &trips->pairs[i];
        double us = p->total_us / (double)p->n;
        *ARRAY_PUSH(model->latencies, model->n_latencies) = (struct latency){
            p->a, p->b, us < (double)MODEL_MAX_NUMBER ? (int64_t)llround(us) : MODEL_MAX_NUMBER};
    }
    model_index_drop(model);
}

int prom_latency_measure(struct prom *prom, const struct prom_latency *latency,
                         const struct window *window, struct inspection *in, struct err *err)
{
    if (!latency->query)
        return 0;
    AUTO_FREE char *by = mem_printf("%s,%s", latency->source, latency->target);
    AUTO_FREE char *owned = NULL;
    struct round_trips trips = {.in = in, .per_second = latency->per_second};
    free(prom_list(latency->source, &trips.n_source, &owned));
    free(steal(owned));
    free(prom_list(by, &trips.n_labels, &owned));
    const struct prom_ask ask = {.what = "latency between hosts",
                                 .query = latency->query,
                                 .by = by,
                                 .window = *window,
                                 .quantile = -1,
                                 .resolution_ms = 60000,
                                 .row = take_trip,
                                 .ctx = &trips};
    int rc = prom_ask(prom, &ask, in, NULL, err);
    if (rc == 0) {
        if (trips.n_pairs)
            set_latencies(in->model, &trips);
        if (trips.unmapped)
            inspection_note(in, "unmapped", trips.unmapped,
                            "%s: round trips with unknown hosts, such as %s", prom->name,
                            trips.example);
    }
    idmap_wipe(&trips.index);
    free(trips.pairs);
    return rc;
}
