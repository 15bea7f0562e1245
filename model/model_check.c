/* model_check.c - invariants of every model that leaves a parser or a stage (contract.md 2). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "model/base/pairs.h"
#include "model/model.h"

/* Room that sums of loads leave, so that adding a host's foreign use and one more instance cannot
 * leave int64: (2^63 - 1) / 4 is 2.3·10^18, two thousand times the largest single number. */
#define SUM_MAX (INT64_MAX / 4)

static int number_check(const char *kind, const char *name, const char *key, int64_t value,
                        bool optional, struct err *err)
{
    if (value >= (optional ? -1 : 0) && value <= MODEL_MAX_NUMBER)
        return 0;
    return err_set(err, ERR_INPUT, "%s %s: %s must be from 0 to 10^15, not %" PRId64, kind, name,
                   key, value);
}

static int real_check(const char *kind, size_t row, const char *key, double value, bool optional,
                      struct err *err)
{
    if (isfinite(value) && (optional || value >= 0) && value <= (double)MODEL_MAX_NUMBER)
        return 0;
    return err_set(err, ERR_INPUT, "%s[%zu].%s must be from 0 to 10^15, not %g", kind, row, key,
                   value);
}

static int host_check(const struct host *host, struct err *err)
{
    const struct {
        const char *key;
        int64_t value;
        bool optional;
    } numbers[] = {
        {"cpu_cap_millis", host->cpu_cap_millis, false},
        {"mem_cap_bytes", host->mem_cap_bytes, false},
        {"cpu_used_millis", host->cpu_used_millis, false},
        {"mem_used_bytes", host->mem_used_bytes, false},
        {"cpu_requested_millis", host->cpu_requested_millis, false},
        {"mem_requested_bytes", host->mem_requested_bytes, false},
        {"pods_cap", host->pods_cap, true},
        {"pods_used", host->pods_used, false},
        {"reserve_cpu_millis", host->reserve_cpu_millis, false},
        {"reserve_mem_bytes", host->reserve_mem_bytes, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (number_check("host", host->name, numbers[i].key, numbers[i].value,
                         numbers[i].optional, err) < 0)
            return -1;
    return 0;
}

static int service_check(const struct model *model, const struct service *service,
                         struct err *err)
{
    if (!(service->weight >= 0 && service->weight <= MODEL_MAX_WEIGHT))
        return err_set(err, ERR_INPUT, "service %s: weight must be from 0 to %d", service->name,
                       MODEL_MAX_WEIGHT);
    for (size_t i = 0; i < service->n_depends_on; i++) {
        const struct dependency *on = &service->depends_on[i];
        if (model_service(model, on->service) < 0)
            return err_set(err, ERR_INPUT, "service %s: depends on %s, which is no service here",
                           service->name, on->service);
        if (number_check("service", service->name, "max_network_cost", on->max_network_cost, true,
                         err) < 0 ||
            number_check("service", service->name, "min_bandwidth", on->min_bandwidth, true,
                         err) < 0)
            return -1;
    }
    return 0;
}

static bool in_range(int index, size_t count)
{
    return index >= 0 && (size_t)index < count;
}

/* Adds and tells whether the sum stays in bounds. */
static bool sum_add(int64_t *sum, int64_t value)
{
    *sum += value;
    return *sum <= SUM_MAX;
}

static int instance_check(const struct model *model, const struct instance *instance,
                          struct load *sum, struct err *err)
{
    const char *name = instance->name;

    if (!in_range(instance->service, model->n_services))
        return err_set(err, ERR_INPUT, "instance %s: is of no service", name);
    if (instance->host != -1 && !in_range(instance->host, model->n_hosts))
        return err_set(err, ERR_INPUT, "instance %s: is on no host of the model", name);
    if (number_check("instance", name, "cpu_used_millis", instance->cpu_used_millis, false, err) ||
        number_check("instance", name, "mem_used_bytes", instance->mem_used_bytes, false, err) ||
        number_check("instance", name, "cpu_request_millis", instance->cpu_request_millis, false,
                     err) ||
        number_check("instance", name, "mem_request_bytes", instance->mem_request_bytes, false,
                     err) ||
        number_check("instance", name, "start_ms", instance->start_ms, true, err))
        return -1;
    if (!sum_add(&sum->cpu_millis, instance->cpu_used_millis) ||
        !sum_add(&sum->mem_bytes, instance->mem_used_bytes) ||
        !sum_add(&sum->cpu_request_millis, instance->cpu_request_millis) ||
        !sum_add(&sum->mem_request_bytes, instance->mem_request_bytes))
        return err_set(err, ERR_INPUT, "instance %s: the sum of all instances is above 2^61",
                       name);
    return 0;
}

/* A row that names the instance must not be meant for the service, nor the other way round. */
static int names_check(const struct model *model, struct err *err)
{
    AUTO_FREE int *replicas = model_replicas(model);

    for (size_t s = 0; s < model->n_services; s++) {
        const char *name = model->services[s].name;
        int i = model_instance(model, name);
        if (i < 0)
            continue;
        if (model->instances[i].service != (int)s)
            return err_set(err, ERR_INPUT,
                           "instance %s: bears the name of a service that is not its own", name);
        if (replicas[s] > 1)
            return err_set(err, ERR_INPUT,
                           "instance %s: bears its service's name but is not its only instance",
                           name);
    }
    return 0;
}

static size_t ends_count(const struct model *model, enum level level)
{
    return level == LEVEL_INSTANCE ? model->n_instances : model->n_services;
}

static int messages_check(const struct model *model, struct err *err)
{
    int64_t count = model->traffic.unmapped_count, bytes = 0;

    for (size_t i = 0; i < model->n_messages; i++) {
        const struct message *row = &model->messages[i];
        size_t ends = ends_count(model, row->level);
        if (!in_range(row->src, ends) || !in_range(row->dst, ends))
            return err_set(err, ERR_INPUT, "messages[%zu]: names nothing of the model", i);
        if (row->count < 0 || row->count > MODEL_MAX_NUMBER || row->bytes < -1 ||
            row->bytes > MODEL_MAX_NUMBER)
            return err_set(err, ERR_INPUT, "messages[%zu]: count and bytes must be 0 to 10^15", i);
        if (real_check("messages", i, "mean_ms", row->mean_ms, true, err) < 0)
            return -1;
        if (!sum_add(&count, row->count) || !sum_add(&bytes, row->bytes > 0 ? row->bytes : 0))
            return err_set(err, ERR_INPUT, "messages[%zu]: the sum of all rows is above 2^61", i);
    }
    return 0;
}

static int affinities_check(const struct model *model, struct err *err)
{
    if (model->has_messages && model->has_affinities)
        return err_set(err, ERR_INPUT, "both messages and affinities are given");
    if ((model->n_messages && !model->has_messages) ||
        (model->n_affinities && !model->has_affinities))
        return err_set(err, ERR_INTERNAL, "rows without has_messages or has_affinities");
    for (size_t i = 0; i < model->n_affinities; i++) {
        const struct affinity *row = &model->affinities[i];
        size_t ends = ends_count(model, row->level);
        if (!in_range(row->a, ends) || !in_range(row->b, ends))
            return err_set(err, ERR_INPUT, "affinities[%zu]: names nothing of the model", i);
        if (real_check("affinities", i, "degree", row->degree, false, err) < 0)
            return -1;
    }
    return 0;
}

static int latencies_check(const struct model *model, struct err *err)
{
    struct pairs seen = PAIRS_INIT;
    int rc = 0;

    for (size_t i = 0; i < model->n_latencies && rc == 0; i++) {
        const struct latency *row = &model->latencies[i];
        if (!in_range(row->a, model->n_hosts) || !in_range(row->b, model->n_hosts)) {
            rc = err_set(err, ERR_INPUT, "latencies[%zu]: names no host of the model", i);
        } else if (row->rtt_us < 0 || row->rtt_us > MODEL_MAX_NUMBER) {
            rc = err_set(err, ERR_INPUT, "latencies[%zu].rtt_us must be from 0 to 10^15", i);
        } else {
            int64_t *known = pairs_at(&seen, row->a, row->b); /* 0: not seen yet */
            if (*known && *known != row->rtt_us + 1)
                rc = err_set(err, ERR_INPUT, "latencies[%zu]: %s to %s is there with another value",
                             i, model->hosts[row->a].name, model->hosts[row->b].name);
            *known = row->rtt_us + 1;
        }
    }
    pairs_wipe(&seen);
    return rc;
}

static int channels_check(const struct model *model, struct err *err)
{
    for (size_t i = 0; i < model->n_channels; i++) {
        const struct channel *row = &model->channels[i];
        if (!in_range(row->a, model->n_services) || !in_range(row->b, model->n_services))
            return err_set(err, ERR_INPUT, "channels[%zu]: names no service of the model", i);
        if (real_check("channels", i, "priority", row->priority, true, err) < 0 ||
            real_check("channels", i, "bytes_per_s", row->bytes_per_s, true, err) < 0)
            return -1;
    }
    return 0;
}

static int costs_check(const char *kind, const struct network_cost *rows, size_t n,
                       struct err *err)
{
    struct names seen = NAMES_INIT;
    char **keys = mem_array(n, sizeof *keys);
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        /* 100 is MaxCost of algorithms.md 4. */
        if (rows[i].cost < 0 || rows[i].cost > 100)
            rc = err_set(err, ERR_INPUT, "network_costs.%s[%zu].cost must be from 0 to 100", kind,
                         i);
        else if (number_check(kind, rows[i].origin, "bandwidth", rows[i].bandwidth, true, err) < 0)
            rc = -1;
        keys[i] = mem_printf("%s\n%s", rows[i].origin, rows[i].destination);
        int first = names_add(&seen, keys[i], (int)i);
        if (rc == 0 && first >= 0 && rows[first].cost != rows[i].cost)
            rc = err_set(err, ERR_INPUT,
                         "network_costs.%s[%zu]: %s to %s is there with another cost", kind, i,
                         rows[i].origin, rows[i].destination);
    }
    names_wipe(&seen);
    for (size_t i = 0; i < n; i++)
        free(keys[i]);
    free(keys);
    return rc;
}

/* Indices in range and none twice; `mark` is all false, and again after a good list. */
static int list_check(const int *list, size_t n, size_t ends, bool *mark)
{
    for (size_t i = 0; i < n; i++) {
        if (!in_range(list[i], ends) || mark[list[i]])
            return -1;
        mark[list[i]] = true;
    }
    for (size_t i = 0; i < n; i++)
        mark[list[i]] = false;
    return 0;
}

static int rules_check(const struct model *model, struct err *err)
{
    AUTO_FREE bool *services = mem_array(model->n_services, sizeof *services);
    AUTO_FREE bool *hosts = mem_array(model->n_hosts, sizeof *hosts);

    for (size_t r = 0; r < model->n_rules; r++) {
        const struct rule *rule = &model->rules[r];
        bool single = rule->kind == RULE_ALLOWED || rule->kind == RULE_SPREAD;
        if (rule->n_services == 0 || (single && rule->n_services != 1))
            return err_set(err, ERR_INPUT, "rules[%zu]: names %zu services", r, rule->n_services);
        if (list_check(rule->services, rule->n_services, model->n_services, services) < 0)
            return err_set(err, ERR_INPUT, "rules[%zu].services: a name is unknown or there twice",
                           r);
        if (list_check(rule->hosts, rule->n_hosts, model->n_hosts, hosts) < 0)
            return err_set(err, ERR_INPUT, "rules[%zu].hosts: a name is unknown or there twice",
                           r);
        if (rule->kind == RULE_APART &&
            (rule->max_per_host < 0 || rule->max_per_host > MODEL_MAX_NUMBER))
            return err_set(err, ERR_INPUT, "rules[%zu].max_per_host must be from 0 to 10^15", r);
        if (rule->kind == RULE_SPREAD && !(rule->max_share >= 0 && rule->max_share <= 1))
            return err_set(err, ERR_INPUT, "rules[%zu].max_share must be from 0 to 1", r);
    }
    return 0;
}

static int scalars_check(const struct model *model, struct err *err)
{
    if (number_check("the model", "itself", "from_ms", model->from_ms, true, err) < 0 ||
        number_check("the model", "itself", "to_ms", model->to_ms, true, err) < 0 ||
        number_check("the model", "itself", "taken_ms", model->taken_ms, true, err) < 0)
        return -1;
    if (model->from_ms >= 0 && model->to_ms >= 0 && model->to_ms < model->from_ms)
        return err_set(err, ERR_INPUT, "to_ms is before from_ms");
    if (number_check("traffic", "itself", "unmapped_count", model->traffic.unmapped_count, false,
                     err) < 0)
        return -1;
    return number_check("traffic", "itself", "unmapped_bytes", model->traffic.unmapped_bytes, true,
                        err);
}

int model_check(const struct model *model, struct err *err)
{
    struct load sum = {0, 0, 0, 0, 0};

    if (model->n_instances > MODEL_MAX_INSTANCES || model->n_hosts > MODEL_MAX_ROWS ||
        model->n_services > MODEL_MAX_ROWS || model->n_messages > MODEL_MAX_ROWS ||
        model->n_affinities > MODEL_MAX_ROWS)
        return err_set(err, ERR_TOO_LARGE, "more than 10^6 instances or 10^7 rows");
    for (size_t i = 0; i < model->n_hosts; i++)
        if (host_check(&model->hosts[i], err) < 0)
            return -1;
    for (size_t i = 0; i < model->n_services; i++)
        if (service_check(model, &model->services[i], err) < 0)
            return -1;
    for (size_t i = 0; i < model->n_instances; i++)
        if (instance_check(model, &model->instances[i], &sum, err) < 0)
            return -1;
    if (names_check(model, err) < 0 || scalars_check(model, err) < 0 ||
        messages_check(model, err) < 0 || affinities_check(model, err) < 0 ||
        latencies_check(model, err) < 0 || channels_check(model, err) < 0 ||
        rules_check(model, err) < 0)
        return -1;
    if (costs_check("region", model->region_costs, model->n_region_costs, err) < 0)
        return -1;
    return costs_check("zone", model->zone_costs, model->n_zone_costs, err);
}
