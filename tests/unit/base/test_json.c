/* test_json.c - strict parsing, values with their places, writers. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/base/json.h"
#include "model/base/mem.h"

static json_t *parse(const char *text, struct err *err)
{
    return json_parse(text, strlen(text), &json_limits_header, err);
}

static void test_json_parse_when_document_is_bad_names_line_and_column(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"", "line 1, column 1: the document ends here, unfinished"},
        {"{\"a\":\n [1", "line 2, column 4: the document ends here, unfinished"},
        {"{} x", "line 1, column 4: end of file expected near 'x'"},
        {"{\"a\":1,\n\"a\":2}", "line 2, column 3: duplicate object key near '\"a\"'"},
        {"[[[[[[[[[1]]]]]]]]]", "line 1, column 9: nested deeper than 8 levels"},
        {"[\"\xff\"]", "line 1, column 3: not valid UTF-8"},
        {"[99999999999999999999]",
         "line 1, column 21: number out of range: too big integer near '99999999999999999999'"},
        {"[1e999]", "line 1, column 6: number out of range: real number overflow near '1e999'"},
        {"[NaN]", "line 1, column 4: invalid token near 'NaN'"},
        {"[01]", "line 1, column 2: invalid token near '0'"},
        {"[\"a\nb\"]", NULL},
        {"[\"\\u0000\"]", NULL},
        {"[\"\\ud800\"]", NULL},
        {"[1,]", NULL},
        {"{'a':1}", NULL},
        {"[1] []", NULL},
        {"// x\n[]", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        assert_null(parse(rows[i].text, &err));
        assert_int_equal(err.kind, ERR_INPUT);
        assert_int_equal(strncmp(err.text, "line ", 5), 0);
        if (rows[i].error)
            assert_string_equal(err.text, rows[i].error);
    }
}

static void test_json_parse_when_zero_byte_is_inside_names_it(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_null(json_parse("{}\n\0", 4, &json_limits_header, &err));
    assert_string_equal(err.text, "line 2, column 1: zero byte");
    assert_null(json_parse(NULL, 0, &json_limits_header, &err));
}

static void test_json_parse_when_larger_than_limit_is_too_large(void **state)
{
    struct err err = ERR_INIT;
    const struct json_limits limits = {4, 2, 0};

    (void)state;
    assert_null(json_parse("[  1]", 5, &limits, &err));
    assert_int_equal(err.kind, ERR_TOO_LARGE);
    AUTO_JSON json_t *tree = json_parse("[ 1]", 4, &limits, &err);
    assert_non_null(tree);
}

static void test_json_parse_when_containers_are_too_many_is_too_large(void **state)
{
    struct err err = ERR_INIT;
    const struct json_limits limits = {100, 9, 3};

    (void)state;
    assert_null(json_parse("[[],\n{},[]]", 11, &limits, &err));
    assert_int_equal(err.kind, ERR_TOO_LARGE);
    assert_string_equal(err.text, "line 2, column 4: more than 3 objects and arrays");
    AUTO_JSON json_t *tree = json_parse("[[],\n{}]", 8, &limits, &err);
    assert_non_null(tree);
}

static void test_json_parse_when_very_deep_does_not_recurse(void **state)
{
    struct err err = ERR_INIT;
    const size_t size = 10000000;
    AUTO_FREE char *text = mem_alloc(size);

    (void)state;
    memset(text, '[', size);
    assert_null(json_parse(text, size, &json_limits_document, &err));
    assert_string_equal(err.text, "line 1, column 65: nested deeper than 64 levels");
}

static void test_json_parse_when_brackets_are_in_strings_counts_none(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    AUTO_JSON json_t *tree = parse("[\"[[[[[[[[[[[[ \\\" [[[[[[[[[\\\\\",[[]]]", &err);
    assert_non_null(tree);
    assert_int_equal(json_array_size(tree), 2);
}

static const char *const keys[] = {"name", "count", "share", "flag", "inner", "list", "kind", NULL};
static const char *const kinds[] = {"apart", "together", "spread", NULL};

static void test_jval_when_value_is_wrong_names_its_place(void **state)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *tree =
        parse("{\"list\":[{\"name\":\"\",\"count\":1.0,\"share\":2,\"flag\":0,\"kind\":\"apatr\","
              "\"inner\":{\"a b\":[true]}},{\"count\":-4}]}",
              &err);
    struct jval root = jval_root(tree), list = jval_get(&root, "list"), a = jval_at(&list, 0),
                b = jval_at(&list, 1), inner = jval_get(&a, "inner"), odd = jval_get(&inner, "a b"),
                v;
    int64_t n = 5;
    double x = 5;
    bool flag = true;
    int choice = 5;
    const char *text = "kept";
    size_t count = 5;

    (void)state;
    assert_non_null(tree);
    assert_int_equal(jval_object(&root, keys, &err), 0);
    v = jval_get(&a, "name");
    assert_int_equal(jval_name(&v, &text, &err), -1);
    assert_string_equal(err.text, "list[0].name: is empty");
    v = jval_get(&a, "count");
    assert_int_equal(jval_int(&v, 0, 10, &n, &err), -1);
    assert_string_equal(err.text, "list[0].count: must be an integer from 0 to 10, not 1.0");
    v = jval_get(&b, "count");
    assert_int_equal(jval_int(&v, 0, INT64_C(1000000000000000), &n, &err), -1);
    assert_string_equal(err.text, "list[1].count: must be an integer from 0 to 10^15, not -4");
    v = jval_get(&b, "name");
    assert_int_equal(jval_text(&v, 10, &text, &err), -1);
    assert_string_equal(err.text, "list[1].name: is missing");
    v = jval_get(&a, "share");
    assert_int_equal(jval_real(&v, 0, 1, &x, &err), -1);
    assert_string_equal(err.text, "list[0].share: must be a number from 0 to 1, not 2");
    v = jval_get(&a, "flag");
    assert_int_equal(jval_bool(&v, &flag, &err), -1);
    assert_string_equal(err.text, "list[0].flag: must be true or false, not 0");
    v = jval_get(&a, "kind");
    assert_int_equal(jval_choice(&v, kinds, &choice, &err), -1);
    assert_string_equal(err.text, "list[0].kind: must be \"apart\", \"together\" or \"spread\", "
                                  "not the text \"apatr\"");
    v = jval_at(&odd, 0);
    assert_int_equal(jval_int(&v, 0, 1, &n, &err), -1);
    assert_string_equal(err.text,
                        "list[0].inner[\"a b\"][0]: must be an integer from 0 to 1, not true");
    assert_int_equal(jval_object(&inner, keys, &err), -1);
    assert_string_equal(err.text, "list[0].inner[\"a b\"]: unknown key");
    assert_int_equal(jval_array(&root, 9, &count, &err), -1);
    assert_string_equal(err.text, "must be an array, not an object");
    assert_int_equal(jval_array(&list, 1, &count, &err), -1);
    assert_int_equal(err.kind, ERR_TOO_LARGE);
    assert_true(n == 5 && x == 5 && flag && choice == 5 && count == 5);
    assert_string_equal(text, "kept");
}

static void test_jval_when_value_is_right_reads_it(void **state)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *tree = parse("{\"name\":\"n\",\"count\":10,\"share\":1,\"flag\":false,"
                                   "\"kind\":\"spread\",\"list\":[]}",
                                   &err);
    struct jval root = jval_root(tree), v;
    int64_t n = 0;
    double x = 0;
    bool flag = true;
    int choice = 0;
    const char *name = NULL;
    size_t count = 5;

    (void)state;
    v = jval_get(&root, "name");
    assert_int_equal(jval_name(&v, &name, &err), 0);
    assert_string_equal(name, "n");
    v = jval_get(&root, "count");
    assert_int_equal(jval_int(&v, 0, 10, &n, &err), 0);
    v = jval_get(&root, "share");
    assert_int_equal(jval_real(&v, 0, 1, &x, &err), 0);
    v = jval_get(&root, "flag");
    assert_int_equal(jval_bool(&v, &flag, &err), 0);
    v = jval_get(&root, "kind");
    assert_int_equal(jval_choice(&v, kinds, &choice, &err), 0);
    v = jval_get(&root, "list");
    assert_int_equal(jval_array(&v, 9, &count, &err), 0);
    assert_true(n == 10 && x == 1 && !flag && choice == 2 && count == 0);
}

static void test_jval_object_when_key_is_near_suggests_it(void **state)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *tree = parse("{\"cuont\":1}", &err);
    struct jval root = jval_root(tree);

    (void)state;
    assert_int_equal(jval_object(&root, keys, &err), -1);
    assert_string_equal(err.text, "cuont: unknown key, did you mean \"count\"?");
}

static void test_jval_object_when_key_is_huge_still_says_what(void **state)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *key = mem_alloc(5001);

    (void)state;
    memset(key, 'k', 5000);
    AUTO_FREE char *text = mem_printf("{\"%s\":1}", key);
    AUTO_JSON json_t *tree = parse(text, &err);
    struct jval root = jval_root(tree);
    assert_int_equal(jval_object(&root, keys, &err), -1);
    assert_string_equal(err.text + 80, "…: unknown key");
}

static void test_jval_opt_when_absent_keeps_the_default(void **state)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *tree = parse("{\"name\":\"new\",\"inner\":null,\"count\":null}", &err);
    struct jval root = jval_root(tree);
    AUTO_FREE char *text = mem_strdup("old");
    int64_t n = 7;
    bool flag = true;

    (void)state;
    assert_int_equal(jval_opt_int(&root, "nothing", 0, 9, &n, &err), 0);
    assert_int_equal(jval_opt_bool(&root, "nothing", &flag, &err), 0);
    assert_int_equal(jval_opt_text(&root, "inner", 9, &text, &err), 0);
    assert_true(n == 7 && flag);
    assert_string_equal(text, "old");
    assert_int_equal(jval_opt_text(&root, "name", 9, &text, &err), 0);
    assert_string_equal(text, "new");
    assert_int_equal(jval_opt_int(&root, "count", 0, 9, &n, &err), -1);
    assert_string_equal(err.text, "count: must be an integer from 0 to 9, not null");
}

static void test_json_put_text_when_read_back_is_the_same(void **state)
{
    static const char *const rows[] = {
        "", "plain", "q\" b\\ n\n t\t r\r \x01 \x7f", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 end",
        "\\", "\"\"",
    };
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf out = BUF_INIT;
        json_put_text(&out, rows[i]);
        AUTO_JSON json_t *tree = json_parse(out.data, out.size, &json_limits_header, &err);
        assert_non_null(tree);
        assert_string_equal(json_string_value(tree), rows[i]);
    }
    AUTO_BUF struct buf out = BUF_INIT;
    json_put_text(&out, "a\xff" "b\xe2\x82");
    json_put_text(&out, NULL);
    assert_string_equal(out.data, "\"a\xef\xbf\xbd" "b\xef\xbf\xbd\xef\xbf\xbd\"null");
}

static void test_json_put_number_when_read_back_is_the_same(void **state)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0.1, "0.1"}, {1, "1"}, {0, "0"}, {-0.0, "-0.0"}, {0.24893617021276596, NULL},
        {1e300, "1e+300"}, {DBL_MIN, NULL}, {DBL_TRUE_MIN, NULL}, {DBL_MAX, NULL}, {1.0 / 3, NULL},
        {123456789012345678.0, NULL},
    };
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf out = BUF_INIT;
        json_put_real(&out, rows[i].value);
        if (rows[i].text)
            assert_string_equal(out.data, rows[i].text);
        AUTO_JSON json_t *tree = json_parse(out.data, out.size, &json_limits_header, &err);
        assert_non_null(tree);
        double back = json_number_value(tree);
        assert_memory_equal(&back, &rows[i].value, sizeof back);
    }
    AUTO_BUF struct buf out = BUF_INIT;
    json_put_int(&out, INT64_MIN);
    buf_puts(&out, " ");
    json_put_int(&out, INT64_MAX);
    buf_puts(&out, " ");
    json_put_int(&out, 0);
    json_put_bool(&out, true);
    json_put_bool(&out, false);
    assert_string_equal(out.data, "-9223372036854775808 9223372036854775807 0truefalse");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_parse_when_document_is_bad_names_line_and_column),
        cmocka_unit_test(test_json_parse_when_zero_byte_is_inside_names_it),
        cmocka_unit_test(test_json_parse_when_larger_than_limit_is_too_large),
        cmocka_unit_test(test_json_parse_when_containers_are_too_many_is_too_large),
        cmocka_unit_test(test_json_parse_when_very_deep_does_not_recurse),
        cmocka_unit_test(test_json_parse_when_brackets_are_in_strings_counts_none),
        cmocka_unit_test(test_jval_when_value_is_wrong_names_its_place),
        cmocka_unit_test(test_jval_when_value_is_right_reads_it),
        cmocka_unit_test(test_jval_object_when_key_is_near_suggests_it),
        cmocka_unit_test(test_jval_object_when_key_is_huge_still_says_what),
        cmocka_unit_test(test_jval_opt_when_absent_keeps_the_default),
        cmocka_unit_test(test_json_put_text_when_read_back_is_the_same),
        cmocka_unit_test(test_json_put_number_when_read_back_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
