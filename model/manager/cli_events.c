/* cli_events.c - `remap events`: what an operator must find later, oldest of the latest first; with
 * --follow also what comes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/manager/cli_read.h"

/* A reader sees a commit at its next query; half a second is soon for eyes and nothing for a disk. */
#define FOLLOW_MS 500

struct watch {
    struct cli *cli;
    struct store *store;
    const char *app;
    char *cycle;
    int64_t last; /* id of the newest event that was shown */
    bool first;   /* of the JSON array */
};

static void put_line(struct buf *out, const struct store_rows *rows)
{
    char at[CLOCK_TEXT_SIZE];
    const char *app = store_rows_text(rows, 2);
    int64_t cycle = store_rows_int(rows, 4, -1);
    buf_puts(out, clock_iso(store_rows_int(rows, 1, 0), at));
    if (app) {
        buf_printf(out, "  %s", app);
    }
    if (cycle > 0) {
        buf_printf(out, "  cycle %" PRId64, cycle);
    }
    buf_printf(out, "  %s: ", store_rows_text(rows, 3));
    for (const char *p = store_rows_text(rows, 5); *p; p++) { /* one event, one line */
        char c = (unsigned char)*p < 0x20 || *p == 0x7f ? ' ' : *p;
        buf_add(out, &c, 1);
    }
    buf_puts(out, "\n");
}

/* Events after watch->last; `limit` "" means all, else the newest so many. */
static int print_new(struct watch *watch, const char *limit, bool follow, struct err *err)
{
    static const char sql[] =
        "SELECT * FROM (SELECT event_id, at_ms, app, kind, cycle_id, text FROM v_events"
        " WHERE event_id > CAST(?1 AS INTEGER) AND (?2 = '' OR app = ?2)"
        " AND (?3 = '' OR cycle_id = CAST(?3 AS INTEGER)) ORDER BY event_id DESC"
        " LIMIT CAST(?4 AS INTEGER)) ORDER BY event_id";
    AUTO_FREE char *last = mem_printf("%" PRId64, watch->last);
    const char *const args[] = {last, watch->app, watch->cycle, limit, NULL};
    AUTO(store_rows) struct store_rows *rows = NULL;
    AUTO_BUF struct buf out = BUF_INIT;
    if (store_select(watch->store, sql, args, &rows, err)) {
        return -1;
    }
    int rc;
    while ((rc = store_rows_next(rows, err)) == 1) {
        watch->last = store_rows_int(rows, 0, watch->last);
        if (watch->cli->output == CLI_TEXT) {
            put_line(&out, rows);
            continue;
        }
        buf_puts(&out, follow || watch->first ? "" : ",");
        watch->first = false;
        store_rows_json(rows, &out);
        buf_puts(&out, follow ? "\n" : "");
    }
    if (rc < 0 || cli_print_text(&out, err)) {
        return -1;
    }
    return follow ? cli_flush(err) : 0;
}

/* Where `--follow --limit 0` begins: after all that is there. */
static int skip_all(struct watch *watch, struct err *err)
{
    AUTO(store_rows) struct store_rows *rows = NULL;
    if (store_select(watch->store, "SELECT max(event_id) FROM v_events", NULL, &rows, err) ||
        store_rows_next(rows, err) < 0) {
        return -1;
    }
    watch->last = store_rows_int(rows, 0, 0);
    return 0;
}

static int events_run(struct cli *cli, struct err *err)
{
    int64_t limit = 50, cycle = -1;
    AUTO(store) struct store *store = NULL;
    bool follow = cli_flag(cli, "follow"), array = cli->output == CLI_JSON && !follow;
    const char *app = cli_opt(cli, "app");
    if (cli_opt_int(cli, "limit", 0, 1000000, &limit, err) ||
        cli_opt_int(cli, "cycle", 1, INT64_MAX, &cycle, err) || cli_read_open(cli, &store, err)) {
        return -1;
    }
    AUTO_FREE char *limit_text = mem_printf("%" PRId64, limit);
    AUTO_FREE char *cycle_text = cycle < 0 ? mem_strdup("") : mem_printf("%" PRId64, cycle);
    struct watch watch = {cli, store, app ? app : "", cycle_text, 0, true};
    if (array) {
        fputs("[", stdout);
    }
    if (limit ? print_new(&watch, limit_text, follow, err) : skip_all(&watch, err)) {
        return -1;
    }
    if (array) {
        fputs("]\n", stdout);
    }
    while (follow) {
        clock_sleep_ms(FOLLOW_MS);
        if (print_new(&watch, "-1", true, err)) {
            return -1;
        }
    }
    return 0;
}

static const struct cli_option events_options[] = {
    {'f', "follow", NULL, "go on as events come; ends with Ctrl-C", false},
    {0, "app", "A", "only events of this app", false},
    {0, "cycle", "CYCLE", "only events of this cycle", false},
    {0, "limit", "N", "begin with so many of the latest (default 50)", false},
    {0, NULL, NULL, NULL, false},
};

const struct cli_command cmd_events = {
    .name = "events",
    .summary = "what happened: cycles, stages, notes of sources, decisions",
    .about = "With --follow -o json prints one JSON object per line.",
    .examples = "remap events\nremap events --cycle 12\nremap events --follow --app sock-shop\n",
    .options = events_options,
    .common = CLI_CONFIG | CLI_STORE,
    .outputs = CLI_TEXT | CLI_JSON,
    .run = events_run,
};
