/* knapsack.c - selection by halving (Balas and Zemel 1980). */
#include "planner/knapsack.h"

#include <math.h>

/* Entries of better ratio than the pivot first; how many, and their size in *size. Hoare's, so that
 * equal ratios split evenly. */
static int split(struct entry *e, int n, double *size)
{
    double a = e[0].ratio, b = e[n / 2].ratio, c = e[n - 1].ratio;
    double pivot = a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
    int i = 0, j = n - 1;
    *size = 0;
    for (;;) {
        while (e[i].ratio > pivot)
            *size += e[i++].size;
        while (e[j].ratio < pivot)
            j--;
        if (i >= j)
            break;
        struct entry swap = e[i];
        e[i] = e[j];
        e[j] = swap;
        *size += e[i++].size;
        j--;
    }
    if (i == j && i == 0)
        *size += e[i++].size; /* at least one, or the caller would not end */
    return i;
}

static void choose(struct knapsack *sack, const struct entry *e, double part)
{
    sack->kept[e->item] = part;
    sack->chosen[sack->n_chosen++] = e->item;
}

double knapsack_fill(struct knapsack *sack, struct entry *e, int n, double *room)
{
    double sum = 0;
    for (int k = 0; k < n; k++)
        e[k].ratio = e[k].size > 0 ? e[k].value / e[k].size : INFINITY;
    while (n > 0) {
        double size = e[0].size;
        int k = n > 1 ? split(e, n, &size) : 1;
        if (size > *room && k == 1) {
            double part = *room / e[0].size;
            choose(sack, e, part);
            sack->ratio = e[0].ratio;
            *room = 0;
            return sum + part * e[0].value;
        }
        if (size > *room) {
            n = k;
            continue;
        }
        for (int i = 0; i < k; i++) {
            choose(sack, &e[i], 1);
            sum += e[i].value;
        }
        *room -= size;
        e += k;
        n -= k;
    }
    return sum;
}
