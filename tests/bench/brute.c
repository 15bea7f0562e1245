/* brute.c - exhaustive search over hosts ^ instances. */
#include "tests/bench/brute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/rules.h"

struct walk {
    const struct model *model;
    const struct affinity *rows;
    size_t n;
    bool move_stateful, strict;
    int64_t max_moves;
    int *start, *at;
    struct brute best;
};

static bool end_holds(const struct walk *walk)
{
    const struct model *model = walk->model;
    struct err err = ERR_INIT;
    struct load *used = mem_array(model->n_hosts, sizeof *used);
    bool *newcomer = mem_array(model->n_hosts, sizeof *newcomer);
    int64_t moves = 0;
    bool ok = true;
    for (size_t i = 0; i < model->n_instances; i++) {
        struct load load = instance_load(&model->instances[i]);
        load_add(&used[walk->at[i]], &load);
        newcomer[walk->at[i]] |= walk->at[i] != walk->start[i];
        moves += walk->at[i] != walk->start[i];
    }
    for (size_t h = 0; h < model->n_hosts && ok; h++) {
        struct load offer = host_offer(&model->hosts[h]), none = {0};
        if (newcomer[h] || (walk->strict && used[h].pods > 0))
            ok = load_fits(&offer, &used[h], &none, NULL);
    }
    ok = ok && (walk->max_moves < 0 || moves <= walk->max_moves) &&
         model_rules_kept(model, walk->strict ? NULL : walk->start, walk->at, &err) == 0;
    free(used);
    free(newcomer);
    return ok;
}

static void end_count(struct walk *walk)
{
    const struct model *model = walk->model;
    struct brute *best = &walk->best;
    if (!end_holds(walk))
        return;
    double score = placement_score(model, walk->rows, walk->n, walk->at);
    int hosts = placement_hosts_used(model, walk->at), moves = 0;
    for (size_t i = 0; i < model->n_instances; i++)
        moves += walk->start[i] >= 0 && walk->at[i] != walk->start[i];
    best->placements++;
    if (!best->feasible || score > best->score + 1e-9 ||
        (fabs(score - best->score) <= 1e-9 &&
         (hosts < best->hosts || (hosts == best->hosts && moves < best->moves)))) {
        best->score = score;
        best->hosts = hosts;
        best->moves = moves;
    }
    if (!best->feasible || hosts < best->fewest_hosts ||
        (hosts == best->fewest_hosts && score > best->fewest_hosts_score)) {
        best->fewest_hosts = hosts;
        best->fewest_hosts_score = score;
    }
    best->feasible = true;
}

static void walk_from(struct walk *walk, size_t i)
{
    const struct model *model = walk->model;
    if (i == model->n_instances) {
        end_count(walk);
        return;
    }
    bool stays = walk->start[i] >= 0 && instance_fixed_why(model, (int)i, walk->move_stateful);
    for (size_t h = 0; h < model->n_hosts; h++) {
        if ((int)h != walk->start[i] && (stays || !model->hosts[h].schedulable))
            continue;
        walk->at[i] = (int)h;
        walk_from(walk, i + 1);
    }
}

struct brute brute_force(const struct model *model, const struct affinity *rows, size_t n,
                         bool move_stateful, int64_t max_moves, bool strict)
{
    struct walk walk = {.model = model, .rows = rows, .n = n, .move_stateful = move_stateful,
                        .strict = strict, .max_moves = max_moves};
    walk.start = model_placement(model);
    walk.at = mem_array(model->n_instances, sizeof *walk.at);
    walk_from(&walk, 0);
    free(walk.start);
    free(walk.at);
    return walk.best;
}

/* ---- whole services ---- */

struct crowd {
    struct walk walk;
    int *left;     /* counts of the service at hand, by host */
    bool *moved;   /* by service */
};

static void crowds_from(struct crowd *crowd, size_t service);

static void crowd_count(struct crowd *crowd)
{
    struct walk *walk = &crowd->walk;
    const struct model *model = walk->model;
    struct brute *best = &walk->best;
    struct err err = ERR_INIT;
    AUTO_FREE struct load *used = mem_array(model->n_hosts, sizeof *used);
    AUTO_FREE bool *judged = mem_array(model->n_hosts, sizeof *judged);
    int64_t asked = 0;
    int moves = 0;
    for (size_t i = 0; i < model->n_instances; i++) {
        struct load load = instance_load(&model->instances[i]);
        bool moved = crowd->moved[model->instances[i].service];
        load_add(&used[walk->at[i]], &load);
        judged[walk->at[i]] |= moved || walk->strict;
        asked += moved;
        moves += moved && walk->start[i] >= 0;
    }
    for (size_t h = 0; h < model->n_hosts; h++) {
        struct load offer = host_offer(&model->hosts[h]), none = {0};
        if (judged[h] && !load_fits(&offer, &used[h], &none, NULL))
            return;
    }
    if ((walk->max_moves >= 0 && asked > walk->max_moves) ||
        model_rules_kept(model, walk->strict ? NULL : walk->start, walk->at, &err) < 0)
        return;
    double score = placement_score(model, walk->rows, walk->n, walk->at);
    int hosts = placement_hosts_used(model, walk->at);
    best->placements++;
    if (!best->feasible || score > best->score + 1e-9 ||
        (fabs(score - best->score) <= 1e-9 &&
         (hosts < best->hosts || (hosts == best->hosts && moves < best->moves)))) {
        best->score = score;
        best->hosts = hosts;
        best->moves = moves;
    }
    if (!best->feasible || hosts < best->fewest_hosts ||
        (hosts == best->fewest_hosts && score > best->fewest_hosts_score)) {
        best->fewest_hosts = hosts;
        best->fewest_hosts_score = score;
    }
    best->feasible = true;
}

/* The first in name order of the service that has no host yet; -1: all have. */
static int crowd_first(const struct model *model, const int *at, size_t service)
{
    int first = -1;
    for (size_t i = 0; i < model->n_instances; i++)
        if (model->instances[i].service == (int)service && at[i] < 0 &&
            (first < 0 ||
             strcmp(model->instances[i].name, model->instances[first].name) < 0))
            first = (int)i;
    return first;
}

static void crowd_assign(struct crowd *crowd, size_t service)
{
    struct walk *walk = &crowd->walk;
    const struct model *model = walk->model;
    AUTO_FREE int *left = mem_dup(crowd->left, model->n_hosts * sizeof *left);
    AUTO_FREE int *seen = mem_array(model->n_instances, sizeof *seen);
    for (size_t i = 0; i < model->n_instances; i++)
        seen[i] = model->instances[i].service == (int)service ? -1 : 0;
    for (int i; (i = crowd_first(model, seen, service)) >= 0;) {
        seen[i] = 0;
        walk->at[i] = -1;
        if (walk->start[i] >= 0 && left[walk->start[i]] > 0) {
            left[walk->start[i]]--;
            walk->at[i] = walk->start[i];
        }
    }
    for (int i; (i = crowd_first(model, walk->at, service)) >= 0;) {
        int h = 0;
        while (left[h] == 0)
            h++;
        left[h]--;
        walk->at[i] = h;
    }
}

/* Counts of the hosts from `host` on; what is even is tried. */
static void crowd_spread(struct crowd *crowd, size_t service, size_t host, int rest)
{
    struct walk *walk = &crowd->walk;
    const struct model *model = walk->model;
    if (host < model->n_hosts) {
        for (int n = 0; n <= (model->hosts[host].schedulable ? rest : 0); n++) {
            crowd->left[host] = n;
            crowd_spread(crowd, service, host + 1, rest - n);
        }
        crowd->left[host] = 0;
        return;
    }
    int least = INT32_MAX, most = 0;
    for (size_t h = 0; h < model->n_hosts; h++) {
        least = crowd->left[h] > 0 && crowd->left[h] < least ? crowd->left[h] : least;
        most = crowd->left[h] > most ? crowd->left[h] : most;
    }
    if (rest > 0 || most - least > 1)
        return;
    AUTO_FREE int *counts = mem_dup(crowd->left, model->n_hosts * sizeof *counts);
    crowd_assign(crowd, service);
    bool moved = false;
    for (size_t i = 0; i < model->n_instances; i++)
        moved |= model->instances[i].service == (int)service && walk->at[i] != walk->start[i];
    crowd->moved[service] = true;
    if (moved) /* else it stays, which is tried anyway */
        crowds_from(crowd, service + 1);
    memcpy(crowd->left, counts, model->n_hosts * sizeof *counts);
}

static void crowds_from(struct crowd *crowd, size_t service)
{
    struct walk *walk = &crowd->walk;
    const struct model *model = walk->model;
    bool fixed = false, pending = false;
    int n = 0;
    if (service == model->n_services) {
        crowd_count(crowd);
        return;
    }
    for (size_t i = 0; i < model->n_instances; i++) {
        if (model->instances[i].service != (int)service)
            continue;
        n++;
        pending |= walk->start[i] < 0;
        fixed |= walk->start[i] >= 0 && instance_fixed_why(model, (int)i, walk->move_stateful);
        walk->at[i] = walk->start[i];
    }
    crowd->moved[service] = false;
    if (!pending)
        crowds_from(crowd, service + 1);
    if (fixed || n == 0)
        return;
    AUTO_FREE int *before = mem_dup(crowd->left, model->n_hosts * sizeof *before);
    memset(crowd->left, 0, model->n_hosts * sizeof *crowd->left);
    crowd_spread(crowd, service, 0, n);
    memcpy(crowd->left, before, model->n_hosts * sizeof *before);
}

struct brute brute_services(const struct model *model, const struct affinity *rows, size_t n,
                            bool move_stateful, int64_t max_moves, bool strict)
{
    struct crowd crowd = {.walk = {.model = model, .rows = rows, .n = n, .strict = strict,
                                   .move_stateful = move_stateful, .max_moves = max_moves}};
    crowd.walk.start = model_placement(model);
    crowd.walk.at = mem_array(model->n_instances, sizeof *crowd.walk.at);
    crowd.left = mem_array(model->n_hosts, sizeof *crowd.left);
    crowd.moved = mem_array(model->n_services, sizeof *crowd.moved);
    crowds_from(&crowd, 0);
    free(crowd.walk.start);
    free(crowd.walk.at);
    free(crowd.left);
    free(crowd.moved);
    return crowd.walk.best;
}
