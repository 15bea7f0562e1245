/* record.c - intent and outcome documents (model/wire/README.md), read and written. */
#include "executor/record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* `saved` may be a workload's old affinity, whose object etcd limits to 1.5 MiB. */
#define MAX_SAVED ((size_t)2 << 20)
#define MAX_REASON 4096

static const char *const state_names[] = {
    [OUTCOME_APPLIED] = "applied",     [OUTCOME_PARTIAL] = "partial",
    [OUTCOME_MISSED] = "missed",       [OUTCOME_DISPLACED] = "displaced",
    [OUTCOME_DISCARDED] = "discarded", [OUTCOME_FAILED] = "failed",
    [OUTCOME_UNDONE] = "undone",       NULL};

const char *outcome_state_name(enum outcome_state state)
{
    assert(state <= OUTCOME_UNDONE);
    return state_names[state];
}

static void put_text(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, ",\"%s\":", key);
    json_put_text(out, text);
}

static void put_number(struct buf *out, const char *key, int64_t value)
{
    buf_printf(out, ",\"%s\":", key);
    if (value < 0) {
        buf_puts(out, "null");
    } else {
        json_put_int(out, value);
    }
}

static int read_number(const struct jval *object, const char *key, int64_t *out, struct err *err)
{
    struct jval v = jval_get(object, key);
    *out = -1;
    return jval_absent(&v) || jval_null(&v) ? 0 : jval_int(&v, 0, MODEL_MAX_NUMBER, out, err);
}

static int read_seq(const struct jval *object, int64_t *out, struct err *err)
{
    struct jval v = jval_get(object, "seq");
    return jval_int(&v, 1, INT32_MAX, out, err);
}

static int read_service(const struct jval *object, char **out, struct err *err)
{
    struct jval v = jval_get(object, "service");
    const char *name;
    if (jval_name(&v, &name, err) < 0) {
        return -1;
    }
    *out = mem_strdup(name);
    return 0;
}

/* Names that may be null; MAX_REASON is more than a name or a list of hosts with counts needs. */
static int read_names(const struct jval *object, char **instance, char **source, char **target,
                      struct err *err)
{
    return jval_opt_text(object, "instance", MAX_REASON, instance, err) < 0 ||
                   jval_opt_text(object, "source", MAX_SAVED, source, err) < 0 ||
                   jval_opt_text(object, "target", MAX_SAVED, target, err) < 0
               ? -1
               : 0;
}

void outcome_encode(const struct outcome *o, struct buf *out)
{
    buf_printf(out, "{\"seq\":%lld", (long long)o->seq);
    put_text(out, "state", outcome_state_name(o->state));
    put_text(out, "reason", o->reason);
    put_text(out, "service", o->service);
    put_text(out, "instance", o->instance);
    put_text(out, "instance_now", o->instance_now);
    put_text(out, "source", o->source);
    put_text(out, "target", o->target);
    put_number(out, "intended_ms", o->intended_ms);
    put_number(out, "settled_ms", o->settled_ms);
    put_number(out, "undo_of", o->undo_of);
    buf_puts(out, ",\"detour\":");
    json_put_bool(out, o->detour);
    buf_puts(out, "}");
}

static int outcome_read(const struct jval *value, struct outcome *o, struct err *err)
{
    static const char *const keys[] = {
        "v",      "seq",    "state",       "reason",     "service", "instance", "instance_now",
        "source", "target", "intended_ms", "settled_ms", "undo_of", "detour",   NULL};
    struct jval state = jval_get(value, "state");
    int choice;
    if (jval_object(value, keys, err) < 0 || read_seq(value, &o->seq, err) < 0 ||
        jval_choice(&state, state_names, &choice, err) < 0 ||
        read_service(value, &o->service, err) < 0 ||
        jval_opt_text(value, "reason", MAX_REASON, &o->reason, err) < 0 ||
        jval_opt_text(value, "instance_now", MAX_REASON, &o->instance_now, err) < 0 ||
        read_names(value, &o->instance, &o->source, &o->target, err) < 0 ||
        read_number(value, "intended_ms", &o->intended_ms, err) < 0 ||
        read_number(value, "settled_ms", &o->settled_ms, err) < 0 ||
        read_number(value, "undo_of", &o->undo_of, err) < 0 ||
        jval_opt_bool(value, "detour", &o->detour, err) < 0) {
        return -1;
    }
    o->state = (enum outcome_state)choice;
    return 0;
}

int outcome_decode(const struct jval *value, struct outcome *out, struct err *err)
{
    struct outcome o = {0};
    if (outcome_read(value, &o, err) < 0) {
        outcome_wipe(&o);
        return -1;
    }
    *out = o;
    return 0;
}

void outcome_wipe(struct outcome *o)
{
    free(o->reason);
    free(o->service);
    free(o->instance);
    free(o->instance_now);
    free(o->source);
    free(o->target);
    *o = (struct outcome){0};
}

struct outcome outcome_copy(const struct outcome *o)
{
    struct outcome copy = *o;
    copy.reason = mem_strdup(o->reason);
    copy.service = mem_strdup(o->service);
    copy.instance = mem_strdup(o->instance);
    copy.instance_now = mem_strdup(o->instance_now);
    copy.source = mem_strdup(o->source);
    copy.target = mem_strdup(o->target);
    return copy;
}

void outcomes_wipe(struct outcomes *outcomes)
{
    for (size_t i = 0; i < outcomes->n; i++) {
        outcome_wipe(&outcomes->list[i]);
    }
    free(outcomes->list);
    *outcomes = (struct outcomes){0};
}

const struct outcome *outcomes_find(const struct outcomes *outcomes, int64_t seq)
{
    for (size_t i = outcomes->n; i > 0; i--) {
        if (outcomes->list[i - 1].seq == seq) {
            return &outcomes->list[i - 1];
        }
    }
    return NULL;
}

void intent_encode(const struct intent *intent, struct buf *out)
{
    buf_printf(out, "{\"v\":1,\"seq\":%lld", (long long)intent->seq);
    put_text(out, "service", intent->service);
    put_text(out, "instance", intent->instance);
    put_text(out, "source", intent->source);
    put_text(out, "target", intent->target);
    buf_puts(out, ",\"counts\":[");
    for (size_t i = 0; i < intent->n_counts; i++) {
        buf_puts(out, i ? ",{\"host\":" : "{\"host\":");
        json_put_text(out, intent->counts[i].host);
        buf_printf(out, ",\"count\":%lld}", (long long)intent->counts[i].count);
    }
    buf_puts(out, "]");
    put_number(out, "undo_of", intent->undo_of);
    buf_puts(out, ",\"detour\":");
    json_put_bool(out, intent->detour);
    put_text(out, "saved", intent->saved);
    buf_puts(out, "}");
}

static int counts_read(const struct jval *value, struct intent *intent, struct err *err)
{
    static const char *const keys[] = {"host", "count", NULL};
    struct jval list = jval_get(value, "counts");
    size_t n;
    if (jval_array(&list, MODEL_MAX_INSTANCES, &n, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        struct jval row = jval_at(&list, i);
        struct jval host = jval_get(&row, "host"), count = jval_get(&row, "count");
        const char *name;
        int64_t number;
        if (jval_object(&row, keys, err) < 0 || jval_name(&host, &name, err) < 0 ||
            jval_int(&count, 0, MODEL_MAX_INSTANCES, &number, err) < 0) {
            return -1;
        }
        *ARRAY_PUSH(intent->counts, intent->n_counts) =
            (struct replica_count){mem_strdup(name), number};
    }
    return 0;
}

static int intent_read(const struct jval *value, struct intent *intent, struct err *err)
{
    static const char *const keys[] = {"v",      "seq",    "service", "instance",
                                       "source", "target", "counts",  "undo_of",
                                       "detour", "saved",  NULL};
    return jval_object(value, keys, err) < 0 || read_seq(value, &intent->seq, err) < 0 ||
                   read_service(value, &intent->service, err) < 0 ||
                   read_names(value, &intent->instance, &intent->source, &intent->target, err) <
                       0 ||
                   counts_read(value, intent, err) < 0 ||
                   read_number(value, "undo_of", &intent->undo_of, err) < 0 ||
                   jval_opt_bool(value, "detour", &intent->detour, err) < 0 ||
                   jval_opt_text(value, "saved", MAX_SAVED, &intent->saved, err) < 0
               ? -1
               : 0;
}

int intent_decode(const struct jval *value, struct intent *out, struct err *err)
{
    struct intent intent = {0};
    if (intent_read(value, &intent, err) < 0) {
        intent_wipe(&intent);
        return -1;
    }
    *out = intent;
    return 0;
}

void intent_wipe(struct intent *intent)
{
    for (size_t i = 0; i < intent->n_counts; i++) {
        free(intent->counts[i].host);
    }
    free(intent->counts);
    free(intent->service);
    free(intent->instance);
    free(intent->source);
    free(intent->target);
    free(intent->saved);
    *intent = (struct intent){0};
}

void intent_count(struct intent *intent, const struct model *model, int service)
{
    AUTO_FREE int64_t *on = mem_array(model->n_hosts + 1, sizeof *on);
    for (size_t i = 0; i < model->n_instances; i++) {
        if (model->instances[i].service == service && model->instances[i].host >= 0) {
            on[model->instances[i].host]++;
        }
    }
    for (size_t h = 0; h < model->n_hosts; h++) {
        if (on[h]) {
            *ARRAY_PUSH(intent->counts, intent->n_counts) =
                (struct replica_count){mem_strdup(model->hosts[h].name), on[h]};
        }
    }
}

int64_t intent_count_on(const struct intent *intent, const char *host)
{
    for (size_t i = 0; i < intent->n_counts; i++) {
        if (strcmp(intent->counts[i].host, host) == 0) {
            return intent->counts[i].count;
        }
    }
    return 0;
}
