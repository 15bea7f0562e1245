/* brute.h - the best placement of a tiny model by looking at all of them: the oracle of the planners
 * that search. */
#ifndef REMAP_TESTS_BRUTE_H
#define REMAP_TESTS_BRUTE_H

#include "model/affinity.h"

struct brute {
    bool feasible;
    double score; /* best; then */
    int hosts;    /* fewest at that score; then */
    int moves;    /* fewest */
    int fewest_hosts;          /* of any placement */
    double fewest_hosts_score; /* best score with these */
    int64_t placements;        /* feasible ones */
};

/* All placements that a plan may end in: what is fixed stays, nothing goes to a closed or over-full
 * host, no rule is broken (`strict`), or broken more than at the start, at most max_moves (-1: any)
 * instances move or are placed. Strict also asks that no host stays over-full. */
struct brute brute_force(const struct model *model, const struct affinity *rows, size_t n,
                         bool move_stateful, int64_t max_moves, bool strict);

/* The same at service granularity: each service stays as it is or gets counts that differ by at most
 * one, on schedulable hosts; replicas that can stay where they are do, in name order, the others go to
 * the hosts in order. No host that a moved service is on may be over; all replicas of moved services
 * count against max_moves, placed ones in `moves`. */
struct brute brute_services(const struct model *model, const struct affinity *rows, size_t n,
                            bool move_stateful, int64_t max_moves, bool strict);

#endif
