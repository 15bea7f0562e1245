/* json_read.c - a quick reader for the JSON that programs write, into the tree that jansson would
 * have made (RFC 8259). It reads text that is known to be UTF-8, without zero bytes and not nested
 * deeply. Whatever it is not sure of - \u escapes, numbers at the limits, every error - it leaves
 * to jansson, which says what is wrong and where. */
#include "model/base/json_read.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/buf.h"

struct reader {
    const char *at, *end;
    struct buf scratch; /* a text without its escapes */
};

static json_t *read_value(struct reader *r);

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
        r->at++;
}

/* True, and past it, when the next byte after space is this. */
static bool take(struct reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool put_escape(struct buf *out, char c)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    const char *name = strchr(names, c);
    if (!name || !c)
        return false;
    buf_add(out, &bytes[name - names], 1);
    return true;
}

/* What stands between quotes, the first of which is taken; lives until the next text is read. */
static bool read_text(struct reader *r, const char **text, size_t *size)
{
    const char *from = r->at;
    bool escaped = false;
    while (r->at < r->end && *r->at != '"') {
        if ((unsigned char)*r->at < 0x20)
            return false;
        if (*r->at != '\\') {
            r->at++;
            continue;
        }
        if (!escaped)
            buf_clear(&r->scratch);
        escaped = true;
        buf_add(&r->scratch, from, (size_t)(r->at - from));
        if (r->end - r->at < 2 || !put_escape(&r->scratch, r->at[1]))
            return false;
        from = r->at += 2;
    }
    if (r->at == r->end)
        return false;
    if (escaped)
        buf_add(&r->scratch, from, (size_t)(r->at - from));
    *text = escaped ? r->scratch.data : from;
    *size = escaped ? r->scratch.size : (size_t)(r->at - from);
    r->at++;
    return true;
}

static json_t *read_string(struct reader *r)
{
    const char *text;
    size_t size;
    return read_text(r, &text, &size) ? json_stringn_nocheck(text, size) : NULL;
}

static bool is_digit(const struct reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

/* Reads digits into `value` as long as they fit; false when there is none, or one too many. */
static bool read_digits(struct reader *r, uint64_t *value)
{
    const char *from = r->at;
    while (is_digit(r)) {
        if (*value > (UINT64_MAX - 9) / 10)
            return false;
        *value = *value * 10 + (uint64_t)(*r->at++ - '0');
    }
    return r->at > from;
}

/* mantissa · 10^exponent, as strtod reads `from` … r->at: where both factors are exact doubles one
 * operation rounds just once (Clinger 1990). */
static json_t *real_of(const struct reader *r, const char *from, uint64_t mantissa,
                       int64_t exponent)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    char text[64];
    double value = (double)mantissa;
    if (FLT_EVAL_METHOD == 0 && mantissa <= UINT64_C(1) << 53 && exponent >= -22 &&
        exponent <= 22) {
        value = exponent < 0 ? value / tens[-exponent] : value * tens[exponent];
        return json_real(*from == '-' ? -value : value);
    }
    size_t size = (size_t)(r->at - from);
    if (size >= sizeof text)
        return NULL;
    memcpy(text, from, size);
    text[size] = '\0';
    value = strtod(text, NULL);
    return isfinite(value) ? json_real(value) : NULL;
}

static json_t *read_number(struct reader *r)
{
    const char *from = r->at;
    uint64_t mantissa = 0, power = 0;
    int64_t exponent = 0;
    bool real = false;
    r->at += *r->at == '-';
    const char *first = r->at;
    if (!read_digits(r, &mantissa) || (*first == '0' && r->at - first > 1))
        return NULL;
    if (r->at < r->end && *r->at == '.') {
        const char *point = ++r->at;
        if (!read_digits(r, &mantissa))
            return NULL;
        exponent = point - r->at;
        real = true;
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        bool minus = r->at < r->end && *r->at == '-';
        r->at += minus || (r->at < r->end && *r->at == '+');
        if (!read_digits(r, &power) || power > 400)
            return NULL;
        exponent += minus ? -(int64_t)power : (int64_t)power;
        real = true;
    }
    if (real)
        return real_of(r, from, mantissa, exponent);
    if (mantissa > INT64_MAX)
        return NULL;
    return json_integer(*from == '-' ? -(json_int_t)mantissa : (json_int_t)mantissa);
}

static json_t *read_word(struct reader *r, const char *word, json_t *value)
{
    size_t size = strlen(word);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0)
        return NULL;
    r->at += size;
    return value; /* these three are not counted */
}

static bool read_member(struct reader *r, json_t *object)
{
    const char *key;
    size_t size, members = json_object_size(object);
    if (!take(r, '"') || !read_text(r, &key, &size))
        return false;
    bool shared = key == r->scratch.data; /* the value may hold escapes too */
    char *own = shared ? malloc(size + 1) : NULL;
    if (shared && !own)
        return false;
    if (shared)
        key = memcpy(own, key, size);
    json_t *value = take(r, ':') ? read_value(r) : NULL;
    bool fine = value && json_object_setn_new_nocheck(object, key, size, value) == 0 &&
                json_object_size(object) > members;
    free(own);
    return fine;
}

static bool read_members(struct reader *r, json_t *object)
{
    if (take(r, '}'))
        return true;
    do {
        if (!read_member(r, object))
            return false;
    } while (take(r, ','));
    return take(r, '}');
}

static bool read_elements(struct reader *r, json_t *array)
{
    if (take(r, ']'))
        return true;
    do {
        json_t *value = read_value(r);
        if (!value || json_array_append_new(array, value) < 0)
            return false;
    } while (take(r, ','));
    return take(r, ']');
}

static json_t *read_container(struct reader *r, json_t *container,
                              bool (*fill)(struct reader *r, json_t *container))
{
    if (container && fill(r, container))
        return container;
    json_decref(container);
    return NULL;
}

static json_t *read_value(struct reader *r)
{
    skip_space(r);
    if (r->at == r->end)
        return NULL;
    switch (*r->at) {
    case '{':
        r->at++;
        return read_container(r, json_object(), read_members);
    case '[':
        r->at++;
        return read_container(r, json_array(), read_elements);
    case '"':
        r->at++;
        return read_string(r);
    case 't':
        return read_word(r, "true", json_true());
    case 'f':
        return read_word(r, "false", json_false());
    case 'n':
        return read_word(r, "null", json_null());
    default:
        return *r->at == '-' || is_digit(r) ? read_number(r) : NULL;
    }
}

json_t *json_read(const char *text, size_t size)
{
    struct reader r = {.at = text, .end = text + size, .scratch = BUF_INIT};
    json_t *tree = read_value(&r);
    skip_space(&r);
    if (tree && r.at < r.end) {
        json_decref(tree);
        tree = NULL;
    }
    buf_wipe(&r.scratch);
    return tree;
}
