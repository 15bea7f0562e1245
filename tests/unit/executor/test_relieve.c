/* test_relieve.c - pins that do harm, taken off between requests (interfaces.md 1.9 rule 3): for which
 * apps, when, how many for each interval, and what people get to read of it. From the configuration,
 * through the keeper's own turns, on a clock of the test's; with an orchestrator that has pins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "executor/keep.h"
#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/config.h"
#include "model/manager/configure.h"

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define MAX_SAID 20

static struct {
    struct loop *loop;
    void *keep;
    int64_t now_ms;
    struct keeper_state state; /* of the lock and the switch */

    int64_t pins[4]; /* that do harm: the replicas that restart with each */
    size_t n_pins;
    struct relief_budget budget; /* of the last look */
    int looks;
    bool unreachable;
    int open; /* orchestrators that are */

    char said[MAX_SAID][400], announced[40], announced_why[80]; /* rows, and the last Event */
    int n_said;
    char kept[200]; /* what the manager was told last of the switch */
} world;

/* --- the clock and the stage --- */

int64_t __wrap_clock_mono_ms(void);
int64_t __wrap_clock_mono_ms(void)
{
    return world.now_ms;
}

struct loop *stage_loop(struct stage *stage)
{
    (void)stage;
    return world.loop;
}

bool stage_is_filter(const struct stage *stage)
{
    (void)stage;
    return false;
}

void *stage_state(struct stage *stage)
{
    (void)stage;
    return world.keep;
}

bool stage_stopping(struct stage *stage)
{
    (void)stage;
    return false;
}

bool stage_wait(struct stage *stage, int64_t ms)
{
    (void)stage;
    (void)ms;
    return true;
}

int stage_progress(struct stage *stage, int64_t done, const char *members, struct err *err)
{
    (void)stage;
    (void)done;
    (void)members;
    (void)err;
    return 0;
}

/* An `events` row. */
int64_t stage_event(struct stage *stage, const char *body, size_t size,
                    void (*stored)(void *ctx, int64_t row, bool duplicate), void *ctx)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *row = json_parse(body, size, &json_limits_document, &err);
    (void)stage;
    assert_non_null(row);
    assert_true(world.n_said < MAX_SAID);
    const char *app = json_string_value(json_object_get(row, "app"));
    snprintf(world.said[world.n_said++], sizeof world.said[0], "%s %s: %s", app ? app : "-",
             json_string_value(json_object_get(row, "kind")),
             json_string_value(json_object_get(row, "text")));
    stored(ctx, world.n_said, false);
    return world.n_said;
}

void stage_kept(struct stage *stage, const char *body, size_t size)
{
    (void)stage;
    snprintf(world.kept, sizeof world.kept, "%.*s", (int)size, body);
}

/* --- an orchestrator with pins, and its keeper --- */

static int64_t turn(void *ctx, struct keeper_state *out)
{
    (void)ctx;
    *out = world.state;
    return SECOND;
}

static void announce(void *ctx, const struct announcement *what)
{
    (void)ctx;
    assert_int_equal(what->bad, strcmp(what->state, "pin does harm") == 0);
    snprintf(world.announced, sizeof world.announced, "%s", what->state);
    snprintf(world.announced_why, sizeof world.announced_why, "%s", what->reason);
}

static int keeper_open(const struct source *source, int64_t pid, void **ctx, struct err *err)
{
    (void)source;
    (void)pid;
    (void)err;
    *ctx = &world;
    return 0;
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static int pins_open(const struct source *source, void **ctx, struct err *err)
{
    (void)err;
    assert_string_equal(source->name, "c");
    world.open++;
    *ctx = &world;
    return 0;
}

static void pins_close(void *ctx)
{
    (void)ctx;
    world.open--;
}

/* One after the other, as far as the budget goes. */
static int relieve(void *ctx, const struct app_scope *app, struct relief_budget *budget,
                   void (*told)(void *arg, const struct relief *relief), void *arg, struct err *err)
{
    (void)ctx;
    assert_string_equal(app->name, "shop");
    world.looks++;
    world.budget = *budget;
    if (world.unreachable)
        return err_set(err, ERR_UNREACHABLE, "no answer");
    while (world.n_pins > 0) {
        int64_t n = world.pins[0];
        bool fits = !budget->look_only && (budget->restarts < 0 || n <= budget->restarts);
        const struct relief relief = {7, 2, "shop/web", n, fits, "its nodes are gone"};
        told(arg, &relief);
        if (!fits)
            break;
        budget->restarts -= budget->restarts < 0 ? 0 : n;
        memmove(world.pins, world.pins + 1, --world.n_pins * sizeof *world.pins);
    }
    return 0;
}

static const struct option_spec no_options[] = {{NULL, NULL, NULL, false}};
static const struct keeper keeper = {
    .open = keeper_open, .turn = turn, .announce = announce, .close = nothing};
static const struct orchestrator with_pins = {.name = "pins",
                                              .options = no_options,
                                              .open = pins_open,
                                              .relieve = relieve,
                                              .close = pins_close,
                                              .keeper = &keeper};

const struct orchestrator *orchestrator_find(const char *name)
{
    return strcmp(name, "pins") == 0 ? &with_pins : NULL;
}

/* --- the tests' words --- */

/* What the manager sends for such an app. */
static void configure(const char *mode, const char *more, bool paused)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *text = mem_printf("sources: [{name: c, type: pins}]\napps:\n  - name: shop\n"
                                      "    mode: %s\n    cluster: c\n    interval: 10m\n%s",
                                      mode, more);
    AUTO(config) struct config *config = config_parse(text, strlen(text), "r.yaml", &err);
    AUTO_BUF struct buf body = BUF_INIT;
    assert_string_equal(err.text, "");
    configure_executor(config, &paused, "", &body);
    keep_configure(world.keep, body.data, body.size);
}

/* The first turn after a start takes over what earlier daemons left, the next ones look. */
static void bring_up(const char *mode, const char *more, bool paused)
{
    struct err err = ERR_INIT;
    memset(&world, 0, sizeof world);
    world.now_ms = MINUTE;
    world.state.leads = true;
    world.loop = loop_new();
    assert_int_equal(keep_open(NULL, &world.keep, &err), 0);
    configure(mode, more, paused);
    assert_int_equal(loop_turn(world.loop, 0, &err), 0);
    assert_int_equal(world.looks, 0);
}

static void take_down(void)
{
    keep_close(world.keep);
    loop_free(world.loop);
    assert_int_equal(world.open, 0);
}

static void pass(int64_t ms)
{
    struct err err = ERR_INIT;
    world.now_ms += ms;
    assert_int_equal(loop_turn(world.loop, 0, &err), 0);
}

static void pins_are(size_t n, const int64_t *restarts)
{
    memcpy(world.pins, restarts, n * sizeof *restarts);
    world.n_pins = n;
}
#define PINS(...)                                                                                  \
    pins_are(ARRAY_LEN(((const int64_t[]){__VA_ARGS__})), (const int64_t[]){__VA_ARGS__})

/* --- tests --- */

static void test_pin_when_it_does_harm_is_taken_off_and_told(void **state)
{
    (void)state;
    bring_up("act", "", false);
    PINS(2);
    pass(SECOND);
    assert_int_equal(world.n_pins, 0);
    assert_int_equal(world.n_said, 1);
    assert_string_equal(world.said[0], "shop relief: shop/web: the pin of move 7/2 is taken off, 2 "
                                       "replicas restart: its nodes are gone");
    assert_string_equal(world.announced, "pin taken off");
    assert_string_equal(world.announced_why, "its nodes are gone");
    take_down();
}

static void test_budget_when_used_up_holds_back_until_the_next_interval(void **state)
{
    (void)state;
    bring_up("act", "    max_restarts: 3\n", false);
    PINS(2, 2, 2);
    pass(SECOND);
    assert_int_equal(world.n_pins, 2); /* one is off, the second would be the fourth restart */
    assert_int_equal(world.n_said, 2);
    assert_string_equal(world.said[1],
                        "shop relief: shop/web: the pin of move 7/2 should be taken off, but 2 "
                        "replicas would restart, more than the budget leaves: its nodes are gone");
    assert_string_equal(world.announced, "pin does harm");
    for (int i = 0; i < 5; i++)
        pass(MINUTE);
    assert_int_equal(world.looks, 6);
    assert_int_equal(world.budget.restarts, 1);
    assert_int_equal(world.n_pins, 2);
    assert_int_equal(world.n_said, 2); /* once, not at every look */

    pass(5 * MINUTE); /* the interval of 10 minutes is over */
    assert_int_equal(world.budget.restarts, 3);
    assert_int_equal(world.n_pins, 1);
    assert_int_equal(world.n_said, 4); /* off; and of the third pin that it is held back */
    pass(10 * MINUTE);
    assert_int_equal(world.n_pins, 0);
    take_down();
}

static void test_budget_of_the_configuration_is_what_the_orchestrator_gets(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        int64_t restarts, per_service;
        size_t left; /* of two pins */
    } rows[] = {
        {"", -1, -1, 0},
        {"    max_restarts: 4\n", 4, -1, 2},
        {"    max_restarts: 100\n    max_restarts_per_service: 4\n", 100, 4, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bring_up("act", rows[i].more, false);
        PINS(5, 6);
        pass(SECOND);
        assert_int_equal(world.budget.restarts, rows[i].restarts);
        assert_int_equal(world.budget.per_service, rows[i].per_service);
        assert_int_equal(world.n_pins, rows[i].left);
        take_down();
    }
}

static void test_pins_when_the_app_does_not_act_by_itself_stay(void **state)
{
    (void)state;
    static const struct {
        const char *mode;
        bool paused; /* by `remap pause` */
        int looks;
    } rows[] = {{"observe", false, 0}, {"act", true, 0}, {"act", false, 1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bring_up(rows[i].mode, "", rows[i].paused);
        PINS(1);
        pass(MINUTE);
        assert_int_equal(world.looks, rows[i].looks);
        assert_int_equal(world.n_pins, 1 - rows[i].looks);
        assert_int_equal(world.n_said, rows[i].looks);
        take_down();
    }
}

static void test_pins_when_the_app_proposes_stay_and_are_told_once_and_when_it_is_over(void **state)
{
    (void)state;
    bring_up("propose", "", false);
    PINS(2);
    for (int i = 0; i < 3; i++)
        pass(MINUTE);
    assert_int_equal(world.looks, 3);
    assert_int_equal(world.n_pins, 1);
    assert_int_equal(world.n_said, 1);
    assert_string_equal(world.said[0],
                        "shop relief: shop/web: the pin of move 7/2 would be taken off by an app that "
                        "acts, and 2 replicas restart; `remap release shop shop/web` does it: its "
                        "nodes are gone");
    assert_string_equal(world.announced, "pin does harm");
    PINS(3);
    pass(MINUTE);
    assert_int_equal(world.n_said, 2); /* it is another now */
    world.n_pins = 0;
    for (int i = 0; i < 3; i++)
        pass(MINUTE);
    assert_int_equal(world.n_said, 3);
    assert_string_equal(world.said[2],
                        "shop relief: shop/web: the pin of move 7/2 is in nobody's way any more");
    take_down();
}

static void test_pause_in_the_cluster_when_it_comes_and_goes_is_told_to_the_manager(void **state)
{
    (void)state;
    const char *why = NULL;
    const struct source source = {"c", "pins", NULL, 0};
    struct kept *kept;
    struct err err = ERR_INIT;
    bring_up("act", "", false);
    assert_string_equal(world.kept, "{\"v\":1,\"source\":\"c\",\"paused_by\":null}");
    world.kept[0] = '\0';
    snprintf(world.state.text, sizeof world.state.text, "the lease is ours; paused by configmap a/b");
    snprintf(world.state.paused_by, sizeof world.state.paused_by, "configmap a/b");
    world.state.paused = true;
    pass(MINUTE);
    assert_string_equal(world.kept, "{\"v\":1,\"source\":\"c\",\"paused_by\":\"configmap a/b\"}");
    assert_int_equal(kept_join(NULL, &with_pins, &source, &kept, &err), 0);
    assert_true(kept_paused(kept, &why));
    assert_string_equal(why, "paused by configmap a/b"); /* that alone stops a plan */
    kept_leave(kept);
    world.kept[0] = '\0';
    pass(MINUTE);
    assert_string_equal(world.kept, "");
    world.state.paused = false;
    world.state.paused_by[0] = '\0';
    pass(MINUTE);
    assert_string_equal(world.kept, "{\"v\":1,\"source\":\"c\",\"paused_by\":null}");
    take_down();
}

static void test_pins_when_the_mode_changes_are_looked_at_or_not_from_then_on(void **state)
{
    (void)state;
    bring_up("act", "", false);
    pass(MINUTE);
    assert_int_equal(world.looks, 1);
    configure("observe", "", false);
    PINS(1);
    pass(MINUTE);
    assert_int_equal(world.looks, 1);
    configure("act", "", true);
    pass(MINUTE);
    assert_int_equal(world.looks, 1);
    configure("act", "", false);
    pass(MINUTE);
    assert_int_equal(world.looks, 2);
    assert_int_equal(world.n_pins, 0);
    take_down();
}

/* As after a reload, or `remap pause` and `remap resume` of any app. */
static void test_budget_when_configured_again_is_what_is_left_of_it(void **state)
{
    (void)state;
    bring_up("act", "    max_restarts: 3\n", false);
    PINS(2, 2);
    pass(SECOND);
    assert_int_equal(world.n_pins, 1);
    configure("act", "    max_restarts: 3\n", true);
    pass(MINUTE);
    configure("act", "    max_restarts: 3\n", false);
    pass(MINUTE);
    assert_int_equal(world.budget.restarts, 1);
    assert_int_equal(world.n_pins, 1);
    pass(10 * MINUTE);
    assert_int_equal(world.n_pins, 0);
    take_down();
}

static void test_pin_when_it_is_gone_after_a_pause_is_told_to_be_in_nobodys_way(void **state)
{
    (void)state;
    bring_up("propose", "", false);
    PINS(2);
    pass(MINUTE);
    assert_int_equal(world.n_said, 1);
    configure("propose", "", true);
    pass(MINUTE);
    configure("propose", "", false);
    pass(MINUTE);
    assert_int_equal(world.n_said, 1); /* no news */
    configure("propose", "", true);
    world.n_pins = 0;
    configure("propose", "", false);
    pass(MINUTE);
    assert_int_equal(world.n_said, 2);
    assert_string_equal(world.said[1],
                        "shop relief: shop/web: the pin of move 7/2 is in nobody's way any more");
    take_down();
}

static void test_pins_when_paused_in_the_cluster_or_without_the_lock_stay(void **state)
{
    (void)state;
    bring_up("act", "", false);
    PINS(1);
    world.state.paused = true;
    pass(MINUTE);
    assert_int_equal(world.looks, 0);
    world.state = (struct keeper_state){.leads = false};
    pass(MINUTE);
    assert_int_equal(world.looks, 0);
    world.state.leads = true;
    pass(MINUTE); /* the lock is new: first what an earlier leader left */
    assert_int_equal(world.looks, 0);
    pass(SECOND);
    assert_int_equal(world.looks, 1);
    assert_int_equal(world.n_pins, 0);
    take_down();
}

static void test_pins_when_a_request_is_under_way_stay_until_its_end(void **state)
{
    (void)state;
    const struct source source = {"c", "pins", NULL, 0};
    struct kept *kept;
    struct err err = ERR_INIT;
    bring_up("act", "", false);
    PINS(1);
    assert_int_equal(kept_join(NULL, &with_pins, &source, &kept, &err), 0);
    pass(MINUTE);
    assert_int_equal(world.looks, 0);
    kept_leave(kept);
    pass(MINUTE);
    assert_int_equal(world.looks, 1);
    assert_int_equal(world.n_pins, 0);
    take_down();
}

static void test_looks_when_all_is_well_are_twenty_seconds_apart_and_failures_are_no_end(void **state)
{
    (void)state;
    bring_up("act", "", false);
    pass(SECOND);
    assert_int_equal(world.looks, 1);
    for (int i = 0; i < 19; i++)
        pass(SECOND);
    assert_int_equal(world.looks, 1);
    world.unreachable = true;
    PINS(1);
    pass(SECOND);
    assert_int_equal(world.looks, 2);
    assert_int_equal(world.n_said, 0);
    world.unreachable = false;
    pass(20 * SECOND);
    assert_int_equal(world.looks, 3);
    assert_int_equal(world.n_said, 1);
    assert_int_equal(world.open, 1); /* one and the same for all looks */
    take_down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pin_when_it_does_harm_is_taken_off_and_told),
        cmocka_unit_test(test_budget_when_used_up_holds_back_until_the_next_interval),
        cmocka_unit_test(test_budget_of_the_configuration_is_what_the_orchestrator_gets),
        cmocka_unit_test(test_pins_when_the_app_does_not_act_by_itself_stay),
        cmocka_unit_test(test_pins_when_the_app_proposes_stay_and_are_told_once_and_when_it_is_over),
        cmocka_unit_test(test_pause_in_the_cluster_when_it_comes_and_goes_is_told_to_the_manager),
        cmocka_unit_test(test_pins_when_the_mode_changes_are_looked_at_or_not_from_then_on),
        cmocka_unit_test(test_budget_when_configured_again_is_what_is_left_of_it),
        cmocka_unit_test(test_pin_when_it_is_gone_after_a_pause_is_told_to_be_in_nobodys_way),
        cmocka_unit_test(test_pins_when_paused_in_the_cluster_or_without_the_lock_stay),
        cmocka_unit_test(test_pins_when_a_request_is_under_way_stay_until_its_end),
        cmocka_unit_test(
            test_looks_when_all_is_well_are_twenty_seconds_apart_and_failures_are_no_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
