/* test_store_rows.c - cycles, apps, events, snapshots, analyses, plans, savings, retention, JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "model/base/clock.h"
#include "model/base/mem.h"
#include "tests/support/store_support.h"

static void assert_rows(struct store *store, const char *sql, const char *expected)
{
    AUTO_FREE char *text = store_support_text(store, sql);
    assert_string_equal(text, expected);
}

/* --- cycles --- */

static void test_cycle_when_new_then_everything_is_read_back(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    struct cycle_row row;
    int64_t base = store_support_cycle(store), id = 0;
    assert_int_equal(store_cycle_new(store, "shop", "apply", "executing", true, base, 77, &id, &err),
                     0);
    assert_int_equal(store_cycle_get(store, id, &row, &err), 0);
    assert_int_equal(row.id, id);
    assert_string_equal(row.app, "shop");
    assert_string_equal(row.trigger, "apply");
    assert_string_equal(row.state, "executing");
    assert_null(row.reason);
    assert_int_equal(row.attempt, 1);
    assert_int_equal(row.started_ms, 77);
    assert_int_equal(row.ended_ms, -1);
    assert_int_equal(row.deadline_ms, -1);
    assert_int_equal(row.base_cycle, base);
    assert_true(row.dry_run);
    assert_int_equal(row.moves_planned, 0);
    cycle_row_wipe(&row);
    assert_null(row.app);
}

static void test_cycle_when_set_then_reason_is_kept_unless_given(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    struct cycle_row row;
    int64_t id = store_support_cycle(store);
    assert_int_equal(store_cycle_set(store, id, "settling", "because", 2, 500, -1, &err), 0);
    assert_int_equal(store_cycle_set(store, id, "verifying", NULL, 3, 600, -1, &err), 0);
    assert_int_equal(store_cycle_get(store, id, &row, &err), 0);
    assert_string_equal(row.state, "verifying");
    assert_string_equal(row.reason, "because");
    assert_int_equal(row.attempt, 3);
    assert_int_equal(row.deadline_ms, 600);
    assert_int_equal(row.base_cycle, -1);
    cycle_row_wipe(&row);
    assert_int_equal(store_cycle_set(store, id, "done", "other", 3, -1, 700, &err), 0);
    assert_rows(store, "SELECT state, reason, deadline_ms, ended_ms FROM cycles", "done|other|-|700\n");
}

static void test_cycle_when_unknown_then_not_found(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    struct cycle_row row;
    assert_int_equal(store_cycle_get(store, 42, &row, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    err = (struct err)ERR_INIT;
    assert_int_equal(store_cycle_set(store, 42, "done", NULL, 1, -1, 1, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

static void test_cycles_open_when_some_ended_then_others_oldest_first(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    struct cycle_row *rows = NULL;
    size_t n = 9;
    assert_int_equal(store_cycles_open(store, &rows, &n, &err), 0);
    assert_int_equal(n, 0);
    int64_t first = store_support_cycle(store), second = store_support_cycle(store);
    int64_t third = store_support_cycle(store);
    assert_int_equal(store_cycle_set(store, second, "done", NULL, 1, -1, 5, &err), 0);
    assert_int_equal(store_cycles_open(store, &rows, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_int_equal(rows[0].id, first);
    assert_int_equal(rows[1].id, third);
    cycle_row_wipe(&rows[0]);
    cycle_row_wipe(&rows[1]);
    free(rows);
}

/* --- apps and events --- */

static void test_app_when_set_then_read_back_and_mode_kept(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    struct app_row row;
    assert_int_equal(store_app_get(store, "shop", &row, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    char name[] = "shop", mode[] = "act";
    struct app_row set = {name, mode, true, 123, -1};
    assert_int_equal(store_app_set(store, &set, &err), 0);
    set = (struct app_row){name, NULL, false, -1, 60000};
    assert_int_equal(store_app_set(store, &set, &err), 0);
    assert_int_equal(store_app_get(store, "shop", &row, &err), 0);
    assert_string_equal(row.app, "shop");
    assert_string_equal(row.mode, "act");
    assert_false(row.paused);
    assert_int_equal(row.next_due_ms, -1);
    assert_int_equal(row.interval_ms, 60000);
    app_row_wipe(&row);
}

static void test_event_when_added_then_numbered_and_never_changed(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    int64_t first, second, cycle = store_support_cycle(store);
    assert_int_equal(store_event_add(store, "shop", "calm", cycle, "cool-down", 5, &first, &err), 0);
    assert_int_equal(store_event_add(store, NULL, "start", 0, "remap started", 6, &second, &err), 0);
    assert_int_equal(second, first + 1);
    assert_rows(store, "SELECT at_ms, app, kind, cycle_id, text FROM v_events ORDER BY event_id",
                "5|shop|calm|1|cool-down\n6|-|start|-|remap started\n");
}

/* --- snapshots --- */

static void test_snapshot_when_saved_then_views_show_it(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    int64_t id = store_support_cycle(store);
    assert_int_equal(store_snapshot_save(store, id, "base", model, "{\"v\":1}", 7, &err), 0);
    assert_rows(store,
                "SELECT app, cycle_id, taken_ms, host, service, instance, cpu_used_millis,"
                " mem_used_bytes, cpu_share, mem_share FROM v_placement ORDER BY instance",
                "shop|1|2500|n2|cart|cart-1|100|1000|0.025|0.125\n"
                "shop|1|2500|-|cart|cart-2|100|1000|-|-\n"
                "shop|1|2500|n1|db|db-1|100|1000|0.025|0.125\n"
                "shop|1|2500|n1|front|front-1|100|1000|0.025|0.125\n"
                "shop|1|2500|n2|front|front-2|100|1000|0.025|0.125\n");
    assert_rows(store,
                "SELECT src, dst, src_host, dst_host, count, bytes, mean_ms, crosses, local_share"
                " FROM v_edges",
                "front-1|cart-1|n1|n2|10|1000|4.5|1|0.0\n"
                "cart-1|db-1|n2|n1|5|-|-|1|0.0\n"
                "front|db|-|n1|3|30|1.0|1|0.5\n");
    assert_rows(store, "SELECT service, replicas, stateful FROM services",
                "cart|2|0\ndb|1|1\nfront|2|0\n");
}

static void test_snapshot_when_verified_then_placement_is_the_newer(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    int64_t id = store_support_cycle(store);
    assert_int_equal(store_snapshot_save(store, id, "base", model, "{\"b\":1}", 7, &err), 0);
    model->instances[1].host = 2;
    assert_int_equal(store_snapshot_save(store, id, "verify", model, "{\"w\":1}", 7, &err), 0);
    assert_rows(store, "SELECT host, phase FROM v_placement WHERE instance = 'cart-1'",
                "n3|verify\n");
    assert_rows(store, "SELECT src_host, dst_host FROM v_edges WHERE src = 'front-1'", "n1|n2\n");
    AUTO_BUF struct buf text = BUF_INIT;
    assert_int_equal(store_snapshot_load(store, id, "verify", &text, &err), 0);
    assert_string_equal(text.data, "{\"w\":1}");
}

static void test_snapshot_when_saved_again_then_replaced(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    int64_t id = store_support_cycle(store);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_snapshot_save(store, id, "base", model, "{}", 2, &err), 0);
    }
    assert_rows(store, "SELECT count(*) FROM v_placement", "5\n");
    assert_rows(store, "SELECT count(*) FROM v_edges", "3\n");
}

static void test_snapshot_when_bytes_then_loaded_exactly(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    static const char bytes[] = "{\"a\":\"\xc3\xa4\"}\n\0tail";
    AUTO(model) struct model *model = store_support_model();
    AUTO_BUF struct buf text = BUF_INIT;
    int64_t id = store_support_cycle(store);
    assert_int_equal(store_snapshot_load(store, id, "base", &text, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_int_equal(store_snapshot_save(store, id, "base", model, bytes, sizeof bytes, &err), 0);
    assert_int_equal(store_snapshot_load(store, id, "base", &text, &err), 0);
    assert_int_equal(text.size, sizeof bytes);
    assert_memory_equal(text.data, bytes, sizeof bytes);
}

/* local_share at service level: Σ min(x_a/d_a, x_b/d_b); hosts of a's and b's replicas as digits,
 * '-' not placed. */
static void test_edges_when_replicated_then_share_is_what_a_balancer_keeps(void **state)
{
    static const struct {
        const char *a, *b, *expected;
    } vectors[] = {
        {"0", "0", "0|1.0"},      {"0", "1", "1|0.0"},        {"00", "0", "0|1.0"},
        {"01", "0", "1|0.5"},     {"01", "10", "0|1.0"},      {"0011", "012", "1|0.666666666666667"},
        {"0-", "0", "1|0.5"},     {"-", "0", "-|-"},          {"000", "012", "1|0.333333333333333"},
        {"2210", "2", "1|0.5"},   {"", "0", "-|-"},
    };
    struct store *store = ((struct store_fixture *)*state)->store;
    for (size_t v = 0; v < ARRAY_LEN(vectors); v++) {
        struct err err = ERR_INIT;
        AUTO(model) struct model *model = model_new();
        for (int h = 0; h < 3; h++) {
            assert_true(model_add_host(model, (const char[]){(char)('0' + h), 0}, &err) >= 0);
        }
        const char *const ends[] = {vectors[v].a, vectors[v].b};
        for (int s = 0; s < 2; s++) {
            assert_true(model_add_service(model, s ? "b" : "a", &err) >= 0);
            for (size_t i = 0; ends[s][i]; i++) {
                AUTO_FREE char *name = mem_printf("%d-%zu", s, i);
                int host = ends[s][i] == '-' ? -1 : ends[s][i] - '0';
                assert_true(model_add_instance(model, name, s, host, &err) >= 0);
            }
        }
        *ARRAY_PUSH(model->messages, model->n_messages) =
            (struct message){LEVEL_SERVICE, 0, 1, 1, 1, -1};
        int64_t id = store_support_cycle(store);
        assert_int_equal(store_snapshot_save(store, id, "base", model, "", 0, &err), 0);
        AUTO_FREE char *sql = mem_printf(
            "SELECT crosses, local_share FROM v_edges WHERE cycle_id = %lld", (long long)id);
        AUTO_FREE char *expected = mem_printf("%s\n", vectors[v].expected);
        assert_rows(store, sql, expected);
    }
}

/* --- analysis, plan, savings --- */

static void test_analysis_when_saved_then_ranked_per_level(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    AUTO(analysis) struct analysis *analysis = store_support_analysis(model);
    AUTO_BUF struct buf text = BUF_INIT;
    int64_t id = store_support_cycle(store);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_analysis_save(store, id, analysis, model, "{\"a\":1}", 7, &err), 0);
    }
    assert_rows(store, "SELECT level, a, b, degree, count, bytes, rank FROM v_affinity",
                "instance|cart-1|front-1|0.75|10|1000|1\n"
                "instance|cart-1|db-1|0.125|5|-|2\n"
                "service|cart|front|0.75|10|1000|1\n");
    assert_int_equal(store_analysis_load(store, id, &text, &err), 0);
    assert_string_equal(text.data, "{\"a\":1}");
}

static void test_analysis_when_only_service_rows_then_kept_once(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    AUTO(analysis) struct analysis *analysis = analysis_new();
    *ARRAY_PUSH(analysis->rows, analysis->n_rows) =
        (struct affinity){LEVEL_SERVICE, 1, 0, 0.5, 1, 1};
    int64_t id = store_support_cycle(store);
    assert_int_equal(store_analysis_save(store, id, analysis, model, "", 0, &err), 0);
    assert_rows(store, "SELECT level, a, b FROM v_affinity", "service|cart|front\n");
}

static void test_plan_when_saved_then_scalars_and_moves_are_there(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    AUTO(plan) struct plan *plan = store_support_plan(model);
    AUTO_BUF struct buf options = BUF_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    int64_t id = store_support_cycle(store);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            store_plan_save(store, id, plan, model, "{\"o\":1}", "{\"p\":1}", 7, &err), 0);
    }
    assert_rows(store,
                "SELECT requested, planner, why, objective, granularity, status, cut,"
                " affinity_before, affinity_after, affinity_bound, gap, hosts_before, hosts_after,"
                " hosts_bound, restarts, coverage, solve_ms, unordered FROM v_plans",
                "auto|hba|the default|affinity|instance|feasible|0|0.25|0.875|-|-|2|1|-|2|-|3|0\n");
    assert_rows(store,
                "SELECT seq, service, instance, source, target, gain, state, reason, intended_ms,"
                " settled_ms, undo_of, detour FROM v_moves",
                "1|cart|cart-1|n2|n1|0.625|planned|-|-|-|-|0\n"
                "2|front|front-2|n2|n1|0.0|planned|-|-|-|-|0\n");
    assert_rows(store, "SELECT moves_planned, moves_applied FROM v_cycles", "2|0\n");
    assert_int_equal(store_plan_load(store, id, &options, &text, &err), 0);
    assert_string_equal(options.data, "{\"o\":1}");
    assert_string_equal(text.data, "{\"p\":1}");
}

static void test_plan_when_bound_then_gap_is_shown(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    AUTO(plan) struct plan *plan = store_support_plan(model);
    plan->has_bound = true;
    plan->affinity_bound = 1;
    plan->coverage = 0.5;
    int64_t id = store_support_cycle(store);
    assert_int_equal(store_plan_save(store, id, plan, model, "", "", 0, &err), 0);
    assert_rows(store, "SELECT affinity_bound, gap, coverage FROM v_plans", "1.0|0.125|0.5\n");
}

static void test_savings_when_only_planned_then_predicted_from_the_plan(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    int64_t id = store_support_full_cycle(store, model, 100);
    static const char sql[] =
        "SELECT app, hosts_before, hosts_predicted, hosts_realised, affinity_before,"
        " affinity_predicted, affinity_realised, response_before_ms, response_predicted_ms,"
        " response_realised_ms FROM v_savings";
    assert_rows(store, sql, "shop|2|1|-|0.25|0.875|-|-|-|-\n");
    struct savings savings = {3, 2, 2, 0.25, 0.5, 0.375, 10, 8, -1, 0.5, 0.75, 0.625};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_savings_save(store, id, &savings, &err), 0);
    }
    assert_rows(store, sql, "shop|3|2|2|0.25|0.5|0.375|10.0|8.0|-\n");
}

/* --- retention --- */

static void test_retain_when_old_then_cycle_goes_with_everything(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    int64_t old = store_support_full_cycle(store, model, 1000);
    int64_t young = store_support_full_cycle(store, model, 5000);
    int64_t open = store_support_cycle(store), deleted = -1;
    assert_int_equal(store_event_add(store, NULL, "start", 0, "old", 1000, NULL, &err), 0);
    assert_int_equal(store_event_add(store, NULL, "start", 0, "young", 5000, NULL, &err), 0);
    assert_int_equal(store_retain(store, 6000, 2000, 0, &deleted, &err), 0);
    assert_int_equal(deleted, 1);
    static const char *const tables[] = {"documents", "snapshots", "affinities", "plans", "moves",
                                         "move_hosts", NULL};
    for (size_t i = 0; tables[i]; i++) {
        AUTO_FREE char *sql =
            mem_printf("SELECT DISTINCT cycle_id FROM %s", tables[i]);
        AUTO_FREE char *expected = mem_printf("%lld\n", (long long)young);
        assert_rows(store, sql, expected);
    }
    assert_rows(store, "SELECT count(*), count(DISTINCT snapshot_id) FROM instances", "5|1\n");
    assert_rows(store, "SELECT text FROM v_events ORDER BY event_id", "seen\nyoung\n");
    assert_rows(store, "SELECT count(*) FROM cycles", "2\n");
    assert_true(old < young && young < open);
    assert_true(store_support_cycle(store) > open); /* the id of the deleted one is gone for good */
}

static void test_retain_when_base_of_an_open_cycle_then_stays(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_model();
    int64_t base = store_support_full_cycle(store, model, 1000), undo = 0, deleted = -1;
    assert_int_equal(
        store_cycle_new(store, "shop", "undo", "undoing", false, base, 2000, &undo, &err), 0);
    assert_int_equal(store_retain(store, 900000, 1, 1, &deleted, &err), 0);
    assert_int_equal(deleted, 0);
    assert_int_equal(store_cycle_set(store, undo, "done", NULL, 1, -1, 899999, &err), 0);
    assert_int_equal(store_retain(store, 900000, 10, 0, &deleted, &err), 0);
    assert_int_equal(deleted, 1);
    assert_rows(store, "SELECT cycle_id, base_cycle FROM cycles", "2|-\n");
}

static void test_retain_when_too_large_then_oldest_go_and_file_shrinks(void **state)
{
    struct store_fixture *fixture = *state;
    struct store *store = fixture->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_large_model(200, 2000);
    for (int i = 0; i < 8; i++) {
        int64_t id = store_support_cycle(store);
        assert_int_equal(store_snapshot_save(store, id, "base", model, "{}", 2, &err), 0);
        assert_int_equal(store_cycle_set(store, id, "done", NULL, 1, -1, 5, &err), 0);
    }
    static const char bytes[] = "SELECT page_count * page_size FROM pragma_page_count,"
                                " pragma_page_size";
    int64_t before = store_support_number(store, bytes), deleted = -1;
    assert_int_equal(store_retain(store, 6, 0, before / 2, &deleted, &err), 0);
    assert_true(deleted >= 4 && deleted < 8);
    assert_true(store_support_number(store, bytes) <= before / 2);
    assert_int_equal(store_support_number(store, "SELECT min(cycle_id) FROM cycles"), deleted + 1);
    assert_int_equal(store_retain(store, 6, 0, before / 2, &deleted, &err), 0);
    assert_int_equal(deleted, 0);
}

/* --- JSON and speed --- */

static void test_query_when_rows_then_json_array_of_objects(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO_BUF struct buf out = BUF_INIT;
    int64_t cycle = store_support_cycle(store);
    assert_int_equal(store_event_add(store, "a\"b", "note", cycle, "\xc3\xa4\n", 5, NULL, &err), 0);
    static const char *const args[] = {"1", "a\"b", NULL};
    assert_int_equal(store_query_json(store,
                                      "SELECT event_id, app, text, 0.5 AS half, NULL AS none"
                                      " FROM v_events WHERE event_id = CAST(?1 AS INTEGER)"
                                      " AND app = ?2",
                                      args, &out, &err),
                     0);
    assert_string_equal(out.data, "[{\"event_id\":1,\"app\":\"a\\\"b\",\"text\":\"\xc3\xa4\\n\","
                                  "\"half\":0.5,\"none\":null}]");
    buf_clear(&out);
    assert_int_equal(
        store_query_json(store, "SELECT * FROM v_events WHERE event_id = 99", NULL, &out, &err), 0);
    assert_string_equal(out.data, "[]");
}

/* The goal is tens of ms on an idle machine; the limit here only catches a lost transaction or
 * statements prepared anew per row, each of which costs seconds. */
static void test_snapshot_when_1000_services_then_fast(void **state)
{
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = store_support_large_model(1000, 10000);
    int64_t id = store_support_cycle(store);
    int64_t from_ms = clock_mono_ms();
    assert_int_equal(store_snapshot_save(store, id, "base", model, "{}", 2, &err), 0);
    int64_t took_ms = clock_mono_ms() - from_ms;
    print_message("1000 services, 10000 edges: %lld ms\n", (long long)took_ms);
    assert_true(took_ms < 2000);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

struct delivery_step {
    const char *app, *delivery;
    int64_t at_ms;
    bool duplicate;
};

static void test_delivery_when_repeated_then_once_within_its_window(void **state)
{
    static const struct delivery_step steps[] = {
        {"shop", "github/d1/7", 1000, false},
        {"shop", "github/d1/7", 1500, true},  /* the provider saw no answer */
        {"shop", "github/d1/8", 1500, false}, /* another deployment under the same delivery */
        {"bank", "github/d1/7", 1600, false}, /* of another app as well */
        {"shop", "gitlab/d1/7", 1600, false},
        {NULL, "github/d1/7", 1600, false},
        {NULL, "github/d1/7", 1700, true},
        {"shop", "github/d1/7", 2000, true},
        {"shop", "github/d1/7", 2001, false}, /* an operator's redelivery */
        {"shop", "github/d1/7", 2900, true},
    };
    struct store *store = ((struct store_fixture *)*state)->store;
    struct err err = ERR_INIT;
    int64_t events = 0;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        int64_t id = 0;
        bool duplicate = !steps[i].duplicate;
        assert_int_equal(store_event_deliver(store, steps[i].app, "deploy", "text",
                                             steps[i].delivery, 1000, steps[i].at_ms, &id,
                                             &duplicate, &err),
                         0);
        if (duplicate != steps[i].duplicate)
            fail_msg("step %zu", i);
        events += !duplicate;
        assert_true(id > 0 && id <= events);
        assert_int_equal(store_support_number(store, "SELECT count(*) FROM v_events"), events);
    }
    assert_int_equal(store_retain(store, 10000, 7200, 0, NULL, &err), 0); /* older than 2800 */
    assert_int_equal(store_support_number(store, "SELECT count(*) FROM deliveries"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_cycle_when_new_then_everything_is_read_back),
        STORE_TEST(test_delivery_when_repeated_then_once_within_its_window),
        STORE_TEST(test_cycle_when_set_then_reason_is_kept_unless_given),
        STORE_TEST(test_cycle_when_unknown_then_not_found),
        STORE_TEST(test_cycles_open_when_some_ended_then_others_oldest_first),
        STORE_TEST(test_app_when_set_then_read_back_and_mode_kept),
        STORE_TEST(test_event_when_added_then_numbered_and_never_changed),
        STORE_TEST(test_snapshot_when_saved_then_views_show_it),
        STORE_TEST(test_snapshot_when_verified_then_placement_is_the_newer),
        STORE_TEST(test_snapshot_when_saved_again_then_replaced),
        STORE_TEST(test_snapshot_when_bytes_then_loaded_exactly),
        STORE_TEST(test_edges_when_replicated_then_share_is_what_a_balancer_keeps),
        STORE_TEST(test_analysis_when_saved_then_ranked_per_level),
        STORE_TEST(test_analysis_when_only_service_rows_then_kept_once),
        STORE_TEST(test_plan_when_saved_then_scalars_and_moves_are_there),
        STORE_TEST(test_plan_when_bound_then_gap_is_shown),
        STORE_TEST(test_savings_when_only_planned_then_predicted_from_the_plan),
        STORE_TEST(test_retain_when_old_then_cycle_goes_with_everything),
        STORE_TEST(test_retain_when_base_of_an_open_cycle_then_stays),
        STORE_TEST(test_retain_when_too_large_then_oldest_go_and_file_shrinks),
        STORE_TEST(test_query_when_rows_then_json_array_of_objects),
        STORE_TEST(test_snapshot_when_1000_services_then_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
