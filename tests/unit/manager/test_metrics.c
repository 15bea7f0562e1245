/* test_metrics.c - the text that Prometheus scrapes: exact for a known history, bounded for a hostile
 * one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/metrics_support.h"

static void assert_line(const struct buf *text, const char *line)
{
    AUTO_FREE char *whole = mem_printf("\n%s\n", line);
    if (!strstr(text->data, whole)) {
        fail_msg("no line %s in:\n%s", line, text->data);
    }
}

static void test_write_when_counted_then_every_promised_metric_is_there(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "# TYPE remap_cycles_total counter",
        "remap_cycles_total{app=\"shop\",result=\"done\"} 2",
        "remap_cycles_total{app=\"shop\",result=\"failed\"} 1",
        "# TYPE remap_cycle_duration_seconds histogram",
        "remap_cycle_duration_seconds_bucket{phase=\"plan\",le=\"0.005\"} 3",
        "remap_cycle_duration_seconds_bucket{phase=\"plan\",le=\"0.5\"} 3",
        "remap_cycle_duration_seconds_bucket{phase=\"plan\",le=\"1\"} 4",
        "remap_cycle_duration_seconds_bucket{phase=\"plan\",le=\"1800\"} 4",
        "remap_cycle_duration_seconds_bucket{phase=\"plan\",le=\"+Inf\"} 5",
        "remap_cycle_duration_seconds_count{phase=\"plan\"} 5",
        "remap_moves_total{app=\"shop\",result=\"applied\",mode=\"act\"} 1",
        "remap_move_rejected_total{reason=\"cool-down\"} 1",
        "remap_rollbacks_total{result=\"undone\"} 1",
        "remap_stage_restarts_total{stage=\"planner\"} 1",
        "remap_stage_restarts_total{stage=\"monitor\"} 0",
        "# TYPE remap_affinity_local_ratio gauge",
        "remap_affinity_local_ratio{app=\"shop\"} 0.5",
        "remap_coverage_ratio{app=\"shop\"} 1",
        "remap_plan_gap_ratio{planner=\"hba\"} 0.125",
        "remap_model_age_seconds{app=\"shop\"} 2.5",
        "# TYPE remap_receiver_spans_total counter",
        "remap_receiver_requests_total{source=\"spans\"} 12",
        "remap_receiver_spans_total{source=\"spans\"} 500",
        "remap_receiver_refused_total{source=\"spans\"} 2",
        "remap_receiver_rejected_spans_total{source=\"spans\"} 0",
        "remap_receiver_early_traces_total{source=\"spans\"} 3",
        "remap_receiver_stale_messages_total{source=\"spans\"} 0",
        "# TYPE remap_receiver_waiting_spans gauge",
        "remap_receiver_waiting_spans{source=\"spans\"} 40",
        "remap_build_info{version=\"" REMAP_VERSION "\"} 1",
    };
    AUTO(metrics) struct metrics *metrics = metrics_support_history();
    AUTO_BUF struct buf text = BUF_INIT;
    metrics_write(metrics, 3500, &text);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_line(&text, lines[i]);
    }
}

static void test_gauge_when_unknown_then_series_is_gone(void **state)
{
    (void)state;
    AUTO(metrics) struct metrics *metrics = metrics_support_history();
    AUTO_BUF struct buf text = BUF_INIT;
    metrics_gap(metrics, "hba", -1);
    metrics_gap(metrics, "never", -1);
    metrics_write(metrics, 0, &text);
    assert_null(strstr(text.data, "remap_plan_gap_ratio{"));
    assert_line(&text, "remap_model_age_seconds{app=\"shop\"} 0");
}

static void test_label_when_odd_then_escaped(void **state)
{
    (void)state;
    AUTO(metrics) struct metrics *metrics = metrics_new();
    AUTO_BUF struct buf text = BUF_INIT;
    metrics_coverage(metrics, "a\"b\\c\nd\xc3\xa4", 0.5);
    metrics_write(metrics, 0, &text);
    assert_line(&text, "remap_coverage_ratio{app=\"a\\\"b\\\\c\\nd\xc3\xa4\"} 0.5");
}

static void test_series_when_too_many_then_counted_as_other(void **state)
{
    (void)state;
    AUTO(metrics) struct metrics *metrics = metrics_new();
    AUTO_BUF struct buf text = BUF_INIT;
    for (int i = 0; i < METRICS_MAX_SERIES + 7; i++) {
        AUTO_FREE char *reason = mem_printf("reason %d", i);
        metrics_move_rejected(metrics, reason);
    }
    metrics_write(metrics, 0, &text);
    assert_line(&text, "remap_move_rejected_total{reason=\"other\"} 7");
    assert_line(&text, "remap_move_rejected_total{reason=\"reason 999\"} 1");
    assert_null(strstr(text.data, "reason 1000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_when_counted_then_every_promised_metric_is_there),
        cmocka_unit_test(test_gauge_when_unknown_then_series_is_gone),
        cmocka_unit_test(test_label_when_odd_then_escaped),
        cmocka_unit_test(test_series_when_too_many_then_counted_as_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
