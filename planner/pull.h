/* pull.h - search in large neighbourhoods: partners are pulled together on one host, what stands in
 * their way there goes where it loses least, and all of that is one step of annealing. Where rows
 * are between services of many replicas single moves lead nowhere: a replica gains only beside its
 * share of the partner's. Capacities and rules hold after every step. */
#ifndef REMAP_PLANNER_PULL_H
#define REMAP_PLANNER_PULL_H

#include "planner/anneal.h"

/* Improves *best (valid) by `steps` steps; the same seed and counts give the same placement. A step
 * costs 20 … 50 µs. */
void pull_run(struct place *place, const struct plan_options *options, int64_t steps,
              struct rng *rng, struct effort *effort, int *best_at, struct value *best);

/* ---- what searches over whole services share ---- */

struct pull_edge {
    int a, b; /* groups */
    double degree;
    double before; /* weights of the edges before it */
};

struct puller {
    struct place *place;
    struct rng *rng;
    struct pull_edge *edges;
    size_t n_edges;
    double weights;
    struct pull_undo {
        int instance, from;
    } * undo; /* of this step */
    size_t n_undo, cap_undo;
    double price_host, price_move;
    int64_t cost;    /* moves and looks of this step: its count of iterations */
    uint32_t *stamp; /* by instance: `now` where pulled in this step */
    uint32_t now;
};

void puller_init(struct puller *puller, struct place *place, struct rng *rng);
void puller_wipe(struct puller *puller);
void puller_move(struct puller *puller, int instance, int host);
/* Takes all moves since `n_undo` was `from` back. */
void puller_back(struct puller *puller, size_t from);

/* Most groups of a cluster: more rarely fit a host together, and cost as many steps. */
#define PULL_GROUPS 5
/* An edge that is not wholly honoured, mostly, and sometimes neighbours of its ends; returns how
 * many groups. */
int puller_cluster(struct puller *puller, int groups[PULL_GROUPS]);
/* The host of a member of one of the first two groups, sometimes any; -1: it has none. */
int puller_host(struct puller *puller, const int *groups);

bool host_full(const struct place *place, int host);

#endif
