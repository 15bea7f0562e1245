/* calm.c - which of a plan's moves are made now (design.md 7 "Calm"). Order of the rules: the plan
 * as a whole, each move by itself, the limits, room, then worth, until nothing changes. */
#include "model/manager/calm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/plan_worth.h"

struct work {
    const struct config_app *app;
    const struct calm_facts *facts;
    const struct model *model;
    const struct affinity *rows;
    size_t n_rows;
    const struct plan *plan;
    struct calm *calm;
};

/* The services whose rules hold again, or are broken less, after the plan; NULL: none. */
static bool *find_mended(const struct work *w, const struct plan *plan)
{
    if (w->model->n_rules == 0)
        return NULL;
    AUTO_FREE int *before = model_placement(w->model);
    return model_rules_mended(w->model, before, plan->placement);
}

static void leave_out(struct work *w, size_t i, const char *why)
{
    if (!w->calm->left_out[i])
        w->calm->left_out[i] = mem_strdup(why);
}

static bool stays(const struct work *w, size_t i)
{
    return !w->calm->left_out[i];
}

static size_t n_left(const struct work *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->plan->n_moves; i++)
        n += stays(w, i);
    return n;
}

static bool keep_staying(void *ctx, const struct move *move)
{
    const struct work *w = ctx;
    return stays(w, (size_t)(move - w->plan->moves));
}

static struct plan *kept_plan(struct work *w)
{
    return plan_subset(w->plan, w->model, w->rows, w->n_rows, keep_staying, w);
}

/* --- each move by itself --- */

static bool touches_busy(const struct work *w, const struct move *move)
{
    const bool *busy = w->facts->busy_hosts;
    if (!busy)
        return false;
    bool hit =
        (move->source >= 0 && busy[move->source]) || (move->target >= 0 && busy[move->target]);
    for (size_t i = 0; i < move->n_sources; i++)
        hit |= busy[move->sources[i].host];
    for (size_t i = 0; i < move->n_targets; i++)
        hit |= busy[move->targets[i].host];
    return hit;
}

static const char *fixed_why(const struct work *w, const struct move *move)
{
    if (move->instance >= 0)
        return instance_fixed_why(w->model, move->instance, w->app->move_stateful);
    const struct service *service = &w->model->services[move->service];
    if (service->rollout)
        return "rollout in progress";
    return !service->movable ? "service is not movable" : NULL;
}

int64_t calm_rest_ms(const struct config_app *app, const struct calm_last *last)
{
    int doublings = last->missed < CALM_MAX_DOUBLINGS ? last->missed : CALM_MAX_DOUBLINGS;
    int64_t rest = app->cooldown_ms << doublings;
    return last->displaced >= 2 && rest < CALM_DISPLACED_MS ? CALM_DISPLACED_MS : rest;
}

static void filter_moves(struct work *w)
{
    char text[160], since[CLOCK_TEXT_SIZE], length[CLOCK_TEXT_SIZE];
    for (size_t i = 0; i < w->plan->n_moves; i++) {
        const struct move *move = &w->plan->moves[i];
        const char *why = fixed_why(w, move);
        const struct calm_last last =
            w->facts->last ? w->facts->last[i] : (struct calm_last){.at_ms = -1};
        int64_t rest = calm_rest_ms(w->app, &last);
        if (why) {
            leave_out(w, i, why);
        } else if (touches_busy(w, move)) {
            leave_out(w, i, "a host is under verification by another cycle");
        } else if (last.at_ms >= 0 && w->facts->wall_ms - last.at_ms < rest) {
            snprintf(text, sizeof text, "cool-down: last moved there at %s, rests %s%s",
                     clock_iso(last.at_ms, since), duration_text(rest, length),
                     last.displaced > 1 ? ", it was taken away again twice"
                     : last.missed      ? ", it had landed elsewhere"
                                        : "");
            leave_out(w, i, text);
        }
    }
}

static void filter_limits(struct work *w)
{
    int64_t moves = 0, restarts = 0;
    char text[80];
    for (size_t i = 0; i < w->plan->n_moves; i++) {
        const struct move *move = &w->plan->moves[i];
        if (!stays(w, i))
            continue;
        /* whole services count by their replicas (contract.md 3) */
        int64_t size = move->instance >= 0 ? 1 : move->restarts;
        if (w->app->max_service_restarts >= 0 && move->restarts > w->app->max_service_restarts) {
            snprintf(text, sizeof text, "restarts %lld replicas, limit %lld per service",
                     (long long)move->restarts, (long long)w->app->max_service_restarts);
            leave_out(w, i, text);
        } else if (w->app->max_moves >= 0 && moves + size > w->app->max_moves) {
            snprintf(text, sizeof text, "limit of %lld moves per cycle",
                     (long long)w->app->max_moves);
            leave_out(w, i, text);
        } else if (w->app->max_restarts >= 0 && restarts + move->restarts > w->app->max_restarts) {
            snprintf(text, sizeof text, "limit of %lld restarts per cycle",
                     (long long)w->app->max_restarts);
            leave_out(w, i, text);
        } else {
            moves += size;
            restarts += move->restarts;
        }
    }
}

/* --- room without what was left out --- */

/* Moves of a cycle on full hosts go only all together. */
static void break_cycles(struct work *w)
{
    for (size_t k = 0; k < w->plan->n_cycles; k++) {
        bool whole = true;
        for (int pass = 0; pass < 2; pass++)
            for (const int *seq = w->plan->cycles[k]; *seq; seq++)
                for (size_t i = 0; i < w->plan->n_moves; i++)
                    if (w->plan->moves[i].seq == *seq) {
                        whole &= stays(w, i);
                        if (pass == 1 && !whole)
                            leave_out(w, i, "part of an exchange whose other part is left out");
                    }
    }
}

/* Each move against what those before it left: the moves that relied on room that one left out
 * would have made have to stay too. */
static void fit_in_order(struct work *w)
{
    AUTO(plan_walk) struct plan_walk *walk = plan_walk_new(w->model);
    char text[300];
    for (size_t i = 0; i < w->plan->n_moves; i++) {
        const struct move *move = &w->plan->moves[i];
        int host = -1;
        if (!stays(w, i))
            continue;
        const char *why =
            plan_in_cycle(w->plan, move->seq) ? NULL : plan_walk_problem(walk, move, &host);
        if (!why) {
            plan_walk_apply(walk, move);
            continue;
        }
        snprintf(text, sizeof text, "does not fit%s%.200s without what is left out: %s",
                 host >= 0 ? " on " : "", host >= 0 ? w->model->hosts[host].name : "", why);
        leave_out(w, i, text);
    }
}

/* `together` and `spread` are properties of the whole: the last moves go until they hold. */
static void fit_rules(struct work *w)
{
    AUTO_FREE int *before = model_placement(w->model);
    for (size_t i = w->plan->n_moves; n_left(w) > 0;) {
        struct err err = ERR_INIT;
        AUTO(plan) struct plan *kept = kept_plan(w);
        if (model_rules_kept(w->model, before, kept->placement, &err) == 0)
            return;
        while (i > 0 && !stays(w, i - 1))
            i--;
        leave_out(w, i - 1, err.text);
    }
}

static void fit(struct work *w)
{
    if (n_left(w) == w->plan->n_moves)
        return; /* the plan was checked as it is */
    break_cycles(w);
    fit_in_order(w);
    break_cycles(w);
    fit_rules(w);
}

/* --- worth --- */

/* Leaves out the poorer half of the moves that are worth less than min_gain per restart. True when
 * it left something out. What empties a host or mends a rule is worth what it costs (plan_worths).
 */
static bool filter_worth(struct work *w)
{
    AUTO(plan) struct plan *kept = kept_plan(w);
    if (kept->n_moves == 0 || w->app->min_gain <= 0)
        return false;
    AUTO_FREE double *value = plan_worths(kept, w->model, w->rows, w->n_rows, w->app->min_gain);
    size_t poor = 0;
    for (size_t k = 0; k < kept->n_moves; k++)
        poor += value[k] + WORTH_EPSILON < w->app->min_gain;
    char text[120];
    for (size_t n = (poor + 1) / 2; poor > 0 && n > 0; n--) {
        size_t worst = 0;
        for (size_t k = 1; k < kept->n_moves; k++)
            if (value[k] < value[worst])
                worst = k;
        snprintf(text, sizeof text, "gains %.4f per restarted replica, less than %g", value[worst],
                 w->app->min_gain);
        for (size_t i = 0; i < w->plan->n_moves; i++)
            if (w->plan->moves[i].seq == kept->moves[worst].seq)
                leave_out(w, i, text);
        value[worst] = INFINITY;
    }
    return poor > 0;
}

/* --- the plan as a whole --- */

static void answer(struct work *w, enum calm_answer what, const char *why)
{
    w->calm->answer = what;
    snprintf(w->calm->why, sizeof w->calm->why, "%s", why);
}

static bool plan_is_better(const struct plan *plan)
{
    return plan->affinity_after > plan->affinity_before + WORTH_EPSILON ||
           plan->hosts_after < plan->hosts_before;
}

static bool plan_mends(const struct work *w, const struct plan *plan)
{
    AUTO_FREE bool *mended = find_mended(w, plan);
    return mended != NULL;
}

/* True when the whole plan ends here. */
static bool judge_plan(struct work *w)
{
    const struct plan *plan = w->plan;
    char text[300], until[CLOCK_TEXT_SIZE];
    if (w->model->has_messages && w->model->n_messages == 0) {
        /* An empty window says nothing about who talks to whom, or who is idle for good. */
        answer(w, CALM_NOTHING, "no traffic in the window");
        return true;
    }
    if (plan->n_moves == 0) {
        snprintf(text, sizeof text, "no moves: %.200s",
                 plan->why && *plan->why ? plan->why
                                         : "the placement is as good as the planner knows");
        answer(w, CALM_NOTHING, text);
        return true;
    }
    if (!plan_is_better(plan) && !plan_mends(w, plan)) {
        answer(w, CALM_NOTHING, "the plan is better neither in score nor in hosts");
        return true;
    }
    if (plan->coverage >= 0 && plan->coverage < w->app->min_coverage) {
        snprintf(text, sizeof text, "coverage %.2f is below %.2f: dry run, %zu moves not made",
                 plan->coverage, w->app->min_coverage, plan->n_moves);
        answer(w, CALM_DRY, text);
        return true;
    }
    if (w->facts->paused_by && w->app->mode == MODE_ACT) { /* one may propose */
        snprintf(text, sizeof text, "paused by %.150s: %zu moves not made", w->facts->paused_by,
                 plan->n_moves);
        answer(w, CALM_DRY, text);
        return true;
    }
    if (w->facts->soak_until_ms > w->facts->wall_ms) {
        snprintf(text, sizeof text, "quiet until %s after a release: %zu moves not made",
                 clock_iso(w->facts->soak_until_ms, until), plan->n_moves);
        answer(w, CALM_DRY, text);
        return true;
    }
    if (!w->facts->window_open) {
        snprintf(text, sizeof text, "outside the windows of this app: %zu moves not made",
                 plan->n_moves);
        answer(w, CALM_DRY, text);
        return true;
    }
    return false;
}

static void judge_kept(struct work *w)
{
    const struct plan *kept = w->calm->kept;
    char text[300];
    double gain = kept->affinity_after - kept->affinity_before;
    bool mends = kept->n_moves > 0 && plan_mends(w, kept);
    if (kept->n_moves == 0) {
        snprintf(text, sizeof text, "all %zu moves left out, the first: %.200s", w->plan->n_moves,
                 w->calm->left_out[0]);
        answer(w, CALM_NOTHING, text);
    } else if (!mends && !plan_is_better(kept)) {
        answer(w, CALM_NOTHING, "what is left is better neither in score nor in hosts");
    } else if (!mends && kept->hosts_after >= kept->hosts_before &&
               gain + WORTH_EPSILON < w->app->min_plan_gain) {
        snprintf(text, sizeof text, "gains %.4f in all, less than %g", gain, w->app->min_plan_gain);
        answer(w, CALM_NOTHING, text);
    } else if (kept->n_moves < w->plan->n_moves) {
        snprintf(text, sizeof text, "%s%zu of %zu moves left out",
                 mends ? "mends a broken rule; " : "", w->plan->n_moves - kept->n_moves,
                 w->plan->n_moves);
        answer(w, CALM_GO, text);
    } else if (mends) {
        answer(w, CALM_GO, "mends a broken rule");
    }
    if (w->calm->answer == CALM_GO)
        return;
    for (size_t i = 0; i < w->plan->n_moves; i++)
        leave_out(w, i, w->calm->why);
    plan_free(steal(w->calm->kept));
}

struct calm *calm_new(const struct config_app *app, const struct calm_facts *facts,
                      const struct model *model, const struct affinity *rows, size_t n_rows,
                      const struct plan *plan)
{
    struct calm *calm = mem_alloc(sizeof *calm);
    calm->left_out = mem_array(plan->n_moves + 1, sizeof *calm->left_out);
    calm->n_left_out = plan->n_moves;
    struct work w = {.app = app,
                     .facts = facts,
                     .model = model,
                     .rows = rows,
                     .n_rows = n_rows,
                     .plan = plan,
                     .calm = calm};
    if (judge_plan(&w)) {
        for (size_t i = 0; i < plan->n_moves; i++)
            leave_out(&w, i, calm->why);
        return calm;
    }
    filter_moves(&w);
    filter_limits(&w);
    do
        fit(&w);
    while (filter_worth(&w));
    calm->kept = kept_plan(&w);
    judge_kept(&w);
    return calm;
}

void calm_free(struct calm *calm)
{
    if (!calm)
        return;
    for (size_t i = 0; i < calm->n_left_out; i++)
        free(calm->left_out[i]);
    free(calm->left_out);
    plan_free(calm->kept);
    free(calm);
}
