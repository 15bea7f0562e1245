/* program.c - rows, columns and entries of a program, and a bound that stands on sums of our own. */
#include "planner/program.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/mem.h"

/* Sums of at most 10^7 doubles err by less than 10^7 · 2^-53 ≈ 1.1e-9 of what is summed. */
#define ROUNDING 2e-9

void program_init(struct program *program)
{
    memset(program, 0, sizeof *program);
    program->lp = glp_create_prob();
    glp_set_obj_dir(program->lp, GLP_MAX);
}

void program_wipe(struct program *program)
{
    free(program->rows);
    free(program->cols);
    free(program->values);
    if (program->lp)
        glp_delete_prob(program->lp);
}

void program_entry(struct program *program, int row, int column, double value)
{
    if (program->n_values + 1 >= program->cap_values) {
        program->cap_values = program->cap_values ? 2 * program->cap_values : 1024;
        program->rows = mem_resize(program->rows, program->cap_values, sizeof *program->rows);
        program->cols = mem_resize(program->cols, program->cap_values, sizeof *program->cols);
        program->values =
            mem_resize(program->values, program->cap_values, sizeof *program->values);
    }
    program->n_values++;
    program->rows[program->n_values] = row;
    program->cols[program->n_values] = column;
    program->values[program->n_values] = value;
}

int program_row(struct program *program, int kind, double low, double high)
{
    int row = glp_add_rows(program->lp, 1);
    glp_set_row_bnds(program->lp, row, kind, low, high);
    return row;
}

int program_column(struct program *program, int kind, double high, double worth)
{
    int column = glp_add_cols(program->lp, 1);
    glp_set_col_kind(program->lp, column, kind);
    glp_set_col_bnds(program->lp, column, high > 0 ? GLP_DB : GLP_FX, 0, high > 0 ? high : 0);
    glp_set_obj_coef(program->lp, column, worth);
    return column;
}

void program_load(struct program *program)
{
    glp_load_matrix(program->lp, (int)program->n_values, program->rows, program->cols,
                    program->values);
}

double program_bound(const struct program *program)
{
    glp_prob *lp = program->lp;
    int rows = glp_get_num_rows(lp), columns = glp_get_num_cols(lp);
    AUTO_FREE double *price = mem_array((size_t)rows + 1, sizeof *price);
    AUTO_FREE int *index = mem_array((size_t)rows + 1, sizeof *index);
    AUTO_FREE double *value = mem_array((size_t)rows + 1, sizeof *value);
    double bound = 0, summed = 0;
    for (int i = 1; i <= rows; i++) {
        int kind = glp_get_row_type(lp, i);
        assert(kind == GLP_UP || kind == GLP_FX);
        price[i] = glp_get_row_dual(lp, i);
        if (!isfinite(price[i]) || (kind == GLP_UP && price[i] < 0))
            price[i] = 0;
        bound += price[i] * glp_get_row_ub(lp, i);
        summed += fabs(price[i] * glp_get_row_ub(lp, i));
    }
    for (int j = 1; j <= columns; j++) {
        int n = glp_get_mat_col(lp, j, index, value);
        double worth = glp_get_obj_coef(lp, j), most = glp_get_col_ub(lp, j), error = fabs(worth);
        for (int k = 1; k <= n; k++) {
            worth -= price[index[k]] * value[k];
            error += fabs(price[index[k]] * value[k]);
        }
        bound += worth > 0 ? worth * most : 0;
        summed += error * most;
    }
    return bound + ROUNDING * summed;
}
