/* week.h - times of the week at which something may be done: "Mon-Fri 22:00-06:00". */
#ifndef REMAP_BASE_WEEK_H
#define REMAP_BASE_WEEK_H

#include <stdbool.h>
#include <stdint.h>

struct week { /* "Mon-Fri 22:00-06:00", UTC; over midnight it belongs to the day it began */
    unsigned days;        /* bit 0 Monday … bit 6 Sunday */
    int from_min, to_min; /* minutes of the day, 0 … 1440; from > to: over midnight */
};

#define WEEK_MAX_TEXT 64 /* the longest: seven days by name, and 12 characters of time */

/* "Mon-Fri 22:00-06:00", "Sat,Sun 00:00-24:00", "08:00-20:00" (every day); -1 when it is none. */
int week_parse(const char *text, struct week *out);
bool week_open(const struct week *week, int64_t wall_ms);
/* Several of them with ';' between: *out, is one open? -1 when one is none. */
int week_list_open(const char *list, int64_t wall_ms, bool *out);

#endif
