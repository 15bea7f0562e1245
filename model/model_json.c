/* model_json.c - names of enums in documents, and the writer of model documents (contract.md 2).
 * What is not given is not written, so that reading back gives the same struct and writing it
 * again the same bytes. */
#include "model/model_json.h"

#include "model/rules.h"

const char *level_name(enum level level)
{
    switch (level) {
    case LEVEL_INSTANCE:
        return "instance";
    case LEVEL_SERVICE:
        return "service";
    }
    return "";
}

/* One object: opens at its first member, `,"key":` before each further one. */
static void put_key(struct buf *out, const char *key)
{
    if (out->data[out->size - 1] != '{')
        buf_add(out, ",", 1);
    buf_add(out, "\"", 1);
    buf_puts(out, key); /* our own keys need no escapes */
    buf_add(out, "\":", 2);
}

static void put_int(struct buf *out, const char *key, int64_t value)
{
    put_key(out, key);
    json_put_int(out, value);
}

/* Left out where it is the default. */
static void put_int_unless(struct buf *out, const char *key, int64_t value, int64_t unless)
{
    if (value != unless)
        put_int(out, key, value);
}

static void put_text(struct buf *out, const char *key, const char *text)
{
    put_key(out, key);
    json_put_text(out, text);
}

static void put_text_if(struct buf *out, const char *key, const char *text)
{
    if (text)
        put_text(out, key, text);
}

static void put_bool_unless(struct buf *out, const char *key, bool value, bool unless)
{
    if (value != unless) {
        put_key(out, key);
        json_put_bool(out, value);
    }
}

static void put_real(struct buf *out, const char *key, double value)
{
    put_key(out, key);
    json_put_real(out, value);
}

static void put_nullable(struct buf *out, const char *key, int64_t value)
{
    put_key(out, key);
    if (value < 0)
        buf_puts(out, "null");
    else
        json_put_int(out, value);
}

static void begin_row(struct buf *out, size_t i)
{
    buf_puts(out, i ? ",{" : "{");
}

static void begin_array(struct buf *out, const char *key)
{
    put_key(out, key);
    buf_add(out, "[", 1);
}

static void put_host(struct buf *out, const struct host *host)
{
    put_text(out, "name", host->name);
    put_int(out, "cpu_cap_millis", host->cpu_cap_millis);
    put_int(out, "mem_cap_bytes", host->mem_cap_bytes);
    put_int_unless(out, "cpu_used_millis", host->cpu_used_millis, 0);
    put_int_unless(out, "mem_used_bytes", host->mem_used_bytes, 0);
    put_int_unless(out, "cpu_requested_millis", host->cpu_requested_millis, 0);
    put_int_unless(out, "mem_requested_bytes", host->mem_requested_bytes, 0);
    put_int_unless(out, "pods_cap", host->pods_cap, -1);
    put_int_unless(out, "pods_used", host->pods_used, 0);
    put_int_unless(out, "reserve_cpu_millis", host->reserve_cpu_millis, 0);
    put_int_unless(out, "reserve_mem_bytes", host->reserve_mem_bytes, 0);
    put_bool_unless(out, "schedulable", host->schedulable, true);
    put_text_if(out, "region", host->region);
    put_text_if(out, "zone", host->zone);
    if (host->n_labels) {
        put_key(out, "labels");
        buf_add(out, "{", 1);
        for (size_t i = 0; i < host->n_labels; i++) {
            if (i)
                buf_add(out, ",", 1);
            json_put_text(out, host->labels[i].name);
            buf_add(out, ":", 1);
            json_put_text(out, host->labels[i].value);
        }
        buf_add(out, "}", 1);
    }
}

static void put_service(struct buf *out, const struct service *service)
{
    put_text(out, "name", service->name);
    put_text_if(out, "app", service->app);
    put_bool_unless(out, "stateful", service->stateful, false);
    put_bool_unless(out, "movable", service->movable, true);
    put_bool_unless(out, "rollout", service->rollout, false);
    put_text_if(out, "version", service->version);
    put_text_if(out, "tenant", service->tenant);
    if (service->weight != 1)
        put_real(out, "weight", service->weight);
    if (service->n_depends_on == 0)
        return;
    begin_array(out, "depends_on");
    for (size_t i = 0; i < service->n_depends_on; i++) {
        const struct dependency *on = &service->depends_on[i];
        begin_row(out, i);
        put_text(out, "service", on->service);
        put_int_unless(out, "max_network_cost", on->max_network_cost, -1);
        put_int_unless(out, "min_bandwidth", on->min_bandwidth, -1);
        buf_add(out, "}", 1);
    }
    buf_add(out, "]", 1);
}

static void put_instance(struct buf *out, const struct model *model,
                         const struct instance *instance)
{
    put_text(out, "name", instance->name);
    put_text(out, "service", model->services[instance->service].name);
    put_text(out, "host", instance->host < 0 ? NULL : model->hosts[instance->host].name);
    put_int(out, "cpu_used_millis", instance->cpu_used_millis);
    put_int(out, "mem_used_bytes", instance->mem_used_bytes);
    put_int_unless(out, "cpu_request_millis", instance->cpu_request_millis, 0);
    put_int_unless(out, "mem_request_bytes", instance->mem_request_bytes, 0);
    put_text_if(out, "pinned_why", instance->pinned_why);
    put_int_unless(out, "start_ms", instance->start_ms, -1);
}

static void put_message(struct buf *out, const struct model *model, const struct message *row)
{
    put_text(out, "src", model_end_name(model, row->level, row->src));
    put_text(out, "dst", model_end_name(model, row->level, row->dst));
    put_int(out, "count", row->count);
    put_nullable(out, "bytes", row->bytes);
    if (row->mean_ms >= 0)
        put_real(out, "mean_ms", row->mean_ms);
}

static void put_channel(struct buf *out, const struct model *model, const struct channel *row)
{
    put_text(out, "a", model->services[row->a].name);
    put_text(out, "b", model->services[row->b].name);
    put_text_if(out, "type", row->type);
    if (row->priority >= 0)
        put_real(out, "priority", row->priority);
    if (row->bytes_per_s >= 0)
        put_real(out, "bytes_per_s", row->bytes_per_s);
}

static void put_names(struct buf *out, const char *key, const struct model *model,
                      const int *indices, size_t n, bool hosts)
{
    begin_array(out, key);
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_add(out, ",", 1);
        json_put_text(out, hosts ? model->hosts[indices[i]].name
                                 : model->services[indices[i]].name);
    }
    buf_add(out, "]", 1);
}

static void put_rule(struct buf *out, const struct model *model, const struct rule *rule)
{
    put_text(out, "kind", rule_kind_name(rule->kind));
    switch (rule->kind) {
    case RULE_APART:
        put_names(out, "services", model, rule->services, rule->n_services, false);
        put_int(out, "max_per_host", rule->max_per_host);
        break;
    case RULE_TOGETHER:
        put_names(out, "services", model, rule->services, rule->n_services, false);
        break;
    case RULE_ALLOWED:
        put_text(out, "service", model->services[rule->services[0]].name);
        put_names(out, "hosts", model, rule->hosts, rule->n_hosts, true);
        break;
    case RULE_SPREAD:
        put_text(out, "service", model->services[rule->services[0]].name);
        put_real(out, "max_share", rule->max_share);
        put_text(out, "per", rule->per_zone ? "zone" : "host");
        break;
    }
}

static void put_costs(struct buf *out, const char *key, const struct network_cost *rows, size_t n)
{
    if (n == 0)
        return;
    begin_array(out, key);
    for (size_t i = 0; i < n; i++) {
        begin_row(out, i);
        put_text(out, "origin", rows[i].origin);
        put_text(out, "destination", rows[i].destination);
        put_int(out, "cost", rows[i].cost);
        put_int_unless(out, "bandwidth", rows[i].bandwidth, -1);
        buf_add(out, "}", 1);
    }
    buf_add(out, "]", 1);
}

static void put_traffic(struct buf *out, const struct traffic *traffic)
{
    put_key(out, "traffic");
    buf_add(out, "{", 1);
    put_int(out, "unmapped_count", traffic->unmapped_count);
    put_nullable(out, "unmapped_bytes", traffic->unmapped_bytes);
    begin_array(out, "unseen_services");
    for (size_t i = 0; i < traffic->n_unseen_services; i++) {
        if (i)
            buf_add(out, ",", 1);
        json_put_text(out, traffic->unseen_services[i]);
    }
    buf_puts(out, "]}");
}

static void put_graph(struct buf *out, const struct model *model)
{
    begin_array(out, "hosts");
    for (size_t i = 0; i < model->n_hosts; i++) {
        begin_row(out, i);
        put_host(out, &model->hosts[i]);
        buf_add(out, "}", 1);
    }
    buf_add(out, "]", 1);
    begin_array(out, "services");
    for (size_t i = 0; i < model->n_services; i++) {
        begin_row(out, i);
        put_service(out, &model->services[i]);
        buf_add(out, "}", 1);
    }
    buf_add(out, "]", 1);
    begin_array(out, "instances");
    for (size_t i = 0; i < model->n_instances; i++) {
        begin_row(out, i);
        put_instance(out, model, &model->instances[i]);
        buf_add(out, "}", 1);
    }
    buf_add(out, "]", 1);
}

static void put_traffic_rows(struct buf *out, const struct model *model)
{
    if (model->has_messages) {
        begin_array(out, "messages");
        for (size_t i = 0; i < model->n_messages; i++) {
            begin_row(out, i);
            put_message(out, model, &model->messages[i]);
            buf_add(out, "}", 1);
        }
        buf_add(out, "]", 1);
    }
    if (model->has_affinities) {
        begin_array(out, "affinities");
        for (size_t i = 0; i < model->n_affinities; i++) {
            const struct affinity *row = &model->affinities[i];
            begin_row(out, i);
            put_text(out, "a", model_end_name(model, row->level, row->a));
            put_text(out, "b", model_end_name(model, row->level, row->b));
            put_real(out, "degree", row->degree);
            buf_add(out, "}", 1);
        }
        buf_add(out, "]", 1);
    }
}

static void put_network(struct buf *out, const struct model *model)
{
    if (model->n_channels) {
        begin_array(out, "channels");
        for (size_t i = 0; i < model->n_channels; i++) {
            begin_row(out, i);
            put_channel(out, model, &model->channels[i]);
            buf_add(out, "}", 1);
        }
        buf_add(out, "]", 1);
    }
    if (model->n_latencies) {
        begin_array(out, "latencies");
        for (size_t i = 0; i < model->n_latencies; i++) {
            const struct latency *row = &model->latencies[i];
            begin_row(out, i);
            put_text(out, "a", model->hosts[row->a].name);
            put_text(out, "b", model->hosts[row->b].name);
            put_int(out, "rtt_us", row->rtt_us);
            buf_add(out, "}", 1);
        }
        buf_add(out, "]", 1);
    }
    if (model->n_region_costs || model->n_zone_costs) {
        put_key(out, "network_costs");
        buf_add(out, "{", 1);
        put_costs(out, "region", model->region_costs, model->n_region_costs);
        put_costs(out, "zone", model->zone_costs, model->n_zone_costs);
        buf_add(out, "}", 1);
    }
    if (model->n_rules) {
        begin_array(out, "rules");
        for (size_t i = 0; i < model->n_rules; i++) {
            begin_row(out, i);
            put_rule(out, model, &model->rules[i]);
            buf_add(out, "}", 1);
        }
        buf_add(out, "]", 1);
    }
}

void model_encode(const struct model *model, struct buf *out)
{
    buf_puts(out, "{\"v\":1");
    put_graph(out, model);
    put_traffic_rows(out, model);
    put_network(out, model);
    if (model->traffic.given)
        put_traffic(out, &model->traffic);
    put_int_unless(out, "from_ms", model->from_ms, -1);
    put_int_unless(out, "to_ms", model->to_ms, -1);
    put_int_unless(out, "taken_ms", model->taken_ms, -1);
    buf_puts(out, "}");
}
