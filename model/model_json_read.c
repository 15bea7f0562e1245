/* model_json_read.c - strict reading of model documents (contract.md 2). Every refusal names its
 * place; what names something is resolved to an index at once. */
#include <stdlib.h>
#include <string.h>

#include "model/model_json.h"
#include "model/rules.h"

/* A label or annotation value is at most 256 KiB on Kubernetes, a label 63 bytes; nobody needs
 * more than this to know a host by. */
#define LABEL_MAX_BYTES 4096
/* One line for people. */
#define WHY_MAX_BYTES 1000

static int read_int(const struct jval *object, const char *key, int64_t *out, struct err *err)
{
    struct jval v = jval_get(object, key);

    return jval_int(&v, 0, MODEL_MAX_NUMBER, out, err);
}

static int read_opt_int(const struct jval *object, const char *key, int64_t *out, struct err *err)
{
    return jval_opt_int(object, key, 0, MODEL_MAX_NUMBER, out, err);
}

/* Absent or null: *out stays. */
static int read_nullable(const struct jval *object, const char *key, int64_t *out, struct err *err)
{
    struct jval v = jval_get(object, key);

    return jval_absent(&v) || jval_null(&v) ? 0 : jval_int(&v, 0, MODEL_MAX_NUMBER, out, err);
}

static int read_opt_real(const struct jval *object, const char *key, double *out, struct err *err)
{
    struct jval v = jval_get(object, key);

    return jval_absent(&v) ? 0 : jval_real(&v, 0, (double)MODEL_MAX_NUMBER, out, err);
}

static int read_opt_text(const struct jval *object, const char *key, size_t max, char **out,
                         struct err *err)
{
    struct jval v = jval_get(object, key);
    const char *text;

    if (jval_absent(&v))
        return 0;
    if (jval_text(&v, max, &text, err) < 0)
        return -1;
    free(*out);
    *out = mem_strdup(text);
    return 0;
}

static int read_opt_name(const struct jval *object, const char *key, char **out, struct err *err)
{
    struct jval v = jval_get(object, key);
    const char *text;

    if (jval_absent(&v))
        return 0;
    if (jval_name(&v, &text, err) < 0)
        return -1;
    free(*out);
    *out = mem_strdup(text);
    return 0;
}

static int read_service_ref(const struct model *model, const struct jval *v, int *out,
                            struct err *err)
{
    const char *name;

    if (jval_name(v, &name, err) < 0)
        return -1;
    *out = model_service(model, name);
    return *out >= 0 ? 0 : jval_error(v, err, "there is no service %s", name);
}

static int read_host_ref(const struct model *model, const struct jval *v, int *out,
                         struct err *err)
{
    const char *name;

    if (jval_name(v, &name, err) < 0)
        return -1;
    *out = model_host(model, name);
    return *out >= 0 ? 0 : jval_error(v, err, "there is no host %s", name);
}

/* Both ends of a traffic row. */
static int read_ends(const struct model *model, const struct jval *row, const char *key_a,
                     const char *key_b, enum level *level, int *a, int *b, struct err *err)
{
    struct jval ends[2] = {jval_get(row, key_a), jval_get(row, key_b)};
    const char *names[2];

    for (int i = 0; i < 2; i++) {
        enum level ignored;
        if (jval_name(&ends[i], &names[i], err) < 0)
            return -1;
        if (model_end(model, names[i], &ignored) < 0)
            return jval_error(&ends[i], err, "there is no instance or service %s", names[i]);
    }
    return model_ends(model, names[0], names[1], level, a, b);
}

static int read_labels(struct host *host, const struct jval *v, struct err *err)
{
    if (jval_absent(v))
        return 0;
    if (!json_is_object(v->value))
        return jval_error(v, err, "must be an object of texts");
    for (void *it = json_object_iter(v->value); it; it = json_object_iter_next(v->value, it)) {
        struct jval member = jval_get(v, json_object_iter_key(it));
        const char *text;
        if (jval_text(&member, LABEL_MAX_BYTES, &text, err) < 0)
            return -1;
        struct label *label = ARRAY_PUSH(host->labels, host->n_labels);
        label->name = mem_strdup(member.key);
        label->value = mem_strdup(text);
    }
    return 0;
}

static int read_host(struct model *model, const struct jval *v, struct err *err)
{
    static const char *const keys[] = {
        "name", "cpu_cap_millis", "mem_cap_bytes", "cpu_used_millis", "mem_used_bytes",
        "cpu_requested_millis", "mem_requested_bytes", "pods_cap", "pods_used",
        "reserve_cpu_millis", "reserve_mem_bytes", "schedulable", "region", "zone", "labels", NULL};
    struct jval name_at, labels;
    const char *name;

    if (jval_object(v, keys, err) < 0)
        return -1;
    name_at = jval_get(v, "name");
    if (jval_name(&name_at, &name, err) < 0)
        return -1;
    if (model_host(model, name) >= 0)
        return jval_error(&name_at, err, "host %s is there twice", name);
    int index = model_add_host(model, name, err);
    if (index < 0)
        return -1;
    struct host *host = &model->hosts[index];
    if (read_int(v, "cpu_cap_millis", &host->cpu_cap_millis, err) < 0 ||
        read_int(v, "mem_cap_bytes", &host->mem_cap_bytes, err) < 0 ||
        read_opt_int(v, "cpu_used_millis", &host->cpu_used_millis, err) < 0 ||
        read_opt_int(v, "mem_used_bytes", &host->mem_used_bytes, err) < 0 ||
        read_opt_int(v, "cpu_requested_millis", &host->cpu_requested_millis, err) < 0 ||
        read_opt_int(v, "mem_requested_bytes", &host->mem_requested_bytes, err) < 0 ||
        read_opt_int(v, "pods_cap", &host->pods_cap, err) < 0 ||
        read_opt_int(v, "pods_used", &host->pods_used, err) < 0 ||
        read_opt_int(v, "reserve_cpu_millis", &host->reserve_cpu_millis, err) < 0 ||
        read_opt_int(v, "reserve_mem_bytes", &host->reserve_mem_bytes, err) < 0 ||
        jval_opt_bool(v, "schedulable", &host->schedulable, err) < 0 ||
        read_opt_name(v, "region", &host->region, err) < 0 ||
        read_opt_name(v, "zone", &host->zone, err) < 0)
        return -1;
    labels = jval_get(v, "labels");
    return read_labels(host, &labels, err);
}

/* Twice the same service: the stricter of both counts (algorithms.md 4). `seen` maps the services
 * of this list to their places. */
static void dependency_add(struct service *service, const struct dependency *on,
                           struct names *seen)
{
    int place = names_get(seen, on->service);

    if (place < 0) {
        *ARRAY_PUSH(service->depends_on, service->n_depends_on) = *on;
        names_add(seen, on->service, (int)service->n_depends_on - 1);
        return;
    }
    struct dependency *known = &service->depends_on[place];
    if (on->max_network_cost < known->max_network_cost) /* not given is 0 there */
        known->max_network_cost = on->max_network_cost;
    if (on->min_bandwidth > known->min_bandwidth)
        known->min_bandwidth = on->min_bandwidth;
    free(on->service);
}

static int read_dependency(struct service *service, const struct jval *v, struct names *seen,
                           struct err *err)
{
    static const char *const keys[] = {"service", "max_network_cost", "min_bandwidth", NULL};
    struct dependency on = {NULL, -1, -1};
    struct jval name_at;
    const char *name;

    if (jval_object(v, keys, err) < 0)
        return -1;
    name_at = jval_get(v, "service");
    if (jval_name(&name_at, &name, err) < 0 ||
        read_opt_int(v, "max_network_cost", &on.max_network_cost, err) < 0 ||
        read_opt_int(v, "min_bandwidth", &on.min_bandwidth, err) < 0)
        return -1;
    on.service = mem_strdup(name);
    dependency_add(service, &on, seen);
    return 0;
}

static int read_dependencies(struct service *service, const struct jval *list, struct err *err)
{
    struct names seen = NAMES_INIT;
    size_t n = 0;
    int rc = 0;

    if (!jval_absent(list) && jval_array(list, MODEL_MAX_ROWS, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct jval row = jval_at(list, i);
        rc = read_dependency(service, &row, &seen, err);
    }
    names_wipe(&seen);
    return rc;
}

static int read_service(struct model *model, const struct jval *v, struct err *err)
{
    static const char *const keys[] = {"name",    "app",        "stateful", "movable", "rollout",
                                       "version", "depends_on", "tenant",   "weight",  NULL};
    struct jval name_at, weight = jval_get(v, "weight");
    const char *name;

    if (jval_object(v, keys, err) < 0)
        return -1;
    name_at = jval_get(v, "name");
    if (jval_name(&name_at, &name, err) < 0)
        return -1;
    if (model_service(model, name) >= 0)
        return jval_error(&name_at, err, "service %s is there twice", name);
    int index = model_add_service(model, name, err);
    if (index < 0)
        return -1;
    struct service *service = &model->services[index];
    if (read_opt_name(v, "app", &service->app, err) < 0 ||
        jval_opt_bool(v, "stateful", &service->stateful, err) < 0 ||
        jval_opt_bool(v, "movable", &service->movable, err) < 0 ||
        jval_opt_bool(v, "rollout", &service->rollout, err) < 0 ||
        read_opt_text(v, "version", WHY_MAX_BYTES, &service->version, err) < 0 ||
        read_opt_name(v, "tenant", &service->tenant, err) < 0 ||
        (!jval_absent(&weight) &&
         jval_real(&weight, 0, MODEL_MAX_WEIGHT, &service->weight, err) < 0))
        return -1;
    struct jval list = jval_get(v, "depends_on");
    return read_dependencies(service, &list, err);
}

/* Services may depend on later ones, so names are looked up when all are known. */
static int check_dependencies(const struct model *model, const struct jval *services,
                              struct err *err)
{
    for (size_t s = 0; s < model->n_services; s++) {
        struct jval service = jval_at(services, s), list = jval_get(&service, "depends_on");
        for (size_t i = 0; i < json_array_size(list.value); i++) {
            struct jval row = jval_at(&list, i), name_at = jval_get(&row, "service");
            int index;
            if (read_service_ref(model, &name_at, &index, err) < 0)
                return -1;
        }
    }
    return 0;
}

static int read_instance(struct model *model, const struct jval *v, struct err *err)
{
    static const char *const keys[] = {
        "name", "service", "host", "cpu_used_millis", "mem_used_bytes", "cpu_request_millis",
        "mem_request_bytes", "pinned_why", "start_ms", NULL};
    struct jval name_at, service_at, host_at;
    const char *name;
    int service, host = -1;

    if (jval_object(v, keys, err) < 0)
        return -1;
    name_at = jval_get(v, "name");
    service_at = jval_get(v, "service");
    host_at = jval_get(v, "host");
    if (jval_name(&name_at, &name, err) < 0 ||
        read_service_ref(model, &service_at, &service, err) < 0)
        return -1;
    if (!jval_absent(&host_at) && !jval_null(&host_at) &&
        read_host_ref(model, &host_at, &host, err) < 0)
        return -1;
    if (model_instance(model, name) >= 0)
        return jval_error(&name_at, err, "instance %s is there twice", name);
    int index = model_add_instance(model, name, service, host, err);
    if (index < 0)
        return -1;
    struct instance *instance = &model->instances[index];
    if (read_int(v, "cpu_used_millis", &instance->cpu_used_millis, err) < 0 ||
        read_int(v, "mem_used_bytes", &instance->mem_used_bytes, err) < 0 ||
        read_opt_int(v, "cpu_request_millis", &instance->cpu_request_millis, err) < 0 ||
        read_opt_int(v, "mem_request_bytes", &instance->mem_request_bytes, err) < 0 ||
        read_opt_text(v, "pinned_why", WHY_MAX_BYTES, &instance->pinned_why, err) < 0)
        return -1;
    return read_opt_int(v, "start_ms", &instance->start_ms, err);
}

static int read_message(struct model *model, const struct jval *v, struct err *err)
{
    static const char *const keys[] = {"src", "dst", "count", "bytes", "mean_ms", NULL};
    struct message row = {.bytes = -1, .mean_ms = -1};

    if (jval_object(v, keys, err) < 0 ||
        read_ends(model, v, "src", "dst", &row.level, &row.src, &row.dst, err) < 0 ||
        read_int(v, "count", &row.count, err) < 0 ||
        read_nullable(v, "bytes", &row.bytes, err) < 0 ||
        read_opt_real(v, "mean_ms", &row.mean_ms, err) < 0)
        return -1;
    *ARRAY_PUSH(model->messages, model->n_messages) = row;
    return 0;
}

static int read_affinity(struct model *model, const struct jval *v, struct err *err)
{
    static const char *const keys[] = {"a", "b", "degree", NULL};
    struct affinity row = {.bytes = -1};

    if (jval_object(v, keys, err) < 0 ||
        read_ends(model, v, "a", "b", &row.level, &row.a, &row.b, err) < 0)
        return -1;
    struct jval degree = jval_get(v, "degree");
    if (jval_real(&degree, 0, (double)MODEL_MAX_NUMBER, &row.degree, err) < 0)
        return -1;
    affinity_order(model, &row);
    *ARRAY_PUSH(model->affinities, model->n_affinities) = row;
    return 0;
}

static int read_channel(struct model *model, const struct jval *v, struct err *err)
{
    static const char *const keys[] = {"a", "b", "type", "priority", "bytes_per_s", NULL};
    struct channel row = {.priority = -1, .bytes_per_s = -1};

    if (jval_object(v, keys, err) < 0)
        return -1;
    struct jval a = jval_get(v, "a"), b = jval_get(v, "b");
    if (read_service_ref(model, &a, &row.a, err) < 0 ||
        read_service_ref(model, &b, &row.b, err) < 0 ||
        read_opt_real(v, "priority", &row.priority, err) < 0 ||
        read_opt_real(v, "bytes_per_s", &row.bytes_per_s, err) < 0 ||
        read_opt_name(v, "type", &row.type, err) < 0)
        return -1;
    *ARRAY_PUSH(model->channels, model->n_channels) = row;
    return 0;
}

static int read_latency(struct model *model, const struct jval *v, struct err *err)
{
    static const char *const keys[] = {"a", "b", "rtt_us", NULL};
    struct latency row;

    if (jval_object(v, keys, err) < 0)
        return -1;
    struct jval a = jval_get(v, "a"), b = jval_get(v, "b");
    if (read_host_ref(model, &a, &row.a, err) < 0 || read_host_ref(model, &b, &row.b, err) < 0 ||
        read_int(v, "rtt_us", &row.rtt_us, err) < 0)
        return -1;
    *ARRAY_PUSH(model->latencies, model->n_latencies) = row;
    return 0;
}

static int read_costs(const struct jval *list, struct network_cost **rows, size_t *n_rows,
                      struct err *err)
{
    static const char *const keys[] = {"origin", "destination", "cost", "bandwidth", NULL};
    size_t n;

    if (jval_absent(list))
        return 0;
    if (jval_array(list, MODEL_MAX_ROWS, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(list, i), cost, ends[2];
        const char *names[2];
        if (jval_object(&v, keys, err) < 0)
            return -1;
        ends[0] = jval_get(&v, "origin");
        ends[1] = jval_get(&v, "destination");
        if (jval_name(&ends[0], &names[0], err) < 0 || jval_name(&ends[1], &names[1], err) < 0)
            return -1;
        struct network_cost *row = ARRAY_PUSH(*rows, *n_rows);
        row->origin = mem_strdup(names[0]);
        row->destination = mem_strdup(names[1]);
        row->bandwidth = -1;
        cost = jval_get(&v, "cost");
        /* 100 is MaxCost of algorithms.md 4. */
        if (jval_int(&cost, 0, 100, &row->cost, err) < 0 ||
            read_opt_int(&v, "bandwidth", &row->bandwidth, err) < 0)
            return -1;
    }
    return 0;
}

static int read_network_costs(struct model *model, const struct jval *v, struct err *err)
{
    static const char *const keys[] = {"region", "zone", NULL};

    if (jval_absent(v))
        return 0;
    if (jval_object(v, keys, err) < 0)
        return -1;
    struct jval region = jval_get(v, "region"), zone = jval_get(v, "zone");
    if (read_costs(&region, &model->region_costs, &model->n_region_costs, err) < 0)
        return -1;
    return read_costs(&zone, &model->zone_costs, &model->n_zone_costs, err);
}

/* A list of names of hosts or services; none twice, which `seen` (all false, and again after) is
 * for. */
static int read_list(const struct model *model, const struct jval *list, bool hosts, bool *seen,
                     int **out, size_t *n_out, struct err *err)
{
    size_t n;
    int rc = 0;

    if (jval_array(list, MODEL_MAX_ROWS, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct jval v = jval_at(list, i);
        int index;
        rc = hosts ? read_host_ref(model, &v, &index, err)
                   : read_service_ref(model, &v, &index, err);
        if (rc == 0 && seen[index])
            rc = jval_error(&v, err, "%s is there twice", json_string_value(v.value));
        if (rc == 0) {
            seen[index] = true;
            *ARRAY_PUSH(*out, *n_out) = index;
        }
    }
    for (size_t i = 0; i < *n_out; i++)
        seen[(*out)[i]] = false;
    return rc;
}

struct rule_reader {
    struct model *model;
    bool *services, *hosts;
};

static int read_rule_members(const struct rule_reader *r, const struct jval *v, struct rule *rule,
                             struct err *err)
{
    struct jval member, share;
    int per;

    if (rule->kind == RULE_APART || rule->kind == RULE_TOGETHER) {
        member = jval_get(v, "services");
        if (read_list(r->model, &member, false, r->services, &rule->services, &rule->n_services,
                      err) < 0)
            return -1;
        if (rule->n_services == 0)
            return jval_error(&member, err, "is empty");
        return rule->kind == RULE_APART ? read_int(v, "max_per_host", &rule->max_per_host, err)
                                        : 0;
    }
    member = jval_get(v, "service");
    if (read_service_ref(r->model, &member, ARRAY_PUSH(rule->services, rule->n_services), err) < 0)
        return -1;
    if (rule->kind == RULE_ALLOWED) {
        member = jval_get(v, "hosts");
        return read_list(r->model, &member, true, r->hosts, &rule->hosts, &rule->n_hosts, err);
    }
    static const char *const pers[] = {"host", "zone", NULL};
    share = jval_get(v, "max_share");
    member = jval_get(v, "per");
    if (jval_real(&share, 0, 1, &rule->max_share, err) < 0 ||
        jval_choice(&member, pers, &per, err) < 0)
        return -1;
    rule->per_zone = per == 1;
    return 0;
}

static int read_rule(const struct rule_reader *r, const struct jval *v, struct err *err)
{
    static const char *const kinds[] = {"apart", "together", "allowed", "spread", NULL};
    static const char *const any[] = {"kind",  "services",  "max_per_host", "service",
                                      "hosts", "max_share", "per",          NULL};
    static const char *const apart[] = {"kind", "services", "max_per_host", NULL};
    static const char *const together[] = {"kind", "services", NULL};
    static const char *const allowed[] = {"kind", "service", "hosts", NULL};
    static const char *const spread[] = {"kind", "service", "max_share", "per", NULL};
    static const char *const *const keys[] = {apart, together, allowed, spread};
    int kind;

    if (jval_object(v, any, err) < 0)
        return -1;
    struct jval kind_at = jval_get(v, "kind");
    if (jval_choice(&kind_at, kinds, &kind, err) < 0 || jval_object(v, keys[kind], err) < 0)
        return -1;
    struct rule *rule = ARRAY_PUSH(r->model->rules, r->model->n_rules);
    rule->kind = (enum rule_kind)kind;
    return read_rule_members(r, v, rule, err);
}

static int read_rules(struct model *model, const struct jval *list, struct err *err)
{
    AUTO_FREE bool *services = mem_array(model->n_services, sizeof *services);
    AUTO_FREE bool *hosts = mem_array(model->n_hosts, sizeof *hosts);
    struct rule_reader reader = {model, services, hosts};
    size_t n;

    if (jval_absent(list))
        return 0;
    if (jval_array(list, MODEL_MAX_ROWS, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(list, i);
        if (read_rule(&reader, &v, err) < 0)
            return -1;
    }
    return 0;
}

static int read_traffic(struct model *model, const struct jval *v, struct err *err)
{
    static const char *const keys[] = {"unmapped_count", "unmapped_bytes", "unseen_services",
                                       NULL};
    struct traffic *traffic = &model->traffic;
    size_t n = 0;

    if (jval_absent(v))
        return 0;
    traffic->given = true;
    traffic->unmapped_bytes = -1;
    if (jval_object(v, keys, err) < 0 ||
        read_int(v, "unmapped_count", &traffic->unmapped_count, err) < 0 ||
        read_nullable(v, "unmapped_bytes", &traffic->unmapped_bytes, err) < 0)
        return -1;
    struct jval list = jval_get(v, "unseen_services");
    if (!jval_absent(&list) && jval_array(&list, MODEL_MAX_ROWS, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval name_at = jval_at(&list, i);
        const char *name;
        if (jval_name(&name_at, &name, err) < 0)
            return -1;
        *ARRAY_PUSH(traffic->unseen_services, traffic->n_unseen_services) = mem_strdup(name);
    }
    return 0;
}

typedef int row_reader(struct model *model, const struct jval *row, struct err *err);

/* Reads every element of an optional array. */
static int read_rows(struct model *model, const struct jval *root, const char *key, size_t max,
                     row_reader *reader, struct err *err)
{
    struct jval list = jval_get(root, key);
    size_t n;

    if (jval_absent(&list))
        return 0;
    if (jval_array(&list, max, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct jval row = jval_at(&list, i);
        if (reader(model, &row, err) < 0)
            return -1;
    }
    return 0;
}

static int read_model(struct model *model, const struct jval *root, struct err *err)
{
    static const char *const keys[] = {
        "v", "hosts", "services", "instances", "messages", "affinities", "channels", "latencies",
        "network_costs", "rules", "traffic", "from_ms", "to_ms", "taken_ms", NULL};
    struct jval version, services, messages, affinities, rest;
    int64_t v;

    if (jval_object(root, keys, err) < 0)
        return -1;
    version = jval_get(root, "v");
    services = jval_get(root, "services");
    messages = jval_get(root, "messages");
    affinities = jval_get(root, "affinities");
    if (jval_int(&version, 1, 1, &v, err) < 0)
        return -1;
    if (!jval_absent(&messages) && !jval_absent(&affinities))
        return jval_error(&affinities, err, "both messages and affinities are given");
    model->has_messages = !jval_absent(&messages);
    model->has_affinities = !jval_absent(&affinities);
    if (read_rows(model, root, "hosts", MODEL_MAX_INSTANCES, read_host, err) < 0 ||
        read_rows(model, root, "services", MODEL_MAX_INSTANCES, read_service, err) < 0 ||
        check_dependencies(model, &services, err) < 0 ||
        read_rows(model, root, "instances", MODEL_MAX_INSTANCES, read_instance, err) < 0 ||
        read_rows(model, root, "messages", MODEL_MAX_ROWS, read_message, err) < 0 ||
        read_rows(model, root, "affinities", MODEL_MAX_ROWS, read_affinity, err) < 0 ||
        read_rows(model, root, "channels", MODEL_MAX_ROWS, read_channel, err) < 0 ||
        read_rows(model, root, "latencies", MODEL_MAX_ROWS, read_latency, err) < 0)
        return -1;
    rest = jval_get(root, "network_costs");
    if (read_network_costs(model, &rest, err) < 0)
        return -1;
    rest = jval_get(root, "rules");
    if (read_rules(model, &rest, err) < 0)
        return -1;
    rest = jval_get(root, "traffic");
    if (read_traffic(model, &rest, err) < 0 ||
        read_opt_int(root, "from_ms", &model->from_ms, err) < 0 ||
        read_opt_int(root, "to_ms", &model->to_ms, err) < 0)
        return -1;
    return read_opt_int(root, "taken_ms", &model->taken_ms, err);
}

struct model *model_decode_value(const struct jval *value, struct err *err)
{
    AUTO(model) struct model *model = model_new();

    if (read_model(model, value, err) < 0 || model_check(model, err) < 0)
        return NULL;
    return steal(model);
}

struct model *model_decode(const char *text, size_t size, struct err *err)
{
    AUTO_JSON json_t *tree = json_parse(text, size, &json_limits_document, err);

    if (!tree)
        return NULL;
    struct jval root = jval_root(tree);
    return model_decode_value(&root, err);
}
