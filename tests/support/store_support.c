/* store_support.c - see store_support.h. */
#include "tests/support/store_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/mem.h"
#include "tests/support/temp_dir.h"

int store_fixture_open(void **state)
{
    struct store_fixture *fixture = mem_alloc(sizeof *fixture);
    struct err err = ERR_INIT;
    fixture->dir = temp_dir_new();
    fixture->path = mem_printf("%s/state/store.db", fixture->dir);
    if (store_open(fixture->path, &fixture->store, &err)) {
        print_error("%s\n", err.text);
        return -1;
    }
    *state = fixture;
    return 0;
}

int store_fixture_close(void **state)
{
    struct store_fixture *fixture = *state;
    store_close(fixture->store);
    temp_dir_remove(fixture->dir);
    free(fixture->dir);
    free(fixture->path);
    free(fixture);
    return 0;
}

static int add_instance(struct model *model, const char *name, const char *service, int host)
{
    struct err err = ERR_INIT;
    int i = model_add_instance(model, name, model_service(model, service), host, &err);
    assert_true(i >= 0);
    model->instances[i].cpu_used_millis = 100;
    model->instances[i].mem_used_bytes = 1000;
    return i;
}

static void add_message(struct model *model, enum level level, int src, int dst, int64_t count,
                        int64_t bytes, double mean_ms)
{
    *ARRAY_PUSH(model->messages, model->n_messages) =
        (struct message){level, src, dst, count, bytes, mean_ms};
    model->has_messages = true;
}

static void add_host(struct model *model, const char *name)
{
    struct err err = ERR_INIT;
    int i = model_add_host(model, name, &err);
    assert_true(i >= 0);
    model->hosts[i].cpu_cap_millis = 4000;
    model->hosts[i].mem_cap_bytes = 8000;
}

struct model *store_support_model(void)
{
    struct err err = ERR_INIT;
    struct model *model = model_new();
    add_host(model, "n1");
    add_host(model, "n2");
    add_host(model, "n3");
    assert_int_equal(model_add_service(model, "front", &err), 0);
    assert_int_equal(model_add_service(model, "cart", &err), 1);
    assert_int_equal(model_add_service(model, "db", &err), 2);
    model->services[2].stateful = true;
    int front = add_instance(model, "front-1", "front", 0);
    int cart = add_instance(model, "cart-1", "cart", 1);
    add_instance(model, "front-2", "front", 1);
    int db = add_instance(model, "db-1", "db", 0);
    add_instance(model, "cart-2", "cart", -1);
    add_message(model, LEVEL_INSTANCE, front, cart, 10, 1000, 4.5);
    add_message(model, LEVEL_INSTANCE, cart, db, 5, -1, -1);
    add_message(model, LEVEL_SERVICE, 0, 2, 3, 30, 1);
    model->from_ms = 1000;
    model->to_ms = 2000;
    model->taken_ms = 2500;
    return model;
}

struct analysis *store_support_analysis(const struct model *model)
{
    struct analysis *analysis = analysis_new();
    analysis->weight_used = 0.5;
    analysis->count = 18;
    analysis->bytes = 1030;
    *ARRAY_PUSH(analysis->rows, analysis->n_rows) =
        (struct affinity){LEVEL_INSTANCE, model_instance(model, "cart-1"),
                          model_instance(model, "front-1"), 0.75, 10, 1000};
    *ARRAY_PUSH(analysis->rows, analysis->n_rows) =
        (struct affinity){LEVEL_INSTANCE, model_instance(model, "cart-1"),
                          model_instance(model, "db-1"), 0.125, 5, -1};
    *ARRAY_PUSH(analysis->service_rows, analysis->n_service_rows) =
        (struct affinity){LEVEL_SERVICE, model_service(model, "cart"),
                          model_service(model, "front"), 0.75, 10, 1000};
    return analysis;
}

struct plan *store_support_plan(const struct model *model)
{
    struct plan *plan = plan_new();
    plan->requested = mem_strdup("auto");
    plan->planner = mem_strdup("hba");
    plan->why = mem_strdup("the default");
    plan->objective = OBJECTIVE_AFFINITY;
    plan->granularity = PER_INSTANCE;
    plan->status = PLAN_FEASIBLE;
    plan->affinity_before = 0.25;
    plan->affinity_after = 0.875;
    plan->hosts_before = 2;
    plan->hosts_after = 1;
    plan->hosts_bound = -1;
    plan->restarts = 2;
    plan->coverage = -1;
    plan->solve_ms = 3;
    static const char *const moved[] = {"cart-1", "front-2"};
    for (int i = 0; i < 2; i++) {
        struct move *move = ARRAY_PUSH(plan->moves, plan->n_moves);
        move->seq = i + 1;
        move->instance = model_instance(model, moved[i]);
        move->service = model->instances[move->instance].service;
        move->source = 1;
        move->target = 0;
        move->restarts = 1;
        move->gain = i ? 0 : 0.625;
    }
    return plan;
}

struct model *store_support_large_model(int n, int rows)
{
    struct err err = ERR_INIT;
    struct model *model = model_new();
    for (int i = 0; i < n; i++) {
        AUTO_FREE char *host = mem_printf("host-%d.example.org", i);
        AUTO_FREE char *service = mem_printf("shop/service-%d", i);
        AUTO_FREE char *instance = mem_printf("shop/service-%d-5f8c9d7b6d-%05d", i, i);
        add_host(model, host);
        assert_int_equal(model_add_service(model, service, &err), i);
        add_instance(model, instance, service, i);
    }
    for (int i = 0; i < rows; i++) {
        int src = i % n;
        add_message(model, LEVEL_INSTANCE, src, (src + 1 + i / n) % n, 1 + i % 50, 100 + i, 1.5);
    }
    model->taken_ms = 1;
    return model;
}

int64_t store_support_cycle(struct store *store)
{
    struct err err = ERR_INIT;
    int64_t id = 0;
    assert_int_equal(
        store_cycle_new(store, "shop", "timer", "collecting", false, -1, 1000, &id, &err), 0);
    return id;
}

int64_t store_support_full_cycle(struct store *store, const struct model *model, int64_t now_ms)
{
    struct err err = ERR_INIT;
    int64_t id = 0;
    AUTO(analysis) struct analysis *analysis = store_support_analysis(model);
    AUTO(plan) struct plan *plan = store_support_plan(model);
    assert_int_equal(
        store_cycle_new(store, "shop", "timer", "collecting", false, -1, now_ms, &id, &err), 0);
    assert_int_equal(store_snapshot_save(store, id, "base", model, "{\"m\":1}", 7, &err), 0);
    assert_int_equal(store_analysis_save(store, id, analysis, model, "{\"a\":1}", 7, &err), 0);
    assert_int_equal(store_plan_save(store, id, plan, model, "{\"o\":1}", "{\"p\":1}", 7, &err),
                     0);
    assert_int_equal(store_event_add(store, "shop", "note", id, "seen", now_ms, NULL, &err), 0);
    assert_int_equal(store_cycle_set(store, id, "done", NULL, 1, -1, now_ms + 10, &err), 0);
    return id;
}

int64_t store_support_number(struct store *store, const char *sql)
{
    struct err err = ERR_INIT;
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(store, sql, NULL, &rows, &err) || store_rows_next(rows, &err) < 0) {
        fail_msg("%s: %s", sql, err.text);
    }
    return store_rows_int(rows, 0, -1);
}

char *store_support_text(struct store *store, const char *sql)
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(store, sql, NULL, &rows, &err)) {
        fail_msg("%s: %s", sql, err.text);
    }
    int rc;
    while ((rc = store_rows_next(rows, &err)) == 1) {
        for (int i = 0; i < store_rows_columns(rows); i++) {
            const char *cell = store_rows_text(rows, i);
            buf_printf(&text, "%s%s", i ? "|" : "", cell ? cell : "-");
        }
        buf_puts(&text, "\n");
    }
    assert_int_equal(rc, 0);
    return buf_take(&text);
}
