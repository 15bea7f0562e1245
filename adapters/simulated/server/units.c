/* units.c - numbers with a unit behind them. */
#include "adapters/simulated/server/units.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define MOST 1e15 /* contract.md 2 */

struct unit {
    const char *suffix;
    double factor;
};

/* digits[.digits] and one of the suffixes; up to 15 digits stay exact in a double. */
static const char *quantity(const char *text, const struct unit *units, const char *wrong,
                            int64_t *out)
{
    double value = 0, place = 1;
    int digits = 0;
    const char *c = text;
    for (; isdigit((unsigned char)*c); c++, digits++)
        value = value * 10 + (*c - '0');
    if (digits > 1 && text[0] == '0')
        return "must not begin with zeros";
    if (!digits)
        return wrong;
    if (*c == '.') {
        c++;
        if (!isdigit((unsigned char)*c))
            return wrong;
        for (; isdigit((unsigned char)*c); c++, digits++) {
            value = value * 10 + (*c - '0');
            place *= 10;
        }
    }
    if (digits > 15)
        return "has too many digits";
    for (const struct unit *u = units; u->suffix; u++) {
        if (strcmp(u->suffix, c) != 0)
            continue;
        double result = ceil(value * u->factor / place);
        if (result > MOST)
            return "is above 10^15";
        *out = (int64_t)result;
        return NULL;
    }
    return wrong;
}

const char *unit_cpu(const char *text, int64_t *millis)
{
    static const struct unit units[] = {{"m", 1}, {"", 1000}, {NULL, 0}};
    return quantity(text, units, "must be CPU like 250m or 1.5", millis);
}

const char *unit_size(const char *text, int64_t *bytes)
{
    static const struct unit units[] = {
        {"", 1},      {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
        {"Ki", 1024}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {NULL, 0}};
    return quantity(text, units, "must be a size like 256Mi or 8G", bytes);
}

const char *unit_micros(const char *text, int64_t *micros)
{
    static const struct unit units[] = {{"us", 1},   {"ms", 1e3},   {"s", 1e6},
                                        {"m", 60e6}, {"h", 3600e6}, {NULL, 0}};
    if (!strcmp(text, "0")) {
        *micros = 0;
        return NULL;
    }
    return quantity(text, units, "must be a time like 300us, 1.5ms or 10s", micros);
}
