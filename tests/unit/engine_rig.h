/* engine_rig.h - drives the engine as a manager would whose store and stages do what the test says.
 * Include after cmocka.h. */
#ifndef REMAP_TESTS_ENGINE_RIG_H
#define REMAP_TESTS_ENGINE_RIG_H

#include "model/manager/engine.h"

struct rig {
    struct engine engine;
    int64_t now_ms, next_id;
    int sends[MSG_N_TYPES];
    int kills, stops, looks; /* looks: requests of looks */
};

/* The app `shop`: mode act, a cycle each 1,000 ms, 50 ms to settle. */
extern const struct engine_app_config rig_shop;

/* A new engine at time 0 whose stages are up, with shop. engine_wipe(&rig->engine) ends it. */
void rig_open(struct rig *rig);
void rig_event(struct rig *rig, struct engine_event ev);
/* Does everything the engine asks for. */
void rig_act(struct rig *rig);
void rig_at(struct rig *rig, int64_t now_ms);
void rig_trigger(struct rig *rig, const char *app);
/* The stage that works on the cycle answers, or fails. */
void rig_answer(struct rig *rig, int64_t cycle, enum verdict verdict, int64_t value,
                const char *reason);
void rig_answer_failure(struct rig *rig, int64_t cycle, bool again);
/* A cycle of shop, up to `executing` with two moves. */
int64_t rig_to_executing(struct rig *rig);

#define assert_state(rig, id, expected)                                                            \
    do {                                                                                           \
        const struct engine_cycle *c_ = engine_cycle(&(rig)->engine, id);                          \
        assert_non_null(c_);                                                                       \
        assert_string_equal(cycle_state_name(c_->state), cycle_state_name(expected));              \
    } while (0)
#define assert_ended(rig, id) assert_null(engine_cycle(&(rig)->engine, id))

#endif
