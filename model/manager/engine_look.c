/* engine_look.c - the engine between cycles: when an application is looked at, and what is made of
 * what was seen (paper §9; drift.h). */
#include "model/manager/engine_internal.h"

/* What the look under way wants of whom. */
static const struct {
    enum party stage;
    enum message_type request;
} steps[] = {{PARTY_MONITOR, MSG_COLLECT}, {PARTY_ANALYZER, MSG_DRIFT}};

bool engine_looks(const struct engine *engine, enum party stage, int64_t attempt)
{
    const struct engine_look *look = &engine->look;
    return look->app >= 0 && look->sent && look->attempt == attempt &&
           steps[look->step].stage == stage;
}

/* The look is over, whatever came of it. */
static void end(struct engine *engine)
{
    struct engine_look *look = &engine->look;
    struct engine_app *a = &engine->apps[look->app];
    int64_t took = engine->now_ms - look->since_ms;
    if (a->look_ms >= 0)
        a->look_ms = engine->now_ms + drift_pause_ms(&a->drift, &a->config.drift, took);
    look->app = -1;
    look->sent = false;
}

static void arm(struct engine *engine, int app)
{
    struct engine_app *a = &engine->apps[app];
    bool wanted = !a->gone && a->config.drift.every_ms > 0 && a->reference > 0;
    a->look_ms = wanted ? engine->now_ms + a->config.drift.every_ms : -1;
    if (engine->look.app == app)
        end(engine);
}

void engine_look_anew(struct engine *engine, const struct engine_cycle *c)
{
    struct engine_app *a = &engine->apps[c->app];
    bool planned = c->state == CYCLE_DONE || c->state == CYCLE_UNDONE || c->state == CYCLE_PROPOSED;
    if (planned && !c->outdated)
        a->reference = c->id;
    drift_reset(&a->drift, &a->config.drift, engine->now_ms);
    a->said = DRIFT_NONE;
    arm(engine, c->app);
}

void engine_look_forget(struct engine *engine, int app)
{
    struct engine_app *a = &engine->apps[app];
    for (size_t i = 0; i < engine->n_cycles; i++)
        if (engine->cycles[i].app == app)
            engine->cycles[i].outdated = true;
    a->reference = 0;
    drift_reset(&a->drift, &a->config.drift, engine->now_ms);
    a->said = DRIFT_NONE;
    arm(engine, app);
}

void engine_look_configure(struct engine *engine, int app)
{
    struct engine_app *a = &engine->apps[app];
    if (a->config.drift.every_ms <= 0)
        drift_reset(&a->drift, &a->config.drift, engine->now_ms);
    arm(engine, app);
}

/* Can the app be looked at now? Otherwise the look is left out, not put off. */
static bool stands_still(const struct engine *engine, int app)
{
    const struct engine_app *a = &engine->apps[app];
    return !a->paused && !a->waiting && engine->creating != app &&
           !engine_running((struct engine *)engine, app);
}

void engine_look_begin(struct engine *engine)
{
    struct engine_look *look = &engine->look;
    if (look->app >= 0 && !look->sent && !stands_still(engine, look->app))
        end(engine);
    for (size_t i = 0; i < engine->n_apps; i++) {
        struct engine_app *a = &engine->apps[i];
        if (a->look_ms < 0 || engine->now_ms < a->look_ms)
            continue;
        if (!stands_still(engine, (int)i)) {
            arm(engine, (int)i);
            continue;
        }
        bool room = look->app < 0 && !engine->token && engine->creating < 0 &&
                    !engine->stopping && !engine->store_broken;
        if (room) {
            look->app = (int)i;
            look->step = 0;
            look->sent = false;
            look->since_ms = engine->now_ms;
        }
    }
}

void engine_on_looking(struct engine *engine, const struct engine_event *ev)
{
    struct engine_look *look = &engine->look;
    const struct engine_stage *stage = &engine->stages[ev->stage];
    if (look->app < 0 || look->sent || steps[look->step].stage != ev->stage || !stage->up ||
        stage->cycle)
        return;
    look->sent = true;
    look->attempt = ev->attempt;
    engine_on_lent(engine, ev);
}

static void fail(struct engine *engine)
{
    engine->apps[engine->look.app].drift.failures++;
    end(engine);
}

void engine_look_lost(struct engine *engine, enum party stage)
{
    if (engine->look.app >= 0 && engine->look.sent && steps[engine->look.step].stage == stage)
        fail(engine);
}

void engine_looked(struct engine *engine, const struct engine_event *ev)
{
    struct engine_look *look = &engine->look;
    if (!engine_looks(engine, ev->stage, ev->attempt))
        return;
    if (ev->type == EV_FAILURE || (look->step == 1 && !ev->seen)) {
        fail(engine);
        return;
    }
    if (look->step == 0) {
        look->step = 1;
        look->sent = false;
        return;
    }
    int app = look->app;
    struct engine_app *a = &engine->apps[app];
    if (!stands_still(engine, app)) { /* paused meanwhile, or a cycle comes anyway */
        end(engine);
        return;
    }
    bool starts = drift_look(&a->drift, &a->config.drift, ev->seen, engine->now_ms);
    a->dirty = true;
    end(engine);
    if (starts)
        engine_enqueue(engine, app, "drift", false, -1);
}

bool engine_look_action(const struct engine *engine, struct engine_action *out)
{
    const struct engine_look *look = &engine->look;
    if (look->app < 0 || look->sent)
        return false;
    const struct engine_stage *stage = &engine->stages[steps[look->step].stage];
    if (!stage->up || stage->cycle)
        return false;
    *out = (struct engine_action){.type = ACTION_LOOK,
                                  .app = look->app,
                                  .stage = steps[look->step].stage,
                                  .request = steps[look->step].request,
                                  .attempt = look->attempt + 1};
    return true;
}
