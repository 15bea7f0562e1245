/* compact.h - Eq. 2–5 for equal hosts as one integer program on GLPK, in two forms: the naive one
 * and the one by representatives, which has no copies of a placement with its hosts renamed.
 * Nothing is shared with the planners: the oracle for what brute force cannot reach, and a peer in
 * the bench. */
#ifndef REMAP_TESTS_COMPACT_H
#define REMAP_TESTS_COMPACT_H

#include "model/affinity.h"

enum compact_form {
    COMPACT_NAIVE,          /* x[i, host], y[row, host]; no rules, nothing fixed */
    COMPACT_REPRESENTATIVES /* a host is its member of lowest index */
};

enum compact_goal { COMPACT_AFFINITY, COMPACT_HOSTS /* fewest; by representatives only */ };

struct compact_options {
    enum compact_form form;
    enum compact_goal goal;
    int max_hosts;    /* 0: as many as the model has */
    int64_t limit_ms; /* > 0 */
};

enum compact_status { COMPACT_PROVEN, COMPACT_FOUND, COMPACT_NOTHING, COMPACT_INFEASIBLE };

struct compact {
    enum compact_status status;
    bool sound;   /* the placement keeps the capacities, added up in integers */
    double value; /* score of the placement, added up anew */
    double bound; /* of the goal */
    int hosts;
    int *placement; /* NULL where none was found; else the caller frees */
};

/* Needs a model whose hosts offer the same and are schedulable, with one instance per service and
 * rows between instances. By representatives: what is fixed stays on its host, `apart` and
 * `together` hold, other rules must not be there. COMPACT_NOTHING for other models. */
struct compact compact_solve(const struct model *model, const struct affinity *rows, size_t n_rows,
                             const struct compact_options *options);

#endif
