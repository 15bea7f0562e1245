/* space.h - a model prepared for searching: compact arrays instead of names and options, and a
 * placement that knows its score, loads and broken constraints while instances move one by one.
 *
 * A *group* is what a row of affinities speaks of: one instance, or all replicas of a service. The
 * score of a row is degree · Σ_host min(x_a/d_a, x_b/d_b) (design.md 7), which is Eq. 2 for groups
 * of one. */
#ifndef REMAP_PLANNER_SPACE_H
#define REMAP_PLANNER_SPACE_H

#include "model/affinity.h"
#include "planner/bound.h"
#include "planner/planner.h"
#include "planner/rules.h"

struct link {
    int group;
    double degree;
};

struct space {
    const struct model *model;
    const struct affinity *rows;
    size_t n_rows;
    int n, n_hosts, n_groups;
    int dims;                 /* only those dimensions that can bind */
    int dim[LOAD_DIMS];       /* which */
    int64_t *need;            /* n × dims */
    int64_t *cap;             /* n_hosts × dims */
    double scale[LOAD_DIMS];  /* 1 / the mean capacity of a host */
    bool *fixed;              /* by instance */
    const char **fixed_why;
    int *movable, n_movable;
    bool *open;               /* by host: may receive */
    int *start;               /* the model's placement */
    double *price;            /* of a move of the instance, in the score; 0 unless moves have one */
    int n_new;                /* instances that are placed nowhere yet */
    int (*groups)[2];         /* of each instance; -1 for none */
    int *size;                /* of each group */
    int *only;                /* the instance of a group of one, else its first member */
    int *slot;                /* of each group of several: its row of counts; else -1 */
    int n_slots;
    int *members, *first_member; /* instances of each group */
    struct link *links;       /* of group g: links[first_link[g]] … links[first_link[g + 1]] */
    size_t *first_link;
    bool strict;              /* no host may stay above capacity, no rule broken */
    double total;             /* sum of degrees */
    double mean;              /* mean degree of a row */
    double grain;             /* mean of what one replica of a row's larger end moves */
};

/* Rows stay borrowed, as does the model. Returns NULL and ERR_TOO_LARGE where the counts of
 * replicated groups would not fit in memory. */
struct space *space_new(const struct model *model, const struct affinity *rows, size_t n_rows,
                        bool move_stateful, struct err *err);
/* A restart costs `min_gain` of the score; where start-up times are known, by its share of their
 * mean. */
void space_price_moves(struct space *space, double min_gain);
void space_free(struct space *space);
/* Shares of a mean host that the instance takes, in its largest dimension. */
double space_size(const struct space *space, int instance);
AUTO_DEFINE(space)

struct place {
    const struct space *space;
    int *at;          /* host of each instance; -1 unplaced */
    int64_t *used;    /* n_hosts × dims */
    int *counts;      /* n_slots × n_hosts */
    int **residents;  /* instances on each host */
    int *n_residents, *cap_residents, *position;
    struct rules *rules;
    double score;
    double over;      /* Σ over hosts and dims of what is above capacity, in hosts */
    int n_over;       /* hosts above capacity */
    int64_t excess;   /* of rules */
    int n_used;       /* hosts with an instance */
    int n_moved;      /* instances away from their start */
    double paid;      /* prices of these */
    int n_unplaced;
};

struct place *place_new(const struct space *space, const int *at);
void place_free(struct place *place);
AUTO_DEFINE(place)
/* Back to a placement. */
void place_set(struct place *place, const int *at);

/* Change of the score when the instance goes to the host (-1: away). */
double place_gain(const struct place *place, int instance, int host);
/* Change of `over` by the same move. */
double place_over_change(const struct place *place, int instance, int host);
void place_move(struct place *place, int instance, int host);
/* True when the instance may go there: open host (or its own start), room, rules. */
bool place_allows(const struct place *place, int instance, int host);
/* Nothing unplaced, nothing above capacity that received anything, all rules hold (or are broken
 * nowhere more than at the start). */
bool place_holds(const struct place *place);
/* How many placed instances may move: what --max-moves leaves beside the placing of those that are
 * nowhere, which are moves too; below 0 when not even these can be. INT64_MAX: no limit. */
int64_t place_budget(const struct space *space, const struct plan_options *options);
/* The score summed anew, in row order. */
double place_score_exact(const struct place *place);

#endif
