/* engine.c - the state of the engine, what the store and time do to it, and which event goes where
 * (paper §5.7; design.md 3, 4). What is to be done about it: engine_action.c. */
#include "model/manager/engine_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

void engine_init(struct engine *engine, int64_t now_ms)
{
    memset(engine, 0, sizeof *engine);
    engine->now_ms = now_ms;
    engine->creating = -1;
    engine->look.app = -1;
}

void engine_wipe(struct engine *engine)
{
    for (size_t i = 0; i < engine->n_apps; i++)
        free(engine->apps[i].name);
    free(engine->apps);
    free(engine->cycles);
    memset(engine, 0, sizeof *engine);
}

int engine_app(const struct engine *engine, const char *name)
{
    for (size_t i = 0; name && i < engine->n_apps; i++)
        if (strcmp(engine->apps[i].name, name) == 0)
            return (int)i;
    return -1;
}

struct engine_cycle *engine_find(struct engine *engine, int64_t id)
{
    for (size_t i = 0; i < engine->n_cycles; i++)
        if (engine->cycles[i].id == id)
            return &engine->cycles[i];
    return NULL;
}

const struct engine_cycle *engine_cycle(const struct engine *engine, int64_t id)
{
    return engine_find((struct engine *)engine, id);
}

bool engine_before_executing(enum cycle_state state)
{
    return state == CYCLE_COLLECTING || state == CYCLE_ANALYZING || state == CYCLE_PLANNING;
}

/* States that keep the token once they have it. */
bool engine_holds_token(const struct engine_cycle *c)
{
    return engine_before_executing(c->state) || c->state == CYCLE_EXECUTING ||
           c->state == CYCLE_UNDOING || (c->state == CYCLE_PROPOSED && c->applying);
}

/* A running cycle of the app, proposals apart. */
struct engine_cycle *engine_running(struct engine *engine, int app)
{
    for (size_t i = 0; i < engine->n_cycles; i++) {
        struct engine_cycle *c = &engine->cycles[i];
        if (c->app == app && !cycle_ended(c->state) && (c->state != CYCLE_PROPOSED || c->applying))
            return c;
    }
    return NULL;
}

void engine_set_reason(struct engine_cycle *c, const char *reason)
{
    if (reason)
        snprintf(c->reason, sizeof c->reason, "%s", reason);
}

void engine_rearm(struct engine *engine, int app)
{
    struct engine_app *a = &engine->apps[app];
    int64_t interval = a->given_interval_ms > 0 ? a->given_interval_ms : a->config.interval_ms;
    a->due_ms = a->gone ? -1 : engine->now_ms + interval;
    a->dirty = true;
}

void engine_overtake(struct engine *engine, const struct engine_cycle *by, const char *reason)
{
    for (size_t i = 0; i < engine->n_cycles; i++) {
        struct engine_cycle *c = &engine->cycles[i];
        if (c != by && c->app == by->app && c->state == CYCLE_PROPOSED)
            engine_step(engine, c, CYCLE_SUPERSEDED, reason);
    }
}

/* The only place where a state changes. A request that was out is forgotten; its stage stays busy
 * until it answers. reason NULL keeps the one there is. */
void engine_step(struct engine *engine, struct engine_cycle *c, enum cycle_state to,
                 const char *reason)
{
    assert(cycle_may(c->state, to));
    c->state = to;
    c->dirty = true;
    c->sent = false;
    c->step = 0;
    c->applying = false;
    c->stop = STOP_NO;
    c->retry_ms = 0;
    engine_set_reason(c, reason);
    if (to == CYCLE_SETTLING)
        c->settle_until_ms = engine->now_ms + engine->apps[c->app].config.settle_ms;
    if (engine->token == c->id && !engine_holds_token(c))
        engine->token = 0;
    bool ended = cycle_ended(to) && !cycle_ended(c->saved);
    if (to == CYCLE_PROPOSED || to == CYCLE_EXECUTING)
        engine_overtake(engine, c, "a newer cycle");
    if (ended || to == CYCLE_PROPOSED) { /* a proposal may wait for ever, the timer does not */
        engine_rearm(engine, c->app);
        engine_look_anew(engine, c);
    }
}

/* Finish the move in flight, discard the rest. */
void engine_stop_executing(struct engine_cycle *c, enum engine_stop why, const char *reason)
{
    if (why <= c->stop)
        return;
    c->stop = why;
    engine_set_reason(c, reason);
}

/* --- store --- */

static void on_created(struct engine *engine, const struct engine_event *ev)
{
    if (engine->creating < 0)
        return;
    int app = engine->creating;
    struct engine_app *a = &engine->apps[app];
    struct engine_cycle *c = ARRAY_PUSH(engine->cycles, engine->n_cycles);
    c->id = ev->cycle;
    c->app = app;
    c->dry_run = a->dry_run;
    c->by_drift = strcmp(a->trigger, "drift") == 0;
    c->base = a->base;
    c->state = c->saved = CYCLE_COLLECTING;
    a->waiting = false;
    engine->creating = -1;
    engine->token = c->id;
    engine->store_broken = false;
    if (a->gone) /* between the asking and the answer */
        engine_step(engine, c, CYCLE_SUPERSEDED, "the app is no longer configured");
}

static void drop(struct engine *engine, struct engine_cycle *c)
{
    size_t i = (size_t)(c - engine->cycles);
    engine->n_cycles--;
    memmove(c, c + 1, (engine->n_cycles - i) * sizeof *c);
}

static void on_saved(struct engine *engine, const struct engine_event *ev)
{
    struct engine_cycle *c = engine_find(engine, ev->cycle);
    engine->store_broken = false;
    if (!c)
        return;
    c->saved = c->state;
    c->dirty = false;
    if (cycle_ended(c->state))
        drop(engine, c);
}

/* Takes every unsaved step back, as the store did, then says what becomes of the cycle. */
static void on_store_failed(struct engine *engine, const struct engine_event *ev)
{
    char text[ENGINE_REASON_SIZE];
    snprintf(text, sizeof text, "store: %.450s", ev->reason ? ev->reason : "cannot be written");
    engine->store_broken = true;
    engine->store_retry_ms = engine->now_ms + ENGINE_STORE_RETRY_MS;
    engine->creating = -1;
    for (size_t i = engine->n_cycles; i-- > 0;) {
        struct engine_cycle *c = &engine->cycles[i];
        if (c->saved != c->state) {
            c->state = c->saved;
            c->sent = false;
            c->step = 0;
            if (cycle_ended(c->state)) { /* an undo that could not begin */
                drop(engine, c);
                continue;
            }
        }
        if (engine_before_executing(c->state))
            engine_step(engine, c, CYCLE_FAILED, text);
        else if (c->state == CYCLE_EXECUTING)
            engine_stop_executing(c, STOP_STORE, text);
        else if (c->state == CYCLE_UNDOING && c->sent)
            c->stop = STOP_STORE;
    }
    if (engine->token && (!engine_find(engine, engine->token) ||
                          !engine_holds_token(engine_find(engine, engine->token))))
        engine->token = 0;
}

/* --- time --- */

static void on_shutdown(struct engine *engine, const struct engine_event *ev)
{
    (void)ev;
    engine->stopping = true;
    for (size_t i = 0; i < engine->n_cycles; i++)
        if (engine_before_executing(engine->cycles[i].state))
            engine_step(engine, &engine->cycles[i], CYCLE_FAILED, "interrupted: remap was stopped");
}

static void check_deadlines(struct engine *engine)
{
    for (int p = 0; p < PARTY_N; p++) {
        struct engine_stage *stage = &engine->stages[p];
        if (stage->cycle && stage->up && !deadline_left_ms(&stage->deadline, engine->now_ms)) {
            stage->kill = true;
            stage->up = false; /* until the hello of its next life */
        }
    }
}

static void check_settled(struct engine *engine)
{
    for (size_t i = 0; i < engine->n_cycles; i++) {
        struct engine_cycle *c = &engine->cycles[i];
        if (c->state == CYCLE_SETTLING && engine->now_ms >= c->settle_until_ms &&
            !engine->stopping && !engine->store_broken)
            engine_step(engine, c, CYCLE_VERIFYING, NULL);
    }
}

static void check_timers(struct engine *engine)
{
    for (size_t i = 0; i < engine->n_apps; i++) {
        struct engine_app *a = &engine->apps[i];
        if (a->waiting || a->gone || a->due_ms < 0 || engine->now_ms < a->due_ms)
            continue;
        if (a->paused)
            engine_rearm(engine, (int)i);
        else if (!engine_running(engine, (int)i))
            engine_enqueue(engine, (int)i, "timer", false, -1);
    }
}

/* Gives the free token away: moves in flight first, then proposals asked for, then the queue. */
static void grant(struct engine *engine)
{
    if (engine->token || engine->creating >= 0 || engine->stopping || engine->store_broken)
        return;
    const struct engine_cycle *next = NULL;
    for (size_t i = 0; i < engine->n_cycles; i++) {
        const struct engine_cycle *c = &engine->cycles[i];
        if (engine_holds_token(c) && (!next || next->state == CYCLE_PROPOSED))
            next = c;
    }
    if (next) {
        engine->token = next->id;
        return;
    }
    int app = -1;
    for (size_t i = 0; i < engine->n_apps; i++)
        if (engine->apps[i].waiting && !engine_running(engine, (int)i) &&
            (app < 0 || engine->apps[i].since_ms < engine->apps[app].since_ms))
            app = (int)i;
    engine->creating = app;
}

static void on_tick(struct engine *engine, const struct engine_event *ev)
{
    (void)ev;
    if (engine->store_broken && engine->now_ms >= engine->store_retry_ms)
        engine->store_broken = false;
}

static void on_trigger(struct engine *engine, const struct engine_event *ev)
{
    engine_enqueue(engine, engine_app(engine, ev->app), ev->trigger, ev->dry_run, -1);
}

static void on_killed(struct engine *engine, const struct engine_event *ev)
{
    engine->stages[ev->stage].kill = false;
}

static void on_stop_sent(struct engine *engine, const struct engine_event *ev)
{
    engine->stages[ev->stage].stop_sent = true;
}

static void on_app_saved(struct engine *engine, const struct engine_event *ev)
{
    int app = engine_app(engine, ev->app);
    if (app < 0)
        return;
    engine->apps[app].dirty = false;
    engine->apps[app].said = engine->apps[app].drift.state;
}

/* What an event does; commands only where they are not refused. */
static const struct {
    void (*apply)(struct engine *engine, const struct engine_event *ev);
    bool command;
} handlers[] = {
    [EV_TICK] = {on_tick, false},
    [EV_APP] = {engine_on_app, false},
    [EV_APP_GONE] = {engine_on_app_gone, false},
    [EV_RESTORE] = {engine_on_restore, false},
    [EV_TRIGGER] = {on_trigger, true},
    [EV_CREATED] = {on_created, false},
    [EV_DEPLOY] = {engine_on_deploy, false},
    [EV_PAUSE] = {engine_on_pause, true},
    [EV_RESUME] = {engine_on_pause, true},
    [EV_APPLY] = {engine_on_apply, true},
    [EV_UNDO] = {engine_on_undo, true},
    [EV_STAGE_UP] = {engine_on_stage_down, false}, /* a new life: the old one is over */
    [EV_STAGE_DOWN] = {engine_on_stage_down, false},
    [EV_LENT] = {engine_on_lent, false},
    [EV_LOOKING] = {engine_on_looking, false},
    [EV_SENT] = {engine_on_sent, false},
    [EV_KILLED] = {on_killed, false},
    [EV_STOP_SENT] = {on_stop_sent, false},
    [EV_PROGRESS] = {engine_on_progress, false},
    [EV_RESULT] = {engine_on_answer, false},
    [EV_FAILURE] = {engine_on_answer, false},
    [EV_SAVED] = {on_saved, false},
    [EV_APP_SAVED] = {on_app_saved, false},
    [EV_STORE_FAILED] = {on_store_failed, false},
    [EV_SHUTDOWN] = {on_shutdown, false},
};

void engine_update(struct engine *engine, const struct engine_event *ev)
{
    assert((size_t)ev->type < ARRAY_LEN(handlers) && handlers[ev->type].apply);
    if (ev->now_ms > engine->now_ms)
        engine->now_ms = ev->now_ms;
    if (!handlers[ev->type].command || !engine_refuses(engine, ev))
        handlers[ev->type].apply(engine, ev);
    check_deadlines(engine);
    check_settled(engine);
    check_timers(engine);
    grant(engine);
    engine_look_begin(engine);
}
