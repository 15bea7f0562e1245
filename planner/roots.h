/* roots.h - hosts told apart by the first of a few chosen groups that they hold, their *root*
 * (bound_counts.h): what can be on a host of each class, and how much of it.
 *
 * Every host of any placement belongs to one class: that of its first root, or the last, of hosts that
 * hold none. On hosts of a class there is no root before its own, and no more of anything than fits
 * beside it. What hangs together with no root by pairs counts in the last class wherever it is. */
#ifndef REMAP_PLANNER_ROOTS_H
#define REMAP_PLANNER_ROOTS_H

#include "planner/space.h"

#define ROOTS_MOST 24
/* Hosts of like size are one kind; of more kinds than that the next ones are taken together. */
#define ROOTS_KINDS 12

struct hosts { /* of one kind */
    int n;
    double room[LOAD_DIMS]; /* of the largest, by dims of the space */
};

struct pair {
    int a, b;         /* groups */
    int64_t together; /* so many of both that rules let one host have */
    double degree;
};

struct spot { /* a group in a class */
    int most; /* replicas on one host; 0: it is in none */
    int x, u; /* columns (bound_counts.c) */
};

struct roots {
    const struct space *space;
    struct hosts hosts[ROOTS_KINDS];
    int n_kinds;
    int64_t largest[LOAD_DIMS]; /* room of any host */
    double all[LOAD_DIMS];      /* room of all hosts */
    double filler[LOAD_DIMS];   /* what needs room and is no end of a pair */
    int64_t *need;              /* group × dims: of the smallest replica */
    int *most;                  /* by group: replicas on one host; 0: no end of a pair */
    int64_t *limits;            /* by rule: as rule_most() */
    struct pair *pairs;         /* heaviest first */
    int n_pairs;
    double given_up;            /* degrees of pairs beyond the most */
    int root[ROOTS_MOST], n_roots; /* groups; those to choose from */
    int n_classes;              /* roots in use, and one */
    struct spot *spots;         /* group × classes */
};

/* False where the form does not fit: an instance in two groups would take room twice. */
bool roots_init(struct roots *roots, const struct space *space);
void roots_wipe(struct roots *roots);
/* Classes by the first n roots, or as many as there are. */
void roots_split(struct roots *roots, int n);

struct spot *roots_spot(const struct roots *roots, int group, int class);
/* The root of the class, a group; -1 for the last. */
int roots_of(const struct roots *roots, int class);
/* Hosts that a class has at most: one for each replica of its root. */
int roots_hosts(const struct roots *roots, int class);
/* The largest part of a pair, min(x_a / d_a, x_b / d_b) over whole replicas, that one host of the
 * class can keep. */
double roots_pair_most(const struct roots *roots, const struct pair *pair, int class);

#endif
