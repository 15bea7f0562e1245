/* cli_history.c - `remap history`: the latest cycles, newest first. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "model/base/mem.h"
#include "model/manager/cli_read.h"

static void put_row(struct table *table, const struct store_rows *rows)
{
    char took[CLOCK_TEXT_SIZE];
    int64_t started = store_rows_int(rows, 4, -1), ended = store_rows_int(rows, 5, -1);
    cell_int(table, store_rows_int(rows, 0, -1));
    for (int i = 1; i < 4; i++) {
        table_cell(table, store_rows_text(rows, i));
    }
    cell_time(table, started);
    table_cell(table, ended < started ? NULL : took_text(ended - started, took));
    if (store_rows_int(rows, 6, 0)) {
        table_printf(table, "%" PRId64 "/%" PRId64, store_rows_int(rows, 7, 0),
                     store_rows_int(rows, 6, 0));
    } else {
        table_cell(table, NULL);
    }
    if (store_rows_null(rows, 9)) {
        table_cell(table, NULL);
    } else {
        table_printf(table, "%+.3f", store_rows_real(rows, 9, 0));
    }
}

/* The table, and below each row its reason: beside it lines would be far too long. */
static void put_lines(const struct table *table, char *const *reasons, struct buf *out)
{
    AUTO_BUF struct buf lines = BUF_INIT;
    table_put(table, 0, &lines);
    const char *line = lines.data;
    for (size_t i = 0; *line; i++) {
        size_t size = strcspn(line, "\n") + 1;
        buf_add(out, line, size);
        if (i > 0 && reasons[i - 1]) { /* the first line is the titles */
            put_folded(out, "       ", reasons[i - 1]);
        }
        line += size;
    }
}

static int print_text(struct store *store, const char *const *args, struct err *err)
{
    static const char sql[] =
        "SELECT c.cycle_id, c.app, c.trigger, c.state, c.started_ms, c.ended_ms, c.moves_planned,"
        " c.moves_applied, c.reason,"
        " CASE c.state WHEN 'undone' THEN NULL ELSE"
        " coalesce(s.affinity_realised, s.affinity_predicted) - s.affinity_before END"
        " FROM v_cycles c LEFT JOIN v_savings s USING (cycle_id)"
        " WHERE ?1 = '' OR c.app = ?1 ORDER BY c.cycle_id DESC LIMIT CAST(?2 AS INTEGER)";
    static const char *const titles[] = {">cycle", "app",    "trigger", "state", "started",
                                         ">took",  ">moves", ">gain",   NULL};
    AUTO(store_rows) struct store_rows *rows = NULL;
    AUTO(table) struct table *table = table_new(titles);
    AUTO_BUF struct buf out = BUF_INIT;
    char **reasons = NULL;
    size_t n = 0;
    if (store_select(store, sql, args, &rows, err)) {
        return -1;
    }
    int rc;
    while ((rc = store_rows_next(rows, err)) == 1) {
        put_row(table, rows);
        *ARRAY_PUSH(reasons, n) = mem_strdup(store_rows_text(rows, 8));
    }
    if (n) {
        put_lines(table, reasons, &out);
    } else {
        buf_puts(&out, "no cycles yet\n");
    }
    for (size_t i = 0; i < n; i++) {
        free(reasons[i]);
    }
    free(reasons);
    return rc ? -1 : cli_print_text(&out, err);
}

static int history_run(struct cli *cli, struct err *err)
{
    static const char json_sql[] =
        "SELECT c.*, s.hosts_before, s.hosts_predicted, s.hosts_realised, s.affinity_before,"
        " s.affinity_predicted, s.affinity_realised"
        " FROM v_cycles c LEFT JOIN v_savings s USING (cycle_id)"
        " WHERE ?1 = '' OR c.app = ?1 ORDER BY c.cycle_id DESC LIMIT CAST(?2 AS INTEGER)";
    AUTO(store) struct store *store = NULL;
    int64_t limit = 20;
    if (cli_opt_int(cli, "limit", 1, 1000000, &limit, err) || cli_read_open(cli, &store, err)) {
        return -1;
    }
    AUTO_FREE char *limit_text = mem_printf("%" PRId64, limit);
    const char *app = cli_opt(cli, "app");
    const char *const args[] = {app ? app : "", limit_text, NULL};
    if (cli->output == CLI_TEXT) {
        return print_text(store, args, err);
    }
    AUTO_BUF struct buf out = BUF_INIT;
    return store_query_json(store, json_sql, args, &out, err) ? -1 : cli_print_json(&out, err);
}

static const struct cli_option history_options[] = {
    {0, "app", "A", "only cycles of this app", false},
    {0, "limit", "N", "at most this many (default 20)", false},
    {0, NULL, NULL, NULL, false},
};

const struct cli_command cmd_history = {
    .name = "history",
    .summary = "the latest cycles, newest first",
    .about = "moves: applied/planned. gain: of the placement's affinity score, as realised, or as\n"
             "predicted where it was not verified.",
    .examples = "remap history\nremap history --app sock-shop --limit 5 -o json\n",
    .options = history_options,
    .common = CLI_CONFIG | CLI_STORE,
    .outputs = CLI_TEXT | CLI_JSON,
    .run = history_run,
};
