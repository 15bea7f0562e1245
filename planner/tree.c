/* tree.c - branch and price. */
#include "planner/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/clock.h"
#include "model/base/pairs.h"
#include "planner/generate.h"

/* Patterns and nodes of a restricted integer master: some 0.1 s. */
#define INTEGER_PATTERNS 1500
#define INTEGER_NODES 400

struct step { /* a decision over items of the root, and the step before it (-1: none) */
    struct decision decision;
    int up;
};

struct node {
    int step; /* the last one */
    double bound;
    int depth;
    double *prices; /* of the root's items, from its parent's best bound; NULL at the root */
};

struct tree {
    struct search search;
    const struct tree_report *report;
    struct step *steps;
    size_t n_steps;
    struct node *open;
    size_t n_open;
    double stuck; /* bound of what cannot be branched further: rules that patterns do not know */
};

/* ---- placements ---- */

/* The best choice of few patterns, of those that a better placement may have: a pattern whose reduced
 * cost is more than the gap is in none. */
static void integer_try(struct tree *tree, struct work *work)
{
    struct search *search = &tree->search;
    AUTO_FREE struct scored *order = pool_scores(&work->pool, work->prices, work->kind_prices);
    AUTO_FREE struct pattern *few = mem_array(work->pool.n, sizeof *few);
    AUTO_FREE int *picks = mem_array(work->pool.n, sizeof *picks);
    size_t n = 0;
    for (size_t k = 0; k < work->pool.n && n < INTEGER_PATTERNS; k++)
        if (work->bound + order[k].score > search->best)
            few[n++] = work->pool.patterns[order[k].pattern];
    /* Its nodes are counted; where the clock ends it, that is the end of the search, and this count is
     * where replay ends. */
    struct effort *effort = search->effort;
    if (n == 0 || effort_spend(effort, 1))
        return;
    int64_t left = effort->limit >= 0 ? INT32_MAX : effort->deadline_ms - clock_mono_ms();
    bool ended = left <= 0;
    double value = ended ? -INFINITY
                         : master_integer(work->parts, few, n,
                                          search->best - work->parts->constant + search->margin,
                                          INTEGER_NODES, left, picks, &ended);
    effort->cut |= ended;
    if (ended)
        return;
    if (isfinite(value))
        work_place(work, picks, few, n);
}

/* ---- branching ---- */

/* How much of each pair shares a host in the solution, in units of 1e-9. */
static void pairs_sum(const struct work *work, struct pairs *pairs)
{
    for (size_t k = 0; k < work->pool.n; k++) {
        const struct pattern *pattern = &work->pool.patterns[k];
        int64_t amount = llround(master_amount(work->master, k) * 1e9);
        if (amount < 1000)
            continue;
        for (int i = 0; i < pattern->n; i++)
            for (int j = 0; j < pattern->n; j++)
                if (pattern->items[i] < pattern->items[j])
                    *pairs_at(pairs, pattern->items[i], pattern->items[j]) += amount;
    }
}

static double doubt_of(int64_t amount)
{
    double part = (double)amount / 1e9;
    return part < 1e-5 || part > 1 - 1e-5 ? 0 : part < 0.5 ? part : 1 - part;
}

/* The pair or, where all pairs are decided, the item and kind in most doubt. False: none is. */
static bool branch_pick(const struct work *work, struct decision *out)
{
    const struct parts *parts = work->parts;
    struct pairs pairs = PAIRS_INIT, kinds = PAIRS_INIT;
    double most = 0, mean = PARTS_TOTAL / (double)(parts->first[parts->n] / 2 + 1);
    pairs_sum(work, &pairs);
    for (size_t k = 0; k < work->pool.n; k++) {
        const struct pattern *pattern = &work->pool.patterns[k];
        int64_t amount = llround(master_amount(work->master, k) * 1e9);
        for (int i = 0; i < pattern->n && amount >= 1000; i++) {
            *pairs_at(&kinds, pattern->items[i], pattern->kind) += amount;
            for (int j = 0; j < pattern->n; j++) {
                int a = pattern->items[i], b = pattern->items[j];
                if (a >= b)
                    continue;
                double doubt = doubt_of(pairs_get(&pairs, a, b, 0)), degree = 0.01 * mean;
                for (size_t l = parts->first[a]; l < parts->first[a + 1]; l++)
                    if (parts->arcs[l].item == b)
                        degree += parts->arcs[l].degree;
                if (doubt * degree > most) {
                    most = doubt * degree;
                    *out = (struct decision){TOGETHER, a, b};
                }
            }
        }
    }
    for (int i = 0; most == 0 && i < parts->n; i++)
        for (int k = 0; k < parts->n_kinds; k++)
            if (doubt_of(pairs_get(&kinds, i, k, 0)) > most) {
                most = doubt_of(pairs_get(&kinds, i, k, 0));
                *out = (struct decision){ON_KIND, i, k};
            }
    pairs_wipe(&pairs);
    pairs_wipe(&kinds);
    return most > 0;
}

static void node_push(struct tree *tree, const struct work *work, const struct node *from,
                      const struct decision *decision)
{
    struct step *step = ARRAY_PUSH(tree->steps, tree->n_steps);
    *step = (struct step){*decision, from->step};
    struct node *node = ARRAY_PUSH(tree->open, tree->n_open);
    *node = (struct node){(int)tree->n_steps - 1, work->bound, from->depth + 1, work_prices(work)};
}

static void node_branch(struct tree *tree, const struct work *work, const struct node *node)
{
    struct decision decision;
    if (!branch_pick(work, &decision)) {
        tree->stuck = work->bound > tree->stuck ? work->bound : tree->stuck;
        return;
    }
    decision.a = work->back[work->first[decision.a]];
    if (decision.what == TOGETHER)
        decision.b = work->back[work->first[decision.b]];
    node_push(tree, work, node, &decision);
    decision.what = decision.what == TOGETHER ? APART : OFF_KIND;
    node_push(tree, work, node, &decision);
}

/* A solution of the master in whole numbers is a placement. */
static void whole_try(struct work *work)
{
    AUTO_FREE int *picks = mem_array(work->pool.n, sizeof *picks);
    for (size_t k = 0; k < work->pool.n; k++) {
        double amount = master_amount(work->master, k);
        picks[k] = (int)lround(amount);
        if (fabs(amount - picks[k]) > 1e-5)
            return;
    }
    work_place(work, picks, work->pool.patterns, work->pool.n);
}

static double bound_of(const struct tree *tree)
{
    double bound = tree->stuck;
    for (size_t k = 0; k < tree->n_open; k++)
        if (tree->open[k].bound > bound)
            bound = tree->open[k].bound;
    return bound > tree->search.best ? bound : tree->search.best;
}

/* Best bound first; the deeper among equals, which finds placements sooner. */
static struct node node_take(struct tree *tree)
{
    size_t best = 0;
    for (size_t k = 1; k < tree->n_open; k++) {
        const struct node *a = &tree->open[k], *b = &tree->open[best];
        if (a->bound > b->bound || (a->bound == b->bound && a->depth > b->depth))
            best = k;
    }
    struct node node = tree->open[best];
    tree->open[best] = tree->open[--tree->n_open];
    return node;
}

static bool node_init(struct tree *tree, const struct node *node, struct work *work)
{
    AUTO_FREE struct decision *decisions = mem_array((size_t)node->depth, sizeof *decisions);
    size_t depth = 0;
    for (int s = node->step; s >= 0; s = tree->steps[s].up)
        decisions[depth++] = tree->steps[s].decision;
    return work_init(work, &tree->search, decisions, depth, node->bound, node->prices);
}

/* Solves a node and puts what is left of it on the list. 1: the search ends here. */
static int node_run(struct tree *tree, const struct node *node)
{
    AUTO_WORK struct work work = {0};
    struct decision decision;
    if (!node_init(tree, node, &work))
        return 0;
    int result = work_solve(&work, true);
    if (result == 0 && !work_closed(&work)) {
        whole_try(&work);
        /* Nothing to branch on before the end: then the end it is. */
        if (!work_closed(&work) && !branch_pick(&work, &decision))
            result = work_solve(&work, false);
    }
    if (result == 0 && !work_closed(&work)) {
        whole_try(&work);
        if (!work_closed(&work) && node->depth % 4 == 0)
            integer_try(tree, &work);
    }
    if (result < 0) {
        if (!tree->search.failed && work.master)
            integer_try(tree, &work);
        *ARRAY_PUSH(tree->open, tree->n_open) =
            (struct node){node->step, work.bound, node->depth, work_prices(&work)};
        return 1;
    }
    if (!work_closed(&work))
        node_branch(tree, &work, node);
    return 0;
}

static void tree_wipe(struct tree *tree)
{
    pool_wipe(&tree->search.pool);
    free(tree->steps);
    for (size_t k = 0; k < tree->n_open; k++)
        free(tree->open[k].prices);
    free(tree->open);
}

int tree_search(const struct parts *parts, const struct tree_start *start,
                const struct tree_report *report, struct effort *effort)
{
    struct tree tree = {.search = {.root = parts, .effort = effort, .report = report,
                                   .best = start->known, .margin = start->margin},
                        .report = report, .stuck = -INFINITY};
    int result = 0;
    for (size_t p = 0; p < start->n_placements; p++)
        search_add_placement(&tree.search, start->placements[p]);
    *ARRAY_PUSH(tree.open, tree.n_open) = (struct node){-1, INFINITY, 0, NULL};
    while (result == 0 && tree.n_open > 0 && !search_closed(&tree.search, bound_of(&tree))) {
        struct node node = node_take(&tree);
        if (!search_closed(&tree.search, node.bound)) {
            result = node_run(&tree, &node);
            report->bound(report->ctx, bound_of(&tree));
        }
        free(node.prices);
    }
    double bound = bound_of(&tree);
    report->bound(report->ctx, bound);
    if (tree.search.failed)
        result = -1;
    else if (result == 0)
        result = !search_closed(&tree.search, bound);
    tree_wipe(&tree);
    return result;
}
