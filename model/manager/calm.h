/* calm.h - which of a plan's moves are made now (design.md 7 "Calm"; interfaces.md 1.9). Planners
 * find the best placement and know nothing of restarts, windows or other cycles; this is where a
 * plan meets them. Pure: what store, clock and other cycles know comes in as facts.
 *
 * A move is left out, with the reason, when its service is fixed or in rollout, when it or its
 * hosts were touched within the cool-down, when a host is under verification by another cycle,
 * when the limits of moves or restarts are reached, when what stays is worth too little per
 * restarted replica, empties no host and mends no rule that is broken now (plan_worths()), or when it does not fit without a move that
 * was left out. One in flight per
 * service needs no rule: the executor makes one move at a time, and a host or service of a cycle
 * that is not yet verified is busy. */
#ifndef REMAP_MANAGER_CALM_H
#define REMAP_MANAGER_CALM_H

#include <stdbool.h>
#include <stdint.h>
#include "model/config.h"
#include "model/plan.h"

/* After a move that landed elsewhere the cool-down doubles, up to 2^5 = 32 times; after two that
 * others took away again it is a day (interfaces.md 1.9 rule 6). */
#define CALM_MAX_DOUBLINGS 5
#define CALM_DISPLACED_MS (INT64_C(24) * 3600 * 1000)

struct calm_last {
    int64_t at_ms; /* wall time when the service was last moved to or from a host of the move; -1 */
    int missed;    /* so often since then it did not get there */
    int displaced; /* so often since then others took it away again */
};

struct calm_facts {
    int64_t wall_ms;
    int64_t soak_until_ms;       /* wall; quiet after a release; -1: no */
    bool window_open;            /* config_app_open() */
    const char *paused_by;       /* who has paused moves in the cluster; NULL: nobody */
    const struct calm_last *last; /* per move of the plan; NULL: never */
    const bool *busy_hosts;      /* per host: another cycle is not verified there; NULL: none */
};

enum calm_answer {
    CALM_GO,      /* `kept` is to be made */
    CALM_NOTHING, /* nothing worth making */
    CALM_DRY      /* not now: a dry run */
};

struct calm {
    enum calm_answer answer;
    char why[300];
    struct plan *kept; /* the moves that stay, under their old seqs, measured anew; NULL without */
    char **left_out;   /* per move of the plan: why not, or NULL */
    size_t n_left_out; /* = plan->n_moves */
};

/* How long a service rests after such a move. */
int64_t calm_rest_ms(const struct config_app *app, const struct calm_last *last);

struct calm *calm_new(const struct config_app *app, const struct calm_facts *facts,
                      const struct model *model, const struct affinity *rows, size_t n_rows,
                      const struct plan *plan);
void calm_free(struct calm *calm);
AUTO_DEFINE(calm)

#endif
