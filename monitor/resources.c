/* resources.c - usage of instances from recorded samples (resources.h; paper §5.5: means). */
#include "monitor/resources.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/json.h"

#define MIB 1048576.0

struct sample {
    const char *pod, *service; /* NULL: not given */
    double cpu_millis, mem_mib;
};

static int optional_text(const struct jval *object, const char *key, const char **out,
                         struct err *err)
{
    struct jval v = jval_get(object, key);
    *out = NULL;
    return jval_absent(&v) || jval_null(&v) ? 0 : jval_text(&v, 253, out, err);
}

static int decode_sample(const struct jval *v, struct sample *out, struct err *err)
{
    if (!json_is_object(v->value))
        return jval_error(v, err, "must be an object");
    struct jval cpu = jval_get(v, "cpu_m_mean"), mem = jval_get(v, "memory_mi_mean");
    if (optional_text(v, "pod", &out->pod, err) || optional_text(v, "service", &out->service, err) ||
        jval_real(&cpu, 0, 1e15, &out->cpu_millis, err) ||
        jval_real(&mem, 0, 1e15 / MIB, &out->mem_mib, err))
        return -1;
    if (!out->pod && !out->service)
        return jval_error(v, err, "must give pod or service");
    return 0;
}

static int find_instance(struct identity *identity, const struct sample *sample)
{
    struct identity_end end = {.service = sample->service, .instance = sample->pod};
    enum level level = LEVEL_SERVICE;
    int index = identity_resolve(identity, &end, &level);
    return level == LEVEL_INSTANCE ? index : -1;
}

static int add_usage(const struct jval *v, struct instance *instance, const struct sample *sample,
                     struct err *err)
{
    int64_t cpu = instance->cpu_used_millis + (int64_t)ceil(sample->cpu_millis);
    int64_t mem = instance->mem_used_bytes + (int64_t)ceil(sample->mem_mib * MIB);
    if (cpu > MODEL_MAX_NUMBER || mem > MODEL_MAX_NUMBER)
        return jval_error(v, err, "makes more than 10^15 for instance %s", instance->name);
    instance->cpu_used_millis = cpu;
    instance->mem_used_bytes = mem;
    return 0;
}

static void note_unsampled(struct inspection *in, const bool *sampled)
{
    int64_t n = 0;
    const char *first = NULL;
    for (size_t i = 0; i < in->model->n_instances; i++)
        if (!sampled[i]) {
            n++;
            first = first ? first : in->model->instances[i].name;
        }
    if (n)
        inspection_note(in, "no-usage", n, "%lld instances without a resource sample: %s%s",
                        (long long)n, first, n > 1 ? ", …" : "");
}

int resources_read(json_t *tree, struct inspection *in, struct err *err)
{
    struct jval root = jval_root(tree);
    if (!json_is_object(tree))
        return jval_error(&root, err, "must be an object with the member pods");
    struct jval pods = jval_get(&root, "pods");
    size_t n;
    if (jval_array(&pods, MODEL_MAX_INSTANCES, &n, err))
        return -1;
    AUTO_FREE bool *sampled = mem_array(in->model->n_instances + 1, sizeof *sampled);
    for (size_t i = 0; i < n; i++) {
        struct jval item = jval_at(&pods, i);
        struct sample sample;
        if (decode_sample(&item, &sample, err))
            return -1;
        int at = find_instance(in->identity, &sample);
        if (at < 0) {
            inspection_note(in, "unmapped", 1, "resource sample of %s: no instance of that name",
                            sample.pod ? sample.pod : sample.service);
            continue;
        }
        if (add_usage(&item, &in->model->instances[at], &sample, err))
            return -1;
        sampled[at] = true;
    }
    note_unsampled(in, sampled);
    return 0;
}
