/* manager.h - the Model Manager inside (paper §5.7): the pure engine, tied to the loop, the bus,
 * the supervisor and the store. Shared by manager*.c and daemon.c only.
 *
 *   manager.c          events in, actions out, one transaction per step
 *   manager_request.c  what a stage is sent: stored bytes, spliced
 *   manager_result.c   what a stage answers: decoded strictly, checked, committed
 *   manager_move.c     moves while they are made: intents, outcomes; events from outside
 *   manager_plan.c     plans between planner and executor: calm, bases, subsets
 *   manager_command.c  what the command line asks
 *   manager_release.c  pins taken off again
 *   manager_pause.c    who has paused moves in the cluster
 *   manager_hooks.c    deployments reported to the monitor
 *   manager_drift.c    looks between cycles
 *   manager_start.c    configuration, recovery, reload */
#ifndef REMAP_MANAGER_MANAGER_H
#define REMAP_MANAGER_MANAGER_H

#include "model/affinity.h"
#include "model/base/buf.h"
#include "model/config.h"
#include "model/manager/calm.h"
#include "model/manager/daemon.h"
#include "model/manager/engine.h"
#include "model/manager/http.h"
#include "model/manager/metrics.h"
#include "model/manager/supervisor.h"
#include "model/store/store.h"
#include "model/wire/bus.h"
#include "model/wire/loop.h"

/* An app as configured, with its times divided by the speed of its embedded cluster. */
struct manager_app {
    struct config_app times; /* a shallow copy: strings belong to the configuration */
    int64_t soak_until_ms;   /* wall; -1 */
};

/* The documents of one cycle: as bytes for requests, decoded for checks. Filled when they arrive,
 * or from the store. */
struct docs {
    int64_t cycle; /* 0: empty */
    struct buf model_text, analysis_text, options_text, plan_text;
    struct model *model;
    struct analysis *analysis;
    struct plan *plan;
};
void docs_wipe(struct docs *docs);

/* The look between cycles that is under way, or was the last. */
struct look {
    struct buf model_text;   /* collected, until it is compared */
    int64_t reference_cycle; /* 0: `reference` holds nothing */
    struct buf reference;    /* its service rows, for the analyzer */
    double reference_ms;     /* its mean response time; < 0: unknown */
    double response_ms;      /* and the present one */
    int64_t at_ms;           /* wall */
    char pairs[350];         /* what has changed most, in words */
    bool known;              /* some app is or was looked at: there are rows to keep right */
};
void look_wipe(struct look *look);

/* When a cycle's phases began, for metrics. */
struct phase {
    int64_t cycle, since_ms, started_ms;
};

/* `remap release` under way: first every app is counted, then the asker is told, then it is done.
 */
struct release {
    char *peer;    /* who asked and waits for the count; NULL: told */
    char *service; /* NULL: all */
    char **apps;   /* those meant */
    size_t n_apps, next;
    bool counting, count_only;
    int64_t restarts, attempt;
};

/* Who has paused an orchestrator in its cluster. */
struct pause {
    char *source, *by;
};

struct manager {
    const struct daemon_options *options;
    const struct config *config; /* options->config, or `reread` */
    struct config *reread;       /* by SIGHUP; owned */
    bool reload_waits;           /* a removed app has moves in flight */
    struct manager_app *apps;    /* in the order of config->apps */

    struct loop *loop;
    struct bus *bus;
    struct supervisor *supervisor;
    struct store *store;
    struct metrics *metrics;
    struct http *http;
    int lock_fd;

    struct engine engine;
    bool working;           /* inside manager_work() */
    struct docs docs;       /* of the cycle served last */
    struct buf verify_text; /* the model collected for verification … */
    int64_t verify_cycle;   /* … of this cycle */
    struct look look;
    struct phase *phases;
    size_t n_phases;

    struct pause *pauses; /* as the executor sees them now */
    size_t n_pauses;
    struct release *release; /* NULL: none */
    int64_t release_attempts;
    int64_t tick_timer, leave_timer;
    bool hello[PARTY_N]; /* has been up once */
    bool ready;
    bool store_trouble; /* said so */
    bool leaving;
    int exit_code; /* once */
    struct err fatal;
};

/* --- manager.c --- */
int64_t manager_wall_ms(int64_t mono_ms); /* -1 stays -1 */
int64_t manager_mono_ms(int64_t wall_ms);
void manager_tell(struct manager *m, struct engine_event ev); /* the engine, and nothing more */
/* Tells the engine, then does what it asks for. */
void manager_event(struct manager *m, struct engine_event ev);
void manager_work(struct manager *m);
/* Writes the answer's rows, the engine's step and the cycle's row in one transaction; when that
 * fails, the engine takes the step back. rows may be NULL, or complete the event by what it wrote.
 */
typedef int manager_rows_fn(struct manager *m, struct engine_event *ev, void *ctx, struct err *err);
void manager_answer(struct manager *m, struct engine_event ev, manager_rows_fn *rows, void *ctx);
/* Every step of the engine that is not in the store yet, inside an open transaction; and, after its
 * commit, what follows from it. For what must be kept together with its cause. */
int manager_save_steps(struct manager *m, struct err *err);
void manager_steps_saved(struct manager *m);
/* Says once that the store cannot be written, and tells the engine. */
void manager_store_failed(struct manager *m, const struct err *err);
void manager_note(struct manager *m, const char *app, const char *kind, int64_t cycle,
                  const char *text); /* an events row of its own; trouble is logged */
void manager_leave(struct manager *m, int64_t grace_ms);
const struct config_app *manager_app_times(const struct manager *m, const char *app); /* or NULL */
extern const struct bus_events manager_bus_events;
extern const struct supervisor_events manager_supervisor_events;

/* --- manager_request.c --- */
/* The body of the request that the cycle wants; *allowance_ms is its deadline. */
int request_build(struct manager *m, const struct engine_cycle *cycle, struct buf *body,
                  int64_t *allowance_ms, struct err *err);
/* Loads what of the cycle's documents is there and not yet in m->docs. */
/* A collect of an app's traffic between cycles: no usage is asked for. */
void request_put_look(struct manager *m, const struct config_app *app, struct buf *out);
/* The beginning {"v":1,"app":… of a request, and a source object. */
void request_put_app(struct buf *out, const struct config_app *app);
void request_put_source(struct buf *out, const struct config *config, const char *name);
/* The outcome document of a move's row. */
void request_put_outcome(struct buf *out, const struct move_row *row);
int64_t request_poll_ms(const struct config_app *app);
int docs_load(struct manager *m, int64_t cycle, struct err *err);

/* --- manager_result.c --- */
void result_received(struct manager *m, enum party stage, const struct envelope *env,
                     const char *body, size_t size);
void failure_received(struct manager *m, enum party stage, const struct envelope *env,
                      const char *body, size_t size);
/* The event of an answer; and a result that cannot be used: the cycle fails with this text. */
struct engine_event result_event(enum engine_event_type type, enum party stage,
                                 const struct envelope *env);
void result_bad(struct manager *m, enum party stage, const struct envelope *env, const char *text);

/* --- manager_move.c --- */
void executed_received(struct manager *m, const struct envelope *env, const char *body,
                       size_t size);
void progress_received(struct manager *m, enum party stage, const struct envelope *env,
                       const char *body, size_t size);
void intent_received(struct manager *m, const struct envelope *env, const char *body, size_t size);

/* --- manager_plan.c --- */
/* Appends the plan options document of the app. */
void plan_options(const struct manager *m, const struct config_app *app, struct buf *out);
/* The moves of the cycle's plan that are (still) to be made, or, with `undo`, to be put back. */
int plan_remaining(struct manager *m, const struct engine_cycle *cycle, bool undo,
                   struct plan **out, struct err *err);
/* What of the cycle's moves has been made. */
struct move_count {
    int64_t planned, applied, failed, discarded, undone, undo_failed, open;
};
int moves_count(struct manager *m, int64_t cycle, struct move_count *out, struct err *err);
/* Hosts where another cycle is not verified; NULL: none. Caller frees. */
bool *plan_busy_hosts(struct manager *m, int64_t cycle, const struct model *model);
/* The last move of each move's service to or from its hosts; caller frees. NULL and *err. */
struct calm_last *plan_last_moves(struct manager *m, const struct config_app *app,
                                  const struct model *model, const struct plan *plan,
                                  struct err *err);

/* --- manager_command.c --- */
void command_received(struct manager *m, const char *peer, const char *body, size_t size);

/* --- manager_release.c --- */
/* app, service may be NULL. -1 and *err when it cannot begin; the answer to `peer` follows. */
int release_begin(struct manager *m, const char *peer, const char *app, const char *service,
                  bool count_only, struct err *err);
/* The executor's answer: body, or failure not NULL. */
void release_answered(struct manager *m, const struct envelope *env, const char *body, size_t size,
                      const struct err *failure);
void release_lost(struct manager *m, const char *why); /* the executor died */
void release_free(struct release *release);

/* --- manager_pause.c --- */
void kept_received(struct manager *m, const char *body, size_t size);
/* Who has paused the app's orchestrator in its cluster, "configmap remap/remap-pause"; NULL: nobody.
 * Borrowed for this turn of the loop. */
const char *manager_paused_by(const struct manager *m, const struct config_app *app);
void pauses_forget(struct manager *m);

/* --- manager_hooks.c --- */
/* Tells the monitor what to listen to, if it is there and this is `run`. */
void manager_configure(struct manager *m, enum party stage);
void counters_received(struct manager *m, const char *body, size_t size);
void event_received(struct manager *m, enum party from, const struct envelope *env, const char *body,
                    size_t size);

/* --- manager_drift.c --- */
void look_send(struct manager *m, const struct engine_action *action);
/* The stage's answer to a request of cycle 0: body, or failure not NULL. */
void look_answered(struct manager *m, enum party stage, const struct envelope *env,
                   const char *body, size_t size, const struct err *failure);
/* With the app's row, in the same transaction: the latest look, an event when it is news. */
int look_save(struct manager *m, const struct engine_app *app, struct err *err);
/* An event when the settings are others than those in the store. */
void look_settings(struct manager *m, const struct config_app *app);

/* --- manager_start.c --- */
/* A time of the app's cluster, in ours; -1 stays -1. */
int64_t app_divided_ms(const struct config *config, size_t app, int64_t ms);
int manager_apps_set(struct manager *m, const struct config *config, struct err *err);
int manager_restore(struct manager *m, struct err *err);
void manager_reload(struct manager *m);

#endif
