/* metrics.c - counters, gauges and one histogram with labels, written as Prometheus text format
 * 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats). Names: contract.md 6. */
#include "model/manager/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/json.h"

enum metric {
    M_CYCLES,
    M_DURATION,
    M_MOVES,
    M_REJECTED,
    M_ROLLBACKS,
    M_RESTARTS,
    M_LOCAL,
    M_COVERAGE,
    M_GAP,
    M_AGE,
    M_LOOKS,
    M_DRIFT,
    M_DRIFT_NOISE,
    M_DRIFT_RESPONSE,
    M_DRIFT_LEVEL,
    M_DRIFT_RESPONSE_LEVEL,
    M_RECEIVER_REQUESTS,
    M_RECEIVER_SPANS,
    M_RECEIVER_REFUSED,
    M_RECEIVER_REJECTED,
    M_RECEIVER_EARLY,
    M_RECEIVER_STALE,
    M_RECEIVER_WAITING,
    M_COUNT
};

#define MAX_LABELS 3

enum metric_type { COUNTER, GAUGE, HISTOGRAM };

struct metric_kind {
    const char *name, *help;
    enum metric_type type;
    const char *labels[MAX_LABELS]; /* NULL-padded */
};

static const struct metric_kind kinds[M_COUNT] = {
    [M_CYCLES] = {"remap_cycles_total", "Adaptation cycles that ended, by the state they ended in.",
                  COUNTER, {"app", "result"}},
    [M_DURATION] = {"remap_cycle_duration_seconds", "Time that the phases of cycles took.",
                    HISTOGRAM, {"phase"}},
    [M_MOVES] = {"remap_moves_total", "Moves by their outcome.", COUNTER,
                 {"app", "result", "mode"}},
    [M_REJECTED] = {"remap_move_rejected_total", "Planned moves that were left out, by reason.",
                    COUNTER, {"reason"}},
    [M_ROLLBACKS] = {"remap_rollbacks_total", "Plans and moves that were put back.", COUNTER,
                     {"result"}},
    [M_RESTARTS] = {"remap_stage_restarts_total", "Starts of a stage after its first.", COUNTER,
                    {"stage"}},
    [M_LOCAL] = {"remap_affinity_local_ratio",
                 "Share of messages between instances on one host, at the latest snapshot.", GAUGE,
                 {"app"}},
    [M_COVERAGE] = {"remap_coverage_ratio",
                    "Share of observed traffic that maps to known pairs.", GAUGE, {"app"}},
    [M_GAP] = {"remap_plan_gap_ratio",
               "Distance of the latest plan from its proven bound.", GAUGE, {"planner"}},
    [M_AGE] = {"remap_model_age_seconds", "Age of the latest snapshot.", GAUGE, {"app"}},
    [M_LOOKS] = {"remap_drift_looks_total", "Looks between cycles, by what came of them.", COUNTER,
                 {"app", "result"}},
    [M_DRIFT] = {"remap_drift_ratio",
                 "Share of the traffic that goes another way than the placement was planned on.",
                 GAUGE, {"app"}},
    [M_DRIFT_NOISE] = {"remap_drift_noise_ratio",
                       "Part of remap_drift_ratio that the sample alone may make.", GAUGE,
                       {"app"}},
    [M_DRIFT_RESPONSE] = {"remap_drift_response_ratio",
                          "Mean response time as a multiple of what the placement had.", GAUGE,
                          {"app"}},
    [M_DRIFT_LEVEL] = {"remap_drift_level_ratio",
                       "Above this and the noise, remap_drift_ratio starts a cycle.", GAUGE,
                       {"app"}},
    [M_DRIFT_RESPONSE_LEVEL] = {"remap_drift_response_level_ratio",
                                "Above this, remap_drift_response_ratio starts a cycle.", GAUGE,
                                {"app"}},
    [M_RECEIVER_REQUESTS] = {"remap_receiver_requests_total", "Requests with spans that came.",
                             COUNTER, {"source"}},
    [M_RECEIVER_SPANS] = {"remap_receiver_spans_total", "Spans that were taken.", COUNTER,
                          {"source"}},
    [M_RECEIVER_REFUSED] = {"remap_receiver_refused_total",
                            "Requests that were told to come again later (429).", COUNTER,
                            {"source"}},
    [M_RECEIVER_REJECTED] = {"remap_receiver_rejected_spans_total", "Spans without valid ids.",
                             COUNTER, {"source"}},
    [M_RECEIVER_EARLY] = {"remap_receiver_early_traces_total",
                          "Traces that could not wait for all of their spans: too many waited.",
                          COUNTER, {"source"}},
    [M_RECEIVER_STALE] = {"remap_receiver_stale_messages_total",
                          "Messages too old for any window.", COUNTER, {"source"}},
    [M_RECEIVER_WAITING] = {"remap_receiver_waiting_spans",
                            "Spans that wait for others of their traces.", GAUGE, {"source"}},
};

/* Upper bounds in seconds: stages take milliseconds to seconds, rollouts and settling minutes. */
static const double buckets[] = {0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800};
#define N_BUCKETS ARRAY_LEN(buckets)

struct series {
    char *labels[MAX_LABELS];
    double value;             /* counter, gauge; histogram: the sum in seconds */
    uint64_t *counts;         /* histogram: N_BUCKETS + 1, each what fell into it alone */
    int64_t taken_ms;         /* age */
};

struct metrics {
    struct series *series[M_COUNT];
    size_t n_series[M_COUNT];
};

static size_t n_labels(const struct metric_kind *kind)
{
    size_t n = 0;
    while (n < MAX_LABELS && kind->labels[n]) {
        n++;
    }
    return n;
}

static struct series *series_find(struct metrics *metrics, enum metric metric,
                                  const char *const *labels)
{
    size_t n = n_labels(&kinds[metric]);
    for (size_t i = 0; i < metrics->n_series[metric]; i++) {
        struct series *series = &metrics->series[metric][i];
        size_t same = 0;
        while (same < n && strcmp(series->labels[same], labels[same]) == 0) {
            same++;
        }
        if (same == n) {
            return series;
        }
    }
    return NULL;
}

/* The series of these labels, made on first use; that of "other" when there are too many. */
static struct series *series_get(struct metrics *metrics, enum metric metric,
                                 const char *const *labels)
{
    static const char *const other[MAX_LABELS] = {"other", "other", "other"};
    struct series *series = series_find(metrics, metric, labels);
    if (!series && metrics->n_series[metric] >= METRICS_MAX_SERIES) {
        labels = other;
        series = series_find(metrics, metric, labels);
    }
    if (series) {
        return series;
    }
    series = ARRAY_PUSH(metrics->series[metric], metrics->n_series[metric]);
    for (size_t i = 0; i < n_labels(&kinds[metric]); i++) {
        series->labels[i] = mem_strdup(labels[i]);
    }
    if (kinds[metric].type == HISTOGRAM) {
        series->counts = mem_array(N_BUCKETS + 1, sizeof *series->counts);
    }
    return series;
}

static void series_wipe(struct series *series)
{
    for (size_t i = 0; i < MAX_LABELS; i++) {
        free(series->labels[i]);
    }
    free(series->counts);
}

static void count(struct metrics *metrics, enum metric metric, const char *const *labels)
{
    series_get(metrics, metric, labels)->value++;
}

static void gauge(struct metrics *metrics, enum metric metric, const char *label, double value)
{
    const char *const labels[] = {label};
    if (value >= 0) {
        series_get(metrics, metric, labels)->value = value;
        return;
    }
    struct series *series = series_find(metrics, metric, labels);
    if (series) {
        series_wipe(series);
        *series = metrics->series[metric][--metrics->n_series[metric]];
    }
}

struct metrics *metrics_new(void)
{
    static const char *const stages[] = {"monitor", "analyzer", "planner", "executor"};
    struct metrics *metrics = mem_alloc(sizeof *metrics);
    for (size_t i = 0; i < ARRAY_LEN(stages); i++) {
        series_get(metrics, M_RESTARTS, &stages[i]); /* so that the first restart is an increase */
    }
    return metrics;
}

void metrics_free(struct metrics *metrics)
{
    if (!metrics) {
        return;
    }
    for (size_t m = 0; m < M_COUNT; m++) {
        for (size_t i = 0; i < metrics->n_series[m]; i++) {
            series_wipe(&metrics->series[m][i]);
        }
        free(metrics->series[m]);
    }
    free(metrics);
}

void metrics_cycle(struct metrics *metrics, const char *app, const char *result)
{
    count(metrics, M_CYCLES, (const char *const[]){app, result});
}

void metrics_phase(struct metrics *metrics, const char *phase, int64_t ms)
{
    struct series *series = series_get(metrics, M_DURATION, &phase);
    double seconds = (double)(ms > 0 ? ms : 0) / 1000;
    size_t at = 0;
    while (at < N_BUCKETS && seconds > buckets[at]) {
        at++;
    }
    series->counts[at]++;
    series->value += seconds;
}

void metrics_move(struct metrics *metrics, const char *app, const char *result, const char *mode)
{
    count(metrics, M_MOVES, (const char *const[]){app, result, mode});
}

void metrics_move_rejected(struct metrics *metrics, const char *reason)
{
    count(metrics, M_REJECTED, &reason);
}

void metrics_rollback(struct metrics *metrics, const char *result)
{
    count(metrics, M_ROLLBACKS, &result);
}

void metrics_stage_restart(struct metrics *metrics, const char *stage)
{
    count(metrics, M_RESTARTS, &stage);
}

void metrics_receiver(struct metrics *metrics, const char *source,
                      const struct metrics_receiver *counted)
{
    const int64_t values[] = {counted->requests, counted->spans, counted->refused,
                              counted->rejected, counted->early, counted->stale,
                              counted->waiting};
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        series_get(metrics, (enum metric)(M_RECEIVER_REQUESTS + i), &source)->value =
            (double)values[i];
}

void metrics_local_ratio(struct metrics *metrics, const char *app, double ratio)
{
    gauge(metrics, M_LOCAL, app, ratio);
}

void metrics_coverage(struct metrics *metrics, const char *app, double ratio)
{
    gauge(metrics, M_COVERAGE, app, ratio);
}

void metrics_gap(struct metrics *metrics, const char *planner, double ratio)
{
    gauge(metrics, M_GAP, planner, ratio);
}

void metrics_model_taken(struct metrics *metrics, const char *app, int64_t taken_ms)
{
    series_get(metrics, M_AGE, &app)->taken_ms = taken_ms;
}

void metrics_look(struct metrics *metrics, const char *app, const char *result)
{
    count(metrics, M_LOOKS, (const char *const[]){app, result});
}

void metrics_drift(struct metrics *metrics, const char *app, double ratio, double noise,
                   double response)
{
    gauge(metrics, M_DRIFT, app, ratio);
    gauge(metrics, M_DRIFT_NOISE, app, noise);
    gauge(metrics, M_DRIFT_RESPONSE, app, response);
}

void metrics_drift_levels(struct metrics *metrics, const char *app, double affinity,
                          double response)
{
    gauge(metrics, M_DRIFT_LEVEL, app, affinity);
    gauge(metrics, M_DRIFT_RESPONSE_LEVEL, app, response);
}

/* --- writing --- */

static void put_label(const char *name, const char *value, bool first, struct buf *out)
{
    buf_printf(out, "%s%s=\"", first ? "" : ",", name);
    for (const char *p = value; *p; p++) {
        if (*p == '\\' || *p == '"') {
            buf_add(out, "\\", 1);
        }
        if (*p == '\n') {
            buf_puts(out, "\\n");
        } else {
            buf_add(out, p, 1);
        }
    }
    buf_puts(out, "\"");
}

/* name suffix {labels, le} without the value; `le` NULL: none. */
static void put_series(const struct metric_kind *kind, const char *suffix,
                       const struct series *series, const char *le, struct buf *out)
{
    buf_printf(out, "%s%s{", kind->name, suffix);
    for (size_t i = 0; i < n_labels(kind); i++) {
        put_label(kind->labels[i], series->labels[i], i == 0, out);
    }
    if (le) {
        put_label("le", le, false, out);
    }
    buf_puts(out, "} ");
}

static void put_value(double value, struct buf *out)
{
    json_put_real(out, value); /* the shortest text that reads back the same */
    buf_puts(out, "\n");
}

static void put_histogram(const struct metric_kind *kind, const struct series *series,
                          struct buf *out)
{
    uint64_t below = 0;
    for (size_t i = 0; i <= N_BUCKETS; i++) {
        AUTO_BUF struct buf le = BUF_INIT;
        if (i < N_BUCKETS) {
            buf_printf(&le, "%g", buckets[i]);
        } else {
            buf_puts(&le, "+Inf");
        }
        below += series->counts[i];
        put_series(kind, "_bucket", series, le.data, out);
        buf_printf(out, "%" PRIu64 "\n", below);
    }
    put_series(kind, "_sum", series, NULL, out);
    put_value(series->value, out);
    put_series(kind, "_count", series, NULL, out);
    buf_printf(out, "%" PRIu64 "\n", below);
}

void metrics_write(const struct metrics *metrics, int64_t now_ms, struct buf *out)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    for (size_t m = 0; m < M_COUNT; m++) {
        const struct metric_kind *kind = &kinds[m];
        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", kind->name, kind->help, kind->name,
                   types[kind->type]);
        for (size_t i = 0; i < metrics->n_series[m]; i++) {
            const struct series *series = &metrics->series[m][i];
            if (kind->type == HISTOGRAM) {
                put_histogram(kind, series, out);
                continue;
            }
            double value = series->value;
            if (m == M_AGE) {
                value = now_ms > series->taken_ms ? (double)(now_ms - series->taken_ms) / 1000 : 0;
            }
            put_series(kind, "", series, NULL, out);
            put_value(value, out);
        }
    }
    buf_puts(out, "# HELP remap_build_info The version that runs; always 1.\n"
                  "# TYPE remap_build_info gauge\n"
                  "remap_build_info{version=\"" REMAP_VERSION "\"} 1\n");
}
