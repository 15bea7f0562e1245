/* prometheus.h - the two adapters to a Prometheus, or to what speaks its query API (Thanos, Mimir,
 * VictoriaMetrics; interfaces.md 3), and what they share.
 *
 * Every query is a text of the configuration, with presets. Words in it that begin with '$' are
 * replaced before it is sent:
 *   $window    the app's window, "600500ms": half a second more than whole seconds, so that it is
 *              never a multiple of the scrape interval (ranges of Prometheus 3 are left-open)
 *   $tenth     a tenth of it: how often a mean of counters looks whether the thing is there; $tenth_s
 *              the same in seconds
 *   $by        the labels that name what a row is about
 *   $matchers  the option `matchers`, which therefore stands in every query
 *   $step      a quarter of the resolution, so at least a scrape interval; $step_s in seconds
 *   $quantile, $resolution   for percentiles */
#ifndef REMAP_PROMETHEUS_PROMETHEUS_H
#define REMAP_PROMETHEUS_PROMETHEUS_H

#include "adapters/adapter.h"
#include "adapters/http/source_http.h"
#include "adapters/spans/walk.h"

extern const struct metrics_adapter prometheus_metrics;
extern const struct message_adapter prometheus_messages;

/* --- between the files of this folder --- */

/* --- answer.c: the answer to an instant query, piece by piece --- */

#define PROM_MAX_LABELS 16
#define PROM_LABEL_BYTES 320 /* longer values name nothing of ours (contract.md 2: 253) */

/* A row: the values of the labels that were asked for, "" where it has none of that name. -1 ends
 * the reading by *err. */
typedef int prom_row_f(void *ctx, const char *const values[], double value, struct err *err);

struct prom_answer {
    /* What to look for; set by the caller. */
    const char *const *labels;
    size_t n_labels; /* at most PROM_MAX_LABELS */
    prom_row_f *row;
    void *ctx;
    /* What was found. */
    int64_t rows;     /* handed to row() */
    int64_t not_numbers; /* left out: NaN, infinite */
    int64_t histograms;  /* left out: no single value */
    int64_t warnings;
    char warning[200]; /* the first one */
    bool partial;      /* isPartial of VictoriaMetrics, or a warning */
    bool success;      /* the answer says so */
    char error[200];   /* its own words, when not */

    /* Of the reading. */
    struct walk *walk;
    char values[PROM_MAX_LABELS][PROM_LABEL_BYTES];
    double value;
    int place; /* in [time, "value"] */
    bool has_value;
};

/* Forgets what was found and begins again. */
void prom_answer_begin(struct prom_answer *answer);
void prom_answer_wipe(struct prom_answer *answer);
int prom_answer_feed(struct prom_answer *answer, const char *data, size_t size, struct err *err);
/* ERR_REFUSED with the server's words when it did not succeed. */
int prom_answer_end(struct prom_answer *answer, struct err *err);

/* --- template.c --- */

struct prom_var {
    const char *name; /* without '$' */
    const char *value; /* "": also a comma before it goes */
};

/* ERR_CONFIG names the word that is no variable. */
int prom_expand(const char *query, const struct prom_var *vars, size_t n_vars, struct buf *out,
                struct err *err);
/* True when `$name` stands in the query. */
bool prom_uses(const char *query, const char *name);
/* The metrics that a query reads: every name before a '{', as a regular expression "a|b". */
void prom_metric_names(const char *query, struct buf *out);
/* Label matchers without braces, `cluster="prod",region=~"eu.*"`; ERR_CONFIG. */
int prom_matchers_check(const char *text, struct err *err);
/* Splits "a,b" into names (caller frees both the array and *owned). */
const char **prom_list(const char *text, size_t *n, char **owned);

/* --- client.c --- */

struct prom {
    struct http *http;
    char *name, *matchers;
};

/* Options of both adapters: SOURCE_HTTP_OPTIONS and these. */
#define PROM_OPTIONS                                                                               \
    SOURCE_HTTP_OPTIONS,                                                                           \
        {"matchers", "label matchers for every query, such as cluster=\"prod\"", "", false}

int prom_open(const struct source *source, struct prom *out, struct err *err);
void prom_close(struct prom *prom);
/* The option's query, or `fallback`; refuses one without $matchers where matchers are set. */
int prom_query_option(const struct prom *prom, const struct source *source, const char *name,
                      const char *fallback, char **out, struct err *err);

/* The range of `window`, in ms, for $window. */
int64_t prom_range_ms(const struct window *window);

struct prom_ask {
    const char *what;  /* for notes: "CPU of pods" */
    const char *query; /* before expansion */
    const char *by;    /* labels, "namespace,pod": $by, and what row() gets, in this order */
    struct window window;
    double quantile; /* < 0: none */
    int64_t resolution_ms;
    prom_row_f *row;
    void *ctx;
};
/* Asks, hands out the rows, and notes what is wrong with them: partial, not-a-number; where there is
 * no row, unknown-metric or no-data (the metric is there, nothing fits). *rows may be NULL. */
int prom_ask(struct prom *prom, const struct prom_ask *ask, struct inspection *in, int64_t *rows,
             struct err *err);
/* Version and newest sample of the metrics of `query` for `remap check`. ERR_NOT_FOUND when there is
 * no sample of the last minutes. */
int prom_check(struct prom *prom, const char *query, struct source_report *out, struct err *err);

/* --- presets.c --- */

struct usage_preset {
    const char *name;
    const char *cpu, *memory;           /* cores, bytes: mean over the window; NULL: none */
    const char *cpu_high, *memory_high; /* the same as a percentile */
    const char *space, *thing;          /* labels; `thing`: pod or node, first that fits */
};
extern const struct usage_preset prom_pod_presets[], prom_host_presets[]; /* ended by NULL names */

struct latency_preset {
    const char *name, *query; /* seconds */
    const char *source, *target;
    double per_second; /* of the query's unit */
};
extern const struct latency_preset prom_latency_presets[];

struct traffic_preset {
    const char *name;
    const char *count, *bytes, *reply_bytes, *mean_ms; /* NULL: not known there */
    const char *src_space, *src, *dst_space, *dst;      /* labels, first that is not empty */
};
extern const struct traffic_preset prom_traffic_presets[];

/* --- latency.c --- */

struct prom_latency {
    char *query, *source, *target;
    double per_second;
};
int prom_latency_open(const struct prom *prom, const struct source *source,
                      struct prom_latency *out, struct err *err);
void prom_latency_wipe(struct prom_latency *latency);
int prom_latency_measure(struct prom *prom, const struct prom_latency *latency,
                         const struct window *window, struct inspection *in, struct err *err);

#endif
