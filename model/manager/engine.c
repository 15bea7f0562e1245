/* engine.c - what each event does to the state of the engine (paper §5.7; design.md 3, 4). What is
 * to be done about it: engine_action.c. */
#include "model/manager/engine.h"

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

static struct engine_cycle *find(struct engine *engine, int64_t id)
{
    for (size_t i = 0; i < engine->n_cycles; i++)
        if (engine->cycles[i].id == id)
            return &engine->cycles[i];
    return NULL;
}

const struct engine_cycle *engine_cycle(const struct engine *engine, int64_t id)
{
    return find((struct engine *)engine, id);
}

static bool before_executing(enum cycle_state state)
{
    return state == CYCLE_COLLECTING || state == CYCLE_ANALYZING || state == CYCLE_PLANNING;
}

/* States that keep the token once they have it. */
static bool holds_token(const struct engine_cycle *c)
{
    return before_executing(c->state) || c->state == CYCLE_EXECUTING || c->state == CYCLE_UNDOING ||
           (c->state == CYCLE_PROPOSED && c->applying);
}

/* A running cycle of the app, proposals apart. */
static struct engine_cycle *running(struct engine *engine, int app)
{
    for (size_t i = 0; i < engine->n_cycles; i++) {
        struct engine_cycle *c = &engine->cycles[i];
        if (c->app == app && !cycle_ended(c->state) && (c->state != CYCLE_PROPOSED || c->applying))
            return c;
    }
    return NULL;
}

static void set_reason(struct engine_cycle *c, const char *reason)
{
    if (reason)
        snprintf(c->reason, sizeof c->reason, "%s", reason);
}

static void rearm(struct engine *engine, int app)
{
    struct engine_app *a = &engine->apps[app];
    int64_t interval = a->given_interval_ms > 0 ? a->given_interval_ms : a->config.interval_ms;
    a->due_ms = a->gone ? -1 : engine->now_ms + interval;
    a->dirty = true;
}

/* The only place where a state changes. A request that was out is forgotten; its stage stays busy
 * until it answers. reason NULL keeps the one there is. */
static void step(struct engine *engine, struct engine_cycle *c, enum cycle_state to,
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
    set_reason(c, reason);
    if (to == CYCLE_SETTLING)
        c->settle_until_ms = engine->now_ms + engine->apps[c->app].config.settle_ms;
    if (engine->token == c->id && !holds_token(c))
        engine->token = 0;
    bool ended = cycle_ended(to) && !cycle_ended(c->saved);
    if (ended || to == CYCLE_PROPOSED) /* a proposal may wait for ever, the timer does not */
        rearm(engine, c->app);
}

/* Finish the move in flight, discard the rest. */
static void stop_executing(struct engine_cycle *c, enum engine_stop why, const char *reason)
{
    if (why <= c->stop)
        return;
    c->stop = why;
    set_reason(c, reason);
}

/* --- apps and timers --- */

static void clamp_interval(struct engine_app *a, int64_t interval_ms)
{
    if (interval_ms <= 0)
        return;
    if (interval_ms < a->config.interval_min_ms)
        interval_ms = a->config.interval_min_ms;
    if (a->config.interval_max_ms > 0 && interval_ms > a->config.interval_max_ms)
        interval_ms = a->config.interval_max_ms;
    a->given_interval_ms = interval_ms;
}

static void on_app(struct engine *engine, const struct engine_event *ev)
{
    int index = engine_app(engine, ev->app);
    if (index >= 0) {
        struct engine_app *a = &engine->apps[index];
        bool other = a->config.interval_ms != ev->config->interval_ms || a->gone;
        a->config = *ev->config;
        a->gone = false;
        clamp_interval(a, a->given_interval_ms);
        if (other && !a->waiting && !running(engine, index))
            rearm(engine, index);
        return;
    }
    index = (int)engine->n_apps;
    struct engine_app *a = ARRAY_PUSH(engine->apps, engine->n_apps);
    a->name = mem_strdup(ev->app);
    a->config = *ev->config;
    a->paused = ev->flag;
    a->base = -1;
    a->given_interval_ms = -1;
    clamp_interval(a, ev->interval_ms);
    if (ev->value >= 0)
        a->due_ms = ev->value;
    else
        rearm(engine, index);
}

static void on_app_gone(struct engine *engine, const struct engine_event *ev)
{
    int app = engine_app(engine, ev->app);
    if (app < 0)
        return;
    engine->apps[app].gone = true;
    engine->apps[app].waiting = false;
    engine->apps[app].due_ms = -1;
    for (size_t i = 0; i < engine->n_cycles; i++) {
        struct engine_cycle *c = &engine->cycles[i];
        if (c->app == app && (before_executing(c->state) || c->state == CYCLE_PROPOSED))
            step(engine, c, CYCLE_SUPERSEDED, "the app is no longer configured");
    }
}

static void on_restore(struct engine *engine, const struct engine_event *ev)
{
    int app = engine_app(engine, ev->app);
    if (app < 0 || find(engine, ev->cycle) || cycle_ended(ev->state))
        return;
    struct engine_cycle *c = ARRAY_PUSH(engine->cycles, engine->n_cycles);
    c->id = ev->cycle;
    c->app = app;
    c->base = -1;
    c->dry_run = ev->dry_run;
    c->state = c->saved = ev->state;
    c->attempt = ev->attempt;
    c->settle_until_ms = ev->value;
    set_reason(c, ev->reason);
    const char *gone = "the app is no longer configured";
    if (before_executing(c->state))
        step(engine, c, CYCLE_FAILED, "interrupted: remap was restarted");
    else if (engine->apps[app].gone && c->state == CYCLE_PROPOSED)
        step(engine, c, CYCLE_SUPERSEDED, gone);
    else if (engine->apps[app].gone)
        step(engine, c, c->state == CYCLE_SETTLING ? CYCLE_DONE : CYCLE_FAILED, gone);
    else if (engine->apps[app].paused && c->state == CYCLE_EXECUTING)
        stop_executing(c, STOP_PAUSE, "paused while executing");
}

/* --- commands --- */

const char *engine_refuses(const struct engine *engine, const struct engine_event *ev)
{
    int app = engine_app(engine, ev->app);
    if (engine->stopping)
        return "remap is stopping";
    if (ev->type == EV_PAUSE || ev->type == EV_RESUME)
        return app < 0 ? "no such app" : NULL;
    if (app < 0 || engine->apps[app].gone)
        return "no such app";
    const struct engine_app *a = &engine->apps[app];
    const struct engine_cycle *c = engine_cycle(engine, ev->cycle);
    if (ev->type == EV_UNDO) {
        if (c && (c->state == CYCLE_SETTLING || c->state == CYCLE_VERIFYING))
            return NULL;
        if (c)
            return "the cycle is still running";
        if (ev->value <= 0)
            return "the cycle has made no moves";
        if (!cycle_may(ev->state, CYCLE_UNDOING))
            return "the cycle cannot be undone in its state";
        return running((struct engine *)engine, app) ? "a cycle of this app is running" : NULL;
    }
    if (a->paused)
        return "paused";
    if (a->waiting || engine->creating == app)
        return "a cycle of this app is waiting already";
    if (ev->type == EV_APPLY) {
        if (c && (c->state != CYCLE_PROPOSED || c->applying))
            return "the cycle is still running";
        if (running((struct engine *)engine, app))
            return "a cycle of this app is running";
    }
    return NULL;
}

static void enqueue(struct engine *engine, int app, const char *trigger, bool dry_run, int64_t base)
{
    struct engine_app *a = &engine->apps[app];
    a->waiting = true;
    snprintf(a->trigger, sizeof a->trigger, "%s", trigger);
    a->dry_run = dry_run;
    a->base = base;
    a->since_ms = engine->now_ms;
    a->due_ms = -1;
}

static void on_apply(struct engine *engine, const struct engine_event *ev)
{
    struct engine_cycle *c = find(engine, ev->cycle);
    if (c) {
        c->applying = true;
        c->failures = 0;
    } else {
        enqueue(engine, engine_app(engine, ev->app), "apply", false, ev->cycle);
    }
}

static void on_undo(struct engine *engine, const struct engine_event *ev)
{
    struct engine_cycle *c = find(engine, ev->cycle);
    if (!c) {
        c = ARRAY_PUSH(engine->cycles, engine->n_cycles);
        c->id = ev->cycle;
        c->app = engine_app(engine, ev->app);
        c->base = -1;
        c->state = c->saved = ev->state;
        c->attempt = ev->attempt;
        c->applied = ev->value;
    }
    c->failures = 0;
    step(engine, c, CYCLE_UNDOING, ev->reason ? ev->reason : "undone by hand");
}

static void on_pause(struct engine *engine, const struct engine_event *ev)
{
    int app = engine_app(engine, ev->app);
    struct engine_app *a = &engine->apps[app];
    a->paused = ev->type == EV_PAUSE;
    a->dirty = true;
    if (!a->paused)
        return;
    if (a->waiting) {
        a->waiting = false;
        rearm(engine, app);
    }
    for (size_t i = 0; i < engine->n_cycles; i++) {
        struct engine_cycle *c = &engine->cycles[i];
        if (c->app != app)
            continue;
        if (c->state == CYCLE_EXECUTING)
            stop_executing(c, STOP_PAUSE, "paused while executing");
        if (c->state == CYCLE_PROPOSED && c->applying) {
            c->applying = c->sent = false;
            if (engine->token == c->id)
                engine->token = 0;
        }
    }
}

static void on_deploy(struct engine *engine, const struct engine_event *ev)
{
    int app = engine_app(engine, ev->app);
    if (app < 0 || engine->apps[app].gone)
        return;
    clamp_interval(&engine->apps[app], ev->interval_ms);
    engine->apps[app].waiting = false;
    rearm(engine, app);
    const char *reason = ev->reason ? ev->reason : "a deployment";
    char text[ENGINE_REASON_SIZE];
    for (size_t i = 0; i < engine->n_cycles; i++) {
        struct engine_cycle *c = &engine->cycles[i];
        if (c->app != app)
            continue;
        if (before_executing(c->state) || c->state == CYCLE_PROPOSED) {
            step(engine, c, CYCLE_SUPERSEDED, reason);
        } else if (c->state == CYCLE_EXECUTING) {
            stop_executing(c, STOP_DEPLOY, reason);
        } else if (c->state == CYCLE_SETTLING || c->state == CYCLE_VERIFYING) {
            snprintf(text, sizeof text, "kept, not verified: %.400s", reason);
            step(engine, c, CYCLE_DONE, text);
        }
    }
}

/* --- stages and requests --- */

/* A request was lost or answered by a failure. */
static void charge(struct engine *engine, struct engine_cycle *c, const char *reason, bool again)
{
    c->sent = false;
    c->failures++;
    if (again && c->failures < ENGINE_MAX_FAILURES) {
        c->retry_ms = engine->now_ms + ((int64_t)ENGINE_RETRY_MS << (c->failures - 1));
        return;
    }
    char text[ENGINE_REASON_SIZE];
    if (c->state == CYCLE_PROPOSED) {
        c->applying = false; /* it can be asked for again */
        set_reason(c, reason);
        c->dirty = true;
        if (engine->token == c->id)
            engine->token = 0;
        return;
    }
    snprintf(text, sizeof text, "%s%.450s",
             c->state == CYCLE_VERIFYING ? "not verified: "
             : c->state == CYCLE_UNDOING ? "not undone: "
                                         : "",
             reason);
    step(engine, c, CYCLE_FAILED, text);
}

static void idle(struct engine_stage *stage)
{
    stage->cycle = 0;
    stage->kill = stage->stop_sent = false;
}

static void on_stage_down(struct engine *engine, const struct engine_event *ev, bool up)
{
    struct engine_stage *stage = &engine->stages[ev->stage];
    struct engine_cycle *c = find(engine, stage->cycle);
    if (c && c->sent && c->attempt == stage->attempt) {
        char text[120];
        snprintf(text, sizeof text, "the %s died %d times during this cycle", party_name(ev->stage),
                 c->failures + 1);
        charge(engine, c, text, true);
        c->retry_ms = 0; /* the supervisor waits before it starts it again */
    }
    idle(stage);
    stage->up = up;
}

static void on_sent(struct engine *engine, const struct engine_event *ev)
{
    struct engine_cycle *c = find(engine, ev->cycle);
    enum party party;
    enum message_type request;
    if (!c || !engine_request(c, &party, &request))
        return;
    struct engine_stage *stage = &engine->stages[party];
    c->sent = true;
    c->clearing = c->stop != STOP_NO;
    c->attempt = ev->attempt;
    stage->cycle = ev->cycle;
    stage->attempt = ev->attempt;
    stage->stop_sent = false;
    deadline_start(&stage->deadline, engine->now_ms, ev->value);
}

/* Nobody else gets the stage until it has answered: to whom it lent itself is not our matter. */
static void on_lent(struct engine *engine, const struct engine_event *ev)
{
    struct engine_stage *stage = &engine->stages[ev->stage];
    if (!stage->up || stage->cycle)
        return;
    stage->cycle = ENGINE_LENT;
    stage->attempt = ev->attempt;
    stage->stop_sent = false;
    deadline_start(&stage->deadline, engine->now_ms, ev->value);
}

static void on_progress(struct engine *engine, const struct engine_event *ev)
{
    struct engine_stage *stage = &engine->stages[ev->stage];
    if (stage->cycle == ev->cycle && stage->attempt == ev->attempt)
        deadline_progress(&stage->deadline, engine->now_ms, ev->value);
}

static void after_plan(struct engine *engine, struct engine_cycle *c, const struct engine_event *ev)
{
    const struct engine_app *a = &engine->apps[c->app];
    char text[120];
    if (ev->verdict == VERDICT_NOTHING || ev->verdict == VERDICT_DRY) {
        step(engine, c, CYCLE_DONE, ev->reason);
        return;
    }
    const char *why = c->dry_run                       ? "dry run"
                      : a->config.mode == MODE_OBSERVE ? "observing only"
                      : a->paused                      ? "paused"
                                                       : NULL;
    if (why) {
        snprintf(text, sizeof text, "%s: %lld moves not made", why, (long long)ev->value);
        step(engine, c, CYCLE_DONE, text);
    } else {
        step(engine, c, a->config.mode == MODE_PROPOSE ? CYCLE_PROPOSED : CYCLE_EXECUTING,
             ev->reason);
    }
}

/* The answer is not the end of it: `remap` is leaving (goes on at the next start), a move is left
 * open, or somebody else stopped the executor. */
static bool wound_up(struct engine *engine, struct engine_cycle *c, const struct engine_event *ev)
{
    bool stopped = ev->verdict == VERDICT_STOPPED;
    if (stopped && engine->stopping)
        c->sent = false;
    else if (ev->flag)
        charge(engine, c, "moves are left open", true);
    else if (stopped && !c->stop)
        charge(engine, c, "the executor was stopped from outside", true);
    else
        return false;
    return true;
}

static void after_execute(struct engine *engine, struct engine_cycle *c,
                          const struct engine_event *ev)
{
    c->applied = ev->value;
    if (wound_up(engine, c, ev))
        return;
    const char *reason = c->stop ? NULL : ev->reason; /* the reason to stop is there already */
    switch (c->stop) {
    case STOP_STORE:
        step(engine, c, CYCLE_FAILED, reason);
        return;
    case STOP_DEPLOY:
        step(engine, c, c->applied > 0 ? CYCLE_DONE : CYCLE_SUPERSEDED, reason);
        return;
    case STOP_PAUSE:
    case STOP_NO:
        break;
    }
    if (c->applied > 0)
        step(engine, c, CYCLE_SETTLING, reason);
    else if (ev->verdict == VERDICT_BAD)
        step(engine, c, CYCLE_FAILED, ev->reason);
    else
        step(engine, c, CYCLE_DONE, reason);
}

static void after_verify(struct engine *engine, struct engine_cycle *c,
                         const struct engine_event *ev)
{
    if (ev->verdict == VERDICT_WORSE)
        step(engine, c, CYCLE_UNDOING, ev->reason);
    else if (ev->verdict == VERDICT_NOTHING || c->step == 1)
        step(engine, c, CYCLE_DONE, ev->reason);
    else {
        c->step = 1;
        c->sent = false;
    }
}

static void on_result(struct engine *engine, struct engine_cycle *c, const struct engine_event *ev)
{
    switch (c->state) {
    case CYCLE_COLLECTING:
        if (ev->verdict == VERDICT_BAD)
            step(engine, c, CYCLE_FAILED, ev->reason);
        else
            step(engine, c, c->base >= 0 ? CYCLE_EXECUTING : CYCLE_ANALYZING, NULL);
        break;
    case CYCLE_ANALYZING:
        step(engine, c, CYCLE_PLANNING, NULL);
        break;
    case CYCLE_PLANNING:
        after_plan(engine, c, ev);
        break;
    case CYCLE_PROPOSED:
        step(engine, c, ev->verdict == VERDICT_BAD ? CYCLE_SUPERSEDED : CYCLE_EXECUTING,
             ev->reason);
        break;
    case CYCLE_EXECUTING:
        after_execute(engine, c, ev);
        break;
    case CYCLE_VERIFYING:
        after_verify(engine, c, ev);
        break;
    case CYCLE_UNDOING:
        if (c->stop == STOP_STORE && ev->verdict == VERDICT_STOPPED) {
            c->stop = STOP_NO; /* asked again when the store works */
            c->sent = false;
        } else if (!wound_up(engine, c, ev))
            step(engine, c, ev->verdict == VERDICT_BAD ? CYCLE_FAILED : CYCLE_UNDONE, ev->reason);
        break;
    case CYCLE_SETTLING:
    case CYCLE_DONE:
    case CYCLE_UNDONE:
    case CYCLE_FAILED:
    case CYCLE_SUPERSEDED:
    case CYCLE_N_STATES:
        assert(!"a state that asks for nothing has no result");
    }
}

/* A result or a failure: the stage is free in any case; it counts only for the attempt awaited. */
static void on_answer(struct engine *engine, const struct engine_event *ev)
{
    struct engine_stage *stage = &engine->stages[ev->stage];
    if (stage->cycle != ev->cycle || stage->attempt != ev->attempt)
        return;
    idle(stage);
    struct engine_cycle *c = find(engine, ev->cycle);
    if (!c || !c->sent || c->attempt != ev->attempt)
        return;
    if (ev->type == EV_FAILURE)
        charge(engine, c, ev->reason ? ev->reason : "the stage gave no reason", ev->flag);
    else
        on_result(engine, c, ev);
}

/* --- store --- */

static void on_created(struct engine *engine, const struct engine_event *ev)
{
    if (engine->creating < 0)
        return;
    int app = engine->creating;
    struct engine_app *a = &engine->apps[app];
    for (size_t i = 0; i < engine->n_cycles; i++)
        if (engine->cycles[i].app == app && engine->cycles[i].state == CYCLE_PROPOSED)
            step(engine, &engine->cycles[i], CYCLE_SUPERSEDED, "a newer cycle");
    struct engine_cycle *c = ARRAY_PUSH(engine->cycles, engine->n_cycles);
    c->id = ev->cycle;
    c->app = app;
    c->dry_run = a->dry_run;
    c->base = a->base;
    c->state = c->saved = CYCLE_COLLECTING;
    a->waiting = false;
    engine->creating = -1;
    engine->token = c->id;
    engine->store_broken = false;
    if (a->gone) /* between the asking and the answer */
        step(engine, c, CYCLE_SUPERSEDED, "the app is no longer configured");
}

static void drop(struct engine *engine, struct engine_cycle *c)
{
    size_t i = (size_t)(c - engine->cycles);
    engine->n_cycles--;
    memmove(c, c + 1, (engine->n_cycles - i) * sizeof *c);
}

static void on_saved(struct engine *engine, const struct engine_event *ev)
{
    struct engine_cycle *c = find(engine, ev->cycle);
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
        if (before_executing(c->state))
            step(engine, c, CYCLE_FAILED, text);
        else if (c->state == CYCLE_EXECUTING)
            stop_executing(c, STOP_STORE, text);
        else if (c->state == CYCLE_UNDOING && c->sent)
            c->stop = STOP_STORE;
    }
    if (engine->token &&
        (!find(engine, engine->token) || !holds_token(find(engine, engine->token))))
        engine->token = 0;
}

/* --- time --- */

static void on_shutdown(struct engine *engine)
{
    engine->stopping = true;
    for (size_t i = 0; i < engine->n_cycles; i++)
        if (before_executing(engine->cycles[i].state))
            step(engine, &engine->cycles[i], CYCLE_FAILED, "interrupted: remap was stopped");
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
            step(engine, c, CYCLE_VERIFYING, NULL);
    }
}

static void check_timers(struct engine *engine)
{
    for (size_t i = 0; i < engine->n_apps; i++) {
        struct engine_app *a = &engine->apps[i];
        if (a->waiting || a->gone || a->due_ms < 0 || engine->now_ms < a->due_ms)
            continue;
        if (a->paused)
            rearm(engine, (int)i);
        else if (!running(engine, (int)i))
            enqueue(engine, (int)i, "timer", false, -1);
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
        if (holds_token(c) && (!next || next->state == CYCLE_PROPOSED))
            next = c;
    }
    if (next) {
        engine->token = next->id;
        return;
    }
    int app = -1;
    for (size_t i = 0; i < engine->n_apps; i++)
        if (engine->apps[i].waiting && !running(engine, (int)i) &&
            (app < 0 || engine->apps[i].since_ms < engine->apps[app].since_ms))
            app = (int)i;
    engine->creating = app;
}

void engine_update(struct engine *engine, const struct engine_event *ev)
{
    if (ev->now_ms > engine->now_ms)
        engine->now_ms = ev->now_ms;
    switch (ev->type) {
    case EV_TICK:
        if (engine->store_broken && engine->now_ms >= engine->store_retry_ms)
            engine->store_broken = false;
        break;
    case EV_APP:
        on_app(engine, ev);
        break;
    case EV_APP_GONE:
        on_app_gone(engine, ev);
        break;
    case EV_RESTORE:
        on_restore(engine, ev);
        break;
    case EV_TRIGGER:
        if (!engine_refuses(engine, ev))
            enqueue(engine, engine_app(engine, ev->app), ev->trigger, ev->dry_run, -1);
        break;
    case EV_CREATED:
        on_created(engine, ev);
        break;
    case EV_DEPLOY:
        on_deploy(engine, ev);
        break;
    case EV_PAUSE:
    case EV_RESUME:
        if (!engine_refuses(engine, ev))
            on_pause(engine, ev);
        break;
    case EV_APPLY:
        if (!engine_refuses(engine, ev))
            on_apply(engine, ev);
        break;
    case EV_UNDO:
        if (!engine_refuses(engine, ev))
            on_undo(engine, ev);
        break;
    case EV_STAGE_UP:
    case EV_STAGE_DOWN:
        on_stage_down(engine, ev, ev->type == EV_STAGE_UP);
        break;
    case EV_LENT:
        on_lent(engine, ev);
        break;
    case EV_SENT:
        on_sent(engine, ev);
        break;
    case EV_KILLED:
        engine->stages[ev->stage].kill = false;
        break;
    case EV_STOP_SENT:
        engine->stages[ev->stage].stop_sent = true;
        break;
    case EV_PROGRESS:
        on_progress(engine, ev);
        break;
    case EV_RESULT:
    case EV_FAILURE:
        on_answer(engine, ev);
        break;
    case EV_SAVED:
        on_saved(engine, ev);
        break;
    case EV_APP_SAVED: {
        int app = engine_app(engine, ev->app);
        if (app >= 0)
            engine->apps[app].dirty = false;
        break;
    }
    case EV_STORE_FAILED:
        on_store_failed(engine, ev);
        break;
    case EV_SHUTDOWN:
        on_shutdown(engine);
        break;
    }
    check_deadlines(engine);
    check_settled(engine);
    check_timers(engine);
    grant(engine);
}
