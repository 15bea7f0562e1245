/* columns.c - tabu search (Glover 1989) over sets of items under given prices. */
#include "planner/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps that a moved item stays: long enough to leave a swap's valley, short against a pattern. */
#define TENURE 7

/* Listed items in descending gain. */
struct near {
    double gain;
    int item;
};
/* Above this many new ones a sort is cheaper than so many insertions. */
#define INSERT_MOST 48

struct columns {
    const struct parts *parts;
    int kind;
    double *base; /* bonus less price */
    double *gain; /* base and degrees to what is in */
    bool *in;
    int *partners; /* how many are in */
    int *blocked;  /* conflicting items that are in */
    int *tabu;     /* first step that may move it again */
    int *list, n;  /* what is in */
    struct near *near; /* what is not and has a partner there, once near_refresh() has been */
    int n_near, n_sorted;
    bool *listed;
    double left[LOAD_DIMS], value;
};

struct columns *columns_new(const struct parts *parts)
{
    struct columns *c = mem_alloc(sizeof *c);
    size_t n = (size_t)parts->n;
    c->parts = parts;
    c->base = mem_array(n, sizeof *c->base);
    c->gain = mem_array(n, sizeof *c->gain);
    c->in = mem_array(n, sizeof *c->in);
    c->blocked = mem_array(n, sizeof *c->blocked);
    c->tabu = mem_array(n, sizeof *c->tabu);
    c->list = mem_array(n, sizeof *c->list);
    c->near = mem_array(n, sizeof *c->near);
    c->listed = mem_array(n, sizeof *c->listed);
    c->partners = mem_array(n, sizeof *c->partners);
    return c;
}

void columns_free(struct columns *c)
{
    if (!c)
        return;
    free(c->base);
    free(c->gain);
    free(c->in);
    free(c->blocked);
    free(c->tabu);
    free(c->list);
    free(c->near);
    free(c->listed);
    free(c->partners);
    free(c);
}

void columns_start(struct columns *c, int kind, const double *prices)
{
    const struct kind *host = &c->parts->kinds[kind];
    c->kind = kind;
    for (int i = 0; i < c->parts->n; i++)
        c->base[i] = host->allowed && !host->allowed[i]
                         ? -INFINITY
                         : (host->bonus ? host->bonus[i] : 0) - prices[i];
}

static void near_add(struct columns *c, int item)
{
    if (c->listed[item] || !isfinite(c->base[item]))
        return;
    c->listed[item] = true;
    c->near[c->n_near++].item = item;
}

static void take(struct columns *c, int item)
{
    const struct parts *parts = c->parts;
    c->in[item] = true;
    c->list[c->n++] = item;
    c->value += c->gain[item];
    for (int d = 0; d < parts->dims; d++)
        c->left[d] -= parts->size[item * parts->dims + d];
    for (size_t k = parts->first[item]; k < parts->first[item + 1]; k++) {
        int j = parts->arcs[k].item;
        c->gain[j] += parts->arcs[k].degree;
        c->partners[j]++;
        near_add(c, j);
    }
    for (size_t k = parts->first_conflict[item]; k < parts->first_conflict[item + 1]; k++)
        c->blocked[parts->conflicts[k]]++;
}

static void leave(struct columns *c, int at)
{
    const struct parts *parts = c->parts;
    int item = c->list[at];
    c->in[item] = false;
    c->list[at] = c->list[--c->n];
    for (int d = 0; d < parts->dims; d++)
        c->left[d] += parts->size[item * parts->dims + d];
    for (size_t k = parts->first[item]; k < parts->first[item + 1]; k++) {
        c->gain[parts->arcs[k].item] -= parts->arcs[k].degree;
        c->partners[parts->arcs[k].item]--;
    }
    for (size_t k = parts->first_conflict[item]; k < parts->first_conflict[item + 1]; k++)
        c->blocked[parts->conflicts[k]]--;
    c->value -= c->gain[item];
    if (c->partners[item] > 0)
        near_add(c, item);
}

static int by_gain(const void *left, const void *right)
{
    const struct near *x = left, *y = right;
    if (x->gain != y->gain)
        return x->gain < y->gain ? 1 : -1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* Drops what is in or lost its partners and sorts the rest; few have changed since the last step. */
static void near_refresh(struct columns *c)
{
    bool many = c->n_near - c->n_sorted > INSERT_MOST;
    int kept = 0;
    for (int k = 0; k < c->n_near; k++) {
        struct near near = {.item = c->near[k].item};
        int at = kept;
        if (c->in[near.item] || c->partners[near.item] == 0) {
            c->listed[near.item] = false;
            continue;
        }
        near.gain = c->gain[near.item];
        for (; !many && at > 0 && by_gain(&c->near[at - 1], &near) > 0; at--)
            c->near[at] = c->near[at - 1];
        c->near[at] = near;
        kept++;
    }
    if (many)
        qsort(c->near, (size_t)kept, sizeof *c->near, by_gain);
    c->n_near = c->n_sorted = kept;
}

/* True when it may go in beside what is there, `out` (-1: none) having left. */
static bool may_enter(const struct columns *c, int item, int out, int step)
{
    const struct parts *parts = c->parts;
    if (c->tabu[item] > step || c->blocked[item] > 0)
        return false;
    for (int d = 0; d < parts->dims; d++) {
        double back = out >= 0 ? parts->size[out * parts->dims + d] : 0;
        if (parts->size[item * parts->dims + d] > c->left[d] + back)
            return false;
    }
    return true;
}

static double degree_between(const struct parts *parts, int a, int b)
{
    bool fewer = parts->first[a + 1] - parts->first[a] < parts->first[b + 1] - parts->first[b];
    int from = fewer ? a : b, to = fewer ? b : a;
    for (size_t k = parts->first[from]; k < parts->first[from + 1]; k++)
        if (parts->arcs[k].item == to)
            return parts->arcs[k].degree;
    return 0;
}

struct change {
    double worth;
    int in, out_at; /* -1: none */
};

/* Swaps of one member against what gains beside it: nothing else beats its leaving alone. */
static void swaps_look(const struct columns *c, int at, int step, struct change *best)
{
    int out = c->list[at];
    for (int m = 0; m < c->n_near; m++) {
        int j = c->near[m].item;
        double most = c->near[m].gain - c->gain[out];
        if (c->near[m].gain <= 0 || most <= best->worth)
            return;
        if (!may_enter(c, j, out, step))
            continue;
        double worth = most - degree_between(c->parts, j, out);
        if (worth > best->worth)
            *best = (struct change){worth, j, at};
    }
}

static struct change move_best(struct columns *c, int step)
{
    struct change best = {-INFINITY, -1, -1};
    near_refresh(c);
    for (int m = 0; m < c->n_near && best.in < 0; m++)
        if (may_enter(c, c->near[m].item, -1, step))
            best = (struct change){c->near[m].gain, c->near[m].item, -1};
    for (int at = 0; at < c->n && c->n > 1; at++) {
        if (c->tabu[c->list[at]] > step)
            continue;
        if (-c->gain[c->list[at]] > best.worth)
            best = (struct change){-c->gain[c->list[at]], -1, at};
        swaps_look(c, at, step, &best);
    }
    return best;
}

double columns_improve(struct columns *c, int steps, int *items, int *n)
{
    const struct parts *parts = c->parts;
    double best;
    memcpy(c->gain, c->base, (size_t)parts->n * sizeof *c->gain);
    memcpy(c->left, parts->kinds[c->kind].cap, sizeof c->left);
    memset(c->tabu, 0, (size_t)parts->n * sizeof *c->tabu);
    c->value = 0;
    c->n = 0;
    for (int k = 0; k < *n; k++)
        take(c, items[k]);
    best = c->value;
    for (int step = 1; step <= steps; step++) {
        struct change move = move_best(c, step);
        if (!isfinite(move.worth))
            break;
        if (move.out_at >= 0) {
            c->tabu[c->list[move.out_at]] = step + TENURE;
            leave(c, move.out_at);
        }
        if (move.in >= 0) {
            c->tabu[move.in] = step + TENURE;
            take(c, move.in);
        }
        if (c->value > best + 1e-9) {
            best = c->value;
            *n = c->n;
            memcpy(items, c->list, (size_t)c->n * sizeof *items);
        }
    }
    while (c->n > 0)
        leave(c, c->n - 1);
    for (int k = 0; k < c->n_near; k++)
        c->listed[c->near[k].item] = false;
    c->n_near = c->n_sorted = 0;
    return best;
}
