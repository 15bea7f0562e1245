/* scripted_cluster.h - a cluster, its orchestrator, the manager's store and the stage around the
 * executor, all in one process and on a clock of its own: for faults and deaths at chosen points
 * that the embedded cluster cannot show, and for an orchestrator without marks. The test links this
 * instead of adapters/registry.c, executor/keep.c and model/wire/stage.c, with --wrap=clock_mono_ms. */
#ifndef REMAP_TESTS_SCRIPTED_CLUSTER_H
#define REMAP_TESTS_SCRIPTED_CLUSTER_H

#include "adapters/adapter.h"
#include "executor/record.h"
#include "model/plan.h"
#include "tests/support/rng.h"

struct scripted_replica {
    char name[64];
    int service, host; /* of the model; host -1 pending */
    int64_t ready_ms;  /* INT64_MAX: never */
    int replaces;      /* leaves when this one is ready; -1 none */
    bool ended;
    int64_t seq; /* the move that made it; 0 none */
};

/* Faults of the next place() or of many; chances are 0 … 1. */
struct scripted_faults {
    double lost_answer; /* it happens, the answer is lost */
    double unreachable; /* nothing happens, no answer */
    double forget;      /* success, nothing happens */
    double refuse;      /* understood, refused */
    double refuse_undo; /* the same of undo() */
    double stuck;       /* what is started never gets ready */
};

/* What became of a move that was begun with others, until it is asked for. */
struct scripted_sent {
    int64_t seq;
    int rc;
    char *saved;
    struct err err;
};

struct scripted {
    const struct model *model; /* hosts, services and the instances at first; borrowed */
    struct plan *plan;
    struct analysis *analysis;
    bool marks, start_first, move_stateful;
    enum granularity granularity;
    int64_t start_ms; /* a replica's way to ready */
    int64_t leaving_ms; /* pods of others fill the first host until then, and leave; 0: none */
    int64_t ready_timeout_ms;
    int64_t poll_ms; /* 1 */
    int64_t max_moves; /* -1 */
    int64_t max_parallel; /* 1 */
    double min_gain, min_plan_gain; /* < 0: not said, the default */
    int most_at_once;     /* services with a move under way at the same time, at most */
    bool twice_at_once;   /* a service had two under way */
    bool undo;
    int later;            /* so many calls of place() do nothing and say "ask again" */
    int64_t effect_ms;    /* when the newest effect was made */
    size_t foretold;      /* placements told ahead, in all … */
    bool foretelling;     /* … and those of now are not over */
    struct scripted_sent *sent;
    size_t n_sent;
    double together;      /* the chance that one is begun with others, 0.7 */
    size_t sent_together; /* moves that were begun with others, in all */
    struct rng rng, wall;
    bool wall_jumps;
    struct scripted_faults faults;

    const struct cluster_adapter *cluster; /* NULL: what is below is the cluster */
    const struct orchestrator *orchestrator;
    const char *options; /* of both sources, a JSON array; NULL: none */
    int64_t cycle;       /* 9 */

    int64_t now_ms;
    struct scripted_replica *replicas;
    size_t n_replicas;
    int64_t last_name;
    int *effects; /* how often place() of a seq has had its effect, by seq */
    size_t n_effects;
    int unintended; /* effects without a committed intent before */

    /* What the manager has committed. */
    struct intent *intents;
    size_t n_intents;
    struct outcomes outcomes; /* the newest of each seq */

    int64_t calls_left; /* until the executor dies; -1: it lives */
    bool dead, stop, leave;
    bool locked_out;    /* somebody else holds the lock: no attempt begins */
    int64_t lock_gone;  /* so many asks to write are refused, as without the lock */
    const char *paused; /* why, NULL: not */
    /* Called at every look at the cluster, to make things happen. */
    void (*on_inspect)(struct scripted *world);
    void (*on_look)(struct scripted *world); /* and at every question what came of a move */
    int inspections;
    char stopped[1300]; /* of the last result; "" none */
};

/* A cluster as the model has it; nothing goes wrong, ready after 3 ms. Frees with scripted_free. */
struct scripted *scripted_new(const struct model *model);
void scripted_free(struct scripted *world);

/* The plan that leads to `placement` (plan_fill), with the model's affinities as analysis. */
void scripted_plan(struct scripted *world, const int *placement);

/* One attempt: 0 done, -1 failed (the error's text is kept in `stopped`) or died. */
int scripted_attempt(struct scripted *world);
/* Attempts until one is done, at most n. */
int scripted_run(struct scripted *world, int n);

/* The same around real adapters, in real time: their calls are the test's to count, by
 * scripted_alive() before and after each, where the executor dies when calls_left is over. */
bool scripted_alive(void);

const struct outcome *scripted_outcome(const struct scripted *world, int64_t seq); /* or NULL */
/* "applied", …; "intended" or "planned" while there is none. */
const char *scripted_state(const struct scripted *world, int64_t seq);
/* Living replicas of a service on a host (ready or not). */
int scripted_count(const struct scripted *world, const char *service, const char *host);
/* A new replica, ready at once: a scale out. */
void scripted_scale_out(struct scripted *world, const char *service, const char *host);
void scripted_end(struct scripted *world, const char *service, const char *host);

#endif
