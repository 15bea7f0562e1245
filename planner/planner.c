/* planner.c - the table of planners, and what all plans share: option checks, names, bounds, time. */
#include "planner/planner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/clock.h"
#include "planner/bound.h"
#include "planner/contradiction.h"
#include "planner/fit.h"
#include "planner/hba.h"
#include "planner/hubs.h"
#include "planner/oa.h"
#include "planner/oa_counts.h"
#include "planner/refine.h"
#include "planner/rules.h"

const struct plan_options plan_options_default = {
    .planner = "auto",
    .time_limit_ms = 10000,
    .max_moves = -1,
    .iterations = -1,
};

/* What comes after a search, per instance: measured 5 to 13 ms for 1000 on one core. */
#define AFTER_US_EACH 10

/* The first bound of replicas takes 0.1 s of a slow core, which the limit has room for. */
#define FIRST_BOUND_MS 4000
#define FIRST_BOUND_TAKES_MS 100

/* A star of 1000 takes 50 ms of CPU; cut before its end oa has nothing, hubs has something soon. */
#define AUTO_STAR_US_EACH 200
/* Up to here the optimum is proven within seconds on one core. */
#define AUTO_OA_INSTANCES 120
#define AUTO_OA_MS 1000
/* Up to here oa finds more than hubs does, given time per instance and kind of host: patterns are priced
 * for each kind. Measured on one core: 300 instances of one kind in 2 s, 500 in 5 s. */
#define AUTO_OA_MOST 500
#define AUTO_OA_MS_EACH 10
/* Whole services times hosts: 10 on 6 take from 0.1 s to more than there is. */
#define AUTO_OA_COUNTS 60
/* Below this share of known traffic the optimum of what is known is worth few restarts. */
#define AUTO_COVERAGE 0.5

int64_t plan_start_ms(const struct plan_options *options)
{
    return options->start_ms > 0 ? options->start_ms : clock_mono_ms();
}

int64_t plan_deadline_ms(const struct plan_options *options, size_t instances, int percent)
{
    int64_t limit = options->time_limit_ms, left = limit * percent / 100;
    int64_t after = (int64_t)instances * AFTER_US_EACH / 1000;
    left = after > left ? after : left;
    return plan_start_ms(options) + limit - (left < limit / 2 ? left : limit / 2);
}

int64_t plan_after_ms(const struct plan_options *options, const struct model *model)
{
    bool replicas = model->n_instances > model->n_services;
    int64_t after = 1 + (int64_t)model->n_instances * AFTER_US_EACH / 1000;
    return after + (replicas && options->time_limit_ms >= FIRST_BOUND_MS ? FIRST_BOUND_TAKES_MS : 0);
}

/* True when all rows share one end: the optimum is a knapsack, at any size. */
static bool is_star(const struct analysis *analysis)
{
    const struct affinity *first = analysis->rows;
    bool by_a = analysis->n_rows > 0, by_b = by_a;
    for (size_t r = 0; r < analysis->n_rows; r++) {
        const struct affinity *row = &analysis->rows[r];
        by_a = by_a && (row->a == first->a || row->b == first->a) && row->level == first->level;
        by_b = by_b && (row->a == first->b || row->b == first->b) && row->level == first->level;
    }
    return by_a || by_b;
}

/* The host of an instance that holds more than it offers, or -1; *why gets the resource. */
static int overfull_host(const struct model *model, const int *placement, const char **why)
{
    static const struct load nothing;
    AUTO_FREE struct load *loads = mem_array(model->n_hosts, sizeof *loads);
    for (size_t i = 0; i < model->n_instances; i++) {
        struct load load = instance_load(&model->instances[i]);
        if (placement[i] >= 0)
            load_add(&loads[placement[i]], &load);
    }
    for (size_t i = 0; i < model->n_instances; i++) {
        int host = placement[i];
        struct load offer;
        if (host < 0)
            continue;
        offer = host_offer(&model->hosts[host]);
        if (!load_fits(&offer, &loads[host], &nothing, why))
            return host;
    }
    return -1;
}

/* True when some host holds more than it offers, which oa would have to mend before all else. */
static bool is_overfull(const struct model *model)
{
    AUTO_FREE int *placement = model_placement(model);
    return overfull_host(model, placement, NULL) >= 0;
}

static bool is_broken(const struct model *model)
{
    struct err err = ERR_INIT;
    AUTO_FREE int *placement = model_placement(model);
    return model_rules_hold(model, placement, &err) < 0;
}

/* With `leave_broken`, or there was no plan to choose for. */
static bool is_contradictory(const struct model *model)
{
    AUTO_FREE char *clash = contradiction(model, true);
    return clash;
}

static const struct planner *auto_choose_services(const struct model *model,
                                                  const struct plan_options *options,
                                                  const char **why)
{
    if (model->n_services * model->n_hosts > AUTO_OA_COUNTS) {
        *why = "too many services and hosts to prove the optimum of whole services";
        return &hubs_planner;
    }
    if (options->time_limit_ms < AUTO_OA_MS) {
        *why = "too little time to prove the optimum of whole services";
        return &hubs_planner;
    }
    *why = "few enough whole services to prove the optimum";
    return &oa_planner;
}

/* True when patterns of hosts say all of a larger model, and there is time to price them. */
static bool has_time_for_patterns(const struct model *model, const struct analysis *analysis,
                                  const struct plan_options *options)
{
    struct err err = ERR_INIT;
    int64_t each = AUTO_OA_MS_EACH * (int64_t)model->n_instances;
    if (model->n_instances > AUTO_OA_MOST || options->time_limit_ms < each)
        return false;
    AUTO(space) struct space *space =
        space_new(model, analysis->rows, analysis->n_rows, options->move_stateful, &err);
    if (!space || !patterns_say_all(space, options))
        return false;
    int kinds = patterns_kinds(space);
    return kinds > 0 && options->time_limit_ms >= each * kinds;
}

/* The planner that suits, and why in a few words. */
static const struct planner *auto_choose(const struct model *model,
                                         const struct analysis *analysis,
                                         const struct plan_options *options, const char **why)
{
    double coverage = model_coverage(model);
    bool plain = options->objective == OBJECTIVE_AFFINITY &&
                 options->granularity == PER_INSTANCE && !options->move_stateful;
    if (plain && coverage >= 0 && coverage < AUTO_COVERAGE) {
        *why = "less than half of the traffic is known";
        return &hba_planner;
    }
    if (is_overfull(model)) {
        *why = "a host is over its capacity, which oa would have to mend before all else";
        return &hubs_planner;
    }
    if (options->leave_broken && is_contradictory(model)) {
        *why = "rules contradict each other, which oa would not leave so";
        return &hubs_planner;
    }
    if (is_broken(model)) {
        *why = "a rule is broken now, which oa would have to mend before all else";
        return &hubs_planner;
    }
    if (options->granularity == PER_SERVICE)
        return auto_choose_services(model, options, why);
    int64_t star_us = AUTO_STAR_US_EACH * (int64_t)model->n_instances;
    if (plain && options->max_moves < 0 && options->time_limit_ms * 1000 >= star_us &&
        is_star(analysis)) {
        *why = "all traffic shares one end";
        return &oa_planner;
    }
    if (model->n_instances > AUTO_OA_INSTANCES) {
        bool enough = has_time_for_patterns(model, analysis, options);
        *why = enough ? "time enough for so many instances"
               : model->n_instances > AUTO_OA_MOST
                   ? "too many instances to prove the optimum"
                   : "too many instances for the time, or rules that patterns of hosts cannot say";
        return enough ? &oa_planner : &hubs_planner;
    }
    if (options->time_limit_ms < AUTO_OA_MS) {
        *why = "too little time to prove the optimum";
        return &hubs_planner;
    }
    *why = "few enough instances to prove the optimum";
    return &oa_planner;
}

static int auto_plan(const struct model *model, const struct analysis *analysis,
                     const struct plan_options *options, struct plan *out, struct err *err)
{
    const char *reason;
    const struct planner *planner = auto_choose(model, analysis, options, &reason);
    if (planner->plan(model, analysis, options, out, err) < 0)
        return -1;
    char *why = mem_printf("%s (%s): %s", planner->name, reason, out->why);
    free(out->why);
    out->why = why;
    return 0;
}

static const struct planner auto_planner = {
    .name = "auto",
    .summary = "hba, oa or hubs, whichever suits the size, the time and what is known",
    .takes = TAKES_HOSTS_OBJECTIVE | TAKES_SERVICES | TAKES_MAX_MOVES | TAKES_MOVE_STATEFUL |
             TAKES_FRONTIER | TAKES_MIN_GAIN,
    .plan = auto_plan,
};

const struct planner *const planners[] = {&auto_planner, &hba_planner, &oa_planner,
                                          &oa_modified_planner, &hubs_planner, NULL};

const struct planner *planner_find(const char *name)
{
    for (size_t i = 0; planners[i]; i++)
        if (strcmp(planners[i]->name, name) == 0)
            return planners[i];
    return NULL;
}

static int unknown_planner(const char *name, struct err *err)
{
    const char *names[ARRAY_LEN(planners)];
    for (size_t i = 0; i < ARRAY_LEN(planners); i++)
        names[i] = planners[i] ? planners[i]->name : NULL;
    const char *near = names_nearest(name, names);
    return err_set(err, ERR_USAGE, "planner \"%s\" is unknown%s%s%s", name,
                   near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

static int options_check(const struct planner *planner, const struct plan_options *options,
                         struct err *err)
{
    const struct {
        bool asked;
        unsigned takes;
        const char *what;
    } needs[] = {
        {options->objective == OBJECTIVE_HOSTS, TAKES_HOSTS_OBJECTIVE, "objective hosts"},
        {options->granularity == PER_SERVICE, TAKES_SERVICES, "granularity service"},
        {options->max_moves >= 0, TAKES_MAX_MOVES, "max-moves"},
        {options->move_stateful, TAKES_MOVE_STATEFUL, "move-stateful"},
        {options->frontier, TAKES_FRONTIER, "frontier"},
        {options->min_gain > 0, TAKES_MIN_GAIN, "min-gain"},
    };
    for (size_t i = 0; i < ARRAY_LEN(needs); i++)
        if (needs[i].asked && !(planner->takes & needs[i].takes))
            return err_set(err, ERR_USAGE, "planner %s cannot use %s", planner->name,
                           needs[i].what);
    if (options->time_limit_ms <= 0)
        return err_set(err, ERR_USAGE, "time limit: must be more than 0");
    return 0;
}

/* Refines the bound of a plan that has only a cheap one, while time and iterations remain. */
static void plan_refine(struct plan *plan, const struct model *model,
                        const struct analysis *analysis, const struct plan_options *options,
                        int64_t start_ms)
{
    struct effort effort = {.done = plan->iterations, .limit = options->iterations,
                            .deadline_ms = start_ms + options->time_limit_ms,
                            .progress = options->progress, .progress_ctx = options->progress_ctx};
    double rounding = 2e-9 * fmax(1, fabs(plan->affinity_after));
    if (plan->affinity_bound <= plan->affinity_after + rounding)
        return;
    if (plan->cut) {
        if (options->time_limit_ms >= FIRST_BOUND_MS)
            plan->affinity_bound =
                fmin(plan->affinity_bound,
                     refine_first(model, analysis->rows, analysis->n_rows, options));
        return;
    }
    double bound = refine_bound(model, analysis->rows, analysis->n_rows, options, plan->placement,
                                plan->affinity_after, &effort);
    if (bound < plan->affinity_bound)
        plan->affinity_bound = bound;
    plan->cut = effort.cut;
    plan->iterations = plan->cut ? effort.done : effort.done % OA_COUNTS_WHOLE;
}

/* An instance on the host that no host could hold even alone, or -1. */
static int giant_on(const struct model *model, const int *placement, int host)
{
    static const struct load nothing;
    for (size_t i = 0; i < model->n_instances; i++) {
        struct load need = instance_load(&model->instances[i]);
        bool fits = placement[i] != host;
        for (size_t h = 0; h < model->n_hosts && !fits; h++) {
            struct load offer = host_offer(&model->hosts[h]);
            fits = load_fits(&offer, &nothing, &need, NULL);
        }
        if (!fits)
            return (int)i;
    }
    return -1;
}

/* What hubs and hba could not mend: a host over its capacity, a rule that is broken. Said in the plan,
 * which is no optimum then, whatever its score. */
static bool plan_stays_broken(struct plan *plan, const struct model *model)
{
    struct err err = ERR_INIT;
    const char *resource = "";
    int host = overfull_host(model, plan->placement, &resource);
    bool broken = model_rules_hold(model, plan->placement, &err) < 0;
    if (host < 0 && !broken)
        return false;
    int giant = host >= 0 ? giant_on(model, plan->placement, host) : -1;
    char *why = host < 0 ? mem_printf("%s; still %s", plan->why, err.text)
                         : mem_printf("%s; host %s stays over its capacity (%s)%s%s", plan->why,
                                      model->hosts[host].name, resource,
                                      giant < 0 ? "" : ": no host could hold ",
                                      giant < 0 ? "" : model->instances[giant].name);
    free(plan->why);
    plan->why = why;
    return true;
}

/* A plan that reaches its bound is optimal, whoever made it; 1e-9 is the rounding of scores. */
static void plan_bound(struct plan *plan, const struct model *model,
                       const struct analysis *analysis, const struct plan_options *options,
                       int64_t start_ms)
{
    bool place_all = strcmp(plan->planner, "hba") != 0;
    if (!plan->has_bound) {
        plan->has_bound = true;
        plan->affinity_bound = bound_affinity(model, analysis->rows, analysis->n_rows,
                                              options->move_stateful, place_all);
        if (place_all)
            plan_refine(plan, model, analysis, options, start_ms);
    } else if (plan->cut && options->time_limit_ms >= FIRST_BOUND_MS &&
               plan->status == PLAN_FEASIBLE) {
        /* A program that was ended may know less than what is had at once. */
        plan->affinity_bound = fmin(plan->affinity_bound,
                                    refine_first(model, analysis->rows, analysis->n_rows, options));
    }
    /* Below the plan by more than rounding would be a fault of ours: no bound is told then, and no
     * proof, rather than a false one. */
    double rounding = 1e-9 * fmax(1, fabs(plan->affinity_after));
    assert(plan->affinity_bound >= plan->affinity_after - rounding);
    if (plan->affinity_bound < plan->affinity_after - rounding) {
        plan->has_bound = false;
        if (options->objective == OBJECTIVE_AFFINITY && plan->status == PLAN_OPTIMAL)
            plan->status = PLAN_FEASIBLE;
    } else if (plan->affinity_bound < plan->affinity_after) {
        plan->affinity_bound = plan->affinity_after;
    }
    int64_t hosts = bound_hosts(model, options->move_stateful, place_all);
    if (plan->hosts_bound < hosts)
        plan->hosts_bound = hosts;
    bool free_moves = options->min_gain <= 0 || plan->restarts == 0;
    bool proven = options->objective == OBJECTIVE_AFFINITY
                      ? free_moves && plan->has_bound &&
                            plan->affinity_bound - plan->affinity_after <= 1e-9
                      : plan->hosts_after == plan->hosts_bound;
    if (plan_stays_broken(plan, model))
        plan->status = PLAN_FEASIBLE;
    else if (plan->status == PLAN_FEASIBLE && proven)
        plan->status = PLAN_OPTIMAL;
    if (plan->status == PLAN_OPTIMAL && options->objective == OBJECTIVE_AFFINITY &&
        plan->has_bound && plan->affinity_bound - plan->affinity_after <= 1e-9)
        plan->affinity_bound = plan->affinity_after; /* what is proven has no gap */
}

/* The best that hubs finds for 1, 3, 10, 30 … restarts, up to those of the plan. Each point has its
 * part of the time limit; a larger budget never counts for less. */
static int plan_frontier(struct plan *plan, const struct model *model,
                         const struct analysis *analysis, const struct plan_options *options,
                         struct err *err)
{
    static const int64_t steps[] = {1, 3};
    struct plan_options limited = *options;
    int64_t most = plan->restarts, points = 0;
    for (int64_t ten = 1; ten < most; ten *= 10)
        points += 2;
    limited.time_limit_ms = options->time_limit_ms / (points > 0 ? points : 1) + 1;
    struct frontier_point last = {0, plan->affinity_before, plan->hosts_before};
    *ARRAY_PUSH(plan->frontier, plan->n_frontier) = last;
    for (int64_t k = 0, ten = 1; steps[k] * ten < most; k = (k + 1) % 2, ten *= k ? 1 : 10) {
        AUTO(plan) struct plan *point = plan_new();
        limited.max_moves = steps[k] * ten;
        limited.start_ms = clock_mono_ms();
        point->granularity = options->granularity;
        point->objective = options->objective;
        if (hubs_planner.plan(model, analysis, &limited, point, err) < 0)
            return -1;
        if (point->status == PLAN_FEASIBLE && point->affinity_after > last.affinity)
            last = (struct frontier_point){point->restarts, point->affinity_after,
                                           point->hosts_after};
        if (last.restarts > plan->frontier[plan->n_frontier - 1].restarts)
            *ARRAY_PUSH(plan->frontier, plan->n_frontier) = last;
    }
    if (plan->affinity_after >= last.affinity && most > 0)
        *ARRAY_PUSH(plan->frontier, plan->n_frontier) =
            (struct frontier_point){most, plan->affinity_after, plan->hosts_after};
    return 0;
}

/* NULL: none seen. hba places nothing anew: to it what is placed must contradict by itself too; that
 * alone says little, as what is to be together may wait for the rest. */
static char *contradiction_for(const struct planner *planner, const struct model *model)
{
    char *why = contradiction(model, true);
    if (!why || planner != &hba_planner)
        return why;
    free(why);
    return contradiction(model, false);
}

/* True when no placement can keep the rules, and that is the answer: without moves. */
static bool plan_refused(const struct planner *planner, const struct model *model,
                         const struct analysis *analysis, const struct plan_options *options,
                         struct plan *plan)
{
    bool leaves = planner == &auto_planner || planner == &hubs_planner || planner == &hba_planner;
    struct err err = ERR_INIT;
    if (leaves && options->leave_broken)
        return false;
    char *why = contradiction_for(planner, model);
    if (!why)
        return false;
    AUTO_FREE int *start = model_placement(model);
    if (plan_fill(plan, model, analysis->rows, analysis->n_rows, start, &err) < 0)
        assert(!"a placement without moves is always possible");
    plan->planner = mem_strdup(planner->name);
    plan->status = PLAN_INFEASIBLE;
    plan->why = why;
    return true;
}

int planner_run(const struct model *model, const struct analysis *analysis,
                const struct plan_options *options, struct plan **out, struct err *err)
{
    const struct planner *planner = planner_find(options->planner);
    AUTO(analysis) struct analysis *given = NULL;
    AUTO(plan) struct plan *plan = plan_new();
    int64_t start = plan_start_ms(options);
    if (!planner)
        return unknown_planner(options->planner, err);
    if (options_check(planner, options, err) < 0)
        return -1;
    if (!analysis && model->has_messages)
        return err_set(err, ERR_INPUT, "analysis: missing for a model with messages");
    if (!analysis)
        analysis = given = analysis_from_given(model);
    plan->requested = mem_strdup(planner->name);
    plan->objective = options->objective;
    plan->granularity = options->granularity;
    plan->hosts_bound = -1;
    struct plan_options whole = *options;
    whole.start_ms = start;
    whole.time_limit_ms /= options->frontier && options->time_limit_ms > 1 ? 2 : 1;
    if (plan_refused(planner, model, analysis, options, plan)) {
        plan->solve_ms = clock_mono_ms() - start;
        *out = steal(plan);
        return 0;
    }
    if (planner->plan(model, analysis, &whole, plan, err) < 0)
        return -1;
    if (options->frontier && plan_frontier(plan, model, analysis, &whole, err) < 0)
        return -1;
    if (plan->status == PLAN_FEASIBLE || plan->status == PLAN_OPTIMAL)
        plan_bound(plan, model, analysis, options, start);
    plan->solve_ms = clock_mono_ms() - start;
    *out = steal(plan);
    return 0;
}
