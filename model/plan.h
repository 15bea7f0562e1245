/* plan.h - moves and plans (contract.md 3), their check and their application to a model. */
#ifndef REMAP_MODEL_PLAN_H
#define REMAP_MODEL_PLAN_H

#include "model/affinity.h"
#include "model/model.h"

enum granularity { PER_INSTANCE, PER_SERVICE };
enum objective { OBJECTIVE_AFFINITY, OBJECTIVE_HOSTS };
enum plan_status { PLAN_OPTIMAL, PLAN_FEASIBLE, PLAN_INFEASIBLE, PLAN_TIMEOUT };

struct host_count {
    int host;
    int64_t count;
};

struct move {
    int seq; /* from 1 */
    int service;
    int instance; /* -1 at service granularity */
    int source;   /* host; -1: was unplaced, or service granularity */
    int target;   /* host; -1 at service granularity */
    struct host_count *sources, *targets; /* service granularity, host order */
    size_t n_sources, n_targets;
    int64_t restarts; /* replicas that restart */
    double gain;      /* change of the score after the moves before it */
};

struct discarded {
    enum level level;
    int a, b;
    double degree;
    char *why;
};

/* What at most so many restarts buy. */
struct frontier_point {
    int64_t restarts;
    double affinity;
    int64_t hosts;
};

struct plan {
    char *requested, *planner, *why;
    enum objective objective;
    enum granularity granularity;
    enum plan_status status;
    bool cut; /* the clock cut a search */
    int64_t iterations; /* what a cut search did, for replay; 0 otherwise */
    double affinity_before, affinity_after;
    bool has_bound;
    double affinity_bound;
    double affinity_bound_hosts; /* of placements on at most hosts_after hosts; NAN: none */
    int64_t hosts_before, hosts_after, hosts_bound; /* hosts_bound -1: null */
    int64_t restarts;
    double coverage; /* < 0: null */
    int64_t solve_ms;
    struct move *moves;
    size_t n_moves;
    int *placement; /* after all moves, by instance index */
    size_t n_placement;
    struct discarded *discarded;
    size_t n_discarded;
    bool unordered;
    int **cycles; /* each a list of seqs, 0-terminated */
    size_t n_cycles;
    struct frontier_point *frontier; /* by ascending restarts; empty unless asked for */
    size_t n_frontier;
};

struct plan *plan_new(void);
void plan_free(struct plan *plan);
AUTO_DEFINE(plan)
void move_wipe(struct move *move);

double plan_gap(const struct plan *plan); /* (bound − after) / max(|bound|, 1e-12) */

/* What planners fill from a final placement when they do not order moves themselves: moves from the
 * model's placement to `placement` in an order whose every prefix respects capacities and rules
 * (greedy, in name order among those possible now), `unordered` and `cycles` where none exists;
 * gains; scores; host counts; restarts; coverage. plan->granularity says which moves: PER_SERVICE
 * groups them per service. ERR_INFEASIBLE when `placement` itself puts something on a host that is
 * not schedulable or too small, or (PER_SERVICE) spreads a service unevenly. */
int plan_fill(struct plan *plan, const struct model *model, const struct affinity *rows, size_t n,
              const int *placement, struct err *err);

/* Recomputes scores, gains, host counts, restarts, coverage and the final placement of a plan whose
 * moves are set in order and fit the model. */
void plan_measure(struct plan *plan, const struct model *model, const struct affinity *rows,
                  size_t n);

/* Every promise of contract.md 3 against the model it was made from: sources are where the model
 * has them, no instance twice, targets schedulable and within capacity and rules in every prefix
 * (unless unordered), nothing fixed moves, final placement as stated. ERR_INPUT names the move. */
int plan_check(const struct plan *plan, const struct model *model, bool move_stateful,
               struct err *err);

/* Applies the first n moves (SIZE_MAX: all) to the model's instances. ERR_CONFLICT when a source is
 * not where the move says; the model keeps the moves before it. */
int plan_apply(const struct plan *plan, struct model *model, size_t n, struct err *err);

/* A placement that moves are tried on and applied to, one after the other. */
struct plan_walk;
struct plan_walk *plan_walk_new(const struct model *model); /* borrows the model */
void plan_walk_free(struct plan_walk *walk);
AUTO_DEFINE(plan_walk)
/* NULL when the target (each target) of the move is schedulable and takes it now: capacity in every
 * dimension, apart, allowed, spread; else a static text, and *host the one that refuses. At service
 * granularity all replicas restart with one extra at a time (a surge), so a host that keeps
 * replicas has room for one more than the larger of what it has and what it gets. */
const char *plan_walk_problem(const struct plan_walk *walk, const struct move *move, int *host);
/* Does it, whether it fits or not. At service granularity replicas that can stay do, the others go
 * to the targets in host order, by name. */
void plan_walk_apply(struct plan_walk *walk, const struct move *move);
/* Host of each instance after what was applied; lives as long as the walk. */
const int *plan_walk_placement(const struct plan_walk *walk);
const struct load *plan_walk_loads(const struct plan_walk *walk); /* used, by host */

/* Coverage = known / (known + unmapped) by count; < 0 when the model has no traffic member. */
double model_coverage(const struct model *model);

#endif
