/* cliques.h - sets of which all are paired with each other. */
#ifndef REMAP_PLANNER_CLIQUES_H
#define REMAP_PLANNER_CLIQUES_H

#include <stdbool.h>
#include <stdint.h>

/* Calls `see` with each set that no other can be added to (members in any order, below n), until it says
 * true, which is returned; false as well when `steps` are used up. `pairs` is n × n, symmetric. */
bool cliques_until(const bool *pairs, int n, int64_t steps,
                   bool (*see)(void *ctx, const int *members, int n_members), void *ctx);

#endif
