/* plan_worth.c - see plan_worth.h. */
#include "model/plan_worth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- parts of a plan --- */

static void move_copy(struct move *to, const struct move *from)
{
    *to = *from;
    to->sources =
        from->n_sources ? mem_dup(from->sources, from->n_sources * sizeof *from->sources) : NULL;
    to->targets =
        from->n_targets ? mem_dup(from->targets, from->n_targets * sizeof *from->targets) : NULL;
}

/* True when every move of the 0-terminated list is in the plan. */
static bool cycle_whole(const struct plan *plan, const int *cycle)
{
    for (; *cycle; cycle++) {
        bool found = false;
        for (size_t i = 0; i < plan->n_moves && !found; i++)
            found = plan->moves[i].seq == *cycle;
        if (!found)
            return false;
    }
    return true;
}

static void copy_cycles(struct plan *to, const struct plan *from)
{
    for (size_t i = 0; i < from->n_cycles; i++) {
        size_t n = 0;
        if (!cycle_whole(to, from->cycles[i]))
            continue;
        while (from->cycles[i][n])
            n++;
        *ARRAY_PUSH(to->cycles, to->n_cycles) = mem_dup(from->cycles[i], (n + 1) * sizeof(int));
    }
    to->unordered = to->n_cycles > 0;
}

struct plan *plan_subset(const struct plan *plan, const struct model *model,
                         const struct affinity *rows, size_t n_rows,
                         bool (*keep)(void *ctx, const struct move *move), void *ctx)
{
    struct plan *out = plan_new();
    out->requested = mem_strdup(plan->requested);
    out->planner = mem_strdup(plan->planner);
    out->why = mem_strdup(plan->why);
    out->objective = plan->objective;
    out->granularity = plan->granularity;
    out->status = PLAN_FEASIBLE; /* the proof was of the whole */
    out->hosts_bound = plan->hosts_bound;
    out->coverage = plan->coverage;
    out->has_bound = plan->has_bound;
    out->affinity_bound = plan->affinity_bound;
    for (size_t i = 0; i < plan->n_moves; i++)
        if (keep(ctx, &plan->moves[i]))
            move_copy(ARRAY_PUSH(out->moves, out->n_moves), &plan->moves[i]);
    copy_cycles(out, plan);
    plan_measure(out, model, rows, n_rows);
    return out;
}

bool plan_in_cycle(const struct plan *plan, int seq)
{
    for (size_t k = 0; k < plan->n_cycles; k++)
        for (const int *s = plan->cycles[k]; *s; s++)
            if (*s == seq)
                return true;
    return false;
}

/* --- what each move adds to the score --- */

struct judged {
    const struct plan *plan;
    const struct model *model;
    const struct affinity *rows;
    size_t n_rows;
};

/* The moves by what they move, to find them from a row of affinities. */
struct movers {
    int *of_instance;  /* index of its move, -1 none */
    int *first, *next; /* of each service, a list of moves */
};

static struct movers movers_new(const struct judged *j)
{
    struct movers m = {mem_array(j->model->n_instances + 1, sizeof(int)),
                       mem_array(j->model->n_services + 1, sizeof(int)),
                       mem_array(j->plan->n_moves + 1, sizeof(int))};
    memset(m.of_instance, -1, (j->model->n_instances + 1) * sizeof(int));
    memset(m.first, -1, (j->model->n_services + 1) * sizeof(int));
    for (size_t k = 0; k < j->plan->n_moves; k++) {
        const struct move *move = &j->plan->moves[k];
        if (move->instance >= 0)
            m.of_instance[move->instance] = (int)k;
        m.next[k] = m.first[move->service];
        m.first[move->service] = (int)k;
    }
    return m;
}

/* Adds what the row would lose without move k. */
static void add_loss(const struct judged *j, const struct affinity *row, int k, int *placement,
                     double *value)
{
    if (k < 0 || j->plan->moves[k].instance < 0)
        return;
    const struct move *move = &j->plan->moves[k];
    value[k] += placement_score(j->model, row, 1, placement);
    placement[move->instance] = move->source;
    value[k] -= placement_score(j->model, row, 1, placement);
    placement[move->instance] = move->target;
}

static bool touches(const struct model *model, const struct affinity *row, int service)
{
    bool single = row->level == LEVEL_INSTANCE;
    return (single ? model->instances[row->a].service : row->a) == service ||
           (single ? model->instances[row->b].service : row->b) == service;
}

/* The same for the move of a whole service: its replicas stay where they are. */
static double service_loss(const struct judged *j, const struct members *members, int service,
                           int *placement)
{
    AUTO_FREE struct affinity *rows = mem_array(j->n_rows + 1, sizeof *rows);
    const int *first = &members->first[service];
    size_t n = 0;
    for (size_t r = 0; r < j->n_rows; r++)
        if (touches(j->model, &j->rows[r], service))
            rows[n++] = j->rows[r];
    double loss = placement_score(j->model, rows, n, placement);
    for (int m = first[0]; m < first[1]; m++)
        placement[members->of[m]] = j->model->instances[members->of[m]].host;
    loss -= placement_score(j->model, rows, n, placement);
    for (int m = first[0]; m < first[1]; m++)
        placement[members->of[m]] = j->plan->placement[members->of[m]];
    return loss;
}

/* What the score would lose if one of the moves were not made, for each. */
static double *losses(const struct judged *j)
{
    double *value = mem_array(j->plan->n_moves, sizeof *value);
    int *placement = mem_dup(j->plan->placement, j->plan->n_placement * sizeof *placement);
    struct movers m = movers_new(j);
    AUTO_MEMBERS struct members members = model_members(j->model);
    for (size_t k = 0; k < j->plan->n_moves; k++)
        if (j->plan->moves[k].instance < 0)
            value[k] = service_loss(j, &members, j->plan->moves[k].service, placement);
    for (size_t r = 0; r < j->n_rows; r++) {
        const struct affinity *row = &j->rows[r];
        if (row->level == LEVEL_INSTANCE) {
            add_loss(j, row, m.of_instance[row->a], placement, value);
            add_loss(j, row, m.of_instance[row->b], placement, value);
            continue;
        }
        for (int k = m.first[row->a]; k >= 0; k = m.next[k])
            add_loss(j, row, k, placement, value);
        for (int k = m.first[row->b]; k >= 0; k = m.next[k])
            add_loss(j, row, k, placement, value);
    }
    free(placement);
    free(m.of_instance);
    free(m.first);
    free(m.next);
    return value;
}

/* --- hosts that are freed --- */

/* Per host; NULL: no fewer hosts are in use after the plan than before. */
static bool *freed_hosts(const struct plan *plan, const struct model *model)
{
    if (plan->hosts_after >= plan->hosts_before)
        return NULL;
    bool *freed = mem_array(model->n_hosts + 1, sizeof *freed);
    for (size_t i = 0; i < model->n_instances; i++)
        if (model->instances[i].host >= 0)
            freed[model->instances[i].host] = true;
    for (size_t i = 0; i < plan->n_placement; i++)
        if (plan->placement[i] >= 0)
            freed[plan->placement[i]] = false;
    return freed;
}

static bool leaves_freed(const struct move *move, const bool *freed)
{
    bool leaves = move->source >= 0 && freed[move->source];
    for (size_t i = 0; i < move->n_sources; i++)
        leaves |= freed[move->sources[i].host];
    return leaves;
}

/* The moves that may go without costing a host, found by leaving out more and more of the poor. */
struct shedding {
    const struct judged *j;
    double *value;
    size_t *poor; /* moves, the poorest first */
    bool *gone;   /* by move */
};

static bool cycle_torn(const struct shedding *s)
{
    const struct plan *plan = s->j->plan;
    for (size_t c = 0; c < plan->n_cycles; c++) {
        bool some = false, all = true;
        for (const int *seq = plan->cycles[c]; *seq; seq++)
            for (size_t k = 0; k < plan->n_moves; k++)
                if (plan->moves[k].seq == *seq) {
                    some |= s->gone[k];
                    all &= s->gone[k];
                }
        if (some && !all)
            return true;
    }
    return false;
}

/* Do the others still fit in their order, keep the rules, and free as many hosts? */
static bool holds_without_gone(const struct shedding *s)
{
    const struct plan *plan = s->j->plan;
    const struct model *model = s->j->model;
    struct err broken = ERR_INIT;
    int host;
    if (cycle_torn(s))
        return false;
    AUTO(plan_walk) struct plan_walk *walk = plan_walk_new(model);
    for (size_t k = 0; k < plan->n_moves; k++) {
        const struct move *move = &plan->moves[k];
        if (s->gone[k])
            continue;
        if (!plan_in_cycle(plan, move->seq) && plan_walk_problem(walk, move, &host))
            return false;
        plan_walk_apply(walk, move);
    }
    AUTO_FREE int *before = model_placement(model);
    const int *after = plan_walk_placement(walk);
    return placement_hosts_used(model, after) <= plan->hosts_after &&
           model_rules_kept(model, before, after, &broken) == 0;
}

/* Leaves out poor[from] … poor[to - 1], or of them as many as can be; the others are needed. About
 * log n tries for each that is. */
static void shed(struct shedding *s, size_t from, size_t to)
{
    if (from == to)
        return;
    for (size_t i = from; i < to; i++)
        s->gone[s->poor[i]] = true;
    if (holds_without_gone(s))
        return;
    for (size_t i = from; i < to; i++)
        s->gone[s->poor[i]] = false;
    if (to - from == 1) {
        s->value[s->poor[from]] = INFINITY;
        return;
    }
    size_t middle = from + (to - from) / 2;
    shed(s, from, middle);
    shed(s, middle, to);
}

/* Gives the poor moves without which the plan would free fewer hosts their worth. */
static void uphold(const struct judged *j, double least, double *value)
{
    AUTO_FREE size_t *poor = mem_array(j->plan->n_moves + 1, sizeof *poor);
    AUTO_FREE bool *gone = mem_array(j->plan->n_moves + 1, sizeof *gone);
    struct shedding s = {j, value, poor, gone};
    size_t n = 0;
    if (!holds_without_gone(&s))
        return; /* nor does it as it is: what is in the way is nothing of the poor */
    for (size_t k = 0; k < j->plan->n_moves; k++) {
        if (value[k] + WORTH_EPSILON >= least)
            continue;
        size_t at = n++;
        for (; at > 0 && value[poor[at - 1]] > value[k]; at--)
            poor[at] = poor[at - 1];
        poor[at] = k;
    }
    shed(&s, 0, n);
}

double *plan_worths(const struct plan *plan, const struct model *model, const struct affinity *rows,
                    size_t n_rows, double least)
{
    const struct judged j = {plan, model, rows, n_rows};
    AUTO_FREE int *before = model_placement(model);
    AUTO_FREE bool *mended =
        model->n_rules ? model_rules_mended(model, before, plan->placement) : NULL;
    AUTO_FREE bool *freed = freed_hosts(plan, model);
    double *value = losses(&j);
    for (size_t k = 0; k < plan->n_moves; k++) {
        const struct move *move = &plan->moves[k];
        bool bound = (mended && mended[move->service]) || (freed && leaves_freed(move, freed));
        value[k] = bound ? INFINITY : value[k] / (move->restarts > 0 ? (double)move->restarts : 1);
    }
    if (freed)
        uphold(&j, least, value);
    return value;
}
