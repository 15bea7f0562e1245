/* master.h - the master problem over patterns on GLPK: linear for prices and bounds, integer over few
 * patterns for placements. GLPK may abort, leak or overrun: call this only in a process that may die
 * (oa.c). */
#ifndef REMAP_PLANNER_MASTER_H
#define REMAP_PLANNER_MASTER_H

#include "planner/pool.h"

struct master;

struct master *master_new(const struct parts *parts);
void master_free(struct master *master);
AUTO_DEFINE(master)

/* Adds a pattern (items copied). */
void master_add(struct master *master, const struct pattern *pattern);

/* Solves; prices of items (parts->n) and of kinds. 0, or -1 when GLPK finds no optimal basis. */
int master_solve(struct master *master, double *value, double *prices, double *kind_prices);
/* Amount of each pattern in the last solution, in the order added. */
double master_amount(const struct master *master, size_t pattern);
/* Sum of artificial amounts: above 0 while the patterns do not cover all items. */
double master_missing(const struct master *master);

/* Best integer choice among `patterns`; picks[i] is how often pattern i is used. Ends after
 * `max_nodes` nodes, or tm_ms (*ended then, and nothing is returned: no clock can be
 * repeated). Returns the value, -INFINITY for none above `least`. */
double master_integer(const struct parts *parts, const struct pattern *patterns, size_t n,
                      double least, int max_nodes, int64_t tm_ms, int *picks,
                      bool *ended);

#endif
