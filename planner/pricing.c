/* pricing.c - exact pricing of patterns. */
#include "planner/pricing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "planner/knapsack.h"

/* Steps of the subgradient at the root of a search and below it: what paid at 100 to 200 items. */
#define STEPS_ROOT 80
#define STEPS_AGAIN 30
#define STEPS_BELOW 5
/* How far a share goes in the first step; below the root a long one would lose what is known. */
#define STEP_ROOT 0.6
#define STEP_AGAIN 0.15
#define STEP_BELOW 0.08
/* Shares kept from search to search, per root: 4 bytes each, 128 MB in all. */
#define SHARES_MAX ((size_t)32 << 20)

enum state { FREE, IN, OUT };

struct pricer {
    const struct parts *parts;
    unsigned char *state;
    double *gain;   /* of a free item beside what is in: degrees to it, bonus, less its price */
    int *blocked;   /* how many conflicting items are in */
    double *share;  /* of each arc: what its own end gets of the degree; the reverse arc the rest */
    size_t *reverse;
    double *worth;  /* of a free item in the knapsack: its gain and its shares of free edges */
    float **shares;      /* by kind × root: what the last search ended with */
    struct entry *order; /* of the last knapsack */
    int n_front, back; /* it is order[0] … order[n_front − 1] and from order[back] on */
    struct knapsack sack; /* the last one */
    double mix[LOAD_DIMS]; /* weights of the surrogate dimension, Σ = 1 */
    double left[LOAD_DIMS];
    double cap[LOAD_DIMS];
    double value;   /* of what is in */
    int *active, n_active; /* free items where the search is */
    int *list, n_list;   /* items that are in */
    int *trail, n_trail; /* decided items, newest last */
    int *trash;          /* room for a list */
    /* of one search */
    double best;
    int *best_items, n_best;
    int nodes, max_nodes, slot;
    double open; /* the largest bound left unexplored */
};

struct pricer *pricer_new(const struct parts *parts)
{
    struct pricer *p = mem_alloc(sizeof *p);
    size_t n = (size_t)parts->n, arcs = parts->first[parts->n];
    p->parts = parts;
    p->state = mem_array(n, sizeof *p->state);
    p->gain = mem_array(n, sizeof *p->gain);
    p->blocked = mem_array(n, sizeof *p->blocked);
    p->sack.kept = mem_array(n, sizeof *p->sack.kept);
    p->worth = mem_array(n, sizeof *p->worth);
    p->order = mem_array(n, sizeof *p->order);
    p->sack.chosen = mem_array(n, sizeof *p->sack.chosen);
    p->list = mem_array(n, sizeof *p->list);
    p->trail = mem_array(n, sizeof *p->trail);
    p->trash = mem_array(n, sizeof *p->trash);
    p->share = mem_array(arcs, sizeof *p->share);
    if (n * arcs <= SHARES_MAX)
        p->shares = mem_array((n + 1) * (size_t)parts->n_kinds, sizeof *p->shares);
    p->reverse = mem_array(arcs, sizeof *p->reverse);
    AUTO_FREE size_t *next = mem_dup(parts->first, (n + 1) * sizeof *next);
    /* Arcs of an item are sorted by the other end, so reverse arcs come in order. */
    for (int i = 0; i < parts->n; i++)
        for (size_t k = parts->first[i]; k < parts->first[i + 1]; k++)
            p->reverse[k] = next[parts->arcs[k].item]++;
    return p;
}

void pricer_free(struct pricer *p)
{
    if (!p)
        return;
    for (int k = 0; p->shares && k < (p->parts->n + 1) * p->parts->n_kinds; k++)
        free(p->shares[k]);
    free(p->shares);
    free(p->state);
    free(p->gain);
    free(p->blocked);
    free(p->sack.kept);
    free(p->worth);
    free(p->order);
    free(p->sack.chosen);
    free(p->list);
    free(p->trail);
    free(p->trash);
    free(p->share);
    free(p->reverse);
    free(p);
}

static bool fits(const struct pricer *p, int item)
{
    const double *size = &p->parts->size[item * p->parts->dims];
    if (p->blocked[item])
        return false;
    for (int d = 0; d < p->parts->dims; d++)
        if (size[d] > p->left[d])
            return false;
    return true;
}

static void item_in(struct pricer *p, int item)
{
    const struct parts *parts = p->parts;
    const double *size = &parts->size[item * parts->dims];
    p->state[item] = IN;
    p->list[p->n_list++] = item;
    p->trail[p->n_trail++] = item;
    p->value += p->gain[item];
    for (int d = 0; d < parts->dims; d++)
        p->left[d] -= size[d];
    for (size_t k = parts->first[item]; k < parts->first[item + 1]; k++)
        p->gain[parts->arcs[k].item] += parts->arcs[k].degree;
    for (size_t k = parts->first_conflict[item]; k < parts->first_conflict[item + 1]; k++)
        p->blocked[parts->conflicts[k]]++;
}

static void item_out(struct pricer *p, int item)
{
    p->state[item] = OUT;
    p->trail[p->n_trail++] = item;
}

/* Takes decisions back until `n` are left. An item that is in undoes its gains in reverse order, so
 * that doubles return to what they were up to rounding; the value is recomputed from the list. */
static void undo_to(struct pricer *p, int n)
{
    const struct parts *parts = p->parts;
    while (p->n_trail > n) {
        int item = p->trail[--p->n_trail];
        if (p->state[item] == IN) {
            const double *size = &parts->size[item * parts->dims];
            p->n_list--;
            for (int d = 0; d < parts->dims; d++)
                p->left[d] += size[d];
            for (size_t k = parts->first[item]; k < parts->first[item + 1]; k++)
                p->gain[parts->arcs[k].item] -= parts->arcs[k].degree;
            for (size_t k = parts->first_conflict[item]; k < parts->first_conflict[item + 1]; k++)
                p->blocked[parts->conflicts[k]]--;
            p->value -= p->gain[item];
        }
        p->state[item] = FREE;
    }
}

/* Lists the free items in p->trash and returns how many there are. */
static int pricer_start(struct pricer *p, int kind, int root, const double *prices)
{
    int n = 0;
    const struct parts *parts = p->parts;
    const struct kind *host = &parts->kinds[kind];
    p->n_list = p->n_trail = 0;
    p->value = 0;
    memcpy(p->left, host->cap, sizeof p->left);
    memcpy(p->cap, host->cap, sizeof p->cap);
    for (int i = 0; i < parts->n; i++) {
        bool out = (root >= 0 && parts->rank[i] < parts->rank[root]) ||
                   (host->allowed && !host->allowed[i]);
        p->gain[i] = (host->bonus ? host->bonus[i] : 0) - prices[i];
        p->blocked[i] = 0;
        p->state[i] = out ? OUT : FREE;
        if (!out)
            p->trash[n++] = i;
    }
    return n;
}

/* Fractional knapsack over the active items under the mixed dimension; its value, and the critical
 * ratio in p->sack.ratio (0 when all fit). What is well below the last critical ratio is set aside behind
 * the others, and looked at only where there is room for it. */
static double knapsack(struct pricer *p, double used[LOAD_DIMS])
{
    const struct parts *parts = p->parts;
    double room = 0, sum, scale[LOAD_DIMS], cut = 0.8 * p->sack.ratio;
    int n = 0, back = parts->n;
    for (int d = 0; d < parts->dims; d++) {
        scale[d] = p->cap[d] > 0 ? p->mix[d] / p->cap[d] : 0;
        room += scale[d] * p->left[d];
        used[d] = 0;
    }
    for (int a = 0; a < p->n_active; a++) {
        int i = p->active[a];
        double value = p->worth[i], size = 0;
        p->sack.kept[i] = 0;
        if (value <= 0)
            continue;
        for (int d = 0; d < parts->dims; d++)
            size += scale[d] * parts->size[i * parts->dims + d];
        p->order[value < cut * size ? --back : n++] = (struct entry){0, value, size, i};
    }
    p->n_front = n;
    p->back = back;
    p->sack.ratio = 0;
    p->sack.n_chosen = 0;
    sum = knapsack_fill(&p->sack, p->order, n, &room);
    if (room > 0)
        sum += knapsack_fill(&p->sack, p->order + back, parts->n - back, &room);
    for (int k = 0; k < p->sack.n_chosen; k++) {
        int i = p->sack.chosen[k];
        for (int d = 0; d < parts->dims; d++)
            used[d] += p->sack.kept[i] * parts->size[i * parts->dims + d];
    }
    return sum;
}

/* One subgradient step: degree goes from the end that is kept more to the other. */
static void shares_step(struct pricer *p, double step)
{
    const struct parts *parts = p->parts;
    for (int c = 0; c < p->sack.n_chosen; c++) {
        int i = p->sack.chosen[c];
        for (size_t k = parts->first[i]; k < parts->first[i + 1]; k++) {
            int j = parts->arcs[k].item;
            if (p->state[j] != FREE || p->sack.kept[i] <= p->sack.kept[j])
                continue;
            double old = p->share[k], share = old - step * (p->sack.kept[i] - p->sack.kept[j]);
            share = share < 0 ? 0 : share;
            p->share[k] = share;
            p->share[p->reverse[k]] = 1 - share;
            p->worth[i] += (share - old) * parts->arcs[k].degree;
            p->worth[j] += (old - share) * parts->arcs[k].degree;
        }
    }
}

/* The surrogate leans to the dimension that the knapsack overdraws most. */
static void mix_step(struct pricer *p, const double used[LOAD_DIMS], double step)
{
    double sum = 0;
    for (int d = 0; d < p->parts->dims; d++) {
        double over = p->cap[d] > 0 ? (used[d] - p->left[d]) / p->cap[d] : 0;
        p->mix[d] += step * over;
        p->mix[d] = p->mix[d] < 0 ? 0 : p->mix[d];
        sum += p->mix[d];
    }
    for (int d = 0; d < p->parts->dims; d++)
        p->mix[d] = sum > 0 ? p->mix[d] / sum : d == 0;
}

static void keep_current(struct pricer *p)
{
    if (p->value > p->best + 1e-12) {
        p->best = p->value;
        p->n_best = p->n_list;
        memcpy(p->best_items, p->list, (size_t)p->n_list * sizeof *p->list);
    }
}

/* The knapsack's whole items, while they fit, as a candidate. */
static void keep_rounded(struct pricer *p)
{
    int mark = p->n_trail;
    for (int pass = 0; pass < 2; pass++)
        for (int a = 0; a < p->n_active; a++) {
            int i = p->active[a];
            if (p->state[i] == FREE && p->sack.kept[i] > (pass ? 0 : 0.999) && fits(p, i) &&
                (pass == 0 || p->gain[i] > 0))
                item_in(p, i);
        }
    keep_current(p);
    undo_to(p, mark);
}

/* Best bound found within some steps; decides what it can by reduced cost. */
static double bound(struct pricer *p, int steps, double *last)
{
    double lowest = INFINITY, value = 0, used[LOAD_DIMS];
    double first = steps == STEPS_ROOT ? STEP_ROOT : steps == STEPS_AGAIN ? STEP_AGAIN : STEP_BELOW;
    for (int k = 0; k < steps; k++) {
        value = knapsack(p, used);
        if (p->value + value < lowest)
            lowest = p->value + value;
        if (lowest <= p->best)
            return lowest;
        if (k % 16 == 15)
            keep_rounded(p);
        if (k + 1 < steps) {
            shares_step(p, first / (steps > STEPS_BELOW ? 1 + 0.08 * k : 1));
            mix_step(p, used, 0.5 / (1 + k));
        }
    }
    *last = p->value + value;
    return lowest;
}

static bool fix_range(struct pricer *p, const struct entry *order, int n, double last)
{
    double limit = p->best + 1e-11 * (1 + fabs(p->best));
    for (const struct entry *e = order; e < order + n; e++) {
        double margin = e->size > 0 ? e->value - p->sack.ratio * e->size : e->value;
        if (p->sack.kept[e->item] >= 1 && last - margin <= limit) {
            if (!fits(p, e->item))
                return false;
            item_in(p, e->item);
        } else if (p->sack.kept[e->item] <= 0 && last + margin <= limit) {
            item_out(p, e->item);
        }
    }
    return true;
}

/* The value of the last knapsack, when an item is turned round, falls at least by its distance from
 * the critical ratio; where that reaches what is known, the item stays as it is. False: nothing
 * better exists here. */
static bool fix_items(struct pricer *p, double last)
{
    return fix_range(p, p->order, p->n_front, last) &&
           fix_range(p, p->order + p->back, p->parts->n - p->back, last);
}

/* Sets the item's worth anew, so that no roundings add up. Returns the most that it can add to any
 * set that holds what is in. */
static double worth_set(struct pricer *p, int i)
{
    const struct parts *parts = p->parts;
    double most = p->gain[i], worth = p->gain[i];
    for (size_t k = parts->first[i]; k < parts->first[i + 1]; k++)
        if (p->state[parts->arcs[k].item] == FREE) {
            most += parts->arcs[k].degree;
            worth += p->share[k] * parts->arcs[k].degree;
        }
    p->worth[i] = worth;
    return most;
}

/* What no longer fits is out, so that no edge to it counts, as is what can add nothing; the rest is
 * active. */
static void drop_unfit(struct pricer *p)
{
    const struct parts *parts = p->parts;
    int n = 0, before = p->n_active;
    for (int a = 0; a < before; a++) {
        int i = p->active[a];
        if (p->state[i] != FREE)
            continue;
        if (fits(p, i))
            p->active[n++] = i;
        else
            item_out(p, i);
    }
    before = n;
    n = 0;
    for (int a = 0; a < before; a++) {
        int i = p->active[a];
        if (worth_set(p, i) > 0) {
            p->active[n++] = i;
            continue;
        }
        item_out(p, i);
        for (size_t k = parts->first[i]; k < parts->first[i + 1]; k++)
            p->worth[parts->arcs[k].item] -= p->share[p->reverse[k]] * parts->arcs[k].degree;
    }
    p->n_active = n;
}

static int branch_item(const struct pricer *p)
{
    const struct parts *parts = p->parts;
    double most = -1;
    int best = -1;
    for (int a = 0; a < p->n_active; a++) {
        int i = p->active[a];
        if (p->state[i] != FREE || p->sack.kept[i] <= 0 || !fits(p, i))
            continue;
        double doubt = 1e-6 + p->sack.kept[i] * (1 - p->sack.kept[i]);
        for (size_t k = parts->first[i]; k < parts->first[i + 1]; k++) {
            int j = parts->arcs[k].item;
            if (p->state[j] == FREE)
                doubt += parts->arcs[k].degree * fabs(p->sack.kept[i] - p->sack.kept[j]);
        }
        if (doubt > most) {
            most = doubt;
            best = i;
        }
    }
    return best;
}

/* Shares of the last search at this root, else halves. True when there were some. */
static bool shares_load(struct pricer *p, int slot)
{
    size_t arcs = p->parts->first[p->parts->n];
    const float *kept = p->shares ? p->shares[slot] : NULL;
    for (size_t k = 0; k < arcs; k++)
        p->share[k] = 0.5;
    for (int i = 0; kept && i < p->parts->n; i++)
        for (size_t k = p->parts->first[i]; k < p->parts->first[i + 1]; k++)
            if (p->parts->arcs[k].item > i) {
                p->share[k] = kept[k];
                p->share[p->reverse[k]] = 1 - p->share[k];
            }
    return kept;
}

static void shares_save(struct pricer *p, int slot)
{
    size_t arcs = p->parts->first[p->parts->n];
    if (!p->shares)
        return;
    if (!p->shares[slot])
        p->shares[slot] = mem_array(arcs, sizeof **p->shares);
    for (size_t k = 0; k < arcs; k++)
        p->shares[slot][k] = (float)p->share[k];
}

static void search(struct pricer *p, int steps);

static void search_below(struct pricer *p, double last)
{
    int before = p->n_trail;
    keep_rounded(p);
    if (!fix_items(p, last))
        return;
    keep_current(p);
    int item = branch_item(p), mark = p->n_trail;
    if (item < 0) {
        /* What was fixed took the room of all that the knapsack kept: what it did not keep may still
         * fit. Without anything fixed no free item adds to what is in. */
        if (mark > before)
            search(p, STEPS_BELOW);
        return;
    }
    item_in(p, item);
    search(p, STEPS_BELOW);
    undo_to(p, mark);
    item_out(p, item);
    search(p, STEPS_BELOW);
    undo_to(p, mark);
}

static void search(struct pricer *p, int steps)
{
    int mark = p->n_trail, n_outer = p->n_active;
    double last = INFINITY;
    int *outer = p->active;
    AUTO_FREE int *inner = mem_dup(outer, (size_t)n_outer * sizeof *outer);
    p->active = inner;
    drop_unfit(p);
    keep_current(p);
    double value = bound(p, steps, &last);
    if (steps > STEPS_BELOW)
        shares_save(p, p->slot);
    /* 1e-11 of the best: what the undoing of doubles may have added or lost. */
    if (value > p->best + 1e-11 * (1 + fabs(p->best))) {
        if (++p->nodes > p->max_nodes)
            p->open = value > p->open ? value : p->open;
        else
            search_below(p, last);
    }
    p->active = outer;
    p->n_active = n_outer;
    undo_to(p, mark);
}

double pricer_exact(struct pricer *p, int kind, int root, const double *prices, double least,
                    int max_nodes, int *items, int *n, double *best)
{
    const struct parts *parts = p->parts;
    int slot = kind * (parts->n + 1) + root + 1;
    *n = 0;
    *best = least;
    int free_items = pricer_start(p, kind, root, prices);
    bool again = shares_load(p, slot);
    for (int d = 0; d < parts->dims; d++)
        p->mix[d] = 1.0 / parts->dims;
    p->best = least;
    p->best_items = items;
    p->n_best = 0;
    p->nodes = 0;
    p->max_nodes = max_nodes;
    p->open = -INFINITY;
    if (root >= 0) {
        if (p->state[root] != FREE || !fits(p, root))
            return least;
        item_in(p, root);
    }
    AUTO_FREE int *active = mem_dup(p->trash, (size_t)free_items * sizeof *active);
    p->active = active;
    p->n_active = free_items;
    p->slot = slot;
    search(p, again ? STEPS_AGAIN : STEPS_ROOT);
    *n = p->n_best;
    *best = p->best;
    return p->open > p->best ? p->open : p->best;
}
