/* test_store_moves.c - the life of a move: intent, outcome, undo, discard, cool-down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/mem.h"
#include "tests/support/store_support.h"

static void assert_rows(struct store *store, const char *sql, const char *expected)
{
    AUTO_FREE char *text = store_support_text(store, sql);
    assert_string_equal(text, expected);
}

static int intent(struct store *store, int64_t cycle, int64_t seq, const char *text, int64_t now_ms,
                  struct err *err)
{
    return store_move_intent(store, cycle, seq, text, strlen(text), now_ms, err);
}

static int outcome(struct store *store, int64_t cycle, const char *text, struct err *err)
{
    return store_move_outcome(store, cycle, text, strlen(text), err);
}

#define INTENT_1                                                                                   \
    "{\"v\":1,\"seq\":1,\"service\":\"cart\",\"instance\":\"cart-1\",\"source\":\"n2\","           \
    "\"target\":\"n1\",\"counts\":[{\"host\":\"n2\",\"count\":1}],\"undo_of\":null,"               \
    "\"detour\":false,\"saved\":null}"
#define OUTCOME_1                                                                                  \
    "{\"seq\":1,\"state\":\"applied\",\"reason\":null,\"service\":\"cart\","                       \
    "\"instance\":\"cart-1\",\"instance_now\":\"cart-9\",\"source\":\"n2\",\"target\":\"n1\","     \
    "\"intended_ms\":50,\"settled_ms\":90,\"undo_of\":null,\"detour\":false}"
#define INTENT_UNDO                                                                                \
    "{\"v\":1,\"seq\":3,\"service\":\"cart\",\"instance\":\"cart-9\",\"source\":\"n1\","           \
    "\"target\":\"n2\",\"counts\":[],\"undo_of\":1,\"detour\":false,\"saved\":null}"
#define OUTCOME_UNDO                                                                               \
    "{\"seq\":3,\"state\":\"applied\",\"reason\":null,\"service\":\"cart\","                       \
    "\"instance\":\"cart-9\",\"instance_now\":\"cart-10\",\"source\":\"n1\",\"target\":\"n2\","    \
    "\"intended_ms\":120,\"settled_ms\":150,\"undo_of\":1,\"detour\":false}"

static int64_t planned_cycle(struct store *store)
{
    AUTO(model) struct model *model = store_support_model();
    return store_support_full_cycle(store, model, 10);
}

static void test_intent_when_committed_then_move_is_intended(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    int64_t id = planned_cycle(store);
    struct move_row *rows = NULL;
    size_t n = 0;
    assert_int_equal(intent(store, id, 1, INTENT_1, 55, &err), 0);
    assert_int_equal(store_moves_load(store, id, &rows, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_int_equal(rows[0].cycle, id);
    assert_int_equal(rows[0].seq, 1);
    assert_string_equal(rows[0].service, "cart");
    assert_string_equal(rows[0].instance, "cart-1");
    assert_string_equal(rows[0].source, "n2");
    assert_string_equal(rows[0].target, "n1");
    assert_true(rows[0].gain == 0.625);
    assert_string_equal(rows[0].state, "intended");
    assert_int_equal(rows[0].intended_ms, 55);
    assert_int_equal(rows[0].settled_ms, -1);
    assert_int_equal(rows[0].undo_of, -1);
    assert_false(rows[0].detour);
    assert_string_equal(rows[0].intent, INTENT_1);
    assert_string_equal(rows[1].state, "planned");
    assert_null(rows[1].intent);
    move_row_wipe(&rows[0]);
    move_row_wipe(&rows[1]);
    free(rows);
}

static void test_intent_when_repeated_then_first_time_and_document_stay(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    int64_t id = planned_cycle(store);
    static const char later[] = "{\"v\":1,\"seq\":1,\"service\":\"cart\",\"instance\":\"cart-1\","
                                "\"source\":\"n2\",\"target\":\"n1\",\"counts\":[],"
                                "\"undo_of\":null,\"detour\":false,\"saved\":null}";
    assert_int_equal(intent(store, id, 1, INTENT_1, 55, &err), 0);
    assert_int_equal(intent(store, id, 1, later, 66, &err), 0);
    assert_rows(store, "SELECT intended_ms, intent FROM moves WHERE seq = 1", "55|" INTENT_1 "\n");
}

static void test_outcome_when_applied_then_recorded(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    int64_t id = planned_cycle(store);
    assert_int_equal(intent(store, id, 1, INTENT_1, 50, &err), 0);
    for (int i = 0; i < 2; i++) { /* once in a progress, again in the result */
        assert_int_equal(outcome(store, id, OUTCOME_1, &err), 0);
    }
    assert_rows(store,
                "SELECT state, reason, instance_now, intended_ms, settled_ms FROM v_moves"
                " WHERE seq = 1",
                "applied|-|cart-9|50|90\n");
    assert_rows(store, "SELECT moves_planned, moves_applied FROM v_cycles", "2|1\n");
}

static void test_undo_when_applied_in_same_cycle_then_forward_move_is_undone(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    int64_t id = planned_cycle(store);
    assert_int_equal(intent(store, id, 1, INTENT_1, 50, &err), 0);
    assert_int_equal(outcome(store, id, OUTCOME_1, &err), 0);
    assert_int_equal(intent(store, id, 3, INTENT_UNDO, 120, &err), 0);
    assert_int_equal(outcome(store, id, OUTCOME_UNDO, &err), 0);
    assert_rows(store, "SELECT seq, source, target, state, undo_of FROM v_moves",
                "1|n2|n1|undone|-\n2|n2|n1|planned|-\n3|n1|n2|applied|1\n");
    assert_rows(store, "SELECT moves_planned, moves_applied FROM v_cycles", "2|0\n");
}

static void check_targets(struct store *store, int64_t cycle, int64_t seq, const char *wanted)
{
    struct err err = ERR_INIT;
    char *targets = NULL;
    assert_int_equal(store_move_targets(store, cycle, seq, &targets, &err), 0);
    if (wanted) {
        assert_non_null(targets);
        assert_string_equal(targets, wanted);
    } else {
        assert_null(targets);
    }
    free(targets);
}

static void test_targets_when_not_of_one_host_then_the_row_knows(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    int64_t id = planned_cycle(store);
    static const char undo[] = "{\"v\":1,\"seq\":3,\"service\":\"cart\",\"instance\":null,"
                               "\"source\":null,\"target\":null,\"counts\":[],\"undo_of\":1,"
                               "\"detour\":false,\"saved\":null}";
    assert_int_equal(intent(store, id, 3, undo, 120, &err), 0);
    check_targets(store, id, 1, "n1");
    check_targets(store, id, 3, "n2"); /* where the undone one came from */
    check_targets(store, id, 9, NULL);
}

static void test_undo_when_of_another_cycle_then_base_moves_are_undone(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    AUTO(plan) struct plan *plan = store_support_plan(model);
    int64_t base = planned_cycle(store), undo = 0;
    assert_int_equal(intent(store, base, 1, INTENT_1, 50, &err), 0);
    assert_int_equal(outcome(store, base, OUTCOME_1, &err), 0);
    assert_int_equal(
        store_cycle_new(store, "shop", "undo", "undoing", false, base, 100, &undo, &err), 0);
    plan->n_moves = 1; /* the undo's own plan: seq 1 puts back seq 1 of the base */
    assert_int_equal(store_plan_save(store, undo, plan, model, "", "", 0, &err), 0);
    static const char text[] = "{\"v\":1,\"seq\":1,\"service\":\"cart\",\"instance\":\"cart-9\","
                               "\"source\":\"n1\",\"target\":\"n2\",\"counts\":[],\"undo_of\":1,"
                               "\"detour\":false,\"saved\":null}";
    assert_int_equal(intent(store, undo, 1, text, 110, &err), 0);
    assert_int_equal(outcome(store, undo,
                             "{\"seq\":1,\"state\":\"applied\",\"reason\":null,"
                             "\"service\":\"cart\",\"instance\":\"cart-9\",\"instance_now\":null,"
                             "\"source\":\"n1\",\"target\":\"n2\",\"intended_ms\":110,"
                             "\"settled_ms\":130,\"undo_of\":1,\"detour\":false}",
                             &err),
                     0);
    assert_rows(store, "SELECT cycle_id, seq, state, undo_of FROM v_moves WHERE seq = 1",
                "1|1|undone|-\n2|1|applied|1\n");
    plan->n_moves = 2;
}

static void test_detour_when_intended_then_row_of_its_own(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    int64_t id = planned_cycle(store);
    static const char text[] = "{\"v\":1,\"seq\":7,\"service\":\"cart\",\"instance\":\"cart-1\","
                               "\"source\":\"n2\",\"target\":\"n3\",\"counts\":[],"
                               "\"undo_of\":null,\"detour\":true,\"saved\":\"{}\"}";
    assert_int_equal(intent(store, id, 7, text, 70, &err), 0);
    assert_rows(store, "SELECT target, gain, state, detour FROM v_moves WHERE seq = 7",
                "n3|-|intended|1\n");
    assert_rows(store, "SELECT moves_planned FROM v_cycles", "2\n");
}

static void test_documents_when_malformed_then_input_error_and_nothing_written(void **state)
{
    static const char *const intents[] = {
        "", "[]", "{", "{\"v\":1}", "{\"v\":1,\"seq\":2,\"service\":\"cart\"}",
        "{\"v\":1,\"seq\":1,\"service\":\"\"}", "{\"v\":1,\"seq\":1,\"service\":\"c\",\"x\":1}",
        "{\"v\":1,\"seq\":1,\"service\":\"c\",\"undo_of\":-1}",
    };
    static const char *const outcomes[] = {
        "", "{\"seq\":1,\"service\":\"c\"}", "{\"seq\":1,\"service\":\"c\",\"state\":\"planned\"}",
        "{\"seq\":0,\"service\":\"c\",\"state\":\"applied\"}",
        "{\"seq\":1,\"service\":\"c\",\"state\":\"applied\",\"settled_ms\":\"soon\"}",
    };
    struct store *store = ((struct store_fixture *)*state)->store;
    int64_t id = store_support_cycle(store);
    for (size_t i = 0; i < ARRAY_LEN(intents); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(intent(store, id, 1, intents[i], 5, &err), -1);
        assert_int_equal(err.kind, ERR_INPUT);
    }
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(outcome(store, id, outcomes[i], &err), -1);
        assert_int_equal(err.kind, ERR_INPUT);
    }
    assert_rows(store, "SELECT count(*) FROM moves", "0\n");
}

static void test_discard_when_planned_then_reason_else_not_found(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    int64_t id = planned_cycle(store);
    assert_int_equal(store_move_discard(store, id, 2, "cool-down", &err), 0);
    assert_rows(store, "SELECT seq, state, reason FROM v_moves",
                "1|planned|-\n2|discarded|cool-down\n");
    assert_int_equal(store_move_discard(store, id, 2, "again", &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    err = (struct err)ERR_INIT;
    assert_int_equal(store_move_discard(store, id, 9, "none", &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

static int64_t last_move(struct store *store, const char *app, const char *service,
                         const char *host)
{
    struct err err = ERR_INIT;
    int64_t at = -2;
    int missed = -1, displaced = -1;
    assert_int_equal(
        store_last_move_ms(store, app, service, host, &at, &missed, &displaced, &err), 0);
    assert_int_equal(missed, 0);
    assert_int_equal(displaced, 0);
    return at;
}

static void test_last_move_when_source_or_target_then_its_time(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    int64_t id = planned_cycle(store);
    assert_int_equal(last_move(store, "shop", "cart", "n1"), -1); /* planned is not moved */
    assert_int_equal(intent(store, id, 1, INTENT_1, 55, &err), 0);
    assert_int_equal(last_move(store, "shop", "cart", "n1"), 55);
    assert_int_equal(outcome(store, id, OUTCOME_1, &err), 0);
    assert_int_equal(last_move(store, "shop", "cart", "n1"), 90);
    assert_int_equal(last_move(store, "shop", "cart", "n2"), 90);
    assert_int_equal(last_move(store, "shop", "cart", "n3"), -1);
    assert_int_equal(last_move(store, "shop", "front", "n1"), -1);
    assert_int_equal(last_move(store, "blog", "cart", "n1"), -1);
}

/* Of cycles one after the other: applied, missed, partial, applied. */
static void test_last_move_when_missed_then_counted_since_the_last_that_went_well(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    static const struct {
        const char *state;
        int missed, displaced;
    } steps[] = {{"applied", 0, 0},   {"missed", 1, 0},    {"partial", 2, 0}, {"applied", 0, 0},
                 {"displaced", 0, 1}, {"displaced", 0, 2}, {"missed", 1, 0}};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        int64_t id = planned_cycle(store), at = -1, when = 100 * (int64_t)(i + 1);
        int missed = -1, displaced = -1;
        AUTO_FREE char *text = mem_printf(
            "{\"seq\":1,\"state\":\"%s\",\"reason\":null,\"service\":\"cart\",\"instance\":"
            "\"cart-1\",\"instance_now\":null,\"source\":\"n2\",\"target\":\"n1\","
            "\"intended_ms\":%lld,\"settled_ms\":%lld,\"undo_of\":null,\"detour\":false}",
            steps[i].state, (long long)when, (long long)when + 5);
        assert_int_equal(intent(store, id, 1, INTENT_1, when, &err), 0);
        assert_int_equal(outcome(store, id, text, &err), 0);
        assert_int_equal(store_last_move_ms(store, "shop", "cart", "n1", &at, &missed,
                                            &displaced, &err),
                         0);
        assert_int_equal(at, when + 5);
        assert_int_equal(missed, steps[i].missed);
        assert_int_equal(displaced, steps[i].displaced);
    }
}

/* At service granularity only hosts whose count of replicas changes were moved to or from. */
static void test_read_when_begun_then_one_state_and_writes_after_it(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    int64_t id = planned_cycle(store);
    AUTO(store) struct store *other = NULL;
    assert_int_equal(store_open(store_path(store), &other, &err), 0);
    assert_int_equal(store_read_begin(store, &err), 0);
    assert_int_equal(last_move(store, "shop", "cart", "n1"), -1);
    assert_int_equal(intent(other, id, 1, INTENT_1, 55, &err), 0); /* a reader is no obstacle */
    assert_int_equal(last_move(store, "shop", "cart", "n1"), -1);
    store_read_end(store);
    assert_int_equal(last_move(store, "shop", "cart", "n1"), 55);
    assert_int_equal(outcome(store, id, OUTCOME_1, &err), 0);
}

static void test_last_move_when_whole_service_then_hosts_that_change(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    AUTO(plan) struct plan *plan = store_support_plan(model);
    struct move *move = &plan->moves[0];
    plan->granularity = PER_SERVICE;
    plan->n_moves = 1;
    move->instance = move->source = move->target = -1;
    move->service = 0;
    *ARRAY_PUSH(move->sources, move->n_sources) = (struct host_count){0, 1};
    *ARRAY_PUSH(move->sources, move->n_sources) = (struct host_count){1, 2};
    *ARRAY_PUSH(move->targets, move->n_targets) = (struct host_count){0, 1};
    *ARRAY_PUSH(move->targets, move->n_targets) = (struct host_count){2, 2};
    move->restarts = 3;
    int64_t id = store_support_cycle(store);
    assert_int_equal(store_plan_save(store, id, plan, model, "", "", 0, &err), 0);
    assert_rows(store, "SELECT service, instance, source, target, restarts FROM v_moves",
                "front|-|n1=1 n2=2|n1=1 n3=2|3\n");
    static const char text[] = "{\"v\":1,\"seq\":1,\"service\":\"front\",\"instance\":null,"
                               "\"source\":null,\"target\":null,\"counts\":[],\"undo_of\":null,"
                               "\"detour\":false,\"saved\":\"x\"}";
    assert_int_equal(intent(store, id, 1, text, 40, &err), 0);
    assert_int_equal(last_move(store, "shop", "front", "n1"), -1);
    assert_int_equal(last_move(store, "shop", "front", "n2"), 40);
    assert_int_equal(last_move(store, "shop", "front", "n3"), 40);
    assert_rows(store, "SELECT source, target FROM v_moves", "n1=1 n2=2|n1=1 n3=2\n");
    plan->n_moves = 2;
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_intent_when_committed_then_move_is_intended),
        STORE_TEST(test_intent_when_repeated_then_first_time_and_document_stay),
        STORE_TEST(test_outcome_when_applied_then_recorded),
        STORE_TEST(test_undo_when_applied_in_same_cycle_then_forward_move_is_undone),
        STORE_TEST(test_targets_when_not_of_one_host_then_the_row_knows),
        STORE_TEST(test_undo_when_of_another_cycle_then_base_moves_are_undone),
        STORE_TEST(test_detour_when_intended_then_row_of_its_own),
        STORE_TEST(test_documents_when_malformed_then_input_error_and_nothing_written),
        STORE_TEST(test_discard_when_planned_then_reason_else_not_found),
        STORE_TEST(test_last_move_when_source_or_target_then_its_time),
        STORE_TEST(test_last_move_when_missed_then_counted_since_the_last_that_went_well),
        STORE_TEST(test_read_when_begun_then_one_state_and_writes_after_it),
        STORE_TEST(test_last_move_when_whole_service_then_hosts_that_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
