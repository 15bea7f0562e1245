/* load.c - what instances take and hosts offer: usage, requests and pod slots together (design.md
 * 7, contract.md 2). model_check bounds the numbers, so that no sum here leaves int64. */
#include <stdlib.h>

#include "model/model.h"

struct load instance_load(const struct instance *instance)
{
    return (struct load){
        .cpu_millis = instance->cpu_used_millis,
        .mem_bytes = instance->mem_used_bytes,
        .cpu_request_millis = instance->cpu_request_millis,
        .mem_request_bytes = instance->mem_request_bytes,
        .pods = 1,
    };
}

struct load host_offer(const struct host *host)
{
    int64_t cpu = host->cpu_cap_millis - host->reserve_cpu_millis;
    int64_t mem = host->mem_cap_bytes - host->reserve_mem_bytes;

    return (struct load){
        .cpu_millis = cpu - host->cpu_used_millis,
        .mem_bytes = mem - host->mem_used_bytes,
        .cpu_request_millis = cpu - host->cpu_requested_millis,
        .mem_request_bytes = mem - host->mem_requested_bytes,
        .pods = host->pods_cap < 0 ? INT64_MAX / 4 : host->pods_cap - host->pods_used,
    };
}

void load_add(struct load *to, const struct load *what)
{
    to->cpu_millis += what->cpu_millis;
    to->mem_bytes += what->mem_bytes;
    to->cpu_request_millis += what->cpu_request_millis;
    to->mem_request_bytes += what->mem_request_bytes;
    to->pods += what->pods;
}

void load_sub(struct load *from, const struct load *what)
{
    from->cpu_millis -= what->cpu_millis;
    from->mem_bytes -= what->mem_bytes;
    from->cpu_request_millis -= what->cpu_request_millis;
    from->mem_request_bytes -= what->mem_request_bytes;
    from->pods -= what->pods;
}

bool load_fits(const struct load *offer, const struct load *used, const struct load *need,
               const char **why)
{
    const char *short_of = NULL;

    if (used->cpu_millis + need->cpu_millis > offer->cpu_millis)
        short_of = "cpu";
    else if (used->mem_bytes + need->mem_bytes > offer->mem_bytes)
        short_of = "memory";
    else if (used->cpu_request_millis + need->cpu_request_millis > offer->cpu_request_millis)
        short_of = "cpu requests";
    else if (used->mem_request_bytes + need->mem_request_bytes > offer->mem_request_bytes)
        short_of = "memory requests";
    else if (used->pods + need->pods > offer->pods)
        short_of = "pod slots";
    if (short_of && why)
        *why = short_of;
    return !short_of;
}

struct load *model_host_loads(const struct model *model)
{
    struct load *loads = mem_array(model->n_hosts, sizeof *loads);

    for (size_t i = 0; i < model->n_instances; i++) {
        const struct instance *instance = &model->instances[i];
        struct load load = instance_load(instance);
        if (instance->host >= 0)
            load_add(&loads[instance->host], &load);
    }
    return loads;
}
