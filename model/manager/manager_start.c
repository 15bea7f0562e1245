/* manager_start.c - what the engine is told before the first turn: the configured apps, and the
 * cycles that had not ended when `remap` did (the table of design.md 3); and the configuration read
 * again on SIGHUP. */
#include "model/manager/manager.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/log.h"

/* --- apps --- */

/* How much faster than the wall the time of an embedded cluster runs; 1 for every other. */
static double app_speed(const struct config *config, const struct config_app *app)
{
    const struct config_source *s = config_source(config, app->cluster);
    for (size_t i = 0; s && strcmp(s->type, "simulated") == 0 && i < s->n_options; i++) {
        double speed = strcmp(s->options[i].name, "speed") == 0 ? atof(s->options[i].value) : 0;
        if (speed > 0)
            return speed;
    }
    return 1;
}

static int64_t divided(int64_t ms, double speed)
{
    int64_t out = (int64_t)((double)ms / speed);
    return ms > 0 && out < 1 ? 1 : out;
}

int64_t app_divided_ms(const struct config *config, size_t app, int64_t ms)
{
    return ms < 0 ? ms : divided(ms, app_speed(config, &config->apps[app]));
}

/* Every time that is the cluster's; those of our own processes (planner) stay. */
static struct config_app app_times(const struct config *config, const struct config_app *app)
{
    struct config_app t = *app;
    double speed = app_speed(config, app);
    int64_t *const times[] = {&t.interval_ms,      &t.interval_min_ms, &t.interval_max_ms,
                              &t.window_ms,        &t.grace_ms,        &t.settle_ms,
                              &t.ready_timeout_ms, &t.soak_ms,         &t.cooldown_ms,
                              &t.drift.every_ms,   &t.drift.window_ms, &t.drift.for_ms,
                              &t.drift.quiet_ms};
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        *times[i] = divided(*times[i], speed);
    return t;
}

/* Quiet after a release survives a restart: the event is in the store. */
static int64_t soak_until(struct manager *m, const struct config_app *t)
{
    static const char sql[] = "SELECT max(at_ms) FROM v_events WHERE kind = 'deploy' "
                              "AND (app = ?1 OR app IS NULL)";
    const char *const args[] = {t->name, NULL};
    struct err err = ERR_INIT;
    AUTO(store_rows) struct store_rows *rows = NULL;
    int64_t at = -1;
    if (store_select(m->store, sql, args, &rows, &err) == 0 && store_rows_next(rows, &err) == 1)
        at = store_rows_int(rows, 0, -1);
    return at < 0 ? -1 : at + t->soak_ms;
}

static void tell_app(struct manager *m, const struct config_app *t, bool gone)
{
    struct err err = ERR_INIT;
    struct app_row row = {.next_due_ms = -1, .interval_ms = -1};
    struct engine_app_config config = {.mode = t->mode,
                                       .interval_ms = t->interval_ms,
                                       .interval_min_ms = t->interval_min_ms,
                                       .interval_max_ms = t->interval_max_ms,
                                       .settle_ms = t->settle_ms,
                                       .drift = {.every_ms = t->drift.every_ms,
                                                 .for_ms = t->drift.for_ms,
                                                 .quiet_ms = t->drift.quiet_ms,
                                                 .affinity = t->drift.affinity,
                                                 .affinity_leave = t->drift.affinity_leave,
                                                 .response = t->drift.response,
                                                 .response_leave = t->drift.response_leave}};
    int64_t reference = 0;
    bool known = store_app_get(m->store, t->name, &row, &err) == 0;
    if (known && store_drift_reference(m->store, t->name, &reference, &err) < 0)
        log_warn("app=%s: %s", t->name, err.text);
    if (m->options->once) { /* no timers: a due time that never comes */
        config.interval_ms = INT64_MAX / 4;
        config.interval_max_ms = 0;
        config.drift.every_ms = 0;
        row.next_due_ms = row.interval_ms = -1;
    }
    struct engine_event ev = {.type = EV_APP,
                              .now_ms = clock_mono_ms(),
                              .app = t->name,
                              .config = &config,
                              .value = manager_mono_ms(row.next_due_ms),
                              .interval_ms = row.interval_ms,
                              .cycle = reference,
                              .flag = known && row.paused};
    engine_update(&m->engine, &ev);
    if (gone) {
        ev.type = EV_APP_GONE;
        engine_update(&m->engine, &ev);
    } else {
        int app = engine_app(&m->engine, t->name);
        m->engine.apps[app].dirty = true; /* the mode may be another one now */
    }
    if (known)
        app_row_wipe(&row);
}

int manager_apps_set(struct manager *m, const struct config *config, struct err *err)
{
    for (size_t i = 0; i < config->n_apps; i++)
        if (!config_source(config, config->apps[i].cluster))
            return err_set(err, ERR_CONFIG, "app %s: no cluster source", config->apps[i].name);
    struct manager_app *old = m->apps;
    m->config = config;
    m->apps = mem_array(config->n_apps + 1, sizeof *m->apps);
    for (size_t i = 0; i < config->n_apps; i++) {
        m->apps[i].times = app_times(config, &config->apps[i]);
        m->apps[i].soak_until_ms = soak_until(m, &m->apps[i].times);
        look_settings(m, &config->apps[i]);
        tell_app(m, &m->apps[i].times, false);
    }
    free(old);
    return 0;
}

/* --- recovery --- */

/* A deployment that came while the cycle was executing: what it stopped stays stopped. */
static bool deployed_since(struct manager *m, const struct cycle_row *row)
{
    static const char sql[] = "SELECT 1 FROM v_events WHERE kind = 'deploy' "
                              "AND (app = ?1 OR app IS NULL) AND at_ms >= CAST(?2 AS INTEGER)";
    AUTO_FREE char *since = mem_printf("%lld", (long long)row->started_ms);
    const char *const args[] = {row->app, since, NULL};
    struct err err = ERR_INIT;
    AUTO(store_rows) struct store_rows *rows = NULL;
    return store_select(m->store, sql, args, &rows, &err) == 0 && store_rows_next(rows, &err) == 1;
}

static void restore_cycle(struct manager *m, const struct cycle_row *row)
{
    int state = cycle_state_from_name(row->state);
    if (state < 0 || cycle_ended((enum cycle_state)state))
        return;
    if (engine_app(&m->engine, row->app) < 0) {
        struct config_app gone = {.name = row->app, .interval_ms = 1};
        tell_app(m, &gone, true);
    }
    int64_t settle = row->deadline_ms >= 0 ? row->deadline_ms : clock_wall_ms();
    struct engine_event ev = {.type = EV_RESTORE,
                              .now_ms = clock_mono_ms(),
                              .app = row->app,
                              .cycle = row->id,
                              .state = (enum cycle_state)state,
                              .attempt = row->attempt + 1, /* one more may have been sent */
                              .value = manager_mono_ms(settle),
                              .dry_run = row->dry_run,
                              .reason = row->reason};
    log_info("cycle=%lld app=%s found in state %s", (long long)row->id, row->app, row->state);
    engine_update(&m->engine, &ev);
    if (state == CYCLE_EXECUTING && deployed_since(m, row)) {
        ev = (struct engine_event){.type = EV_DEPLOY,
                                   .now_ms = clock_mono_ms(),
                                   .app = row->app,
                                   .interval_ms = -1,
                                   .reason = "a deployment"};
        engine_update(&m->engine, &ev);
    }
}

int manager_restore(struct manager *m, struct err *err)
{
    struct cycle_row *rows = NULL;
    size_t n = 0;
    if (store_cycles_open(m->store, &rows, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        restore_cycle(m, &rows[i]);
        cycle_row_wipe(&rows[i]);
    }
    free(rows);
    return 0;
}

/* --- reload --- */

static bool has_moves_in_flight(const struct manager *m, const char *app)
{
    int index = engine_app(&m->engine, app);
    for (size_t i = 0; i < m->engine.n_cycles; i++) {
        enum cycle_state s = m->engine.cycles[i].state;
        if (m->engine.cycles[i].app == index && (s == CYCLE_EXECUTING || s == CYCLE_SETTLING ||
                                                 s == CYCLE_VERIFYING || s == CYCLE_UNDOING))
            return true;
    }
    return false;
}

/* NULL, or the app whose going has to wait. */
static const char *must_wait(const struct manager *m, const struct config *next)
{
    for (size_t i = 0; i < m->config->n_apps; i++) {
        const char *name = m->config->apps[i].name;
        if (!config_app(next, name) && has_moves_in_flight(m, name))
            return name;
    }
    return NULL;
}

void manager_reload(struct manager *m)
{
    struct err err = ERR_INIT;
    AUTO(config) struct config *next = config_read(m->config->path, &err);
    const char *waits = next ? must_wait(m, next) : NULL;
    if (waits && !m->reload_waits)
        log_info("configuration is taken over when the moves of %s are verified", waits);
    m->reload_waits = waits != NULL;
    if (waits)
        return;
    const struct config *old = m->config;
    struct config *old_reread = m->reread;
    if (!next || manager_apps_set(m, next, &err) < 0) {
        log_error("configuration kept as it was: %s", err.text);
        manager_note(m, NULL, "config", 0, err.text);
        return;
    }
    m->reread = steal(next);
    for (size_t i = 0; i < old->n_apps; i++)
        if (!config_app(m->config, old->apps[i].name)) {
            struct engine_event ev = {
                .type = EV_APP_GONE, .now_ms = clock_mono_ms(), .app = old->apps[i].name};
            engine_update(&m->engine, &ev);
        }
    config_free(old_reread);
    log_init("remap", m->config->log_level, m->config->log_format);
    log_info("configuration read again: %s", m->config->path);
    manager_note(m, NULL, "config", 0, "read again");
    manager_configure(m, PARTY_MONITOR);
    manager_configure(m, PARTY_EXECUTOR);
    manager_work(m);
}
