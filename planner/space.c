/* space.c - compact arrays of a model, and a placement that is updated move by move. */
#include "planner/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/rules.h"

/* Counts of replicated groups are n_slots × n_hosts ints in pages that are touched only where used;
 * 2^29 entries are 2 GiB of address space. */
#define SPACE_MAX_COUNTS ((size_t)1 << 29)

static void dims_init(struct space *space, const struct model *model)
{
    int64_t sum[LOAD_DIMS] = {0};
    bool needed[LOAD_DIMS] = {false};
    for (size_t i = 0; i < model->n_instances; i++) {
        struct load load = instance_load(&model->instances[i]);
        int64_t need[LOAD_DIMS];
        load_dims(&load, need);
        for (int d = 0; d < LOAD_DIMS; d++)
            needed[d] |= need[d] > 0;
    }
    needed[4] = false; /* pod slots: only where some host limits them */
    for (size_t h = 0; h < model->n_hosts; h++) {
        struct load load = host_offer(&model->hosts[h]);
        int64_t cap[LOAD_DIMS];
        load_dims(&load, cap);
        needed[4] |= model->hosts[h].pods_cap >= 0;
        for (int d = 0; d < LOAD_DIMS; d++) {
            needed[d] |= cap[d] < 0; /* full by requests of others: nothing may come */
            sum[d] += d < 4 && cap[d] > 0 ? cap[d] / (int64_t)model->n_hosts : 0;
        }
        if (model->hosts[h].pods_cap >= 0)
            sum[4] += cap[4] > 0 ? cap[4] / (int64_t)model->n_hosts + 1 : 0;
    }
    for (int d = 0; d < LOAD_DIMS; d++)
        if (needed[d]) {
            space->scale[space->dims] = 1.0 / (double)(sum[d] > 0 ? sum[d] : 1);
            space->dim[space->dims++] = d;
        }
}

static void loads_init(struct space *space, const struct model *model)
{
    int64_t all[LOAD_DIMS];
    space->need = mem_array((size_t)space->n * LOAD_DIMS, sizeof *space->need);
    space->cap = mem_array((size_t)space->n_hosts * LOAD_DIMS, sizeof *space->cap);
    for (int i = 0; i < space->n; i++) {
        struct load load = instance_load(&model->instances[i]);
        load_dims(&load, all);
        for (int d = 0; d < space->dims; d++)
            space->need[i * space->dims + d] = all[space->dim[d]];
    }
    for (int h = 0; h < space->n_hosts; h++) {
        struct load load = host_offer(&model->hosts[h]);
        load_dims(&load, all);
        for (int d = 0; d < space->dims; d++)
            space->cap[h * space->dims + d] = all[space->dim[d]];
    }
}

static void instances_init(struct space *space, const struct model *model, bool move_stateful)
{
    space->start = model_placement(model);
    space->fixed = mem_array(model->n_instances, sizeof *space->fixed);
    space->fixed_why = mem_array(model->n_instances, sizeof *space->fixed_why);
    space->movable = mem_array(model->n_instances, sizeof *space->movable);
    space->price = mem_array(model->n_instances, sizeof *space->price);
    space->open = mem_array(model->n_hosts, sizeof *space->open);
    for (int i = 0; i < space->n; i++) {
        /* What is placed nowhere must go somewhere, pinned or not. */
        space->fixed_why[i] =
            space->start[i] >= 0 ? instance_fixed_why(model, i, move_stateful) : NULL;
        space->fixed[i] = space->fixed_why[i];
        space->n_new += space->start[i] < 0;
        if (!space->fixed[i])
            space->movable[space->n_movable++] = i;
    }
    for (int h = 0; h < space->n_hosts; h++)
        space->open[h] = model->hosts[h].schedulable;
}

/* Groups: a service where rows speak of services, an instance where they speak of instances; a
 * service of one replica is its instance. */
static int group_new(struct space *space, int size, int only)
{
    int g = space->n_groups++;
    space->size[g] = size;
    space->only[g] = only;
    space->slot[g] = size > 1 ? space->n_slots++ : -1;
    return g;
}

static void groups_init(struct space *space, const struct model *model)
{
    size_t most = model->n_instances + model->n_services;
    AUTO_FREE int *replicas = model_replicas(model);
    AUTO_FREE int *of_service = mem_array(model->n_services, sizeof *of_service);
    AUTO_FREE int *of_instance = mem_array(model->n_instances, sizeof *of_instance);
    AUTO_FREE bool *spoken_service = mem_array(model->n_services, sizeof *spoken_service);
    AUTO_FREE bool *spoken_instance = mem_array(model->n_instances, sizeof *spoken_instance);
    for (size_t r = 0; r < space->n_rows; r++) {
        bool *spoken = space->rows[r].level == LEVEL_SERVICE ? spoken_service : spoken_instance;
        spoken[space->rows[r].a] = spoken[space->rows[r].b] = true;
    }
    space->groups = mem_array(model->n_instances, sizeof *space->groups);
    space->size = mem_array(most, sizeof *space->size);
    space->only = mem_array(most, sizeof *space->only);
    space->slot = mem_array(most, sizeof *space->slot);
    for (size_t s = 0; s < model->n_services; s++)
        of_service[s] = -1;
    for (size_t i = 0; i < model->n_instances; i++) {
        int service = model->instances[i].service;
        bool one = replicas[service] == 1;
        int *groups = space->groups[i];
        groups[0] = groups[1] = of_instance[i] = -1;
        if (spoken_instance[i] || (one && spoken_service[service]))
            groups[0] = of_instance[i] = group_new(space, 1, (int)i);
        if (!spoken_service[service])
            continue;
        if (of_service[service] < 0)
            of_service[service] =
                one ? of_instance[i] : group_new(space, replicas[service], (int)i);
        if (!one)
            groups[groups[0] >= 0] = of_service[service];
    }
    space->first_link = mem_array((size_t)space->n_groups + 2, sizeof *space->first_link);
    space->links = mem_array(2 * space->n_rows, sizeof *space->links);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t r = 0; r < space->n_rows; r++) {
            const struct affinity *row = &space->rows[r];
            const int *of = row->level == LEVEL_SERVICE ? of_service : of_instance;
            int a = of[row->a], b = of[row->b];
            if (row->degree <= 0 || a == b || a < 0 || b < 0)
                continue; /* nothing to gain; a service without instances */
            if (pass == 0) {
                space->first_link[a + 2]++;
                space->first_link[b + 2]++;
                space->total += row->degree;
            } else {
                space->links[space->first_link[a + 1]++] = (struct link){b, row->degree};
                space->links[space->first_link[b + 1]++] = (struct link){a, row->degree};
            }
        }
        for (int g = 0; pass == 0 && g < space->n_groups; g++)
            space->first_link[g + 2] += space->first_link[g + 1];
    }
    size_t halves = space->n_groups ? space->first_link[space->n_groups] : 0;
    double grains = 0;
    for (int g = 0; g < space->n_groups; g++)
        for (size_t l = space->first_link[g]; l < space->first_link[g + 1]; l++) {
            int size = space->size[g], other = space->size[space->links[l].group];
            grains += space->links[l].degree / (size > other ? size : other);
        }
    space->grain = halves ? grains / (double)halves : 1;
    space->mean = halves ? space->total / ((double)halves / 2) : 1;
}

static void members_init(struct space *space)
{
    space->first_member = mem_array((size_t)space->n_groups + 2, sizeof *space->first_member);
    space->members = mem_array((size_t)space->n * 2, sizeof *space->members);
    for (int i = 0; i < space->n; i++)
        for (int k = 0; k < 2; k++)
            if (space->groups[i][k] >= 0)
                space->first_member[space->groups[i][k] + 2]++;
    for (int g = 0; g < space->n_groups; g++)
        space->first_member[g + 2] += space->first_member[g + 1];
    for (int i = 0; i < space->n; i++)
        for (int k = 0; k < 2; k++)
            if (space->groups[i][k] >= 0)
                space->members[space->first_member[space->groups[i][k] + 1]++] = i;
}

struct space *space_new(const struct model *model, const struct affinity *rows, size_t n_rows,
                        bool move_stateful, struct err *err)
{
    AUTO(space) struct space *space = mem_alloc(sizeof *space);
    space->model = model;
    space->rows = rows;
    space->n_rows = n_rows;
    space->n = (int)model->n_instances;
    space->n_hosts = (int)model->n_hosts;
    dims_init(space, model);
    loads_init(space, model);
    instances_init(space, model, move_stateful);
    groups_init(space, model);
    members_init(space);
    if (model->n_hosts && (size_t)space->n_slots > SPACE_MAX_COUNTS / model->n_hosts) {
        err_set(err, ERR_TOO_LARGE, "%d replicated services on %zu hosts are too many to search",
                space->n_slots, model->n_hosts);
        return NULL;
    }
    return steal(space);
}

void space_price_moves(struct space *space, double min_gain)
{
    double sum = 0;
    int known = 0;
    for (int i = 0; i < space->n; i++)
        if (space->model->instances[i].start_ms > 0) {
            sum += (double)space->model->instances[i].start_ms;
            known++;
        }
    for (int i = 0; i < space->n; i++) {
        int64_t start_ms = space->model->instances[i].start_ms;
        space->price[i] = start_ms > 0 ? min_gain * (double)start_ms * known / sum : min_gain;
    }
}

void space_free(struct space *space)
{
    if (!space)
        return;
    free(space->need);
    free(space->cap);
    free(space->fixed);
    free(space->fixed_why);
    free(space->movable);
    free(space->price);
    free(space->open);
    free(space->start);
    free(space->groups);
    free(space->size);
    free(space->only);
    free(space->slot);
    free(space->members);
    free(space->first_member);
    free(space->links);
    free(space->first_link);
    free(space);
}

double space_size(const struct space *space, int instance)
{
    double most = 0;
    for (int d = 0; d < space->dims; d++) {
        double size = (double)space->need[instance * space->dims + d] * space->scale[d];
        most = size > most ? size : most;
    }
    return most;
}

/* ---- placements ---- */

static inline int copies(const struct place *place, int group, int host)
{
    const struct space *space = place->space;
    if (space->slot[group] < 0)
        return place->at[space->only[group]] == host;
    return place->counts[(size_t)space->slot[group] * (size_t)space->n_hosts + (size_t)host];
}

/* A host that others fill beyond its capacity is no matter while nothing of ours is there. */
static double host_over(const struct place *place, int host)
{
    const struct space *space = place->space;
    if (place->n_residents[host] == 0)
        return 0;
    const int64_t *used = &place->used[host * space->dims];
    const int64_t *cap = &space->cap[host * space->dims];
    double over = 0;
    for (int d = 0; d < space->dims; d++)
        if (used[d] > cap[d])
            over += (double)(used[d] - cap[d]) * space->scale[d];
    return over;
}

/* A host that only keeps what it had is not held against the plan, however full. */
static bool host_counts(const struct place *place, int host)
{
    for (int k = 0; k < place->n_residents[host]; k++)
        if (place->space->start[place->residents[host][k]] != host)
            return true;
    return false;
}

static void residents_add(struct place *place, int instance, int host)
{
    if (place->n_residents[host] == place->cap_residents[host]) {
        int cap = place->cap_residents[host] ? place->cap_residents[host] * 2 : 8;
        place->residents[host] =
            mem_resize(place->residents[host], (size_t)cap, sizeof *place->residents[host]);
        place->cap_residents[host] = cap;
    }
    place->position[instance] = place->n_residents[host];
    place->residents[host][place->n_residents[host]++] = instance;
}

static void residents_remove(struct place *place, int instance, int host)
{
    int last = place->residents[host][--place->n_residents[host]];
    place->residents[host][place->position[instance]] = last;
    place->position[last] = place->position[instance];
}

static void place_clear(struct place *place)
{
    const struct space *space = place->space;
    for (int i = 0; i < space->n; i++)
        place->at[i] = -1;
    memset(place->used, 0, sizeof *place->used * (size_t)(space->n_hosts * space->dims));
    memset(place->n_residents, 0, sizeof *place->n_residents * (size_t)space->n_hosts);
    place->score = place->over = place->paid = 0;
    place->n_over = place->n_used = place->n_moved = 0;
    place->excess = 0;
    place->n_unplaced = space->n;
}

struct place *place_new(const struct space *space, const int *at)
{
    struct place *place = mem_alloc(sizeof *place);
    size_t hosts = (size_t)space->n_hosts, n = (size_t)space->n;
    place->space = space;
    place->at = mem_array(n, sizeof *place->at);
    place->used = mem_array(hosts * LOAD_DIMS, sizeof *place->used);
    place->counts = mem_array((size_t)space->n_slots * hosts, sizeof *place->counts);
    place->residents = mem_array(hosts, sizeof *place->residents);
    place->n_residents = mem_array(hosts, sizeof *place->n_residents);
    place->cap_residents = mem_array(hosts, sizeof *place->cap_residents);
    place->position = mem_array(n, sizeof *place->position);
    place_clear(place);
    place->rules = rules_new(space->model, place->at);
    for (int i = 0; i < space->n; i++)
        if (at[i] >= 0)
            place_move(place, i, at[i]);
    return place;
}

void place_free(struct place *place)
{
    if (!place)
        return;
    for (int h = 0; h < place->space->n_hosts; h++)
        free(place->residents[h]);
    free(place->at);
    free(place->used);
    free(place->counts);
    free(place->residents);
    free(place->n_residents);
    free(place->cap_residents);
    free(place->position);
    rules_free(place->rules);
    free(place);
}

void place_set(struct place *place, const int *at)
{
    for (int i = 0; i < place->space->n; i++)
        if (place->at[i] != at[i])
            place_move(place, i, at[i]);
    place->score = place_score_exact(place);
}

static double share_min(int a, int d_a, int b, int d_b)
{
    double x = (double)a / d_a, y = (double)b / d_b;
    return x < y ? x : y;
}

static double group_gain(const struct place *place, int group, int from, int to)
{
    const struct space *space = place->space;
    const struct link *link = &space->links[space->first_link[group]];
    const struct link *end = &space->links[space->first_link[group + 1]];
    double gain = 0;
    int size = space->size[group];
    int x_from = from >= 0 ? copies(place, group, from) : 0;
    int x_to = to >= 0 ? copies(place, group, to) : 0;
    for (; link < end; link++) {
        if (size == 1 && space->slot[link->group] < 0) {
            int other = place->at[space->only[link->group]];
            if (other == to && to >= 0)
                gain += link->degree;
            if (other == from && from >= 0)
                gain -= link->degree;
            continue;
        }
        int d = space->size[link->group];
        if (from >= 0) {
            int y = copies(place, link->group, from);
            if (y)
                gain += link->degree * (share_min(x_from - 1, size, y, d) -
                                        share_min(x_from, size, y, d));
        }
        if (to >= 0) {
            int y = copies(place, link->group, to);
            if (y)
                gain += link->degree *
                        (share_min(x_to + 1, size, y, d) - share_min(x_to, size, y, d));
        }
    }
    return gain;
}

double place_gain(const struct place *place, int instance, int host)
{
    const int *groups = place->space->groups[instance];
    int from = place->at[instance];
    double gain = 0;
    if (from == host)
        return 0;
    if (groups[0] >= 0)
        gain += group_gain(place, groups[0], from, host);
    if (groups[1] >= 0)
        gain += group_gain(place, groups[1], from, host);
    return gain;
}

double place_over_change(const struct place *place, int instance, int host)
{
    const struct space *space = place->space;
    const int64_t *need = &space->need[instance * space->dims];
    int from = place->at[instance];
    double change = 0;
    if (from == host)
        return 0;
    for (int side = 0; side < 2; side++) {
        int h = side ? host : from;
        if (h < 0)
            continue;
        const int64_t *used = &place->used[h * space->dims], *cap = &space->cap[h * space->dims];
        bool held = place->n_residents[h] > 0, holds = side || place->n_residents[h] > 1;
        for (int d = 0; d < space->dims; d++) {
            int64_t before = used[d] - cap[d], after = before + (side ? need[d] : -need[d]);
            if (before > 0 && held)
                change -= (double)before * space->scale[d];
            if (after > 0 && holds)
                change += (double)after * space->scale[d];
        }
    }
    return change;
}

static void load_move(struct place *place, int instance, int host, int sign)
{
    const struct space *space = place->space;
    const int64_t *need = &space->need[instance * space->dims];
    int64_t *used = &place->used[host * space->dims];
    double before = host_over(place, host), after;
    if (sign > 0)
        residents_add(place, instance, host);
    else
        residents_remove(place, instance, host);
    for (int d = 0; d < space->dims; d++)
        used[d] += sign * need[d];
    after = host_over(place, host);
    place->over += after - before;
    place->n_over += (after > 0) - (before > 0);
    for (int k = 0; k < 2; k++) {
        int g = space->groups[instance][k];
        if (g >= 0 && space->slot[g] >= 0)
            place->counts[(size_t)space->slot[g] * (size_t)space->n_hosts + (size_t)host] += sign;
    }
}

void place_move(struct place *place, int instance, int host)
{
    const struct space *space = place->space;
    int from = place->at[instance], service = space->model->instances[instance].service;
    int start = space->start[instance];
    if (from == host)
        return;
    place->score += place_gain(place, instance, host);
    if (place->rules) {
        if (host >= 0)
            place->excess += rules_excess_change(place->rules, service, from, host);
        else
            place->excess = -1; /* counted anew below */
        rules_move(place->rules, service, from, host);
        if (host < 0)
            place->excess = rules_excess(place->rules);
    }
    if (from >= 0) {
        load_move(place, instance, from, -1);
        place->n_used -= place->n_residents[from] == 0;
    }
    if (host >= 0) {
        load_move(place, instance, host, 1);
        place->n_used += place->n_residents[host] == 1;
    }
    place->at[instance] = host;
    place->n_unplaced += (host < 0) - (from < 0);
    if (start >= 0) {
        int change = (host >= 0 && host != start) - (from >= 0 && from != start);
        place->n_moved += change;
        place->paid = place->n_moved == 0 ? 0 : place->paid + change * space->price[instance];
    }
    if (place->n_over == 0)
        place->over = 0; /* no drift of roundings */
}

bool place_allows(const struct place *place, int instance, int host)
{
    const struct space *space = place->space;
    const int64_t *need = &space->need[instance * space->dims];
    const int64_t *used = &place->used[host * space->dims], *cap = &space->cap[host * space->dims];
    if (place->at[instance] == host)
        return true;
    if (!space->open[host] && space->start[instance] != host)
        return false;
    for (int d = 0; d < space->dims; d++)
        if (used[d] + need[d] > cap[d])
            return false;
    return !rules_problem(place->rules, space->model->instances[instance].service,
                          place->at[instance], host);
}

bool place_holds(const struct place *place)
{
    if (place->n_unplaced > 0)
        return false;
    if (place->space->strict)
        return place->n_over == 0 && place->excess <= 0;
    /* Rules that were broken before the plan may stay so, but nowhere get worse. */
    struct err err = ERR_INIT;
    if (place->excess > 0 &&
        model_rules_kept(place->space->model, place->space->start, place->at, &err) < 0)
        return false;
    for (int h = 0; place->n_over > 0 && h < place->space->n_hosts; h++)
        if (host_over(place, h) > 0 && host_counts(place, h))
            return false;
    return true;
}

int64_t place_budget(const struct space *space, const struct plan_options *options)
{
    return options->max_moves < 0 ? INT64_MAX : options->max_moves - space->n_new;
}

double place_score_exact(const struct place *place)
{
    return placement_score(place->space->model, place->space->rows, place->space->n_rows,
                           place->at);
}
