/* jval.c - values with the way to them: strict reading that names the place of every error. */
#include "model/base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/base/names.h"

struct jval jval_root(json_t *tree)
{
    return (struct jval){.value = tree};
}

struct jval jval_get(const struct jval *object, const char *key)
{
    return (struct jval){.value = json_object_get(object->value, key), .up = object, .key = key};
}

struct jval jval_at(const struct jval *array, size_t index)
{
    return (struct jval){
        .value = json_array_get(array->value, index), .up = array, .index = index};
}

#define KEY_SHOWN 80

/* A key as it stands in a path: plain where it can be, else quoted. */
static void put_key(struct buf *out, const char *key)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    if (strlen(key) > KEY_SHOWN) { /* what is wrong must still fit into the error */
        AUTO_FREE char *shown = mem_strndup(key, KEY_SHOWN);
        buf_printf(out, "%s%s…", out->size ? "." : "", shown);
    } else if (*key && strspn(key, plain) == strlen(key)) {
        buf_printf(out, "%s%s", out->size ? "." : "", key);
    } else {
        buf_puts(out, "[");
        json_put_text(out, key);
        buf_puts(out, "]");
    }
}

static void put_path(const struct jval *v, struct buf *out)
{
    if (!v->up)
        return;
    put_path(v->up, out);
    if (v->key)
        put_key(out, v->key);
    else
        buf_printf(out, "[%zu]", v->index);
}

void jval_path(const struct jval *v, struct buf *out)
{
    AUTO_BUF struct buf path = BUF_INIT;

    put_path(v, &path);
    buf_add(out, path.data, path.size);
}

int jval_error(const struct jval *v, struct err *err, const char *fmt, ...)
{
    AUTO_BUF struct buf path = BUF_INIT;
    char text[sizeof err->text];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    jval_path(v, &path);
    if (path.size == 0)
        return err_set(err, ERR_INPUT, "%s", text);
    return err_set(err, ERR_INPUT, "%s: %s", path.data, text);
}

/* What is there instead of what was wanted; `out` serves numbers and texts. */
static const char *found(const struct jval *v, char out[64])
{
    switch (json_typeof(v->value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        snprintf(out, 64, "the text \"%.40s\"", json_string_value(v->value));
        return out;
    case JSON_INTEGER:
        snprintf(out, 64, "%" JSON_INTEGER_FORMAT, json_integer_value(v->value));
        return out;
    case JSON_REAL:
        snprintf(out, 64, "%.17g", json_real_value(v->value));
        if (strspn(out, "-0123456789") == strlen(out))
            strcat(out, ".0");
        return out;
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        return "null";
    }
    return "something else";
}

static int wrong(const struct jval *v, struct err *err, const char *wanted)
{
    char text[64];

    if (jval_absent(v))
        return jval_error(v, err, "is missing");
    return jval_error(v, err, "must be %s, not %s", wanted, found(v, text));
}

int jval_object(const struct jval *v, const char *const keys[], struct err *err)
{
    if (!json_is_object(v->value))
        return wrong(v, err, "an object");

    for (void *it = json_object_iter(v->value); it; it = json_object_iter_next(v->value, it)) {
        const char *key = json_object_iter_key(it);
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0)
            i++;
        if (keys[i])
            continue;
        struct jval member = jval_get(v, key);
        const char *near = names_nearest(key, keys);
        if (near)
            return jval_error(&member, err, "unknown key, did you mean \"%s\"?", near);
        return jval_error(&member, err, "unknown key");
    }
    return 0;
}

int jval_array(const struct jval *v, size_t max, size_t *count, struct err *err)
{
    if (!json_is_array(v->value))
        return wrong(v, err, "an array");
    if (json_array_size(v->value) > max) {
        jval_error(v, err, "has %zu elements, above the limit of %zu", json_array_size(v->value),
                   max);
        err->kind = ERR_TOO_LARGE;
        return -1;
    }
    *count = json_array_size(v->value);
    return 0;
}

/* 10^15 reads better than its digits. */
static const char *bound_text(int64_t bound, char out[24])
{
    int zeros = 0;
    int64_t left = bound;

    for (; left >= 10 && left % 10 == 0; left /= 10)
        zeros++;
    if (left == 1 && zeros >= 6)
        snprintf(out, 24, "10^%d", zeros);
    else
        snprintf(out, 24, "%" PRId64, bound);
    return out;
}

int jval_int(const struct jval *v, int64_t min, int64_t max, int64_t *out, struct err *err)
{
    if (!json_is_integer(v->value) || json_integer_value(v->value) < min ||
        json_integer_value(v->value) > max) {
        char wanted[80], lo[24], hi[24];
        snprintf(wanted, sizeof wanted, "an integer from %s to %s", bound_text(min, lo),
                 bound_text(max, hi));
        return wrong(v, err, wanted);
    }
    *out = json_integer_value(v->value);
    return 0;
}

int jval_real(const struct jval *v, double min, double max, double *out, struct err *err)
{
    double value = json_number_value(v->value);

    if (!json_is_number(v->value) || !(value >= min && value <= max)) {
        char wanted[80];
        snprintf(wanted, sizeof wanted, "a number from %g to %g", min, max);
        return wrong(v, err, wanted);
    }
    *out = value;
    return 0;
}

int jval_bool(const struct jval *v, bool *out, struct err *err)
{
    if (!json_is_boolean(v->value))
        return wrong(v, err, "true or false");
    *out = json_is_true(v->value);
    return 0;
}

int jval_text(const struct jval *v, size_t max_bytes, const char **out, struct err *err)
{
    if (!json_is_string(v->value))
        return wrong(v, err, "a text");
    if (json_string_length(v->value) > max_bytes)
        return jval_error(v, err, "is longer than %zu bytes", max_bytes);
    *out = json_string_value(v->value);
    return 0;
}

int jval_name(const struct jval *v, const char **out, struct err *err)
{
    if (!json_is_string(v->value))
        return wrong(v, err, "a name");
    const char *problem = name_problem(json_string_value(v->value), json_string_length(v->value));
    if (problem)
        return jval_error(v, err, "%s", problem);
    *out = json_string_value(v->value);
    return 0;
}

int jval_choice(const struct jval *v, const char *const choices[], int *out, struct err *err)
{
    const char *text = json_string_value(v->value);

    for (int i = 0; text && choices[i]; i++) {
        if (strcmp(choices[i], text) == 0) {
            *out = i;
            return 0;
        }
    }
    AUTO_BUF struct buf wanted = BUF_INIT;
    for (size_t i = 0; choices[i]; i++)
        buf_printf(&wanted, "%s\"%s\"", i == 0 ? "" : choices[i + 1] ? ", " : " or ", choices[i]);
    return wrong(v, err, wanted.data ? wanted.data : "nothing");
}

int jval_opt_int(const struct jval *object, const char *key, int64_t min, int64_t max,
                 int64_t *out, struct err *err)
{
    struct jval v = jval_get(object, key);

    return jval_absent(&v) ? 0 : jval_int(&v, min, max, out, err);
}

int jval_opt_bool(const struct jval *object, const char *key, bool *out, struct err *err)
{
    struct jval v = jval_get(object, key);

    return jval_absent(&v) ? 0 : jval_bool(&v, out, err);
}

int jval_opt_text(const struct jval *object, const char *key, size_t max_bytes, char **out,
                  struct err *err)
{
    struct jval v = jval_get(object, key);
    const char *text;

    if (jval_absent(&v) || jval_null(&v))
        return 0;
    if (jval_text(&v, max_bytes, &text, err) < 0)
        return -1;
    free(*out);
    *out = mem_strdup(text);
    return 0;
}
