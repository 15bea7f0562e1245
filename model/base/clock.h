/* clock.h - time: int64_t milliseconds everywhere. Wall time is since the epoch, UTC. */
#ifndef REMAP_BASE_CLOCK_H
#define REMAP_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include "model/base/err.h"

int64_t clock_wall_ms(void);
int64_t clock_mono_ms(void);
void clock_sleep_ms(int64_t ms);

#define CLOCK_TEXT_SIZE 32
/* "2026-11-21T03:05:02.123Z"; milliseconds are left out where zero. Returns `out`. */
const char *clock_iso(int64_t wall_ms, char out[CLOCK_TEXT_SIZE]);

/* "500ms", "10s", "5m", "2h", "30d" (an integer or decimal number and a unit; no unit is an
 * error except for 0). Above 10 years: ERR_CONFIG. */
int duration_parse(const char *text, int64_t *out_ms, struct err *err);
/* "1m30s", "250ms": shortest exact form. Returns `out`. */
const char *duration_text(int64_t ms, char out[CLOCK_TEXT_SIZE]);

#endif
