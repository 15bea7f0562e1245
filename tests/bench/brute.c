/* brute.c - exhaustive search over hosts ^ instances. */
#include "tests/bench/brute.h"

#include <math.h>
#include <stdlib.h>
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
