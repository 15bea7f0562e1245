/* anneal.h - simulated annealing of a placement with soft capacities and soft rules (planning.md 4
 * and 5): moves and swaps of single instances, steered to the hosts of partners, while a penalty on
 * what is over grows a few hundred-fold until nothing is. Counts iterations, never time; the same
 * seed and counts give the same placement. */
#ifndef REMAP_PLANNER_ANNEAL_H
#define REMAP_PLANNER_ANNEAL_H

#include "planner/rng.h"
#include "planner/share.h"
#include "planner/space.h"

struct value;

/* Work shared by all parts of one search: iterations done, and when to end. */
struct effort {
    int64_t done;
    int64_t limit;       /* iterations to repeat; -1: none */
    int64_t deadline_ms; /* of clock_mono_ms */
    bool cut;            /* ended by clock, limit or request */
    planner_progress progress;
    void *progress_ctx;
    int64_t reported_ms;
    /* Told of every better placement as soon as it is there; may be NULL. */
    void (*found)(void *ctx, const int *at, const struct value *value);
    void *found_ctx;
    _Atomic int64_t *count; /* follows `done`, for who may end this process; may be NULL */
    /* What comes after takes `after_ms` of CPU, and on a busy machine as much longer as the search did
     * since it began: it ends so much sooner. As effort_begins(). */
    int64_t after_ms, began_ms, began_cpu_us, looked_ms;
    struct share *share;    /* where this is a part of a search: its end (share.h); may be NULL */
};

/* Now; in the process that spends it. */
void effort_begins(struct effort *effort, int64_t after_ms);
/* How much longer something of `after_ms` takes on a machine that gave `used_us` in `wall_ms`. */
int64_t effort_longer_ms(int64_t after_ms, int64_t wall_ms, int64_t used_us);
/* Counts n more iterations; true when the search should end. Looks at the clock. */
bool effort_spend(struct effort *effort, int64_t n);
/* Tells of a better placement (host by instance). */
void effort_found(struct effort *effort, const int *at, const struct value *value);

struct anneal {
    double hot, cold;     /* temperatures, in mean degrees */
    double price_host;    /* per used host, in mean degrees */
    double price_move;    /* per instance away from its start, in mean degrees */
    int max_moves;        /* softly limited as well; -1: none */
    int64_t iterations;
};

/* What counts as better: score (or hosts) first, then hosts, then moves. */
struct value {
    enum objective objective;
    double score, paid; /* paid: what the moves cost, taken from the score in comparisons */
    int hosts, moves;
    int64_t excess; /* by how much rules that were broken before still are: less comes first */
    bool valid;
    bool none; /* proven: no placement is valid */
};
struct value value_of(const struct place *place, const struct plan_options *options);
bool value_better(const struct value *a, const struct value *b);

/* Anneals `place`; whenever it holds and is better than *best, it is kept there (`best_at` is the
 * instance's host by index). */
void anneal_run(struct place *place, const struct anneal *how, const struct plan_options *options,
                struct rng *rng, struct effort *effort, int *best_at, struct value *best);

/* Takes every single move or swap that makes the placement better, until none does. The placement
 * must hold, and does afterwards. */
void descend(struct place *place, const struct plan_options *options, struct effort *effort);

#endif
