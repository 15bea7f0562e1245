/* worth.c - is the rest of a plan still worth its restarts when a move of it is not made? The plan
 * was begun for what all its moves bring together (model/manager/calm.h); without the one that
 * frees a host, or that a partner follows, the others are judged by the same measure again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/run.h"
#include "model/plan_worth.h"

static bool is_queued(const struct run *run, const struct move *move)
{
    for (size_t i = 0; i < run->n_queue; i++) {
        if (run->queue[i] == move) {
            return true;
        }
    }
    return false;
}

static const struct outcome *told_of(const struct run *run, const struct move *move)
{
    const struct outcome *o = outcomes_find(&run->drive.told, move->seq);
    return o ? o : outcomes_find(&run->request->done, move->seq);
}

/* Made, or under way. */
static bool is_made(const struct run *run, const struct move *move)
{
    const struct outcome *o = told_of(run, move);
    return o ? o->state == OUTCOME_APPLIED || o->state == OUTCOME_PARTIAL : !is_queued(run, move);
}

/* Per move of the plan: will it be made, as far as can be told? Those in the queue that relied on
 * room or company of one that is not made will not. `queued` false: only what is made. */
static bool *will_be_made(const struct run *run, bool queued)
{
    const struct plan *plan = run->request->plan;
    AUTO(plan_walk) struct plan_walk *walk = plan_walk_new(run->request->model);
    bool *made = mem_array(plan->n_moves + 1, sizeof *made);
    int host;
    for (size_t i = 0; i < plan->n_moves; i++) {
        const struct move *move = &plan->moves[i];
        made[i] = is_made(run, move) ||
                  (queued && is_queued(run, move) &&
                   (plan_in_cycle(plan, move->seq) || !plan_walk_problem(walk, move, &host)));
        if (made[i]) {
            plan_walk_apply(walk, move);
        }
    }
    return made;
}

struct part {
    const struct plan *plan;
    const bool *in;
};

static bool is_in(void *ctx, const struct move *move)
{
    const struct part *part = ctx;
    return part->in[move - part->plan->moves];
}

static struct plan *part_of(const struct run *run, bool queued)
{
    const struct request *r = run->request;
    AUTO_FREE bool *in = will_be_made(run, queued);
    struct part part = {r->plan, in};
    return plan_subset(r->plan, r->model, r->analysis->rows, r->analysis->n_rows, is_in, &part);
}

/* Takes the move out of the queue. One of an exchange stays: its partner may be aside already. */
static bool leave_out(struct run *run, int seq, const char *why)
{
    for (size_t i = 0; i < run->n_queue; i++) {
        const struct move *move = run->queue[i];
        if (move->seq != seq || plan_in_cycle(run->request->plan, seq)) {
            continue;
        }
        struct step step = run_step(run, move, NULL);
        drive_discard(&run->drive, &step, why);
        run->n_queue--;
        memmove(&run->queue[i], &run->queue[i + 1], (run->n_queue - i) * sizeof *run->queue);
        return true;
    }
    return false;
}

/* The poorest move of the queue that is worth less than min_gain: one at a time, because the others
 * may be worth less, or more, without it. */
static bool drop_poorest(struct run *run)
{
    const struct request *r = run->request;
    AUTO(plan) struct plan *rest = part_of(run, true);
    AUTO_FREE double *value =
        plan_worths(rest, r->model, r->analysis->rows, r->analysis->n_rows, r->min_gain);
    size_t worst = rest->n_moves;
    char text[400];
    for (size_t k = 0; k < rest->n_moves; k++) {
        int seq = rest->moves[k].seq;
        bool may = !plan_in_cycle(r->plan, seq) && value[k] + WORTH_EPSILON < r->min_gain;
        for (size_t i = 0; may && i < run->n_queue; i++) {
            if (run->queue[i]->seq == seq && (worst == rest->n_moves || value[k] < value[worst])) {
                worst = k;
            }
        }
    }
    if (worst == rest->n_moves) {
        return false;
    }
    snprintf(text, sizeof text, "gains %.4f per restarted replica, less than %g, now that %s",
             value[worst], r->min_gain, run->lost);
    return leave_out(run, rest->moves[worst].seq, text);
}

/* Why the queue as a whole is not worth making; empty: it is. */
static void judge_rest(const struct run *run, char *why, size_t size)
{
    const struct request *r = run->request;
    AUTO(plan) struct plan *made = part_of(run, false);
    AUTO(plan) struct plan *rest = part_of(run, true);
    AUTO_FREE bool *mended =
        r->model->n_rules ? model_rules_mended(r->model, made->placement, rest->placement) : NULL;
    double gain = rest->affinity_after - rest->affinity_before;
    why[0] = '\0';
    if (mended || rest->n_moves == made->n_moves) {
        return;
    }
    if (rest->affinity_after <= made->affinity_after + WORTH_EPSILON &&
        rest->hosts_after >= made->hosts_after) {
        snprintf(why, size, "what is left is better neither in score nor in hosts, now that %s",
                 run->lost);
    } else if (rest->hosts_after >= rest->hosts_before && gain + WORTH_EPSILON < r->min_plan_gain) {
        snprintf(why, size, "the plan gains %.4f in all, less than %g, now that %s", gain,
                 r->min_plan_gain, run->lost);
    }
}

void run_reconsider(struct run *run)
{
    const struct request *r = run->request;
    char why[400];
    if (!run->lost[0] || run->n_queue == 0 || !r->analysis || r->min_gain < 0 || run_stopped(run)) {
        return;
    }
    while (r->min_gain > 0 && drop_poorest(run)) {
        continue;
    }
    judge_rest(run, why, sizeof why);
    for (size_t i = run->n_queue; why[0] && i > 0; i--) {
        leave_out(run, run->queue[i - 1]->seq, why);
    }
    run->lost[0] = '\0';
    run->n_judged = run->drive.told.n; /* its own: nothing was built on those */
}
