/* json.c - strict parsing of one JSON document, and writers. jansson reads by recursion and keeps
 * what it reads, so size, depth and zero bytes are looked at before it sees the text. */
#include "model/base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/base/utf8.h"

const struct json_limits json_limits_document = {
    .max_bytes = (size_t)256 << 20, .max_depth = 64, .max_containers = 20000000};
const struct json_limits json_limits_header = {.max_bytes = (size_t)64 << 10, .max_depth = 8};

/* Line and column (both from 1, columns in bytes) of an offset. */
static void text_place(const char *text, size_t offset, size_t *line, size_t *column)
{
    size_t start = 0;

    *line = 1;
    for (const char *p = text; (p = memchr(p, '\n', offset - (size_t)(p - text))); p++) {
        (*line)++;
        start = (size_t)(p - text) + 1;
    }
    *column = offset - start + 1;
}

static int error_at(const char *text, size_t offset, enum err_kind kind, const char *what,
                    struct err *err)
{
    size_t line, column;

    text_place(text, offset, &line, &column);
    return err_set(err, kind, "line %zu, column %zu: %s", line, column, what);
}

/* Offset of the quote that ends the string which begins at `at`, or `size`. */
static size_t string_end(const char *text, size_t size, size_t at)
{
    for (size_t i = at + 1; i < size; i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == '"')
            return i;
    }
    return size;
}

static int shape_error(const char *text, size_t offset, enum err_kind kind, const char *what,
                       size_t limit, struct err *err)
{
    char line[80];

    snprintf(line, sizeof line, what, limit);
    return error_at(text, offset, kind, line, err);
}

static int shape_check(const char *text, size_t size, const struct json_limits *limits,
                       struct err *err)
{
    size_t depth = 0, containers = 0;

    for (size_t i = 0; i < size; i++) {
        switch (text[i]) {
        case '"':
            i = string_end(text, size, i);
            break;
        case '[':
        case '{':
            if (++depth > limits->max_depth)
                return shape_error(text, i, ERR_INPUT, "nested deeper than %zu levels",
                                   limits->max_depth, err);
            if (limits->max_containers && ++containers > limits->max_containers)
                return shape_error(text, i, ERR_TOO_LARGE, "more than %zu objects and arrays",
                                   limits->max_containers, err);
            break;
        case ']':
        case '}':
            depth -= depth > 0;
            break;
        default:
            break;
        }
    }
    return 0;
}

json_t *json_parse(const char *text, size_t size, const struct json_limits *limits,
                   struct err *err)
{
    json_error_t problem;

    text = size ? text : "";
    if (size > limits->max_bytes) {
        err_set(err, ERR_TOO_LARGE, "document of %zu bytes, above the limit of %zu", size,
                limits->max_bytes);
        return NULL;
    }
    const char *zero = memchr(text, '\0', size);
    if (zero) {
        error_at(text, (size_t)(zero - text), ERR_INPUT, "zero byte", err);
        return NULL;
    }
    size_t valid = utf8_check(text, size);
    if (valid < size) {
        error_at(text, valid, ERR_INPUT, "not valid UTF-8", err);
        return NULL;
    }
    if (shape_check(text, size, limits, err) < 0)
        return NULL;
    json_t *tree = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
    if (tree)
        return tree;
    switch (json_error_code(&problem)) {
    case json_error_premature_end_of_input:
        error_at(text, size, ERR_INPUT, "the document ends here, unfinished", err);
        break;
    case json_error_numeric_overflow:
        err_set(err, ERR_INPUT, "line %d, column %d: number out of range: %s", problem.line,
                problem.column, problem.text);
        break;
    default:
        err_set(err, ERR_INPUT, "line %d, column %d: %s", problem.line, problem.column,
                problem.text);
        break;
    }
    return NULL;
}

void json_put_text(struct buf *out, const char *text)
{
    if (!text) {
        buf_puts(out, "null");
        return;
    }
    size_t left = strlen(text), plain = 0;
    buf_reserve(out, left + 2);
    buf_add(out, "\"", 1);
    while (left > 0) {
        unsigned char c = (unsigned char)text[plain];
        size_t step = c >= 0x20 && c < 0x7f ? 1 : utf8_step(text + plain, left);
        if (step > 0 && c >= 0x20 && c != '"' && c != '\\') {
            plain += step;
            left -= step;
            continue;
        }
        buf_add(out, text, plain);
        if (step == 0) /* not UTF-8: nothing we write may be refused by a reader */
            buf_puts(out, "\xef\xbf\xbd");
        else if (c == '"' || c == '\\')
            buf_add(out, (char[]){'\\', (char)c}, 2);
        else if (c == '\n')
            buf_add(out, "\\n", 2);
        else if (c == '\t')
            buf_add(out, "\\t", 2);
        else
            buf_printf(out, "\\u%04x", c);
        text += plain + 1;
        left--;
        plain = 0;
    }
    buf_add(out, text, plain);
    buf_add(out, "\"", 1);
}

void json_put_int(struct buf *out, int64_t value)
{
    char digits[24];
    size_t i = sizeof digits;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    do {
        digits[--i] = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    if (value < 0)
        digits[--i] = '-';
    buf_add(out, digits + i, sizeof digits - i);
}

void json_put_real(struct buf *out, double value)
{
    char text[40];

    assert(isfinite(value));
    if (value == 0) { /* keeps the sign, which an integer would lose */
        buf_puts(out, signbit(value) ? "-0.0" : "0");
        return;
    }
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    buf_puts(out, text);
}

void json_put_bool(struct buf *out, bool value)
{
    buf_puts(out, value ? "true" : "false");
}
