/* cycle.c - names and graph of the cycle's states (design.md 4). */
#include "model/manager/cycle.h"

#include <stddef.h>
#include <string.h>

#include "model/base/mem.h"

static const char *const names[CYCLE_N_STATES] = {
    [CYCLE_COLLECTING] = "collecting",
    [CYCLE_ANALYZING] = "analyzing",
    [CYCLE_PLANNING] = "planning",
    [CYCLE_PROPOSED] = "proposed",
    [CYCLE_EXECUTING] = "executing",
    [CYCLE_SETTLING] = "settling",
    [CYCLE_VERIFYING] = "verifying",
    [CYCLE_UNDOING] = "undoing",
    [CYCLE_DONE] = "done",
    [CYCLE_UNDONE] = "undone",
    [CYCLE_FAILED] = "failed",
    [CYCLE_SUPERSEDED] = "superseded",
};

#define TO(state) (1u << CYCLE_##state)

/* Row: from; bits: to. The whole behaviour of the engine stays inside this table; the property
 * test walks it. */
static const unsigned graph[CYCLE_N_STATES] = {
    /* executing at once: the plan of an older cycle is applied to what was just collected */
    [CYCLE_COLLECTING] = TO(ANALYZING) | TO(EXECUTING) | TO(FAILED) | TO(SUPERSEDED),
    [CYCLE_ANALYZING] = TO(PLANNING) | TO(FAILED) | TO(SUPERSEDED),
    [CYCLE_PLANNING] = TO(PROPOSED) | TO(EXECUTING) | TO(DONE) | TO(FAILED) | TO(SUPERSEDED),
    [CYCLE_PROPOSED] = TO(EXECUTING) | TO(SUPERSEDED),
    [CYCLE_EXECUTING] = TO(SETTLING) | TO(DONE) | TO(FAILED) | TO(SUPERSEDED),
    [CYCLE_SETTLING] = TO(VERIFYING) | TO(UNDOING) | TO(DONE),
    [CYCLE_VERIFYING] = TO(DONE) | TO(UNDOING) | TO(FAILED),
    [CYCLE_UNDOING] = TO(UNDONE) | TO(FAILED),
    [CYCLE_DONE] = TO(UNDOING),
    [CYCLE_UNDONE] = 0,
    [CYCLE_FAILED] = TO(UNDOING),
    [CYCLE_SUPERSEDED] = 0,
};

const char *cycle_state_name(enum cycle_state state)
{
    return names[state];
}

int cycle_state_from_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

bool cycle_ended(enum cycle_state state)
{
    return state == CYCLE_DONE || state == CYCLE_UNDONE || state == CYCLE_FAILED ||
           state == CYCLE_SUPERSEDED;
}

bool cycle_may(enum cycle_state from, enum cycle_state to)
{
    return graph[from] & (1u << to);
}
