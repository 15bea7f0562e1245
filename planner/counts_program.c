/* counts_program.c - rows and columns of the counts of services on hosts. */
#include "planner/counts_program.h"

#include <stdlib.h>
#include <string.h>
#include "model/rules.h"

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
        int row = program_row(&c->program, GLP_FX, c->classes[k].n, c->classes[k].n);
        for (int h = 0; h < c->space->n_hosts; h++) {
            int x = program_column(&c->program, GLP_IV, class_most(c, k, h), 0);
            c->classes[k].x = h == 0 ? x : c->classes[k].x;
            program_entry(&c->program, row, x, 1);
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
            int row = program_row(&c->program, GLP_UP, 0, 1);
            for (int k = 0; k < c->n_classes; k++)
                if (class_need(c, k, d) > 0)
                    program_entry(&c->program, row, c->classes[k].x + h, (double)class_need(c, k, d) / room);
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
            program_entry(&c->program, row, c->classes[class].x + host, factor);
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
                int y = program_column(&c->program, GLP_CV, 1, link->degree * c->scale);
                for (int side = 0; side < 2; side++) {
                    int group = side ? link->group : g, row = program_row(&c->program, GLP_UP, 0, 0);
                    program_entry(&c->program, row, y, 1);
                    double constant = add_group(c, row, group, h, -1.0 / space->size[group]);
                    glp_set_row_bnds(c->program.lp, row, GLP_UP, 0, -constant);
                }
            }
        }
}

/* Adds the count of the service on the host; returns what stays there. */
static int add_service(struct counts *c, int row, int service, int host)
{
    for (int k = 0; k < c->n_classes; k++)
        if (c->classes[k].service == service)
            program_entry(&c->program, row, c->classes[k].x + host, 1);
    return c->fixed[service * c->space->n_hosts + host];
}

static void add_limit(struct counts *c, const struct rule *rule, int64_t most, const int *place,
                      int which)
{
    int row = program_row(&c->program, GLP_UP, 0, 0);
    int64_t there = 0;
    for (int h = 0; h < c->space->n_hosts; h++)
        for (size_t s = 0; place[h] == which && s < rule->n_services; s++)
            there += add_service(c, row, rule->services[s], h);
    glp_set_row_bnds(c->program.lp, row, GLP_UP, 0, (double)(most - there));
}

/* p[service, host] = 1 where the service is; equal for all services of the rule. */
static void add_together(struct counts *c, const struct rule *rule, const int *replicas)
{
    for (int h = 0; h < c->space->n_hosts; h++) {
        int p = program_column(&c->program, GLP_BV, 1, 0);
        for (size_t s = 0; s < rule->n_services; s++) {
            int service = rule->services[s];
            int some = program_row(&c->program, GLP_LO, 0, 0), all = program_row(&c->program, GLP_UP, 0, 0);
            int there = add_service(c, some, service, h);
            program_entry(&c->program, some, p, -1);
            glp_set_row_bnds(c->program.lp, some, GLP_LO, -there, 0);
            add_service(c, all, service, h);
            program_entry(&c->program, all, p, -(double)(replicas[service] > 0 ? replicas[service] : 1));
            glp_set_row_bnds(c->program.lp, all, GLP_UP, 0, -there);
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
    int all = limited ? program_row(&c->program, GLP_UP, 0, (double)place_budget(c->space, c->options)) : 0;
    for (int k = 0; k < c->n_classes; k++)
        for (int h = 0; h < c->space->n_hosts; h++) {
            int start = c->classes[k].start[h];
            if (start == 0)
                continue;
            double price = c->space->price[c->classes[k].first] * c->scale;
            int m = program_column(&c->program, GLP_CV, start, -price), row = program_row(&c->program, GLP_LO, start, 0);
            program_entry(&c->program, row, m, 1);
            program_entry(&c->program, row, c->classes[k].x + h, 1);
            if (limited)
                program_entry(&c->program, all, m, 1);
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
        int one = program_row(&c->program, GLP_FX, 1, 1), low = 0;
        for (int h = 0; h < space->n_hosts; h++) {
            int at_least = program_row(&c->program, GLP_LO, 0, 0), at_most = program_row(&c->program, GLP_UP, 0, 0);
            low = h == 0 ? at_least : low; /* rows of host h: low + 2 h, and the next */
            program_entry(&c->program, at_least, it->x + h, 1);
            program_entry(&c->program, at_most, it->x + h, 1);
        }
        for (int size = it->new > 0; size <= it->n &&size <= space->n_hosts; size++) {
            int u = program_column(&c->program, GLP_BV, 1, size > 0 ? -class_price(c, k) : 0);
            program_entry(&c->program, one, u, 1);
            if (size > 0 && budget > 0)
                program_entry(&c->program, budget, u, it->n);
            int sum = size > 0 ? program_row(&c->program, GLP_FX, 0, 0) : 0;
            if (size > 0)
                program_entry(&c->program, sum, u, -size);
            for (int h = 0; h < space->n_hosts; h++) {
                if (size == 0 && it->start[h] > 0) {
                    program_entry(&c->program, low + 2 * h, u, -it->start[h]);
                    program_entry(&c->program, low + 2 * h + 1, u, -it->start[h]);
                }
                if (size == 0 || !space->open[h])
                    continue;
                int w = program_column(&c->program, GLP_BV, 1, 0), row = program_row(&c->program, GLP_UP, 0, 0);
                program_entry(&c->program, row, w, 1);
                program_entry(&c->program, row, u, -1);
                program_entry(&c->program, sum, w, 1);
                program_entry(&c->program, low + 2 * h, w, -(double)(it->n / size));
                program_entry(&c->program, low + 2 * h + 1, w, -(double)((it->n + size - 1) / size));
            }
        }
    }
}

double counts_host_worth(const struct counts *c)
{
    return 2 * COUNTS_TOTAL + c->prices;
}

double counts_worth(const struct counts *c, const struct value *value)
{
    double worth = (value->score - value->paid) * c->scale;
    return c->options->objective == OBJECTIVE_HOSTS ? worth - counts_host_worth(c) * value->hosts : worth;
}

/* used[host] = 1 where anything is. */
static void add_hosts(struct counts *c)
{
    const struct space *space = c->space;
    if (c->options->objective != OBJECTIVE_HOSTS)
        return;
    for (int h = 0; h < space->n_hosts; h++) {
        int used = program_column(&c->program, GLP_BV, 1, -counts_host_worth(c));
        for (size_t s = 0; s < space->model->n_services; s++)
            if (c->fixed[s * (size_t)space->n_hosts + (size_t)h] > 0)
                glp_set_col_bnds(c->program.lp, used, GLP_FX, 1, 1);
        for (int k = 0; k < c->n_classes; k++) {
            int row = program_row(&c->program, GLP_UP, 0, 0);
            program_entry(&c->program, row, c->classes[k].x + h, 1);
            program_entry(&c->program, row, used, -(double)c->classes[k].n);
        }
    }
}

/* Nothing but what is better than the known placement. */
static void add_better(struct counts *c, const struct value *best)
{
    if (!best->valid)
        return;
    double worth = counts_worth(c, best);
    int row = program_row(&c->program, GLP_LO, worth + COUNTS_STEP, 0);
    for (int j = 1; j <= glp_get_num_cols(c->program.lp); j++)
        if (glp_get_obj_coef(c->program.lp, j) != 0)
            program_entry(&c->program, row, j, glp_get_obj_coef(c->program.lp, j));
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
            int row = program_row(&c->program, GLP_LO, 0, 0);
            for (int k = 0; k < c->n_classes; k++) {
                program_entry(&c->program, row, c->classes[k].x + a, 1);
                program_entry(&c->program, row, c->classes[k].x + b, -1);
            }
            break;
        }
}

void counts_scale(struct counts *c)
{
    c->scale = c->space->total > 0 ? COUNTS_TOTAL / c->space->total : 1;
    c->prices = 0;
    for (int k = 0; k < c->space->n_movable; k++)
        c->prices += c->space->price[c->space->movable[k]] * c->scale;
}

void counts_make(struct counts *c, const struct value *best)
{
    bool whole = c->options->granularity == PER_SERVICE;
    program_init(&c->program);
    counts_scale(c);
    classes_init(c);
    add_counts(c);
    add_capacities(c);
    add_affinities(c);
    add_rules(c);
    add_hosts(c);
    if (whole)
        add_even(c, c->options->max_moves < 0
                        ? 0
                        : program_row(&c->program, GLP_UP, 0, (double)c->options->max_moves));
    else
        add_budget(c);
    add_order(c);
    add_better(c, best);
    program_load(&c->program);
}

void counts_wipe(struct counts *c)
{
    for (int k = 0; k < c->n_classes; k++)
        free(c->classes[k].start);
    free(c->classes);
    free(c->class_of);
    free(c->fixed);
    free(c->room);
    program_wipe(&c->program);
}
