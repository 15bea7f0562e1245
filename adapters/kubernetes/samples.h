/* samples.h - usage that was sampled and kept, for a source that has no history (interfaces.md 1.4):
 * some recent samples of each pod and node. Inside adapters/kubernetes. */
#ifndef REMAP_KUBERNETES_SAMPLES_H
#define REMAP_KUBERNETES_SAMPLES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/mem.h"

/* Of one thing. At one every 15 s: half an hour; longer windows are sampled more seldom
 * (samples_pause_ms). 10,000 pods with 16 bytes each: 20 MB. */
#define SAMPLES_KEPT 128

struct samples;

struct samples *samples_new(void);
void samples_free(struct samples *samples);
AUTO_DEFINE(samples)

/* What `name` took, at a wall time; one not newer than the last is the same again. */
void samples_add(struct samples *samples, const char *name, int64_t at_ms, double cores,
                 double bytes);
/* Means of the samples from `from_ms` to `to_ms`, and how many they are; 0: none. */
size_t samples_mean(const struct samples *samples, const char *name, int64_t from_ms,
                    int64_t to_ms, double *cores, double *bytes);
/* Of all things. Borrowed during the call. */
void samples_each(const struct samples *samples, void (*call)(void *ctx, const char *name),
                  void *ctx);
/* Things without a newer sample are forgotten. */
void samples_forget(struct samples *samples, int64_t before_ms);
int64_t samples_newest_ms(const struct samples *samples); /* -1: none */

/* How long to wait between two samples, so that a window holds as many as are kept. */
int64_t samples_pause_ms(int64_t window_ms);

/* metrics.c: a PodMetrics or NodeMetrics object; one that is incomplete is left out. */
void kube_metrics_take(const json_t *item, struct samples *pods, struct samples *nodes);

#endif
