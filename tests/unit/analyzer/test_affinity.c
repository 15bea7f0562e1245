/* test_affinity.c - Eq. 1: golden values of algorithms 6.1, edge cases of contract.md 2. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "analyzer/affinity.h"
#include "model/model_json.h"

static struct model *decode(const char *members)
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    buf_printf(&text, "{\"v\":1,\"hosts\":[{\"name\":\"h\",\"cpu_cap_millis\":1,\"mem_cap_bytes\":1}],%s}",
               members);
    struct model *model = model_decode(text.data, text.size, &err);
    if (!model)
        fail_msg("%s", err.text);
    buf_wipe(&text);
    return model;
}

/* Services A and B of two instances each, C of one. */
#define THINGS                                                                          \
    "\"services\":[{\"name\":\"A\"},{\"name\":\"B\"},{\"name\":\"C\"}],\"instances\":["   \
    "{\"name\":\"a1\",\"service\":\"A\",\"host\":\"h\",\"cpu_used_millis\":0,\"mem_used_bytes\":0}," \
    "{\"name\":\"a2\",\"service\":\"A\",\"host\":\"h\",\"cpu_used_millis\":0,\"mem_used_bytes\":0}," \
    "{\"name\":\"b1\",\"service\":\"B\",\"host\":\"h\",\"cpu_used_millis\":0,\"mem_used_bytes\":0}," \
    "{\"name\":\"b2\",\"service\":\"B\",\"host\":\"h\",\"cpu_used_millis\":0,\"mem_used_bytes\":0}," \
    "{\"name\":\"c1\",\"service\":\"C\",\"host\":\"h\",\"cpu_used_millis\":0,\"mem_used_bytes\":0}]"

static struct analysis *analyze(const struct model *model, double weight)
{
    struct err err = ERR_INIT;
    struct analysis *analysis = NULL;
    if (affinity_analyzer.analyze(model, weight, &analysis, &err) < 0)
        fail_msg("%s", err.text);
    return analysis;
}

static void golden_row(const struct model *model, const struct affinity *row, const char *a,
                       const char *b, double degree, int64_t count, int64_t bytes)
{
    assert_string_equal(model_end_name(model, row->level, row->a), a);
    assert_string_equal(model_end_name(model, row->level, row->b), b);
    if (fabs(row->degree - degree) > 5e-7)
        fail_msg("%s-%s: %.9f instead of %.9f", a, b, row->degree, degree);
    assert_int_equal(row->count, count);
    assert_int_equal(row->bytes, bytes);
}

static struct model *golden_model(void)
{
    static const int rows[][3] = {{1, 2, 3}, {1, 3, 5},  {1, 4, 7}, {1, 5, 7}, {1, 2, 11},
                                  {1, 3, 3}, {1, 4, 5}, {1, 5, 3}, {2, 3, 2}, {3, 4, 1}};
    struct err err = ERR_INIT;
    struct model *model = model_new();
    for (int i = 1; i <= 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "%d", i);
        model_add_instance(model, name, model_add_service(model, name, &err), -1, &err);
    }
    model->has_messages = true;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct message *m = ARRAY_PUSH(model->messages, model->n_messages);
        *m = (struct message){.src = rows[i][0] - 1, .dst = rows[i][1] - 1, .count = 1,
                              .bytes = rows[i][2], .mean_ms = -1};
    }
    return model;
}

static void test_degrees_when_half_weight_then_golden(void **state)
{
    (void)state;
    AUTO(model) struct model *model = golden_model();
    AUTO(analysis) struct analysis *got = analyze(model, 0.5);
    assert_int_equal(got->count, 10);
    assert_int_equal(got->bytes, 47);
    assert_int_equal(got->n_rows, 6);
    golden_row(model, &got->rows[0], "1", "2", .24893617, 2, 14);
    golden_row(model, &got->rows[1], "1", "4", .22765957, 2, 12);
    golden_row(model, &got->rows[2], "1", "5", .20638298, 2, 10);
    golden_row(model, &got->rows[3], "1", "3", .18510638, 2, 8);
    golden_row(model, &got->rows[4], "2", "3", .07127660, 1, 2);
    golden_row(model, &got->rows[5], "3", "4", .06063830, 1, 1);
    assert_int_equal(got->n_service_rows, 6);
    golden_row(model, &got->service_rows[0], "1", "2", .24893617, 2, 14);
}

static void test_degrees_when_bytes_only_then_golden(void **state)
{
    static const double degrees[] = {.297872, .255319, .212766, .170213, .042553, .021277};
    (void)state;
    AUTO(model) struct model *model = golden_model();
    AUTO(analysis) struct analysis *got = analyze(model, 0);
    for (size_t i = 0; i < ARRAY_LEN(degrees); i++)
        assert_true(fabs(got->rows[i].degree - degrees[i]) < 5e-7);
}

static void test_degrees_when_counts_only_then_ties_by_name(void **state)
{
    (void)state;
    AUTO(model) struct model *model = golden_model();
    AUTO(analysis) struct analysis *got = analyze(model, 1);
    golden_row(model, &got->rows[0], "1", "2", .2, 2, 14);
    golden_row(model, &got->rows[1], "1", "3", .2, 2, 8);
    golden_row(model, &got->rows[2], "1", "4", .2, 2, 12);
    golden_row(model, &got->rows[3], "1", "5", .2, 2, 10);
    golden_row(model, &got->rows[4], "2", "3", .1, 1, 2);
    golden_row(model, &got->rows[5], "3", "4", .1, 1, 1);
}

static void test_rows_when_both_directions_then_one_pair(void **state)
{
    (void)state;
    AUTO(model) struct model *model = decode(
        THINGS ",\"messages\":[{\"src\":\"b1\",\"dst\":\"a1\",\"count\":3,\"bytes\":10},"
               "{\"src\":\"a1\",\"dst\":\"b1\",\"count\":1,\"bytes\":null},"
               "{\"src\":\"a1\",\"dst\":\"c1\",\"count\":4,\"bytes\":30}]");
    AUTO(analysis) struct analysis *got = analyze(model, 0.5);
    assert_int_equal(got->n_rows, 2);
    golden_row(model, &got->rows[0], "a1", "c1", 0.5 * 0.5 + 0.5 * 0.75, 4, 30);
    golden_row(model, &got->rows[1], "a1", "b1", 0.5 * 0.5 + 0.5 * 0.25, 4, 10);
}

static void test_self_rows_when_any_then_neither_pairs_nor_totals(void **state)
{
    (void)state;
    AUTO(model) struct model *model = decode(
        THINGS ",\"messages\":[{\"src\":\"a1\",\"dst\":\"a1\",\"count\":50,\"bytes\":1000},"
               "{\"src\":\"A\",\"dst\":\"a2\",\"count\":7,\"bytes\":9},"
               "{\"src\":\"a1\",\"dst\":\"b1\",\"count\":5,\"bytes\":20}]");
    AUTO(analysis) struct analysis *got = analyze(model, 0.5);
    assert_int_equal(got->count, 5);
    assert_int_equal(got->bytes, 20);
    assert_int_equal(got->ignored, 57);
    assert_int_equal(got->n_rows, 1);
    golden_row(model, &got->rows[0], "a1", "b1", 1, 5, 20);
}

static void test_weight_when_no_known_bytes_then_one(void **state)
{
    (void)state;
    AUTO(model) struct model *model = decode(
        THINGS ",\"messages\":[{\"src\":\"a1\",\"dst\":\"b1\",\"count\":3,\"bytes\":null},"
               "{\"src\":\"b1\",\"dst\":\"c1\",\"count\":1,\"bytes\":null}]");
    AUTO(analysis) struct analysis *got = analyze(model, 0.25);
    assert_true(got->weight_used == 1);
    assert_int_equal(got->bytes, -1);
    golden_row(model, &got->rows[0], "a1", "b1", 0.75, 3, -1);
}

static void test_weight_when_known_bytes_are_zero_then_kept(void **state)
{
    (void)state;
    AUTO(model) struct model *model = decode(
        THINGS ",\"messages\":[{\"src\":\"a1\",\"dst\":\"b1\",\"count\":3,\"bytes\":0},"
               "{\"src\":\"b1\",\"dst\":\"c1\",\"count\":1,\"bytes\":null}]");
    AUTO(analysis) struct analysis *got = analyze(model, 0.25);
    assert_true(got->weight_used == 0.25);
    assert_int_equal(got->bytes, 0);
    golden_row(model, &got->rows[0], "a1", "b1", 0.75 * 0.25, 3, 0);
    golden_row(model, &got->rows[1], "b1", "c1", 0.25 * 0.25, 1, -1);
}

static void test_pair_when_degree_zero_then_listed(void **state)
{
    (void)state;
    AUTO(model) struct model *model = decode(
        THINGS ",\"messages\":[{\"src\":\"a1\",\"dst\":\"b1\",\"count\":3,\"bytes\":0},"
               "{\"src\":\"b1\",\"dst\":\"c1\",\"count\":1,\"bytes\":8}]");
    AUTO(analysis) struct analysis *got = analyze(model, 0);
    assert_int_equal(got->n_rows, 2);
    golden_row(model, &got->rows[1], "a1", "b1", 0, 3, 0);
}

static void test_services_when_instance_rows_then_sums_without_inside(void **state)
{
    (void)state;
    AUTO(model) struct model *model = decode(
        THINGS ",\"messages\":[{\"src\":\"a1\",\"dst\":\"b1\",\"count\":3,\"bytes\":null},"
               "{\"src\":\"b2\",\"dst\":\"a2\",\"count\":5,\"bytes\":null},"
               "{\"src\":\"a1\",\"dst\":\"a2\",\"count\":2,\"bytes\":null}]");
    AUTO(analysis) struct analysis *got = analyze(model, 0.5);
    assert_int_equal(got->n_rows, 3);
    assert_int_equal(got->count, 10);
    assert_int_equal(got->n_service_rows, 1);
    golden_row(model, &got->service_rows[0], "A", "B", 0.8, 8, -1);
}

static void test_rows_when_one_end_is_a_service_then_service_level(void **state)
{
    (void)state;
    AUTO(model) struct model *model = decode(
        THINGS ",\"messages\":[{\"src\":\"a1\",\"dst\":\"B\",\"count\":3,\"bytes\":null},"
               "{\"src\":\"A\",\"dst\":\"B\",\"count\":1,\"bytes\":null}]");
    AUTO(analysis) struct analysis *got = analyze(model, 0.5);
    assert_int_equal(got->n_rows, 1);
    assert_int_equal(got->rows[0].level, LEVEL_SERVICE);
    golden_row(model, &got->rows[0], "A", "B", 1, 4, -1);
}

static void test_analysis_when_no_messages_then_empty(void **state)
{
    (void)state;
    AUTO(model) struct model *model = decode(THINGS ",\"messages\":[]");
    AUTO(analysis) struct analysis *got = analyze(model, 0.5);
    assert_int_equal(got->n_rows, 0);
    assert_int_equal(got->count, 0);
    assert_int_equal(got->bytes, -1);
}

static void test_analysis_when_degrees_are_given_then_kept(void **state)
{
    (void)state;
    AUTO(model) struct model *model = decode(
        THINGS ",\"affinities\":[{\"a\":\"b1\",\"b\":\"a1\",\"degree\":3},"
               "{\"a\":\"a1\",\"b\":\"b1\",\"degree\":0.5}]");
    AUTO(analysis) struct analysis *got = analyze(model, 0.5);
    assert_int_equal(got->n_rows, 1);
    assert_true(got->rows[0].degree == 3.5);
    assert_int_equal(got->n_service_rows, 1);
}

static void test_weight_when_out_of_range_then_usage(void **state)
{
    (void)state;
    static const double weights[] = {-0.1, 1.1, NAN, INFINITY};
    AUTO(model) struct model *model = golden_model();
    for (size_t i = 0; i < ARRAY_LEN(weights); i++) {
        struct err err = ERR_INIT;
        struct analysis *analysis = NULL;
        assert_int_equal(affinity_analyzer.analyze(model, weights[i], &analysis, &err), -1);
        assert_int_equal(err.kind, ERR_USAGE);
        assert_null(analysis);
    }
}

/* "a1-b1 0.75 b1-c1 0.25", … */
static void degrees_text(const struct model *model, const struct analysis *analysis, char *out,
                         size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < analysis->n_rows; i++) {
        const struct affinity *row = &analysis->rows[i];
        at += (size_t)snprintf(out + at, size - at, "%s%s-%s %.4f", i ? " " : "",
                               model_end_name(model, row->level, row->a),
                               model_end_name(model, row->level, row->b), row->degree);
    }
}

/* A, B, C of one replica each; A-B and B-C 30 messages of 10 bytes in all, A-C 60 of 40. */
static struct model *triangle(void)
{
    static const int rows[][4] = {{0, 1, 30, 10}, {1, 2, 30, 10}, {2, 0, 60, 40}};
    struct err err = ERR_INIT;
    struct model *model = model_new();
    for (int i = 0; i < 3; i++) {
        char name[] = {(char)('A' + i), '\0'};
        model_add_instance(model, name, model_add_service(model, name, &err), -1, &err);
    }
    model->has_messages = true;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        *ARRAY_PUSH(model->messages, model->n_messages) =
            (struct message){.src = rows[i][0], .dst = rows[i][1], .count = rows[i][2],
                             .bytes = rows[i][3], .mean_ms = -1};
    return model;
}

static void test_rule_14_tenants_when_services_are_of_two_then_their_edge_counts_nothing(
    void **state)
{
    (void)state;
    AUTO(model) struct model *model = triangle();
    char text[200];
    model->services[0].tenant = mem_strdup("shop");
    model->services[1].tenant = mem_strdup("shop");
    model->services[2].tenant = mem_strdup("bank");
    AUTO(analysis) struct analysis *got = analyze(model, 0.5);
    degrees_text(model, got, text, sizeof text);
    assert_string_equal(text, "A-B 1.0000 A-C 0.0000 B-C 0.0000"); /* listed, at 0 */
    assert_int_equal(got->count, 120);                             /* what was seen was seen */
    free(steal(model->services[2].tenant));
    AUTO(analysis) struct analysis *none = analyze(model, 1); /* of no tenant: with everybody */
    degrees_text(model, none, text, sizeof text);
    assert_string_equal(text, "A-C 0.5000 A-B 0.2500 B-C 0.2500");
}

static void test_annotation_weight_when_a_service_has_one_then_its_traffic_counts_so_often(
    void **state)
{
    (void)state;
    AUTO(model) struct model *model = triangle();
    char text[200];
    model->services[1].weight = 4; /* B: 120 + 120 + 60 messages, 40 + 40 + 40 bytes */
    AUTO(analysis) struct analysis *got = analyze(model, 0.5);
    degrees_text(model, got, text, sizeof text);
    assert_string_equal(text, "A-B 0.3667 B-C 0.3667 A-C 0.2667");
    model->services[1].weight = 0;
    AUTO(analysis) struct analysis *none = analyze(model, 0.5);
    degrees_text(model, none, text, sizeof text);
    assert_string_equal(text, "A-C 1.0000 A-B 0.0000 B-C 0.0000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_rule_14_tenants_when_services_are_of_two_then_their_edge_counts_nothing),
        cmocka_unit_test(
            test_annotation_weight_when_a_service_has_one_then_its_traffic_counts_so_often),
        cmocka_unit_test(test_degrees_when_half_weight_then_golden),
        cmocka_unit_test(test_degrees_when_bytes_only_then_golden),
        cmocka_unit_test(test_degrees_when_counts_only_then_ties_by_name),
        cmocka_unit_test(test_rows_when_both_directions_then_one_pair),
        cmocka_unit_test(test_self_rows_when_any_then_neither_pairs_nor_totals),
        cmocka_unit_test(test_weight_when_no_known_bytes_then_one),
        cmocka_unit_test(test_weight_when_known_bytes_are_zero_then_kept),
        cmocka_unit_test(test_pair_when_degree_zero_then_listed),
        cmocka_unit_test(test_services_when_instance_rows_then_sums_without_inside),
        cmocka_unit_test(test_rows_when_one_end_is_a_service_then_service_level),
        cmocka_unit_test(test_analysis_when_no_messages_then_empty),
        cmocka_unit_test(test_analysis_when_degrees_are_given_then_kept),
        cmocka_unit_test(test_weight_when_out_of_range_then_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
