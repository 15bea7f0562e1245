/* walk.c - yajl's events through a table of rules (walk.h). yajl: https://lloyd.github.io/yajl/ */
#include "adapters/spans/walk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

struct frame {
    uint8_t state;
    bool array;
    const struct walk_rule *rule; /* of the key just read, or of the elements */
    uint64_t seen;                /* keys given, by place of their rule in the state */
};

struct walk {
    const struct walk_grammar *grammar;
    void *ctx;
    yajl_handle yajl;
    size_t *first; /* first rule of each state; one more at the end */
    struct frame frames[WALK_MAX_DEPTH + 1]; /* [0]: outside of any document */
    size_t depth;   /* of frames */
    size_t skipped; /* open objects and arrays that no rule names */
    char key[256];  /* under WALK_ANY_KEY */
    size_t key_size;
    int64_t bytes, lines; /* fed before the present chunk */
    size_t quiet;         /* bytes since the last event */
    int64_t documents;
    struct err *err; /* of the running call; set by the event that failed */
};

static struct frame *top(struct walk *walk)
{
    return &walk->frames[walk->depth];
}

static struct walk_value with_key(const struct walk *walk, const struct walk_rule *rule)
{
    struct walk_value value = {.type = WALK_NULL};
    if (rule->key && strcmp(rule->key, WALK_ANY_KEY) == 0) {
        value.key = walk->key;
        value.key_size = walk->key_size;
    }
    return value;
}

static int wrong_shape(struct walk *walk, const struct walk_rule *rule)
{
    const char *wanted = "a value";
    if (rule->shapes == WALK_OBJECT)
        wanted = "an object";
    else if (rule->shapes == WALK_ARRAY)
        wanted = "an array";
    else if (rule->shapes == (WALK_ARRAY | WALK_OBJECT))
        wanted = "an object or an array";
    err_set(walk->err, ERR_INPUT, "%s%smust be %s",
            rule->key && *rule->key != '*' ? rule->key : "",
            rule->key && *rule->key != '*' ? ": " : "", wanted);
    return 0;
}

/* The rule for the value that comes now; NULL: to be skipped. */
static const struct walk_rule *rule_now(struct walk *walk)
{
    walk->quiet = 0;
    return walk->skipped ? NULL : top(walk)->rule;
}

static int on_scalar(struct walk *walk, enum walk_type type, const char *text, size_t size)
{
    const struct walk_rule *rule = rule_now(walk);
    if (!rule)
        return 1;
    if (type != WALK_NULL && !(rule->shapes & WALK_SCALAR))
        return wrong_shape(walk, rule);
    if (walk->depth == 0)
        walk->documents++;
    struct walk_value value = with_key(walk, rule);
    value.type = type;
    value.text = text;
    value.size = size;
    return rule->field == 0 || walk->grammar->value(walk->ctx, rule->field, &value, walk->err) == 0;
}

static int on_null(void *ctx)
{
    return on_scalar(ctx, WALK_NULL, "", 0);
}

static int on_bool(void *ctx, int value)
{
    return value ? on_scalar(ctx, WALK_BOOL, "true", 4) : on_scalar(ctx, WALK_BOOL, "false", 5);
}

static int on_number(void *ctx, const char *text, size_t size)
{
    return on_scalar(ctx, WALK_NUMBER, text, size);
}

static int on_text(void *ctx, const unsigned char *text, size_t size)
{
    return on_scalar(ctx, WALK_TEXT, (const char *)text, size);
}

static int on_start(struct walk *walk, enum walk_shape shape)
{
    const struct walk_rule *rule = rule_now(walk);
    if (walk->depth + walk->skipped >= WALK_MAX_DEPTH) {
        err_set(walk->err, ERR_INPUT, "nested deeper than %d", WALK_MAX_DEPTH);
        return 0;
    }
    if (!rule) {
        walk->skipped++;
        return 1;
    }
    if (!(rule->shapes & shape))
        return wrong_shape(walk, rule);
    if (walk->depth == 0)
        walk->documents++;
    struct walk_value key = with_key(walk, rule);
    struct frame *frame = &walk->frames[++walk->depth];
    *frame = (struct frame){.state = shape == WALK_OBJECT ? rule->object : rule->array,
                            .array = shape == WALK_ARRAY};
    if (frame->array) {
        assert(!walk->grammar->rules[walk->first[frame->state]].key);
        frame->rule = &walk->grammar->rules[walk->first[frame->state]];
    }
    return walk->grammar->enter(walk->ctx, frame->state, &key, walk->err) == 0;
}

static int on_start_object(void *ctx)
{
    return on_start(ctx, WALK_OBJECT);
}

static int on_start_array(void *ctx)
{
    return on_start(ctx, WALK_ARRAY);
}

static int on_end(void *ctx)
{
    struct walk *walk = ctx;
    walk->quiet = 0;
    if (walk->skipped) {
        walk->skipped--;
        return 1;
    }
    uint8_t state = top(walk)->state;
    walk->depth--;
    return walk->grammar->leave(walk->ctx, state, walk->err) == 0;
}

static bool key_fits(const struct walk_rule *rule, const char *key, size_t size)
{
    return rule->key[0] == (size ? key[0] : '\0') && strlen(rule->key) == size &&
           memcmp(rule->key, key, size) == 0; /* a key may hold "\u0000" */
}

static int on_key(void *ctx, const unsigned char *text, size_t size)
{
    struct walk *walk = ctx;
    const char *key = (const char *)text;
    walk->quiet = 0;
    if (walk->skipped)
        return 1;
    struct frame *frame = top(walk);
    frame->rule = NULL;
    const struct walk_rule *rules = walk->grammar->rules;
    size_t from = walk->first[frame->state], to = walk->first[frame->state + 1];
    for (size_t i = from; i < to; i++) {
        if (rules[i].key[0] == '*') {
            walk->key_size = size < sizeof walk->key ? size : sizeof walk->key;
            memcpy(walk->key, key, walk->key_size);
            frame->rule = &rules[i];
            return 1;
        }
        if (!key_fits(&rules[i], key, size))
            continue;
        uint64_t bit = UINT64_C(1) << (i - from);
        if (frame->seen & bit) {
            err_set(walk->err, ERR_INPUT, "%s is given twice", rules[i].key);
            return 0;
        }
        frame->seen |= bit;
        frame->rule = &rules[i];
        return 1;
    }
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_text,
    .yajl_start_map = on_start_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end,
    .yajl_start_array = on_start_array,
    .yajl_end_array = on_end,
};

struct walk *walk_new(const struct walk_grammar *grammar, void *ctx)
{
    struct walk *walk = mem_alloc(sizeof *walk);
    walk->grammar = grammar;
    walk->ctx = ctx;
    walk->first = mem_array((size_t)grammar->n_states + 1, sizeof *walk->first);
    size_t rule = 0;
    for (size_t state = 0; state < grammar->n_states; state++) {
        walk->first[state] = rule;
        while (rule < grammar->n_rules && grammar->rules[rule].state == state)
            rule++;
        assert(rule - walk->first[state] <= 64); /* struct frame's mask */
    }
    assert(rule == grammar->n_rules);
    walk->first[grammar->n_states] = rule;
    walk->frames[0].rule = &grammar->rules[0];
    walk->frames[0].array = true;
    walk->yajl = yajl_alloc(&callbacks, NULL, walk);
    if (!walk->yajl)
        abort(); /* out of memory ends the process (design.md 7) */
    yajl_config(walk->yajl, yajl_allow_multiple_values, 1);
    return walk;
}

void walk_free(struct walk *walk)
{
    if (!walk)
        return;
    yajl_free(walk->yajl);
    free(walk->first);
    free(walk);
}

static int64_t count_lines(const char *data, size_t size)
{
    int64_t lines = 0;
    const char *end = data + size;
    while ((data = memchr(data, '\n', (size_t)(end - data))) != NULL) {
        lines++;
        data++;
    }
    return lines;
}

/* yajl's own words end in a newline and begin with the kind of error. */
static void take_yajl_error(struct walk *walk)
{
    unsigned char *text = yajl_get_error(walk->yajl, 0, NULL, 0);
    size_t size = text ? strcspn((const char *)text, "\n") : 0;
    while (size > 0 && text[size - 1] == '.')
        size--;
    err_set(walk->err, ERR_INPUT, "%.*s", (int)size, text ? (const char *)text : "");
    if (text)
        yajl_free_error(walk->yajl, text);
}

static int fail(struct walk *walk, const char *data, size_t at, struct err *err)
{
    return err_prefix(err, "line %lld, byte %lld",
                      (long long)(walk->lines + 1 + count_lines(data, at)),
                      (long long)(walk->bytes + (int64_t)at));
}

static bool all_blank(const char *data, size_t size)
{
    return size > 0 && strchr(" \t\r\n", data[0]) &&
           (size == 1 || memcmp(data, data + 1, size - 1) == 0);
}

int walk_feed(struct walk *walk, const char *data, size_t size, struct err *err)
{
    walk->err = err;
    size_t quiet = walk->quiet;
    walk->quiet = SIZE_MAX; /* any event sets it to 0 */
    yajl_status status = yajl_parse(walk->yajl, (const unsigned char *)data, size);
    if (status != yajl_status_ok) {
        size_t at = yajl_get_bytes_consumed(walk->yajl);
        if (status == yajl_status_error)
            take_yajl_error(walk);
        return fail(walk, data, at < size ? at : size, err);
    }
    if (walk->quiet == SIZE_MAX)
        walk->quiet = all_blank(data, size) ? quiet : quiet + size;
    if (walk->quiet > WALK_MAX_TOKEN) {
        err_set(err, ERR_TOO_LARGE, "a text or number of more than %zu bytes", WALK_MAX_TOKEN);
        return fail(walk, data, 0, err);
    }
    walk->bytes += (int64_t)size;
    walk->lines += count_lines(data, size);
    return 0;
}

int walk_end(struct walk *walk, struct err *err)
{
    walk->err = err;
    yajl_status status = yajl_complete_parse(walk->yajl);
    if (status == yajl_status_client_canceled)
        return fail(walk, "", 0, err);
    if (!walk->documents)
        return err_set(err, ERR_INPUT, "holds no JSON document");
    if (status == yajl_status_error || walk->depth > 0 || walk->skipped > 0) {
        err_set(err, ERR_INPUT, "ends in the middle of a document");
        return fail(walk, "", 0, err);
    }
    return 0;
}
