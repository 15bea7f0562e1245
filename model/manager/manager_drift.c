/* manager_drift.c - looks between cycles (paper §9; engine_look.c says when, drift.c what follows):
 * the cluster and its traffic are collected, the analyzer compares them with the snapshot that the
 * present placement was planned on, and what comes of it goes into the store, the metrics and, when
 * it changes, the events. */
#include "model/manager/manager.h"

#include <stdio.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/log.h"
#include "model/wire/failure.h"

#define MAX_PAIRS 10 /* of the answer; the analyzer sends fewer */

void look_wipe(struct look *look)
{
    buf_wipe(&look->model_text);
    buf_wipe(&look->reference);
}

/* --- asking --- */

static int build_drift(struct manager *m, const struct engine_app *a, const struct config_app *app,
                       struct buf *out, struct err *err)
{
    struct look *look = &m->look;
    /* after a cycle its response time may have been measured anew */
    if (look->reference_cycle != a->reference || a->drift.state == DRIFT_NONE) {
        buf_clear(&look->reference);
        look->reference_cycle = 0;
        if (store_drift_reference_rows(m->store, a->reference, &look->reference,
                                       &look->reference_ms, err) < 0)
            return -1;
        look->reference_cycle = a->reference;
    }
    buf_reserve(out, look->model_text.size + look->reference.size + 100);
    buf_puts(out, "{\"v\":1,\"weight\":");
    json_put_real(out, app->weight);
    buf_puts(out, ",\"model\":");
    buf_add(out, look->model_text.data, look->model_text.size);
    buf_puts(out, ",\"reference\":");
    buf_add(out, look->reference.data, look->reference.size);
    buf_puts(out, "}");
    return 0;
}

void look_send(struct manager *m, const struct engine_action *a)
{
    struct err err = ERR_INIT;
    struct buf body = BUF_INIT;
    const struct engine_app *engine_app = &m->engine.apps[a->app];
    const struct config_app *app = manager_app_times(m, engine_app->name);
    struct envelope env = {.type = a->request, .attempt = a->attempt};
    enum party stage = a->stage;
    int rc = 0;
    if (!app)
        rc = err_set(&err, ERR_CONFIG, "app %s: no longer configured", engine_app->name);
    else if (a->request == MSG_COLLECT)
        request_put_look(m, app, &body);
    else
        rc = build_drift(m, engine_app, app, &body, &err);
    if (rc == 0)
        rc = bus_send(m->bus, stage, &env, &body, &err);
    buf_wipe(&body);
    struct engine_event ev = {.type = EV_LOOKING,
                              .stage = stage,
                              .attempt = env.attempt,
                              .value = m->config->stage_deadline_ms};
    manager_event(m, ev); /* also when it was not sent: the look is over then */
    if (rc < 0) {
        log_warn("look at app=%s: %s", engine_app->name, err.text);
        ev.type = EV_FAILURE;
        ev.cycle = ENGINE_LENT;
        manager_event(m, ev);
    }
}

/* --- what came back --- */

static int opt_real(const struct jval *root, const char *key, double *out, struct err *err)
{
    struct jval v = jval_get(root, key);
    *out = -1;
    return jval_null(&v) ? 0 : jval_real(&v, 0, 1e300, out, err);
}

/* "front-end – orders 8.0 % → 31.2 %, …" */
static int read_pairs(const struct jval *root, char *out, size_t size, struct err *err)
{
    static const char *const keys[] = {"a", "b", "before", "now", NULL};
    struct jval list = jval_get(root, "pairs");
    size_t n, used = 0;
    if (jval_array(&list, MAX_PAIRS, &n, err) < 0)
        return -1;
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        struct jval v = jval_at(&list, i), a = jval_get(&v, "a"), b = jval_get(&v, "b");
        const char *names[2];
        double before, now;
        if (jval_object(&v, keys, err) < 0 || jval_name(&a, &names[0], err) < 0 ||
            jval_name(&b, &names[1], err) < 0 || opt_real(&v, "before", &before, err) < 0 ||
            opt_real(&v, "now", &now, err) < 0)
            return -1;
        int k = snprintf(out + used, size - used, "%s%.100s – %.100s %.1f %% → %.1f %%",
                         i ? ", " : "", names[0], names[1], 100 * before, 100 * now);
        used = k > 0 && used + (size_t)k < size ? used + (size_t)k : size - 1;
    }
    return 0;
}

static int read_seen(struct look *look, const char *body, size_t size, struct drift_seen *seen,
                     struct err *err)
{
    static const char *const keys[] = {"v", "distance", "noise", "response_ms", "pairs", NULL};
    double response_ms;
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_header, err);
    struct jval root = jval_root(tree);
    if (!tree || jval_object(&root, keys, err) < 0 ||
        opt_real(&root, "distance", &seen->distance, err) < 0 ||
        opt_real(&root, "noise", &seen->noise, err) < 0 ||
        opt_real(&root, "response_ms", &response_ms, err) < 0 ||
        read_pairs(&root, look->pairs, sizeof look->pairs, err) < 0)
        return -1;
    seen->has_response = response_ms > 0 && look->reference_ms > 0;
    seen->response = seen->has_response ? response_ms / look->reference_ms - 1 : 0;
    look->response_ms = response_ms;
    look->at_ms = clock_wall_ms();
    return 0;
}

static void measure(struct manager *m, const char *app, const struct drift_seen *seen)
{
    bool known = seen && seen->distance >= 0;
    metrics_look(m->metrics, app, !seen ? "failed" : known ? "seen" : "too_little");
    if (!seen)
        return;
    metrics_drift(m->metrics, app, known ? seen->distance : -1, known ? seen->noise : -1,
                  seen->has_response ? 1 + seen->response : -1);
}

void look_answered(struct manager *m, enum party stage, const struct envelope *env,
                   const char *body, size_t size, const struct err *failure)
{
    struct err err = ERR_INIT;
    struct drift_seen seen = {0};
    struct engine_event ev = {
        .type = EV_RESULT, .stage = stage, .cycle = ENGINE_LENT, .attempt = env->attempt};
    if (!engine_looks(&m->engine, stage, env->attempt)) {
        manager_event(m, ev); /* of a look that was given up: the stage is free */
        return;
    }
    const char *app = m->engine.apps[m->engine.look.app].name;
    if (failure)
        err = *failure;
    if (stage == PARTY_MONITOR && !failure) {
        buf_clear(&m->look.model_text);
        buf_add(&m->look.model_text, body, size);
    } else if (!failure && read_seen(&m->look, body, size, &seen, &err) == 0) {
        ev.seen = &seen;
    } else {
        ev.type = EV_FAILURE;
        log_warn("look at app=%s: %s: %s", app, party_name(stage), err.text);
        if (m->engine.apps[m->engine.look.app].drift.failures == 0) {
            char text[ENGINE_REASON_SIZE];
            snprintf(text, sizeof text, "not seen: %s: %.400s", party_name(stage), err.text);
            manager_note(m, app, "drift", 0, text);
        }
    }
    if (ev.type == EV_FAILURE || stage == PARTY_ANALYZER)
        measure(m, app, ev.seen);
    if (stage == PARTY_ANALYZER)
        buf_wipe(&m->look.model_text); /* models are large, looks are rare */
    manager_event(m, ev);
}

/* --- keeping --- */

static void put_seen(const struct look *look, const struct engine_app *a, char *out, size_t size)
{
    const struct drift_seen *seen = &a->drift.seen;
    char response[80] = "unknown";
    if (seen->has_response)
        snprintf(response, sizeof response, "%.3g ms, was %.3g", look->response_ms,
                 look->reference_ms);
    snprintf(out, size,
             "%.1f %% of the traffic goes another way than in cycle %lld (by chance %.1f %%)%s%s; "
             "response time %s",
             100 * seen->distance, (long long)a->reference, 100 * seen->noise,
             look->pairs[0] ? ": " : "", look->pairs, response);
}

/* A change of state, in words; false: nobody has to know. */
static bool put_decision(const struct manager *m, const struct engine_app *a, char *out,
                         size_t size)
{
    char seen[ENGINE_REASON_SIZE], at[CLOCK_TEXT_SIZE];
    const struct drift *d = &a->drift;
    put_seen(&m->look, a, seen, sizeof seen);
    switch (d->state) {
    case DRIFT_NONE:
        return false;
    case DRIFT_CALM:
        snprintf(out, size, "calm: %s", seen);
        return a->said != DRIFT_NONE;
    case DRIFT_RISING:
        snprintf(out, size, "beyond the level of %s: %s; starts a cycle if it lasts %s",
                 d->by_response ? "response" : "affinity", seen,
                 duration_text(a->config.drift.for_ms, at));
        return true;
    case DRIFT_HELD:
        snprintf(out, size, "held back until %s, quiet after a cycle: %s",
                 clock_iso(manager_wall_ms(d->quiet_until_ms), at), seen);
        return true;
    case DRIFT_STARTED:
        snprintf(out, size, "starts a cycle: %s", seen);
        return true;
    case DRIFT_N_STATES:
        break;
    }
    return false;
}

int look_save(struct manager *m, const struct engine_app *a, struct err *err)
{
    const struct drift_config *config = &a->config.drift;
    const struct drift *d = &a->drift;
    bool seen = d->state != DRIFT_NONE, known = seen && d->seen.distance >= 0;
    char text[2 * ENGINE_REASON_SIZE];
    struct drift_row row = {.app = a->name,
                            .state = drift_state_name(d->state),
                            .at_ms = seen ? m->look.at_ms : -1,
                            .reference_cycle = a->reference > 0 ? a->reference : -1,
                            .distance = known ? d->seen.distance : -1,
                            .noise = known ? d->seen.noise : -1,
                            .response_ratio =
                                seen && d->seen.has_response ? 1 + d->seen.response : -1,
                            .every_ms = config->every_ms,
                            .affinity = config->affinity,
                            .response = config->response};
    if (config->every_ms <= 0 && !m->look.known)
        return 0;
    if (!seen) /* what was seen of the placement before says nothing of this one */
        metrics_drift(m->metrics, a->name, -1, -1, -1);
    if (store_drift_set(m->store, &row, err) < 0)
        return -1;
    if (d->state == a->said || !put_decision(m, a, text, sizeof text))
        return 0;
    log_info("app=%s drift %s", a->name, text);
    return store_event_add(m->store, a->name, "drift", 0, text, clock_wall_ms(), NULL, err);
}

/* --- settings --- */

static void put_settings(const struct config_drift *d, char *out, size_t size)
{
    char every[CLOCK_TEXT_SIZE], window[CLOCK_TEXT_SIZE], lasts[CLOCK_TEXT_SIZE];
    char quiet[CLOCK_TEXT_SIZE];
    if (d->every_ms <= 0)
        snprintf(out, size, "settings: off");
    else
        snprintf(out, size,
                 "settings: every %s, window %s, for %s, quiet %s; affinity beyond %g, left at %g; "
                 "response beyond %g, left at %g",
                 duration_text(d->every_ms, every), duration_text(d->window_ms, window),
                 duration_text(d->for_ms, lasts), duration_text(d->quiet_ms, quiet), d->affinity,
                 d->affinity_leave, d->response, d->response_leave);
}

void look_settings(struct manager *m, const struct config_app *app)
{
    static const char sql[] = "SELECT text FROM v_events WHERE kind = 'drift' AND app = ?1"
                              " AND text LIKE 'settings: %' ORDER BY event_id DESC LIMIT 1";
    const char *const args[] = {app->name, NULL};
    char text[ENGINE_REASON_SIZE];
    struct err err = ERR_INIT;
    if (m->options->once)
        return;
    put_settings(&app->drift, text, sizeof text);
    AUTO_FREE char *said = NULL;
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(m->store, sql, args, &rows, &err) == 0 && store_rows_next(rows, &err) == 1)
        said = mem_strdup(store_rows_text(rows, 0));
    store_rows_free(steal(rows)); /* before the writing */
    m->look.known = m->look.known || said || app->drift.every_ms > 0;
    if (said ? strcmp(said, text) != 0 : app->drift.every_ms > 0)
        manager_note(m, app->name, "drift", 0, text);
    metrics_drift_levels(m->metrics, app->name, app->drift.every_ms > 0 ? app->drift.affinity : -1,
                         app->drift.every_ms > 0 ? 1 + app->drift.response : -1);
}
