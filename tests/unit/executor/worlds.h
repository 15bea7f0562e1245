/* worlds.h - small clusters with a plan, for tests of plans that are carried out. Include after
 * cmocka.h. */
#ifndef REMAP_TESTS_EXECUTOR_WORLDS_H
#define REMAP_TESTS_EXECUTOR_WORLDS_H

#include "tests/support/scripted_cluster.h"

struct world {
    struct model *model;
    struct scripted *s;
};

/* The model is the world's from here on. placement: host of each instance in the plan. */
struct world world_of(struct model *model, const int *placement);
/* Three services of one replica, on hosts of 100 that take three of them each, all affine. */
struct model *three_on_three(void);
/* All of them to h1. */
struct world three_to_h1(void);
/* Two hosts that are full with one replica each, to be swapped; a third with room, or without. */
struct world swap(bool free_host);
void world_free(struct world *w);

/* No change was made twice, none that was not stored before. */
void check_once(const struct world *w);
/* The moves of three_to_h1() were made. */
void check_done(const struct world *w);

#define CHECK_STATE(w, seq, state) assert_string_equal(scripted_state((w).s, seq), state)
#define CHECK_REASON(w, seq, text) assert_string_equal(scripted_outcome((w).s, seq)->reason, text)

#endif
