/* knapsack.h - the fractional knapsack in linear time on average. */
#ifndef REMAP_PLANNER_KNAPSACK_H
#define REMAP_PLANNER_KNAPSACK_H

struct entry {
    double ratio, value, size;
    int item;
};

struct knapsack {
    double *kept;          /* by item: the fraction kept; the caller clears what it fills */
    int *chosen, n_chosen; /* what is kept, in part at least */
    double ratio;          /* the critical one; 0 when all fit */
};

/* Keeps the best ratios (set here; the order of entries changes) that fit the room, the next in part.
 * Returns their value; the room left in *room. */
double knapsack_fill(struct knapsack *sack, struct entry *e, int n, double *room);

#endif
