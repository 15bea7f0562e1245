/* answer.c - answers of /api/v1/query (interfaces.md 3), read as they come: 10^5 series need no tree
 * of them. */
#include "adapters/prometheus/prometheus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum state {
    S_DOCUMENT,
    S_ANSWER,
    S_DATA,
    S_RESULT,
    S_SERIES,
    S_METRIC,
    S_SAMPLE,
    S_WARNINGS,
    S_N_STATES
};

enum field {
    F_NONE,
    F_STATUS,
    F_ERROR_TYPE,
    F_ERROR,
    F_PARTIAL,
    F_RESULT_TYPE,
    F_SCALAR,
    F_LABEL,
    F_SAMPLE,
    F_WARNING
};

static const struct walk_rule rules[] = {
    {S_DOCUMENT, NULL, WALK_OBJECT, S_ANSWER, 0, 0},
    {S_ANSWER, "status", WALK_SCALAR, 0, 0, F_STATUS},
    {S_ANSWER, "errorType", WALK_SCALAR, 0, 0, F_ERROR_TYPE},
    {S_ANSWER, "error", WALK_SCALAR, 0, 0, F_ERROR},
    {S_ANSWER, "data", WALK_OBJECT | WALK_SCALAR, S_DATA, 0, 0},
    {S_ANSWER, "warnings", WALK_ARRAY, 0, S_WARNINGS, 0},
    {S_ANSWER, "isPartial", WALK_SCALAR, 0, 0, F_PARTIAL},
    {S_ANSWER, "partial_response", WALK_SCALAR, 0, 0, F_PARTIAL},
    {S_DATA, "resultType", WALK_SCALAR, 0, 0, F_RESULT_TYPE},
    {S_DATA, "result", WALK_ARRAY, 0, S_RESULT, 0},
    {S_RESULT, NULL, WALK_OBJECT | WALK_SCALAR, S_SERIES, 0, F_SCALAR},
    {S_SERIES, "metric", WALK_OBJECT, S_METRIC, 0, 0},
    {S_SERIES, "value", WALK_ARRAY, 0, S_SAMPLE, 0},
    {S_METRIC, WALK_ANY_KEY, WALK_SCALAR, 0, 0, F_LABEL},
    {S_SAMPLE, NULL, WALK_SCALAR, 0, 0, F_SAMPLE},
    {S_WARNINGS, NULL, WALK_SCALAR, 0, 0, F_WARNING},
};

static bool is(const struct walk_value *value, const char *text)
{
    return value->type == WALK_TEXT && value->size == strlen(text) &&
           memcmp(value->text, text, value->size) == 0;
}

static void keep(char *out, size_t room, const struct walk_value *value)
{
    size_t size = value->size < room ? value->size : room - 1;
    while (size && size < value->size && ((unsigned char)value->text[size] & 0xc0) == 0x80)
        size--; /* no half character at the cut */
    for (size_t i = 0; i < size; i++)
        out[i] = (unsigned char)value->text[i] < 0x20 ? ' ' : value->text[i];
    out[size] = '\0';
}

static int on_enter(void *ctx, uint8_t state, const struct walk_value *key, struct err *err)
{
    struct prom_answer *answer = ctx;
    (void)key, (void)err;
    if (state == S_SERIES) {
        for (size_t i = 0; i < answer->n_labels; i++)
            answer->values[i][0] = '\0';
        answer->has_value = false;
    } else if (state == S_SAMPLE) {
        answer->place = 0;
    }
    return 0;
}

static int on_leave(void *ctx, uint8_t state, struct err *err)
{
    struct prom_answer *answer = ctx;
    if (state != S_SERIES)
        return 0;
    if (!answer->has_value) { /* a native histogram has no `value` */
        answer->histograms++;
        return 0;
    }
    if (!isfinite(answer->value)) {
        answer->not_numbers++;
        return 0;
    }
    const char *values[PROM_MAX_LABELS];
    for (size_t i = 0; i < answer->n_labels; i++)
        values[i] = answer->values[i];
    answer->rows++;
    return answer->row(answer->ctx, values, answer->value, err);
}

static void take_label(struct prom_answer *answer, const struct walk_value *value)
{
    for (size_t i = 0; i < answer->n_labels; i++)
        if (strlen(answer->labels[i]) == value->key_size &&
            memcmp(answer->labels[i], value->key, value->key_size) == 0 &&
            value->size < PROM_LABEL_BYTES)
            keep(answer->values[i], PROM_LABEL_BYTES, value);
}

/* [time, "value"]: strtod() knows NaN and +Inf as Prometheus writes them. */
static int take_sample(struct prom_answer *answer, const struct walk_value *value, struct err *err)
{
    char text[64], *end;
    if (answer->place++ != 1)
        return 0;
    if (value->type != WALK_TEXT || !value->size || value->size >= sizeof text)
        return err_set(err, ERR_INPUT, "a sample must be a number as text");
    memcpy(text, value->text, value->size);
    text[value->size] = '\0';
    answer->value = strtod(text, &end);
    if (*end || text[0] == ' ')
        return err_set(err, ERR_INPUT, "a sample must be a number, not %.40s", text);
    answer->has_value = true;
    return 0;
}

static int on_value(void *ctx, uint8_t field, const struct walk_value *value, struct err *err)
{
    struct prom_answer *answer = ctx;
    if (value->type == WALK_NULL)
        return 0;
    switch ((enum field)field) {
    case F_STATUS:
        answer->success = is(value, "success");
        return 0;
    case F_ERROR:
        keep(answer->error, sizeof answer->error, value);
        return 0;
    case F_ERROR_TYPE:
        if (!answer->error[0])
            keep(answer->error, sizeof answer->error, value);
        return 0;
    case F_PARTIAL:
        answer->partial = answer->partial || (value->type == WALK_BOOL && value->size == 4);
        return 0;
    case F_RESULT_TYPE:
        return is(value, "vector") ? 0
                                   : err_set(err, ERR_CONFIG, "the query must give a vector, not %.*s",
                                             value->size < 40 ? (int)value->size : 40, value->text);
    case F_SCALAR:
        return err_set(err, ERR_INPUT, "a series must be an object");
    case F_LABEL:
        take_label(answer, value);
        return 0;
    case F_SAMPLE:
        return take_sample(answer, value, err);
    case F_WARNING:
        if (!answer->warnings++)
            keep(answer->warning, sizeof answer->warning, value);
        answer->partial = true;
        return 0;
    case F_NONE:
        break;
    }
    return 0;
}

static const struct walk_grammar grammar = {.rules = rules,
                                            .n_rules = ARRAY_LEN(rules),
                                            .n_states = S_N_STATES,
                                            .enter = on_enter,
                                            .leave = on_leave,
                                            .value = on_value};

void prom_answer_begin(struct prom_answer *answer)
{
    prom_answer_wipe(answer);
    answer->rows = answer->not_numbers = answer->histograms = answer->warnings = 0;
    answer->warning[0] = answer->error[0] = '\0';
    answer->partial = answer->success = answer->has_value = false;
    answer->walk = walk_new(&grammar, answer);
}

void prom_answer_wipe(struct prom_answer *answer)
{
    walk_free(steal(answer->walk));
}

int prom_answer_feed(struct prom_answer *answer, const char *data, size_t size, struct err *err)
{
    return walk_feed(answer->walk, data, size, err);
}

int prom_answer_end(struct prom_answer *answer, struct err *err)
{
    if (walk_end(answer->walk, err))
        return -1;
    if (!answer->success)
        return err_set(err, ERR_REFUSED, "%s",
                       answer->error[0] ? answer->error : "the answer does not report success");
    return 0;
}
