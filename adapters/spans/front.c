/* front.c - what the three trace formats share: ids, times, tags, and spans that wait until the
 * process that reported them is described. */
#include "adapters/spans/front.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Processes of one trace; each takes about 150 bytes with its key. A trace has rarely 100. */
#define MAX_PROCESSES 100000

struct span_front *span_front_new(struct span_table *table, span_sink_f *sink, void *ctx)
{
    struct span_front *front = mem_alloc(sizeof *front);
    front->table = table;
    front->sink = sink;
    front->sink_ctx = ctx;
    front->process = -1;
    front->into = &front->tags;
    return front;
}

void span_front_free(struct span_front *front)
{
    if (!front)
        return;
    span_processes_reset(front);
    free(front->processes);
    free(front->pending);
    free(front);
}

void span_begin(struct span_front *front)
{
    front->span = (struct span){.start_us = -1,
                                .end_us = -1,
                                .duration_us = -1,
                                .bytes = -1,
                                .node = -1,
                                .remote = -1,
                                .kind = SPAN_LOCAL};
    front->has_trace = front->has_id = false;
    front->local_name = front->remote_name = -1;
    front->local_address[0] = front->remote_address[0] = '\0';
    front->into = &front->tags;
    span_tags_reset(&front->tags);
}

/* True when the span is one. */
static bool has_ids(struct span_front *front)
{
    if (front->rejected && (!front->has_trace || !front->has_id)) {
        ++*front->rejected;
        return false;
    }
    return true;
}

static int check(struct span_front *front, struct err *err)
{
    struct span *span = &front->span;
    if (!front->has_trace)
        return err_set(err, ERR_INPUT, "a span without trace id");
    if (!front->has_id)
        return err_set(err, ERR_INPUT, "a span without id");
    if (span->end_us < 0 && span->start_us >= 0 && span->duration_us >= 0)
        span->end_us = span->start_us + span->duration_us;
    if (span->end_us > SPAN_MAX_NUMBER) /* beyond the 10^15 ms of a model */
        span->end_us = -1;
    span->bytes = span_sizes_total(&front->tags.sizes);
    return 0;
}

int span_end(struct span_front *front, struct err *err)
{
    if (!has_ids(front))
        return 0;
    return check(front, err) ? -1 : front->sink(front->sink_ctx, &front->span, err);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int span_hex(const struct walk_value *value, const char *what, size_t max_digits, uint64_t *hi,
             uint64_t *lo, struct err *err)
{
    if (value->type != WALK_TEXT || value->size == 0 || value->size > max_digits)
        return err_set(err, ERR_INPUT, "%s must be a text of 1 to %zu hexadecimal digits", what,
                       max_digits);
    uint64_t high = 0, low = 0;
    for (size_t i = 0; i < value->size; i++) {
        int digit = hex_digit(value->text[i]);
        if (digit < 0)
            return err_set(err, ERR_INPUT, "%s must be hexadecimal, not \"%.*s\"", what,
                           (int)value->size, value->text);
        high = high << 4 | low >> 60;
        low = low << 4 | (uint64_t)digit;
    }
    *hi = high;
    *lo = low;
    return 0;
}

int span_integer(const struct walk_value *value, const char *what, int64_t *out, struct err *err)
{
    char text[40];
    char *end;
    if ((value->type != WALK_NUMBER && value->type != WALK_TEXT) || value->size == 0 ||
        value->size >= sizeof text)
        return err_set(err, ERR_INPUT, "%s must be a whole number", what);
    memcpy(text, value->text, value->size);
    text[value->size] = '\0';
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (*end == '.' || *end == 'e' || *end == 'E') { /* 1.5e15, as some encoders write */
        double real = strtod(text, &end);
        number = isfinite(real) && real >= 0 && real < 9e18 ? (long long)real : -1;
    } else if (errno == ERANGE) {
        number = -1;
    }
    if (*end || isspace((unsigned char)text[0]))
        return err_set(err, ERR_INPUT, "%s must be a whole number, not %s", what, text);
    *out = number;
    return 0;
}

static int micros(const struct walk_value *value, const char *what, int64_t *out, struct err *err)
{
    int64_t number;
    if (span_integer(value, what, &number, err))
        return -1;
    *out = number >= 0 && number <= SPAN_MAX_NUMBER ? number : -1;
    return 0;
}

static int take_trace(struct span_front *front, const struct walk_value *value, struct err *err)
{
    struct span *span = &front->span;
    if (front->rejected && value->type == WALK_TEXT && value->size != 32)
        return 0;
    if (span_hex(value, "the trace id", 32, &span->trace_hi, &span->trace_lo, err))
        return -1;
    if (!span->trace_hi && !span->trace_lo && front->rejected)
        return 0;
    if (!span->trace_hi && !span->trace_lo)
        return err_set(err, ERR_INPUT, "the trace id must not be zero");
    front->has_trace = true;
    return 0;
}

static int take_id(struct span_front *front, const struct walk_value *value, struct err *err)
{
    uint64_t hi;
    if (front->rejected && value->type == WALK_TEXT && value->size != 16)
        return 0;
    if (span_hex(value, "the span id", 16, &hi, &front->span.id, err))
        return -1;
    if (!front->span.id && front->rejected)
        return 0;
    if (!front->span.id)
        return err_set(err, ERR_INPUT, "the span id must not be zero");
    front->has_id = true;
    return 0;
}

int span_value(struct span_front *front, uint8_t field, const struct walk_value *value,
               struct err *err)
{
    struct span *span = &front->span;
    uint64_t hi;
    if (field == F_TRACE)
        return take_trace(front, value, err);
    if (field == F_ID)
        return take_id(front, value, err);
    if (field == F_PARENT) /* OTLP writes "" for none */
        return value->type == WALK_TEXT && value->size == 0
                   ? 0
                   : span_hex(value, "the parent id", 16, &hi, &span->parent, err);
    if (field == F_START) {
        if (micros(value, "the start time", &span->start_us, err))
            return -1;
        if (span->start_us == 0)
            span->start_us = -1; /* not set */
        return 0;
    }
    if (micros(value, "the duration", &span->duration_us, err))
        return -1;
    return 0;
}

/* Text that is too long is neither a name nor a number: kept as nothing. */
static size_t keep(char *out, size_t room, const struct walk_value *value)
{
    size_t size = value->size <= room ? value->size : 0;
    memcpy(out, value->text, size);
    return size;
}

void span_tag_value(struct span_front *front, uint8_t field, const struct walk_value *value)
{
    if (field == F_TAG_KEY) {
        front->tag_key_size = keep(front->tag_key, sizeof front->tag_key, value);
    } else if (!front->tag_has_value) { /* of a list the first */
        front->tag_value_size = keep(front->tag_value, sizeof front->tag_value, value);
        front->tag_has_value = true;
    }
}

/* --- processes --- */

int span_process(struct span_front *front, const char *key, size_t size, struct err *err)
{
    AUTO_FREE char *name = mem_strndup(key, size);
    int known = names_get(&front->process_names, name);
    if (known >= 0)
        return known;
    if (front->n_processes >= MAX_PROCESSES)
        return err_set(err, ERR_TOO_LARGE, "more than %d processes in one trace", MAX_PROCESSES);
    struct process *process = ARRAY_PUSH(front->processes, front->n_processes);
    *process = (struct process){.key = steal(name), .node = -1};
    int index = (int)front->n_processes - 1;
    names_add(&front->process_names, process->key, index);
    return index;
}

void span_processes_reset(struct span_front *front)
{
    names_wipe(&front->process_names);
    for (size_t i = 0; i < front->n_processes; i++)
        free(front->processes[i].key);
    free(front->processes);
    front->processes = NULL;
    front->n_processes = 0;
    front->n_pending = 0;
    front->process = -1;
}

int span_wait(struct span_front *front, struct err *err)
{
    if (!has_ids(front))
        return 0;
    if (check(front, err))
        return -1;
    if (front->n_pending >= JOINER_WINDOW) { /* as many as may be open at all */
        struct span_counts *counts = span_table_counts(front->table);
        counts->spans++;
        counts->late++;
        return 0;
    }
    struct pending *pending = ARRAY_PUSH(front->pending, front->n_pending);
    pending->span = front->span;
    pending->process = front->process;
    return 0;
}

int span_flush(struct span_front *front, struct err *err)
{
    for (size_t i = 0; i < front->n_pending; i++) {
        struct pending *pending = &front->pending[i];
        if (pending->process >= 0)
            pending->span.node = front->processes[pending->process].node;
        if (front->sink(front->sink_ctx, &pending->span, err))
            return -1;
    }
    front->n_pending = 0;
    return 0;
}
