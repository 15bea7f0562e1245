/* test_yaml.c - strict YAML: what is refused, with which line and path, and what is loaded. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <cyaml/cyaml.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/buf.h"
#include "model/base/yaml.h"

struct item {
    char *name;
    int64_t count;
    uint16_t port;
    double share;
    bool on;
    int colour;
    int32_t *list;
    uint32_t n_list;
};
struct top {
    char *title;
    struct item *items;
    uint32_t n_items;
};

static const cyaml_strval_t colours[] = {{"red", 1}, {"green", 2}};
static const cyaml_schema_value_t number = {CYAML_VALUE_INT(CYAML_FLAG_DEFAULT, int32_t)};
static const cyaml_schema_field_t item_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct item, name, 1, 8),
    CYAML_FIELD_INT("count", CYAML_FLAG_OPTIONAL, struct item, count),
    CYAML_FIELD_UINT("port", CYAML_FLAG_OPTIONAL, struct item, port),
    CYAML_FIELD_FLOAT("share", CYAML_FLAG_OPTIONAL, struct item, share),
    CYAML_FIELD_BOOL("on", CYAML_FLAG_OPTIONAL, struct item, on),
    CYAML_FIELD_ENUM("colour", CYAML_FLAG_OPTIONAL | CYAML_FLAG_STRICT, struct item, colour,
                     colours, 2),
    CYAML_FIELD_SEQUENCE_COUNT("list", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct item,
                               list, n_list, &number, 1, 3),
    CYAML_FIELD_END};
static const cyaml_schema_value_t item_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct item, item_fields)};
static const cyaml_schema_field_t top_fields[] = {
    CYAML_FIELD_STRING_PTR("title", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct top, title,
                           0, 100),
    CYAML_FIELD_SEQUENCE_COUNT("items", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct top,
                               items, n_items, &item_value, 0, 10),
    CYAML_FIELD_END};
static const cyaml_schema_value_t top_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct top, top_fields)};

struct refusal {
    const char *text, *error;
};

static const struct refusal refusals[] = {
    {"", "t.yaml: is empty"},
    {"# only a comment\n", "t.yaml: is empty"},
    {"title: a\n---\ntitle: b\n", "t.yaml:2: a second document begins here; one is expected"},
    {"title: a\nitems: []\ntitle: b\n",
     "t.yaml:3: key \"title\" is there twice (first in line 1)"},
    {"title: &x a\n", "t.yaml:1: anchors (&name) are not supported"},
    {"title: *x\n", "t.yaml:1: aliases (*name) are not supported"},
    {"title: !!str a\n", "t.yaml:1: tags (!name) are not supported"},
    {"items:\n\t- name: a\n", "t.yaml:2: a tab in the indentation; YAML wants spaces"},
    {"[a, b]: c\n", "t.yaml:1: a key must be a plain word"},
    {"title: [a\n", "t.yaml:2: did not find expected ',' or ']' (while parsing a flow sequence)"},
    {"title: \"\\0\"\n", "t.yaml:1: a NUL byte in a text"},
    {"title: a\xff\n", "t.yaml:1: invalid leading UTF-8 octet"},
    {"- a\n", "t.yaml:1: must be a mapping (key: value lines)"},
    {"title: a\ntitel: b\n", "t.yaml:2: titel: unknown key; did you mean \"title\"?"},
    {"wholly_else: b\n", "t.yaml:1: wholly_else: unknown key"},
    {"title: a\nitems:\n  - name: x\n    cuont: 3\n",
     "t.yaml:4: items[0].cuont: unknown key; did you mean \"count\"?"},
    {"items:\n  - name: x\n  - count: 3\n", "t.yaml:3: items[1]: \"name\" is missing"},
    {"items: 3\n", "t.yaml:1: items: must be a list (- lines, or [a, b])"},
    {"items: [x]\n", "t.yaml:1: items[0]: must be a mapping (key: value lines)"},
    {"items: [{name: [x]}]\n", "t.yaml:1: items[0].name: must be a single value, not a list"},
    {"items: [{name: ''}]\n", "t.yaml:1: items[0].name: must not be empty"},
    {"items: [{name: }]\n", "t.yaml:1: items[0].name: has no value; give one or remove the key"},
    {"items: [{name: null}]\n",
     "t.yaml:1: items[0].name: has no value; give one or remove the key"},
    {"items: [{name: longer than}]\n", "t.yaml:1: items[0].name: must have at most 8 bytes"},
    {"items: [{name: x, count: 010}]\n",
     "t.yaml:1: items[0].count: must not begin with zeros: \"010\""},
    {"items: [{name: x, count: 0x10}]\n",
     "t.yaml:1: items[0].count: must be an integer, not \"0x10\""},
    {"items: [{name: x, count: 1.5}]\n",
     "t.yaml:1: items[0].count: must be an integer, not \"1.5\""},
    {"items: [{name: x, count: 9223372036854775808}]\n",
     "t.yaml:1: items[0].count: is too large: 9223372036854775808"},
    {"items: [{name: x, port: 65536}]\n", "t.yaml:1: items[0].port: is too large: 65536"},
    {"items: [{name: x, port: -1}]\n",
     "t.yaml:1: items[0].port: must be an integer of 0 or more, not \"-1\""},
    {"items: [{name: x, share: .nan}]\n",
     "t.yaml:1: items[0].share: must be a number, not \".nan\""},
    {"items: [{name: x, on: yes}]\n",
     "t.yaml:1: items[0].on: must be true or false, not \"yes\""},
    {"items: [{name: x, colour: blue}]\n",
     "t.yaml:1: items[0].colour: must be one of red, green, not \"blue\""},
    {"items: [{name: x, list: [1, two]}]\n",
     "t.yaml:1: items[0].list[1]: must be an integer, not \"two\""},
    {"items: [{name: x, list: []}]\n", "t.yaml:1: items[0].list: must have at least 1 entries"},
    {"items: [{name: x, list: [1,2,3,4]}]\n",
     "t.yaml:1: items[0].list: must have at most 3 entries"},
};

static int load(const char *text, size_t size, struct err *err)
{
    AUTO(ydoc) struct ydoc *doc = ydoc_parse(text, size, "t.yaml", err);
    void *data = NULL;
    if (!doc || ydoc_load(doc, &top_value, &data, err))
        return -1;
    ydoc_unload(&top_value, data);
    return 0;
}

static void test_load_when_wrong_then_line_path_and_problem(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(load(refusals[i].text, strlen(refusals[i].text), &err), -1);
        assert_string_equal(err.text, refusals[i].error);
        assert_int_equal(err.kind, ERR_CONFIG);
    }
}

static void test_load_when_good_then_all_types_arrive(void **state)
{
    (void)state;
    static const char text[] = "---\n# comment\ntitle: ''\nitems:\n"
                               "  - {name: a, count: -7, port: 65535, share: 2.5e-1, on: true,\n"
                               "     colour: green, list: [0, 10, -3]}\n"
                               "  - name: \"null\"\n";
    struct err err = ERR_INIT;
    AUTO(ydoc) struct ydoc *doc = ydoc_parse(text, strlen(text), "t.yaml", &err);
    assert_non_null(doc);
    void *data = NULL;
    assert_int_equal(ydoc_load(doc, &top_value, &data, &err), 0);
    const struct top *top = data;
    assert_string_equal(top->title, "");
    assert_int_equal(top->n_items, 2);
    assert_string_equal(top->items[0].name, "a");
    assert_int_equal(top->items[0].count, -7);
    assert_int_equal(top->items[0].port, 65535);
    assert_true(top->items[0].share == 0.25);
    assert_true(top->items[0].on);
    assert_int_equal(top->items[0].colour, 2);
    assert_int_equal(top->items[0].n_list, 3);
    assert_int_equal(top->items[0].list[2], -3);
    assert_string_equal(top->items[1].name, "null");
    ydoc_unload(&top_value, data);
}

static void test_error_when_path_is_absent_then_line_of_what_is_above(void **state)
{
    (void)state;
    static const char text[] = "title: a\nitems:\n  - name: x\n    count: 3\n";
    struct err err = ERR_INIT;
    AUTO(ydoc) struct ydoc *doc = ydoc_parse(text, strlen(text), "t.yaml", &err);
    assert_non_null(doc);
    assert_true(ydoc_has(doc, "items[0].count"));
    assert_false(ydoc_has(doc, "items[0].share"));
    assert_false(ydoc_has(doc, "items[1]"));
    assert_int_equal(ydoc_line(doc, "items[0].count"), 4);
    assert_int_equal(ydoc_line(doc, "items[0].share"), 3);
    assert_int_equal(ydoc_error(doc, &err, "items[0].count", "is %d too many", 2), -1);
    assert_string_equal(err.text, "t.yaml:4: items[0].count: is 2 too many");
    ydoc_error(doc, &err, "", "no sense");
    assert_string_equal(err.text, "t.yaml:1: no sense");
}

static void test_parse_when_too_large_or_deep_then_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    for (int i = 0; i < 40; i++)
        buf_puts(&text, "[");
    assert_int_equal(load(text.data, text.size, &err), -1);
    assert_string_equal(err.text, "t.yaml:1: nested deeper than 32 levels");

    buf_clear(&text);
    buf_puts(&text, "title: [");
    for (int i = 0; i < 200001; i++)
        buf_puts(&text, "a,");
    buf_puts(&text, "a]\n");
    assert_int_equal(load(text.data, text.size, &err), -1);
    assert_string_equal(err.text, "t.yaml:1: more than 200000 values");

    buf_clear(&text);
    for (int i = 0; i < 1001; i++)
        buf_printf(&text, "k%d: a\n", i);
    assert_int_equal(load(text.data, text.size, &err), -1);
    assert_string_equal(err.text, "t.yaml:1001: more than 1000 keys in one mapping");

    buf_clear(&text);
    while (text.size <= YAML_MAX_BYTES)
        buf_puts(&text, "# filler filler filler filler\n");
    assert_int_equal(load(text.data, text.size, &err), -1);
    assert_int_equal(err.kind, ERR_TOO_LARGE);
    assert_int_equal(load("a: b\0c: d\n", 10, &err), -1);
    assert_string_equal(err.text, "t.yaml: a NUL byte at offset 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_when_wrong_then_line_path_and_problem),
        cmocka_unit_test(test_load_when_good_then_all_types_arrive),
        cmocka_unit_test(test_error_when_path_is_absent_then_line_of_what_is_above),
        cmocka_unit_test(test_parse_when_too_large_or_deep_then_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
