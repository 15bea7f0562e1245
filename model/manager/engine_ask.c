/* engine_ask.c - the engine: applications and their timers, what the command line and deployments
 * ask for, and cycles found at the start (paper §5.7; design.md 3). */
#include "model/manager/engine_internal.h"

#include <stdio.h>
#include <string.h>

#include "model/base/mem.h"

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

void engine_on_app(struct engine *engine, const struct engine_event *ev)
{
    int index = engine_app(engine, ev->app);
    if (index >= 0) {
        struct engine_app *a = &engine->apps[index];
        bool other = a->config.interval_ms != ev->config->interval_ms || a->gone;
        a->config = *ev->config;
        a->gone = false;
        clamp_interval(a, a->given_interval_ms);
        if (other && !a->waiting && !engine_running(engine, index))
            engine_rearm(engine, index);
        engine_look_configure(engine, index);
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
        engine_rearm(engine, index);
    a->reference = ev->cycle;
    drift_reset(&a->drift, &a->config.drift, engine->now_ms);
    engine_look_configure(engine, index);
}

void engine_on_app_gone(struct engine *engine, const struct engine_event *ev)
{
    int app = engine_app(engine, ev->app);
    if (app < 0)
        return;
    engine->apps[app].gone = true;
    engine->apps[app].waiting = false;
    engine->apps[app].due_ms = -1;
    engine_look_configure(engine, app);
    for (size_t i = 0; i < engine->n_cycles; i++) {
        struct engine_cycle *c = &engine->cycles[i];
        if (c->app == app && (engine_before_executing(c->state) || c->state == CYCLE_PROPOSED))
            engine_step(engine, c, CYCLE_SUPERSEDED, "the app is no longer configured");
    }
}

void engine_on_restore(struct engine *engine, const struct engine_event *ev)
{
    int app = engine_app(engine, ev->app);
    if (app < 0 || engine_find(engine, ev->cycle) || cycle_ended(ev->state))
        return;
    struct engine_cycle *c = ARRAY_PUSH(engine->cycles, engine->n_cycles);
    c->id = ev->cycle;
    c->app = app;
    c->base = -1;
    c->dry_run = ev->dry_run;
    c->state = c->saved = ev->state;
    c->attempt = ev->attempt;
    c->settle_until_ms = ev->value;
    engine_set_reason(c, ev->reason);
    const char *gone = "the app is no longer configured";
    if (engine_before_executing(c->state))
        engine_step(engine, c, CYCLE_FAILED, "interrupted: remap was restarted");
    else if (engine->apps[app].gone && c->state == CYCLE_PROPOSED)
        engine_step(engine, c, CYCLE_SUPERSEDED, gone);
    else if (engine->apps[app].gone)
        engine_step(engine, c, c->state == CYCLE_SETTLING ? CYCLE_DONE : CYCLE_FAILED, gone);
    else if (engine->apps[app].paused && c->state == CYCLE_EXECUTING)
        engine_stop_executing(c, STOP_PAUSE, "paused while executing");
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
        return engine_running((struct engine *)engine, app) ? "a cycle of this app is running"
                                                            : NULL;
    }
    if (a->paused)
        return "paused by `remap pause`; `remap resume` goes on";
    if (a->waiting || engine->creating == app)
        return "a cycle of this app is waiting already";
    if (ev->type == EV_APPLY) {
        if (c && (c->state != CYCLE_PROPOSED || c->applying))
            return "the cycle is still running";
        if (engine_running((struct engine *)engine, app))
            return "a cycle of this app is running";
    }
    return NULL;
}

void engine_enqueue(struct engine *engine, int app, const char *trigger, bool dry_run, int64_t base)
{
    struct engine_app *a = &engine->apps[app];
    a->waiting = true;
    snprintf(a->trigger, sizeof a->trigger, "%s", trigger);
    a->dry_run = dry_run;
    a->base = base;
    a->since_ms = engine->now_ms;
    a->due_ms = -1;
}

void engine_on_apply(struct engine *engine, const struct engine_event *ev)
{
    struct engine_cycle *c = engine_find(engine, ev->cycle);
    if (c) {
        c->applying = true;
        c->failures = 0;
    } else {
        engine_enqueue(engine, engine_app(engine, ev->app), "apply", false, ev->cycle);
    }
}

void engine_on_undo(struct engine *engine, const struct engine_event *ev)
{
    struct engine_cycle *c = engine_find(engine, ev->cycle);
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
    engine_step(engine, c, CYCLE_UNDOING, ev->reason ? ev->reason : "undone by hand");
}

void engine_on_pause(struct engine *engine, const struct engine_event *ev)
{
    int app = engine_app(engine, ev->app);
    struct engine_app *a = &engine->apps[app];
    a->paused = ev->type == EV_PAUSE;
    a->dirty = true;
    if (!a->paused)
        return;
    if (a->waiting) {
        a->waiting = false;
        engine_rearm(engine, app);
    }
    for (size_t i = 0; i < engine->n_cycles; i++) {
        struct engine_cycle *c = &engine->cycles[i];
        if (c->app != app)
            continue;
        if (c->state == CYCLE_EXECUTING)
            engine_stop_executing(c, STOP_PAUSE, "paused while executing");
        if (c->state == CYCLE_PROPOSED && c->applying) {
            c->applying = c->sent = false;
            if (engine->token == c->id)
                engine->token = 0;
        }
    }
}

void engine_on_deploy(struct engine *engine, const struct engine_event *ev)
{
    int app = engine_app(engine, ev->app);
    if (app < 0 || engine->apps[app].gone)
        return;
    clamp_interval(&engine->apps[app], ev->interval_ms);
    engine->apps[app].waiting = false;
    engine_rearm(engine, app);
    engine_look_forget(engine, app);
    const char *reason = ev->reason ? ev->reason : "a deployment";
    char text[ENGINE_REASON_SIZE];
    for (size_t i = 0; i < engine->n_cycles; i++) {
        struct engine_cycle *c = &engine->cycles[i];
        if (c->app != app)
            continue;
        if (engine_before_executing(c->state) || c->state == CYCLE_PROPOSED) {
            engine_step(engine, c, CYCLE_SUPERSEDED, reason);
        } else if (c->state == CYCLE_EXECUTING) {
            engine_stop_executing(c, STOP_DEPLOY, reason);
        } else if (c->state == CYCLE_SETTLING || c->state == CYCLE_VERIFYING) {
            snprintf(text, sizeof text, "kept, not verified: %.400s", reason);
            engine_step(engine, c, CYCLE_DONE, text);
        }
    }
}
