/* plan_check.c - the promises of contract.md 3, and applying moves one after the other. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/plan_internal.h"

struct plan_walk *plan_walk_new(const struct model *model)
{
    struct plan_walk *walk = mem_alloc(sizeof *walk);

    walk->model = model;
    walk->members = model_members(model);
    walk->placement = model_placement(model);
    walk->used = model_host_loads(model);
    walk->offers = mem_array(model->n_hosts, sizeof *walk->offers);
    for (size_t h = 0; h < model->n_hosts; h++)
        walk->offers[h] = host_offer(&model->hosts[h]);
    walk->tally = rule_tally_new(model, NULL);
    return walk;
}

void plan_walk_free(struct plan_walk *walk)
{
    if (!walk)
        return;
    members_wipe(&walk->members);
    free(walk->placement);
    free(walk->used);
    free(walk->offers);
    rule_tally_free(walk->tally);
    free(walk);
}

const int *plan_walk_placement(const struct plan_walk *walk)
{
    return walk->placement;
}

const struct load *plan_walk_loads(const struct plan_walk *walk)
{
    return walk->used;
}

void walk_step(struct plan_walk *walk, int instance, int target)
{
    const struct instance *it = &walk->model->instances[instance];
    struct load load = instance_load(it);
    int source = walk->placement[instance];

    if (source >= 0) {
        load_sub(&walk->used[source], &load);
        rule_tally_add(walk->tally, it->service, source, -1);
    }
    if (target >= 0) {
        load_add(&walk->used[target], &load);
        rule_tally_add(walk->tally, it->service, target, 1);
    }
    walk->placement[instance] = target;
}

static const char *instance_problem(const struct plan_walk *walk, int instance, int target)
{
    const struct instance *it = &walk->model->instances[instance];
    struct load load = instance_load(it);
    int source = walk->placement[instance];
    const char *why = NULL;

    if (!walk->model->hosts[target].schedulable)
        return "not schedulable";
    if (!load_fits(&walk->offers[target], &walk->used[target], &load, &why))
        return why;
    /* The tally is put back as it was; asked while the instance is nowhere. */
    if (source >= 0)
        rule_tally_add(walk->tally, it->service, source, -1);
    why = rule_tally_problem(walk->tally, it->service, target);
    if (source >= 0)
        rule_tally_add(walk->tally, it->service, source, 1);
    return why;
}

/* The largest in each dimension: any replica may be the extra one. */
static struct load service_largest(const struct plan_walk *walk, int service)
{
    struct load most = {0, 0, 0, 0, 1};

    for (int m = walk->members.first[service]; m < walk->members.first[service + 1]; m++) {
        struct load load = instance_load(&walk->model->instances[walk->members.of[m]]);
        most.cpu_millis = load.cpu_millis > most.cpu_millis ? load.cpu_millis : most.cpu_millis;
        most.mem_bytes = load.mem_bytes > most.mem_bytes ? load.mem_bytes : most.mem_bytes;
        if (load.cpu_request_millis > most.cpu_request_millis)
            most.cpu_request_millis = load.cpu_request_millis;
        if (load.mem_request_bytes > most.mem_request_bytes)
            most.mem_request_bytes = load.mem_request_bytes;
    }
    return most;
}

/* Load of the service's replicas on `host` when they are where `hosts` says (NULL: now). */
static struct load service_load_on(const struct plan_walk *walk, int service, const int *hosts,
                                   int host)
{
    int first = walk->members.first[service];
    struct load sum = {0, 0, 0, 0, 0};

    for (int m = first; m < walk->members.first[service + 1]; m++) {
        int i = walk->members.of[m];
        if ((hosts ? hosts[m - first] : walk->placement[i]) == host) {
            struct load load = instance_load(&walk->model->instances[i]);
            load_add(&sum, &load);
        }
    }
    return sum;
}

static const char *service_room(const struct plan_walk *walk, int service, const int *hosts,
                                int host)
{
    struct load now = service_load_on(walk, service, NULL, host);
    struct load then = service_load_on(walk, service, hosts, host);
    struct load extra = service_largest(walk, service), used = walk->used[host];
    const struct load *offer = &walk->offers[host];
    const char *why = NULL;

    if (!walk->model->hosts[host].schedulable)
        return "not schedulable";
    if (now.pods > 0 && !load_fits(offer, &used, &extra, &why))
        return why;
    load_sub(&used, &now);
    if (now.pods > 0)
        load_add(&then, &extra);
    return load_fits(offer, &used, &then, &why) ? NULL : why;
}

/* Replicas are taken away all and come back one by one; then all is as before. */
static const char *service_rules(const struct plan_walk *walk, int service, const int *hosts,
                                 int *refuser)
{
    int first = walk->members.first[service], end = walk->members.first[service + 1], done = first;
    const char *why = NULL;

    for (int m = first; m < end; m++)
        if (walk->placement[walk->members.of[m]] >= 0)
            rule_tally_add(walk->tally, service, walk->placement[walk->members.of[m]], -1);
    for (; done < end && !why; done++) {
        why = rule_tally_problem(walk->tally, service, hosts[done - first]);
        if (why)
            *refuser = hosts[done - first];
        rule_tally_add(walk->tally, service, hosts[done - first], 1);
    }
    for (int m = first; m < done; m++)
        rule_tally_add(walk->tally, service, hosts[m - first], -1);
    for (int m = first; m < end; m++)
        if (walk->placement[walk->members.of[m]] >= 0)
            rule_tally_add(walk->tally, service, walk->placement[walk->members.of[m]], 1);
    return why;
}

const char *plan_walk_problem(const struct plan_walk *walk, const struct move *move, int *host)
{
    *host = move->target;
    if (move->instance >= 0)
        return instance_problem(walk, move->instance, move->target);

    int first = walk->members.first[move->service];
    size_t n = (size_t)(walk->members.first[move->service + 1] - first);
    AUTO_FREE int *hosts = mem_array(n, sizeof *hosts);
    if (!service_assign(walk, move, hosts)) {
        *host = move->n_targets ? move->targets[0].host : -1;
        return "target counts are not the number of replicas";
    }
    for (size_t i = 0; i < move->n_targets; i++) {
        *host = move->targets[i].host;
        const char *why = service_room(walk, move->service, hosts, *host);
        if (why)
            return why;
    }
    return service_rules(walk, move->service, hosts, host);
}

void plan_walk_apply(struct plan_walk *walk, const struct move *move)
{
    if (move->instance >= 0) {
        walk_step(walk, move->instance, move->target);
        return;
    }
    int first = walk->members.first[move->service];
    size_t n = (size_t)(walk->members.first[move->service + 1] - first);
    AUTO_FREE int *hosts = mem_array(n, sizeof *hosts);
    if (!service_assign(walk, move, hosts))
        return;
    for (size_t i = 0; i < n; i++)
        walk_step(walk, walk->members.of[first + (int)i], hosts[i]);
}

static const char *move_subject(const struct model *model, const struct move *move)
{
    if (move->instance >= 0)
        return model->instances[move->instance].name;
    return model->services[move->service].name;
}

static int move_error(const struct model *model, const struct move *move, struct err *err,
                      const char *what, int host)
{
    const char *at = host >= 0 ? " " : "", *name = host >= 0 ? model->hosts[host].name : "";

    return err_set(err, ERR_INPUT, "move %d (%s): %s%s%s", move->seq, move_subject(model, move),
                   what, at, name);
}

static bool host_known(const struct model *model, int host)
{
    return host >= 0 && (size_t)host < model->n_hosts;
}

/* Hosts ascending, counts above 0, sum in *sum. */
static bool counts_valid(const struct model *model, const struct host_count *counts, size_t n,
                         int64_t *sum)
{
    *sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (!host_known(model, counts[i].host) || counts[i].count < 1 ||
            counts[i].count > MODEL_MAX_INSTANCES || (i && counts[i - 1].host >= counts[i].host))
            return false;
        *sum += counts[i].count;
    }
    return true;
}

static int service_shape(const struct plan_walk *walk, const struct move *move, struct err *err)
{
    const struct model *model = walk->model;
    int first = walk->members.first[move->service], end = walk->members.first[move->service + 1];
    int64_t sources, targets, least = INT64_MAX, most = 0;

    if (!counts_valid(model, move->sources, move->n_sources, &sources) ||
        !counts_valid(model, move->targets, move->n_targets, &targets))
        return move_error(model, move, err, "counts must be above 0, one per host, in host order",
                          -1);
    if (targets != end - first)
        return move_error(model, move, err, "target counts are not the number of replicas", -1);
    for (size_t i = 0; i < move->n_targets; i++) {
        least = move->targets[i].count < least ? move->targets[i].count : least;
        most = move->targets[i].count > most ? move->targets[i].count : most;
    }
    if (most - least > 1)
        return move_error(model, move, err, "target counts differ by more than one", -1);
    for (size_t i = 0; i < move->n_sources; i++) {
        struct load on = service_load_on(walk, move->service, NULL, move->sources[i].host);
        if (on.pods != move->sources[i].count)
            return move_error(model, move, err, "source count is not what is on host",
                              move->sources[i].host);
    }
    for (int m = first; m < end; m++)
        sources -= walk->placement[walk->members.of[m]] >= 0;
    if (sources != 0)
        return move_error(model, move, err, "sources do not name all placed replicas", -1);
    return 0;
}

static int move_shape(const struct plan_walk *walk, enum granularity granularity,
                      const struct move *move, struct err *err)
{
    const struct model *model = walk->model;

    if (move->service < 0 || (size_t)move->service >= model->n_services)
        return err_set(err, ERR_INPUT, "move %d: no such service", move->seq);
    if (granularity == PER_SERVICE) {
        if (move->instance != -1)
            return err_set(err, ERR_INPUT, "move %d: names an instance in a plan of services",
                           move->seq);
        return service_shape(walk, move, err);
    }
    if (move->instance < 0 || (size_t)move->instance >= model->n_instances)
        return err_set(err, ERR_INPUT, "move %d: no such instance", move->seq);
    if (model->instances[move->instance].service != move->service)
        return move_error(model, move, err, "is of another service", -1);
    if (!host_known(model, move->target))
        return move_error(model, move, err, "has no target", -1);
    if (walk->placement[move->instance] != move->source)
        return move_error(model, move, err, "is not on its source", -1);
    if (move->source == move->target)
        return move_error(model, move, err, "source and target are one host", move->target);
    return 0;
}

static int move_allowed(const struct plan_walk *walk, const struct move *move, bool move_stateful,
                        struct err *err)
{
    const char *why;

    /* What is placed nowhere yet is not moved but placed (contract.md 3), whatever it is. */
    if (move->instance >= 0) {
        if (move->source < 0)
            return 0;
        why = instance_fixed_why(walk->model, move->instance, move_stateful);
        return why ? move_error(walk->model, move, err, why, -1) : 0;
    }
    for (int m = walk->members.first[move->service]; m < walk->members.first[move->service + 1];
         m++) {
        if (walk->placement[walk->members.of[m]] < 0)
            continue;
        why = instance_fixed_why(walk->model, walk->members.of[m], move_stateful);
        if (why)
            return move_error(walk->model, move, err, why, -1);
    }
    return 0;
}

static int moves_check(const struct plan *plan, struct plan_walk *walk, bool move_stateful,
                       struct err *err)
{
    const struct model *model = walk->model;
    bool services = plan->granularity == PER_SERVICE;
    AUTO_FREE bool *moved =
        mem_array(services ? model->n_services : model->n_instances, sizeof *moved);
    double gains = 0;
    int64_t restarts = 0;

    for (size_t i = 0; i < plan->n_moves; i++) {
        const struct move *move = &plan->moves[i];
        int host;
        if (move->seq < 1 || (i && move->seq <= plan->moves[i - 1].seq))
            return err_set(err, ERR_INPUT, "move %d: seqs must ascend from 1", move->seq);
        if (move_shape(walk, plan->granularity, move, err) < 0 ||
            move_allowed(walk, move, move_stateful, err) < 0)
            return -1;
        bool *twice = &moved[services ? move->service : move->instance];
        if (*twice)
            return move_error(model, move, err, "moves twice", -1);
        *twice = true;
        const char *why = plan->unordered ? NULL : plan_walk_problem(walk, move, &host);
        if (why) {
            AUTO_FREE char *what = mem_printf("no room for it (%s) on host", why);
            return move_error(model, move, err, what, host);
        }
        plan_walk_apply(walk, move);
        if (!isfinite(move->gain))
            return move_error(model, move, err, "gain is not a number", -1);
        gains += move->gain;
        restarts += move->restarts;
    }
    if (restarts != plan->restarts)
        return err_set(err, ERR_INPUT, "restarts is %" PRId64 ", the moves make it %" PRId64,
                       plan->restarts, restarts);
    /* 1e-6: sums of 10^5 gains near 1 round by less */
    if (!(fabs(gains - (plan->affinity_after - plan->affinity_before)) <=
          1e-6 * fmax(1, fabs(plan->affinity_before))))
        return err_set(err, ERR_INPUT, "gains sum to %.9g, affinity changes by %.9g", gains,
                       plan->affinity_after - plan->affinity_before);
    return 0;
}

/* The moves of an unordered plan must at least end within capacity on the hosts that receive. */
static int end_check(const struct plan *plan, const struct plan_walk *walk, struct err *err)
{
    const struct model *model = walk->model;
    const struct load nothing = {0, 0, 0, 0, 0};

    for (size_t i = 0; i < model->n_instances; i++) {
        int host = walk->placement[i];
        const char *why = "not schedulable";
        if (host < 0 || host == model->instances[i].host)
            continue;
        if (!model->hosts[host].schedulable ||
            !load_fits(&walk->offers[host], &walk->used[host], &nothing, &why))
            return err_set(err, ERR_INPUT, "after all moves host %s is over or closed (%s)",
                           model->hosts[host].name, why);
    }
    AUTO_FREE int *before = model_placement(model);
    if (model_rules_kept(model, before, walk->placement, err) < 0) {
        err->kind = ERR_INPUT;
        return err_prefix(err, "after all moves");
    }
    if (plan->hosts_before != placement_hosts_used(model, before) ||
        plan->hosts_after != placement_hosts_used(model, walk->placement))
        return err_set(err, ERR_INPUT, "hosts_before or hosts_after is not what the moves make");
    return 0;
}

/* Also which replica is where at service granularity: service_assign decides that, as the planner's
 * own plan_measure did. */
static int placement_check(const struct plan *plan, const struct plan_walk *walk, struct err *err)
{
    const struct model *model = walk->model;

    if (plan->n_placement != model->n_instances)
        return err_set(err, ERR_INPUT, "placement has %zu instances, the model %zu",
                       plan->n_placement, model->n_instances);
    for (size_t i = 0; i < model->n_instances; i++)
        if (plan->placement[i] != walk->placement[i])
            return err_set(err, ERR_INPUT, "placement of %s is not where the moves put it",
                           model->instances[i].name);
    return 0;
}

int plan_check(const struct plan *plan, const struct model *model, bool move_stateful,
               struct err *err)
{
    AUTO(plan_walk) struct plan_walk *walk = plan_walk_new(model);

    if (plan->n_moves && (plan->status == PLAN_INFEASIBLE || plan->status == PLAN_TIMEOUT))
        return err_set(err, ERR_INPUT, "a plan without a result holds moves");
    if (moves_check(plan, walk, move_stateful, err) < 0 || end_check(plan, walk, err) < 0)
        return -1;
    return placement_check(plan, walk, err);
}

/* What a move takes for granted about where things are. */
static int move_still_fits(const struct plan_walk *walk, const struct move *move, struct err *err)
{
    enum granularity granularity = move->instance >= 0 ? PER_INSTANCE : PER_SERVICE;

    if (move_shape(walk, granularity, move, err) == 0)
        return 0;
    err->kind = ERR_CONFLICT;
    return -1;
}

int plan_apply(const struct plan *plan, struct model *model, size_t n, struct err *err)
{
    AUTO(plan_walk) struct plan_walk *walk = plan_walk_new(model);
    int rc = 0;

    for (size_t i = 0; i < plan->n_moves && i < n && rc == 0; i++) {
        rc = move_still_fits(walk, &plan->moves[i], err);
        if (rc == 0)
            plan_walk_apply(walk, &plan->moves[i]);
    }
    for (size_t i = 0; i < model->n_instances; i++)
        model->instances[i].host = walk->placement[i];
    return rc;
}
