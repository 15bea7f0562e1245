/* counts.c - solves the program of counts_program.h with GLPK 5.0 (planning.md 7 has its pitfalls), in
 * a child, and reads placements out of it. */
#include "planner/counts.h"

#include <math.h>
#include <string.h>
#include "model/base/clock.h"
#include "planner/contain.h"
#include "planner/counts_program.h"
#include "planner/pack.h"
#include "planner/teams.h"

/* Above that GLPK does not get beyond its first relaxation within seconds. */
#define MOST_COLUMNS 4000

bool counts_suit(const struct space *space, const struct plan_options *options)
{
    size_t links = space->n_groups ? space->first_link[space->n_groups] / 2 : 0, columns = links;
    if (space->n_movable == 0 || space->n_hosts == 0)
        return false;
    if (options->granularity == PER_SERVICE) {
        AUTO_FREE int *replicas = model_replicas(space->model);
        for (size_t s = 0; s < space->model->n_services; s++)
            columns += 1 + (size_t)(replicas[s] < space->n_hosts ? replicas[s] : space->n_hosts);
    } else {
        columns += (size_t)space->n_movable; /* classes are fewer */
    }
    return columns <= MOST_COLUMNS / (size_t)space->n_hosts;
}

/* ---- solving ---- */

struct solving {
    struct counts *counts;
    struct finding *finding;
    int64_t deadline_ms;
    int64_t nodes, limit; /* of the search; -1: until the deadline */
    int *best_at;
    struct value *best;
    _Atomic int64_t *count; /* follows nodes */
};

/* Replicas that can stay do; the others take what is left in host order. */
static void placement_read(const struct counts *c, double (*value)(glp_prob *, int), int *at)
{
    const struct space *space = c->space;
    AUTO_FREE int *left = mem_array((size_t)space->n_hosts, sizeof *left);
    memcpy(at, space->start, sizeof *at * (size_t)space->n);
    for (int k = 0; k < c->n_classes; k++) {
        for (int h = 0; h < space->n_hosts; h++)
            left[h] = (int)floor(value(c->program.lp, c->classes[k].x + h) + 0.5);
        for (int i = 0; i < space->n; i++) {
            if (c->class_of[i] != k)
                continue;
            bool stays = space->start[i] >= 0 && left[space->start[i]] > 0;
            at[i] = stays ? space->start[i] : -1;
            left[stays ? space->start[i] : 0] -= stays;
        }
        for (int i = 0, h = 0; i < space->n; i++) {
            if (c->class_of[i] != k || at[i] >= 0)
                continue;
            while (h < space->n_hosts && left[h] <= 0)
                h++;
            if (h == space->n_hosts)
                return; /* not all are placed: does not hold */
            at[i] = h;
            left[h]--;
        }
    }
}

/* Whole services: who goes where by name, as the plan will have it. */
static void placement_keep_whole(struct solving *s, int *at)
{
    struct puller puller;
    struct teams teams;
    struct rng rng = {1};
    AUTO(place) struct place *place = place_new(s->counts->space, s->counts->space->start);
    puller_init(&puller, place, &rng);
    teams_init(&teams, &puller);
    teams_set_counts(&teams, at);
    place->score = place_score_exact(place);
    teams_keep(&teams, s->counts->options, s->best_at, s->best);
    teams_wipe(&teams);
    puller_wipe(&puller);
}

static bool placement_keep(struct solving *s, int *at)
{
    const struct space *space = s->counts->space;
    struct value before = *s->best;
    for (int i = 0; i < space->n; i++)
        if (at[i] < 0)
            return false;
    if (s->counts->options->granularity == PER_SERVICE) {
        placement_keep_whole(s, at);
    } else {
        AUTO(place) struct place *place = place_new(space, at);
        place->score = place_score_exact(place);
        pack_relabel(place, s->counts->options);
        struct value value = value_of(place, s->counts->options);
        if (value.valid && (!s->best->valid || value_better(&value, s->best))) {
            *s->best = value;
            memcpy(s->best_at, place->at, sizeof *at * (size_t)space->n);
        }
    }
    bool better = s->best->valid && (!before.valid || value_better(s->best, &before));
    if (better)
        finding_put(s->finding, s->best_at, s->best);
    return better;
}

static void solving_step(glp_tree *tree, void *ctx)
{
    struct solving *s = ctx;
    if (glp_ios_reason(tree) == GLP_IBINGO) {
        AUTO_FREE int *at = mem_array((size_t)s->counts->space->n, sizeof *at);
        placement_read(s->counts, glp_get_col_prim, at);
        placement_keep(s, at);
    }
    int node = glp_ios_best_node(tree);
    if (node > 0)
        finding_bound(s->finding, glp_ios_node_bound(tree, node));
    s->nodes++;
    atomic_store(s->count, s->nodes);
    if (s->limit >= 0 ? s->nodes >= s->limit : clock_mono_ms() > s->deadline_ms)
        glp_ios_terminate(tree);
}

/* What runs in the child. The bound of the finding is that of the program's objective. */
static void solving_work(void *ctx)
{
    struct solving *s = ctx;
    struct counts *c = s->counts;
    glp_smcp simplex;
    glp_iocp integer;
    int64_t left = s->deadline_ms - clock_mono_ms();
    counts_make(c, s->best);
    glp_term_out(GLP_OFF);
    glp_init_smcp(&simplex);
    simplex.meth = GLP_DUALP;
    if (s->limit < 0)
        simplex.tm_lim = left > 0 ? (int)left : 1;
    glp_adv_basis(c->program.lp, 0);
    int rc = glp_simplex(c->program.lp, &simplex);
    bool none = rc == 0 && glp_get_status(c->program.lp) == GLP_NOFEAS;
    if (rc == 0 && glp_get_status(c->program.lp) == GLP_OPT) {
        finding_bound(s->finding, glp_get_obj_val(c->program.lp));
        left = s->deadline_ms - clock_mono_ms();
        glp_init_iocp(&integer);
        if (s->limit < 0)
            integer.tm_lim = left > 0 ? (int)left : 1;
        integer.mir_cuts = GLP_ON;
        integer.cb_func = solving_step;
        integer.cb_info = s;
        rc = glp_intopt(c->program.lp, &integer);
        int status = glp_mip_status(c->program.lp);
        none = rc == 0 && status == GLP_NOFEAS;
        if (rc == 0 && status == GLP_OPT) {
            AUTO_FREE int *at = mem_array((size_t)c->space->n, sizeof *at);
            placement_read(c, glp_mip_col_val, at);
            placement_keep(s, at);
            finding_bound(s->finding, glp_mip_obj_val(c->program.lp));
            /* The optimum of a relaxation that holds as it is, or one that does not. */
            none = s->best->valid && counts_worth(c, s->best) >= glp_mip_obj_val(c->program.lp) - 2 * COUNTS_STEP;
        }
    }
    finding_done(s->finding, s->nodes, !none, none, "");
}

static struct counts_end end_read(const struct counts *c, const struct finding_end *end,
                                  const struct value *best)
{
    struct counts_end out = {
        .proven = end->proven, .nodes = end->iterations, .bound = INFINITY, .hosts_bound = -1};
    bool hosts = c->options->objective == OBJECTIVE_HOSTS;
    if (c->prices > 0 && !hosts)
        return out; /* the bound is that of scores less prices */
    if (out.proven && best->valid && !hosts)
        out.bound = best->score;
    else if (out.proven && best->valid)
        out.hosts_bound = best->hosts;
    else if (isfinite(end->bound) && !hosts)
        out.bound = (end->bound + 10 * COUNTS_STEP) / c->scale;
    else if (isfinite(end->bound)) /* so many even if no degree were kept and all had moved */
        out.hosts_bound =
            (int64_t)ceil((-end->bound - c->prices - 10 * COUNTS_STEP) / counts_host_worth(c));
    if (best->valid && out.hosts_bound > best->hosts)
        out.hosts_bound = best->hosts;
    if (best->valid && out.bound < best->score)
        out.bound = best->score; /* the program asks for more than that */
    return out;
}

struct counts_end counts_solve(struct space *space, const struct plan_options *options,
                               int64_t deadline_ms, int64_t limit, int *best_at, struct value *best)
{
    struct counts counts = {.space = space, .options = options};
    struct counts_end none = {.bound = INFINITY, .hosts_bound = -1};
    AUTO(finding) struct finding *finding = finding_new(space->n);
    struct err err = ERR_INIT;
    if (!finding || limit == 0 || (limit < 0 && clock_mono_ms() >= deadline_ms))
        return none;
    struct solving solving = {&counts, finding, deadline_ms, 0, limit, best_at, best,
                              finding_count(finding, best_at, best)};
    if (contain_run(solving_work, &solving, finding, options,
                    deadline_ms + (deadline_ms - clock_mono_ms()) / 10, 0, &err) < 0)
        return none;
    struct finding_end end = finding_end(finding);
    if (end.killed) { /* what it did after its last count nobody knows */
        end.iterations = end.count;
        end.bound = finding_bound_before(finding, end.count);
        finding_get_before(finding, end.count, best_at, best);
    } else {
        finding_get(finding, best_at, best);
    }
    if (end.cut && end.iterations == 0)
        return none; /* not even a node: as if it was not tried */
    counts_scale(&counts);
    counts_wipe(&counts);
    return end_read(&counts, &end, best);
}
