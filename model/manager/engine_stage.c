/* engine_stage.c - the engine: requests that went out to stages, what came back, and what that
 * makes of the cycle (design.md 3, 4). */
#include "model/manager/engine_internal.h"

#include <assert.h>
#include <stdio.h>

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
        engine_set_reason(c, reason);
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
    engine_step(engine, c, CYCLE_FAILED, text);
}

static void idle(struct engine_stage *stage)
{
    stage->cycle = 0;
    stage->kill = stage->stop_sent = false;
}

void engine_on_stage_down(struct engine *engine, const struct engine_event *ev)
{
    struct engine_stage *stage = &engine->stages[ev->stage];
    struct engine_cycle *c = engine_find(engine, stage->cycle);
    if (c && c->sent && c->attempt == stage->attempt) {
        char text[120];
        snprintf(text, sizeof text, "the %s died %d times during this cycle", party_name(ev->stage),
                 c->failures + 1);
        charge(engine, c, text, true);
        c->retry_ms = 0; /* the supervisor waits before it starts it again */
    }
    engine_look_lost(engine, ev->stage);
    idle(stage);
    stage->up = ev->type == EV_STAGE_UP;
}

void engine_on_sent(struct engine *engine, const struct engine_event *ev)
{
    struct engine_cycle *c = engine_find(engine, ev->cycle);
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
void engine_on_lent(struct engine *engine, const struct engine_event *ev)
{
    struct engine_stage *stage = &engine->stages[ev->stage];
    if (!stage->up || stage->cycle)
        return;
    stage->cycle = ENGINE_LENT;
    stage->attempt = ev->attempt;
    stage->stop_sent = false;
    deadline_start(&stage->deadline, engine->now_ms, ev->value);
}

void engine_on_progress(struct engine *engine, const struct engine_event *ev)
{
    struct engine_stage *stage = &engine->stages[ev->stage];
    if (stage->cycle == ev->cycle && stage->attempt == ev->attempt)
        deadline_progress(&stage->deadline, engine->now_ms, ev->value);
}

static void after_plan(struct engine *engine, struct engine_cycle *c, const struct engine_event *ev)
{
    const struct engine_app *a = &engine->apps[c->app];
    char text[120];
    if (ev->verdict == VERDICT_NOTHING && !c->dry_run)
        engine_overtake(engine, c, "a newer cycle found nothing worth moving");
    if (ev->verdict == VERDICT_NOTHING || ev->verdict == VERDICT_DRY ||
        ev->verdict == VERDICT_SAME) {
        engine_step(engine, c, CYCLE_DONE, ev->reason);
        return;
    }
    const char *why = c->dry_run                       ? "dry run"
                      : a->config.mode == MODE_OBSERVE ? "observing only"
                      : a->paused                      ? "paused"
                                                       : NULL;
    if (why) {
        snprintf(text, sizeof text, "%s: %lld moves not made", why, (long long)ev->value);
        engine_step(engine, c, CYCLE_DONE, text);
    } else {
        engine_step(engine, c, a->config.mode == MODE_PROPOSE ? CYCLE_PROPOSED : CYCLE_EXECUTING,
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
        engine_step(engine, c, CYCLE_FAILED, reason);
        return;
    case STOP_DEPLOY:
        engine_step(engine, c, c->applied > 0 ? CYCLE_DONE : CYCLE_SUPERSEDED, reason);
        return;
    case STOP_PAUSE:
    case STOP_NO:
        break;
    }
    if (c->applied > 0)
        engine_step(engine, c, CYCLE_SETTLING, reason);
    else if (ev->verdict == VERDICT_BAD)
        engine_step(engine, c, CYCLE_FAILED, ev->reason);
    else
        engine_step(engine, c, CYCLE_DONE, reason);
}

static void after_verify(struct engine *engine, struct engine_cycle *c,
                         const struct engine_event *ev)
{
    if (ev->verdict == VERDICT_WORSE)
        engine_step(engine, c, CYCLE_UNDOING, ev->reason);
    else if (ev->verdict == VERDICT_NOTHING || c->step == 1)
        engine_step(engine, c, CYCLE_DONE, ev->reason);
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
            engine_step(engine, c, CYCLE_FAILED, ev->reason);
        else
            engine_step(engine, c, c->base >= 0 ? CYCLE_EXECUTING : CYCLE_ANALYZING, NULL);
        break;
    case CYCLE_ANALYZING:
        engine_step(engine, c, CYCLE_PLANNING, NULL);
        break;
    case CYCLE_PLANNING:
        after_plan(engine, c, ev);
        break;
    case CYCLE_PROPOSED:
        engine_step(engine, c, ev->verdict == VERDICT_BAD ? CYCLE_SUPERSEDED : CYCLE_EXECUTING,
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
            engine_step(engine, c, ev->verdict == VERDICT_BAD ? CYCLE_FAILED : CYCLE_UNDONE,
                        ev->reason);
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
void engine_on_answer(struct engine *engine, const struct engine_event *ev)
{
    struct engine_stage *stage = &engine->stages[ev->stage];
    if (stage->cycle != ev->cycle || stage->attempt != ev->attempt)
        return;
    idle(stage);
    if (ev->cycle == ENGINE_LENT)
        engine_looked(engine, ev);
    struct engine_cycle *c = engine_find(engine, ev->cycle);
    if (!c || !c->sent || c->attempt != ev->attempt)
        return;
    if (ev->type == EV_FAILURE)
        charge(engine, c, ev->reason ? ev->reason : "the stage gave no reason", ev->flag);
    else
        on_result(engine, c, ev);
}
