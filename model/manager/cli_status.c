/* cli_status.c - `remap status`: is the daemon there, and how is each application? Works while it
 * runs and while it is down, with and without a store. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "model/base/clock.h"
#include "model/base/json.h"
#include "model/base/mem.h"
#include "model/manager/cli_read.h"
#include "model/wire/rundir.h"

struct app_status {
    char *app, *mode;
    bool paused;
    int64_t next_due_ms;
    int64_t cycle; /* the latest; -1 none */
    char *state, *reason;
    int64_t started_ms, ended_ms;
    double local, gap, coverage; /* < 0: unknown */
    /* looks between cycles; state NULL: it is not looked at */
    char *drift_state;
    int64_t drift_ms;
    double drift, drift_noise, drift_response, drift_level, drift_response_level;
};

struct held_pin { /* of an app: what it would, or may not, take off */
    char *app, *text;
};

struct open_cycle { /* not ended, and not the latest of its app: a proposal that waits, mostly */
    int64_t cycle, started_ms;
    char *app, *state;
};

struct status {
    const char *run_dir, *store_path;
    bool runs;
    bool hidden; /* the run directory (0700) may not be looked into: unknown whether it runs */
    int64_t pid;
    bool has_store;
    struct app_status *apps;
    size_t n_apps;
    struct open_cycle *open;
    size_t n_open;
    struct held_pin *held;
    size_t n_held;
    char *lease; /* what the running executor said last of its lock in the cluster; NULL: none */
    const char *paused_by; /* into it: "configmap remap/remap-pause"; NULL: by nobody there */
};

static void status_wipe(struct status *status)
{
    for (size_t i = 0; i < status->n_open; i++) {
        free(status->open[i].app);
        free(status->open[i].state);
    }
    free(status->open);
    for (size_t i = 0; i < status->n_held; i++) {
        free(status->held[i].app);
        free(status->held[i].text);
    }
    free(status->held);
    free(status->lease);
    for (size_t i = 0; i < status->n_apps; i++) {
        struct app_status *app = &status->apps[i];
        free(app->app);
        free(app->mode);
        free(app->state);
        free(app->reason);
        free(app->drift_state);
    }
    free(status->apps);
}

static const char *mode_name(enum app_mode mode)
{
    static const char *const names[] = {"observe", "propose", "act"};
    return names[mode];
}

/* Every app of the store: latest cycle, share of messages that stay on a host at its latest
 * snapshot, gap and coverage of its latest plan. */
static int read_store(struct store *store, struct status *status, struct err *err)
{
    static const char sql[] =
        "WITH known AS (SELECT app FROM apps UNION SELECT app FROM v_cycles)"
        " SELECT k.app, a.mode, coalesce(a.paused, 0), a.next_due_ms,"
        " c.cycle_id, c.state, c.reason, c.started_ms, c.ended_ms,"
        " (SELECT sum(m.count * m.local_share) / sum(m.count) FROM messages m"
        "   WHERE m.local_share IS NOT NULL AND m.snapshot_id ="
        "   (SELECT max(s.snapshot_id) FROM snapshots s JOIN cycles sc USING (cycle_id)"
        "     WHERE sc.app = k.app)),"
        " p.gap, p.coverage,"
        " d.state, d.at_ms, d.distance, d.noise, d.response_ratio, d.affinity, 1 + d.response"
        " FROM known k LEFT JOIN apps a ON a.app = k.app"
        " LEFT JOIN v_cycles c ON c.cycle_id ="
        "   (SELECT max(cycle_id) FROM cycles WHERE app = k.app)"
        " LEFT JOIN v_plans p ON p.cycle_id = (SELECT max(p2.cycle_id) FROM plans p2"
        "   JOIN cycles pc USING (cycle_id) WHERE pc.app = k.app)"
        " LEFT JOIN v_drift d ON d.app = k.app AND d.every_ms > 0"
        " ORDER BY k.app";
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(store, sql, NULL, &rows, err)) {
        return -1;
    }
    int rc;
    while ((rc = store_rows_next(rows, err)) == 1) {
        *ARRAY_PUSH(status->apps, status->n_apps) = (struct app_status){
            .app = mem_strdup(store_rows_text(rows, 0)),
            .mode = mem_strdup(store_rows_text(rows, 1)),
            .paused = store_rows_int(rows, 2, 0) != 0,
            .next_due_ms = store_rows_int(rows, 3, -1),
            .cycle = store_rows_int(rows, 4, -1),
            .state = mem_strdup(store_rows_text(rows, 5)),
            .reason = mem_strdup(store_rows_text(rows, 6)),
            .started_ms = store_rows_int(rows, 7, -1),
            .ended_ms = store_rows_int(rows, 8, -1),
            .local = store_rows_real(rows, 9, -1),
            .gap = store_rows_real(rows, 10, -1),
            .coverage = store_rows_real(rows, 11, -1),
            .drift_state = mem_strdup(store_rows_text(rows, 12)),
            .drift_ms = store_rows_int(rows, 13, -1),
            .drift = store_rows_real(rows, 14, -1),
            .drift_noise = store_rows_real(rows, 15, -1),
            .drift_response = store_rows_real(rows, 16, -1),
            .drift_level = store_rows_real(rows, 17, -1),
            .drift_response_level = store_rows_real(rows, 18, -1),
        };
    }
    return rc;
}

static int read_open(struct store *store, struct status *status, struct err *err)
{
    static const char sql[] =
        "SELECT c.cycle_id, c.started_ms, c.app, c.state FROM v_cycles c"
        " WHERE c.ended_ms IS NULL AND c.cycle_id <"
        " (SELECT max(l.cycle_id) FROM cycles l WHERE l.app = c.app) ORDER BY c.cycle_id";
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(store, sql, NULL, &rows, err)) {
        return -1;
    }
    int rc;
    while ((rc = store_rows_next(rows, err)) == 1) {
        *ARRAY_PUSH(status->open, status->n_open) = (struct open_cycle){
            store_rows_int(rows, 0, -1), store_rows_int(rows, 1, -1),
            mem_strdup(store_rows_text(rows, 2)), mem_strdup(store_rows_text(rows, 3))};
    }
    return rc;
}

/* Of a running daemon: does it hold its lock, and has somebody paused it in the cluster? The executor
 * tells each change (executor/keep.h). */
static int read_lease(struct store *store, struct status *status, struct err *err)
{
    static const char sql[] =
        "SELECT text FROM v_events WHERE kind = 'lease' ORDER BY event_id DESC LIMIT 1";
    static const char by[] = "; paused by ";
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (!status->runs && !status->hidden) {
        return 0;
    }
    if (store_select(store, sql, NULL, &rows, err)) {
        return -1;
    }
    int rc = store_rows_next(rows, err);
    if (rc == 1) {
        status->lease = mem_strdup(store_rows_text(rows, 0));
        char *at = strstr(status->lease, by);
        status->paused_by = at ? at + strlen(by) : NULL;
    }
    return rc < 0 ? -1 : 0;
}

/* Pins that do harm and stay: the latest word of each workload, where it is not that this is over. */
static int read_held(struct store *store, struct status *status, struct err *err)
{
    static const char sql[] =
        "SELECT app, text FROM v_events WHERE event_id IN (SELECT max(event_id) FROM v_events"
        " WHERE kind = 'relief' GROUP BY app, substr(text, 1, instr(text, ': ')))"
        " AND text NOT LIKE '%: the pin of move % is taken off,%'"
        " AND text NOT LIKE '%is in nobody''s way any more' ORDER BY event_id";
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (!status->runs && !status->hidden) {
        return 0;
    }
    if (store_select(store, sql, NULL, &rows, err)) {
        return -1;
    }
    int rc;
    while ((rc = store_rows_next(rows, err)) == 1) {
        *ARRAY_PUSH(status->held, status->n_held) = (struct held_pin){
            mem_strdup(store_rows_text(rows, 0)), mem_strdup(store_rows_text(rows, 1))};
    }
    return rc;
}

/* Apps that are configured but have left nothing in the store yet; modes that it does not know. */
static void add_configured(struct status *status, const struct config *config)
{
    for (size_t i = 0; i < config->n_apps; i++) {
        const struct config_app *configured = &config->apps[i];
        struct app_status *app = NULL;
        for (size_t k = 0; k < status->n_apps; k++) {
            if (strcmp(status->apps[k].app, configured->name) == 0) {
                app = &status->apps[k];
            }
        }
        if (!app) {
            app = ARRAY_PUSH(status->apps, status->n_apps);
            *app = (struct app_status){.app = mem_strdup(configured->name), .next_due_ms = -1,
                                       .cycle = -1, .started_ms = -1, .ended_ms = -1,
                                       .local = -1, .gap = -1, .coverage = -1};
        }
        if (!app->mode) {
            app->mode = mem_strdup(mode_name(configured->mode));
        }
    }
}

/* What observes has no moves that could be held back. */
static bool is_held(const struct status *status, const struct app_status *app)
{
    return status->paused_by && app->mode && strcmp(app->mode, "observe") != 0;
}

static void put_apps(const struct status *status, struct buf *out)
{
    static const char *const titles[] = {"app", "mode", "cycle", "local", "gap", "cover",
                                         "next due", NULL};
    AUTO(table) struct table *table = table_new(titles);
    for (size_t i = 0; i < status->n_apps; i++) {
        const struct app_status *app = &status->apps[i];
        table_cell(table, app->app);
        table_printf(table, "%s%s", app->mode ? app->mode : "-",
                     app->paused || is_held(status, app) ? ", paused" : "");
        if (app->cycle < 0) {
            table_cell(table, NULL);
        } else {
            table_printf(table, "%" PRId64 " %s", app->cycle, app->state);
        }
        cell_percent(table, app->local);
        cell_percent(table, app->gap);
        cell_percent(table, app->coverage);
        cell_time(table, (status->runs || status->hidden) && !app->paused ? app->next_due_ms : -1);
    }
    buf_puts(out, "\n");
    table_put(table, 0, out);
}

/* When the latest cycles were, and why those that did not end well did not. */
static void put_latest(const struct status *status, struct buf *out)
{
    char at[CLOCK_TEXT_SIZE];
    bool first = true;
    for (size_t i = 0; i < status->n_open; i++) {
        const struct open_cycle *open = &status->open[i];
        buf_printf(out, "%scycle %" PRId64 " of %s: ", first ? "\n" : "", open->cycle, open->app);
        first = false;
        put_state(out, open->state);
        buf_printf(out, " since %s\n", clock_iso(open->started_ms - open->started_ms % 1000, at));
    }
    for (size_t i = 0; i < status->n_apps; i++) {
        const struct app_status *app = &status->apps[i];
        if (app->cycle < 0) {
            continue;
        }
        int64_t when_ms = app->ended_ms < 0 ? app->started_ms : app->ended_ms;
        buf_printf(out, "%scycle %" PRId64 " of %s: ", first ? "\n" : "", app->cycle, app->app);
        first = false;
        put_state(out, app->state);
        buf_printf(out, "%s %s%s%s\n", app->ended_ms < 0 ? " since" : "",
                   clock_iso(when_ms - when_ms % 1000, at), app->reason ? ": " : "",
                   app->reason ? app->reason : "");
    }
}

/* Of the apps that are looked at between cycles. */
static void put_drift(const struct status *status, struct buf *out)
{
    static const char *const titles[] = {"drift of", "state",    "traffic", "by chance", "level",
                                         "response", "its level", "looked",  NULL};
    AUTO(table) struct table *table = table_new(titles);
    bool any = false;
    for (size_t i = 0; i < status->n_apps; i++) {
        const struct app_status *app = &status->apps[i];
        if (!app->drift_state) {
            continue;
        }
        any = true;
        table_cell(table, app->app);
        table_cell(table, app->drift_state);
        cell_percent(table, app->drift);
        cell_percent(table, app->drift_noise);
        cell_percent(table, app->drift_level);
        cell_percent(table, app->drift_response);
        cell_percent(table, app->drift_response_level);
        cell_time(table, app->drift_ms);
    }
    if (any) {
        buf_puts(out, "\n");
        table_put(table, 0, out);
    }
}

static void put_text(const struct status *status, struct buf *out)
{
    buf_puts(out, "remap  ");
    put_state(out, status->runs ? "runs" : status->hidden ? "unknown" : "down");
    buf_puts(out, status->hidden ? ", the run directory is not yours to look into" : "");
    if (status->pid > 0 && status->runs) {
        buf_printf(out, ", pid %" PRId64, status->pid);
    }
    buf_printf(out, " (%s)\nstore  %s%s\n", status->run_dir, status->store_path,
               status->has_store ? "" : " (not there yet)");
    if (status->lease) {
        buf_printf(out, "lock   %s\n", status->lease);
    }
    if (status->n_apps) {
        put_apps(status, out);
        put_drift(status, out);
        put_latest(status, out);
        for (size_t i = 0; i < status->n_held; i++) {
            buf_printf(out, "%s%s: %s\n", i ? "" : "\n", status->held[i].app, status->held[i].text);
        }
    } else {
        buf_puts(out, "\nno applications yet\n");
    }
}

static void put_opt_real(struct buf *out, const char *key, double value)
{
    buf_printf(out, ",\"%s\":", key);
    if (value < 0) {
        buf_puts(out, "null");
    } else {
        json_put_real(out, value);
    }
}

static void put_opt_int(struct buf *out, const char *key, int64_t value)
{
    buf_printf(out, ",\"%s\":", key);
    if (value < 0) {
        buf_puts(out, "null");
    } else {
        json_put_int(out, value);
    }
}

static void put_opt_text(struct buf *out, const char *key, const char *value)
{
    buf_printf(out, ",\"%s\":", key);
    json_put_text(out, value);
}

static void put_json_drift(const struct app_status *app, struct buf *out)
{
    if (!app->drift_state) {
        buf_puts(out, ",\"drift\":null");
        return;
    }
    buf_puts(out, ",\"drift\":{\"state\":");
    json_put_text(out, app->drift_state);
    put_opt_int(out, "at_ms", app->drift_ms);
    put_opt_real(out, "distance", app->drift);
    put_opt_real(out, "noise", app->drift_noise);
    put_opt_real(out, "level", app->drift_level);
    put_opt_real(out, "response_ratio", app->drift_response);
    put_opt_real(out, "response_level", app->drift_response_level);
    buf_puts(out, "}");
}

static void put_json(const struct status *status, struct buf *out)
{
    buf_printf(out, "{\"v\":1,\"running\":%s",
               status->runs ? "true" : status->hidden ? "null" : "false");
    put_opt_int(out, "pid", status->runs && status->pid > 0 ? status->pid : -1);
    put_opt_text(out, "run_dir", status->run_dir);
    put_opt_text(out, "store", status->store_path);
    put_opt_text(out, "lock", status->lease);
    put_opt_text(out, "paused_by", status->paused_by);
    buf_printf(out, ",\"store_exists\":%s,\"apps\":[", status->has_store ? "true" : "false");
    for (size_t i = 0; i < status->n_apps; i++) {
        const struct app_status *app = &status->apps[i];
        buf_puts(out, i ? ",{\"app\":" : "{\"app\":");
        json_put_text(out, app->app);
        put_opt_text(out, "mode", app->mode);
        buf_printf(out, ",\"paused\":%s", app->paused ? "true" : "false");
        put_opt_int(out, "next_due_ms", app->next_due_ms);
        put_opt_int(out, "cycle_id", app->cycle);
        put_opt_text(out, "state", app->state);
        put_opt_text(out, "reason", app->reason);
        put_opt_int(out, "started_ms", app->started_ms);
        put_opt_int(out, "ended_ms", app->ended_ms);
        put_opt_real(out, "local_share", app->local);
        put_opt_real(out, "gap", app->gap);
        put_opt_real(out, "coverage", app->coverage);
        put_json_drift(app, out);
        buf_puts(out, "}");
    }
    buf_puts(out, "],\"open_cycles\":[");
    for (size_t i = 0; i < status->n_open; i++) {
        const struct open_cycle *open = &status->open[i];
        buf_printf(out, "%s{\"cycle_id\":%" PRId64 ",\"app\":", i ? "," : "", open->cycle);
        json_put_text(out, open->app);
        put_opt_text(out, "state", open->state);
        put_opt_int(out, "started_ms", open->started_ms);
        buf_puts(out, "}");
    }
    buf_puts(out, "],\"pins_in_the_way\":[");
    for (size_t i = 0; i < status->n_held; i++) {
        buf_puts(out, i ? ",{\"app\":" : "{\"app\":");
        json_put_text(out, status->held[i].app);
        put_opt_text(out, "text", status->held[i].text);
        buf_puts(out, "}");
    }
    buf_puts(out, "]}");
}

static bool is_hidden(const char *run_dir)
{
    AUTO_FREE char *lock = mem_printf("%s/lock", run_dir);
    return access(lock, R_OK) != 0 && errno == EACCES;
}

static int status_run(struct cli *cli, struct err *err)
{
    __attribute__((cleanup(status_wipe))) struct status status = {0};
    const struct config *config = NULL;
    struct err none = ERR_INIT;
    AUTO(store) struct store *store = NULL;
    AUTO_BUF struct buf out = BUF_INIT;
    if (cli_store_path(cli, &status.store_path, err) || cli_run_dir(cli, &status.run_dir, err)) {
        return -1;
    }
    status.runs = rundir_daemon_runs(status.run_dir, &status.pid);
    status.hidden = !status.runs && is_hidden(status.run_dir);
    if (store_open_read(status.store_path, &store, err) == 0) {
        status.has_store = true;
        if (read_store(store, &status, err) || read_open(store, &status, err) ||
            read_lease(store, &status, err) || read_held(store, &status, err)) {
            return -1;
        }
    } else if (err->kind != ERR_NOT_FOUND) {
        return -1;
    }
    if (cli_config(cli, &config, &none) == 0) { /* one that matters was read for the paths already */
        add_configured(&status, config);
    }
    if (cli->output == CLI_JSON) {
        put_json(&status, &out);
        return cli_print_json(&out, err);
    }
    put_text(&status, &out);
    return cli_print_text(&out, err);
}

const struct cli_command cmd_status = {
    .name = "status",
    .summary = "is the daemon there, and how is each app",
    .about = "Works while the daemon runs and while it is down, and says which. local: share of\n"
             "messages between instances on one host; gap: distance of the latest plan from its\n"
             "proven bound; cover: share of the observed traffic that maps to known pairs. drift,\n"
             "where `drift.every` is set: the share of the traffic that goes another way than the\n"
             "placement was planned on, and the mean response time as a share of what it was.",
    .examples = "remap status\nremap status -o json\n",
    .common = CLI_CONFIG | CLI_STORE | CLI_RUN_DIR,
    .outputs = CLI_TEXT | CLI_JSON,
    .run = status_run,
};
