/* plan_measure.c - scores and gains of a plan whose moves are set: each gain costs the rows of what
 * moves, so that a plan costs O(rows + replicas + rows of the moved). */
#include <math.h>
#include <stdlib.h>

#include "model/plan_internal.h"
#include "model/spread.h"

/* Rows of each end: those of e are of[first[e]] … of[first[e + 1] - 1]. */
struct adjacency {
    size_t *first, *of;
};

static struct adjacency adjacency_new(const struct affinity *rows, size_t n, enum level level,
                                      size_t ends)
{
    struct adjacency adjacency;
    size_t total = 0;

    adjacency.first = mem_array(ends + 2, sizeof *adjacency.first);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].level != level)
            continue;
        adjacency.first[rows[i].a + 2]++;
        adjacency.first[rows[i].b + 2]++;
        total += 2;
    }
    for (size_t e = 2; e <= ends; e++)
        adjacency.first[e] += adjacency.first[e - 1];
    adjacency.of = mem_array(total, sizeof *adjacency.of);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].level != level)
            continue;
        adjacency.of[adjacency.first[rows[i].a + 1]++] = i;
        adjacency.of[adjacency.first[rows[i].b + 1]++] = i;
    }
    return adjacency;
}

static void adjacency_wipe(struct adjacency *adjacency)
{
    free(adjacency->first);
    free(adjacency->of);
}

struct measure {
    const struct affinity *rows;
    struct adjacency instances, services;
    struct plan_walk *walk;
    struct spread *spread;
};

/* Change of the score when one instance goes from source to target. */
static double step_gain(struct measure *m, int instance, int source, int target)
{
    const int *placement = m->walk->placement;
    int service = m->walk->model->instances[instance].service;
    double gain = 0;

    for (size_t k = m->instances.first[instance]; k < m->instances.first[instance + 1]; k++) {
        const struct affinity *row = &m->rows[m->instances.of[k]];
        int other = placement[row->a == instance ? row->b : row->a];
        if (row->a == row->b || other < 0)
            continue;
        gain += (other == target ? row->degree : 0) - (other == source ? row->degree : 0);
    }
    for (int after = 0; after <= 1; after++) {
        for (size_t k = m->services.first[service]; k < m->services.first[service + 1]; k++) {
            const struct affinity *row = &m->rows[m->services.of[k]];
            double here = source < 0 ? 0 : spread_share_at(m->spread, row->a, row->b, source);
            double there = target < 0 ? 0 : spread_share_at(m->spread, row->a, row->b, target);
            if (row->a != row->b)
                gain += (after ? 1 : -1) * row->degree * (here + there);
        }
        if (!after)
            spread_move(m->spread, service, source, target);
    }
    return gain;
}

static double measure_step(struct measure *m, int instance, int target)
{
    int source = m->walk->placement[instance];

    if (source == target)
        return 0;
    double gain = step_gain(m, instance, source, target);
    walk_step(m->walk, instance, target);
    return gain;
}

static double measure_service(struct measure *m, const struct move *move)
{
    const struct members *members = &m->walk->members;
    int first = members->first[move->service], n = members->first[move->service + 1] - first;
    AUTO_FREE int *hosts = mem_array((size_t)n, sizeof *hosts);
    double gain = 0;

    if (!service_assign(m->walk, move, hosts))
        return 0;
    for (int i = 0; i < n; i++)
        gain += measure_step(m, members->of[first + i], hosts[i]);
    return gain;
}

/* What restarts: an instance that had a host, or every placed replica of a service whose template
 * changes (design.md 7). */
static int64_t move_restarts(const struct plan *plan, const struct move *move)
{
    int64_t n = 0;

    if (plan->granularity == PER_INSTANCE)
        return move->source >= 0;
    for (size_t i = 0; i < move->n_sources; i++)
        n += move->sources[i].count;
    return n;
}

void plan_measure(struct plan *plan, const struct model *model, const struct affinity *rows,
                  size_t n)
{
    AUTO(plan_walk) struct plan_walk *walk = plan_walk_new(model);
    AUTO(spread) struct spread *spread = spread_new(model, walk->placement);
    struct measure m = {rows, adjacency_new(rows, n, LEVEL_INSTANCE, model->n_instances),
                        adjacency_new(rows, n, LEVEL_SERVICE, model->n_services), walk, spread};

    plan->affinity_before = placement_score(model, rows, n, walk->placement);
    plan->hosts_before = placement_hosts_used(model, walk->placement);
    plan->restarts = 0;
    for (size_t i = 0; i < plan->n_moves; i++) {
        struct move *move = &plan->moves[i];
        double gain = plan->granularity == PER_SERVICE
                          ? measure_service(&m, move)
                          : measure_step(&m, move->instance, move->target);
        move->gain = fabs(gain) < 1e-15 ? 0 : gain; /* rounding left over from equal sums */
        move->restarts = move_restarts(plan, move);
        plan->restarts += move->restarts;
    }
    plan->affinity_after = placement_score(model, rows, n, walk->placement);
    plan->hosts_after = placement_hosts_used(model, walk->placement);
    plan->coverage = model_coverage(model);
    free(plan->placement);
    plan->placement = steal(walk->placement);
    plan->n_placement = model->n_instances;
    adjacency_wipe(&m.instances);
    adjacency_wipe(&m.services);
}
