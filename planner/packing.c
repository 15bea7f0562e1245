/* packing.c - primal-dual steps over patterns in one flat array. */
#include "planner/packing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct packing {
    const struct parts *parts;
    size_t n;      /* patterns */
    size_t *start; /* rows of pattern k: rows[start[k]] … rows[start[k + 1]] */
    int *rows;     /* its items, then its kind */
    size_t room, n_rows, room_rows;
    double *value, *amount, *mean_amount;
    double *reach; /* 1 / rows of the pattern: how far its steps go */
    int *count;    /* of each row: patterns in it */
    double *have;  /* by row: 1 for items, hosts for kinds */
    double *price, *mean_price, *use;
    double weight; /* of steps in prices against steps in amounts */
};

static int rows_of(const struct packing *p)
{
    return p->parts->n + p->parts->n_kinds;
}

struct packing *packing_new(const struct parts *parts, const double *prices)
{
    struct packing *p = mem_alloc(sizeof *p);
    p->parts = parts;
    size_t rows = (size_t)rows_of(p);
    p->count = mem_array(rows, sizeof *p->count);
    p->price = mem_array(rows, sizeof *p->price);
    p->mean_price = mem_array(rows, sizeof *p->mean_price);
    p->use = mem_array(rows, sizeof *p->use);
    p->have = mem_array(rows, sizeof *p->have);
    for (int r = 0; r < rows_of(p); r++)
        p->have[r] = r < parts->n ? 1 : parts->kinds[r - parts->n].count;
    p->start = mem_array(1, sizeof *p->start);
    memcpy(p->price, prices, (size_t)parts->n * sizeof *prices);
    return p;
}

void packing_free(struct packing *p)
{
    if (!p)
        return;
    free(p->start);
    free(p->rows);
    free(p->value);
    free(p->amount);
    free(p->mean_amount);
    free(p->reach);
    free(p->count);
    free(p->price);
    free(p->mean_price);
    free(p->use);
    free(p->have);
    free(p);
}

void packing_add(struct packing *p, const struct pattern *pattern, double amount)
{
    size_t n = (size_t)pattern->n + 1;
    if (p->n == p->room) {
        p->room = p->room ? p->room * 2 : 64;
        p->start = mem_resize(p->start, p->room + 1, sizeof *p->start);
        p->value = mem_resize(p->value, p->room, sizeof *p->value);
        p->amount = mem_resize(p->amount, p->room, sizeof *p->amount);
        p->mean_amount = mem_resize(p->mean_amount, p->room, sizeof *p->mean_amount);
        p->reach = mem_resize(p->reach, p->room, sizeof *p->reach);
    }
    while (p->n_rows + n > p->room_rows) {
        p->room_rows = p->room_rows ? p->room_rows * 2 : 1024;
        p->rows = mem_resize(p->rows, p->room_rows, sizeof *p->rows);
    }
    for (int k = 0; k < pattern->n; k++)
        p->rows[p->n_rows++] = pattern->items[k];
    p->rows[p->n_rows++] = p->parts->n + pattern->kind;
    for (size_t k = p->start[p->n]; k < p->n_rows; k++)
        p->count[p->rows[k]]++;
    p->value[p->n] = pattern->value;
    p->reach[p->n] = 1 / (double)n;
    p->amount[p->n++] = amount;
    p->start[p->n] = p->n_rows;
}

void packing_limit(struct packing *p, int kind, int hosts)
{
    p->have[p->parts->n + kind] = hosts;
}

double packing_amount(const struct packing *p, size_t pattern)
{
    return p->amount[pattern];
}

/* Steps in prices and amounts are of one size where each moves as far as it has to. */
static void weight_set(struct packing *p)
{
    double prices = 0, amounts = 1e-3;
    for (int r = 0; r < rows_of(p); r++)
        prices += p->price[r] * p->price[r];
    for (size_t k = 0; k < p->n; k++)
        amounts += p->amount[k] * p->amount[k];
    double weight = sqrt((prices + 1) / amounts);
    p->weight = p->weight > 0 ? sqrt(p->weight * weight) : weight;
}

/* Amounts towards what they gain at the prices; what the rows then hold, extrapolated, in p->use. */
static void amounts_step(struct packing *p)
{
    double far = 1 / p->weight;
    memset(p->use, 0, (size_t)rows_of(p) * sizeof *p->use);
    for (size_t k = 0; k < p->n; k++) {
        const int *row = &p->rows[p->start[k]], *end = &p->rows[p->start[k + 1]];
        double gain = p->value[k];
        for (const int *r = row; r < end; r++)
            gain -= p->price[*r];
        double old = p->amount[k], now = old + far * p->reach[k] * gain;
        now = now > 0 ? now : 0;
        p->amount[k] = now;
        if (now + now == old)
            continue; /* most stay at none */
        for (const int *r = row; r < end; r++)
            p->use[*r] += 2 * now - old;
    }
}

static void prices_step(struct packing *p)
{
    const struct parts *parts = p->parts;
    for (int r = 0; r < rows_of(p); r++) {
        bool kind = r >= parts->n;
        double step = p->weight / (p->count[r] + 1);
        p->price[r] += step * (p->use[r] - p->have[r]);
        if (p->price[r] < 0 && (kind || parts->alone))
            p->price[r] = 0;
    }
}

void packing_run(struct packing *p, int steps, double *prices, double *kind_prices)
{
    size_t rows = (size_t)rows_of(p);
    double each = 1 / (double)steps;
    memset(p->mean_price, 0, rows * sizeof *p->mean_price);
    if (p->n > 0)
        memset(p->mean_amount, 0, p->n * sizeof *p->mean_amount);
    weight_set(p);
    for (int s = 0; s < steps; s++) {
        amounts_step(p);
        prices_step(p);
        for (size_t r = 0; r < rows; r++)
            p->mean_price[r] += p->price[r] * each;
        for (size_t k = 0; k < p->n; k++)
            p->mean_amount[k] += p->amount[k] * each;
    }
    memcpy(p->price, p->mean_price, rows * sizeof *p->price);
    if (p->n > 0)
        memcpy(p->amount, p->mean_amount, p->n * sizeof *p->amount);
    memcpy(prices, p->price, (size_t)p->parts->n * sizeof *prices);
    memcpy(kind_prices, p->price + p->parts->n,
           (size_t)p->parts->n_kinds * sizeof *kind_prices);
}
