/* engine.h - the adaptation engine (paper §5.7): when a cycle starts, what it asks of which stage,
 * and how it ends. A pure state machine after flux's job manager: engine_update() changes state
 * and nothing else, engine_next_action() says what the world still lacks and changes nothing; it
 * names the same action until the event that reports it done has come in. Time is an argument.
 *
 * Rules (design.md 3, 4):
 *  - Each app has a timer, set when a cycle ends or is proposed (a later cycle supersedes a
 *    proposal that nobody asked for, unless its own plan has the same moves); one cycle at a time holds the token, due apps queue. settling
 *    and verifying do not hold it. Whoever has moves in flight (executing, undoing) is served first.
 *  - A request goes out only when the step before it is committed, its stage is up and idle. Every
 *    sending has a new attempt number, never used again in that cycle; only the answer to the
 *    attempt awaited counts. Three failures fail the cycle.
 *  - A request's deadline is extended by progress whose counter grew, up to ten in all (policy.h);
 *    then its stage is killed, which is one failure.
 *  - Between cycles an app is looked at (drift.h), one at a time, when nothing holds the token and the
 *    cycle whose snapshot its placement was planned on is known; a deployment makes that unknown. A
 *    look is a collect and a comparison; it costs no cycle, and one that fails is left alone.
 *  - When the store fails, every unsaved step is taken back: a cycle that has moved nothing fails,
 *    one that has moves in flight asks its stage again once the store works. */
#ifndef REMAP_MANAGER_ENGINE_H
#define REMAP_MANAGER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/config.h"
#include "model/manager/cycle.h"
#include "model/manager/drift.h"
#include "model/manager/policy.h"
#include "model/wire/envelope.h"

#define ENGINE_MAX_FAILURES 3      /* per cycle: design.md 3 */
#define ENGINE_RETRY_MS 2000       /* after a failure answer; doubled each time: 2, 4 s */
#define ENGINE_STORE_RETRY_MS 5000 /* a full disk is looked at again this often */
#define ENGINE_LENT (-1)           /* a stage works for the manager itself, not for a cycle */
#define ENGINE_REASON_SIZE 500     /* as struct err: most reasons are one */

/* What an app's configuration means to the engine; times already divided by the speed of an
 * embedded cluster. */
struct engine_app_config {
    enum app_mode mode;
    int64_t interval_ms, interval_min_ms, interval_max_ms;
    int64_t settle_ms;
    struct drift_config drift;
};

struct engine_app {
    char *name;
    struct engine_app_config config;
    bool gone; /* no longer configured */
    bool paused;
    int64_t given_interval_ms; /* from a deploy event, clamped; -1: the configured one */
    int64_t due_ms;            /* the timer; -1: off */
    bool waiting;              /* in the queue for the token, with: */
    char trigger[16];
    bool dry_run;
    int64_t base; /* apply: the cycle whose plan is wanted; -1 */
    int64_t since_ms;
    bool dirty; /* pause, interval, timer or drift to be saved */
    int64_t reference;      /* the cycle whose snapshot the present placement was planned on; 0 */
    int64_t look_ms;        /* the next look; -1: none */
    struct drift drift;
    enum drift_state said;  /* the state of drift that is in the store */
};

/* The look that is under way. */
struct engine_look {
    int app; /* -1: none */
    int step; /* 0 collects, 1 compares */
    bool sent;
    int64_t attempt; /* the last one used, of all looks */
    int64_t since_ms;
};

/* Why an executing cycle finishes its current move and discards the rest. */
enum engine_stop {
    STOP_NO,
    STOP_PAUSE,
    STOP_DEPLOY, /* what was moved is kept, not verified: the application is another one now */
    STOP_STORE   /* what was intended is cleared up, then the cycle fails */
};

struct engine_cycle {
    int64_t id;
    int app; /* index */
    bool dry_run;
    bool by_drift;                 /* what started it */
    int64_t base;                  /* the cycle whose plan this applies; -1 */
    enum cycle_state state, saved; /* now, and in the store */
    bool dirty;                    /* differs from the store */
    char reason[ENGINE_REASON_SIZE];
    int step;        /* verifying: 0 collects, 1 analyzes */
    bool applying;   /* proposed: somebody asked for it */
    int64_t applied; /* moves made so far */
    int64_t attempt; /* the last one used */
    int failures;
    bool sent;        /* a request is out, numbered `attempt` */
    int64_t retry_ms; /* not before */
    int64_t settle_until_ms;
    enum engine_stop stop;
    bool clearing; /* the request that is out knows of the stop: only what was intended */
    bool outdated; /* by a deployment: its snapshot is of another application */
};

struct engine_stage {
    bool up;
    int64_t cycle, attempt; /* the request it works on; cycle 0: idle, ENGINE_LENT: of no cycle */
    struct deadline deadline;
    bool kill; /* hangs: to be killed */
    bool stop_sent;
};

struct engine {
    int64_t now_ms;
    bool stopping;
    bool store_broken;
    int64_t store_retry_ms;
    int64_t token; /* cycle that holds it; 0 none */
    int creating;  /* app whose cycle is being created with the token; -1 none */
    struct engine_app *apps;
    size_t n_apps;
    struct engine_cycle *cycles; /* those that have not ended or whose end is not saved */
    size_t n_cycles;
    struct engine_stage stages[PARTY_N];
    struct engine_look look;
};

enum engine_event_type {
    EV_TICK,         /* time has passed */
    EV_APP,          /* app, config; value = stored next due (-1: none), flag = stored pause,
                        interval_ms = stored interval (-1), cycle = reference (0) */
    EV_APP_GONE,     /* app */
    EV_RESTORE,      /* app, cycle, state, attempt, value = settle deadline, dry_run, reason:
                        a cycle that had not ended when remap did */
    EV_TRIGGER,      /* app, trigger, dry_run */
    EV_CREATED,      /* cycle: the answer to ACTION_CREATE */
    EV_DEPLOY,       /* app, interval_ms (-1: none given), reason */
    EV_PAUSE,        /* app */
    EV_RESUME,       /* app */
    EV_APPLY,        /* app, cycle; a proposed cycle goes on, of an ended one the plan is applied */
    EV_UNDO,         /* app, cycle; state, attempt, value = applied of an ended one */
    EV_STAGE_UP,     /* stage: its hello */
    EV_STAGE_DOWN,   /* stage: its death */
    EV_LENT,         /* stage (idle), attempt, value = allowance: asked by the manager itself */
    EV_LOOKING,      /* stage, attempt, value = allowance: the answer to ACTION_LOOK */
    EV_SENT,         /* cycle, attempt, value = allowance in ms */
    EV_KILLED,       /* stage: signal sent, its death will follow */
    EV_STOP_SENT,    /* stage */
    EV_PROGRESS,     /* stage, cycle, attempt, value = work counter */
    EV_RESULT,       /* stage, cycle, attempt, verdict, reason, value = moves applied,
                        flag = moves intended without an outcome; of a look: seen */
    EV_FAILURE,      /* stage, cycle, attempt, reason, flag = worth asking again */
    EV_SAVED,        /* cycle */
    EV_APP_SAVED,    /* app */
    EV_STORE_FAILED, /* reason */
    EV_SHUTDOWN      /* finish the current move */
};

/* What the manager read out of a result. */
enum verdict {
    VERDICT_OK,
    VERDICT_NOTHING, /* plan: no moves worth making; verification: cannot be judged */
    VERDICT_SAME,    /* plan: the moves that another cycle proposes already */
    VERDICT_DRY,     /* plan: moves, but not now (coverage, window): a dry run */
    VERDICT_BAD,     /* execute, undo: a move failed; base of an apply: does not hold */
    VERDICT_STOPPED, /* execute, undo: wound up because it was asked to */
    VERDICT_WORSE    /* verification: to be undone */
};

struct engine_event {
    enum engine_event_type type;
    int64_t now_ms; /* monotonic */
    const char *app;
    int64_t cycle, attempt;
    enum party stage;
    enum verdict verdict;
    enum cycle_state state;
    int64_t value, interval_ms;
    bool dry_run, flag;
    const char *trigger, *reason; /* borrowed for the call */
    const struct engine_app_config *config;
    const struct drift_seen *seen;
};

enum engine_action_type {
    ACTION_SAVE,     /* cycle → EV_SAVED */
    ACTION_SAVE_APP, /* app → EV_APP_SAVED */
    ACTION_KILL,     /* stage → EV_KILLED */
    ACTION_STOP,     /* stage → EV_STOP_SENT */
    ACTION_CREATE,   /* app → EV_CREATED */
    ACTION_SEND,     /* cycle, stage, request, attempt → EV_SENT */
    ACTION_LOOK      /* app, stage, request, attempt → EV_LOOKING */
};

struct engine_action {
    enum engine_action_type type;
    const struct engine_cycle *cycle; /* borrowed until the next update */
    int app;
    enum party stage;
    enum message_type request;
    int64_t attempt;
};

void engine_init(struct engine *engine, int64_t now_ms);
void engine_wipe(struct engine *engine);

void engine_update(struct engine *engine, const struct engine_event *event);
/* The first thing to be done now; false when there is none. */
bool engine_next_action(const struct engine *engine, struct engine_action *out);
/* When the next EV_TICK is needed; INT64_MAX: never. */
int64_t engine_next_ms(const struct engine *engine);

/* Why a command event (trigger, apply, undo, pause, resume) would be refused; NULL: it would not.
 * Static text. engine_update() ignores a refused event. */
const char *engine_refuses(const struct engine *engine, const struct engine_event *event);

const struct engine_cycle *engine_cycle(const struct engine *engine, int64_t id); /* or NULL */
int engine_app(const struct engine *engine, const char *name); /* index, -1 none */
/* What a cycle in its present state wants from which stage; false: nothing. */
bool engine_request(const struct engine_cycle *cycle, enum party *stage,
                    enum message_type *request);
/* Is this the attempt that the cycle waits for? Intents and outcomes of any other are not heard. */
bool engine_awaits(const struct engine *engine, enum party stage, int64_t cycle, int64_t attempt);
/* Is this the answer that the look under way waits for? */
bool engine_looks(const struct engine *engine, enum party stage, int64_t attempt);
/* No request is out at the executor: `remap` may leave. */
bool engine_quiet(const struct engine *engine);
/* Nothing waits, runs or settles (proposals do not count): `remap once` is through. */
bool engine_idle(const struct engine *engine);

#endif
