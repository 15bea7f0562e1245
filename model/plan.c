/* plan.c - moves and plans: making, freeing, and filling from a final placement. */
#include "model/plan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/plan_internal.h"

struct plan *plan_new(void)
{
    struct plan *plan = mem_alloc(sizeof *plan);

    plan->coverage = -1;
    plan->hosts_bound = -1;
    plan->affinity_bound_hosts = NAN;
    plan->status = PLAN_FEASIBLE;
    return plan;
}

void move_wipe(struct move *move)
{
    free(move->sources);
    free(move->targets);
    move->sources = move->targets = NULL;
    move->n_sources = move->n_targets = 0;
}

static void plan_drop_moves(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_moves; i++)
        move_wipe(&plan->moves[i]);
    free(plan->moves);
    plan->moves = NULL;
    plan->n_moves = 0;
    for (size_t i = 0; i < plan->n_cycles; i++)
        free(plan->cycles[i]);
    free(plan->cycles);
    plan->cycles = NULL;
    plan->n_cycles = 0;
    plan->unordered = false;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    plan_drop_moves(plan);
    for (size_t i = 0; i < plan->n_discarded; i++)
        free(plan->discarded[i].why);
    free(plan->discarded);
    free(plan->frontier);
    free(plan->requested);
    free(plan->planner);
    free(plan->why);
    free(plan->placement);
    free(plan);
}

double plan_gap(const struct plan *plan)
{
    return (plan->affinity_bound - plan->affinity_after) / fmax(fabs(plan->affinity_bound), 1e-12);
}

double model_coverage(const struct model *model)
{
    double known = 0;

    if (!model->traffic.given)
        return -1;
    for (size_t i = 0; i < model->n_messages; i++)
        if (model->messages[i].src != model->messages[i].dst)
            known += (double)model->messages[i].count;
    double all = known + (double)model->traffic.unmapped_count;
    return all > 0 ? known / all : 1;
}

void plan_add_cycle(struct plan *plan, const int *seqs, size_t n)
{
    int *cycle = mem_array(n + 1, sizeof *cycle);

    memcpy(cycle, seqs, n * sizeof *cycle);
    *ARRAY_PUSH(plan->cycles, plan->n_cycles) = cycle;
    plan->unordered = true;
}

/* An order is looked for only where the end state is possible at all. */
static int placement_possible(const struct model *model, const int *placement, struct err *err)
{
    AUTO_FREE struct load *loads = mem_array(model->n_hosts, sizeof *loads);
    const struct load nothing = {0, 0, 0, 0, 0};

    for (size_t i = 0; i < model->n_instances; i++) {
        struct load load = instance_load(&model->instances[i]);
        if (placement[i] >= 0)
            load_add(&loads[placement[i]], &load);
    }
    for (size_t i = 0; i < model->n_instances; i++) {
        const struct instance *instance = &model->instances[i];
        const char *why = "it is not schedulable";
        if (placement[i] == instance->host || placement[i] < 0)
            continue;
        const struct host *host = &model->hosts[placement[i]];
        struct load offer = host_offer(host);
        if (!host->schedulable || !load_fits(&offer, &loads[placement[i]], &nothing, &why))
            return err_set(err, ERR_INFEASIBLE, "instance %s cannot go to host %s: %s",
                           instance->name, host->name, why);
    }
    return 0;
}

int plan_fill(struct plan *plan, const struct model *model, const struct affinity *rows, size_t n,
              const int *placement, struct err *err)
{
    plan_drop_moves(plan);
    if (placement_possible(model, placement, err) < 0)
        return -1;
    int rc = plan->granularity == PER_SERVICE
                 ? plan_order_services(plan, model, placement, err)
                 : plan_order_instances(plan, model, placement, err);
    if (rc < 0) {
        plan_drop_moves(plan);
        return -1;
    }
    if (plan->granularity == PER_INSTANCE)
        plan_order_search(plan, model);
    plan_measure(plan, model, rows, n);
    return 0;
}
