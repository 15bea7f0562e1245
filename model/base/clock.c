/* clock.c - wall and monotonic time, ISO 8601 and durations as contract.md 1 writes them. */
#include "model/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "model/base/mem.h"

/* Ten years of 365 days and three leap days: far above any interval, far below overflow. */
#define DURATION_MAX_MS (INT64_C(3653) * 24 * 3600 * 1000)

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {
    {"d", INT64_C(24) * 3600 * 1000}, {"h", 3600 * 1000}, {"m", 60 * 1000}, {"s", 1000}, {"ms", 1},
};

static int64_t clock_read(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_wall_ms(void)
{
    return clock_read(CLOCK_REALTIME);
}

int64_t clock_mono_ms(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

void clock_sleep_ms(int64_t ms)
{
    if (ms <= 0)
        return;
    struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

const char *clock_iso(int64_t wall_ms, char out[CLOCK_TEXT_SIZE])
{
    int64_t rest = wall_ms % 1000;
    time_t seconds = (time_t)(wall_ms / 1000 - (rest < 0));
    struct tm utc;

    if (rest < 0)
        rest += 1000;
    if (!gmtime_r(&seconds, &utc)) {
        snprintf(out, CLOCK_TEXT_SIZE, "%" PRId64 "ms", wall_ms);
        return out;
    }
    size_t n = strftime(out, CLOCK_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &utc);
    if (n == 0) /* a year of many digits */
        snprintf(out, CLOCK_TEXT_SIZE, "%" PRId64 "ms", wall_ms);
    else if (rest)
        snprintf(out + n, CLOCK_TEXT_SIZE - n, ".%03dZ", (int)rest);
    else
        snprintf(out + n, CLOCK_TEXT_SIZE - n, "Z");
    return out;
}

/* Reads "1.25" at *at as a number of units; *ms gets number · unit, which must be whole. */
static bool duration_part(const char **at, int64_t *ms)
{
    const char *p = *at;
    int64_t number = 0, scale = 1;
    bool digits = false, point = false;

    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        digits = true;
        if (number > DURATION_MAX_MS * 1000 || scale > 1000000000)
            return false;
        number = number * 10 + (*p - '0');
        scale *= point ? 10 : 1;
    }
    if (!digits || p[-1] == '.')
        return false;

    size_t letters = strspn(p, "dhms");
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strlen(units[i].name) != letters || strncmp(p, units[i].name, letters) != 0)
            continue;
        int64_t product;
        if (__builtin_mul_overflow(number, units[i].ms, &product) || product % scale != 0)
            return false;
        *ms = product / scale;
        *at = p + letters;
        return true;
    }
    return false;
}

int duration_parse(const char *text, int64_t *out_ms, struct err *err)
{
    const char *p = text;
    int64_t total = 0;

    if (strcmp(text, "0") == 0) {
        *out_ms = 0;
        return 0;
    }
    do {
        int64_t part;
        if (!duration_part(&p, &part))
            return err_set(err, ERR_CONFIG, "'%s' is not a duration such as 500ms, 10s, 5m, 2h, 30d",
                           text);
        if (part > DURATION_MAX_MS || (total += part) > DURATION_MAX_MS)
            return err_set(err, ERR_CONFIG, "'%s' is above 10 years", text);
    } while (*p);
    *out_ms = total;
    return 0;
}

const char *duration_text(int64_t ms, char out[CLOCK_TEXT_SIZE])
{
    size_t n = 0;
    uint64_t left = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;

    if (ms == 0) {
        snprintf(out, CLOCK_TEXT_SIZE, "0s");
        return out;
    }
    if (ms < 0)
        out[n++] = '-';
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        uint64_t unit = (uint64_t)units[i].ms;
        if (left >= unit)
            n += (size_t)snprintf(out + n, CLOCK_TEXT_SIZE - n, "%" PRIu64 "%s", left / unit,
                                  units[i].name);
        left %= unit;
    }
    return out;
}
