/* walk.h - reading JSON of any size by a table of rules: yajl finds the tokens, the walk knows where
 * in the document they are and hands out only what a rule names. Memory is one stack of 64 frames
 * and one token, whatever the size of the document.
 *
 * A state stands for an object or an array. Rules of a state say what may stand under which key
 * (arrays: in which form its elements come). What no rule names is skipped, null counts as absent,
 * a wrong form and a key given twice are ERR_INPUT. */
#ifndef REMAP_SPANS_WALK_H
#define REMAP_SPANS_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/base/err.h"
#include "model/base/mem.h"

enum walk_shape { WALK_SCALAR = 1, WALK_OBJECT = 2, WALK_ARRAY = 4 };

#define WALK_ANY_KEY "*" /* the key itself goes to value() */

struct walk_rule {
    uint8_t state;
    const char *key; /* NULL: element of an array, or the document itself in state 0 */
    uint8_t shapes;  /* of enum walk_shape */
    uint8_t object, array; /* state inside, for these shapes */
    uint8_t field;   /* handed to value() */
};

enum walk_type { WALK_NULL, WALK_BOOL, WALK_NUMBER, WALK_TEXT };

struct walk_value {
    enum walk_type type;
    const char *text; /* not terminated; "true", "12.5"; valid during the call */
    size_t size;
    const char *key; /* under WALK_ANY_KEY, else NULL; not terminated */
    size_t key_size;
};

struct walk_grammar {
    const struct walk_rule *rules; /* those of one state together */
    size_t n_rules;
    uint8_t n_states;
    /* Each may fail; the error gets the position. An object or array begins or ends. */
    int (*enter)(void *ctx, uint8_t state, const struct walk_value *key, struct err *err);
    int (*leave)(void *ctx, uint8_t state, struct err *err);
    int (*value)(void *ctx, uint8_t field, const struct walk_value *value, struct err *err);
};

/* contract.md 2 allows depth 64 for our own documents; spans need 12. */
#define WALK_MAX_DEPTH 64
/* The longest token: SQL statements and stack traces in tags are long, but not like this. */
#define WALK_MAX_TOKEN ((size_t)4 << 20)

struct walk;

/* Borrows grammar and ctx. Reads one or more documents one after the other (newline-delimited
 * JSON). */
struct walk *walk_new(const struct walk_grammar *grammar, void *ctx);
void walk_free(struct walk *walk);
AUTO_DEFINE(walk)

/* The next bytes, cut anywhere. ERR_INPUT, ERR_TOO_LARGE, or the grammar's own error, with "line L,
 * byte B: " before it. After an error only walk_free(). */
int walk_feed(struct walk *walk, const char *data, size_t size, struct err *err);
/* No more bytes: ERR_INPUT when a document is not complete, or there was none. */
int walk_end(struct walk *walk, struct err *err);

#endif
