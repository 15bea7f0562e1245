/* tree.c - branch and price. */
#include "planner/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/clock.h"
#include "model/base/pairs.h"
#include "planner/master.h"

/* Patterns kept in a node's master when it starts, per item; more make the simplex slow. */
#define PATTERNS_PER_ITEM 8
/* Nodes of one exact pricing before its bound is taken as it stands: few while prices are far from
 * the best, when searches are long and patterns easy to find, more where nothing is found. */
#define PRICING_NODES_FIRST 30
#define PRICING_NODES_MOST 50000
/* Rounds over the roots that paid before all are priced again. */
#define PARTIAL_ROUNDS 5
/* Patterns and nodes of a restricted integer master: some 0.1 s. */
#define INTEGER_PATTERNS 1500
#define INTEGER_NODES 400

struct seen { /* sets by hash, open addressing; 0 free */
    uint64_t *slots;
    size_t n, n_slots;
};

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
    const struct parts *root;
    const struct tree_report *report;
    struct effort *effort;
    struct pattern *pool; /* over the items of the root */
    size_t n_pool;
    struct seen seen;
    struct step *steps;
    size_t n_steps;
    struct node *open;
    size_t n_open;
    double best, margin;
    double stuck;   /* bound of what cannot be branched further: rules that patterns do not know */
    int *kind_of;   /* of each host */
    bool failed;
};

/* ---- the pool ---- */

static uint64_t set_hash(int kind, const int *items, int n)
{
    uint64_t sum = (uint64_t)kind * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int k = 0; k < n; k++) {
        struct rng rng = {(uint64_t)items[k] + 1};
        sum += rng_next(&rng);
    }
    return sum ? sum : 1;
}

static size_t seen_slot(const uint64_t *slots, size_t n, uint64_t hash)
{
    size_t at = hash & (n - 1);
    while (slots[at] && slots[at] != hash)
        at = (at + 1) & (n - 1);
    return at;
}

/* True when the hash was there already; then it is. */
static bool seen_before(struct seen *seen, uint64_t hash)
{
    if (seen->n * 2 >= seen->n_slots) {
        size_t n = seen->n_slots ? seen->n_slots * 2 : 256;
        uint64_t *slots = mem_array(n, sizeof *slots);
        for (size_t k = 0; k < seen->n_slots; k++)
            if (seen->slots[k])
                slots[seen_slot(slots, n, seen->slots[k])] = seen->slots[k];
        free(seen->slots);
        seen->slots = slots;
        seen->n_slots = n;
    }
    size_t at = seen_slot(seen->slots, seen->n_slots, hash);
    if (seen->slots[at])
        return true;
    seen->slots[at] = hash;
    seen->n++;
    return false;
}

static void pool_add(struct tree *tree, int kind, const int *items, int n)
{
    double value = pattern_value(tree->root, kind, items, n);
    if (n == 0 || !isfinite(value) || seen_before(&tree->seen, set_hash(kind, items, n)))
        return;
    struct pattern *pattern = ARRAY_PUSH(tree->pool, tree->n_pool);
    *pattern = (struct pattern){kind, n, mem_dup(items, (size_t)n * sizeof *items), value};
}

/* ---- nodes ---- */

struct work { /* one node while it is solved */
    struct tree *tree;
    struct parts *parts;
    struct seen seen;
    int *map;          /* item of the root → item here */
    int *first, *back; /* items here → items of the root */
    struct pricer *pricer;
    struct master *master;
    struct pattern *patterns; /* of the master, over items here */
    size_t n_patterns;
    double *root_prices; /* of the root's items, to choose patterns by */
    bool *paid;          /* by kind × root: a pattern was found last time */
    double *prices, *kind_prices, *best_prices, *use;
    double value, bound;
    double center; /* bound that best_prices give here */
    int max_nodes; /* of one pricing, for now */
    int n_cut;     /* pricings of the last round that ended there */
    int *items, *wide;
};

static void work_wipe(struct work *work)
{
    for (size_t k = 0; k < work->n_patterns; k++)
        free(work->patterns[k].items);
    free(work->patterns);
    free(work->seen.slots);
    free(work->root_prices);
    free(work->paid);
    free(work->map);
    free(work->first);
    free(work->back);
    free(work->prices);
    free(work->kind_prices);
    free(work->best_prices);
    free(work->use);
    free(work->items);
    free(work->wide);
    pricer_free(work->pricer);
    master_free(work->master);
    parts_free(work->parts);
}
#define AUTO_WORK __attribute__((cleanup(work_wipe)))

static void back_init(struct work *work)
{
    const struct parts *root = work->tree->root;
    work->first = mem_array((size_t)work->parts->n + 2, sizeof *work->first);
    work->back = mem_array((size_t)root->n, sizeof *work->back);
    for (int i = 0; i < root->n; i++)
        work->first[work->map[i] + 2]++;
    for (int i = 0; i < work->parts->n; i++)
        work->first[i + 2] += work->first[i + 1];
    for (int i = 0; i < root->n; i++)
        work->back[work->first[work->map[i] + 1]++] = i;
}

/* The node's problem; false when its decisions contradict. */
static bool work_init(struct work *work, struct tree *tree, const struct node *node)
{
    const struct parts *root = tree->root;
    AUTO_FREE struct decision *decisions = mem_array((size_t)node->depth, sizeof *decisions);
    int depth = 0;
    for (int s = node->step; s >= 0; s = tree->steps[s].up)
        decisions[depth++] = tree->steps[s].decision;
    work->tree = tree;
    work->parts = parts_branch(root, decisions, (size_t)depth, &work->map);
    if (!work->parts)
        return false;
    size_t n = (size_t)work->parts->n;
    back_init(work);
    work->pricer = pricer_new(work->parts);
    work->master = master_new(work->parts);
    work->prices = mem_array(n, sizeof *work->prices);
    work->best_prices = mem_array(n, sizeof *work->best_prices);
    work->use = mem_array(n, sizeof *work->use);
    work->kind_prices = mem_array((size_t)work->parts->n_kinds, sizeof *work->kind_prices);
    work->items = mem_array(n, sizeof *work->items);
    work->wide = mem_array((size_t)root->n, sizeof *work->wide);
    work->bound = node->bound;
    work->center = INFINITY;
    work->max_nodes = PRICING_NODES_FIRST;
    work->root_prices = node->prices
                            ? mem_dup(node->prices, (size_t)root->n * sizeof *node->prices)
                            : mem_array((size_t)root->n, sizeof *work->root_prices);
    work->paid = mem_array((size_t)work->parts->n_kinds * n, sizeof *work->paid);
    for (int i = 0; i < root->n; i++)
        work->best_prices[work->map[i]] += work->root_prices[i];
    return true;
}

/* A pattern of the pool in this node's items; false where it tears one apart. */
static bool pattern_map(const struct work *work, const struct pattern *from, int *items, int *n)
{
    AUTO_FREE int *count = mem_array((size_t)work->parts->n, sizeof *count);
    *n = 0;
    for (int k = 0; k < from->n; k++)
        if (count[work->map[from->items[k]]]++ == 0)
            items[(*n)++] = work->map[from->items[k]];
    for (int k = 0; k < *n; k++)
        if (count[items[k]] != work->first[items[k] + 1] - work->first[items[k]])
            return false;
    return true;
}

static void work_add(struct work *work, int kind, const int *items, int n, double value)
{
    if (seen_before(&work->seen, set_hash(kind, items, n)))
        return;
    struct pattern *pattern = ARRAY_PUSH(work->patterns, work->n_patterns);
    *pattern = (struct pattern){kind, n, mem_dup(items, (size_t)n * sizeof *items), value};
    master_add(work->master, pattern);
}

/* Adds to the master and, in the root's items, to the pool. */
static bool work_found(struct work *work, int kind, const int *items, int n)
{
    double value = pattern_value(work->parts, kind, items, n);
    int wide = 0;
    if (!isfinite(value))
        return false;
    for (int k = 0; k < n; k++)
        for (int m = work->first[items[k]]; m < work->first[items[k] + 1]; m++)
            work->wide[wide++] = work->back[m];
    pool_add(work->tree, kind, work->wide, wide);
    work_add(work, kind, items, n, value);
    return true;
}

struct scored {
    double score;
    size_t pattern;
};

static int by_score(const void *left, const void *right)
{
    const struct scored *x = left, *y = right;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->pattern < y->pattern ? -1 : 1;
}

/* The most promising patterns of the pool, and every item alone where it must be covered. */
static void work_fill(struct work *work)
{
    const struct tree *tree = work->tree;
    AUTO_FREE struct scored *order = mem_array(tree->n_pool, sizeof *order);
    size_t most = (size_t)work->parts->n * PATTERNS_PER_ITEM + 50;
    for (size_t k = 0; k < tree->n_pool; k++) {
        order[k] = (struct scored){tree->pool[k].value, k};
        for (int i = 0; i < tree->pool[k].n; i++)
            order[k].score -= work->root_prices[tree->pool[k].items[i]];
    }
    if (tree->n_pool > 1)
        qsort(order, tree->n_pool, sizeof *order, by_score);
    for (size_t k = 0; k < tree->n_pool && work->n_patterns < most; k++) {
        const struct pattern *pattern = &tree->pool[order[k].pattern];
        int n;
        if (!pattern_map(work, pattern, work->items, &n))
            continue;
        double value = pattern_value(work->parts, pattern->kind, work->items, n);
        if (isfinite(value))
            work_add(work, pattern->kind, work->items, n, value);
    }
    for (int i = 0; !work->parts->alone && i < work->parts->n; i++)
        for (int k = 0; k < work->parts->n_kinds; k++) {
            double value = pattern_value(work->parts, k, &i, 1);
            if (isfinite(value))
                work_add(work, k, &i, 1, value);
        }
}

/* A master with too many patterns is slow: keeps those that are used or nearly. */
static void work_purge(struct work *work)
{
    size_t most = (size_t)work->parts->n * PATTERNS_PER_ITEM + 50, n = work->n_patterns;
    if (n < most * 3 / 2)
        return;
    AUTO_FREE struct scored *order = mem_array(n, sizeof *order);
    struct pattern *old = steal(work->patterns);
    for (size_t k = 0; k < n; k++) {
        order[k] = (struct scored){old[k].value - work->kind_prices[old[k].kind], k};
        for (int i = 0; i < old[k].n; i++)
            order[k].score -= work->prices[old[k].items[i]];
    }
    qsort(order, n, sizeof *order, by_score);
    master_free(work->master);
    work->master = master_new(work->parts);
    work->n_patterns = 0;
    memset(work->seen.slots, 0, work->seen.n_slots * sizeof *work->seen.slots);
    work->seen.n = 0;
    for (size_t k = 0; k < n; k++) {
        struct pattern *pattern = &old[order[k].pattern];
        bool alone = !work->parts->alone && pattern->n == 1;
        if (k < most * 2 / 3 || alone)
            work_add(work, pattern->kind, pattern->items, pattern->n, pattern->value);
    }
    for (size_t k = 0; k < n; k++)
        free(old[k].items);
    free(old);
}

/* ---- pricing rounds ---- */

static int descending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? 1 : a > b ? -1 : 0;
}

/* Prices one kind and root (-1: any) exactly; its bound in *value. 1 when a pattern was found that
 * improves the master. */
static int exact_one(struct work *work, int kind, int root, const double *prices, int max_nodes,
                     double *value)
{
    int n;
    double best, least = work->kind_prices[kind];
    double top = pricer_exact(work->pricer, kind, root, prices, least, max_nodes, work->items,
                              &n, &best);
    double real = best;
    work->n_cut += top > best;
    *value = top > 0 ? top : 0;
    for (int i = 0; i < n; i++)
        real += prices[work->items[i]] - work->prices[work->items[i]];
    return n > 0 && real > least + 1e-6 && work_found(work, kind, work->items, n);
}

/* Only the roots that paid last time: no bound, but most of the patterns. */
static int partial_round(struct work *work, const double *prices)
{
    const struct parts *parts = work->parts;
    int found = 0;
    for (int k = 0; k < parts->n_kinds; k++)
        for (int r = 0; r < parts->n; r++) {
            bool *paid = &work->paid[k * parts->n + r];
            double value;
            if (!*paid)
                continue;
            *paid = exact_one(work, k, parts->kinds[k].count == 1 ? -1 : parts->by_rank[r], prices,
                              PRICING_NODES_FIRST, &value);
            found += *paid;
            if (effort_spend(work->tree->effort, 1))
                return found;
        }
    return found;
}

/* Prices every kind and root exactly. Any placement uses at most `count` patterns of a kind, each
 * with a root of its own, so that Σ prices + Σ of the `count` largest values bounds it. */
static int exact_round(struct work *work, const double *prices, bool *ended)
{
    const struct parts *parts = work->parts;
    AUTO_FREE double *values = mem_array((size_t)parts->n + 1, sizeof *values);
    double bound = parts->constant;
    int found = 0;
    for (int i = 0; i < parts->n; i++)
        bound += prices[i];
    *ended = false;
    work->n_cut = 0;
    for (int k = 0; k < parts->n_kinds; k++) {
        int count = parts->kinds[k].count, n = count == 1 ? 1 : parts->n;
        for (int r = 0; r < n; r++) {
            bool *paid = &work->paid[k * parts->n + r];
            *paid = exact_one(work, k, count == 1 ? -1 : parts->by_rank[r], prices,
                              work->max_nodes, &values[r]);
            found += *paid;
            if (effort_spend(work->tree->effort, 1)) {
                *ended = true;
                return found;
            }
        }
        qsort(values, (size_t)n, sizeof *values, descending);
        for (int v = 0; v < count && v < n; v++)
            bound += values[v];
    }
    bound += 1e-10 * PARTS_TOTAL; /* doubles */
    if (bound < work->center) {
        work->center = bound;
        memcpy(work->best_prices, prices, (size_t)parts->n * sizeof *prices);
    }
    work->bound = bound < work->bound ? bound : work->bound;
    return found;
}

/* First prices: half of each item's degrees. No pattern is worth more than its prices then, pricing
 * sees that at once, and the bound is the sum of all degrees: a centre to come down from. */
static void first_prices(struct work *work)
{
    const struct parts *parts = work->parts;
    work->center = parts->constant + 1e-10 * PARTS_TOTAL;
    for (int i = 0; i < parts->n; i++) {
        double half = 0, bonus = 0;
        for (size_t k = parts->first[i]; k < parts->first[i + 1]; k++)
            half += parts->arcs[k].degree / 2;
        for (int k = 0; k < parts->n_kinds; k++)
            if (parts->kinds[k].bonus && parts->kinds[k].bonus[i] > bonus)
                bonus = parts->kinds[k].bonus[i];
        work->best_prices[i] = half + bonus;
        work->center += half + bonus;
    }
    work->bound = work->center < work->bound ? work->center : work->bound;
}

/* ---- placements ---- */

/* Host of each item of the root from chosen patterns, and tells the caller. */
static void placement_found(struct work *work, const int *picks, const struct pattern *patterns,
                            size_t n)
{
    struct tree *tree = work->tree;
    const struct parts *root = tree->root;
    AUTO_FREE int *host = mem_array((size_t)root->n, sizeof *host);
    AUTO_FREE int *used = mem_array((size_t)root->n_kinds, sizeof *used);
    for (int i = 0; i < root->n; i++)
        host[i] = -1;
    for (size_t k = 0; k < n; k++)
        for (int c = 0; c < picks[k] && c < 1; c++) {
            const struct pattern *pattern = &patterns[k];
            if (used[pattern->kind] >= root->kinds[pattern->kind].count)
                continue;
            int at = root->kinds[pattern->kind].hosts[used[pattern->kind]++];
            for (int i = 0; i < pattern->n; i++)
                for (int m = work->first[pattern->items[i]];
                     m < work->first[pattern->items[i] + 1]; m++)
                    host[work->back[m]] = at;
        }
    double value = tree->report->found(tree->report->ctx, host);
    if (value > tree->best)
        tree->best = value;
}

static void integer_try(struct work *work, int max_nodes)
{
    const struct tree *tree = work->tree;
    AUTO_FREE struct scored *order = mem_array(work->n_patterns, sizeof *order);
    AUTO_FREE struct pattern *few = mem_array(work->n_patterns, sizeof *few);
    AUTO_FREE int *picks = mem_array(work->n_patterns, sizeof *picks);
    size_t n = 0;
    for (size_t k = 0; k < work->n_patterns; k++) {
        const struct pattern *pattern = &work->patterns[k];
        order[k] = (struct scored){pattern->value - work->kind_prices[pattern->kind], k};
        for (int i = 0; i < pattern->n; i++)
            order[k].score -= work->prices[pattern->items[i]];
    }
    qsort(order, work->n_patterns, sizeof *order, by_score);
    /* A pattern whose reduced cost is more than the gap is in no better placement. */
    for (size_t k = 0; k < work->n_patterns && n < INTEGER_PATTERNS; k++)
        if (work->bound + order[k].score > tree->best)
            few[n++] = work->patterns[order[k].pattern];
    int64_t left = tree->effort->deadline_ms - clock_mono_ms();
    if (n == 0 || left < 20)
        return;
    double value = master_integer(work->parts, few, n,
                                  tree->best - work->parts->constant + tree->margin, max_nodes,
                                  tree->effort->limit >= 0 ? 600000 : left / 4, picks);
    if (isfinite(value))
        placement_found(work, picks, few, n);
}

/* ---- one node ---- */

/* True when nothing better than the best can be in a problem of this bound. No placement is worth
 * less than 0, so that a bound below shows that there is none. */
static bool bound_closed(const struct tree *tree, double bound)
{
    return bound <= tree->best + tree->margin || bound < -tree->margin;
}

static bool closed(const struct work *work)
{
    return bound_closed(work->tree, work->bound);
}

/* Column generation until the bound is met, the master cannot be improved, or (`early`) branching is
 * cheaper. -1: the effort ended or the solver failed. */
static int node_solve(struct work *work, bool early)
{
    const struct parts *parts = work->parts;
    struct tree *tree = work->tree;
    bool smooth = true, ended = false;
    double lean = 0.7; /* to the best prices so far: more where the last step away was too long */
    int partial = PARTIAL_ROUNDS;
    for (;;) {
        if (master_solve(work->master, &work->value, work->prices, work->kind_prices) < 0) {
            tree->failed = true;
            return -1;
        }
        work->value += parts->constant;
        if (effort_spend(tree->effort, 1))
            return -1;
        work_purge(work);
        for (int i = 0; i < parts->n; i++)
            work->use[i] = smooth ? lean * work->best_prices[i] + (1 - lean) * work->prices[i]
                                  : work->prices[i];
        if (partial++ < PARTIAL_ROUNDS && partial_round(work, work->use) > 0)
            continue;
        partial = 0;
        double center = work->center;
        int found = exact_round(work, work->use, &ended);
        if (ended)
            return -1;
        if (closed(work) || (found == 0 && !smooth && work->n_cut == 0))
            return 0;
        if (early && isfinite(tree->best) &&
            work->bound - work->value < 0.03 * (work->value - tree->best))
            return 0;
        lean += work->center < center ? -0.1 : 0.05;
        lean = lean < 0.4 ? 0.4 : lean > 0.95 ? 0.95 : lean;
        if (work->n_cut > found && work->max_nodes < PRICING_NODES_MOST)
            work->max_nodes *= 3;
        else if (found == 0 && work->n_cut > 0 && !smooth)
            return 0; /* some pricing is too long: branching must make it shorter */
        smooth = found > 0 || (smooth && work->n_cut > 0);
        if (found == 0)
            partial = PARTIAL_ROUNDS;
    }
}

/* ---- branching ---- */

/* How much of each pair shares a host in the solution, in units of 1e-9. */
static void pairs_sum(const struct work *work, struct pairs *pairs)
{
    for (size_t k = 0; k < work->n_patterns; k++) {
        const struct pattern *pattern = &work->patterns[k];
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
    for (size_t k = 0; k < work->n_patterns; k++) {
        const struct pattern *pattern = &work->patterns[k];
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

static double *prices_copy(const struct work *work)
{
    const struct parts *root = work->tree->root;
    double *prices = mem_array((size_t)root->n, sizeof *prices);
    for (int i = 0; i < root->n; i++) {
        int item = work->map[i];
        prices[i] = work->best_prices[item] / (work->first[item + 1] - work->first[item]);
    }
    return prices;
}

static void node_push(struct work *work, const struct node *from, const struct decision *decision)
{
    struct tree *tree = work->tree;
    struct step *step = ARRAY_PUSH(tree->steps, tree->n_steps);
    *step = (struct step){*decision, from->step};
    struct node *node = ARRAY_PUSH(tree->open, tree->n_open);
    *node = (struct node){(int)tree->n_steps - 1, work->bound, from->depth + 1, prices_copy(work)};
}

static void node_branch(struct work *work, const struct node *node)
{
    struct tree *tree = work->tree;
    struct decision decision;
    if (!branch_pick(work, &decision)) {
        tree->stuck = work->bound > tree->stuck ? work->bound : tree->stuck;
        return;
    }
    decision.a = work->back[work->first[decision.a]];
    if (decision.what == TOGETHER)
        decision.b = work->back[work->first[decision.b]];
    node_push(work, node, &decision);
    decision.what = decision.what == TOGETHER ? APART : OFF_KIND;
    node_push(work, node, &decision);
}

/* A solution of the master in whole numbers is a placement. */
static void whole_try(struct work *work)
{
    AUTO_FREE int *picks = mem_array(work->n_patterns, sizeof *picks);
    for (size_t k = 0; k < work->n_patterns; k++) {
        double amount = master_amount(work->master, k);
        picks[k] = (int)lround(amount);
        if (fabs(amount - picks[k]) > 1e-5)
            return;
    }
    placement_found(work, picks, work->patterns, work->n_patterns);
}

static double bound_of(const struct tree *tree)
{
    double bound = tree->stuck;
    for (size_t k = 0; k < tree->n_open; k++)
        if (tree->open[k].bound > bound)
            bound = tree->open[k].bound;
    return bound > tree->best ? bound : tree->best;
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

/* Solves a node and puts what is left of it on the list. 1: the search ends here. */
static int node_run(struct tree *tree, const struct node *node)
{
    AUTO_WORK struct work work = {0};
    if (!work_init(&work, tree, node))
        return 0;
    work_fill(&work);
    struct decision decision;
    if (node->depth == 0)
        first_prices(&work);
    int result = node_solve(&work, true);
    if (result == 0 && !closed(&work)) {
        whole_try(&work);
        /* Nothing to branch on before the end: then the end it is. */
        if (!closed(&work) && !branch_pick(&work, &decision))
            result = node_solve(&work, false);
    }
    if (result == 0 && !closed(&work)) {
        whole_try(&work);
        if (!closed(&work) && node->depth % 4 == 0)
            integer_try(&work, INTEGER_NODES);
    }
    if (result < 0) {
        if (work.n_patterns > 0 && !tree->failed)
            integer_try(&work, INTEGER_NODES);
        *ARRAY_PUSH(tree->open, tree->n_open) = (struct node){
            node->step, work.bound, node->depth, prices_copy(&work)};
        return 1;
    }
    if (!closed(&work))
        node_branch(&work, node);
    return 0;
}

static void pool_start(struct tree *tree, const struct tree_start *start)
{
    const struct parts *root = tree->root;
    AUTO_FREE int *items = mem_array((size_t)root->n, sizeof *items);
    for (size_t p = 0; p < start->n_placements; p++) {
        const int *host = start->placements[p];
        AUTO_FREE bool *done = mem_array((size_t)root->n, sizeof *done);
        for (int i = 0; i < root->n; i++) {
            int n = 0;
            for (int j = i; j < root->n && !done[i] && host[i] >= 0; j++)
                if (host[j] == host[i])
                    items[n++] = j;
            for (int k = 0; k < n; k++)
                done[items[k]] = true;
            if (n > 0)
                pool_add(tree, tree->kind_of[host[i]], items, n);
        }
    }
}

static void kinds_start(struct tree *tree)
{
    int hosts = 0;
    for (int k = 0; k < tree->root->n_kinds; k++)
        for (int c = 0; c < tree->root->kinds[k].count; c++)
            if (tree->root->kinds[k].hosts[c] >= hosts)
                hosts = tree->root->kinds[k].hosts[c] + 1;
    tree->kind_of = mem_array((size_t)hosts, sizeof *tree->kind_of);
    for (int k = 0; k < tree->root->n_kinds; k++)
        for (int c = 0; c < tree->root->kinds[k].count; c++)
            tree->kind_of[tree->root->kinds[k].hosts[c]] = k;
}

static void tree_wipe(struct tree *tree)
{
    for (size_t k = 0; k < tree->n_pool; k++)
        free(tree->pool[k].items);
    free(tree->pool);
    free(tree->seen.slots);
    free(tree->steps);
    for (size_t k = 0; k < tree->n_open; k++)
        free(tree->open[k].prices);
    free(tree->open);
    free(tree->kind_of);
}

int tree_search(const struct parts *parts, const struct tree_start *start,
                const struct tree_report *report, struct effort *effort)
{
    struct tree tree = {.root = parts, .report = report, .effort = effort, .best = start->known,
                        .margin = start->margin, .stuck = -INFINITY};
    int result = 0;
    kinds_start(&tree);
    pool_start(&tree, start);
    *ARRAY_PUSH(tree.open, tree.n_open) = (struct node){-1, INFINITY, 0, NULL};
    while (result == 0 && tree.n_open > 0 && !bound_closed(&tree, bound_of(&tree))) {
        struct node node = node_take(&tree);
        if (bound_closed(&tree, node.bound)) {
            free(node.prices);
            continue;
        }
        result = node_run(&tree, &node);
        free(node.prices);
        report->bound(report->ctx, bound_of(&tree));
    }
    double bound = bound_of(&tree);
    report->bound(report->ctx, bound);
    if (tree.failed)
        result = -1;
    else if (result == 0)
        result = !bound_closed(&tree, bound);
    tree_wipe(&tree);
    return result;
}
