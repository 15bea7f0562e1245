/* daemon.c - `remap run` and `remap once`: opens everything in the order that makes them safe,
 * turns the loop, closes (design.md 3). */
#include "model/manager/daemon.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/log.h"
#include "model/manager/cli.h"
#include "model/manager/manager.h"
#include "model/wire/rundir.h"

#define STOP_WAIT_MS 30000      /* contract.md 1: SIGTERM finishes the current move, at most 30 s */
#define RETAIN_FIRST_MS 60000   /* not while a start is busy with recovery */
#define RETAIN_EVERY_MS 3600000 /* retention is counted in days */
#define RETAIN_MORE_MS 1000     /* a full batch was deleted: there may be more */

/* --- signals and timers --- */

static void on_stop_late(void *ctx)
{
    struct manager *m = ctx;
    m->leave_timer = 0;
    log_warn("the current move is not finished after %d s; it goes on at the next start",
             STOP_WAIT_MS / 1000);
    manager_leave(m, 0);
}

static void on_stop_signal(void *ctx, int signo)
{
    struct manager *m = ctx;
    log_info("%s: leaving%s", strsignal(signo),
             engine_quiet(&m->engine) ? "" : " when the current move is finished");
    if (m->engine.stopping) { /* asked twice: now */
        manager_leave(m, 0);
        return;
    }
    m->leave_timer = loop_timer(m->loop, STOP_WAIT_MS, on_stop_late, m);
    manager_event(m, (struct engine_event){.type = EV_SHUTDOWN});
}

static void on_hup(void *ctx, int signo)
{
    (void)signo;
    struct manager *m = ctx;
    manager_reload(m);
}

static void on_watchdog(void *ctx)
{
    struct manager *m = ctx;
    uint64_t us = 0;
    if (sd_watchdog_enabled(0, &us) <= 0)
        return;
    sd_notify(0, "WATCHDOG=1");
    loop_timer(m->loop, (int64_t)(us / 2000), on_watchdog, m); /* twice in its time */
}

static void on_retain(void *ctx)
{
    struct manager *m = ctx;
    struct err err = ERR_INIT;
    int64_t deleted = 0;
    if (store_retain(m->store, clock_wall_ms(), m->config->retention_ms, m->config->retention_bytes,
                     &deleted, &err) < 0)
        log_warn("retention: %s", err.text);
    else if (deleted > 0)
        log_info("retention: %lld cycles deleted", (long long)deleted);
    loop_timer(m->loop, deleted >= STORE_RETAIN_CYCLES ? RETAIN_MORE_MS : RETAIN_EVERY_MS,
               on_retain, m);
}

static bool is_ready(void *ctx, struct buf *why)
{
    const struct manager *m = ctx;
    bool ready = true;
    for (enum party p = PARTY_MONITOR; p <= PARTY_EXECUTOR; p++)
        if (!m->engine.stages[p].up) {
            buf_printf(why, "%sthe %s is not up", ready ? "" : ", ", party_name(p));
            ready = false;
        }
    if (m->store_trouble) {
        buf_printf(why, "%sthe store cannot be written", ready ? "" : ", ");
        ready = false;
    }
    return ready;
}

/* --- opening and closing --- */

static void manager_close(struct manager *m)
{
    http_free(m->http);
    supervisor_free(m->supervisor);
    bus_free(m->bus);
    loop_free(m->loop);
    store_close(m->store);
    metrics_free(m->metrics);
    docs_wipe(&m->docs);
    buf_wipe(&m->verify_text);
    look_wipe(&m->look);
    release_free(m->release);
    pauses_forget(m);
    free(m->phases);
    free(m->apps);
    config_free(m->reread);
    engine_wipe(&m->engine);
    if (m->lock_fd >= 0)
        close(m->lock_fd); /* last: nobody else may start before */
}

static int open_signals(struct manager *m, struct err *err)
{
    if (loop_signal(m->loop, SIGTERM, on_stop_signal, m, err) < 0 ||
        loop_signal(m->loop, SIGINT, on_stop_signal, m, err) < 0)
        return -1;
    return m->options->once ? 0 : loop_signal(m->loop, SIGHUP, on_hup, m, err);
}

static int open_http(struct manager *m, struct err *err)
{
    const struct http_options options = {.listen = m->config->http_listen,
                                         .probe_listen = m->config->probe_listen,
                                         .token_file = m->config->http_token_file};
    const struct http_source source = {
        .store = m->store, .metrics = m->metrics, .ready = is_ready, .ctx = m};
    return m->options->listen ? http_start(m->loop, &options, &source, &m->http, err) : 0;
}

/* Signals before sockets (loop.h), the lock before the bus is bound and before the store says what
 * was going on: whatever stages an earlier daemon left are gone by then. */
static int manager_open(struct manager *m, struct err *err)
{
    const struct daemon_options *o = m->options;
    m->loop = loop_new();
    m->metrics = metrics_new();
    engine_init(&m->engine, clock_mono_ms());
    if (open_signals(m, err) < 0 ||
        rundir_lock(o->run_dir, RUNDIR_STAGES_WAIT_MS, &m->lock_fd, err) < 0 ||
        store_open(o->store_path, &m->store, err) < 0 || manager_apps_set(m, o->config, err) < 0 ||
        manager_restore(m, err) < 0 ||
        bus_open(m->loop, o->run_dir, &manager_bus_events, m, &m->bus, err) < 0 ||
        supervisor_open(m->loop, o->run_dir, o->stages_dir, &manager_supervisor_events, m,
                        &m->supervisor, err) < 0)
        return -1;
    return open_http(m, err);
}

/* `once`: each app, or the one asked for, gets one cycle. */
static int trigger_once(struct manager *m, struct err *err)
{
    const struct daemon_options *o = m->options;
    if (o->app && engine_app(&m->engine, o->app) < 0)
        return err_set(err, ERR_USAGE, "app %s is not configured", o->app);
    for (size_t i = 0; i < o->config->n_apps; i++) {
        const char *name = o->config->apps[i].name;
        struct engine_event ev = {.type = EV_TRIGGER,
                                  .now_ms = clock_mono_ms(),
                                  .app = name,
                                  .trigger = "once",
                                  .dry_run = o->dry_run};
        const char *why = engine_refuses(&m->engine, &ev);
        if (o->app && strcmp(o->app, name) != 0)
            continue;
        if (why && o->app)
            return err_set(err, ERR_REFUSED, "%s: %s", name, why);
        if (why)
            log_warn("app=%s left out: %s", name, why);
        engine_update(&m->engine, &ev);
    }
    return 0;
}

int daemon_run(const struct daemon_options *options, struct err *err)
{
    signal(SIGXFSZ, SIG_IGN); /* a limit on files is a full disk: an error, not the end */
    struct manager m = {.options = options, .config = options->config, .lock_fd = -1};
    int rc = manager_open(&m, err);
    if (rc == 0 && options->once)
        rc = trigger_once(&m, err);
    if (rc == 0) {
        on_watchdog(&m);
        if (!options->once)
            loop_timer(m.loop, RETAIN_FIRST_MS, on_retain, &m);
        manager_work(&m);
        rc = loop_run(m.loop, err);
    }
    if (rc == 0 && m.fatal.kind != ERR_NONE) {
        *err = m.fatal;
        rc = -1;
    }
    int exit_code = options->once ? m.exit_code : 0;
    manager_close(&m);
    return rc < 0 ? -1 : exit_code;
}

/* --- the commands --- */

static int read_places(struct cli *cli, struct daemon_options *out, struct err *err)
{
    if (cli_config(cli, &out->config, err) < 0 || cli_store_path(cli, &out->store_path, err) < 0 ||
        cli_run_dir(cli, &out->run_dir, err) < 0)
        return -1;
    out->stages_dir = out->config->libexec_dir;
    log_init("remap", out->config->log_level, out->config->log_format);
    return 0;
}

static int run_run(struct cli *cli, struct err *err)
{
    struct daemon_options options = {.listen = true};
    return read_places(cli, &options, err) < 0 ? -1 : daemon_run(&options, err);
}

/* What `once` prints: each cycle's end, as text or as one document. */
struct once_report {
    struct buf json;
    bool text;
};

static void once_cycle(void *ctx, int64_t cycle, const char *app, const char *state,
                       const char *reason)
{
    struct once_report *report = ctx;
    int known = cycle_state_from_name(state);
    if (!cycle_ended((enum cycle_state)known) && known != CYCLE_PROPOSED)
        return;
    if (report->text) {
        printf("cycle %lld of %s: %s%s%s\n", (long long)cycle, app, state, *reason ? ": " : "",
               reason);
        return;
    }
    buf_printf(&report->json, "%s{\"cycle\":%lld,\"app\":", report->json.size ? "," : "",
               (long long)cycle);
    json_put_text(&report->json, app);
    buf_printf(&report->json, ",\"state\":\"%s\",\"reason\":", state);
    json_put_text(&report->json, *reason ? reason : NULL);
    buf_puts(&report->json, "}");
}

static int once_run(struct cli *cli, struct err *err)
{
    struct once_report report = {.text = cli->output == CLI_TEXT};
    const struct daemon_events events = {.cycle = once_cycle};
    struct daemon_options options = {.once = true,
                                     .app = cli_opt(cli, "app"),
                                     .dry_run = cli_flag(cli, "dry-run"),
                                     .events = &events,
                                     .ctx = &report};
    int rc = read_places(cli, &options, err) < 0 ? -1 : daemon_run(&options, err);
    if (rc >= 0 && !report.text) {
        AUTO_BUF struct buf out = BUF_INIT;
        buf_printf(&out, "{\"v\":1,\"cycles\":[%s]}", report.json.size ? report.json.data : "");
        if (cli_print_json(&out, err) < 0)
            rc = -1;
    }
    buf_wipe(&report.json);
    return rc;
}

const struct cli_command cmd_run = {
    .name = "run",
    .summary = "the daemon: supervisor, engine, stages, HTTP",
    .about = "Runs in the foreground. SIGHUP reads the configuration again, SIGTERM finishes the "
             "current move (at most 30 s) and leaves.",
    .examples = "remap run -c /etc/remap/remap.yaml\n",
    .common = CLI_CONFIG | CLI_STORE | CLI_RUN_DIR,
    .run = run_run,
};

static const struct cli_option once_options[] = {
    {0, "app", "A", "only this application", false},
    {0, "dry-run", NULL, "plan and store, move nothing", false},
    {0, NULL, NULL, NULL, false},
};

const struct cli_command cmd_once = {
    .name = "once",
    .summary = "one cycle of each application, whole, then exit",
    .about = "Collects, analyzes, plans, moves (if the application's mode is `act`), waits the "
             "settle time and verifies. Exit code 1 when a cycle failed; undone on purpose is 0.",
    .examples = "remap once\nremap once --app sock-shop --dry-run\n",
    .options = once_options,
    .common = CLI_CONFIG | CLI_STORE | CLI_RUN_DIR,
    .outputs = CLI_TEXT | CLI_JSON,
    .run = once_run,
};
