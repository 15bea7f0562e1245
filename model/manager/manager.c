/* manager.c - the Model Manager's heart: what happens outside becomes an event of the engine, what
 * the engine asks for is done, and each step is one transaction of the store (paper §5.7, §6.6). */
#include "model/manager/manager.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "model/base/clock.h"
#include "model/base/log.h"

int64_t manager_wall_ms(int64_t mono_ms)
{
    return mono_ms < 0 ? -1 : mono_ms + clock_wall_ms() - clock_mono_ms();
}

int64_t manager_mono_ms(int64_t wall_ms)
{
    if (wall_ms < 0)
        return -1;
    int64_t mono = wall_ms - clock_wall_ms() + clock_mono_ms();
    return mono < 0 ? 0 : mono;
}

const struct config_app *manager_app_times(const struct manager *m, const char *app)
{
    for (size_t i = 0; i < m->config->n_apps; i++)
        if (strcmp(m->apps[i].times.name, app) == 0)
            return &m->apps[i].times;
    return NULL;
}

void manager_tell(struct manager *m, struct engine_event ev)
{
    ev.now_ms = clock_mono_ms();
    engine_update(&m->engine, &ev);
}

void manager_event(struct manager *m, struct engine_event ev)
{
    manager_tell(m, ev);
    manager_work(m);
}

void manager_note(struct manager *m, const char *app, const char *kind, int64_t cycle,
                  const char *text)
{
    struct err err = ERR_INIT;
    if (store_event_add(m->store, app, kind, cycle, text, clock_wall_ms(), NULL, &err) < 0)
        log_warn("event not stored kind=%s text=\"%s\" why=\"%s\"", kind, text, err.text);
}

void manager_store_failed(struct manager *m, const struct err *err)
{
    if (!m->store_trouble)
        log_error("store cannot be written: %s; tried again every %d s", err->text,
                  ENGINE_STORE_RETRY_MS / 1000);
    m->store_trouble = true;
    manager_tell(m, (struct engine_event){.type = EV_STORE_FAILED, .reason = err->text});
}

static void store_works(struct manager *m)
{
    if (!m->store_trouble)
        return;
    m->store_trouble = false;
    log_info("store can be written again");
    manager_note(m, NULL, "store", 0, "could not be written for a while, works again");
}

/* --- phases: how long a cycle spent where --- */

static struct phase *phase_find(struct manager *m, int64_t cycle)
{
    for (size_t i = 0; i < m->n_phases; i++)
        if (m->phases[i].cycle == cycle)
            return &m->phases[i];
    struct phase *p = ARRAY_PUSH(m->phases, m->n_phases);
    *p = (struct phase){cycle, clock_mono_ms(), clock_mono_ms()};
    return p;
}

static const char *phase_name(enum cycle_state state)
{
    switch (state) {
    case CYCLE_COLLECTING:
        return "collect";
    case CYCLE_ANALYZING:
        return "analyze";
    case CYCLE_PLANNING:
        return "plan";
    case CYCLE_EXECUTING:
    case CYCLE_UNDOING:
        return "execute";
    case CYCLE_SETTLING:
        return "settle";
    case CYCLE_VERIFYING:
        return "verify";
    case CYCLE_PROPOSED:
    case CYCLE_DONE:
    case CYCLE_UNDONE:
    case CYCLE_FAILED:
    case CYCLE_SUPERSEDED:
    case CYCLE_N_STATES:
        return NULL;
    }
    return NULL;
}

/* A step has been committed: tell metrics, log and whoever watches. */
static void announce(struct manager *m, const struct engine_cycle *c, enum cycle_state from)
{
    const char *app = m->engine.apps[c->app].name, *state = cycle_state_name(c->state);
    struct phase *p = phase_find(m, c->id);
    if (phase_name(from))
        metrics_phase(m->metrics, phase_name(from), clock_mono_ms() - p->since_ms);
    p->since_ms = clock_mono_ms();
    log_info("cycle=%lld app=%s state=%s%s%s%s", (long long)c->id, app, state,
             c->reason[0] ? " reason=\"" : "", c->reason, c->reason[0] ? "\"" : "");
    if (m->options->events && m->options->events->cycle)
        m->options->events->cycle(m->options->ctx, c->id, app, state, c->reason);
    if (!cycle_ended(c->state))
        return;
    metrics_cycle(m->metrics, app, state);
    metrics_phase(m->metrics, "cycle", clock_mono_ms() - p->started_ms);
    if (from == CYCLE_UNDOING)
        metrics_rollback(m->metrics, state);
    *p = m->phases[--m->n_phases];
    if (m->docs.cycle == c->id)
        docs_wipe(&m->docs);
    if (m->options->once && c->state == CYCLE_FAILED && m->exit_code == 0)
        m->exit_code = 1;
}

/* --- saving --- */

/* The executor was lost for good in the middle of it: where the replica is the next inspection
 * tells. */
static int close_open(struct manager *m, int64_t cycle, const struct move_row *row, struct err *err)
{
    AUTO_BUF struct buf outcome = BUF_INIT;
    char state[] = "failed", reason[] = "not known what became of it";
    struct move_row failed = *row;
    failed.state = state;
    failed.reason = reason;
    failed.settled_ms = clock_wall_ms();
    request_put_outcome(&outcome, &failed);
    return store_move_outcome(m->store, cycle, outcome.data, outcome.size, err);
}

/* Moves that will not be made any more: those still planned are discarded. A plan that was only
 * looked at keeps them, so that it can be applied. */
static int discard_rest(struct manager *m, const struct engine_cycle *c, struct err *err)
{
    bool looked_at = c->saved == CYCLE_PLANNING && c->state == CYCLE_DONE;
    if (looked_at || !cycle_ended(c->state))
        return 0;
    struct move_row *rows = NULL;
    size_t n = 0;
    int rc = store_moves_load(m->store, c->id, &rows, &n, err);
    for (size_t i = 0; i < n; i++) {
        if (rc == 0 && strcmp(rows[i].state, "planned") == 0)
            rc = store_move_discard(m->store, c->id, rows[i].seq,
                                    c->reason[0] ? c->reason : "the cycle ended before", err);
        else if (rc == 0 && strcmp(rows[i].state, "intended") == 0)
            rc = close_open(m, c->id, &rows[i], err);
        move_row_wipe(&rows[i]);
    }
    free(rows);
    return rc;
}

static int64_t cycle_deadline(const struct engine_cycle *c)
{
    return c->state == CYCLE_SETTLING || c->state == CYCLE_VERIFYING
               ? manager_wall_ms(c->settle_until_ms)
               : -1;
}

/* The cycle's row and what goes with the step, inside an open transaction. */
static int save_cycle(struct manager *m, const struct engine_cycle *c, struct err *err)
{
    char text[ENGINE_REASON_SIZE + 40];
    snprintf(text, sizeof text, "%s%s%s", cycle_state_name(c->state), c->reason[0] ? ": " : "",
             c->reason);
    if (store_cycle_set(m->store, c->id, cycle_state_name(c->state),
                        c->reason[0] ? c->reason : NULL, c->attempt, cycle_deadline(c),
                        cycle_ended(c->state) ? clock_wall_ms() : -1, err) < 0 ||
        discard_rest(m, c, err) < 0)
        return -1;
    return store_event_add(m->store, m->engine.apps[c->app].name, "cycle", c->id, text,
                           clock_wall_ms(), NULL, err);
}

void manager_answer(struct manager *m, struct engine_event ev, manager_rows_fn *rows, void *ctx)
{
    struct err err = ERR_INIT;
    enum cycle_state from = engine_cycle(&m->engine, ev.cycle)->state;
    int rc = store_begin(m->store, &err);
    if (rc == 0 && rows)
        rc = rows(m, &ev, ctx, &err);
    manager_tell(m, ev); /* also when it cannot be saved: the stage is free again */
    const struct engine_cycle *c = engine_cycle(&m->engine, ev.cycle);
    if (rc == 0 && c->dirty)
        rc = save_cycle(m, c, &err);
    if (rc == 0)
        rc = store_commit(m->store, &err);
    if (rc < 0) {
        store_rollback(m->store);
        manager_store_failed(m, &err);
    } else {
        store_works(m);
        if (c->dirty)
            announce(m, c, from);
        manager_tell(m, (struct engine_event){.type = EV_SAVED, .cycle = ev.cycle});
    }
    manager_work(m);
}

static void act_save(struct manager *m, const struct engine_cycle *c)
{
    struct err err = ERR_INIT;
    enum cycle_state from = c->saved;
    int rc = store_begin(m->store, &err);
    if (rc == 0)
        rc = save_cycle(m, c, &err);
    if (rc == 0)
        rc = store_commit(m->store, &err);
    if (rc < 0) {
        store_rollback(m->store);
        manager_store_failed(m, &err);
        return;
    }
    store_works(m);
    announce(m, c, from);
    manager_tell(m, (struct engine_event){.type = EV_SAVED, .cycle = c->id});
}

/* The app's row, and what a look has shown, inside an open transaction. `once` has no timers: what
 * the daemon keeps there stays as it is. */
static int save_app(struct manager *m, const struct engine_app *a, struct err *err)
{
    struct app_row row = {.app = a->name,
                          .mode = (char *)app_mode_name(a->config.mode),
                          .paused = a->paused,
                          .next_due_ms = manager_wall_ms(a->due_ms),
                          .interval_ms = a->given_interval_ms};
    if (m->options->once)
        return 0;
    return store_app_set(m->store, &row, err) < 0 ? -1 : look_save(m, a, err);
}

static void act_save_app(struct manager *m, const struct engine_app *a)
{
    struct err err = ERR_INIT;
    int rc = store_begin(m->store, &err);
    if (rc == 0)
        rc = save_app(m, a, &err);
    if (rc == 0)
        rc = store_commit(m->store, &err);
    if (rc < 0) {
        store_rollback(m->store);
        manager_store_failed(m, &err);
    } else {
        manager_tell(m, (struct engine_event){.type = EV_APP_SAVED, .app = a->name});
    }
}

int manager_save_steps(struct manager *m, struct err *err)
{
    for (size_t i = 0; i < m->engine.n_cycles; i++)
        if (m->engine.cycles[i].dirty && save_cycle(m, &m->engine.cycles[i], err) < 0)
            return -1;
    for (size_t i = 0; i < m->engine.n_apps; i++)
        if (m->engine.apps[i].dirty && save_app(m, &m->engine.apps[i], err) < 0)
            return -1;
    return 0;
}

void manager_steps_saved(struct manager *m)
{
    store_works(m);
    for (size_t i = m->engine.n_cycles; i-- > 0;) { /* from the end: those that ended drop out */
        const struct engine_cycle *c = &m->engine.cycles[i];
        if (!c->dirty)
            continue;
        announce(m, c, c->saved);
        manager_tell(m, (struct engine_event){.type = EV_SAVED, .cycle = c->id});
    }
    for (size_t i = 0; i < m->engine.n_apps; i++)
        if (m->engine.apps[i].dirty)
            manager_tell(m, (struct engine_event){.type = EV_APP_SAVED, .app = m->engine.apps[i].name});
}

static void act_create(struct manager *m, const struct engine_app *a)
{
    struct err err = ERR_INIT;
    int64_t id = 0;
    if (store_cycle_new(m->store, a->name, a->trigger, cycle_state_name(CYCLE_COLLECTING),
                        a->dry_run, a->base, clock_wall_ms(), &id, &err) < 0) {
        manager_store_failed(m, &err);
        return;
    }
    store_works(m);
    log_info("cycle=%lld app=%s state=collecting trigger=%s", (long long)id, a->name, a->trigger);
    phase_find(m, id);
    const char *app = a->name;
    manager_tell(m, (struct engine_event){.type = EV_CREATED, .cycle = id});
    if (m->options->events && m->options->events->cycle)
        m->options->events->cycle(m->options->ctx, id, app, "collecting", "");
}

/* --- sending --- */

static void act_send(struct manager *m, const struct engine_action *a)
{
    struct err err = ERR_INIT;
    struct buf body = BUF_INIT;
    int64_t id = a->cycle->id, attempt = a->attempt, allowance = m->config->stage_deadline_ms;
    enum party stage = a->stage;
    struct envelope env = {.type = a->request, .cycle = id, .attempt = attempt};
    bool built = request_build(m, a->cycle, &body, &allowance, &err) == 0;
    int rc = built ? bus_send(m->bus, stage, &env, &body, &err) : -1;
    buf_wipe(&body);
    if (rc < 0 && err.kind == ERR_UNREACHABLE && built) {
        /* Its death is on its way to us; or it lives and somebody took its name on the bus. */
        supervisor_kill(m->supervisor, stage);
        manager_tell(m, (struct engine_event){.type = EV_STAGE_DOWN, .stage = stage});
        return;
    }
    manager_tell(m, (struct engine_event){
                .type = EV_SENT, .cycle = id, .attempt = attempt, .value = allowance});
    if (rc < 0) {
        log_error("cycle=%lld request=%s not sent: %s", (long long)id, message_type_name(env.type),
                  err.text);
        manager_tell(m, (struct engine_event){.type = EV_FAILURE,
                                      .stage = stage,
                                      .cycle = id,
                                      .attempt = attempt,
                                      .reason = err.text,
                                      .flag = err.kind == ERR_IO}); /* the store may recover */
    }
}

static void act_stop(struct manager *m, enum party stage)
{
    struct err err = ERR_INIT;
    const struct engine_stage *s = &m->engine.stages[stage];
    struct envelope env = {.type = MSG_STOP, .cycle = s->cycle, .attempt = s->attempt};
    if (s->cycle == ENGINE_LENT)
        env.cycle = 0; /* the stage leaves altogether: we are leaving too */
    if (bus_send(m->bus, stage, &env, NULL, &err) < 0)
        log_warn("stage=%s stop not sent: %s", party_name(stage), err.text);
    manager_tell(m, (struct engine_event){.type = EV_STOP_SENT, .stage = stage});
}

static void note_stage(struct manager *m, enum party stage, const char *text)
{
    int64_t cycle = m->engine.stages[stage].cycle;
    manager_note(m, NULL, "stage", cycle == ENGINE_LENT ? 0 : cycle, text);
}

static void act_kill(struct manager *m, enum party stage)
{
    char text[120];
    snprintf(text, sizeof text, "%s: no progress within its deadline, killed", party_name(stage));
    log_warn("%s", text);
    note_stage(m, stage, text);
    supervisor_kill(m->supervisor, stage);
    manager_tell(m, (struct engine_event){.type = EV_KILLED, .stage = stage});
}

static void act(struct manager *m, const struct engine_action *a)
{
    switch (a->type) {
    case ACTION_SAVE:
        act_save(m, a->cycle);
        break;
    case ACTION_SAVE_APP:
        act_save_app(m, &m->engine.apps[a->app]);
        break;
    case ACTION_KILL:
        act_kill(m, a->stage);
        break;
    case ACTION_STOP:
        act_stop(m, a->stage);
        break;
    case ACTION_CREATE:
        act_create(m, &m->engine.apps[a->app]);
        break;
    case ACTION_SEND:
        act_send(m, a);
        break;
    case ACTION_LOOK:
        look_send(m, a);
        break;
    }
}

/* --- the turn --- */

static void on_tick(void *ctx)
{
    struct manager *m = ctx;
    m->tick_timer = 0;
    manager_event(m, (struct engine_event){.type = EV_TICK});
}

static void arm_tick(struct manager *m)
{
    if (m->tick_timer)
        loop_timer_cancel(m->loop, m->tick_timer);
    m->tick_timer = 0;
    int64_t at = engine_next_ms(&m->engine), now = clock_mono_ms();
    if (at == INT64_MAX || m->leaving)
        return;
    m->tick_timer = loop_timer(m->loop, at > now ? at - now : 0, on_tick, m);
}

void manager_leave(struct manager *m, int64_t grace_ms)
{
    if (m->leaving)
        return;
    m->leaving = true;
    sd_notify(0, "STOPPING=1");
    arm_tick(m);
    supervisor_stop(m->supervisor, grace_ms);
}

static void set_busy(struct manager *m)
{
    for (enum party p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++)
        supervisor_set_busy(m->supervisor, p, m->engine.stages[p].cycle != 0);
}

void manager_work(struct manager *m)
{
    struct engine_action action;
    if (m->working || m->leaving)
        return;
    m->working = true;
    while (engine_next_action(&m->engine, &action))
        act(m, &action);
    m->working = false;
    set_busy(m);
    if (m->reload_waits && !m->engine.stopping)
        manager_reload(m);
    bool through =
        m->engine.stopping ? engine_quiet(&m->engine) : m->options->once && engine_idle(&m->engine);
    if (through)
        manager_leave(m, 2000); /* no request is out: stages leave at once; 2 s for their LINGER */
    arm_tick(m);
}

/* --- what the bus and the supervisor tell --- */

static void tell_ready(struct manager *m)
{
    if (m->ready)
        return;
    for (enum party p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++)
        if (!m->hello[p])
            return;
    m->ready = true;
    sd_notify(0, "READY=1");
    log_info("ready apps=%zu store=%s", m->config->n_apps, m->options->store_path);
}

static void on_hello(void *ctx, enum party stage, int64_t pid)
{
    struct manager *m = ctx;
    if (pid != supervisor_pid(m->supervisor, stage)) { /* of a life that has ended, or a stranger */
        log_warn("hello of pid %lld ignored: it is not the %s", (long long)pid, party_name(stage));
        return;
    }
    m->hello[stage] = true;
    if (stage == PARTY_MONITOR || stage == PARTY_EXECUTOR)
        manager_configure(m, stage);
    tell_ready(m);
    manager_event(m, (struct engine_event){.type = EV_STAGE_UP, .stage = stage});
}

static void on_received(void *ctx, enum party from, const char *peer, const struct envelope *env,
                        const char *body, size_t size)
{
    struct manager *m = ctx;
    switch (env->type) {
    case MSG_PROGRESS:
        progress_received(m, from, env, body, size);
        break;
    case MSG_INTENT:
        intent_received(m, env, body, size);
        break;
    case MSG_RESULT:
        result_received(m, from, env, body, size);
        break;
    case MSG_FAILURE:
        failure_received(m, from, env, body, size);
        break;
    case MSG_EVENT:
        event_received(m, from, env, body, size);
        break;
    case MSG_COUNTERS:
        counters_received(m, body, size);
        break;
    case MSG_KEPT:
        kept_received(m, body, size);
        break;
    case MSG_COMMAND:
        command_received(m, peer, body, size);
        break;
    case MSG_HELLO:
    case MSG_COLLECT:
    case MSG_ANALYZE:
    case MSG_DRIFT:
    case MSG_PLAN:
    case MSG_EXECUTE:
    case MSG_RELEASE:
    case MSG_CHECK:
    case MSG_IMPORT:
    case MSG_PROCEED:
    case MSG_STORED:
    case MSG_CONFIGURE:
    case MSG_STOP:
    case MSG_N_TYPES:
        log_warn("peer=%s sent %s", peer, message_type_name(env->type));
    }
}

static void on_refused(void *ctx, const char *peer, const char *why)
{
    (void)ctx;
    log_warn("message refused peer=%s why=\"%s\"", peer, why);
}

static void on_started(void *ctx, enum party stage, int64_t pid)
{
    struct manager *m = ctx;
    log_debug("stage=%s started pid=%lld", party_name(stage), (long long)pid);
    if (supervisor_restarts(m->supervisor, stage) > 0)
        metrics_stage_restart(m->metrics, party_name(stage));
}

static void on_died(void *ctx, enum party stage, int64_t pid, const char *how)
{
    struct manager *m = ctx;
    if (m->leaving)
        return;
    char text[200];
    snprintf(text, sizeof text, "%s (pid %lld) ended: %s", party_name(stage), (long long)pid, how);
    log_warn("%s", text);
    note_stage(m, stage, text);
    manager_event(m, (struct engine_event){.type = EV_STAGE_DOWN, .stage = stage});
    if (stage == PARTY_EXECUTOR) {
        pauses_forget(m); /* the next one looks at once */
        release_lost(m, text);
    }
}

static void on_gave_up(void *ctx, enum party stage, const char *line)
{
    (void)stage;
    struct manager *m = ctx;
    err_set(&m->fatal, ERR_INTERNAL, "%s", line);
    manager_leave(m, 2000);
}

static void on_stopped(void *ctx)
{
    struct manager *m = ctx;
    loop_quit(m->loop);
}

const struct bus_events manager_bus_events = {on_hello, on_received, on_refused};
const struct supervisor_events manager_supervisor_events = {on_started, on_died, on_gave_up,
                                                            on_stopped};
