/* week.c - see week.h. */
#include "model/base/week.h"

#include <string.h>

static int day_parse(const char **p, unsigned *out)
{
    static const char days[] = "MonTueWedThuFriSatSun";
    for (unsigned i = 0; i < 7; i++)
        if (strncmp(*p, days + (size_t)3 * i, 3) == 0) {
            *p += 3;
            *out = i;
            return 0;
        }
    return -1;
}

/* "Mon-Fri", "Sat,Sun", "Fri-Mon,Wed" */
static int days_parse(const char **p, unsigned *out)
{
    unsigned days = 0;
    for (;;) {
        unsigned from, to;
        if (day_parse(p, &from))
            return -1;
        to = from;
        if (**p == '-') {
            (*p)++;
            if (day_parse(p, &to))
                return -1;
        }
        for (unsigned d = from;; d = (d + 1) % 7) {
            days |= 1u << d;
            if (d == to)
                break;
        }
        if (**p != ',')
            break;
        (*p)++;
    }
    *out = days;
    return 0;
}

/* "HH:MM", 00:00 … 24:00 */
static int minute_parse(const char **p, int *out)
{
    const char *t = *p;
    for (int i = 0; i < 5; i++)
        if (i == 2 ? t[i] != ':' : t[i] < '0' || t[i] > '9')
            return -1;
    int hour = (t[0] - '0') * 10 + t[1] - '0', minute = (t[3] - '0') * 10 + t[4] - '0';
    if (minute > 59 || hour * 60 + minute > 24 * 60)
        return -1;
    *out = hour * 60 + minute;
    *p += 5;
    return 0;
}

int week_parse(const char *text, struct week *out)
{
    struct week w = {.days = 0x7f};
    const char *p = text;
    if (*p < '0' || *p > '9') {
        if (days_parse(&p, &w.days) || *p != ' ')
            return -1;
        p += strspn(p, " ");
    }
    if (minute_parse(&p, &w.from_min) || *p++ != '-' || minute_parse(&p, &w.to_min) || *p ||
        w.from_min == w.to_min || w.from_min == 24 * 60)
        return -1;
    *out = w;
    return 0;
}

static bool window_open(const struct week *w, unsigned day, int minute)
{
    bool today = w->days & 1u << day, yesterday = w->days & 1u << (day + 6) % 7;
    if (w->from_min < w->to_min)
        return today && minute >= w->from_min && minute < w->to_min;
    return (today && minute >= w->from_min) || (yesterday && minute < w->to_min);
}

bool week_open(const struct week *week, int64_t wall_ms)
{
    int64_t minutes = wall_ms / 60000;
    unsigned day = (unsigned)((minutes / 1440 + 3) % 7); /* 1970-01-01 was a Thursday */
    return window_open(week, day, (int)(minutes % 1440));
}

int week_list_open(const char *list, int64_t wall_ms, bool *out)
{
    char one[WEEK_MAX_TEXT];
    bool open = false;
    for (const char *p = list;;) {
        struct week week;
        p += strspn(p, " ");
        size_t n = strcspn(p, ";"), length = n;
        while (length > 0 && p[length - 1] == ' ')
            length--;
        if (length >= sizeof one)
            return -1;
        memcpy(one, p, length);
        one[length] = '\0';
        if (week_parse(one, &week))
            return -1;
        open |= week_open(&week, wall_ms);
        if (!p[n])
            break;
        p += n + 1;
    }
    *out = open;
    return 0;
}
