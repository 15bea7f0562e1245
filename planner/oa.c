/* oa.c - the ladder of the optimal planner. */
#include "planner/oa.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "planner/bound.h"
#include "planner/contain.h"
#include "planner/cover.h"
#include "planner/exhaust.h"
#include "planner/fewest.h"
#include "planner/homeward.h"
#include "planner/hubs.h"
#include "planner/nearest.h"
#include "planner/oa_counts.h"
#include "planner/pack.h"
#include "planner/pricing.h"
#include "planner/tree.h"

/* Searches with other seeds that give the first patterns: three cost some 0.5 s at 200 services
 * and spare pricing more. */
#define FIRST_SEARCHES 3
/* Differences of scaled values that count as none: 1e-9 of all degrees together. */
#define MARGIN (1e-9 * PARTS_TOTAL)
/* So many grains at most in all degrees together: beyond, they do not help. */
#define GRAINS 1e6
/* Of a grain, kept for the rounding of sums. */
#define GRAIN_SLACK 1e-4
/* Nodes of the knapsack of a star. */
#define STAR_NODES 200000
/* Of the time, for one search of affinity on few hosts. */
#define NARROW_SHARE 15
/* Counts of fewest_pack() per ms of the time limit: some 15 % of it. */
#define PACK_PER_MS 2000
/* Parts of the search for fewest hosts that the clock may end: their marks (share.h) go with the counts
 * of a plan that was cut. */
enum { PART_COVER, PART_ANYWHERE };
#define MARKS_ALL (SHARE_MARKS * SHARE_MARKS)
/* Up to here a greedy answer takes less than some 20 ms. */
#define GREEDY_INSTANCES 5000
/* Beyond, the covering problem does not converge in any time that there is. */
#define COVER_ITEMS 600

struct oa {
    const struct model *model;
    const struct analysis *analysis;
    const struct plan_options *options;
    struct space *space;
    struct effort effort;
    struct finding *finding;
    struct place *place;
    struct parts *parts;
    int *best_at;
    struct value best;
    double bound;
    double grain; /* scores are multiples of it; 0: of nothing that helps */
    /* Fewest hosts: the best wherever it is, which closes the search of its bound; then what is bound
     * on no more hosts than the best has. */
    int *any_at;
    struct value any;
    bool fewest, packed, anywhere, limited;
    bool clocked; /* the clock ended a part */
    int until[FINDING_MARKS]; /* where these parts end again; -1: by the clock */
    double within;
    int64_t hosts_bound;
    int *first[FIRST_SEARCHES];
};

/* What a placement is worth beside others: bounds of the score are above that all the more. */
static double worth_of(const struct value *value)
{
    return value->score - value->paid;
}

static double scaled_best(const struct oa *oa)
{
    const struct value *best = oa->anywhere ? &oa->any : &oa->best;
    return best->valid ? worth_of(best) * oa->parts->scale : -INFINITY;
}

/* What all scores are multiples of: the least degree, where all others are. 0 where some are not, where
 * the sums of doubles would blur it, or where moves have prices. */
static double oa_grain(const struct oa *oa)
{
    const struct analysis *analysis = oa->analysis;
    double least = INFINITY, sum = 0;
    for (size_t k = 0; k < analysis->n_rows; k++) {
        double degree = analysis->rows[k].degree;
        if (analysis->rows[k].level != LEVEL_INSTANCE)
            return 0;
        least = degree > 0 && degree < least ? degree : least;
        sum += degree;
    }
    if (oa->options->min_gain > 0 || !(sum > 0) || sum > GRAINS * least)
        return 0;
    for (size_t k = 0; k < analysis->n_rows; k++) {
        double times = analysis->rows[k].degree / least;
        if (fabs(times - round(times)) > 1e-12 * times)
            return 0;
    }
    return least;
}

static void oa_keep_bound(struct oa *oa, double bound)
{
    if (oa->grain > 0 && isfinite(bound))
        bound = fmin(bound, floor(bound / oa->grain + GRAIN_SLACK) * oa->grain * (1 + 1e-12));
    if (bound < oa->bound) {
        oa->bound = bound;
        finding_bound(oa->finding, bound);
    }
}

static bool oa_proven(const struct oa *oa)
{
    return oa->best.valid && oa->bound <= worth_of(&oa->best) + 1e-9;
}

/* Fewer hosts may do than the best has. */
static bool oa_crowded(const struct oa *oa)
{
    return oa->fewest && oa->best.valid && oa->best.hosts > oa->hosts_bound;
}

/* A search of the heuristic found something: it is there whatever ends this process. */
static void oa_early(void *ctx, const int *at, const struct value *value)
{
    struct oa *oa = ctx;
    if (value->valid && (!oa->best.valid || value_better(value, &oa->best)))
        finding_put(oa->finding, at, value);
}

/* The heuristic, first as asked, then with other seeds for patterns. The first sizes itself for half of
 * the time, the others for a fifth each, for less where hosts are to be fewest and more comes after:
 * counts, not clocks, so that the end can be repeated. */
static void oa_heuristics(struct oa *oa)
{
    struct effort part = oa->effort;
    part.found = oa_early;
    part.found_ctx = oa;
    for (int k = 0; k < FIRST_SEARCHES; k++) {
        struct plan_options options = *oa->options;
        int share = k == 0 ? (oa->fewest ? 3 : 2) : oa->fewest ? 8 : 5;
        options.time_limit_ms = options.time_limit_ms / share + 1;
        struct value value;
        int *at = mem_array((size_t)oa->space->n, sizeof *at);
        options.seed += (uint64_t)k * 1000003;
        hubs_search(oa->space, &options, &part, at, &value);
        oa->first[k] = at;
        if (value.valid && (!oa->best.valid || value_better(&value, &oa->best))) {
            oa->best = value;
            memcpy(oa->best_at, at, sizeof *at * (size_t)oa->space->n);
            finding_put(oa->finding, oa->best_at, &oa->best);
        }
        if (part.cut || oa_proven(oa) || oa_crowded(oa))
            break;
    }
    oa->effort.done = part.done;
    oa->effort.cut = part.cut;
}

static double oa_found(void *ctx, const int *host_of_item)
{
    struct oa *oa = ctx;
    const struct space *space = oa->space;
    AUTO_FREE int *at = mem_array((size_t)space->n, sizeof *at);
    for (int i = 0; i < space->n; i++)
        at[i] = space->fixed[i] ? space->start[i] : host_of_item[oa->parts->item_of[i]];
    struct effort none = {.limit = -1, .deadline_ms = INT64_MAX};
    struct value before = oa->best;
    place_set(oa->place, at);
    if (oa->anywhere) {
        struct plan_options anywhere = *oa->options;
        anywhere.objective = OBJECTIVE_AFFINITY;
        hubs_candidate(oa->place, &anywhere, &none, oa->any_at, &oa->any);
    }
    hubs_candidate(oa->place, oa->options, &none, oa->best_at, &oa->best);
    if (oa->options->min_gain > 0 && homeward(oa->place, oa->options))
        hubs_candidate(oa->place, oa->options, &none, oa->best_at, &oa->best);
    if (!before.valid ? oa->best.valid : value_better(&oa->best, &before))
        finding_put(oa->finding, oa->best_at, &oa->best);
    return scaled_best(oa);
}

static void oa_bound(void *ctx, double bound)
{
    struct oa *oa = ctx;
    double unscaled = bound / oa->parts->scale;
    if (!oa->limited) {
        oa_keep_bound(oa, unscaled);
    } else if (unscaled < oa->within) {
        oa->within = unscaled;
        finding_within(oa->finding, unscaled);
    }
}

/* The item that is an end of every arc, or -1. */
static int star_hub(const struct parts *parts)
{
    int hub = parts->n > 0 ? parts->by_rank[0] : -1;
    if (hub < 0)
        return -1;
    for (int k = 0; k < parts->n_kinds; k++)
        if (parts->kinds[k].bonus)
            return -1;
    return parts->first[hub + 1] - parts->first[hub] == parts->first[parts->n] / 2 ? hub : -1;
}

/* A star: what the hub's host can hold is a knapsack of the leaves, nothing else counts. */
static void oa_star(struct oa *oa)
{
    struct parts *parts = oa->parts;
    int hub = star_hub(parts);
    if (hub < 0)
        return;
    AUTO(pricer) struct pricer *pricer = pricer_new(parts);
    AUTO_FREE double *prices = mem_array((size_t)parts->n, sizeof *prices);
    AUTO_FREE int *items = mem_array((size_t)parts->n, sizeof *items);
    AUTO_FREE int *host = mem_array((size_t)parts->n, sizeof *host);
    double bound = -INFINITY;
    for (int k = 0; k < parts->n_kinds; k++) {
        int n;
        double value, known = oa->best.valid ? scaled_best(oa) - parts->constant : 0;
        double top = pricer_exact(pricer, k, hub, prices, known > 0 ? known : 0, STAR_NODES, items,
                                  &n, &value);
        bound = top > bound ? top : bound;
        if (n == 0)
            continue;
        for (int i = 0; i < parts->n; i++)
            host[i] = -1;
        for (int i = 0; i < n; i++)
            host[items[i]] = parts->kinds[k].hosts[0];
        oa_found(oa, host);
    }
    oa_keep_bound(oa, (bound + parts->constant + 0.1 * MARGIN) / parts->scale);
}

/* ---- fewest hosts ---- */

static void oa_keep_hosts(struct oa *oa, int64_t bound)
{
    if (bound > oa->hosts_bound) {
        oa->hosts_bound = bound;
        finding_hosts(oa->finding, bound);
    }
}

static void oa_part_end(struct oa *oa, int which, const struct effort *part)
{
    int mark = share_join(&oa->effort, part);
    oa->clocked |= mark > 0;
    finding_mark(oa->finding, which, mark);
}

/* Prices of the covering problem prove what no sum of sizes does. */
static void oa_cover(struct oa *oa)
{
    struct err err = ERR_INIT;
    AUTO(space) struct space *blind =
        space_new(oa->model, NULL, 0, oa->options->move_stateful, &err);
    AUTO(parts) struct parts *parts =
        blind && blind->n_movable <= COVER_ITEMS ? parts_new(blind, &err) : NULL;
    if (!parts)
        return;
    AUTO_FREE int *used = mem_array((size_t)parts->n_kinds, sizeof *used);
    AUTO_FREE int *at = mem_array((size_t)parts->n, sizeof *at);
    AUTO_FREE bool *stays = mem_array((size_t)blind->n_hosts, sizeof *stays);
    for (int i = 0; i < blind->n; i++) {
        if (blind->fixed[i])
            stays[blind->start[i]] = true;
        else
            at[parts->item_of[i]] = oa->best_at[i];
    }
    for (int k = 0; k < parts->n_kinds; k++)
        for (int h = 0; h < parts->kinds[k].count; h++)
            used[k] += stays[parts->kinds[k].hosts[h]];
    struct share share;
    struct effort part = share_of_time(&share, &oa->effort, 25, oa->until[PART_COVER]);
    oa_keep_hosts(oa, cover_bound(parts, used, at, oa->best.hosts, &part));
    oa_part_end(oa, PART_COVER, &part);
}

/* Fewer hosts, then affinity on these, then the proof that there are no fewer. */
static void oa_fewest(struct oa *oa)
{
    int before = oa->best.hosts;
    struct share share;
    struct effort part =
        share_of_counts(&share, &oa->effort, oa->options->time_limit_ms * PACK_PER_MS);
    fewest_pack(oa->space, oa->options, oa->hosts_bound, &part, oa->best_at, &oa->best);
    share_join(&oa->effort, &part);
    finding_put(oa->finding, oa->best_at, &oa->best);
    oa->packed = oa->best.hosts < before;
    for (int k = 0; k < FIRST_SEARCHES - 1 && oa->packed && !oa->effort.cut; k++) {
        struct plan_options options = *oa->options;
        options.seed += (uint64_t)k * 1000003;
        options.time_limit_ms = options.time_limit_ms * NARROW_SHARE / 200 + 1; /* sizes its rounds */
        AUTO_FREE int *at = mem_array((size_t)oa->space->n, sizeof *at);
        fewest_search(oa->space, &options, &oa->effort, at, oa->best_at, &oa->best);
        free(oa->first[k + 1]);
        oa->first[k + 1] = steal(at);
        finding_put(oa->finding, oa->best_at, &oa->best);
    }
    if (oa->best.hosts > oa->hosts_bound && !oa->effort.cut)
        oa_cover(oa);
}

/* ---- branch and price ---- */

static int oa_tree(struct oa *oa, struct effort *effort)
{
    const struct parts *parts = oa->parts;
    int *placements[FIRST_SEARCHES];
    size_t n = 0;
    for (int k = 0; k < FIRST_SEARCHES && oa->first[k]; k++, n++) {
        placements[n] = mem_array((size_t)parts->n, sizeof **placements);
        for (int i = 0; i < oa->space->n; i++)
            if (parts->item_of[i] >= 0)
                placements[n][parts->item_of[i]] = oa->first[k][i];
    }
    double better = oa->grain * parts->scale * (1 - GRAIN_SLACK); /* at least, when it is at all */
    struct tree_start start = {(const int *const *)placements, n, scaled_best(oa),
                               better > MARGIN ? better : MARGIN};
    struct tree_report report = {oa_found, oa_bound, oa};
    int result = tree_search(parts, &start, &report, effort);
    for (size_t k = 0; k < n; k++)
        free(placements[k]);
    return result;
}

/* First without looking at hosts: mostly the best of all placements is on few, or can be packed so. Else
 * again with as many hosts as the best one has, which takes long where they are nearly full. */
static int oa_trees_fewest(struct oa *oa)
{
    struct share share;
    struct effort part = share_of_time(&share, &oa->effort, oa->packed ? 25 : 75,
                                       oa->until[PART_ANYWHERE]);
    oa->any_at = mem_dup(oa->best_at, (size_t)oa->space->n * sizeof *oa->any_at);
    oa->any = oa->best;
    oa->any.objective = OBJECTIVE_AFFINITY;
    oa->anywhere = true;
    int result = oa_tree(oa, &part);
    oa_part_end(oa, PART_ANYWHERE, &part);
    free(oa->any_at);
    oa->anywhere = false;
    if (oa_proven(oa) || result < 0)
        return result;
    if (oa->effort.cut)
        return 1;
    oa->limited = true;
    parts_limit(oa->parts, oa->best.hosts);
    return oa_tree(oa, &oa->effort);
}

static bool is_fewest(const struct plan_options *options)
{
    return options->objective == OBJECTIVE_HOSTS && options->max_moves < 0;
}

/* What came to its end after a part that the clock ended is repeated by one count more than it took. */
static void oa_done(struct oa *oa, bool cut, bool proven, const char *why)
{
    bool clocked = !cut && oa->clocked;
    finding_done(oa->finding, oa->effort.done + clocked, cut || clocked, proven, why);
}

/* What runs in the child. */
static void oa_work(void *ctx)
{
    struct oa *oa = ctx;
    struct err err = ERR_INIT;
    bool limited = oa->options->max_moves >= 0;
    bool affinity = oa->options->objective == OBJECTIVE_AFFINITY;
    effort_begins(&oa->effort, plan_after_ms(oa->options, oa->model));
    oa->grain = oa_grain(oa);
    oa_keep_bound(oa, bound_affinity(oa->model, oa->analysis->rows, oa->analysis->n_rows,
                                     oa->options->move_stateful, true));
    oa->parts = parts_new(oa->space, &err);
    oa->place = place_new(oa->space, oa->space->start);
    if (oa->parts && oa->parts->n > 0 && !limited && affinity)
        oa_star(oa);
    oa->fewest = is_fewest(oa->options);
    if (oa->fewest)
        oa_keep_hosts(oa, bound_hosts(oa->model, oa->options->move_stateful, true));
    if (!oa_proven(oa))
        oa_heuristics(oa);
    if (oa_crowded(oa) && !oa->effort.cut)
        oa_fewest(oa);
    if (oa_proven(oa)) {
        oa_done(oa, oa->effort.cut, true, "found at the bound of the room on hosts");
        return;
    }
    if (!oa->parts) {
        char why[200];
        snprintf(why, sizeof why, "no exact form for %.150s", err.text);
        finding_done(oa->finding, oa->effort.done, oa->effort.cut, false, why);
        return;
    }
    int result = oa->parts->n == 0          ? 0
                 : oa->effort.cut           ? 1
                 : oa->fewest && oa->best.valid ? oa_trees_fewest(oa)
                                            : oa_tree(oa, &oa->effort);
    bool none = result == 0 && !oa->best.valid && oa->parts->n > 0;
    bool proven = (result == 0 && !limited) || none;
    oa_done(oa, result > 0 && oa->effort.cut, proven,
            none          ? "no placement exists"
            : result == 0 ? "branch and price over patterns of hosts"
            : result > 0  ? "branch and price, ended before the proof"
                          : "the solver failed, so the answer of the heuristic");
}

static bool rule_lists(const struct rule *rule, int host)
{
    for (size_t k = 0; k < rule->n_hosts; k++)
        if (rule->hosts[k] == host)
            return true;
    return false;
}

/* What cannot leave, where a rule does not allow it. */
static char *oa_forbidden(const struct space *space)
{
    const struct model *model = space->model;
    for (size_t r = 0; r < model->n_rules; r++)
        for (int i = 0; model->rules[r].kind == RULE_ALLOWED && i < space->n; i++) {
            const struct instance *one = &model->instances[i];
            if (!space->fixed[i] || one->service != model->rules[r].services[0] ||
                rule_lists(&model->rules[r], space->start[i]))
                continue;
            return mem_printf("rules[%zu] (allowed, of %s) does not hold on %s, which %s cannot "
                              "leave (%s)",
                              r, model->services[one->service].name,
                              model->hosts[space->start[i]].name, one->name, space->fixed_why[i]);
        }
    return NULL;
}

/* An over-full host, or one that breaks a rule by what cannot leave: nothing can mend it. The text
 * names host and instance. */
static char *oa_hopeless(const struct space *space, const struct plan_options *options)
{
    AUTO_FREE int64_t *used = mem_array((size_t)space->n_hosts * LOAD_DIMS, sizeof *used);
    for (int i = 0; i < space->n; i++)
        for (int d = 0; space->fixed[i] && d < space->dims; d++)
            used[space->start[i] * space->dims + d] += space->need[i * space->dims + d];
    for (int i = 0; i < space->n; i++)
        for (int d = 0; space->fixed[i] && d < space->dims; d++)
            if (used[space->start[i] * space->dims + d] > space->cap[space->start[i] * space->dims + d])
                return mem_printf("host %s is over its capacity by what cannot leave it (%s: %s)",
                                  space->model->hosts[space->start[i]].name,
                                  space->model->instances[i].name, space->fixed_why[i]);
    char *forbidden = oa_forbidden(space);
    return forbidden ? forbidden : hubs_impossible(space, options);
}

static int oa_without(struct space *space, const struct plan_options *options, char *why,
                      struct plan *out, struct err *err)
{
    struct effort none = {.limit = -1};
    struct value nothing = {.objective = options->objective};
    int result = hubs_finish(space, options, &none, space->start, &nothing, out, err);
    out->status = PLAN_INFEASIBLE;
    free(out->why);
    out->why = why;
    return result;
}

/* The solver proved nothing: where placements are few, all are tried. True when *best is proven to
 * be the optimum; *cut where the clock ended that, which leaves *best as it is. */
static bool oa_last_resort(const struct space *space, const struct plan_options *options,
                           int64_t deadline_ms, int *best_at, struct value *best, double *top,
                           bool *cut)
{
    struct effort effort = {.limit = -1, .deadline_ms = deadline_ms};
    struct value found = *best;
    AUTO_FREE int *at = mem_dup(best_at, (size_t)space->n * sizeof *at);
    AUTO(place) struct place *place = place_new(space, space->start);
    if (exhaust_best(place, options, &effort, at, &found, top) == EXHAUST_FOUND) {
        *best = found;
        memcpy(best_at, at, (size_t)space->n * sizeof *at);
        return true;
    }
    *cut = effort.cut;
    if (best->valid || effort.cut)
        return false;
    enum exhaust_verdict verdict = exhaust(place, options, &effort);
    *cut = effort.cut;
    best->none = verdict == EXHAUST_NONE;
    if (verdict == EXHAUST_FOUND)
        hubs_candidate(place, options, &effort, best_at, best);
    return false;
}

static void oa_fewest_told(const struct finding_end *end, const struct value *best,
                           struct plan *out)
{
    double within = end->within < end->bound ? end->within : end->bound;
    out->hosts_bound = end->hosts < best->hosts ? end->hosts : best->hosts;
    if (isfinite(within))
        out->affinity_bound_hosts = within > out->affinity_after ? within : out->affinity_after;
}

/* `iterations` of a plan that was cut: twice the count, and one more where the search was killed; for
 * fewest hosts that and the marks of its parts. */
static int64_t oa_code(const struct plan_options *options, const struct finding_end *end)
{
    int64_t code = 2 * end->iterations + end->killed;
    if (!is_fewest(options))
        return code;
    code = code < OA_COUNTS_WHOLE / MARKS_ALL ? code : OA_COUNTS_WHOLE / MARKS_ALL - 1;
    return code * MARKS_ALL + end->marks[PART_COVER] * SHARE_MARKS + end->marks[PART_ANYWHERE];
}

/* The same without the marks; -1: not a repetition. */
static int64_t oa_code_given(const struct plan_options *options)
{
    bool marks = is_fewest(options) && options->iterations >= 0;
    return marks ? options->iterations / MARKS_ALL : options->iterations;
}

static void oa_marks_given(struct oa *oa)
{
    int64_t marks = oa->options->iterations;
    bool given = marks >= 0;
    oa->until[PART_COVER] = given ? (int)(marks / SHARE_MARKS % SHARE_MARKS) : -1;
    oa->until[PART_ANYWHERE] = given ? (int)(marks % SHARE_MARKS) : -1;
}

/* What counts of a search that was ended: of one that ended itself all, of one that was killed what it
 * had before its last count, for what it did after that nobody knows. A fault of the solver ends it at
 * the same place again: that is no cut. */
static void oa_end_read(const struct finding *finding, const struct plan_options *options,
                        const struct value *first, struct finding_end *end, int *best_at,
                        struct value *best)
{
    int64_t code = oa_code_given(options);
    end->cut |= code == 1; /* what proves something before the first count would not be ended by it */
    end->killed |= end->cut && code >= 0 && code % 2 == 1;
    end->cut &= !end->failed;
    if (!end->cut || !end->killed) {
        finding_get(finding, best_at, best);
        return;
    }
    int64_t count = code >= 0 ? code / 2 : end->count;
    end->iterations = count;
    end->proven = false;
    end->bound = count > 0 ? finding_bound_before(finding, count) : INFINITY;
    end->within = count > 0 ? finding_within_before(finding, count) : INFINITY;
    end->hosts = count > 0 ? finding_hosts_before(finding, count) : 0;
    for (int k = 0; k < FINDING_MARKS; k++)
        end->marks[k] = finding_mark_before(finding, k, count);
    if (count > 0)
        finding_get_before(finding, count, best_at, best);
    else
        *best = *first; /* ended before it counted anything */
}

/* Ended before it counted anything, or with nothing: what the heuristic has before its first count, the same always. */
static void oa_greedy(struct space *space, const struct plan_options *options, int *best_at,
                      struct value *best)
{
    struct effort first = {.limit = 1, .deadline_ms = INT64_MAX};
    AUTO_FREE int *at = mem_array((size_t)space->n, sizeof *at);
    struct value value;
    if (space->n > GREEDY_INSTANCES)
        return;
    hubs_search(space, options, &first, at, &value);
    if (!value.valid || (best->valid && !value_better(&value, best)))
        return;
    *best = value;
    memcpy(best_at, at, (size_t)space->n * sizeof *at);
}

/* Counts more than a search took that came to its end: what the clock ended was before it, or after it. */
enum { ENDED_AFTER = 1, ENDED_BEFORE };

/* After a search that came to its end; *clocked: the clock ended what was before it. */
static void oa_after(const struct space *space, const struct plan_options *options, bool clocked,
                     int64_t start_ms, int *best_at, struct value *best, struct finding_end *end)
{
    int64_t more = options->iterations < 0 ? 0 : oa_code_given(options) / 2 - end->iterations;
    bool again = more == ENDED_AFTER || more == ENDED_BEFORE, cut = more == ENDED_AFTER;
    int64_t deadline_ms = again ? INT64_MAX : start_ms + options->time_limit_ms * 98 / 100;
    if (!end->proven && !cut &&
        oa_last_resort(space, options, deadline_ms, best_at, best, &end->bound, &cut))
        *end = (struct finding_end){.iterations = end->iterations,
                                    .proven = true,
                                    .bound = end->bound,
                                    .within = INFINITY, /* what moves cost may have kept more away */
                                    .hosts = best->hosts,
                                    .why = "every placement was tried"};
    if (!again && !clocked && !cut)
        return;
    end->cut = true;
    end->killed = false;
    end->iterations += cut ? ENDED_AFTER : ENDED_BEFORE;
}

static int oa_plan(const struct model *model, const struct analysis *analysis,
                   const struct plan_options *options, struct plan *out, struct err *err)
{
    int64_t start_ms = plan_start_ms(options);
    AUTO(space) struct space *space =
        space_new(model, analysis->rows, analysis->n_rows, options->move_stateful, err);
    if (!space)
        return -1;
    out->planner = mem_strdup("oa");
    space->strict = true;
    space_price_moves(space, options->min_gain);
    char *hopeless = oa_hopeless(space, options);
    if (hopeless)
        return oa_without(space, options, hopeless, out, err);
    bool clocked = false;
    int answered = oa_by_counts(space, options, &clocked, out, err);
    if (answered != 0)
        return answered < 0 ? -1 : 0;
    AUTO(finding) struct finding *finding = finding_new(space->n);
    AUTO_FREE int *best_at = mem_array((size_t)space->n, sizeof *best_at);
    if (!finding)
        return err_set(err, ERR_IO, "no shared memory for the solver");
    struct oa oa = {.model = model, .analysis = analysis, .options = options, .space = space,
                    .finding = finding, .best_at = best_at, .bound = INFINITY,
                    .within = INFINITY};
    AUTO(place) struct place *place = place_new(space, space->start);
    place->score = place_score_exact(place);
    struct value first = value_of(place, options);
    /* What a solver overruns (1000 ms took up to 1109 ms) ends with the child: what was found is kept. */
    oa_marks_given(&oa);
    oa.effort = (struct effort){.limit = options->iterations < 0 ? -1 : oa_code_given(options) / 2,
                                .count = finding_count(finding, space->start, &first),
                                .deadline_ms = plan_deadline_ms(options, model->n_instances, 7)};
    if (contain_run(oa_work, &oa, finding, options, start_ms + options->time_limit_ms * 98 / 100,
                    plan_after_ms(options, model), err) < 0)
        return -1;
    struct value best = {.objective = options->objective};
    struct finding_end end = finding_end(finding);
    memcpy(best_at, space->start, sizeof *best_at * (size_t)space->n);
    oa_end_read(finding, options, &first, &end, best_at, &best);
    if (end.cut && end.killed && (end.iterations == 0 || !best.valid))
        oa_greedy(space, options, best_at, &best);
    if (!end.cut)
        oa_after(space, options, clocked, start_ms, best_at, &best, &end);
    struct effort done = {.done = end.iterations, .cut = end.cut};
    if (hubs_finish(space, options, &done, best_at, &best, out, err) < 0)
        return -1;
    if (end.cut)
        out->iterations = oa_code(options, &end);
    bool named = out->status == PLAN_INFEASIBLE; /* hubs_finish() has said why */
    if (!best.valid && end.proven)
        out->status = PLAN_INFEASIBLE;
    if (best.valid && isfinite(end.bound)) {
        out->has_bound = true;
        out->affinity_bound = end.bound;
    }
    if (best.valid && end.proven && options->objective == OBJECTIVE_AFFINITY)
        out->status = PLAN_OPTIMAL;
    if (best.valid && options->objective == OBJECTIVE_HOSTS)
        oa_fewest_told(&end, &best, out);
    if (best.valid || (end.proven && !named)) {
        if (end.cut && !end.proven)
            snprintf(end.why, sizeof end.why, "ended before the proof");
        free(out->why);
        char *nearest = best.valid ? NULL : nearest_why(space, options);
        out->why = nearest ? nearest : mem_strdup(end.why);
    }
    return 0;
}

const struct planner oa_planner = {
    .name = "oa",
    .summary = "the optimum with proof, or the best found with a bound (Eq. 2-5)",
    .takes = TAKES_HOSTS_OBJECTIVE | TAKES_SERVICES | TAKES_MAX_MOVES | TAKES_MOVE_STATEFUL |
             TAKES_MIN_GAIN,
    .plan = oa_plan,
};
