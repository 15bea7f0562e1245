/* gen.h - models made from a seed: random ones with everything in them, and the mock applications
 * of the paper's evaluation (algorithms.md 6.5). */
#ifndef REMAP_TESTS_GEN_H
#define REMAP_TESTS_GEN_H

#include "model/model.h"
#include "tests/support/rng.h"

enum gen_topology {
    GEN_STAR, /* API gateway: service 0 speaks to all others, n - 1 edges */
    GEN_P2P   /* Barabási–Albert with m = 2: 2n - 4 edges (n from 3) */
};

/* CPU uniform 1 … 500 millicores, memory 10 … 500 MB, hosts of 4000 millicores and 8 GB, as many as
 * services; one instance per service, each on its own host. Every edge has a message, the rest of
 * n_messages fall on edges by random weight; 100 … 10000 bytes each. Names are service-N, host-N,
 * and instances bear their service's name. */
struct model *gen_mock(enum gen_topology topology, size_t n_services, int64_t n_messages,
                       uint64_t seed);

struct gen_options {
    size_t max_hosts, max_services, max_replicas;
    bool rules, requests, affinities; /* affinities instead of messages, in half of the models */
    bool fixed;                       /* some stateful, pinned, not movable, in a rollout */
    double fill;                      /* about this share of the hosts is used: 0.3 loose, 0.9 full */
};

/* A model that passes model_check and whose placement keeps capacities (rules where they could be
 * kept). Some instances may be unplaced. */
struct model *gen_model(struct rng *rng, const struct gen_options *options);

/* Another placement of the same instances that keeps capacities and schedulable targets: up to
 * `tries` random moves and swaps of what may move. n_instances long; caller frees. */
int *gen_placement(struct rng *rng, const struct model *model, size_t tries);

#endif
