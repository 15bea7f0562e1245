/* bound.h - proven limits of what any plan can reach, cheap enough for every plan (contract.md 3).
 *
 * Affinity: the degree of every pair is split between its two ends, each end keeps what a fractional
 * knapsack of the largest host lets it have beside it; any split gives a valid bound, a few
 * subgradient steps look for a good one (planning.md 4, "star bound"; exact for stars up to the
 * knapsack's fraction). A service of d replicas counts as d hosts' room.
 *
 * Hosts: sums over the largest hosts in one resource or two mixed, Martello and Toth's L2 bound, what
 * rules keep apart, and sets of instances of which no two share a host; what cannot leave its host
 * counts there. Better and dearer: cover.h. */
#ifndef REMAP_PLANNER_BOUND_H
#define REMAP_PLANNER_BOUND_H

#include "model/affinity.h"

/* No placement reachable from the model scores more. Rows as in placement_score(). `place_all`:
 * unplaced instances must be placed as well; else they may stay away and take no room. */
double bound_affinity(const struct model *model, const struct affinity *rows, size_t n,
                      bool move_stateful, bool place_all);

/* No placement uses fewer hosts. `place_all`: unplaced instances must be placed as well. */
int64_t bound_hosts(const struct model *model, bool move_stateful, bool place_all);

/* The five dimensions of a load as an array. What a host can hold at most in any placement: what it
 * offers, or what is there already where that is more (an over-full host keeps it and receives
 * nothing) or nothing may come. */
#define LOAD_DIMS 5
extern const char *const load_dim_names[LOAD_DIMS];
void load_dims(const struct load *load, int64_t out[LOAD_DIMS]);
void host_rooms(const struct model *model, int64_t (*room)[LOAD_DIMS]);
/* How many of the services that the rule names may share a host; -1: it says nothing of hosts, or is
 * broken now and may stay so. `replicas` by service. */
int64_t rule_most(const struct model *model, const struct rule *rule, const int *replicas);

#define LOAD_TEXT_SIZE 32
/* An amount with its unit, for reasons: "250m", "128 MiB", "600 bytes", "3". Returns `out`. */
const char *load_text(int dim, double amount, char out[LOAD_TEXT_SIZE]);

#endif
