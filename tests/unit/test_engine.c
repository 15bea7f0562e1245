/* test_engine.c - the engine's rules, one fact each. The driver below plays a manager whose store
 * and stages do what the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "model/manager/engine.h"

struct rig {
    struct engine engine;
    int64_t now_ms, next_id;
    int sends[MSG_N_TYPES];
    int kills, stops, looks; /* looks: requests of looks */
};

static const struct engine_app_config shop = {.mode = MODE_ACT,
                                              .interval_ms = 1000,
                                              .interval_min_ms = 100,
                                              .interval_max_ms = 60000,
                                              .settle_ms = 50};

static void event(struct rig *rig, struct engine_event ev)
{
    ev.now_ms = rig->now_ms;
    engine_update(&rig->engine, &ev);
}

/* Does everything the engine asks for. */
static void act(struct rig *rig)
{
    struct engine_action a;
    while (engine_next_action(&rig->engine, &a)) {
        switch (a.type) {
        case ACTION_SAVE:
            event(rig, (struct engine_event){.type = EV_SAVED, .cycle = a.cycle->id});
            break;
        case ACTION_SAVE_APP:
            event(rig,
                  (struct engine_event){.type = EV_APP_SAVED, .app = rig->engine.apps[a.app].name});
            break;
        case ACTION_KILL:
            rig->kills++;
            event(rig, (struct engine_event){.type = EV_KILLED, .stage = a.stage});
            break;
        case ACTION_STOP:
            rig->stops++;
            event(rig, (struct engine_event){.type = EV_STOP_SENT, .stage = a.stage});
            break;
        case ACTION_CREATE:
            event(rig, (struct engine_event){.type = EV_CREATED, .cycle = rig->next_id++});
            break;
        case ACTION_LOOK:
            rig->looks++;
            event(rig, (struct engine_event){.type = EV_LOOKING,
                                             .stage = a.stage,
                                             .attempt = a.attempt,
                                             .value = 100});
            break;
        case ACTION_SEND:
            rig->sends[a.request]++;
            event(rig,
                  (struct engine_event){
                      .type = EV_SENT, .cycle = a.cycle->id, .attempt = a.attempt, .value = 100});
            break;
        }
    }
}

static void at(struct rig *rig, int64_t now_ms)
{
    rig->now_ms = now_ms;
    event(rig, (struct engine_event){.type = EV_TICK});
    act(rig);
}

static void open_rig(struct rig *rig)
{
    memset(rig, 0, sizeof *rig);
    rig->next_id = 1;
    engine_init(&rig->engine, 0);
    for (int p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++)
        event(rig, (struct engine_event){.type = EV_STAGE_UP, .stage = (enum party)p});
    event(rig, (struct engine_event){
                   .type = EV_APP, .app = "shop", .config = &shop, .value = -1, .interval_ms = -1});
    act(rig);
}

static void trigger(struct rig *rig, const char *app)
{
    event(rig, (struct engine_event){.type = EV_TRIGGER, .app = app, .trigger = "manual"});
    act(rig);
}

/* The stage that works on the cycle answers. */
static void answer(struct rig *rig, int64_t cycle, enum verdict verdict, int64_t value,
                   const char *reason)
{
    const struct engine_cycle *c = engine_cycle(&rig->engine, cycle);
    assert_non_null(c);
    enum party stage;
    enum message_type request;
    assert_true(engine_request(c, &stage, &request));
    event(rig, (struct engine_event){.type = EV_RESULT,
                                     .stage = stage,
                                     .cycle = cycle,
                                     .attempt = c->attempt,
                                     .verdict = verdict,
                                     .value = value,
                                     .reason = reason});
    act(rig);
}

static void answer_failure(struct rig *rig, int64_t cycle, bool again)
{
    const struct engine_cycle *c = engine_cycle(&rig->engine, cycle);
    enum party stage;
    enum message_type request;
    assert_true(engine_request(c, &stage, &request));
    event(rig, (struct engine_event){.type = EV_FAILURE,
                                     .stage = stage,
                                     .cycle = cycle,
                                     .attempt = c->attempt,
                                     .flag = again,
                                     .reason = "no answer"});
    act(rig);
}

/* A cycle of shop, up to `executing` with two moves. */
static int64_t to_executing(struct rig *rig)
{
    int64_t id = rig->next_id;
    trigger(rig, "shop");
    answer(rig, id, VERDICT_OK, 0, NULL);
    answer(rig, id, VERDICT_OK, 0, NULL);
    answer(rig, id, VERDICT_OK, 2, NULL);
    return id;
}

#define assert_state(rig, id, expected)                                                            \
    do {                                                                                           \
        const struct engine_cycle *c_ = engine_cycle(&(rig)->engine, id);                          \
        assert_non_null(c_);                                                                       \
        assert_string_equal(cycle_state_name(c_->state), cycle_state_name(expected));              \
    } while (0)
#define assert_ended(rig, id) assert_null(engine_cycle(&(rig)->engine, id))

static void test_cycle_when_all_goes_well_then_every_stage_is_asked_once(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    int64_t id = to_executing(&rig);
    assert_state(&rig, id, CYCLE_EXECUTING);
    answer(&rig, id, VERDICT_OK, 2, NULL);
    assert_state(&rig, id, CYCLE_SETTLING);
    at(&rig, 49);
    assert_state(&rig, id, CYCLE_SETTLING);
    at(&rig, 50);
    assert_state(&rig, id, CYCLE_VERIFYING);
    answer(&rig, id, VERDICT_OK, 0, NULL);
    answer(&rig, id, VERDICT_OK, 0, NULL);
    assert_ended(&rig, id);
    assert_int_equal(rig.sends[MSG_COLLECT], 2);
    assert_int_equal(rig.sends[MSG_ANALYZE], 2);
    assert_int_equal(rig.sends[MSG_PLAN], 1);
    assert_int_equal(rig.sends[MSG_EXECUTE], 1);
    assert_true(engine_idle(&rig.engine));
    engine_wipe(&rig.engine);
}

static void test_timer_when_due_then_cycle_starts_and_rearms_at_its_end(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    at(&rig, 999);
    assert_int_equal(rig.sends[MSG_COLLECT], 0);
    assert_int_equal(engine_next_ms(&rig.engine), 1000);
    at(&rig, 1000);
    assert_int_equal(rig.sends[MSG_COLLECT], 1);
    rig.now_ms = 1050;
    answer_failure(&rig, 1, false);
    assert_ended(&rig, 1);
    assert_int_equal(rig.engine.apps[0].due_ms, 2050);
    engine_wipe(&rig.engine);
}

static void test_modes_when_planned_then_observe_ends_and_propose_waits(void **state)
{
    (void)state;
    static const struct {
        enum app_mode mode;
        bool dry_run;
        enum verdict verdict;
        bool ends;
        enum cycle_state then;
    } rows[] = {
        {MODE_OBSERVE, false, VERDICT_OK, true, CYCLE_DONE},
        {MODE_PROPOSE, false, VERDICT_OK, false, CYCLE_PROPOSED},
        {MODE_PROPOSE, true, VERDICT_OK, true, CYCLE_DONE},
        {MODE_ACT, false, VERDICT_OK, false, CYCLE_EXECUTING},
        {MODE_ACT, true, VERDICT_OK, true, CYCLE_DONE},
        {MODE_ACT, false, VERDICT_NOTHING, true, CYCLE_DONE},
        {MODE_ACT, false, VERDICT_DRY, true, CYCLE_DONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        open_rig(&rig);
        rig.engine.apps[0].config.mode = rows[i].mode;
        event(&rig, (struct engine_event){.type = EV_TRIGGER,
                                          .app = "shop",
                                          .trigger = "manual",
                                          .dry_run = rows[i].dry_run});
        act(&rig);
        answer(&rig, 1, VERDICT_OK, 0, NULL);
        answer(&rig, 1, VERDICT_OK, 0, NULL);
        answer(&rig, 1, rows[i].verdict, 2, "why");
        if (rows[i].ends)
            assert_ended(&rig, 1);
        else
            assert_state(&rig, 1, rows[i].then);
        assert_int_equal(rig.sends[MSG_EXECUTE], rows[i].then == CYCLE_EXECUTING);
        engine_wipe(&rig.engine);
    }
}

static void test_proposal_when_applied_then_base_is_checked_before_it_moves(void **state)
{
    (void)state;
    for (int holds = 0; holds < 2; holds++) {
        struct rig rig;
        open_rig(&rig);
        rig.engine.apps[0].config.mode = MODE_PROPOSE;
        to_executing(&rig);
        assert_state(&rig, 1, CYCLE_PROPOSED);
        assert_true(engine_idle(&rig.engine));
        event(&rig, (struct engine_event){.type = EV_APPLY, .app = "shop", .cycle = 1});
        act(&rig);
        assert_int_equal(rig.sends[MSG_COLLECT], 2);
        answer(&rig, 1, holds ? VERDICT_OK : VERDICT_BAD, 2, holds ? NULL : "base changed");
        if (holds)
            assert_state(&rig, 1, CYCLE_EXECUTING);
        else
            assert_ended(&rig, 1);
        engine_wipe(&rig.engine);
    }
}

/* It is what the newer cycle finds that counts, not that there is one. */
static void test_proposal_when_a_newer_cycle_has_planned_then_superseded_unless_the_same(void **state)
{
    (void)state;
    static const struct {
        enum verdict verdict;
        bool dry_run, stays;
    } rows[] = {{VERDICT_OK, false, false},     {VERDICT_SAME, false, true},
                {VERDICT_NOTHING, false, false}, {VERDICT_NOTHING, true, true},
                {VERDICT_DRY, false, true},     {VERDICT_OK, true, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        open_rig(&rig);
        rig.engine.apps[0].config.mode = MODE_PROPOSE;
        to_executing(&rig);
        event(&rig, (struct engine_event){.type = EV_TRIGGER,
                                          .app = "shop",
                                          .trigger = "manual",
                                          .dry_run = rows[i].dry_run});
        act(&rig);
        assert_state(&rig, 1, CYCLE_PROPOSED);
        assert_state(&rig, 2, CYCLE_COLLECTING);
        answer(&rig, 2, VERDICT_OK, 0, NULL);
        answer(&rig, 2, VERDICT_OK, 0, NULL);
        answer(&rig, 2, rows[i].verdict, 2, NULL);
        assert_int_equal(engine_cycle(&rig.engine, 1) != NULL, rows[i].stays);
        assert_int_equal(engine_cycle(&rig.engine, 2) != NULL,
                         rows[i].verdict == VERDICT_OK && !rows[i].dry_run);
        engine_wipe(&rig.engine);
    }
}

/* A proposal that nobody looks at must not be the last one. */
static void test_proposal_when_the_timer_is_due_then_a_newer_cycle_starts(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    rig.engine.apps[0].config.mode = MODE_PROPOSE;
    at(&rig, 1000);
    for (int step = 0; step < 3; step++)
        answer(&rig, 1, VERDICT_OK, 2, NULL);
    assert_state(&rig, 1, CYCLE_PROPOSED);
    assert_int_equal(rig.engine.apps[0].due_ms, 2000);
    at(&rig, 2000);
    assert_state(&rig, 2, CYCLE_COLLECTING);
    engine_wipe(&rig.engine);
}

static void test_apply_of_an_ended_cycle_then_new_cycle_executes_its_plan(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    rig.next_id = 8;
    event(&rig, (struct engine_event){.type = EV_APPLY, .app = "shop", .cycle = 5});
    act(&rig);
    assert_int_equal(engine_cycle(&rig.engine, 8)->base, 5);
    answer(&rig, 8, VERDICT_OK, 2, NULL);
    assert_state(&rig, 8, CYCLE_EXECUTING);
    assert_int_equal(rig.sends[MSG_PLAN], 0);
    engine_wipe(&rig.engine);
}

static void test_stage_when_it_dies_then_same_request_with_next_attempt_until_three(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    trigger(&rig, "shop");
    for (int death = 1; death <= 3; death++) {
        assert_state(&rig, 1, CYCLE_COLLECTING);
        assert_int_equal(engine_cycle(&rig.engine, 1)->attempt, death);
        event(&rig, (struct engine_event){.type = EV_STAGE_DOWN, .stage = PARTY_MONITOR});
        act(&rig);
        assert_int_equal(rig.sends[MSG_COLLECT], death);
        event(&rig, (struct engine_event){.type = EV_STAGE_UP, .stage = PARTY_MONITOR});
        act(&rig);
    }
    assert_ended(&rig, 1);
    assert_int_equal(rig.sends[MSG_COLLECT], 3);
    engine_wipe(&rig.engine);
}

static void test_result_of_an_older_attempt_then_ignored(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    trigger(&rig, "shop");
    event(&rig, (struct engine_event){.type = EV_STAGE_UP, .stage = PARTY_MONITOR});
    act(&rig);
    assert_int_equal(engine_cycle(&rig.engine, 1)->attempt, 2);
    event(&rig, (struct engine_event){
                    .type = EV_RESULT, .stage = PARTY_MONITOR, .cycle = 1, .attempt = 1});
    act(&rig);
    assert_state(&rig, 1, CYCLE_COLLECTING);
    assert_true(engine_awaits(&rig.engine, PARTY_MONITOR, 1, 2));
    engine_wipe(&rig.engine);
}

static void test_deadline_when_progress_grows_then_extended_up_to_ten_times(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    trigger(&rig, "shop");
    for (int64_t t = 90; t < 1000; t += 90) { /* the timer is 1000, the allowance 100 */
        at(&rig, t);
        event(
            &rig,
            (struct engine_event){
                .type = EV_PROGRESS, .stage = PARTY_MONITOR, .cycle = 1, .attempt = 1, .value = t});
        assert_int_equal(rig.kills, 0);
    }
    at(&rig, 999);
    assert_int_equal(rig.kills, 0);
    at(&rig, 1000);
    assert_int_equal(rig.kills, 1);
    engine_wipe(&rig.engine);
}

static void test_deadline_when_counter_stands_still_then_killed(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    trigger(&rig, "shop");
    at(&rig, 90);
    for (int i = 0; i < 2; i++)
        event(
            &rig,
            (struct engine_event){
                .type = EV_PROGRESS, .stage = PARTY_MONITOR, .cycle = 1, .attempt = 1, .value = 0});
    at(&rig, 100);
    assert_int_equal(rig.kills, 1);
    assert_int_equal(rig.sends[MSG_COLLECT], 1); /* nothing to a stage that is being killed */
    engine_wipe(&rig.engine);
}

static void test_deploy_when_before_executing_then_superseded_and_timer_reset(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    trigger(&rig, "shop");
    rig.now_ms = 500;
    event(&rig, (struct engine_event){.type = EV_DEPLOY, .app = "shop", .interval_ms = 70000});
    act(&rig);
    assert_ended(&rig, 1);
    assert_int_equal(rig.engine.apps[0].due_ms, 60500); /* clamped to the longest interval */
    engine_wipe(&rig.engine);
}

static void test_deploy_when_executing_then_executor_stops_and_nothing_is_verified(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    int64_t id = to_executing(&rig);
    event(&rig, (struct engine_event){
                    .type = EV_DEPLOY, .app = "shop", .interval_ms = -1, .reason = "release 2"});
    act(&rig);
    assert_state(&rig, id, CYCLE_EXECUTING);
    assert_int_equal(rig.stops, 1);
    answer(&rig, id, VERDICT_STOPPED, 1, "stopped");
    assert_ended(&rig, id);
    engine_wipe(&rig.engine);
}

static void test_verification_when_worse_then_undone(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    int64_t id = to_executing(&rig);
    answer(&rig, id, VERDICT_OK, 2, NULL);
    at(&rig, 60);
    answer(&rig, id, VERDICT_OK, 0, NULL);
    answer(&rig, id, VERDICT_WORSE, 0, "response time 12 ms, was 8 ms");
    assert_state(&rig, id, CYCLE_UNDOING);
    assert_int_equal(rig.sends[MSG_EXECUTE], 2);
    assert_string_equal(engine_cycle(&rig.engine, id)->reason, "response time 12 ms, was 8 ms");
    answer(&rig, id, VERDICT_OK, 0, NULL);
    assert_ended(&rig, id);
    engine_wipe(&rig.engine);
}

static void test_undo_when_cycle_is_done_then_it_goes_on_with_new_attempts(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    event(&rig, (struct engine_event){.type = EV_UNDO,
                                      .app = "shop",
                                      .cycle = 4,
                                      .state = CYCLE_DONE,
                                      .attempt = 7,
                                      .value = 3});
    act(&rig);
    assert_state(&rig, 4, CYCLE_UNDOING);
    assert_int_equal(engine_cycle(&rig.engine, 4)->attempt, 8);
    answer(&rig, 4, VERDICT_OK, 0, NULL);
    assert_ended(&rig, 4);
    engine_wipe(&rig.engine);
}

static void test_two_apps_when_both_due_then_one_cycle_at_a_time_in_order(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    event(&rig,
          (struct engine_event){
              .type = EV_APP, .app = "blog", .config = &shop, .value = -1, .interval_ms = -1});
    trigger(&rig, "blog");
    rig.now_ms = 1;
    trigger(&rig, "shop");
    assert_int_equal(rig.engine.n_cycles, 1);
    assert_int_equal(rig.engine.token, 1);
    answer_failure(&rig, 1, false);
    assert_int_equal(rig.engine.token, 2);
    assert_int_equal(engine_cycle(&rig.engine, 2)->app, 0);
    engine_wipe(&rig.engine);
}

static void test_settling_when_another_app_is_due_then_it_runs_meanwhile(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    event(&rig,
          (struct engine_event){
              .type = EV_APP, .app = "blog", .config = &shop, .value = -1, .interval_ms = -1});
    int64_t id = to_executing(&rig);
    answer(&rig, id, VERDICT_OK, 1, NULL);
    trigger(&rig, "blog");
    assert_state(&rig, id, CYCLE_SETTLING);
    assert_state(&rig, id + 1, CYCLE_COLLECTING);
    at(&rig, 60); /* verifying has to wait for the monitor, which works for blog */
    assert_state(&rig, id, CYCLE_VERIFYING);
    assert_false(engine_cycle(&rig.engine, id)->sent);
    answer(&rig, id + 1, VERDICT_OK, 0, NULL);
    assert_true(engine_cycle(&rig.engine, id)->sent);
    engine_wipe(&rig.engine);
}

static void test_restore_when_remap_was_killed_then_table_of_the_design_holds(void **state)
{
    (void)state;
    static const struct {
        enum cycle_state was;
        bool ended;
        int executes;
    } rows[] = {
        {CYCLE_COLLECTING, true, 0}, {CYCLE_ANALYZING, true, 0},  {CYCLE_PLANNING, true, 0},
        {CYCLE_PROPOSED, false, 0},  {CYCLE_EXECUTING, false, 1}, {CYCLE_SETTLING, false, 0},
        {CYCLE_VERIFYING, false, 0}, {CYCLE_UNDOING, false, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        open_rig(&rig);
        event(&rig, (struct engine_event){.type = EV_RESTORE,
                                          .app = "shop",
                                          .cycle = 9,
                                          .state = rows[i].was,
                                          .attempt = 3,
                                          .value = 77});
        act(&rig);
        if (rows[i].ended)
            assert_ended(&rig, 9);
        else
            assert_state(&rig, 9, rows[i].was);
        assert_int_equal(rig.sends[MSG_EXECUTE], rows[i].executes);
        if (rows[i].was == CYCLE_SETTLING) {
            at(&rig, 76);
            assert_state(&rig, 9, CYCLE_SETTLING);
            at(&rig, 77);
            assert_state(&rig, 9, CYCLE_VERIFYING);
        }
        engine_wipe(&rig.engine);
    }
}

static void test_execute_when_a_move_is_left_open_then_asked_again(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    int64_t id = to_executing(&rig);
    const struct engine_cycle *c = engine_cycle(&rig.engine, id);
    event(&rig, (struct engine_event){.type = EV_RESULT,
                                      .stage = PARTY_EXECUTOR,
                                      .cycle = id,
                                      .attempt = c->attempt,
                                      .flag = true,
                                      .value = 1});
    act(&rig);
    assert_state(&rig, id, CYCLE_EXECUTING);
    at(&rig, ENGINE_RETRY_MS);
    assert_int_equal(rig.sends[MSG_EXECUTE], 2);
    engine_wipe(&rig.engine);
}

static void test_restore_when_paused_while_executing_then_only_clears_up(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    event(&rig, (struct engine_event){.type = EV_PAUSE, .app = "shop"});
    event(
        &rig,
        (struct engine_event){
            .type = EV_RESTORE, .app = "shop", .cycle = 9, .state = CYCLE_EXECUTING, .attempt = 3});
    act(&rig);
    assert_int_equal(engine_cycle(&rig.engine, 9)->stop, STOP_PAUSE);
    assert_int_equal(rig.sends[MSG_EXECUTE], 1);
    assert_int_equal(rig.stops, 0); /* the request knows */
    answer(&rig, 9, VERDICT_OK, 0, NULL);
    assert_ended(&rig, 9);
    engine_wipe(&rig.engine);
}

static void test_store_when_full_while_planning_then_cycle_fails_once_it_works(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    trigger(&rig, "shop");
    const struct engine_cycle *c = engine_cycle(&rig.engine, 1);
    event(&rig, (struct engine_event){
                    .type = EV_RESULT, .stage = PARTY_MONITOR, .cycle = 1, .attempt = c->attempt});
    event(&rig, (struct engine_event){.type = EV_STORE_FAILED, .reason = "disk full"});
    act(&rig);
    assert_state(&rig, 1, CYCLE_FAILED); /* not saved yet */
    assert_string_equal(engine_cycle(&rig.engine, 1)->reason, "store: disk full");
    assert_int_equal(engine_next_ms(&rig.engine), 1000);
    at(&rig, ENGINE_STORE_RETRY_MS);
    assert_ended(&rig, 1);
    engine_wipe(&rig.engine);
}

static void test_store_when_full_while_executing_then_cleared_up_then_failed(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    int64_t id = to_executing(&rig);
    event(&rig, (struct engine_event){.type = EV_STORE_FAILED, .reason = "disk full"});
    act(&rig);
    assert_int_equal(rig.stops, 1);
    answer(&rig, id, VERDICT_STOPPED, 1, "stopped");
    assert_state(&rig, id, CYCLE_FAILED); /* waits for the disk */
    at(&rig, ENGINE_STORE_RETRY_MS);
    assert_ended(&rig, id);
    engine_wipe(&rig.engine);
}

static void test_pause_when_executing_then_stops_and_verifies_what_moved(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    int64_t id = to_executing(&rig);
    event(&rig, (struct engine_event){.type = EV_PAUSE, .app = "shop"});
    act(&rig);
    assert_int_equal(rig.stops, 1);
    answer(&rig, id, VERDICT_STOPPED, 1, NULL);
    assert_state(&rig, id, CYCLE_SETTLING);
    struct engine_event ev = {.type = EV_TRIGGER, .app = "shop", .trigger = "manual"};
    assert_string_equal(engine_refuses(&rig.engine, &ev), "paused");
    event(&rig, (struct engine_event){.type = EV_RESUME, .app = "shop"});
    assert_null(engine_refuses(&rig.engine, &ev));
    engine_wipe(&rig.engine);
}

static void test_shutdown_when_executing_then_state_stays_for_the_next_start(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    int64_t id = to_executing(&rig);
    event(&rig, (struct engine_event){.type = EV_SHUTDOWN});
    act(&rig);
    assert_int_equal(rig.stops, 1);
    assert_false(engine_quiet(&rig.engine));
    answer(&rig, id, VERDICT_STOPPED, 1, "stopped");
    assert_state(&rig, id, CYCLE_EXECUTING);
    assert_true(engine_quiet(&rig.engine));
    assert_int_equal(rig.sends[MSG_EXECUTE], 1);
    engine_wipe(&rig.engine);
}

static void test_app_when_no_longer_configured_then_its_cycle_is_superseded(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    trigger(&rig, "shop");
    event(&rig, (struct engine_event){.type = EV_APP_GONE, .app = "shop"});
    act(&rig);
    assert_ended(&rig, 1);
    at(&rig, 100000);
    assert_int_equal(rig.sends[MSG_COLLECT], 1);
    engine_wipe(&rig.engine);
}

/* --- looks between cycles --- */

static const struct engine_app_config watched = {
    .mode = MODE_OBSERVE,
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
    event(rig, (struct engine_event){.type = EV_APP, .app = "shop", .config = config});
    act(rig);
}

/* The stage that works on the look answers. */
static void look_answer(struct rig *rig, enum party stage, bool well, const struct drift_seen *seen)
{
    event(rig, (struct engine_event){.type = well ? EV_RESULT : EV_FAILURE,
                                     .stage = stage,
                                     .cycle = ENGINE_LENT,
                                     .attempt = rig->engine.stages[stage].attempt,
                                     .seen = seen});
    act(rig);
}

/* A whole look at this time, which must be due. */
static void look(struct rig *rig, int64_t now_ms, double distance)
{
    struct drift_seen seen = {.distance = distance};
    int before = rig->looks;
    at(rig, now_ms);
    assert_int_equal(rig->looks, before + 1);
    look_answer(rig, PARTY_MONITOR, true, NULL);
    assert_int_equal(rig->looks, before + 2);
    look_answer(rig, PARTY_ANALYZER, true, &seen);
}

/* A cycle that plans and ends as a dry one at time 0, then looks. */
static void open_watched(struct rig *rig)
{
    open_rig(rig);
    configure(rig, &watched);
    int64_t id = rig->next_id;
    trigger(rig, "shop");
    answer(rig, id, VERDICT_OK, 0, NULL);
    answer(rig, id, VERDICT_OK, 0, NULL);
    answer(rig, id, VERDICT_OK, 1, NULL);
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
    at(&rig, 190); /* nobody looks while the cycle runs */
    assert_state(&rig, 2, CYCLE_COLLECTING);
    answer(&rig, 2, VERDICT_OK, 0, NULL);
    answer(&rig, 2, VERDICT_OK, 0, NULL);
    answer(&rig, 2, VERDICT_NOTHING, 0, NULL);
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
    at(&rig, 10); /* a look is under way */
    event(&rig, (struct engine_event){.type = EV_DEPLOY, .app = "shop", .interval_ms = -1});
    act(&rig);
    assert_int_equal(rig.engine.apps[0].reference, 0);
    look_answer(&rig, PARTY_MONITOR, true, NULL); /* of a look that was given up */
    at(&rig, 1000);
    assert_int_equal(rig.looks, 1);
    trigger(&rig, "shop");
    for (int i = 0; i < 3; i++)
        answer(&rig, 2, VERDICT_OK, 1, NULL);
    look(&rig, 1010, 0);
    engine_wipe(&rig.engine);
}

static void test_drift_when_cycle_comes_first_then_look_waits_and_never_blocks(void **state)
{
    (void)state;
    struct rig rig;
    open_watched(&rig);
    at(&rig, 10);
    assert_int_equal(rig.looks, 1);
    trigger(&rig, "shop"); /* has to wait for the monitor alone */
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
    at(&rig, 10);
    rig.now_ms = 12;
    look_answer(&rig, PARTY_MONITOR, false, NULL);
    assert_int_equal(rig.engine.apps[0].look_ms, 12 + 20); /* twice `every` */
    at(&rig, 32);
    event(&rig, (struct engine_event){.type = EV_STAGE_DOWN, .stage = PARTY_MONITOR});
    assert_int_equal(rig.engine.look.app, -1);
    assert_int_equal(rig.engine.apps[0].drift.failures, 2);
    engine_wipe(&rig.engine);
}

static void test_drift_when_looks_are_slow_then_a_tenth_of_the_time(void **state)
{
    (void)state;
    struct rig rig;
    open_watched(&rig);
    at(&rig, 10);
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
    event(&rig, (struct engine_event){.type = EV_PAUSE, .app = "shop"});
    for (int64_t now = 10; now < 100; now += 10)
        at(&rig, now);
    assert_int_equal(rig.looks, 0);
    event(&rig, (struct engine_event){.type = EV_RESUME, .app = "shop"});
    configure(&rig, &shop);
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
    at(&rig, 10);
    look_answer(&rig, PARTY_MONITOR, true, NULL);
    look_answer(&rig, PARTY_ANALYZER, true, &seen);
    at(&rig, now); /* has lasted, and is no longer quiet */
    look_answer(&rig, PARTY_MONITOR, true, NULL);
    event(&rig, (struct engine_event){.type = EV_PAUSE, .app = "shop"});
    look_answer(&rig, PARTY_ANALYZER, true, &seen);
    assert_int_equal(rig.engine.apps[0].drift.state, DRIFT_RISING); /* not: started */
    event(&rig, (struct engine_event){.type = EV_RESUME, .app = "shop"});
    int64_t id = rig.next_id;
    look(&rig, now + 10, 0.5);
    assert_int_equal(rig.engine.apps[0].drift.state, DRIFT_STARTED);
    assert_int_equal(rig.next_id, id + 1);
    engine_wipe(&rig.engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cycle_when_all_goes_well_then_every_stage_is_asked_once),
        cmocka_unit_test(test_timer_when_due_then_cycle_starts_and_rearms_at_its_end),
        cmocka_unit_test(test_modes_when_planned_then_observe_ends_and_propose_waits),
        cmocka_unit_test(test_proposal_when_applied_then_base_is_checked_before_it_moves),
        cmocka_unit_test(
            test_proposal_when_a_newer_cycle_has_planned_then_superseded_unless_the_same),
        cmocka_unit_test(test_proposal_when_the_timer_is_due_then_a_newer_cycle_starts),
        cmocka_unit_test(test_apply_of_an_ended_cycle_then_new_cycle_executes_its_plan),
        cmocka_unit_test(test_stage_when_it_dies_then_same_request_with_next_attempt_until_three),
        cmocka_unit_test(test_result_of_an_older_attempt_then_ignored),
        cmocka_unit_test(test_deadline_when_progress_grows_then_extended_up_to_ten_times),
        cmocka_unit_test(test_deadline_when_counter_stands_still_then_killed),
        cmocka_unit_test(test_deploy_when_before_executing_then_superseded_and_timer_reset),
        cmocka_unit_test(test_deploy_when_executing_then_executor_stops_and_nothing_is_verified),
        cmocka_unit_test(test_verification_when_worse_then_undone),
        cmocka_unit_test(test_undo_when_cycle_is_done_then_it_goes_on_with_new_attempts),
        cmocka_unit_test(test_two_apps_when_both_due_then_one_cycle_at_a_time_in_order),
        cmocka_unit_test(test_settling_when_another_app_is_due_then_it_runs_meanwhile),
        cmocka_unit_test(test_restore_when_remap_was_killed_then_table_of_the_design_holds),
        cmocka_unit_test(test_execute_when_a_move_is_left_open_then_asked_again),
        cmocka_unit_test(test_restore_when_paused_while_executing_then_only_clears_up),
        cmocka_unit_test(test_store_when_full_while_planning_then_cycle_fails_once_it_works),
        cmocka_unit_test(test_store_when_full_while_executing_then_cleared_up_then_failed),
        cmocka_unit_test(test_pause_when_executing_then_stops_and_verifies_what_moved),
        cmocka_unit_test(test_shutdown_when_executing_then_state_stays_for_the_next_start),
        cmocka_unit_test(test_app_when_no_longer_configured_then_its_cycle_is_superseded),
        cmocka_unit_test(test_drift_when_it_lasts_and_quiet_is_over_then_one_cycle),
        cmocka_unit_test(test_drift_when_app_is_deployed_then_not_looked_until_a_cycle),
        cmocka_unit_test(test_drift_when_cycle_comes_first_then_look_waits_and_never_blocks),
        cmocka_unit_test(test_drift_when_a_look_fails_then_later_and_no_cycle_fails),
        cmocka_unit_test(test_drift_when_looks_are_slow_then_a_tenth_of_the_time),
        cmocka_unit_test(test_drift_when_paused_or_off_then_nobody_looks),
        cmocka_unit_test(test_drift_when_response_rises_then_cycle),
        cmocka_unit_test(test_drift_when_paused_during_a_look_then_starts_after_the_resume),
        cmocka_unit_test(test_drift_when_traffic_is_too_little_or_noise_then_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
