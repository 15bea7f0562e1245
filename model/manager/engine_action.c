/* engine_action.c - what the world still lacks, given the state of the engine. Asking twice gives
 * the same answer: an action disappears when the event that reports it done has been applied. */
#include <stddef.h>

#include "model/manager/engine_internal.h"

bool engine_request(const struct engine_cycle *cycle, enum party *stage, enum message_type *request)
{
    static const struct {
        bool any;
        enum party stage;
        enum message_type request;
    } table[CYCLE_N_STATES] = {
        [CYCLE_COLLECTING] = {true, PARTY_MONITOR, MSG_COLLECT},
        [CYCLE_ANALYZING] = {true, PARTY_ANALYZER, MSG_ANALYZE},
        [CYCLE_PLANNING] = {true, PARTY_PLANNER, MSG_PLAN},
        [CYCLE_PROPOSED] = {true, PARTY_MONITOR, MSG_COLLECT}, /* does its base still hold? */
        [CYCLE_EXECUTING] = {true, PARTY_EXECUTOR, MSG_EXECUTE},
        [CYCLE_VERIFYING] = {true, PARTY_MONITOR, MSG_COLLECT},
        [CYCLE_UNDOING] = {true, PARTY_EXECUTOR, MSG_EXECUTE},
    };
    if (!table[cycle->state].any || (cycle->state == CYCLE_PROPOSED && !cycle->applying))
        return false;
    *stage = table[cycle->state].stage;
    *request = table[cycle->state].request;
    if (cycle->state == CYCLE_VERIFYING && cycle->step == 1) {
        *stage = PARTY_ANALYZER;
        *request = MSG_ANALYZE;
    }
    return true;
}

/* Can this cycle's next request go out now? */
static bool sendable(const struct engine *engine, const struct engine_cycle *c,
                     struct engine_action *out)
{
    if (c->sent || c->dirty || engine->now_ms < c->retry_ms ||
        !engine_request(c, &out->stage, &out->request))
        return false;
    if (c->state != CYCLE_VERIFYING && engine->token != c->id)
        return false;
    const struct engine_stage *stage = &engine->stages[out->stage];
    return stage->up && stage->cycle == 0;
}

static bool next_save(const struct engine *engine, struct engine_action *out)
{
    for (size_t i = 0; i < engine->n_cycles; i++)
        if (engine->cycles[i].dirty) {
            out->type = ACTION_SAVE;
            out->cycle = &engine->cycles[i];
            return true;
        }
    for (size_t i = 0; i < engine->n_apps; i++)
        if (engine->apps[i].dirty) {
            out->type = ACTION_SAVE_APP;
            out->app = (int)i;
            return true;
        }
    return false;
}

/* The executor is asked to wind up when its cycle is to stop, or everything is. */
static bool next_stop(const struct engine *engine, struct engine_action *out)
{
    const struct engine_stage *stage = &engine->stages[PARTY_EXECUTOR];
    const struct engine_cycle *c = engine_cycle(engine, stage->cycle);
    if (!stage->up || !stage->cycle || stage->stop_sent)
        return false;
    if (!engine->stopping && !(c && c->stop && c->sent && !c->clearing))
        return false;
    out->type = ACTION_STOP;
    out->stage = PARTY_EXECUTOR;
    out->cycle = c;
    return true;
}

bool engine_next_action(const struct engine *engine, struct engine_action *out)
{
    *out = (struct engine_action){.app = -1};
    for (int p = 0; p < PARTY_N; p++)
        if (engine->stages[p].kill) {
            out->type = ACTION_KILL;
            out->stage = (enum party)p;
            return true;
        }
    if (next_stop(engine, out))
        return true;
    if (engine->store_broken)
        return false;
    *out = (struct engine_action){.app = -1};
    if (next_save(engine, out))
        return true;
    if (engine->stopping)
        return false;
    if (engine->creating >= 0) {
        *out = (struct engine_action){.type = ACTION_CREATE, .app = engine->creating};
        return true;
    }
    for (size_t i = 0; i < engine->n_cycles; i++) {
        const struct engine_cycle *c = &engine->cycles[i];
        *out = (struct engine_action){.app = c->app};
        if (sendable(engine, c, out)) {
            out->type = ACTION_SEND;
            out->cycle = c;
            out->attempt = c->attempt + 1;
            return true;
        }
    }
    return engine_look_action(engine, out);
}

static void sooner(int64_t *at, int64_t candidate)
{
    if (candidate < *at)
        *at = candidate;
}

int64_t engine_next_ms(const struct engine *engine)
{
    int64_t at = INT64_MAX;
    for (int p = 0; p < PARTY_N; p++)
        if (engine->stages[p].cycle && engine->stages[p].up)
            sooner(&at, engine->stages[p].deadline.due_ms);
    if (engine->store_broken)
        sooner(&at, engine->store_retry_ms);
    for (size_t i = 0; i < engine->n_cycles; i++) {
        const struct engine_cycle *c = &engine->cycles[i];
        if (c->state == CYCLE_SETTLING && !engine->store_broken)
            sooner(&at, c->settle_until_ms);
        if (!c->sent && c->retry_ms > engine->now_ms)
            sooner(&at, c->retry_ms);
    }
    for (size_t i = 0; i < engine->n_apps; i++) {
        const struct engine_app *a = &engine->apps[i];
        if (!a->waiting && a->due_ms > engine->now_ms)
            sooner(&at, a->due_ms);
        if (a->look_ms > engine->now_ms)
            sooner(&at, a->look_ms);
    }
    return at;
}

bool engine_awaits(const struct engine *engine, enum party stage, int64_t cycle, int64_t attempt)
{
    const struct engine_stage *s = &engine->stages[stage];
    const struct engine_cycle *c = engine_cycle(engine, cycle);
    return c && c->sent && c->attempt == attempt && s->cycle == cycle && s->attempt == attempt;
}

bool engine_quiet(const struct engine *engine)
{
    return engine->stages[PARTY_EXECUTOR].cycle == 0;
}

bool engine_idle(const struct engine *engine)
{
    if (engine->creating >= 0)
        return false;
    for (size_t i = 0; i < engine->n_apps; i++)
        if (engine->apps[i].waiting)
            return false;
    for (size_t i = 0; i < engine->n_cycles; i++)
        if (engine->cycles[i].dirty || engine->cycles[i].state != CYCLE_PROPOSED ||
            engine->cycles[i].applying)
            return false;
    return true;
}
