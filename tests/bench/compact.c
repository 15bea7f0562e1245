/* compact.c - the integer programs; the one by representatives is the usual remedy against
 * hosts that are all the same: x[i, k] says that i is on the host whose member of lowest index is
 * k. */
#include "tests/bench/compact.h"

#include <assert.h>
#include <glpk.h>
#include <stdlib.h>
#include <string.h>

#define SCALE                                                                                      \
    1e6 /* the sum of the objective's coefficients: GLPK's tolerances are for such numbers */

struct entry {
    int row, column;
    double value;
};

struct program {
    const struct model *model;
    const struct affinity *rows;
    size_t n_rows;
    bool naive;
    int n, places; /* places: hosts, or representatives */
    double scale;
    glp_prob *lp;
    struct entry *entries;
    size_t n_entries;
    double bound; /* as the search tree says */
};

static int first_of(const struct program *program, int place)
{
    return program->naive ? 0 : place;
}

static int column_of(const struct program *program, int i, int place)
{
    return 1 + (program->naive ? i * program->places + place : i * (i + 1) / 2 + place);
}

/* Whether i can be at a place. */
static bool reaches(const struct program *program, int i, int place)
{
    return i >= first_of(program, place);
}

static int row_add(struct program *program, int type, double bound)
{
    int row = glp_add_rows(program->lp, 1);
    glp_set_row_bnds(program->lp, row, type, bound, bound);
    return row;
}

static void entry_add(struct program *program, int row, int column, double value)
{
    *ARRAY_PUSH(program->entries, program->n_entries) = (struct entry){row, column, value};
}

/* Everything somewhere, and only at places that are open. */
static void rows_assign(struct program *program)
{
    for (int i = 0; i < program->n; i++) {
        int row = row_add(program, GLP_FX, 1);
        for (int k = 0; k < program->places; k++)
            if (reaches(program, i, k))
                entry_add(program, row, column_of(program, i, k), 1);
    }
    for (int i = 0; i < program->n && !program->naive; i++)
        for (int k = 0; k < i; k++) {
            int row = row_add(program, GLP_UP, 0);
            entry_add(program, row, column_of(program, i, k), 1);
            entry_add(program, row, column_of(program, k, k), -1);
        }
}

static double load_part(const struct load *load, int dimension)
{
    const int64_t parts[] = {load->cpu_millis, load->mem_bytes, load->cpu_request_millis,
                             load->mem_request_bytes, load->pods};
    return (double)parts[dimension];
}

static void rows_capacity(struct program *program)
{
    struct load offer = host_offer(&program->model->hosts[0]), all = {0};
    for (int i = 0; i < program->n; i++) {
        struct load need = instance_load(&program->model->instances[i]);
        load_add(&all, &need);
    }
    for (int d = 0; d < 5; d++) {
        double room = load_part(&offer, d);
        for (int k = 0; k < program->places && load_part(&all, d) > room; k++) {
            int row = row_add(program, GLP_UP, program->naive ? 1 : 0);
            for (int i = first_of(program, k); i < program->n; i++) {
                struct load need = instance_load(&program->model->instances[i]);
                double part = room > 0 ? load_part(&need, d) / room : load_part(&need, d) + 1;
                bool opens = !program->naive && i == k;
                entry_add(program, row, column_of(program, i, k), part - opens);
            }
        }
    }
}

/* y[row, place] at most either end's x. */
static void rows_affinity(struct program *program)
{
    for (size_t r = 0; r < program->n_rows; r++) {
        const struct affinity *affinity = &program->rows[r];
        int ends[] = {affinity->a, affinity->b};
        for (int k = 0; k < program->places; k++) {
            if (!reaches(program, ends[0], k) || !reaches(program, ends[1], k))
                continue;
            int y = glp_add_cols(program->lp, 1);
            glp_set_col_bnds(program->lp, y, GLP_DB, 0, 1);
            glp_set_obj_coef(program->lp, y, affinity->degree * program->scale);
            for (int e = 0; e < 2; e++) {
                int row = row_add(program, GLP_UP, 0);
                entry_add(program, row, y, 1);
                entry_add(program, row, column_of(program, ends[e], k), -1);
            }
        }
    }
}

/* a and b on one host: at the same places, at none that only one reaches. */
static void rows_same(struct program *program, int a, int b)
{
    for (int k = 0; k < program->places; k++) {
        if (!reaches(program, a, k) && !reaches(program, b, k))
            continue;
        int row = row_add(program, GLP_FX, 0);
        if (reaches(program, a, k))
            entry_add(program, row, column_of(program, a, k), 1);
        if (reaches(program, b, k))
            entry_add(program, row, column_of(program, b, k), -1);
    }
}

static void rows_at_most(struct program *program, const int *members, size_t n, int64_t most)
{
    for (int k = 0; k < program->places; k++) {
        int row = row_add(program, GLP_UP, (double)most);
        for (size_t m = 0; m < n; m++)
            if (reaches(program, members[m], k))
                entry_add(program, row, column_of(program, members[m], k), 1);
    }
}

static bool fixed(const struct model *model, int i)
{
    return model->instances[i].host >= 0 && instance_fixed_why(model, i, false);
}

/* Hosts are equal, so only which fixed ones share a host matters. */
static void rows_fixed(struct program *program)
{
    const struct instance *instances = program->model->instances;
    for (int a = 0; a < program->n; a++)
        for (int b = a + 1; b < program->n; b++) {
            if (!fixed(program->model, a) || !fixed(program->model, b))
                continue;
            if (instances[a].host == instances[b].host)
                rows_same(program, a, b);
            else
                rows_at_most(program, (const int[]){a, b}, 2, 1);
        }
}

static void rows_rules(struct program *program)
{
    const struct model *model = program->model;
    AUTO_MEMBERS struct members members = model_members(model);
    for (size_t r = 0; r < model->n_rules; r++) {
        const struct rule *rule = &model->rules[r];
        AUTO_FREE int *of = mem_array(rule->n_services, sizeof *of);
        for (size_t s = 0; s < rule->n_services; s++)
            of[s] = members.of[members.first[rule->services[s]]];
        if (rule->kind == RULE_APART)
            rows_at_most(program, of, rule->n_services, rule->max_per_host);
        for (size_t s = 1; s < rule->n_services && rule->kind == RULE_TOGETHER; s++)
            rows_same(program, of[s - 1], of[s]);
    }
}

static void rows_hosts(struct program *program, int max_hosts)
{
    int row = row_add(program, GLP_UP, max_hosts);
    for (int k = 0; k < program->places; k++)
        entry_add(program, row, column_of(program, k, k), 1);
}

static void columns_place(struct program *program)
{
    int n = program->n, count = program->naive ? n * program->places : n * (n + 1) / 2;
    glp_add_cols(program->lp, count);
    for (int c = 1; c <= count; c++)
        glp_set_col_kind(program->lp, c, GLP_BV);
}

static void matrix_load(struct program *program)
{
    size_t n = program->n_entries;
    AUTO_FREE int *rows = mem_array(n + 1, sizeof *rows);
    AUTO_FREE int *columns = mem_array(n + 1, sizeof *columns);
    AUTO_FREE double *values = mem_array(n + 1, sizeof *values);
    for (size_t k = 0; k < n; k++) {
        rows[k + 1] = program->entries[k].row;
        columns[k + 1] = program->entries[k].column;
        values[k + 1] = program->entries[k].value;
    }
    glp_load_matrix(program->lp, (int)n, rows, columns, values);
}

static void build(struct program *program, const struct compact_options *options)
{
    const struct model *model = program->model;
    int max_hosts = options->max_hosts > 0 ? options->max_hosts : (int)model->n_hosts;
    double sum = 0;
    for (size_t r = 0; r < program->n_rows; r++)
        sum += program->rows[r].degree;
    program->scale = sum > 0 ? SCALE / sum : 1;
    program->lp = glp_create_prob();
    glp_set_obj_dir(program->lp, options->goal == COMPACT_HOSTS ? GLP_MIN : GLP_MAX);
    columns_place(program);
    rows_assign(program);
    rows_capacity(program);
    if (options->goal == COMPACT_AFFINITY)
        rows_affinity(program);
    for (int k = 0; k < program->places && options->goal == COMPACT_HOSTS; k++)
        glp_set_obj_coef(program->lp, column_of(program, k, k), 1);
    if (!program->naive) {
        rows_fixed(program);
        rows_rules(program);
        rows_hosts(program, max_hosts);
    }
    matrix_load(program);
}

/* The bound is that of the best open node. */
static void watch(glp_tree *tree, void *info)
{
    struct program *program = info;
    int node = glp_ios_best_node(tree);
    if (node != 0)
        program->bound = glp_ios_node_bound(tree, node);
}

/* The place of each instance; by representatives those with something fixed get its host, the
 * others the hosts that are left. */
static int *placement_read(const struct program *program)
{
    const struct model *model = program->model;
    int *placement = mem_array((size_t)program->n, sizeof *placement);
    AUTO_FREE int *place = mem_array((size_t)program->n, sizeof *place);
    AUTO_FREE int *host = mem_array((size_t)program->places, sizeof *host);
    AUTO_FREE bool *taken = mem_array(model->n_hosts, sizeof *taken);
    for (int k = 0; k < program->places; k++)
        host[k] = program->naive ? k : -1;
    for (int i = 0; i < program->n; i++) {
        for (int k = 0; k < program->places; k++)
            if (reaches(program, i, k) &&
                glp_mip_col_val(program->lp, column_of(program, i, k)) > 0.5)
                place[i] = k;
        if (!program->naive && fixed(model, i)) {
            host[place[i]] = model->instances[i].host;
            taken[host[place[i]]] = true;
        }
    }
    for (int i = 0, next = 0; i < program->n; i++) {
        while (host[place[i]] < 0) {
            if (!taken[next])
                host[place[i]] = next;
            next++;
        }
        placement[i] = host[place[i]];
    }
    return placement;
}

static bool capacities_kept(const struct model *model, const int *placement)
{
    AUTO_FREE struct load *used = mem_array(model->n_hosts, sizeof *used);
    struct load none = {0};
    bool kept = true;
    for (size_t i = 0; i < model->n_instances; i++) {
        struct load need = instance_load(&model->instances[i]);
        load_add(&used[placement[i]], &need);
    }
    for (size_t h = 0; h < model->n_hosts; h++) {
        struct load offer = host_offer(&model->hosts[h]);
        kept = kept && load_fits(&offer, &used[h], &none, NULL);
    }
    return kept;
}

static struct compact read_out(const struct program *program, enum compact_goal goal)
{
    struct compact out = {.status = COMPACT_NOTHING};
    int status = glp_mip_status(program->lp);
    double scale = goal == COMPACT_HOSTS ? 1 : program->scale;
    out.bound = program->bound / scale;
    if (status == GLP_NOFEAS)
        out.status = COMPACT_INFEASIBLE;
    if (status != GLP_OPT && status != GLP_FEAS)
        return out;
    out.status = status == GLP_OPT ? COMPACT_PROVEN : COMPACT_FOUND;
    out.placement = placement_read(program);
    out.sound = capacities_kept(program->model, out.placement);
    out.value = placement_score(program->model, program->rows, program->n_rows, out.placement);
    out.hosts = placement_hosts_used(program->model, out.placement);
    if (status == GLP_OPT)
        out.bound = goal == COMPACT_HOSTS ? out.hosts : out.value;
    return out;
}

static bool model_suits(const struct model *model, const struct affinity *rows, size_t n_rows)
{
    struct load first = host_offer(&model->hosts[0]);
    bool suits = model->n_services == model->n_instances;
    for (size_t h = 0; h < model->n_hosts; h++) {
        struct load offer = host_offer(&model->hosts[h]);
        suits = suits && model->hosts[h].schedulable && memcmp(&first, &offer, sizeof first) == 0;
    }
    for (size_t r = 0; r < n_rows; r++)
        suits = suits && rows[r].level == LEVEL_INSTANCE;
    for (size_t r = 0; r < model->n_rules; r++)
        suits =
            suits && (model->rules[r].kind == RULE_APART || model->rules[r].kind == RULE_TOGETHER);
    return suits;
}

struct compact compact_solve(const struct model *model, const struct affinity *rows, size_t n_rows,
                             const struct compact_options *options)
{
    struct program program = {.model = model,
                              .rows = rows,
                              .n_rows = n_rows,
                              .naive = options->form == COMPACT_NAIVE,
                              .n = (int)model->n_instances};
    glp_iocp parameters;
    assert(!program.naive || (options->goal == COMPACT_AFFINITY && options->max_hosts == 0));
    if (!model_suits(model, rows, n_rows))
        return (struct compact){.status = COMPACT_NOTHING};
    glp_term_out(GLP_OFF);
    program.places = program.naive ? (int)model->n_hosts : program.n;
    build(&program, options);
    program.bound = options->goal == COMPACT_HOSTS ? 0 : SCALE;
    glp_init_iocp(&parameters);
    parameters.presolve = GLP_ON;
    /* No cover cuts: GLPK 5.0 aborts in them where presolving leaves no knapsack. */
    parameters.gmi_cuts = parameters.mir_cuts = parameters.clq_cuts = GLP_ON;
    parameters.tol_obj = 1e-11; /* 1e-7 would take what is a little worse for the best */
    parameters.tm_lim = (int)options->limit_ms;
    parameters.cb_func = watch;
    parameters.cb_info = &program;
    int rc = glp_intopt(program.lp, &parameters);
    struct compact out = read_out(&program, options->goal);
    if (rc == GLP_ENOPFS)
        out.status = COMPACT_INFEASIBLE;
    glp_delete_prob(program.lp);
    free(program.entries);
    return out;
}
