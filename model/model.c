/* model.c - the model's graph of arrays: making, copying, looking up (paper §5.2, Fig. 5). */
#include "model/model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/pairs.h"

struct model_index {
    struct pairs rtt;   /* host, host → µs */
    size_t n_latencies; /* that it was built from; SIZE_MAX: never built */
};

struct model *model_new(void)
{
    struct model *model = mem_alloc(sizeof *model);

    model->from_ms = model->to_ms = model->taken_ms = -1;
    model->index = mem_alloc(sizeof *model->index);
    model->index->n_latencies = SIZE_MAX;
    return model;
}

static void host_wipe(struct host *host)
{
    for (size_t i = 0; i < host->n_labels; i++) {
        free(host->labels[i].name);
        free(host->labels[i].value);
    }
    free(host->labels);
    free(host->name);
    free(host->region);
    free(host->zone);
}

static void service_wipe(struct service *service)
{
    for (size_t i = 0; i < service->n_depends_on; i++)
        free(service->depends_on[i].service);
    free(service->depends_on);
    free(service->name);
    free(service->app);
    free(service->version);
    free(service->tenant);
}

static void costs_free(struct network_cost *costs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(costs[i].origin);
        free(costs[i].destination);
    }
    free(costs);
}

static void traffic_wipe(struct traffic *traffic)
{
    for (size_t i = 0; i < traffic->n_unseen_services; i++)
        free(traffic->unseen_services[i]);
    free(traffic->unseen_services);
}

void model_index_drop(struct model *model)
{
    pairs_wipe(&model->index->rtt);
    model->index->n_latencies = SIZE_MAX;
}

void model_free(struct model *model)
{
    if (!model)
        return;
    for (size_t i = 0; i < model->n_hosts; i++)
        host_wipe(&model->hosts[i]);
    for (size_t i = 0; i < model->n_services; i++)
        service_wipe(&model->services[i]);
    for (size_t i = 0; i < model->n_instances; i++) {
        free(model->instances[i].name);
        free(model->instances[i].pinned_why);
    }
    for (size_t i = 0; i < model->n_channels; i++)
        free(model->channels[i].type);
    for (size_t i = 0; i < model->n_rules; i++) {
        free(model->rules[i].services);
        free(model->rules[i].hosts);
    }
    free(model->hosts);
    free(model->services);
    free(model->instances);
    free(model->messages);
    free(model->affinities);
    free(model->channels);
    free(model->latencies);
    free(model->rules);
    costs_free(model->region_costs, model->n_region_costs);
    costs_free(model->zone_costs, model->n_zone_costs);
    traffic_wipe(&model->traffic);
    names_wipe(&model->host_names);
    names_wipe(&model->service_names);
    names_wipe(&model->instance_names);
    pairs_wipe(&model->index->rtt);
    free(model->index);
    free(model);
}

static void *array_copy(const void *array, size_t count, size_t size)
{
    return count ? mem_dup(array, count * size) : NULL;
}

static void hosts_copy(struct model *to, const struct model *from)
{
    to->hosts = array_copy(from->hosts, from->n_hosts, sizeof *from->hosts);
    for (size_t i = 0; i < from->n_hosts; i++) {
        struct host *host = &to->hosts[i];
        host->name = mem_strdup(host->name);
        host->region = mem_strdup(host->region);
        host->zone = mem_strdup(host->zone);
        host->labels = array_copy(host->labels, host->n_labels, sizeof *host->labels);
        for (size_t j = 0; j < host->n_labels; j++) {
            host->labels[j].name = mem_strdup(host->labels[j].name);
            host->labels[j].value = mem_strdup(host->labels[j].value);
        }
        names_add(&to->host_names, host->name, (int)i);
    }
}

static void services_copy(struct model *to, const struct model *from)
{
    to->services = array_copy(from->services, from->n_services, sizeof *from->services);
    for (size_t i = 0; i < from->n_services; i++) {
        struct service *service = &to->services[i];
        service->name = mem_strdup(service->name);
        service->app = mem_strdup(service->app);
        service->version = mem_strdup(service->version);
        service->tenant = mem_strdup(service->tenant);
        service->depends_on = array_copy(service->depends_on, service->n_depends_on,
                                         sizeof *service->depends_on);
        for (size_t j = 0; j < service->n_depends_on; j++)
            service->depends_on[j].service = mem_strdup(service->depends_on[j].service);
        names_add(&to->service_names, service->name, (int)i);
    }
}

static void instances_copy(struct model *to, const struct model *from)
{
    to->instances = array_copy(from->instances, from->n_instances, sizeof *from->instances);
    for (size_t i = 0; i < from->n_instances; i++) {
        struct instance *instance = &to->instances[i];
        instance->name = mem_strdup(instance->name);
        instance->pinned_why = mem_strdup(instance->pinned_why);
        names_add(&to->instance_names, instance->name, (int)i);
    }
}

static void traffic_copy(struct traffic *traffic)
{
    traffic->unseen_services = array_copy(traffic->unseen_services, traffic->n_unseen_services,
                                          sizeof *traffic->unseen_services);
    for (size_t i = 0; i < traffic->n_unseen_services; i++)
        traffic->unseen_services[i] = mem_strdup(traffic->unseen_services[i]);
}

static struct network_cost *costs_copy(const struct network_cost *from, size_t n)
{
    struct network_cost *to = array_copy(from, n, sizeof *from);

    for (size_t i = 0; i < n; i++) {
        to[i].origin = mem_strdup(to[i].origin);
        to[i].destination = mem_strdup(to[i].destination);
    }
    return to;
}

struct model *model_copy(const struct model *model)
{
    struct model *copy = model_new();
    struct model_index *index = copy->index;

    *copy = *model;
    copy->index = index;
    copy->host_names = copy->service_names = copy->instance_names = (struct names)NAMES_INIT;
    hosts_copy(copy, model);
    services_copy(copy, model);
    instances_copy(copy, model);
    copy->messages = array_copy(model->messages, model->n_messages, sizeof *model->messages);
    copy->affinities =
        array_copy(model->affinities, model->n_affinities, sizeof *model->affinities);
    copy->latencies = array_copy(model->latencies, model->n_latencies, sizeof *model->latencies);
    copy->channels = array_copy(model->channels, model->n_channels, sizeof *model->channels);
    for (size_t i = 0; i < copy->n_channels; i++)
        copy->channels[i].type = mem_strdup(copy->channels[i].type);
    copy->region_costs = costs_copy(model->region_costs, model->n_region_costs);
    copy->zone_costs = costs_copy(model->zone_costs, model->n_zone_costs);
    copy->rules = array_copy(model->rules, model->n_rules, sizeof *model->rules);
    for (size_t i = 0; i < copy->n_rules; i++) {
        struct rule *rule = &copy->rules[i];
        rule->services = array_copy(rule->services, rule->n_services, sizeof *rule->services);
        rule->hosts = array_copy(rule->hosts, rule->n_hosts, sizeof *rule->hosts);
    }
    traffic_copy(&copy->traffic);
    return copy;
}

static int name_check(const char *kind, const char *name, const struct names *names,
                      struct err *err)
{
    const char *problem = name_problem(name, strlen(name));

    if (problem)
        return err_set(err, ERR_INPUT, "%s name \"%.80s\" %s", kind, name, problem);
    if (names_get(names, name) >= 0)
        return err_set(err, ERR_INPUT, "%s %s is there twice", kind, name);
    return 0;
}

int model_add_host(struct model *model, const char *name, struct err *err)
{
    if (name_check("host", name, &model->host_names, err) < 0)
        return -1;
    struct host *host = ARRAY_PUSH(model->hosts, model->n_hosts);
    host->name = mem_strdup(name);
    host->pods_cap = -1;
    host->schedulable = true;
    names_add(&model->host_names, host->name, (int)model->n_hosts - 1);
    return (int)model->n_hosts - 1;
}

int model_add_service(struct model *model, const char *name, struct err *err)
{
    if (name_check("service", name, &model->service_names, err) < 0)
        return -1;
    struct service *service = ARRAY_PUSH(model->services, model->n_services);
    service->name = mem_strdup(name);
    service->movable = true;
    service->weight = 1;
    names_add(&model->service_names, service->name, (int)model->n_services - 1);
    return (int)model->n_services - 1;
}

int model_add_instance(struct model *model, const char *name, int service, int host,
                       struct err *err)
{
    assert(service >= 0 && (size_t)service < model->n_services);
    assert(host >= -1 && (host < 0 || (size_t)host < model->n_hosts));
    if (name_check("instance", name, &model->instance_names, err) < 0)
        return -1;
    struct instance *instance = ARRAY_PUSH(model->instances, model->n_instances);
    instance->name = mem_strdup(name);
    instance->service = service;
    instance->host = host;
    instance->start_ms = -1;
    names_add(&model->instance_names, instance->name, (int)model->n_instances - 1);
    return (int)model->n_instances - 1;
}

int model_host(const struct model *model, const char *name)
{
    return names_get(&model->host_names, name);
}

int model_service(const struct model *model, const char *name)
{
    return names_get(&model->service_names, name);
}

int model_instance(const struct model *model, const char *name)
{
    return names_get(&model->instance_names, name);
}

int model_end(const struct model *model, const char *name, enum level *level)
{
    int index = model_instance(model, name);

    if (index >= 0) {
        *level = LEVEL_INSTANCE;
        return index;
    }
    index = model_service(model, name);
    if (index >= 0)
        *level = LEVEL_SERVICE;
    return index;
}

int model_ends(const struct model *model, const char *src, const char *dst, enum level *level,
               int *src_index, int *dst_index)
{
    enum level src_level = LEVEL_INSTANCE, dst_level = LEVEL_INSTANCE;
    int a = model_end(model, src, &src_level), b = model_end(model, dst, &dst_level);

    if (a < 0 || b < 0)
        return -1;
    if (src_level != dst_level) {
        if (src_level == LEVEL_INSTANCE)
            a = model->instances[a].service;
        else
            b = model->instances[b].service;
        src_level = LEVEL_SERVICE;
    }
    *level = src_level;
    *src_index = a;
    *dst_index = b;
    return 0;
}

double model_pair_weight(const struct model *model, enum level level, int a, int b)
{
    const struct service *x, *y;

    x = &model->services[level == LEVEL_SERVICE ? a : model->instances[a].service];
    y = &model->services[level == LEVEL_SERVICE ? b : model->instances[b].service];
    if (x->tenant && y->tenant && strcmp(x->tenant, y->tenant) != 0)
        return 0;
    return x->weight * y->weight;
}

const char *model_end_name(const struct model *model, enum level level, int index)
{
    switch (level) {
    case LEVEL_INSTANCE:
        return model->instances[index].name;
    case LEVEL_SERVICE:
        return model->services[index].name;
    }
    return "";
}

int *model_replicas(const struct model *model)
{
    int *replicas = mem_array(model->n_services, sizeof *replicas);

    for (size_t i = 0; i < model->n_instances; i++)
        replicas[model->instances[i].service]++;
    return replicas;
}

struct members model_members(const struct model *model)
{
    struct members members;

    members.first = mem_array(model->n_services + 2, sizeof *members.first);
    members.of = mem_array(model->n_instances, sizeof *members.of);
    /* Counted two places on, so that filling moves each start to where it belongs. */
    for (size_t i = 0; i < model->n_instances; i++)
        members.first[model->instances[i].service + 2]++;
    for (size_t s = 2; s <= model->n_services; s++)
        members.first[s] += members.first[s - 1];
    for (size_t i = 0; i < model->n_instances; i++)
        members.of[members.first[model->instances[i].service + 1]++] = (int)i;
    return members;
}

void members_wipe(struct members *members)
{
    free(members->first);
    free(members->of);
    *members = (struct members){NULL, NULL};
}

static void rtt_index_build(const struct model *model)
{
    struct model_index *index = model->index;

    pairs_wipe(&index->rtt);
    for (size_t i = 0; i < model->n_latencies; i++) {
        const struct latency *latency = &model->latencies[i];
        *pairs_at(&index->rtt, latency->a, latency->b) = latency->rtt_us;
    }
    index->n_latencies = model->n_latencies;
}

int64_t model_rtt_us(const struct model *model, int host_a, int host_b)
{
    if (host_a == host_b)
        return 0;
    if (model->index->n_latencies != model->n_latencies)
        rtt_index_build(model);
    int64_t rtt = pairs_get(&model->index->rtt, host_a, host_b, -1);
    return rtt >= 0 ? rtt : pairs_get(&model->index->rtt, host_b, host_a, -1);
}

const char *instance_fixed_why(const struct model *model, int instance, bool move_stateful)
{
    const struct instance *it = &model->instances[instance];
    const struct service *service = &model->services[it->service];

    if (it->pinned_why)
        return it->pinned_why;
    if (!service->movable)
        return "service is not movable";
    if (service->stateful && !move_stateful)
        return "stateful";
    if (service->rollout)
        return "rollout in progress";
    return NULL;
}
