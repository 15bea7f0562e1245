/* test_promtool.c - promtool (prometheus.io/docs/prometheus/latest/command-line/promtool) finds
 * nothing to say about our text: neither syntax nor names. Needs the Debian package prometheus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/support/metrics_support.h"

static void test_promtool_when_asked_then_finds_nothing(void **state)
{
    (void)state;
    AUTO(metrics) struct metrics *metrics = metrics_support_history();
    AUTO_BUF struct buf text = BUF_INIT;
    metrics_write(metrics, 3500, &text);
    FILE *tool = popen("promtool check metrics", "w");
    assert_non_null(tool);
    assert_int_equal(fwrite(text.data, 1, text.size, tool), text.size);
    assert_int_equal(pclose(tool), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promtool_when_asked_then_finds_nothing),
    };
    if (system("command -v promtool >/dev/null 2>&1") != 0) {
        printf("SKIPPED promtool is not installed (Debian package prometheus)\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
