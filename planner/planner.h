/* planner.h - a planner turns a model and its affinities into a plan (the P of MAPE-K, paper §5.5).
 *
 * Pure: no I/O but progress reports, same input and options, same plan; where the clock cut a search
 * the plan says so (`cut`) and carries the count of iterations that repeats it. Calm (minimum gain,
 * cool-down, windows) is the engine's, not the planner's. */
#ifndef REMAP_PLANNER_PLANNER_H
#define REMAP_PLANNER_PLANNER_H

#include "model/plan.h"

/* Tells how much work is done (a counter that grows) and in words what goes on; -1 when the search
 * should end at once with what it has. */
typedef int (*planner_progress)(void *ctx, int64_t done, const char *text);

struct plan_options {
    const char *planner;  /* name as asked for */
    enum objective objective;
    enum granularity granularity;
    int64_t time_limit_ms; /* > 0 */
    int64_t start_ms;      /* clock_mono_ms when the request came: the limit counts from there; 0: now */
    int64_t max_moves;     /* -1: no limit; counts replicas, placements of unplaced ones too */
    double min_gain;       /* of the score, that a restart of mean start-up time must be worth */
    bool move_stateful;
    bool frontier;
    bool leave_broken; /* where rules contradict, auto, hubs and hba keep those that they can and name one
                        * that stays broken; else that is infeasible */
    uint64_t seed;
    int64_t iterations; /* repeats a search cut under the same time limit (`iterations` of its plan; each
                         * planner counts its own way); -1: until that limit */
    planner_progress progress; /* may be NULL */
    void *progress_ctx;
};

extern const struct plan_options plan_options_default;

int64_t plan_start_ms(const struct plan_options *options);
/* When a search should end so that `percent` of the limit, or what comes after (moves in order, reasons,
 * bounds: some 10 ms for 1000 instances) where that is more, are left. */
int64_t plan_deadline_ms(const struct plan_options *options, size_t instances, int percent);
/* CPU time of what comes after a search that was cut; on a busy machine it takes longer than that. */
int64_t plan_after_ms(const struct plan_options *options, const struct model *model);

/* What a planner can use; anything else asked for is ERR_USAGE. */
enum planner_takes {
    TAKES_HOSTS_OBJECTIVE = 1,
    TAKES_SERVICES = 2, /* granularity service */
    TAKES_MAX_MOVES = 4,
    TAKES_MOVE_STATEFUL = 8,
    TAKES_FRONTIER = 16,
    TAKES_MIN_GAIN = 32,
};

struct planner {
    const char *name, *summary;
    unsigned takes; /* of enum planner_takes */
    /* Fills *out (new, empty but for `requested`, `objective`, `granularity`). "No feasible
     * placement" and "out of time" are plans with that status and no moves, not errors. */
    int (*plan)(const struct model *model, const struct analysis *analysis,
                const struct plan_options *options, struct plan *out, struct err *err);
};

/* NULL-terminated, in the order of --help. */
extern const struct planner *const planners[];
const struct planner *planner_find(const char *name);

/* Checks the options, plans, and adds what all plans share: names, coverage, time, the bounds where
 * the planner has none of its own. `analysis` NULL: the degrees given in the model. Caller owns
 * *out. ERR_USAGE names the option. */
int planner_run(const struct model *model, const struct analysis *analysis,
                const struct plan_options *options, struct plan **out, struct err *err);

#endif
