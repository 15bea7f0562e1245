/* units.h - quantities as people write them in scenarios and fault requests. Each returns NULL and
 * sets *out, or a static text that says what is wrong; nothing is above 10^15. */
#ifndef REMAP_SIMULATED_UNITS_H
#define REMAP_SIMULATED_UNITS_H

#include <stdint.h>

const char *unit_cpu(const char *text, int64_t *millis);    /* "250m", "2", "1.5" (cores) */
const char *unit_size(const char *text, int64_t *bytes);    /* "256Mi", "8G", "1024" */
const char *unit_micros(const char *text, int64_t *micros); /* "300us", "0.5ms", "2s", "0" */

#endif
