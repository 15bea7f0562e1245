/* generate.c - column generation at one node of the tree. */
#include "planner/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "planner/warm.h"

/* Patterns kept in a node's master when it starts, per item; more make the simplex slow. */
#define PATTERNS_PER_ITEM 8
/* Nodes of one exact pricing before its bound is taken as it stands. */
#define PRICING_NODES_FIRST 4000
#define PRICING_NODES_MOST 100000
/* Moves of one tabu search: two or three for each member of a pattern. */
#define TABU_STEPS 30
/* Rounds over the roots that paid before all are priced again. */
#define PARTIAL_ROUNDS 5

bool search_closed(const struct search *search, double bound)
{
    return bound <= search->best + search->margin || bound < -search->margin;
}

void search_add(struct search *search, int kind, const int *items, int n)
{
    double value = pattern_value(search->root, kind, items, n);
    if (n > 0 && isfinite(value))
        pool_add(&search->pool, kind, items, n, value);
}

static int kind_of(const struct parts *parts, int host)
{
    for (int k = 0; k < parts->n_kinds; k++)
        for (int c = 0; c < parts->kinds[k].count; c++)
            if (parts->kinds[k].hosts[c] == host)
                return k;
    return -1;
}

void search_add_placement(struct search *search, const int *host_of_item)
{
    const struct parts *root = search->root;
    AUTO_FREE int *items = mem_array((size_t)root->n, sizeof *items);
    AUTO_FREE bool *done = mem_array((size_t)root->n, sizeof *done);
    for (int i = 0; i < root->n; i++) {
        int n = 0, host = host_of_item[i], kind = done[i] ? -1 : kind_of(root, host);
        for (int j = i; j < root->n && kind >= 0; j++)
            if (host_of_item[j] == host)
                items[n++] = j;
        for (int k = 0; k < n; k++)
            done[items[k]] = true;
        if (n > 0)
            search_add(search, kind, items, n);
    }
}

bool work_closed(const struct work *work)
{
    return search_closed(work->search, work->bound);
}

void work_wipe(struct work *work)
{
    pool_wipe(&work->pool);
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
    columns_free(work->columns);
    packing_free(work->packing);
    master_free(work->master);
    parts_free(work->parts);
}

static void back_init(struct work *work)
{
    const struct parts *root = work->search->root;
    work->first = mem_array((size_t)work->parts->n + 2, sizeof *work->first);
    work->back = mem_array((size_t)root->n, sizeof *work->back);
    for (int i = 0; i < root->n; i++)
        work->first[work->map[i] + 2]++;
    for (int i = 0; i < work->parts->n; i++)
        work->first[i + 2] += work->first[i + 1];
    for (int i = 0; i < root->n; i++)
        work->back[work->first[work->map[i] + 1]++] = i;
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

bool work_add(struct work *work, int kind, const int *items, int n, double value)
{
    if (!pool_add(&work->pool, kind, items, n, value))
        return false;
    if (work->master)
        master_add(work->master, &work->pool.patterns[work->pool.n - 1]);
    if (work->packing)
        packing_add(work->packing, &work->pool.patterns[work->pool.n - 1], 0);
    return true;
}

/* Adds to the master and, in the root's items, to the pool of all. */
bool work_found(struct work *work, int kind, const int *items, int n)
{
    double value = pattern_value(work->parts, kind, items, n);
    int wide = 0;
    if (!isfinite(value) || !work_add(work, kind, items, n, value))
        return false;
    for (int k = 0; k < n; k++)
        for (int m = work->first[items[k]]; m < work->first[items[k] + 1]; m++)
            work->wide[wide++] = work->back[m];
    search_add(work->search, kind, work->wide, wide);
    return true;
}

int scored_compare(const void *left, const void *right)
{
    const struct scored *x = left, *y = right;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->pattern < y->pattern ? -1 : 1;
}

struct scored *pool_scores(const struct pool *pool, const double *prices,
                           const double *kind_prices)
{
    struct scored *order = mem_array(pool->n, sizeof *order);
    for (size_t k = 0; k < pool->n; k++) {
        const struct pattern *pattern = &pool->patterns[k];
        double score = pattern->value - (kind_prices ? kind_prices[pattern->kind] : 0);
        for (int i = 0; i < pattern->n; i++)
            score -= prices[pattern->items[i]];
        order[k] = (struct scored){score, k};
    }
    if (pool->n > 1)
        qsort(order, pool->n, sizeof *order, scored_compare);
    return order;
}

/* The most promising patterns of the pool, and every item alone where it must be covered. */
static void work_fill(struct work *work)
{
    const struct pool *pool = &work->search->pool;
    AUTO_FREE struct scored *order = pool_scores(pool, work->root_prices, NULL);
    size_t most = (size_t)work->parts->n * PATTERNS_PER_ITEM + 50;
    for (size_t k = 0; k < pool->n && work->pool.n < most; k++) {
        const struct pattern *pattern = &pool->patterns[order[k].pattern];
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
    size_t most = (size_t)work->parts->n * PATTERNS_PER_ITEM + 50, n = work->pool.n;
    if (n < most * 3 / 2)
        return;
    AUTO_FREE struct scored *order = pool_scores(&work->pool, work->prices, work->kind_prices);
    struct pool old = work->pool;
    work->pool = (struct pool){0};
    master_free(work->master);
    work->master = master_new(work->parts);
    for (size_t k = 0; k < n; k++) {
        const struct pattern *pattern = &old.patterns[order[k].pattern];
        bool alone = !work->parts->alone && pattern->n == 1;
        if (k < most * 2 / 3 || alone)
            work_add(work, pattern->kind, pattern->items, pattern->n, pattern->value);
    }
    pool_wipe(&old);
}

/* First prices: half of each item's degrees. No pattern is worth more than its prices then, pricing
 * sees that at once, and the bound is the sum of all degrees. */
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

bool work_init(struct work *work, struct search *search, const struct decision *decisions,
               size_t n_decisions, double bound, const double *prices)
{
    const struct parts *root = search->root;
    work->search = search;
    work->parts = parts_branch(root, decisions, n_decisions, &work->map);
    if (!work->parts)
        return false;
    size_t n = (size_t)work->parts->n;
    back_init(work);
    work->pricer = pricer_new(work->parts);
    work->columns = columns_new(work->parts);
    work->prices = mem_array(n, sizeof *work->prices);
    work->best_prices = mem_array(n, sizeof *work->best_prices);
    work->use = mem_array(n, sizeof *work->use);
    work->kind_prices = mem_array((size_t)work->parts->n_kinds, sizeof *work->kind_prices);
    work->items = mem_array(n, sizeof *work->items);
    work->wide = mem_array((size_t)root->n, sizeof *work->wide);
    work->paid = mem_array((size_t)work->parts->n_kinds * n, sizeof *work->paid);
    work->bound = bound;
    work->top = n_decisions == 0;
    work->center = INFINITY;
    work->max_nodes = PRICING_NODES_FIRST;
    work->root_prices = prices ? mem_dup(prices, (size_t)root->n * sizeof *prices)
                               : mem_array((size_t)root->n, sizeof *work->root_prices);
    for (int i = 0; i < root->n; i++)
        work->best_prices[work->map[i]] += work->root_prices[i];
    work_fill(work);
    if (!prices)
        first_prices(work);
    return true;
}

double *work_prices(const struct work *work)
{
    const struct parts *root = work->search->root;
    double *prices = mem_array((size_t)root->n, sizeof *prices);
    for (int i = 0; i < root->n; i++) {
        int item = work->map[i];
        prices[i] = work->best_prices[item] / (work->first[item + 1] - work->first[item]);
    }
    return prices;
}

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

void work_place(struct work *work, const int *picks, const struct pattern *patterns, size_t n)
{
    const struct parts *root = work->search->root;
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
    double value = work->search->report->found(work->search->report->ctx, host);
    if (value > work->search->best)
        work->search->best = value;
}

/* Looks around the patterns that are worth most at the master's prices. How many improve it. */
int work_tabu(struct work *work)
{
    const struct parts *parts = work->parts;
    AUTO_FREE struct scored *order = pool_scores(&work->pool, work->prices, NULL);
    size_t all = work->pool.n, most = (size_t)parts->n + 20;
    double least = 1e-6 * PARTS_TOTAL / parts->n;
    int found = 0;
    for (int kind = 0; kind < parts->n_kinds; kind++) {
        columns_start(work->columns, kind, work->prices);
        for (size_t k = 0; k < all && k < most; k++) {
            const struct pattern *pattern = &work->pool.patterns[order[k].pattern];
            int n = pattern->n;
            if (pattern->kind != kind)
                continue;
            memcpy(work->items, pattern->items, (size_t)n * sizeof *work->items);
            double value = columns_improve(work->columns, TABU_STEPS, work->items, &n);
            if (value > work->kind_prices[kind] + least)
                found += work_found(work, kind, work->items, n);
            if (effort_spend(work->search->effort, 1))
                return found;
        }
    }
    return found;
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
            if (effort_spend(work->search->effort, 1))
                return found;
        }
    return found;
}

/* Prices every kind and root exactly. Any placement uses at most `count` patterns of a kind, each
 * with a root of its own, so that Σ prices + Σ of the `count` largest values bounds it; of all of
 * these only as many as there may be hosts. */
int work_exact(struct work *work, const double *prices, bool *ended)
{
    const struct parts *parts = work->parts;
    AUTO_FREE double *values = mem_array((size_t)parts->n + 1, sizeof *values);
    AUTO_FREE double *top = mem_array((size_t)parts->n_kinds * (size_t)parts->n + 1, sizeof *top);
    double bound = parts->constant;
    int found = 0;
    size_t n_top = 0;
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
            if (effort_spend(work->search->effort, 1)) {
                *ended = true;
                return found;
            }
        }
        qsort(values, (size_t)n, sizeof *values, descending);
        for (int v = 0; v < count && v < n; v++)
            top[n_top++] = values[v];
    }
    if (n_top > 0)
        qsort(top, n_top, sizeof *top, descending);
    for (size_t v = 0; v < n_top && v < (size_t)parts->most_hosts; v++)
        bound += top[v];
    bound += 1e-10 * PARTS_TOTAL; /* doubles */
    if (bound < work->center) {
        work->center = bound;
        memcpy(work->best_prices, prices, (size_t)parts->n * sizeof *prices);
    }
    work->bound = bound < work->bound ? bound : work->bound;
    if (work->top)
        work->search->report->bound(work->search->report->ctx,
                                    fmax(work->bound, work->search->best));
    return found;
}

/* Column generation until the bound is met, the master cannot be improved, or (`early`) branching is
 * cheaper. -1: the effort ended or the solver failed. */
int work_solve(struct work *work, bool early)
{
    const struct parts *parts = work->parts;
    struct search *search = work->search;
    bool smooth = true, ended = false;
    if (!work->master) {
        if (work->top)
            warm_up(work);
        if (work_closed(work) || search->effort->cut)
            return search->effort->cut ? -1 : 0;
        work->master = master_new(parts);
        for (size_t k = 0; k < work->pool.n; k++)
            master_add(work->master, &work->pool.patterns[k]);
    }
    double lean = 0; /* to the best prices so far: more where the last step away was too long */
    int partial = PARTIAL_ROUNDS;
    for (;;) {
        if (master_solve(work->master, &work->value, work->prices, work->kind_prices) < 0) {
            search->failed = true;
            return -1;
        }
        work->value += parts->constant;
        if (effort_spend(search->effort, 1))
            return -1;
        work_purge(work);
        for (int i = 0; i < parts->n; i++)
            work->use[i] = smooth ? lean * work->best_prices[i] + (1 - lean) * work->prices[i]
                                  : work->prices[i];
        if (work_tabu(work) > parts->n / 50)
            continue;
        if (partial++ < PARTIAL_ROUNDS && partial_round(work, work->use) > 0)
            continue;
        partial = 0;
        double center = work->center;
        int found = work_exact(work, work->use, &ended);
        if (ended)
            return -1;
        if (work_closed(work) || (found == 0 && !smooth && work->n_cut == 0))
            return 0;
        if (early && isfinite(search->best) &&
            work->bound - work->value < 0.12 * (work->value - search->best))
            return 0;
        lean += work->center < center ? -0.1 : 0.1;
        lean = lean < 0.1 ? 0.1 : lean > 0.9 ? 0.9 : lean;
        if (work->n_cut > found && work->max_nodes < PRICING_NODES_MOST)
            work->max_nodes *= 3;
        else if (found == 0 && work->n_cut > 0 && !smooth)
            return 0; /* some pricing is too long: branching must make it shorter */
        smooth = found > 0 || (smooth && work->n_cut > 0);
        if (found == 0)
            partial = PARTIAL_ROUNDS;
    }
}
