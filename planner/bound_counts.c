/* bound_counts.c - the linear program of bound_counts.h: Dantzig and Wolfe's hosts by what they hold,
 * with inequalities in place of patterns.
 *
 * By class of hosts (roots.h): h hosts, y[kind] of them of each kind; x[g] replicas of a group, on u[g]
 * hosts; m[e] what is kept of a pair, as a part of it. */
#include "planner/bound_counts.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include "model/base/clock.h"
#include "planner/contain.h"
#include "planner/program.h"
#include "planner/roots.h"

/* Simplex steps of a bound at once: one root takes 1000 where 150 services hang together, 0.1 s. */
#define FIRST_STEPS 4000
/* All degrees together, for a solver with tolerances of 1e-7. */
#define TOTAL 1e3

/* Roots of each program: one is solved in 0.1 s where 150 services hang together, 8 in 1 s, 16 in 4 s,
 * and each is tighter than the one before. */
static const int rounds[] = {1, 8, 16};

struct bounding {
    struct roots roots;
    struct program program;
    int hosts[ROOTS_MOST]; /* column of each class but the last, which has all hosts it needs */
    int *kept;             /* columns, pair × classes; 0: keeps nothing */
    double scale;          /* of degrees */
    int n_rounds;
    int most_steps;        /* of the simplex in a round */
    double enough;         /* of the bound, unscaled: nothing less is looked for */
    int64_t deadline_ms;
    struct finding *finding;
};

/* Hosts of each class by kind, of all classes no more than there are. Returns the first column of y. */
static int add_hosts(struct bounding *b)
{
    const struct roots *roots = &b->roots;
    struct program *program = &b->program;
    int first = 0, n = roots->n_classes - 1;
    for (int c = 0; c < n; c++)
        b->hosts[c] = program_column(program, GLP_CV, roots_hosts(roots, c), 0);
    for (int c = 0; c < n; c++) {
        int row = program_row(program, GLP_FX, 0, 0);
        program_entry(program, row, b->hosts[c], -1);
        for (int k = 0; k < roots->n_kinds; k++) {
            int y = program_column(program, GLP_CV, roots->hosts[k].n, 0);
            first = first ? first : y;
            program_entry(program, row, y, 1);
        }
    }
    for (int k = 0; k < roots->n_kinds; k++) {
        int row = program_row(program, GLP_UP, 0, roots->hosts[k].n);
        for (int c = 0; c < n; c++)
            program_entry(program, row, first + c * roots->n_kinds + k, 1);
    }
    return first;
}

/* One row: a·x + b·y <= 0. */
static void add_less(struct program *program, int x, double a, int y, double b)
{
    int row = program_row(program, GLP_UP, 0, 0);
    program_entry(program, row, x, a);
    program_entry(program, row, y, b);
}

/* A root is on all hosts of its class. */
static void add_root(struct bounding *b, struct spot *spot, int class)
{
    spot->u = b->hosts[class];
    add_less(&b->program, spot->u, 1, spot->x, -1);
    add_less(&b->program, spot->x, 1, spot->u, -spot->most);
}

/* Others: u <= x <= most · u, u <= h. */
static void add_other(struct bounding *b, struct spot *spot, int size, int class)
{
    int n = roots_hosts(&b->roots, class);
    bool last = class + 1 == b->roots.n_classes;
    spot->u = spot->x;
    if (size > 1) {
        spot->u = program_column(&b->program, GLP_CV, n < size ? n : size, 0);
        add_less(&b->program, spot->u, 1, spot->x, -1);
        add_less(&b->program, spot->x, 1, spot->u, -spot->most);
    }
    if (!last)
        add_less(&b->program, spot->u, 1, b->hosts[class], -1);
}

/* All replicas of each group are in some class. */
static void add_groups(struct bounding *b)
{
    const struct roots *roots = &b->roots;
    for (int g = 0; g < roots->space->n_groups; g++) {
        int size = roots->space->size[g], all = 0;
        for (int c = 0; c < roots->n_classes; c++) {
            struct spot *spot = roots_spot(roots, g, c);
            if (spot->most == 0)
                continue;
            double high = fmin(size, (double)spot->most * roots_hosts(roots, c));
            all = all ? all : program_row(&b->program, GLP_FX, size, size);
            spot->x = program_column(&b->program, GLP_CV, high, 0);
            program_entry(&b->program, all, spot->x, 1);
            if (roots_of(roots, c) == g)
                add_root(b, spot, c);
            else
                add_other(b, spot, size, c);
        }
    }
}

/* Room of the hosts of a class, and of all hosts with what else needs it. */
static void add_class_room(struct bounding *b, int class, int d, int whole, int y)
{
    const struct roots *roots = &b->roots;
    const struct space *space = roots->space;
    double largest = (double)roots->largest[d];
    bool last = class + 1 == roots->n_classes;
    int row = last ? 0 : program_row(&b->program, GLP_UP, 0, 0);
    for (int k = 0; !last && k < roots->n_kinds; k++)
        program_entry(&b->program, row, y + k, -roots->hosts[k].room[d] / largest);
    for (int g = 0; g < space->n_groups; g++) {
        int x = roots_spot(roots, g, class)->x;
        double need = x ? (double)roots->need[g * space->dims + d] : 0;
        if (need <= 0)
            continue;
        program_entry(&b->program, whole, x, need / roots->all[d]);
        if (!last)
            program_entry(&b->program, row, x, need / largest);
    }
}

static void add_room(struct bounding *b, int first)
{
    const struct roots *roots = &b->roots;
    for (int d = 0; d < roots->space->dims; d++) {
        if (roots->all[d] <= 0)
            continue;
        double left = 1 - roots->filler[d] / roots->all[d];
        int whole = program_row(&b->program, GLP_UP, 0, left);
        for (int c = 0; c < roots->n_classes; c++)
            add_class_room(b, c, d, whole, first + c * roots->n_kinds);
    }
}

/* A pair has no more than its ends in the class, and no more than `most` on each host that one is on. */
static void add_end(struct bounding *b, int group, int class, int column, double most)
{
    const struct spot *spot = roots_spot(&b->roots, group, class);
    int size = b->roots.space->size[group];
    bool tighter = most < (double)spot->most / size;
    if (tighter)
        add_less(&b->program, column, 1, spot->u, -most);
    if (!tighter || size > 1)
        add_less(&b->program, column, size, spot->x, -1);
}

static void add_pairs(struct bounding *b)
{
    const struct roots *roots = &b->roots;
    b->kept = mem_array((size_t)(roots->n_pairs * roots->n_classes), sizeof *b->kept);
    for (int e = 0; e < roots->n_pairs; e++)
        for (int c = 0; c < roots->n_classes; c++) {
            const struct pair *pair = &roots->pairs[e];
            double most = roots_pair_most(roots, pair, c);
            if (most <= 0)
                continue;
            int column = program_column(&b->program, GLP_CV, fmin(1, most * roots_hosts(roots, c)),
                                        pair->degree * b->scale);
            b->kept[e * roots->n_classes + c] = column;
            add_end(b, pair->a, c, column, most);
            add_end(b, pair->b, c, column, most);
        }
}

/* The other end of a pair that the class may keep beside the group; -1: none, or the root, whose room
 * is taken anyway. */
static int partner(const struct bounding *b, int pair, int group, int class)
{
    const struct pair *it = &b->roots.pairs[pair];
    int other = it->a == group ? it->b : it->b == group ? it->a : -1;
    bool kept = b->kept[pair * b->roots.n_classes + class] > 0;
    return kept && other != roots_of(&b->roots, class) ? other : -1;
}

/* True when all that may be beside a group would be more than `room`. */
static bool crowded(const struct bounding *b, int group, int class, int d, double room)
{
    const struct roots *roots = &b->roots;
    int dims = roots->space->dims;
    double all = (double)roots->need[group * dims + d] * roots_spot(roots, group, class)->most;
    for (int e = 0; e < roots->n_pairs; e++) {
        int other = partner(b, e, group, class);
        if (other >= 0)
            all += (double)roots->need[other * dims + d] * roots_spot(roots, other, class)->most;
    }
    return all > room;
}

/* Beside replicas of the group, and one of the root, its partners have what the host has left. */
static void add_star(struct bounding *b, int group, int class, int d)
{
    const struct roots *roots = &b->roots;
    const struct spot *spot = roots_spot(roots, group, class);
    int dims = roots->space->dims, root = roots_of(roots, class);
    double own = (double)roots->need[group * dims + d], largest = (double)roots->largest[d];
    double left = largest - (root >= 0 ? (double)roots->need[root * dims + d] : 0);
    if (!spot->x || root == group || largest <= 0 || !crowded(b, group, class, d, left))
        return;
    int row = program_row(&b->program, GLP_UP, 0, 0);
    if (spot->u == spot->x) {
        program_entry(&b->program, row, spot->u, (own - left) / largest);
    } else {
        program_entry(&b->program, row, spot->u, -left / largest);
        program_entry(&b->program, row, spot->x, own / largest);
    }
    for (int e = 0; e < roots->n_pairs; e++) {
        int other = partner(b, e, group, class);
        double need = other >= 0 ? (double)roots->need[other * dims + d] : 0;
        if (need > 0)
            program_entry(&b->program, row, b->kept[e * roots->n_classes + class],
                          need * roots->space->size[other] / largest);
    }
}

static void program_make(struct bounding *b)
{
    const struct space *space = b->roots.space;
    program_init(&b->program);
    int first = add_hosts(b);
    add_groups(b);
    add_room(b, first);
    add_pairs(b);
    for (int g = 0; g < space->n_groups; g++)
        for (int c = 0; c < b->roots.n_classes; c++)
            for (int d = 0; d < space->dims && roots_spot(&b->roots, g, c)->x; d++)
                add_star(b, g, c, d);
    program_load(&b->program);
}

/* ---- solving ---- */

/* The bound with so many roots; INFINITY when the time was over before. */
static double round_bound(struct bounding *b, int n)
{
    glp_smcp simplex;
    double bound = INFINITY;
    roots_split(&b->roots, n);
    program_make(b);
    int64_t left = b->deadline_ms - clock_mono_ms();
    glp_init_smcp(&simplex);
    simplex.meth = GLP_DUALP;
    if (left < INT32_MAX)
        simplex.tm_lim = left > 0 ? (int)left : 1;
    simplex.it_lim = b->most_steps;
    glp_adv_basis(b->program.lp, 0);
    if (glp_simplex(b->program.lp, &simplex) == 0 && glp_get_status(b->program.lp) == GLP_OPT)
        bound = program_bound(&b->program) / b->scale + b->roots.given_up;
    program_wipe(&b->program);
    free(b->kept);
    return bound;
}

/* What runs in the child. */
static void bounding_run(void *ctx)
{
    struct bounding *b = ctx;
    struct value none = {0};
    _Atomic int64_t *done = finding_count(b->finding, NULL, &none);
    double best = INFINITY;
    glp_term_out(GLP_OFF);
    for (int k = 0; k < b->n_rounds && best > b->enough; k++) {
        double bound = round_bound(b, rounds[k]);
        if (!isfinite(bound))
            break;
        best = fmin(best, bound);
        finding_bound(b->finding, best);
        atomic_fetch_add(done, 1);
    }
    finding_done(b->finding, 0, false, best <= b->enough, "");
}

double bound_counts(const struct space *space, const struct plan_options *options, double score,
                    struct effort *effort)
{
    struct err err = ERR_INIT;
    struct bounding b = {.scale = TOTAL / space->total, .deadline_ms = effort->deadline_ms,
                         .most_steps = INT_MAX};
    int64_t left = effort->limit >= 0 ? effort->limit - effort->done : INT64_MAX, done = 0;
    int all = 1;
    AUTO(finding) struct finding *finding = b.finding = finding_new(0);
    if (!finding || !roots_init(&b.roots, space))
        return INFINITY;
    while (all < (int)ARRAY_LEN(rounds) && rounds[all - 1] < b.roots.n_roots)
        all++;
    b.n_rounds = left < all ? (int)(left > 0 ? left : 0) : all;
    b.enough = score * (1 + 1e-9);
    if (effort->limit >= 0)
        b.deadline_ms = INT64_MAX;
    if (b.n_rounds > 0 &&
        contain_run(bounding_run, &b, finding, options, effort->deadline_ms, 0, &err) == 0)
        done = finding_end(finding).count;
    roots_wipe(&b.roots);
    struct finding_end end = finding_end(finding);
    effort->done += done;
    effort->cut = effort->cut || (done < all && !end.proven && !end.failed);
    return done > 0 ? finding_bound_before(finding, done) : INFINITY;
}

double bound_counts_first(const struct space *space, const struct plan_options *options)
{
    struct err err = ERR_INIT;
    struct plan_options counted = *options;
    struct bounding b = {.scale = TOTAL / space->total, .deadline_ms = INT64_MAX, .n_rounds = 1,
                         .most_steps = FIRST_STEPS};
    AUTO(finding) struct finding *finding = b.finding = finding_new(0);
    int64_t done = 0;
    counted.iterations = 1; /* ends by its count, not by the clock */
    if (!finding || !roots_init(&b.roots, space))
        return INFINITY;
    if (contain_run(bounding_run, &b, finding, &counted, INT64_MAX, 0, &err) == 0)
        done = finding_end(finding).count;
    roots_wipe(&b.roots);
    return done > 0 ? finding_bound_before(finding, done) : INFINITY;
}
