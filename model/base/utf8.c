/* utf8.c - well-formed byte sequences after Unicode table 3-7. */
#include "model/base/utf8.h"

#include <stdint.h>
#include <string.h>

/* Length that the first byte announces, and the range of the second byte; 0 for no first byte. */
static size_t utf8_lead(unsigned char lead, unsigned char *lo, unsigned char *hi)
{
    *lo = 0x80;
    *hi = 0xbf;
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead <= 0xdf)
        return 2;
    if (lead >= 0xe0 && lead <= 0xef) {
        if (lead == 0xe0)
            *lo = 0xa0;
        if (lead == 0xed)
            *hi = 0x9f;
        return 3;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        if (lead == 0xf0)
            *lo = 0x90;
        if (lead == 0xf4)
            *hi = 0x8f;
        return 4;
    }
    return 0;
}

/* Bytes of the character at `text` that are there and right; *need is its whole length. */
static size_t utf8_prefix(const unsigned char *text, size_t size, size_t *need)
{
    unsigned char lo, hi;

    *need = size ? utf8_lead(text[0], &lo, &hi) : 0;
    if (*need == 0)
        return 0;
    size_t i = 1;
    for (; i < *need && i < size; i++) {
        if (text[i] < lo || text[i] > hi)
            return 0;
        lo = 0x80;
        hi = 0xbf;
    }
    return i;
}

size_t utf8_step(const char *text, size_t size)
{
    size_t need;
    size_t have = utf8_prefix((const unsigned char *)text, size, &need);

    return have == need ? need : 0;
}

bool utf8_is_cut(const char *text, size_t size)
{
    size_t need;
    size_t have = utf8_prefix((const unsigned char *)text, size, &need);

    return have > 0 && have < need;
}

size_t utf8_check(const char *text, size_t size)
{
    size_t i = 0;

    while (i < size) {
        uint64_t word;
        /* Eight ASCII bytes at a time: documents are nearly all ASCII. */
        if (size - i >= sizeof word) {
            memcpy(&word, text + i, sizeof word);
            if (!(word & UINT64_C(0x8080808080808080))) {
                i += sizeof word;
                continue;
            }
        }
        size_t step = utf8_step(text + i, size - i);
        if (step == 0)
            return i;
        i += step;
    }
    return size;
}
