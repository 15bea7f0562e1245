/* when.h - the times of the API: RFC 3339 with or without a fraction, in UTC or with an offset. */
#ifndef REMAP_KUBERNETES_WHEN_H
#define REMAP_KUBERNETES_WHEN_H

#include <stdint.h>

/* Ms since the epoch; -1 when it is no such time (*out untouched). */
int when_parse(const char *text, int64_t *out);

/* "2026-11-20T23:45:00.123456Z": MicroTime, which wants exactly six decimals. Returns `out`. */
#define WHEN_MICRO_SIZE 40
const char *when_micro(int64_t wall_ms, char out[WHEN_MICRO_SIZE]);

#endif
