/* cover.c - the covering problem of items by hosts: prices by GLPK, patterns by exact pricing. */
#include "planner/cover.h"

#include <glpk.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "planner/pool.h"
#include "planner/pricing.h"

/* Nodes of a pricing that bounds, and of one that only looks for another pattern. */
#define NODES 3000
#define NODES_MORE 60
#define ROUNDS 400
/* What an item costs that no pattern covers: any price gives a valid bound. */
#define MISSING_COST 2
/* Roundings of doubles in sums of worths. */
#define ROUNDING 1e-6
/* All items together are worth several hosts of 1, or prices say nothing beyond roundings. */
#define LEAST_WORTH 1e-3

struct cover {
    const struct parts *parts;
    const int *used;
    struct effort *effort;
    struct pricer *pricer;
    glp_prob *lp;
    double *prices; /* of items, at least 0 */
    double *minus;  /* the same with its sign turned: what pricing takes */
    double *most;   /* by kind: what one host can hold at most, at these prices */
    int *items;
    struct pool known; /* patterns that were added */
    int64_t bound;
};

/* Rows: items, then kinds' hosts that are in use anyway, then the others. */
static int row_of(const struct cover *c, int kind, bool fresh)
{
    return c->parts->n + (fresh ? c->parts->n_kinds : 0) + kind + 1;
}

static void column_add(struct cover *c, int kind, bool fresh, const int *items, int n)
{
    AUTO_FREE int *rows = mem_array((size_t)n + 2, sizeof *rows);
    AUTO_FREE double *ones = mem_array((size_t)n + 2, sizeof *ones);
    int column = glp_add_cols(c->lp, 1);
    for (int k = 0; k < n; k++) {
        rows[k + 1] = items[k] + 1;
        ones[k + 1] = 1;
    }
    rows[n + 1] = row_of(c, kind, fresh);
    ones[n + 1] = 1;
    glp_set_mat_col(c->lp, column, n + 1, rows, ones);
    glp_set_obj_coef(c->lp, column, fresh);
    glp_set_col_bnds(c->lp, column, GLP_LO, 0, 0);
}

/* On every sort of host of the kind that there is. */
static void pattern_add(struct cover *c, int kind, const int *items, int n)
{
    if (!pool_add(&c->known, kind, items, n, 0))
        return;
    if (c->used[kind] > 0)
        column_add(c, kind, false, items, n);
    if (c->used[kind] < c->parts->kinds[kind].count)
        column_add(c, kind, true, items, n);
}

static void program_make(struct cover *c, const int *placement)
{
    const struct parts *parts = c->parts;
    glp_term_out(GLP_OFF);
    c->lp = glp_create_prob();
    glp_set_obj_dir(c->lp, GLP_MIN);
    glp_add_rows(c->lp, parts->n + 2 * parts->n_kinds);
    for (int i = 0; i < parts->n; i++) {
        glp_set_row_bnds(c->lp, i + 1, GLP_LO, 1, 0);
        int column = glp_add_cols(c->lp, 1), rows[2] = {0, i + 1};
        glp_set_mat_col(c->lp, column, 1, rows, (double[2]){0, 1});
        glp_set_obj_coef(c->lp, column, MISSING_COST);
        glp_set_col_bnds(c->lp, column, GLP_LO, 0, 0);
    }
    for (int k = 0; k < parts->n_kinds; k++) {
        glp_set_row_bnds(c->lp, row_of(c, k, false), GLP_UP, 0, c->used[k]);
        glp_set_row_bnds(c->lp, row_of(c, k, true), GLP_UP, 0,
                         parts->kinds[k].count - c->used[k]);
    }
    for (int k = 0; k < parts->n_kinds; k++)
        for (int h = 0; h < parts->kinds[k].count; h++) {
            int n = 0;
            for (int i = 0; i < parts->n; i++)
                if (placement[i] == parts->kinds[k].hosts[h])
                    c->items[n++] = i;
            if (n > 0)
                pattern_add(c, k, c->items, n);
        }
}

static void prices_set(struct cover *c, int item, double price)
{
    c->prices[item] = price > 0 ? price : 0;
    c->minus[item] = -c->prices[item];
}

static int descending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? 1 : a > b ? -1 : 0;
}

/* So many hosts as it takes until c->most adds up to the prices of all; those in use come first, as
 * they count anyway. */
static int64_t hosts_for(const struct cover *c)
{
    const struct parts *parts = c->parts;
    double left = 0;
    size_t n = 0, all = 0;
    int64_t hosts = 0;
    for (int i = 0; i < parts->n; i++)
        left += c->prices[i];
    if (left < LEAST_WORTH)
        return 0;
    left *= 1 - ROUNDING;
    for (int k = 0; k < parts->n_kinds; k++) {
        left -= c->used[k] * c->most[k];
        hosts += c->used[k];
        all += (size_t)(parts->kinds[k].count - c->used[k]);
    }
    AUTO_FREE double *most = mem_array(all, sizeof *most);
    for (int k = 0; k < parts->n_kinds; k++)
        for (int h = c->used[k]; h < parts->kinds[k].count; h++)
            most[n++] = c->most[k];
    if (n > 0)
        qsort(most, n, sizeof *most, descending);
    for (size_t k = 0; k < n && left > 0; k++, hosts++)
        left -= most[k];
    return hosts;
}

/* The least that a pattern of the kind must be worth to improve the solution. */
static double least_of(const struct cover *c, int kind)
{
    double used = c->used[kind] > 0 ? -glp_get_row_dual(c->lp, row_of(c, kind, false)) : INFINITY;
    double fresh = c->used[kind] < c->parts->kinds[kind].count
                       ? 1 - glp_get_row_dual(c->lp, row_of(c, kind, true))
                       : INFINITY;
    double least = used < fresh ? used : fresh;
    return least > 0 ? least : 0;
}

/* Patterns that share no item with those found before: together they make a whole solution. */
static void patterns_more(struct cover *c, int kind, double least, int n)
{
    const struct parts *parts = c->parts;
    AUTO_FREE double *minus = mem_dup(c->minus, (size_t)parts->n * sizeof *minus);
    double value;
    for (int h = 1; h < parts->kinds[kind].count && n > 0; h++) {
        for (int k = 0; k < n; k++)
            minus[c->items[k]] = 0;
        pricer_exact(c->pricer, kind, -1, minus, 0.9 * least, NODES_MORE, c->items, &n, &value);
        if (n > 0)
            pattern_add(c, kind, c->items, n);
        if (effort_spend(c->effort, 8))
            return;
    }
}

/* Prices all kinds; true when something improves the solution. */
static bool price_all(struct cover *c, bool only_bound)
{
    bool found = false;
    for (int k = 0; k < c->parts->n_kinds; k++) {
        int n;
        double value, least = only_bound ? 0 : least_of(c, k);
        double top = pricer_exact(c->pricer, k, -1, c->minus, least, NODES, c->items, &n, &value);
        c->most[k] = top > 0 ? top : 0;
        if (n > 0 && (only_bound || value > least + 1e-7)) {
            pattern_add(c, k, c->items, n);
            found = true;
            patterns_more(c, k, value, n);
        }
        if (effort_spend(c->effort, 16))
            return false; /* most[] of the kinds behind is not known */
    }
    int64_t hosts = hosts_for(c);
    c->bound = hosts > c->bound ? hosts : c->bound;
    return found;
}

/* Sizes in one resource, and in pairs of them, as worths. */
static void price_sizes(struct cover *c)
{
    const struct parts *parts = c->parts;
    for (int a = 0; a < parts->dims; a++)
        for (int b = a; b < parts->dims; b++)
            for (int part = 0; part < (a == b ? 1 : 5) && !c->effort->cut; part++) {
                double share = a == b ? 1 : (part + 1) / 6.0, top_a = 0, top_b = 0;
                for (int k = 0; k < parts->n_kinds; k++) {
                    top_a = fmax(top_a, parts->kinds[k].cap[a]);
                    top_b = fmax(top_b, parts->kinds[k].cap[b]);
                }
                if (top_a <= 0 || top_b <= 0)
                    continue;
                for (int i = 0; i < parts->n; i++)
                    prices_set(c, i,
                               share * parts->size[i * parts->dims + a] / top_a +
                                   (1 - share) * parts->size[i * parts->dims + b] / top_b);
                price_all(c, true);
            }
}

static bool solve(struct cover *c)
{
    glp_smcp how;
    glp_init_smcp(&how);
    how.msg_lev = GLP_MSG_OFF;
    if (glp_simplex(c->lp, &how) != 0 || glp_get_status(c->lp) != GLP_OPT)
        return false;
    for (int i = 0; i < c->parts->n; i++)
        prices_set(c, i, glp_get_row_dual(c->lp, i + 1));
    return true;
}

static int64_t in_use(const struct cover *c)
{
    int64_t hosts = 0;
    for (int k = 0; k < c->parts->n_kinds; k++)
        hosts += c->used[k];
    return hosts;
}

int64_t cover_bound(const struct parts *parts, const int *used, const int *placement,
                    int64_t enough, struct effort *effort)
{
    AUTO(pricer) struct pricer *pricer = pricer_new(parts);
    AUTO_FREE double *prices = mem_array((size_t)parts->n, sizeof *prices);
    AUTO_FREE double *minus = mem_array((size_t)parts->n, sizeof *minus);
    AUTO_FREE double *most = mem_array((size_t)parts->n_kinds, sizeof *most);
    AUTO_FREE int *items = mem_array((size_t)parts->n, sizeof *items);
    struct cover c = {.parts = parts, .used = used, .effort = effort, .pricer = pricer,
                      .prices = prices, .minus = minus, .most = most, .items = items};
    c.bound = in_use(&c);
    if (parts->n == 0)
        return c.bound;
    program_make(&c, placement);
    price_sizes(&c);
    for (int round = 0; round < ROUNDS && c.bound < enough && !effort->cut && solve(&c); round++) {
        /* The solution only falls: no prices can say more than it. */
            double value = glp_get_obj_val(c.lp) + (double)in_use(&c);
        if (ceil(value - 1e-6) <= (double)c.bound || !price_all(&c, false))
            break;
    }
    glp_delete_prob(c.lp);
    pool_wipe(&c.known);
    return c.bound;
}
