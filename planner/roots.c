/* roots.c - kinds of hosts, pairs, and classes of hosts by root. */
#include "planner/roots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/rules.h"

/* The program has some of these in each class: 400 in 17 classes are 15,000 rows, which GLPK solves in
 * some 4 s. Lighter pairs count as kept. */
#define MOST_PAIRS 400

/* ---- hosts ---- */

struct sized {
    double size;
    int index;
};

static int by_size(const void *left, const void *right)
{
    const struct sized *x = left, *y = right;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int64_t room_of(const struct space *space, int64_t (*room)[LOAD_DIMS], int host, int d)
{
    int64_t here = room[host][space->dim[d]];
    return here > 0 ? here : 0;
}

static bool rooms_equal(const struct space *space, int64_t (*room)[LOAD_DIMS], int a, int b)
{
    for (int d = 0; d < space->dims; d++)
        if (room_of(space, room, a, d) != room_of(space, room, b, d))
            return false;
    return true;
}

static void host_count(struct roots *roots, int64_t (*room)[LOAD_DIMS], int kind, int host)
{
    struct hosts *hosts = &roots->hosts[kind];
    roots->n_kinds = kind + 1;
    hosts->n++;
    for (int d = 0; d < roots->space->dims; d++) {
        int64_t here = room_of(roots->space, room, host, d);
        hosts->room[d] = fmax(hosts->room[d], (double)here);
        roots->largest[d] = here > roots->largest[d] ? here : roots->largest[d];
        roots->all[d] += (double)here;
    }
}

/* Hosts in order of size, cut where rooms differ: everywhere when they are few sizes, else into equal
 * parts. */
static void kinds_init(struct roots *roots, int64_t (*room)[LOAD_DIMS])
{
    const struct space *space = roots->space;
    AUTO_FREE struct sized *order = mem_array((size_t)space->n_hosts, sizeof *order);
    int sizes = 1;
    for (int h = 0; h < space->n_hosts; h++) {
        order[h].index = h;
        for (int d = 0; d < space->dims; d++)
            order[h].size += (double)room_of(space, room, h, d) * space->scale[d];
    }
    qsort(order, (size_t)space->n_hosts, sizeof *order, by_size);
    for (int k = 1; k < space->n_hosts; k++)
        sizes += !rooms_equal(space, room, order[k - 1].index, order[k].index);
    for (int k = 0, kind = 0; k < space->n_hosts; k++) {
        if (sizes > ROOTS_KINDS)
            kind = (int)((int64_t)k * ROOTS_KINDS / space->n_hosts);
        else if (k > 0 && !rooms_equal(space, room, order[k - 1].index, order[k].index))
            kind++;
        host_count(roots, room, kind, order[k].index);
    }
}

/* ---- rules ---- */

static int service_of(const struct space *space, int group)
{
    return space->model->instances[space->only[group]].service;
}

static bool names(const struct rule *rule, int service)
{
    for (size_t s = 0; s < rule->n_services; s++)
        if (rule->services[s] == service)
            return true;
    return false;
}

static void limits_init(struct roots *roots)
{
    const struct model *model = roots->space->model;
    AUTO_FREE int *replicas = model_replicas(model);
    roots->limits = mem_array(model->n_rules, sizeof *roots->limits);
    for (size_t r = 0; r < model->n_rules; r++)
        roots->limits[r] = rule_most(model, &model->rules[r], replicas);
}

/* False where the rule is broken now, and may stay so. */
static bool allowed_holds(const struct space *space, const struct rule *rule, const bool *listed)
{
    for (int i = 0; i < space->n; i++)
        if (names(rule, space->model->instances[i].service) && space->start[i] >= 0 &&
            !listed[space->start[i]])
            return false;
    return true;
}

/* Nothing of what the rule allows elsewhere alone. */
static void allowed_apply(const struct space *space, const struct rule *rule, int64_t *most)
{
    AUTO_FREE bool *listed = mem_array((size_t)space->n_hosts, sizeof *listed);
    for (size_t h = 0; h < rule->n_hosts; h++)
        listed[rule->hosts[h]] = true;
    if (!allowed_holds(space, rule, listed))
        return;
    for (int h = 0; h < space->n_hosts; h++)
        if (!listed[h])
            most[h] = 0;
}

/* Lowers what the hosts take of the group to what rules let there be. */
static void rules_apply(const struct roots *roots, int group, int64_t *most)
{
    const struct space *space = roots->space;
    int service = service_of(space, group);
    for (size_t r = 0; r < space->model->n_rules; r++) {
        const struct rule *rule = &space->model->rules[r];
        if (!names(rule, service))
            continue;
        if (rule->kind == RULE_ALLOWED)
            allowed_apply(space, rule, most);
        for (int h = 0; h < space->n_hosts && roots->limits[r] >= 0; h++)
            most[h] = roots->limits[r] < most[h] ? roots->limits[r] : most[h];
    }
}

static int64_t most_together(const struct roots *roots, int one, int other)
{
    const struct model *model = roots->space->model;
    int a = service_of(roots->space, one), b = service_of(roots->space, other);
    int64_t most = INT64_MAX;
    for (size_t r = 0; r < model->n_rules; r++) {
        const struct rule *rule = &model->rules[r];
        if (rule->kind == RULE_APART && a != b && roots->limits[r] >= 0 &&
            roots->limits[r] < most && names(rule, a) && names(rule, b))
            most = roots->limits[r];
    }
    return most;
}

/* ---- groups and pairs ---- */

static int by_degree(const void *left, const void *right)
{
    const struct pair *x = left, *y = right;
    if (x->degree != y->degree)
        return x->degree < y->degree ? 1 : -1;
    return x->a != y->a ? x->a - y->a : x->b - y->b;
}

static void pairs_init(struct roots *roots)
{
    const struct space *space = roots->space;
    int n = 0;
    roots->pairs = mem_array(space->first_link[space->n_groups] / 2, sizeof *roots->pairs);
    for (int g = 0; g < space->n_groups; g++)
        for (size_t l = space->first_link[g]; l < space->first_link[g + 1]; l++)
            if (space->links[l].group > g)
                roots->pairs[n++] = (struct pair){g, space->links[l].group, INT64_MAX,
                                                  space->links[l].degree};
    if (n > 0)
        qsort(roots->pairs, (size_t)n, sizeof *roots->pairs, by_degree);
    for (int e = MOST_PAIRS; e < n; e++)
        roots->given_up += roots->pairs[e].degree;
    roots->n_pairs = n < MOST_PAIRS ? n : MOST_PAIRS;
    for (int e = 0; e < roots->n_pairs; e++) {
        struct pair *pair = &roots->pairs[e];
        pair->together = most_together(roots, pair->a, pair->b);
    }
}

static void needs_init(struct roots *roots, const bool *linked)
{
    const struct space *space = roots->space;
    roots->need = mem_array((size_t)(space->n_groups * space->dims), sizeof *roots->need);
    for (int i = 0; i < space->n; i++) {
        int g = space->groups[i][0];
        for (int d = 0; d < space->dims; d++) {
            int64_t need = space->need[i * space->dims + d];
            if (g < 0 || !linked[g]) {
                roots->filler[d] += (double)need;
                continue;
            }
            int64_t *least = &roots->need[g * space->dims + d];
            bool first = i == space->members[space->first_member[g]];
            *least = first || need < *least ? need : *least;
        }
    }
}

/* What any host takes of the group at most: whole replicas in its room, where it is closed those that
 * are there, and what rules let there be. */
static int group_most(const struct roots *roots, int64_t (*room)[LOAD_DIMS], int group)
{
    const struct space *space = roots->space;
    const int64_t *need = &roots->need[group * space->dims];
    AUTO_FREE int64_t *most = mem_array((size_t)space->n_hosts, sizeof *most);
    int64_t best = 0;
    for (int h = 0; h < space->n_hosts; h++)
        most[h] = space->open[h] ? space->size[group] : 0;
    for (int m = space->first_member[group]; m < space->first_member[group + 1]; m++) {
        int host = space->start[space->members[m]];
        if (host >= 0 && !space->open[host])
            most[host]++;
    }
    rules_apply(roots, group, most);
    for (int h = 0; h < space->n_hosts; h++) {
        for (int d = 0; d < space->dims; d++)
            if (need[d] > 0 && room_of(space, room, h, d) / need[d] < most[h])
                most[h] = room_of(space, room, h, d) / need[d];
        best = most[h] > best ? most[h] : best;
    }
    return (int)best;
}

static void mosts_init(struct roots *roots, int64_t (*room)[LOAD_DIMS], const bool *linked)
{
    roots->most = mem_array((size_t)roots->space->n_groups, sizeof *roots->most);
    for (int g = 0; g < roots->space->n_groups; g++)
        if (linked[g])
            roots->most[g] = group_most(roots, room, g);
}

/* Those with much degree on few hosts first. */
static void roots_choose(struct roots *roots)
{
    const struct space *space = roots->space;
    AUTO_FREE struct sized *order = mem_array((size_t)space->n_groups, sizeof *order);
    for (int g = 0; g < space->n_groups; g++)
        order[g].index = g;
    for (int e = 0; e < roots->n_pairs; e++) {
        order[roots->pairs[e].a].size += roots->pairs[e].degree;
        order[roots->pairs[e].b].size += roots->pairs[e].degree;
    }
    for (int g = 0; g < space->n_groups; g++)
        order[g].size /= space->size[g];
    qsort(order, (size_t)space->n_groups, sizeof *order, by_size);
    for (int k = 0; k < ROOTS_MOST && k < space->n_groups && order[k].size > 0; k++)
        if (roots->most[order[k].index] > 0)
            roots->root[roots->n_roots++] = order[k].index;
}

bool roots_init(struct roots *roots, const struct space *space)
{
    *roots = (struct roots){.space = space};
    for (int i = 0; i < space->n; i++)
        if (space->groups[i][1] >= 0)
            return false;
    if (space->n_groups == 0 || space->first_link[space->n_groups] == 0 || space->n_hosts == 0)
        return false;
    AUTO_FREE bool *linked = mem_array((size_t)space->n_groups, sizeof *linked);
    int64_t(*room)[LOAD_DIMS] = mem_array((size_t)space->n_hosts, sizeof *room);
    host_rooms(space->model, room);
    kinds_init(roots, room);
    limits_init(roots);
    pairs_init(roots);
    for (int e = 0; e < roots->n_pairs; e++)
        linked[roots->pairs[e].a] = linked[roots->pairs[e].b] = true;
    needs_init(roots, linked);
    mosts_init(roots, room, linked);
    roots_choose(roots);
    free(room);
    return true;
}

void roots_wipe(struct roots *roots)
{
    free(roots->need);
    free(roots->most);
    free(roots->limits);
    free(roots->pairs);
    free(roots->spots);
}

/* ---- classes ---- */

struct spot *roots_spot(const struct roots *roots, int group, int class)
{
    return &roots->spots[group * roots->n_classes + class];
}

int roots_of(const struct roots *roots, int class)
{
    return class + 1 < roots->n_classes ? roots->root[class] : -1;
}

int roots_hosts(const struct roots *roots, int class)
{
    int root = roots_of(roots, class), n = roots->space->n_hosts;
    return root >= 0 && roots->space->size[root] < n ? roots->space->size[root] : n;
}

/* So many of the group at most on a host with x replicas of `other` and one of `third` (-1: none). */
static int most_beside(const struct roots *roots, int group, int other, int x, int third)
{
    const struct space *space = roots->space;
    int64_t most = roots->most[group];
    for (int d = 0; d < space->dims; d++) {
        int64_t need = roots->need[group * space->dims + d];
        int64_t left = roots->largest[d] - x * roots->need[other * space->dims + d];
        if (third >= 0)
            left -= roots->need[third * space->dims + d];
        if (left < 0)
            return 0;
        if (need > 0 && left / need < most)
            most = left / need;
    }
    return (int)most;
}

/* Puts the group into the class where it may be beside its root. */
static bool spot_open(struct roots *roots, int group, int class)
{
    struct spot *spot = roots_spot(roots, group, class);
    int root = roots_of(roots, class);
    for (int k = 0; k < class; k++)
        if (roots->root[k] == group)
            return false;
    if (spot->most > 0 || roots->most[group] == 0)
        return false;
    spot->most = root < 0 || root == group ? roots->most[group]
                                           : most_beside(roots, group, root, 1, -1);
    return spot->most > 0;
}

/* The root and all roots after it, and what hangs together with any of them. */
static void class_reach(struct roots *roots, int class)
{
    for (int k = class; k + 1 < roots->n_classes; k++)
        spot_open(roots, roots->root[k], class);
    for (bool more = true; more;) {
        more = false;
        for (int e = 0; e < roots->n_pairs; e++) {
            const struct pair *pair = &roots->pairs[e];
            if (roots_spot(roots, pair->a, class)->most > 0)
                more |= spot_open(roots, pair->b, class);
            if (roots_spot(roots, pair->b, class)->most > 0)
                more |= spot_open(roots, pair->a, class);
        }
    }
}

void roots_split(struct roots *roots, int n)
{
    free(roots->spots);
    roots->n_classes = (n < roots->n_roots ? n : roots->n_roots) + 1;
    roots->spots =
        mem_array((size_t)(roots->space->n_groups * roots->n_classes), sizeof *roots->spots);
    for (int class = 0; class + 1 < roots->n_classes; class++)
        class_reach(roots, class);
    for (int g = 0; g < roots->space->n_groups; g++)
        spot_open(roots, g, roots->n_classes - 1);
}

double roots_pair_most(const struct roots *roots, const struct pair *pair, int class)
{
    const struct space *space = roots->space;
    int root = roots_of(roots, class), third = root == pair->a || root == pair->b ? -1 : root;
    const struct spot *a = roots_spot(roots, pair->a, class);
    const struct spot *b = roots_spot(roots, pair->b, class);
    double best = 0;
    for (int x = 1; x <= a->most && x < pair->together; x++) {
        int64_t y = most_beside(roots, pair->b, pair->a, x, third), left = pair->together - x;
        y = y < left ? y : left;
        y = y < b->most ? y : b->most;
        if (y > 0)
            best = fmax(best, fmin((double)x / space->size[pair->a],
                                   (double)y / space->size[pair->b]));
    }
    return best;
}
