/* given.h - a small random model with options drawn for it: what searches are tried on. */
#ifndef REMAP_TESTS_GIVEN_H
#define REMAP_TESTS_GIVEN_H

#include "planner/planner.h"
#include "tests/bench/instances.h"

struct given {
    struct model *model;
    struct analysis *analysis;
    struct plan_options options;
};

struct given given_make(const struct wild *wild, uint64_t seed);
void given_wipe(struct given *given);
#define AUTO_GIVEN __attribute__((cleanup(given_wipe)))

/* Fails the test where planning fails. Caller frees. */
struct plan *plan_by(const struct given *given, const char *planner);

/* Few services of several replicas. */
struct wild wild_services(void);

#endif
