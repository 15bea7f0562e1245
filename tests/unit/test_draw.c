/* test_draw.c - the drawing of a placement: boxes, bars, marks at both ends, what came. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "model/manager/draw.h"
#include "model/manager/table.h"

static struct model *shop(const char *carts_host)
{
    struct err err = ERR_INIT;
    struct model *model = model_new();
    static const char *const hosts[] = {"node-1", "node-2"};
    static const char *const services[] = {"front", "carts", "db"};
    for (int i = 0; i < 2; i++) {
        int h = model_add_host(model, hosts[i], &err);
        model->hosts[h].cpu_cap_millis = 1000;
        model->hosts[h].mem_cap_bytes = 1000;
    }
    for (int i = 0; i < 3; i++)
        model_add_service(model, services[i], &err);
    const int at[] = {0, model_host(model, carts_host), 1, 0};
    static const char *const instances[] = {"front-a", "carts-a", "db-a", "front-b"};
    static const int of[] = {0, 1, 2, 0};
    for (int i = 0; i < 4; i++) {
        int n = model_add_instance(model, instances[i], of[i], at[i], &err);
        model->instances[n].cpu_used_millis = 250;
        model->instances[n].mem_used_bytes = 100;
    }
    return model;
}

static const struct draw_edge edges[] = {{"carts", "db", 0.6}, {"carts", "front", 0.4}};

static void test_draw_when_two_hosts_then_exactly_this(void **state)
{
    (void)state;
    AUTO(model) struct model *before = shop("node-1");
    AUTO(model) struct model *after = shop("node-2");
    const struct draw_style style = {.columns = 80, .colour = false};
    AUTO_BUF struct buf out = BUF_INIT;
    draw_placement(after, edges, 2, before, &style, &out);
    assert_string_equal(
        out.data,
        "┌ node-1 ────────────────────┐ ┌ node-2 ────────────────────┐\n"
        "│ cpu ████████░░░░░░░░  50%  │ │ cpu ████████░░░░░░░░  50%  │\n"
        "│ mem ███░░░░░░░░░░░░░  20%  │ │ mem ███░░░░░░░░░░░░░  20%  │\n"
        "│   front ×2 ①               │ │ + carts ①                  │\n"
        "│                            │ │   db                       │\n"
        "└────────────────────────────┘ └────────────────────────────┘\n"
        "crossing: ① carts ↔ front 40.0%\n");
}

static void test_draw_when_narrow_or_coloured_then_lines_keep_their_width(void **state)
{
    (void)state;
    AUTO(model) struct model *model = shop("node-1");
    const struct draw_style style = {.columns = 20, .colour = true};
    AUTO_BUF struct buf out = BUF_INIT;
    draw_placement(model, edges, 2, NULL, &style, &out);
    /* One box per row, so two tops; escapes come in pairs. */
    const char *first = strstr(out.data, "┌");
    assert_non_null(first);
    assert_non_null(strstr(first + 1, "\n┌"));
    int on = 0, off = 0;
    for (const char *p = out.data; (p = strstr(p, "\033[")); p++)
        *(strncmp(p, "\033[0m", 4) == 0 ? &off : &on) += 1;
    assert_true(on > 0);
    assert_int_equal(on, off);
}

static void test_crossing_when_replicas_are_spread_then_min_share(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO(model) struct model *model = shop("node-1");
    assert_true(draw_crossing(model, "carts", "db") == 1.0);
    assert_true(draw_crossing(model, "carts", "front") == 0.0);
    assert_true(draw_crossing(model, "carts", "nobody") == 0.0);
    model_add_instance(model, "front-c", 0, 1, &err);
    model_add_instance(model, "front-d", 0, 1, &err);
    assert_true(draw_crossing(model, "carts", "front") == 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draw_when_two_hosts_then_exactly_this),
        cmocka_unit_test(test_draw_when_narrow_or_coloured_then_lines_keep_their_width),
        cmocka_unit_test(test_crossing_when_replicas_are_spread_then_min_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
