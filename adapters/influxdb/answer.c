/* answer.c - answers of /query with epoch=ms (interfaces.md 4): errors and gaps stand inside a status
 * 200, whole numbers may be larger than any integer type. */
#include "adapters/influxdb/influxdb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum state {
    S_DOCUMENT,
    S_ANSWER,
    S_RESULTS,
    S_RESULT,
    S_LIST,
    S_SERIES,
    S_TAGS,
    S_COLUMNS,
    S_ROWS,
    S_ROW,
    S_N_STATES
};

enum field { F_NONE, F_ERROR, F_PARTIAL, F_TAG, F_COLUMN, F_CELL };

static const struct walk_rule rules[] = {
    {S_DOCUMENT, NULL, WALK_OBJECT, S_ANSWER, 0, 0},
    {S_ANSWER, "results", WALK_ARRAY, 0, S_RESULTS, 0},
    {S_ANSWER, "error", WALK_SCALAR, 0, 0, F_ERROR},
    {S_RESULTS, NULL, WALK_OBJECT, S_RESULT, 0, 0},
    {S_RESULT, "series", WALK_ARRAY, 0, S_LIST, 0},
    {S_RESULT, "error", WALK_SCALAR, 0, 0, F_ERROR},
    {S_RESULT, "partial", WALK_SCALAR, 0, 0, F_PARTIAL},
    {S_LIST, NULL, WALK_OBJECT, S_SERIES, 0, 0},
    {S_SERIES, "tags", WALK_OBJECT, S_TAGS, 0, 0},
    {S_SERIES, "columns", WALK_ARRAY, 0, S_COLUMNS, 0},
    {S_SERIES, "values", WALK_ARRAY, 0, S_ROWS, 0},
    {S_SERIES, "partial", WALK_SCALAR, 0, 0, F_PARTIAL},
    {S_TAGS, WALK_ANY_KEY, WALK_SCALAR, 0, 0, F_TAG},
    {S_COLUMNS, NULL, WALK_SCALAR, 0, 0, F_COLUMN},
    {S_ROWS, NULL, WALK_ARRAY, 0, S_ROW, 0},
    {S_ROW, NULL, WALK_SCALAR, 0, 0, F_CELL},
};

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
    struct influx_answer *answer = ctx;
    (void)key, (void)err;
    if (state == S_RESULT) {
        answer->results++;
    } else if (state == S_SERIES) {
        answer->series++;
        answer->time_column = answer->value_column = -1;
        answer->sum = 0;
        answer->n = 0;
        for (size_t i = 0; i < answer->n_tags; i++)
            answer->values[i][0] = '\0';
    } else if (state == S_COLUMNS || state == S_ROW) {
        answer->column = 0;
    }
    return 0;
}

static int on_leave(void *ctx, uint8_t state, struct err *err)
{
    struct influx_answer *answer = ctx;
    const char *tags[INFLUX_MAX_TAGS];
    if (state != S_SERIES || !answer->n || !answer->row)
        return 0;
    for (size_t i = 0; i < answer->n_tags; i++)
        tags[i] = answer->values[i];
    answer->rows++;
    return answer->row(answer->ctx, tags, answer->sum / (double)answer->n, err);
}

static void take_tag(struct influx_answer *answer, const struct walk_value *value)
{
    for (size_t i = 0; i < answer->n_tags; i++)
        if (strlen(answer->tags[i]) == value->key_size &&
            memcmp(answer->tags[i], value->key, value->key_size) == 0 &&
            value->size < INFLUX_TAG_BYTES)
            keep(answer->values[i], INFLUX_TAG_BYTES, value);
}

static void take_column(struct influx_answer *answer, const struct walk_value *value)
{
    int at = answer->column++;
    if (value->size == 4 && memcmp(value->text, "time", 4) == 0)
        answer->time_column = at;
    else if (answer->value_column < 0)
        answer->value_column = at;
}

static void take_cell(struct influx_answer *answer, const struct walk_value *value)
{
    char text[64];
    int at = answer->column++;
    if ((at != answer->value_column && at != answer->time_column) || value->type == WALK_NULL)
        return;
    double number = NAN;
    if (value->type == WALK_NUMBER && value->size < sizeof text) {
        memcpy(text, value->text, value->size);
        text[value->size] = '\0';
        number = strtod(text, NULL);
    }
    if (at == answer->time_column) {
        if (number > answer->newest_ms)
            answer->newest_ms = number;
    } else if (isfinite(number) && isfinite(answer->sum + number)) {
        answer->sum += number;
        answer->n++;
    } else {
        answer->not_numbers++;
    }
}

static int on_value(void *ctx, uint8_t field, const struct walk_value *value, struct err *err)
{
    struct influx_answer *answer = ctx;
    (void)err;
    switch ((enum field)field) {
    case F_ERROR:
        if (!answer->error[0] && value->type != WALK_NULL)
            keep(answer->error, sizeof answer->error, value);
        break;
    case F_PARTIAL:
        answer->partial = answer->partial || (value->type == WALK_BOOL && value->size == 4);
        break;
    case F_TAG:
        take_tag(answer, value);
        break;
    case F_COLUMN:
        take_column(answer, value);
        break;
    case F_CELL:
        take_cell(answer, value);
        break;
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

void influx_answer_begin(struct influx_answer *answer)
{
    influx_answer_wipe(answer);
    answer->results = answer->series = answer->rows = answer->not_numbers = 0;
    answer->newest_ms = -1;
    answer->partial = false;
    answer->error[0] = '\0';
    answer->walk = walk_new(&grammar, answer);
}

void influx_answer_wipe(struct influx_answer *answer)
{
    walk_free(steal(answer->walk));
}

int influx_answer_feed(struct influx_answer *answer, const char *data, size_t size,
                       struct err *err)
{
    return walk_feed(answer->walk, data, size, err);
}

int influx_answer_end(struct influx_answer *answer, struct err *err)
{
    if (walk_end(answer->walk, err))
        return -1;
    if (answer->error[0])
        return err_set(err,
                       strstr(answer->error, "database not found") ? ERR_NOT_FOUND : ERR_REFUSED,
                       "%s", answer->error);
    return answer->results ? 0 : err_set(err, ERR_INPUT, "holds no result: not an InfluxDB 1.x");
}
