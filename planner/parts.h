/* parts.h - the placement problem as set packing (planning.md 6): what moves are *items* (one movable
 * instance, or several that stay together), what receives are *kinds* of hosts, and a pattern is the
 * set of items of one host.
 *
 * Value of pattern S on kind k: Σ_{edges inside S} degree + Σ_{i in S} bonus_k(i), the bonus being the
 * degrees between i and what is fixed on the host. Everything that the form cannot say (rules on
 * zones, together, limits of moves) is left out: that keeps bounds valid, and every placement is
 * checked as a whole before it counts. */
#ifndef REMAP_PLANNER_PARTS_H
#define REMAP_PLANNER_PARTS_H

#include "planner/space.h"

/* Degrees are scaled so that all together are this: raw shares of 1e-12 … 1 fall under the tolerances
 * of a solver (planning.md 7). */
#define PARTS_TOTAL 1e6

struct arc {
    int item;
    double degree;
};

struct kind {
    double cap[LOAD_DIMS]; /* less what is fixed there */
    int count;             /* hosts of this kind */
    int *hosts;            /* which, `count` long */
    double *bonus;         /* by item; NULL: none */
    bool *allowed;         /* by item; NULL: all */
};

struct parts {
    int n, dims, n_kinds;
    double *size;          /* n × dims */
    struct arc *arcs;      /* of item i: arcs[first[i]] … arcs[first[i + 1]] */
    size_t *first;
    int *conflicts;        /* items that may not share a host, in the same form */
    size_t *first_conflict;
    int *rank;             /* position in descending degree: 0 is the busiest */
    int *by_rank;
    struct kind *kinds;
    int most_hosts;        /* of all kinds together in one placement */
    double scale;          /* of degrees: scaled = degree * scale */
    double constant;       /* degrees that every placement keeps, scaled */
    bool alone;            /* every item may also have a host of its own: covering is free */
    int *item_of;          /* of each instance: -1 fixed */
};

/* ERR_REFUSED where the form does not fit: replicated groups, unplaced fixed things, too many kinds
 * of hosts (the text says which). */
struct parts *parts_new(const struct space *space, struct err *err);
void parts_free(struct parts *parts);
/* No placement may use more hosts than that. */
void parts_limit(struct parts *parts, int hosts);
AUTO_DEFINE(parts)

/* Branching decisions: two items share a host or do not; an item is on a host of the kind or not. */
enum decided { TOGETHER, APART, ON_KIND, OFF_KIND };
struct decision {
    enum decided what;
    int a, b; /* items; for kinds b is the kind */
};

/* The same problem under decisions. *map gets the new item of each old one; caller frees. NULL when
 * decisions contradict each other or an item fits nowhere. */
struct parts *parts_branch(const struct parts *parts, const struct decision *decisions, size_t n,
                           int **map);

#endif
