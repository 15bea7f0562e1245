/* influxdb.h - CPU and memory from an InfluxDB 1.x (paper §6.1: Heapster writes there;
 * interfaces.md 4), and what its files share.
 *
 * Every query is configuration, one SELECT, with presets. Words that begin with '$' are replaced:
 *   $time      the app's window, "time >= 1795217970666ms AND time < 1795218570666ms"
 *   $function, $more   mean and nothing, or percentile and ", 95": $function("value"$more)
 * A series is a thing by its tags; its value is the mean of its rows that are not null, in the first
 * column that is not the time. */
#ifndef REMAP_INFLUXDB_INFLUXDB_H
#define REMAP_INFLUXDB_INFLUXDB_H

#include "adapters/adapter.h"
#include "adapters/spans/walk.h"

extern const struct metrics_adapter influxdb_metrics;

/* --- between the files of this folder --- */

#define INFLUX_MAX_TAGS 16
#define INFLUX_TAG_BYTES 320

typedef int influx_row_f(void *ctx, const char *const tags[], double value, struct err *err);

struct influx_answer {
    const char *const *tags; /* set by the caller */
    size_t n_tags;           /* at most INFLUX_MAX_TAGS */
    influx_row_f *row;       /* once per series with a value; may be NULL */
    void *ctx;
    int64_t results, series, rows; /* found; rows: handed to row() */
    int64_t not_numbers;           /* cells that are texts or truths */
    double newest_ms;              /* largest time in the first column; -1 none */
    bool partial;
    char error[200]; /* of the answer or of its statement */

    struct walk *walk;
    char values[INFLUX_MAX_TAGS][INFLUX_TAG_BYTES];
    int time_column, value_column, column; /* of this series; -1 none */
    double sum;
    int64_t n;
};
void influx_answer_begin(struct influx_answer *answer);
void influx_answer_wipe(struct influx_answer *answer);
int influx_answer_feed(struct influx_answer *answer, const char *data, size_t size,
                       struct err *err);
/* Errors inside a status 200: ERR_NOT_FOUND for a database, ERR_REFUSED else. */
int influx_answer_end(struct influx_answer *answer, struct err *err);

struct influx_preset {
    const char *name;
    const char *cpu, *cpu_other; /* the latter where the former gives nothing; NULL: none */
    const char *memory;
    double cpu_per_core; /* values of one core; 0: percent of the host's cores */
    const char *space, *thing;
};
extern const struct influx_preset influx_pod_presets[], influx_host_presets[]; /* NULL names end */

#endif
