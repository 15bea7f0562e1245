/* plan_internal.h - what the plan_*.c files share. */
#ifndef REMAP_MODEL_PLAN_INTERNAL_H
#define REMAP_MODEL_PLAN_INTERNAL_H

#include "model/plan.h"
#include "model/rules.h"

struct plan_walk {
    const struct model *model;
    struct members members;
    int *placement;
    struct load *used;
    struct load *offers;
    struct rule_tally *tally;
};

/* Moves instance i, whatever fits. */
void walk_step(struct plan_walk *walk, int instance, int target);

/* Hosts that the replicas of move->service get, in the order of the service's members; `out` has
 * room for all of them. False when the targets do not sum to the number of replicas. */
bool service_assign(const struct plan_walk *walk, const struct move *move, int *out);

/* The two orders of plan_fill. Moves are pushed to plan->moves with seq, sources, targets. */
int plan_order_instances(struct plan *plan, const struct model *model, const int *placement,
                         struct err *err);
int plan_order_services(struct plan *plan, const struct model *model, const int *placement,
                        struct err *err);

/* Where plan_order_instances() ended unordered with few moves, looks for an order in all ways. */
void plan_order_search(struct plan *plan, const struct model *model);

/* Appends a zero-terminated list of seqs to plan->cycles. */
void plan_add_cycle(struct plan *plan, const int *seqs, size_t n);

#endif
