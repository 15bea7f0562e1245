/* manager_hooks.c - deployments reported from outside (paper §5.7, §6.6): the monitor is told what
 * to listen to, its events are kept, and those of a deployment reset the timers of its
 * applications. */
#include "model/manager/manager.h"

#include <stdio.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/log.h"
#include "model/manager/configure.h"

#define MAX_TEXT 4000    /* of an event: a page */
#define MAX_DELIVERY 500 /* of a delivery: three names */

/* --- configure --- */

/* Marks in a cluster are looked at when the executor comes up; of a store's life the newest moves are
 * enough: an older mark is of a rollout that ended long ago, whoever began it. */
#define KNOWN_MOVES 2000

static void put_known(void *arg, int64_t cycle, int64_t seq, int64_t intended_ms,
                      int64_t settled_ms)
{
    struct buf *out = arg;
    buf_printf(out, "%s[%lld,%lld,%lld,%lld]", out->size ? "," : "", (long long)cycle,
               (long long)seq, (long long)intended_ms, (long long)settled_ms);
}

static void configure_moves(struct manager *m, struct buf *out)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf moves = BUF_INIT;
    if (store_moves_known(m->store, KNOWN_MOVES, put_known, &moves, &err) < 0)
        log_warn("%s", err.text);
    AUTO_FREE bool *paused = mem_array(m->config->n_apps + 1, sizeof *paused);
    for (size_t i = 0; i < m->config->n_apps; i++) {
        int app = engine_app(&m->engine, m->config->apps[i].name);
        paused[i] = app >= 0 && m->engine.apps[app].paused;
    }
    configure_executor(m->config, paused, moves.data ? moves.data : "", out);
}

void manager_configure(struct manager *m, enum party stage)
{
    if (!m->options->listen || !m->hello[stage])
        return;
    struct err err = ERR_INIT;
    struct envelope env = {.type = MSG_CONFIGURE};
    struct buf body = BUF_INIT;
    if (stage == PARTY_MONITOR)
        configure_build(m->config, &body);
    else
        configure_moves(m, &body);
    if (bus_send(m->bus, stage, &env, &body, &err) < 0)
        log_warn("configure not sent: %s", err.text); /* it died: its next hello brings it */
    buf_wipe(&body);
}

/* --- event --- */

static void deploy(struct manager *m, const char *app, int64_t interval_ms, const char *text)
{
    char reason[200];
    snprintf(reason, sizeof reason, "a deployment: %.150s", text);
    for (size_t i = 0; i < m->config->n_apps; i++) {
        const struct config_app *times = &m->apps[i].times;
        if (app && strcmp(app, times->name) != 0)
            continue;
        m->apps[i].soak_until_ms = clock_wall_ms() + times->soak_ms;
        manager_tell(m,
                     (struct engine_event){.type = EV_DEPLOY,
                                           .app = times->name,
                                           .interval_ms = app_divided_ms(m->config, i, interval_ms),
                                           .reason = reason});
    }
}

struct event { /* borrowed from its document */
    const char *app, *kind, *text, *delivery;
    int64_t interval_ms;
};

static bool given(const struct jval *v)
{
    return !jval_absent(v) && !jval_null(v);
}

static int event_decode(const struct jval *root, struct event *out, struct err *err)
{
    static const char *const keys[] = {"v", "app", "kind", "text", "interval_ms", "delivery", NULL};
    struct jval app = jval_get(root, "app"), kind = jval_get(root, "kind");
    struct jval text = jval_get(root, "text"), interval = jval_get(root, "interval_ms");
    struct jval delivery = jval_get(root, "delivery");
    *out = (struct event){.interval_ms = -1};
    if (jval_object(root, keys, err) < 0 || (given(&app) && jval_name(&app, &out->app, err) < 0) ||
        jval_text(&kind, 64, &out->kind, err) < 0 ||
        jval_text(&text, MAX_TEXT, &out->text, err) < 0 ||
        (given(&delivery) && jval_text(&delivery, MAX_DELIVERY, &out->delivery, err) < 0) ||
        (given(&interval) && jval_int(&interval, 0, MODEL_MAX_NUMBER, &out->interval_ms, err) < 0))
        return -1;
    return 0;
}

/* How long the same delivery counts once: a signed time may lie one window ahead, so it stays valid
 * for two. */
static int64_t delivery_window_ms(const struct manager *m)
{
    return m->config->webhooks ? 2 * m->config->webhooks->replay_window_ms : 0;
}

static int event_add(struct manager *m, const struct event *event, int64_t *row, bool *duplicate,
                     struct err *err)
{
    *duplicate = false;
    if (event->delivery)
        return store_event_deliver(m->store, event->app, event->kind, event->text, event->delivery,
                                   delivery_window_ms(m), clock_wall_ms(), row, duplicate, err);
    return store_event_add(m->store, event->app, event->kind, 0, event->text, clock_wall_ms(), row,
                           err);
}

/* The event and all that a deployment does to timers and cycles, in one transaction: whoever dies
 * after it has lost nothing, whoever dies before it has not answered. */
static int event_store(struct manager *m, const struct event *event, int64_t *row, bool *duplicate,
                       struct err *err)
{
    bool told = false;
    int rc = store_begin(m->store, err);
    if (rc == 0)
        rc = event_add(m, event, row, duplicate, err);
    if (rc == 0 && !*duplicate && strcmp(event->kind, "deploy") == 0) {
        deploy(m, event->app, event->interval_ms, event->text);
        told = true;
        rc = manager_save_steps(m, err);
    }
    if (rc == 0)
        rc = store_commit(m->store, err);
    if (rc < 0)
        store_rollback(m->store);
    if (rc < 0 && told)
        manager_store_failed(m, err); /* takes the steps back; its sender repeats the event */
    else if (rc == 0 && told)
        manager_steps_saved(m);
    return rc;
}

/* Whoever has reported it, and finds no cycle afterwards, finds this. */
static void tell_of_pauses(struct manager *m, const struct event *event)
{
    char text[400];
    for (size_t i = 0; i < m->config->n_apps; i++) {
        const struct config_app *app = &m->config->apps[i];
        int index = engine_app(&m->engine, app->name);
        const char *by = app->mode == MODE_OBSERVE ? NULL : manager_paused_by(m, app);
        bool by_hand = index >= 0 && m->engine.apps[index].paused;
        if ((event->app && strcmp(event->app, app->name) != 0) || (!by && !by_hand))
            continue;
        if (by_hand)
            snprintf(text, sizeof text, "a deployment while paused: no cycle before `remap resume`");
        else
            snprintf(text, sizeof text, "a deployment while paused by %s: no move before it is deleted",
                     by);
        manager_note(m, app->name, "pause", 0, text);
    }
}

void event_received(struct manager *m, enum party from, const struct envelope *env,
                    const char *body, size_t size)
{
    struct err err = ERR_INIT;
    struct event event;
    int64_t row;
    bool duplicate;
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_header, &err);
    struct jval root = jval_root(tree);
    if (!tree || event_decode(&root, &event, &err) < 0) {
        log_warn("event: %s", err.text);
        return;
    }
    if (event_store(m, &event, &row, &duplicate, &err) < 0) {
        log_error("event not stored: %s", err.text); /* no `stored`: its sender repeats it */
        manager_work(m);
        return;
    }
    if (strcmp(event.kind, "deploy") == 0 && !duplicate)
        tell_of_pauses(m, &event);
    struct buf answer = BUF_INIT;
    buf_printf(&answer, "{\"v\":1,\"id\":%lld,\"duplicate\":%s}", (long long)row,
               duplicate ? "true" : "false");
    struct envelope stored = {.type = MSG_STORED, .id = env->id};
    if (bus_send(m->bus, from, &stored, &answer, &err) < 0)
        log_warn("stored not sent: %s", err.text);
    buf_wipe(&answer);
    manager_work(m);
}

/* Shown, never stored: a monitor that starts again begins at 0, as a counter may. */
void counters_received(struct manager *m, const char *body, size_t size)
{
    static const char *const keys[] = {"v",        "source", "requests", "spans",   "refused",
                                       "rejected", "early",  "stale",    "waiting", NULL};
    struct err err = ERR_INIT;
    struct metrics_receiver counted;
    const char *source;
    const struct {
        const char *key;
        int64_t *out;
    } numbers[] = {{"requests", &counted.requests}, {"spans", &counted.spans},
                   {"refused", &counted.refused},   {"rejected", &counted.rejected},
                   {"early", &counted.early},       {"stale", &counted.stale},
                   {"waiting", &counted.waiting}};
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_header, &err);
    struct jval root = jval_root(tree), name = jval_get(&root, "source");
    int rc = !tree || jval_object(&root, keys, &err) || jval_text(&name, 253, &source, &err) ? -1 : 0;
    for (size_t i = 0; i < ARRAY_LEN(numbers) && rc == 0; i++) {
        struct jval number = jval_get(&root, numbers[i].key);
        rc = jval_int(&number, 0, INT64_MAX, numbers[i].out, &err);
    }
    if (rc)
        log_warn("counters: %s", err.text);
    else
        metrics_receiver(m->metrics, source, &counted);
}
