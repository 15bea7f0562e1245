/* test_identity.c - names of different tools lead to one thing, or to nothing and are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "adapters/identity.h"

struct fixture {
    struct model *model;
    struct identity *identity;
};

/* shop/cart with one pod, shop/front with two, and two services that end in /db. */
static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);
    struct err err = ERR_INIT;
    f->model = model_new();
    model_add_host(f->model, "Node-1", &err);
    int cart = model_add_service(f->model, "shop/cart", &err);
    int front = model_add_service(f->model, "shop/front", &err);
    model_add_service(f->model, "shop/db", &err);
    model_add_service(f->model, "other/db", &err);
    model_add_instance(f->model, "shop/cart-7d9f-x2x", cart, 0, &err);
    model_add_instance(f->model, "shop/front-1", front, 0, &err);
    model_add_instance(f->model, "shop/front-2", front, 0, &err);
    f->identity = identity_new(f->model);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    identity_free(f->identity);
    model_free(f->model);
    free(f);
    return 0;
}

static void test_find_when_name_is_written_in_another_form_then_the_same_thing(void **state)
{
    static const struct {
        enum identity_kind kind;
        const char *foreign, *own;
    } rows[] = {
        {IDENTITY_SERVICE, "shop/cart", "shop/cart"},
        {IDENTITY_SERVICE, "cart", "shop/cart"},
        {IDENTITY_SERVICE, "CART", "shop/cart"},
        {IDENTITY_SERVICE, "cart:8080", "shop/cart"},
        {IDENTITY_SERVICE, "cart.shop", "shop/cart"},
        {IDENTITY_SERVICE, "cart.shop.svc", "shop/cart"},
        {IDENTITY_SERVICE, "cart.shop.svc.cluster.local", "shop/cart"},
        {IDENTITY_SERVICE, "cart.shop.svc.cluster.local:80", "shop/cart"},
        {IDENTITY_SERVICE, "db.other", "other/db"},
        {IDENTITY_INSTANCE, "cart-7d9f-x2x", "shop/cart-7d9f-x2x"},
        {IDENTITY_INSTANCE, "shop/cart-7d9f-x2x", "shop/cart-7d9f-x2x"},
        {IDENTITY_HOST, "node-1", "Node-1"},
        {IDENTITY_HOST, "Node-1:9100", "Node-1"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int at = identity_find(f->identity, rows[i].kind, rows[i].foreign);
        if (at < 0)
            fail_msg("%s leads to nothing", rows[i].foreign);
        const char *own = rows[i].kind == IDENTITY_HOST      ? f->model->hosts[at].name
                          : rows[i].kind == IDENTITY_SERVICE ? f->model->services[at].name
                                                             : f->model->instances[at].name;
        assert_string_equal(own, rows[i].own);
    }
}

static void test_find_when_name_fits_nothing_or_several_then_none(void **state)
{
    static const char *const names[] = {"", "db", "carts", "shop", "cart.other", "cart.shop.example",
                                        ".", "a.b.c.d", ":80", "/", "cart/"};
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(identity_find(f->identity, IDENTITY_SERVICE, names[i]), -1);
    AUTO_FREE char *longest = mem_alloc(5000);
    memset(longest, 'x', 4999);
    assert_int_equal(identity_find(f->identity, IDENTITY_SERVICE, longest), -1);
}

static void test_alias_when_given_then_before_any_name(void **state)
{
    struct fixture *f = *state;
    identity_add(f->identity, IDENTITY_SERVICE, "Basket", "shop/cart");
    identity_add(f->identity, IDENTITY_SERVICE, "front", "shop/cart");
    identity_add(f->identity, IDENTITY_SERVICE, "x", "no/such");
    assert_int_equal(identity_find(f->identity, IDENTITY_SERVICE, "basket"), 0);
    assert_int_equal(identity_find(f->identity, IDENTITY_SERVICE, "front"), 0);
    assert_int_equal(identity_find(f->identity, IDENTITY_SERVICE, "x"), -1);
}

static void test_model_when_it_grows_after_a_lookup_then_new_things_are_found(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    identity_add(f->identity, IDENTITY_SERVICE, "pay", "shop/payment");
    assert_int_equal(identity_find(f->identity, IDENTITY_SERVICE, "pay"), -1);
    int payment = model_add_service(f->model, "shop/payment", &err);
    assert_int_equal(identity_find(f->identity, IDENTITY_SERVICE, "pay"), payment);
    assert_int_equal(identity_find(f->identity, IDENTITY_SERVICE, "payment"), payment);
}

static void expect_end(struct fixture *f, struct identity_end end, enum level level,
                       const char *name)
{
    enum level got_level;
    int got = identity_resolve(f->identity, &end, &got_level);
    assert_true(got >= 0);
    assert_int_equal(got_level, level);
    assert_string_equal(model_end_name(f->model, level, got), name);
}

static void test_resolve_when_pod_or_address_is_known_then_instance(void **state)
{
    struct fixture *f = *state;
    identity_add(f->identity, IDENTITY_INSTANCE, "10.0.0.7", "shop/front-2");
    expect_end(f, (struct identity_end){.service = "front", .instance = "front-1"}, LEVEL_INSTANCE,
               "shop/front-1");
    expect_end(f, (struct identity_end){.service = "front", .address = "10.0.0.7"}, LEVEL_INSTANCE,
               "shop/front-2");
    expect_end(f, (struct identity_end){.address = "10.0.0.7:53210"}, LEVEL_INSTANCE,
               "shop/front-2");
}

static void test_resolve_when_only_the_service_is_known_then_its_only_instance_or_itself(
    void **state)
{
    struct fixture *f = *state;
    expect_end(f, (struct identity_end){.service = "cart"}, LEVEL_INSTANCE, "shop/cart-7d9f-x2x");
    expect_end(f, (struct identity_end){.service = "front"}, LEVEL_SERVICE, "shop/front");
    expect_end(f, (struct identity_end){.service = "front", .instance = "front-9"}, LEVEL_SERVICE,
               "shop/front");
}

static void test_resolve_when_a_pod_was_known_then_its_tracers_name_is_learned(void **state)
{
    struct fixture *f = *state;
    enum level level;
    struct identity_end end = {.service = "web-ui"};
    assert_int_equal(identity_resolve(f->identity, &end, &level), -1);
    expect_end(f, (struct identity_end){.service = "Web-UI", .instance = "front-1"}, LEVEL_INSTANCE,
               "shop/front-1");
    expect_end(f, end, LEVEL_SERVICE, "shop/front");
}

static void test_unmapped_when_counted_then_summed_named_and_sorted(void **state)
{
    struct fixture *f = *state;
    identity_unmapped(f->identity, "redis", 3, -1);
    identity_unmapped(f->identity, "kafka", 5, 100);
    identity_unmapped(f->identity, "redis", 1, 11);
    identity_unmapped(f->identity, NULL, 2, -1);
    identity_unmapped(f->identity, "bad\nname", 1, -1);
    size_t n;
    const struct unmapped *names = identity_unmapped_names(f->identity, &n);
    assert_int_equal(n, 2);
    assert_string_equal(names[0].name, "kafka");
    assert_int_equal(names[1].count, 4);
    identity_report(f->identity, &f->model->traffic);
    assert_true(f->model->traffic.given);
    assert_int_equal(f->model->traffic.unmapped_count, 12);
    assert_int_equal(f->model->traffic.unmapped_bytes, 111);
    assert_int_equal(f->model->traffic.n_unseen_services, 2);
    assert_string_equal(f->model->traffic.unseen_services[0], "kafka");
    assert_string_equal(f->model->traffic.unseen_services[1], "redis");
}

static void test_unmapped_when_no_size_is_known_then_bytes_are_unknown_not_zero(void **state)
{
    struct fixture *f = *state;
    identity_unmapped(f->identity, "redis", 3, -1);
    identity_report(f->identity, &f->model->traffic);
    assert_int_equal(f->model->traffic.unmapped_bytes, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_find_when_name_is_written_in_another_form_then_the_same_thing),
        TEST(test_find_when_name_fits_nothing_or_several_then_none),
        TEST(test_alias_when_given_then_before_any_name),
        TEST(test_model_when_it_grows_after_a_lookup_then_new_things_are_found),
        TEST(test_resolve_when_pod_or_address_is_known_then_instance),
        TEST(test_resolve_when_only_the_service_is_known_then_its_only_instance_or_itself),
        TEST(test_resolve_when_a_pod_was_known_then_its_tracers_name_is_learned),
        TEST(test_unmapped_when_counted_then_summed_named_and_sorted),
        TEST(test_unmapped_when_no_size_is_known_then_bytes_are_unknown_not_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
