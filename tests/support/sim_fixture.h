/* sim_fixture.h - small clusters for tests of the embedded cluster, from scenario text. */
#ifndef REMAP_TESTS_SIM_FIXTURE_H
#define REMAP_TESTS_SIM_FIXTURE_H

#include "adapters/simulated/server/sim.h"

#define FIXTURE_WALL INT64_C(1700000000000) /* wall time at which fixtures start */

struct fixture {
    struct scenario *scenario;
    struct sim *sim;
};

/* Opens the scenario, in memory or on the journal; fails the test where that is not possible. */
struct fixture fixture_open(const char *yaml, const char *journal);
void fixture_close(struct fixture *fixture);

struct scenario *fixture_scenario(const char *yaml);

/* Advances by simulated ms. */
void fixture_run(struct fixture *fixture, int64_t ms);

/* The only live replica of a service (the first where there are several), -1 when there is none. */
int fixture_replica(const struct fixture *fixture, const char *service);
const char *fixture_host(const struct fixture *fixture, int replica); /* "" while pending */

/* Moves the service's first replica; the mark is 1/seq. 0 or -1 as sim_place(). */
int fixture_move(struct fixture *fixture, int64_t seq, const char *service, const char *target,
                 struct err *err);

#endif
