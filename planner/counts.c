/* counts.c - builds and solves the program with GLPK 5.0 (planning.md 7 has its pitfalls).
 *
 * x[class, host] counts; y[row, host] <= X_a / d_a and X_b / d_b, where X sums the classes of an
 * end, so that the best y is the score's smaller share. A search for what is better than the known
 * placement: where there is nothing such, that is the proof. */
#include "planner/counts.h"

#include <glpk.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/clock.h"
#include "model/rules.h"
#include "planner/contain.h"
#include "planner/pack.h"
#include "planner/teams.h"

/* Above that GLPK does not get beyond its first relaxation within seconds. */
#define MOST_COLUMNS 4000
/* All degrees together, for a solver with tolerances of 1e-7. */
#define TOTAL 1e4
/* What counts as better: the solver's tolerance on that. */
#define STEP (1e-7 * TOTAL)

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
    glp_prob *lp;
    struct class *classes;
    int n_classes;
    int *class_of;    /* by instance; -1: fixed */
    int *fixed;       /* service × host: what stays */
    int64_t *room;    /* host × dims: beside what stays */
    int used;         /* column of host 0, objective hosts */
    double scale;     /* of degrees */
    double prices;    /* of all moves together, scaled */
    bool loose;       /* needs are smallest of a service: a bound, not a placement */
    int *rows, *cols; /* matrix in triplets, from 1 */
    double *values;
    size_t n_values, cap_values;
};

static void value_add(struct counts *c, int row, int col, double value)
{
    if (c->n_values + 1 >= c->cap_values) {
        c->cap_values = c->cap_values ? 2 * c->cap_values : 1024;
        c->rows = mem_resize(c->rows, c->cap_values, sizeof *c->rows);
        c->cols = mem_resize(c->cols, c->cap_values, sizeof *c->cols);
        c->values = mem_resize(c->values, c->cap_values, sizeof *c->values);
    }
    c->n_values++;
    c->rows[c->n_values] = row;
    c->cols[c->n_values] = col;
    c->values[c->n_values] = value;
}

static int row_add(struct counts *c, int kind, double low, double high)
{
    int row = glp_add_rows(c->lp, 1);
    glp_set_row_bnds(c->lp, row, kind, low, high);
    return row;
}

static int column_add(struct counts *c, int kind, double high, double worth)
{
    int column = glp_add_cols(c->lp, 1);
    glp_set_col_kind(c->lp, column, kind);
    glp_set_col_bnds(c->lp, column, high > 0 ? GLP_DB : GLP_FX, 0, high > 0 ? high : 0);
    glp_set_obj_coef(c->lp, column, worth);
    return column;
}

/* ---- classes ---- */

static bool alike(const struct space *space, int a, int b)
{
    return memcmp(&space->need[a * space->dims], &space->need[b * space->dims],
                  (size_t)space->dims * sizeof *space->need) == 0 &&
           memcmp(space->groups[a], space->groups[b], sizeof space->groups[a]) == 0 &&
           space->price[a] == space->price[b];
}

static void class_put(struct counts *c, int instance, bool whole)
{
    const struct space *space = c->space;
    int service = space->model->instances[instance].service, k = 0;
    while (k < c->n_classes && (c->classes[k].service != service ||
                                (!whole && !alike(space, c->classes[k].first, instance))))
        k++;
    if (k == c->n_classes) {
        c->classes[k] = (struct class){.service = service, .first = instance};
        c->classes[k].start = mem_array((size_t)space->n_hosts, sizeof *c->classes[k].start);
        c->n_classes++;
    }
    struct class *class = &c->classes[k];
    c->class_of[instance] = k;
    class->n++;
    if (space->start[instance] >= 0)
        class->start[space->start[instance]]++;
    else
        class->new ++;
    c->loose |= whole && !alike(space, class->first, instance);
}

static void classes_init(struct counts *c)
{
    const struct space *space = c->space;
    const struct model *model = space->model;
    bool whole = c->options->granularity == PER_SERVICE;
    AUTO_FREE bool *stays = mem_array(model->n_services, sizeof *stays);
    c->classes = mem_array((size_t)space->n, sizeof *c->classes);
    c->class_of = mem_array((size_t)space->n, sizeof *c->class_of);
    c->fixed = mem_array(model->n_services * (size_t)space->n_hosts, sizeof *c->fixed);
    c->room = mem_dup(space->cap, (size_t)(space->n_hosts * space->dims) * sizeof *c->room);
    for (int i = 0; i < space->n; i++)
        stays[model->instances[i].service] |= whole && space->fixed[i];
    for (int i = 0; i < space->n; i++) {
        int service = model->instances[i].service, host = space->start[i];
        c->class_of[i] = -1;
        if (!space->fixed[i] && !(stays[service] && host >= 0)) {
            class_put(c, i, whole);
            continue;
        }
        c->fixed[service * space->n_hosts + host]++;
        for (int d = 0; d < space->dims; d++)
            c->room[host * space->dims + d] -= space->need[i * space->dims + d];
    }
}

/* The smallest need of the class: all are alike, or the program is a relaxation. */
static int64_t class_need(const struct counts *c, int class, int d)
{
    const struct space *space = c->space;
    int64_t least = INT64_MAX;
    if (!c->loose)
        return space->need[c->classes[class].first * space->dims + d];
    for (int i = 0; i < space->n; i++)
        if (c->class_of[i] == class && space->need[i * space->dims + d] < least)
            least = space->need[i * space->dims + d];
    return least;
}

/* How many may be on the host at most. */
static int class_most(const struct counts *c, int class, int host)
{
    const struct space *space = c->space;
    const struct class *it = &c->classes[class];
    int64_t most = it->n;
    if (!space->open[host] && it->start[host] < most)
        most = it->start[host];
    for (int d = 0; d < space->dims; d++) {
        int64_t need = class_need(c, class, d), room = c->room[host * space->dims + d];
        if (need > 0 && room / need < most)
            most = room / need;
    }
    return most > 0 ? (int)most : 0;
}

/* ---- rows ---- */

static void add_counts(struct counts *c)
{
    for (int k = 0; k < c->n_classes; k++) {
        int row = row_add(c, GLP_FX, c->classes[k].n, c->classes[k].n);
        for (int h = 0; h < c->space->n_hosts; h++) {
            int x = column_add(c, GLP_IV, class_most(c, k, h), 0);
            c->classes[k].x = h == 0 ? x : c->classes[k].x;
            value_add(c, row, x, 1);
        }
    }
}

/* Scaled by the host's room: 1 is all of it. */
static void add_capacities(struct counts *c)
{
    const struct space *space = c->space;
    for (int h = 0; h < space->n_hosts; h++)
        for (int d = 0; d < space->dims; d++) {
            double room = (double)c->room[h * space->dims + d], sum = 0;
            for (int k = 0; k < c->n_classes; k++)
                sum += (double)class_need(c, k, d) * class_most(c, k, h);
            if (room <= 0 || sum <= room)
                continue; /* class_most() says it all */
            int row = row_add(c, GLP_UP, 0, 1);
            for (int k = 0; k < c->n_classes; k++)
                if (class_need(c, k, d) > 0)
                    value_add(c, row, c->classes[k].x + h, (double)class_need(c, k, d) / room);
        }
}

static int class_first_in(const struct counts *c, int group, int class)
{
    const struct space *space = c->space;
    int m = space->first_member[group];
    while (c->class_of[space->members[m]] != class)
        m++;
    return space->members[m];
}

/* Adds `factor` times the count of the group on the host to the row; returns the constant part. */
static double add_group(struct counts *c, int row, int group, int host, double factor)
{
    const struct space *space = c->space;
    double constant = 0;
    int last = -1; /* members of a class are mostly in a row */
    for (int m = space->first_member[group]; m < space->first_member[group + 1]; m++) {
        int i = space->members[m], class = c->class_of[i];
        if (class < 0)
            constant += space->start[i] == host ? factor : 0;
        else if (class != last && class_first_in(c, group, class) == i)
            value_add(c, row, c->classes[class].x + host, factor);
        last = class;
    }
    return constant;
}

static void add_affinities(struct counts *c)
{
    const struct space *space = c->space;
    for (int g = 0; g < space->n_groups; g++)
        for (size_t l = space->first_link[g]; l < space->first_link[g + 1]; l++) {
            const struct link *link = &space->links[l];
            for (int h = 0; link->group > g && h < space->n_hosts; h++) {
                int y = column_add(c, GLP_CV, 1, link->degree * c->scale);
                for (int side = 0; side < 2; side++) {
                    int group = side ? link->group : g, row = row_add(c, GLP_UP, 0, 0);
                    value_add(c, row, y, 1);
                    double constant = add_group(c, row, group, h, -1.0 / space->size[group]);
                    glp_set_row_bnds(c->lp, row, GLP_UP, 0, -constant);
                }
            }
        }
}

/* Adds the count of the service on the host; returns what stays there. */
static int add_service(struct counts *c, int row, int service, int host)
{
    for (int k = 0; k < c->n_classes; k++)
        if (c->classes[k].service == service)
            value_add(c, row, c->classes[k].x + host, 1);
    return c->fixed[service * c->space->n_hosts + host];
}

static void add_limit(struct counts *c, const struct rule *rule, int64_t most, const int *place,
                      int which)
{
    int row = row_add(c, GLP_UP, 0, 0);
    int64_t there = 0;
    for (int h = 0; h < c->space->n_hosts; h++)
        for (size_t s = 0; place[h] == which && s < rule->n_services; s++)
            there += add_service(c, row, rule->services[s], h);
    glp_set_row_bnds(c->lp, row, GLP_UP, 0, (double)(most - there));
}

/* p[service, host] = 1 where the service is; equal for all services of the rule. */
static void add_together(struct counts *c, const struct rule *rule, const int *replicas)
{
    for (int h = 0; h < c->space->n_hosts; h++) {
        int p = column_add(c, GLP_BV, 1, 0);
        for (size_t s = 0; s < rule->n_services; s++) {
            int service = rule->services[s];
            int some = row_add(c, GLP_LO, 0, 0), all = row_add(c, GLP_UP, 0, 0);
            int there = add_service(c, some, service, h);
            value_add(c, some, p, -1);
            glp_set_row_bnds(c->lp, some, GLP_LO, -there, 0);
            add_service(c, all, service, h);
            value_add(c, all, p, -(double)(replicas[service] > 0 ? replicas[service] : 1));
            glp_set_row_bnds(c->lp, all, GLP_UP, 0, -there);
        }
    }
}

static void add_rules(struct counts *c)
{
    const struct model *model = c->space->model;
    AUTO_FREE int *replicas = model_replicas(model);
    AUTO_FREE int *zones = model_zones(model);
    AUTO_FREE int *hosts = mem_array(model->n_hosts, sizeof *hosts);
    for (size_t h = 0; h < model->n_hosts; h++)
        hosts[h] = (int)h;
    for (size_t r = 0; r < model->n_rules; r++) {
        const struct rule *rule = &model->rules[r];
        bool zoned = rule->kind == RULE_SPREAD && rule->per_zone;
        for (int h = 0; h < c->space->n_hosts; h++) {
            bool listed = false;
            for (size_t k = 0; k < rule->n_hosts; k++)
                listed |= rule->hosts[k] == h;
            if (rule->kind == RULE_APART)
                add_limit(c, rule, rule->max_per_host, hosts, h);
            else if (rule->kind == RULE_SPREAD)
                add_limit(c, rule, rule_spread_max(rule, replicas[rule->services[0]]),
                          zoned ? zones : hosts, h);
            else if (rule->kind == RULE_ALLOWED && !listed)
                add_limit(c, rule, 0, hosts, h);
        }
        if (rule->kind == RULE_TOGETHER)
            add_together(c, rule, replicas);
    }
}

/* m[class, host] >= what leaves, which costs its price; all together at most the budget. */
static void add_budget(struct counts *c)
{
    bool limited = c->options->max_moves >= 0;
    if (!limited && c->prices <= 0)
        return;
    int all = limited ? row_add(c, GLP_UP, 0, (double)place_budget(c->space, c->options)) : 0;
    for (int k = 0; k < c->n_classes; k++)
        for (int h = 0; h < c->space->n_hosts; h++) {
            int start = c->classes[k].start[h];
            if (start == 0)
                continue;
            double price = c->space->price[c->classes[k].first] * c->scale;
            int m = column_add(c, GLP_CV, start, -price), row = row_add(c, GLP_LO, start, 0);
            value_add(c, row, m, 1);
            value_add(c, row, c->classes[k].x + h, 1);
            if (limited)
                value_add(c, all, m, 1);
        }
}

/* What a restart of all its replicas costs. */
static double class_price(const struct counts *c, int class)
{
    double price = 0;
    for (int i = 0; i < c->space->n; i++)
        price += c->class_of[i] == class && c->space->start[i] >= 0 ? c->space->price[i] : 0;
    return price * c->scale;
}

/* u[0] = 1: the service stays as it is; u[k] = 1: it is on k hosts, those with w[k, host] = 1. */
static void add_even(struct counts *c, int budget)
{
    const struct space *space = c->space;
    for (int k = 0; k < c->n_classes; k++) {
        const struct class *it = &c->classes[k];
        int one = row_add(c, GLP_FX, 1, 1), low = 0;
        for (int h = 0; h < space->n_hosts; h++) {
            int at_least = row_add(c, GLP_LO, 0, 0), at_most = row_add(c, GLP_UP, 0, 0);
            low = h == 0 ? at_least : low; /* rows of host h: low + 2 h, and the next */
            value_add(c, at_least, it->x + h, 1);
            value_add(c, at_most, it->x + h, 1);
        }
        for (int size = it->new > 0; size <= it->n &&size <= space->n_hosts; size++) {
            int u = column_add(c, GLP_BV, 1, size > 0 ? -class_price(c, k) : 0);
            value_add(c, one, u, 1);
            if (size > 0 && budget > 0)
                value_add(c, budget, u, it->n);
            int sum = size > 0 ? row_add(c, GLP_FX, 0, 0) : 0;
            if (size > 0)
                value_add(c, sum, u, -size);
            for (int h = 0; h < space->n_hosts; h++) {
                if (size == 0 && it->start[h] > 0) {
                    value_add(c, low + 2 * h, u, -it->start[h]);
                    value_add(c, low + 2 * h + 1, u, -it->start[h]);
                }
                if (size == 0 || !space->open[h])
                    continue;
                int w = column_add(c, GLP_BV, 1, 0), row = row_add(c, GLP_UP, 0, 0);
                value_add(c, row, w, 1);
                value_add(c, row, u, -1);
                value_add(c, sum, w, 1);
                value_add(c, low + 2 * h, w, -(double)(it->n / size));
                value_add(c, low + 2 * h + 1, w, -(double)((it->n + size - 1) / size));
            }
        }
    }
}

/* More than all degrees and all prices. */
static double host_worth(const struct counts *c)
{
    return 2 * TOTAL + c->prices;
}

static double worth_of(const struct counts *c, const struct value *value)
{
    double worth = (value->score - value->paid) * c->scale;
    return c->options->objective == OBJECTIVE_HOSTS ? worth - host_worth(c) * value->hosts : worth;
}

/* used[host] = 1 where anything is. */
static void add_hosts(struct counts *c)
{
    const struct space *space = c->space;
    if (c->options->objective != OBJECTIVE_HOSTS)
        return;
    for (int h = 0; h < space->n_hosts; h++) {
        int used = column_add(c, GLP_BV, 1, -host_worth(c));
        c->used = h == 0 ? used : c->used;
        for (size_t s = 0; s < space->model->n_services; s++)
            if (c->fixed[s * (size_t)space->n_hosts + (size_t)h] > 0)
                glp_set_col_bnds(c->lp, used, GLP_FX, 1, 1);
        for (int k = 0; k < c->n_classes; k++) {
            int row = row_add(c, GLP_UP, 0, 0);
            value_add(c, row, c->classes[k].x + h, 1);
            value_add(c, row, used, -(double)c->classes[k].n);
        }
    }
}

/* Nothing but what is better than the known placement. */
static void add_better(struct counts *c, const struct value *best)
{
    if (!best->valid)
        return;
    double worth = worth_of(c, best);
    int row = row_add(c, GLP_LO, worth + STEP, 0);
    for (int j = 1; j <= glp_get_num_cols(c->lp); j++)
        if (glp_get_obj_coef(c->lp, j) != 0)
            value_add(c, row, j, glp_get_obj_coef(c->lp, j));
}

/* ---- hosts that are alike ---- */

static bool rules_alike(const struct model *model, const int *zones, int a, int b)
{
    for (size_t r = 0; r < model->n_rules; r++) {
        const struct rule *rule = &model->rules[r];
        int listed[2] = {0, 0};
        for (size_t k = 0; k < rule->n_hosts; k++) {
            listed[0] |= rule->hosts[k] == a;
            listed[1] |= rule->hosts[k] == b;
        }
        if (listed[0] != listed[1] ||
            (rule->kind == RULE_SPREAD && rule->per_zone && zones[a] != zones[b]))
            return false;
    }
    return true;
}

/* Whatever is on one could be on the other for the same worth. */
static bool hosts_alike(const struct counts *c, const int *zones, int a, int b)
{
    const struct space *space = c->space;
    bool moves_are_free = c->options->granularity == PER_INSTANCE && c->options->max_moves < 0 &&
                          c->prices <= 0 && space->open[a] && space->open[b];
    if (space->open[a] != space->open[b] || !rules_alike(space->model, zones, a, b))
        return false;
    for (int d = 0; d < space->dims; d++)
        if (c->room[a * space->dims + d] != c->room[b * space->dims + d])
            return false;
    for (int k = 0; k < c->n_classes && !moves_are_free; k++)
        if (c->classes[k].start[a] > 0 || c->classes[k].start[b] > 0)
            return false;
    for (size_t s = 0; s < space->model->n_services; s++)
        if (c->fixed[s * (size_t)space->n_hosts + (size_t)a] > 0 ||
            c->fixed[s * (size_t)space->n_hosts + (size_t)b] > 0)
            return false;
    return true;
}

/* Of hosts that are alike the first has no fewer instances than the next: one of all the ways to
 * exchange them is enough. */
static void add_order(struct counts *c)
{
    AUTO_FREE int *zones = model_zones(c->space->model);
    for (int a = 0; a < c->space->n_hosts; a++)
        for (int b = a + 1; b < c->space->n_hosts; b++) {
            if (!hosts_alike(c, zones, a, b))
                continue;
            int row = row_add(c, GLP_LO, 0, 0);
            for (int k = 0; k < c->n_classes; k++) {
                value_add(c, row, c->classes[k].x + a, 1);
                value_add(c, row, c->classes[k].x + b, -1);
            }
            break;
        }
}

static void counts_scale(struct counts *c)
{
    c->scale = c->space->total > 0 ? TOTAL / c->space->total : 1;
    c->prices = 0;
    for (int k = 0; k < c->space->n_movable; k++)
        c->prices += c->space->price[c->space->movable[k]] * c->scale;
}

static void program_make(struct counts *c, const struct value *best)
{
    bool whole = c->options->granularity == PER_SERVICE;
    c->lp = glp_create_prob();
    counts_scale(c);
    glp_set_obj_dir(c->lp, GLP_MAX);
    classes_init(c);
    add_counts(c);
    add_capacities(c);
    add_affinities(c);
    add_rules(c);
    add_hosts(c);
    if (whole)
        add_even(c, c->options->max_moves < 0
                        ? 0
                        : row_add(c, GLP_UP, 0, (double)c->options->max_moves));
    else
        add_budget(c);
    add_order(c);
    add_better(c, best);
    glp_load_matrix(c->lp, (int)c->n_values, c->rows, c->cols, c->values);
}

static void program_wipe(struct counts *c)
{
    for (int k = 0; k < c->n_classes; k++)
        free(c->classes[k].start);
    free(c->classes);
    free(c->class_of);
    free(c->fixed);
    free(c->room);
    free(c->rows);
    free(c->cols);
    free(c->values);
    if (c->lp)
        glp_delete_prob(c->lp);
}

bool counts_suit(const struct space *space, const struct plan_options *options)
{
    size_t links = space->n_groups ? space->first_link[space->n_groups] / 2 : 0, columns = links;
    if (space->n_movable == 0 || space->n_hosts == 0)
        return false;
    if (options->granularity == PER_SERVICE) {
        AUTO_FREE int *replicas = model_replicas(space->model);
        for (size_t s = 0; s < space->model->n_services; s++)
            columns += 1 + (size_t)(replicas[s] < space->n_hosts ? replicas[s] : space->n_hosts);
    } else {
        columns += (size_t)space->n_movable; /* classes are fewer */
    }
    return columns <= MOST_COLUMNS / (size_t)space->n_hosts;
}

/* ---- solving ---- */

struct solving {
    struct counts *counts;
    struct finding *finding;
    int64_t deadline_ms;
    int64_t nodes, limit; /* of the search; -1: until the deadline */
    int *best_at;
    struct value *best;
};

/* Replicas that can stay do; the others take what is left in host order. */
static void placement_read(const struct counts *c, double (*value)(glp_prob *, int), int *at)
{
    const struct space *space = c->space;
    AUTO_FREE int *left = mem_array((size_t)space->n_hosts, sizeof *left);
    memcpy(at, space->start, sizeof *at * (size_t)space->n);
    for (int k = 0; k < c->n_classes; k++) {
        for (int h = 0; h < space->n_hosts; h++)
            left[h] = (int)floor(value(c->lp, c->classes[k].x + h) + 0.5);
        for (int i = 0; i < space->n; i++) {
            if (c->class_of[i] != k)
                continue;
            bool stays = space->start[i] >= 0 && left[space->start[i]] > 0;
            at[i] = stays ? space->start[i] : -1;
            left[stays ? space->start[i] : 0] -= stays;
        }
        for (int i = 0, h = 0; i < space->n; i++) {
            if (c->class_of[i] != k || at[i] >= 0)
                continue;
            while (h < space->n_hosts && left[h] <= 0)
                h++;
            if (h == space->n_hosts)
                return; /* not all are placed: does not hold */
            at[i] = h;
            left[h]--;
        }
    }
}

/* Whole services: who goes where by name, as the plan will have it. */
static void placement_keep_whole(struct solving *s, int *at)
{
    struct puller puller;
    struct teams teams;
    struct rng rng = {1};
    AUTO(place) struct place *place = place_new(s->counts->space, s->counts->space->start);
    puller_init(&puller, place, &rng);
    teams_init(&teams, &puller);
    teams_set_counts(&teams, at);
    place->score = place_score_exact(place);
    teams_keep(&teams, s->counts->options, s->best_at, s->best);
    teams_wipe(&teams);
    puller_wipe(&puller);
}

static bool placement_keep(struct solving *s, int *at)
{
    const struct space *space = s->counts->space;
    struct value before = *s->best;
    for (int i = 0; i < space->n; i++)
        if (at[i] < 0)
            return false;
    if (s->counts->options->granularity == PER_SERVICE) {
        placement_keep_whole(s, at);
    } else {
        AUTO(place) struct place *place = place_new(space, at);
        place->score = place_score_exact(place);
        pack_relabel(place, s->counts->options);
        struct value value = value_of(place, s->counts->options);
        if (value.valid && (!s->best->valid || value_better(&value, s->best))) {
            *s->best = value;
            memcpy(s->best_at, place->at, sizeof *at * (size_t)space->n);
        }
    }
    bool better = s->best->valid && (!before.valid || value_better(s->best, &before));
    if (better)
        finding_put(s->finding, s->best_at, s->best);
    return better;
}

static void solving_step(glp_tree *tree, void *ctx)
{
    struct solving *s = ctx;
    if (glp_ios_reason(tree) == GLP_IBINGO) {
        AUTO_FREE int *at = mem_array((size_t)s->counts->space->n, sizeof *at);
        placement_read(s->counts, glp_get_col_prim, at);
        placement_keep(s, at);
    }
    int node = glp_ios_best_node(tree);
    if (node > 0)
        finding_bound(s->finding, glp_ios_node_bound(tree, node));
    s->nodes++;
    if (s->limit >= 0 ? s->nodes >= s->limit : clock_mono_ms() > s->deadline_ms)
        glp_ios_terminate(tree);
}

/* What runs in the child. The bound of the finding is that of the program's objective. */
static void solving_work(void *ctx)
{
    struct solving *s = ctx;
    struct counts *c = s->counts;
    glp_smcp simplex;
    glp_iocp integer;
    int64_t left = s->deadline_ms - clock_mono_ms();
    program_make(c, s->best);
    glp_term_out(GLP_OFF);
    glp_init_smcp(&simplex);
    simplex.meth = GLP_DUALP;
    if (s->limit < 0)
        simplex.tm_lim = left > 0 ? (int)left : 1;
    glp_adv_basis(c->lp, 0);
    int rc = glp_simplex(c->lp, &simplex);
    bool none = rc == 0 && glp_get_status(c->lp) == GLP_NOFEAS;
    if (rc == 0 && glp_get_status(c->lp) == GLP_OPT) {
        finding_bound(s->finding, glp_get_obj_val(c->lp));
        left = s->deadline_ms - clock_mono_ms();
        glp_init_iocp(&integer);
        if (s->limit < 0)
            integer.tm_lim = left > 0 ? (int)left : 1;
        integer.mir_cuts = GLP_ON;
        integer.cb_func = solving_step;
        integer.cb_info = s;
        rc = glp_intopt(c->lp, &integer);
        int status = glp_mip_status(c->lp);
        none = rc == 0 && status == GLP_NOFEAS;
        if (rc == 0 && status == GLP_OPT) {
            AUTO_FREE int *at = mem_array((size_t)c->space->n, sizeof *at);
            placement_read(c, glp_mip_col_val, at);
            placement_keep(s, at);
            finding_bound(s->finding, glp_mip_obj_val(c->lp));
            /* The optimum of a relaxation that holds as it is, or one that does not. */
            none = s->best->valid && worth_of(c, s->best) >= glp_mip_obj_val(c->lp) - 2 * STEP;
        }
    }
    finding_done(s->finding, s->nodes, !none, none, "");
}

static struct counts_end end_read(const struct counts *c, const struct finding_end *end,
                                  const struct value *best)
{
    struct counts_end out = {
        .proven = end->proven, .nodes = end->iterations, .bound = INFINITY, .hosts_bound = -1};
    bool hosts = c->options->objective == OBJECTIVE_HOSTS;
    if (c->prices > 0 && !hosts)
        return out; /* the bound is that of scores less prices */
    if (out.proven && best->valid && !hosts)
        out.bound = best->score;
    else if (out.proven && best->valid)
        out.hosts_bound = best->hosts;
    else if (isfinite(end->bound) && !hosts)
        out.bound = (end->bound + 10 * STEP) / c->scale;
    else if (isfinite(end->bound)) /* so many even if no degree were kept and all had moved */
        out.hosts_bound =
            (int64_t)ceil((-end->bound - c->prices - 10 * STEP) / host_worth(c));
    if (best->valid && out.hosts_bound > best->hosts)
        out.hosts_bound = best->hosts;
    if (best->valid && out.bound < best->score)
        out.bound = best->score; /* the program asks for more than that */
    return out;
}

struct counts_end counts_solve(struct space *space, const struct plan_options *options,
                               int64_t deadline_ms, int64_t limit, int *best_at, struct value *best)
{
    struct counts counts = {.space = space, .options = options};
    struct counts_end none = {.bound = INFINITY, .hosts_bound = -1};
    AUTO(finding) struct finding *finding = finding_new(space->n);
    struct err err = ERR_INIT;
    if (!finding || clock_mono_ms() >= deadline_ms || limit == 0)
        return none;
    struct solving solving = {&counts, finding, deadline_ms, 0, limit, best_at, best};
    if (contain_run(solving_work, &solving, finding, options,
                    deadline_ms + (deadline_ms - clock_mono_ms()) / 10, &err) < 0)
        return none;
    finding_get(finding, best_at, best);
    struct finding_end end = finding_end(finding);
    counts_scale(&counts);
    program_wipe(&counts);
    return end_read(&counts, &end, best);
}
