/* cycle.h - the states of one adaptation cycle and the graph between them (design.md 4). */
#ifndef REMAP_MANAGER_CYCLE_H
#define REMAP_MANAGER_CYCLE_H

#include <stdbool.h>

enum cycle_state {
    CYCLE_COLLECTING, /* the monitor builds the model */
    CYCLE_ANALYZING,  /* the analyzer computes affinities (Eq. 1) */
    CYCLE_PLANNING,   /* the planner computes moves */
    CYCLE_PROPOSED,   /* a plan waits for `remap apply`; holds nothing */
    CYCLE_EXECUTING,  /* the executor makes the moves */
    CYCLE_SETTLING,   /* the application gets used to its new places */
    CYCLE_VERIFYING,  /* predicted against realised */
    CYCLE_UNDOING,    /* the moves are put back */
    CYCLE_DONE,
    CYCLE_UNDONE,
    CYCLE_FAILED,
    CYCLE_SUPERSEDED, /* overtaken by a deployment or a newer cycle before it moved anything */
    CYCLE_N_STATES
};

/* The names in the store (v_cycles.state). */
const char *cycle_state_name(enum cycle_state state);
int cycle_state_from_name(const char *name); /* -1 when unknown */

bool cycle_ended(enum cycle_state state);
/* Is there an edge from `from` to `to`? An ended cycle has one edge at most: to undoing, when
 * somebody asks for it. */
bool cycle_may(enum cycle_state from, enum cycle_state to);

#endif
