/* counts_program.h - the integer program of counts.h itself, made for GLPK (program.h).
 *
 * x[class, host] counts; y[row, host] <= X_a / d_a and X_b / d_b, where X sums the classes of an
 * end, so that the best y is the score's smaller share. Asks for what is better than the known
 * placement: where there is nothing such, that is the proof. */
#ifndef REMAP_PLANNER_COUNTS_PROGRAM_H
#define REMAP_PLANNER_COUNTS_PROGRAM_H

#include "planner/anneal.h"
#include "planner/program.h"

/* What counts as better: the solver's tolerance on all degrees together. */
#define COUNTS_STEP (1e-7 * COUNTS_TOTAL)
/* All degrees together, for a solver with tolerances of 1e-7. */
#define COUNTS_TOTAL 1e4

struct class
{
    int service, first, n; /* n instances, `first` among them */
    int x;                 /* column of host 0 */
    int *start;            /* by host */
    int new;               /* placed nowhere yet */
};

struct counts {
    struct space *space;
    const struct plan_options *options;
    struct program program;
    struct class *classes;
    int n_classes;
    int *class_of; /* by instance; -1: fixed */
    int *fixed;    /* service × host: what stays */
    int64_t *room; /* host × dims: beside what stays */
    double scale;  /* of degrees */
    double prices; /* of all moves together, scaled */
    bool loose;    /* needs are smallest of a service: a bound, not a placement */
};

/* Needs `space` and `options`; *best as in counts_solve(). */
void counts_make(struct counts *counts, const struct value *best);
void counts_wipe(struct counts *counts);
/* `scale` and `prices` alone, which tell what a bound of the program means. */
void counts_scale(struct counts *counts);
/* What one more host costs where hosts come first: more than all degrees and all prices. */
double counts_host_worth(const struct counts *counts);
/* What a placement is worth to the program. */
double counts_worth(const struct counts *counts, const struct value *value);

#endif
