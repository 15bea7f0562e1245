/* instances.h - seeded instances for benches and property tests: the mock services of the paper
 * (§7: CPU 1–500 millicores, memory 10–500 MB, hosts 4000 / 8 GB, spread start) on Barabási–Albert
 * graphs, their hard variants, and small random models with every feature of contract.md 2. */
#ifndef REMAP_TESTS_INSTANCES_H
#define REMAP_TESTS_INSTANCES_H

#include "model/model.h"
#include "planner/rng.h"

enum topology { TOPOLOGY_STAR, TOPOLOGY_P2P }; /* m = n − 1 and m = 2 */

struct mock {
    enum topology topology;
    int services;
    int64_t messages;  /* each edge gets at least one */
    bool one_row_each; /* a row per message instead of one per edge */
    bool equal;        /* all edges weigh the same */
    double mem_factor; /* 0: 1 */
    uint64_t seed;
    bool tight;        /* CPU of hosts such that the fewest that can do leave 0.4 % */
};

/* n services of one instance, one on each of n hosts. Caller frees. */
struct model *mock_model(const struct mock *mock);

/* Shaped like a production cluster (issue 4): some 550 services of 1 to 200 replicas, heavy-tailed, about
 * 3500 in all; 100 hosts of 10 sizes, CPU 88 % requested; 350 pairs of services of which one component
 * carries 99 % of the weight and ten pairs half. Spread at random within capacity at the start. */
struct model *production_model(uint64_t seed);

/* A small random model with the features asked for switched on at random: at most `instances`
 * instances and `hosts` hosts. Its own placement keeps capacities and rules unless `broken`. Degrees
 * are given, multiples of 1/64 so that sums are exact. */
struct wild {
    int instances, hosts;
    bool replicas, service_rows, requests, rules, fixed, unplaced, foreign, unschedulable, uneven;
    bool broken;
    bool crowds; /* few services of up to six replicas each */
};

extern const struct wild wild_all; /* everything but broken, 6 instances, 3 hosts */
struct model *wild_model(const struct wild *wild, uint64_t seed);

#endif
