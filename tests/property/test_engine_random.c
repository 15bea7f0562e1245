/* test_engine_random.c - thousands of random event orders: the engine never leaves its graph, never
 * has two requests out at the executor or two cycles with the token, never uses an attempt twice,
 * hears no old answer, and every cycle ends once the world behaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/manager/engine.h"

#define SEQUENCES 3000
#define EVENTS 1500
#define APPS 3

struct seen { /* what a watcher of the engine remembers of a cycle */
    int64_t id, attempt;
    enum cycle_state state;
};

struct world {
    uint64_t random;
    struct engine engine;
    int64_t now_ms, next_id;
    struct seen seen[1000];
    size_t n_seen;
    int64_t look; /* the attempt of the last look */
    bool executor_asked; /* a request is out there, by our own count */
    bool store_works;
};

static const char *const apps[APPS] = {"blog", "mail", "shop"};

static uint64_t roll(struct world *w, uint64_t n)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random % n;
}

static struct seen *seen(struct world *w, int64_t id)
{
    for (size_t i = 0; i < w->n_seen; i++)
        if (w->seen[i].id == id)
            return &w->seen[i];
    assert_true(w->n_seen < sizeof w->seen / sizeof *w->seen);
    struct seen *s = &w->seen[w->n_seen++];
    *s = (struct seen){.id = id, .state = CYCLE_COLLECTING};
    return s;
}

/* Is `to` reachable from `from` in at most three edges? One event may take several (an answer and a
 * due settle time, say), never one that is not there. */
static bool reachable(enum cycle_state from, enum cycle_state to, int edges)
{
    if (from == to)
        return true;
    for (int via = 0; edges > 0 && via < CYCLE_N_STATES; via++)
        if (cycle_may(from, (enum cycle_state)via) &&
            reachable((enum cycle_state)via, to, edges - 1))
            return true;
    return false;
}

static void check(struct world *w, enum engine_event_type type)
{
    int holders = 0, executing = 0;
    for (size_t i = 0; i < w->engine.n_cycles; i++) {
        const struct engine_cycle *c = &w->engine.cycles[i];
        struct seen *s = seen(w, c->id);
        enum cycle_state from = type == EV_STORE_FAILED ? c->saved : s->state;
        assert_true(reachable(from, c->state, 2));
        assert_true(c->attempt >= s->attempt);
        s->state = c->state;
        s->attempt = c->attempt;
        holders += c->id == w->engine.token;
        executing += c->sent && (c->state == CYCLE_EXECUTING || c->state == CYCLE_UNDOING);
        bool with_token = c->state == CYCLE_COLLECTING || c->state == CYCLE_ANALYZING ||
                          c->state == CYCLE_PLANNING ||
                          (c->sent && (c->state == CYCLE_EXECUTING || c->state == CYCLE_UNDOING));
        if (with_token)
            assert_int_equal(c->id, w->engine.token);
    }
    assert_true(holders <= 1);
    assert_int_equal(w->engine.token != 0, holders);
    assert_true(executing <= 1);
}

static void event(struct world *w, struct engine_event ev)
{
    ev.now_ms = w->now_ms;
    engine_update(&w->engine, &ev);
    check(w, ev.type);
}

/* One action of the engine, done or failed as the world pleases. */
static bool act(struct world *w)
{
    struct engine_action a, again;
    if (!engine_next_action(&w->engine, &a))
        return false;
    assert_true(engine_next_action(&w->engine, &again));
    assert_int_equal(a.type, again.type); /* asking changes nothing */
    assert_ptr_equal(a.cycle, again.cycle);
    switch (a.type) {
    case ACTION_SAVE:
    case ACTION_SAVE_APP:
    case ACTION_CREATE:
        if (!w->store_works)
            event(w, (struct engine_event){.type = EV_STORE_FAILED, .reason = "disk full"});
        else if (a.type == ACTION_SAVE)
            event(w, (struct engine_event){.type = EV_SAVED, .cycle = a.cycle->id});
        else if (a.type == ACTION_CREATE)
            event(w, (struct engine_event){.type = EV_CREATED, .cycle = w->next_id++});
        else
            event(w,
                  (struct engine_event){.type = EV_APP_SAVED, .app = w->engine.apps[a.app].name});
        break;
    case ACTION_KILL:
        if (a.stage == PARTY_EXECUTOR)
            w->executor_asked = false;
        event(w, (struct engine_event){.type = EV_KILLED, .stage = a.stage});
        break;
    case ACTION_STOP:
        event(w, (struct engine_event){.type = EV_STOP_SENT, .stage = a.stage});
        break;
    case ACTION_LOOK:
        assert_true(a.attempt > w->look);
        assert_int_equal(w->engine.stages[a.stage].cycle, 0);
        w->look = a.attempt;
        event(w, (struct engine_event){
                     .type = EV_LOOKING, .stage = a.stage, .attempt = a.attempt, .value = 100});
        if (roll(w, 10) == 0) /* it could not be sent */
            event(w, (struct engine_event){.type = EV_FAILURE,
                                           .stage = a.stage,
                                           .cycle = ENGINE_LENT,
                                           .attempt = a.attempt});
        break;
    case ACTION_SEND:
        if (a.stage == PARTY_EXECUTOR) {
            assert_false(w->executor_asked); /* never two */
            w->executor_asked = true;
        }
        assert_true(a.attempt > seen(w, a.cycle->id)->attempt);
        event(w, (struct engine_event){
                     .type = EV_SENT, .cycle = a.cycle->id, .attempt = a.attempt, .value = 100});
        break;
    }
    return true;
}

static void answer(struct world *w, enum party stage, bool well)
{
    const struct engine_stage *s = &w->engine.stages[stage];
    if (!s->cycle)
        return;
    const struct drift_seen seen = {.distance = (double)roll(w, 100) / 100};
    struct engine_event ev = {.type = well || roll(w, 3) ? EV_RESULT : EV_FAILURE,
                              .seen = &seen,
                              .stage = stage,
                              .cycle = s->cycle,
                              .attempt = s->attempt,
                              .verdict = well ? VERDICT_OK : (enum verdict)roll(w, 7),
                              .value = (int64_t)roll(w, 3),
                              .flag = roll(w, 2) == 0,
                              .reason = "as it happens"};
    if (stage == PARTY_EXECUTOR)
        w->executor_asked = false;
    event(w, ev);
}

static void random_event(struct world *w)
{
    static const struct engine_app_config other = {.mode = MODE_PROPOSE,
                                                   .interval_ms = 700,
                                                   .interval_min_ms = 50,
                                                   .interval_max_ms = 5000,
                                                   .settle_ms = 10,
                                                   .drift = {.every_ms = 90,
                                                             .affinity = 0.5,
                                                             .affinity_leave = 0.3}};
    enum party stage = (enum party)(PARTY_MONITOR + roll(w, 4));
    const char *app = apps[roll(w, APPS)];
    int64_t cycle = (int64_t)roll(w, (uint64_t)w->next_id + 1);
    struct engine_event ev = {.app = app, .cycle = cycle, .stage = stage, .trigger = "manual"};
    switch (roll(w, 26)) {
    case 0:
        ev.type = EV_TRIGGER;
        ev.dry_run = roll(w, 4) == 0;
        break;
    case 1:
        ev.type = EV_DEPLOY;
        ev.interval_ms = (int64_t)roll(w, 10000) - 1;
        break;
    case 2:
        ev.type = roll(w, 2) ? EV_PAUSE : EV_RESUME;
        break;
    case 3:
        ev.type = EV_RESUME;
        break;
    case 4:
        ev.type = EV_APPLY;
        break;
    case 5: /* of a cycle that the store says has ended */
        if (engine_cycle(&w->engine, cycle) || cycle <= 0)
            return;
        ev.type = EV_UNDO;
        ev.state = seen(w, cycle)->state;
        if (!cycle_ended(ev.state))
            return;
        ev.attempt = seen(w, cycle)->attempt;
        ev.value = (int64_t)roll(w, 2);
        break;
    case 6: /* the death of a stage, and its next life */
        if (roll(w, 2))
            return;
        if (stage == PARTY_EXECUTOR)
            w->executor_asked = false;
        ev.type = EV_STAGE_DOWN;
        break;
    case 7:
        w->store_works = w->store_works ? roll(w, 8) != 0 : roll(w, 2) != 0;
        return;
    case 8: /* an answer of long ago */
        ev.type = roll(w, 2) ? EV_RESULT : EV_FAILURE;
        if (engine_cycle(&w->engine, cycle))
            ev.attempt = engine_cycle(&w->engine, cycle)->attempt - 1;
        if (engine_awaits(&w->engine, stage, cycle, ev.attempt))
            return;
        break;
    case 9:
        ev.type = EV_APP;
        ev.config = &other;
        break;
    case 10:
        ev.type = roll(w, 8) ? EV_TICK : EV_APP_GONE;
        break;
    case 11:
        ev.type = EV_PROGRESS;
        ev.cycle = w->engine.stages[stage].cycle;
        ev.attempt = w->engine.stages[stage].attempt;
        ev.value = (int64_t)roll(w, 100);
        break;
    case 12:
    case 13:
        w->now_ms += (int64_t)roll(w, 400);
        ev.type = EV_TICK;
        break;
    case 14: /* the manager asks the executor for something of its own */
        if (!w->engine.stages[PARTY_EXECUTOR].up || w->engine.stages[PARTY_EXECUTOR].cycle)
            return;
        assert_false(w->executor_asked);
        w->executor_asked = true;
        ev.type = EV_LENT;
        ev.stage = PARTY_EXECUTOR;
        ev.attempt = w->now_ms;
        ev.value = 100;
        break;
    case 15:
        if (w->engine.stages[stage].up)
            return;
        if (stage == PARTY_EXECUTOR)
            w->executor_asked = false;
        ev.type = EV_STAGE_UP;
        break;
    default:
        answer(w, stage, roll(w, 3) != 0);
        return;
    }
    event(w, ev);
}

/* The world behaves: everything up, every request answered well, time goes on. */
static void calm_down(struct world *w)
{
    w->store_works = true;
    for (int i = 0; i < APPS; i++)
        event(w, (struct engine_event){.type = EV_PAUSE, .app = apps[i]});
    for (int turn = 0; turn < 2000 && !engine_idle(&w->engine); turn++) {
        while (act(w)) {
        }
        for (int p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++) {
            if (!w->engine.stages[p].up) {
                event(w, (struct engine_event){.type = EV_STAGE_DOWN, .stage = (enum party)p});
                event(w, (struct engine_event){.type = EV_STAGE_UP, .stage = (enum party)p});
                if (p == PARTY_EXECUTOR)
                    w->executor_asked = false;
            }
            answer(w, (enum party)p, true);
        }
        w->now_ms += 50;
        event(w, (struct engine_event){.type = EV_TICK});
    }
    assert_true(engine_idle(&w->engine));
    for (size_t i = 0; i < w->engine.n_cycles; i++)
        assert_int_equal(w->engine.cycles[i].state, CYCLE_PROPOSED);
}

static void test_engine_when_events_come_in_any_order_then_it_stays_in_its_graph(void **state)
{
    (void)state;
    static const struct engine_app_config config = {.mode = MODE_ACT,
                                                    .interval_ms = 900,
                                                    .interval_min_ms = 100,
                                                    .interval_max_ms = 5000,
                                                    .settle_ms = 60,
                                                    .drift = {.every_ms = 100,
                                                              .for_ms = 100,
                                                              .quiet_ms = 300,
                                                              .affinity = 0.4,
                                                              .affinity_leave = 0.2}};
    size_t drifts = 0;
    size_t reached[CYCLE_N_STATES] = {0};
    struct world *w = mem_alloc(sizeof *w);
    for (int sequence = 0; sequence < SEQUENCES; sequence++) {
        memset(w, 0, sizeof *w);
        w->random = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(sequence + 1);
        w->next_id = 1;
        w->store_works = true;
        engine_init(&w->engine, 0);
        for (int i = 0; i < APPS; i++)
            event(w, (struct engine_event){.type = EV_APP,
                                           .app = apps[i],
                                           .config = &config,
                                           .value = -1,
                                           .interval_ms = -1});
        for (int p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++)
            event(w, (struct engine_event){.type = EV_STAGE_UP, .stage = (enum party)p});
        for (int i = 0; i < EVENTS; i++) {
            random_event(w);
            for (uint64_t n = roll(w, 10); n > 0 && act(w); n--) {
            }
            for (size_t c = 0; c < w->engine.n_cycles; c++) {
                reached[w->engine.cycles[c].state]++;
                drifts += w->engine.cycles[c].by_drift;
            }
        }
        calm_down(w);
        engine_wipe(&w->engine);
    }
    free(w);
    for (int s = 0; s < CYCLE_N_STATES; s++) /* the walk has seen every state */
        assert_true(reached[s] > 100);
    assert_true(drifts > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_when_events_come_in_any_order_then_it_stays_in_its_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
