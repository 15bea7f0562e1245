/* cover.h - how many hosts any placement needs at least, by column generation (Gilmore and Gomory
 * 1961). Whatever items are said to be worth gives a bound: so many hosts as it takes until the most
 * that each can hold is worth all items together. Prices of the linear covering problem make the
 * best of such worths; sizes, and mixtures of them over several resources, are where it begins.
 * GLPK may abort, leak or overrun: call this only in a process that may die (oa.c). */
#ifndef REMAP_PLANNER_COVER_H
#define REMAP_PLANNER_COVER_H

#include "planner/anneal.h"
#include "planner/parts.h"

/* The bound. `used`: by kind, how many of its hosts hold something that cannot leave. `placement`:
 * of each item, on the hosts of a known solution. Ends when the bound is `enough`, when no better one
 * is to be had, or with the effort. */
int64_t cover_bound(const struct parts *parts, const int *used, const int *placement,
                    int64_t enough, struct effort *effort);

#endif
