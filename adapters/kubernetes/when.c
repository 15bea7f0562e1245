/* when.c - RFC 3339 (when.h; kubernetes/apimachinery:pkg/apis/meta/v1/{time,micro_time}.go). */
#include "adapters/kubernetes/when.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* `n` digits at *text, which moves on; -1 when they are none. */
static int digits(const char **text, int n)
{
    int value = 0;
    for (int i = 0; i < n; i++, ++*text) {
        if (!isdigit((unsigned char)**text))
            return -1;
        value = value * 10 + (**text - '0');
    }
    return value;
}

static int mark(const char **text, const char *any)
{
    return **text && strchr(any, **text) ? ++*text, 0 : -1;
}

static int fraction_ms(const char **text)
{
    int ms = 0, scale = 100;
    if (**text != '.')
        return 0;
    if (!isdigit((unsigned char)*++*text))
        return -1;
    for (; isdigit((unsigned char)**text); ++*text, scale /= 10)
        ms += (**text - '0') * scale;
    return ms;
}

static int offset_s(const char **text, int *out)
{
    if (**text == 'Z' || **text == 'z') {
        ++*text;
        *out = 0;
        return 0;
    }
    int sign = **text == '-' ? -1 : 1;
    if (mark(text, "+-"))
        return -1;
    int hours = digits(text, 2);
    if (hours < 0 || hours > 23 || mark(text, ":"))
        return -1;
    int minutes = digits(text, 2);
    if (minutes < 0 || minutes > 59)
        return -1;
    *out = sign * (hours * 3600 + minutes * 60);
    return 0;
}

int when_parse(const char *text, int64_t *out)
{
    struct tm tm = {.tm_isdst = 0};
    int ms, offset;
    const int year = digits(&text, 4);
    if (year < 1 || mark(&text, "-") || (tm.tm_mon = digits(&text, 2)) < 1 || mark(&text, "-") ||
        (tm.tm_mday = digits(&text, 2)) < 1 || mark(&text, "Tt ") ||
        (tm.tm_hour = digits(&text, 2)) < 0 || mark(&text, ":") ||
        (tm.tm_min = digits(&text, 2)) < 0 || mark(&text, ":") ||
        (tm.tm_sec = digits(&text, 2)) < 0 || (ms = fraction_ms(&text)) < 0 ||
        offset_s(&text, &offset) || *text)
        return -1;
    if (tm.tm_mon > 12 || tm.tm_mday > 31 || tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
        return -1;
    tm.tm_year = year - 1900;
    tm.tm_mon--;
    *out = ((int64_t)timegm(&tm) - offset) * 1000 + ms;
    return 0;
}

const char *when_micro(int64_t wall_ms, char out[WHEN_MICRO_SIZE])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;
    char text[24];
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, WHEN_MICRO_SIZE, "%s.%06dZ", text, (int)(wall_ms % 1000) * 1000);
    return out;
}
