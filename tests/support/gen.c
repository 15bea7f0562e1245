/* gen.c - models from a seed. */
#include "tests/support/gen.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/affinity.h"
#include "model/rules.h"

static int add_named(struct model *model, const char *kind, size_t number,
                     int add(struct model *, const char *, struct err *))
{
    struct err err = ERR_INIT;
    AUTO_FREE char *name = mem_printf("%s-%zu", kind, number);
    int index = add(model, name, &err);

    if (index < 0)
        abort();
    return index;
}

static void add_edge(struct model *model, int a, int b, double weight, double *weights)
{
    struct message *row = ARRAY_PUSH(model->messages, model->n_messages);

    *row = (struct message){.level = LEVEL_INSTANCE, .src = a, .dst = b, .count = 1,
                            .bytes = 0, .mean_ms = -1};
    weights[model->n_messages - 1] = weight;
}

/* Barabási–Albert, m = 2: each new service speaks to two different older ones, chosen by degree. */
static void edges_p2p(struct model *model, struct rng *rng, size_t n, double *weights)
{
    AUTO_FREE int *ends = mem_array(4 * n + 4, sizeof *ends); /* each service once per edge */
    size_t n_ends = 0;

    for (size_t i = 2; i < n; i++) {
        int a = n_ends ? ends[rng_below(rng, n_ends)] : 0;
        int b = a;
        while (b == a)
            b = n_ends ? ends[rng_below(rng, n_ends)] : 1;
        add_edge(model, (int)i, a, rng_real(rng), weights);
        add_edge(model, (int)i, b, rng_real(rng), weights);
        ends[n_ends++] = a;
        ends[n_ends++] = b;
        ends[n_ends++] = (int)i;
        ends[n_ends++] = (int)i;
    }
}

/* One message for each edge, the rest by weight: cumulated weights and a search per edge would do
 * too; shares rounded down and the remainder one by one are the same every time. */
static void spread_messages(struct model *model, struct rng *rng, int64_t n_messages,
                            const double *weights)
{
    int64_t rest = n_messages - (int64_t)model->n_messages, left = rest;
    double sum = 0;

    for (size_t i = 0; i < model->n_messages; i++)
        sum += weights[i];
    for (size_t i = 0; rest > 0 && i < model->n_messages; i++) {
        int64_t share = (int64_t)((double)rest * weights[i] / sum);
        model->messages[i].count += share;
        left -= share;
    }
    for (; left > 0; left--)
        model->messages[rng_below(rng, model->n_messages)].count++;
    for (size_t i = 0; i < model->n_messages; i++)
        model->messages[i].bytes = model->messages[i].count * rng_int(rng, 100, 10000);
}

struct model *gen_mock(enum gen_topology topology, size_t n_services, int64_t n_messages,
                       uint64_t seed)
{
    struct rng rng = {seed};
    struct model *model = model_new();
    struct err err = ERR_INIT;
    AUTO_FREE double *weights = mem_array(2 * n_services + 2, sizeof *weights);

    for (size_t i = 0; i < n_services; i++) {
        int h = add_named(model, "host", i, model_add_host);
        model->hosts[h].cpu_cap_millis = 4000;
        model->hosts[h].mem_cap_bytes = INT64_C(8) << 30;
        int s = add_named(model, "service", i, model_add_service);
        int k = model_add_instance(model, model->services[s].name, s, h, &err);
        model->instances[k].cpu_used_millis = rng_int(&rng, 1, 500);
        model->instances[k].mem_used_bytes = rng_int(&rng, 10, 500) * 1000000;
    }
    model->has_messages = true;
    if (topology == GEN_STAR)
        for (size_t i = 1; i < n_services; i++)
            add_edge(model, 0, (int)i, rng_real(&rng), weights);
    else
        edges_p2p(model, &rng, n_services, weights);
    if (model->n_messages)
        spread_messages(model, &rng, n_messages, weights);
    return model;
}

static void gen_hosts(struct rng *rng, struct model *model, const struct gen_options *options)
{
    static const char *const zones[] = {"z1", "z2", "z3"}, *const regions[] = {"east", "west"};
    size_t n = 1 + rng_below(rng, options->max_hosts);

    for (size_t i = 0; i < n; i++) {
        int index = add_named(model, "h", i, model_add_host);
        struct host *host = &model->hosts[index];
        host->cpu_cap_millis = rng_int(rng, 500, 8000);
        host->mem_cap_bytes = rng_int(rng, 500, 8000) << 20;
        host->schedulable = !rng_chance(rng, 0.05);
        if (rng_chance(rng, 0.3)) {
            host->cpu_used_millis = rng_int(rng, 0, 200);
            host->mem_used_bytes = rng_int(rng, 0, 200) << 20;
            host->reserve_cpu_millis = rng_int(rng, 0, 100);
            host->reserve_mem_bytes = rng_int(rng, 0, 100) << 20;
        }
        if (options->requests && rng_chance(rng, 0.5)) {
            host->cpu_requested_millis = rng_int(rng, 0, 200);
            host->mem_requested_bytes = rng_int(rng, 0, 200) << 20;
            host->pods_cap = rng_int(rng, 2, 20);
            host->pods_used = rng_int(rng, 0, 2);
        }
        if (rng_chance(rng, 0.8)) {
            host->zone = mem_strdup(zones[rng_below(rng, 3)]);
            host->region = mem_strdup(regions[rng_below(rng, 2)]);
        }
        if (rng_chance(rng, 0.2)) {
            struct label *label = ARRAY_PUSH(host->labels, host->n_labels);
            label->name = mem_strdup("kubernetes.io/arch");
            label->value = mem_strdup("amd64");
        }
    }
}

static void gen_services(struct rng *rng, struct model *model, const struct gen_options *options)
{
    size_t n = 1 + rng_below(rng, options->max_services);

    for (size_t i = 0; i < n; i++) {
        int index = add_named(model, "s", i, model_add_service);
        struct service *service = &model->services[index];
        service->stateful = options->fixed && rng_chance(rng, 0.1);
        service->movable = !(options->fixed && rng_chance(rng, 0.1));
        service->rollout = options->fixed && rng_chance(rng, 0.05);
        if (rng_chance(rng, 0.3))
            service->app = mem_strdup("shop");
        if (rng_chance(rng, 0.2))
            service->version = mem_strdup("v1.2");
        if (i > 0 && rng_chance(rng, 0.3)) {
            struct dependency *on = ARRAY_PUSH(service->depends_on, service->n_depends_on);
            on->service = mem_strdup(model->services[rng_below(rng, i)].name);
            on->max_network_cost = rng_int(rng, -1, 50);
            on->min_bandwidth = rng_int(rng, -1, 1000);
        }
    }
}

static void gen_instances(struct rng *rng, struct model *model, const struct gen_options *options)
{
    for (size_t s = 0; s < model->n_services; s++) {
        size_t replicas = 1 + rng_below(rng, options->max_replicas);
        for (size_t r = 0; r < replicas; r++) {
            struct err err = ERR_INIT;
            AUTO_FREE char *name = replicas == 1
                                       ? mem_strdup(model->services[s].name)
                                       : mem_printf("%s-%zu", model->services[s].name, r);
            int i = model_add_instance(model, name, (int)s, -1, &err);
            if (i < 0)
                abort();
            struct instance *instance = &model->instances[i];
            instance->cpu_used_millis = rng_int(rng, 0, 500);
            instance->mem_used_bytes = rng_int(rng, 0, 500) << 20;
            if (options->requests && rng_chance(rng, 0.5)) {
                instance->cpu_request_millis = rng_int(rng, 0, 600);
                instance->mem_request_bytes = rng_int(rng, 0, 600) << 20;
            }
            if (options->fixed && rng_chance(rng, 0.05))
                instance->pinned_why = mem_strdup("uses a local volume");
            if (rng_chance(rng, 0.3))
                instance->start_ms = rng_int(rng, 0, 60000);
        }
    }
}

static void gen_rules(struct rng *rng, struct model *model)
{
    size_t n = rng_below(rng, 4);

    for (size_t r = 0; r < n; r++) {
        struct rule *rule = ARRAY_PUSH(model->rules, model->n_rules);
        int service = (int)rng_below(rng, model->n_services);
        rule->kind = (enum rule_kind)rng_below(rng, 4);
        *ARRAY_PUSH(rule->services, rule->n_services) = service;
        bool pair = rule->kind == RULE_APART || rule->kind == RULE_TOGETHER;
        int other = (int)rng_below(rng, model->n_services);
        if (pair && other != service)
            *ARRAY_PUSH(rule->services, rule->n_services) = other;
        if (rule->kind == RULE_APART)
            rule->max_per_host = rng_int(rng, 1, 3);
        for (size_t h = 0; rule->kind == RULE_ALLOWED && h < model->n_hosts; h++)
            if (rng_chance(rng, 0.7))
                *ARRAY_PUSH(rule->hosts, rule->n_hosts) = (int)h;
        if (rule->kind == RULE_SPREAD) {
            rule->max_share = rng_real(rng);
            rule->per_zone = rng_chance(rng, 0.5);
        }
    }
}

/* First fit from a random host, up to the fill. */
static void gen_place(struct rng *rng, struct model *model, double fill)
{
    AUTO_FREE struct load *used = mem_array(model->n_hosts, sizeof *used);
    AUTO(rule_tally) struct rule_tally *tally = rule_tally_new(model, NULL);

    for (size_t i = 0; i < model->n_instances; i++) {
        struct instance *instance = &model->instances[i];
        struct load need = instance_load(instance);
        size_t from = rng_below(rng, model->n_hosts);
        for (size_t k = 0; k < model->n_hosts && instance->host < 0; k++) {
            size_t h = (from + k) % model->n_hosts;
            struct load offer = host_offer(&model->hosts[h]);
            bool below = (double)(used[h].cpu_millis + need.cpu_millis) <=
                         fill * (double)offer.cpu_millis;
            if (below && load_fits(&offer, &used[h], &need, NULL) &&
                !rule_tally_problem(tally, instance->service, (int)h)) {
                instance->host = (int)h;
                load_add(&used[h], &need);
                rule_tally_add(tally, instance->service, (int)h, 1);
            }
        }
    }
}

/* A name that an end of a row may have, resolved as a document's would be. */
static const char *gen_end(struct rng *rng, const struct model *model)
{
    if (rng_chance(rng, 0.7))
        return model->instances[rng_below(rng, model->n_instances)].name;
    return model->services[rng_below(rng, model->n_services)].name;
}

static void gen_traffic(struct rng *rng, struct model *model, bool affinities)
{
    size_t n = rng_below(rng, 3 * model->n_instances + 1);

    model->has_affinities = affinities;
    model->has_messages = !affinities;
    for (size_t i = 0; i < n; i++) {
        enum level level;
        int a, b;
        if (model_ends(model, gen_end(rng, model), gen_end(rng, model), &level, &a, &b) < 0)
            abort();
        if (affinities) {
            struct affinity row = {level, a, b, rng_real(rng), 0, -1};
            affinity_order(model, &row);
            *ARRAY_PUSH(model->affinities, model->n_affinities) = row;
        } else {
            *ARRAY_PUSH(model->messages, model->n_messages) = (struct message){
                .level = level, .src = a, .dst = b, .count = rng_int(rng, 0, 1000),
                .bytes = rng_chance(rng, 0.2) ? -1 : rng_int(rng, 0, 1000000),
                .mean_ms = rng_chance(rng, 0.2) ? -1 : 50 * rng_real(rng)};
        }
    }
    if (rng_chance(rng, 0.5)) {
        model->traffic.given = true;
        model->traffic.unmapped_count = rng_int(rng, 0, 100);
        model->traffic.unmapped_bytes = rng_chance(rng, 0.5) ? -1 : rng_int(rng, 0, 9999);
        *ARRAY_PUSH(model->traffic.unseen_services, model->traffic.n_unseen_services) =
            mem_strdup("stranger");
    }
}

static void gen_network(struct rng *rng, struct model *model)
{
    for (size_t a = 0; a < model->n_hosts; a++)
        for (size_t b = a + 1; b < model->n_hosts; b++)
            if (rng_chance(rng, 0.5))
                *ARRAY_PUSH(model->latencies, model->n_latencies) =
                    (struct latency){(int)a, (int)b, rng_int(rng, 10, 100000)};
    if (rng_chance(rng, 0.3)) {
        struct channel *channel = ARRAY_PUSH(model->channels, model->n_channels);
        *channel = (struct channel){.a = (int)rng_below(rng, model->n_services),
                                    .b = (int)rng_below(rng, model->n_services),
                                    .priority = rng_int(rng, -1, 100),
                                    .bytes_per_s = rng_chance(rng, 0.5) ? -1 : 1000 * rng_real(rng)};
        if (rng_chance(rng, 0.5))
            channel->type = mem_strdup("HTTPRoute");
    }
    if (rng_chance(rng, 0.3)) {
        struct network_cost *cost = ARRAY_PUSH(model->zone_costs, model->n_zone_costs);
        *cost = (struct network_cost){mem_strdup("z1"), mem_strdup("z2"), rng_int(rng, 0, 100),
                                      rng_int(rng, -1, 1000)};
    }
}

struct model *gen_model(struct rng *rng, const struct gen_options *options)
{
    struct model *model = model_new();

    gen_hosts(rng, model, options);
    gen_services(rng, model, options);
    gen_instances(rng, model, options);
    if (options->rules)
        gen_rules(rng, model);
    gen_place(rng, model, options->fill);
    gen_traffic(rng, model, options->affinities && rng_chance(rng, 0.5));
    gen_network(rng, model);
    if (rng_chance(rng, 0.5)) {
        model->from_ms = 1000;
        model->to_ms = 61000;
        model->taken_ms = 61234;
    }
    return model;
}

static bool end_fits(const struct model *model, const struct load *used, int host,
                     const struct load *less, const struct load *more)
{
    struct load offer = host_offer(&model->hosts[host]), rest = used[host];

    load_sub(&rest, less);
    return model->hosts[host].schedulable && load_fits(&offer, &rest, more, NULL);
}

/* Swaps the hosts of two instances where both fit. */
static void try_swap(const struct model *model, struct load *used, int *placement, size_t i,
                     size_t j)
{
    struct load a = instance_load(&model->instances[i]), b = instance_load(&model->instances[j]);
    int x = placement[i], y = placement[j];

    if (x < 0 || y < 0 || x == y || !end_fits(model, used, y, &b, &a) ||
        !end_fits(model, used, x, &a, &b))
        return;
    load_sub(&used[x], &a);
    load_add(&used[x], &b);
    load_sub(&used[y], &b);
    load_add(&used[y], &a);
    placement[i] = y;
    placement[j] = x;
}

static void try_move(const struct model *model, struct load *used, int *placement, size_t i,
                     int target)
{
    const struct load nothing = {0, 0, 0, 0, 0};
    struct load need = instance_load(&model->instances[i]);

    if (placement[i] == target || !end_fits(model, used, target, &nothing, &need))
        return;
    if (placement[i] >= 0)
        load_sub(&used[placement[i]], &need);
    load_add(&used[target], &need);
    placement[i] = target;
}

int *gen_placement(struct rng *rng, const struct model *model, size_t tries)
{
    int *placement = model_placement(model);
    AUTO_FREE struct load *used = model_host_loads(model);

    for (size_t t = 0; t < tries; t++) {
        size_t i = rng_below(rng, model->n_instances), j = rng_below(rng, model->n_instances);
        if (instance_fixed_why(model, (int)i, false) || instance_fixed_why(model, (int)j, false))
            continue;
        if (rng_chance(rng, 0.5))
            try_swap(model, used, placement, i, j);
        else
            try_move(model, used, placement, i, (int)rng_below(rng, model->n_hosts));
    }
    return placement;
}
