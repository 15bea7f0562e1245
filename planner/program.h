/* program.h - a linear or integer program put together row by row, for GLPK (planning.md 7 has its
 * pitfalls: call what solves only in a process that may die). */
#ifndef REMAP_PLANNER_PROGRAM_H
#define REMAP_PLANNER_PROGRAM_H

#include <glpk.h>
#include <stddef.h>
#include <stdint.h>

struct program {
    glp_prob *lp;     /* maximises */
    int *rows, *cols; /* matrix in triplets, from 1 */
    double *values;
    size_t n_values, cap_values;
};

void program_init(struct program *program);
void program_wipe(struct program *program);

/* `kind` of bounds as in GLPK. Both return the number. */
int program_row(struct program *program, int kind, double low, double high);
/* `kind` of values as in GLPK, from 0 to `high`. */
int program_column(struct program *program, int kind, double high, double worth);
/* Each row and column at most once. */
void program_entry(struct program *program, int row, int column, double value);
/* Hands the entries to the solver, all at once. */
void program_load(struct program *program);

/* An upper bound of the solved linear program whatever roundings the solver made, and also where it
 * ended early: its prices of rows, with their signs put right, are summed anew (weak duality; Neumaier
 * and Shcherbina 2004). Rows must be GLP_UP or GLP_FX, columns start at 0. */
double program_bound(const struct program *program);

#endif
