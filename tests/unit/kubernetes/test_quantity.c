/* test_quantity.c - the whole table of interfaces.md 1.3, which a real kubectl has answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "adapters/kubernetes/quantity.h"
#include "model/base/mem.h"

#define MAX INT64_MAX

static void test_quantity_when_grammar_allows_it_then_exact_value(void **state)
{
    static const struct {
        const char *text;
        int64_t whole;
        int32_t nanos;
        bool negative;
    } rows[] = {
        {"0.1m", 0, 100000, false},
        {"1E", INT64_C(1000000000000000000), 0, false},
        {"1E3", 1000, 0, false},
        {"1e3", 1000, 0, false},
        {"1e+3", 1000, 0, false},
        {"1e-3", 0, 1000000, false},
        {"3.001n", 0, 4, false},
        {"0.5n", 0, 1, false},
        {"1e-10", 0, 1, false},
        {"1.5Mi", 1536 * 1024, 0, false},
        {"2.5Gi", INT64_C(2560) * 1024 * 1024, 0, false},
        {"0.5Ki", 512, 0, false},
        {"1.1Ki", 1126, 400000000, false},
        {"8Ei", MAX, 0, false},
        {"16Ei", MAX, 0, false},
        {"9223372036854775808", MAX, 0, false},
        {"1e30", MAX, 0, false},
        {"1.123456789123Gi", INT64_C(1206302541), 938113381, false},
        {"4096Ki", 4 * 1024 * 1024, 0, false},
        {".5", 0, 500000000, false},
        {"5.", 5, 0, false},
        {".", 0, 0, false},
        {"+5", 5, 0, false},
        {"-5", 5, 0, true},
        {"-0", 0, 0, false},
        {"00012", 12, 0, false},
        /* the rest of the suffixes, and the edges */
        {"7n", 0, 7, false},
        {"7u", 0, 7000, false},
        {"7m", 0, 7000000, false},
        {"7", 7, 0, false},
        {"7k", 7000, 0, false},
        {"7M", 7000000, 0, false},
        {"7G", INT64_C(7000000000), 0, false},
        {"7T", INT64_C(7000000000000), 0, false},
        {"7P", INT64_C(7000000000000000), 0, false},
        {"7Ti", INT64_C(7) << 40, 0, false},
        {"7Pi", INT64_C(7) << 50, 0, false},
        {"7Ei", INT64_C(7) << 60, 0, false},
        {"9223372036854775806", MAX - 1, 0, false},
        {"9223372036854775807", MAX, 0, false},
        {"0.000000001Gi", 1, 73741824, false},
        {"1e-1000", 0, 1, false},
        {"0e1000", 0, 0, false},
        {"1e99999999999", MAX, 0, false},
        {"9999999999999999999999999999999999999999999999999999999999e-58", 1, 0, false},
        {"1000000000000000000000000000n", INT64_C(1000000000000000000), 0, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct quantity got;
        struct err err = ERR_INIT;
        if (quantity_parse(rows[i].text, &got, &err))
            fail_msg("%s: %s", rows[i].text, err.text);
        if (got.whole != rows[i].whole || got.nanos != rows[i].nanos ||
            got.negative != rows[i].negative)
            fail_msg("%s: %s%lld.%09d", rows[i].text, got.negative ? "-" : "",
                     (long long)got.whole, (int)got.nanos);
    }
}

static void test_quantity_when_grammar_forbids_it_then_error(void **state)
{
    static const char *const bad[] = {"1e",   "1K",   "1ki",  "1mi", "1Ki1", "12e-1k", "1e3Ki",
                                      "2E3E", "1B",   "1R",   "0x10", "1_000", "1 Gi",  "1 ",
                                      " 1",   "",     "+",    "-",   "Ki",   "m",     "1..5",
                                      "1.5.5", "--1", "1e+",  "NaN", "Inf",  "1,5",
                                      "10000000000000000000000000000000000000000000000000000000000"
                                      "000000000000000"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct quantity got;
        struct err err = ERR_INIT;
        if (quantity_parse(bad[i], &got, &err) == 0)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_int_equal(err.kind, ERR_INPUT);
    }
}

static void test_needs_when_scaled_then_rounded_up_and_capacities_down(void **state)
{
    static const struct {
        const char *text;
        int64_t per, need, capacity;
    } rows[] = {
        {"100m", 1000, 100, 100},      /* cpu */
        {"0.1m", 1000, 1, 0},
        {"1500000001n", 1000, 1501, 1500},
        {"100m", 1, 1, 0},             /* a legal, if strange, amount of memory */
        {"1.1Ki", 1, 1127, 1126},
        {"-5", 1000, 0, 0},
        {"8Ei", 1000, MAX, MAX},
        {"9223372036854775", 1000, INT64_C(9223372036854775000), INT64_C(9223372036854775000)},
        {"9223372036854776", 1000, MAX, MAX},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct quantity quantity;
        struct err err = ERR_INIT;
        assert_int_equal(quantity_parse(rows[i].text, &quantity, &err), 0);
        assert_int_equal(quantity_need(&quantity, rows[i].per), rows[i].need);
        assert_int_equal(quantity_capacity(&quantity, rows[i].per), rows[i].capacity);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantity_when_grammar_allows_it_then_exact_value),
        cmocka_unit_test(test_quantity_when_grammar_forbids_it_then_error),
        cmocka_unit_test(test_needs_when_scaled_then_rounded_up_and_capacities_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
