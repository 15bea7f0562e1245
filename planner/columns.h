/* columns.h - patterns worth their prices by tabu search: adds, drops and swaps from patterns known
 * before. Finds most of what exact pricing would, in some ten microseconds each; proves nothing. */
#ifndef REMAP_PLANNER_COLUMNS_H
#define REMAP_PLANNER_COLUMNS_H

#include "planner/pool.h"

struct columns;

struct columns *columns_new(const struct parts *parts);
void columns_free(struct columns *columns);
AUTO_DEFINE(columns)

/* Before the first columns_improve() with these prices. */
void columns_start(struct columns *columns, int kind, const double *prices);

/* Looks `steps` moves around the pattern (of that kind) for the best value less prices; leaves the
 * best set there (room for all items) and returns its value less prices. */
double columns_improve(struct columns *columns, int steps, int *items, int *n);

#endif
