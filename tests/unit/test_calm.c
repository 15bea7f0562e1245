/* test_calm.c - the rules of calm.h, by tables over one small plan:
 *
 *     h1: a      h2: b      h3: c, d         a–b 0.6, b–c 0.3, c–d 0.1 of the traffic
 *     plan: everything to h1, three moves; a host has room for four replicas of 250 millicores */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/manager/calm.h"
#include "model/plan_worth.h"

#define NOW INT64_C(1000000)

struct fixture {
    struct model *model;
    struct affinity rows[3];
    struct plan *plan;
    struct config_app app;
    struct calm_facts facts;
    struct calm_last last[8];
    bool busy[3];
};

static const char *const names[] = {"a", "b", "c", "d"};

static int add_host(struct model *m, const char *name, int64_t cpu)
{
    struct err err = ERR_INIT;
    int host = model_add_host(m, name, &err);
    m->hosts[host].cpu_cap_millis = cpu;
    m->hosts[host].mem_cap_bytes = 1000;
    return host;
}

static void plan_to(struct fixture *f, const int *placement)
{
    struct err err = ERR_INIT;
    plan_free(f->plan);
    f->plan = plan_new();
    f->plan->requested = mem_strdup("hba");
    f->plan->planner = mem_strdup("hba");
    f->plan->why = mem_strdup("because");
    f->plan->status = PLAN_FEASIBLE;
    assert_int_equal(plan_fill(f->plan, f->model, f->rows, 3, placement, &err), 0);
    for (size_t i = 0; i < 8; i++)
        f->last[i].at_ms = -1;
}

static void open_fixture(struct fixture *f)
{
    static const int hosts[] = {0, 1, 2, 2};
    static const double degrees[] = {0.6, 0.3, 0.1};
    struct err err = ERR_INIT;
    memset(f, 0, sizeof *f);
    f->model = model_new();
    add_host(f->model, "h1", 1000);
    add_host(f->model, "h2", 1000);
    add_host(f->model, "h3", 1000);
    for (int i = 0; i < 4; i++) {
        int service = model_add_service(f->model, names[i], &err);
        int instance = model_add_instance(f->model, names[i], service, hosts[i], &err);
        f->model->instances[instance].cpu_used_millis = 250;
        f->model->instances[instance].mem_used_bytes = 10;
    }
    for (int i = 0; i < 3; i++)
        f->rows[i] = (struct affinity){LEVEL_INSTANCE, i, i + 1, degrees[i], 100, -1};
    plan_to(f, (const int[]){0, 0, 0, 0});
    f->app = (struct config_app){
        .max_moves = -1, .max_restarts = -1, .max_service_restarts = -1};
    f->facts = (struct calm_facts){.wall_ms = NOW,
                                   .soak_until_ms = -1,
                                   .window_open = true,
                                   .last = f->last,
                                   .busy_hosts = f->busy};
}

static void close_fixture(struct fixture *f)
{
    plan_free(f->plan);
    model_free(f->model);
}

static struct calm *run(const struct fixture *f)
{
    return calm_new(&f->app, &f->facts, f->model, f->rows, 3, f->plan);
}

/* "bc" when the moves of b and c are kept. */
static void kept_names(const struct fixture *f, const struct calm *calm, char out[8])
{
    size_t n = 0;
    for (size_t i = 0; calm->kept && i < calm->kept->n_moves; i++)
        out[n++] = f->model->services[calm->kept->moves[i].service].name[0];
    out[n] = '\0';
}

static const char *left_out_of(const struct fixture *f, const struct calm *calm, char service)
{
    for (size_t i = 0; i < f->plan->n_moves; i++)
        if (f->model->services[f->plan->moves[i].service].name[0] == service)
            return calm->left_out[i] ? calm->left_out[i] : "";
    return "no such move";
}

/* Index in the plan of the service's move. */
static size_t move_at(const struct fixture *f, char service)
{
    for (size_t i = 0; i < f->plan->n_moves; i++)
        if (f->model->services[f->plan->moves[i].service].name[0] == service)
            return i;
    return 0;
}

static void with_nothing(struct fixture *f)
{
    (void)f;
}
static void with_max_moves(struct fixture *f)
{
    f->app.max_moves = 2;
}
static void with_max_restarts(struct fixture *f)
{
    f->app.max_restarts = 1;
}
static void with_a_service_of_many_replicas(struct fixture *f)
{
    f->plan->moves[move_at(f, 'c')].restarts = 50; /* budgets count pods, not moves */
    f->app.max_service_restarts = 10;
}
static void with_cooldown(struct fixture *f)
{
    f->app.cooldown_ms = 100;
    f->last[move_at(f, 'b')].at_ms = NOW - 99;
    f->last[move_at(f, 'c')].at_ms = NOW - 100;
}
static void with_missed_moves(struct fixture *f)
{
    f->app.cooldown_ms = 100;
    f->last[move_at(f, 'b')] = (struct calm_last){NOW - 199, 1, 0};
    f->last[move_at(f, 'c')] = (struct calm_last){NOW - 400, 2, 0};
    f->last[move_at(f, 'd')] = (struct calm_last){NOW - 3200, 9, 0}; /* 32 times at most */
}
static void with_displaced_moves(struct fixture *f)
{
    f->app.cooldown_ms = 100;
    f->last[move_at(f, 'b')] = (struct calm_last){NOW - 5000, 0, 2}; /* rests for a day */
    f->last[move_at(f, 'c')] = (struct calm_last){NOW - 5000, 0, 1};
}
static void with_busy_h3(struct fixture *f)
{
    f->busy[2] = true;
}
static void with_rollout(struct fixture *f)
{
    f->model->services[2].rollout = true;
}
static void with_low_coverage(struct fixture *f)
{
    f->plan->coverage = 0.5;
    f->app.min_coverage = 0.8;
}
static void with_unknown_coverage(struct fixture *f)
{
    f->app.min_coverage = 0.8;
}
static void with_soak(struct fixture *f)
{
    f->facts.soak_until_ms = NOW + 1;
}
static void with_soak_over(struct fixture *f)
{
    f->facts.soak_until_ms = NOW;
}
static void with_a_pause(struct fixture *f)
{
    f->app.mode = MODE_ACT;
    f->facts.paused_by = "configmap remap/remap-pause";
}
static void with_a_pause_that_may_propose(struct fixture *f)
{
    with_a_pause(f);
    f->app.mode = MODE_PROPOSE;
}
static void with_closed_window(struct fixture *f)
{
    f->facts.window_open = false;
}
static void with_worth_of_moves(struct fixture *f)
{
    f->app.min_gain = 0.2; /* d alone is worth 0.1; but the plan empties two hosts */
}
static void with_worth_beside_a_freed_host(struct fixture *f)
{
    plan_to(f, (const int[]){0, 0, 2, 0}); /* b frees h2; d leaves h3, c, and what they say */
    f->app.min_gain = 0.05;
}
static void with_room_made_for_a_freed_host(struct fixture *f)
{
    f->model->hosts[0].cpu_cap_millis = 250; /* a leaves h1 so that b, leaving h2, has room there */
    plan_to(f, (const int[]){2, 0, 2, 2});
    f->app.min_gain = 0.05;
}
static void with_worth_and_full_hosts(struct fixture *f)
{
    plan_to(f, (const int[]){0, 0, 1, 2}); /* b joins a, c takes b's place: no host is emptied */
    f->app.min_gain = 0.05;
}
static void with_plan_gain(struct fixture *f)
{
    plan_to(f, (const int[]){0, 0, 1, 2});
    f->app.min_plan_gain = 0.6;
}
static void with_no_better_plan(struct fixture *f)
{
    plan_to(f, (const int[]){1, 0, 2, 2}); /* a and b change places */
}
static void with_no_moves(struct fixture *f)
{
    plan_to(f, (const int[]){0, 1, 2, 2});
}
static void with_apart(struct fixture *f, int first, int second)
{
    struct rule *rule = ARRAY_PUSH(f->model->rules, f->model->n_rules);
    rule->kind = RULE_APART;
    rule->services = mem_array(2, sizeof *rule->services);
    rule->services[0] = first;
    rule->services[1] = second;
    rule->n_services = 2;
    rule->max_per_host = 1;
}
static void with_a_rule_mended(struct fixture *f)
{
    with_apart(f, 2, 3);                    /* c and d are on one host, as nobody may be now */
    plan_to(f, (const int[]){0, 1, 2, 1}); /* and what d costs is more than it gains */
    f->app.min_gain = 0.005;
    f->app.min_plan_gain = 0.01;
}
static void with_a_rule_mended_and_others(struct fixture *f)
{
    with_apart(f, 2, 3);
    plan_to(f, (const int[]){1, 0, 2, 1}); /* a and b change places: one of them is enough */
    f->app.min_gain = 0.005;
}
static void with_a_rule_that_was_kept(struct fixture *f)
{
    with_apart(f, 0, 1);
    plan_to(f, (const int[]){1, 0, 2, 2});
}
static void with_everything_resting(struct fixture *f)
{
    f->app.cooldown_ms = 100;
    for (size_t i = 0; i < 3; i++)
        f->last[i].at_ms = NOW;
}

struct row {
    void (*with)(struct fixture *f);
    enum calm_answer answer;
    const char *kept;
    char out; /* a move that is left out, 0: look at `why` of the whole */
    const char *reason;
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct fixture f;
        char kept[8];
        open_fixture(&f);
        rows[i].with(&f);
        AUTO(calm) struct calm *calm = run(&f);
        kept_names(&f, calm, kept);
        const char *reason = rows[i].out ? left_out_of(&f, calm, rows[i].out) : calm->why;
        print_message("row %zu: %s [%s]\n", i, calm->why, kept);
        assert_int_equal(calm->answer, rows[i].answer);
        assert_string_equal(kept, rows[i].kept);
        assert_non_null(strstr(reason, rows[i].reason));
        close_fixture(&f);
    }
}

static void test_calm_when_a_rule_applies_then_moves_and_reasons_as_in_the_table(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {with_nothing, CALM_GO, "bcd", 0, ""},
        {with_busy_h3, CALM_GO, "b", 'd', "a host is under verification by another cycle"},
        {with_rollout, CALM_GO, "bd", 'c', "rollout in progress"},
        {with_low_coverage, CALM_DRY, "", 0, "coverage 0.50 is below 0.80"},
        {with_unknown_coverage, CALM_GO, "bcd", 0, ""},
        {with_soak, CALM_DRY, "", 0, "quiet until"},
        {with_soak_over, CALM_GO, "bcd", 0, ""},
        {with_a_pause, CALM_DRY, "", 'b', "paused by configmap remap/remap-pause: 3 moves"},
        {with_a_pause_that_may_propose, CALM_GO, "bcd", 0, ""},
        {with_closed_window, CALM_DRY, "", 'b', "outside the windows"},
        {with_no_better_plan, CALM_NOTHING, "", 'a', "better neither in score nor in hosts"},
        {with_a_rule_mended, CALM_GO, "d", 0, "mends a broken rule"},
        {with_a_rule_mended_and_others, CALM_GO, "bd", 'a', "per restarted replica"},
        {with_a_rule_that_was_kept, CALM_NOTHING, "", 'a', "better neither in score nor in hosts"},
        {with_no_moves, CALM_NOTHING, "", 0, "no moves: because"},
        {with_everything_resting, CALM_NOTHING, "", 0,
         "all 3 moves left out, the first: cool-down"},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void test_rule_8_when_a_plan_restarts_more_than_it_may_then_less_is_moved(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {with_max_moves, CALM_GO, "bc", 'd', "limit of 2 moves per cycle"},
        {with_max_restarts, CALM_GO, "b", 'c', "limit of 1 restarts per cycle"},
        {with_a_service_of_many_replicas, CALM_GO, "bd", 'c',
         "restarts 50 replicas, limit 10 per service"},
        {with_worth_of_moves, CALM_GO, "bcd", 0, ""},
        {with_worth_beside_a_freed_host, CALM_GO, "b", 'd', "gains -0.1000 per restarted replica"},
        {with_room_made_for_a_freed_host, CALM_GO, "ab", 0, ""},
        {with_worth_and_full_hosts, CALM_GO, "b", 'c', "gains -0.1000 per restarted replica"},
        {with_plan_gain, CALM_NOTHING, "", 0, "gains 0.5000 in all, less than 0.6"},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void
test_rule_6_when_moves_were_missed_or_displaced_then_their_pair_rests_longer(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {with_cooldown, CALM_GO, "cd", 'b', "cool-down: last moved there at 1970-01-01T00:16:39"},
        {with_missed_moves, CALM_GO, "cd", 'b',
         "cool-down: last moved there at 1970-01-01T00:16:39.801Z, rests 200ms, it had landed"},
        {with_displaced_moves, CALM_GO, "cd", 'b', "rests 1d, it was taken away again twice"},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void test_calm_when_the_window_was_empty_then_nothing_is_planned(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f);
    f.model->has_messages = true;
    AUTO(calm) struct calm *calm = calm_new(&f.app, &f.facts, f.model, f.rows, 3, f.plan);
    assert_int_equal(calm->answer, CALM_NOTHING);
    assert_string_equal(calm->why, "no traffic in the window");
    assert_string_equal(calm->left_out[0], "no traffic in the window");
    close_fixture(&f);
}

static void test_calm_when_a_move_made_room_then_those_that_needed_it_stay_too(void **state)
{
    (void)state;
    struct fixture f;
    char kept[8];
    open_fixture(&f);
    f.model->hosts[1].cpu_cap_millis = 250; /* c comes to h2 only when b has left */
    plan_to(&f, (const int[]){0, 0, 1, 2});
    f.busy[0] = false;
    f.app.cooldown_ms = 100;
    f.last[move_at(&f, 'b')].at_ms = NOW;
    plan_measure(f.plan, f.model, f.rows, 3);
    AUTO(calm) struct calm *calm = run(&f);
    kept_names(&f, calm, kept);
    assert_string_equal(kept, "");
    assert_non_null(strstr(left_out_of(&f, calm, 'c'), "does not fit on h2 without"));
    close_fixture(&f);
}

static void test_calm_when_a_pair_moves_to_a_new_host_then_the_first_is_not_worthless(void **state)
{
    (void)state;
    struct fixture f;
    char kept[8];
    open_fixture(&f);
    add_host(f.model, "h4", 1000);
    f.facts.busy_hosts = NULL;
    plan_to(&f, (const int[]){3, 3, 2, 2}); /* in order: a gains nothing, then b gains 0.6 */
    f.app.min_gain = 0.01;
    AUTO(calm) struct calm *calm = run(&f);
    kept_names(&f, calm, kept);
    assert_string_equal(kept, "ab");
    close_fixture(&f);
}

static void test_calm_when_whole_services_move_as_a_pair_then_the_first_is_not_worthless(void **state)
{
    (void)state;
    struct fixture f;
    char kept[8];
    open_fixture(&f);
    add_host(f.model, "h4", 1000);
    f.facts.busy_hosts = NULL;
    for (int i = 0; i < 3; i++)
        f.rows[i].level = LEVEL_SERVICE; /* of one replica each: numbered alike */
    plan_free(f.plan);
    f.plan = plan_new();
    f.plan->requested = mem_strdup("hubs");
    f.plan->planner = mem_strdup("hubs");
    f.plan->why = mem_strdup("because");
    f.plan->status = PLAN_FEASIBLE;
    f.plan->granularity = PER_SERVICE;
    struct err err = ERR_INIT;
    assert_int_equal(
        plan_fill(f.plan, f.model, f.rows, 3, (const int[]){3, 3, 2, 2}, &err), 0);
    for (size_t i = 0; i < 8; i++)
        f.last[i].at_ms = -1;
    assert_true(f.plan->moves[0].gain < 0.01); /* in order: nothing yet; then all of it */
    f.app.min_gain = 0.01;
    AUTO(calm) struct calm *calm = run(&f);
    kept_names(&f, calm, kept);
    assert_string_equal(kept, "ab");
    close_fixture(&f);
}

static void test_subset_when_some_moves_are_taken_then_it_passes_the_check_of_plans(void **state)
{
    (void)state;
    struct fixture f;
    struct err err = ERR_INIT;
    open_fixture(&f);
    f.app.cooldown_ms = 100;
    f.last[0].at_ms = NOW; /* the first goes: seqs 2 and 3 stay */
    AUTO(calm) struct calm *calm = run(&f);
    assert_int_equal(calm->kept->n_moves, 2);
    assert_int_equal(calm->kept->moves[0].seq, 2);
    assert_int_equal(plan_check(calm->kept, f.model, false, &err), 0);
    close_fixture(&f);
}

static bool keep_all(void *ctx, const struct move *move)
{
    (void)ctx;
    (void)move;
    return true;
}

static void test_exchange_on_full_hosts_then_all_of_it_or_nothing(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    for (int h = 0; h < 3; h++)
        f.model->hosts[h].cpu_cap_millis = 500;
    f.model->hosts[0].cpu_cap_millis = 250;
    f.model->hosts[1].cpu_cap_millis = 250;
    plan_to(&f, (const int[]){1, 0, 2, 2}); /* a and b, each on a full host */
    assert_true(f.plan->unordered);
    AUTO(plan) struct plan *all = plan_subset(f.plan, f.model, f.rows, 3, keep_all, NULL);
    assert_true(all->unordered);
    f.plan->affinity_after = 1; /* as if it were worth it */
    f.app.max_moves = 1;
    AUTO(calm) struct calm *calm = run(&f);
    assert_int_equal(calm->answer, CALM_NOTHING);
    assert_null(calm->kept);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calm_when_a_rule_applies_then_moves_and_reasons_as_in_the_table),
        cmocka_unit_test(
            test_rule_8_when_a_plan_restarts_more_than_it_may_then_less_is_moved),
        cmocka_unit_test(
            test_rule_6_when_moves_were_missed_or_displaced_then_their_pair_rests_longer),
        cmocka_unit_test(test_calm_when_the_window_was_empty_then_nothing_is_planned),
        cmocka_unit_test(test_calm_when_a_move_made_room_then_those_that_needed_it_stay_too),
        cmocka_unit_test(test_calm_when_a_pair_moves_to_a_new_host_then_the_first_is_not_worthless),
        cmocka_unit_test(test_calm_when_whole_services_move_as_a_pair_then_the_first_is_not_worthless),
        cmocka_unit_test(test_subset_when_some_moves_are_taken_then_it_passes_the_check_of_plans),
        cmocka_unit_test(test_exchange_on_full_hosts_then_all_of_it_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
