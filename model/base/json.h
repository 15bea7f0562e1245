/* json.h - strict reading of JSON documents from outside, and small helpers for writing.
 *
 * A `struct jval` is a value and the way to it, so that every error names its place:
 *     model.json: hosts[3].cpu_cap_millis: must be an integer from 0 to 10^15, not -4
 * Read pattern (all return 0/-1):
 *     struct jval root = jval_root(tree);
 *     jval_object(&root, keys, err)            object with none but these keys
 *     struct jval hosts = jval_get(&root, "hosts");
 *     jval_array(&hosts, max, &n, err)
 *     struct jval h = jval_at(&hosts, i);      h lives on the stack, its parents stay put */
#ifndef REMAP_BASE_JSON_H
#define REMAP_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/buf.h"
#include "model/base/err.h"

struct json_limits {
    size_t max_bytes; /* of the text */
    size_t max_depth;
    size_t max_containers; /* objects and arrays; 0: as many as fit into max_bytes */
};

/* contract.md 2: 256 MiB, depth 64; twice its 10^7 rows, since "[]," costs forty times its bytes
 * as a tree. */
extern const struct json_limits json_limits_document;
/* One envelope header or command: 64 KiB, depth 8. */
extern const struct json_limits json_limits_header;

/* Parses exactly one document; refuses doubled keys, bytes after it, too deep, too large, invalid
 * UTF-8, embedded NUL. Never recurses deeper than max_depth. NULL and ERR_INPUT / ERR_TOO_LARGE
 * with line and column. Caller json_decref()s. */
json_t *json_parse(const char *text, size_t size, const struct json_limits *limits,
                   struct err *err);

static inline void json_auto_decref(json_t **tree)
{
    json_decref(*tree);
}
#define AUTO_JSON __attribute__((cleanup(json_auto_decref)))

struct jval {
    json_t *value; /* borrowed; NULL when absent */
    const struct jval *up;
    const char *key; /* NULL for an array element */
    size_t index;
};

struct jval jval_root(json_t *tree);
struct jval jval_get(const struct jval *object, const char *key); /* absent: .value NULL */
struct jval jval_at(const struct jval *array, size_t index);
static inline bool jval_absent(const struct jval *v)
{
    return !v->value;
}
static inline bool jval_null(const struct jval *v)
{
    return v->value && json_is_null(v->value);
}

/* ERR_INPUT "hosts[3].zone: " + text. Returns -1. */
int jval_error(const struct jval *v, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Each of these fails where the value is absent or of another type. `keys` is NULL-terminated; an
 * unknown key names the nearest known one. */
int jval_object(const struct jval *v, const char *const keys[], struct err *err);
int jval_array(const struct jval *v, size_t max, size_t *count, struct err *err);
int jval_int(const struct jval *v, int64_t min, int64_t max, int64_t *out, struct err *err);
int jval_real(const struct jval *v, double min, double max, double *out, struct err *err);
int jval_bool(const struct jval *v, bool *out, struct err *err);
int jval_text(const struct jval *v, size_t max_bytes, const char **out, struct err *err);
int jval_name(const struct jval *v, const char **out, struct err *err); /* name_problem() */
int jval_choice(const struct jval *v, const char *const choices[], int *out, struct err *err);

/* Optional members: absent leaves *out as it is (set the default before). */
int jval_opt_int(const struct jval *object, const char *key, int64_t min, int64_t max,
                 int64_t *out, struct err *err);
int jval_opt_bool(const struct jval *object, const char *key, bool *out, struct err *err);
int jval_opt_text(const struct jval *object, const char *key, size_t max_bytes, char **out,
                  struct err *err); /* *out is a new string, freed before if set; null = absent */

/* The way to a value, "hosts[3].zone"; empty for the root. */
void jval_path(const struct jval *v, struct buf *out);

/* Writers that append compact JSON text to a buffer. Doubles are written with %.17g shortened to
 * the shortest text that reads back the same; non-finite ones must not come (assert). */
void json_put_text(struct buf *out, const char *text);  /* quoted and escaped; NULL → null */
void json_put_int(struct buf *out, int64_t value);
void json_put_real(struct buf *out, double value);
void json_put_bool(struct buf *out, bool value);

#endif
