/* master.c - GLPK 5.0 (glp_simplex, glp_intopt); pitfalls: planning.md 7. */
#include "planner/master.h"

#include <glpk.h>
#include <math.h>
#include <stdlib.h>

/* What a missing item costs: more than all degrees together (PARTS_TOTAL). */
#define MISSING_COST (4 * PARTS_TOTAL)

struct master {
    const struct parts *parts;
    glp_prob *lp;
    size_t n;        /* patterns */
    int first;       /* column of the first pattern */
};

/* Hosts are scarcer than their kinds say: a row of their own. */
static bool hosts_limited(const struct parts *parts)
{
    int hosts = 0;
    for (int k = 0; k < parts->n_kinds; k++)
        hosts += parts->kinds[k].count;
    return parts->most_hosts < hosts;
}

static void rows_add(glp_prob *lp, const struct parts *parts)
{
    bool limited = hosts_limited(parts);
    glp_set_obj_dir(lp, GLP_MAX);
    glp_add_rows(lp, parts->n + parts->n_kinds + limited);
    if (limited)
        glp_set_row_bnds(lp, parts->n + parts->n_kinds + 1, GLP_UP, 0, parts->most_hosts);
    for (int i = 0; i < parts->n; i++)
        glp_set_row_bnds(lp, i + 1, parts->alone ? GLP_UP : GLP_FX, 1, 1);
    for (int k = 0; k < parts->n_kinds; k++)
        glp_set_row_bnds(lp, parts->n + k + 1, GLP_UP, 0, parts->kinds[k].count);
}

static int column_add(glp_prob *lp, const struct parts *parts, const struct pattern *pattern)
{
    int column = glp_add_cols(lp, 1), n = pattern->n + 1 + hosts_limited(parts);
    AUTO_FREE int *rows = mem_array((size_t)n + 1, sizeof *rows);
    AUTO_FREE double *ones = mem_array((size_t)n + 1, sizeof *ones);
    for (int k = 0; k < pattern->n; k++) {
        rows[k + 1] = pattern->items[k] + 1;
        ones[k + 1] = 1;
    }
    rows[pattern->n + 1] = parts->n + pattern->kind + 1;
    ones[pattern->n + 1] = ones[n] = 1;
    if (n > pattern->n + 1)
        rows[n] = parts->n + parts->n_kinds + 1;
    glp_set_mat_col(lp, column, n, rows, ones);
    glp_set_obj_coef(lp, column, pattern->value);
    glp_set_col_bnds(lp, column, GLP_LO, 0, 0);
    return column;
}

struct master *master_new(const struct parts *parts)
{
    struct master *master = mem_alloc(sizeof *master);
    glp_term_out(GLP_OFF);
    master->parts = parts;
    master->lp = glp_create_prob();
    master->first = 1;
    rows_add(master->lp, parts);
    if (parts->alone)
        return master;
    for (int i = 0; i < parts->n; i++) {
        int column = glp_add_cols(master->lp, 1), rows[2] = {0, i + 1};
        double ones[2] = {0, 1};
        glp_set_mat_col(master->lp, column, 1, rows, ones);
        glp_set_obj_coef(master->lp, column, -MISSING_COST);
        glp_set_col_bnds(master->lp, column, GLP_LO, 0, 0);
    }
    master->first = parts->n + 1;
    return master;
}

void master_free(struct master *master)
{
    if (!master)
        return;
    glp_delete_prob(master->lp);
    free(master);
}

void master_add(struct master *master, const struct pattern *pattern)
{
    column_add(master->lp, master->parts, pattern);
    master->n++;
}

static int simplex(glp_prob *lp)
{
    glp_smcp how;
    glp_init_smcp(&how);
    how.msg_lev = GLP_MSG_OFF;
    how.presolve = GLP_OFF;
    if (glp_simplex(lp, &how) == 0 && glp_get_status(lp) == GLP_OPT)
        return 0;
    glp_std_basis(lp);
    how.meth = GLP_DUALP;
    if (glp_simplex(lp, &how) == 0 && glp_get_status(lp) == GLP_OPT)
        return 0;
    glp_adv_basis(lp, 0);
    how.meth = GLP_PRIMAL;
    return glp_simplex(lp, &how) == 0 && glp_get_status(lp) == GLP_OPT ? 0 : -1;
}

int master_solve(struct master *master, double *value, double *prices, double *kind_prices)
{
    const struct parts *parts = master->parts;
    if (simplex(master->lp) < 0)
        return -1;
    *value = glp_get_obj_val(master->lp);
    for (int i = 0; i < parts->n; i++) {
        prices[i] = glp_get_row_dual(master->lp, i + 1);
        if (parts->alone && prices[i] < 0)
            prices[i] = 0; /* a tolerance of the solver; the bound asks for prices >= 0 */
    }
    double any = hosts_limited(parts)
                     ? glp_get_row_dual(master->lp, parts->n + parts->n_kinds + 1)
                     : 0;
    for (int k = 0; k < parts->n_kinds; k++) {
        kind_prices[k] = glp_get_row_dual(master->lp, parts->n + k + 1) + any;
        kind_prices[k] = kind_prices[k] > 0 ? kind_prices[k] : 0;
    }
    return 0;
}

double master_amount(const struct master *master, size_t pattern)
{
    return glp_get_col_prim(master->lp, master->first + (int)pattern);
}

double master_missing(const struct master *master)
{
    double sum = 0;
    for (int c = 1; c < master->first; c++)
        sum += glp_get_col_prim(master->lp, c);
    return sum;
}

struct limit {
    int nodes, max_nodes;
};

static void tree_callback(glp_tree *tree, void *ctx)
{
    struct limit *limit = ctx;
    if (glp_ios_reason(tree) == GLP_ISELECT && ++limit->nodes > limit->max_nodes)
        glp_ios_terminate(tree);
}

double master_integer(const struct parts *parts, const struct pattern *patterns, size_t n,
                      double least, int max_nodes, int64_t tm_ms, int *picks,
                      bool *ended)
{
    glp_prob *lp = glp_create_prob();
    glp_iocp how;
    struct limit limit = {0, max_nodes};
    double value = -INFINITY;
    rows_add(lp, parts);
    for (size_t k = 0; k < n; k++) {
        int column = column_add(lp, parts, &patterns[k]);
        glp_set_col_kind(lp, column, GLP_IV);
    }
    if (simplex(lp) == 0 && glp_get_obj_val(lp) > least) {
        glp_init_iocp(&how);
        how.msg_lev = GLP_MSG_OFF;
        how.cb_func = tree_callback;
        how.cb_info = &limit;
        how.tm_lim = tm_ms > INT32_MAX ? INT32_MAX : (int)tm_ms;
        how.br_tech = GLP_BR_DTH;
        how.bt_tech = GLP_BT_BPH;
        how.pp_tech = GLP_PP_ROOT;
        *ended = glp_intopt(lp, &how) == GLP_ETMLIM;
        int status = glp_mip_status(lp);
        if (*ended)
            value = -INFINITY;
        else if (status == GLP_OPT || status == GLP_FEAS) {
            value = glp_mip_obj_val(lp);
            for (size_t k = 0; k < n; k++)
                picks[k] = (int)lround(glp_mip_col_val(lp, (int)k + 1));
        }
    }
    glp_delete_prob(lp);
    return value > least ? value : -INFINITY;
}
