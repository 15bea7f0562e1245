/* test_rows.c - from names in spans to rows of a model: with a cluster's names, and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "adapters/spans/rows.h"
#include "model/base/buf.h"

struct fixture {
    struct span_table *table;
    struct model *model;
    struct identity *identity;
    struct inspection in;
};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);
    f->table = span_table_new();
    f->model = model_new();
    f->identity = identity_new(f->model);
    f->in = (struct inspection){.model = f->model, .identity = f->identity};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    inspection_wipe(&f->in);
    span_table_free(f->table);
    identity_free(f->identity);
    model_free(f->model);
    free(f);
    return 0;
}

/* A node that has spans of its own; pod NULL: not said. */
static int32_t node(struct fixture *f, const char *service, const char *pod)
{
    struct err err = ERR_INIT;
    int32_t hint = pod ? span_table_name(f->table, pod, strlen(pod), false, &err) : -1;
    int32_t at = span_table_node(f->table,
                                 span_table_name(f->table, service, strlen(service), true, &err),
                                 hint, pod ? HINT_POD : HINT_NONE);
    span_table_nodes(f->table, NULL)[at].reports = true;
    return at;
}

static int32_t spoken_of(struct fixture *f, const char *service)
{
    struct err err = ERR_INIT;
    int32_t name = span_table_name(f->table, service, strlen(service), true, &err);
    return span_table_node(f->table, name, -1, HINT_NONE);
}

static void send(struct fixture *f, int32_t src, int32_t dst, int64_t bytes, int64_t us)
{
    struct err err = ERR_INIT;
    assert_int_equal(span_table_message(f->table, src, dst, bytes, us, &err), 0);
}

/* "a>b 2 30B 1.5ms; …" in the order of the model, service rows in parentheses. */
static void expect(struct fixture *f, const char *wanted)
{
    struct buf got = BUF_INIT;
    buf_puts(&got, "");
    for (size_t i = 0; i < f->model->n_messages; i++) {
        const struct message *m = &f->model->messages[i];
        bool service = m->level == LEVEL_SERVICE;
        buf_printf(&got, "%s%s%s>%s %lld", i ? "; " : "", service ? "(" : "",
                   model_end_name(f->model, m->level, m->src),
                   model_end_name(f->model, m->level, m->dst), (long long)m->count);
        if (m->bytes >= 0)
            buf_printf(&got, " %lldB", (long long)m->bytes);
        if (m->mean_ms >= 0)
            buf_printf(&got, " %gms", m->mean_ms);
        buf_puts(&got, service ? ")" : "");
    }
    assert_string_equal(got.data ? got.data : "", wanted);
    buf_wipe(&got);
}

static void finish(struct fixture *f, struct span_end *ends)
{
    struct err err = ERR_INIT;
    assert_int_equal(span_rows(f->table, ends, &f->in, &err), 0);
    identity_report(f->identity, &f->model->traffic);
    f->model->has_messages = true;
    if (model_check(f->model, &err))
        fail_msg("%s", err.text);
    free(ends);
}

static void make(struct fixture *f)
{
    struct err err = ERR_INIT;
    struct span_end *ends = NULL;
    if (span_ends_make(f->table, "app", f->model, &ends, &err))
        fail_msg("%s", err.text);
    finish(f, ends);
}

static bool has_note(const struct fixture *f, const char *kind, int64_t count)
{
    for (size_t i = 0; i < f->in.n_notes; i++)
        if (strcmp(f->in.notes[i].kind, kind) == 0 && f->in.notes[i].count == count)
            return true;
    return false;
}

static void test_services_when_made_then_all_names_but_addresses_only_spoken_of(void **state)
{
    struct fixture *f = *state;
    int32_t b = node(f, "b", NULL), a = node(f, "a", NULL), db = spoken_of(f, "db");
    int32_t address = spoken_of(f, "10.1.2.3");
    send(f, b, a, 10, 1000);
    send(f, b, a, 20, 2000);
    send(f, a, db, 5, -1);
    send(f, a, address, 6, -1);
    spoken_of(f, "silent");
    make(f);
    assert_int_equal(f->model->n_services, 3);
    assert_string_equal(f->model->services[0].name, "a");
    assert_string_equal(f->model->services[0].app, "app");
    assert_int_equal(f->model->instances[0].host, -1);
    expect(f, "a>db 1 5B; b>a 2 30B 1.5ms");
    assert_int_equal(f->model->traffic.unmapped_count, 1);
    assert_int_equal(f->model->traffic.unmapped_bytes, 6);
    assert_string_equal(f->model->traffic.unseen_services[0], "10.1.2.3");
}

static void test_instances_when_pods_are_told_then_they_and_single_ones_stand_for_services(
    void **state)
{
    struct fixture *f = *state;
    int32_t a1 = node(f, "a", "a-1"), a2 = node(f, "a", "a-2"), b1 = node(f, "b", "b-1");
    int32_t b = spoken_of(f, "b"), a = spoken_of(f, "a");
    send(f, a1, b1, -1, -1);
    send(f, a2, b, -1, -1); /* b has one pod: it */
    send(f, b1, a, -1, -1); /* a has two: the service */
    make(f);
    expect(f, "a-1>b-1 1; a-2>b-1 1; (b>a 1)");
}

static void test_instances_when_a_pods_name_is_taken_then_the_service_is_in_it(void **state)
{
    struct fixture *f = *state;
    send(f, node(f, "a", "x"), node(f, "b", "x"), 1, -1);         /* one name, two services */
    send(f, node(f, "b", "a"), node(f, "a", "x"), 2, -1);         /* a pod named as a service */
    send(f, node(f, "only", "only"), node(f, "a", "x"), 3, -1);   /* its only one: allowed */
    make(f);
    expect(f, "x>b/x 1 1B; b/a>x 1 2B; only>x 1 3B");
}

static void test_traffic_when_within_one_end_then_dropped_and_told(void **state)
{
    struct fixture *f = *state;
    int32_t a1 = node(f, "a", "a-1"), a2 = node(f, "a", "a-2"), a = spoken_of(f, "a");
    send(f, a1, a1, -1, -1);
    send(f, a1, a, -1, -1);
    send(f, a1, a2, -1, -1); /* between two pods: may cross hosts */
    make(f);
    expect(f, "a-1>a-2 1");
    assert_true(has_note(f, "within", 2));
}

static void test_counts_when_halves_are_lost_then_unmapped_and_told(void **state)
{
    struct fixture *f = *state;
    struct span_counts *counts = span_table_counts(f->table);
    counts->late = 7;
    counts->late_messages = 2;
    counts->no_caller = 3;
    counts->no_callee = 4;
    counts->no_broker = 5;
    counts->external = 6;
    make(f);
    assert_int_equal(f->model->traffic.unmapped_count, 14);
    assert_true(has_note(f, "late", 7));
    assert_true(has_note(f, "missing-parent", 3));
    assert_true(has_note(f, "no-callee", 4));
    assert_true(has_note(f, "no-broker", 5));
    assert_true(has_note(f, "external", 6));
}

static void test_ends_when_joined_with_a_cluster_then_pods_teach_the_service_names(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    int front = model_add_service(f->model, "shop/front", &err);
    int cart = model_add_service(f->model, "shop/cart", &err);
    model_add_instance(f->model, "shop/front-1", front, -1, &err);
    model_add_instance(f->model, "shop/cart-1", cart, -1, &err);
    model_add_instance(f->model, "shop/cart-2", cart, -1, &err);
    int32_t web = spoken_of(f, "web-ui"); /* met before the node that explains it */
    send(f, node(f, "cart", "cart-1"), web, -1, -1);
    send(f, node(f, "web-ui", "front-1"), spoken_of(f, "cart.shop.svc:80"), -1, -1);
    send(f, web, spoken_of(f, "redis"), -1, -1);
    send(f, spoken_of(f, "x"), spoken_of(f, "y"), -1, -1);
    finish(f, span_ends_join(f->table, f->identity));
    expect(f, "shop/cart-1>shop/front-1 1; (shop/front>shop/cart 1)");
    assert_int_equal(f->model->traffic.unmapped_count, 2);
    assert_int_equal(f->model->traffic.n_unseen_services, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_services_when_made_then_all_names_but_addresses_only_spoken_of),
        TEST(test_instances_when_pods_are_told_then_they_and_single_ones_stand_for_services),
        TEST(test_instances_when_a_pods_name_is_taken_then_the_service_is_in_it),
        TEST(test_traffic_when_within_one_end_then_dropped_and_told),
        TEST(test_counts_when_halves_are_lost_then_unmapped_and_told),
        TEST(test_ends_when_joined_with_a_cluster_then_pods_teach_the_service_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
