/* samples.c - a ring of samples per name (samples.h). */
#include "adapters/kubernetes/samples.h"

#include <stdlib.h>

#include "adapters/kubernetes/table.h"

#define PAUSE_MS 15000 /* metrics-server's own resolution */

struct sample {
    int64_t at_ms;
    float cores, bytes; /* 24 bits: one part in 16 million */
};

struct series {
    struct table_head head;
    struct sample *ring; /* room for `room`, the oldest at `first` */
    size_t room, first, n;
};

struct samples {
    struct table table;
    int64_t newest_ms;
};

static void series_wipe(void *item)
{
    free(((struct series *)item)->ring);
}

struct samples *samples_new(void)
{
    struct samples *samples = mem_alloc(sizeof *samples);
    table_init(&samples->table, sizeof(struct series), series_wipe);
    samples->newest_ms = -1;
    return samples;
}

void samples_free(struct samples *samples)
{
    if (!samples)
        return;
    table_wipe(&samples->table);
    free(samples);
}

static struct sample *at(const struct series *series, size_t i)
{
    return &series->ring[(series->first + i) % series->room];
}

/* Full rings double until they hold as many as are kept; then the oldest goes. */
static void make_room(struct series *series)
{
    if (series->n < series->room)
        return;
    if (series->room == SAMPLES_KEPT) {
        series->first = (series->first + 1) % series->room;
        series->n--;
        return;
    }
    size_t room = series->room ? series->room * 2 : 4; /* it has not turned yet: first is 0 */
    series->ring = mem_resize(series->ring, room, sizeof *series->ring);
    series->room = room;
}

void samples_add(struct samples *samples, const char *name, int64_t at_ms, double cores,
                 double bytes)
{
    struct series *series = table_find(&samples->table, name);
    if (!series) {
        const struct series fresh = {.head.key = mem_strdup(name)};
        series = table_put(&samples->table, &fresh);
    }
    if (series->n && at(series, series->n - 1)->at_ms >= at_ms)
        return;
    make_room(series);
    *at(series, series->n++) = (struct sample){at_ms, (float)cores, (float)bytes};
    if (at_ms > samples->newest_ms)
        samples->newest_ms = at_ms;
}

size_t samples_mean(const struct samples *samples, const char *name, int64_t from_ms,
                    int64_t to_ms, double *cores, double *bytes)
{
    const struct series *series = table_find(&samples->table, name);
    double cores_sum = 0, bytes_sum = 0;
    size_t n = 0;
    for (size_t i = 0; series && i < series->n; i++) {
        const struct sample *sample = at(series, i);
        if (sample->at_ms < from_ms || sample->at_ms > to_ms)
            continue;
        cores_sum += (double)sample->cores;
        bytes_sum += (double)sample->bytes;
        n++;
    }
    if (n) {
        *cores = cores_sum / (double)n;
        *bytes = bytes_sum / (double)n;
    }
    return n;
}

void samples_each(const struct samples *samples, void (*call)(void *ctx, const char *name),
                  void *ctx)
{
    for (size_t i = 0; i < samples->table.n; i++) {
        const struct series *series = table_at(&samples->table, i);
        if (series)
            call(ctx, series->head.key);
    }
}

void samples_forget(struct samples *samples, int64_t before_ms)
{
    for (size_t i = 0; i < samples->table.n;) {
        const struct series *series = table_at(&samples->table, i);
        size_t before = samples->table.n;
        if (series && series->n && at(series, series->n - 1)->at_ms < before_ms)
            table_remove(&samples->table, series->head.key);
        i = samples->table.n == before ? i + 1 : 0;
    }
}

int64_t samples_newest_ms(const struct samples *samples)
{
    return samples->newest_ms;
}

int64_t samples_pause_ms(int64_t window_ms)
{
    int64_t pause = window_ms / (SAMPLES_KEPT - 8); /* some to spare: polls come a little early */
    return pause > PAUSE_MS ? pause : PAUSE_MS;
}
