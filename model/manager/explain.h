/* explain.h - a decision in plain sentences: which affinities are honoured and why others are not,
 * why each move is made, where a service's partners are. Pure: from what the store kept. */
#ifndef REMAP_MANAGER_EXPLAIN_H
#define REMAP_MANAGER_EXPLAIN_H

#include "model/manager/decision.h"

enum honoured {
    HONOURED_KEPT,    /* together before and after */
    HONOURED_BROUGHT, /* brought together */
    HONOURED_PARTLY,  /* more of its traffic can stay on a host than before */
    HONOURED_NOT,     /* as far apart as before */
    HONOURED_LESS     /* further apart than before, for something better */
};
const char *honoured_name(enum honoured honoured); /* "kept", "brought", … */

struct explained_affinity {
    const struct affinity *row; /* of the decision's analysis */
    enum honoured honoured;
    double share_before, share_after; /* of its traffic that can stay on a host */
    char *text;
};

struct explained_move {
    int64_t seq;
    char *text;
};

struct explained_partner { /* of the service asked for */
    int service;
    double degree;
    char *text;
};

struct explanation {
    struct explained_affinity *affinities; /* strongest first */
    size_t n_affinities;
    size_t n_more; /* weaker ones, beyond the limit */
    struct explained_move *moves;
    size_t n_moves;
    char *where; /* of the service asked for: its replicas; else NULL */
    struct explained_partner *partners;
    size_t n_partners;
};

/* `service` -1: of everything; at most `max` affinities (each looks at every instance). "After" is what the plan's moves that still stand make of the
 * snapshot: those discarded, failed or undone are not counted. The decision has a model. */
struct explanation *explain(const struct decision *decision, int service, size_t max);
void explanation_free(struct explanation *explanation);
AUTO_DEFINE(explanation)

#endif
