/* instances.c - the paper's mock applications (§7). */
#include "tests/bench/instances.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct edges {
    int (*ends)[2];
    size_t n;
};

static void edge_add(struct edges *edges, int a, int b)
{
    int(*end)[2] = ARRAY_PUSH(edges->ends, edges->n);
    (*end)[0] = a;
    (*end)[1] = b;
}

/* Barabási–Albert with m = 2: each new vertex joins two different ones, drawn by degree. */
static void edges_p2p(struct edges *edges, int n, struct rng *rng)
{
    for (int v = 2; v < n; v++) {
        int first = 0, second = 1;
        if (v > 2) {
            uint32_t ends = (uint32_t)edges->n * 2;
            uint32_t k = rng_below(rng, ends);
            first = edges->ends[k / 2][k % 2];
            do {
                k = rng_below(rng, ends);
                second = edges->ends[k / 2][k % 2];
            } while (second == first);
        }
        edge_add(edges, first, v);
        edge_add(edges, second, v);
    }
}

static void edges_star(struct edges *edges, int n)
{
    for (int v = 1; v < n; v++)
        edge_add(edges, 0, v);
}

static void model_hosts(struct model *model, const struct mock *mock, struct rng *rng)
{
    struct err err = ERR_INIT;
    double factor = mock->mem_factor > 0 ? mock->mem_factor : 1;
    for (int i = 0; i < mock->services; i++) {
        char name[32];
        snprintf(name, sizeof name, "h%05d", i);
        int at = model_add_host(model, name, &err);
        struct host *host = &model->hosts[at];
        host->cpu_cap_millis = 4000;
        host->mem_cap_bytes = INT64_C(8192) << 20;
        snprintf(name, sizeof name, "s%05d", i);
        int service = model_add_service(model, name, &err);
        at = model_add_instance(model, name, service, i, &err);
        struct instance *one = &model->instances[at];
        one->cpu_used_millis = 1 + rng_below(rng, 500);
        one->mem_used_bytes = (int64_t)((10 + rng_below(rng, 491)) * factor * (1 << 20));
    }
}

/* The fewest hosts that the sum of CPU allows get 0.4 % more than that sum. */
static void hosts_tighten(struct model *model)
{
    int64_t sum = 0;
    for (size_t i = 0; i < model->n_instances; i++)
        sum += model->instances[i].cpu_used_millis;
    int64_t fewest = (sum + model->hosts[0].cpu_cap_millis - 1) / model->hosts[0].cpu_cap_millis;
    for (size_t h = 0; h < model->n_hosts; h++)
        model->hosts[h].cpu_cap_millis = (int64_t)ceil((double)sum / (0.996 * (double)fewest));
}

static void message_add(struct model *model, const int end[2], int64_t count, int64_t bytes)
{
    struct message *m = ARRAY_PUSH(model->messages, model->n_messages);
    *m = (struct message){.level = LEVEL_INSTANCE,
                          .src = end[0],
                          .dst = end[1],
                          .count = count,
                          .bytes = count * bytes,
                          .mean_ms = -1};
}

/* One message on every edge, the rest drawn by random edge weights. */
static void model_messages(struct model *model, const struct mock *mock,
                           const struct edges *edges, struct rng *rng)
{
    AUTO_FREE double *sum = mem_array(edges->n + 1, sizeof *sum);
    AUTO_FREE int64_t *count = mem_array(edges->n, sizeof *count);
    for (size_t e = 0; e < edges->n; e++) {
        sum[e + 1] = sum[e] + (mock->equal ? 1 : rng_real(rng));
        count[e] = 1;
    }
    for (int64_t k = (int64_t)edges->n; !mock->equal && k < mock->messages; k++) {
        double at = rng_real(rng) * sum[edges->n];
        size_t low = 0, high = edges->n;
        while (high - low > 1) {
            size_t mid = (low + high) / 2;
            if (sum[mid] <= at)
                low = mid;
            else
                high = mid;
        }
        count[low]++;
    }
    for (size_t e = 0; e < edges->n; e++) {
        int64_t bytes = mock->equal ? 1000 : 100 + rng_below(rng, 9901);
        if (!mock->one_row_each)
            message_add(model, edges->ends[e], count[e], bytes);
        for (int64_t k = 0; mock->one_row_each && k < count[e]; k++)
            message_add(model, edges->ends[e], 1, bytes);
    }
}

struct model *mock_model(const struct mock *mock)
{
    struct rng rng = {mock->seed * 1000003 + (uint64_t)mock->services};
    struct model *model = model_new();
    struct edges edges = {0};
    if (mock->topology == TOPOLOGY_STAR)
        edges_star(&edges, mock->services);
    else
        edges_p2p(&edges, mock->services, &rng);
    model_hosts(model, mock, &rng);
    if (mock->tight)
        hosts_tighten(model);
    model_messages(model, mock, &edges, &rng);
    model->has_messages = true;
    free(edges.ends);
    return model;
}

const struct wild wild_all = {
    .instances = 6,
    .hosts = 3,
    .replicas = true,
    .service_rows = true,
    .requests = true,
    .rules = true,
    .fixed = true,
    .unplaced = true,
    .foreign = true,
    .unschedulable = true,
    .uneven = true,
};

static bool chance(struct rng *rng, bool on, double share)
{
    return rng_real(rng) < share && on;
}

static int64_t between(struct rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)(rng_real(rng) * (double)(high - low + 1));
}

static void wild_hosts(struct model *model, const struct wild *wild, struct rng *rng)
{
    struct err err = ERR_INIT;
    int n = (int)between(rng, 1, wild->hosts);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "h%d", i);
        int at = model_add_host(model, name, &err);
        struct host *host = &model->hosts[at];
        host->cpu_cap_millis = chance(rng, wild->uneven, 0.5) ? between(rng, 50, 200) : 100;
        host->mem_cap_bytes = chance(rng, wild->uneven, 0.5) ? between(rng, 50, 200) : 100;
        if (chance(rng, wild->foreign, 0.3))
            host->cpu_used_millis = between(rng, 0, 40);
        if (chance(rng, wild->foreign, 0.3))
            host->mem_requested_bytes = between(rng, 0, 40);
        if (chance(rng, wild->foreign, 0.2))
            host->reserve_mem_bytes = between(rng, 0, 20);
        if (chance(rng, wild->foreign, 0.3))
            host->pods_cap = between(rng, 1, 5);
        if (chance(rng, wild->unschedulable, 0.15))
            host->schedulable = false;
        if (chance(rng, wild->rules, 0.7))
            host->zone = mem_strdup(rng_below(rng, 2) ? "z0" : "z1");
    }
}

static void wild_instances(struct model *model, const struct wild *wild, struct rng *rng)
{
    struct err err = ERR_INIT;
    int n = (int)between(rng, 1, wild->instances), run = 0;
    for (int i = 0; i < n; i++, run++) {
        char name[16];
        int service = (int)model->n_services - 1;
        if (service < 0 || run == 6 ||
            !chance(rng, wild->replicas, wild->crowds ? 0.7 : 0.4)) {
            run = 0;
            snprintf(name, sizeof name, "S%d", (int)model->n_services);
            service = model_add_service(model, name, &err);
            model->services[service].stateful = chance(rng, wild->fixed, 0.15);
            model->services[service].movable = !chance(rng, wild->fixed, 0.1);
        }
        snprintf(name, sizeof name, "i%d", (i * 7 + 3) % 10 + 10 * (i / 10)); /* not in name order */
        int at = model_add_instance(model, name, service, -1, &err);
        struct instance *one = &model->instances[at];
        one->cpu_used_millis = between(rng, 5, 60);
        one->mem_used_bytes = between(rng, 0, 50);
        if (chance(rng, wild->requests, 0.3))
            one->cpu_request_millis = between(rng, 5, 60);
        if (chance(rng, wild->fixed, 0.05))
            one->pinned_why = mem_strdup("pinned");
    }
}

static int distinct(struct rng *rng, size_t n, int not)
{
    int at = (int)rng_below(rng, (uint32_t)(n - 1));
    return at + (at >= not);
}

static void wild_rule(struct model *model, struct rng *rng)
{
    struct rule *rule = ARRAY_PUSH(model->rules, model->n_rules);
    size_t n = model->n_services;
    rule->kind = (enum rule_kind)rng_below(rng, 4);
    rule->services = mem_array(2, sizeof *rule->services);
    rule->services[0] = (int)rng_below(rng, (uint32_t)n);
    rule->n_services = 1;
    if ((rule->kind == RULE_APART || rule->kind == RULE_TOGETHER) && n > 1) {
        rule->services[1] = distinct(rng, n, rule->services[0]);
        rule->n_services = 2;
    }
    rule->max_per_host = between(rng, 1, 2);
    rule->max_share = rng_below(rng, 2) ? 0.5 : 0.34;
    rule->per_zone = rng_below(rng, 2);
    if (rule->kind != RULE_ALLOWED)
        return;
    rule->hosts = mem_array(model->n_hosts, sizeof *rule->hosts);
    for (size_t h = 0; h < model->n_hosts; h++)
        if (rng_below(rng, 3))
            rule->hosts[rule->n_hosts++] = (int)h;
    if (rule->n_hosts == 0)
        rule->hosts[rule->n_hosts++] = 0;
}

static void wild_rows(struct model *model, const struct wild *wild, struct rng *rng)
{
    model->has_affinities = true;
    for (int k = 0; k < 2 * (int)model->n_instances; k++) {
        bool service = chance(rng, wild->service_rows, 0.4) && model->n_services > 1;
        size_t n = service ? model->n_services : model->n_instances;
        if (n < 2)
            return;
        int a = (int)rng_below(rng, (uint32_t)n), b = distinct(rng, n, a);
        struct affinity *row = ARRAY_PUSH(model->affinities, model->n_affinities);
        *row = (struct affinity){.level = service ? LEVEL_SERVICE : LEVEL_INSTANCE,
                                 .a = a,
                                 .b = b,
                                 .degree = (double)between(rng, 0, 32) / 64,
                                 .bytes = -1};
    }
}

/* First fit in a random order; what does not fit stays unplaced (or goes anywhere when broken). */
static void wild_place(struct model *model, const struct wild *wild, struct rng *rng)
{
    for (size_t i = 0; i < model->n_instances; i++) {
        struct instance *one = &model->instances[i];
        struct load need = instance_load(one);
        uint32_t from = rng_below(rng, (uint32_t)model->n_hosts);
        if (chance(rng, wild->unplaced, 0.1))
            continue;
        for (size_t k = 0; k < model->n_hosts && one->host < 0; k++) {
            int host = (int)((from + k) % model->n_hosts);
            AUTO_FREE struct load *used = model_host_loads(model);
            struct load offer = host_offer(&model->hosts[host]);
            if (wild->broken ||
                (load_fits(&offer, &used[host], &need, NULL) &&
                 !model_rule_problem(model, NULL, one->service, host)))
                one->host = host;
        }
    }
}

struct model *wild_model(const struct wild *wild, uint64_t seed)
{
    struct rng rng = {seed * 7919 + 17};
    struct model *model = model_new();
    wild_hosts(model, wild, &rng);
    wild_instances(model, wild, &rng);
    while (chance(&rng, wild->rules, 0.4))
        wild_rule(model, &rng);
    wild_rows(model, wild, &rng);
    wild_place(model, wild, &rng);
    return model;
}

/* ---- production ---- */

#define PRODUCTION_SERVICES 550
#define PRODUCTION_REPLICAS 3500
#define PRODUCTION_HOSTS 100
#define PRODUCTION_PAIRS 350

static void production_services(struct model *model, struct rng *rng)
{
    struct err err = ERR_INIT;
    int left = PRODUCTION_REPLICAS;
    for (int s = 0; s < PRODUCTION_SERVICES; s++) {
        char name[32];
        snprintf(name, sizeof name, "svc-%03d", s);
        int service = model_add_service(model, name, &err);
        int rest = PRODUCTION_SERVICES - s - 1;
        /* Pareto with exponent 0.75, cut at 200 and at what keeps one for each of the rest. */
        int replicas = (int)pow(1 - rng_real(rng), -1 / 0.75);
        replicas = replicas > 200 ? 200 : replicas;
        replicas = replicas > left - rest ? left - rest : replicas;
        replicas = rest == 0 && left <= 200 ? left : replicas < 1 ? 1 : replicas;
        left -= replicas;
        int64_t cpu = 100 * between(rng, 1, 40), mem = between(rng, 64, 8192) << 20;
        for (int r = 0; r < replicas; r++) {
            snprintf(name, sizeof name, "svc-%03d-%03d", s, r);
            int at = model_add_instance(model, name, service, -1, &err);
            struct instance *one = &model->instances[at];
            one->cpu_request_millis = cpu;
            one->cpu_used_millis = cpu * between(rng, 20, 60) / 100;
            one->mem_used_bytes = one->mem_request_bytes = mem;
        }
    }
}

/* Ten sizes, scaled so that requests take 88 % of the CPU and 60 % of the memory. */
static void production_hosts(struct model *model, struct rng *rng)
{
    struct err err = ERR_INIT;
    double cpu = 0, mem = 0, sizes = 0;
    for (size_t i = 0; i < model->n_instances; i++) {
        cpu += (double)model->instances[i].cpu_request_millis;
        mem += (double)model->instances[i].mem_request_bytes;
    }
    for (int h = 0; h < PRODUCTION_HOSTS; h++)
        sizes += 1 + h % 10 * 0.35;
    for (int h = 0; h < PRODUCTION_HOSTS; h++) {
        char name[32];
        snprintf(name, sizeof name, "node-%03d", h);
        int at = model_add_host(model, name, &err);
        double part = (1 + h % 10 * 0.35) / sizes;
        model->hosts[at].cpu_cap_millis = (int64_t)(cpu / 0.88 * part);
        model->hosts[at].mem_cap_bytes = (int64_t)(mem / 0.60 * part);
        model->hosts[at].pods_cap = 200;
    }
    for (size_t i = 0; i < model->n_instances; i++) {
        struct instance *one = &model->instances[i];
        struct load need = instance_load(one);
        for (int k = 0; k < 20 * PRODUCTION_HOSTS && one->host < 0; k++) {
            int h = k < 50 ? (int)rng_below(rng, PRODUCTION_HOSTS) : k % PRODUCTION_HOSTS;
            AUTO_FREE struct load *used = model_host_loads(model);
            struct load offer = host_offer(&model->hosts[h]);
            if (load_fits(&offer, &used[h], &need, NULL))
                one->host = h;
        }
    }
}

/* Pair k weighs like 1 / (k + 5)^1.5: ten of them half. The first 150 services are the component. */
static void production_pairs(struct model *model, struct rng *rng)
{
    model->has_affinities = true;
    double sum = 0;
    for (int k = 0; k < PRODUCTION_PAIRS; k++)
        sum += pow(k + 5, -1.7);
    for (int k = 0; k < PRODUCTION_PAIRS; k++) {
        bool inside = k < 200;
        int low = inside ? 0 : 150, n = inside ? 150 : PRODUCTION_SERVICES - 150;
        int a = inside && k < 149 ? k + 1 : low + (int)rng_below(rng, (uint32_t)n);
        int b = inside && k < 149 ? (int)rng_below(rng, (uint32_t)k + 1)
                                  : low + (int)rng_below(rng, (uint32_t)n);
        if (a == b)
            b = low + (b - low + 1) % n;
        struct affinity *row = ARRAY_PUSH(model->affinities, model->n_affinities);
        *row = (struct affinity){.level = LEVEL_SERVICE,
                                 .a = a,
                                 .b = b,
                                 .degree = pow(k + 5, -1.7) / sum * (inside ? 1 : 0.1),
                                 .bytes = -1};
    }
}

struct model *production_model(uint64_t seed)
{
    struct rng rng = {seed * 31337 + 5};
    struct model *model = model_new();
    production_services(model, &rng);
    production_hosts(model, &rng);
    production_pairs(model, &rng);
    return model;
}
