/* usage.c - rows of metrics stores into the model (usage.h; paper §6.1). */
#include "adapters/usage.h"

#include "model/base/buf.h"
#include "adapters/identity.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool usage_in_scope(const struct app_scope *app, const char *space)
{
    if (!app->namespaces || !app->namespaces[0] || !*space)
        return true;
    for (const char *const *own = app->namespaces; *own; own++)
        if (!strcmp(*own, space))
            return true;
    return false;
}

void usage_sums_begin(struct usage_sums *sums, const struct app_scope *app, struct inspection *in,
                      bool hosts, bool spaced, size_t n_values)
{
    size_t n = hosts ? in->model->n_hosts : in->model->n_instances;
    assert(in->identity);
    *sums = (struct usage_sums){
        .app = app, .in = in, .hosts = hosts, .spaced = spaced, .n_values = n_values};
    sums->total = mem_array(n + 1, sizeof *sums->total);
    for (size_t i = 0; i < n; i++)
        sums->total[i] = -1;
}

static int find_pod(struct usage_sums *sums, const char *space, const char *name)
{
    AUTO_FREE char *full = mem_printf("%s/%s", space, name);
    int found = *space ? identity_find(sums->in->identity, IDENTITY_INSTANCE, full) : -1;
    if (found >= 0)
        return found;
    /* Not "shop/db-0" for another namespace's db-0: only a thing that is called just so. */
    return *space ? model_instance(sums->in->model, name)
                  : identity_find(sums->in->identity, IDENTITY_INSTANCE, name);
}

int usage_sums_row(void *ctx, const char *const values[], double value, struct err *err)
{
    struct usage_sums *sums = ctx;
    const char *space = sums->spaced ? values[0] : "", *name = "";
    int found = -1;
    (void)err;
    for (size_t i = sums->spaced; i < sums->n_values && found < 0; i++) {
        if (!*values[i])
            continue;
        if (!*name)
            name = values[i];
        found = sums->hosts ? identity_find(sums->in->identity, IDENTITY_HOST, values[i])
                            : find_pod(sums, space, values[i]);
    }
    if (found >= 0) {
        double *total = &sums->total[found];
        *total = (*total < 0 ? 0 : *total) + (value > 0 ? value : 0);
    } else if (*name && usage_in_scope(sums->app, space)) {
        if (sums->unmapped < USAGE_NAMED)
            snprintf(sums->names[sums->unmapped], USAGE_NAME_BYTES, "%s", name);
        sums->unmapped++;
    }
    return 0;
}

void usage_sums_note(const struct usage_sums *sums, const char *source, const char *what)
{
    const struct app_scope *app = sums->app;
    AUTO_BUF struct buf names = BUF_INIT;
    if (!sums->unmapped || (!sums->hosts && !(app->namespaces && app->namespaces[0])))
        return;
    for (int64_t i = 0; i < sums->unmapped && i < USAGE_NAMED; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", sums->names[i]);
    inspection_note(sums->in, "unmapped", sums->unmapped, "%s: %s of %lld unknown %s: %s%s", source,
                    what, (long long)sums->unmapped, sums->hosts ? "hosts" : "pods", names.data,
                    sums->unmapped > USAGE_NAMED ? ", …" : "");
}

static int64_t rounded(double value, double unit)
{
    double scaled = ceil(value * unit - 1e-6);
    return scaled < (double)MODEL_MAX_NUMBER ? (int64_t)scaled : MODEL_MAX_NUMBER;
}

static void note_missing(struct inspection *in, const char *source, const char *what,
                         const double *values)
{
    AUTO_BUF struct buf names = BUF_INIT;
    int64_t missing = 0;
    for (size_t i = 0; values && i < in->model->n_instances; i++)
        if (values[i] < 0 && missing++ < USAGE_NAMED)
            buf_printf(&names, "%s%s", missing > 1 ? ", " : "", in->model->instances[i].name);
    if (missing)
        inspection_note(in, "no-sample", missing, "%s: no %s of %lld instances: %s%s", source, what,
                        (long long)missing, names.data, missing > USAGE_NAMED ? ", …" : "");
}

void usage_set_pods(struct inspection *in, const char *source, const double *cpu,
                    const double *memory)
{
    for (size_t i = 0; i < in->model->n_instances; i++) {
        if (cpu && cpu[i] >= 0)
            in->model->instances[i].cpu_used_millis = rounded(cpu[i], 1000);
        if (memory && memory[i] >= 0)
            in->model->instances[i].mem_used_bytes = rounded(memory[i], 1);
    }
    note_missing(in, source, "CPU", cpu);
    note_missing(in, source, "memory", memory);
}

void usage_set_hosts(struct inspection *in, const double *cpu, const double *memory)
{
    struct model *model = in->model;
    AUTO_FREE struct load *own = model_host_loads(model);
    for (size_t i = 0; i < model->n_hosts; i++) {
        int64_t cpu_rest = cpu ? rounded(cpu[i], 1000) - own[i].cpu_millis : 0;
        int64_t memory_rest = memory ? rounded(memory[i], 1) - own[i].mem_bytes : 0;
        if (cpu && cpu[i] >= 0)
            model->hosts[i].cpu_used_millis = cpu_rest > 0 ? cpu_rest : 0;
        if (memory && memory[i] >= 0)
            model->hosts[i].mem_used_bytes = memory_rest > 0 ? memory_rest : 0;
    }
}
