/* test_table.c - objects by key under many puts, removals and sweeps; lines of watches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/kubernetes/table.h"
#include "adapters/kubernetes/watch.h"
#include "model/base/mem.h"
#include "tests/support/rng.h"

#define KEYS 300

struct item {
    struct table_head head;
    int *value; /* owned */
};

static void wipe(void *item)
{
    free(((struct item *)item)->value);
}

static void put(struct table *table, int key, int value)
{
    struct item item = {.head.key = mem_printf("k%d", key), .value = mem_alloc(sizeof(int))};
    *item.value = value;
    table_put(table, &item);
}

static void verify(const struct table *table, const int wanted[KEYS])
{
    size_t n = 0;
    for (int k = 0; k < KEYS; k++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", k);
        const struct item *item = table_find(table, key);
        if (wanted[k] < 0) {
            assert_null(item);
            continue;
        }
        assert_non_null(item);
        assert_int_equal(*item->value, wanted[k]);
        n++;
    }
    assert_int_equal(table_count(table), n);
}

static void test_table_when_changed_at_random_then_as_a_plain_array(void **state)
{
    (void)state;
    struct table table;
    int wanted[KEYS];
    struct rng rng = {7};
    table_init(&table, sizeof(struct item), wipe);
    for (int k = 0; k < KEYS; k++)
        wanted[k] = -1;
    for (int step = 0; step < 20000; step++) {
        int key = (int)rng_below(&rng, KEYS);
        char name[16];
        snprintf(name, sizeof name, "k%d", key);
        if (rng_below(&rng, 100) < 45) {
            put(&table, key, step);
            wanted[key] = step;
        } else {
            table_remove(&table, name);
            wanted[key] = -1;
        }
        if (step % 500 == 0)
            verify(&table, wanted);
    }
    verify(&table, wanted);
    table_wipe(&table);
}

static bool is_even(const void *item, const void *arg)
{
    (void)arg;
    return *((const struct item *)item)->value % 2 == 0;
}

static void test_table_when_swept_then_what_was_not_put_again_is_gone(void **state)
{
    (void)state;
    struct table table;
    int wanted[KEYS];
    table_init(&table, sizeof(struct item), wipe);
    for (int k = 0; k < KEYS; k++)
        put(&table, k, k);
    table_renew(&table);
    for (int k = 0; k < KEYS; k++) {
        wanted[k] = k % 3 == 0 || k % 2 ? k : -1;
        if (k % 3 == 0)
            put(&table, k, k);
    }
    table_sweep(&table, is_even, NULL); /* the odd ones are another list's */
    verify(&table, wanted);
    table_wipe(&table);
}

static int watch(const char *text, struct watch_event *out)
{
    struct err err = ERR_INIT;
    int rc = watch_decode(text, strlen(text), out, &err);
    if (rc)
        assert_int_equal(err.kind, ERR_INPUT);
    return rc;
}

static void test_watch_when_line_is_good_then_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum watch_kind kind;
        long code;
        const char *version;
    } cases[] = {
#define OBJECT "\"object\":{\"metadata\":{\"name\":\"p\",\"resourceVersion\":\"7\"}}"
        {"{\"type\":\"ADDED\"," OBJECT "}", WATCH_PUT, 0, "7"},
        {"{\"type\":\"MODIFIED\"," OBJECT "}", WATCH_PUT, 0, "7"},
        {"{\"type\":\"DELETED\"," OBJECT "}", WATCH_GONE, 0, "7"},
        {"{\"type\":\"BOOKMARK\"," OBJECT "}", WATCH_BOOKMARK, 0, "7"},
        {"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}",
         WATCH_ERROR, 410, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct watch_event event;
        assert_int_equal(watch(cases[i].line, &event), 0);
        assert_int_equal(event.kind, cases[i].kind);
        assert_int_equal(event.code, cases[i].code);
        if (cases[i].version)
            assert_string_equal(event.version, cases[i].version);
        watch_wipe(&event);
    }
}

static void test_watch_when_line_is_bad_then_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {"",
                                        "{}",
                                        "[]",
                                        "{\"type\":\"ADDED\"}",
                                        "{\"type\":\"ADDED\",\"object\":[]}",
                                        "{\"type\":\"ADDED\",\"object\":{}}",
                                        "{\"type\":\"RENAMED\"," OBJECT "}",
                                        "{\"type\":\"ADDED\"," OBJECT "} {}"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct watch_event event;
        assert_int_equal(watch(lines[i], &event), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_when_changed_at_random_then_as_a_plain_array),
        cmocka_unit_test(test_table_when_swept_then_what_was_not_put_again_is_gone),
        cmocka_unit_test(test_watch_when_line_is_good_then_decoded),
        cmocka_unit_test(test_watch_when_line_is_bad_then_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
