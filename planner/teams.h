/* teams.h - services that move as a whole (contract.md 3, granularity service): a service stays as
 * it is or spreads over a set of hosts with counts that differ by at most one. Which replica then
 * is where follows from the counts alone, as in plan_service.c, so that heterogeneous replicas
 * weigh what they will weigh. */
#ifndef REMAP_PLANNER_TEAMS_H
#define REMAP_PLANNER_TEAMS_H

#include "planner/pull.h"

struct team {     /* the replicas of a service */
    int first, n; /* in `members`, by name */
    int placed;   /* had a host at the start */
    double price; /* of moving it, in the score */
    bool fixed;   /* some placed replica stays: all do */
    bool uniform; /* all replicas are alike, to loads and rows */
    bool moved;
};

struct teams {
    const struct space *space;
    struct puller *puller; /* moves go through it; its place is theirs */
    struct team *teams;    /* by service */
    int *members;
    int *movable, n_movable;         /* services */
    double paid;                     /* prices of services that are moved */
    int64_t restarts;                /* placed replicas of these */
    int64_t asked;                   /* all replicas of these: what --max-moves limits */
    int64_t budget;                  /* most of these; -1: no limit */
    int64_t step_cost;               /* a step that looks and moves more is given up */
    int *set, n_set;                 /* hosts of a proposal; the first ones get the larger counts */
    bool *chosen;                    /* by host: in the set */
    int *to_base;                    /* hosts that services have in common */
    int *left, *tally, *to, *listed; /* scratch; the first two are 0 between uses */
};

void teams_init(struct teams *teams, struct puller *puller);
void teams_wipe(struct teams *teams);

/* ---- the set of a proposal ---- */
void set_clear(struct teams *teams);
/* False when it is closed or in the set already. */
bool set_add(struct teams *teams, int host);
void set_drop(struct teams *teams, int position);
/* The hosts that the team is on, those with more replicas first. */
void set_of(struct teams *teams, const struct team *team);

/* Spreads the team over the set (not empty, at most as many hosts as replicas). */
void team_spread(struct teams *teams, struct team *team);
/* As it was at the start; only without replicas that were nowhere. */
void team_home(struct teams *teams, struct team *team);
/* Counts anew what is moved, after moves were taken back. */
void team_refresh(struct teams *teams, struct team *team);
/* The whole placement, which must be one of whole teams, or the start. */
void teams_set(struct teams *teams, const int *at);

/* Any placement of as many replicas per service and host; who goes where follows. */
void teams_set_counts(struct teams *teams, const int *at);

/* All are placed, no host that a moved service is on is over capacity, all rules hold (or are
 * broken nowhere more than at the start), and not too many replicas move. */
bool teams_hold(const struct teams *teams, const struct plan_options *options);
/* Keeps the placement in *best where it holds and is better. */
void teams_keep(struct teams *teams, const struct plan_options *options, int *best_at,
                struct value *best);

/* Large steps (pull.h) over whole services, from *best, which must be valid. */
void teams_pull(struct teams *teams, const struct plan_options *options, int64_t steps,
                struct effort *effort, int *best_at, struct value *best);

/* As relieve() (relieve.h), by whole services, from *best. */
void teams_ease(struct teams *teams, const struct plan_options *options, int *best_at,
                   struct value *best);

#endif
