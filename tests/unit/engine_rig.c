/* engine_rig.c - see engine_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/engine_rig.h"

const struct engine_app_config rig_shop = {.mode = MODE_ACT,
                                           .interval_ms = 1000,
                                           .interval_min_ms = 100,
                                           .interval_max_ms = 60000,
                                           .settle_ms = 50};

void rig_event(struct rig *rig, struct engine_event ev)
{
    ev.now_ms = rig->now_ms;
    engine_update(&rig->engine, &ev);
}

void rig_act(struct rig *rig)
{
    struct engine_action a;
    while (engine_next_action(&rig->engine, &a)) {
        switch (a.type) {
        case ACTION_SAVE:
            rig_event(rig, (struct engine_event){.type = EV_SAVED, .cycle = a.cycle->id});
            break;
        case ACTION_SAVE_APP:
            rig_event(rig, (struct engine_event){.type = EV_APP_SAVED,
                                                 .app = rig->engine.apps[a.app].name});
            break;
        case ACTION_KILL:
            rig->kills++;
            rig_event(rig, (struct engine_event){.type = EV_KILLED, .stage = a.stage});
            break;
        case ACTION_STOP:
            rig->stops++;
            rig_event(rig, (struct engine_event){.type = EV_STOP_SENT, .stage = a.stage});
            break;
        case ACTION_CREATE:
            rig_event(rig, (struct engine_event){.type = EV_CREATED, .cycle = rig->next_id++});
            break;
        case ACTION_LOOK:
            rig->looks++;
            rig_event(
                rig, (struct engine_event){
                         .type = EV_LOOKING, .stage = a.stage, .attempt = a.attempt, .value = 100});
            break;
        case ACTION_SEND:
            rig->sends[a.request]++;
            rig_event(rig, (struct engine_event){.type = EV_SENT,
                                                 .cycle = a.cycle->id,
                                                 .attempt = a.attempt,
                                                 .value = 100});
            break;
        }
    }
}

void rig_at(struct rig *rig, int64_t now_ms)
{
    rig->now_ms = now_ms;
    rig_event(rig, (struct engine_event){.type = EV_TICK});
    rig_act(rig);
}

void rig_open(struct rig *rig)
{
    memset(rig, 0, sizeof *rig);
    rig->next_id = 1;
    engine_init(&rig->engine, 0);
    for (int p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++)
        rig_event(rig, (struct engine_event){.type = EV_STAGE_UP, .stage = (enum party)p});
    rig_event(
        rig,
        (struct engine_event){
            .type = EV_APP, .app = "shop", .config = &rig_shop, .value = -1, .interval_ms = -1});
    rig_act(rig);
}

void rig_trigger(struct rig *rig, const char *app)
{
    rig_event(rig, (struct engine_event){.type = EV_TRIGGER, .app = app, .trigger = "manual"});
    rig_act(rig);
}

void rig_answer(struct rig *rig, int64_t cycle, enum verdict verdict, int64_t value,
                const char *reason)
{
    const struct engine_cycle *c = engine_cycle(&rig->engine, cycle);
    assert_non_null(c);
    enum party stage;
    enum message_type request;
    assert_true(engine_request(c, &stage, &request));
    rig_event(rig, (struct engine_event){.type = EV_RESULT,
                                         .stage = stage,
                                         .cycle = cycle,
                                         .attempt = c->attempt,
                                         .verdict = verdict,
                                         .value = value,
                                         .reason = reason});
    rig_act(rig);
}

void rig_answer_failure(struct rig *rig, int64_t cycle, bool again)
{
    const struct engine_cycle *c = engine_cycle(&rig->engine, cycle);
    enum party stage;
    enum message_type request;
    assert_true(engine_request(c, &stage, &request));
    rig_event(rig, (struct engine_event){.type = EV_FAILURE,
                                         .stage = stage,
                                         .cycle = cycle,
                                         .attempt = c->attempt,
                                         .flag = again,
                                         .reason = "no answer"});
    rig_act(rig);
}

int64_t rig_to_executing(struct rig *rig)
{
    int64_t id = rig->next_id;
    rig_trigger(rig, "shop");
    rig_answer(rig, id, VERDICT_OK, 0, NULL);
    rig_answer(rig, id, VERDICT_OK, 0, NULL);
    rig_answer(rig, id, VERDICT_OK, 2, NULL);
    return id;
}
