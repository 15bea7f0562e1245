/* test_engine_looks.c - the engine's rules of looks between cycles (drift), one fact each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/engine_rig.h"

static const struct engine_app_config watched = {.mode = MODE_OBSERVE,
                                                 .interval_ms = 100000,
                                                 .interval_min_ms = 100,
                                                 .interval_max_ms = 1000000,
                                                 .settle_ms = 50,
                                                 .drift = {.every_ms = 10,
                                                           .for_ms = 20,
                                                           .quiet_ms = 100,
                                                           .affinity = 0.2,
                                                           .affinity_leave = 0.1,
                                                           .response = 0.5,
                                                           .response_leave = 0.25}};

static void configure(struct rig *rig, const struct engine_app_config *config)
{
    rig_event(rig, (struct engine_event){.type = EV_APP, .app = "shop", .config = config});
    rig_act(rig);
}

/* The stage that works on the look answers. */
static void look_answer(struct rig *rig, enum party stage, bool well, const struct drift_seen *seen)
{
    rig_event(rig, (struct engine_event){.type = well ? EV_RESULT : EV_FAILURE,
                                         .stage = stage,
                                         .cycle = ENGINE_LENT,
                                         .attempt = rig->engine.stages[stage].attempt,
                                         .seen = seen});
    rig_act(rig);
}

/* A whole look at this time, which must be due. */
static void look(struct rig *rig, int64_t now_ms, double distance)
{
    struct drift_seen seen = {.distance = distance};
    int before = rig->looks;
    rig_at(rig, now_ms);
    assert_int_equal(rig->looks, before + 1);
    look_answer(rig, PARTY_MONITOR, true, NULL);
    assert_int_equal(rig->looks, before + 2);
    look_answer(rig, PARTY_ANALYZER, true, &seen);
}

/* A cycle that plans and ends as a dry one at time 0, then looks. */
static void open_watched(struct rig *rig)
{
    rig_open(rig);
    configure(rig, &watched);
    int64_t id = rig->next_id;
    rig_trigger(rig, "shop");
    rig_answer(rig, id, VERDICT_OK, 0, NULL);
    rig_answer(rig, id, VERDICT_OK, 0, NULL);
    rig_answer(rig, id, VERDICT_OK, 1, NULL);
    assert_ended(rig, id);
    assert_int_equal(rig->engine.apps[0].reference, id);
}

static void test_drift_when_it_lasts_and_quiet_is_over_then_one_cycle(void **state)
{
    (void)state;
    struct rig rig;
    open_watched(&rig);
    int64_t now = 10;
    for (; now < 60; now += 10)
        look(&rig, now, 0.05);
    assert_int_equal(rig.engine.apps[0].drift.state, DRIFT_CALM);
    look(&rig, now, 0.4);
    assert_int_equal(rig.engine.apps[0].drift.state, DRIFT_RISING);
    look(&rig, now + 10, 0.15); /* between the levels: not left */
    look(&rig, now + 20, 0.4);
    assert_int_equal(rig.engine.apps[0].drift.state, DRIFT_HELD); /* a cycle ended at 0 */
    look(&rig, 90, 0.15);
    assert_int_equal(rig.next_id, 2);
    look(&rig, 100, 0.15);
    assert_int_equal(rig.engine.apps[0].drift.state, DRIFT_STARTED);
    assert_int_equal(rig.next_id, 3);
    assert_string_equal(rig.engine.apps[0].trigger, "drift");
    rig_at(&rig, 190); /* nobody looks while the cycle runs */
    assert_state(&rig, 2, CYCLE_COLLECTING);
    rig_answer(&rig, 2, VERDICT_OK, 0, NULL);
    rig_answer(&rig, 2, VERDICT_OK, 0, NULL);
    rig_answer(&rig, 2, VERDICT_NOTHING, 0, NULL);
    assert_ended(&rig, 2);
    assert_int_equal(rig.engine.apps[0].reference, 2);
    for (now = 200; now < 600; now += 10)
        look(&rig, now, 0.02);
    assert_int_equal(rig.next_id, 3);
    engine_wipe(&rig.engine);
}

static void test_drift_when_app_is_deployed_then_not_looked_until_a_cycle(void **state)
{
    (void)state;
    struct rig rig;
    open_watched(&rig);
    rig_at(&rig, 10); /* a look is under way */
    rig_event(&rig, (struct engine_event){.type = EV_DEPLOY, .app = "shop", .interval_ms = -1});
    rig_act(&rig);
    assert_int_equal(rig.engine.apps[0].reference, 0);
    look_answer(&rig, PARTY_MONITOR, true, NULL); /* of a look that was given up */
    rig_at(&rig, 1000);
    assert_int_equal(rig.looks, 1);
    rig_trigger(&rig, "shop");
    for (int i = 0; i < 3; i++)
        rig_answer(&rig, 2, VERDICT_OK, 1, NULL);
    look(&rig, 1010, 0);
    engine_wipe(&rig.engine);
}

static void test_drift_when_cycle_comes_first_then_look_waits_and_never_blocks(void **state)
{
    (void)state;
    struct rig rig;
    open_watched(&rig);
    rig_at(&rig, 10);
    assert_int_equal(rig.looks, 1);
    rig_trigger(&rig, "shop"); /* has to wait for the monitor alone */
    assert_state(&rig, 2, CYCLE_COLLECTING);
    assert_int_equal(rig.sends[MSG_COLLECT], 1);
    look_answer(&rig, PARTY_MONITOR, true, NULL);
    assert_int_equal(rig.sends[MSG_COLLECT], 2);
    assert_int_equal(rig.looks, 1); /* not gone on with */
    engine_wipe(&rig.engine);
}

static void test_drift_when_a_look_fails_then_later_and_no_cycle_fails(void **state)
{
    (void)state;
    struct rig rig;
    open_watched(&rig);
    rig_at(&rig, 10);
    rig.now_ms = 12;
    look_answer(&rig, PARTY_MONITOR, false, NULL);
    assert_int_equal(rig.engine.apps[0].look_ms, 12 + 20); /* twice `every` */
    rig_at(&rig, 32);
    rig_event(&rig, (struct engine_event){.type = EV_STAGE_DOWN, .stage = PARTY_MONITOR});
    assert_int_equal(rig.engine.look.app, -1);
    assert_int_equal(rig.engine.apps[0].drift.failures, 2);
    engine_wipe(&rig.engine);
}

static void test_drift_when_looks_are_slow_then_a_tenth_of_the_time(void **state)
{
    (void)state;
    struct rig rig;
    open_watched(&rig);
    rig_at(&rig, 10);
    rig.now_ms = 50;
    look_answer(&rig, PARTY_MONITOR, true, NULL);
    const struct drift_seen seen = {.distance = 0};
    rig.now_ms = 60;
    look_answer(&rig, PARTY_ANALYZER, true, &seen);
    assert_int_equal(rig.engine.apps[0].look_ms, 60 + 9 * 50);
    engine_wipe(&rig.engine);
}

static void test_drift_when_paused_or_off_then_nobody_looks(void **state)
{
    (void)state;
    struct rig rig;
    open_watched(&rig);
    rig_event(&rig, (struct engine_event){.type = EV_PAUSE, .app = "shop"});
    for (int64_t now = 10; now < 100; now += 10)
        rig_at(&rig, now);
    assert_int_equal(rig.looks, 0);
    rig_event(&rig, (struct engine_event){.type = EV_RESUME, .app = "shop"});
    configure(&rig, &rig_shop);
    assert_int_equal(rig.engine.apps[0].look_ms, -1);
    engine_wipe(&rig.engine);
}

static void test_drift_when_response_rises_then_cycle(void **state)
{
    (void)state;
    const struct drift_config *config = &watched.drift;
    struct drift drift;
    struct drift_seen seen = {.distance = 0.01, .has_response = true, .response = 0.6};
    drift_reset(&drift, config, 0);
    assert_false(drift_look(&drift, config, &seen, 200));
    assert_int_equal(drift.state, DRIFT_RISING);
    assert_true(drift.by_response);
    seen.response = 0.3;
    assert_true(drift_look(&drift, config, &seen, 220));
    assert_false(drift_look(&drift, config, &seen, 240)); /* once */
    drift_reset(&drift, config, 0);
    seen.response = 0.6;
    drift_look(&drift, config, &seen, 200);
    seen.response = 0.2;
    drift_look(&drift, config, &seen, 210);
    assert_int_equal(drift.state, DRIFT_CALM);
}

static void test_drift_when_traffic_is_too_little_or_noise_then_nothing(void **state)
{
    (void)state;
    const struct drift_config *config = &watched.drift;
    struct drift drift;
    struct drift_seen noise = {.distance = 0.35, .noise = 0.2}, none = {.distance = -1};
    struct drift_seen much = {.distance = 0.5};
    drift_reset(&drift, config, 0);
    for (int64_t now = 200; now < 400; now += 10)
        assert_false(drift_look(&drift, config, &noise, now));
    assert_int_equal(drift.state, DRIFT_CALM);
    assert_false(drift_look(&drift, config, &much, 400));
    assert_false(drift_look(&drift, config, &none, 500)); /* who sees nothing learns nothing */
    assert_int_equal(drift.state, DRIFT_RISING);
    assert_false(drift_look(&drift, config, &much, 510)); /* nor that it has lasted all the while */
    assert_true(drift_look(&drift, config, &much, 530));
    drift_reset(&drift, config, 0);
    assert_false(drift_look(&drift, config, &much, 600));
    assert_false(drift_look(&drift, config, &none, 610));
    assert_true(drift_look(&drift, config, &much, 620)); /* a short hole is none */
}

static void test_drift_when_paused_during_a_look_then_starts_after_the_resume(void **state)
{
    (void)state;
    struct rig rig;
    struct drift_seen seen = {.distance = 0.5};
    open_watched(&rig);
    int64_t now = 110;
    rig_at(&rig, 10);
    look_answer(&rig, PARTY_MONITOR, true, NULL);
    look_answer(&rig, PARTY_ANALYZER, true, &seen);
    rig_at(&rig, now); /* has lasted, and is no longer quiet */
    look_answer(&rig, PARTY_MONITOR, true, NULL);
    rig_event(&rig, (struct engine_event){.type = EV_PAUSE, .app = "shop"});
    look_answer(&rig, PARTY_ANALYZER, true, &seen);
    assert_int_equal(rig.engine.apps[0].drift.state, DRIFT_RISING); /* not: started */
    rig_event(&rig, (struct engine_event){.type = EV_RESUME, .app = "shop"});
    int64_t id = rig.next_id;
    look(&rig, now + 10, 0.5);
    assert_int_equal(rig.engine.apps[0].drift.state, DRIFT_STARTED);
    assert_int_equal(rig.next_id, id + 1);
    engine_wipe(&rig.engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drift_when_it_lasts_and_quiet_is_over_then_one_cycle),
        cmocka_unit_test(test_drift_when_app_is_deployed_then_not_looked_until_a_cycle),
        cmocka_unit_test(test_drift_when_cycle_comes_first_then_look_waits_and_never_blocks),
        cmocka_unit_test(test_drift_when_a_look_fails_then_later_and_no_cycle_fails),
        cmocka_unit_test(test_drift_when_looks_are_slow_then_a_tenth_of_the_time),
        cmocka_unit_test(test_drift_when_paused_or_off_then_nobody_looks),
        cmocka_unit_test(test_drift_when_response_rises_then_cycle),
        cmocka_unit_test(test_drift_when_traffic_is_too_little_or_noise_then_nothing),
        cmocka_unit_test(test_drift_when_paused_during_a_look_then_starts_after_the_resume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
