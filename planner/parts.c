/* parts.c - building the set packing form of a model. */
#include "planner/parts.h"

#include <stdlib.h>
#include <string.h>

/* Pricing runs per kind of host; above some 64 kinds a round costs more than the search has. */
#define PARTS_MAX_KINDS 64

struct raw_arc {
    int a, b;
    double degree;
};

static int by_ends(const void *left, const void *right)
{
    const struct raw_arc *x = left, *y = right;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return x->b < y->b ? -1 : x->b > y->b;
}

/* Sorted halves, those of one pair added up, into the CSR of `parts`. */
static void arcs_set(struct parts *parts, struct raw_arc *raw, size_t n)
{
    size_t kept = 0;
    if (n > 0)
        qsort(raw, n, sizeof *raw, by_ends);
    parts->first = mem_array((size_t)parts->n + 1, sizeof *parts->first);
    parts->arcs = mem_array(n, sizeof *parts->arcs);
    for (size_t k = 0; k < n; k++) {
        if (kept > 0 && k > 0 && raw[k].a == raw[k - 1].a && raw[k].b == raw[k - 1].b) {
            parts->arcs[kept - 1].degree += raw[k].degree;
            continue;
        }
        parts->arcs[kept++] = (struct arc){raw[k].b, raw[k].degree};
        parts->first[raw[k].a + 1] = kept;
    }
    for (int i = 0; i < parts->n; i++)
        if (parts->first[i + 1] < parts->first[i])
            parts->first[i + 1] = parts->first[i];
}

static void conflicts_set(struct parts *parts, struct raw_arc *raw, size_t n)
{
    size_t kept = 0;
    if (n > 0)
        qsort(raw, n, sizeof *raw, by_ends);
    parts->first_conflict = mem_array((size_t)parts->n + 1, sizeof *parts->first_conflict);
    parts->conflicts = mem_array(n, sizeof *parts->conflicts);
    for (size_t k = 0; k < n; k++) {
        if (k > 0 && raw[k].a == raw[k - 1].a && raw[k].b == raw[k - 1].b)
            continue;
        parts->conflicts[kept++] = raw[k].b;
        parts->first_conflict[raw[k].a + 1] = kept;
    }
    for (int i = 0; i < parts->n; i++)
        if (parts->first_conflict[i + 1] < parts->first_conflict[i])
            parts->first_conflict[i + 1] = parts->first_conflict[i];
}

struct ranked {
    double degree;
    int item;
};

static int by_degree(const void *left, const void *right)
{
    const struct ranked *x = left, *y = right;
    if (x->degree != y->degree)
        return x->degree < y->degree ? 1 : -1;
    return x->item < y->item ? -1 : 1;
}

static void ranks_set(struct parts *parts)
{
    AUTO_FREE struct ranked *order = mem_array((size_t)parts->n, sizeof *order);
    parts->rank = mem_array((size_t)parts->n, sizeof *parts->rank);
    parts->by_rank = mem_array((size_t)parts->n, sizeof *parts->by_rank);
    for (int i = 0; i < parts->n; i++) {
        order[i].item = i;
        for (size_t k = parts->first[i]; k < parts->first[i + 1]; k++)
            order[i].degree += parts->arcs[k].degree;
    }
    if (parts->n > 0)
        qsort(order, (size_t)parts->n, sizeof *order, by_degree);
    for (int k = 0; k < parts->n; k++) {
        parts->by_rank[k] = order[k].item;
        parts->rank[order[k].item] = k;
    }
}

/* Degrees between movable items become arcs; with what is fixed on a host, bonuses of that host. */
static void rows_set(struct parts *parts, const struct space *space, double **bonus)
{
    size_t n = 0, all = space->n_groups ? space->first_link[space->n_groups] : 0;
    AUTO_FREE struct raw_arc *raw = mem_array(all, sizeof *raw);
    for (int g = 0; g < space->n_groups; g++)
        for (size_t l = space->first_link[g]; l < space->first_link[g + 1]; l++) {
            int a = space->only[g], b = space->only[space->links[l].group];
            int item_a = parts->item_of[a], item_b = parts->item_of[b];
            double degree = space->links[l].degree * parts->scale;
            if (item_a >= 0 && item_b >= 0) {
                raw[n++] = (struct raw_arc){item_a, item_b, degree};
            } else if (item_a >= 0) {
                int host = space->start[b];
                if (!bonus[host])
                    bonus[host] = mem_array((size_t)parts->n, sizeof **bonus);
                bonus[host][item_a] += degree;
            } else if (item_b < 0 && a < b && space->start[a] == space->start[b]) {
                parts->constant += degree;
            }
        }
    arcs_set(parts, raw, n);
}

/* Apart with a limit of one, and spread per host with a limit of one, are pairs in conflict. */
static void rules_set(struct parts *parts, const struct space *space)
{
    const struct model *model = space->model;
    AUTO_FREE struct raw_arc *raw = NULL;
    size_t n = 0;
    AUTO_FREE int *replicas = model_replicas(model);
    AUTO_FREE bool *named = mem_array(model->n_services, sizeof *named);
    for (size_t r = 0; r < model->n_rules; r++) {
        const struct rule *rule = &model->rules[r];
        bool apart = rule->kind == RULE_APART && rule->max_per_host == 1;
        bool spread = rule->kind == RULE_SPREAD && !rule->per_zone &&
                      rule->max_share * replicas[rule->services[0]] + 1e-9 < 2;
        if (!apart && !spread)
            continue;
        memset(named, 0, model->n_services * sizeof *named);
        for (size_t k = 0; k < rule->n_services; k++)
            named[rule->services[k]] = true;
        for (int i = 0; i < space->n; i++)
            for (int j = 0; named[model->instances[i].service] && j < space->n; j++)
                if (i != j && named[model->instances[j].service] && parts->item_of[i] >= 0 &&
                    parts->item_of[j] >= 0)
                    *ARRAY_PUSH(raw, n) =
                        (struct raw_arc){parts->item_of[i], parts->item_of[j], 0};
    }
    conflicts_set(parts, raw, n);
}

/* Items that a host takes: all that rule allowed, nothing new on a closed one. NULL: all. */
static bool *host_allows(const struct parts *parts, const struct space *space, int host)
{
    const struct model *model = space->model;
    bool *allowed = NULL;
    for (int i = 0; i < space->n; i++) {
        int item = parts->item_of[i];
        bool ok = space->open[host] || space->start[i] == host;
        for (size_t r = 0; r < model->n_rules && ok && item >= 0; r++) {
            const struct rule *rule = &model->rules[r];
            if (rule->kind != RULE_ALLOWED || rule->services[0] != model->instances[i].service)
                continue;
            ok = false;
            for (size_t k = 0; k < rule->n_hosts; k++)
                ok |= rule->hosts[k] == host;
        }
        if (item < 0 || ok)
            continue;
        if (!allowed) {
            allowed = mem_array((size_t)parts->n, sizeof *allowed);
            memset(allowed, true, (size_t)parts->n * sizeof *allowed);
        }
        allowed[item] = false;
    }
    return allowed;
}

static bool kind_same(const struct kind *kind, const struct parts *parts, const double *cap,
                      const double *bonus, const bool *allowed)
{
    for (int d = 0; d < parts->dims; d++)
        if (kind->cap[d] != cap[d])
            return false;
    if (kind->bonus || bonus || !kind->allowed != !allowed)
        return false;
    return !allowed ||
           memcmp(kind->allowed, allowed, (size_t)parts->n * sizeof *allowed) == 0;
}

static int kinds_set(struct parts *parts, const struct space *space, double **bonus,
                     struct err *err)
{
    AUTO_FREE int64_t *fixed = mem_array((size_t)space->n_hosts * LOAD_DIMS, sizeof *fixed);
    for (int i = 0; i < space->n; i++)
        for (int d = 0; space->fixed[i] && d < space->dims; d++)
            fixed[space->start[i] * space->dims + d] += space->need[i * space->dims + d];
    for (int h = 0; h < space->n_hosts; h++) {
        double cap[LOAD_DIMS];
        bool *allowed = host_allows(parts, space, h);
        int at = 0;
        for (int d = 0; d < space->dims; d++)
            cap[d] = (double)(space->cap[h * space->dims + d] - fixed[h * space->dims + d]);
        while (at < parts->n_kinds &&
               !kind_same(&parts->kinds[at], parts, cap, bonus[h], allowed))
            at++;
        if (at == PARTS_MAX_KINDS) {
            free(allowed);
            return err_set(err, ERR_REFUSED, "more than %d different hosts", PARTS_MAX_KINDS);
        }
        if (at == parts->n_kinds) {
            struct kind *kind = &parts->kinds[parts->n_kinds++];
            memcpy(kind->cap, cap, sizeof kind->cap);
            kind->bonus = steal(bonus[h]);
            kind->allowed = steal(allowed);
            kind->hosts = mem_array((size_t)space->n_hosts, sizeof *kind->hosts);
        }
        free(allowed);
        parts->kinds[at].hosts[parts->kinds[at].count++] = h;
    }
    return 0;
}

static bool kind_fits_all(const struct parts *parts, const struct kind *kind)
{
    if (kind->bonus || kind->allowed)
        return false;
    for (int i = 0; i < parts->n; i++)
        for (int d = 0; d < parts->dims; d++)
            if (parts->size[i * parts->dims + d] > kind->cap[d])
                return false;
    return true;
}

static void alone_set(struct parts *parts)
{
    int hosts = 0;
    for (int k = 0; k < parts->n_kinds; k++)
        if (kind_fits_all(parts, &parts->kinds[k]))
            hosts += parts->kinds[k].count;
    parts->alone = hosts >= parts->n;
}

struct parts *parts_new(const struct space *space, struct err *err)
{
    AUTO(parts) struct parts *parts = mem_alloc(sizeof *parts);
    if (space->n_slots > 0) {
        err_set(err, ERR_REFUSED, "service-level rows of replicated services");
        return NULL;
    }
    parts->dims = space->dims;
    parts->scale = space->total > 0 ? PARTS_TOTAL / space->total : 1;
    parts->n = space->n_movable;
    parts->item_of = mem_array((size_t)space->n, sizeof *parts->item_of);
    parts->size = mem_array((size_t)parts->n * LOAD_DIMS, sizeof *parts->size);
    parts->kinds = mem_array(PARTS_MAX_KINDS, sizeof *parts->kinds);
    for (int i = 0; i < space->n; i++)
        parts->item_of[i] = -1;
    for (int k = 0; k < space->n_movable; k++) {
        parts->item_of[space->movable[k]] = k;
        for (int d = 0; d < space->dims; d++)
            parts->size[k * space->dims + d] =
                (double)space->need[space->movable[k] * space->dims + d];
    }
    double **bonus = mem_array((size_t)space->n_hosts, sizeof *bonus);
    rows_set(parts, space, bonus);
    rules_set(parts, space);
    int result = kinds_set(parts, space, bonus, err);
    for (int h = 0; h < space->n_hosts; h++)
        free(bonus[h]);
    free(bonus);
    if (result < 0)
        return NULL;
    parts->most_hosts = space->n_hosts;
    ranks_set(parts);
    alone_set(parts);
    return steal(parts);
}

void parts_limit(struct parts *parts, int hosts)
{
    if (hosts >= parts->most_hosts)
        return;
    parts->most_hosts = hosts;
    parts->alone = parts->alone && hosts >= parts->n;
    for (int k = 0; k < parts->n_kinds; k++)
        if (parts->kinds[k].count > hosts)
            parts->kinds[k].count = hosts;
}

void parts_free(struct parts *parts)
{
    if (!parts)
        return;
    for (int k = 0; k < parts->n_kinds; k++) {
        free(parts->kinds[k].hosts);
        free(parts->kinds[k].bonus);
        free(parts->kinds[k].allowed);
    }
    free(parts->size);
    free(parts->arcs);
    free(parts->first);
    free(parts->conflicts);
    free(parts->first_conflict);
    free(parts->rank);
    free(parts->by_rank);
    free(parts->kinds);
    free(parts->item_of);
    free(parts);
}

static void branch_arcs(struct parts *to, const struct parts *from, const int *map)
{
    size_t n = 0;
    AUTO_FREE struct raw_arc *raw = mem_array(from->first[from->n], sizeof *raw);
    for (int i = 0; i < from->n; i++)
        for (size_t k = from->first[i]; k < from->first[i + 1]; k++) {
            int j = from->arcs[k].item;
            if (map[i] != map[j])
                raw[n++] = (struct raw_arc){map[i], map[j], from->arcs[k].degree};
            else if (i < j)
                to->constant += from->arcs[k].degree;
        }
    arcs_set(to, raw, n);
}

static bool branch_conflicts(struct parts *to, const struct parts *from, const int *map,
                             const struct decision *decisions, size_t n_decisions)
{
    AUTO_FREE struct raw_arc *raw =
        mem_array(from->first_conflict[from->n] + 2 * n_decisions, sizeof *raw);
    size_t n = 0;
    for (int i = 0; i < from->n; i++)
        for (size_t k = from->first_conflict[i]; k < from->first_conflict[i + 1]; k++)
            raw[n++] = (struct raw_arc){map[i], map[from->conflicts[k]], 0};
    for (size_t k = 0; k < n_decisions; k++) {
        const struct decision *decision = &decisions[k];
        if (decision->what != APART)
            continue;
        raw[n++] = (struct raw_arc){map[decision->a], map[decision->b], 0};
        raw[n++] = (struct raw_arc){map[decision->b], map[decision->a], 0};
    }
    for (size_t k = 0; k < n; k++)
        if (raw[k].a == raw[k].b)
            return false;
    conflicts_set(to, raw, n);
    return true;
}

static void forbid(struct parts *parts, int kind, int item)
{
    struct kind *host = &parts->kinds[kind];
    if (!host->allowed) {
        host->allowed = mem_array((size_t)parts->n, sizeof *host->allowed);
        memset(host->allowed, true, (size_t)parts->n * sizeof *host->allowed);
    }
    host->allowed[item] = false;
}

static void branch_kinds(struct parts *to, const struct parts *from, const int *map)
{
    to->n_kinds = from->n_kinds;
    to->kinds = mem_array(PARTS_MAX_KINDS, sizeof *to->kinds);
    for (int k = 0; k < from->n_kinds; k++) {
        const struct kind *old = &from->kinds[k];
        struct kind *kind = &to->kinds[k];
        memcpy(kind->cap, old->cap, sizeof kind->cap);
        kind->count = old->count;
        kind->hosts = mem_dup(old->hosts, (size_t)old->count * sizeof *old->hosts);
        if (old->bonus) {
            kind->bonus = mem_array((size_t)to->n, sizeof *kind->bonus);
            for (int i = 0; i < from->n; i++)
                kind->bonus[map[i]] += old->bonus[i];
        }
        if (old->allowed) {
            kind->allowed = mem_array((size_t)to->n, sizeof *kind->allowed);
            memset(kind->allowed, true, (size_t)to->n * sizeof *kind->allowed);
            for (int i = 0; i < from->n; i++)
                kind->allowed[map[i]] &= old->allowed[i];
        }
    }
}

static int find(int *same, int i)
{
    while (same[i] != i)
        i = same[i] = same[same[i]];
    return i;
}

/* New numbers of items; those that stay together get one. */
static int *branch_map(const struct parts *parts, const struct decision *decisions, size_t n,
                       int *count)
{
    AUTO_FREE int *same = mem_array((size_t)parts->n, sizeof *same);
    int *map = mem_array((size_t)parts->n, sizeof *map);
    *count = 0;
    for (int i = 0; i < parts->n; i++)
        same[i] = i;
    for (size_t k = 0; k < n; k++) {
        int a = find(same, decisions[k].a);
        int b = decisions[k].what == TOGETHER ? find(same, decisions[k].b) : a;
        same[a > b ? a : b] = a < b ? a : b;
    }
    for (int i = 0; i < parts->n; i++) {
        int first = find(same, i); /* the smallest of its class */
        map[i] = first == i ? (*count)++ : map[first];
    }
    return map;
}

static bool fits_somewhere(const struct parts *parts, int item)
{
    for (int k = 0; k < parts->n_kinds; k++) {
        bool fits = !parts->kinds[k].allowed || parts->kinds[k].allowed[item];
        for (int d = 0; d < parts->dims && fits; d++)
            fits = parts->size[item * parts->dims + d] <= parts->kinds[k].cap[d];
        if (fits)
            return true;
    }
    return false;
}

struct parts *parts_branch(const struct parts *parts, const struct decision *decisions, size_t n,
                           int **map)
{
    AUTO(parts) struct parts *to = mem_alloc(sizeof *to);
    AUTO_FREE int *new_of = branch_map(parts, decisions, n, &to->n);
    to->dims = parts->dims;
    to->constant = parts->constant;
    to->scale = parts->scale;
    to->alone = parts->alone;
    to->most_hosts = parts->most_hosts;
    to->size = mem_array((size_t)to->n * LOAD_DIMS, sizeof *to->size);
    for (int i = 0; i < parts->n; i++)
        for (int d = 0; d < parts->dims; d++)
            to->size[new_of[i] * parts->dims + d] += parts->size[i * parts->dims + d];
    branch_arcs(to, parts, new_of);
    if (!branch_conflicts(to, parts, new_of, decisions, n))
        return NULL;
    branch_kinds(to, parts, new_of);
    for (size_t k = 0; k < n; k++)
        for (int kind = 0; decisions[k].what >= ON_KIND && kind < to->n_kinds; kind++)
            if ((kind == decisions[k].b) == (decisions[k].what == OFF_KIND))
                forbid(to, kind, new_of[decisions[k].a]);
    for (int i = 0; i < to->n; i++)
        if (!fits_somewhere(to, i))
            return NULL;
    ranks_set(to);
    *map = steal(new_of);
    return steal(to);
}
