/* proofs.c - the optimal planner beside the clock. */
#include "tests/bench/proofs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analyzer/affinity.h"
#include "planner/planner.h"
#include "tests/bench/instances.h"

struct variant {
    const char *name, *text;
    struct mock mock;
};

static const struct variant variants[] = {
    {"p2p", "p2p", {.topology = TOPOLOGY_P2P, .messages = 10000}},
    {"star", "star", {.topology = TOPOLOGY_STAR, .messages = 10000}},
    {"equal", "equal weights", {.topology = TOPOLOGY_P2P, .equal = true}},
    {"memory", "memory-bound", {.topology = TOPOLOGY_P2P, .messages = 10000, .mem_factor = 2.4}},
    {"tight", "tight", {.topology = TOPOLOGY_P2P, .messages = 10000, .tight = true}},
};

static void head(void)
{
    puts("instance       services  seed    status   affinity      bound      gap  on so few hosts     hosts       ms");
}

/* True when proven. */
static bool row(const struct variant *variant, const char *planner, enum objective objective,
                int services, uint64_t seed, int64_t limit_ms)
{
    struct err err = ERR_INIT;
    struct plan_options options = plan_options_default;
    struct mock mock = variant->mock;
    mock.services = services;
    mock.seed = seed;
    AUTO(model) struct model *model = mock_model(&mock);
    AUTO(analysis) struct analysis *analysis = NULL;
    AUTO(plan) struct plan *plan = NULL;
    options.planner = planner;
    options.time_limit_ms = limit_ms;
    options.objective = mock.tight ? OBJECTIVE_HOSTS : objective;
    if (affinity_analyzer.analyze(model, 0.5, &analysis, &err) < 0 ||
        planner_run(model, analysis, &options, &plan, &err) < 0) {
        fprintf(stderr, "remap-bench: %s\n", err.text);
        exit(1);
    }
    double within = isnan(plan->affinity_bound_hosts) ? plan->affinity_bound
                                                      : plan->affinity_bound_hosts;
    printf("%-14s %8d %5d %9s %10.6f %10.6f %8.4f %% %14.4f %% %4lld >= %-4lld %8lld\n", variant->text,
           services, (int)seed, plan->status == PLAN_OPTIMAL ? "optimal" : "feasible",
           plan->affinity_after, plan->affinity_bound, 100 * plan_gap(plan),
           100 * (within - plan->affinity_after) / fmax(within, 1e-12),
           (long long)plan->hosts_after, (long long)plan->hosts_bound,
           (long long)plan->solve_ms);
    fflush(stdout);
    return plan->status == PLAN_OPTIMAL;
}

bool proofs_print_one(const char *variant, const char *planner, bool fewest_hosts, int services,
                      int seeds, int64_t limit_ms)
{
    for (size_t k = 0; k < ARRAY_LEN(variants); k++) {
        int proven = 0;
        if (strcmp(variants[k].name, variant) != 0)
            continue;
        head();
        for (int seed = 1; seed <= seeds; seed++)
            proven += row(&variants[k], planner,
                          fewest_hosts ? OBJECTIVE_HOSTS : OBJECTIVE_AFFINITY, services,
                          (uint64_t)seed, limit_ms);
        printf("%d of %d proven\n", proven, seeds);
        return true;
    }
    return false;
}

void proofs_print(void)
{
    static const int sizes[] = {12, 20, 60, 100, 150, 200};
    head();
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            row(&variants[0], "oa", OBJECTIVE_AFFINITY, sizes[k], seed, sizes[k] > 100 ? 60000 : 10000);
    for (uint64_t seed = 1; seed <= 3; seed++)
        row(&variants[1], "oa", OBJECTIVE_AFFINITY, 1000, seed, 12000);
    for (uint64_t seed = 1; seed <= 2; seed++)
        for (size_t k = 2; k < ARRAY_LEN(variants); k++)
            row(&variants[k], "oa", OBJECTIVE_AFFINITY, 60, seed, 60000);
}
