/* manager_move.c - moves while they are made: intents committed before the executor may act,
 * outcomes as soon as they are known, its final answer; and events that come from outside
 * (design.md 3). */
#include "model/manager/manager.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/log.h"

#define MAX_TEXT 4000         /* of a note or an event: a page */
#define MAX_OUTCOMES 10000000 /* moves and detours of the largest model: contract.md 2 has 10^6 */

/* --- execute, undo --- */

/* Moves of whole services go to several hosts, "n1=2 n3=1", which the plan's row tells. */
static char *move_targets(struct manager *m, int64_t cycle, int64_t seq)
{
    struct err ignored = ERR_INIT; /* it is only said */
    char *targets = NULL;
    return store_move_targets(m->store, cycle, seq, &targets, &ignored) < 0 ? NULL : targets;
}

static void move_tell(struct manager *m, int64_t cycle, const struct daemon_move *move)
{
    AUTO_FREE char *targets = move->target ? NULL : move_targets(m, cycle, move->seq);
    const char *to = move->target ? move->target : targets, *quote = targets ? "\"" : "";
    log_info("cycle=%lld move=%lld service=%s%s%s%s%s state=%s%s%s%s", (long long)cycle,
             (long long)move->seq, move->service, to ? " to=" : "", to ? quote : "", to ? to : "",
             to ? quote : "", move->state, move->reason ? " reason=\"" : "",
             move->reason ? move->reason : "", move->reason ? "\"" : "");
    if (m->options->events && m->options->events->move)
        m->options->events->move(m->options->ctx, cycle, move);
}

static const char *member(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static struct daemon_move move_of(const json_t *document, const char *state)
{
    const json_t *undo_of = json_object_get(document, "undo_of");
    return (struct daemon_move){.seq = json_integer_value(json_object_get(document, "seq")),
                                .service = member(document, "service"),
                                .instance = member(document, "instance"),
                                .instance_now = member(document, "instance_now"),
                                .source = member(document, "source"),
                                .target = member(document, "target"),
                                .state = state ? state : member(document, "state"),
                                .reason = member(document, "reason"),
                                .undo_of =
                                    json_is_integer(undo_of) ? json_integer_value(undo_of) : -1};
}

/* When `remap` leaves, the executor discards what it has not begun; those moves stay planned, for
 * the next start. */
static bool is_put_off(const struct manager *m, int64_t cycle, const json_t *outcome)
{
    const char *state = member(outcome, "state");
    const struct engine_cycle *c = engine_cycle(&m->engine, cycle);
    return m->engine.stopping && c && !c->stop && state && strcmp(state, "discarded") == 0;
}

static int save_outcome(struct manager *m, int64_t cycle, const json_t *outcome, struct err *err)
{
    if (is_put_off(m, cycle, outcome))
        return 0;
    char *text = json_dumps(outcome, JSON_COMPACT);
    if (!text)
        return err_set(err, ERR_INPUT, "an outcome that is no document");
    int rc = store_move_outcome(m->store, cycle, text, strlen(text), err);
    free(text);
    return rc;
}

struct executed {
    bool undo;
    json_t *outcomes;    /* borrowed */
    const char *stopped; /* NULL: went through */
    char reason[ENGINE_REASON_SIZE];
};

/* The verdict counts what the store now knows: outcomes may have come in several lives. */
static int rows_outcomes(struct manager *m, struct engine_event *ev, void *ctx, struct err *err)
{
    struct executed *x = ctx;
    struct move_count count;
    size_t i;
    json_t *outcome;
    json_array_foreach(x->outcomes, i,
                       outcome) if (save_outcome(m, ev->cycle, outcome, err) < 0) return -1;
    if (moves_count(m, ev->cycle, &count, err) < 0)
        return -1;
    int64_t failed = x->undo ? count.undo_failed + count.applied : count.failed;
    ev->verdict = x->stopped && !(x->undo ? count.undo_failed : count.failed) ? VERDICT_STOPPED
                  : failed                                                    ? VERDICT_BAD
                                                                              : VERDICT_OK;
    ev->value = count.applied;
    ev->flag = count.open > 0;
    if (x->stopped)
        snprintf(x->reason, sizeof x->reason, "%s", x->stopped);
    else if (x->undo && failed)
        snprintf(x->reason, sizeof x->reason, "not undone: %lld moves could not be put back",
                 (long long)failed);
    else if (!x->undo && count.discarded)
        snprintf(x->reason, sizeof x->reason, "%lld moves discarded", (long long)count.discarded);
    ev->reason = x->reason[0] ? x->reason : NULL;
    return 0;
}

static int read_executed(json_t *tree, struct executed *out, struct err *err)
{
    static const char *const keys[] = {"v", "stopped", "outcomes", NULL};
    struct jval root = jval_root(tree);
    struct jval stopped = jval_get(&root, "stopped"), list = jval_get(&root, "outcomes");
    size_t n;
    if (jval_object(&root, keys, err) < 0 || jval_array(&list, MAX_OUTCOMES, &n, err) < 0)
        return -1;
    out->outcomes = list.value;
    out->stopped = NULL;
    if (!jval_absent(&stopped) && !jval_null(&stopped))
        return jval_text(&stopped, MAX_TEXT, &out->stopped, err);
    return 0;
}

void executed_received(struct manager *m, const struct envelope *env, const char *body, size_t size)
{
    struct err err = ERR_INIT;
    struct executed x = {.undo = engine_cycle(&m->engine, env->cycle)->state == CYCLE_UNDOING};
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_document, &err);
    if (!tree || read_executed(tree, &x, &err) < 0) {
        result_bad(m, PARTY_EXECUTOR, env, err.text);
        return;
    }
    manager_answer(m, result_event(EV_RESULT, PARTY_EXECUTOR, env), rows_outcomes, &x);
}

/* --- progress, intents, events --- */

static int save_note(struct manager *m, const struct envelope *env, const struct jval *note,
                     struct err *err)
{
    static const char *const keys[] = {"kind", "text", NULL};
    struct jval kind_v = jval_get(note, "kind"), text_v = jval_get(note, "text");
    const char *kind, *text;
    if (jval_object(note, keys, err) < 0 || jval_text(&kind_v, 64, &kind, err) < 0 ||
        jval_text(&text_v, MAX_TEXT, &text, err) < 0)
        return -1;
    const struct engine_cycle *c = engine_cycle(&m->engine, env->cycle);
    if (c) /* what a look notices the next cycle says again */
        manager_note(m, m->engine.apps[c->app].name, kind, env->cycle, text);
    return 0;
}

static int committed_outcome(struct manager *m, const struct envelope *env, json_t *outcome,
                             struct err *err)
{
    const struct engine_cycle *c = engine_cycle(&m->engine, env->cycle);
    struct daemon_move move = move_of(outcome, NULL);
    if (save_outcome(m, env->cycle, outcome, err) < 0)
        return -1;
    const struct engine_app *app = &m->engine.apps[c->app];
    metrics_move(m->metrics, app->name, move.state, app_mode_name(app->config.mode));
    move_tell(m, env->cycle, &move);
    return 0;
}

void progress_received(struct manager *m, enum party stage, const struct envelope *env,
                       const char *body, size_t size)
{
    static const char *const keys[] = {"v", "done", "total", "text", "note", "outcome", NULL};
    struct err err = ERR_INIT;
    int64_t done = 0;
    bool lent = env->cycle == 0 && m->engine.stages[stage].cycle == ENGINE_LENT;
    if (!lent && !engine_awaits(&m->engine, stage, env->cycle, env->attempt))
        return;
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_document, &err);
    struct jval root = jval_root(tree);
    struct jval done_v = jval_get(&root, "done"), note = jval_get(&root, "note");
    struct jval outcome = jval_get(&root, "outcome");
    if (!tree || jval_object(&root, keys, &err) < 0 ||
        jval_int(&done_v, 0, INT64_MAX, &done, &err) < 0 ||
        (!jval_absent(&note) && save_note(m, env, &note, &err) < 0)) {
        log_warn("stage=%s progress: %s", party_name(stage), err.text);
        return;
    }
    if (!lent && !jval_absent(&outcome) && committed_outcome(m, env, outcome.value, &err) < 0) {
        if (err.kind == ERR_INPUT)
            log_warn("stage=%s progress: %s", party_name(stage), err.text);
        else
            manager_store_failed(m, &err);
    }
    struct engine_event ev = result_event(EV_PROGRESS, stage, env);
    ev.cycle = lent ? ENGINE_LENT : env->cycle;
    ev.value = done;
    manager_event(m, ev);
}

void intent_received(struct manager *m, const struct envelope *env, const char *body, size_t size)
{
    struct err err = ERR_INIT;
    const struct engine_cycle *c = engine_cycle(&m->engine, env->cycle);
    if (!engine_awaits(&m->engine, PARTY_EXECUTOR, env->cycle, env->attempt))
        return;
    if (m->engine.stopping || c->stop)
        return; /* `stop` is on its way: nothing new begins */
    if (store_move_intent(m->store, env->cycle, env->seq, body, size, clock_wall_ms(), &err) < 0) {
        if (err.kind == ERR_INPUT)
            result_bad(m, PARTY_EXECUTOR, env, err.text);
        else
            manager_store_failed(m, &err);
        manager_work(m);
        return;
    }
    struct envelope proceed = {
        .type = MSG_PROCEED, .cycle = env->cycle, .attempt = env->attempt, .seq = env->seq};
    if (bus_send(m->bus, PARTY_EXECUTOR, &proceed, NULL, &err) < 0)
        log_warn("cycle=%lld seq=%lld proceed not sent: %s", (long long)env->cycle,
                 (long long)env->seq, err.text); /* it died: the intent is in its next base */
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_document, &err);
    if (tree && !member(tree, "saved")) { /* it comes once more with what its undo needs */
        struct daemon_move move = move_of(tree, "intended");
        move_tell(m, env->cycle, &move);
    }
}
