/* manager_command.c - what the command line asks of the daemon (contract.md 1; model/wire/README.md
 * "command"). Each answer is one document; a refusal says why. */
#include "model/manager/manager.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/json.h"
#include "model/base/log.h"
#include "model/wire/failure.h"

struct command {
    const char *peer;
    const char *app, *service; /* NULL: not given */
    int64_t cycle;             /* 0: not given */
    bool dry_run;
};

/* Appends further members to *out, which holds {"v":1,"ok":true already, and the text. */
typedef int command_fn(struct manager *m, const struct command *c, struct buf *out,
                       struct err *err);

static void put_text(struct buf *out, const char *text)
{
    buf_puts(out, ",\"text\":");
    json_put_text(out, text);
}

static int need_app(const struct command *c, struct err *err)
{
    return c->app ? 0 : err_set(err, ERR_USAGE, "which app?");
}

/* Tells the engine unless it would refuse. */
static int ask(struct manager *m, struct engine_event ev, struct err *err)
{
    const char *why = engine_refuses(&m->engine, &ev);
    if (why)
        return err_set(err,
                       ev.app && engine_app(&m->engine, ev.app) < 0 ? ERR_NOT_FOUND : ERR_REFUSED,
                       "%s%s%s", ev.app ? ev.app : "", ev.app ? ": " : "", why);
    manager_event(m, ev);
    return 0;
}

/* In the cluster, that is: whom `remap pause` has paused the engine refuses. NULL: nobody. */
static const char *paused_by(const struct manager *m, const char *app)
{
    const struct config_app *configured = manager_app_times(m, app);
    return configured && configured->mode != MODE_OBSERVE ? manager_paused_by(m, configured) : NULL;
}

/* The cycle of the app that runs now, for the answer. */
static void put_running(struct manager *m, const char *app, struct buf *out)
{
    int index = engine_app(&m->engine, app);
    for (size_t i = 0; i < m->engine.n_cycles; i++) {
        const struct engine_cycle *c = &m->engine.cycles[i];
        if (c->app == index && !cycle_ended(c->state) && c->state != CYCLE_PROPOSED)
            buf_printf(out, ",\"cycle\":%" PRId64, c->id);
    }
}

static int do_trigger(struct manager *m, const struct command *c, struct buf *out, struct err *err)
{
    if (need_app(c, err) < 0 ||
        ask(m,
            (struct engine_event){
                .type = EV_TRIGGER, .app = c->app, .trigger = "manual", .dry_run = c->dry_run},
            err) < 0)
        return -1;
    int index = engine_app(&m->engine, c->app);
    const char *by = paused_by(m, c->app);
    AUTO_FREE char *text =
        mem_printf("%s%s%s%s", m->engine.apps[index].waiting ? "waits for its turn" : "started",
                   by ? ", and will make no move: paused by " : "", by ? by : "",
                   by ? " (delete it to go on)" : "");
    put_text(out, text);
    put_running(m, c->app, out);
    return 0;
}

static int do_apply(struct manager *m, const struct command *c, struct buf *out, struct err *err)
{
    struct cycle_row row;
    struct move_count count;
    if (c->cycle <= 0)
        return err_set(err, ERR_USAGE, "which cycle?");
    if (store_cycle_get(m->store, c->cycle, &row, err) < 0)
        return -1;
    int rc = moves_count(m, c->cycle, &count, err);
    if (rc == 0 && (count.planned == 0 || count.applied || count.open))
        rc = err_set(err, ERR_REFUSED, "cycle %" PRId64 " has no plan that waits", c->cycle);
    const char *by = rc == 0 ? paused_by(m, row.app) : NULL;
    if (by)
        rc = err_set(err, ERR_REFUSED, "%s: paused by %s (delete it to go on); nothing was changed",
                     row.app, by);
    if (rc == 0)
        rc =
            ask(m, (struct engine_event){.type = EV_APPLY, .app = row.app, .cycle = c->cycle}, err);
    if (rc == 0) {
        AUTO_FREE char *text =
            mem_printf("%" PRId64 " moves of %s, after a look at its base", count.planned, row.app);
        put_text(out, text);
        put_running(m, row.app, out);
    }
    cycle_row_wipe(&row);
    return rc;
}

static int do_undo(struct manager *m, const struct command *c, struct buf *out, struct err *err)
{
    struct cycle_row row;
    struct move_count count;
    if (c->cycle <= 0)
        return err_set(err, ERR_USAGE, "which cycle?");
    if (store_cycle_get(m->store, c->cycle, &row, err) < 0)
        return -1;
    int state = cycle_state_from_name(row.state);
    int rc = moves_count(m, c->cycle, &count, err);
    if (rc == 0)
        rc = ask(m,
                 (struct engine_event){.type = EV_UNDO,
                                       .app = row.app,
                                       .cycle = c->cycle,
                                       .state = (enum cycle_state)state,
                                       .attempt = row.attempt,
                                       .value = count.applied},
                 err);
    if (rc == 0) {
        AUTO_FREE char *text = mem_printf("%" PRId64 " moves are put back", count.applied);
        put_text(out, text);
        buf_printf(out, ",\"cycle\":%" PRId64, c->cycle);
    }
    cycle_row_wipe(&row);
    return rc;
}

/* One app, or each. */
static int for_apps(struct manager *m, const struct command *c, enum engine_event_type type,
                    struct err *err)
{
    if (c->app)
        return ask(m, (struct engine_event){.type = type, .app = c->app}, err);
    for (size_t i = 0; i < m->config->n_apps; i++)
        if (ask(m, (struct engine_event){.type = type, .app = m->config->apps[i].name}, err) < 0)
            return -1;
    return 0;
}

static int do_pause(struct manager *m, const struct command *c, struct buf *out, struct err *err)
{
    if (for_apps(m, c, EV_PAUSE, err) < 0)
        return -1;
    manager_note(m, c->app, "pause", 0, "paused by hand");
    manager_configure(m, PARTY_EXECUTOR);
    put_text(out, "paused");
    return 0;
}

static int do_resume(struct manager *m, const struct command *c, struct buf *out, struct err *err)
{
    if (for_apps(m, c, EV_RESUME, err) < 0)
        return -1;
    manager_note(m, c->app, "resume", 0, "resumed by hand");
    manager_configure(m, PARTY_EXECUTOR);
    put_text(out, "resumed");
    return 0;
}

/* The answer comes when the executor has counted: nothing is put out here. */
static int do_release(struct manager *m, const struct command *c, struct buf *out, struct err *err)
{
    buf_clear(out);
    return release_begin(m, c->peer, c->app, c->service, c->dry_run, err);
}

static int do_status(struct manager *m, const struct command *c, struct buf *out, struct err *err)
{
    (void)c;
    (void)err;
    put_text(out, m->ready ? "running" : "starting");
    buf_printf(out, ",\"pid\":%ld,\"stages\":[", (long)getpid());
    for (enum party p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++)
        buf_printf(out, "%s{\"name\":\"%s\",\"pid\":%" PRId64 ",\"up\":%s,\"cycle\":%" PRId64 "}",
                   p == PARTY_MONITOR ? "" : ",", party_name(p), supervisor_pid(m->supervisor, p),
                   m->engine.stages[p].up ? "true" : "false", m->engine.stages[p].cycle);
    buf_printf(out, "],\"store\":\"%s\"", m->store_trouble ? "cannot be written" : "works");
    return 0;
}

static const struct {
    const char *name;
    command_fn *fn;
} commands[] = {
    {"trigger", do_trigger}, {"apply", do_apply},   {"undo", do_undo},       {"pause", do_pause},
    {"resume", do_resume},   {"status", do_status}, {"release", do_release},
};

static int read_command(json_t *tree, const char **name, struct command *out, struct err *err)
{
    static const char *const keys[] = {"v", "command", "app", "service", "cycle", "dry_run", NULL};
    struct jval root = jval_root(tree);
    struct jval v_v = jval_get(&root, "v"), name_v = jval_get(&root, "command");
    struct jval app_v = jval_get(&root, "app"), service_v = jval_get(&root, "service");
    int64_t version;
    if (jval_object(&root, keys, err) < 0 || jval_int(&v_v, 1, 1, &version, err) < 0 ||
        jval_text(&name_v, 64, name, err) < 0)
        return -1;
    if ((!jval_absent(&app_v) && jval_name(&app_v, &out->app, err) < 0) ||
        (!jval_absent(&service_v) && jval_name(&service_v, &out->service, err) < 0))
        return -1;
    return jval_opt_int(&root, "cycle", 1, INT64_MAX, &out->cycle, err) < 0 ||
                   jval_opt_bool(&root, "dry_run", &out->dry_run, err) < 0
               ? -1
               : 0;
}

static int run_command(struct manager *m, const char *peer, const char *body, size_t size,
                       struct buf *out, struct err *err)
{
    struct command c = {.peer = peer};
    const char *name;
    AUTO_JSON json_t *tree = json_parse(body, size, &json_limits_header, err);
    if (!tree || read_command(tree, &name, &c, err) < 0)
        return -1;
    buf_puts(out, "{\"v\":1,\"ok\":true");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].fn(m, &c, out, err);
    return err_set(err, ERR_USAGE, "%s: no such command", name);
}

void command_received(struct manager *m, const char *peer, const char *body, size_t size)
{
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT;
    enum message_type type = MSG_RESULT;
    int rc = run_command(m, peer, body, size, &out, &err);
    if (rc == 0 && !out.size) {
        buf_wipe(&out);
        return; /* the answer follows */
    }
    if (rc == 0) {
        buf_puts(&out, "}");
    } else {
        buf_clear(&out);
        failure_encode(&err, &out);
        type = MSG_FAILURE;
    }
    log_info("command peer=%s answer=%s", peer, type == MSG_RESULT ? "ok" : err.text);
    bus_answer(m->bus, peer, type, &out);
    buf_wipe(&out);
}
