/* scenario_yaml.c - the file form of a scenario (explained in etc/scenarios/sock-shop.yaml): the
 * libcyaml schema, and the way from texts with units to numbers. */
#include "adapters/simulated/server/scenario.h"
#include "adapters/simulated/server/units.h"
#include "model/base/clock.h"
#include "model/base/yaml.h"

#include <cyaml/cyaml.h>
#include <stdlib.h>
#include <string.h>

struct raw_host {
    char *name, *cpu, *memory, *region, *zone;
    char *cpu_used, *memory_used, *cpu_requested, *memory_requested;
    int64_t *pods, *pods_used, *count;
    bool *schedulable;
};
struct raw_service {
    char *name, *namespace, *version;
    int64_t *replicas;
    char **hosts;
    unsigned hosts_count;
    char *cpu_base, *memory, *cpu_request, *memory_request, *work, *delay, *start_up;
    double *entry_rate;
    bool *stateful, *movable;
};
struct raw_call {
    char *from, *to, *bytes;
    double *per_request, *rate;
};
struct raw_link {
    char *a, *b, *rtt;
};
struct raw_network {
    char *same_zone, *same_region, *other_region;
    struct raw_link *hosts, *zones, *regions;
    unsigned hosts_count, zones_count, regions_count;
};
struct raw_fault {
    char *kind, *service, *host, *at, *for_, *delay;
    int64_t *times, *status, *replicas;
    double *factor;
    bool *writes_only;
};
struct raw_generate {
    char *topology, *per, *work;
    int64_t services, messages;
    int64_t *seed;
};
struct raw_scenario {
    char *name, *about, *namespace, *warm, *reschedule_after, *failed_call;
    int64_t *seed;
    double *noise, *speed;
    struct raw_host *hosts;
    struct raw_service *services;
    struct raw_call *calls;
    struct raw_fault *faults;
    unsigned hosts_count, services_count, calls_count, faults_count;
    struct raw_network *network;
    struct raw_generate *generate;
};

#define OPT (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define TEXT(type, member) CYAML_FIELD_STRING_PTR(#member, OPT, struct type, member, 0, 400)
#define NEED(type, member)                                                                         \
    CYAML_FIELD_STRING_PTR(#member, CYAML_FLAG_POINTER, struct type, member, 1, 400)
#define INT(type, member) CYAML_FIELD_INT_PTR(#member, OPT, struct type, member)
#define REAL(type, member) CYAML_FIELD_FLOAT_PTR(#member, OPT, struct type, member)
#define BOOL(type, member) CYAML_FIELD_BOOL_PTR(#member, OPT, struct type, member)
#define LIST(type, member, entry, most)                                                            \
    CYAML_FIELD_SEQUENCE(#member, OPT, struct type, member, &(entry), 0, most)

static const cyaml_schema_value_t text_entry = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 400)};

static const cyaml_schema_field_t host_fields[] = {NEED(raw_host, name),
                                                   NEED(raw_host, cpu),
                                                   NEED(raw_host, memory),
                                                   TEXT(raw_host, region),
                                                   TEXT(raw_host, zone),
                                                   TEXT(raw_host, cpu_used),
                                                   TEXT(raw_host, memory_used),
                                                   TEXT(raw_host, cpu_requested),
                                                   TEXT(raw_host, memory_requested),
                                                   INT(raw_host, pods),
                                                   INT(raw_host, pods_used),
                                                   INT(raw_host, count),
                                                   BOOL(raw_host, schedulable),
                                                   CYAML_FIELD_END};
static const cyaml_schema_value_t host_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_host, host_fields)};

static const cyaml_schema_field_t service_fields[] = {
    NEED(raw_service, name),
    TEXT(raw_service, namespace),
    TEXT(raw_service, version),
    INT(raw_service, replicas),
    LIST(raw_service, hosts, text_entry, SCENARIO_MAX_HOSTS),
    TEXT(raw_service, cpu_base),
    TEXT(raw_service, memory),
    TEXT(raw_service, cpu_request),
    TEXT(raw_service, memory_request),
    TEXT(raw_service, work),
    TEXT(raw_service, delay),
    TEXT(raw_service, start_up),
    REAL(raw_service, entry_rate),
    BOOL(raw_service, stateful),
    BOOL(raw_service, movable),
    CYAML_FIELD_END};
static const cyaml_schema_value_t service_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_service, service_fields)};

static const cyaml_schema_field_t call_fields[] = {
    NEED(raw_call, from),        NEED(raw_call, to),   TEXT(raw_call, bytes),
    REAL(raw_call, per_request), REAL(raw_call, rate), CYAML_FIELD_END};
static const cyaml_schema_value_t call_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_call, call_fields)};

static const cyaml_schema_field_t link_fields[] = {NEED(raw_link, a), NEED(raw_link, b),
                                                   NEED(raw_link, rtt), CYAML_FIELD_END};
static const cyaml_schema_value_t link_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_link, link_fields)};
static const cyaml_schema_field_t network_fields[] = {TEXT(raw_network, same_zone),
                                                      TEXT(raw_network, same_region),
                                                      TEXT(raw_network, other_region),
                                                      LIST(raw_network, hosts, link_entry, 20000),
                                                      LIST(raw_network, zones, link_entry, 1000),
                                                      LIST(raw_network, regions, link_entry, 1000),
                                                      CYAML_FIELD_END};

static const cyaml_schema_field_t fault_fields[] = {
    NEED(raw_fault, kind),
    TEXT(raw_fault, service),
    TEXT(raw_fault, host),
    TEXT(raw_fault, at),
    CYAML_FIELD_STRING_PTR("for", OPT, struct raw_fault, for_, 0, 400),
    TEXT(raw_fault, delay),
    INT(raw_fault, times),
    INT(raw_fault, status),
    INT(raw_fault, replicas),
    REAL(raw_fault, factor),
    BOOL(raw_fault, writes_only),
    CYAML_FIELD_END};
static const cyaml_schema_value_t fault_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_fault, fault_fields)};

static const cyaml_schema_field_t generate_fields[] = {
    NEED(raw_generate, topology),
    TEXT(raw_generate, per),
    TEXT(raw_generate, work),
    CYAML_FIELD_INT("services", CYAML_FLAG_DEFAULT, struct raw_generate, services),
    CYAML_FIELD_INT("messages", CYAML_FLAG_DEFAULT, struct raw_generate, messages),
    INT(raw_generate, seed),
    CYAML_FIELD_END};

static const cyaml_schema_field_t scenario_fields[] = {
    NEED(raw_scenario, name),
    TEXT(raw_scenario, about),
    TEXT(raw_scenario, namespace),
    TEXT(raw_scenario, warm),
    TEXT(raw_scenario, reschedule_after),
    TEXT(raw_scenario, failed_call),
    INT(raw_scenario, seed),
    REAL(raw_scenario, noise),
    REAL(raw_scenario, speed),
    LIST(raw_scenario, hosts, host_entry, SCENARIO_MAX_HOSTS),
    LIST(raw_scenario, services, service_entry, SCENARIO_MAX_SERVICES),
    LIST(raw_scenario, calls, call_entry, SCENARIO_MAX_CALLS),
    LIST(raw_scenario, faults, fault_entry, 1000),
    CYAML_FIELD_MAPPING_PTR("network", OPT, struct raw_scenario, network, network_fields),
    CYAML_FIELD_MAPPING_PTR("generate", OPT, struct raw_scenario, generate, generate_fields),
    CYAML_FIELD_END};
static const cyaml_schema_value_t scenario_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_scenario, scenario_fields)};

/* --- from texts to numbers ---
 * A reader knows the document and the place; each get_* leaves *out alone when the text is absent.
 */

struct reader {
    const struct ydoc *doc;
    struct err *err;
    const char *list; /* "hosts", NULL at the top */
    size_t index;
};

static int bad(const struct reader *r, const char *key, const char *problem)
{
    if (!r->list)
        return ydoc_error(r->doc, r->err, key, "%s", problem);
    AUTO_FREE char *path = mem_printf("%s[%zu]%s%s", r->list, r->index, key[0] ? "." : "", key);
    return ydoc_error(r->doc, r->err, path, "%s", problem);
}

typedef const char *(*unit_fn)(const char *text, int64_t *out);

static int get_unit(const struct reader *r, const char *key, const char *text, unit_fn unit,
                    int64_t *out)
{
    const char *problem = text ? unit(text, out) : NULL;
    return problem ? bad(r, key, problem) : 0;
}

static int get_duration(const struct reader *r, const char *key, const char *text, int64_t *out)
{
    struct err why = ERR_INIT;
    if (text && duration_parse(text, out, &why))
        return bad(r, key, why.text);
    return 0;
}

static int get_time(const struct reader *r, const char *key, const char *text, double *out_ms)
{
    int64_t micros = 0;
    if (!text)
        return 0;
    if (get_unit(r, key, text, unit_micros, &micros))
        return -1;
    *out_ms = (double)micros / 1000;
    return 0;
}

static int get_int(const struct reader *r, const char *key, const int64_t *value, int64_t max,
                   int64_t *out)
{
    if (!value)
        return 0;
    if (*value < 0 || *value > max) {
        AUTO_FREE char *problem = mem_printf("must be from 0 to %lld", (long long)max);
        return bad(r, key, problem);
    }
    *out = *value;
    return 0;
}

static int get_real(const struct reader *r, const char *key, const double *value, double max,
                    double *out)
{
    if (!value)
        return 0;
    if (!(*value >= 0 && *value <= max)) {
        AUTO_FREE char *problem = mem_printf("must be from 0 to %g", max);
        return bad(r, key, problem);
    }
    *out = *value;
    return 0;
}

static int get_host(const struct reader *r, const char *key, const struct scenario *s,
                    const char *name, int *out)
{
    if (!name)
        return 0;
    int host = scenario_host(s, name);
    if (host < 0) {
        AUTO_FREE char *problem = mem_printf("there is no host %.250s", name);
        return bad(r, key, problem);
    }
    *out = host;
    return 0;
}

static int get_service(const struct reader *r, const char *key, const struct scenario *s,
                       const char *name, int *out)
{
    if (!name)
        return 0;
    int service = scenario_service(s, name);
    if (service < 0) {
        AUTO_FREE char *problem = mem_printf("there is no service %.250s", name);
        return bad(r, key, problem);
    }
    *out = service;
    return 0;
}

static int get_name(const struct reader *r, const char *name, struct names *names, size_t value)
{
    const char *problem = name_problem(name, strlen(name));
    if (problem)
        return bad(r, "name", problem);
    return names_add(names, name, (int)value) >= 0 ? bad(r, "name", "is there already") : 0;
}

/* One entry with `count: n` stands for n hosts NAME-1 … NAME-n. */
static int read_host(const struct reader *r, const struct raw_host *raw, struct scenario *s)
{
    int64_t count = -1;
    if (get_int(r, "count", raw->count, SCENARIO_MAX_HOSTS, &count))
        return -1;
    for (int64_t i = 0; i < (count < 0 ? 1 : count); i++) {
        if (s->n_hosts >= SCENARIO_MAX_HOSTS)
            return bad(r, "", "more than 10000 hosts");
        size_t index = s->n_hosts;
        struct sim_host *h = ARRAY_PUSH(s->hosts, s->n_hosts);
        h->name =
            count < 0 ? mem_strdup(raw->name) : mem_printf("%s-%lld", raw->name, (long long)i + 1);
        h->region = mem_strdup(raw->region);
        h->zone = mem_strdup(raw->zone);
        h->pods = -1;
        h->schedulable = raw->schedulable ? *raw->schedulable : true;
        if (get_name(r, h->name, &s->host_names, index) ||
            get_unit(r, "cpu", raw->cpu, unit_cpu, &h->cpu_millis) ||
            get_unit(r, "memory", raw->memory, unit_size, &h->mem_bytes) ||
            get_unit(r, "cpu_used", raw->cpu_used, unit_cpu, &h->cpu_used_millis) ||
            get_unit(r, "memory_used", raw->memory_used, unit_size, &h->mem_used_bytes) ||
            get_unit(r, "cpu_requested", raw->cpu_requested, unit_cpu, &h->cpu_requested_millis) ||
            get_unit(r, "memory_requested", raw->memory_requested, unit_size,
                     &h->mem_requested_bytes) ||
            get_int(r, "pods", raw->pods, 100000, &h->pods) ||
            get_int(r, "pods_used", raw->pods_used, 100000, &h->pods_used))
            return -1;
        if (!h->cpu_millis || !h->mem_bytes)
            return bad(r, "", "a host has CPU and memory above 0");
    }
    return 0;
}

static int read_service(const struct reader *r, const struct raw_service *raw,
                        const char *namespace, struct scenario *s)
{
    size_t index = s->n_services;
    struct sim_service *v = ARRAY_PUSH(s->services, s->n_services);
    v->name = mem_strdup(raw->name);
    v->namespace = mem_strdup(raw->namespace ? raw->namespace : namespace);
    v->version = mem_strdup(raw->version);
    v->replicas = raw->hosts_count ? raw->hosts_count : 1;
    v->start_up_ms = 2000;
    v->mem_bytes = 64 << 20;
    v->stateful = raw->stateful ? *raw->stateful : false;
    v->movable = raw->movable ? *raw->movable : true;
    for (unsigned i = 0; i < raw->hosts_count; i++) {
        int host = -1;
        if (get_host(r, "hosts", s, raw->hosts[i], &host))
            return -1;
        *ARRAY_PUSH(v->hosts, v->n_hosts) = host;
    }
    if (get_name(r, v->name, &s->service_names, index) ||
        get_int(r, "replicas", raw->replicas, SCENARIO_MAX_REPLICAS, &v->replicas) ||
        get_unit(r, "cpu_base", raw->cpu_base, unit_cpu, &v->cpu_base_millis) ||
        get_unit(r, "memory", raw->memory, unit_size, &v->mem_bytes) ||
        get_unit(r, "cpu_request", raw->cpu_request, unit_cpu, &v->cpu_request_millis) ||
        get_unit(r, "memory_request", raw->memory_request, unit_size, &v->mem_request_bytes) ||
        get_time(r, "work", raw->work, &v->work_ms) ||
        get_time(r, "delay", raw->delay, &v->delay_ms) ||
        get_duration(r, "start_up", raw->start_up, &v->start_up_ms) ||
        get_real(r, "entry_rate", raw->entry_rate, 1e9, &v->entry_per_s))
        return -1;
    return 0;
}

static int read_call(const struct reader *r, const struct raw_call *raw, struct scenario *s)
{
    struct sim_call c = {.from = -1, .to = -1, .per_request = -1, .per_s = -1, .bytes = -1};
    if (get_service(r, "from", s, raw->from, &c.from) || get_service(r, "to", s, raw->to, &c.to) ||
        get_unit(r, "bytes", raw->bytes, unit_size, &c.bytes) ||
        get_real(r, "per_request", raw->per_request, 1e9, &c.per_request) ||
        get_real(r, "rate", raw->rate, 1e9, &c.per_s))
        return -1;
    if (!raw->per_request == !raw->rate)
        return bad(r, "", "give either per_request or rate (calls a second)");
    *ARRAY_PUSH(s->calls, s->n_calls) = c;
    return 0;
}

static int read_fault(const struct reader *r, const struct raw_fault *raw, struct scenario *s)
{
    int kind = 0;
    while (fault_kind_names[kind] && strcmp(fault_kind_names[kind], raw->kind) != 0)
        kind++;
    if (kind == FAULT_KINDS) {
        const char *near = names_nearest(raw->kind, fault_kind_names);
        AUTO_FREE char *problem =
            mem_printf("unknown kind%s%s", near ? "; did you mean " : "", near ? near : "");
        return bad(r, "kind", problem);
    }
    struct fault f = fault_default((enum fault_kind)kind);
    if (get_service(r, "service", s, raw->service, &f.service) ||
        get_host(r, "host", s, raw->host, &f.host) || get_duration(r, "at", raw->at, &f.at_ms) ||
        get_duration(r, "for", raw->for_, &f.span_ms) ||
        get_duration(r, "delay", raw->delay, &f.delay_ms) ||
        get_int(r, "times", raw->times, 1000000, &f.times) ||
        get_int(r, "status", raw->status, 599, &f.status) ||
        get_int(r, "replicas", raw->replicas, 10000, &f.replicas) ||
        get_real(r, "factor", raw->factor, 1e6, &f.factor))
        return -1;
    f.writes_only = raw->writes_only ? *raw->writes_only : false;
    const char *problem = fault_problem(&f);
    if (problem)
        return bad(r, "", problem);
    *ARRAY_PUSH(s->faults, s->n_faults) = f;
    return 0;
}

static int read_links(struct reader *r, const struct raw_network *raw, struct scenario *s)
{
    r->list = "network.hosts";
    for (r->index = 0; r->index < raw->hosts_count; r->index++) {
        const struct raw_link *l = &raw->hosts[r->index];
        struct sim_link *link = ARRAY_PUSH(s->links, s->n_links);
        if (get_host(r, "a", s, l->a, &link->a) || get_host(r, "b", s, l->b, &link->b) ||
            get_unit(r, "rtt", l->rtt, unit_micros, &link->rtt_us))
            return -1;
    }
    r->list = "network.zones";
    for (r->index = 0; r->index < raw->zones_count; r->index++) {
        const struct raw_link *l = &raw->zones[r->index];
        struct sim_zone_link *link = ARRAY_PUSH(s->zone_links, s->n_zone_links);
        *link = (struct sim_zone_link){mem_strdup(l->a), mem_strdup(l->b), 0};
        if (get_unit(r, "rtt", l->rtt, unit_micros, &link->rtt_us))
            return -1;
    }
    r->list = "network.regions";
    for (r->index = 0; r->index < raw->regions_count; r->index++) {
        const struct raw_link *l = &raw->regions[r->index];
        struct sim_zone_link *link = ARRAY_PUSH(s->region_links, s->n_region_links);
        *link = (struct sim_zone_link){mem_strdup(l->a), mem_strdup(l->b), 0};
        if (get_unit(r, "rtt", l->rtt, unit_micros, &link->rtt_us))
            return -1;
    }
    return 0;
}

static int read_network(struct reader *r, const struct raw_network *raw, struct scenario *s)
{
    r->list = NULL;
    if (get_unit(r, "network.same_zone", raw->same_zone, unit_micros, &s->same_zone_us) ||
        get_unit(r, "network.same_region", raw->same_region, unit_micros, &s->same_region_us) ||
        get_unit(r, "network.other_region", raw->other_region, unit_micros, &s->other_region_us))
        return -1;
    return read_links(r, raw, s);
}

static int read_generate(struct reader *r, const struct raw_generate *raw, struct scenario *s)
{
    r->list = NULL;
    struct generator g = {
        .star = !strcmp(raw->topology, "star"), .per_ms = 600000, .work_ms = 0.05, .seed = s->seed};
    int64_t seed = (int64_t)(s->seed & INT64_MAX);
    if (!g.star && strcmp(raw->topology, "p2p") != 0)
        return bad(r, "generate.topology", "must be star or p2p");
    if (get_int(r, "generate.services", &raw->services, SCENARIO_MAX_SERVICES, &g.services) ||
        get_int(r, "generate.messages", &raw->messages, SCENARIO_MAX_MESSAGES, &g.messages) ||
        get_int(r, "generate.seed", raw->seed, INT64_MAX, &seed) ||
        get_duration(r, "generate.per", raw->per, &g.per_ms) ||
        get_time(r, "generate.work", raw->work, &g.work_ms))
        return -1;
    if (!g.services || !g.per_ms)
        return bad(r, "generate", "services and per are above 0");
    g.seed = (uint64_t)seed;
    scenario_generate(s, &g);
    return 0;
}

static int read_top(struct reader *r, const struct raw_scenario *raw, struct scenario *s)
{
    int64_t seed = 1;
    s->name = mem_strdup(raw->name);
    if (get_int(r, "seed", raw->seed, INT64_MAX, &seed) ||
        get_real(r, "noise", raw->noise, 0.5, &s->noise) ||
        get_real(r, "speed", raw->speed, SCENARIO_MAX_SPEED, &s->speed) ||
        get_duration(r, "warm", raw->warm, &s->warm_ms) ||
        get_duration(r, "reschedule_after", raw->reschedule_after, &s->reschedule_ms) ||
        get_duration(r, "failed_call", raw->failed_call, &s->failed_call_ms))
        return -1;
    if (s->speed < 0.001)
        return bad(r, "speed", "must be from 0.001 to 100000");
    s->seed = (uint64_t)seed;
    return 0;
}

static int read_scenario(const struct ydoc *doc, const struct raw_scenario *raw, int64_t seed,
                         struct scenario *s, struct err *err)
{
    struct reader r = {doc, err, NULL, 0};
    if (read_top(&r, raw, s))
        return -1;
    if (seed >= 0)
        s->seed = (uint64_t)seed;
    if (raw->generate && read_generate(&r, raw->generate, s))
        return -1;
    r.list = "hosts";
    for (r.index = 0; r.index < raw->hosts_count; r.index++)
        if (read_host(&r, &raw->hosts[r.index], s))
            return -1;
    r.list = "services";
    for (r.index = 0; r.index < raw->services_count; r.index++)
        if (read_service(&r, &raw->services[r.index], raw->namespace ? raw->namespace : "default",
                         s))
            return -1;
    r.list = "calls";
    for (r.index = 0; r.index < raw->calls_count; r.index++)
        if (read_call(&r, &raw->calls[r.index], s))
            return -1;
    r.list = "faults";
    for (r.index = 0; r.index < raw->faults_count; r.index++)
        if (read_fault(&r, &raw->faults[r.index], s))
            return -1;
    if (raw->network && read_network(&r, raw->network, s))
        return -1;
    if (scenario_finish(s, err)) {
        struct err why = *err;
        return ydoc_error(doc, err, "", "%s", why.text);
    }
    return 0;
}

static struct scenario *scenario_from(const struct ydoc *doc, int64_t seed, struct err *err)
{
    void *raw = NULL;
    if (!doc || ydoc_load(doc, &scenario_schema, &raw, err))
        return NULL;
    AUTO(scenario) struct scenario *s = scenario_new();
    int result = read_scenario(doc, raw, seed, s, err);
    ydoc_unload(&scenario_schema, raw);
    return result ? NULL : steal(s);
}

struct scenario *scenario_read(const char *path, int64_t seed, struct err *err)
{
    AUTO(ydoc) struct ydoc *doc = ydoc_read(path, err);
    return scenario_from(doc, seed, err);
}

struct scenario *scenario_parse(const char *text, size_t size, const char *name, int64_t seed,
                                struct err *err)
{
    AUTO(ydoc) struct ydoc *doc = ydoc_parse(text, size, name, err);
    return scenario_from(doc, seed, err);
}
