/* Which namespaces and services are an application's: the same for what is inspected, released, adopted
 * and relieved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "adapters/kubernetes/scope.h"

static const char *const none[] = {NULL};
static const char *const spaces[] = {"shop", "bank", NULL};
static const char *const services[] = {"cart", "bank/till", NULL};

static void test_scope_when_nothing_is_listed_then_all_is_in_it(void **state)
{
    (void)state;
    const struct app_scope app = {"app", none, none};
    assert_true(scope_has_space(NULL, "shop") && scope_has_service(NULL, "shop/cart"));
    assert_true(scope_has_space(&app, "shop") && scope_has_service(&app, "shop/cart"));
    assert_true(scope_has_space(&app, NULL));
    assert_false(scope_lists(none, "shop") || scope_lists(NULL, "shop"));
}

static void test_scope_when_listed_then_by_the_whole_name_or_the_name_alone(void **state)
{
    (void)state;
    const struct app_scope app = {"app", spaces, services};
    assert_true(scope_has_space(&app, "bank"));
    assert_false(scope_has_space(&app, "ban"));
    assert_false(scope_has_space(&app, NULL));
    assert_true(scope_has_service(&app, "shop/cart"));
    assert_true(scope_has_service(&app, "cart"));
    assert_true(scope_has_service(&app, "bank/till"));
    assert_false(scope_has_service(&app, "shop/till"));
    assert_false(scope_has_service(&app, "shop/cart/"));
    assert_false(scope_has_service(&app, "shop/user"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scope_when_nothing_is_listed_then_all_is_in_it),
        cmocka_unit_test(test_scope_when_listed_then_by_the_whole_name_or_the_name_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
