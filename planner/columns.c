/* columns.c - tabu search (Glover 1989) over sets of items under given prices. */
#include "planner/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps that a moved item stays: long enough to leave a swap's valley, short against a pattern. */
#define TENURE 7

struct columns {
    const struct parts *parts;
    int kind;
    double *base; /* bonus less price */
    double *gain; /* base and degrees to what is in */
    double *beside; /* degrees to one item, else 0 */
    bool *in;
    int *blocked; /* conflicting items that are in */
    int *tabu;    /* first step that may move it again */
    int *list, n; /* what is in */
    int *near, n_near; /* what is not and has a partner there; */
    int n_gaining;     /* those of gain first */
    unsigned *stamp, now;
    double left[LOAD_DIMS], value;
};

struct columns *columns_new(const struct parts *parts)
{
    struct columns *c = mem_alloc(sizeof *c);
    size_t n = (size_t)parts->n;
    c->parts = parts;
    c->base = mem_array(n, sizeof *c->base);
    c->gain = mem_array(n, sizeof *c->gain);
    c->beside = mem_array(n, sizeof *c->beside);
    c->in = mem_array(n, sizeof *c->in);
    c->blocked = mem_array(n, sizeof *c->blocked);
    c->tabu = mem_array(n, sizeof *c->tabu);
    c->list = mem_array(n, sizeof *c->list);
    c->near = mem_array(n, sizeof *c->near);
    c->stamp = mem_array(n, sizeof *c->stamp);
    return c;
}

void columns_free(struct columns *c)
{
    if (!c)
        return;
    free(c->base);
    free(c->gain);
    free(c->beside);
    free(c->in);
    free(c->blocked);
    free(c->tabu);
    free(c->list);
    free(c->near);
    free(c->stamp);
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

static void take(struct columns *c, int item)
{
    const struct parts *parts = c->parts;
    c->in[item] = true;
    c->list[c->n++] = item;
    c->value += c->gain[item];
    for (int d = 0; d < parts->dims; d++)
        c->left[d] -= parts->size[item * parts->dims + d];
    for (size_t k = parts->first[item]; k < parts->first[item + 1]; k++)
        c->gain[parts->arcs[k].item] += parts->arcs[k].degree;
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
    for (size_t k = parts->first[item]; k < parts->first[item + 1]; k++)
        c->gain[parts->arcs[k].item] -= parts->arcs[k].degree;
    for (size_t k = parts->first_conflict[item]; k < parts->first_conflict[item + 1]; k++)
        c->blocked[parts->conflicts[k]]--;
    c->value -= c->gain[item];
}

static void near_list(struct columns *c)
{
    const struct parts *parts = c->parts;
    c->now++;
    c->n_near = c->n_gaining = 0;
    for (int m = 0; m < c->n; m++)
        for (size_t k = parts->first[c->list[m]]; k < parts->first[c->list[m] + 1]; k++) {
            int j = parts->arcs[k].item;
            if (c->in[j] || c->stamp[j] == c->now || !isfinite(c->base[j]))
                continue;
            c->stamp[j] = c->now;
            c->near[c->n_near++] = j;
            if (c->gain[j] > 0) {
                c->near[c->n_near - 1] = c->near[c->n_gaining];
                c->near[c->n_gaining++] = j;
            }
        }
}

/* Room beside what is in, when `out` (-1: none) leaves. */
static bool room(const struct columns *c, int item, int out)
{
    const struct parts *parts = c->parts;
    const double *size = &parts->size[item * parts->dims];
    const double *back = out >= 0 ? &parts->size[out * parts->dims] : NULL;
    for (int d = 0; d < parts->dims; d++)
        if (size[d] > c->left[d] + (back ? back[d] : 0))
            return false;
    return true;
}

struct change {
    double worth;
    int in, out_at; /* -1: none */
};

static void move_look(struct change *best, double worth, int in, int out_at)
{
    if (worth > best->worth)
        *best = (struct change){worth, in, out_at};
}

/* Swaps of one member against what is near and gains: nothing else beats its leaving alone. */
static void swaps_look(struct columns *c, int at, int step, struct change *best)
{
    const struct parts *parts = c->parts;
    int out = c->list[at];
    for (size_t k = parts->first[out]; k < parts->first[out + 1]; k++)
        c->beside[parts->arcs[k].item] = parts->arcs[k].degree;
    for (int m = 0; m < c->n_gaining; m++) {
        int j = c->near[m];
        double worth = c->gain[j] - c->gain[out] - c->beside[j];
        if (worth > best->worth && c->tabu[j] <= step && c->blocked[j] == 0 && room(c, j, out))
            *best = (struct change){worth, j, at};
    }
    for (size_t k = parts->first[out]; k < parts->first[out + 1]; k++)
        c->beside[parts->arcs[k].item] = 0;
}

static struct change move_best(struct columns *c, int step)
{
    struct change best = {-INFINITY, -1, -1};
    near_list(c);
    for (int m = 0; m < c->n_near; m++) {
        int j = c->near[m];
        if (c->tabu[j] <= step && c->blocked[j] == 0 && room(c, j, -1))
            move_look(&best, c->gain[j], j, -1);
    }
    for (int at = 0; at < c->n && c->n > 1; at++) {
        if (c->tabu[c->list[at]] > step)
            continue;
        move_look(&best, -c->gain[c->list[at]], -1, at);
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
    return best;
}
