/* test_adopt.c - marks of an earlier daemon, found by one whose store is empty (interfaces.md 1.9 rule
 * 15): which moves stay, which are put back, and when; with an orchestrator that answers as told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/keep_internal.h"
#include "model/base/clock.h"

#define MINUTE INT64_C(60000)

static struct {
    int64_t at_ms;           /* of the mark */
    enum settle_state state; /* what the cluster shows of it */
    enum err_kind undo;      /* how an undo goes */
    int undone;
    char said[400], announced[40];
} world;

void kept_say(struct kept *kept, const char *app, const char *kind, const char *text)
{
    (void)kept;
    (void)app;
    assert_string_equal(kind, "adopted");
    snprintf(world.said, sizeof world.said, "%s", text);
}

bool kept_knows(const struct kept *kept, const struct keeper_mark *mark)
{
    (void)kept;
    (void)mark;
    return false; /* the store is empty */
}

static int marks(void *ctx, const struct app_scope *app,
                 void (*each)(void *arg, const struct keeper_mark *mark), void *arg,
                 struct err *err)
{
    static const struct placement_count target = {"n2", 1};
    const struct keeper_mark mark = {
        .placement = {
            .cycle = 7, .seq = 2, .service = "shop/web", .targets = &target, .n_targets = 1},
        .at_ms = world.at_ms,
        .saved = "{}"};
    (void)ctx;
    (void)app;
    (void)err;
    each(arg, &mark);
    return 0;
}

void kept_tell(struct kept *kept, const struct announcement *what)
{
    (void)kept;
    snprintf(world.announced, sizeof world.announced, "%s", what->state);
}

static int fake_open(const struct source *source, void **ctx, struct err *err)
{
    (void)source;
    (void)err;
    *ctx = &world;
    return 0;
}

static void fake_close(void *ctx)
{
    (void)ctx;
}

static int settled(void *ctx, const struct placement *p, struct settle_report *out, struct err *err)
{
    (void)ctx;
    (void)err;
    assert_string_equal(p->targets[0].host, "n2");
    out->state = world.state;
    snprintf(out->detail, sizeof out->detail, "0 of 1 ready");
    return 0;
}

static int undo(void *ctx, const struct placement *p, const char *saved, struct err *err)
{
    (void)ctx;
    (void)p;
    assert_string_equal(saved, "{}");
    world.undone++;
    return world.undo ? err_set(err, world.undo, "somebody else's by now") : 0;
}

static const struct keeper keeper = {.marks = marks};
static const struct orchestrator orchestrator = {.name = "fake",
                                                 .marks = true,
                                                 .open = fake_open,
                                                 .settled = settled,
                                                 .undo = undo,
                                                 .close = fake_close,
                                                 .keeper = &keeper};

static struct kept_app app = {.scope = {.name = "shop"}};

static struct kept kept_of(int64_t age_ms, enum settle_state state)
{
    memset(&world, 0, sizeof world);
    world.at_ms = clock_wall_ms() - age_ms;
    world.state = state;
    return (struct kept){.orchestrator = &orchestrator,
                         .apps = &app,
                         .n_apps = 1,
                         .configured = true,
                         .adopt_ms = 10 * MINUTE};
}

static void test_rule_15_move_of_another_when_not_ready_for_too_long_is_put_back(void **state)
{
    (void)state;
    struct kept kept = kept_of(11 * MINUTE, SETTLE_WAITING);
    assert_true(kept_adopt(&kept));
    assert_int_equal(world.undone, 1);
    assert_string_equal(world.announced, "undone");
    assert_string_equal(world.said, "shop/web: move 7/2 of an earlier daemon put back: it did not "
                                    "get ready: 0 of 1 ready");
}

static void test_rule_15_move_of_another_when_still_in_its_time_is_waited_for(void **state)
{
    (void)state;
    struct kept kept = kept_of(1 * MINUTE, SETTLE_WAITING);
    assert_false(kept_adopt(&kept));
    assert_false(kept_adopt(&kept));
    assert_int_equal(world.undone, 0);
    kept.adopt_ms = 1 * MINUTE; /* now it is over */
    assert_true(kept_adopt(&kept));
    assert_int_equal(world.undone, 1);

    kept = kept_of(1 * MINUTE, SETTLE_WAITING);
    assert_false(kept_adopt(&kept));
    world.state = SETTLE_APPLIED;
    assert_true(kept_adopt(&kept));
    assert_int_equal(world.undone, 0);
    assert_string_equal(world.said, "1 moves of an earlier daemon are done");
}

static void test_rule_15_move_of_another_when_at_its_end_stays_and_when_failed_does_not(
    void **state)
{
    (void)state;
    static const struct {
        enum settle_state state;
        enum err_kind undo;
        int undone;
        const char *said;
    } rows[] = {
        {SETTLE_APPLIED, ERR_NONE, 0, "1 moves of an earlier daemon are done"},
        {SETTLE_PARTIAL, ERR_NONE, 0, "1 moves of an earlier daemon are done"},
        {SETTLE_MISSED, ERR_NONE, 0, "1 moves of an earlier daemon are done"},
        {SETTLE_DISPLACED, ERR_NONE, 0, "1 moves of an earlier daemon are done"},
        {SETTLE_FAILED, ERR_NONE, 1, "put back: it failed: 0 of 1 ready"},
        {SETTLE_FAILED, ERR_CONFLICT, 1, "left as it is: it failed: 0 of 1 ready; somebody else's"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kept kept = kept_of(1 * MINUTE, rows[i].state);
        world.undo = rows[i].undo;
        assert_true(kept_adopt(&kept));
        assert_int_equal(world.undone, rows[i].undone);
        assert_non_null(strstr(world.said, rows[i].said));
    }
    struct kept kept = kept_of(1 * MINUTE, SETTLE_FAILED);
    world.undo = ERR_UNREACHABLE; /* as often as it takes */
    assert_false(kept_adopt(&kept));
    world.undo = ERR_NONE;
    assert_true(kept_adopt(&kept));
    assert_int_equal(world.undone, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule_15_move_of_another_when_not_ready_for_too_long_is_put_back),
        cmocka_unit_test(test_rule_15_move_of_another_when_still_in_its_time_is_waited_for),
        cmocka_unit_test(
            test_rule_15_move_of_another_when_at_its_end_stays_and_when_failed_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
