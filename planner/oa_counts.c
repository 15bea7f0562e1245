/* oa_counts.c - heuristic, all placements where they are few, one integer program. */
#include "planner/oa_counts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/clock.h"
#include "planner/bound.h"
#include "planner/counts.h"
#include "planner/exhaust.h"
#include "planner/hubs.h"
#include "planner/parts.h"
#include "planner/service.h"

bool patterns_say_all(const struct space *space, const struct plan_options *options)
{
    const struct model *model = space->model;
    if (options->max_moves >= 0 || options->objective == OBJECTIVE_HOSTS)
        return false;
    for (size_t r = 0; r < model->n_rules; r++)
        if (model->rules[r].kind == RULE_TOGETHER ||
            (model->rules[r].kind == RULE_SPREAD && model->rules[r].per_zone))
            return false;
    return true;
}

int patterns_kinds(const struct space *space)
{
    struct err err = ERR_INIT;
    AUTO(parts) struct parts *parts = parts_new(space, &err);
    return parts ? parts->n_kinds : 0;
}

struct answer {
    bool proven;
    int mark; /* that ended the heuristic's share of the time (share.h); 0: none */
    bool trials_cut; /* the clock ended the trials */
    const char *why;
    struct counts_end end;
    struct value best;
    struct effort effort;
};

/* What `iterations` of a plan says that was cut: how much the last part did, the mark that ended the
 * heuristic before it, and which part it was. Other parts before it are done again whole, but trials that
 * the clock ended, which count for nothing. */
enum { CUT_HEURISTIC, CUT_TRIALS, CUT_PROGRAM, PARTS };
/* More nodes than any program of ours gets to: of one that came to its end. */
#define ALL_NODES (INT64_C(1) << 32)

static int64_t part_of(const struct plan_options *options)
{
    if (options->iterations >= OA_COUNTS_MARKED)
        return (options->iterations - OA_COUNTS_MARKED) / SHARE_MARKS == 1 ? CUT_TRIALS : PARTS;
    if (options->iterations >= OA_COUNTS_WHOLE)
        return PARTS;
    return options->iterations < 0 ? -1 : options->iterations % PARTS;
}

static int64_t code_of(int64_t done, int mark, int part)
{
    return (done * SHARE_MARKS + mark) * PARTS + part;
}

static int64_t done_of(const struct plan_options *options)
{
    return options->iterations / PARTS / SHARE_MARKS;
}

/* Where the heuristic ends again; -1: by the clock. */
static int mark_of(const struct plan_options *options)
{
    return part_of(options) < 0                        ? -1
           : options->iterations >= OA_COUNTS_MARKED ? (int)(options->iterations % SHARE_MARKS)
           : part_of(options) == PARTS               ? 0
                                       : (int)(options->iterations / PARTS % SHARE_MARKS);
}

static void answer_heuristic(struct answer *a, struct space *space,
                             const struct plan_options *options, int64_t start_ms, int *best_at)
{
    struct plan_options sized = *options;
    struct share share;
    /* The heuristic may have nearly all of it where nothing comes after. */
    bool alone = !counts_suit(space, options);
    bool again = part_of(options) > CUT_HEURISTIC;
    sized.time_limit_ms = options->time_limit_ms * (alone ? 85 : 25) / 100 + 1;
    a->effort = (struct effort){
        .limit = part_of(options) == CUT_HEURISTIC ? done_of(options) : -1,
        .deadline_ms = again ? INT64_MAX / 200 : start_ms + options->time_limit_ms * 85 / 100 + 1,
        .progress = options->progress,
        .progress_ctx = options->progress_ctx};
    effort_begins(&a->effort, plan_after_ms(options, space->model));
    a->why = "the heuristic's answer, ended before the proof";
    if (alone) {
        hubs_answer(space, &sized, &a->effort, best_at, &a->best);
    } else {
        struct effort part = share_of_time(&share, &a->effort, 30, mark_of(options));
        hubs_answer(space, &sized, &part, best_at, &a->best);
        a->mark = share_join(&a->effort, &part);
    }
    a->proven = a->best.none;
    if (a->effort.cut)
        a->effort.done = code_of(a->effort.done, 0, CUT_HEURISTIC);
}

/* All placements where they are few; true when that is the answer. Trials count for themselves, as each
 * has its own end; *cut where it was the clock. */
static bool answer_trials(struct answer *a, struct space *space, const struct plan_options *options,
                          int64_t deadline_ms, int *best_at, bool *cut)
{
    bool whole = options->granularity == PER_SERVICE;
    double top = 0;
    struct effort trial = {.limit = -1,
                           .deadline_ms = options->iterations >= 0 ? INT64_MAX : deadline_ms};
    struct value best = a->best;
    *cut = part_of(options) == CUT_TRIALS;
    if (*cut)
        return false;
    AUTO_FREE int *at = mem_dup(best_at, (size_t)space->n * sizeof *at);
    AUTO(place) struct place *place = place_new(space, space->start);
    enum exhaust_verdict verdict =
        whole ? service_exhaust(space, options, false, &trial, at, &best, &top)
              : exhaust_best(place, options, &trial, at, &best, &top);
    *cut = trial.cut;
    if (trial.cut)
        return false;
    a->best = best;
    memcpy(best_at, at, (size_t)space->n * sizeof *at);
    if (verdict == EXHAUST_OPEN)
        return false;
    a->proven = true;
    a->best.none = verdict == EXHAUST_NONE;
    a->end.bound =
        verdict == EXHAUST_FOUND && options->objective == OBJECTIVE_AFFINITY ? top : INFINITY;
    a->end.hosts_bound = options->objective == OBJECTIVE_HOSTS ? a->best.hosts : -1;
    a->why = "every placement was tried";
    return true;
}

static void answer_find(struct answer *a, struct space *space, const struct plan_options *options,
                        int64_t start_ms, int64_t share, int *best_at)
{
    int64_t deadline_ms = start_ms + options->time_limit_ms * share / 100;
    a->end = (struct counts_end){.bound = INFINITY, .hosts_bound = -1};
    answer_heuristic(a, space, options, start_ms, best_at);
    if (a->effort.cut || a->best.none)
        return;
    bool tried = answer_trials(a, space, options, deadline_ms, best_at, &a->trials_cut);
    int part = a->trials_cut ? CUT_TRIALS : CUT_PROGRAM;
    a->effort.cut = a->trials_cut || a->mark > 0;
    a->effort.done = a->effort.cut ? code_of(ALL_NODES, a->mark, part) : CUT_PROGRAM;
    if (tried)
        return;
    if (!counts_suit(space, options)) {
        a->why = "the heuristic's answer: too many services and hosts for an exact form";
        return;
    }
    if (options->iterations >= OA_COUNTS_MARKED) /* came to its end */
        deadline_ms = start_ms + INT32_MAX / 2;
    a->end = counts_solve(space, options, deadline_ms,
                          options->iterations < 0 ? -1 : done_of(options), best_at, &a->best);
    if (!a->end.proven)
        a->effort.done = code_of(a->end.nodes, a->mark, part);
    a->effort.cut |= !a->end.proven;
    a->proven = a->end.proven;
    a->best.none = a->proven && !a->best.valid;
    a->why = a->proven
                 ? "counts of services on hosts as an integer program"
                 : "counts of services on hosts as an integer program, ended before the proof";
}

int oa_by_counts(struct space *space, const struct plan_options *options, bool *clocked,
                 struct plan *out, struct err *err)
{
    bool whole = options->granularity == PER_SERVICE, fit = !whole && patterns_kinds(space) > 0;
    if (fit && (patterns_say_all(space, options) || !counts_suit(space, options) ||
                (options->iterations >= 0 && options->iterations < OA_COUNTS_WHOLE)))
        return 0;
    struct answer answer = {0};
    AUTO_FREE int *best_at = mem_array((size_t)space->n, sizeof *best_at);
    answer_find(&answer, space, options, plan_start_ms(options), fit ? 40 : 80, best_at);
    *clocked = answer.effort.cut;
    if (fit && !answer.proven)
        return 0;
    if (fit && answer.effort.cut) /* lesser counts are of patterns */
        answer.effort.done = OA_COUNTS_MARKED + answer.mark + SHARE_MARKS * answer.trials_cut;
    if (hubs_finish(space, options, &answer.effort, best_at, &answer.best, out, err) < 0)
        return -1;
    if (!answer.best.valid)
        return 1;
    /* Without one of its own the plan gets that of all plans (planner.c). */
    out->has_bound = isfinite(answer.end.bound);
    if (!out->has_bound && !out->cut)
        out->iterations = OA_COUNTS_WHOLE;
    if (out->has_bound)
        out->affinity_bound =
            fmin(answer.end.bound, bound_affinity(space->model, space->rows, space->n_rows,
                                                  options->move_stateful, true));
    out->hosts_bound = answer.end.hosts_bound;
    if (answer.proven && options->objective == OBJECTIVE_AFFINITY)
        out->status = PLAN_OPTIMAL;
    free(out->why);
    out->why = mem_strdup(answer.why);
    return 1;
}
