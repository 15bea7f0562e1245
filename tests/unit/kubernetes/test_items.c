/* test_items.c - lists that arrive in pieces: the same items as by jansson, wherever they are cut. */
#include "adapters/kubernetes/items.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "adapters/kubernetes/kube.h"
#include "model/base/json.h"
#include "model/base/mem.h"

static const char list[] =
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":["
    "{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"manager\":\"kubectl\",\"fieldsV1\":{\"f:x\":{}}}],"
    "\"labels\":{\"app\":\"\\u00e4\\n\"}},\"spec\":{\"n\":-12,\"x\":1.5e3,\"on\":true,\"off\":false,"
    "\"none\":null,\"managedFields\":[1],\"deep\":[[],{},[{\"items\":[1,2]}]]}},"
    "{\"metadata\":{\"name\":\"b\"}},{}]}\n";

static void keep(void *ctx, const json_t *item)
{
    json_array_append_new(ctx, json_deep_copy(item));
}

/* The items, fed in pieces of `step` bytes; NULL and *err. */
static json_t *read_pieces(const char *text, size_t step, bool owners, struct err *err)
{
    AUTO_JSON json_t *got = json_array();
    AUTO(kube_items) struct kube_items *items = kube_items_new(owners, keep, got);
    const json_t *head;
    size_t size = strlen(text);
    for (size_t at = 0; at < size; at += step)
        if (kube_items_feed(items, text + at, size - at < step ? size - at : step, err))
            return NULL;
    if (kube_items_end(items, &head, err))
        return NULL;
    assert_string_equal(kube_text(head, "kind"), "PodList");
    assert_string_equal(kube_text(kube_get(head, "metadata"), "resourceVersion"), "7");
    assert_null(kube_get(head, "items"));
    return json_incref(got);
}

static void test_list_when_cut_anywhere_then_items_as_whole(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_JSON json_t *whole = json_parse(list, strlen(list), &json_limits_document, &err);
    assert_non_null(whole);
    for (size_t step = 1; step <= sizeof list; step++) {
        AUTO_JSON json_t *got = read_pieces(list, step, true, &err);
        assert_non_null(got);
        assert_true(json_equal(got, kube_get(whole, "items")));
    }
}

static void test_owners_when_not_wanted_then_only_those_are_missing(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_JSON json_t *whole = json_parse(list, strlen(list), &json_limits_document, &err);
    json_t *items = json_object_get(whole, "items");
    json_object_del(json_object_get(json_array_get(items, 0), "metadata"), "managedFields");
    AUTO_JSON json_t *got = read_pieces(list, 5, false, &err);
    assert_true(json_equal(got, items));
}

static void test_list_when_it_is_none_then_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "no JSON"},
        {"{\"items\":[{\"a\":1}", "no JSON"},
        {"{\"items\":[{}]} {}", "no JSON"},
        {"{\"items\":[{\"a\":}]}", "no JSON"},
        {"<html>", "no JSON"},
        {"[]", "is no object"},
        {"7", "is no object"},
        {"{\"items\":[7]}", "has an item that is no object"},
        {"{\"items\":[{},[]]}", "has an item that is no object"},
        {"{\"items\":[{\"a\":\"x\\u0000y\"}]}", "a text that is none"},
        {"{\"items\":[{\"a\\u0000\":1}]}", "a text that is none"},
        {"{\"items\":[{\"a\":99999999999999999999}]}", "out of range"},
        {"{\"items\":[{\"a\":1e999}]}", "out of range"},
        {"{\"items\":[{\"a\":\"\xff\"}]}", "no JSON"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        AUTO_JSON json_t *got = read_pieces(rows[i].text, 3, true, &err);
        assert_null(got);
        if (err.kind != ERR_INPUT || !strstr(err.text, rows[i].why))
            fail_msg("%s: %s", rows[i].text, err.text);
    }
}

static void test_list_when_nested_too_deeply_then_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_JSON json_t *seen = json_array();
    AUTO(kube_items) struct kube_items *items = kube_items_new(false, keep, seen);
    int rc = kube_items_feed(items, "{\"items\":[{\"a\":", 15, &err);
    for (int i = 0; i < 64 && rc == 0; i++)
        rc = kube_items_feed(items, "[", 1, &err);
    assert_int_equal(rc, -1);
    assert_non_null(strstr(err.text, "too deeply"));
}

static void test_list_when_an_item_has_no_end_then_refused(void **state)
{
    static char text[1 << 20];
    struct err err = ERR_INIT;
    (void)state;
    AUTO_JSON json_t *seen = json_array();
    AUTO(kube_items) struct kube_items *items = kube_items_new(false, keep, seen);
    assert_int_equal(kube_items_feed(items, "{\"items\":[{\"a\":[", 16, &err), 0);
    memset(text, ' ', sizeof text);
    int rc = 0;
    for (int i = 0; i < 20 && rc == 0; i++)
        rc = kube_items_feed(items, text, sizeof text, &err);
    assert_int_equal(rc, -1);
    assert_int_equal(err.kind, ERR_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_when_cut_anywhere_then_items_as_whole),
        cmocka_unit_test(test_owners_when_not_wanted_then_only_those_are_missing),
        cmocka_unit_test(test_list_when_it_is_none_then_refused),
        cmocka_unit_test(test_list_when_nested_too_deeply_then_refused),
        cmocka_unit_test(test_list_when_an_item_has_no_end_then_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
