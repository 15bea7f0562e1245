/* generate.h - column generation at one node of branch and price: patterns by tabu search and exact
 * pricing, a master over them, and a bound from prices (never from the solver's objective). */
#ifndef REMAP_PLANNER_GENERATE_H
#define REMAP_PLANNER_GENERATE_H

#include "planner/anneal.h"
#include "planner/columns.h"
#include "planner/master.h"
#include "planner/packing.h"
#include "planner/pool.h"
#include "planner/pricing.h"
#include "planner/tree.h"

/* What all nodes share. */
struct search {
    const struct parts *root;
    struct effort *effort;
    struct pool pool; /* over the items of the root */
    const struct tree_report *report; /* told of the bounds of the root's node */
    double best, margin;
    bool failed; /* the solver did */
};

/* True when nothing better than the best can be in a problem of this bound. No placement is worth
 * less than 0, so that a bound below shows that there is none. */
bool search_closed(const struct search *search, double bound);
/* Adds a set of the root's items; those that no host of the kind holds are left out. */
void search_add(struct search *search, int kind, const int *items, int n);
/* The sets of one placement: the host of every item, -1 for none. */
void search_add_placement(struct search *search, const int *host_of_item);

/* One node while it is solved. */
struct work {
    struct search *search;
    struct parts *parts;
    int *map;          /* item of the root → item here */
    int *first, *back; /* items here → items of the root */
    struct pricer *pricer;
    struct columns *columns;
    struct packing *packing; /* prices until there is a master */
    struct master *master;   /* NULL before */
    struct pool pool;    /* what the master has, over items here */
    double *root_prices; /* of the root's items, to choose patterns by */
    bool *paid;          /* by kind × root: a pattern was found last time */
    double *prices, *kind_prices, *best_prices, *use;
    double value, bound;
    bool top;      /* the node of no decisions: its bound is that of the search */
    double center; /* bound that best_prices give here */
    int max_nodes; /* of one pricing, for now */
    int n_cut;     /* pricings of the last round that ended there */
    int *items, *wide;
};

/* The root's problem under decisions, of which `bound` is known; prices (of the root's items) as they
 * were best at the parent, NULL at the root. False when the decisions contradict. */
bool work_init(struct work *work, struct search *search, const struct decision *decisions,
               size_t n_decisions, double bound, const double *prices);
void work_wipe(struct work *work);
#define AUTO_WORK __attribute__((cleanup(work_wipe)))

/* Column generation until the bound is met, the master cannot be improved, or (`early`) branching is
 * cheaper. -1: the effort ended or the solver failed. */
int work_solve(struct work *work, bool early);
/* What column generation is made of. Adds a pattern of value `value`; false when it was there. */
bool work_add(struct work *work, int kind, const int *items, int n, double value);
/* The same, to the search's pool as well; false also for sets that no host of the kind holds. */
bool work_found(struct work *work, int kind, const int *items, int n);
/* Looks around the patterns that are worth most at work->prices. How many improve the master. */
int work_tabu(struct work *work);
/* Prices every kind and root exactly, up to max_nodes, for a bound; adds what is found and says how
 * much. *ended when the effort ended before. */
int work_exact(struct work *work, const double *prices, bool *ended);
/* Tells of the placement that picks[k] of each pattern make (what is missing goes anywhere). */
void work_place(struct work *work, const int *picks, const struct pattern *patterns, size_t n);

/* True when nothing better than the best is left here. */
bool work_closed(const struct work *work);
/* The best prices as prices of the root's items; caller frees. */
double *work_prices(const struct work *work);

struct scored {
    double score;
    size_t pattern;
};
/* For qsort: the highest score first, the earlier pattern among equals. */
int scored_compare(const void *left, const void *right);
/* Patterns of a pool by value less prices, best first; caller frees. `kind_prices` may be NULL. */
struct scored *pool_scores(const struct pool *pool, const double *prices,
                           const double *kind_prices);

#endif
