/* quantity.c - the grammar of quantities and their exact value (interfaces.md 1.3):
 *     [+-]digits[.digits] and one of  n u m "" k M G T P E | Ki Mi Gi Ti Pi Ei | e|E[+-]int
 * "1E" is exa, "1E3" is a thousand. */
#include "adapters/kubernetes/quantity.h"

#include <ctype.h>
#include <string.h>

#include "model/base/mem.h"

/* Texts of 64 digits are below 2^213; times 2^60 (Ei) times 10^73 (an exponent of 64, nanos) below
 * 2^516. 18 limbs hold 576 bits. */
#define MAX_TEXT 64
#define MAX_EXPONENT 64
#define LIMBS 18

struct big {
    uint32_t limb[LIMBS]; /* lowest first */
};

static void big_muladd(struct big *big, uint32_t factor, uint32_t add)
{
    uint64_t carry = add;
    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)big->limb[i] * factor;
        big->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* Divides; returns the remainder. */
static uint32_t big_divide(struct big *big, uint32_t divisor)
{
    uint64_t rest = 0;
    for (int i = LIMBS - 1; i >= 0; i--) {
        rest = rest << 32 | big->limb[i];
        big->limb[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    return (uint32_t)rest;
}

static bool big_is_zero(const struct big *big)
{
    for (int i = 0; i < LIMBS; i++)
        if (big->limb[i])
            return false;
    return true;
}

struct parsed {
    struct big mantissa;
    int exponent; /* of 10 */
    int doublings;
};

static const char *parse_number(const char *at, struct parsed *out)
{
    for (; isdigit((unsigned char)*at); at++)
        big_muladd(&out->mantissa, 10, (uint32_t)(*at - '0'));
    if (*at != '.')
        return at;
    for (at++; isdigit((unsigned char)*at); at++) {
        big_muladd(&out->mantissa, 10, (uint32_t)(*at - '0'));
        out->exponent--;
    }
    return at;
}

/* -1 when it is none. "E" alone is the suffix exa. */
static int parse_exponent(const char *text, struct parsed *out)
{
    const char *at = text + 1;
    bool negative = *at == '-';
    if (*at == '+' || *at == '-')
        at++;
    if ((*text != 'e' && *text != 'E') || !isdigit((unsigned char)*at))
        return -1;
    int value = 0;
    for (; isdigit((unsigned char)*at); at++)
        value = value > 1000 ? value : value * 10 + (*at - '0');
    if (*at)
        return -1;
    out->exponent += negative ? -value : value;
    return 0;
}

static int parse_suffix(const char *text, struct parsed *out)
{
    static const struct {
        const char *name;
        int exponent, doublings;
    } suffixes[] = {{"", 0, 0},   {"n", -9, 0}, {"u", -6, 0}, {"m", -3, 0}, {"k", 3, 0},
                    {"M", 6, 0},  {"G", 9, 0},  {"T", 12, 0}, {"P", 15, 0}, {"E", 18, 0},
                    {"Ki", 0, 10}, {"Mi", 0, 20}, {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50},
                    {"Ei", 0, 60}};
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        if (strcmp(suffixes[i].name, text) == 0) {
            out->exponent += suffixes[i].exponent;
            out->doublings = suffixes[i].doublings;
            return 0;
        }
    return parse_exponent(text, out);
}

/* Nanos from the parts, rounded up in size. */
static struct quantity settle(struct parsed *parsed)
{
    struct quantity out = {0};
    if (big_is_zero(&parsed->mantissa))
        return out;
    if (parsed->exponent > MAX_EXPONENT) {
        out.whole = INT64_MAX;
        return out;
    }
    for (int i = 0; i < parsed->doublings; i++)
        big_muladd(&parsed->mantissa, 2, 0);
    int exponent = parsed->exponent + 9;
    bool inexact = false;
    for (; exponent > 0; exponent--)
        big_muladd(&parsed->mantissa, 10, 0);
    for (; exponent < 0 && !big_is_zero(&parsed->mantissa); exponent++)
        inexact = big_divide(&parsed->mantissa, 10) != 0 || inexact;
    if (inexact)
        big_muladd(&parsed->mantissa, 1, 1);
    out.nanos = (int32_t)big_divide(&parsed->mantissa, 1000000000);
    uint64_t whole = (uint64_t)parsed->mantissa.limb[1] << 32 | parsed->mantissa.limb[0];
    parsed->mantissa.limb[0] = parsed->mantissa.limb[1] = 0;
    if (whole >= INT64_MAX || !big_is_zero(&parsed->mantissa)) {
        out.whole = INT64_MAX;
        out.nanos = 0;
    } else {
        out.whole = (int64_t)whole;
    }
    return out;
}

int quantity_parse(const char *text, struct quantity *out, struct err *err)
{
    struct parsed parsed = {0};
    const char *number = text + (*text == '+' || *text == '-');
    const char *suffix = number;
    if (strlen(text) <= MAX_TEXT)
        suffix = parse_number(number, &parsed);
    if (suffix == number || parse_suffix(suffix, &parsed))
        return err_set(err, ERR_INPUT, "\"%.64s\" is no quantity", text);
    *out = settle(&parsed);
    out->negative = *text == '-' && (out->whole || out->nanos);
    return 0;
}

/* whole·per + nanos·per/10^9. `per` is at most 1000, so the second product stays below 10^12. */
static int64_t scaled(const struct quantity *quantity, int64_t per, int64_t round)
{
    if (quantity->negative)
        return 0;
    int64_t part = (quantity->nanos * per + round) / 1000000000;
    if (quantity->whole > (INT64_MAX - part) / per)
        return INT64_MAX;
    return quantity->whole * per + part;
}

int64_t quantity_need(const struct quantity *quantity, int64_t per)
{
    return scaled(quantity, per, 999999999);
}

int64_t quantity_capacity(const struct quantity *quantity, int64_t per)
{
    return scaled(quantity, per, 0);
}
